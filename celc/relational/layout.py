"""The parts of a SELECT → its text, in lines that a person reads.

sqlglot spells the expressions for a dialect; its own layout of whole statements breaks each pair of
parentheses into three lines.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import sqlglot
from sqlglot import exp
from sqlglot.generator import Generator

from celc.relational.expressions import Dialect


@dataclass(frozen=True, slots=True)
class Joining:
    """A table that is joined, and the conditions; without one, each row with each."""

    table: exp.Expr
    on: tuple[exp.Expr, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """A condition: a SELECT has no row."""

    found: Select


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT. `table` is a table or a SELECT with a name; `merged` are tables that Spark is to
    join by sorting both sides."""

    columns: tuple[exp.Expr, ...]
    table: exp.Expr | tuple[Select, exp.Expr]
    laterals: tuple[exp.Expr, ...] = ()
    joins: tuple[Joining, ...] = ()
    where: tuple[exp.Expr | Without, ...] = ()
    distinct: bool = False
    merged: tuple[exp.Expr, ...] = ()


def laid_out(select: Select, dialect: Dialect) -> str:
    """The text of a SELECT."""
    return "\n".join(_lines(select, dialect))


def sql(expression: exp.Expr, dialect: Dialect) -> str:
    """The text of an expression, in one line."""
    # `Expression.sql` makes a generator and copies the tree each time, which took most of the time.
    return _generator(dialect).generate(expression, copy=False)


@cache
def _generator(dialect: Dialect) -> Generator:
    return sqlglot.Dialect.get_or_raise(dialect).generator()


def _lines(select: Select, dialect: Dialect) -> list[str]:
    columns = [sql(one, dialect) for one in select.columns]
    head = "SELECT"
    if select.merged:
        head += f" /*+ MERGE({', '.join(sql(one, dialect) for one in select.merged)}) */"
    if select.distinct:
        head += " DISTINCT"
    short = f"{head} {', '.join(columns)}"
    if len(short) <= 80:
        lines = [short]
    else:
        lines = [head, *(f"  {one}," for one in columns[:-1]), f"  {columns[-1]}"]
    lines += _from(select, dialect)
    lines += [sql(one, dialect).strip() for one in select.laterals]
    for join in select.joins:
        name = sql(join.table, dialect)
        if join.on:
            lines += [f"JOIN {name}", *_all_of("  ON ", "  AND ", join.on, dialect)]
        else:
            lines.append(f"CROSS JOIN {name}")
    return lines + _all_of("WHERE ", "  AND ", select.where, dialect)


def _from(select: Select, dialect: Dialect) -> list[str]:
    if isinstance(select.table, tuple):
        inner, name = select.table
        text = textwrap.indent(laid_out(inner, dialect), "  ")
        return ["FROM (", text, f") AS {sql(name, dialect)}"]
    return [f"FROM {sql(select.table, dialect)}"]


def _all_of(
    first: str, later: str, conditions: Iterable[exp.Expr | Without], dialect: Dialect
) -> list[str]:
    """One line for each condition, which begins with `first` or with `later`."""
    lines = []
    for place, condition in enumerate(conditions):
        begin = later if place else first
        if isinstance(condition, Without):
            text = textwrap.indent(laid_out(condition.found, dialect), "    ")
            lines += [f"{begin}NOT EXISTS (", text, "  )"]
        else:
            lines.append(f"{begin}{sql(condition, dialect)}")
    return lines
