"""Events → the columns that a query reads, in their declared types.

All checks of columns are here: a column that is missing, that is there twice, or whose type does
not fit.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import is_ordered
from celc_runtime.arrow.calendar_intervals import CALENDAR_INTERVAL, first_without_length
from celc_runtime.arrow.events.paths import with_fields
from celc_runtime.arrow.events.row_names import row_text
from celc_runtime.arrow.fitting import fits
from celc_runtime.arrow.shown import shown
from celc_runtime.arrow.views import without_views
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import event_schema, named_type

TEXTS = (pa.string(), pa.large_string(), pa.string_view())
"""The forms of a text in Arrow: pandas and polars give the second, DuckDB and polars the third."""


def names_read(plan: Plan) -> list[str]:
    """The columns that a query reads, also the column of types where it may be missing."""
    return [plan.source.type_name, *event_schema(plan).names, *plan.source.tiebreak]


def is_required(plan: Plan, name: str) -> bool:
    """Whether events must have a column that the query reads.

    The column of types may be missing if the query declares only one type.
    """
    return plan.source.type_column or name != plan.source.type_name


def conforming(
    plan: Plan, events: pa.RecordBatch, rows_seen: int = 0, numbered: str | None = None
) -> pa.RecordBatch:
    """The columns that the query reads, in their declared types.

    Texts may be dictionary-coded, with a dictionary of plain texts without NULL. rows_seen: the
    number of rows before. numbered: the column with the rows' numbers, if rows were left out or
    moved; it is kept. Raises EventError if a column is missing, is there twice, or has another
    type.
    """
    read = [plan.source.type_name, *(a.name for a in plan.source.attributes), *plan.source.tiebreak]
    events = with_fields(events, read)
    names = events.schema.names
    wanted = [*event_schema(plan), *(pa.field(name, pa.null()) for name in plan.source.tiebreak)]
    if not plan.source.type_column and plan.source.type_name in names:
        # With one event type the column is not needed. If it is there, it says which rows count.
        wanted.append(pa.field(plan.source.type_name, pa.string()))
    row_of = partial(row_text, events, rows_seen=rows_seen, numbered=numbered)
    fields: dict[str, pa.Array] = {}
    for field in wanted:
        if field.name in fields:
            continue
        if names.count(field.name) != 1:
            raise not_found_error(plan, field.name, names, numbered)
        column = without_views(events.column(names.index(field.name)))
        if pa.types.is_null(field.type):
            _refuse_unordered(plan, field.name, column.type)
        else:
            column = conforming_column(plan, field, column, row_of)
        fields[field.name] = column
    if numbered is not None:
        fields[numbered] = events.column(numbered)
    if not fields:
        # A query that reads no column still counts events.
        return pa.RecordBatch.from_arrays([pa.nulls(len(events))], ["*"])
    return pa.RecordBatch.from_arrays(list(fields.values()), list(fields))


def not_found_error(
    plan: Plan, name: str, names: Sequence[str], numbered: str | None = None
) -> EventError:
    """The error for a column that a query reads and that is missing or there twice.

    numbered: a column that the runtime has added, and that the message does not show.
    """
    problem, remedy = "is missing", "add it, or rename the column that holds it"
    if name == plan.source.type_name:
        remedy = "if another one has the event types, name it with with_options(type_column=…)"
    if name in names:
        problem, remedy = "occurs more than once", "drop or rename all but one"
    return EventError(
        f"query {plan.name!r} reads the column {name!r}, which {problem}; the columns are: "
        f"{', '.join(repr(n) for n in names if n != numbered) or 'none'} ({remedy})"
    )


def conforming_column(
    plan: Plan, field: pa.Field, column: pa.Array, row_of: Callable[[int], str]
) -> pa.Array:
    """A column in the type of an input field; `row_of` names a row in messages.

    Raises EventError if values would change.
    """
    found = column.type
    if pa.types.is_dictionary(found):
        if pa.types.is_string(field.type) and found.value_type in TEXTS:
            return _text_dictionary(column)
        column = column.dictionary_decode()
    type = column.type
    if type == field.type:
        return column
    wanted = plan.source.input_type(field.name)
    if type == CALENDAR_INTERVAL and wanted == "INTERVAL":
        raise _without_length(plan, field, column, row_of)
    if not fits(type, wanted):
        raise _unfit(plan, field, found, type)
    if pa.types.is_timestamp(type):
        unit = pa.timestamp("us", tz=type.tz)
        return _in_microseconds(plan, field, column, unit, row_of).cast(field.type)
    if pa.types.is_duration(type):
        return _in_microseconds(plan, field, column, field.type, row_of)
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as problem:  # of values inside others, and of too many texts
        raise EventError(
            f"query {plan.name!r} declares {field.name!r} as {wanted}, which some values of the "
            f"type {found} do not fit: {problem}"
        ) from None


def _without_length(
    plan: Plan, field: pa.Field, column: pa.Array, row_of: Callable[[int], str]
) -> EventError:
    row = first_without_length(column)
    months, days, nanoseconds = column[row].as_py()
    remedy = "round or filter such intervals"
    if months:
        remedy = "a month has no length, so make days of months, or filter such intervals"
    return EventError(
        f"query {plan.name!r} declares {field.name!r} as INTERVAL, which counts whole "
        f"microseconds in 64 bits, but {row_of(row)} has {months} months, {days} days and "
        f"{nanoseconds} nanoseconds: {remedy}"
    )


def _unfit(plan: Plan, field: pa.Field, found: pa.DataType, type: pa.DataType) -> EventError:
    wanted = plan.source.input_type(field.name)
    return EventError(
        f"query {plan.name!r} declares {field.name!r} as {wanted}, but the column's type is "
        f"{found}: {', or '.join(_remedies(plan, field, type))}"
    )


def _remedies(plan: Plan, field: pa.Field, type: pa.DataType) -> Iterator[str]:
    """Possible ways to make a column of a type fit."""
    values = type.value_type if pa.types.is_dictionary(type) else type
    if pa.types.is_timestamp(field.type) and values in TEXTS:
        # Arrow casts texts to a time with a zone only where each of them names one.
        zone = "" if field.type.tz is None else ", utc=True"
        yield (
            f"make times of its texts, with pandas.to_datetime(column{zone}), or by a cast to "
            "timestamp[us]"
        )
    elif pa.types.is_timestamp(field.type) and pa.types.is_integer(values):
        zone = "" if field.type.tz is None else ", utc=True"
        yield (
            f"make times of its numbers, with pandas.to_datetime(column, unit='s'{zone}), or by a "
            "cast to timestamp[s]"
        )
    elif _casts(type, field.type):
        yield f"cast the column to {field.type}"
    else:
        yield f"give it a column of the type {field.type}, made of this one"
    fits = named_type(type)
    if fits and any(attribute.name == field.name for attribute in plan.source.attributes):
        yield f"declare the attribute as {fits}"


def _casts(type: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Arrow casts columns of a type, normally with all values.

    Bytes of fixed length, such as UUIDs, are not texts.
    """
    if pa.types.is_fixed_size_binary(type):
        return False
    try:
        pa.nulls(0, type).cast(wanted)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return False
    return True


