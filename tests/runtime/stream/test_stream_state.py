"""The state of a bucket as bytes: written and read, cut off, changed, and of other queries.

Whatever bytes there are: an error that says what is wrong, or an ordinary micro-batch.
"""

from __future__ import annotations

import random
import re
import resource
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, EventError
from celc_runtime.plan.errors import StateError
from celc_runtime.stream.formats import StreamFormats, StreamOptions
from celc_runtime.stream.one_bucket.segments import Segments
from celc_runtime.stream.packing import packed
from celc_runtime.stream.stored.blocks import block_of
from celc_runtime.stream.stored.compression import compressed, decompressed
from celc_runtime.stream.stored.identity import IDENTITY, normalised
from celc_runtime.stream.stored.state import (
    KEPT,
    KEYS,
    WAITING,
    BucketState,
    Segment,
    StateFormat,
    buckets_in,
)
from celc_runtime.stream.stored.state_rows import KeptEvents, KeyRecords
from celc_runtime.stream.tasks import BucketTask, check_header
from engines import engines, interpreted, only_query, table_of
from streams_by_hand import AFTER_ALL, EVENT_TIME, Operator, instant

from celc.options import Options

_EVENTS = """CREATE STREAM S {
  EVENT A { id: INT, k: STRING, ok: BOOLEAN, v: DOUBLE, name: STRING, ts: LONG,
            event_time: TIMESTAMP },
  EVENT B { id: INT, k: STRING, ok: BOOLEAN, v: DOUBLE, name: STRING, ts: LONG,
            event_time: TIMESTAMP },
  EVENT C { id: INT, k: STRING, ok: BOOLEAN, v: DOUBLE, name: STRING, ts: LONG,
            event_time: TIMESTAMP }
}
"""

# Each keeps its state in a way of its own.
_QUERIES = {
    "time": "SELECT * WHERE A AS x ; B AS y FILTER x.v > 1 PARTITION BY k WITHIN 9 MILLISECONDS",
    "events": "SELECT * WHERE A : B+ : C PARTITION BY k WITHIN 20 EVENTS",
    "strict": "SELECT STRICT x, y WHERE A AS x ; !C ; B AS y WITHIN 12 MILLISECONDS",
    "contexts": "SELECT * WHERE NXT(A ; B+) ; C PARTITION BY k WITHIN 8 MILLISECONDS",
    "own clock": "SELECT * WHERE A ; B ; C PARTITION BY k WITHIN 7 [ts]",
    "joined": "SELECT * WHERE A AS x ; B AS y FILTER x.name = y.name PARTITION BY k "
    "WITHIN 30 EVENTS",
    "consuming": "SELECT MAX * WHERE A+ ; B PARTITION BY k WITHIN 9 EVENTS CONSUME BY PARTITION",
    "by definition": "SELECT * WHERE NXT((A AS x ; B AS y) FILTER x.id < y.id) PARTITION BY k "
    "WITHIN 5 EVENTS",
    "looks back": "SELECT * WHERE (A AS x)+ ; B AS y FILTER x.v >= PREV(x.v) AND SUM(x.v) > y.v "
    "PARTITION BY k WITHIN 6 EVENTS",
    "no window": "SELECT LAST * WHERE A ; B PARTITION BY k CONSUME BY PARTITION",
}

_OPTIONS = StreamOptions({"row": "LONG", "tag": "STRING"}, key_ttl=10**9)

_HEADER, _ENTRY = 112, 48
"""The bytes of a header, and of what it says of a segment."""

_BLOCK = 25
"""The bytes of a block before what is compressed."""

_KEYS = ("k", "l", None)


class _Stored(NamedTuple):
    """What a checkpoint has of a bucket."""

    header: bytes
    segments: dict[int, bytes]

    def sealed(self) -> _Stored:
        """With the sizes and checksums that the bytes should have."""
        header = bytearray(self.header)
        (segments,) = struct.unpack_from("<Q", header, 104)
        most = (len(header) - _HEADER) // _ENTRY
        for at in range(_HEADER, _HEADER + _ENTRY * min(segments, most), _ENTRY):
            number, pieces = struct.unpack_from("<q2xH", header, at)
            places = [number << 16 | piece for piece in range(pieces)]
            data = b"".join(self.segments.get(place, b"") for place in places)
            struct.pack_into("<I", header, at + 16, zlib.crc32(data))
            struct.pack_into("<Q", header, at + 24, len(data))
        return _Stored(_with_checksum(bytes(header)), self.segments)


