"""`celc.events_of`: the events of matches, one row for each, joined back to the table of events.

A label holds what SELECT keeps of its events. So an event is found by these attributes and by the
columns of PARTITION BY, on each route in the same way: positions count rows of a partition, and on
Spark there are none. Where two rows of the events are equal in all of these, nothing says which of
them is meant, which is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from celc_runtime.arrow.arrays import plain
from celc_runtime.arrow.event_store import POSITION
from celc_runtime.arrow.events.partition_keys import codes_of_keys
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import MATCH_ID
from celc_runtime.spark.answers.compact import is_spark_frame

from celc.interfaces.pages.tables import arrow_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LABEL = "label"

_AFTER_KEYS = frozenset({"start_pos", "end_pos", "start_time", "end_time"})
"""The columns of a match that follow those of PARTITION BY."""

_SPARK_NAME = "celc_{}"


def events_of(matches: Any, events: Any) -> Any:
    """See `celc.events_of`."""
    if is_spark_frame(matches) != is_spark_frame(events):
        raise TypeError("matches and events are of Spark both, or none: collect the other one")
    if is_spark_frame(matches):
        return _on_spark(matches, events)
    rows, matched = arrow_table(events, "events"), arrow_table(matches, "matches")
    frame = getattr(sys.modules.get("pandas"), "DataFrame", ())
    from_pandas = isinstance(events, frame) or isinstance(matches, frame)
    found, places = _on_one_machine(matched, rows, nan_is_null=from_pandas)
    if not isinstance(events, frame):
        columns = [*found.columns, *rows.take(pa.array(places)).columns]
        return pa.table(columns, names=[*found.column_names, *rows.column_names])
    chosen = events.iloc[places].reset_index(drop=True)
    chosen.insert(0, MATCH_ID, found[MATCH_ID].to_pylist())
    chosen.insert(1, LABEL, found[LABEL].to_pylist())
    return chosen


# --- which columns --------------------------------------------------------------------------------


def _keys_of(
    names: Sequence[str],
    labels: Mapping[str, Sequence[str]],
    events: Sequence[str],
) -> tuple[list[str], dict[str, list[str]]]:
    """(the columns of PARTITION BY; for each label its attributes), by which events are found.

    names: the columns of matches. labels: those of them that are lists of events, with their
    attributes. events: the columns of the events. Raises ValueError where nothing can be found.
    """
    if MATCH_ID not in names:
        raise ValueError(
            "the matches have no column match_id: find them with with_options(match_id=True)"
        )
    if not labels:
        raise ValueError(
            "the matches have no labels that are lists of their events, as a SELECT of values, "
            "SELECT FLAT and totals have none: select labels, as in SELECT x, x.a AS a, and leave "
            "FLAT out of SELECT"
        )
    for name in (MATCH_ID, LABEL):
        if name in events:
            raise ValueError(f"the events have a column {name!r}, which the result adds: rename it")
    parts = []
    for name in names[names.index(MATCH_ID) + 1 :]:
        if name in labels or name in _AFTER_KEYS:
            break
        parts.append(name)
    keys = {
        label: [one for one in attributes if one != POSITION and one in events]
        for label, attributes in labels.items()
    }
    for label, attributes in keys.items():
        if not attributes:
            raise ValueError(
                f"the label {label!r} keeps no attribute that is a column of the events: select "
                f"some, as in SELECT {label}[event_id]"
            )
    return [name for name in parts if name in events], keys


def _none(label: str, names: Sequence[str]) -> str:
    return (
        f"an event of {label!r} is in no row of the events, by {', '.join(names)}: give the events "
        "that the matches were found in"
    )


def _several(label: str, names: Sequence[str]) -> str:
    return (
        f"an event of {label!r} can be several rows of the events, which are equal in "
        f"{', '.join(names)}: select an attribute that tells them apart, as in "
        f"SELECT {label}[event_id], or leave duplicates out of the events"
    )


# --- one machine ----------------------------------------------------------------------------------


def _on_one_machine(
    matches: pa.Table, events: pa.Table, *, nan_is_null: bool
) -> tuple[pa.Table, np.ndarray]:
    """(the ids and labels; int64, the rows of the events), one for each event of each match.

    nan_is_null: NaN and NULL are one, as frames of pandas cannot tell them apart.
    """
    labels = {
        field.name: [one.name for one in field.type.value_type]
        for field in matches.schema
        if pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type)
    }
    parts, keys = _keys_of(matches.column_names, labels, events.column_names)
    of_match, of_label, order, places = [], [], [], []
    for number, (label, attributes) in enumerate(keys.items()):
        column = plain(matches.column(label).combine_chunks())
        parents = np.repeat(np.arange(len(column)), np.asarray(column.value_lengths().fill_null(0)))
        inside = column.flatten()
        attributes = [
            name for name in attributes if not pa.types.is_nested(inside.field(name).type)
        ]
        sought = {name: inside.field(name) for name in attributes}
        sought |= {
            name: matches.column(name).combine_chunks().take(pa.array(parents))
            for name in parts
            if name not in sought
        }
        places.append(_places(label, sought, events, nan_is_null=nan_is_null))
        of_match.append(parents)
        of_label.append(np.full(len(parents), number))
        order.append(np.arange(len(parents)))
    match, numbers = np.concatenate(of_match), np.concatenate(of_label)
    sort = np.lexsort((np.concatenate(order), numbers, match))
    names = pa.array(list(keys), pa.string()).take(pa.array(numbers[sort]))
    ids = matches.column(MATCH_ID).combine_chunks().take(pa.array(match[sort]))
    return pa.table({MATCH_ID: ids, LABEL: names}), np.concatenate(places)[sort]


def _places(
    label: str, sought: Mapping[str, pa.Array], events: pa.Table, *, nan_is_null: bool
) -> np.ndarray:
    """int64: the row of the events that is equal in the sought columns."""
    rows, columns = len(events), []
    for name, values in sought.items():
        column, values = plain(events.column(name).combine_chunks()), plain(values)
        if pa.types.is_null(values.type):  # of a frame whose labels have no value there
            values = values.cast(column.type)
        columns.append(pa.concat_arrays([column.cast(values.type, safe=False), values]))
        if nan_is_null and pa.types.is_floating(values.type):
            both = columns[-1]
            columns[-1] = pc.if_else(pc.is_nan(both), pa.scalar(None, both.type), both)
    wanted = len(next(iter(sought.values())))
    codes = codes_of_keys(columns, rows + wanted)
    of_events = codes[:rows]
    order = np.argsort(of_events, kind="stable")
    first, behind = (
        np.searchsorted(of_events, codes[rows:], side, sorter=order) for side in ("left", "right")
    )
    if (behind == first).any():
        raise EventError(_none(label, list(sought)))
    if (behind > first + 1).any():
        raise EventError(_several(label, list(sought)))
    found: np.ndarray = order[first]
    return found


# --- Spark ----------------------------------------------------------------------------------------


def _on_spark(matches: DataFrame, events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as spark
    from pyspark.sql.types import ArrayType, MapType, StructType

    labels, compared = {}, {}
    for field in matches.schema:
        type = field.dataType
        if isinstance(type, ArrayType) and isinstance(type.elementType, StructType):
            labels[field.name] = type.elementType.names
            nested = ArrayType, MapType, StructType
            compared[field.name] = {
                one.name for one in type.elementType if not isinstance(one.dataType, nested)
            }
    parts, keys = _keys_of(matches.columns, labels, events.columns)
    found = None
    for label, attributes in keys.items():
        names = [name for name in attributes if name in compared[label]]
        of_match = [name for name in parts if name not in names]
        event = _SPARK_NAME.format("event")
        exploded = matches.select(
            spark.col(MATCH_ID), *map(_column, of_match), spark.explode(_column(label)).alias(event)
        )
        sought = exploded.select(
            MATCH_ID,
            *(_column(name).alias(_key(n)) for n, name in enumerate(of_match)),
            *(_column(event, name).alias(_key(n + len(of_match))) for n, name in enumerate(names)),
        )
        by = [*of_match, *names]
        row, count = _SPARK_NAME.format("row"), _SPARK_NAME.format("rows")
        known = events.groupBy(
            *(_column(name).alias(f"{_key(n)}_e") for n, name in enumerate(by))
        ).agg(
            spark.first(spark.struct(*map(_column, events.columns))).alias(row),
            spark.count("*").alias(count),
        )
        equal = spark.lit(True)
        for n in range(len(by)):
            equal = equal & spark.col(_key(n)).eqNullSafe(spark.col(f"{_key(n)}_e"))
        checked = (
            spark.when(spark.col(count).isNull(), spark.raise_error(spark.lit(_none(label, by))))
            .when(spark.col(count) > 1, spark.raise_error(spark.lit(_several(label, by))))
            .otherwise(spark.col(row))
        )
        joined = sought.join(known, equal, "left").select(
            MATCH_ID, spark.lit(label).alias(LABEL), checked.alias(row)
        )
        found = joined if found is None else found.unionAll(joined)
    assert found is not None, "there is a label"
    row = _SPARK_NAME.format("row")
    return found.select(
        MATCH_ID, LABEL, *(_column(row, name).alias(name) for name in events.columns)
    )


def _key(number: int) -> str:
    return _SPARK_NAME.format(f"key_{number}")


def _column(*path: str) -> Column:
    """A column, or a field of one, whatever is in its name."""
    from pyspark.sql import functions as spark

    return spark.col(".".join("`" + name.replace("`", "``") + "`" for name in path))
