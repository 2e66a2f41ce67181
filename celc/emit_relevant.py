"""The events that can change an answer, as constructor calls in a module's plan.

On Spark the events that cannot are dropped before rows are moved, where positions are not wanted.
That is sound only if such an event is as good as none at all: nothing counts it (a window of
EVENTS), nobody asks whether two events are neighbours (`:`, `:+`, STRICT), and no selector has to
be shown it. What is written down is what Spark certainly decides as celc does. An arithmetic may
overflow, which is an error in ANSI mode; RLIKE is another language there; a cast of a DATE to a
TIMESTAMP depends on the session's zone. Such conditions are left out, which only keeps more.
"""

from __future__ import annotations

import math
from typing import assert_never

from celc import formula as core
from celc.escape import string_literal, tuple_text
from celc.formula import MIRRORED, DataType, Predicate
from celc.normal_form import EventClause
from celc.predicates import TypeConditions
from celc.program import Program
from celc.traversal import formulas_in

_MOST_WAYS = 16
"""Beyond this many combinations of conditions on a type, the type alone is asked for."""

_LONGEST_LIST = 200
"""Spark plans longer IN lists slowly; such a condition is left out."""

RELEVANT_CONSTRUCTORS = ("AttributeTest", "Relevant")
"""What the trees are written with."""


def relevant_events(program: Program, *, sees_all_events: bool) -> str | None:
    """The field `relevant` of a plan; None where the query has to see every event.

    `sees_all_events`: a selection has to be shown the events that the query does not ask about.
    """
    query, tables = program.query, program.tables
    counts = query.window is not None and query.window.unit is core.WindowUnit.EVENTS
    if counts or sees_all_events or tables.contexts is not None:
        return None
    if query.strategy == "STRICT" or has_selectors(query.formula):
        return None
    if any(_is_contiguous(part) for part in formulas_in(query.formula)):
        return None
    assert tables.is_idle(0), "an event that no condition tells apart changes nothing"
    found = []
    for conditions in program.alphabet.types:
        truths = {
            symbol.truth
            for number, symbol in program.alphabet.numbered(conditions.type)
            if tables.symbol_of[number]
        }
        if truths:
            found.append(_relevant(conditions, truths))
    return tuple_text(found)


def has_selectors(formula: core.Formula) -> bool:
    """Whether a selector stands inside the formula."""
    return any(isinstance(part, core.Selector) for part in formulas_in(formula))


def _is_contiguous(formula: core.Formula) -> bool:
    match formula:
        case core.Sequence():
            return any(formula.contiguous)
        case core.Iteration():
            return formula.contiguous
        case _:
            return False


def _relevant(conditions: TypeConditions, truths: set[int]) -> str:
    # More conditions that hold only narrow what fewer of them let through.
    least = [truth for truth in truths if not any(t != truth and t & truth == t for t in truths)]
    names = [string_literal(conditions.type.stream), string_literal(conditions.type.name)]
    ways = [_way(conditions, truth) for truth in sorted(least)]
    if len(ways) <= _MOST_WAYS and all(ways):
        names.append(tuple_text(map(tuple_text, ways)))
    return f"Relevant({', '.join(names)})"


def _way(conditions: TypeConditions, truth: int) -> list[str]:
    """The clauses of the groups in a bit set, those left out that cannot be written down."""
    clauses = [
        _clause(clause)
        for bit, group in enumerate(conditions.groups)
        if truth >> bit & 1
        for clause in group
    ]
    return [clause for clause in clauses if clause is not None]


def _clause(clause: EventClause) -> str | None:
    tests = [_test(predicate) for predicate in clause.predicates]
    known = [test for test in tests if test is not None]
    return tuple_text(known) if len(known) == len(tests) else None


def _test(predicate: Predicate) -> str | None:
    """A predicate as the constructor call of a test, if it is an attribute against constants."""
    match predicate:
        case core.NullTest():
            return _call("is_not_null" if predicate.negated else "is_null", predicate.operand, ())
        case core.Membership():
            if predicate.negated and predicate.has_null:
                return None
            operator = "not_in" if predicate.negated else "in"
            return _call(operator, predicate.operand, predicate.values)
        case core.PatternMatch():
            if predicate.operator != "LIKE" or "\\" in predicate.pattern:
                return None
            operator = "not_like" if predicate.negated else "like"
            return _call(operator, predicate.operand, (predicate.pattern,))
        case core.Comparison():
            left, right = predicate.left, predicate.right
            if isinstance(right, core.Constant) and right.value is not None:
                return _call(predicate.operator, left, (right.value,))
            if isinstance(left, core.Constant) and left.value is not None:
                return _call(MIRRORED[predicate.operator], right, (left.value,))
            return None
        case _:
            assert_never(predicate)


_LOSSLESS = (
    (DataType.INT, DataType.LONG),
    (DataType.INT, DataType.DOUBLE),
    (DataType.FLOAT, DataType.DOUBLE),
)


def _call(
    operator: str, operand: core.Expression, values: tuple[int | float | str | bool, ...]
) -> str | None:
    type = operand.type
    if isinstance(operand, core.Cast):
        if (operand.operand.type, type) not in _LOSSLESS:
            return None
        operand = operand.operand
    if not isinstance(operand, core.AttributeValue):
        return None
    if len(values) > _LONGEST_LIST or not all(map(_can_be_written, values)):
        return None
    if any(_is_in_gap(value, type) for value in values):
        return None
    arguments = [string_literal(text) for text in (operator, operand.attribute, type.value)]
    if values:
        arguments.append(tuple_text(map(_literal, values)))
    return f"AttributeTest({', '.join(arguments)})"


_GAP = range(-141_440, -141_424)
"""Days since 1970 around those of October 1582 that the Gregorian calendar left out. Spark hands
filters to Parquet as days of the older calendar as well, which has others in their place."""


def _is_in_gap(value: int | float | str | bool, type: DataType) -> bool:
    if not isinstance(value, int) or type not in (DataType.DATE, DataType.TIMESTAMP):
        return False
    return (value if type is DataType.DATE else value // 86_400_000_000) in _GAP


def _can_be_written(value: int | float | str | bool) -> bool:
    """Whether a constant can be a literal of Spark's: no lone surrogates, no infinity or NaN."""
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return not isinstance(value, float) or math.isfinite(value)


def _literal(value: int | float | str | bool) -> str:
    return string_literal(value) if isinstance(value, str) else repr(value)
