"""Columns of matches that one kernel looks up together.

Most answers are numbers and times of the events of matches. To look up one column after another
asks Python for each, and a thread that does so waits for the lock of Python each time another one
has it. Here one call of a kernel, which holds no lock, writes all columns of 64 bits of a batch. It
also finds the row of an event and its value in one step.

Others are looked up one by one: texts, columns with NULL, and those of events of earlier batches.
So are all columns until machine code for this is worth its making.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import room_of, whole_column
from celc_runtime.arrow.event_store import POSITION, Inside
from celc_runtime.jit.instructions import long_word_at
from celc_runtime.jit.kernels import is_due, njit

LEAST_MATCHES = 1 << 12  # of fewer, one look at each column takes less

_SAVED = 1e-9  # seconds for each value, of one thread


class Asked(NamedTuple):
    """A column that is asked for. places: int64[matches], the entries of events, or their rows.
    are_rows: whether they are rows."""

    name: str
    places: np.ndarray
    are_rows: bool


def looked_up(asked: Sequence[Asked], inside: Inside) -> dict[tuple[str, int], pa.Array]:
    """The values of columns, by their name and the `id` of `places`; of those that can be looked up
    together. All have the same number of places."""
    jobs, types = dict[tuple[str, int], tuple[int, int, bool]](), list[pa.DataType]()
    for name, places, are_rows in asked:
        key = name, id(places)
        if key in jobs or not places.flags.c_contiguous:
            continue
        values, type = 0, pa.int64()
        if name != POSITION:
            column = inside.events.column(name)
            type = column.type
            if not pa.types.is_primitive(type) or type.bit_width != 64 or column.null_count:
                continue
            values = column.buffers()[1].address + 8 * column.offset
        jobs[key] = places.ctypes.data, values, are_rows
        types.append(type)
    count = len(asked[0].places)
    if not jobs or not is_due(_look_up, len(jobs) * count * _SAVED):
        return {}
    found = room_of(len(jobs) * count).reshape(len(jobs), count)
    wanted = np.array([*jobs.values()], np.int64)
    _look_up(wanted, inside.rows, inside.positions, inside.first, found)
    return {
        key: whole_column(values, type)
        for key, values, type in zip(jobs, found, types, strict=True)
    }


@njit(nogil=True, cache=True)
def _look_up(jobs, rows, positions, first, found):  # type: ignore[no-untyped-def]
    """jobs: int64[columns, 3], the addresses of places and of values (0: positions), and whether
    places are rows."""
    for number in range(jobs.shape[0]):
        places, values, are_rows = jobs[number, 0], jobs[number, 1], jobs[number, 2]
        into = found[number]
        if values == 0:
            for match in range(into.shape[0]):
                into[match] = positions[np.uint64(long_word_at(places + 8 * match) - first)]
        elif are_rows:
            for match in range(into.shape[0]):
                into[match] = long_word_at(values + 8 * long_word_at(places + 8 * match))
        else:
            for match in range(into.shape[0]):
                row = rows[np.uint64(long_word_at(places + 8 * match) - first)]
                into[match] = long_word_at(values + 8 * row)
