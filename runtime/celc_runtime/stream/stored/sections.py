"""Sections: parts of a large segment that are read separately, by hashes of partitions.

A micro-batch needs what is known of its partitions, among all that a bucket knows. If a segment
were read as a whole, a hundred thousand partitions that wait for a deadline would be unpacked for
each event of another one. So in a bucket with few busy partitions, a large segment is cut by the
highest bits of the hashes of its partitions. Its first piece is a directory, and each further piece
a section. A bucket with many busy partitions needs most sections anyway, and each costs a call of
Spark's store. So its segments stay whole.

Rejected: a Bloom filter for each segment. It saves unpacking, but must be read itself: one or two
bytes for each partition.
"""

import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from celc_runtime.plan.errors import StateError
from celc_runtime.stream.stored.key_table import grouped

MOST_BITS = 8  # a segment has at most 2 ** 8 sections

WHOLE = 4096  # rows: reading a smaller segment takes less time than a call of Spark's store

_ROWS = 256  # rows of a section at least, if partitions have about equally many

_DIRECTORY = np.dtype([("rows", "<u4"), ("checksum", "<u4"), ("size", "<u4")])


def section_bits(rows: int, busy: int) -> int:
    """The number of hash bits that number the sections of a segment; 0: it has none.

    busy: the number of partitions whose events a micro-batch runs. They are in at most half of the
    sections.
    """
    if rows < WHOLE:
        return 0
    bits = min(MOST_BITS, (rows // _ROWS).bit_length() - 1)
    return bits if 1 << bits >= 2 * max(1, busy) else 0


def numbers_of(hashes: np.ndarray, bits: int) -> np.ndarray:
    """int64[rows]: the sections of partitions, from the highest bits of the hashes (uint64).

    The low bits choose the bucket, the middle bits the slots in tables of keys.
    """
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

    Raises StateError if the bytes are not that of `rows` rows in this many sections.
    """

    def __init__(self, data: bytes, bits: int, rows: int) -> None:
        if len(data) != _DIRECTORY.itemsize << bits:
            raise StateError(f"the directory of its sections has {len(data):,} bytes")
        self._entries = np.frombuffer(data, _DIRECTORY)
        if int(self._entries["rows"].sum(dtype=np.int64)) != rows:
            raise StateError(f"{rows:,} rows do not fit its sections")

    def rows(self, section: int) -> int:
        return int(self._entries["rows"][section])

    def fits(self, section: int, data: bytes) -> bool:
        """Whether the bytes are those that were written as a section."""
        entry = self._entries[section]
        return (len(data), zlib.crc32(data)) == (int(entry["size"]), int(entry["checksum"]))
