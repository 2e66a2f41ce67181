"""Tables in small pieces, as those are that are read from files, made into larger ones.

A run asks Python some hundred times for each piece, which threads cannot do side by side. They can
copy, which takes less: a million rows of three columns, in eight pieces, took one thread 36, 37 and
20 ms, two threads 34, 38 and 23, and as one piece 27, 38 and 19 with one, 22, 25 and 16 with two.
"""

import pyarrow as pa

_SMALL = 1 << 18  # rows of a piece, about; larger ones are not copied

MOST_JOINED = 1 << 20  # rows at once, so that a large table is not held twice


def is_in_small_pieces(table: pa.Table) -> bool:
    """Whether a table has more than one piece, and they are small on average."""
    pieces = max((column.num_chunks for column in table.itercolumns()), default=0)
    return pieces > 1 and pieces * _SMALL > len(table)


def joined(table: pa.Table) -> pa.Table:
    """A table in small pieces as one piece; another as it is."""
    return table.combine_chunks() if is_in_small_pieces(table) else table


def with_wide_codes(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A coded column with codes of 32 bits, where they are narrower, as pandas makes them; another
    as it is. Each piece of a column can have codes of its own: narrow ones do not hold those of
    all, and Arrow then joins no pieces."""
    type = column.type
    if not pa.types.is_dictionary(type) or type.index_type.bit_width >= 32:
        return column
    return column.cast(pa.dictionary(pa.int32(), type.value_type, type.ordered))
