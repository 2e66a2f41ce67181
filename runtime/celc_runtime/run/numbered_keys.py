"""Keys of PARTITION BY as small numbers, by which rows are counted without a sort.

Whole numbers that are not far apart are their own numbers, and of texts the codes are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import in_one_piece, numbers, whole_column
from celc_runtime.arrow.events.ascending import is_signed
from celc_runtime.arrow.events.digits import Step, Workers, coding_texts, done
from celc_runtime.arrow.events.moving import Laid
from celc_runtime.jit.instructions import word_at
from celc_runtime.jit.kernels import njit


class KeyColumn(NamedTuple):
    """A column of keys as numbers: its least one, and how many values there can be (`size`). codes,
    ranks: of texts, the codes that are these numbers, and int64, the places of the coded texts in
    their order; None: numbers are in order."""

    least: int
    size: int
    codes: pa.DictionaryArray | pa.ChunkedArray | None = None
    ranks: np.ndarray | None = None


def numbering(column: pa.ChunkedArray, workers: Workers) -> Step:
    """The step that finds what a column of keys is as numbers; it finds None for other types, for
    texts that are coded twice, and for codes that stand for no text."""
    if pa.types.is_string(column.type):
        coding = coding_texts(in_one_piece(column), workers)
        return Step(coding.calls, lambda found: _of_codes(coding.found(found)))
    if pa.types.is_dictionary(column.type) and column.type.value_type == pa.string():
        return Step([partial(_of_given_codes, column)], lambda found: found[0])
    if not is_signed(column):
        return done(None)

    def ends(values: np.ndarray) -> tuple[int, int]:
        return int(values.min()), int(values.max())

    def found(of_slices: list[tuple[int, int]]) -> KeyColumn:
        least = min(one for one, _ in of_slices)
        return KeyColumn(least, max(one for _, one in of_slices) - least + 1)

    calls = [
        partial(ends, numbers(chunk)[0][first:end])
        for chunk in column.chunks
        for first, end in workers.slices(len(chunk))
        if first < end
    ]
    return Step(calls, found)


def _of_given_codes(column: pa.ChunkedArray) -> KeyColumn | None:
    for chunk in column.chunks:
        # Arrow does not look at codes that it is given, and a kernel counts at their places.
        codes = numbers(chunk.indices)[0]
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(chunk.dictionary):
            return None
    return _of_codes(column.unify_dictionaries())


def _of_codes(codes: pa.DictionaryArray | pa.ChunkedArray) -> KeyColumn | None:
    texts = (codes.chunk(0) if isinstance(codes, pa.ChunkedArray) else codes).dictionary
    if texts.null_count or len(pc.unique(texts)) < len(texts):
        return None
    order = pc.sort_indices(texts).to_numpy().astype(np.int64)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return KeyColumn(0, len(order), codes, ranks)


class Keys(NamedTuple):
    """The keys of rows as numbers, of which `different` can be there; 0: there is no PARTITION BY.

    laid: the numbers of all rows. least: the least that there can be. ranks: int64[different], the
    place of each number in the order of PARTITION BY; None: they are in order.
    """

    laid: Laid
    least: int
    different: int
    ranks: np.ndarray | None

    @classmethod
    def of(cls, columns: Sequence[KeyColumn], given: Sequence[pa.ChunkedArray]) -> Keys:
        """given: the columns, whose texts are coded."""
        if not columns:
            return cls(Laid.of([]), 0, 0, None)
        (first, *others), (column, *more) = columns, given
        if not others:
            laid, least = Laid.of([*map(_as_read, column.chunks)]), first.least
        else:
            together = _numbers(column) - first.least
            for key, column in zip(others, more, strict=True):
                together *= key.size
                together += _numbers(column) - key.least
            laid, least = Laid.of([whole_column(together, pa.int64())]), 0
        different = 1
        for key in columns:
            different *= key.size
        return cls(laid, least, different, _ranks(columns))


def _ranks(columns: Sequence[KeyColumn]) -> np.ndarray | None:
    if all(one.ranks is None for one in columns):
        return None
    ranks = np.zeros(1, np.int64)
    for one in columns:
        of_column = np.arange(one.size) if one.ranks is None else one.ranks
        ranks = (ranks[:, None] * one.size + of_column).ravel()
    return ranks


def _as_read(column: pa.Array) -> pa.Array:
    """Whole numbers, or codes, in a form that `_key_at` reads."""
    codes = column.indices if pa.types.is_dictionary(column.type) else column
    return codes if codes.type.bit_width >= 32 else codes.cast(pa.int32())


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    """int64[rows]: the values of a column, or their codes."""
    return np.concatenate([numbers(_as_read(one))[0].astype(np.int64) for one in column.chunks])


# --- kernels --------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def _key_at(base, size, row, least):  # type: ignore[no-untyped-def]
    """The key of a row in a piece of `Laid`, as a number from 0 on. There are less than 2³² keys,
    so the lower half of a number tells. To ask for its size takes half as long again."""
    return np.uint64((np.int64(word_at(base + size * row)) - least) & 0xFFFFFFFF)


@njit(nogil=True, cache=True)
def count_keys(pieces, size, least, first, end, counts):  # type: ignore[no-untyped-def]
    """Add to int64[different keys] how many of some rows have each key; keys are numbers from
    `least` on. pieces, size: those of `Laid`."""
    piece, row = 0, first
    while row < end:
        while pieces[piece, 1] <= row:
            piece += 1
        base, behind = pieces[piece, 0], min(end, pieces[piece, 1])
        while row < behind:
            counts[_key_at(base, size, row, least)] += 1
            row += 1


@njit(nogil=True, cache=True)
def number_rows(  # type: ignore[no-untyped-def]
    pieces, size, least, symbols, first, end, counts, rows, positions, keys
):
    """Write the rows from `first` to before `end` whose symbol is not 0, their positions among the
    rows of their keys, and their keys from 0 on; only the rows if there are no keys. The arrays
    that are written have a place for each of these rows.

    counts: as of `count_keys`, of the rows before these; written. How many of the rows that are
    written have each key is added to its upper half: it is written together with the lower one.
    """
    # Each row is written, and the next one over it unless it stays: to ask first takes longer where
    # every third may stay. Behind the last one that stays there is no place. A place that is known
    # not to be negative is looked up in half of the time.
    found, row, piece = 0, first, 0
    if counts.shape[0] == 0:
        while found < rows.shape[0]:
            rows[found] = row
            found += symbols[np.uint64(row)] != 0
            row += 1
        return
    while row < end:
        while pieces[piece, 1] <= row:
            piece += 1
        base, behind = pieces[piece, 0], min(end, pieces[piece, 1])
        while row < behind and found < rows.shape[0]:
            key = _key_at(base, size, row, least)
            count = counts[key]
            rows[found], positions[found], keys[found] = row, count & 0xFFFFFFFF, key
            stays = symbols[np.uint64(row)] != 0
            found += stays
            counts[key] = count + (np.int64(stays) << 32) + 1
            row += 1
        while row < behind:
            counts[_key_at(base, size, row, least)] += 1
            row += 1


@njit(nogil=True, cache=True)
def place_keys(counts, in_order, begins):  # type: ignore[no-untyped-def]
    """Write the places at which keys begin that some row has, in order; returns how many there are.

    counts: int64[slices, keys], as `number_rows` leaves it for each slice; where in order the first
    of the rows of a slice with a key comes is written over it. in_order: int64[keys], the keys in
    order; empty: they are.
    """
    place, found = 0, 0
    for number in range(counts.shape[1]):
        key = in_order[number] if in_order.shape[0] else number
        begin = place
        for part in range(counts.shape[0]):
            count = counts[part, key] >> 32
            counts[part, key] = place
            place += count
        if place > begin:
            begins[found] = begin
            found += 1
    return found


@njit(nogil=True, cache=True)
def place_rows(  # type: ignore[no-untyped-def]
    rows, positions, keys, nexts, first, end, places, rows_in_order, positions_in_order
):
    """Write the places of some rows in the order of keys, and these rows and their positions there.

    nexts: int64[different keys], where the next row of each key comes; written.
    """
    for number in range(first, end):
        key = np.uint64(keys[number])
        place = nexts[key]
        nexts[key] = place + 1
        places[number] = place
        rows_in_order[np.uint64(place)] = rows[number]
        positions_in_order[np.uint64(place)] = positions[number]
