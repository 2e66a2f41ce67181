"""Intervals of months, days and nanoseconds, which DuckDB makes of its INTERVALs.

An INTERVAL of the language is a length: a day has 24 hours, and a month has no length. So such a
column is one of INTERVALs where no value has months.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from celc_runtime.engine.values.spark_arithmetic import MICROSECONDS_PER_DAY

CALENDAR_INTERVAL = pa.month_day_nano_interval()

_PARTS = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
_LEAST = divmod(-(2**63), MICROSECONDS_PER_DAY)  # days and microseconds
_MOST = divmod(2**63 - 1, MICROSECONDS_PER_DAY)


def with_lengths(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The column with a duration for each interval, if all of them have one; else as it is."""
    if not isinstance(column, pa.ChunkedArray):
        return _lengths(column)[0]
    chunks = [_lengths(chunk)[0] for chunk in column.chunks]
    if any(chunk.type == CALENDAR_INTERVAL for chunk in chunks):
        return column
    return pa.chunked_array(chunks, pa.duration("us"))


def first_without_length(column: pa.Array) -> int:
    """The first row of a column that `with_lengths` leaves as it is, for what is in that row."""
    return int(np.flatnonzero(_lengths(column)[1])[0])


def _lengths(column: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """(the column in microseconds, or as it is; which rows have no length in them)."""
    values = column.buffers()[1]
    if not len(column) or values is None:
        return pa.nulls(len(column), pa.duration("us")), np.zeros(len(column), np.bool_)
    parts = np.frombuffer(values, _PARTS)[column.offset : column.offset + len(column)]
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    more, rest = np.divmod(parts["nanoseconds"] // 1000, MICROSECONDS_PER_DAY)
    days = parts["days"] + more
    wrong = (parts["months"] != 0) | (parts["nanoseconds"] % 1000 != 0)
    wrong |= (days < _LEAST[0]) | ((days == _LEAST[0]) & (rest < _LEAST[1]))
    wrong |= (days > _MOST[0]) | ((days == _MOST[0]) & (rest > _MOST[1]))
    wrong &= ~is_null
    if wrong.any():
        return column, wrong
    total = days * MICROSECONDS_PER_DAY + rest
    return pa.array(total, pa.duration("us"), mask=is_null), wrong
