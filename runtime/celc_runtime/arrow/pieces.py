"""Tables in small pieces, as those are that are read from files, made into larger ones.

Python is asked some hundred times for each piece, which threads cannot do side by side. To copy
takes less, as long as a piece has few bytes, and threads can do it. Figures are milliseconds by one
and two threads for a million rows.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import taken

TINY = 1 << 20
"""Bytes of a piece, about, up to which a table is joined as it comes in. With a key, in pieces of
0.3 MB: 24 and 28, joined 18 and 17; of 1 MB 17 and 19, joined 17 and 15; of 2 MB 15 and 15, joined
16 and 15."""

SMALL = 1 << 22
"""Bytes of a piece, about, up to which pieces are joined that a run reads as they stand. Without a
key, in pieces of 3.8 MB: 10 and 16, joined 8 and 9; of 7.3 MB, most of them long texts, 19 and 32,
joined 42 and 28."""

MOST_JOINED = 1 << 20  # rows at once, so that a large table is not held twice

_FEW = 1 << 10  # rows that show how many bytes a row has


def is_in_pieces(table: pa.Table, largest: int) -> bool:
    """Whether a table has more than one piece, of at most `largest` bytes on average."""
    pieces = max((column.num_chunks for column in table.itercolumns()), default=0)
    if pieces < 2 or not len(table):
        return False
    few = table.slice(0, _FEW)
    return bool(few.nbytes / len(few) * len(table) <= largest * pieces)


def joined(table: pa.Table, largest: int) -> pa.Table:
    """A table in one piece if it `is_in_pieces`, else as it is."""
    return table.combine_chunks() if is_in_pieces(table, largest) else table


class Picked(NamedTuple):
    """A column whose values are picked when they are asked for. column: some values as they stand.
    order: int64, the places of these in order."""

    column: pa.Array
    order: np.ndarray

    def slice(self, first: int, count: int) -> pa.Array:
        """A copy of `count` values in order, from the place `first` on."""
        return taken(self.column, self.order[first : first + count])
