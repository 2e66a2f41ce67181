"""Small batches of rows put together: Spark sends ten thousand rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

ROWS_AT_ONCE = 1 << 17
"""About so many rows are read at a time. With ten thousand, what is done once for each batch took
most of the time of fifty queries that each prepare their own part of it."""


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in batches of `ROWS_AT_ONCE` or little more; the last one has fewer. In more batches
    where the texts of a column do not fit into one array."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += len(batch)
        if rows >= ROWS_AT_ONCE:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting, rows = [], 0
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
