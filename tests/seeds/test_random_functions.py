"""Random queries with functions, derived attributes and BOOLEAN conditions, on each route of one
machine and as streams, against the definitions.

By hand: `python tests/seeds/test_random_functions.py 0 500` runs seeds, and shows what differs.
"""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from celc_runtime import CompiledQuery
from celc_runtime.plan.errors import TotalError
from celc_runtime.routes.rules import Reason
from crossings.routes import by_batches, by_stream, by_table, stream_query
from engines import answer_of, engines, interpreted, only_query, plain_totals
from reference import (
    Match,
    RunError,
    WorkLimitError,
    check_answer,
    evaluate,
    evaluate_totals,
    parse,
    totals_difference,
)
from reference.clauses import values_of
from reference.names import Schema
from reference.own_aggregates import value
from shares import share
from strategies_functions import Drawn, query, stream
from test_random import TOO_LARGE, WORK_LIMIT, cramped
from test_random_compact import answers_differ

from celc import CelError
from celc.options import Options

REFUSED = TOO_LARGE | {"between-events"}
Events = list[dict[str, Any]]


@dataclass
class Tally:
    """What was drawn and compared."""

    drawn: int = 0
    pairs: int = 0
    with_rows: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    routes: Counter[str] = field(default_factory=Counter)


def check(seed: int, tally: Tally, *, streams: int = 4) -> None:
    """Compare the answers of one random query on some streams."""
    rng = random.Random(seed)
    drawn = query(rng)
    tally.drawn += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with interpreted():
                matchers = engines(drawn.text, Options(**drawn.options))
        except CelError as problem:
            codes = {one.code for one in problem.diagnostics if one.severity == "error"}
            tally.refused.update(codes)
            if codes <= REFUSED:
                return
            raise AssertionError(f"{seed}: {problem}\n{drawn.text}") from None
        for _ in range(streams):
            events = stream(rng, rng.randint(0, 9))
            _compare(seed, drawn, list(map(only_query, matchers.values())), events, rng, tally)


def _compare(
    seed: int,
    drawn: Drawn,
    queries: Sequence[CompiledQuery],
    events: Events,
    rng: random.Random,
    tally: Tally,
) -> None:
    try:
        wanted = _wanted(drawn, events, drawn.options["at_end"])
    except WorkLimitError:
        return
    tally.pairs += 1
    tally.with_rows += bool(wanted)
    for number, one in enumerate(queries):
        events = seen = _with_values(drawn.text, one, events)
        for route, rows, kept, of_route in _answers(drawn, one, events, wanted, rng):
            tally.routes[route] += 1
            told = _told(drawn, one, rows, of_route, seen)
            shown = "".join(f"  {event}\n" for event in kept)
            assert not told, f"{seed}, engine {number}, {route}: {told}\n{drawn.text}\n{shown}"
        if not drawn.is_total and not one.plan.answer.collapsed:
            told = answers_differ(one, events, rng)
            assert not told, f"{seed}, compact: {told}\n{drawn.text}"


def _answers(
    drawn: Drawn, one: CompiledQuery, events: Events, wanted: Any, rng: random.Random
) -> Iterator[tuple[str, Any, Events, Any]]:
    with cramped(rng):
        yield "match_table", _rows(lambda: by_table(one, events, ())), events, wanted
        yield "match_arrow", _rows(lambda: by_batches(one, events, (), rng)), events, wanted
    streaming = stream_query(one)
    if isinstance(streaming, Reason):
        return
    try:
        rows, _ = by_stream(streaming, events, (), rng, late=False)
    except TotalError:
        return
    if not drawn.is_total:
        rows.sort(key=lambda row: row["end_pos"])
    yield "stream", rows, events, _wanted(drawn, events, "closed")


def _rows(run: Any) -> Any:
    try:
        return run()
    except TotalError as error:
        return error


def _wanted(drawn: Drawn, events: Events, at_end: str) -> Any:
    """The rows by brute force; RunError for itself."""
    options: dict[str, Any] = {"order_by": drawn.options["order_by"], "at_end": at_end}
    known = [_in_utc(event) for event in events]
    if not drawn.is_total:
        return evaluate(drawn.text, known, work_limit=WORK_LIMIT, **options)
    try:
        return evaluate_totals(drawn.text, known, work_limit=WORK_LIMIT, **options)
    except RunError as error:
        return error


