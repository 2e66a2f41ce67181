"""The columns of a table, as its reader knows them → types of the language.

A type is one that holds every value of the column. Times without a zone are TIMESTAMPs, as in every
table that is read; they are in UTC.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from celc_runtime.plan.frozen import frozen
from celc_runtime.values.types import array_of, decimal_of, map_of, struct_of, type_of

from celc.core.formula import ATTRIBUTE_TYPES, DataType
from celc.diagnostics.errors import CelError, Diagnostics
from celc.diagnostics.source import Source
from celc.parse.parser import parse
from celc.resolve.types.written import type_of_written


@frozen
class TableColumn:
    """A column of a table. `given` is its type as the reader of the table calls it; `type` is None
    where the language has no type for it."""

    name: str
    given: str
    type: DataType | None


_OF_ARROW = {
    "null": "STRING",
    "bool": "BOOLEAN",
    "int8": "BYTE",
    "int16": "SHORT",
    "int32": "INT",
    "int64": "LONG",
    "uint8": "SHORT",
    "uint16": "INT",
    "uint32": "LONG",
    "halffloat": "FLOAT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "large_string": "STRING",
    "string_view": "STRING",
    "binary": "BINARY",
    "large_binary": "BINARY",
    "binary_view": "BINARY",
    "date32[day]": "DATE",
}
_OF_SPARK = {
    "void": "STRING",
    "boolean": "BOOLEAN",
    "byte": "BYTE",
    "short": "SHORT",
    "integer": "INT",
    "long": "LONG",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "char": "STRING",
    "varchar": "STRING",
    "binary": "BINARY",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
    "date": "DATE",
    "daytimeinterval": "INTERVAL",
}
"""By the name of the class of a type, without `Type`."""


def columns_of(schema: Any) -> tuple[TableColumn, ...]:
    """The columns of a table, in their order.

    schema: a mapping from names to types, each as CREATE STREAM writes it or one of Arrow's or
    Spark's; an Arrow schema, the schema of a Spark DataFrame, anything with one of these as its
    `schema`, or a table of pandas, polars or DuckDB. Raises TypeError for what has no columns,
    ValueError for a text that is no type.
    """
    match type(schema).__module__.split(".")[0]:
        case "pandas" if hasattr(schema, "iloc") and hasattr(schema, "columns"):
            return tuple(_of_pandas(schema))
        case "polars":
            return columns_of(_of_polars(schema))
        case "duckdb" | "_duckdb" if hasattr(schema, "limit"):
            return columns_of(_schema_of_stream(schema.limit(0)))
    if isinstance(schema, Mapping):
        return tuple(_of_mapping(str(name), type) for name, type in schema.items())
    if hasattr(schema, "schema"):  # first: a DataFrame of Connect seems to have all other names
        return columns_of(schema.schema)
    fields = getattr(schema, "fields", None)
    if fields is not None and not callable(fields):
        return tuple(_of_spark(one.name, one.dataType) for one in fields)
    if hasattr(schema, "names") and callable(getattr(schema, "field", None)):
        return tuple(TableColumn(one.name, str(one.type), of_column(one.type)) for one in schema)
    if hasattr(schema, "__arrow_c_stream__"):
        return columns_of(_schema_of_stream(schema))
    raise TypeError(
        "schema: give a dictionary of types by column, an Arrow schema, or that of a DataFrame"
    )


def _of_pandas(frame: Any) -> Iterator[TableColumn]:
    """The columns of a data frame; one with values of several kinds has no type."""
    import pyarrow as pa

    for place, name in enumerate(frame.columns):
        try:
            type = pa.Array.from_pandas(frame.iloc[:, place]).type
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            yield TableColumn(str(name), "values of several kinds", None)
        else:
            yield TableColumn(str(name), str(type), of_column(type))


def _of_polars(schema: Any) -> Any:
    """The Arrow schema of a frame of polars, also a lazy one, or of its schema."""
    import polars

    known = schema.collect_schema() if hasattr(schema, "collect_schema") else schema
    if not isinstance(known, Mapping):
        return known
    return _schema_of_stream(polars.DataFrame(schema=known))


def _schema_of_stream(table: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatchReader.from_stream(table).schema


def _of_mapping(name: str, type: Any) -> TableColumn:
    if hasattr(type, "typeName"):
        return _of_spark(name, type)
    if not isinstance(type, str):
        return TableColumn(name, str(type), of_column(type) if hasattr(type, "id") else None)
    source = Source("schema", f"CREATE STREAM t {{ EVENT t {{ a: {type} }} }} t")
    found = Diagnostics(source)
    try:
        (stream,) = parse(source).streams
        (event,) = stream.events
        (declared,) = event.attributes
        known = type_of_written(declared.type, found)
        found.raise_errors()
        return TableColumn(name, type, known)
    except (CelError, ValueError):
        raise ValueError(
            f"schema: column {name!r} has the type {type!r}; types are "
            f"{', '.join(one.value for one in ATTRIBUTE_TYPES)}, and with parts DECIMAL(10, 2), "
            "ARRAY<STRING>, MAP<STRING, INT>, STRUCT<name: STRING>"
        ) from None


def _of_spark(name: str, type: Any) -> TableColumn:
    return TableColumn(name, type.simpleString(), of_spark(type))


def of_spark(type: Any) -> DataType | None:
    """The type of the language for a type of Spark's; None: there is none."""
    match type.typeName():
        case "array":
            return _of_parts([("", type.elementType)], of_spark, lambda types: array_of(*types))
        case "map":
            parts = [("", type.keyType), ("", type.valueType)]
            return _of_parts(parts, of_spark, _map_of)
        case "struct":
            parts = [(one.name, one.dataType) for one in type.fields]
            return _of_struct(parts, of_spark)
        case "decimal":
            return _decimal_of(type.precision, type.scale)
        case name:
            found = _OF_SPARK.get(name)
            return None if found is None else type_of(found)


