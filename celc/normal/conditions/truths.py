"""The truths that conditions on one event can have together.

Comparisons of one attribute with constants cut its values into finitely many pieces, so their
combinations are found exactly. Conditions of any other shape count as independent. This can only
add a combination that no event has.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import accumulate
from operator import or_

from celc.core import formula as core
from celc.core.formula import Predicate
from celc.core.terms import constants_of
from celc.diagnostics.deadline import look
from celc.normal.normal_form import EventClause


def possible_truths(groups: Sequence[tuple[EventClause, ...]], *, limit: int) -> set[int] | None:
    """The combinations of groups that can hold together, as bit sets; None beyond the limit.

    Every predicate belongs to one *factor*: all comparisons of one attribute with constants
    together, each other predicate by itself. Factors count as independent. A clause is an OR, so
    the true clauses are the union of the clauses that each factor makes true. A group with a clause
    that has failed for good loses its other truths too, which keeps combinations few.
    """
    clauses = [clause for group in groups for clause in group]
    masks, start = [], 0
    for group in groups:
        masks.append((1 << len(group)) - 1 << start)
        start += len(group)
    factors: dict[object, dict[Predicate, int]] = {}
    for index, clause in enumerate(clauses):
        for predicate in clause.predicates:
            key: object = _attribute_compared(predicate) or predicate
            made = factors.setdefault(key, {})
            made[predicate] = made.get(predicate, 0) | 1 << index
    open_after: list[int] = [0]
    for made in reversed(factors.values()):
        open_after.append(reduce(or_, made.values(), open_after[-1]))
    everything = (1 << len(clauses)) - 1
    several = [mask for mask in masks if mask & mask - 1]
    reached = {0}
    for (key, made), still_open in zip(factors.items(), open_after[-2::-1], strict=True):
        outcomes = _outcomes(made) if isinstance(key, str) else (0, *made.values())
        closed = everything & ~still_open
        combined: set[int] = set()
        for outcome in _distinct(outcomes):
            look()
            for before in reached:
                truth = before | outcome
                for mask in several:
                    if truth & mask & closed != mask & closed:
                        truth &= ~mask
                combined.add(truth)
            if len(combined) > limit:
                return None
        reached = combined
    return {
        sum(1 << k for k, mask in enumerate(masks) if truth & mask == mask) for truth in reached
    }


def _distinct(items: Iterable[int]) -> Iterator[int]:
    seen: set[int] = set()
    for item in items:
        if item not in seen:
            seen.add(item)
            yield item


MOST_COMPARED = 200  # predicates that are tested for an event that satisfies them all


def can_hold_together(clauses: Sequence[EventClause]) -> bool:
    """Whether some event may satisfy all clauses; True where the test would take long."""
    predicates = [predicate for clause in clauses for predicate in clause.predicates]
    if len(predicates) > MOST_COMPARED or sum(len(constants_of(p)) for p in predicates) > 2000:
        return True
    truths = possible_truths((tuple(clauses),), limit=1000)
    return truths is None or 1 in truths


def _attribute_compared(predicate: Predicate) -> str | None:
    """The attribute, where the predicate compares it alone with constants (or tests it for NULL).

    Casts that lose nothing keep the order of values, so they are ignored. INT or LONG to FLOAT and
    LONG to DOUBLE round. They are still monotonic, but rare, and not handled.
    """
    match predicate:
        case core.Comparison():
            if isinstance(predicate.right, core.Constant):
                return _plain_attribute(predicate.left)
            if isinstance(predicate.left, core.Constant):
                return _plain_attribute(predicate.right)
            return None
        case core.Membership() | core.NullTest():
            return _plain_attribute(predicate.operand)
        case _:
            return None


def _plain_attribute(expression: core.Expression) -> str | None:
    if isinstance(expression, core.Cast):
        if (expression.operand.type, expression.type) not in core.EXACT_CASTS:
            return None
        expression = expression.operand
    return expression.attribute if isinstance(expression, core.AttributeValue) else None


def _outcomes(made: dict[Predicate, int]) -> Iterator[int]:
    """The clauses that the predicates on one attribute make true, for each of its values."""
    points = {_rank(value) for predicate in made for value in constants_of(predicate)}
    true_of = _Comparisons(made)
    yield true_of.null
    for sample in _samples(sorted(points)):
        yield true_of(sample)


_Rank = bytes | tuple[bool, int | float]
"""A value by which values of one type sort as in Spark: NaN last, text by its bytes."""


def _rank(value: core.Value) -> _Rank:
    if isinstance(value, str):
        return value.encode()
    return (True, 0) if value != value else (False, value)


def _samples(points: list[_Rank]) -> Iterator[_Rank]:
    """A value from each piece into which the points cut the line, and the points themselves.

    A value is assumed to lie between two points, although a type of whole numbers may have none.
    This can only add a class that stays empty.
    """
    if points and isinstance(points[0], bytes):
        yield b""
        for point in points:
            assert isinstance(point, bytes)
            yield point
            yield point + b"\0"
        return
    numbers = [point[1] for point in points if isinstance(point, tuple) and not point[0]]
    if not numbers:
        yield False, 0
    else:
        yield False, _below(numbers[0])
    for number, after in zip(numbers, [*numbers[1:], None], strict=True) if numbers else ():
        yield False, number
        yield False, _above(number) if after is None else _between(number, after)
    yield True, 0


def _below(number: int | float) -> int | float:
    return number - 1 if isinstance(number, int) else math.nextafter(number, -math.inf)


def _above(number: int | float) -> int | float:
    return number + 1 if isinstance(number, int) else math.nextafter(number, math.inf)


def _between(low: int | float, high: int | float) -> int | float:
    if isinstance(low, int) and isinstance(high, int):
        return low + 1 if high - low > 1 else low
    above = math.nextafter(float(low), math.inf)
    return above if above < high else low


class _Comparisons:
    """The clauses that predicates on one attribute make true for a value of it, as a bit set. No
    lookup goes over all predicates, because there can be thousands of predicates and of values."""

    def __init__(self, made: dict[Predicate, int]) -> None:
        self.null = 0
        self._always = 0
        equal: dict[_Rank, int] = {}
        ordered: dict[str, dict[_Rank, int]] = {o: {} for o in ("!=", "<", "<=", ">", ">=")}
        absent: dict[int, set[_Rank]] = {}
        for predicate, bits in made.items():
            ranks = [_rank(value) for value in constants_of(predicate)]
            if isinstance(predicate, core.NullTest):
                if predicate.negated:
                    self._always |= bits
                else:
                    self.null |= bits
            elif isinstance(predicate, core.Membership) and predicate.negated:
                if not predicate.has_null:
                    # Two NOT IN for the same clauses: a value makes these clauses false only if it
                    # is in both lists.
                    absent[bits] = absent[bits] & set(ranks) if bits in absent else set(ranks)
            elif isinstance(predicate, core.Membership):
                for rank in ranks:
                    equal[rank] = equal.get(rank, 0) | bits
            else:
                assert isinstance(predicate, core.Comparison)
                operator = predicate.operator
                if not isinstance(predicate.right, core.Constant):
                    operator = core.MIRRORED[operator]
                found = equal if operator == "=" else ordered[operator]
                for rank in ranks:
                    found[rank] = found.get(rank, 0) | bits
        self._equal = equal
        self._absent = absent
        self._sides = [
            (operator, sorted(found), *_unions([found[rank] for rank in sorted(found)]))
            for operator, found in ordered.items()
            if found
        ]

    def __call__(self, rank: _Rank) -> int:
        truth = self._always | self._equal.get(rank, 0)
        for bits, values in self._absent.items():
            if rank not in values:
                truth |= bits
        for operator, ranks, up_to, beyond in self._sides:
            smaller, through = bisect_left(ranks, rank), bisect_right(ranks, rank)
            if operator in ("!=", ">", ">="):
                truth |= up_to[through if operator == ">=" else smaller]
            if operator in ("!=", "<", "<="):
                truth |= beyond[smaller if operator == "<=" else through]
        return truth


def _unions(parts: list[int]) -> tuple[list[int], list[int]]:
    """For each k, the union of the first k bit sets, and the union of all others."""
    up_to = list(accumulate(parts, or_, initial=0))
    beyond = list(accumulate(reversed(parts), or_, initial=0))[::-1]
    return up_to, beyond