def _in_utc(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event with times as the reference has them."""
    return {
        name: one.replace(tzinfo=None) if hasattr(one, "tzinfo") else one
        for name, one in event.items()
    }


def _with_values(text: str, one: CompiledQuery, events: Events) -> Events:
    """The events with their derived attributes and keys, by the names that the query has."""
    file = parse(text)
    (asked,) = file.queries
    schema = Schema(file, None)
    found = []
    for event in events:
        event_type = schema.type_of(event)
        assert event_type is not None
        data = values_of(event_type, _in_utc(event))
        shown = {name: datum.value for name, datum in data.items()}
        keys = dict(asked.key_values)
        for name, (key,) in zip(one.plan.source.partition_by, asked.partition_by, strict=True):
            shown[name] = value(keys[key], data).value if key in keys else shown[key]
        times = {name: event[name] for name in ("at", "ts")}
        aware = {
            name: one.replace(tzinfo=event["ts"].tzinfo) if hasattr(one, "tzinfo") else one
            for name, one in shown.items()
        }
        found.append({**event, **aware, **times})
    return found


def _told(drawn: Drawn, one: CompiledQuery, rows: Any, wanted: Any, seen: Events) -> str:
    """What tells the rows from those that are wanted."""
    if isinstance(rows, TotalError) or isinstance(wanted, RunError):
        both = isinstance(rows, TotalError) and isinstance(wanted, RunError)
        return "" if both else f"{rows!r} in place of {wanted!r}"
    keys = one.plan.source.partition_by
    (asked,) = parse(drawn.text).queries
    if drawn.is_total:
        names = dict(zip((key for (key,) in asked.partition_by), keys, strict=True))
        named = [{names.get(name, name): of for name, of in row.items()} for row in wanted]
        return totals_difference(list(map(_plain, rows)), list(map(_plain, named)))
    named = [
        replace(match, partition=tuple(zip(keys, (of for _, of in match.partition), strict=True)))
        for match in wanted
    ]
    try:
        answer = _in_form(one, rows, seen)
        check_answer(drawn.text, [_rounded(match) for match in named], answer)
    except AssertionError as problem:
        return str(problem) or "an attribute is wrong"
    return ""


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, one in row.items():
        shown = one.replace(tzinfo=None) if hasattr(one, "tzinfo") else one
        found[name] = "NaN" if shown != shown else shown
    return found


def _in_form(one: CompiledQuery, rows: Sequence[dict[str, Any]], seen: Events) -> list[Any]:
    plan = one.plan
    if not plan.answer.collapsed:
        found = answer_of(one, rows, seen)
    else:
        labels = plan.answer.labels
        found = [
            {
                "partition": {name: row[name] for name in plan.source.partition_by},
                "start": row["start_pos"],
                "end": row["end_pos"],
                "matches": str(row["matches"]),
                "labels": {of.name: [event["pos"] for event in row[of.name]] for of in labels},
            }
            for row in rows
        ]
    for row in found:
        if "values" in row:
            row["values"] = {name: _round(of) for name, of in row["values"].items()}
    return found


def _rounded(match: Match) -> Match:
    return replace(match, values=tuple((name, _round(one)) for name, one in match.values))


def _round(one: Any) -> Any:
    """Functions of DOUBLEs are right but for the last digits."""
    return float(f"{one:.12g}") if isinstance(one, float) else one


@pytest.mark.parametrize("first", share(range(0, 56, 4), 14))
def test_random_functions(first: int) -> None:
    tally = Tally()
    with plain_totals():
        for seed in range(first, first + 4):
            check(seed, tally)
    assert tally.with_rows >= 1, tally
    assert {"match_table", "match_arrow", "stream"} <= {*tally.routes}, tally


def main() -> None:
    """Run seeds by hand."""
    first, end = int(sys.argv[1]), int(sys.argv[2])
    tally, differences = Tally(), 0
    with plain_totals():
        for seed in range(first, end):
            try:
                check(seed, tally)
            except (AssertionError, CelError) as problem:
                differences += 1
                print(f"=== {type(problem).__name__} {problem}"[:3500], flush=True)
            except Exception as problem:
                differences += 1
                print(f"=== CRASH {seed} {problem!r}"[:600], flush=True)
    print(f"{tally}\n{differences} differences, {time.process_time():.0f} s of CPU time")


if __name__ == "__main__":
    main()
