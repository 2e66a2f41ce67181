"""The order of events, and their partitions: checked from batch to batch.

Within a partition the order columns must not fall, and a partition must not come back. The checks
look once at each order column. They do not look at tiebreak columns if the first order column
decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import (
    differs,
    not_a_number,
    numbers,
    order_of_neighbours,
    plain,
    whole_numbers,
)
from celc_runtime.arrow.events.partition_keys import codes_of_keys, key_tuples
from celc_runtime.arrow.events.row_names import RowNames
from celc_runtime.arrow.shown import shown
from celc_runtime.engine.arena.batch import NO_INTEGERS, disorder
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan

_FEW_ROWS = 4096  # a batch of up to this many rows may stay in memory until the next one comes


def tie_error(plan: Plan, which: str) -> EventError:
    """The error for two events of a distributed table that the order leaves equal."""
    names = ", ".join((*plan.source.order_by, *plan.source.tiebreak))
    return EventError(
        f"query {plan.name!r}: two events are equal in {names} ({which}), and a distributed table "
        "has no order of its own: name a column that tells them apart, as in "
        "with_options(tiebreak=['event_id']) or celc compile --tiebreak event_id; or, if neither "
        "comes before the other and the query asks for no order among them (as SELECT FIRST, LIMIT "
        "and EVENTS do), compile it with ties='simultaneous' (--ties simultaneous). No column tells"
        " rows apart that are equal in all columns: df.dropDuplicates() leaves one of them"
    )


class Arrangement(NamedTuple):
    """What is known of all rows of a run, in order: nobody need look at them again."""

    rows: int
    parts: np.ndarray  # int64, the rows at which partitions begin; empty: at none of them
    tied: np.ndarray | None  # bool[rows], as `EventOrder.tied`
    rises: bool  # as `EventOrder.rises`: a tiebreak does not count

    @property
    def is_of_some(self) -> bool:
        """Whether the same is known of some of the rows, whichever they are."""
        return not len(self.parts) and self.tied is None

    def of_slice(self, first: int, end: int, *, continues: bool) -> Arrangement:
        """What is known of the rows from `first` to before `end`. continues: the partition of the
        first one began before."""
        begin, behind = np.searchsorted(self.parts, (first + continues, end))
        tied = None if self.tied is None else self.tied[first:end]
        return Arrangement(end - first, self.parts[begin:behind] - first, tied, self.rises)


class EventOrder:
    """Checks the order of one run's events.

    ties_are_errors: whether two events must not be equal in the order. continues: the first event's
    partition was entered before. parts_checked: it is known that no partition comes back.
    """

    rises = True
    """Whether the first order column shows that no two rows of the last checked batch are equal in
    order and partition."""

    tied: np.ndarray | None = None
    """bool[rows], the rows of the last checked batch that are equal in order and partition to the
    row before; None: there is none."""

    _left: pa.RecordBatch | None = None
    _last: dict[str, pa.Array] | None = None
    _last_key: tuple[object, ...] = ()
    _last_value: tuple[pa.DataType, np.generic] | None = None

    def __init__(
        self,
        plan: Plan,
        rows: RowNames,
        *,
        ties_are_errors: bool,
        continues: bool,
        parts_checked: bool = False,
    ) -> None:
        self._plan = plan
        self._rows = rows
        self._ties_are_errors = ties_are_errors and not plan.source.takes_ties
        self._continues = continues
        self._parts_checked = parts_checked
        self._keys_seen: set[tuple[object, ...]] = set()
        self._slots: dict[tuple[object, ...], int] = {}

    @property
    def partitions_seen(self) -> int:
        """The number of slots that interleaved partitions have taken so far."""
        return max(1, len(self._slots))

    @property
    def last(self) -> dict[str, pa.Array] | None:
        """The order and partition columns of the last event so far; None: there was no event."""
        if self._left is not None:
            self._last, self._left = self._last_of(self._left), None
        return self._last

    def leave(self, events: pa.RecordBatch) -> None:
        if not len(events):
            return
        # Extracting a row takes a sixth of the time of a batch of a hundred rows. Most sorted
        # batches do not need it. A large batch is not kept for it.
        if len(events) > _FEW_ROWS:
            self._last, self._left = self._last_of(events), None
        else:
            self._left = events

    def _last_of(self, events: pa.RecordBatch) -> dict[str, pa.Array]:
        plan = self._plan
        source = plan.source
        names = dict.fromkeys((*source.key_columns, *source.order_by, *source.tiebreak))
        if plan.window_attribute:
            names[plan.window_attribute] = None
        names |= dict.fromkeys(plan.local_attributes)
        if not names:
            return {}
        last = events.select(list(names)).take(pa.array([len(events) - 1]))
        return {name: plain(column) for name, column in zip(names, last.columns, strict=True)}

    @property
    def _has_last(self) -> bool:
        return self._left is not None or self._last is not None

    def part_starts(self, events: pa.RecordBatch) -> np.ndarray:
        """int64: the rows at which a new partition begins; one that comes back is an error."""
        plan = self._plan
        source = plan.source
        if not len(events):
            return NO_INTEGERS
        changed = np.zeros(len(events), np.bool_)
        for name in source.key_columns:
            changed[1:] |= differs(events.column(name))
        changed[0] = True
        if self._has_last or self._continues:
            (first,) = key_tuples([events.column(name).slice(0, 1) for name in source.key_columns])
            if self._has_last:
                changed[0] = first != self._last_key
            else:
                changed[0] = False
                self._keys_seen.add(first)
            self._last_key = first
        starts = np.flatnonzero(changed)
        # To look for partitions that come back takes a Python object for each.
        seen = starts[-1:] if self._parts_checked else starts
        keys = key_tuples([events.column(name) for name in source.key_columns], seen)
        self._last_key = keys[-1] if keys else self._last_key
        if self._parts_checked:
            return starts
        new = set(keys)
        # As whole sets, because there can be as many partitions as rows.
        if len(new) < len(keys) or not self._keys_seen.isdisjoint(new):
            number = self._first_seen_before(keys)
            row = int(starts[number])
            partition = ", ".join(
                f"{name}={shown(events.column(name)[row])}" for name in source.key_columns
            )
            raise EventError(
                f"query {plan.name!r}: the partition {partition} comes back in "
                f"{self._rows.of(events, row)} after others: sort the "
                f"events by {', '.join(source.key_columns)} first, or use match_table"
            )
        self._keys_seen |= new
        return starts

    def _first_seen_before(self, keys: list[tuple[object, ...]]) -> int:
        """The index of the first key that has come before."""
        seen = set(self._keys_seen)
        for number, key in enumerate(keys):
            if key in seen:
                return number
            seen.add(key)
        raise AssertionError("a key has come before")

    def slots_of(self, events: pa.RecordBatch) -> np.ndarray:
        """int64[rows]: the slot of each row's partition, the same whenever the partition comes."""
        names = list(self._plan.source.key_columns)
        codes = codes_of_keys([plain(events.column(name)) for name in names], len(events))
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        keys = key_tuples([events.column(name) for name in names], first)
        numbers_of_keys = [self._slots.setdefault(key, len(self._slots)) for key in keys]
        return np.array(numbers_of_keys or [0], np.int64)[inverse] if len(events) else NO_INTEGERS

    def check(
        self, events: pa.RecordBatch, parts: np.ndarray, arranged: Arrangement | None = None
    ) -> None:
        """Raises EventError if the order columns do not order the events of each partition.

        parts: int64, the rows at which partitions begin. arranged: what is known of the events.
        """
        plan = self._plan
        if arranged is not None and not (self._ties_are_errors and arranged.tied is not None):
            if plan.source.begin is not None:
                self._check_starts(events, plan.source.begin)
            self.tied = arranged.tied
            self.rises = arranged.rises
            return
        for name in plan.source.order_by:
            column = events.column(name)
            if column.null_count:
                raise EventError(
                    f"query {plan.name!r}: the order column {name!r} is NULL in "
                    f"{self._rows.first(events, column.is_null())}: filter such rows out, or order "
                    "by another column"
                )
            nan = not_a_number(column)
            if len(nan) and nan.any():
                raise EventError(
                    f"query {plan.name!r}: the order column {name!r} is NaN in "
                    f"{self._rows.first(events, nan)}: filter such rows out, or order by another "
                    "column"
                )
        if plan.source.begin is not None:
            self._check_starts(events, plan.source.begin)
        names = (*plan.source.order_by, *plan.source.tiebreak)
        self.rises = not len(events)
        self.tied = None
        if not plan.source.order_by or not len(events):
            return
        if self._is_in_order(events.column(names[0]), parts, alone=len(names) == 1):
            return
        undecided = np.ones(len(events), np.bool_)
        undecided[parts] = False
        last = self.last
        if last is None:
            undecided[0] = False
        for name in names:
            column = plain(events.column(name))
            order = order_of_neighbours(column, None if last is None else last[name])
            wrong = undecided & (order < 0)
            if wrong.any():
                raise EventError(
                    f"query {plan.name!r}: the events are not in the order of {', '.join(names)}: "
                    f"{self._rows.first(events, wrong)} has {name}="
                    f"{shown(column[int(wrong.argmax())])} after a larger value; sort them first, "
                    "or use match_table"
                )
            undecided &= order == 0
        if self._ties_are_errors and undecided.any():
            which = f"{self._rows.first(events, undecided)} and the one before it"
            raise tie_error(plan, which)
        self.tied = undecided

    def _check_starts(self, events: pa.RecordBatch, name: str) -> None:
        """Raises EventError for an event with a duration that has no start, or starts after its
        end."""
        plan = self._plan
        start, end = events.column(name), events.column(plan.source.order_by[0])
        nan = not_a_number(start)
        for missing, what in ((start.is_null(), "NULL"), (nan, "NaN")):
            if len(missing) and np.asarray(missing).any():
                raise EventError(
                    f"query {plan.name!r}: the start of events, {name!r}, is {what} in "
                    f"{self._rows.first(events, missing)}: filter such rows out"
                )
        turned = whole_numbers(start) > whole_numbers(end)
        if turned.any():
            row = int(turned.argmax())
            raise EventError(
                f"query {plan.name!r}: {self._rows.first(events, turned)} starts after its end: "
                f"{name!r} is {shown(start[row])}, and {plan.source.order_by[0]!r} is "
                f"{shown(end[row])}: mend the row, or filter it out"
            )

    def _is_in_order(self, column: pa.Array, parts: np.ndarray, *, alone: bool) -> bool:
        """Whether the first order column by itself proves that all events are in order.

        alone: there is no other order column, so equal values are in order unless ties are errors.
        Always False for a column that is not of whole numbers or times.
        """
        whole = pa.types.is_integer(column.type) or pa.types.is_temporal(column.type)
        if not whole or column.type == pa.uint64():
            return False
        values = numbers(column)[0]
        before = self._value_before(column.type)
        self._last_value = column.type, values[-1]
        if before is None:
            falls, ties = disorder(values[1:], values[0]) if len(values) > 1 else (0, 0)
        else:
            falls, ties = disorder(values, before)
        if not falls and not ties:
            self.rises = True
            return True
        # Where a partition begins, any value is allowed.
        begins = len(parts) > 0 and parts[0] == 0
        at = parts[1:] if begins else parts
        here, there = values[at], values[at - 1]
        falls -= int(np.count_nonzero(here < there))
        ties -= int(np.count_nonzero(here == there))
        if begins and before is not None:
            falls -= int(values[0] < before)
            ties -= int(values[0] == before)
        self.rises = not falls and not ties
        if falls or (ties and (not alone or self._ties_are_errors)):
            return False
        if ties:
            self.tied = np.empty(len(values), np.bool_)
            self.tied[0] = before is not None and values[0] == before
            np.equal(values[1:], values[:-1], out=self.tied[1:])
            self.tied[parts] = False
        return True

    def _value_before(self, type: pa.DataType) -> np.generic | None:
        """The value of the first order column in the last event, as a number of this type."""
        if not self._has_last:
            return None
        if self._last_value is not None and self._last_value[0] == type:
            return self._last_value[1]
        last = self.last
        assert last is not None
        value: np.generic = numbers(last[self._plan.source.order_by[0]].cast(type))[0][0]
        return value
