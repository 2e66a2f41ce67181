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
from celc_runtime.engine.measured_events import write_real
from celc_runtime.engine.measures import (
    Measure,
    MeasureSet,
    real_values,
    write_measured_keys,
    write_measured_whole,
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
from celc_runtime.run.match_groups import measured, places_of
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
            rows = self._found.rows[:used].copy()
            sums = found_sums(self._found, self._measures.shape)
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
        wholes, reals, keys = len(all_of.whole), 2 * len(all_of.real), len(all_of.ordered)
        whole = np.empty(rows * wholes, np.int64)
        for place, measure in enumerate(all_of.whole):
            write_measured_whole(measure, *_values(events, measure), whole, place, wholes)
        real = np.empty(rows * reals, np.float64)
        for place, measure in enumerate(all_of.real):
            values, known = _values(events, measure)
            write_real(real_values(values), known, real, 2 * place, reals)
        ordered = np.empty(rows * keys, np.int64)
        for place, measure in enumerate(all_of.ordered):
            write_measured_keys(measure, *_values(events, measure), ordered, place, keys)
        of_whole, of_real, of_ordered = self._belongs
        return Measures(whole, of_whole, real, of_real, ordered, of_ordered)


def _values(events: pa.RecordBatch, measure: Measure) -> tuple[np.ndarray, np.ndarray]:
    column = None if measure.attribute is None else events.column(measure.attribute)
    return measured(measure, column, len(events))


def _belongs(plan: Plan, measures: tuple[Measure, ...]) -> np.ndarray:
    """bool[(kinds + 1) × measures]: whether an event of a kind has the label of a measure; the last
    kind is that of no event."""
    names = plan.label_names
    found = np.zeros((len(plan.kinds) + 1, len(measures)), np.bool_)
    for number, measure in enumerate(measures):
        label = names.index(measure.label)
        found[:-1, number] = [label in kind.columns for kind in plan.kinds]
    return found.reshape(-1)
