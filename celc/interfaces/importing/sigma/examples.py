"""Examples of Sigma's rules → the cases of a test file beside the queries.

Sigma itself has none. Two custom fields have: `rsigma.exemplars` with events in the rule, and
SigmaHQ's `regression_tests_path`, which names files of events. What is not read of them is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from celc_runtime.plan.frozen import frozen
from sigma.correlations import SigmaCorrelationRule, SigmaCorrelationTimespan
from sigma.exceptions import SigmaError
from sigma.rule import SigmaRule

from celc.interfaces.importing.sigma.rules_of_file import RulesOfFile, detections

EXEMPLARS, REGRESSION = "rsigma.exemplars", "regression_tests_path"

_START = datetime(2026, 1, 1)

Row: TypeAlias = dict[str, Any]


@frozen
class _Case:
    """Events with their seconds from the start, and how many rows are expected; `place` is a word
    of the rule where it stands."""

    name: str
    place: str
    events: Sequence[tuple[int, Mapping[str, Any]]]
    expected: int


class _NotReadError(Exception):
    """Why an example is not read."""


def tests_of(file: RulesOfFile, rules: Sequence[SigmaRule | SigmaCorrelationRule]) -> str | None:
    """The test file for the rules of a file that is translated; None where they have no examples.

    Examples that are not read are warnings of the file.
    """
    parts: list[str] = []
    names: set[str] = set()
    for rule in rules:
        file.places.begin_rule(rule.title)
        query = file.query_of(rule) if rule._output else None
        for case in _cases(file, rule):
            if query is None:
                file.places.told(case.place, "this rule has no query of its own to test")
                break
            name = f"{rule.title}: {case.name}"
            while name in names:
                name += "'"
            try:
                lines = "\n".join(_lines(file, rule, case.events))
            except _NotReadError as problem:
                file.places.told(case.place, f"this example is not read: {problem}")
                continue
            names.add(name)
            parts += [
                f"[[case]]\nname = {_toml(name)}\nquery = {_toml(query)}\n"
                f"given = '''\n{lines}\n'''\nexpected = {case.expected}\n"
            ]
    if not parts:
        return None
    options = [f"order_by = [{_toml(file.columns.time)}]\n"]
    if len(file.named) > 1:
        options.append(f"type_column = {_toml(file.columns.kind)}\n")
    return "\n".join(["".join(options), *parts])


def _cases(file: RulesOfFile, rule: SigmaRule | SigmaCorrelationRule) -> Iterator[_Case]:
    exemplars = rule.custom_attributes.get(EXEMPLARS)
    for number, one in enumerate(exemplars if isinstance(exemplars, list) else []):
        try:
            yield _exemplar(one, number)
        except _NotReadError as problem:
            name = str(one.get("name", "")) if isinstance(one, dict) else ""
            file.places.told(name or EXEMPLARS, f"this example is not read: {problem}")
    if exemplars is not None and not isinstance(exemplars, list):
        file.places.told(EXEMPLARS, "examples are a list")
    path = rule.custom_attributes.get(REGRESSION)
    if path is not None:
        yield from _Regression(file, str(path)).cases()


def _exemplar(given: Any, number: int) -> _Case:
    expected = {"match": 1, "no-match": 0}
    if not isinstance(given, dict) or given.get("expect") not in expected:
        raise _NotReadError("it says 'expect: match' or 'expect: no-match'")
    timed = given.get("events", [{"offset": 0, "event": given.get("event")}])
    if not isinstance(timed, list) or not all(isinstance(one, dict) for one in timed):
        raise _NotReadError("'events' is a list of events with offsets")
    events = [(_seconds(one.get("offset")), _event(one.get("event"))) for one in timed]
    name = str(given.get("name", number + 1))
    place = name if "name" in given else EXEMPLARS
    return _Case(name, place, events, expected[given["expect"]])


def _seconds(offset: Any) -> int:
    if re.fullmatch("0[smhdwMy]?", str(offset)):
        return 0  # which pySigma takes for no time
    try:
        return int(SigmaCorrelationTimespan(str(offset)).seconds)
    except SigmaError:
        raise _NotReadError(f"'{offset}' is no time such as 30s") from None


def _event(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise _NotReadError("an event has fields")
    return given


@dataclass
class _Regression:
    """The events that a file of SigmaHQ's regression tests names."""

    file: RulesOfFile
    path: str

    def cases(self) -> Iterator[_Case]:
        """A case for each entry with events in JSON."""
        try:
            read = yaml.safe_load(self._found(self.path))
            entries = read.get("regression_tests_info") if isinstance(read, dict) else None
            if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
                raise _NotReadError("it has no list regression_tests_info")
        except (_NotReadError, yaml.YAMLError) as problem:
            why = problem if isinstance(problem, _NotReadError) else "it is no YAML"
            self.file.places.told(self.path, f"these examples are not read: {why}")
            return
        for entry in entries:
            try:
                yield self._case(entry)
            except (_NotReadError, json.JSONDecodeError) as problem:
                name = entry.get("path", entry.get("name"))
                self.file.places.told(self.path, f"its example {name} is not read: {problem}")

    def _case(self, entry: Mapping[str, Any]) -> _Case:
        kind, count = entry.get("type"), entry.get("match_count")
        if kind not in ("json", "ndjson", "jsonl"):
            raise _NotReadError(f"files of the type {kind} are not; json, ndjson and jsonl are")
        if entry.get("filters"):
            raise _NotReadError("it has filters")
        text = self._found(str(entry.get("path")))
        texts = [text] if kind == "json" else [one for one in text.splitlines() if one.strip()]
        events = [(place, _event(json.loads(one))) for place, one in enumerate(texts)]
        if count is None and len(events) != 1:
            raise _NotReadError("it does not say how many of its events match: match_count")
        name = str(entry.get("name", Path(str(entry.get("path"))).name))
        return _Case(name, self.path, events, 1 if count is None else int(count))

    def _found(self, name: str) -> str:
        """The text of a file, which stands by its path beside the rule or in a folder above."""
        beside = Path(self.file.source.name).resolve().parent
        for folder in (beside, *beside.parents):
            if not Path(name).is_absolute() and (folder / name).is_file():
                return (folder / name).read_text(encoding="utf-8")
        raise _NotReadError(f"there is no file {name}")


