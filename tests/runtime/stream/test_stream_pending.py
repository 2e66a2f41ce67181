"""Deadlines that wait: what they cost while none is due, counted, and when they come out."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.plan.errors import StateError
from celc_runtime.stream.formats import StreamFormats
from celc_runtime.stream.one_bucket.segments import Segments
from celc_runtime.stream.stored import sections
from celc_runtime.stream.stored.state import KEPT, KEYS, Segment, StateFormat
from engines import engines, interpreted, only_query
from streams_by_hand import EVENT_TIME, Operator

from celc.options import Options

_HOUR = 3_600_000

_TEXT = """CREATE STREAM S {
  EVENT A { id: LONG, v: DOUBLE, event_time: TIMESTAMP },
  EVENT B { id: LONG, v: DOUBLE, event_time: TIMESTAMP }
}
SELECT x[v] WHERE A AS x ; !B FOR 1 HOUR [event_time] PARTITION BY id
"""


@cache
def _query() -> CompiledQuery:
    with interpreted():
        compiled = engines(_TEXT, Options((EVENT_TIME,)))
    return only_query(compiled.get("chosen", compiled["general"]))


def _table(type: str, ids: Any, times: Any) -> pa.Table:
    """Events of a type; times in milliseconds."""
    count = len(ids)
    return pa.table(
        {
            "type": pa.array([type] * count),
            "id": pa.array(ids, pa.int64()),
            "v": pa.array(np.ones(count)),
            EVENT_TIME: pa.array(1000 * np.asarray(times), pa.timestamp("us", "UTC")),
        }
    )


@contextmanager
def _unpacked(patch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The rows of each segment, or section, of kept events and of partitions that is unpacked."""
    rows: list[int] = []
    with patch.context() as changed:
        for name in ("kept", "keys"):
            method = getattr(StateFormat, name)

            def counting(self: Any, segment: Segment, data: bytes, method: Any = method) -> Any:
                rows.append(segment.rows)
                return method(self, segment, data)

            changed.setattr(StateFormat, name, counting)
        yield rows


_BUSY = 5


def _beside(pending: int, patch: pytest.MonkeyPatch) -> tuple[int, int]:
    """The rows that a micro-batch of busy partitions unpacks beside pending deadlines, and how many
    of these there are, after some such micro-batches."""
    operator = Operator(_query())
    silent = np.arange(pending) + 1000
    times = 500_000 + silent % 900
    times[:1] = 1
    operator.advance(_table("A", silent, times), 0)
    operator.advance(None, 501_000)
    time = _HOUR + 1000  # between the first deadline and the others, which are in one segment
    operator.advance(None, time)
    assert operator.counts["matches"] == bool(pending)
    for _ in range(60):
        time += 100
        events = _table("B", np.arange(_BUSY), time + 1 + np.arange(_BUSY))
        with _unpacked(patch) as rows:
            operator.advance(events, time)
    assert operator.counts["matches"] == bool(pending)
    return sum(rows), operator.sum("pending")


