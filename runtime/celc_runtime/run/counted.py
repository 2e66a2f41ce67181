"""The totals of the matches that end at each event, without listing any of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain
from celc_runtime.arrow.columns import Prepared
from celc_runtime.arrow.total_rows import Groups
from celc_runtime.engine.event_programs import changes_of
from celc_runtime.engine.group_sums import found_sums
from celc_runtime.engine.measures import (
    Measure,
    MeasureSet,
    ordered_keys,
    real_values,
    whole_values,
)
from celc_runtime.engine.total_elements import Measures
from celc_runtime.engine.totals import (
    DONE,
    FOUND_FULL,
    PART,
    ROW,
    SHIFT,
    new_found,
    new_stacks,
    totals_update,
    with_longer_window,
)
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.transitions import TransitionArrays
from celc_runtime.run.match_groups import keys_in_order, measured, places_of
from celc_runtime.run.positions import Positions

_ROOM = 1 << 14


class CountedTotals:
    """Reads the events of a run, and adds up the matches that end at each of them."""

    def __init__(self, tables: TransitionArrays, plan: Plan, measures: MeasureSet) -> None:
        self._tables = tables
        self._plan = plan
        self._measures = measures
        shape = measures.shape
        self._changes = changes_of(tables, len(plan.kinds))
        self._stacks = new_stacks(self._changes, shape)
        self._found = new_found(_ROOM, shape)
        self._belongs = [
            _belongs(plan, some) for some in (measures.whole, measures.real, measures.ordered)
        ]

    @property
    def nbytes(self) -> int:
        """The size of the window and of the buffers."""
        stacks = self._stacks
        kept = (stacks.keys, stacks.symbols, stacks.whole, stacks.real, stacks.ordered)
        elements = (stacks.front, stacks.back, stacks.later, self._found.totals)
        return int(
            sum(array.nbytes for array in kept)
            + sum(array.nbytes for one in elements for array in one)
        )

    def read_silently(self, prepared: Prepared) -> None:
        """Read events at which no match is to be handed out."""
        for _ in self._advance(prepared):
            self._found.used[0] = 0

    def read(
        self, prepared: Prepared, positions: Positions, silent: np.ndarray | None
    ) -> Iterator[tuple[np.ndarray, Groups]]:
        """The rows at which matches end (int64), and their groups, part by part; none of those that
        are `silent` (bool[rows])."""
        plan, events = self._plan, prepared.events
        for _ in self._advance(prepared):
            used = int(self._found.used[0])
            if not used:
                continue
            rows, sums = self._found.rows[:used].copy(), found_sums(self._found)
            self._found.used[0] = 0
            if silent is not None and silent[rows].any():
                heard = np.flatnonzero(~silent[rows])
                rows, sums = rows[heard], sums.taken(heard)
            index = pa.array(rows)
            ends = positions.of(rows).astype(np.int64)
            times = events.column(plan.order_by[0]).take(index) if plan.order_by else None
            keys = tuple(plain(events.column(name).take(index)) for name in plan.key_columns)
            yield rows, Groups(keys, places_of(plan, ends, times), ends, times, sums)

    def _advance(self, prepared: Prepared) -> Iterator[None]:
        """Run the kernel to the end of the batch; yields whenever what it found must be taken."""
        batch, update = prepared.batch, totals_update(*self._measures.shape)
        measures = self._measured(prepared.events)
        numbers = self._stacks.numbers
        numbers[ROW] = numbers[PART] = 0
        status = FOUND_FULL
        while status != DONE:
            status = update(batch, self._tables, self._changes, measures, self._stacks, self._found)
            if status not in (DONE, FOUND_FULL):
                self._stacks = with_longer_window(self._stacks)
                continue
            yield
        self._stacks.numbers[SHIFT] -= len(batch.symbols)

    def _measured(self, events: pa.RecordBatch) -> Measures:
        """What each event adds to each measure, if it has its label."""
        rows, all_of = len(events), self._measures
        whole = np.empty((len(all_of.whole), rows), np.int64)
        for place, measure in enumerate(all_of.whole):
            whole[place] = whole_values(measure, *_values(events, measure))
        real = np.empty((len(all_of.real), rows), np.float64)
        for place, measure in enumerate(all_of.real):
            real[place] = real_values(measure, *_values(events, measure))
        ordered = np.empty((len(all_of.ordered), rows), np.int64)
        for place, measure in enumerate(all_of.ordered):
            values, known = _values(events, measure)
            ordered[place] = ordered_keys(measure, keys_in_order(values), known)
        of_whole, of_real, of_ordered = self._belongs
        return Measures(whole, of_whole, real, of_real, ordered, of_ordered)


def _values(events: pa.RecordBatch, measure: Measure) -> tuple[np.ndarray, np.ndarray]:
    column = None if measure.attribute is None else events.column(measure.attribute)
    return measured(measure, column, len(events))


def _belongs(plan: Plan, measures: tuple[Measure, ...]) -> np.ndarray:
    """bool[measures, kinds + 1]: whether an event of a kind has the label of a measure; the last
    kind is that of no event."""
    names = plan.label_names
    found = np.zeros((len(measures), len(plan.kinds) + 1), np.bool_)
    for number, measure in enumerate(measures):
        label = names.index(measure.label)
        found[number, :-1] = [label in kind.columns for kind in plan.kinds]
    return found
