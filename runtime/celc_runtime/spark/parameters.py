"""Parameter tables of `match`: collected once, and sent to every task with the query.

Rejected: a join of events and rows on Spark, which would have to know each comparison, and shuffle
pairs where now events are shuffled; a broadcast variable, which Connect has none of. What is larger
than a megabyte Spark broadcasts with the function by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.rules.rows import Rows, given_rows
from celc_runtime.spark.columns import column_named


def given_rules(program: Program, tables: Mapping[str, Any]) -> Rows | None:
    """The rows of the tables that a call gives; None for a query without a parameter set.

    Raises TypeError for a table without a set and for a set without a table, EventError where a
    table does not fit its declaration.
    """
    if program.plan.parameters is None and not tables:
        return None
    found = {name: _collected(program, name, table) for name, table in tables.items()}
    return given_rows(program, found)


def _collected(program: Program, name: str, table: Any) -> Any:
    """The rows of a DataFrame of Spark as a table of Arrow; what is none as it is."""
    if not type(table).__module__.startswith("pyspark.sql"):
        return table
    if table.isStreaming:
        raise EventError(
            f"query {program.name!r}: the table of parameters {name!r} is a stream, but its rows "
            "are fixed for a run: read it with spark.read"
        )
    parameters = program.plan.parameters
    declared = () if parameters is None else parameters.attributes
    kept = [one.name for one in declared if one.name in table.columns]
    # Without any of them the error names the columns that there are.
    return (table.select(*map(column_named, kept)) if kept else table.limit(0)).toArrow()


def rules_line(plan: Plan, count: int) -> str:
    """What a plan says of its parameter table."""
    parameters = plan.parameters
    assert parameters is not None
    way = "an index finds the rows that an event concerns"
    if parameters.concerns is None:
        way = f"every event meets every row, because {parameters.why}"
    return f"parameters: {count:,} rows of {parameters.name!r} are sent to each task; {way}"
