"""The columns of a task's rows: those of the events, and those that say more of each row."""

from __future__ import annotations

from typing import Any, NamedTuple

from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan

MATTERS, TIED, COUNTED = range(3)
"""The marks of rows that were numbered: it can matter; the order leaves it equal to the row before
it; it is there because of its number only."""


def no_type(plan: Plan) -> str:
    """The text of a row without a type, where NULL says that a row cannot matter. No declared type
    is called so: a row with it is refused as one without a type."""
    return unused_name("no type", (name for _, name in plan.source.declared_types))


class Unsorted(NamedTuple):
    """Rows that come in no order, all those of a key to one task, which sorts them.

    names: the columns of the events. matters: the column that says which rows can matter, a BOOLEAN
    or the column of types, which is then NULL in the other rows (`no_type`); these have no values
    but those they are sorted by, and are left out when they have been numbered. Empty: all rows
    have all values, and none is left out.
    """

    names: tuple[str, ...]
    matters: str


class TaskColumns(NamedTuple):
    """The names of columns that are no part of the events; empty for those that are not there.

    range: the number of a row's range, counted from 1, and 0 for keys that are read as a whole; the
    rows of a range stand one after another. number: the number of a row in its partition or range,
    counted from 1, and 0 for rows of undeclared types. mark: MATTERS, TIED or COUNTED. A row has a
    mark where it has a number. unsorted: how the rows come to a task that sorts them, and numbers
    them if there are numbers; None: Spark has done so.
    """

    range: str = ""
    number: str = ""
    mark: str = ""
    unsorted: Unsorted | None = None

    def shipped(self) -> tuple[Any, ...]:
        """The same without classes of the runtime, which a worker gets later."""
        return (*self[:3], None if self.unsorted is None else tuple(self.unsorted))

    @classmethod
    def of(cls, shipped: tuple[Any, ...]) -> TaskColumns:
        """The columns that were shipped."""
        in_range, number, mark, unsorted = shipped
        return cls(in_range, number, mark, None if unsorted is None else Unsorted(*unsorted))


EVENTS_ALONE = TaskColumns()
"""For rows that have only the columns of the events, and are sorted."""