def _with_checksum(data: bytes) -> bytes:
    """The bytes of a header with the checksum that they should have."""
    return data[:8] + struct.pack("<I", zlib.crc32(data[12:], zlib.crc32(data[:8]))) + data[12:]


@cache
def _query(name: str) -> CompiledQuery:
    with interpreted():
        compiled = engines(_EVENTS + _QUERIES[name], Options((EVENT_TIME,)))
    matcher = compiled.get("chosen", compiled["general"])
    return only_query(matcher).with_options(tiebreak=("row", "tag"))


def _table(
    query: CompiledQuery,
    rng: random.Random,
    first: int,
    count: int,
    keys: tuple[str | None, ...] = _KEYS,
) -> pa.Table:
    events = [
        {
            "type": rng.choice("AABBC"),
            "id": rng.choice((1, 2, None)),
            "k": rng.choice(keys),
            "ok": rng.choice((True, False, None)),
            "v": rng.choice((0.5, 2.0, 3.0, None)),
            "name": rng.choice(("p", "äöü", "", None)),
            "ts": number,
            "row": number,
            "tag": rng.choice(("a", None)),
            EVENT_TIME: instant(number),
        }
        for number in range(first, first + count)
    ]
    return table_of(query.plan, events)


@cache
def _states(name: str, keys: tuple[str | None, ...] = _KEYS) -> list[_Stored]:
    """The states of a bucket after each micro-batch of a stream, most with waiting events."""
    query, rng = _query(name), random.Random(name)
    operator = Operator(query, _OPTIONS, rng=rng)
    found: list[_Stored] = []
    time = 1
    for _ in range(12):
        operator.advance(_table(query, rng, time, 6, keys), max(0, time - 4))
        time += 6
        found.append(_Stored(operator.headers[0], dict(operator.segments[0])))
    return found


def _formats(name: str) -> StreamFormats:
    return StreamFormats(_query(name).program, _OPTIONS)


def _read(states: StateFormat, stored: _Stored) -> tuple[BucketState, Segments]:
    state = states.read(stored.header, 0)
    return state, Segments(state, states, stored.segments.get)


def _again(states: StateFormat, segment: Segment, data: bytes) -> bytes:
    """The bytes that are written of what a segment's bytes say."""
    if segment.kind == WAITING:
        rows = states.waiting(segment, data)
        layout = states.layout
        names = [field.name for field in layout.fields]
        return block_of(layout, rows, names.index(EVENT_TIME)).data
    if segment.kind == KEPT:
        return states.kept_bytes(states.kept(segment, data))
    assert states.key_bits == segment.values
    return states.key_bytes(states.keys(segment, data))


# --- as it was written ----------------------------------------------------------------------------


@pytest.mark.each(2)
@pytest.mark.parametrize("name", _QUERIES)
def test_what_is_written_is_read(name: str) -> None:
    states = _formats(name).states
    rows = [0, 0, 0]
    for stored in _states(name):
        state, segments = _read(states, stored)
        assert states.written(state) == stored.header
        assert state.size == len(stored.header) + sum(map(len, stored.segments.values()))
        assert stored.sealed() == stored
        assert [place for segment in state.segments for place in segment.places] == [
            *stored.segments
        ]
        for segment in state.segments:
            rows[segment.kind] += segment.rows
            assert _again(states, segment, segments.data(segment)) == segments.data(segment)
    assert rows[WAITING]
    assert rows[KEPT]
    assert bool(rows[KEYS]) == bool(states.values)


