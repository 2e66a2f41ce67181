"""Texts of events and of rows as codes of one dictionary, so that pairs compare numbers."""

from collections.abc import Mapping

import pyarrow as pa

from celc_runtime.arrow.arrays import coded
from celc_runtime.plan.plan import Plan


def with_one_dictionary(
    plan: Plan, events: pa.RecordBatch, rows: Mapping[str, pa.Array]
) -> tuple[pa.RecordBatch, dict[str, pa.Array]]:
    """The columns of events and rows with coded texts, so that many copies of them are cheap.

    The columns of types have their own, short dictionaries.
    """
    of_types = (plan.source.type_name, "stream")
    names = events.schema.names
    columns = {f"event {name}": events.column(name) for name in names if name not in of_types}
    columns |= {f"row {name}": column for name, column in rows.items()}
    columns = _shared({name: one for name, one in columns.items() if _is_text(one)})
    found = []
    for name in names:
        column = events.column(name)
        if name in of_types and _is_text(column):
            column = coded(column)
        found.append(columns.get(f"event {name}", column))
    shared = {name: columns.get(f"row {name}", column) for name, column in rows.items()}
    return pa.RecordBatch.from_arrays(found, names), shared


def _is_text(column: pa.Array) -> bool:
    type = column.type
    return bool(
        pa.types.is_string(type)
        or (pa.types.is_dictionary(type) and pa.types.is_string(type.value_type))
    )


def _shared(columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    parts = {name: coded(column) for name, column in columns.items()}
    if not parts:
        return {}
    # All dictionaries as one column: each text is looked up once.
    texts = pa.concat_arrays([one.dictionary for one in parts.values()]).dictionary_encode()
    found, begin = {}, 0
    for name, one in parts.items():
        places = texts.indices.slice(begin, len(one.dictionary))
        found[name] = pa.DictionaryArray.from_arrays(places.take(one.indices), texts.dictionary)
        begin += len(places)
    return found
