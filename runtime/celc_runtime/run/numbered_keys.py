"""Keys of PARTITION BY as small numbers, by which rows are counted without a sort.

Whole numbers that are not far apart are their own numbers, and of texts the codes are.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import in_one_piece, numbers
from celc_runtime.arrow.events.ascending import is_signed
from celc_runtime.arrow.events.digits import Step, Workers, coding_texts, done
from celc_runtime.engine.arena.batch import NO_INTEGERS
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
    """The step that finds what a column of keys is as numbers; it finds None for other types, and
    for texts that are coded twice."""
    if pa.types.is_string(column.type):
        coding = coding_texts(in_one_piece(column), workers)
        return Step(coding.calls, lambda found: _of_codes(coding.found(found)))
    if pa.types.is_dictionary(column.type) and column.type.value_type == pa.string():
        return Step([lambda: _of_codes(column.unify_dictionaries())], lambda found: found[0])
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

    names: those of the columns.
    """

    names: list[str]
    columns: list[KeyColumn]
    different: int

    def of(self, piece: pa.RecordBatch) -> tuple[np.ndarray, int]:
        """(whole numbers[rows], or nothing; the least that there can be)."""
        if not self.columns:
            return NO_INTEGERS, 0
        (first, *others), (name, *names) = self.columns, self.names
        found, least = _numbers(piece.column(name)), first.least
        for name, key in zip(names, others, strict=True):
            values = _numbers(piece.column(name)).astype(np.int64) - key.least
            found, least = (found.astype(np.int64) - least) * key.size + values, 0
        return found, least

    def in_order(self, keys: np.ndarray) -> np.ndarray:
        """Keys, as numbers from 0 on, as numbers in the order of PARTITION BY."""
        if all(one.ranks is None for one in self.columns):
            return keys
        ranks = np.zeros(1, np.int64)
        for one in self.columns:
            of_column = np.arange(one.size) if one.ranks is None else one.ranks
            ranks = (ranks[:, None] * one.size + of_column).ravel()
        found: np.ndarray = ranks[keys]
        return found


def _numbers(key: pa.Array) -> np.ndarray:
    return numbers(key.indices if pa.types.is_dictionary(key.type) else key)[0]


@njit(nogil=True, cache=True)
def count_keys(keys, least, counts):  # type: ignore[no-untyped-def]
    """Add to int64[different keys] how many rows have each key; keys are numbers from `least`
    on."""
    for row in range(len(keys)):
        counts[np.int64(keys[row]) - least] += 1


@njit(nogil=True, cache=True)
def number_rows(  # type: ignore[no-untyped-def]
    keys, least, symbols, counts, first, rows, positions, partitions
):
    """Write the rows whose symbol is not 0, their positions among the rows of their keys, and their
    keys from 0 on; only the rows if there are no keys. The arrays that are written have a place for
    each of these rows.

    counts: as of `count_keys`, of the rows before these; written. first: the number of the first
    row.
    """
    # Each row is written, and the next one over it unless it stays: to ask first takes longer where
    # every third may stay. Behind the last one that stays there is no place.
    found, row = 0, 0
    if len(keys) == 0:
        while found < len(rows):
            rows[found] = first + row
            found += symbols[row] != 0
            row += 1
        return
    while found < len(rows):
        key = np.int64(keys[row]) - least
        rows[found], positions[found], partitions[found] = first + row, counts[key], key
        found += symbols[row] != 0
        counts[key] += 1
        row += 1
    for rest in range(row, len(symbols)):
        counts[np.int64(keys[rest]) - least] += 1
