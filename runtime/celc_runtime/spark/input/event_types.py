"""Conditions of Spark's on the event types of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from celc_runtime.plan.plan import Plan
from celc_runtime.spark.input.columns import column_named

if TYPE_CHECKING:
    from pyspark.sql import Column


def is_of_types(plan: Plan, pairs: Sequence[tuple[str, str]]) -> Column:
    """Whether a row is of one of these event types, given as (stream, type); NULL where there are
    some and a row has no type or no stream.

    The columns are compared without their collations: the workers tell types apart byte by byte.
    """
    from pyspark.sql import functions

    if not pairs:
        return functions.lit(False)
    types = column_named(plan.source.type_name).cast("string")
    if not plan.source.stream_column:
        return types.isin([name for _, name in pairs])
    streams = column_named("stream").cast("string")
    return reduce(
        lambda one, other: one | other,
        [(streams == stream) & (types == name) for stream, name in pairs],
    )