def of_column(type: Any) -> DataType | None:
    """The type of the language for a column of an Arrow type; None: there is none. Intervals of
    months, days and nanoseconds are INTERVALs where no value has months."""
    return DataType.INTERVAL if str(type) == "month_day_nano_interval" else of_arrow(type)


def of_arrow(type: Any) -> DataType | None:
    """The type of the language for a type of Arrow's; None: there is none."""
    import pyarrow as pa

    if isinstance(type, pa.BaseExtensionType):
        return of_arrow(type.storage_type)
    tests = pa.types
    if tests.is_dictionary(type):
        return of_arrow(type.value_type)
    if tests.is_timestamp(type):
        return DataType.TIMESTAMP
    if tests.is_duration(type):
        return DataType.INTERVAL
    if tests.is_fixed_size_binary(type) and not tests.is_decimal(type):
        return DataType.BINARY
    if tests.is_decimal(type):
        return _decimal_of(type.precision, type.scale)
    if tests.is_list(type) or tests.is_large_list(type) or tests.is_fixed_size_list(type):
        return _of_parts([("", type.value_type)], of_arrow, lambda types: array_of(*types))
    if tests.is_map(type):
        parts = [("", type.key_type), ("", type.item_type)]
        return _of_parts(parts, of_arrow, _map_of)
    if tests.is_struct(type):
        fields = [type.field(number) for number in range(type.num_fields)]
        return _of_struct([(one.name, one.type) for one in fields], of_arrow)
    found = _OF_ARROW.get(str(type))
    return None if found is None else type_of(found)


def _of_parts(
    parts: Iterable[tuple[str, Any]],
    of: Callable[[Any], DataType | None],
    made: Callable[[list[DataType]], DataType | None],
) -> DataType | None:
    """A type that is made of others; None where one of them is not known."""
    types = [of(type) for _, type in parts]
    known = [one for one in types if one is not None]
    return made(known) if len(known) == len(types) else None


def _of_struct(
    fields: list[tuple[str, Any]], of: Callable[[Any], DataType | None]
) -> DataType | None:
    names = [name for name, _ in fields]
    if not names or len({name.casefold() for name in names}) < len(names):
        return None
    return _of_parts(fields, of, lambda types: struct_of(tuple(zip(names, types, strict=True))))


def _map_of(types: list[DataType]) -> DataType | None:
    return map_of(types[1]) if types[0] is DataType.STRING else None


def _decimal_of(precision: int, scale: int) -> DataType | None:
    is_known = 0 <= scale <= precision <= 38
    return decimal_of(precision, scale) if is_known else None
