"""Blocks: events as bytes, in Spark's shuffle and while they wait in a state.

A block whose events are all after the watermark is stored as it came. So its head says between
which times its events are.

====== ===== ================================================================================
offset type
====== ===== ================================================================================
0      u1    kind: 0, events as they came; 1, events too far ahead of the clock; 2, rows of a table
             of parameters, an Arrow message that is not compressed
1      u4    the number of events
5      u4    the number of further rows that were read, of undeclared types
9      i8    the earliest time of the events (microseconds since 1970); 0 without events
17     i8    the latest
25           the events, compressed (`compression`)
====== ===== ================================================================================
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from celc_runtime.plan.errors import StateError
from celc_runtime.stream.stored.compression import compressed, decompressed
from celc_runtime.stream.stored.rows import RowLayout, Rows, row_bytes

IN_TIME, TOO_FAR, RULES = 0, 1, 2
"""The kinds of blocks."""

_HEAD = struct.Struct("<BIIqq")


class Block(NamedTuple):
    """A block; the fields are those of the format above."""

    kind: int
    events: int
    undeclared: int
    least: int
    latest: int
    data: bytes  # all its bytes

    @classmethod
    def of(cls, data: bytes) -> Block:
        if len(data) < _HEAD.size:
            raise StateError("a block of events is cut off")
        kind, events, undeclared, least, latest = _HEAD.unpack_from(data)
        return cls(kind, events, undeclared, least, latest, data)

    @classmethod
    def of_content(cls, kind: int, count: int, content: bytes) -> Block:
        """A block of something else than events."""
        return cls(kind, count, 0, 0, 0, _HEAD.pack(kind, count, 0, 0, 0) + content)

    @property
    def content(self) -> bytes:
        """What is behind its head."""
        return self.data[_HEAD.size :]

    def rows(self, layout: RowLayout) -> Rows:
        """Its events, which are of this stream."""
        plain, _ = decompressed(self.data, _HEAD.size)
        return layout.read(plain, 0, self.events, checked=False)[0]


def block_of(
    layout: RowLayout, rows: Rows, time: int, *, kind: int = IN_TIME, undeclared: int = 0
) -> Block:
    """The block of events; `time`: the index of the column of their times."""
    count = len(rows.records)
    times = layout.values(rows, time)
    least, latest = (int(times.min()), int(times.max())) if count else (0, 0)
    head = _HEAD.pack(kind, count, undeclared, least, latest)
    return Block(kind, count, undeclared, least, latest, head + compressed(row_bytes(rows)))


def stored_rows(data: bytes, layout: RowLayout) -> list[Rows]:
    """The events of successive blocks in a state; raises StateError for bytes that are no
    blocks."""
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
