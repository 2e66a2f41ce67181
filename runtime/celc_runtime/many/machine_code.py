"""The machine code of queries, made before their events are there."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from celc_runtime.arrow.event_tables import table_of
from celc_runtime.arrow.sorting import sorted_for
from celc_runtime.many.groups import reading_groups
from celc_runtime.many.runs import ManyRuns
from celc_runtime.program import Program

_ROWS = 8


def make_machine_code(programs: Mapping[str, Program]) -> None:
    """Run queries as `match_all_table` does, over some events that all are alike but for their
    types, so that their machine code is there when it does. What only matches need is not made."""
    for group in reading_groups(programs.values()):
        plan = group.plan
        kinds = plan.declared_types * _ROWS
        columns = {}
        for field in plan.input_schema("arrow"):
            columns[field.name] = _values(field, len(kinds))
        if plan.type_name in columns:
            columns[plan.type_name] = pa.array([name for _, name in kinds])
        if "stream" in columns and plan.stream_column:
            columns["stream"] = pa.array([stream for stream, _ in kinds])
        table, numbered = sorted_for(plan, table_of(group.reading, pa.table(columns)))
        runs = ManyRuns(group, numbered=numbered)
        for batch in table.to_batches():
            for _ in runs.push(batch, every_row=True):
                pass
