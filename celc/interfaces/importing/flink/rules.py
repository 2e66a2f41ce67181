"""A rule of FlinkCEP in JSON → a file of CEL."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from celc_runtime.plan.names import unused_name

from celc.diagnostics.errors import CelError, error
from celc.diagnostics.source import Source, Span
from celc.interfaces.importing.eql.conditions import Conditions
from celc.interfaces.importing.fields import Fields, Kind
from celc.interfaces.importing.flink.patterns import NOT_FOLLOW, Node, formula, problem_of
from celc.interfaces.importing.grammars import parse
from celc.interfaces.importing.languages import Columns
from celc.interfaces.importing.places import Places
from celc.interfaces.importing.words import Words, attribute, event, of_label, spelled

_EVENT, _STREAM = "event", "events"
_MILLISECONDS = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000, "SECONDS": 1000}
_LONGEST = 2**62 // 1000  # milliseconds
_SELECTORS = {"NO_SKIP": "", "SKIP_TO_NEXT": "FIRST ", "SKIP_PAST_LAST_EVENT": "FIRST DISJOINT "}
_MOST_TIMES = 1000
_STRATEGIES = ("STRICT", "SKIP_TILL_NEXT", "SKIP_TILL_ANY")

_PROPERTIES = ("SINGLE", "TIMES", "LOOPING", "OPTIONAL", "GREEDY")
_OF_NODE = frozenset(
    ("name", "type", "quantifier", "condition", "window", "afterMatchStrategy", "nodes", "edges")
)
_OF_RULE = _OF_NODE | {"version"}
_OF_QUANTIFIER = frozenset(("consumingStrategy", "properties", "times", "untilCondition"))


class _TwiceError(Exception):
    """A key that an object of JSON has twice."""


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _TwiceError(name)
        found[name] = value
    return found


def text_of(source: Source, name: str, columns: Columns) -> str:
    """The file of CEL for a rule, not yet in its layout.

    Raises `CelError` with everything that cannot be translated.
    """
    try:
        rule = json.loads(source.text, object_pairs_hook=_no_key_twice)
    except _TwiceError as twice:
        at = source.text.rfind(f'"{twice}"')
        told = error("import-syntax", Span(at, at + 1), f"the key '{twice}' stands here twice")
        raise CelError(source, (told,)) from None
    except json.JSONDecodeError as problem:
        span = Span(problem.pos, problem.pos + 1)
        told = error("import-syntax", span, f"this is no JSON: {problem.msg}")
        raise CelError(source, (told,)) from None
    time: dict[str, Kind] = {columns.time: "TIMESTAMP"}
    known = _Rule(source, columns, Fields(Places(source).diagnostics, time))
    known.text(rule, name)
    again = _Rule(source, columns, Fields(Places(source).diagnostics, known.fields.kinds))
    text = again.text(rule, name)
    again.fields.diagnostics.raise_errors()
    return text


@dataclass
class _Rule:
    source: Source
    columns: Columns
    fields: Fields
    places: Places = field(init=False)
    used: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = Places(self.source, self.fields.diagnostics)

    def text(self, rule: Any, name: str) -> str:
        """The file; an empty text where something is wrong."""
        nodes = self._chain(rule)
        window = self._window(rule)
        if nodes and nodes[-1].edge == NOT_FOLLOW and window is None:
            self.places.wrong("NOT_FOLLOW", "an absent node at the end needs a window")
        self._known(rule, _OF_RULE)
        whole = self._object(rule, "quantifier")
        if set(self._properties(whole, '"quantifier"')) - {"SINGLE"} or whole.get("times"):
            self.places.wrong('"quantifier"', "a pattern that comes several times, or may not come")
        if self._object(rule, "condition"):
            self.places.wrong('"condition"', "a condition of a whole pattern cannot be translated")
        strategy = str(self._object(rule, "afterMatchStrategy").get("type", "NO_SKIP"))
        if strategy not in _SELECTORS:
            known = f"known: {', '.join(_SELECTORS)}"
            self.places.wrong(strategy, f"'{strategy}' cannot be translated", known)
        if not nodes or self.fields.diagnostics.has_errors:
            return ""
        time = attribute(self.columns.time)
        names = [one for one in self.fields.declared(self.used) if one[0] != self.columns.time]
        listed = [f"{attribute(one)}: {kind}" for one, kind in names] + [f"{time}: TIMESTAMP"]
        head = [] if window else [f"-- compile with: --order-by {self.columns.time}"]
        return "\n".join(
            [
                *head,
                f"CREATE STREAM {_STREAM} {{ EVENT {_EVENT} {{ {', '.join(listed)} }} }}",
                "",
                "-- How the stream is keyed is no part of the rule: add PARTITION BY.",
                f"QUERY {spelled(unused_name(name, (_EVENT, _STREAM)))}:",
                f"SELECT {_SELECTORS[strategy]}*",
                f"FROM {_STREAM}",
                f"WHERE {formula(nodes)}",
                *([f"WITHIN {window} [{time}]"] if window else []),
                "",
            ]
        )

    def _object(self, given: Any, name: str) -> Mapping[str, Any]:
        """An object under a name; an empty one where there is none."""
        found = given.get(name) if isinstance(given, Mapping) else None
        if found is not None and not isinstance(found, dict):
            self.places.wrong(f'"{name}"', f"'{name}' is an object of JSON")
            return {}
        return found or {}

    def _known(self, given: Any, names: frozenset[str]) -> None:
        """An object has no keys but known ones: what they say would be lost."""
        for name in given if isinstance(given, dict) else ():
            if name not in names:
                known = f"known: {', '.join(sorted(names))}"
                self.places.wrong(f'"{name}"', f"there is no '{name}' here", known)

    def _properties(self, quantifier: Mapping[str, Any], place: str) -> list[str]:
        found = quantifier.get("properties") or ["SINGLE"]
        if isinstance(found, list) and all(one in _PROPERTIES for one in found):
            return found
        known = f"known: {', '.join(_PROPERTIES)}"
        self.places.wrong(place, "the properties of a quantifier are a list of words", known)
        return ["SINGLE"]

    def _list(self, given: Any, name: str) -> list[Any]:
        found = given.get(name) if isinstance(given, dict) else None
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            self.places.wrong(f'"{name}"', f"a rule has a list '{name}' of objects")
            return []
        return found

    def _chain(self, rule: Any) -> list[Node]:
        """The nodes in the order of the edges."""
        nodes = {str(one.get("name")): one for one in self._list(rule, "nodes")}
        edges = self._list(rule, "edges")
        after = {str(one.get("source")): one for one in edges}
        targets = {str(one.get("target")) for one in edges}
        starts = [name for name in nodes if name not in targets]
        if len(starts) != 1 or len(after) < len(edges) or targets - nodes.keys():
            self.places.wrong('"edges"', "the edges lead from one first node through all others")
            return []
        found: list[Node] = []
        reached: set[str] = set()
        name, edge = starts[0], None
        while name not in reached:
            reached.add(name)
            node = self._node(nodes[name], name, edge)
            if node is not None:
                beside = [*found[-1:], node]
                if any(one.is_optional for one in beside) and any(
                    one.edge == NOT_FOLLOW for one in beside
                ):
                    self.places.wrong(
                        f'"{name}"', "an optional node beside an absent one cannot be translated"
                    )
                found.append(node)
            following = after.get(name)
            if following is None:
                break
            name, edge = str(following.get("target")), str(following.get("type"))
            if edge not in (*_STRATEGIES, NOT_FOLLOW):
                known = f"known: {', '.join((*_STRATEGIES, NOT_FOLLOW))}"
                self.places.wrong(edge, f"an edge {edge} cannot be translated", known)
                return []
        if len(reached) < len(self._list(rule, "nodes")):
            self.places.wrong('"edges"', "the edges lead from one first node through all others")
        return found

    def _node(self, given: Mapping[str, Any], name: str, edge: str | None) -> Node | None:
        place = f'"{name}"'
        if given.get("type", "ATOMIC") != "ATOMIC":
            self.places.wrong(place, "a node with nodes of its own cannot be translated")
            return None
        self._known(given, _OF_NODE)
        quantifier = self._object(given, "quantifier")
        self._known(quantifier, _OF_QUANTIFIER)
        properties = set(self._properties(quantifier, place))
        times = self._object(quantifier, "times")
        if times and "TIMES" not in properties and "LOOPING" not in properties:
            self.places.wrong(place, "'times' belongs to the properties TIMES and LOOPING")
        for word, is_there in (
            ("GREEDY", "GREEDY" in properties),
            ("untilCondition", bool(quantifier.get("untilCondition"))),
            ("windowTime", bool(times.get("windowTime"))),
        ):
            if is_there:
                self.places.wrong(word, f"{word} of the node '{name}' cannot be translated")
        least, to = times.get("from", 1), times.get("to", 1)
        if type(least) is not int or type(to) is not int or ("TIMES" in properties and not times):
            self.places.wrong(
                place, "how often a node comes is said by 'from' and 'to', in numbers"
            )
            return None
        most = None if "LOOPING" in properties else to
        if least < 1 or (most is not None and most < least):
            self.places.wrong(place, f"a node comes once or more, and not {least} to {most} times")
        if max(least, to) > _MOST_TIMES:
            self.places.wrong(place, f"a node comes at most {_MOST_TIMES} times here")
        consuming = str(quantifier.get("consumingStrategy", "SKIP_TILL_NEXT"))
        if consuming not in _STRATEGIES:
            known = f"known: {', '.join(_STRATEGIES)}"
            self.places.wrong(consuming, f"'{consuming}' is no strategy", known)
            return None
        condition = self._condition(given)
        text = event(_EVENT, name, [of_label(name, condition)] if condition else [])
        node = Node(text, least, most, consuming, edge, "OPTIONAL" in properties)
        problem = problem_of(node)
        if problem:
            self.places.wrong(place, problem)
        return node

    def _condition(self, given: Mapping[str, Any]) -> Words | None:
        found = self._object(given, "condition")
        if not found:
            return None
        kind, text = found.get("type"), found.get("expression")
        if kind != "AVIATOR" or not isinstance(text, str):
            self.places.wrong(
                str(found.get("className") or kind),
                f"a condition of the type {kind} is a program: those of the type AVIATOR are read",
            )
            return None
        # Where the text stands in the file as it is, messages have its place.
        start = max(0, self.source.text.find(text))
        padded = Source(self.source.name, re.sub(r"[^\n]", " ", self.source.text[:start]) + text)
        try:
            tree = parse(padded, "flink")
        except CelError as problem:
            self.fields.diagnostics.extend(problem.diagnostics)
            return None
        conditions = Conditions(self.fields, self.fields.diagnostics, self.used)
        (root,) = tree.children
        assert not isinstance(root, str)
        return conditions.condition(root)

    def _window(self, rule: Any) -> str | None:
        window = self._object(rule, "window")
        if not window:
            return None
        kind = window.get("type", "FIRST_AND_LAST")
        if kind != "FIRST_AND_LAST":
            self.places.wrong(str(kind), "windows from the first event to the last are read alone")
        time = self._object(window, "time") or window
        unit, size = str(time.get("unit")), time.get("size")
        if unit not in (*_MILLISECONDS, "MILLISECONDS") or not isinstance(size, int) or size < 1:
            self.places.wrong('"window"', "a window has a size and a unit, such as 10 and MINUTES")
            return None
        if size * _MILLISECONDS.get(unit, 1) > _LONGEST:
            self.places.wrong('"window"', "this window is longer than time goes")
        # FlinkCEP counts milliseconds, and the end does not belong to its window.
        return f"{size * _MILLISECONDS.get(unit, 1) - 1} MILLISECONDS"
