"""How much a bucket's state holds: the windows of its partitions, and nothing of a past that is
over."""

from __future__ import annotations

import random
from functools import cache
from itertools import product
from typing import Any

import pytest
from celc_runtime import CompiledQuery
from celc_runtime.stream.formats import StreamFormats, StreamOptions
from celc_runtime.stream.stored.state import KEYS, Segment
from engines import engines, interpreted, only_query, table_of
from streams_by_hand import EVENT_TIME, Operator, instant, same_rows, streamed

from celc.options import Options

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, at: LONG, event_time: TIMESTAMP },
  EVENT B { id: INT, v: DOUBLE, at: LONG, event_time: TIMESTAMP },
  EVENT C { id: INT, v: DOUBLE, at: LONG, event_time: TIMESTAMP }
}
"""

_ENTRY = 48
"""The bytes of a header, and of what it says of a segment."""

_SEGMENT = _ENTRY + 20
"""What a segment has besides its records: its entry in the header, and the head of compressed
bytes."""

_ROW = 3 + 3 * 8 + 4 + 10
"""The most bytes of an event: type and NULLs, values, key; if it is kept, position and context."""

_KEY = 5 + 2 * 8 + 2 + 2 * 8
"""The most bytes of an idle partition: key, counters, context; the first position that counts, and
the window's attribute."""


@cache
def _query(body: str) -> CompiledQuery:
    with interpreted():
        compiled = engines(_DECLARED + body, Options((EVENT_TIME,)))
    return only_query(compiled.get("chosen", compiled["general"]))


def _event(type: str, time: int, id: int = 1) -> dict[str, Any]:
    return {"type": type, "id": id, "v": 1.0, "at": time, EVENT_TIME: instant(time)}


def _advance(operator: Operator, watermark: int, *events: dict[str, Any]) -> list[dict[str, Any]]:
    return operator.advance(table_of(operator.query.plan, events) if events else None, watermark)


def _segments(operator: Operator, kind: int | None = None) -> list[Segment]:
    states = StreamFormats(operator.query.program, operator.options).states
    (header,) = operator.headers.values()
    state = states.read(header, 0)
    return state.segments if kind is None else state.of_kind(kind)


def _is_forgotten(operator: Operator) -> bool:
    """Whether nothing is left of any partition."""
    left = [*operator.timers, *operator.segments.get(0, ())]
    assert operator.sum("known") + operator.sum("kept") + operator.sum("waiting") == 0 or left
    return not left


def _has_shrunk(operator: Operator) -> bool:
    """Whether nothing is left but what is known of a partition besides its events."""
    segments = _segments(operator)
    return not operator.timers and (
        {segment.kind for segment in segments} == {KEYS}
        and operator.stored - operator.fixed_bytes()
        <= sum(_SEGMENT + _KEY * s.rows for s in segments)
    )


_WINDOWS_OF_TIME = (
    "SELECT * WHERE A ; B PARTITION BY id WITHIN 10 MILLISECONDS",
    "SELECT * WHERE A : B+ PARTITION BY id WITHIN 10 MILLISECONDS",
    "SELECT NXT * WHERE A ; B+ ; C PARTITION BY id WITHIN 10 MILLISECONDS",
    "SELECT * WHERE (A AS x)+ ; B AS y FILTER x.v = y.v AND x.v >= PREV(x.v) PARTITION BY id "
    "WITHIN 10 MILLISECONDS",
    "SELECT MAX * WHERE A+ ; B PARTITION BY id WITHIN 10 MILLISECONDS CONSUME BY PARTITION",
)
_NESTED = (
    "SELECT * WHERE NXT(A ; B) ; C PARTITION BY id WITHIN 10 MILLISECONDS",
    "SELECT * WHERE MAX(A+ ; B) PARTITION BY id WITHIN 10 MILLISECONDS",
)
_WINDOWED = (
    *_WINDOWS_OF_TIME,
    *_NESTED,
    "SELECT * WHERE A ; B PARTITION BY id WITHIN 10 EVENTS",
    "SELECT * WHERE A ; B ; C PARTITION BY id WITHIN 10 [at]",
    "SELECT LAST * WHERE A : B+ PARTITION BY id WITHIN 10 EVENTS",
)


# --- an idle partition ----------------------------------------------------------------------------


