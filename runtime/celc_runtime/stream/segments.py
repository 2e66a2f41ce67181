"""The segments of a bucket in one micro-batch, and when they are merged.

A bucket would soon have a segment for each micro-batch. So the newest ones are merged when they are
together as large as the one before them. An event or a partition is written anew as often as the
logarithm of their number says. Kept events are merged only as far as all of a segment leaves the
window at nearly the same time.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

from celc_runtime.plan.errors import StateError
from celc_runtime.stream.blocks import Block
from celc_runtime.stream.state import (
    KEPT,
    KEYS,
    WAITING,
    BucketState,
    KeptEvents,
    KeyRecords,
    Segment,
    StateFormat,
)

PIECE = 1 << 22
"""The most bytes of a stored piece of a segment. RocksDB and Spark's messages hold far more, but
are made for values of moderate size."""

_MOST_PIECES = 1 << 16

_TOGETHER = 4
"""At least so many segments are merged."""


def due_for_merge(segments: Sequence[Segment], longest: int | None) -> list[Segment]:
    """The newest segments of a kind that are to be merged into one; none: nothing is to be done.

    segments: all of the kind, the oldest first. longest: between the first and the last time of the
    merged segment there may be so much time; None: any. They are at least four, and the oldest is
    no larger than the others together. So whatever is written anew comes into a segment of twice
    its size, and a bucket has few segments more than the logarithm of its size.
    """
    first = 0
    if longest is not None:
        while first < len(segments) and _span(segments[first:]) > longest:
            first += 1
    behind = sum(segment.size for segment in segments[first:])
    for place in range(first, len(segments) - _TOGETHER + 1):
        behind -= segments[place].size
        if segments[place].size <= behind:
            return [*segments[place:]]
    return []


def _span(segments: Sequence[Segment]) -> int:
    return max(s.latest for s in segments) - min(s.least for s in segments)


class Segments:
    """The segments of a bucket in one micro-batch: read when needed, added, and removed.

    load: the bytes stored under a number, None where there are none.
    """

    def __init__(
        self, state: BucketState, format: StateFormat, load: Callable[[int], bytes | None]
    ) -> None:
        self._state = state
        self._format = format
        self._load = load
        self._read: dict[int, bytes] = {}
        self.written: dict[int, bytes] = {}
        self.removed: list[int] = []

    def data(self, segment: Segment) -> bytes:
        """The bytes of a segment. Raises StateError where they are not those that were written."""
        found = self._read.get(segment.number)
        if found is None:
            pieces = [self._load(place) for place in segment.places]
            found = b"".join(piece for piece in pieces if piece is not None)
            if len(found) != segment.size or zlib.crc32(found) != segment.checksum:
                raise self._format.damaged("a segment is not there, or its checksum does not fit")
            self._read[segment.number] = found
        return found

    def add(
        self, kind: int, rows: int, data: bytes, least: int, latest: int, values: int = 0
    ) -> None:
        """Add a segment of so many events or partitions, and the times between which they lie."""
        pieces = max(1, -(-len(data) // PIECE))
        if pieces >= _MOST_PIECES:
            raise StateError(f"a segment of {len(data):,} bytes is too large: use more buckets")
        number = self._state.next_segment
        self._state.next_segment += 1
        segment = Segment(
            number,
            kind,
            values,
            pieces,
            rows,
            zlib.crc32(data),
            len(data),
            least,
            latest,
        )
        self._state.segments.append(segment)
        self._read[number] = data
        for piece, place in enumerate(segment.places):
            self.written[place] = data[piece * PIECE : (piece + 1) * PIECE]

    def remove(self, segment: Segment) -> None:
        """Remove a segment."""
        self._state.segments.remove(segment)
        for place in segment.places:
            if self.written.pop(place, None) is None:
                self.removed.append(place)

    def add_waiting(self, blocks: Sequence[Block]) -> None:
        """Add a segment of waiting events, unless there are none."""
        found = [block for block in blocks if block.events]
        if found:
            self.add(
                WAITING,
                sum(block.events for block in found),
                b"".join(block.data for block in found),
                min(block.least for block in found),
                max(block.latest for block in found),
            )

    def add_kept(self, kept: KeptEvents) -> None:
        """Add a segment of kept events, unless there are none."""
        times = self._format.times_of_rows(kept.rows)
        if len(times):
            data = self._format.kept_bytes(kept)
            self.add(KEPT, len(times), data, int(times.min()), int(times.max()))

    def add_keys(self, records: KeyRecords) -> None:
        """Add a segment of partitions, unless there are none."""
        times = self._format.times_of(records)
        if len(times):
            data, values = self._format.key_bytes(records)
            self.add(KEYS, len(times), data, int(times.min()), int(times.max()), values)