def test_deadlines_that_are_not_due_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A micro-batch of five other partitions unpacks a bounded number of rows, and not those of the
    twenty thousand that wait."""
    few, there = _beside(0, monkeypatch)
    assert there <= 400
    many, there = _beside(20_000, monkeypatch)
    assert 19_999 <= there <= 20_399
    # The sections of five partitions: of their records, and of kept events.
    assert many - few <= 2 * _BUSY * 512


def test_a_bucket_without_events_is_left_alone_until_its_deadline() -> None:
    """Its one timer is at the first deadline; each match comes with the first watermark behind."""
    operator = Operator(_query())
    operator.advance(_table("A", [1, 2, 3], [1, 2, 7]), 0)
    operator.advance(None, 10)
    (timer,) = operator.timers[0]
    assert timer == _HOUR + 2
    steps = []
    step = operator.task.step
    operator.task.step = lambda *given: (steps.append(given[-1]), step(*given))[1]  # type: ignore[method-assign]
    found = []
    for watermark in (20, _HOUR, _HOUR + 1, _HOUR + 3, _HOUR + 4, _HOUR + 7, _HOUR + 9):
        found += [
            (watermark, row["id"], row["decided_time"]) for row in operator.advance(None, watermark)
        ]
    assert [(watermark, id) for watermark, id, _ in found] == [
        (_HOUR + 3, 1),
        (_HOUR + 3, 2),
        (_HOUR + 9, 3),
    ]
    assert min(steps) == _HOUR + 3
    assert operator.sum("pending") == 0


def test_pending_deadlines_are_counted() -> None:
    """By the kept events that have one; late ones and those of the past are none."""
    operator = Operator(_query())
    operator.advance(_table("A", [1, 2, 3], [10, 20, 30]), 0)
    assert operator.sum("pending") == 0  # they wait for the watermark
    operator.advance(None, 25)
    assert operator.sum("pending") == 2
    operator.advance(None, 31)
    assert operator.sum("pending") == 3
    operator.advance(_table("A", [4], [_HOUR]), _HOUR + 10)
    assert operator.sum("pending") == 4  # the clock is at the first one, and not behind it
    operator.advance(None, _HOUR + 22)
    assert operator.sum("pending") == 2
    operator.advance(None, 3 * _HOUR)
    assert operator.sum("pending") == 0
    assert operator.counts["matches"] == 4


# --- sections -------------------------------------------------------------------------------------


def test_few_busy_partitions_make_sections() -> None:
    assert sections.section_bits(sections.WHOLE - 1, 1) == 0
    assert sections.section_bits(100_000, 1) == sections.section_bits(100_000, 128) == 8
    assert sections.section_bits(100_000, 129) == 0
    assert sections.section_bits(sections.WHOLE, 0) > 0
    hashes = np.random.default_rng(1).integers(0, 2**64, 5_000, np.uint64)
    parts = list(sections.rows_of_sections(hashes, 4))
    assert len(parts) == 16
    assert sorted(np.concatenate(parts).tolist()) == list(range(5_000))
    for number, part in enumerate(parts):
        assert (np.diff(part) > 0).all()
        assert (sections.numbers_of(hashes[part], 4) == number).all()


def _cut() -> tuple[Segments, list[Segment], dict[int, bytes], StateFormat]:
    """A bucket that has segments with sections, and all that is stored of it."""
    operator = Operator(_query())
    count = 2 * sections.WHOLE
    operator.advance(_table("A", np.arange(count), np.arange(count) % 90 + 1), 0)
    operator.advance(None, 100)
    for number in range(40):
        operator.advance(_table("B", [7], [200 + number]), 199 + number)
    stored = operator.segments[0]
    states = StreamFormats(operator.query.program, operator.options).states
    state = states.read(operator.headers[0], 0)
    found = [segment for segment in state.segments if segment.bits]
    assert {segment.kind for segment in found} == {KEPT, KEYS}
    assert state.pending >= count
    return Segments(state, states, stored.get), found, stored, states


def test_no_changed_section_goes_unnoticed() -> None:
    segments, found, stored, states = _cut()
    for segment in found:
        rows = segments.kept(segment) if segment.kind == KEPT else segments.keys(segment)
        assert len(rows.rows.records) == segment.rows
        assert sum(len(stored[place]) for place in segment.places) == segment.size
        directory, *pieces = segment.places
        for place in (directory, pieces[0], pieces[-1]):
            data = stored[place]
            for changed in (
                None,
                data[:-1],
                data + b"\0",
                bytes([data[0] ^ 1]) + data[1:],
                stored[pieces[1]],
            ):
                there = Segments(segments._state, states, (stored | {place: changed}).get)
                read = there.kept if segment.kind == KEPT else there.keys
                with pytest.raises(StateError, match="a segment is not there, or its checksum"):
                    read(segment)


def test_a_directory_that_fits_no_segment() -> None:
    """As only a program of its own would write it: its checksum fits."""
    _, (segment, *_), stored, _ = _cut()
    directory = stored[segment.places[0]]
    more = struct.pack("<I", struct.unpack_from("<I", directory)[0] + 1) + directory[4:]
    for changed, said in ((directory[:-12], "the directory of its sections has"), (more, "do not")):
        with pytest.raises(StateError, match=said):
            sections.Directory(changed, segment.bits, segment.rows)