@pytest.mark.parametrize("body", [*_WINDOWS_OF_TIME, *_NESTED])
def test_an_idle_partition_shrinks_when_its_window_has_passed(body: str) -> None:
    """By the bucket's timer, although no event comes: to its counters, and not before."""
    operator = Operator(_query(body))
    events = [_event(type, time) for time, type in enumerate("ACBABA", 1)]
    _advance(operator, 0, *events)
    _advance(operator, 7)
    assert operator.sum("kept")
    _advance(operator, 10)
    assert operator.sum("kept")
    assert not _has_shrunk(operator)
    _advance(operator, 18)
    assert _has_shrunk(operator)
    # Positions count on, and what selectors inside know of the past is known still.
    more = [_event(type, 18 + n) for n, type in enumerate("CABCAABC", 1)]
    rows = _advance(operator, 100, *more)
    whole = operator.query.match_table(table_of(operator.query.plan, [*events, *more]))
    assert not same_rows(rows, [row for row in whole.to_pylist() if row["end_pos"] >= len(events)])


@pytest.mark.parametrize("body", [*_WINDOWS_OF_TIME, *_NESTED])
def test_without_positions_an_idle_partition_goes_away(body: str) -> None:
    """Unless what a nested selector knows of the past has to stay: then its counters do."""
    query = _query(body).with_options(positions=False)
    operator = Operator(query)
    events = [_event(type, time) for time, type in enumerate("ABA", 1)]
    _advance(operator, 0, *events)
    _advance(operator, 4)
    assert operator.sum("kept")
    _advance(operator, 16)
    if body in _NESTED:
        assert _has_shrunk(operator)
    else:
        assert _is_forgotten(operator)
    more = [_event(type, 18 + n) for n, type in enumerate("CABCAABC", 1)]
    rows = _advance(operator, 100, *more)
    whole = query.match_table(table_of(query.plan, [*events, *more])).to_pylist()
    assert not same_rows(rows, [row for row in whole if row["end_time"] > instant(18)])


def test_an_event_of_no_matter_stands_between_neighbours_when_the_window_has_passed() -> None:
    """What a nested selector knows then is not what it knew before that event."""
    query = _query(
        "SELECT * WHERE MAX(((A AS x : B) FILTER x.v = 1) OR B) ; C PARTITION BY id "
        "WITHIN 10 MILLISECONDS"
    )
    early = [_event("A", 1), {**_event("A", 2), "v": 2.0}]
    later = [_event("B", 101), _event("C", 102)]
    for before, positions in product((early, early[:1], [_event("C", 0), *early]), (True, False)):
        query = query.with_options(positions=positions)
        operator = Operator(query)
        _advance(operator, 0, *before)
        _advance(operator, 5)
        _advance(operator, 100)
        assert _has_shrunk(operator)
        rows = _advance(operator, 200, *later)
        wanted = query.match_table(table_of(query.plan, [*before, *later])).to_pylist()
        assert not same_rows(rows, wanted)
        assert bool(wanted) == (before[-1]["v"] == 2.0)


def test_events_of_no_matter_leave_nothing_but_positions() -> None:
    query = _query("SELECT * WHERE A ; B PARTITION BY id WITHIN 10 MILLISECONDS")
    operator = Operator(query)
    _advance(operator, 0, *(_event("C", time) for time in range(1, 100)))
    _advance(operator, 100)
    assert _has_shrunk(operator)
    operator = Operator(query.with_options(positions=False))
    _advance(operator, 0, *(_event("C", time) for time in range(1, 100)))
    _advance(operator, 100)
    assert _is_forgotten(operator)


# --- forgetting -----------------------------------------------------------------------------------


def _forgetful(key_ttl: int = 50) -> Operator:
    """An operator that forgets partitions so many milliseconds after their last event."""
    query = _query("SELECT * WHERE A ; B PARTITION BY id WITHIN 10 MILLISECONDS")
    return Operator(query, StreamOptions({}, key_ttl=1000 * key_ttl))


def test_a_partition_is_forgotten_after_its_time() -> None:
    operator = _forgetful()
    _advance(operator, 5, _event("A", 6))
    _advance(operator, 55)
    assert operator.sum("known") == 1
    _advance(operator, 57)
    assert _is_forgotten(operator)
    rows = _advance(operator, 80, _event("A", 57), _event("A", 81), _event("B", 82))
    assert not rows
    assert operator.counts["late"] == 1  # Nobody knows any more what was run.
    (row,) = _advance(operator, 90)
    assert (row["start_pos"], row["end_pos"]) == (0, 1)


