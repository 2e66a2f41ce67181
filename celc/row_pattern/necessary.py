"""What every match must have: its last row soon after its first, and rows that are somewhere; and
what no row can have.

Conditions often say so in their own words. Where each last row has `ts <= FIRST(ts) + INTERVAL '1'
HOUR`, the match is WITHIN an hour, since rows are in the order of `ts`. Said as WITHIN it needs no
search, and bounds those that other conditions need. And where each way through the pattern takes a
row with `kind = 'alarm'`, a partition without such a row has no match.

And what one row can have: `price > 5` and `price < 3` are never true of one row, so that a stream
does not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.cnf import clauses_of, size_of
from celc.core.fold import fold_predicate
from celc.core.formula import AttributeValue, Constant, DataType
from celc.core.traversal import nodes_asked, truth_with_terms, with_terms
from celc.normal.conditions.truths import possible_truths
from celc.normal.normal_form import EventClause
from celc.row_pattern import core as rows
from celc.row_pattern.automaton import Automaton

_DAY = 86_400_000_000
_LONGEST = 1 << 60
"""Microseconds. A longer bound is not worth the question whether times wrap."""

Parts = Sequence[core.Truth]
"""The condition of a state as an AND."""


@frozen
class _Bound:
    """A condition that bounds the time from the start of the match to the row at hand;
    `says_no_more`: it is that bound and nothing else."""

    length: int
    says_no_more: bool


def bounded(
    query: rows.Query, made: Automaton, depths: Sequence[object], conditions: Sequence[Parts | None]
) -> tuple[int | None, list[Parts | None]]:
    """The WITHIN that the conditions of states imply, if none is written a shorter one; and the
    conditions without what it says. depths: of each state how far the start of the match is before
    its row, an int if that is known.

    Without a condition that reads the path nothing is to be gained, and two look-ups a row are less
    than the earliest end for each state.
    """
    if all(is_local(one) for parts in conditions for one in parts or ()):
        return query.within, list(conditions)
    found: list[list[tuple[core.Truth, _Bound]]] = []
    for number, parts in enumerate(conditions):
        reading = None if parts is None else _reading(query, depths[number])
        bounds = [] if reading is None else [(one, _bound(one, reading)) for one in parts or ()]
        found.append([(one, bound) for one, bound in bounds if bound is not None])
    last = [
        min((bound.length for _, bound in found[number]), default=None)
        for number, state in enumerate(made.states)
        if number not in (made.first, made.start) and (state.accepts or state.accepts_at_end)
    ]
    within = query.within
    if last and None not in last:
        longest = max(one for one in last if one is not None)
        within = longest if within is None else min(within, longest)
    if within is None:
        return None, list(conditions)
    said = [
        {
            id(one)
            for one, bound in bounds
            if bound.says_no_more and bound.length >= within and not is_local(one)
        }
        for bounds in found
    ]
    return within, [
        None if parts is None else [one for one in parts if id(one) not in said[number]]
        for number, parts in enumerate(conditions)
    ]


def is_local(truth: core.Truth) -> bool:
    """Whether a condition reads rows at constant distances alone."""
    for one in nodes_asked(truth):
        match one:
            case core.AggregateOfRows() | core.MatchNumber() | core.LabelAt():
                return False
            case core.ColumnAt() | core.Existing() if isinstance(one.row, core.Navigation):
                return False
    return True


def required(made: Automaton, conditions: Sequence[Parts | None]) -> tuple[core.Truth, ...]:
    """Conditions on one row alone, each of which holds for some row of every match. Empty where a
    match can be empty."""
    alone = [frozenset(() if parts is None else filter(_is_alone, parts)) for parts in conditions]
    accepts = {n for n, one in enumerate(made.states) if one.accepts or one.accepts_at_end}
    found = []
    for asked in dict.fromkeys(alone):
        without = {number for number, own in enumerate(alone) if not own >= asked}
        if asked and not accepts & _reached(made, without):
            found.append(asked)
    kept = [asked for asked in found if not any(asked < other for other in found)]
    return tuple(_joined(asked, conditions) for asked in kept)


def _joined(asked: frozenset[core.Truth], conditions: Sequence[Parts | None]) -> core.Truth:
    """The condition, in the order of the text."""
    parts = next(one for one in conditions if one is not None and asked <= {*one})
    kept = tuple(part for part in parts if part in asked)
    return kept[0] if len(kept) == 1 else core.Every(kept, kept[0].span.to(kept[-1].span))


def _is_alone(truth: core.Truth) -> bool:
    """Whether a condition reads columns of the row at hand, and nothing else."""
    nodes = nodes_asked(truth)
    reads = [one for one in nodes if isinstance(one, core.InRowPatterns)]
    return bool(reads) and all(
        isinstance(one, core.ColumnAt) and one.row == core.Here(0) for one in reads
    )


def _reached(made: Automaton, allowed: set[int]) -> set[int]:
    """The states that the beginnings lead to through some states alone."""
    found = {made.first, made.start}
    waiting = [*found]
    while waiting:
        for move in made.states[waiting.pop()].moves:
            if move.target in allowed and move.target not in found:
                found.add(move.target)
                waiting.append(move.target)
    return found


# --- one row -------------------------------------------------------------------------------------

_MOST_COMBINATIONS = 1024  # of conditions: of more, all count as possible
_MOST_CLAUSES = 64  # of a condition: one with more excludes no other condition


def realisable(local: Sequence[core.Truth]) -> tuple[int, ...]:
    """The combinations of conditions that a row can fulfil, as bits by their places, ascending;
    empty where all count as possible.

    Comparisons of a column with constants are counted out, by the row that they read: columns of
    the row before and of the row after are columns of their own. So what two rows next to each
    other exclude is not seen, nor what columns say of each other (`a > b` and `b > a`).
    """
    groups = [_clauses(number, condition) for number, condition in enumerate(local)]
    found = possible_truths(groups, limit=_MOST_COMBINATIONS)
    if found is None or len(found) == 1 << len(local):
        return ()
    return tuple(sorted(found))


def _clauses(number: int, condition: core.Truth) -> tuple[EventClause, ...]:
    """A condition as an AND of ORs about the columns of the rows around one row."""
    if size_of(condition).exceeds(_MOST_CLAUSES):
        alone = AttributeValue("", f"condition {number}", core.DataType.BOOLEAN, condition.span)
        true = core.Constant(True, core.DataType.BOOLEAN, condition.span)
        return (EventClause((core.Comparison("=", alone, true, condition.span),)),)
    asked = truth_with_terms(condition, _columns)
    return tuple(
        EventClause(tuple(one for one in clause.predicates if fold_predicate(one) is None))
        for clause in clauses_of(asked)
        if not any(map(fold_predicate, clause.predicates))
    )


def _columns(node: core.Expression) -> core.Expression:
    """The expression over columns that are called by their row and number."""
    if isinstance(node, core.ColumnAt) and isinstance(node.row, core.Here):
        return AttributeValue("", f"{node.row.shift} {node.column}", node.type, node.span)
    return with_terms(node, _columns)


# --- times ----------------------------------------------------------------------------------------

_Linear: TypeAlias = tuple[int, int, int]
"""How often the time of the row at hand, how often that of the start, and what is added."""


@frozen
class _Reading:
    """The first column of ORDER BY, and how far the start is before the row at hand, if known."""

    column: int
    is_date: bool
    depth: object

    def time(self, node: core.ColumnAt) -> _Linear | None:
        """The column at the row at hand or at the start."""
        match node.row:
            case _ if node.column != self.column:
                return None
            case core.Here(shift=0):
                return 1, 0, 0
            case core.Here(shift=shift) if isinstance(self.depth, int) and shift == -self.depth:
                return 0, 1, 0
            case core.Navigation(variables=None, first=True, offset=0, shift=0):
                return 0, 1, 0
            case _:
                return None


def _reading(query: rows.Query, depth: object) -> _Reading | None:
    """None where rows are not in the ascending order of a time that is there."""
    if not query.order_by:
        return None
    first = query.order_by[0]
    type = query.columns[first.column].type
    if first.descending or first.nulls_first is not None or type not in core.TIMES:
        return None
    return _Reading(first.column, type is DataType.DATE, depth)


def _bound(truth: core.Truth, reading: _Reading) -> _Bound | None:
    """The bound that a comparison of two times is."""
    if not isinstance(truth, core.Comparison) or truth.operator == "!=":
        return None
    left, right, operator = truth.left, truth.right, truth.operator
    if operator in (">", ">="):
        left, right, operator = right, left, "<" if operator == ">" else "<="
    found = _difference(left, right, operator, reading)
    if operator == "=":
        # Either side may be the earlier one.
        sides = _difference(left, right, "<=", reading), _difference(right, left, "<=", reading)
        found = next((one for one in sides if one is not None), None)
    if found is None or not 0 <= found <= _LONGEST:
        return None
    return _Bound(found, truth.operator != "=")


def _difference(
    left: core.Expression, right: core.Expression, operator: str, reading: _Reading
) -> int | None:
    """The longest time from the start to the row at hand for which `left <= right` or `left <
    right`, in microseconds."""
    match left, right:
        case core.TimeDifference(), Constant(value=int(count)):
            # It is cut towards 0, so that up to a unit more is the same.
            most = count if operator == "<=" else count - 1
            ends = _less(left.end, left.start, reading)
            length = None if most < 0 else (most + 1) * left.unit - 1
        case _:
            ends, length = _less(left, right, reading), 0 if operator == "<=" else -1
    if ends is None or length is None:
        return None
    here, start, added = ends
    if here <= 0 or start != -here:
        return None
    return (length - added) // here * (_DAY if reading.is_date else 1)


def _less(left: core.Expression, right: core.Expression, reading: _Reading) -> _Linear | None:
    one, other = _linear(left, reading), _linear(right, reading)
    if one is None or other is None:
        return None
    return one[0] - other[0], one[1] - other[1], one[2] - other[2]


def _linear(node: core.Expression, reading: _Reading) -> _Linear | None:
    """A sum of times and constants: microseconds, or of DATE days."""
    match node:
        case core.ColumnAt():
            return reading.time(node)
        case Constant(value=int(value)) if node.type in (DataType.INTERVAL, DataType.LONG):
            return 0, 0, value
        case core.Cast(type=DataType.LONG | DataType.TIMESTAMP) if (
            node.operand.type is DataType.DATE
        ):
            days = _linear(node.operand, reading)
            return _times(days, 1 if node.type is DataType.LONG else _DAY)
        case core.Arithmetic(operator="+" | "-", type=type) if type in _ADDED:
            second = _linear(node.right, reading)
            left, right = _linear(node.left, reading), _times(
                second, 1 if node.operator == "+" else -1
            )
            if left is None or right is None:
                return None
            return left[0] + right[0], left[1] + right[1], left[2] + right[2]
        case core.Arithmetic(operator="*", right=Constant(value=int(value)), type=type) if (
            type in _ADDED
        ):
            return _times(_linear(node.left, reading), value)
        case _:
            return None


_ADDED = (DataType.TIMESTAMP, DataType.INTERVAL, DataType.LONG)


def _times(one: _Linear | None, factor: int) -> _Linear | None:
    return None if one is None else (one[0] * factor, one[1] * factor, one[2] * factor)
