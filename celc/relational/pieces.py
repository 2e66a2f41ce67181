"""Small pieces of the SELECT of matches."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from celc.core import formula as core
from celc.core.formula import OutputLabel
from celc.relational.bands import Band
from celc.relational.expressions import Writer, cast, column, enclosed, identifier, number


def attributes(item: OutputLabel) -> list[tuple[str, str]]:
    return [(attribute.name, attribute.name) for attribute in item.attributes]


def struct(scan: str, fields: Sequence[tuple[str, str]]) -> exp.Expr:
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=identifier(name), expression=column(scan, read))
            for name, read in fields
        ]
    )


def least(scans: Sequence[str], name: str) -> exp.Expr:
    """A column of the first of some events."""
    values = [column(scan, name) for scan in scans]
    return values[0] if len(values) == 1 else exp.Least(this=values[0], expressions=values[1:])


def greatest(scans: Sequence[str], name: str) -> exp.Expr:
    """A column of the last of some events."""
    values = [column(scan, name) for scan in scans]
    return values[0] if len(values) == 1 else exp.Greatest(this=values[0], expressions=values[1:])


def plus(value: exp.Expr, step: int) -> exp.Expr:
    if step == 0:
        return value.copy()
    operator = exp.Add if step > 0 else exp.Sub
    return operator(this=value.copy(), expression=number(abs(step)))


def exploded(values: list[exp.Expr], name: str, *, distinct: bool = False) -> exp.Lateral:
    """One row for each of some values, in a column of this name."""
    array: exp.Expr = exp.Array(expressions=values)
    if distinct:
        array = exp.Anonymous(this="ARRAY_DISTINCT", expressions=[array])
    alias = exp.TableAlias(this=identifier(f"of_{name}"), columns=[identifier(name)])
    return exp.Lateral(this=exp.Explode(this=array), view=True, alias=alias)


def same_part(band: Band, name: str) -> exp.Expr:
    """The equality that ties both events of a band."""
    return exp.EQ(this=column(band.second, name), expression=column(band.first, name))


def band_of(value: core.Expression, band: Band, writer: Writer) -> exp.Expr:
    """The interval of a value. It is a floating number as well, so it does not overflow."""
    width = writer.value(core.Constant(band.width, core.DataType.DOUBLE, value.span))
    share = exp.Div(this=enclosed(writer.value(value)), expression=width, typed=False, safe=False)
    return cast(exp.Floor(this=share), "DOUBLE", "spark")
