"""The past events that conditions between events read, as columns that kernels can index.

A column holds a value for each *entry*, an event whose symbol is not 0, from the first entry that a
later match can contain. Texts are numbers here. Two texts are equal if their numbers are equal. If
a condition compares their order, ranks hold it. A number is never given to a second text. Texts
that no entry has any more are dropped.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import numbers, plain, whole_numbers
from celc_runtime.arrow.events.window_keys import floors_of
from celc_runtime.arrow.text_conditions import truth_of_columns, truth_of_values
from celc_runtime.arrow.text_numbers import SpelledTexts, TextNumbers
from celc_runtime.engine.arena.batch import real_numbers
from celc_runtime.engine.past.ceilings import OPEN, Ceilings
from celc_runtime.engine.past.latest_starts import LatestStarts
from celc_runtime.engine.past.nearest_events import NO_ENTRY
from celc_runtime.plan.conditions import TextComparison, TextCondition
from celc_runtime.plan.past_columns import PastColumns, of_window, places_of
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import Remembers
from celc_runtime.run.past.nearest_events import NearestEvents
from celc_runtime.run.past.starts_of_keys import StartsOfKeys
from celc_runtime.run.source.positions import Positions

_FIRST_ROOM = 1024


def measured(
    plan: Plan, events: pa.RecordBatch, positions: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(key, floor) (`floors_of`) of each event, for each window inside the formula.

    positions: int64[rows].
    """
    found = []
    for window in plan.matching.local_windows:
        name = plan.measured_on(window)
        if name is None:
            keys, type = positions.astype(np.int64), pa.int64()
        else:
            keys, type = whole_numbers(events.column(name)), events.column(name).type
        begins = keys if window.begin is None else whole_numbers(events.column(window.begin))
        floors = floors_of(begins if window.to_start else keys, window.size, type)
        found.append((keys if window.to_start else begins, floors))
    return found


