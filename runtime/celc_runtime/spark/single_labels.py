"""Labels that hold exactly one event of every match travel from Python to Spark as plain columns.

The answer has a list of structs for each label. Spark copies what Python returns row by row, and to
copy a list of structs out of Arrow takes several times as long as to copy its fields. So where the
plan says that a label always holds one event, the fields of that event are columns on the way, and
an expression makes the list of them again. Spark's optimizer knows what such an expression is made
of: of a job that asks for `a[0].pos` alone nothing is left but the column.

Measured: a million and a quarter matches of three labels cost Spark 3.2 s of CPU as lists and 1.4 s
as columns out of which it makes the lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from celc_runtime.plan.expressions import Computed
from celc_runtime.plan.plan import Label, Plan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def with_single_fields(plan: Plan, matches: pa.RecordBatch) -> pa.RecordBatch:
    """The matches as they travel: in the place of a label with one event the fields of its event.

    matches: of the plan's output schema. The columns are named by their places. Nothing is copied.
    """
    if not _single(plan):
        return matches
    columns: list[pa.Array] = []
    for column, label in zip(matches.columns, _labels(plan), strict=True):
        if label is None:
            columns.append(column)
            continue
        events = column.flatten()
        if len(events) != len(matches):
            raise AssertionError(
                f"{len(events)} events of {label.name!r} in {len(matches)} matches"
            )
        columns += [events.field(place) for place in range(events.type.num_fields)]
    return pa.RecordBatch.from_arrays(columns, list(map(_wire_name, range(len(columns)))))


def wire_ddl(plan: Plan) -> str:
    """The columns of `with_single_fields` in Spark's notation."""
    if not _single(plan):
        return plan.output_ddl()
    types: list[str] = []
    for (_, type), label in zip(plan.ddl_columns(), _labels(plan), strict=True):
        types += [type] if label is None else [inner for _, inner in plan.ddl_fields(label)]
    return ", ".join(f"{_wire_name(place)} {type}" for place, type in enumerate(types))


def with_lists(plan: Plan, matches: DataFrame) -> DataFrame:
    """The DataFrame of matches with the columns of the answer, from one with `wire_ddl`."""
    if not _single(plan):
        return matches
    return matches.select(*_answer_columns(plan))


def _answer_columns(plan: Plan) -> Iterator[Column]:
    from pyspark.sql import functions

    place = 0
    for (name, type), label in zip(plan.ddl_columns(), _labels(plan), strict=True):
        if label is None:
            yield functions.col(_wire_name(place)).alias(name)
            place += 1
            continue
        fields = []
        for inner, _ in plan.ddl_fields(label):
            fields.append(functions.col(_wire_name(place)).alias(inner))
            place += 1
        event = functions.array(functions.struct(*fields)).cast(type)
        # By their types the columns of an answer can be NULL. Spark's optimizer takes this out.
        yield functions.nvl2(functions.lit(True), event, functions.lit(None)).alias(name)


def _single(plan: Plan) -> list[Label]:
    return [label for label in _labels(plan) if label is not None]


def _labels(plan: Plan) -> list[Label | None]:
    """For each column of the answer the label that always holds one event, None for others."""
    shown = [None if isinstance(item, Computed) or not item.single else item for item in plan.items]
    return [None] * (len(plan.ddl_columns()) - len(shown)) + shown


def _wire_name(place: int) -> str:
    return f"column_{place}"