def _in_microseconds(
    plan: Plan,
    field: pa.Field,
    column: pa.Array,
    unit: pa.DataType,
    row_of: Callable[[int], str],
) -> pa.Array:
    """Times or durations in a type that counts microseconds."""
    try:
        return column.cast(unit)
    except pa.ArrowInvalid:
        there = column.cast(unit, safe=False).cast(column.type, safe=False)
        changed = np.asarray(pc.fill_null(pc.not_equal(there, column), False))
        row = int(np.flatnonzero(changed)[0])
        declared = plan.source.input_type(field.name)
        raise EventError(
            f"query {plan.name!r} declares {field.name!r} as {declared}, which counts whole "
            f"microseconds in 64 bits, but {row_of(row)} has {shown(column[row])}: round or "
            f"filter such {'durations' if declared == 'INTERVAL' else 'times'}"
        ) from None


def _text_dictionary(column: pa.DictionaryArray) -> pa.Array:
    texts = column.dictionary
    if texts.type != pa.string():
        texts = texts.cast(pa.string())
        column = pa.DictionaryArray.from_arrays(column.indices, texts)
    return column.dictionary_decode() if texts.null_count else column


def _refuse_unordered(plan: Plan, name: str, type: pa.DataType) -> None:
    if not is_ordered(type):
        raise EventError(
            f"query {plan.name!r} orders events by the column {name!r}, but values of the type "
            f"{type} have no order: name a column of numbers, texts or times"
        )
