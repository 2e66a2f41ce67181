"""The key tables of a run, and the keys of the events of a batch.

When a table is half full, the keys whose piles have all left the window are dropped. Then the table
gets the size that the remaining keys need. So a table takes memory for the keys inside the window,
not for all keys that ever came.
"""

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import numbers
from celc_runtime.arrow.text_numbers import TextNumbers
from celc_runtime.engine.arena.batch import order_preserving
from celc_runtime.engine.arena.key_tables import (
    FIRST_KEY,
    IS_TAKEN,
    KeyArrays,
    clear_table,
    copy_live_keys,
    empty_table,
)
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.plan.strategy import KeyTable, KeyTerm

_FEWEST_ROWS = 4096


class KeyMemory:
    def __init__(self, terms: tuple[KeyTerm, ...], tables: tuple[KeyTable, ...]) -> None:
        self._terms = terms
        self._tables = tables
        self._texts = TextNumbers()
        self._has_texts = any(term.is_text for term in terms)
        self.memory = KeyArrays(
            np.zeros((len(terms), 0), np.int64),
            np.zeros((len(terms), 0), np.bool_),
            tuple(empty_table(table, _FEWEST_ROWS) for table in tables),
            np.zeros(len(tables), np.int64),
        )
        self._spares: list[np.ndarray | None] = [None] * len(tables)

    @property
    def nbytes(self) -> int:
        """The bytes of the tables; a text counts as 64 bytes."""
        tables = [*self.memory.tables, *(spare for spare in self._spares if spare is not None)]
        return sum(table.nbytes for table in tables) + 64 * len(self._texts)

    def enter(self, events: pa.RecordBatch, earliest: int, lowest: int) -> None:
        if self._has_texts and len(self._texts) > 4 * self._rows():
            self._forget_texts(earliest, lowest)
        terms = self._terms
        values = np.empty((len(terms), len(events)), np.int64)
        known = np.empty((len(terms), len(events)), np.bool_)
        for number, term in enumerate(terms):
            column = events.column(term.attribute)
            if term.is_text:
                if term.type != "STRING":
                    column = column.cast(arrow_type(term.type))
                values[number] = self._texts.of(column)
                known[number] = values[number] >= 0
                continue
            found, known[number] = numbers(column)
            values[number] = _as_key(found, term.type)
            if term.type.startswith("DECIMAL"):
                values[number] *= _unit_of(column.type, arrow_type(term.type))
        self.memory = self.memory._replace(values=values, known=known)

    def make_room(self, earliest: int, lowest: int) -> None:
        """Drop the keys that have left the window, and enlarge tables that stay half full."""
        tables = []
        for number, table in enumerate(self.memory.tables):
            keys = len(self._tables[number].texts)
            fresh = self._spare(number, len(table))
            live = int(copy_live_keys(table, fresh, keys, earliest, lowest))
            if 4 * live > len(table):
                fresh = empty_table(self._tables[number], 2 * len(table))
                copy_live_keys(table, fresh, keys, earliest, lowest)
            elif 32 * live < len(table) > _FEWEST_ROWS:
                fresh = empty_table(self._tables[number], len(table) // 2)
                copy_live_keys(table, fresh, keys, earliest, lowest)
            self.memory.filled[number] = live
            self._spares[number] = table
            tables.append(fresh)
        self.memory = self.memory._replace(tables=tuple(tables))

    def _spare(self, number: int, size: int) -> np.ndarray:
        """An empty table of this size: the array before the present one, if it has this size."""
        table, spare = self._tables[number], self._spares[number]
        if spare is None or len(spare) != size:
            return empty_table(table, size)
        clear_table(spare, len(table.texts))
        return spare

    def _rows(self) -> int:
        return sum(len(table) for table in self.memory.tables)

    def _forget_texts(self, earliest: int, lowest: int) -> None:
        """Drop the texts that no key in the window has."""
        self.make_room(earliest, lowest)
        used: set[int] = set()
        for table, rows in zip(self._tables, self.memory.tables, strict=True):
            taken = rows[rows[:, IS_TAKEN] != 0]
            for place, is_text in enumerate(table.texts):
                if is_text:
                    used.update(taken[:, FIRST_KEY + place].tolist())
        self._texts.keep(used)


def _unit_of(given: pa.DataType, wanted: pa.DataType) -> int:
    """How many smallest units of a DECIMAL make one of a type of numbers."""
    scale: int = wanted.scale - (given.scale if pa.types.is_decimal(given) else 0)
    return int(10**scale)


def _as_key(values: np.ndarray, type: str) -> np.ndarray:
    """Values as int64, equal if SQL calls the values equal: −0.0 = 0.0, NaN = NaN."""
    if type in ("FLOAT", "DOUBLE"):
        if type == "FLOAT":
            values = values.astype(np.float32)
        wide = values.astype(np.float64)
        return order_preserving(np.where(np.isnan(wide), np.nan, wide))
    return values.astype(np.int64)
