"""Values of one row that are computed before the query reads it, as columns.

Such are keys that are expressions, and functions in DEFINE: `UPPER(A.s)` is a column of the row
that A.s reads. On Spark it is Spark's own expression, on one machine vectorised code, as in CEL
(`celc.resolve.derived`). Conditions then compare columns, by kernels that know no texts. Functions
in MEASURES need no columns: they are computed where rows of the result are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from celc.core import fold
from celc.core import formula as core
from celc.core.formula import Constant, DataType
from celc.core.terms import joined_texts
from celc.core.traversal import (
    nodes_asked,
    nodes_of,
    operands_of,
    predicates_of,
    terms_of,
    truth_with_terms,
    with_terms,
)
from celc.resolve.derived import DerivedColumns
from celc.resolve.types.between import has_kernel, never_null
from celc.row_pattern import core as rows


class RowColumns:
    """The columns of a table, and those that are made of them."""

    def __init__(self, table: tuple[rows.Column, ...]) -> None:
        # PySpark gives no column with a dot in its name to Python.
        self._made = DerivedColumns(dot="_")
        self._numbers: dict[str, int] = {}
        self._columns = list(table)
        self._taken = frozenset(column.name for column in table)

    @property
    def all(self) -> tuple[rows.Column, ...]:
        """The columns, those of the table first."""
        return tuple(self._columns)

    @property
    def derived(self) -> tuple[core.Derived, ...]:
        """What the other ones are."""
        return self._made.columns

    def number_of(self, value: core.Expression, *, clock: bool = False) -> int:
        """The column with the value of an expression over one row; `clock` as of a `Column`."""
        alone = self._alone(value)
        if clock:
            alone = core.Call("CAST", (alone,), DataType.TIMESTAMP_NTZ, "UTC", value.span)
        name = self._made.name_of(alone, self._taken)
        if name not in self._numbers:
            self._numbers[name] = len(self._columns)
            self._columns.append(rows.Column(name, value.type, clock))
        return self._numbers[name]

    def _alone(self, node: core.Expression) -> core.Expression:
        """An expression over one row, in which columns have names and no row."""
        match node:
            case core.ColumnAt():
                column = self._columns[node.column]
                read = core.AttributeValue("", column.name, column.outside, node.span)
                if not column.clock:
                    return read
                return core.Call("CAST", (read,), DataType.TIMESTAMP, "UTC", node.span)
            case core.Existing():
                return self._alone(node.operand)
            case core.Asked():
                asked = truth_with_terms(node.condition, self._alone)
                return _as_conditional(asked, node)
            case _:
                return with_terms(node, self._alone)

    # --- conditions -------------------------------------------------------------------------------

    def condition(self, truth: core.Truth) -> core.Truth:
        """The condition over columns that hold what functions of one row give."""
        return truth_with_terms(truth, self._expression)

    def _expression(self, node: core.Expression) -> core.Expression:
        row = _only_row(node)
        if row is None or not _is_function(node) or not can_be_column(node):
            found = with_terms(node, self._expression)
            if isinstance(found, core.Call) and found.function == "CONCAT":
                found = replace(found, operands=joined_texts(found))
            return never_null(found)
        found = core.ColumnAt(self.number_of(node), row, node.type, node.span)
        if isinstance(row, core.Argument):
            return found
        missing = _without_row(node)
        if missing.value is None:
            return found
        true = Constant(True, DataType.BOOLEAN, node.span)
        there = core.NullTest(core.Existing(row, true, true.type, node.span), True, node.span)
        return core.Conditional(((there, found),), missing, node.type, node.span)


def functions_of_rows(truth: core.Truth) -> list[core.Call]:
    """The calls in a condition that are computed from several rows. Their code knows no time zones,
    and can only join and compare texts."""
    nodes = nodes_asked(truth)
    asked = [truth]
    for node in nodes:
        if isinstance(node, core.Conditional):
            asked += [one for one, _ in node.branches]
        elif isinstance(node, core.Asked):
            asked.append(node.condition)
    compared = {
        id(side)
        for one in asked
        for predicate in predicates_of(one)
        if isinstance(predicate, core.Comparison | core.NullTest)
        for side in operands_of(predicate)
        if isinstance(side, core.Call) and side.function == "CONCAT"
    }
    found: list[core.Call] = []
    inside: set[int] = set()
    for node in nodes:
        if not isinstance(node, core.Call) or id(node) in compared | inside or has_kernel(node):
            continue
        found.append(node)
        inside |= {id(one) for one in nodes_of(node)}
    return found


def _as_conditional(truth: core.Truth, node: core.Asked) -> core.Conditional:
    """A condition as a value: TRUE, FALSE or NULL."""
    true, false, null = (
        Constant(value, DataType.BOOLEAN, node.span) for value in (True, False, None)
    )
    branches = ((truth, true), (_negated(truth), false))
    return core.Conditional(branches, null, DataType.BOOLEAN, node.span)


def _negated(truth: core.Truth) -> core.Truth:
    """The condition that is TRUE where another one is FALSE."""
    match truth:
        case core.Every():
            return core.Some(tuple(map(_negated, truth.parts)), truth.span)
        case core.Some():
            return core.Every(tuple(map(_negated, truth.parts)), truth.span)
        case core.Comparison():
            return replace(truth, operator=core.NEGATED[truth.operator])
        case core.NullTest() | core.PatternMatch() | core.Membership() | core.Quantified():
            return replace(truth, negated=not truth.negated)
        case _:
            assert_never(truth)


def _only_row(node: core.Expression) -> core.Row | None:
    """The row that an expression reads, and nothing else; None: it reads others, or none."""
    found: set[core.Row] = set()
    for one in nodes_of(node):
        match one:
            case core.ColumnAt() | core.Existing():
                found.add(one.row)
            case core.LabelAt() | core.MatchNumber() | core.AggregateOfRows():
                return None
            case _:
                pass
    return found.pop() if len(found) == 1 else None


def _is_function(node: core.Expression) -> bool:
    return any(isinstance(one, core.Call) for one in nodes_of(node))


def can_be_column(node: core.Expression) -> bool:
    """Whether Spark can compute it, too. Its regular expressions are others."""
    match node:
        case core.Asked():
            asked: tuple[core.Truth, ...] = (node.condition,)
        case core.Conditional():
            asked = tuple(one for one, _ in node.branches)
        case _:
            asked = ()
    predicates = [one for truth in asked for one in predicates_of(truth)]
    if any(isinstance(one, core.PatternMatch) and one.operator == "RLIKE" for one in predicates):
        return False
    return all(map(can_be_column, terms_of(node)))


def _without_row(node: core.Expression) -> Constant:
    """The value of an expression whose row is not there."""

    def missing(one: core.Expression) -> core.Expression:
        match one:
            case core.ColumnAt() | core.Existing():
                return Constant(None, one.type, one.span)
            case core.Asked():
                return _as_conditional(truth_with_terms(one.condition, missing), one)
            case _:
                return with_terms(one, missing)

    found = missing(node)
    return Constant(fold.evaluate(found), found.type, found.span)
