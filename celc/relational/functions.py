"""Functions of the table, CASE and their like → expressions of Spark SQL.

A calendar part is that of the time which clocks of its zone show, a TIMESTAMP_NTZ. It is made of
microseconds since 1970, because Spark's own conversion depends on the zone of the session.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from celc_runtime.plan.plan import quoted
from celc_runtime.values.functions import FUNCTIONS, UNITS
from celc_runtime.values.regexes import read_regex
from celc_runtime.values.types import ArrayType, MapType, ddl_of
from sqlglot import exp

from celc.core import formula as core
from celc.core.formula import MOST_DIGITS, DataType, DecimalType, Expression
from celc.relational import casts
from celc.relational.casts import WHOLE
from celc.relational.relations import NotRelational


class Writer(Protocol):
    """What writes the expressions around a function."""

    @property
    def dialect(self) -> str:
        """The dialect of SQL."""

    def value(self, node: Expression) -> exp.Expr:
        """An expression. One that calculates with times is in microseconds."""

    def micros(self, node: Expression) -> exp.Expr:
        """A time or a duration in microseconds."""

    def truth(self, truth: core.Truth) -> exp.Expr:
        """A condition of ANDs and ORs."""


def call(node: core.Call, writer: Writer) -> exp.Expr:
    """A function of the table."""
    if writer.dialect != "spark":
        raise NotRelational(f"{node.function} stands in an expression", node.span)
    if node.function in ("CAST", "TRY_CAST"):
        (operand,) = node.operands
        text = typed(operand, writer).sql("spark")
        is_exact = node.function == "TRY_CAST"
        sql = casts.cast(text, operand.type, node.type, node.zone or "UTC", exact=is_exact)
        return exp.Var(this=sql)
    if node.function == "HEX":
        (operand,) = node.operands
        return exp.Var(this=f"HEX({writer.value(operand).sql('spark')})")
    if (of_parts := _of_parts(node, writer)) is not None:
        return exp.Var(this=of_parts)
    if node.function == "DATE_TRUNC":
        return _truncated(node, writer)
    if node.function == "ROUND" and node.type in WHOLE and len(node.operands) == 2:
        return _rounded(node, writer)
    if isinstance(node.type, DecimalType):
        return _rounded_decimal(node, writer)
    function = FUNCTIONS[node.function]
    operands = list(node.operands)
    if node.function == "REGEXP_EXTRACT":
        operands[1] = _for_java(operands[1])
    texts = [
        (
            casts.local(writer.micros(one).sql("spark"), node.zone)
            if node.zone is not None and one.type is DataType.TIMESTAMP
            else typed(one, writer).sql("spark")
        )
        for one in operands
    ]
    spark = function.spark
    return exp.Var(this=spark.format(*texts) if isinstance(spark, str) else spark(texts))


def _for_java(regex: Expression) -> Expression:
    """A regular expression of RE2 as Spark's library reads it."""
    assert isinstance(regex, core.Constant)
    return regex if regex.value is None else replace(regex, value=read_regex(str(regex.value)).java)


def _of_parts(node: core.Call, writer: Writer) -> str | None:
    """Elements, fields and CONTAINS, which depend on the type of what has parts; None: another
    function. None of them is an error in ANSI mode."""
    if node.function not in ("ELEMENT", "FIELD", "CONTAINS"):
        return None
    whole, other = (typed(one, writer).sql("spark") for one in node.operands)
    match node.function, node.operands[0].type:
        case "FIELD", _:
            assert isinstance(node.operands[1], core.Constant)
            return f"({whole}).{quoted(str(node.operands[1].value))}"
        case "ELEMENT", MapType():
            return f"TRY_ELEMENT_AT({whole}, {other})"
        case "ELEMENT", _:
            return f"GET({whole}, {other})"
        case _, MapType():
            return f"MAP_CONTAINS_KEY({whole}, {other})"
        case _, ArrayType(element=element):
            wanted = node.operands[1].type
            if wanted is not element:
                whole = f"CAST({whole} AS ARRAY<{ddl_of(wanted.value)}>)"
            return f"ARRAY_CONTAINS({whole}, {other})"
        case _:
            return f"CONTAINS({whole}, {other})"


