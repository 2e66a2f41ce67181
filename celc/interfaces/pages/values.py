"""Arrow columns → columns of a page's data, in JSON.

A number that JavaScript cannot hold exactly becomes a text. Times are microseconds since 1970 in
UTC if they are such numbers.
"""

from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from celc_runtime.arrow.arrays import in_one_piece, plain
from celc_runtime.arrow.short_floats import short_floats, shown_value, shown_values
from celc_runtime.arrow.shown import duration_text

EXACT = 2**53  # JavaScript's whole numbers are exact up to this one

MOST_ITEMS = 50  # events of a label, or values of an array, in one cell

MOST_SIGNS = 2_000  # characters of a text; a longer one is cut, so that the page still opens


def column_of(name: str, values: pa.Array | pa.ChunkedArray) -> dict[str, Any]:
    """A column as the page reads it: name, kind, and values by kind.

    - number, time, boolean: the values; null for NULL
    - text: `texts` has each text once; `codes` the place of each row's text there, −1 for NULL;
      `numeric`: the texts are long numbers
    - label: the texts of each row's events; `first` is the position of the first event
    """
    array = short_floats(plain(in_one_piece(values)))
    type = array.type
    if pa.types.is_list(type) and pa.types.is_struct(type.value_type):
        rows = shown_values(array)
        first = [row[0].get("pos") if row else None for row in rows]
        return {"name": name, "kind": "label", "values": list(map(_events, rows)), "first": first}
    if pa.types.is_boolean(type):
        return {"name": name, "kind": "boolean", "values": array.to_pylist()}
    found = None
    if pa.types.is_timestamp(type):
        found = _whole(array.cast(pa.timestamp("us", tz=type.tz), safe=False).cast(pa.int64()))
    elif pa.types.is_integer(type):
        found = _whole(array)
    elif pa.types.is_floating(type):
        found = _floats(array)
    elif pa.types.is_decimal(type):
        found = _decimals(array)
    if found is not None:
        kind = "time" if pa.types.is_timestamp(type) else "number"
        return {"name": name, "kind": kind, "values": found}
    numeric = pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)
    return {"name": name, "kind": "text", "numeric": numeric, **_coded(array)}


_Numbers: TypeAlias = list[int | float | None]


def _whole(array: pa.Array) -> _Numbers | None:
    ends = list(pc.min_max(array).as_py().values()) if len(array) > array.null_count else []
    found: _Numbers = array.to_pylist()
    return found if all(abs(end) <= EXACT for end in ends) else None


def _floats(array: pa.Array) -> _Numbers | None:
    """The numbers; None where some are NaN or infinite, which JSON cannot hold."""
    if not pc.all(pc.is_finite(array), skip_nulls=True, min_count=0).as_py():
        return None
    return list(array.to_pylist())


def _decimals(array: pa.Array) -> _Numbers | None:
    values = array.to_pylist()
    if array.type.scale or any(v is not None and abs(v) > EXACT for v in values):
        return None
    return [None if v is None else int(v) for v in values]


def _coded(array: pa.Array) -> dict[str, Any]:
    if pa.types.is_nested(array.type):
        texts = [None if value is None else value_text(value) for value in shown_values(array)]
        array = pa.array(texts, pa.string())
    if pa.types.is_null(array.type):
        array = array.cast(pa.string())
    found = array.dictionary_encode()
    codes = found.indices.fill_null(-1).to_pylist()
    return {"texts": list(map(_scalar_text, found.dictionary)), "codes": codes}


def _scalar_text(value: pa.Scalar) -> str:
    return value_text(shown_value(value))


def value_text(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case bytes():
            return value.hex()
        case timedelta():
            return duration_text(value)
        case datetime():
            return str(value.replace(tzinfo=None))
        case date() | Decimal() | int():
            return str(value)
        case float():
            return (
                str(value)
                if isfinite(value)
                else {"inf": "Infinity", "nan": "NaN"}.get(str(value), "-Infinity")
            )
        case list():
            return _items([value_text(item) for item in value[:MOST_ITEMS]], len(value))
        case dict():
            return _event(value)
        case _:
            return _short(str(value))


def _events(events: list[dict[str, object]] | None) -> str:
    if events is None:
        return "NULL"
    return _items([_event(event) for event in events[:MOST_ITEMS]], len(events))


def _items(texts: list[str], count: int) -> str:
    more = [f"… and {count - MOST_ITEMS:,} more"] if count > MOST_ITEMS else []
    return _short(", ".join([*texts, *more]))


def _event(event: dict[str, object]) -> str:
    """An event of a label, or a struct: `#3 value=24.5`."""
    parts = [f"#{event['pos']}"] if "pos" in event else []
    parts += [f"{name}={value_text(item)}" for name, item in event.items() if name != "pos"]
    return " ".join(parts)


def _short(text: str) -> str:
    return text if len(text) <= MOST_SIGNS else text[:MOST_SIGNS] + "…"
