"""The columns of a Spark DataFrame that a query reads: found, checked, and selected.

All errors that a schema can show are raised here, on the driver, before any task runs. Columns are
found by their places where their names would not do: Spark resolves a name without regard to case,
and refuses a name that two columns share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from celc_runtime.arrow.events.paths import Fields, missing_error, path_of, wire_name
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan, quoted
from celc_runtime.plan.schemas import input_schema
from celc_runtime.spark.input.ddl import schema_of_ddl
from celc_runtime.spark.input.pipelines import still_known
from celc_runtime.values.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
    ddl_of,
    decimal_of,
    type_of,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FIELDS = ("day", "hour", "minute", "second")
INTERVALS = (
    *("interval day to second", "interval day to minute", "interval day to hour"),
    *("interval hour to second", "interval hour to minute", "interval minute to second"),
    *(f"interval {field}" for field in _FIELDS),
)
"""The types of Spark's durations. All hold microseconds in 64 bits, whatever they are called."""

SPARK_TYPES = {
    "BOOLEAN": ("boolean",),
    "BYTE": ("tinyint",),
    "SHORT": ("smallint", "tinyint"),
    "INT": ("int", "smallint", "tinyint"),
    "LONG": ("bigint", "int", "smallint", "tinyint"),
    "FLOAT": ("float", "smallint", "tinyint"),
    "DOUBLE": ("double", "float", "int", "smallint", "tinyint"),
    "STRING": ("string",),
    "BINARY": ("binary",),
    "TIMESTAMP": ("timestamp", "timestamp_ntz"),
    "TIMESTAMP_NTZ": ("timestamp_ntz",),
    "DATE": ("date",),
    "INTERVAL": INTERVALS,
}
"""The types of Spark's columns that serve for each attribute type without parts, its own first:
none changes a value."""


def serves(found: Any, wanted: DataType) -> bool:
    """Whether each value of a type of Spark is one of an attribute type."""
    kind = found.typeName()
    if kind == "void":
        return True
    match wanted:
        case ArrayType(element=element):
            return kind == "array" and serves(found.elementType, element)
        case MapType(element=element):
            is_map = kind == "map" and serves(found.keyType, DataType.STRING)
            return is_map and serves(found.valueType, element)
        case StructType(fields=fields):
            inner = struct_fields(found)
            names = [name for name, _ in inner]
            return all(
                names.count(name) == 1 and serves(inner[names.index(name)][1], type)
                for name, type in fields
            )
        case DecimalType(precision=precision, scale=scale):
            whole = precision - scale
            is_narrow = kind == "decimal" and 0 <= found.scale <= scale
            return is_narrow and bool(found.precision - found.scale <= whole)
        case _:
            # A text's type may name a collation.
            text = found.simpleString()
            return bool({text, text.split(" ")[0]} & set(SPARK_TYPES[wanted.value]))


def column_named(name: str) -> Column:
    """The column of exactly this name, whatever characters it has."""
    from pyspark.sql import functions

    return functions.col(quoted(name))


def needed_columns(plan: Plan, events: DataFrame) -> DataFrame:
    """The columns that a query reads, and no others, under the names of the query.

    Raises EventError for a column that is missing, occurs more than once, or has a type that the
    query does not declare.
    """
    fields = struct_fields(events.schema)
    known = [name for name, _ in fields]
    names = list(dict.fromkeys([*input_schema(plan).names, *plan.source.tiebreak]))
    if not plan.source.type_column and plan.source.type_name in known:
        names.append(plan.source.type_name)
    paths = {name: _path(plan, name, fields) for name in names}
    if lacking := [name for name, path in paths.items() if path is None]:
        raise missing_error(plan.name, lacking, known, plan.source.type_name)
    given = known
    lower = [name.lower() for name in known]
    alike = [name for name in names if sum(n.lower() == name.lower() for n in names) > 1]
    if _tells_case(events):
        alike = lower = []
    if alike:
        raise EventError(
            f"query {plan.name!r} reads {' and '.join(map(repr, alike))}, which Spark takes for "
            "one column unless it tells upper from lower case: set spark.sql.caseSensitive to true"
        )
    if any(path and lower.count(known[path[0]].lower()) > 1 for path in paths.values()):
        # Two columns differ in case only, so no name would be sure to mean one of them.
        given = [f"column_{place}" for place in range(len(known))]
        events = events.toDF(*given)
    # As text, which takes fewer calls of the JVM than columns do.
    columns: list[str] = []
    for name, path in paths.items():
        assert path is not None
        column, inner = quoted(given[path[0]]), fields[path[0]][1]
        for place in path[1:]:
            field, inner = struct_fields(inner)[place]
            column += f".{quoted(field)}"
        _check_type(plan, name, inner)
        columns.append(column if given[path[0]] == name else f"{column} AS {quoted(name)}")
    found = still_known(events.selectExpr(*columns), events, names)
    return _with_derived(plan, _with_rest(plan, found))


def _with_rest(plan: Plan, events: DataFrame) -> DataFrame:
    """Rows whose types are declared: those of other types get the type that stands for them."""
    source = plan.source
    if not source.rest or source.type_name not in events.columns:
        return events
    from pyspark.sql import functions

    types = column_named(source.type_name).cast("string")
    found = types
    for stream, rest in source.rest:
        known = [
            name for of, name in source.declared_types if of == stream or not source.stream_column
        ]
        is_rest = ~types.isin(known)
        if source.stream_column:
            is_rest = is_rest & (column_named("stream").cast("string") == stream)
        found = functions.when(is_rest, functions.lit(rest)).otherwise(found)
    columns = {name: column_named(name) for name in events.columns}
    columns[source.type_name] = found.alias(source.type_name)
    return still_known(events.select(*columns.values()), events, columns)