class History:
    """The remembered columns of one run."""

    def __init__(self, columns: Remembers, plan: Plan) -> None:
        self._columns = columns
        self._plan = plan
        self._places = places_of(columns, len(plan.matching.local_windows))
        watched = [part for part in columns.parts if not part.after]
        self._watched = [(part, LatestStarts(part)) for part in watched if not part.key]
        self._keyed = {
            number: (part, StartsOfKeys(part)) for number, part in enumerate(watched) if part.key
        }
        after = [part for part in columns.parts if part.after]
        assert not after or columns.parts[-1] is after[0], "ceilings come last"
        self._after = [(part, Ceilings(part)) for part in after]
        self._nearest = [NearestEvents(wanted) for wanted in columns.nearest]
        self._attributes = _attributes(columns, plan)
        self._begins_anew = False
        self._begin = 0
        self._arrays: list[np.ndarray] = []
        self._texts = TextNumbers()
        self._spelled = SpelledTexts(columns.spellings)
        self._count = 0
        self.first = 0
        """The entry at index 0 of every column."""

    @property
    def past(self) -> tuple[np.ndarray, ...]:
        """The columns, in the order of `PastColumns`.

        Keys and floors are those of `floors_of`, parts those of `LatestStarts` or `Ceilings`,
        `valid` is bool.
        """
        letters = self._spelled.letters if self._arrays and self._places.letters else ()
        return (*(array[: self._count] for array in self._arrays), *letters)

    @property
    def next(self) -> int:
        """The entry of the next event to be remembered."""
        return self.first + self._count

    def window(self, number: int) -> Sequence[np.ndarray]:
        return of_window(self.past, number)

    def keys(self, window: int, entries: np.ndarray) -> np.ndarray:
        keys, _ = of_window(self._arrays, window)
        found: np.ndarray = keys[entries - self.first]
        return found

    def value(self, window: int, entry: int) -> int | float:
        """The value of an entry that a window in the formula measures; times in microseconds."""
        keys, _ = of_window(self._arrays, window)
        key = int(keys[entry - self.first])
        name = self._plan.measured_on(self._plan.matching.local_windows[window])
        if name is None or self._plan.source.type_of(name) not in ("FLOAT", "DOUBLE"):
            return key
        return float(real_numbers(np.array([key], np.int64))[0])

    @property
    def nbytes(self) -> int:
        """The bytes of the columns and of the tables of keys; a text counts as 64 bytes."""
        found = sum(array.nbytes for array in self._arrays) + 64 * len(self._texts)
        found += self._spelled.nbytes
        found += sum(starts.nbytes for _, starts in self._keyed.values())
        return found + sum(nearest.nbytes for nearest in self._nearest)

    def append(
        self,
        events: pa.RecordBatch,
        rows: np.ndarray,
        symbols: np.ndarray,
        positions: Positions,
        parts: np.ndarray,
    ) -> None:
        """Append the relevant rows of a batch, in order, with their symbols.

        parts: the rows at which partitions begin.
        """
        relevant = events.select(self._attributes)
        if len(rows) < len(events):
            relevant = relevant.take(rows)
        windows = measured(self._plan, relevant, positions.of(rows))
        entry, anew = self.next, self._anew(rows, parts)
        begins = self._begins_of(anew)
        known, columns = len(self._texts), self._columns
        new = PastColumns(
            windows=[column for pair in windows for column in pair],
            parts=self._of_parts(relevant, symbols, windows, anew, begins),
            begins=[begins] if columns.begins else [],
            nearest=[np.full(len(rows), NO_ENTRY) for _ in self._nearest],
            values=[
                column for name in columns.columns for column in _valued(relevant.column(name))
            ],
            texts=[_truth(condition, relevant) for condition in columns.texts],
            codes=[self._texts.of(relevant.column(name)) for name in columns.codes],
            ranks=[np.zeros(len(rows), np.int64) for _ in columns.ranks],
            spelled=[self._spelled.of(relevant.column(name)) for name in columns.spelled],
            symbols=[symbols.astype(np.int64)] if columns.symbols else [],
            letters=[],
        )
        self._extend(new.in_order(), len(rows))
        past, places = self.past, self._places
        of_after = places.parts[len(places.parts) - len(self._after) :]
        for place, (part, ceilings) in zip(of_after, self._after, strict=True):
            window = None if part.window is None else windows[part.window]
            assert part.length is not None
            floors = windows[part.length][1]
            ceilings.write(entry, symbols, window, floors, anew[:-1], past[place])
        for place, nearest in zip(places.nearest, self._nearest, strict=True):
            nearest.write(relevant, symbols, begins, self.first, past[place])
        if len(self._texts) > max(_FIRST_ROOM, 4 * self._count * len(self._columns.codes)):
            self._forget_texts()
        if len(self._spelled) > max(_FIRST_ROOM, 4 * self._count * len(columns.spelled)):
            spelled = [past[place] for place in self._places.spelled]
            for column, numbers in zip(spelled, self._spelled.forget(spelled), strict=True):
                column[:] = numbers
        if self._columns.ranks and (len(self._texts) != known or len(rows)):
            self._rank()

    def _anew(self, rows: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """bool[rows + 1]: where a partition begins; last: whether the next relevant row begins
        one."""
        anew = np.zeros(len(rows) + 1, np.bool_)
        anew[np.searchsorted(rows, parts)] = True
        anew[0] |= self._begins_anew
        self._begins_anew = bool(anew[-1])
        return anew

    def _begins_of(self, anew: np.ndarray) -> np.ndarray:
        """int64[rows]: the entry at which each row's partition begins; empty: not needed."""
        if not (self._columns.begins or self._nearest or self._keyed):
            return np.zeros(0, np.int64)
        entry, rows = self.next, len(anew) - 1
        begins = np.where(anew[:-1], entry + np.arange(rows), self._begin)
        found: np.ndarray = np.maximum.accumulate(begins)
        self._begin = int(found[-1]) if rows else self._begin
        if anew[-1]:
            self._begin = entry + rows
        return found

    def _of_parts(
        self,
        events: pa.RecordBatch,
        symbols: np.ndarray,
        windows: list[tuple[np.ndarray, np.ndarray]],
        anew: np.ndarray,
        begins: np.ndarray,
    ) -> list[np.ndarray]:
        """The columns of the absent parts. `windows` are the measured windows."""
        entry = self.next
        found = []
        for part, watched in self._watched:
            window = None if part.window is None else windows[part.window]
            length = None if part.length is None else windows[part.length]
            found.append(watched.of(entry, symbols, window, length, anew[:-1]))
        for number, (part, starts) in self._keyed.items():
            window = None if part.window is None else windows[part.window]
            found.insert(number, starts.of(events, entry, symbols, window, begins, self.first))
        return [*found, *(np.full(len(symbols), OPEN) for _ in self._after)]

    def reached(self, oldest: int) -> int:
        """The oldest entry that matches need which begin at `oldest` or later in its partition.

        Only if the begins of partitions are kept.
        """
        if not self._columns.begins or not self._count:
            return oldest
        past, last = self.past, self.next - 1
        begin = self._begin
        if oldest <= last:
            begin = int(past[self._places.begins[0]][oldest - self.first])
        begin = max(begin, self.first)
        found = oldest
        for hops in self._plan.matching.reaches:
            at = max(oldest, begin)
            for number in hops:
                keys, floors = of_window(past, number)
                floor = floors[min(at, last) - self.first]
                before = slice(begin - self.first, at - self.first + 1)
                at = begin + int(np.searchsorted(keys[before], floor))
            found = min(found, at)
        return found

    def drop(self, until: int) -> None:
        gone = min(max(0, until - self.first), self._count)
        if 2 * gone >= self._count:
            kept = self._count - gone
            for number, array in enumerate(self._arrays):
                room = max(_FIRST_ROOM, 2 * kept)
                moved = np.empty(room, array.dtype)
                moved[:kept] = array[gone : self._count]
                self._arrays[number] = moved
            self._count, self.first = kept, self.first + gone

    def _extend(self, new: list[np.ndarray], rows: int) -> None:
        if not self._arrays:
            self._arrays = [np.empty(max(_FIRST_ROOM, 2 * rows), column.dtype) for column in new]
        for number, column in enumerate(new):
            array = self._arrays[number]
            if self._count + rows > len(array):
                array = np.empty(2 * (self._count + rows), array.dtype)
                array[: self._count] = self._arrays[number][: self._count]
                self._arrays[number] = array
            array[self._count : self._count + rows] = column
        self._count += rows

    # --- texts ------------------------------------------------------------------------------------

    def _forget_texts(self) -> None:
        past = self.past
        used = np.unique(np.concatenate([past[place] for place in self._places.codes]))
        self._texts.keep(used.tolist())

    def _rank(self) -> None:
        """Write the ranks: the known texts are numbered in their order."""
        codes = self._texts.in_order()
        if not len(codes):
            return
        by_code = np.argsort(codes)
        past, places = self.past, self._places
        for place, name in zip(places.ranks, self._columns.ranks, strict=True):
            codes_here = past[places.codes[self._columns.codes.index(name)]]
            found = by_code[np.searchsorted(codes[by_code], np.maximum(codes_here, codes.min()))]
            past[place][:] = found


def _attributes(columns: Remembers, plan: Plan) -> list[str]:
    """The attributes of events that are read: of wide events, most are only shown."""
    windows = plan.matching.local_windows
    terms = [term for part in columns.parts for term in part.key]
    terms += [term for wanted in columns.nearest for term in (*wanted.key, *wanted.asking)]
    names = (
        *(name for window in windows for name in (plan.measured_on(window), window.begin)),
        *columns.columns,
        *(name for condition in columns.texts for name in condition.attributes),
        *columns.codes,
        *columns.spelled,
        *(term.attribute for term in terms),
    )
    return [name for name in dict.fromkeys(names) if name is not None]


def _valued(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(the values of an attribute, whole numbers as int64 or `PAIRS`; which are not NULL)."""
    values, valid = numbers(column)
    if values.dtype.kind in "iu":
        values = values.astype(np.int64)
    return values, valid


def _truth(condition: TextCondition | TextComparison, events: pa.RecordBatch) -> np.ndarray:
    if isinstance(condition, TextComparison):
        left, right = events.column(condition.left), events.column(condition.right)
        return truth_of_columns(condition, plain(left), plain(right))
    column = plain(events.column(condition.attribute)).dictionary_encode()
    table = np.append(truth_of_values(condition, column.dictionary), condition.of_null)
    indices = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    truth: np.ndarray = table[indices]
    return truth
