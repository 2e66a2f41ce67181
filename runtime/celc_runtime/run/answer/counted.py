"""The totals of the matches that end at each event, without listing any of them."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain
from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.arrow.matches.total_values import Groups
from celc_runtime.engine.arena.nodes import DONE as ALL_READ
from celc_runtime.engine.arena.nodes import ENTRY, OUTPUT_FULL, Memory
from celc_runtime.engine.totals.event_programs import changes_of
from celc_runtime.engine.totals.group_sums import found_sums
from celc_runtime.engine.totals.kernel import (
    DONE,
    FOUND_FULL,
    OUTGROWN,
    PART,
    ROW,
    SHIFT,
    UNTIL,
    WINDOW_FULL,
    WITHIN_BOUNDS,
    measured_in_window,
    new_found,
    new_stacks,
    stacks_with_bounds,
    stacks_without_bounds,
    totals_update,
    with_longer_window,
)
from celc_runtime.engine.totals.measured_events import are_bounded, write_bit, write_real
from celc_runtime.engine.totals.measures import (
    Measure,
    MeasureSet,
    measures_of,
    real_values,
    write_measured_keys,
    write_measured_whole,
)
from celc_runtime.engine.totals.total_elements import Measures
from celc_runtime.engine.walk.listing import Kinds, Output, new_output
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.transitions import TransitionArrays
from celc_runtime.run.answer.match_groups import measured, places_of
from celc_runtime.run.source.positions import Positions
from celc_runtime.run.walk.walks import WalkOfRun

_ROOM = 1 << 14
_STAY = 1 << 14
"""Rows between two attempts to return to bounded elements. An attempt takes as long as some 100
rows."""


class CountedWalk(WalkOfRun):
    """Reads the events of a run, and adds up the matches that end at each of them. It lists none.

    In the buffers, an event at which matches end counts as one match.
    """

    reads_alone = True

    buffers_grow = False

    def __init__(self, tables: TransitionArrays, plan: Plan) -> None:
        assert plan.answer.totals is not None
        measures = measures_of(plan.answer.totals.functions)
        self._tables = tables
        self._plan = plan
        self._measures = measures
        shape = measures.shape
        self._changes = changes_of(tables, _labels(plan, measures))
        self._stacks = new_stacks(self._changes, shape)
        self._found = new_found(_ROOM, shape, bounded=True)
        self._is_bounded = True
        # Whether the window may hold values that bounded elements cannot add up.
        self._had_large_values = False
        self._silent: np.ndarray | None = None
        self._behind = 0
        self._reading: Iterator[tuple[np.ndarray, Groups]] = iter(())
        self._groups: Groups | None = None

    @property
    def nbytes(self) -> int:
        stacks = self._stacks
        ring = (stacks.keys, stacks.symbols)
        added = (stacks.whole, stacks.known, stacks.real, stacks.ordered)
        elements = (stacks.front, stacks.back, stacks.later, self._found.totals)
        return int(
            sum(array.nbytes for array in (*ring, *added))
            + sum(array.nbytes for one in elements for array in one)
        )

    @property
    def groups(self) -> Groups:
        assert self._groups is not None
        return self._groups

    def buffers(self, limit: int | None) -> Output:
        return new_output(matches=_ROOM, room=1, limit=None)

    def of_stretches(self, silent: np.ndarray | None) -> None:
        self._silent = silent

    def enter(self, prepared: Prepared, positions: Positions, memory: Memory) -> Prepared:
        symbols = prepared.batch.symbols
        self._behind = int(memory.counters[ENTRY]) + int(np.count_nonzero(symbols))
        self._reading = self._read(prepared, positions)
        return prepared

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        for rows, groups in self._reading:
            output.rows[: len(rows)], output.used[0] = rows, len(rows)
            self._groups = groups
            return OUTPUT_FULL
        return ALL_READ

    def oldest(self) -> int:
        """The position after all events: no output refers to an event."""
        return self._behind

    def read_silently(self, prepared: Prepared) -> None:
        """Read events without returning any matches."""
        for _ in self._advance(prepared):
            self._found.used[0] = 0

    def _read(
        self, prepared: Prepared, positions: Positions
    ) -> Iterator[tuple[np.ndarray, Groups]]:
        """The rows at which matches end (int64), and their groups, part by part.

        Silent rows are left out: others report the matches that end there.
        """
        plan, events, silent = self._plan, prepared.events, self._silent
        if not self.hands_out:
            self.read_silently(prepared)
            return
        for _ in self._advance(prepared):
            used = int(self._found.used[0])
            if not used:
                continue
            rows = self._found.rows[:used].copy()
            sums = found_sums(self._found, self._measures.shape, bounded=self._is_bounded)
            self._found.used[0] = 0
            if silent is not None and silent[rows].any():
                heard = np.flatnonzero(~silent[rows])
                rows, sums = rows[heard], sums.taken(heard)
            if not len(rows):
                continue
            index = pa.array(rows)
            ends = positions.of(rows).astype(np.int64)
            times = (
                events.column(plan.source.order_by[0]).take(index) if plan.source.order_by else None
            )
            keys = tuple(plain(events.column(name).take(index)) for name in plan.source.key_columns)
            yield rows, Groups(keys, places_of(plan, ends, times), ends, times, sums)

    def _advance(self, prepared: Prepared) -> Iterator[None]:
        """Run the kernel to the end of the batch; yields whenever its results must be removed."""
        batch, rows = prepared.batch, len(prepared.batch.symbols)
        measures = self._measured(prepared.events)
        numbers = self._stacks.numbers
        numbers[ROW] = numbers[PART] = 0
        if not are_bounded(measures.whole, measures.real):
            self._had_large_values = True
            self._remove_bounds(until=rows)
        status = FOUND_FULL
        while status != DONE:
            update = totals_update(self._measures.shape, self._is_bounded)
            status = update(batch, self._tables, self._changes, measures, self._stacks, self._found)
            if status == WINDOW_FULL:
                self._stacks = with_longer_window(self._stacks)
                continue
            yield
            if status == OUTGROWN:
                self._remove_bounds(until=int(numbers[ROW]) + _STAY)
            elif status == WITHIN_BOUNDS:
                self._try_bounds(int(numbers[ROW]))
        numbers[SHIFT] -= rows
        numbers[UNTIL] -= rows

    def _remove_bounds(self, *, until: int) -> None:
        """Go on with elements without bounds, at least until row `until`."""
        shape, stacks = self._measures.shape, self._stacks
        stacks.numbers[UNTIL] = until
        if self._is_bounded:
            self._stacks = stacks_without_bounds(stacks, self._changes, shape)
            self._found = new_found(_ROOM, shape, bounded=False)
            self._is_bounded = False

    def _try_bounds(self, row: int) -> None:
        """Go on with bounded elements, unless the window has values that are too large."""
        shape, stacks = self._measures.shape, self._stacks
        if self._had_large_values and not are_bounded(*measured_in_window(stacks)):
            stacks.numbers[UNTIL] = row + _STAY
            return
        self._had_large_values = False
        self._stacks = stacks_with_bounds(stacks, self._changes, shape)
        self._found = new_found(_ROOM, shape, bounded=True)
        self._is_bounded = True

    def _measured(self, events: pa.RecordBatch) -> Measures:
        """What each event adds to each measure if it has the label of the measure."""
        rows, all_of = len(events), self._measures
        wholes, reals, keys = len(all_of.whole), 2 * len(all_of.real), len(all_of.ordered)
        known_words = all_of.shape.known_words
        known = np.zeros(rows * known_words, np.uint64)
        whole = np.empty(rows * wholes, np.int64)
        for place, measure in enumerate(all_of.whole):
            values, are_known = _values(events, measure)
            write_measured_whole(measure, values, are_known, whole, place, wholes)
            if place < all_of.known:
                bit = np.uint64(1) << np.uint64(place % 64)
                write_bit(are_known, bit, known, place // 64, known_words)
        real = np.empty(rows * reals, np.float64)
        for place, measure in enumerate(all_of.real):
            values, are_known = _values(events, measure)
            write_real(real_values(values), are_known, real, 2 * place, reals)
        ordered = np.empty(rows * keys, np.int64)
        for place, measure in enumerate(all_of.ordered):
            write_measured_keys(measure, *_values(events, measure), ordered, place, keys)
        return Measures(whole, known, real, ordered)


def _values(events: pa.RecordBatch, measure: Measure) -> tuple[np.ndarray, np.ndarray]:
    column = None if measure.attribute is None else events.column(measure.attribute)
    return measured(measure, column, len(events))


def _labels(plan: Plan, measures: MeasureSet) -> np.ndarray:
    """The measures for which an event of each kind counts, in the form for `changes_of`."""
    names = plan.answer.label_names
    found = np.zeros((len(plan.matching.kinds) + 1, measures.shape.label_words), np.uint64)
    for number, measure in enumerate((*measures.whole, *measures.real, *measures.ordered)):
        label, bit = names.index(measure.label), np.uint64(1) << np.uint64(number % 64)
        for place, kind in enumerate(plan.matching.kinds):
            if label in kind.columns:
                found[place, number // 64] |= bit
    return found
