"""How many matches of a job are left undecided, counted where the progress of a job is watched.

A match with an absence at its end is undecided as long as a later event could undo it. A task knows
how many it has left; its warning is on the standard error of a worker, where nobody looks. So with
`match(df, progress=True)` the matches travel with one more column, which is NULL in all of them,
and behind them comes a row of each task that has the number there and nothing else. An observation
adds these up, and a filter takes the rows out. Without `progress` nothing travels: nobody would
read the number. Rejected: an accumulator, which Spark Connect does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from celc_runtime.plan.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMN = "undecided"
"""The name of the column. Those of matches are `column_0` and so on."""

DDL = f"{COLUMN} BIGINT"


def leaves_undecided(plan: Plan) -> bool:
    """Whether a run can leave matches undecided."""
    return bool(plan.choice.deadlines) and plan.choice.at_end == "open"


def with_undecided(
    schema: pa.Schema, matches: Iterator[pa.RecordBatch], undecided: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """The matches of a task, with the column, and in the end the row with the number.

    schema: of the matches. undecided: has the number once the matches have been read.
    """
    wider = schema.append(pa.field(COLUMN, pa.int64()))
    for batch in matches:
        none = pa.nulls(len(batch), pa.int64())
        yield pa.RecordBatch.from_arrays([*batch.columns, none], schema=wider)
    nothing = [pa.nulls(1, field.type) for field in schema]
    total = pa.array([sum(undecided)], pa.int64())
    yield pa.RecordBatch.from_arrays([*nothing, total], schema=wider)


def counted(found: DataFrame, observation: object) -> DataFrame:
    """The matches of tasks without the rows with numbers, whose sum is observed as `undecided`."""
    from pyspark.sql import functions

    total = functions.coalesce(functions.sum(COLUMN), functions.lit(0)).alias(COLUMN)
    return found.observe(observation, total).where(functions.col(COLUMN).isNull()).drop(COLUMN)
