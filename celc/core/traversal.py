"""The parts of core CEL's trees: formulas, conditions and expressions. A pass that treats only some
kinds of nodes specially names those kinds. The functions here walk the others."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias, assert_never

from celc.core import formula as core
from celc.core.formula import Expression, Formula, Predicate, Truth

# --- formulas -------------------------------------------------------------------------------------


def matched_parts_of(formula: Formula) -> tuple[Formula, ...]:
    """The parts that make up a match, in the order of the text, without forbidden parts."""
    match formula:
        case core.Atom():
            return ()
        case core.As() | core.Rename() | core.Project() | core.Iteration():
            return (formula.operand,)
        case core.Filter() | core.Selector() | core.Within():
            return (formula.operand,)
        case core.AbsenceBefore() | core.AbsenceAfter():
            return (formula.operand,)
        case core.Sequence() | core.Disjunction():
            return formula.operands
        case core.Conjunction() | core.All() | core.Absence():
            return (formula.left, formula.right)
        case core.Unless():
            return (formula.left,)
        case core.ThenFirst():
            return (formula.left, formula.operand)
        case _:
            assert_never(formula)


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """The parts of a formula in the order of the text, with forbidden parts."""
    match formula:
        case core.Absence():
            return (formula.left, formula.middle, formula.right)
        case core.Unless():
            return (formula.left, formula.right)
        case core.ThenFirst():
            parts = (formula.left, formula.gap, formula.absent, formula.operand)
            return tuple(part for part in parts if part is not None)
        case core.AbsenceBefore():
            return (formula.absent, formula.operand)
        case core.AbsenceAfter():
            return (formula.operand, formula.absent)
        case _:
            return matched_parts_of(formula)


def formulas_in(formula: Formula) -> Iterator[Formula]:
    """A formula and all within it, outer before inner, left before right."""
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed(parts_of(part)))


def windows_in(formula: Formula) -> tuple[core.Window, ...]:
    """The windows of the parts of a formula, and the lengths of absences, each once."""
    found: dict[core.Window, None] = {}
    for part in formulas_in(formula):
        if isinstance(part, core.Within):
            found[part.window] = None
        elif isinstance(part, core.AbsenceBefore | core.AbsenceAfter):
            found[part.length] = None
    return tuple(found)


def with_types_and_windows(
    formula: Formula,
    types: Callable[[tuple[core.EventType, ...]], tuple[core.EventType, ...]],
    window: Callable[[core.Window], core.Window],
    length: Callable[[core.AbsenceBefore | core.AbsenceAfter], core.Window] | None = None,
) -> Formula:
    """The formula with other event types in its atoms, and other windows and lengths of absences;
    `length`: those of absences at an end, where they change in another way."""

    def changed(one: Formula) -> Formula:
        return with_types_and_windows(one, types, window, length)

    match formula:
        case core.Atom():
            return replace(formula, types=types(formula.types))
        case core.Within():
            operand = changed(formula.operand)
            return replace(formula, operand=operand, window=window(formula.window))
        case core.AbsenceBefore() | core.AbsenceAfter():
            operand, absent = changed(formula.operand), changed(formula.absent)
            measured = window(formula.length) if length is None else length(formula)
            return replace(formula, operand=operand, absent=absent, length=measured)
        case core.Sequence() | core.Disjunction():
            return replace(formula, operands=tuple(map(changed, formula.operands)))
        case core.Absence():
            left, right = changed(formula.left), changed(formula.right)
            return replace(formula, left=left, middle=changed(formula.middle), right=right)
        case core.ThenFirst():
            return with_parts_of_first(formula, changed)
        case core.Conjunction() | core.All() | core.Unless():
            return replace(formula, left=changed(formula.left), right=changed(formula.right))
        case core.As() | core.Rename() | core.Project() | core.Iteration():
            return replace(formula, operand=changed(formula.operand))
        case core.Filter() | core.Selector():
            return replace(formula, operand=changed(formula.operand))
        case _:
            assert_never(formula)


def with_parts_of_first(
    formula: core.ThenFirst, change: Callable[[Formula], Formula]
) -> core.ThenFirst:
    """The formula with each of its parts changed."""
    return replace(
        formula,
        left=change(formula.left),
        operand=change(formula.operand),
        absent=None if formula.absent is None else change(formula.absent),
        gap=None if formula.gap is None else change(formula.gap),
    )


def is_one_event(formula: Formula) -> bool:
    """Whether every match of a formula is of one event."""
    match formula:
        case core.Atom():
            return True
        case core.Disjunction():
            return all(map(is_one_event, formula.operands))
        case core.Unless():
            return is_one_event(formula.left)
        case core.Sequence() | core.Iteration() | core.All() | core.Absence():
            return False
        case core.ThenFirst():
            return False
        case _:
            return all(map(is_one_event, matched_parts_of(formula)))


def labels_bound(formula: Formula) -> frozenset[str]:
    """The labels that a formula can bind at its own level, without conditions."""
    match formula:
        case core.Atom():
            return frozenset({formula.label})
        case core.As():
            return labels_bound(formula.operand) | {formula.label}
        case core.Rename():
            return (labels_bound(formula.operand) - {formula.old}) | {formula.new}
        case core.Project():
            return frozenset(formula.labels)
        case _:
            return frozenset[str]().union(*map(labels_bound, matched_parts_of(formula)))


# --- conditions -----------------------------------------------------------------------------------


def operands_of(predicate: Predicate) -> tuple[Expression, ...]:
    """The expressions that a predicate compares."""
    match predicate:
        case core.Comparison():
            return (predicate.left, predicate.right)
        case core.Membership() | core.PatternMatch() | core.NullTest():
            return (predicate.operand,)
        case core.Quantified():
            return _asked(predicate.condition)
        case _:
            assert_never(predicate)


def written_operands_of(predicate: Predicate) -> tuple[Expression, ...]:
    """The expressions that a predicate compares, and those of the comparison that it was a part
    of."""
    match predicate:
        case core.Comparison() | core.Membership() | core.NullTest():
            return (*operands_of(predicate), *predicate.beside)
        case core.Quantified():
            parts = predicates_of(predicate.condition)
            return tuple(one for part in parts for one in written_operands_of(part))
        case _:
            return operands_of(predicate)


def predicates_of(truth: Truth) -> tuple[Predicate, ...]:
    """The predicates of a condition, in the order of the text."""
    if isinstance(truth, core.Every | core.Some):
        return tuple(one for part in truth.parts for one in predicates_of(part))
    return (truth,)


# --- expressions ----------------------------------------------------------------------------------

Leaf: TypeAlias = core.AttributeValue | core.Aggregate | core.Previous
IN_DECLARATION = "it stands in the declaration of an aggregate alone"
IN_TOTAL = "it stands in an item of TOTAL alone"
OF_SEVERAL_EVENTS = "SOME and EVERY ask for several events"
IN_ROW_PATTERNS = "it stands in MATCH_RECOGNIZE alone"


def terms_of(expression: Expression) -> tuple[Expression, ...]:
    """The expressions that an expression is calculated from, from left to right."""
    match expression:
        case core.Arithmetic():
            return (expression.left, expression.right)
        case core.Negation() | core.Absolute() | core.Cast() | core.Existing():
            return (expression.operand,)
        case core.Constant() | core.AttributeValue() | core.Aggregate() | core.Previous():
            return ()
        case core.Variable() | core.TotalOf():
            return ()
        case core.ColumnAt() | core.LabelAt() | core.MatchNumber():
            return ()
        case core.AggregateOfRows():
            parts = (expression.argument, *(one.value for one in expression.order), expression.kept)
            return tuple(part for part in parts if part is not None)
        case core.TimeDifference():
            return (expression.start, expression.end)
        case core.Choice() | core.Call() | core.OwnCall():
            return expression.operands
        case core.Conditional():
            ways = (one for asked, then in expression.branches for one in (*_asked(asked), then))
            return (*ways, expression.otherwise)
        case core.Asked():
            return _asked(expression.condition)
        case _:
            assert_never(expression)


def _asked(truth: Truth) -> tuple[Expression, ...]:
    """The expressions that a condition compares."""
    return tuple(one for predicate in predicates_of(truth) for one in operands_of(predicate))


def nodes_asked(truth: Truth) -> list[Expression]:
    """All expressions within a condition, outer before inner, left before right."""
    return [node for operand in _asked(truth) for node in nodes_of(operand)]


def nodes_of(expression: Expression) -> list[Expression]:
    """An expression and all within it, outer before inner, left before right."""
    found, waiting = [], [expression]
    while waiting:
        node = waiting.pop()
        found.append(node)
        # Most are a name or a number.
        if not isinstance(node, core.Constant | core.AttributeValue):
            waiting.extend(reversed(terms_of(node)))
    return found


def with_terms(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with each of its terms changed; one of no terms as it is."""
    match node:
        case core.Arithmetic():
            left, right = change(node.left), change(node.right)
            return core.Arithmetic(node.operator, left, right, node.type, node.span)
        case core.Negation() | core.Absolute() | core.Cast() | core.Existing():
            return replace(node, operand=change(node.operand))
        case core.Choice() | core.Call():
            return replace(node, operands=tuple(map(change, node.operands)))
        case core.OwnCall():
            return replace(node, operands=tuple(map(_list_by(change), node.operands)))
        case core.Conditional():
            branches = tuple(
                (truth_with_terms(asked, change), change(then)) for asked, then in node.branches
            )
            return replace(node, branches=branches, otherwise=change(node.otherwise))
        case core.Asked():
            return replace(node, condition=truth_with_terms(node.condition, change))
        case core.TimeDifference():
            return replace(node, start=change(node.start), end=change(node.end))
        case core.AggregateOfRows():
            return replace(
                node,
                argument=None if node.argument is None else change(node.argument),
                order=tuple(replace(one, value=change(one.value)) for one in node.order),
                kept=None if node.kept is None else change(node.kept),
            )
        case core.Constant() | core.AttributeValue() | core.Aggregate() | core.Previous():
            return node
        case core.Variable() | core.TotalOf():
            return node
        case core.ColumnAt() | core.LabelAt() | core.MatchNumber():
            return node
        case _:
            assert_never(node)


