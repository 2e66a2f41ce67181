"""How the kernel that takes in few rows puts them in order (`few_rows`).

Rows are sorted by whole numbers alone. A text becomes its rank among the texts of the column: a
table of hashes finds the different ones, which are few where they are keys, and only these are
compared. Where many texts share a place of the table, as texts that somebody has made for that
would, the table is left, and all texts are compared, as a sort by merging does.

Rejected: merging rows by comparing all their columns. Of four thousand rows it took four times as
long, and texts were compared a dozen times for each row.
"""

import numpy as np

from celc_runtime.engine.arena.batch import END_OF_PARTS
from celc_runtime.jit.instructions import byte_at, long_word_at, word_at
from celc_runtime.jit.kernels import njit

_MOST_BITS = 11  # of a digit: so many counts fit into the nearest cache

_MOST_STEPS = 16  # for each row, in the table of texts, which is at most half full: one is usual


@njit(nogil=True, cache=True)
def in_order(columns, rows, order, spare):  # type: ignore[no-untyped-def]
    """Write the rows in the order of columns, the first column first; equal rows keep their order.

    columns: int64[columns, rows or more]. order, spare: int64[rows or more], written. The last
    column is sorted by first, and one in whose order the rows stand not at all.
    """
    for row in range(rows):
        order[row] = row
    for number in range(len(columns) - 1, -1, -1):
        _sort_by(columns[number], rows, order, spare)


@njit(nogil=True, cache=True)
def _sort_by(values, rows, order, spare):  # type: ignore[no-untyped-def]
    """Sort rows by numbers, digit by digit, the last one first (Knuth, The Art of Computer
    Programming, volume 3, 5.2.5)."""
    least = most = before = values[order[0]]
    stands = True
    for place in range(rows):
        value = values[order[place]]
        stands &= before <= value
        least, most, before = min(least, value), max(most, value), value
    if stands:
        return
    bits = 4
    while bits < _MOST_BITS and (1 << bits) < rows:
        bits += 1
    begins = np.empty((1 << bits) + 1, np.int64)
    digits, mask, shift = np.uint64(bits), np.uint64((1 << bits) - 1), np.uint64(0)
    first = np.uint64(least)  # the difference from it is right modulo 2⁶⁴
    span = np.uint64(most) - first
    while span >> shift != 0:
        begins[:] = 0
        for row in range(rows):
            begins[1 + np.int64(((np.uint64(values[row]) - first) >> shift) & mask)] += 1
        for digit in range(1 << bits):
            begins[digit + 1] += begins[digit]
        for place in range(rows):
            row = order[place]
            own = np.int64(((np.uint64(values[row]) - first) >> shift) & mask)
            spare[begins[own]] = row
            begins[own] += 1
        order[:rows] = spare[:rows]
        if shift + digits >= 64:
            return
        shift += digits


@njit(nogil=True, cache=True)
def rank_texts(offsets, data, rows, ranks, different, spare):  # type: ignore[no-untyped-def]
    """Write for each row the rank of its text, by the bytes in UTF-8, which have the order of code
    points.

    offsets, data: the addresses of the offsets (int32) and of the bytes, as Arrow has them. ranks,
    different, spare: int64[rows or more], written.
    """
    count = _find_different(offsets, data, rows, ranks, different)
    if count == 0:
        for row in range(rows):
            different[row] = row
        _sort_texts(offsets, data, rows, different, spare)
        for place in range(rows):
            row = different[place]
            if place > 0:
                count += np.int64(_compared(offsets, data, different[place - 1], row) != 0)
            ranks[row] = count
        return
    _sort_texts(offsets, data, count, different, spare)
    for rank in range(count):
        spare[ranks[different[rank]]] = rank
    for row in range(rows):
        ranks[row] = spare[ranks[row]]


@njit(nogil=True, cache=True)
def _find_different(offsets, data, rows, numbers, different):  # type: ignore[no-untyped-def]
    """Write the first row of each different text, and for each row the number of its text, in the
    order of these rows. Returns how many there are; 0: it took too many steps."""
    bits = np.int64(4)
    while (1 << bits) < 2 * rows:
        bits += 1
    last, unused = (np.int64(1) << bits) - 1, np.uint64(64 - bits)
    slots = np.full(last + 1, -1, np.int64)
    count, steps = np.int64(0), _MOST_STEPS * (rows + 1)
    for row in range(rows):
        slot = np.int64(_hash_of(offsets, data, row) >> unused)
        while slots[slot] >= 0 and _compared(offsets, data, slots[slot], row) != 0:
            slot = (slot + 1) & last
            steps -= 1
            if steps == 0:
                return 0
        if slots[slot] < 0:
            slots[slot], numbers[row], different[count] = row, count, row
            count += 1
        else:
            numbers[row] = numbers[slots[slot]]
    return count


