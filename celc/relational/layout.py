"""The parts of a SELECT → its text, in lines for people. sqlglot writes the expressions for a
dialect. Its own layout of whole statements breaks each pair of parentheses into three lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

import sqlglot
from celc_runtime.plan.frozen import frozen
from sqlglot import exp
from sqlglot.generator import Generator

from celc.relational.expressions import Dialect


@frozen
class Joining:
    """A table that is joined, and the conditions; without a condition, each row is joined with
    each."""

    table: exp.Expr
    on: tuple[exp.Expr, ...]


@frozen
class Without:
    """A condition: a SELECT has no row."""

    found: Select


@frozen
class Union:
    """The rows of several SELECTs."""

    parts: tuple[Select, ...]


@frozen
class Select:
    """A SELECT. `table` is a table, or a SELECT or several with a name. Spark is told to sort both
    sides when it joins `merged`. `by`: the columns of GROUP BY."""

    columns: tuple[exp.Expr, ...]
    table: exp.Expr | tuple[Select | Union, exp.Expr]
    laterals: tuple[exp.Expr, ...] = ()
    joins: tuple[Joining, ...] = ()
    where: tuple[exp.Expr | Without, ...] = ()
    merged: tuple[exp.Expr, ...] = ()
    by: tuple[exp.Expr, ...] = ()


def laid_out(select: Select, dialect: Dialect, margin: str = "") -> str:
    """The text of a SELECT; `margin` stands before each of its lines. A text or a name can contain
    line ends. Nothing is put after these, unlike in `textwrap.indent`."""
    return "\n".join(margin + line for line in _lines(select, dialect))


VARIABLE = "${"
"""The beginning of a Spark variable. Spark's parser inserts the values of variables before it reads
the statement, also into texts and names."""

_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|`[^`]*`", re.DOTALL)


def sql(expression: exp.Expr, dialect: Dialect) -> str:
    """The text of an expression, in one line but for line ends in texts and names."""
    # `Expression.sql` makes a generator and copies the tree each time, which took most of the time.
    text = _generator(dialect).generate(expression, copy=False)
    return _without_variables(text) if dialect == "spark" and VARIABLE in text else text


def _without_variables(text: str) -> str:
    """The same expression with no variable in a text. Names have no escapes."""

    def spelled(found: re.Match[str]) -> str:
        quoted = found.group()
        return quoted.replace(VARIABLE, "\\u0024{") if quoted.startswith("'") else quoted

    return _QUOTED.sub(spelled, text)


@cache
def _generator(dialect: Dialect) -> Generator:
    return sqlglot.Dialect.get_or_raise(dialect).generator()


def _lines(select: Select, dialect: Dialect) -> list[str]:
    """The lines of a SELECT. A text or a name with line ends is part of one line."""
    head = head_of(select, dialect)
    columns = [sql(one, dialect) for one in select.columns]
    short = f"{head} {', '.join(columns)}"
    lines = [short] if len(short) <= 80 else [head, *_each_on_a_line(columns)]
    return lines + _lines_behind(select, dialect)


def head_of(select: Select, dialect: Dialect) -> str:
    """What stands before the columns of a SELECT."""
    head = "SELECT"
    if select.merged:
        head += f" /*+ MERGE({', '.join(sql(one, dialect) for one in select.merged)}) */"
    return head


def columns_text(columns: Iterable[exp.Expr], dialect: Dialect) -> str:
    """Columns of a SELECT, a line for each."""
    return "\n".join(_each_on_a_line([sql(one, dialect) for one in columns]))


def behind(select: Select, dialect: Dialect) -> str:
    """What stands behind the columns of a SELECT."""
    return "\n".join(_lines_behind(select, dialect))


def _each_on_a_line(columns: Sequence[str]) -> list[str]:
    return [*(f"  {one}," for one in columns[:-1]), f"  {columns[-1]}"]


def _lines_behind(select: Select, dialect: Dialect) -> list[str]:
    lines = _from(select, dialect)
    lines += [sql(one, dialect).strip() for one in select.laterals]
    for join in select.joins:
        name = sql(join.table, dialect)
        if join.on:
            lines += [f"JOIN {name}", *_all_of("  ON ", "  AND ", join.on, dialect)]
        else:
            lines.append(f"CROSS JOIN {name}")
    lines += _all_of("WHERE ", "  AND ", select.where, dialect)
    if select.by:
        lines.append(f"GROUP BY {', '.join(sql(one, dialect) for one in select.by)}")
    return lines


def _from(select: Select, dialect: Dialect) -> list[str]:
    if isinstance(select.table, tuple):
        inner, name = select.table
        parts = inner.parts if isinstance(inner, Union) else (inner,)
        lines = [f"  {line}" for line in _lines(parts[0], dialect)]
        for part in parts[1:]:
            lines += ["  UNION ALL", *(f"  {line}" for line in _lines(part, dialect))]
        return ["FROM (", *lines, f") AS {sql(name, dialect)}"]
    return [f"FROM {sql(select.table, dialect)}"]


def _all_of(
    first: str, later: str, conditions: Iterable[exp.Expr | Without], dialect: Dialect
) -> list[str]:
    """One line for each condition, which begins with `first` or with `later`."""
    lines = []
    for place, condition in enumerate(conditions):
        begin = later if place else first
        if isinstance(condition, Without):
            found = [f"    {line}" for line in _lines(condition.found, dialect)]
            lines += [f"{begin}NOT EXISTS (", *found, "  )"]
        else:
            lines.append(f"{begin}{sql(condition, dialect)}")
    return lines
