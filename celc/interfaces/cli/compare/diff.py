"""`celc diff old.cel new.cel`: what a change of a query changes.

The exit codes are those of `diff`, as far as they go: 0 the same, 1 different, 2 that something is
wrong. A fourth tells that no difference was found and nothing is proved: a check that must not pass
by luck fails then, and one that is content with the search lets it pass.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from celc.compare import Bound, Difference, Equal, Unknown, shortest_difference
from celc.compare.sides import Side
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source, visible
from celc.editor.languages import ROW_PATTERNS, language_of
from celc.interfaces.cli.compare.pairs import DIFFERENT, NOT_PROVED, SAME, pairs_of_queries
from celc.interfaces.cli.compare.streams import (
    answer_lines,
    as_json,
    counted,
    event_text,
    indented,
    parameters_lines,
)
from celc.interfaces.cli.declaring.schemas import schema_of
from celc.interfaces.cli.output import say, tell
from celc.interfaces.cli.problems import FILE_WRONG, CommandProblem
from celc.interfaces.cli.queries import options_of, read_source


def diff(arguments: argparse.Namespace) -> int:
    """Compare the queries of two files; returns the exit code."""
    paths = [one for one in (arguments.source, arguments.new) if one is not None]
    if len(paths) != (1 if arguments.state else 2):
        raise CommandProblem(
            "celc diff takes two files, or --state CHECKPOINT and one: celc diff old.cel new.cel, "
            "celc diff --state CHECKPOINT new.cel"
        )
    if arguments.state and arguments.on:
        raise CommandProblem("--on runs two files on events, and --state has none: leave one out")
    if any(language_of(path) is ROW_PATTERNS for path in paths):
        raise CommandProblem("celc diff compares queries of CEL, and MATCH_RECOGNIZE is none")
    sources = [read_source(path, path.as_posix()) for path in paths]
    try:
        if arguments.state:
            from celc.interfaces.cli.compare.on_state import diff_on_state

            return diff_on_state(arguments, sources[0])
        old, new = sources
        if arguments.on:
            from celc.interfaces.cli.compare.on_events import diff_on

            with ExitStack() as opened:
                return diff_on(arguments, old, new, opened)
        return _diff(arguments, old, new)
    except CelError as problem:
        count = sum(d.severity == "error" for one in problem.problems for d in one.diagnostics)
        tell(f"{problem}\n\n{count} error{'s' if count != 1 else ''}")
        return FILE_WRONG


def _diff(arguments: argparse.Namespace, old: Source, new: Source) -> int:
    options, schema = options_of(arguments), schema_of(arguments)
    names, missing = pairs_of_queries(old, new, arguments)
    codes = [DIFFERENT for _ in missing]
    for text in missing:
        _write(arguments, {"query": text.split(" ")[0], "result": "different", "why": text}, [text])
    for one, other in names:
        sides = [
            Side(source, options, query=name, schema=schema)
            for source, name in ((old, one), (new, other))
        ]
        found = shortest_difference(*sides, deadline=arguments.seconds)
        _write(arguments, _object(one, found), [*_lines(one, found, sides)])
        codes.append(_code(found))
    return next((code for code in (DIFFERENT, NOT_PROVED) if code in codes), SAME)


def _code(found: Difference | Equal | Unknown) -> int:
    if isinstance(found, Equal):
        return SAME
    return DIFFERENT if isinstance(found, Difference) else NOT_PROVED


def _write(arguments: argparse.Namespace, told: dict[str, Any], lines: list[str]) -> None:
    if arguments.format == "json":
        say(json.dumps(told, ensure_ascii=False, default=str) + "\n")
    else:
        say("".join(f"{line}\n" for line in lines))


# --- text -----------------------------------------------------------------------------------------


def _lines(name: str, found: Difference | Equal | Unknown, sides: Sequence[Side]) -> Iterator[str]:
    name = visible(name)
    match found:
        case Equal():
            yield f"{name}: the same answers, proved: {found.proof}"
        case Unknown():
            yield f"{name}: no difference found, but not proved: {found.why}"
            yield from indented(_bound_lines(found.bound))
        case Difference():
            count = counted(len(found.events), "event")
            yield f"{name}: different answers to {_which(found)} {count}:"
            yield ""
            lacking = sides[0].lacking(found.events) & sides[1].lacking(found.events)
            yield from indented(event_text(found.events, lacking).splitlines())
            yield from parameters_lines(found.parameters)
            for side, answer in (("old", found.old), ("new", found.new)):
                yield ""
                yield f"{side}: {counted(len(answer))}"
                yield from indented(answer_lines(answer))
            if found.bound is not None and not found.shortest:
                yield ""
                yield from indented(_bound_lines(found.bound))


def _which(found: Difference) -> str:
    if not found.shortest:
        return "a stream of"
    return "a shortest stream," if found.bound is None else "a shortest stream of those tried,"


def _bound_lines(bound: Bound) -> Iterator[str]:
    events = counted(bound.length, "event")
    yield (
        f"all streams of up to {events} over these values were tried, and others: "
        f"{bound.tried:,} in all; {bound.ended}"
    )
    for name, values in bound.values.items():
        yield f"{visible(name)}: {', '.join(map(visible, values))}"
    if bound.times:
        yield f"time between events: {', '.join(bound.times)}, and a little more and less"


# --- JSON -----------------------------------------------------------------------------------------


def _object(name: str, found: Difference | Equal | Unknown) -> dict[str, Any]:
    match found:
        case Equal():
            return {"query": name, "result": "same", "proof": found.proof}
        case Unknown():
            return {
                "query": name,
                "result": "not proved",
                "why": found.why,
                "bound": _bound(found.bound),
            }
        case Difference():
            return {
                "query": name,
                "result": "different",
                "shortest": found.shortest,
                "events": as_json(found.events),
                "parameters": {key: as_json(one) for key, one in found.parameters.items()},
                "old": as_json(found.old),
                "new": as_json(found.new),
                "bound": None if found.bound is None else _bound(found.bound),
            }


def _bound(bound: Bound) -> dict[str, Any]:
    return {
        "length": bound.length,
        "tried": bound.tried,
        "values": {name: list(values) for name, values in bound.values.items()},
        "times": list(bound.times),
        "ended": bound.ended,
    }
