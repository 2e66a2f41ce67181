"""Sections: parts of a large segment that are read alone, told apart by hashes of partitions.

A micro-batch in which few partitions have events looks for what is known of these among all that a
bucket knows. Were a segment read as a whole, a hundred thousand partitions that wait for a deadline
would be unpacked for each event of another one. So a large segment of a bucket with few busy
partitions is cut by the highest bits of the hashes of its partitions: its first piece is a
directory, and each further piece a section. A bucket with many busy partitions needs most sections
anyway, and each costs a call of Spark's store, so its segments stay whole.

Rejected: a filter beside each segment that tells which partitions it has not. It saves unpacking,
but has to be read itself, a byte or two for each partition.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from celc_runtime.plan.errors import StateError
from celc_runtime.stream.key_table import grouped

MOST_BITS = 8
"""A segment has 2 ** 8 sections at the most."""

WHOLE = 4096
"""A segment of fewer rows is read as a whole in less time than a call of Spark's store takes."""

_ROWS = 256
"""Of a section, at the least, where partitions have about equally many rows."""

_DIRECTORY = np.dtype([("rows", "<u4"), ("checksum", "<u4"), ("size", "<u4")])


def section_bits(rows: int, busy: int) -> int:
    """How many bits of hashes tell the sections of a segment apart; 0: it has none.

    busy: of how many partitions a micro-batch runs events. They are in half of the sections at the
    most.
    """
    if rows < WHOLE:
        return 0
    bits = min(MOST_BITS, (rows // _ROWS).bit_length() - 1)
    return bits if 1 << bits >= 2 * max(1, busy) else 0


def numbers_of(hashes: np.ndarray, bits: int) -> np.ndarray:
    """int64[rows]: the sections of partitions. The low bits of the hashes (uint64) choose the
    bucket, and the middle ones places in tables of keys."""
    return (hashes >> np.uint64(64 - bits)).astype(np.int64)


def rows_of_sections(hashes: np.ndarray, bits: int) -> Iterator[np.ndarray]:
    """For each section int64: its rows, in their order."""
    order, edges = grouped(numbers_of(hashes, bits), 1 << bits)
    for section in range(1 << bits):
        yield order[edges[section] : edges[section + 1]]


def directory_bytes(rows: Sequence[int], sections: Sequence[bytes]) -> bytes:
    """The directory of sections: the rows, the checksum and the size of each."""
    found = np.zeros(len(sections), _DIRECTORY)
    found["rows"] = rows
    found["checksum"] = [zlib.crc32(section) for section in sections]
    found["size"] = [len(section) for section in sections]
    return found.tobytes()


class Directory:
    """The directory of a segment's sections.

    Raises StateError where the bytes are none of `rows` rows in so many sections.
    """

    def __init__(self, data: bytes, bits: int, rows: int) -> None:
        if len(data) != _DIRECTORY.itemsize << bits:
            raise StateError(f"the directory of its sections has {len(data):,} bytes")
        self._entries = np.frombuffer(data, _DIRECTORY)
        if int(self._entries["rows"].sum(dtype=np.int64)) != rows:
            raise StateError(f"{rows:,} rows do not fit its sections")

    def rows(self, section: int) -> int:
        """How many rows a section has."""
        return int(self._entries["rows"][section])

    def fits(self, section: int, data: bytes) -> bool:
        """Whether the bytes are those that were written as a section."""
        entry = self._entries[section]
        return (len(data), zlib.crc32(data)) == (int(entry["size"]), int(entry["checksum"]))