@njit(nogil=True, cache=True)
def _hash_of(offsets, data, row):  # type: ignore[no-untyped-def]
    """The hash of a text, whose high bits depend on all of the text.

    That of Fowler, Noll and Vo (FNV-1a), of words as long as there are any, each put by its high
    bits into the low ones before the next; at the end Fibonacci hashing (Knuth, 6.4).
    """
    begin = np.int64(word_at(offsets + 4 * row))
    end = np.int64(word_at(offsets + 4 * row + 4))
    code = np.uint64(0xCBF29CE484222325)
    while begin + 8 <= end:
        code = (code ^ np.uint64(long_word_at(data + begin))) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(32)
        begin += 8
    for place in range(begin, end):
        code = (code ^ np.uint64(byte_at(data + place))) * np.uint64(0x100000001B3)
    return code * np.uint64(0x9E3779B97F4A7C15)


@njit(nogil=True, cache=True)
def _sort_texts(offsets, data, rows, order, spare):  # type: ignore[no-untyped-def]
    """Sort rows by texts. (Runs of two, four, … rows are merged: Knuth, 5.2.4.)"""
    width = np.int64(1)
    while width < rows:
        for first in range(0, rows, 2 * width):
            middle, end = min(first + width, rows), min(first + 2 * width, rows)
            left, right = first, middle
            for place in range(first, end):
                takes_left = right >= end
                if left < middle and right < end:
                    takes_left = _compared(offsets, data, order[left], order[right]) <= 0
                if takes_left:
                    spare[place] = order[left]
                    left += 1
                else:
                    spare[place] = order[right]
                    right += 1
        order[:rows] = spare[:rows]
        width *= 2


@njit(nogil=True, cache=True)
def _compared(offsets, data, row, other):  # type: ignore[no-untyped-def]
    """−1 where the text of a row comes before that of another one, 1 where after, else 0."""
    here, there = np.int64(word_at(offsets + 4 * row)), np.int64(word_at(offsets + 4 * other))
    length = np.int64(word_at(offsets + 4 * row + 4)) - here
    other_length = np.int64(word_at(offsets + 4 * other + 4)) - there
    shared, begin = min(length, other_length), np.int64(0)
    while begin + 8 <= shared and long_word_at(data + here + begin) == long_word_at(
        data + there + begin
    ):
        begin += 8
    for place in range(begin, shared):
        one, two = byte_at(data + here + place), byte_at(data + there + place)
        if one != two:
            return -1 if one < two else 1
    if length == other_length:
        return 0
    return -1 if length < other_length else 1


@njit(nogil=True, cache=True)
def arrange(columns, keys, rows, order, starts, ties):  # type: ignore[no-untyped-def]
    """Write where partitions begin, and which rows are equal to the row before in all columns.

    columns, order: as of `in_order`. keys: how many of the columns are keys. starts: int64[rows + 2
    or more], ties: bool[rows or more], written. Returns (the number of partitions, 1 where some row
    is equal to the one before it).
    """
    count = len(columns)
    parts = np.int64(0)
    tied = np.int64(0)
    for place in range(rows):
        is_new = place == 0
        before, row = order[max(place - 1, 0)], order[place]
        if not is_new and keys > 0:
            is_new = not _are_equal(columns, 0, keys, before, row)
        if is_new and keys > 0:
            starts[parts] = place
            parts += 1
        ties[place] = not is_new and count > keys and _are_equal(columns, keys, count, before, row)
        tied |= np.int64(ties[place])
    starts[parts] = starts[parts + 1] = END_OF_PARTS
    return parts, tied


@njit(nogil=True, cache=True)
def _are_equal(columns, first, end, row, other):  # type: ignore[no-untyped-def]
    """Whether two rows have the same values in some columns."""
    found = True
    for number in range(first, end):
        found &= columns[number, row] == columns[number, other]
    return found