def _truncated(node: core.Call, writer: Writer) -> exp.Expr:
    """DATE_TRUNC, by the clocks of its zone. Spark's own is by those of the session."""
    named, time = node.operands
    assert isinstance(named, core.Constant)
    zone = node.zone or "UTC"
    unit = UNITS[str(named.value).upper()]
    micros = writer.micros(time).sql("spark")
    clock = casts.local(micros, zone)
    seconds = f"CAST(EXTRACT(SECOND FROM {clock}) * 1000000 AS BIGINT)"
    minutes = f"MINUTE({clock}) * 60000000L + {seconds}"
    passed = {
        "MICROSECOND": "0L",
        "MILLISECOND": f"PMOD({micros}, 1000L)",
        "SECOND": f"PMOD({micros}, 1000000L)",
        "MINUTE": seconds,
        "HOUR": minutes,
        "DAY": f"HOUR({clock}) * 3600000000L + {minutes}",
    }.get(unit)
    if passed is None:
        day = f"CAST(TRUNC(CAST({clock} AS DATE), '{unit}') AS TIMESTAMP_NTZ)"
        return exp.Var(this=casts.instant(day, zone))
    earlier = f"TRY_SUBTRACT({micros}, {passed})"
    found = f"TIMESTAMP_MICROS({earlier})"
    if zone != "UTC" and unit in ("MINUTE", "HOUR", "DAY"):
        # Between both times clocks may have been changed.
        first = f"{clock} - INTERVAL '0.000001' SECOND * ({passed})"
        other = casts.instant(f"({first})", zone)
        same = f"{casts.local(earlier, zone)} = {first}"
        found = f"CASE WHEN {same} THEN {found} ELSE {other} END"
    return exp.Var(this=found)


def _rounded(node: core.Call, writer: Writer) -> exp.Expr:
    """ROUND of a whole number. What is too large wraps, as without ANSI mode."""
    number, digits = (typed(one, writer).sql("spark") for one in node.operands)
    bits = WHOLE[node.type]
    half, ddl = 2 ** (bits - 1), ddl_of(node.type.value)
    exact = f"ROUND(CAST({number} AS DECIMAL(20, 0)), {digits})"
    return exp.Var(this=f"CAST(PMOD({exact} + {half}, {2 * half}) - {half} AS {ddl})")


def _rounded_decimal(node: core.Call, writer: Writer) -> exp.Expr:
    """ROUND, FLOOR or CEIL of a DECIMAL. ROUND of 38 digits is an error in Spark where it has
    more."""
    texts = [typed(one, writer).sql("spark") for one in node.operands]
    found = f"{node.function}({', '.join(texts)})"
    digits = core.digits_of(node)
    first = node.operands[0].type
    assert isinstance(first, DecimalType)
    if first.precision - first.scale == MOST_DIGITS and digits < 0:
        too_large = 10**MOST_DIGITS - (10 ** min(-digits, MOST_DIGITS) + 1) // 2
        ends = (f"CAST('{sign}{too_large - 1}' AS {first.value})" for sign in ("-", ""))
        found = f"CASE WHEN {texts[0]} BETWEEN {' AND '.join(ends)} THEN {found} END"
    return exp.Var(this=found)


def typed(node: Expression, writer: Writer) -> exp.Expr:
    """An expression in its own type, also where times are calculated, as microseconds."""
    if node.type is DataType.TIMESTAMP and isinstance(node, core.Arithmetic | core.Cast):
        return exp.Anonymous(this="TIMESTAMP_MICROS", expressions=[writer.micros(node)])
    if node.type is DataType.TIMESTAMP_NTZ and isinstance(node, core.Arithmetic):
        micros = writer.micros(node).sql("spark")
        return exp.Var(this=casts.local(micros, "UTC"))
    if node.type is DataType.INTERVAL and not isinstance(node, core.AttributeValue | core.Call):
        unit = exp.Var(this="INTERVAL '0.000001' SECOND")
        return exp.Mul(this=unit, expression=exp.paren(writer.micros(node)))
    return writer.value(node)


def units_between(node: core.TimeDifference, writer: Writer) -> exp.Expr:
    """TIMESTAMPDIFF; Spark's own counts days by the clocks of the session's zone."""
    start, end = (writer.micros(one).sql("spark") for one in (node.start, node.end))
    return exp.Var(this=f"TRY_SUBTRACT({end}, {start}) DIV {node.unit}L")


def chosen(node: core.Choice, writer: Writer) -> exp.Expr:
    """LEAST, GREATEST or COALESCE."""
    first, *rest = (typed(one, writer) for one in node.operands)
    if node.function == "COALESCE":
        return exp.Coalesce(this=first, expressions=rest)
    name = exp.Least if node.function == "LEAST" else exp.Greatest
    return name(this=first, expressions=rest, ignore_nulls=True)


def conditional(node: core.Conditional, writer: Writer) -> exp.Expr:
    """CASE."""
    ways = [
        exp.If(this=writer.truth(asked), true=typed(then, writer)) for asked, then in node.branches
    ]
    return exp.Case(ifs=ways, default=typed(node.otherwise, writer))
