"""Streams of queries with SELECT FIRST and LONGEST: their rows, and when these come."""

from __future__ import annotations

import random
import re
import warnings
from typing import Any

import celc_runtime
import pytest
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.stream.formats import StreamOptions
from engines import engines, interpreted, only_query, table_of
from strategies import DECLARATION, EVERYTHING, SHORTER, Feature, random_query, random_stream
from strategies_runs import adjoining_query
from streams_by_hand import EVENT_TIME, Operator, instant, streamed, timed

import celc
from celc.options import Options

_FEATURES = (EVERYTHING | SHORTER | {Feature.PER_START}) - {Feature.CONSUME_BY, Feature.LIMIT}
_WAITING = _FEATURES | {Feature.NOT_BEFORE, Feature.LIMIT}
_LATE = _WAITING | {Feature.NOT_AFTER}


def _check(seed: int, features: frozenset[Feature] = _FEATURES, *, adjoining: bool = False) -> int:
    """Compare a stream with the same events as a table; returns the number of matches.
    `adjoining`: of a query for runs of neighbours that adjoin."""
    rng = random.Random(seed)
    text = DECLARATION + adjoining_query(rng) if adjoining else random_query(rng, features, depth=2)
    text = timed(text)
    limit = f"LIMIT {rng.choice((1, 1, 2))}\n" if "LIMIT" in text or rng.random() < 0.4 else ""
    text = re.sub(r"LIMIT .*\n", "", text)
    if features is not _FEATURES:
        per_start = "SELECT LONGEST", "DISJOINT", *(["SELECT FIRST"] if features is _LATE else [])
        if not any(word in text for word in per_start):
            return 0
        text = re.sub(r"FOR (\d+) EVENTS", r"FOR \1 [ts]", text)
        text = re.sub(r"FOR ([\d.]+) \[ts\]", rf"FOR \1 MILLISECONDS [{EVENT_TIME}]", text)
    if rng.random() < (0.6 if features is _FEATURES else 0.9):
        text = re.sub(r"WITHIN .*", "", text) + f"WITHIN {rng.randint(1, 12)} MILLISECONDS\n"
    if features is not _FEATURES:
        text += limit
    try:
        with interpreted():
            ties = () if features is _FEATURES else ("row",)
            matchers = engines(text, Options((EVENT_TIME,), ties))
    except celc.CelError:
        return 0
    query = only_query(rng.choice([*matchers.values()]))
    refused = why_not(query.program, Route.UNBOUNDED)
    # Without a window of time rows come when the stream ends, which is why it is refused.
    waits = features is _FEATURES and refused and refused.code == "late-choice-without-window"
    if refused is not None and not waits:
        return 0
    if features is _LATE and not query.plan.choice.deadlines:
        return 0
    if rng.random() < 0.3:
        query = query.with_options(positions=False)
    events, time = random_stream(rng, rng.randint(5, 18), nulls=0), 1
    for row, event in enumerate(events):
        event["id"] = rng.choice((1, 1, 2))
        event["type"] = rng.choice("AAAB") if adjoining else event["type"]
        event[EVENT_TIME], event["row"] = instant(time), row
        time += rng.choice((1, 1, 2, 5) if features is _FEATURES else (0, 1, 1, 2, 5))
    options = StreamOptions({"row": "LONG"} if ties else {}, buckets=rng.choice((1, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", celc_runtime.EventWarning)
        closed = query.with_options(at_end="closed")
        wanted = closed.match_table(table_of(query.plan, events)).to_pylist()
        found = streamed(query, events, rng, options=options, largest=rng.choice((1, 3, 9)))
    assert sorted(map(repr, found)) == sorted(map(repr, wanted)), f"seed {seed}\n{text}{events}"
    return len(wanted)


@pytest.mark.parametrize("seeds", [7, pytest.param(40, marks=pytest.mark.long)])
def test_streams_have_the_rows_of_tables(seeds: int) -> None:
    assert sum(map(_check, range(seeds))) >= seeds


@pytest.mark.parametrize("seeds", [10, pytest.param(60, marks=pytest.mark.long)])
def test_those_with_absences_before_and_limits_too(seeds: int) -> None:
    assert sum(_check(seed, _WAITING) for seed in range(seeds)) >= 20 * seeds // 60


def test_runs_that_adjoin_too() -> None:
    assert sum(_check(seed, _WAITING, adjoining=True) for seed in range(24)) >= 10


@pytest.mark.parametrize("seeds", [15, pytest.param(120, marks=pytest.mark.long)])
def test_those_with_absences_at_their_ends_too(seeds: int) -> None:
    assert sum(_check(seed, _LATE) for seed in range(seeds)) >= 10 * seeds // 120


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 4000, 500))
def test_many_streams_have_the_rows_of_tables(first: int) -> None:
    for seed in range(first, first + 500):
        _check(seed)
        _check(seed, _WAITING)
        _check(seed, _LATE)


# --- when rows come -------------------------------------------------------------------------------

_DECLARATION = """CREATE STREAM S {
  EVENT A { id: INT, event_time: TIMESTAMP },
  EVENT B { id: INT, event_time: TIMESTAMP }
}
"""


def _operator(select: str, behind: str = "") -> Operator:
    text = f"{_DECLARATION}SELECT {select} a, b WHERE A AS a ; B AS b{behind} PARTITION BY id "
    with interpreted():
        matcher = celc.compile(f"{text} WITHIN 10 MILLISECONDS", order_by=EVENT_TIME)
    return Operator(only_query(matcher), StreamOptions({}, buckets=1))


def _advance(operator: Operator, watermark: int, *events: tuple[str, int]) -> list[tuple[Any, ...]]:
    rows = [{"type": type, "id": 1, EVENT_TIME: instant(time)} for type, time in events]
    found = operator.advance(table_of(operator.query.plan, rows) if rows else None, watermark)
    return [(row["start_pos"], row["end_pos"]) for row in found]


def test_first_comes_at_its_end() -> None:
    operator = _operator("FIRST")
    assert _advance(operator, 5, ("A", 1), ("B", 3), ("B", 5)) == [(0, 1)]
    assert _advance(operator, 7, ("A", 6), ("B", 7)) == [(3, 4)]
    assert operator.finish() == []


def test_longest_comes_when_the_watermark_has_passed_the_window() -> None:
    operator = _operator("LONGEST")
    assert _advance(operator, 10, ("A", 1), ("B", 3), ("B", 9)) == []
    # At 11 an event could still come behind the watermark of 10, and inside the window of 1.
    assert _advance(operator, 11) == [(0, 2)]
    assert operator.finish() == []


def test_longest_of_a_partition_without_further_events_comes_by_a_timer() -> None:
    operator = _operator("LONGEST")
    assert _advance(operator, 4, ("A", 1), ("B", 3)) == []
    assert _advance(operator, 100) == [(0, 1)]
    assert operator.sum("kept") == 0


def test_disjoint_waits_for_earlier_starts() -> None:
    operator = _operator("FIRST DISJOINT")
    assert _advance(operator, 5, ("A", 1), ("B", 3), ("A", 4), ("B", 5)) == []
    assert _advance(operator, 14, ("A", 14)) == [(0, 1), (2, 3)]


def test_the_end_of_a_stream_makes_all_known() -> None:
    operator = _operator("LONGEST DISJOINT")
    assert _advance(operator, 5, ("A", 1), ("A", 2), ("B", 3), ("A", 4), ("B", 5)) == []
    assert [(row["start_pos"], row["end_pos"]) for row in operator.finish()] == [(0, 4)]


def test_with_an_absence_at_the_end_all_matches_of_a_start_are_awaited() -> None:
    """Here the first B is followed by another one, so the second is the first that counts."""
    operator = _operator("FIRST", " ; !B FOR 3 MILLISECONDS")
    assert _advance(operator, 9, ("A", 1), ("B", 3), ("B", 5)) == []
    # Until 11 the window of the start goes on, and the absence behind its last event until 14.
    assert _advance(operator, 14) == []
    assert _advance(operator, 16) == [(0, 2)]
    assert _advance(operator, 30) == []
    assert operator.sum("kept") == 0
    assert operator.finish() == []
