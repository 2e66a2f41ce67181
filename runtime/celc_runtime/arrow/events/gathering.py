"""Joins small batches of rows: Spark sends ten thousand rows at a time."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

ROWS_AT_ONCE = 1 << 17
"""About the rows that are read at a time. With ten thousand, work done once for each batch took
most of the time of fifty queries, which each prepare their own part of it."""


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in batches of `ROWS_AT_ONCE` or slightly more, only the last one smaller.

    There are more batches if the texts of a column do not fit into one array.
    """
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
