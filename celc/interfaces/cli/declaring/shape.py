"""The event types of a table, what each of them has, and the column that seems to order it."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from celc_runtime.arrow.views import as_read
from celc_runtime.plan.frozen import frozen

from celc.diagnostics.messages.wording import available, guess, quote
from celc.interfaces.cli.declaring.samples import Sample
from celc.resolve.types.schemas import of_arrow, of_column
from celc.resolve.types.tables import RESERVED_ATTRIBUTES

_TYPE = "type"
_MOST_TYPES = 30  # event types that are declared
_RARE = 1000  # a type with less than one row in so many is rare
_FEW = 50  # values of a column that may be that of the event types
_NAMED_LIKE_TYPES = re.compile(
    r"(?i)(^|[._ ])(event|kind|type|action|category|op|status|name|class)"
)
_NAMED_LIKE_KEYS = re.compile(
    r"(?i)(^|[._ ])(user|customer|client|account|card|device|sensor|machine|host|symbol|country"
    r"|city|key|id|uuid)([._ ]?id)?$"
)
_NAMED_LIKE_TIMES = re.compile(
    r"(?i)(^|[._ ])(ts|time|timestamp|date|datetime|at|when|epoch|created)"
)
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400}
_SPANS = ((1, "SECOND"), (1, "MINUTE"), (1, "HOUR"), (1, "DAY"), (7, "DAY"), (30, "DAY"))


class CannotDeclare(ValueError):
    """A table that no stream can be declared for. It says why."""


@frozen
class ShownEvent:
    """An event type: its name, its rows in the sample, and the attributes that have values."""

    name: str
    rows: int
    attributes: tuple[tuple[str, str], ...]  # names with the texts of their types


@frozen
class Order:
    """The column that seems to order a table."""

    name: str
    type: str
    window: str  # what WITHIN is a sensible first window, without the attribute


@frozen
class Shape:
    """What a sample shows."""

    types: str | None  # the column of the event types
    like_types: tuple[str, ...]  # where there is none: columns that look like one
    events: tuple[ShownEvent, ...]  # the most frequent first
    rare: tuple[ShownEvent, ...]
    others: int  # further event types, which are not listed
    untyped: int  # rows without a type
    order: Order | None
    left_out: Mapping[str, str]  # columns that are no attributes, and why


def shape_of(sample: Sample, name: str, type_column: str | None) -> Shape:
    """The shape of a table that is called `name`; type_column: the column of its event types, by
    default `type` where there is one.

    Raises CannotDeclare for a column that is not there, or has no texts, and for a table without
    columns.
    """
    names = sample.table.column_names
    if not names:
        raise CannotDeclare("there are no columns to declare")
    if type_column is not None and type_column not in names:
        told = "; ".join((*guess(type_column, names), *available("the columns are", names)))
        raise CannotDeclare(f"no column is called {quote(type_column)}; {told}")
    types = type_column or (_TYPE if _TYPE in names else None)
    if types is not None:
        sample = sample.with_texts(types)
        _check_texts(sample.table.column(types), types)
    columns, left_out = _columns(sample, types)
    if types is None:
        every = tuple((one, type) for one, type in columns.items())
        events = [ShownEvent(name, len(sample.table), every)]
        untyped = 0
    else:
        events, untyped = _events(sample.table, types, columns)
    rare = [
        one
        for place, one in enumerate(events)
        if place and (place >= _MOST_TYPES or one.rows * _RARE < len(sample.table))
    ]
    events = [one for one in events if one not in rare] or [
        ShownEvent(name, 0, tuple(columns.items()))
    ]
    like = () if types is not None else _like_types(sample.table, columns)
    order = _order_of(sample.table, events, columns)
    return Shape(
        types,
        like,
        tuple(events),
        tuple(rare[:_MOST_TYPES]),
        len(rare[_MOST_TYPES:]),
        untyped,
        order,
        left_out,
    )


def _check_texts(column: pa.ChunkedArray, name: str) -> None:
    type = of_arrow(column.type)
    if type is None or type.value != "STRING":
        raise CannotDeclare(
            f"column {quote(name)} is {column.type}, and the event types of a table are texts: "
            "make a column of texts of it, or name another column as that of the event types"
        )


def _columns(sample: Sample, types: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """The attributes with the texts of their types, and the columns that are none, with reasons."""
    left_out = dict(sample.left_out)
    columns: dict[str, str] = {}
    for field in sample.table.schema:
        type = of_column(field.type)
        if field.name == types:
            continue
        if not field.name:
            left_out[field.name] = "it has no name"
        elif field.name.lower() in RESERVED_ATTRIBUTES:
            left_out[field.name] = "celc needs a column of this name itself"
        elif type is None:
            left_out[field.name] = f"{field.type} is no type of CEL"
        else:
            columns[field.name] = type.value
    return columns, left_out


def _events(
    table: pa.Table, types: str, columns: Mapping[str, str]
) -> tuple[list[ShownEvent], int]:
    """The event types, the most frequent first, and the number of rows without a type."""
    names = table.column(types).combine_chunks()
    if pa.types.is_dictionary(names.type):
        names = names.dictionary_decode()
    coded = names.cast(pa.string()).dictionary_encode()
    counts = {
        one["values"]: one["counts"] for one in names.value_counts().to_pylist() if one["values"]
    }
    untyped = len(table) - sum(counts.values())
    indices = {text: place for place, text in enumerate(coded.dictionary.to_pylist())}
    codes = coded.indices
    having: dict[str, set[int]] = {}
    for name in columns:
        column = table.column(name)
        if column.null_count < len(column):
            known = codes.filter(pc.is_valid(column).combine_chunks()).drop_null()
            having[name] = set(known.unique().to_pylist())
    ordered = sorted(counts.items(), key=lambda one: (-one[1], indices[one[0]]))
    found = []
    for name, count in ordered:
        # A column without any value in the sample may have some in any row.
        attributes = (
            (one, type)
            for one, type in columns.items()
            if one not in having or indices[name] in having[one]
        )
        found.append(ShownEvent(name, count, tuple(attributes)))
    return found, untyped


def _like_types(table: pa.Table, columns: Mapping[str, str]) -> tuple[str, ...]:
    """The columns that look like one of event types: texts, few of them, and each often; none whose
    name says that it tells customers or devices apart."""
    found = []
    for name, type in columns.items():
        column = table.column(name)
        is_key = _NAMED_LIKE_KEYS.search(name) is not None
        if type == "STRING" and not is_key and column.null_count * 2 < len(column):
            values = pc.count_distinct(column).as_py()
            if values <= _FEW and values * 2 <= len(column):
                found.append((not _NAMED_LIKE_TYPES.search(name), values < 2, name))
    return tuple(name for *_, name in sorted(found, key=lambda one: one[:2]))


# --- order ----------------------------------------------------------------------------------------


def _order_of(
    table: pa.Table, events: list[ShownEvent], columns: Mapping[str, str]
) -> Order | None:
    """The column that seems to order the events: a time, or a number that never falls."""
    shared = [
        name for name in columns if all((name, columns[name]) in one.attributes for one in events)
    ]
    found: list[tuple[int, bool, bool, int, str]] = []
    read: dict[str, pa.ChunkedArray] = {}
    for place, name in enumerate(shared):
        column = read[name] = as_read(table.column(name))
        if column.null_count:
            continue
        type, named = columns[name], bool(_NAMED_LIKE_TIMES.search(name))
        if type in ("TIMESTAMP", "DATE"):
            found.append((int(type == "DATE"), not _rises(column), not named, place, name))
        elif len(column) > 1 and (type in ("INT", "LONG") or (type == "DOUBLE" and named)):
            found += [(2, False, not named, place, name)] if _rises(column) else []
    if not found:
        return None
    name = min(found)[-1]
    return Order(name, columns[name], _window(read[name], columns[name]))


def _rises(column: pa.ChunkedArray) -> bool:
    """Whether values never fall, and are not all equal."""
    if len(column) < 2:
        return True
    values = column.combine_chunks()
    before, after = values.slice(0, len(values) - 1), values.slice(1)
    return bool(
        pc.all(pc.less_equal(before, after)).as_py() and pc.any(pc.less(before, after)).as_py()
    )


def _seconds_of(type: pa.DataType) -> float:
    """The seconds that 1 is in a column of times or days."""
    if pa.types.is_date32(type):
        return 86_400
    return {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[type.unit]


def _window(column: pa.ChunkedArray, type: str) -> str:
    """A window that is some times as long as the time from event to event."""
    if pa.types.is_temporal(column.type):
        # Python has no times before the year 1 or after 9999.
        days = pa.types.is_date32(column.type)
        numbers = column.cast(pa.int32() if days else pa.int64())
    else:
        numbers = column
    least, most = pc.min_max(numbers).as_py().values()
    if least is None or least == most:
        return {"TIMESTAMP": "1 HOUR", "DATE": "1 DAY"}.get(type, "10")
    gap = (most - least) / (len(column) - 1)
    if type in ("TIMESTAMP", "DATE"):
        wanted = 10 * gap * _seconds_of(column.type)
        spans = [one for one in _SPANS if type != "DATE" or one[1] == "DAY"]
        lengths = ((number * _SECONDS[unit], number, unit) for number, unit in spans)
        _, number, unit = next((one for one in lengths if one[0] >= wanted), (0, 365, "DAY"))
        return f"{number} {unit}{'S' if number > 1 else ''}"
    power = 1
    while power < 10 * gap:
        power *= 10
    return str(power)
