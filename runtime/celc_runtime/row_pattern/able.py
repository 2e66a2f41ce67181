"""Partitions that cannot have a match, left out before their rows are sorted.

Each match has rows for which some conditions on one row hold (`RowPlan.required`). Where one holds
seldom, most partitions may lack such a row, and the rest is all that has to be sorted, matched
and kept. The rarest condition is asked first, as in Zhu, Huang and Chaudhuri, High-performance row
pattern recognition using joins, PVLDB 16(5), 2023. A sample says which are rare; where none is,
nothing else is asked.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.vectors import Value, column_of
from celc_runtime.plan.expressions import Leaf, OfTypes, Tree, ValueOfRow

_SAMPLE = 1 << 13
_MOST_HITS = 1.0
"""Rows of a partition for which a condition may hold, on average, to be worth asking of all."""


def able_rows(
    required: tuple[Tree, ...], columns: Mapping[int, pa.Array], parts: np.ndarray
) -> np.ndarray | None:
    """The rows of the partitions that may have a match, int64 in order; None: all rows.

    parts: the partition of each row, numbered from 0 on.
    """
    rows = len(parts)
    if not required or not rows:
        return None
    partitions = int(parts.max()) + 1
    sample = {number: column.slice(0, _SAMPLE) for number, column in columns.items()}
    size = min(rows, _SAMPLE)
    shares = [float(np.count_nonzero(_holds(one, sample, size))) / size for one in required]
    rare = [n for n, share in enumerate(shares) if share * rows / partitions <= _MOST_HITS]
    if not rare:
        return None
    kept: np.ndarray | None = None
    for number in sorted(rare, key=lambda number: shares[number]):
        able = np.zeros(partitions, np.bool_)
        able[parts[_holds(required[number], columns, len(parts))]] = True
        chosen = np.flatnonzero(able[parts])
        kept = chosen if kept is None else kept[chosen]
        parts, taken = parts[chosen], pa.array(chosen)
        columns = {one: column.take(taken) for one, column in columns.items()}
    return kept


def _holds(asked: Tree, columns: Mapping[int, pa.Array], rows: int) -> np.ndarray:
    """bool[rows]: where a condition on one row is TRUE."""

    def leaf(one: Leaf | OfTypes) -> Value:
        assert isinstance(one, ValueOfRow)
        return in_utc(columns[one.column])

    found = column_of(asked, "BOOLEAN", leaf, rows)
    holds: np.ndarray = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
    return holds


def in_utc(column: pa.Array) -> pa.Array:
    """A column as expressions read it: times without a zone as those of UTC."""
    is_clock = pa.types.is_timestamp(column.type) and column.type.tz is None
    return column.cast(pa.timestamp("us", "UTC")) if is_clock else column