@pytest.mark.parametrize("gap", [49, 50])
def test_a_partition_begins_anew_whether_or_not_its_record_is_there_still(gap: int) -> None:
    """That depends on the times of its events, and not on what has been removed when."""
    for watermark in (6, 40, 55):
        operator = _forgetful()
        _advance(operator, 6, _event("C", 6), _event("C", 6, 2))
        _advance(operator, watermark, _event("C", 30, 2))
        (row,) = _advance(operator, 99, _event("A", 6 + gap), _event("B", 7 + gap))
        assert row["start_pos"] == (0 if gap == 50 else 1)


def test_each_event_puts_off_when_a_partition_is_forgotten() -> None:
    operator = _forgetful()
    for time in range(10, 200, 10):
        _advance(operator, time, _event("C", time + 1))
        assert not _is_forgotten(operator)
    _advance(operator, 240)
    assert not _is_forgotten(operator)
    _advance(operator, 242)
    assert _is_forgotten(operator)


def test_a_partition_that_came_before_the_first_watermark_is_forgotten_too() -> None:
    operator = _forgetful()
    _advance(operator, 0, _event("A", 6))
    _advance(operator, 7)
    _advance(operator, 20)
    _advance(operator, 100)
    assert _is_forgotten(operator)


def test_an_event_that_waits_is_not_forgotten() -> None:
    """It is run when its time has come, however short key_ttl is."""
    operator = _forgetful(key_ttl=5)
    _advance(operator, 5, _event("A", 30))
    _advance(operator, 20)
    assert operator.sum("waiting") == 1
    assert _advance(operator, 31, _event("B", 31))


@pytest.mark.each(4)
@pytest.mark.parametrize("seed", range(20))
def test_what_is_forgotten_late_enough_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    query = _query("SELECT * WHERE A ; B PARTITION BY id WITHIN 10 MILLISECONDS")
    events = [_event(rng.choice("ABC"), time, rng.randint(1, 3)) for time in range(1, 40)]
    found = streamed(query, events, rng, options=StreamOptions({}, key_ttl=10**9))
    assert not same_rows(found, query.match_table(table_of(query.plan, events)).to_pylist())


def test_events_before_1970_wait_for_the_first_watermark() -> None:
    """Their timer is not behind the watermark that Spark begins with."""
    operator = Operator(_query("SELECT * WHERE A ; B PARTITION BY id WITHIN 10 MILLISECONDS"))
    _advance(operator, 0, _event("A", -9), _event("B", -2))
    _advance(operator, 0, _event("A", -5, 2))
    assert len(_advance(operator, 3)) == 1


# --- a long stream --------------------------------------------------------------------------------


def _sizes(body: str, length: int) -> list[int]:
    rng = random.Random(body)
    operator = Operator(_query(body))
    sizes = []
    for time in range(1, length, 5):
        events = [_event(rng.choice("AABBC"), time + n) for n in range(5)]
        operator.advance(table_of(operator.query.plan, events), max(0, time - 3))
        sizes.append(operator.stored - operator.fixed_bytes())
    return sizes


@pytest.mark.each(8)
@pytest.mark.parametrize("body", _WINDOWED)
def test_the_state_does_not_grow_with_the_stream(body: str) -> None:
    """A stream ten times as long has no larger states, as soon as segments have been merged: of
    each kind there are up to three of the same size, and kept ones go as a whole."""
    sizes = _sizes(body, 700)
    assert max(sizes[70:]) <= 1.2 * max(sizes[:70])
    assert max(sizes) <= 12 * _ENTRY + 4 * (11 + 5 + 4) * _ROW + 12 * _KEY


def test_a_query_without_a_window_keeps_all_events_that_matter() -> None:
    operator = Operator(_query("SELECT LAST * WHERE A ; B PARTITION BY id"))
    for time in range(1, 100):
        _advance(operator, time - 1, _event("A" if time % 2 else "C", time))
    _advance(operator, 100)
    assert operator.sum("kept") == 50


def test_what_consumed_matches_were_made_of_is_not_kept() -> None:
    operator = Operator(_query("SELECT * WHERE A ; B PARTITION BY id CONSUME BY PARTITION"))
    for time in range(1, 100):
        _advance(operator, time - 1, _event("AB"[time % 2], time))
        # What was consumed goes when segments are merged, four together.
        assert operator.sum("kept") <= 8