def _list_by(change: Callable[[Expression], Expression]) -> Callable[[Expression], core.Aggregate]:
    def changed(operand: Expression) -> core.Aggregate:
        found = change(operand)
        assert isinstance(found, core.Aggregate), "a list stays one"
        return found

    return changed


def truth_with_terms(truth: Truth, change: Callable[[Expression], Expression]) -> Truth:
    """The condition with each expression that it compares changed, those beside it left out."""
    if isinstance(truth, core.Every | core.Some):
        parts = tuple(truth_with_terms(part, change) for part in truth.parts)
        return replace(truth, parts=parts)
    return _with_operands(truth, change)


def _with_operands(predicate: Predicate, change: Callable[[Expression], Expression]) -> Predicate:
    match predicate:
        case core.Comparison():
            left, right = map(change, operands_of(predicate))
            return replace(predicate, left=left, right=right, beside=())
        case core.Membership():
            return replace(predicate, operand=change(predicate.operand), beside=())
        case core.NullTest():
            return replace(predicate, operand=change(predicate.operand), beside=())
        case core.PatternMatch():
            return replace(predicate, operand=change(predicate.operand))
        case core.Quantified():
            return replace(predicate, condition=truth_with_terms(predicate.condition, change))
        case _:
            assert_never(predicate)


def map_expression(node: Expression, change: Callable[[Leaf], Expression]) -> Expression:
    """The expression with each attribute and function replaced."""
    match node:
        case core.AttributeValue() | core.Aggregate() | core.Previous():
            return change(node)
        case core.Variable():
            raise AssertionError(IN_DECLARATION)
        case core.TotalOf():
            raise AssertionError(IN_TOTAL)
        case core.InRowPatterns():
            raise AssertionError(IN_ROW_PATTERNS)
        case _:
            return with_terms(node, lambda one: map_expression(one, change))


def map_leaves(predicate: Predicate, change: Callable[[Leaf], Expression]) -> Predicate:
    """The predicate with each attribute and function replaced. Operands in `beside` are left
    out."""
    return _with_operands(predicate, lambda one: map_expression(one, change))
