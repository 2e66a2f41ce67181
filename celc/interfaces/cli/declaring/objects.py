"""Objects of JSON → the columns that they show, one for each field that is no object itself.

`celc run` reads a field as the attribute whose name is its path with dots. A field that is of
several kinds can't be read, and neither can a list of objects of several kinds.
"""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from celc_runtime.plan.schemas import arrow_type

from celc.interfaces.cli.declaring.texts import ShownType, shown_by_texts
from celc.interfaces.cli.reading.times import TimeForm

MOST_FIELDS = 10_000  # fields of all rows together; later ones are not looked at
_DEEPEST = 8  # objects in objects

_LONG = 2**63


def fields_of(rows: Iterable[dict[str, Any]]) -> tuple[dict[str, list[Any]], int]:
    """The values of each field, and the number of rows; a row that lacks a field has NULL."""
    columns: dict[str, list[Any]] = {}
    count = 0

    def note(row: dict[str, Any], before: str, depth: int) -> None:
        for key, value in row.items():
            name = before + key
            if isinstance(value, dict) and depth < _DEEPEST:
                note(value, f"{name}.", depth + 1)
            elif name in columns or len(columns) < MOST_FIELDS:
                column = columns.setdefault(name, [])
                column += [None] * (count - len(column))
                if len(column) == count:
                    column.append(value)

    for row in rows:
        note(row, "", 0)
        count += 1
    for column in columns.values():
        column += [None] * (count - len(column))
    return columns, count


def shown_by_values(values: list[Any], times: TimeForm) -> ShownType | str:
    """The type of a field; a text says why there is none."""
    kinds = {type(value) for value in values if value is not None}
    match sorted(kind.__name__ for kind in kinds):
        case []:
            return ShownType("STRING")
        case ["bool"]:
            return ShownType("BOOLEAN")
        case ["int"]:
            is_long = all(-_LONG <= one < _LONG for one in values if one is not None)
            return ShownType("LONG" if is_long else "DOUBLE")
        case ["float"] | ["float", "int"]:
            return ShownType("DOUBLE")
        case ["str"]:
            return shown_by_texts(pa.array(values, pa.string()), times, numbers=False)
        case ["list"]:
            return _of_lists([one for value in values if value is not None for one in value])
        case names:
            spoken = {"str": "texts", "int": "numbers", "float": "numbers", "bool": "truth values"}
            told = sorted({spoken.get(name, f"{name}s") for name in names})
            return f"it has {', '.join(told[:-1])} and {told[-1]}" if told[1:] else "its objects"


def _of_lists(elements: list[Any]) -> ShownType | str:
    inner = _element(elements)
    return "its lists hold values of several kinds" if inner is None else ShownType(inner)


def _element(elements: list[Any]) -> str | None:
    """The type of lists of these elements; times in lists stay texts."""
    kinds = {type(one) for one in elements if one is not None}
    if kinds == {dict}:
        return None
    if kinds == {list}:
        inner = _element([one for value in elements if value is not None for one in value])
        return None if inner is None else f"ARRAY<{inner}>"
    found = ShownType("STRING") if kinds == {str} else shown_by_values(elements, TimeForm())
    return f"ARRAY<{found.type}>" if isinstance(found, ShownType) else None


def values_of(values: list[Any], type: str, times: TimeForm) -> pa.Array:
    """The values of a field in the type that it shows."""
    if type in ("TIMESTAMP", "DATE"):
        return times.read(pa.array(values, pa.string()), arrow_type(type))
    return pa.array(values, arrow_type(type))
