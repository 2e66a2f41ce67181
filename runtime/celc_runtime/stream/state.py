"""The state of one partition of a stream, as bytes.

A header of 64 bytes, then the events that later matches may begin with or hold (*kept*), their
positions, and the events that wait for the watermark (*waiting*):

====== ===== =================================================================================
offset type
====== ===== =================================================================================
0      4s    ``celc``
4      u2    version of this format
6      u2    flags: 1, a frontier is known; 2, a timer for waiting events is set; 4, 8, 16: the
             number with this flag follows the header
8      u4    CRC-32 of all other bytes, before it and behind it
12     18s   the query that wrote the state: a hash of each of `IDENTITY`
30     u2    context of the first kept event (the past of the stream, as nested selectors see it)
32     u4    number of kept events
36     u4    number of waiting events
40     i8    position of the next event
48     i8    frontier: up to this time (microseconds since 1970) events have been run
56     i8    the timer for waiting events (milliseconds since 1970)
64     i8    with flag 4: the window's attribute at the last event, order-preserving
       i8    with flag 8: the time of the last event (microseconds), where keys expire
       i8    with flag 16: the timer for the expiry of the window or the key (milliseconds)
====== ===== =================================================================================

All numbers are little-endian. Kept events are rows as in `rows`; their positions (int64) follow,
then waiting events as rows.

State holds no nodes. Nodes could be written too (a node and a half for each kept event, 32 bytes
each, where a row takes some 20). But each reference in them would have to be checked before a
kernel follows it, separately for every form of the kernel (piles, union lists, tables of keys,
windows of a selector, remembered values). Bytes of events, however damaged, stay events, from which
nothing but a match can come. Both ways read the whole window. To read an event again costs, with
decoding, 0.1 µs where a query has code of its own, and 0.9 µs with the general engine (20,000 kept
events of `A ; B ; C`; a step without kept events costs 190 to 220 µs). The cost of nodes has not
been measured.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise

import numpy as np

from celc_runtime.plan.errors import StateError
from celc_runtime.plan.plan import Plan
from celc_runtime.stream.rows import RowLayout, Rows, row_bytes

_HEADER = struct.Struct("<4sHHI18sHIIqqq")
_MAGIC = b"celc"
_VERSION = 2
_HAS_FRONTIER, _HAS_TIMER, _HAS_MOMENTS = 1, 2, (4, 8, 16)
_MOMENT = struct.Struct("<q")
_CHECKSUM = slice(8, 12)
_MOST_POSITIONS = 2**62
_LONG_HASH = 6

IDENTITY = (
    "the query's text",
    "WITHIN",
    "PARTITION BY",
    "the output (SELECT, CONSUME BY, LIMIT, positions)",
    "the order columns",
    "the tiebreak columns or their types",
    "the columns that are read, or their types",
)
"""The parts in which the query that reads a state must equal the query that wrote it."""


@dataclass(slots=True)
class PartitionState:
    """One partition between micro-batches; times and timers in the units of the format above."""

    kept: Rows
    positions: np.ndarray
    waiting: Rows
    position: int = 0
    frontier: int | None = None
    run_timer: int | None = None
    context: int = 0
    window_value: int | None = None
    last_time: int | None = None
    expiry_timer: int | None = None


class StateFormat:
    """Reads and writes the states of one query."""

    def __init__(
        self,
        plan: Plan,
        layout: RowLayout,
        text: str,
        contexts: np.ndarray,
        *,
        sees_all: bool = False,
    ) -> None:
        """`contexts`: as in `Program`, by which numbers of contexts have a meaning. `sees_all`:
        events before the window are kept, too."""
        self._sees_all = sees_all
        self._plan = plan
        self._layout = layout
        self._contexts = max(1, len(contexts))
        self._identity = identity(plan, layout, text, contexts.tobytes())

    def fresh(self) -> PartitionState:
        """The state before the first event."""
        nothing = self._layout.nothing
        return PartitionState(nothing, np.zeros(0, np.int64), nothing)

    def written(self, state: PartitionState) -> bytes:
        """The bytes of a state."""
        flags = (
            _HAS_FRONTIER * (state.frontier is not None)
            + _HAS_TIMER * (state.run_timer is not None)
            + sum(
                flag
                for flag, moment in zip(_HAS_MOMENTS, _moments(state), strict=True)
                if moment is not None
            )
        )
        header = _HEADER.pack(
            _MAGIC,
            _VERSION,
            flags,
            0,
            self._identity,
            state.context,
            len(state.kept.records),
            len(state.waiting.records),
            state.position,
            state.frontier or 0,
            state.run_timer or 0,
        )
        parts = [header]
        parts += [_MOMENT.pack(moment) for moment in _moments(state) if moment is not None]
        if len(state.kept.records):
            parts += [row_bytes(state.kept), state.positions.astype("<i8").tobytes()]
        if len(state.waiting.records):
            parts.append(row_bytes(state.waiting))
        data = bytearray(b"".join(parts))
        data[_CHECKSUM] = struct.pack("<I", checksum_of(data))
        return bytes(data)

    def read(self, data: bytes) -> PartitionState:
        """The state that bytes hold.

        Raises StateError where they are no state, a state of another format or of another query, or
        have been changed. Every number on which a run depends is checked.
        """
        name = self._plan.name
        if len(data) < _HEADER.size or data[:4] != _MAGIC:
            raise StateError(f"query {name!r}: the state is not one of celc, or has been cut off")
        _, version, flags, checksum, found, context, kept, waiting, position, frontier, timer = (
            _HEADER.unpack_from(data)
        )
        if version != _VERSION:
            raise StateError(
                f"query {name!r}: the state is of format {version}, and this version of celc "
                f"reads format {_VERSION}: go on with the version that wrote it, or begin a new "
                "checkpoint"
            )
        if checksum != checksum_of(data):
            raise self._damaged("its checksum does not fit")
        if found != self._identity:
            raise self._other_query(found)
        if flags > 31 or not 0 <= position < _MOST_POSITIONS:
            raise self._damaged("its header says what no header does")
        state = self.fresh()
        state.position, state.context = position, context
        state.frontier = frontier if flags & _HAS_FRONTIER else None
        state.run_timer = timer if flags & _HAS_TIMER else None
        start = _HEADER.size
        try:
            moments: list[int | None] = []
            for flag in _HAS_MOMENTS:
                if not flags & flag:
                    moments.append(None)
                    continue
                if len(data) < start + _MOMENT.size:
                    raise StateError("its header is cut off")
                moments += _MOMENT.unpack_from(data, start)
                start += _MOMENT.size
            state.window_value, state.last_time, state.expiry_timer = moments
            if kept:
                state.kept, start = self._layout.read(data, start, kept)
                if start + 8 * kept > len(data):
                    raise StateError(f"{kept:,} positions do not fit in")
                state.positions = np.frombuffer(data, "<i8", kept, start).astype(np.int64)
                start += 8 * kept
            if waiting:
                state.waiting, start = self._layout.read(data, start, waiting)
            if start != len(data):
                raise StateError(f"{len(data) - start:,} bytes are left over")
            self._check_positions(state)
        except StateError as error:
            raise self._damaged(str(error)) from None
        if context >= self._contexts:
            raise self._damaged(f"context {context} does not exist")
        return state

    def _check_positions(self, state: PartitionState) -> None:
        positions, window = state.positions, self._plan.window
        if not len(positions):
            return
        if int(positions[0]) < 0 or (np.diff(positions) <= 0).any():
            raise StateError("its positions do not ascend")
        if int(positions[-1]) >= state.position:
            raise StateError("an event is behind the last one")
        if window is None or window.unit != "EVENTS" or self._sees_all:
            return
        if state.position - int(positions[0]) > window.size:
            raise StateError("an event is too old for the window")

    def _damaged(self, what: str) -> StateError:
        return StateError(
            f"query {self._plan.name!r}: the state is damaged: {what}; go back to a copy of the "
            "checkpoint, or begin a new one"
        )

    def _other_query(self, found: bytes) -> StateError:
        edges = [0, *range(_LONG_HASH, len(found) + 1, 2)]
        different = [
            what
            for what, (start, end) in zip(IDENTITY, pairwise(edges), strict=True)
            if found[start:end] != self._identity[start:end]
        ]
        return StateError(
            f"query {self._plan.name!r}: the checkpoint holds the state of another query; what "
            f"differs: {', '.join(different)}. Run the query that it was begun with, or begin a "
            "new checkpoint"
        )


def checksum_of(data: bytes | bytearray) -> int:
    """The checksum of a state: of all its bytes except the four of the checksum."""
    view = memoryview(data)
    return zlib.crc32(view[_CHECKSUM.stop :], zlib.crc32(view[: _CHECKSUM.start]))


def _moments(state: PartitionState) -> tuple[int | None, int | None, int | None]:
    """The numbers that may follow the header, in their order."""
    return state.window_value, state.last_time, state.expiry_timer


def identity(plan: Plan, layout: RowLayout, text: str, contexts: bytes) -> bytes:
    """The hashes of `IDENTITY`: six bytes for the first part, two for each other part. They are the
    same on every machine."""
    window = plan.window
    fields = [tuple(field) for field in layout.fields]
    own = {*plan.order_by, *plan.tiebreak}
    parts: tuple[object, ...] = (
        (normalised(text, plan.name), contexts.hex()),
        window and (window.unit, window.size, plan.window_attribute),
        plan.key_columns,
        (plan.output_ddl(), plan.consume_by, plan.limit, plan.positions),
        plan.order_by,
        (plan.tiebreak, [field for field in fields if field[0] in plan.tiebreak]),
        ([field for field in fields if field[0] not in own], layout.types, plan.type_column),
    )
    return b"".join(
        blake2b(repr(part).encode(), digest_size=2 if number else _LONG_HASH).digest()
        for number, part in enumerate(parts)
    )


_TOKEN = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|\w+|\s+|.", re.DOTALL)


def normalised(text: str, query: str) -> str:
    """A query's part of its file, without comments and meaningless spaces: the declarations, and
    the text from its name to the next query."""
    tokens = [
        token
        for token in _TOKEN.findall(text)
        if not token.isspace() and not token.startswith(("--", "/*"))
    ]
    starts = [
        place
        for place in range(len(tokens) - 2)
        if tokens[place].upper() == "QUERY" and tokens[place + 2] == ":"
    ]
    if not starts:
        return " ".join(tokens)
    ends = [*starts[1:], len(tokens)]
    names = [tokens[start + 1].strip("`") for start in starts]
    own = [
        tokens[start:end]
        for name, start, end in zip(names, starts, ends, strict=True)
        if name == query
    ]
    return " ".join([*tokens[: starts[0]], *(own[0] if own else tokens)])
