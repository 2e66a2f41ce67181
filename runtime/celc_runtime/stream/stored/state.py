"""The state of a bucket as bytes: a header, and segments.

A *segment* holds events or partitions, and is never changed. A micro-batch adds segments for what
it brought. A segment is removed as a whole when its last event has left the window, and small ones
are merged now and then (`segments`). So a micro-batch writes what is new, not what is known.

======= =========================================================================================
waiting events that wait for the watermark; events up to the header's frontier have been run and do
        not count any more
kept    events that later matches may begin with or contain, with their positions
keys    what else is known of partitions; of several records of a partition the last one counts
======= =========================================================================================

The header has 112 bytes, 48 for each segment, the oldest first, and from version 6 on a record of
what the query needs of a state (`needs`), so that another query can go on with it:

====== ===== =================================================================================
offset type
====== ===== =================================================================================
0      4s    ``celc``
4      u2    version of this format
6      u2    flags: 1, a frontier is known; 2, a timer is set
8      u4    CRC-32 of all other bytes, before it and after it
12     18s   the query that wrote the state: a hash of each part of it (`identity`)
30     u2    a hash of the table of parameters of a query FOR EACH; 0: there is none
32     u4    the number of buckets of the checkpoint
36     u4    the number of this bucket
40     i8    frontier: the bucket has been run up to this time (microseconds since 1970)
48     i8    evicted: kept events before this time may be gone
56     i8    the timer (milliseconds since 1970)
64     i8    if no partition counts its events: the number of the bucket's next event
72     i8    the number of the next segment
80     i8    the first watermark (microseconds since 1970) that passes a deadline of a kept event
88     i8    pending: the number of kept events with a deadline that the bucket has not passed
96     i8    busy: about the most partitions whose events one micro-batch runs
104    u8    the number of segments

0      i8    number of the segment
8      u1    its kind
9      u1    of keys: a bit for each value of partitions that it has; of kept events: the group
10     u2    the number of pieces in which it is stored
12     u4    rows
16     u4    CRC-32 of its bytes; with sections, of their directory
20     u4    the number of hash bits that number its sections (`sections`); 0: it has none
24     u8    bytes
32     i8    the earliest of its times: of its events (of a group that leaves earlier, so much
             earlier), or of the last events of its partitions
40     i8    the latest, likewise

0      u4    the bytes of the record; 0: nothing is said, as in version 5, which ends here
4            the record
====== ===== =================================================================================

All numbers are little-endian. Waiting events are in blocks, as they came or one after another
(`blocks`). The other segments are compressed as a whole (`compression`). Events are rows as in
`rows`; after kept events come their positions (int64) and, for nested selectors, the contexts
before them (uint16). A segment of keys has the partitions as rows, and after them the values of
`KEY_VALUES` that it has, one after another, and `KEPT_ROWS` where a query needs it. All of these
are written as planes of bytes.

Long: all that a state can hold, and what is checked when it is read.

A state holds events, and no nodes of the kernels. Reading an event again costs some 0.1 µs if the
query has its own code. Nodes would have to be written too, and each reference in them checked
before a kernel follows it, separately for every form of the kernel. Damaged bytes of events are
still events, and nothing but a match can come from them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import ALWAYS
from celc_runtime.plan.errors import StateError
from celc_runtime.plan.plan import Plan
from celc_runtime.stream.stored.blocks import stored_rows
from celc_runtime.stream.stored.compression import compressed, decompressed, from_planes, planes
from celc_runtime.stream.stored.identity import identity, other_query
from celc_runtime.stream.stored.known_starts import END_OF_TIME
from celc_runtime.stream.stored.rows import RowLayout, Rows, row_bytes
from celc_runtime.stream.stored.sections import MOST_BITS
from celc_runtime.stream.stored.state_rows import (
    KEPT_ROWS,
    KEY_VALUES,
    KeptEvents,
    KeyRecords,
    unknown_keys,
)

_HEADER = struct.Struct("<4sHHI18sHIIqqqqqqqqQ")  # a `_Header`
_ENTRY = struct.Struct("<qBBHIIIQqq")  # a `Segment`
_LENGTH = struct.Struct("<I")  # of the record
_MAGIC = b"celc"
_VERSION = 6
_READ_VERSIONS = (5, _VERSION)
_HAS_FRONTIER, _HAS_TIMER = 1, 2
_CHECKSUM = slice(8, 12)
_MOST_VALUES = 1 << len(KEY_VALUES.names or ())
_MOST_POSITIONS = 2**62
_MOST_SEGMENTS = 2**47  # each has 2 ** 16 numbers of pieces

WAITING, KEPT, KEYS = 0, 1, 2
"""The kinds of segments."""


class _Header(NamedTuple):
    """The numbers of a header, in the order of the format above."""

    magic: bytes
    version: int
    flags: int
    checksum: int
    identity: bytes
    rules: int
    buckets: int
    number: int
    frontier: int
    evicted: int
    timer: int
    next_event: int
    next_segment: int
    next_deadline: int
    pending: int
    busy: int
    segments: int


class Segment(NamedTuple):
    """The entry of a segment in the header, in the order of the format above."""

    number: int
    kind: int
    values: int
    pieces: int
    rows: int
    checksum: int
    bits: int
    size: int
    least: int
    latest: int

    @property
    def places(self) -> list[int]:
        """The numbers under which its pieces are stored."""
        return [self.number << 16 | piece for piece in range(self.pieces)]


@dataclass(slots=True)
class BucketState:
    """The header of a bucket between micro-batches, in the units of the format above."""

    buckets: int
    number: int
    frontier: int | None = None
    evicted: int = ALWAYS
    timer: int | None = None
    next_event: int = 0
    next_segment: int = 0
    next_deadline: int = END_OF_TIME
    pending: int = 0
    busy: int = 0
    segments: list[Segment] = field(default_factory=list)
    record: bytes = b""  # of what the query needs
    written_for: bytes | None = None
    """The record of the query that wrote it, if that is another one."""

    def of_kind(self, kind: int) -> list[Segment]:
        """The segments of a kind, the oldest first."""
        return [segment for segment in self.segments if segment.kind == kind]

    @property
    def size(self) -> int:
        return (
            _HEADER.size
            + _ENTRY.size * len(self.segments)
            + _LENGTH.size
            + len(self.record)
            + sum(segment.size for segment in self.segments)
        )


class StateFormat:
    """Reads and writes the states of one query.

    values: the names of the `KEY_VALUES` that partitions have; empty: none. buckets: the number of
    buckets that the stream asks for. leaves_earlier: for each group of kept events, how many
    microseconds before the window has passed they leave. layout: of events. rules: a hash of the
    rows of a query FOR EACH, 0: there are none. record: makes the record of what the query needs.
    accepts: the records of other queries whose states it goes on with, by their identities.
    """

    def __init__(
        self,
        plan: Plan,
        layout: RowLayout,
        text: str,
        contexts: np.ndarray,
        values: tuple[str, ...],
        *,
        buckets: int,
        rules: int = 0,
        leaves_earlier: Sequence[int] = (0,),
        record: Callable[[], bytes] = bytes,
        accepts: Mapping[bytes, bytes] = MappingProxyType({}),
    ) -> None:
        source = plan.source
        self._plan = plan
        self._rules = rules
        self.layout = layout
        self._contexts = max(1, len(contexts))
        self._has_contexts = len(contexts) > 0
        self._identity_of = partial(identity, layout=layout, text=text, contexts=contexts.tobytes())
        self._identity = self._identity_of(plan)
        self._buckets = buckets
        self._record = record
        self._accepts = accepts
        self.leaves_earlier = tuple(leaves_earlier)
        self._most_values = (1, len(self.leaves_earlier), _MOST_VALUES)  # by kind
        time = source.order_by[0] if source.uncertain is None else source.uncertain.high
        self._latest = [f.name for f in layout.fields].index(time)
        self.values = values

    def with_layout(self, layout: RowLayout) -> StateFormat:
        """The format of segments with the events of another query, which needs no contexts."""
        found = copy(self)
        found.layout = layout
        order = self.layout.fields[self._latest].name
        found._latest = [f.name for f in layout.fields].index(order)
        return found

    # --- headers ----------------------------------------------------------------------------------

    def fresh(self, number: int) -> BucketState:
        """The state of a bucket before its first event."""
        return BucketState(self._buckets, number, record=self._record())

    @property
    def identity(self) -> bytes:
        """The query, as headers name it."""
        return self._identity

    def written(self, state: BucketState) -> bytes:
        flags = _HAS_FRONTIER * (state.frontier is not None) + _HAS_TIMER * (
            state.timer is not None
        )
        header = _Header(
            magic=_MAGIC,
            version=_VERSION,
            flags=flags,
            checksum=0,
            identity=self._identity,
            rules=self._rules,
            buckets=state.buckets,
            number=state.number,
            frontier=state.frontier or 0,
            evicted=state.evicted,
            timer=state.timer or 0,
            next_event=state.next_event,
            next_segment=state.next_segment,
            next_deadline=state.next_deadline,
            pending=state.pending,
            busy=state.busy,
            segments=len(state.segments),
        )
        parts = [_HEADER.pack(*header), *(_ENTRY.pack(*one) for one in state.segments)]
        parts += [_LENGTH.pack(len(state.record)), state.record]
        data = bytearray(b"".join(parts))
        data[_CHECKSUM] = struct.pack("<I", checksum_of(data))
        return bytes(data)

    def read(self, data: bytes, number: int) -> BucketState:
        """The state with these header bytes, for the bucket of this number.

        Raises StateError if the bytes are not a header, were changed, or are of another format,
        query or bucket, and if the checkpoint has another number of buckets.
        """
        name = self._plan.name
        if len(data) < _HEADER.size or data[:4] != _MAGIC:
            raise StateError(f"query {name!r}: the state is not one of celc, or has been cut off")
        header = _Header._make(_HEADER.unpack_from(data))
        if header.version not in _READ_VERSIONS:
            raise StateError(
                f"query {name!r}: the state is of format {header.version}, and this version of "
                f"celc reads formats {_READ_VERSIONS[0]} and {_VERSION}: go on with the version "
                "that wrote it, or begin a new checkpoint"
            )
        if header.checksum != checksum_of(data):
            raise self.damaged("its checksum does not fit")
        written_for = self._checked_query(header.identity)
        if bool(header.rules) != bool(self._rules):
            raise self.damaged("its header says what no header does")
        if header.rules != self._rules:
            raise StateError(
                f"query {name!r}: the checkpoint was begun with another table of parameters: its "
                "rows are fixed for a checkpoint, since the state is kept for each row; give the "
                "table that it was begun with, or begin a new checkpoint"
            )
        if header.buckets != self._buckets:
            raise StateError(
                f"query {name!r}: the checkpoint was begun with {header.buckets:,} buckets, and "
                f"this stream has {self._buckets:,}: say match_stream(df, buckets={header.buckets})"
            )
        if (
            header.flags > 3
            or header.number != number
            or not 0 <= header.next_event < _MOST_POSITIONS
            or not 0 <= header.next_segment < _MOST_SEGMENTS
            or min(header.pending, header.busy) < 0
        ):
            raise self.damaged("its header says what no header does")
        end = _HEADER.size + header.segments * _ENTRY.size
        record = _record_at(data, end, header.version)
        if record is None:
            raise self.damaged(f"{header.segments:,} segments do not fit in")
        state = BucketState(self._buckets, number)
        state.written_for = written_for
        state.record = (record if written_for is None else b"") or self._record()
        state.frontier = header.frontier if header.flags & _HAS_FRONTIER else None
        state.timer = header.timer if header.flags & _HAS_TIMER else None
        state.evicted, state.next_event = header.evicted, header.next_event
        state.next_segment, state.next_deadline = header.next_segment, header.next_deadline
        state.pending, state.busy = header.pending, header.busy
        entries = map(Segment._make, _ENTRY.iter_unpack(data[_HEADER.size : end]))
        state.segments = list(map(self._checked, entries))
        numbers = {s.number for s in state.segments}
        if len(numbers) < header.segments or min(numbers, default=0) < 0:
            raise self.damaged("its segments are not told apart")
        if max(numbers, default=-1) >= header.next_segment:
            raise self.damaged("the number of the next segment is taken")
        return state

    def _checked_query(self, found: bytes) -> bytes | None:
        """The record of the query that wrote a header, if that is another one."""
        if found == self._identity:
            return None
        if found in self._accepts:
            return self._accepts[found]
        answer = self._plan.answer
        answer = replace(answer, positions=not answer.positions)
        other = self._identity_of(replace(self._plan, answer=answer))
        raise other_query(self._plan, found, self._identity, other)

    def _checked(self, one: Segment) -> Segment:
        wrong = one.kind > KEYS or not one.rows or not one.pieces or one.least > one.latest
        if one.bits:
            wrong = wrong or one.kind == WAITING or one.bits > MOST_BITS
            wrong = wrong or one.pieces != 1 + (1 << one.bits)
        if (
            wrong
            or one.values >> len(KEY_VALUES.names or ())
            or one.values >= self._most_values[one.kind]
        ):
            raise self.damaged("its header says what no header does")
        return one

    # --- segments ---------------------------------------------------------------------------------

    def kept_bytes(self, kept: KeptEvents) -> bytes:
        parts = [row_bytes(kept.rows), planes(kept.positions.astype("<i8", copy=False))]
        if self._has_contexts:
            parts.append(planes(kept.contexts.astype("<u2", copy=False)))
        return compressed(b"".join(parts))

    def key_bytes(self, records: KeyRecords) -> bytes:
        parts = [row_bytes(records.rows)]
        parts += [planes(records.values[name]) for name in self.values]
        return compressed(b"".join(parts))

    @property
    def key_bits(self) -> int:
        """The bits of the values that partitions have."""
        names = KEY_VALUES.names or ()
        return sum(1 << names.index(name) for name in self.values if name != KEPT_ROWS)

    def latest_times(self, rows: Rows) -> np.ndarray:
        return self.layout.values(rows, self._latest)

    def times_of(self, records: KeyRecords) -> np.ndarray:
        """int64[rows]: the times of partitions' last events; if not noted, of the end of their
        run."""
        found: np.ndarray = records.values["last" if "last" in self.values else "frontier"]
        return found

    def waiting(self, segment: Segment, data: bytes) -> Rows:
        """The events of a segment; raises StateError for bytes that cannot be events."""
        with _Damage(self):
            rows = self.layout.joined(stored_rows(data, self.layout))
            if len(rows.records) != segment.rows:
                found = len(rows.records)
                raise StateError(f"{segment.rows:,} events do not fit: {found:,} are there")
        return rows

    def kept(self, segment: Segment, data: bytes) -> KeptEvents:
        """The events of a segment, with positions; raises StateError likewise."""
        with _Damage(self):
            data = _all_decompressed(data)
            rows, end = self.layout.read(data, 0, segment.rows)
            positions, end = _numbers(data, end, "<i8", segment.rows)
            contexts = np.zeros(0, np.uint16)
            if self._has_contexts:
                contexts, end = _numbers(data, end, "<u2", segment.rows)
            _check_end(data, end)
            _check_between("a position", positions, _MOST_POSITIONS)
            _check_between("a context", contexts, self._contexts)
        return KeptEvents(rows, positions, contexts)

    def keys(self, segment: Segment, data: bytes) -> KeyRecords:
        """The partitions of a segment; raises StateError likewise."""
        with _Damage(self):
            data = _all_decompressed(data)
            rows, end = self.layout.of_keys.read(data, 0, segment.rows)
            values = unknown_keys(segment.rows, self.layout)
            for bit, name in enumerate(KEY_VALUES.names or ()):
                if segment.values >> bit & 1:
                    values[name], end = _numbers(data, end, KEY_VALUES[name], segment.rows)
                elif name == "last":
                    values[name] = values["frontier"]  # it was written without key_ttl
            if self.layout.most_kept:
                kept = values.dtype[KEPT_ROWS]
                values[KEPT_ROWS], end = _numbers(data, end, kept, segment.rows)
            _check_end(data, end)
            _check_between("a position", values["position"], _MOST_POSITIONS)
            _check_between("a position", values["first"], _MOST_POSITIONS)
            _check_between("a position", values["after"] + 1, _MOST_POSITIONS)
            _check_between("a context", values["context"], self._contexts)
        return KeyRecords(rows, values)

    def damaged(self, what: str) -> StateError:
        return StateError(
            f"query {self._plan.name!r}: the state is damaged: {what}; go back to a copy of the "
            "checkpoint, or begin a new one"
        )


class _Damage:
    """Adds to a StateError raised inside it that the state is damaged."""

    def __init__(self, format: StateFormat) -> None:
        self._format = format

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, problem: BaseException | None, _trace: object) -> None:
        if isinstance(problem, StateError):
            raise self._format.damaged(str(problem)) from None


def _numbers(data: bytes, start: int, format: str | np.dtype, count: int) -> tuple[np.ndarray, int]:
    dtype = np.dtype(format)
    end = start + count * dtype.itemsize
    if end > len(data):
        raise StateError(f"{count:,} numbers do not fit in")
    return from_planes(data, start, count, dtype), end


def _all_decompressed(data: bytes) -> bytes:
    plain, end = decompressed(data)
    _check_end(data, end)
    return plain


def _check_end(data: bytes, end: int) -> None:
    if end != len(data):
        raise StateError(f"{len(data) - end:,} bytes are left over")


def _check_between(what: str, values: np.ndarray, limit: int) -> None:
    if len(values) and (int(values.min()) < 0 or int(values.max()) >= limit):
        raise StateError(f"{what} is not between 0 and {limit:,}")


def buckets_in(header: bytes) -> int | None:
    """The number of buckets in a header; None: it is not a header of a format that is read."""
    if len(header) < _HEADER.size:
        return None
    found = _Header._make(_HEADER.unpack_from(header))
    is_read = found.magic == _MAGIC and found.version in _READ_VERSIONS
    return found.buckets if is_read else None


def places_in(header: bytes) -> list[int]:
    """The numbers under which the segments of a bucket are stored, as its header says."""
    entries = map(Segment._make, _ENTRY.iter_unpack(header[_HEADER.size : _end_of_entries(header)]))
    return [place for one in entries for place in one.places]


def query_in(header: bytes) -> tuple[bytes, bytes] | None:
    """The identity of the query that wrote a header, and the record of what it needs (empty: it
    says nothing); None: it is no whole header of a format that is read."""
    if buckets_in(header) is None:
        return None
    found = _Header._make(_HEADER.unpack_from(header))
    if found.checksum != checksum_of(header):
        return None  # whoever reads the state says so
    record = _record_at(header, _end_of_entries(header), found.version)
    return None if record is None else (found.identity, record)


def _record_at(header: bytes, place: int, version: int) -> bytes | None:
    """The record that begins at a byte; empty: that version has none; None: it does not fit in."""
    if version == _READ_VERSIONS[0]:
        return b"" if len(header) == place else None
    if len(header) < place + _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(header, place)
    begin = place + _LENGTH.size
    return header[begin:] if len(header) == begin + length else None


def _end_of_entries(header: bytes) -> int:
    found = _Header._make(_HEADER.unpack_from(header))
    return _HEADER.size + found.segments * _ENTRY.size


def pending_in(header: bytes) -> int:
    """How many kept events of a bucket have a deadline to come, as its header says."""
    return _Header._make(_HEADER.unpack_from(header)).pending


def checksum_of(data: bytes | bytearray) -> int:
    """The checksum of a header: of all its bytes except the four of the checksum."""
    view = memoryview(data)
    return zlib.crc32(view[_CHECKSUM.stop :], zlib.crc32(view[: _CHECKSUM.start]))
