"""Window keys: the values that a window is measured on, as whole numbers, and their checks."""

import math

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import (
    immeasurable,
    is_whole,
    not_a_number,
    numbers,
    whole_numbers,
    whole_values,
)
from celc_runtime.arrow.events.event_order import EventOrder
from celc_runtime.arrow.events.row_names import RowNames
from celc_runtime.arrow.late_rows import LateRows
from celc_runtime.arrow.shown import shown
from celc_runtime.engine.arena.batch import NO_INTEGERS, float_floors
from celc_runtime.engine.arena.nodes import ALWAYS
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan

_NOWHERE = np.zeros(0, np.bool_)
_FEW = 1 << 12  # rows


class WindowKeys:
    """Measures the events of one run on the attribute of one window.

    order: knows the event before each batch.
    """

    def __init__(self, plan: Plan, attribute: str, rows: RowNames, order: EventOrder) -> None:
        self._plan = plan
        self._attribute = attribute
        self._rows = rows
        self._order = order
        self._slot_keys = NO_INTEGERS

    def of(self, events: pa.RecordBatch, parts: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """int64[rows] keys.

        parts: int64, the rows at which partitions begin. slots: the partition of each row, if they
        interleave.
        Raises EventError if the attribute cannot be measured, or falls.
        """
        plan, name = self._plan, self._attribute
        if plan.source.order_by[:1] == (name,):
            # All that is left to see of few rows: the order of events has been checked.
            values = self._of_few(events)
            if values is not None and np.minimum.reduce(values) > -(2**63):
                return values
        column = events.column(name)
        for wrong, what in (
            (column.is_null() if column.null_count else None, "NULL"),
            (not_a_number(column), "NaN"),
            (self._immeasurable(column, parts), "too far from 0 to measure from"),
        ):
            if wrong is not None and len(wrong) and np.asarray(wrong).any():
                raise EventError(
                    f"query {plan.name!r}: WITHIN is measured on {name!r}, which is {what} in "
                    f"{self._rows.first(events, wrong)}: filter such rows out, or measure on "
                    "another attribute"
                )
        values = whole_numbers(column)
        falls = self._falls(values, parts, slots)
        if len(falls) and falls.any():
            raise EventError(
                f"query {plan.name!r}: WITHIN is measured on {name!r}, which falls in "
                f"{self._rows.first(events, falls)} to {shown(column[int(falls.argmax())])}: order "
                "the events by it, or measure on another attribute"
            )
        return values

    def _of_few(self, events: pa.RecordBatch) -> np.ndarray | None:
        """The values of few rows, if they are int64; else None."""
        if isinstance(events, LateRows):
            values = events.values.get(self._attribute)
        elif 0 < len(events) <= _FEW and is_whole(column := events.column(self._attribute)):
            values = whole_values(column)
        else:
            return None
        return values if values is not None and values.dtype == np.int64 else None

    def _immeasurable(self, column: pa.Array, parts: np.ndarray) -> np.ndarray:
        """As `immeasurable`; it looks at few values if events are ordered by the attribute."""
        if self._plan.source.order_by[:1] == (self._attribute,) and column.type == pa.int64():
            values = numbers(column)[0]
            if len(values) and values[np.append(0, parts)].min() > -(2**63):
                return _NOWHERE
        return immeasurable(column)

    def _falls(self, values: np.ndarray, parts: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """bool[rows]: where it is less than at the event before in the same partition."""
        plan, name = self._plan, self._attribute
        if not len(values) or plan.source.order_by[:1] == (name,):
            return _NOWHERE  # the order of events has been checked
        falls = np.zeros(len(values), np.bool_)
        if plan.interleaves:
            return self._falls_in_slots(values, slots)
        falls[1:] = values[1:] < values[:-1]
        if self._order.last is not None:
            falls[0] = values[0] < whole_numbers(self._order.last[name])[0]
        falls[parts] = False
        return falls

    def _falls_in_slots(self, values: np.ndarray, slots: np.ndarray) -> np.ndarray:
        more = np.full(self._order.partitions_seen - len(self._slot_keys), -(2**63), np.int64)
        self._slot_keys = np.concatenate([self._slot_keys, more])
        rows = np.argsort(slots, kind="stable")
        of_slots, sorted_values = slots[rows], values[rows]
        before = np.roll(sorted_values, 1)
        first = np.append(True, of_slots[1:] != of_slots[:-1])
        before[first] = self._slot_keys[of_slots[first]]
        last = np.roll(first, -1)
        self._slot_keys[of_slots[last]] = sorted_values[last]
        falls = np.empty(len(values), np.bool_)
        falls[rows] = sorted_values < before
        return falls


def floors_of(keys: np.ndarray, size: int | float, type: pa.DataType) -> np.ndarray:
    """int64: for each key of a column the smallest key in the window that ends there.

    The greatest number if no key is in it.
    """
    if pa.types.is_floating(type):
        floors: np.ndarray = float_floors(keys, float(size))
        return floors
    # Between whole numbers, a fraction in the size makes no difference.
    whole = math.floor(size)
    return np.where(keys >= ALWAYS + whole, keys - whole, ALWAYS)
