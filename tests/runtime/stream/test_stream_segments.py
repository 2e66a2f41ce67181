"""What a stream writes and keeps: in proportion to what is new, and to what is there."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.stream.formats import StreamFormats, StreamOptions
from celc_runtime.stream.one_bucket.segments import due_for_merge
from celc_runtime.stream.stored.state import KEPT, KEYS, Segment
from engines import engines, interpreted, only_query
from streams_by_hand import EVENT_TIME, Operator

from celc.options import Options

_DECLARED = """CREATE STREAM S {
  EVENT A { id: LONG, v: DOUBLE, event_time: TIMESTAMP },
  EVENT B { id: LONG, v: DOUBLE, event_time: TIMESTAMP },
  EVENT C { id: LONG, v: DOUBLE, event_time: TIMESTAMP }
}
"""

_PAIRS = "SELECT * WHERE A ; B PARTITION BY id WITHIN 1000 MILLISECONDS"

_ENTRY = 48


@cache
def _query(body: str = _PAIRS) -> CompiledQuery:
    with interpreted():
        compiled = engines(_DECLARED + body, Options((EVENT_TIME,)))
    return only_query(compiled.get("chosen", compiled["general"]))


def _table(types: Sequence[str], ids: Any, times: Any) -> pa.Table:
    """Events of these types; times in milliseconds."""
    return pa.table(
        {
            "type": pa.array(types),
            "id": pa.array(ids, pa.int64()),
            "v": pa.array(np.ones(len(types))),
            EVENT_TIME: pa.array(1000 * np.asarray(times), pa.timestamp("us", "UTC")),
        }
    )


# --- what is written ------------------------------------------------------------------------------


def _written(keys: int, micro_batches: int, buckets: int, body: str = _PAIRS) -> list[int]:
    """What micro-batches of ten busy keys write beside idle ones, without entries of headers."""
    operator = Operator(_query(body), StreamOptions({}, buckets=buckets))
    operator.advance(_table(["C"] * keys, np.arange(keys), np.arange(1, keys + 1) % 50 + 1), 60)
    time = 2_000
    operator.advance(None, time)
    assert operator.sum("known") == keys
    found = []
    for number in range(micro_batches):
        before = operator.written
        types = ["A"] * 5 + ["B"] * 5
        operator.advance(_table(types, np.arange(10), time + np.arange(1, 11)), time)
        time += 20
        entries = sum(map(len, operator.headers.values())) - operator.fixed_bytes()
        found.append(operator.written - before)
        assert entries <= _ENTRY * 20 * buckets, number
    return found


def _check_written(idle: int, queries: slice = slice(None)) -> None:
    kinds = ((1, _PAIRS), (3, _PAIRS), (1, _PAIRS.replace("1000 MILL", "9 MILL")))
    for buckets, body in kinds[queries]:
        among_many = _written(idle, 60, buckets, body)
        alone = _written(10, 60, buckets, body)
        # A header has an entry more for the segment of the idle ones, and is written once for each
        # step: with its events, and for its timer.
        more = 2 * 2 * _ENTRY * buckets
        over = [one - other > more for one, other in zip(among_many, alone, strict=True)]
        # Once for each bucket the records of the idle ones are cut into sections.
        assert sum(over) <= buckets
        assert sum(among_many) <= sum(alone) + 60 * more + 8 * idle


def test_idle_keys_are_not_written() -> None:
    """A micro-batch of busy keys writes what it writes where there are no others."""
    _check_written(1_500, slice(1, 2))


@pytest.mark.long
def test_a_hundred_thousand_idle_keys_are_not_written() -> None:
    _check_written(100_000)


# --- what is merged -------------------------------------------------------------------------------


def _segment(number: int, size: int, least: int = 0, latest: int = 0) -> Segment:
    return Segment(number, KEYS, 0, 1, 1, 0, 0, size, least, latest)


def _merged(sizes: Iterator[int]) -> Iterator[tuple[int, list[Segment], int]]:
    """For segments that come one by one: the bytes added so far, what there is, and the bytes
    written so far."""
    there: list[Segment] = []
    added = written = number = 0
    for size in sizes:
        there.append(_segment(number, size))
        added, written, number = added + size, written + size, number + 1
        while due := due_for_merge(there, None):
            assert there[-len(due) :] == due
            total = sum(segment.size for segment in due)
            there[-len(due) :] = [_segment(number, total)]
            written, number = written + total, number + 1
        yield added, there, written


@pytest.mark.parametrize(
    "kind", ["equal", "random", "one large", "large now and then", "shrinking"]
)
def test_a_row_is_written_again_as_often_as_a_logarithm_says(kind: str) -> None:
    """And there are no more segments than that, whatever comes."""
    rng = random.Random(kind)
    sizes = {
        "equal": [100] * 2_000,
        "random": [rng.randint(1, 4) * 100 for _ in range(2_000)],
        "one large": [10**6] + [100] * 2_000,
        "large now and then": [100 if n % 50 else 10**5 for n in range(2_000)],
        "shrinking": [10**6 // (n + 1) for n in range(2_000)],
    }[kind]
    added = written = 0
    for added, there, written in _merged(iter(sizes)):
        levels = math.log2(added / 100) + 1
        assert len(there) <= levels + 3
        assert written <= added * (levels + 1)
    assert written > added


def test_small_segments_leave_a_large_one_alone() -> None:
    large = _segment(0, 10**6)
    small = [_segment(1 + number, 10) for number in range(4)]
    for count in (1, 2, 3):
        assert not due_for_merge([large, *small[:count]], None)
    assert due_for_merge([large, *small], None) == small
    grown = _segment(5, 10**6)
    assert due_for_merge([large, grown, *small[:2]], None) == [large, grown, *small[:2]]


def test_segments_are_merged_as_far_as_they_end_together() -> None:
    segments = [_segment(n, 10, 100 * n, 100 * n + 50) for n in range(8)]
    assert due_for_merge(segments, None) == segments
    assert due_for_merge(segments, 350) == segments[4:]
    assert not due_for_merge(segments, 349)


@pytest.mark.each(2)
@pytest.mark.parametrize("batches", [60, pytest.param(300, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "body",
    [
        _PAIRS,
        "SELECT * WHERE A : B+ PARTITION BY id WITHIN 9 EVENTS",
        "SELECT LAST * WHERE A ; B PARTITION BY id CONSUME BY PARTITION",
    ],
)
def test_many_micro_batches_write_in_proportion_to_their_rows(body: str, batches: int) -> None:
    """Each brings new keys and old ones; each event and record is written again some times."""
    rng = np.random.default_rng(1)
    query = _query(body)
    operator = Operator(query)
    rows, most = 0, 0
    for number in range(batches):
        count = 20
        ids = rng.integers(0, 10 * number + 20, count)
        times = 100 * number + np.sort(rng.choice(100, count, replace=False)) + 1
        types = rng.choice(["A", "B", "C"], count)
        operator.advance(_table(types.tolist(), ids, times), max(0, 100 * number - 50))
        rows += count
        (header,) = operator.headers.values()
        most = max(most, (len(header) - operator.fixed_bytes()) // _ENTRY)
    assert most <= 25
    # A row waits, is kept, and moves its partition's record: some 30 bytes each, and a header with
    # each micro-batch. What were written anew each time would be twice that after four of them.
    assert operator.written <= 100 * rows


# --- how much there is ----------------------------------------------------------------------------


def _sizes_of_kind(operator: Operator, kind: int) -> tuple[int, int]:
    """The rows of a kind of segments, and their bytes with those of the header."""
    states = StreamFormats(operator.query.program, operator.options).states
    of_kind = [
        segment
        for label, header in operator.headers.items()
        for segment in states.read(header, operator.task._labels[label]).of_kind(kind)
    ]
    bytes_of_kind = sum(segment.size + _ENTRY for segment in of_kind)
    return sum(segment.rows for segment in of_kind), bytes_of_kind + 112


@pytest.mark.parametrize("buckets", [1, 4])
def test_an_idle_key_takes_no_more_than_32_bytes(buckets: int) -> None:
    """All that is stored of it, the header included."""
    operator = Operator(_query(), StreamOptions({}, buckets=buckets))
    count = 8_000
    for part in range(4):
        ids = np.arange(part, count, 4)
        operator.advance(_table(["A"] * len(ids), ids, np.arange(len(ids)) % 90 + 1), 100)
    operator.advance(None, 5_000)
    assert operator.sum("kept") == operator.sum("waiting") == 0
    assert operator.sum("known") == count
    assert operator.stored <= 32 * count


@pytest.mark.each(2)
@pytest.mark.parametrize("body", [_PAIRS, "SELECT * WHERE A ; B PARTITION BY id WITHIN 9 EVENTS"])
def test_a_kept_event_takes_no_more_than_30_bytes(body: str) -> None:
    """Beside the attributes that the query reads, `v` here: its key, time, position and type."""
    operator = Operator(_query(body))
    count, rng = 8_000, np.random.default_rng(1)
    for part in range(8):
        ids = rng.integers(0, 2_000, count // 8)
        times = 100 * part + np.arange(count // 8) % 90 + 1
        order = np.unique(ids * 1000 + times, return_index=True)[1]
        operator.advance(_table(["A"] * len(order), ids[order], times[order]), 100 * part + 99)
    operator.advance(None, 900)
    rows, size = _sizes_of_kind(operator, KEPT)
    assert rows >= 0.8 * count
    assert size <= (30 + 8) * rows
    assert _sizes_of_kind(operator, KEYS)[0] >= 1_900


# --- keys that come and go ------------------------------------------------------------------------


def _turnover(query: CompiledQuery, options: StreamOptions, count: int) -> Iterator[Operator]:
    """The operator after each of micro-batches whose keys live for about three of them."""
    operator = Operator(query, options)
    rng = np.random.default_rng(7)
    for number in range(count):
        ids = 30 * number + rng.integers(0, 90, 40)
        times = 100 * number + np.arange(1, 41) * 2
        types = rng.choice(["A", "B", "C"], 40).tolist()
        operator.advance(_table(types, ids, times), max(0, 100 * number - 20))
        yield operator


@pytest.mark.each(3)
@pytest.mark.parametrize(("forgets", "buckets"), [("key_ttl", 1), ("key_ttl", 3), ("positions", 1)])
def test_a_stream_of_keys_that_come_and_go_stays_as_large_as_it_is(
    forgets: str, buckets: int
) -> None:
    """Segments, records and bytes of 160 micro-batches, against the first 80."""
    query, options = _query(), StreamOptions({}, key_ttl=2_000_000, buckets=buckets)
    if forgets == "positions":
        query, options = query.with_options(positions=False), options._replace(key_ttl=None)
    figures = []
    for operator in _turnover(query, options, 160):
        entries = sum(map(len, operator.headers.values())) // _ENTRY
        figures.append((entries, operator.stored, operator.sum("known"), operator.sum("kept")))
    assert sum(figures[-1][1:]) > 0
    for early, late in zip(
        zip(*figures[:80], strict=True), zip(*figures[80:], strict=True), strict=True
    ):
        assert max(late) <= 1.25 * max(early) + 8
    assert max(entries for entries, *_ in figures) <= 30 * buckets
    assert all(len(timers) <= 1 for timers in operator.timers.values())
