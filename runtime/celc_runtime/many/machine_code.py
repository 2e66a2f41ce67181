"""The machine code of queries, made before their events are there."""

from contextlib import suppress

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.event_tables import table_of
from celc_runtime.arrow.events.sorting import sorted_for
from celc_runtime.many.groups import reading_groups
from celc_runtime.many.runs import ManyRuns
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import input_schema
from celc_runtime.program import Program
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import check
from celc_runtime.run.source.run_options import RunOptions

_ROWS_OF_A_TYPE = 8


def make_machine_code(program: Program) -> None:
    """Run a query as `match_all_table` does, so that its machine code exists before the real call.

    It reads some made-up events that differ only in their types. Code for matches may not be made.
    """
    # The events are made up, so an error says nothing.
    with suppress(EventError):
        check(program, Route.ALL_TABLE)
        (group,) = reading_groups([program])
        events = table_of(group.reading, _events(group.plan))
        table, numbered = sorted_for(group.plan, events)
        runs = ManyRuns(group, RunOptions(numbered=numbered))
        for batch in table.to_batches():
            for _ in runs.push(batch, every_row=True):
                pass


def _events(plan: Plan) -> pa.Table:
    types = plan.source.declared_types * _ROWS_OF_A_TYPE
    columns = {field.name: _values(field.type, len(types)) for field in input_schema(plan)}
    columns |= {name: _values(pa.int64(), len(types)) for name in plan.source.tiebreak}
    if plan.source.type_name in columns:
        columns[plan.source.type_name] = pa.array([name for _, name in types])
    if plan.source.stream_column:
        columns["stream"] = pa.array([stream for stream, _ in types])
    return pa.table(columns)


def _values(type: pa.DataType, count: int) -> pa.Array:
    """Ascending values, so that they can be an order."""
    if pa.types.is_string(type):
        return pa.array(["a"] * count)
    numbers = np.arange(count, dtype=np.int32 if pa.types.is_date32(type) else np.int64)
    return pa.array(numbers).cast(type)
