"""What a query reads of a Spark DataFrame: its columns, found, checked and narrowed down to.

Everything that a schema can tell is said here, at once and on the driver, and not as the end of a
task. Columns are found by their places where their names would not do: Spark resolves a name
without regard to case, and refuses one that two columns share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from celc_runtime.arrow.paths import Fields, missing, path_of, wire_name
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SPARK_TYPES = {
    "BOOLEAN": ("boolean",),
    "INT": ("int", "smallint", "tinyint"),
    "LONG": ("bigint", "int", "smallint", "tinyint"),
    "FLOAT": ("float", "smallint", "tinyint"),
    "DOUBLE": ("double", "float", "int", "smallint", "tinyint"),
    "STRING": ("string",),
    "TIMESTAMP": ("timestamp", "timestamp_ntz"),
    "DATE": ("date",),
}
"""Spark's types that are taken for an attribute's, its own first; none changes a value."""


def without_order(plan: Plan) -> EventError:
    """The error for a query without order columns, which no distributed table can be given to."""
    return EventError(
        f"query {plan.name!r} has no order column, and a distributed table has no order of its "
        "own: compile it with --order-by, or use with_options(order_by=…)"
    )


def needed_columns(plan: Plan, events: DataFrame) -> DataFrame:
    """The columns that a query reads, under the names that it reads them by, and no others.

    Raises EventError for a column that is missing, occurs more than once, or has a type that the
    query does not declare.
    """
    from pyspark.sql import functions

    fields = _fields(events.schema)
    known = [name for name, _ in fields]
    names = list(dict.fromkeys([*plan.input_schema().names, *plan.tiebreak]))
    if not plan.type_column and plan.type_name in known:
        names.append(plan.type_name)
    paths = {name: _path(plan, name, fields) for name in names}
    if lacking := [name for name, path in paths.items() if path is None]:
        raise missing(plan.name, lacking, known)
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
    columns: list[Column] = []
    for name, path in paths.items():
        assert path is not None
        column, inner = functions.col(quoted(given[path[0]])), fields[path[0]][1]
        for place in path[1:]:
            field, inner = _fields(inner)[place]
            column = column.getField(field)
        _check_type(plan, name, inner)
        columns.append(column if given[path[0]] == name else column.alias(name))
    return events.select(*columns)


Counting = Callable[["DataFrame"], "DataFrame"]
"""What counts the rows of a DataFrame while they go by."""


def mapped(
    frame: DataFrame, function: Any, ddl: str, counting: Counting | None = None
) -> DataFrame:
    """`mapInArrow` for columns of any name. `counting` sees the rows that are handed over; it comes
    after all else, because Spark moves no filter and no choice of columns past a counter.

    PySpark looks its columns up by name without quoting them, so that a name with a dot is taken
    for a field, and one with a backquote is refused. Such columns travel under another name.
    """
    names = [wire_name(name) for name in frame.columns]
    if names != frame.columns:
        frame = frame.toDF(*names)
    return (frame if counting is None else counting(frame)).mapInArrow(function, ddl)


def _tells_case(events: DataFrame) -> bool:
    """Whether a session tells columns apart whose names differ in case only."""
    return str(events.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"


def _fields(type: Any) -> Fields:
    """Names and types of a Spark struct's fields; nothing where a type is no struct."""
    if type.typeName() != "struct":
        return ()
    return [(field.name, field.dataType) for field in type.fields]


def _path(plan: Plan, name: str, fields: Fields) -> tuple[int, ...] | None:
    try:
        return path_of(name, fields, _fields)
    except LookupError:
        raise EventError(
            f"query {plan.name!r} reads the column {name!r}, which occurs more than once; the "
            f"columns are: {', '.join(repr(known) for known, _ in fields)} (drop or rename all but "
            "one)"
        ) from None


def _check_type(plan: Plan, name: str, type: Any) -> None:
    found = type.simpleString()
    declared = {attribute.name: attribute.type for attribute in plan.attributes}
    if name not in declared and name in plan.tiebreak:
        if type.typeName() in ("array", "map", "struct", "variant"):
            raise EventError(
                f"query {plan.name!r} orders events by the column {name!r}, but values of the type "
                f"{found} have no order: name a column of numbers, texts or times"
            )
        return
    wanted = declared.get(name, "STRING")  # the columns that tell types and streams
    taken = _SPARK_TYPES[wanted]
    # A text's type may name a collation.
    if found == "void" or found.split(" ")[0] in taken:
        return
    fits = next((type for type, own in _SPARK_TYPES.items() if own[0] == found), None)
    remedy = f", or declare the attribute as {fits}" if fits and name in declared else ""
    raise EventError(
        f"query {plan.name!r} declares {name!r} as {wanted}, but the column's "
        f"type is {found}: cast the column to {taken[0]}{remedy}"
    )


# --- one table of several -------------------------------------------------------------------------


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
    from functools import reduce

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
        own = dict(_fields(frame.schema))
        told = zip(added, key if isinstance(key, tuple) else (key,), strict=True)
        columns = [functions.lit(value).alias(name) for name, value in told]
        for name, type in types.items():
            column = functions.col(quoted(name)) if name in own else functions.lit(None)
            # Also where a frame has the column: of a void one nothing but NULL is known.
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
        fields = _fields(frame.schema)
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
