"""Several DataFrames, one for each event type, as the one table that a query reads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import quoted
from celc_runtime.spark.input.columns import column_named, struct_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def union_streams(
    frames: Mapping[str | tuple[str, str], DataFrame], *, type_column: str = "type"
) -> DataFrame:
    """One DataFrame per event type, as the one table that a query reads.

    frames: by the name of the event type; for a query of several streams that share type names by
    (stream, type), which adds the column `stream`. The result has `type_column`, then every column
    of any frame; where a frame lacks a column, its rows hold NULL there. The rows have no order.
    Raises EventError where a column has two types or two spellings, occurs twice in a frame, or is
    called like the columns that are added.
    """
    from pyspark.sql import functions

    if not frames:
        raise EventError("union_streams needs a DataFrame for at least one event type; it got none")
    kinds = {isinstance(key, tuple) for key in frames}
    if len(kinds) > 1:
        raise EventError(
            "union_streams needs event types by name, or all of them by (stream, type); it got "
            f"both: {', '.join(map(repr, frames))}"
        )
    added = ["stream", type_column] if kinds == {True} else [type_column]
    types = _agreed_types({_key_shown(key): frame for key, frame in frames.items()}, added)
    parts = []
    for key, frame in frames.items():
        own = dict(struct_fields(frame.schema))
        told = zip(added, key if isinstance(key, tuple) else (key,), strict=True)
        columns = [functions.lit(value).alias(name) for name, value in told]
        for name, type in types.items():
            column = column_named(name) if name in own else functions.lit(None)
            # The frame's own column can be void (NULL alone), so it is cast, too.
            columns.append(column.cast(type).alias(name))
        parts.append(frame.select(*columns))
    return reduce(lambda left, right: left.unionAll(right), parts)


def _key_shown(key: str | tuple[str, str]) -> str:
    return ">".join(key) if isinstance(key, tuple) else key


def _agreed_types(frames: Mapping[str, DataFrame], added: list[str]) -> dict[str, Any]:
    """The columns of all frames with the type that they agree on."""
    types: dict[str, Any] = {}
    owners: dict[str, str] = {}
    spelled: dict[str, str] = {name.lower(): name for name in added}
    for owner, frame in frames.items():
        fields = struct_fields(frame.schema)
        for name, type in fields:
            lower = name.lower()
            if sum(other.lower() == lower for other, _ in fields) > 1:
                raise EventError(
                    f"the DataFrame of {owner!r} has more than one column {name!r} (Spark does not "
                    "tell upper from lower case): drop or rename all but one"
                )
            if lower in {column.lower() for column in added}:
                raise EventError(
                    f"the DataFrame of {owner!r} has a column {name!r} already, and union_streams "
                    f"adds one: drop or rename it, as in df.withColumnRenamed({name!r}, 'kind')"
                )
            if spelled.setdefault(lower, name) != name:
                other = spelled[lower]
                raise EventError(
                    f"the column {other!r} of {owners[other]!r} is {name!r} in the DataFrame of "
                    f"{owner!r}: rename one, as in df.withColumnRenamed({name!r}, {other!r})"
                )
            before = types.get(name)
            if before is None or before.typeName() == "void":
                types[name], owners[name] = type, owner
            elif type.simpleString() not in ("void", before.simpleString()):
                raise EventError(
                    f"the column {name!r} is {before.simpleString()} in the DataFrame of "
                    f"{owners[name]!r} and {type.simpleString()} in that of {owner!r}: cast one of "
                    f"them, as in df.withColumn({name!r}, "
                    f"df[{quoted(name)!r}].cast({before.simpleString()!r}))"
                )
    return types
