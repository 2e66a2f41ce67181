"""The events that can matter to a query as a condition of Spark, a text of SQL where that is safe.

Rows that are filtered before the shuffle are neither moved nor sorted nor handed to Python, and
from columnar files most of them are not read. Only a query that does not show positions can do
without such rows; for others they are numbered first (`numbering`). Rows that are wrong or are
counted in a warning (no type, an undeclared type, no value in an order column) are kept, so that
their errors and warnings do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import reduce
from math import isfinite
from operator import and_, eq, ge, gt, le, lt, ne, or_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

from celc_runtime.plan.plan import Plan, quoted
from celc_runtime.plan.relevance import AttributeTest, Relevant
from celc_runtime.spark.input.columns import INTERVALS, column_named

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

_Value: TypeAlias = "int | float | str | bool"
_Condition: TypeAlias = "str | Column"
"""A text of SQL, or a column where its constants or names are no text that is safe: each column
takes a dozen calls of the JVM."""

_COMPARABLE = {
    "BOOLEAN": ("boolean",),
    "BYTE": ("tinyint",),
    "SHORT": ("smallint", "tinyint"),
    "INT": ("int", "smallint", "tinyint"),
    "LONG": ("bigint", "int", "smallint", "tinyint"),
    "FLOAT": ("float",),
    "DOUBLE": ("double", "float", "int"),
    "STRING": ("string",),
    "TIMESTAMP": ("timestamp",),
    "DATE": ("date",),
    "INTERVAL": INTERVALS,
}
"""For each type, the column types whose values Spark compares as the runtime does. Values of other
types are left to the runtime."""

EXACT = ("INT", "LONG", "STRING")
"""Types that Spark and the runtime compare alike, and whose values both write as the same text."""

_FEW = 200
"""Constants that are made one by one, at most. A condition with 200 took 0.4 s to make, with 2,000
it took 1.9 s, with 20,000 11 s."""

_MANY = 20_000
"""Constants of a condition, at most. With 20,000 it takes Spark a second to plan, with 100,000 four
seconds."""

_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
"""The metadata of a text that was declared CHAR(n): Spark compares it with blanks at its end."""


def positions_line(plan: Plan) -> str:
    """The words of a plan about the positions in its answer."""
    if not plan.answer.positions:
        return "positions: none; with_options(positions=True) brings start_pos, end_pos and pos"
    why = "the query counts events" if plan.counts_events else "positions=True asks for them"
    return f"positions: in the answer, because {why}"


def why_not_filtered(plan: Plan) -> str:
    """Why every row has to be read; empty where some rows need not be read."""
    if plan.source.relevant is not None and plan.answer.positions:
        return "positions, which were asked for, count every event"
    return why_all_matter(plan)


def why_all_matter(plan: Plan) -> str:
    """Why every row can change the answer, its positions aside; empty where some rows cannot."""
    if plan.source.relevant is None:
        return "the query counts events, asks which are neighbours, or has a selector inside"
    return why_all_are_read(plan)


def why_all_are_read(plan: Plan) -> str:
    """Why the query reads more of every row than that it is there; empty where it does not."""
    read = plan.source.events_read
    if read is None:
        return "the query reads every event, as a selector inside or FOR EACH does"
    if not all(map(plan.is_on_clock, plan.choice.deadlines)):
        return "every event can show that a match is decided"
    all_types = len(read) == len(plan.source.types) and not plan.source.other_types
    if all_types and not any(relevant.all_ways for relevant in read):
        return "every event can change the answer, as far as Spark can tell"
    return ""


def can_matter(plan: Plan, schema: StructType, *, faulty: bool = True) -> Column:
    """A condition that is TRUE of every row that can change the answer by more than that it is
    there, and of every faulty row; not `faulty`: not of rows without a type or an order, so that
    only columns with a condition on them are read.

    Only for plans for which `why_all_are_read` is empty. `schema`: of the DataFrame of needed
    columns.
    """
    assert plan.source.events_read is not None
    declared = plan.source.declared_types
    return _column(_can_matter(plan, declared, plan.source.events_read, schema, faulty=faulty))


def can_matter_to_one(plans: Sequence[Plan], schema: StructType) -> Column:
    """`can_matter` of several queries: the rows that can change one of their answers.

    Each condition on a type is written once, and none for a type of which one query reads all
    events. Java's compiler leaves out methods of more than 8,000 bytes, and Spark makes a method of
    all conditions of a stage: of fifty rules it had 9,670, and was interpreted for ever. Now it has
    4,065.
    """
    alike: dict[tuple[object, ...], list[Plan]] = {}
    for plan in plans:
        source = plan.source
        typed = source.type_column or source.type_name in schema.names
        types = () if typed else source.declared_types
        form = source.type_name, types, source.stream_column, source.order_by
        alike.setdefault(form, []).append(plan)
    return _column(_any([_to_one(of_form, schema) for of_form in alike.values()]))


def _to_one(plans: Sequence[Plan], schema: StructType) -> _Condition:
    """The rows that can matter to one of several queries, which read types and times from the same
    columns."""
    first = plans[0].source
    declared: dict[object, tuple[str, str]] = {}
    relevant: dict[object, Relevant] = {}
    for plan in plans:
        assert plan.source.events_read is not None
        for stream, type in plan.source.declared_types:
            declared.setdefault((stream, type) if first.stream_column else type, (stream, type))
        for one in plan.source.events_read:
            key = (one.stream, one.type) if first.stream_column else one.type
            known = relevant.get(key)
            ways = one.all_ways
            if known is not None:
                ways = (*known.ways, *ways) if known.ways and ways else ()
            stream, type = declared[key]
            relevant[key] = Relevant(stream, type, tuple(dict.fromkeys(ways)))
    pairs, wanted = tuple(declared.values()), tuple(relevant.values())
    return _can_matter(plans[0], pairs, wanted, schema, faulty=True)


def _can_matter(
    plan: Plan,
    declared: Sequence[tuple[str, str]],
    events: Sequence[Relevant],
    schema: StructType,
    *,
    faulty: bool,
) -> _Condition:
    """The condition on rows of declared types of which these events can matter. plan: whose columns
    have their types and times."""
    relevant = {(r.stream, r.type): _condition(r, schema) for r in events}
    typed = plan.source.type_column or plan.source.type_name in schema.names
    if not typed:
        (only,) = declared
        wanted = relevant.get(only, "FALSE")
        keeps = [] if wanted is None else [wanted]
    else:
        # The condition names the types that do not matter. So undeclared types pass, and most
        # rows, which are often of the types that do not matter, are decided at once.
        idle = [pair for pair in declared if pair not in relevant]
        if plan.source.stream_column:
            keeps = [_not(_is_type(plan, *pair)) for pair in idle]
        else:
            names = [name for _, name in idle]
            keeps = [_not(_is_one_of(plan.source.type_name, names, "STRING"))] if idle else []
        keeps += [
            _any([_not(_is_type(plan, *pair)), condition])
            for pair, condition in relevant.items()
            if condition is not None
        ]
    if not faulty:
        return _all(keeps)
    never_null = ["stream"] if plan.source.stream_column else []
    never_null += [plan.source.type_name] if typed else []
    never_null += plan.source.order_by
    return _any([*(_is_null(name) for name in never_null), _all(keeps)])


def _is_type(plan: Plan, stream: str, name: str) -> _Condition:
    condition = _compared("=", plan.source.type_name, name, "STRING")
    if plan.source.stream_column:
        condition = _all([condition, _compared("=", "stream", stream, "STRING")])
    return condition


def _condition(relevant: Relevant, schema: StructType) -> _Condition | None:
    """The condition on the events of a type; None: Spark can decide none."""
    ways = [
        [clause for clause in way if all(_is_comparable(test, schema) for test in clause)]
        for way in relevant.all_ways
    ]
    if not ways or not all(ways):
        return None
    return _any([_all([_any(list(map(_holds, clause))) for clause in way]) for way in ways])


def _is_comparable(test: AttributeTest, schema: StructType) -> bool:
    field = schema[test.attribute]
    # A text with a collation is a type of another name.
    found = field.dataType.simpleString()
    if test.type.startswith("DECIMAL"):
        return bool(found == test.type.replace(" ", "").lower())
    return found in _COMPARABLE.get(test.type, ()) and _PADDED not in (field.metadata or {})


# --- conditions as texts --------------------------------------------------------------------------


def _column(condition: _Condition) -> Column:
    from pyspark.sql import functions

    return functions.expr(condition) if isinstance(condition, str) else condition


def _all(conditions: Sequence[_Condition]) -> _Condition:
    return _joined(conditions, " AND ", and_, "TRUE")


def _any(conditions: Sequence[_Condition]) -> _Condition:
    return _joined(conditions, " OR ", or_, "FALSE")


def _joined(
    conditions: Sequence[_Condition],
    word: str,
    operator: Callable[[Column, Column], Column],
    nothing: str,
) -> _Condition:
    if len(conditions) < 2:
        return conditions[0] if conditions else nothing
    texts = [one for one in conditions if isinstance(one, str)]
    if len(texts) == len(conditions):
        return f"({word.join(texts)})"
    return reduce(operator, map(_column, conditions))


def _not(condition: _Condition) -> _Condition:
    return f"(NOT {condition})" if isinstance(condition, str) else ~condition


def _named(name: str) -> str:
    """A column in SQL; empty for a name in which Spark could see one of its variables."""
    return "" if "$" in name else quoted(name)


def _is_null(name: str) -> _Condition:
    named = _named(name)
    return f"{named} IS NULL" if named else column_named(name).isNull()


def _is_one_of(name: str, values: Sequence[_Value], type: str) -> _Condition:
    """IN; values that no text holds are compared by a column."""
    named = _named(name)
    written = [text for one in values if named and (text := _in_sql(one, type))]
    others = [one for one in values if not named or not _in_sql(one, type)]
    found: list[_Condition] = [f"{named} IN ({', '.join(written)})"] if written else []
    if others:
        found.append(column_named(name).isin([_literal(one, type) for one in others]))
    return _any(found)


def _compared(operator: str, name: str, value: _Value, type: str) -> _Condition:
    named, literal = _named(name), _in_sql(value, type)
    if named and literal:
        return f"{named} {operator} {literal}"
    return _OPERATORS[operator](column_named(name), _literal(value, type))


_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
)


def _holds(test: AttributeTest) -> _Condition:
    name, type = test.attribute, test.type
    named = _named(name)
    match test.operator:
        case "is_null":
            return _is_null(name)
        case "is_not_null":
            return f"{named} IS NOT NULL" if named else column_named(name).isNotNull()
        case "like":
            return column_named(name).like(str(test.operands[0]))
        case "not_like":
            return ~column_named(name).like(str(test.operands[0]))
    if test.operator == "in" and type in EXACT and len(test.operands) > _MANY:
        return _is_probably_one_of(test)
    is_real = type in ("FLOAT", "DOUBLE")
    if is_real and 0 in test.operands and test.operator in _WITH_EQUAL:
        return _holds_with_zeros(test)
    if test.operator in ("in", "not_in"):
        condition = _is_one_of(name, test.operands, type)
        condition = _not(condition) if test.operator == "not_in" else condition
        if not test.operands:
            is_there = f"{named} IS NOT NULL" if named else column_named(name).isNotNull()
            condition = _all([condition, is_there])
    else:
        condition = _compared(test.operator, name, test.operands[0], type)
    if is_real and test.operator in (">", ">=", "!=", "not_in"):
        # True of NaN, which writers of Parquet leave out of the minimum and maximum of a row group.
        # Spark would skip groups by these; it does not where NaN is asked for as well.
        condition = _any([condition, _is_nan(name)])
    return condition


def _is_nan(name: str) -> _Condition:
    from pyspark.sql import functions

    named = _named(name)
    return f"isnan({named})" if named else functions.isnan(column_named(name))


_WITH_EQUAL = ("=", "in", "<=", ">=")


def _holds_with_zeros(test: AttributeTest) -> _Condition:
    """A comparison with 0, of which -0.0 is no less: readers of Parquet take -0.0 for less than
    0.0, and would skip groups of rows that have only one of them."""
    name, type = test.attribute, test.type
    least, most = _compared(">=", name, -0.0, type), _compared("<=", name, 0.0, type)
    match test.operator:
        case "<=":
            return most
        case ">=":
            return _any([least, _is_nan(name)])
    others = [operand for operand in test.operands if operand != 0]
    condition = _all([least, most])
    return _any([condition, _is_one_of(name, others, type)]) if others else condition


def _is_probably_one_of(test: AttributeTest) -> Column:
    """IN with very many values by a table of bytes: whether there is a value of the same hash.

    The table has two to four places for each value, so that up to 39 % of other values pass. It is
    a constant of the plan, whose text shows it; a join with the values would have shown as an
    operator by which sizes and orders of the plan are unknown.
    """
    from pyspark.sql import functions

    texts = (value if isinstance(value, str) else str(int(value)) for value in test.operands)
    size = 1 << (2 * len(test.operands) - 1).bit_length()
    table = bytearray(size)
    for text in texts:
        table[crc32(text.encode()) & size - 1] = 1
    column = column_named(test.attribute)
    if test.type != "STRING":
        column = column.cast("bigint").cast("string")
    place = functions.crc32(column).bitwiseAND(functions.lit(size - 1)).cast("int")
    # Places of bytes are counted from 1.
    found = functions.substr(functions.lit(table), place + 1, functions.lit(1))
    return found == functions.lit(bytearray(b"\x01"))


def has_many_odd_values(type: str, values: Sequence[_Value]) -> bool:
    """Whether more than a few values are not written in SQL, and all are compared with."""
    if len(values) > _MANY:
        return False
    return sum(not _in_sql(one, type) for one in values) > _FEW


def _in_sql(value: _Value, type: str) -> str:
    """A constant in SQL; empty for one that settings of the session could read differently, such as
    a text with `$`: Spark puts values of its configuration in the place of `${…}`, within quotes
    too."""
    match type:
        case "STRING":
            text = str(value)
            return f"'{text}'" if text.isprintable() and not set(text) & set("'\\$") else ""
        case "BOOLEAN":
            return str(bool(value)).upper()
        case "INT" | "LONG" | "TIMESTAMP" | "DATE" if not -(2**63) <= int(value) < 2**63:
            return ""
        case "INT" | "DATE":
            return str(int(value)) if type == "INT" else f"date_from_unix_date({int(value)})"
        case "LONG" | "TIMESTAMP":
            return f"{int(value)}L" if type == "LONG" else f"timestamp_micros({int(value)}L)"
        case "FLOAT" | "DOUBLE" if isfinite(float(value)):
            text = f"{float(value)!r}D"
            return text if type == "DOUBLE" else f"CAST({text} AS FLOAT)"
    return ""


def _literal(value: _Value, type: str) -> Column:
    """A constant of a type; Spark widens a column of a narrower type."""
    from pyspark.sql import functions

    match type:
        case "TIMESTAMP":
            return functions.timestamp_micros(functions.lit(value))
        case "DATE":
            return functions.date_from_unix_date(functions.lit(value))
        case "INTERVAL":
            return functions.lit(timedelta(microseconds=value))  # type: ignore[arg-type]
        case "FLOAT":
            return functions.lit(value).cast("float")
        case str() if type.startswith("DECIMAL"):
            scale = type.removesuffix(")").split(", ")[1]
            return functions.lit(Decimal(f"{value}e-{scale}")).cast(type)
        case _:
            return functions.lit(value)