@pytest.mark.each(2)
@pytest.mark.parametrize("name", _QUERIES)
def test_a_segment_in_several_pieces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    states, stored = _formats(name).states, _states(name)[-1]
    # Behind the states, which other tests share.
    monkeypatch.setattr("celc_runtime.stream.one_bucket.segments.PIECE", 50)
    state, segments = _read(states, stored)
    segment = max(state.segments, key=lambda one: one.size)
    data = segments.data(segment)
    segments.add(segment.kind, segment.rows, data, segment.least, segment.latest, segment.values)
    added = state.segments[-1]
    assert added.pieces == -(-len(data) // 50) > 1
    assert max(map(len, segments.written.values())) == 50
    header = states.written(state)
    again = _Stored(header, stored.segments | segments.written)
    assert _read(states, again)[1].data(added) == data
    for place in added.places:
        rest = {at: piece for at, piece in again.segments.items() if at != place}
        with pytest.raises(StateError, match="is not there"):
            _read(states, _Stored(header, rest))[1].data(added)


def test_the_number_of_buckets_is_read_without_the_query() -> None:
    assert buckets_in(_states("time")[0].header) == 1
    assert buckets_in(_states("time")[0].header[:80]) is None
    assert buckets_in(b"clec" + bytes(100)) is None


# --- cut off, and changed -------------------------------------------------------------------------


@pytest.mark.parametrize("name", _QUERIES)
def test_no_beginning_of_a_header_is_one(name: str) -> None:
    states, header = _formats(name).states, _states(name)[-1].header
    for length in range(len(header)):
        with pytest.raises(StateError, match=r"cut off|checksum"):
            states.read(header[:length], 0)
        if length >= _HEADER:
            with pytest.raises(StateError, match="segments do not fit in"):
                states.read(_with_checksum(header[:length]), 0)
    for more in (b"\0", bytes(_ENTRY)):
        with pytest.raises(StateError, match="segments do not fit in"):
            states.read(_with_checksum(header + more), 0)


@pytest.mark.parametrize("name", _QUERIES)
def test_no_beginning_of_a_segment_is_one(name: str) -> None:
    states, stored = _formats(name).states, _states(name)[-1]
    state, segments = _read(states, stored)
    assert len({segment.kind for segment in state.segments}) >= 2
    for segment in state.segments:
        data = segments.data(segment)
        for length in range(len(data)):
            with pytest.raises(StateError, match="is damaged"):
                _again(states, segment, data[:length])
        with pytest.raises(StateError, match=r"left over|cut off"):
            _again(states, segment, data + b"\0")


@pytest.mark.each(4)
@pytest.mark.parametrize("name", _QUERIES)
def test_no_flipped_bit_goes_unnoticed(name: str) -> None:
    """Each bit of a header: of its mark, version, flags, entries, and of the checksum; and of each
    segment."""
    states, stored = _formats(name).states, _states(name)[-1]
    for data in _flipped(stored.header):
        with pytest.raises(StateError):
            states.read(data, 0)
    state, _ = _read(states, stored)
    for segment in state.segments:
        (place,) = segment.places
        for data in _flipped(stored.segments[place]):
            changed = _Stored(stored.header, stored.segments | {place: data})
            with pytest.raises(StateError, match="a segment is not there, or its checksum"):
                _read(states, changed)[1].data(segment)


def _flipped(data: bytes) -> Iterator[bytes]:
    """The bytes with each of their bits changed, one at a time."""
    changed = bytearray(data)
    for place in range(len(data)):
        for bit in range(8):
            changed[place] ^= 1 << bit
            yield bytes(changed)
            changed[place] ^= 1 << bit


_NUMBERS = (
    *(0, 1, 2, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1),
    *(2**47, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1),
)

# Places and sizes of what a header says of itself, and of a segment.
_FIELDS = ((4, 2), (6, 2), (30, 2), (32, 4), (36, 4), *((at, 8) for at in range(40, 112, 8)))
_OF_ENTRY = ((0, 8), (8, 1), (9, 1), (10, 2), (12, 4), (20, 4), (32, 8), (40, 8))


def _mutated(stored: _Stored, others: list[_Stored], rng: random.Random) -> _Stored:
    """The state with something changed, checksums mostly too."""
    header, segments = bytearray(stored.header), dict(stored.segments)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.choice([*segments])
        match rng.randrange(6):
            case 0:
                header[rng.randrange(12, len(header))] ^= 1 << rng.randrange(8)
            case 1:
                at, size = rng.choice(_FIELDS)
                _put(header, at, size, rng)
            case 2:
                at, size = rng.choice(_OF_ENTRY)
                entry = rng.randrange((len(header) - _HEADER) // _ENTRY)
                _put(header, _HEADER + _ENTRY * entry + at, size, rng)
            case 3:
                other = rng.choice(others).segments
                segments[place] = other[rng.choice([*other])]
            case 4:
                del segments[place]
                segments[place] = b""
            case _:
                segments[place] = _bytes_mutated(segments[place], rng)
    changed = _Stored(bytes(header), segments)
    return changed if rng.random() < 0.1 else changed.sealed()


def _bytes_mutated(data: bytes, rng: random.Random) -> bytes:
    """Changed bytes; mostly what has been compressed, so that the checksum of it fits."""
    if rng.random() < 0.8:
        for start in (0, _BLOCK):
            with suppress(StateError):
                plain, end = decompressed(data, start)
                return data[:start] + compressed(_changed_at_random(plain, rng)) + data[end:]
    return _changed_at_random(data, rng)


def _changed_at_random(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data or b"\0")
    kind = rng.randrange(3)
    if kind == 0:
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        size = rng.choice((1, 2, 4, 8))
        _put(changed, rng.randrange(max(1, len(changed) - size)), size, rng)
    else:
        start, end = sorted(rng.randrange(len(changed) + 1) for _ in range(2))
        changed[start:end] = rng.choice((b"", changed[start:end] * 2))
    return bytes(changed)


def _put(data: bytearray, place: int, size: int, rng: random.Random) -> None:
    number = rng.choice((*_NUMBERS, rng.randrange(2**64), rng.randrange(100)))
    written = (number % 2 ** (8 * size)).to_bytes(size, "little")
    data[place : place + size] = written[: len(data) - place]


@contextmanager
def _little_memory() -> Iterator[None]:
    """What is done inside needs no more than 256 MiB beyond what has been needed before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 256 * 1024, f"{grown:,} KiB"


def _go_on(task: BucketTask, stored: _Stored, blocks: list[bytes]) -> None:
    """A micro-batch with events, and the end of the stream."""
    there = dict(stored.segments)
    step, _ = task.step(0, stored.header, there.get, blocks, 1002)
    there |= step.written
    assert all(0 <= place < 2**63 for place in there), "Spark has no such number"
    task.last_matches(0, step.header, there.get)
    task.step(0, step.header, there.get, [], AFTER_ALL)


def _run_mutated(name: str, count: int, seed: int) -> tuple[int, int]:
    """How many changed states were refused, and how many were gone on with."""
    query, rng = _query(name), random.Random(f"{name} {seed}")
    states = _states(name)
    fresh = _table(query, rng, 1000, 5)
    (block,) = pa.Table.from_batches(
        packed(query.program, _OPTIONS, fresh.to_batches())
    ).to_pylist()
    task = BucketTask(query.program, _OPTIONS)
    refused: list[str] = []
    went_on = 0
    for _ in range(count):
        stored = _mutated(rng.choice(states), states, rng)
        try:
            _go_on(task, stored, [block["events"]])
        except (StateError, EventError) as error:
            refused.append(str(error))
        else:
            went_on += 1
    assert all("query 'query': " in told for told in refused), refused
    return len(refused), went_on


@pytest.mark.each(4)
@pytest.mark.parametrize("name", _QUERIES)
def test_changed_bytes_are_refused_or_events(name: str) -> None:
    with _little_memory():
        refused, went_on = _run_mutated(name, 60, 0)
    assert refused >= 15
    assert went_on >= 1


@pytest.mark.long
@pytest.mark.parametrize("name", _QUERIES)
def test_many_changed_states(name: str) -> None:
    with _little_memory():
        refused, went_on = _run_mutated(name, 10_000, 1)
    assert refused >= 2_000
    assert went_on >= 200


@pytest.mark.parametrize("name", _QUERIES)
def test_segments_that_are_missing_or_swapped(name: str) -> None:
    """Whichever: what reads them says that a segment is not there, or not what it was."""
    states, stored = _formats(name).states, _states(name)[-1]
    state, _ = _read(states, stored)
    places = [*stored.segments]
    for one, other in pairwise(places):
        swapped = {one: stored.segments[other], other: stored.segments[one]}
        gone = {place: data for place, data in stored.segments.items() if place != one}
        for there in (stored.segments | swapped, gone):
            with pytest.raises(StateError, match="a segment is not there, or its checksum"):
                [*map(Segments(state, states, there.get).data, state.segments)]


def _changed(stored: _Stored, at: int, format: str, value: int) -> bytes:
    header = bytearray(stored.header)
    struct.pack_into(format, header, at, value)
    return _with_checksum(bytes(header))


@pytest.mark.parametrize(
    ("at", "format", "value"),
    [
        (6, "<H", 4),  # no such flag
        (30, "<H", 1),
        (36, "<I", 1),  # another bucket
        (64, "<q", -1),
        (72, "<q", 2**62),
        (72, "<q", 2**50),  # its segments could not be numbered
        (72, "<q", 0),  # behind its segments
        (88, "<q", -1),
        (96, "<q", -1),
        (_HEADER, "<q", -1),
        (_HEADER + 8, "<B", 3),
        (_HEADER + 9, "<B", 128),
        (_HEADER + 10, "<H", 0),
        (_HEADER + 12, "<I", 0),
        (_HEADER + 20, "<I", 1),
        (_HEADER + 32, "<q", 2**63 - 1),
    ],
)
def test_a_header_that_says_what_none_does(at: int, format: str, value: int) -> None:
    for name in ("time", "contexts"):
        with pytest.raises(StateError, match="is damaged"):
            _formats(name).states.read(_changed(_states(name)[-1], at, format, value), 0)


def test_more_rows_than_a_segment_has_fill_no_memory() -> None:
    """The header says how many there are, and is not believed."""
    for name in _QUERIES:
        states, stored = _formats(name).states, _states(name)[-1]
        state, segments = _read(states, stored)
        for number, segment in enumerate(state.segments):
            data = segments.data(segment)
            at = _HEADER + number * _ENTRY + 12
            changed = states.read(_changed(stored, at, "<I", 2**32 - 1), 0).segments[number]
            with _little_memory(), pytest.raises(StateError, match="do not fit"):
                _again(states, changed, data)


def test_positions_far_apart_fill_no_memory() -> None:
    """Rows that stand for what was left out are no more than the window holds."""
    for name in ("events", "by definition", "no window"):
        states, stored = _formats(name).states, _states(name, ("k",))[-1]
        state, segments = _read(states, stored)
        for segment in (state.of_kind(KEPT)[-1], state.of_kind(KEYS)[-1]):
            data = segments.data(segment)
            segments.remove(segment)
            if segment.kind == KEPT:
                kept = states.kept(segment, data)
                kept.positions[-1] = 2**61
                segments.add_kept(KeptEvents(*kept))
            else:
                records = states.keys(segment, data)
                records.values["position"] = 2**61 + 1
                segments.add_keys(KeyRecords(*records))
        there = stored.segments | segments.written
        task = BucketTask(_query(name).program, _OPTIONS)
        with _little_memory():
            if name == "events":
                with pytest.raises(StateError, match="too old for the window"):
                    task.step(0, states.written(state), there.get, [], AFTER_ALL)
            else:
                step, _ = task.step(0, states.written(state), there.get, [], AFTER_ALL)
                assert step.events


# --- of other buckets -----------------------------------------------------------------------------


def test_the_header_of_another_bucket_is_refused() -> None:
    query, options = _query("time"), _OPTIONS._replace(buckets=2)
    operator = Operator(query, options)
    operator.advance(_table(query, random.Random(1), 1, 40), 0)
    zero, one = sorted(operator.headers)
    task = BucketTask(query.program, options)
    for label, other in ((zero, one), (one, zero)):
        with pytest.raises(StateError, match="is damaged"):
            task.step(label, operator.headers[other], operator.segments[other].get, [], 5)
    check_header(query.program, options._asdict(), one, operator.headers[one])


@pytest.mark.parametrize(("before", "after"), [(3, 1), (3, 2), (3, 4), (1, 3), (2, 4)])
def test_another_number_of_buckets_is_refused(before: int, after: int) -> None:
    """By the next micro-batch with rows, whichever bucket they are of, or by a timer."""
    query = _query("time")
    rng, options = random.Random(1), _OPTIONS._replace(buckets=before)
    operator = Operator(query, options)
    operator.advance(_table(query, rng, 1, 40), 0)
    said = rf"begun with {before} buckets, and this stream has {after}: say match_stream\(df, "
    said += rf"buckets={before}\)"
    changed = _OPTIONS._replace(buckets=after)
    with pytest.raises(StateError, match=said):
        check_header(query.program, changed._asdict(), 0, operator.headers[0])
    other = BucketTask(query.program, changed)
    for label, header in operator.headers.items():
        with pytest.raises(StateError, match=said):
            other.step(label, header, operator.segments[label].get, [], 9)
    for key in _KEYS:
        started = Operator(query, changed)
        started.headers, started.segments = dict(operator.headers), dict(operator.segments)
        rows = _table(query, rng, 50, 1, (key,))
        with pytest.raises(StateError, match=said):
            started.advance(rows, 9)


# --- of another query, or another version ---------------------------------------------------------


def _compiled(text: str, *, order_by: tuple[str, ...] = (EVENT_TIME,)) -> CompiledQuery:
    with interpreted():
        compiled = engines(text, Options(order_by))
    return only_query(compiled["general"])


_BODY = (
    "SELECT x WHERE A AS x ; B AS y FILTER x.v > 1 PARTITION BY k WITHIN 9 MILLISECONDS "
    "CONSUME BY PARTITION LIMIT 3"
)
_TEXT = _EVENTS + _BODY


def _state_of(query: CompiledQuery, options: StreamOptions) -> bytes:
    operator = Operator(query, options)
    operator.advance(_table(query, random.Random(1), 1, 6), 0)
    operator.advance(None, 4)
    return operator.headers[0]


def _told(text: str, *, order_by: tuple[str, ...] = (EVENT_TIME,)) -> str:
    """What is said of the state of `_TEXT` where the query is this one."""
    options = StreamOptions({"row": "LONG"})
    written = _state_of(_compiled(_TEXT).with_options(tiebreak="row"), options)
    query = _compiled(text, order_by=order_by).with_options(tiebreak="row")
    try:
        StreamFormats(query.program, options).states.read(written, 0)
    except StateError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ("x.v > 1", "x.v > 2", "the query's text"),
        ("WITHIN 9 MILL", "WITHIN 8 MILL", "the query's text, WITHIN"),
        ("WITHIN 9 MILLISECONDS", "WITHIN 9 EVENTS", "the query's text, WITHIN"),
        ("BY k", "BY k, ok", "the query's text, PARTITION BY"),
        ("LIMIT 3", "LIMIT 4", "the query's text, the output"),
        ("CONSUME BY PARTITION", "", "the query's text, the output"),
        ("SELECT x", "SELECT x, y", "the query's text, the output"),
        ("name: STRING", "name: DATE", "the query's text, the output"),
        ("v: DOUBLE", "v: FLOAT", "the columns that are read, or their types"),
        ("FILTER x.v > 1", "FILTER y.v > 1", "the query's text"),
    ],
)
def test_the_state_of_another_query_is_refused(old: str, new: str, differs: str) -> None:
    told = _told(_TEXT.replace(old, new))
    assert "another query" in told
    assert differs in told
    assert "begin a new checkpoint" in told


def test_each_part_of_the_identity_is_told_by_itself() -> None:
    """Whichever of the hashes differs: what it is of is said, and nothing else."""
    states, data = _formats("time").states, _states("time")[-1].header
    places = [range(12, 18), *(range(at, at + 2) for at in range(18, 30, 2))]
    for what, (first, *_) in zip(IDENTITY, places, strict=True):
        changed = bytearray(data)
        changed[first] ^= 1
        with pytest.raises(StateError) as raised:
            states.read(_with_checksum(bytes(changed)), 0)
        assert f"what differs: {what}. Run" in str(raised.value)


def test_options_are_part_of_what_a_query_is() -> None:
    query, options = _compiled(_TEXT), StreamOptions({"row": "LONG"})
    written = _state_of(query.with_options(tiebreak="row"), options)
    for changed, types, differs in (
        (query, {}, "the tiebreak columns or their types"),
        (query.with_options(tiebreak="row"), {"row": "INT"}, "the tiebreak columns or their types"),
        (query.with_options(tiebreak="name"), {}, "the tiebreak columns or their types"),
        (query.with_options(tiebreak="row", order_by=(EVENT_TIME, "ts")), {"row": "LONG"}, "order"),
        (query.with_options(tiebreak="row", type_column="kind"), {"row": "LONG"}, ""),
    ):
        states = StreamFormats(changed.program, StreamOptions(types)).states
        if differs:
            with pytest.raises(StateError, match=rf"what differs: .*{differs}"):
                states.read(written, 0)
        else:
            # What the column of types is called is no matter: types are numbers in a state.
            assert states.read(written, 0).segments


def test_a_checkpoint_with_positions_is_told_the_option() -> None:
    """As of an earlier version, whose streams had positions where nobody had said anything."""
    query, options = _compiled(_TEXT).with_options(tiebreak="row"), StreamOptions({"row": "LONG"})
    bare = query.with_options(positions=False)
    for written, reads, told in (
        (query, bare, "begun with positions: go on with with_options(positions=True), or"),
        (bare, query, "begun without positions: go on with with_options(positions=False), or"),
    ):
        states = StreamFormats(reads.program, options).states
        with pytest.raises(StateError, match=re.escape(told)):
            states.read(_state_of(written, options), 0)


@pytest.mark.parametrize(
    "text",
    [
        _TEXT.replace("FILTER", "-- hot enough\n  FILTER"),
        _TEXT.replace("WHERE", "/* pairs: 'it''s' */ WHERE\n\t"),
        _TEXT.replace("; B", ";B").replace(", ", ",\n"),
        _TEXT + "\n-- the end",
    ],
)
def test_comments_and_spaces_make_no_other_query(text: str) -> None:
    assert text != _TEXT
    assert not _told(text)


def test_spaces_in_a_text_do() -> None:
    one, other = (
        normalised(f"SELECT * WHERE A FILTER A.k = '{text}'", "query")
        for text in ("a -- b", "a  -- b")
    )
    assert one != other


def test_of_a_file_with_several_queries_only_its_own_counts() -> None:
    first, second, changed = (
        f"QUERY {name}: SELECT * WHERE {formula}\n"
        for name, formula in (("one", "A ; B"), ("two", "B ; A"), ("two", "B : A"))
    )
    assert normalised(first + second, "one") == normalised(changed + first, "one")
    assert normalised(first + second, "two") != normalised(changed + first, "two")


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 7, 2**16 - 1])
def test_another_version_of_the_format_is_refused(version: int) -> None:
    """Before the checksum is looked at, which another format may make otherwise."""
    data = bytearray(_states("time")[0].header)
    struct.pack_into("<H", data, 4, version)
    with pytest.raises(StateError, match=f"of format {version}, and this version of celc reads"):
        _formats("time").states.read(bytes(data), 0)


@pytest.mark.parametrize("data", [b"", b"celc", bytes(64), b"clec" + bytes(100), b"\x80\x04" * 50])
def test_bytes_of_something_else_are_no_state(data: bytes) -> None:
    with pytest.raises(StateError, match="not one of celc, or has been cut off"):
        _formats("time").states.read(data, 0)
