"""Blocks: events as bytes, as they go through Spark's shuffle and as they wait in a state.

A block that only has events which the watermark has not passed is stored as it came, so its head
tells the times between which its events lie.

====== ===== ================================================================================
offset type
====== ===== ================================================================================
0      u1    kind: 0, events as they came; 1, events too far ahead of the clock
1      u4    how many events
5      u4    how many more rows were read that the query does not declare the types of
9      i8    the least of the events' times (microseconds since 1970); 0 without events
17     i8    the greatest
25           the events, compressed (`compression`)
====== ===== ================================================================================
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from celc_runtime.plan.errors import StateError
from celc_runtime.stream.compression import compressed, decompressed
from celc_runtime.stream.rows import RowLayout, Rows, row_bytes

IN_TIME, TOO_FAR = 0, 1
"""The kinds of blocks."""

_HEAD = struct.Struct("<BIIqq")


class Block(NamedTuple):
    """A block; the fields are those of the format above. data: all its bytes."""

    kind: int
    events: int
    undeclared: int
    least: int
    latest: int
    data: bytes

    @classmethod
    def of(cls, data: bytes) -> Block:
        """The block whose bytes are."""
        if len(data) < _HEAD.size:
            raise StateError("a block of events is cut off")
        kind, events, undeclared, least, latest = _HEAD.unpack_from(data)
        return cls(kind, events, undeclared, least, latest, data)

    def rows(self, layout: RowLayout) -> Rows:
        """Its events, which come from this stream."""
        plain, _ = decompressed(self.data, _HEAD.size)
        return layout.read(plain, 0, self.events, checked=False)[0]


def block_of(
    layout: RowLayout, rows: Rows, time: int, *, kind: int = IN_TIME, undeclared: int = 0
) -> Block:
    """The block of events; `time`: the place of their times."""
    count = len(rows.records)
    times = layout.values(rows, time)
    least, latest = (int(times.min()), int(times.max())) if count else (0, 0)
    head = _HEAD.pack(kind, count, undeclared, least, latest)
    return Block(kind, count, undeclared, least, latest, head + compressed(row_bytes(rows)))


def stored_rows(data: bytes, layout: RowLayout) -> list[Rows]:
    """The events of blocks that stand one after another in a state. Raises StateError where bytes
    cannot be such blocks."""
    found, place = [], 0
    while place < len(data):
        if len(data) < place + _HEAD.size:
            raise StateError("a block of events is cut off")
        kind, count, *_ = _HEAD.unpack_from(data, place)
        if kind != IN_TIME:
            raise StateError(f"there is no stored block of kind {kind}")
        plain, place = decompressed(data, place + _HEAD.size)
        rows, end = layout.read(plain, 0, count)
        if end != len(plain):
            raise StateError(f"{len(plain) - end:,} bytes are left over")
        found.append(rows)
    return found
