"""The segments of a bucket in one micro-batch, and when they are merged.

A bucket would soon have a segment for each micro-batch. So the newest segments are merged when
together they are as large as the one before them (as in a log-structured merge tree). The number of
times that an event or a partition is written again is logarithmic. Kept events are merged only if
all of the segment leaves the window at nearly the same time. Large segments have sections if few
partitions are busy (`sections`).
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from celc_runtime.plan.errors import StateError
from celc_runtime.stream.stored.blocks import Block
from celc_runtime.stream.stored.key_table import hashes_of
from celc_runtime.stream.stored.sections import (
    Directory,
    directory_bytes,
    numbers_of,
    rows_of_sections,
    section_bits,
)
from celc_runtime.stream.stored.state import (
    KEPT,
    KEYS,
    WAITING,
    BucketState,
    Segment,
    StateFormat,
)
from celc_runtime.stream.stored.state_rows import (
    KeptEvents,
    KeyRecords,
    joined_events,
    joined_records,
    taken_events,
    taken_records,
)

PIECE = 1 << 22
"""The most bytes of a stored piece of a segment without sections. RocksDB and Spark's messages
allow far more, but are made for values of moderate size."""

_MOST_PIECES = 1 << 16

_TOGETHER = 4  # segments: the fewest that are merged


def due_for_merge(segments: Sequence[Segment], longest: int | None) -> list[Segment]:
    """The newest segments of a kind that are to be merged into one; empty: nothing to do.

    segments: all of the kind, the oldest first. longest: the most time between the first and the
    last event of the merged segment; None: any. At least four are merged, and the oldest of them is
    no larger than the others together. So everything that is written again goes into a segment of
    at least twice its size, and the number of segments of a bucket is about logarithmic in its
    size.
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

    load: the bytes stored under a number, or None.
    """

    def __init__(
        self, state: BucketState, format: StateFormat, load: Callable[[int], bytes | None]
    ) -> None:
        self._state = state
        self._format = format
        self._load = load
        self._read: dict[int, bytes] = {}
        self._searched: set[int] = set()
        self.written: dict[int, bytes] = {}
        self.removed: list[int] = []

    def of_kind(self, kind: int) -> list[Segment]:
        """The segments of a kind, the oldest first."""
        return self._state.of_kind(kind)

    def data(self, segment: Segment) -> bytes:
        """The bytes of a segment without sections; raises StateError if they have changed."""
        assert not segment.bits
        found = self._read.get(segment.number)
        if found is None:
            pieces = [self._load(place) for place in segment.places]
            found = b"".join(piece for piece in pieces if piece is not None)
            if len(found) != segment.size or zlib.crc32(found) != segment.checksum:
                raise self._not_there()
            self._read[segment.number] = found
        return found

    def kept(self, segment: Segment, hashes: np.ndarray | None = None) -> KeptEvents:
        """The events of a segment, with positions; raises StateError as `data` does.

        hashes: uint64; if given, at least the events of partitions with these hashes.
        """
        parts = self._parts(segment, hashes)
        return joined_events(
            self._format.layout, [self._format.kept(part, data) for part, data in parts]
        )

    def keys(self, segment: Segment, hashes: np.ndarray | None = None) -> KeyRecords:
        """The partitions of a segment; otherwise as `kept`."""
        parts = self._parts(segment, hashes)
        return joined_records(
            self._format.layout, [self._format.keys(part, data) for part, data in parts]
        )

    def _parts(
        self, segment: Segment, hashes: np.ndarray | None
    ) -> Iterator[tuple[Segment, bytes]]:
        """The arguments for `StateFormat`, for each section that is asked for, or for the
        segment."""
        if not segment.bits:
            if hashes is not None:
                self._searched.add(segment.number)
            yield segment, self.data(segment)
            return
        first, *places = segment.places
        data = self._piece(first)
        if zlib.crc32(data) != segment.checksum:
            raise self._not_there()
        try:
            directory = Directory(data, segment.bits, segment.rows)
        except StateError as problem:
            raise self._format.damaged(str(problem)) from None
        wanted: Iterable[int] = range(len(places))
        if hashes is not None:
            wanted = np.unique(numbers_of(hashes, segment.bits)).tolist()
        for section in wanted:
            data = self._piece(places[section])
            if not directory.fits(section, data):
                raise self._not_there()
            yield segment._replace(rows=directory.rows(section)), data

    def _piece(self, place: int) -> bytes:
        found = self.written.get(place)
        return found if found is not None else self._load(place) or b""

    def _not_there(self) -> StateError:
        return self._format.damaged("a segment is not there, or its checksum does not fit")

    def add(
        self,
        kind: int,
        rows: int,
        data: bytes,
        least: int,
        latest: int,
        values: int = 0,
        *,
        sections: Sequence[bytes] = (),
        place: int | None = None,
    ) -> None:
        """Add a segment of `rows` events or partitions between the times `least` and `latest`.

        sections: come after `data`, which is their directory then. place: among the segments (None:
        after them).
        """
        pieces = [data, *sections]
        if not sections:
            pieces = [data[at : at + PIECE] for at in range(0, max(1, len(data)), PIECE)]
        if len(pieces) >= _MOST_PIECES:
            raise StateError(f"a segment of {len(data):,} bytes is too large: use more buckets")
        number = self._state.next_segment
        self._state.next_segment += 1
        segment = Segment(
            number,
            kind,
            values,
            len(pieces),
            rows,
            checksum=zlib.crc32(data),
            bits=max(0, len(sections).bit_length() - 1),
            size=sum(map(len, pieces)),
            least=least,
            latest=latest,
        )
        if place is None:
            self._state.segments.append(segment)
        else:
            self._state.segments.insert(place, segment)
        if not sections:
            self._read[number] = data
        self.written.update(zip(segment.places, pieces, strict=True))

    def remove(self, segment: Segment) -> None:
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

    def add_kept(self, kept: KeptEvents, place: int | None = None, *, group: int = 0) -> None:
        """Add a segment of kept events of a group, unless there are none; `place`: as in `add`."""
        times = self._format.latest_times(kept.rows)
        if not len(times):
            return
        format, layout, count = self._format, self._format.layout, len(times)
        data, sections = self._written(
            count,
            lambda: hashes_of(layout.keys_of(kept.rows)),
            lambda index: format.kept_bytes(
                kept if index is None else taken_events(layout, kept, index)
            ),
        )
        earlier = format.leaves_earlier[group]
        least, latest = int(times.min()) - earlier, int(times.max()) - earlier
        self.add(KEPT, count, data, least, latest, group, sections=sections, place=place)

    def add_keys(self, records: KeyRecords, place: int | None = None) -> None:
        """Add a segment of partitions, unless there are none; `place`: as in `add`."""
        times = self._format.times_of(records)
        if not len(times):
            return
        format, layout, count = self._format, self._format.layout, len(times)
        data, sections = self._written(
            count,
            lambda: hashes_of(layout.of_keys.keys_of(records.rows)),
            lambda index: format.key_bytes(
                records if index is None else taken_records(layout, records, index)
            ),
        )
        least, latest = int(times.min()), int(times.max())
        bits = format.key_bits
        self.add(KEYS, count, data, least, latest, bits, sections=sections, place=place)

    # --- sections ---------------------------------------------------------------------------------

    def _bits(self, rows: int) -> int:
        """The number of hash bits for the sections of a segment of `rows` rows; 0: no sections."""
        return section_bits(rows, self._state.busy) if self._format.layout.keys else 0

    def _written(
        self,
        rows: int,
        hashes: Callable[[], np.ndarray],
        encoded: Callable[[np.ndarray | None], bytes],
    ) -> tuple[bytes, list[bytes]]:
        """The bytes of a segment, or of its directory and its sections.

        encoded: the bytes of some rows (int64; None: of all).
        """
        bits = self._bits(rows)
        if not bits:
            return encoded(None), []
        parts = list(rows_of_sections(hashes(), bits))
        sections = [encoded(part) for part in parts]
        return directory_bytes([len(part) for part in parts], sections), sections

    def cut_searched(self) -> None:
        """Write large segments again, with sections, if they were searched for few partitions."""
        for place, segment in enumerate([*self._state.segments]):
            if segment.number not in self._searched or not self._bits(segment.rows):
                continue
            if segment.kind == KEPT:
                self.add_kept(self.kept(segment), place, group=segment.values)
            else:
                self.add_keys(self.keys(segment), place)
            self.remove(segment)
