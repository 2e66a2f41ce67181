"""Keys of PARTITION BY that are another attribute for each event type: `[src, dst]`.

Where events enter, such a key becomes a column. All later code sees an ordinary partition column.
It is made here for events in Arrow, and in `spark/input/key_columns` for rows of Spark.
"""

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.plan.plan import ChosenKey, Plan
from celc_runtime.plan.schemas import arrow_type


def columns_of_keys(plan: Plan, keys: Iterable[ChosenKey]) -> list[str]:
    """The columns that keys are read from: attributes, and those of types and streams."""
    names = [plan.source.type_name, *(["stream"] if plan.source.stream_column else [])]
    names += [attribute for key in keys for attribute, _ in key.ways]
    return list(dict.fromkeys(names))


def key_values(plan: Plan, key: ChosenKey, columns: Mapping[str, pa.Array]) -> pa.Array:
    """The key of each event; NULL for an undeclared type.

    columns: those of `columns_of_keys`, in their declared types, not dictionary-coded.
    """
    values = pa.nulls(len(columns[plan.source.type_name]), arrow_type(key.type))
    for attribute, types in key.ways:
        values = pc.if_else(_are_of(plan, types, columns), columns[attribute], values)
    return values


def _are_of(
    plan: Plan, types: tuple[tuple[str, str], ...], columns: Mapping[str, pa.Array]
) -> pa.Array:
    """bool[rows]: whether an event is of one of these types; never NULL."""
    if not plan.source.stream_column:
        return _is_in(columns[plan.source.type_name], [name for _, name in types])
    of_streams: dict[str, list[str]] = {}
    for stream, name in types:
        of_streams.setdefault(stream, []).append(name)
    found = pa.repeat(pa.scalar(False), len(columns[plan.source.type_name]))
    for stream, names in of_streams.items():
        of_stream = pc.and_(
            _is_in(columns["stream"], [stream]), _is_in(columns[plan.source.type_name], names)
        )
        found = pc.or_(found, of_stream)
    return found


def _is_in(column: pa.Array, texts: list[str]) -> pa.Array:
    return pc.is_in(column, value_set=pa.array(texts, column.type))
