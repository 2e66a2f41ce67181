"""What is found of a row before it is shuffled: its conditions, if they read that row alone.

A row waits for the watermark, so its bytes go through Spark's shuffle and into its store and back.
Of a row whose conditions are known, these are all that a pattern asks for. So columns that only
conditions read travel as NULL, and so does all but the place of a row that fits no variable, where
no measure reads rows outside of matches.

Rejected: leaving out rows that fit no variable. Neighbours in a partition are known only once all
rows up to the watermark are there, and the row between two rows may be one of those. Rejected:
columns fewer in the format, because `late="side"` shows all columns, and a stream may be begun
without it and go on with it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Attribute
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.row_pattern.program import RowProgram
from celc_runtime.row_pattern.run import run_of

_BITS_OF_A_BYTE = 7


def found_attribute(plan: RowPlan) -> Attribute | None:
    """The column of the conditions that hold for a row, as bits; None: they are found when the rows
    around it are there."""
    if not plan.alone:
        return None
    type = "BYTE" if plan.local_conditions <= _BITS_OF_A_BYTE else "LONG"
    return Attribute(unused_name("celc_found", [one.name for one in plan.columns]), type)


def with_found(
    program: RowProgram, columns: dict[str, pa.Array], tiebreak: Iterable[str], *, shown: bool
) -> dict[str, pa.Array]:
    """The columns of rows in any order, with those conditions.

    shown: whether rows may have to be shown as they are, so that all their values stay.
    """
    plan = program.plan
    attribute = found_attribute(plan)
    if attribute is None:
        return columns
    names = [one.name for one in plan.columns]
    read = {number: columns[names[number]] for number in plan.columns_read}
    rows = len(next(iter(columns.values())))
    bits = run_of(program, read, np.array([0, rows], np.int64)).found()
    found = columns | {attribute.name: pa.array(bits.astype(np.int64))}
    if shown:
        return found
    places = {names[number] for number in _columns_of_places(plan)} | {*tiebreak}
    answers = {names[number] for number in plan.columns_shown}
    idle = pa.array(bits == 0) if _is_read_in_matches_alone(plan) else None
    for name in columns.keys() - places:
        if name not in answers:
            found[name] = pa.nulls(rows, columns[name].type)
        elif idle is not None:
            nothing = pa.scalar(None, columns[name].type)
            found[name] = pc.if_else(idle, nothing, columns[name])
    return found


def columns_behind(plan: RowPlan) -> tuple[int, ...]:
    """The numbers of the columns that are read once conditions are known, in their order."""
    return tuple(sorted({*_columns_of_places(plan), *plan.columns_shown}))


def _columns_of_places(plan: RowPlan) -> set[int]:
    return {*plan.partition_by, *(one.column for one in plan.order_by)}


def _is_read_in_matches_alone(plan: RowPlan) -> bool:
    """Whether of a row for which no condition holds nothing but its place is read."""
    starts = plan.states[plan.first], plan.states[plan.start]
    return (
        plan.rows != "WITH UNMATCHED"
        and not any(state.accepts or state.accepts_at_end for state in starts)
        and not any(one.shift for one in plan.navigations)
        and all(move.condition >= 0 for state in plan.states for move in state.moves)
        and all(one.local >= 0 for one in plan.conditions)
    )
