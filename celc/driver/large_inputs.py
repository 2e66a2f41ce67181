"""Events that may be more than memory holds: gathered if they fit, else read in ranges of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from celc_runtime.arrow.arrays import plain_batch
from celc_runtime.plan.errors import EventError
from celc_runtime.program import Program
from celc_runtime.run.by_keys import Keys, matches_by_keys

Read = Callable[[], Iterable[pa.RecordBatch]]

TIMES = 6
"""The memory of a run over events that are gathered, in times of the events alone: they are sorted,
moved, and their matches stand beside them (`benchmarks/large_file.py`)."""

_FEW = 1 << 12  # rows of a batch, which show how many bytes a row has

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")
_FREE = Path("/proc/meminfo")


def gathered(read: Read, most: int | None = None) -> pa.Table | None:
    """All events as one table; None where they take more than `most` bytes."""
    found, size = [], 0
    for batch in map(plain_batch, read()):
        size += batch.nbytes
        if most is not None and size > most:
            return None
        found.append(pa.Table.from_batches([batch]))
    return pa.concat_tables(found, promote_options="default")


def matches_in_ranges(
    program: Program, read: Read, memory: int, threads: int | None
) -> Iterator[pa.RecordBatch]:
    """The matches of a keyed query, with as many events in memory as fit into so many bytes.

    A key whose events do not fit is read all the same.
    """
    keys, size = Keys(program), 0
    for batch in read():
        keys.add(batch)
        few = plain_batch(batch.slice(0, _FEW))
        size += few.nbytes * len(batch) // max(1, len(few))
    ranges = keys.ranges(-(-size * TIMES // memory))
    return matches_by_keys(program, read, ranges, threads)


def usable_memory() -> int | None:
    """Half of the memory that is free for this process, in bytes; None where it is not known."""
    free = []
    try:
        lines = dict(line.split(":", 1) for line in _FREE.read_text().splitlines())
        free.append(int(lines["MemAvailable"].split()[0]) << 10)
        most, held = (Path(name).read_text().strip() for name in _LIMITS)
        free.append(int(most) - int(held))
    except (OSError, KeyError, ValueError):  # no Linux, no container, or one without a limit
        pass
    return max(1, min(free) // 2) if free else None


def too_large(program: Program, why: str, memory: int) -> EventError:
    """The error that events do not fit the memory that was given."""
    return EventError(
        f"query {program.name!r}: the events do not fit {memory:,} bytes of memory, and they have "
        f"to be there together, because {why}"
    )
