"""Partial matches kept apart by key: hash tables from the values that equalities ask for to piles.

A table has a row for each key: whether it is taken, the values of the key, and for each pile of the
states with such keys its newest cell and that cell's SINCE. Keys whose piles have all left the
window are dropped whenever a table is half full; then it is made as large as what is left needs.
So a table takes memory for the keys inside the window, however many there have been.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from celc_runtime.arrow.arrays import numbers
from celc_runtime.arrow.text_numbers import TextNumbers
from celc_runtime.engine.arena import NEVER
from celc_runtime.engine.batch import order_preserving
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import KeyTable, KeyTerm

_FEWEST_ROWS = 4096
AHEAD = 16
"""How many rows of a batch before its own turn an event's key is fetched."""
_IS_TAKEN = 0
_FIRST_KEY = 1


class JoinMemory(NamedTuple):
    """What a keyed update reads and writes besides `arena.Memory`.

    values: int64[terms, rows] and known: bool[terms, rows], what each event of the batch brings as
    a key, and whether it is not NULL. tables: one int64[size, 1 + keys + 2 · piles] each, size a
    power of two. filled: int64[tables], the rows that are taken.
    """

    values: np.ndarray
    known: np.ndarray
    tables: tuple[np.ndarray, ...]
    filled: np.ndarray


class KeyMemory:
    """The tables of one run."""

    def __init__(self, terms: tuple[KeyTerm, ...], tables: tuple[KeyTable, ...]) -> None:
        self._terms = terms
        self._tables = tables
        self._texts = TextNumbers()
        self._has_texts = any(term.type == "STRING" for term in terms)
        self.memory = JoinMemory(
            np.zeros((len(terms), 0), np.int64),
            np.zeros((len(terms), 0), np.bool_),
            tuple(_empty_table(table, _FEWEST_ROWS) for table in tables),
            np.zeros(len(tables), np.int64),
        )
        self._spares: list[np.ndarray | None] = [None] * len(tables)

    @property
    def nbytes(self) -> int:
        """The size of the tables; a text is counted as 64 bytes."""
        tables = [*self.memory.tables, *(spare for spare in self._spares if spare is not None)]
        return sum(table.nbytes for table in tables) + 64 * len(self._texts)

    def enter(self, events: pa.RecordBatch, earliest: int, lowest: int) -> None:
        """Take in a batch: the keys that its events bring."""
        if self._has_texts and len(self._texts) > 4 * self._rows():
            self._forget(earliest, lowest)
        terms = self._terms
        values = np.empty((len(terms), len(events)), np.int64)
        known = np.empty((len(terms), len(events)), np.bool_)
        for number, term in enumerate(terms):
            column = events.column(term.attribute)
            if term.type == "STRING":
                values[number] = self._texts.of(column)
                known[number] = values[number] >= 0
                continue
            found, known[number] = numbers(column)
            values[number] = _as_key(found, term.type)
        self.memory = self.memory._replace(values=values, known=known)

    def make_room(self, earliest: int, lowest: int) -> None:
        """Drop the keys that are out of the window, and enlarge tables that stay half full."""
        tables = []
        for number, table in enumerate(self.memory.tables):
            keys = len(self._tables[number].texts)
            fresh = self._spare(number, len(table))
            live = int(_copy_live(table, fresh, keys, earliest, lowest))
            if 4 * live > len(table):
                fresh = _empty_table(self._tables[number], 2 * len(table))
                _copy_live(table, fresh, keys, earliest, lowest)
            elif 32 * live < len(table) > _FEWEST_ROWS:
                fresh = _empty_table(self._tables[number], len(table) // 2)
                _copy_live(table, fresh, keys, earliest, lowest)
            self.memory.filled[number] = live
            self._spares[number] = table
            tables.append(fresh)
        self.memory = self.memory._replace(tables=tuple(tables))

    def _spare(self, number: int, size: int) -> np.ndarray:
        """An empty table of a size: the one used before the last, if it has that size."""
        joined, spare = self._tables[number], self._spares[number]
        if spare is None or len(spare) != size:
            return _empty_table(joined, size)
        _clear(spare, len(joined.texts))
        return spare

    def _rows(self) -> int:
        return sum(len(table) for table in self.memory.tables)

    def _forget(self, earliest: int, lowest: int) -> None:
        self.make_room(earliest, lowest)
        used: set[int] = set()
        for joined, table in zip(self._tables, self.memory.tables, strict=True):
            taken = table[table[:, _IS_TAKEN] != 0]
            for place, is_text in enumerate(joined.texts):
                if is_text:
                    used.update(taken[:, _FIRST_KEY + place].tolist())
        self._texts.keep(used)


def _as_key(values: np.ndarray, type: str) -> np.ndarray:
    """Values as int64 that are equal where SQL calls the values equal: −0.0 = 0.0, NaN = NaN."""
    if type in ("FLOAT", "DOUBLE"):
        if type == "FLOAT":
            values = values.astype(np.float32)
        wide = values.astype(np.float64)
        return order_preserving(np.where(np.isnan(wide), np.nan, wide))
    return values.astype(np.int64)


def _empty_table(table: KeyTable, size: int) -> np.ndarray:
    rows = np.zeros((size, _FIRST_KEY + len(table.texts) + 2 * table.piles), np.int64)
    rows[:, _FIRST_KEY + len(table.texts) + 1 :: 2] = NEVER
    return rows


@njit(nogil=True, cache=True, inline="always")
def _start(key):  # type: ignore[no-untyped-def]
    code = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return code ^ (code >> np.uint64(32))


_COMPILED = not config.DISABLE_JIT
"""Plain Python cannot ask the processor for anything."""


@intrinsic
def _prefetch(typing_context, table, place):  # type: ignore[no-untyped-def]
    """Ask the processor for the cache line of a flat place in a table of int64."""

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(array.data, [arguments[1]]), byte)
        type = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], type)
        # To be read, to be kept in all caches, data.
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(table, types.int64), code


