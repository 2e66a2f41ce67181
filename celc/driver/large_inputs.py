"""Events that may be more than memory holds: gathered if they fit, else read in ranges of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from celc_runtime.arrow.arrays import plain_batch
from celc_runtime.plan.errors import EventError
from celc_runtime.program import Program
from celc_runtime.run.by_keys import Keys, matches_by_keys

Read = Callable[[], Iterable[pa.RecordBatch]]

TIMES = 6
"""How many times the size of the events a run over gathered events needs, in memory: they are
sorted and moved, and their matches stand beside them (`benchmarks/large_file.py`)."""

_FEW = 1 << 12  # rows of a batch, which show how many bytes a row has

MOST_READINGS = 64  # of all events, however little memory there is

_FREE = Path("/proc/meminfo")
_CONTAINER = Path("/sys/fs/cgroup")


class TooMany(NamedTuple):
    """Events that do not fit: those that were read, and the others."""

    read: list[pa.Table]
    others: Iterator[pa.RecordBatch]


def gathered(read: Read, schema: pa.Schema, most: int | None = None) -> pa.Table | TooMany:
    """All events as one table, if they do not take more than `most` bytes. schema: of the table
    where no batch is read."""
    found, size, others = [], 0, iter(read())
    for batch in others:
        found.append(pa.Table.from_batches([plain_batch(batch)]))
        size += found[-1].nbytes
        if most is not None and size > most:
            return TooMany(found, others)
    if not found:
        return schema.empty_table()
    return pa.concat_tables(found, promote_options="default")


def matches_in_ranges(
    program: Program, known: TooMany, read: Read, memory: int, threads: int | None
) -> Iterator[pa.RecordBatch]:
    """The matches of a keyed query, whose events are read in several ranges of keys.

    known: what was read of the events before. memory: bytes for one range. A range needs more than
    that if one key has more events, or if more than MOST_READINGS ranges would be needed.
    """
    keys, size = Keys(program), 0
    while known.read:
        # Each is dropped before the others are read.
        for batch in known.read.pop(0).to_batches():
            size += _bytes_of(keys, batch)
    for batch in known.others:
        size += _bytes_of(keys, batch)
    ranges = keys.ranges(min(MOST_READINGS, -(-size * TIMES // memory)))
    return matches_by_keys(program, read, ranges, threads)


def _bytes_of(keys: Keys, batch: pa.RecordBatch) -> int:
    """The bytes of a batch, about, whose keys are looked at."""
    keys.add(batch)
    few = plain_batch(batch.slice(0, _FEW))
    return int(few.nbytes * len(batch) // max(1, len(few)))


def usable_memory() -> int | None:
    """Three quarters of the memory that is free, in bytes; None where it is not known."""
    free = [one for one in (_free_of_machine(), _free_of_container()) if one is not None]
    return max(1, min(free) * 3 // 4) if free else None


def _free_of_machine() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in _FREE.read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError):
        return None  # not Linux


def _free_of_container() -> int | None:
    try:
        most, held = (
            int((_CONTAINER / name).read_text()) for name in ("memory.max", "memory.current")
        )
        parts = dict(line.split() for line in (_CONTAINER / "memory.stat").read_text().splitlines())
        # Pages of files that were read are given back when memory is asked for.
        return most - held + int(parts["file"])
    except (OSError, KeyError, ValueError):
        return None  # no container, or one without a limit, which is "max"


def too_large(program: Program, why: str, memory: int) -> EventError:
    """The error that events do not fit the memory that was given."""
    return EventError(
        f"query {program.name!r}: the events do not fit {memory:,} bytes of memory, and they have "
        f"to be there together, because {why}: give more memory, or sort the events by the order "
        "of the query"
    )
