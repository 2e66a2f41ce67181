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
    """A table in small pieces as one piece; another as it is. Pieces of coded columns that have
    codes of their own stay: there may be too many for their type."""
    if not is_in_small_pieces(table):
        return table
    for column in table.itercolumns():
        if pa.types.is_dictionary(column.type):
            texts = [chunk.dictionary for chunk in column.chunks]
            if not all(one.equals(texts[0]) for one in texts[1:]):
                return table
    return table.combine_chunks()
