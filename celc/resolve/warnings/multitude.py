"""The warning that COUNT(x) ≥ k under `+` gives millions of matches for few events more than k.

A `+` takes every choice of events. Without a window every `+` gets a warning (`suspicions`); under
a window the number of events is not known. But where a choice has to be large, few events more than
it needs are enough: 100 of 104 events can be chosen in 4,598,126 ways. So a query gets a warning if
one and a half times as many events as its matches need give more than a million matches at one end,
and if a window that counts events has room for them.
"""

from collections.abc import Iterator
from math import comb

from celc.core import formula as core
from celc.core.fold import fold_predicate
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import warnings

MOST_MATCHES = 1_000_000  # that end at one event, without a warning
_LEAST_COUNT = 20  # a smaller count has no warning: half as many events more have few choices


def check_counts(
    formula: core.Formula, growing: frozenset[str], window: core.Window | None, found: Diagnostics
) -> None:
    """Warn of the first filter that demands large choices of a label under `+`.

    `growing` are labels that SELECT keeps and whose events a `+` chooses. Only filters that every
    match must satisfy count.
    """
    most = None
    if window is not None and window.unit is core.WindowUnit.EVENTS:
        most = int(window.size) + 1
    for comparison in _comparisons(formula):
        counted = _counted(comparison)
        if counted is None or counted.label not in growing:
            continue
        least = _least_satisfying(comparison)
        events = None if least is None else _events_for_many_matches(least)
        if events is not None and (most is None or events <= most):
            found.add(warnings.many_choices(counted.label, events, MOST_MATCHES, comparison.span))
            return


def _comparisons(formula: core.Formula) -> Iterator[core.Comparison]:
    """The comparisons that every match satisfies."""
    match formula:
        case core.Filter():
            for clause in formula.clauses:
                first, *others = clause.predicates or (None,)
                if not others and isinstance(first, core.Comparison):
                    yield first
            yield from _comparisons(formula.operand)
        case core.As():
            yield from _comparisons(formula.operand)
        case core.Sequence():
            for operand in formula.operands:
                yield from _comparisons(operand)


def _counted(comparison: core.Comparison) -> core.Aggregate | None:
    """The COUNT that a comparison has on one side, if a constant is on the other; else None."""
    sides = (comparison.left, comparison.right)
    for side, other in (sides, sides[::-1]):
        inner = side.operand if isinstance(side, core.Cast) else side
        if isinstance(inner, core.Aggregate) and inner.function == "COUNT" and not inner.prior:
            return inner if isinstance(other, core.Constant) else None
    return None


def _least_satisfying(comparison: core.Comparison) -> int | None:
    """The least count that satisfies a comparison, where greater ones do too; None where there is
    no such count, or one below `_LEAST_COUNT`."""
    numbers = range(core.MAX_COUNT + 1)
    first = next((n for n in numbers if _holds(comparison, n)), None)
    if first is None or first < _LEAST_COUNT or not _holds(comparison, core.MAX_COUNT + 1):
        return None
    return first


def _holds(comparison: core.Comparison, number: int) -> bool:
    """Whether a comparison is TRUE if COUNT has a value."""

    def side(one: object) -> core.Constant:
        if isinstance(one, core.Constant):
            return one
        assert isinstance(one, core.Aggregate | core.Cast)
        value = float(number) if one.type is core.DataType.DOUBLE else number
        return core.Constant(value, one.type, one.span)

    left, right = side(comparison.left), side(comparison.right)
    return bool(fold_predicate(core.Comparison(comparison.operator, left, right, comparison.span)))


def _events_for_many_matches(least: int) -> int | None:
    """The least number of events with more than `MOST_MATCHES` choices of at least `least` events,
    the last one included. None where it is more than one and a half times `least`."""
    for events in range(least, least + least // 2 + 1):
        if sum(comb(events - 1, size - 1) for size in range(least, events + 1)) > MOST_MATCHES:
            return events
    return None