@njit(nogil=True, cache=True)
def fetch_ahead(table, hashed):  # type: ignore[no-untyped-def]
    """Begin to load the row at which the search for a key starts.

    Tables of many keys are larger than the caches near the processor. What waits for one row, waits
    for those of the next events at the same time.
    """
    if _COMPILED:
        row = hashed & (table.shape[0] - 1)
        _prefetch(table, row * table.shape[1])


@njit(nogil=True, cache=True)
def hash_of(key):  # type: ignore[no-untyped-def]
    """Where the search for a key of one value starts, before it is cut to a table's size."""
    return np.int64(_start(key))


@njit(nogil=True, cache=True)
def hash_of_two(one, two):  # type: ignore[no-untyped-def]
    """The same for a key of two values."""
    return np.int64(_start(np.int64(_start(one)) ^ two))


@njit(nogil=True, cache=True)
def hash_of_three(one, two, three):  # type: ignore[no-untyped-def]
    """The same for a key of three values."""
    return np.int64(_start(np.int64(_start(np.int64(_start(one)) ^ two)) ^ three))


@njit(nogil=True, cache=True)
def row_of(table, key):  # type: ignore[no-untyped-def]
    """The row of a key, or the empty row where it would be entered."""
    mask = table.shape[0] - 1
    row = hash_of(key) & mask
    while table[row, 0] != 0 and table[row, 1] != key:
        row = (row + 1) & mask
    return row


@njit(nogil=True, cache=True)
def row_of_two(table, one, two):  # type: ignore[no-untyped-def]
    """The same for a key of two values."""
    mask = table.shape[0] - 1
    row = hash_of_two(one, two) & mask
    while table[row, 0] != 0 and (table[row, 1] != one or table[row, 2] != two):
        row = (row + 1) & mask
    return row


@njit(nogil=True, cache=True)
def row_of_three(table, one, two, three):  # type: ignore[no-untyped-def]
    """The same for a key of three values."""
    mask = table.shape[0] - 1
    row = hash_of_three(one, two, three) & mask
    while table[row, 0] != 0 and (
        table[row, 1] != one or table[row, 2] != two or table[row, 3] != three
    ):
        row = (row + 1) & mask
    return row


@njit(nogil=True, cache=True)
def pile_at(table, row, column, lowest):  # type: ignore[no-untyped-def]
    """(newest cell, its SINCE) of a pile; what belongs to another partition is dead."""
    head = table[row, column]
    return head, table[row, column + 1] if head >= lowest else np.int64(NEVER)


@njit(nogil=True, cache=True)
def _is_live(table, row, keys, earliest, lowest):  # type: ignore[no-untyped-def]
    if table[row, 0] == 0:
        return False
    for column in range(1 + keys, table.shape[1], 2):
        if table[row, column] >= lowest and table[row, column + 1] >= earliest:
            return True
    return False


@njit(nogil=True, cache=True)
def _clear(table, keys):  # type: ignore[no-untyped-def]
    for row in range(table.shape[0]):
        table[row, 0] = 0
        for column in range(1 + keys, table.shape[1], 2):
            table[row, column] = 0
            table[row, column + 1] = NEVER


@njit(nogil=True, cache=True)
def _copy_live(table, fresh, keys, earliest, lowest):  # type: ignore[no-untyped-def]
    """Enter the keys with live piles into an empty table; returns how many there are."""
    live = 0
    for row in range(table.shape[0]):
        if _is_live(table, row, keys, earliest, lowest):
            live += 1
            if keys == 1:
                free = row_of(fresh, table[row, 1])
            elif keys == 2:
                free = row_of_two(fresh, table[row, 1], table[row, 2])
            else:
                free = row_of_three(fresh, table[row, 1], table[row, 2], table[row, 3])
            for column in range(table.shape[1]):
                fresh[free, column] = table[row, column]
    return live