def _with_derived(plan: Plan, events: DataFrame) -> DataFrame:
    """The columns that are derived, by Spark's own expressions. Columns that only these need are
    left out."""
    derived = {one.name: one for one in plan.source.derived}
    if not derived:
        return events
    read = {name for one in derived.values() for name, _ in one.reads}
    kept = {one.name for one in plan.source.attributes} | {*plan.source.tiebreak}
    only_read = read - kept
    columns = [n for n in events.columns if n not in only_read and n not in derived]
    made = (f"{one.sql} AS {quoted(one.name)}" for one in derived.values())
    given = events
    if plan.source.type_column and plan.source.type_name != "type":
        # The expressions call the column with the types of events so.
        given = events.selectExpr("*", f"{quoted(plan.source.type_name)} AS type")
    types = {name: plan.source.input_type(name) for name in derived}
    found = given.selectExpr(*map(quoted, columns), *made)
    return still_known(found, events, [*columns, *derived], types)


Counting = Callable[["DataFrame"], "DataFrame"]
"""A function that adds a counter of rows to a DataFrame."""


def mapped(
    frame: DataFrame, function: Any, ddl: str, counting: Counting | None = None
) -> DataFrame:
    """`mapInArrow` for columns of any name.

    PySpark looks columns up by name without quoting them: it takes a name with a dot for a field,
    and refuses a name with a backquote. Such columns travel under another name. `counting` counts
    the rows that are handed over. It comes last, because Spark moves no filter and no selection of
    columns past a counter.
    """
    names = [wire_name(name) for name in frame.columns]
    if names != frame.columns:
        frame = frame.toDF(*names)
    schema = schema_of_ddl(ddl)
    return (frame if counting is None else counting(frame)).mapInArrow(function, schema)


def _tells_case(events: DataFrame) -> bool:
    """Whether a session tells columns apart whose names differ in case only."""
    return str(events.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"


def struct_fields(type: Any) -> Fields:
    """Names and types of a Spark struct's fields; empty for any other type."""
    if type.typeName() != "struct":
        return ()
    return [(field.name, field.dataType) for field in type.fields]


def _path(plan: Plan, name: str, fields: Fields) -> tuple[int, ...] | None:
    try:
        return path_of(name, fields, struct_fields)
    except LookupError:
        raise EventError(
            f"query {plan.name!r} reads the column {name!r}, which occurs more than once; the "
            f"columns are: {', '.join(repr(known) for known, _ in fields)} (drop or rename all but "
            "one)"
        ) from None


def _check_type(plan: Plan, name: str, type: Any) -> None:
    found = type.simpleString()
    declared = {attribute.name for attribute in plan.source.attributes}
    if name not in declared and name in plan.source.tiebreak:
        if type.typeName() in ("array", "map", "struct", "variant"):
            raise EventError(
                f"query {plan.name!r} orders events by the column {name!r}, but values of the type "
                f"{found} have no order: name a column of numbers, texts or times"
            )
        return
    wanted = plan.source.input_type(name)
    if serves(type, type_of(wanted)):
        return
    fits = _declared_as(type)
    remedy = f", or declare the attribute as {fits}" if fits and name in declared else ""
    own = spark_type(wanted)
    advice = f"cast the column to {own}"
    if not _casts(type.typeName(), wanted):
        advice = f"give it a column of the type {own}, made of this one"
    if wanted == "INTERVAL":
        # A cast would take a number for seconds.
        advice = (
            "select a duration in its place, as timestamp_micros(n) - timestamp_micros(0) makes it "
            "of n microseconds"
        )
    raise EventError(
        f"query {plan.name!r} declares {name!r} as {wanted}, but the column's "
        f"type is {found}: {advice}{remedy}"
    )


def spark_type(wanted: str) -> str:
    """An attribute type as Spark spells it."""
    return SPARK_TYPES[wanted][0] if wanted in SPARK_TYPES else ddl_of(wanted)


def _declared_as(found: Any) -> str | None:
    """The attribute type that has exactly the values of a type of Spark; None: there is none."""
    if found.typeName() == "decimal":
        return decimal_of(found.precision, found.scale).value
    text = found.simpleString()
    return next((type for type, own in SPARK_TYPES.items() if own[0] == text), None)


def _casts(found: str, wanted: str) -> bool:
    """Whether Spark casts values of a type, under its rules of ANSI, to that of an attribute."""
    if found in ("array", "map", "struct") or wanted not in SPARK_TYPES:
        return found in _NUMBERS and wanted.startswith("DECIMAL")
    if wanted == "STRING" or found in ("string", "varchar", "char"):
        return True
    if found == "date":
        return wanted in ("TIMESTAMP", "TIMESTAMP_NTZ")
    if found in ("timestamp", "timestamp_ntz"):
        return wanted != "BOOLEAN"
    if found == "boolean":
        return wanted not in ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE", "BINARY")
    return found in _NUMBERS and wanted not in ("DATE", "TIMESTAMP_NTZ", "BINARY")


_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")