def _lines(
    file: RulesOfFile,
    rule: SigmaRule | SigmaCorrelationRule,
    events: Sequence[tuple[int, Mapping[str, Any]]],
) -> Iterator[str]:
    """The events as lines of JSON with the fields that the queries name."""
    for seconds, event in events:
        flat = dict(_flat(event))
        kind = _kind(file, rule, flat)
        row: Row = {file.columns.kind: kind} if len(file.named) > 1 else {}
        for name in file.named[kind]:
            row[name] = _value(file, name, _field(flat, name))
        time = (_START + timedelta(seconds=seconds)).isoformat()
        row[file.columns.time] = flat.get(file.columns.time, time)
        # A line stands between three apostrophes.
        yield json.dumps(row, default=str).replace("'''", r"\u0027\u0027\u0027")


def _flat(given: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _field(event: Mapping[str, Any], name: str) -> Any:
    """The value of a field: of its whole name, or of a longer one that ends with it."""
    if name in event:
        return event[name]
    found = [one for one in event if one.endswith(f".{name}")]
    if len(found) > 1:
        raise _NotReadError(f"'{name}' is {' and '.join(map(repr, found))}")
    return event[found[0]] if found else None


def _kind(
    file: RulesOfFile, rule: SigmaRule | SigmaCorrelationRule, event: Mapping[str, Any]
) -> str:
    """The event type: that of the rule, or the only one of a correlation that has the fields."""
    if isinstance(rule, SigmaRule):
        return file.event_type(rule)
    kinds = {file.event_type(one): None for one in detections([rule])}
    if event.get(file.columns.kind) in kinds:
        return str(event[file.columns.kind])
    known = {name for names in file.named.values() for name in names}
    fit = [kind for kind in kinds if known & event.keys() <= file.named[kind].keys()]
    if len(fit) != 1:
        raise _NotReadError(
            f"an event of it says not which log source it has: a field '{file.columns.kind}' with "
            f"one of {', '.join(kinds)}"
        )
    return fit[0]


def _value(file: RulesOfFile, name: str, value: Any) -> Any:
    """A value in the type of its field, where that says the same."""
    if isinstance(value, list):
        raise _NotReadError(f"'{name}' is a list, and a field has one value")
    kind = file.fields.kind(name) or "STRING"
    if kind == "STRING" and value is not None and not isinstance(value, bool):
        return str(value)
    if kind in ("LONG", "DOUBLE") and isinstance(value, str):
        try:
            return int(value) if kind == "LONG" else float(value)
        except ValueError:
            raise _NotReadError(f"'{name}' is a number, and not '{value}'") from None
    return value


def _toml(text: str) -> str:
    """A text as TOML has it, which escapes what JSON escapes."""
    return json.dumps(text).replace("\x7f", r"\u007f")
