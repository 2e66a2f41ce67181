"""Uncertain time: the answer of a part as a sum over all its possible worlds.

A world gives each event one of its times. In it events come by their times, those of one time are
simultaneous. So the rows of a world are those of the input in this order, and positions of its
matches are led back to those of the input. Worlds in which the events come in the same order have
the same matches, and differ in what fits the window.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from . import nodes as n
from .conditions import Row
from .names import projected_labels
from .semantics import (
    Evaluator,
    Labelling,
    Matches,
    WorkLimitError,
    one_position,
    projected,
    support,
)
from .values import CelError, Kind
from .windows import number_of

TOLERANCE = Fraction(1, 10**9)


def check_uncertain(
    query: n.Query, file: n.File, order_by: tuple[str, ...], ties: str | None
) -> n.Uncertain | None:
    """How the times of a query's events are uncertain; None where they are certain. Raises CelError
    where the query has no meaning with them."""
    names = file.streams if query.streams is None else query.streams
    found = [file.uncertain[name] for name in names if name in file.uncertain]
    if not found:
        if query.confidence is not None:
            raise CelError("a confidence of certain time")
        return None
    if len(found) < len(set(names)) or len(set(found)) > 1:
        raise CelError("streams with different times")
    uncertain = found[0]
    if order_by not in ((), (uncertain.low,)) or ties is not None:
        raise CelError("another order than that of the least times")
    if query.confidence is not None and not 0 <= query.confidence.least <= 1:
        raise CelError("a confidence that is no number from 0 to 1")
    selects = query.selector != "ALL" or query.per_start or query.collapsed
    if query.per is not None:
        _check_total(query)
    if selects or query.limit is not None or query.rate or query.consume_by != "NONE":
        raise CelError("a choice among matches with uncertain time")
    window = query.window
    if window is not None and window.unit == "EVENTS":
        raise CelError("a window of EVENTS with uncertain time")
    if window is not None and window.attribute not in (None, uncertain.low):
        raise CelError("a window that is not measured on the least times")
    for part in n.parts_of(query.formula):
        if isinstance(part, n.Repeat) and part.contiguous:
            raise CelError(":+ with uncertain time")
        if not isinstance(part, _ALLOWED):
            raise CelError(f"{type(part).__name__} with uncertain time")
    for inner in n.windows_in(query.formula):
        if inner.unit == "EVENTS" or inner.attribute not in (None, uncertain.low):
            raise CelError("a window of a part that is not measured on the least times")
    _check_shown(query.formula, projected_labels(query))
    _check_values(query)
    weights = uncertain.weights
    named = {part.name for part in _expressions_of(query) if isinstance(part, _NAMING)}
    named |= {more for part in _expressions_of(query) for more in getattr(part, "more", ())}
    shown = {name for one in query.items or () for name in getattr(one, "attributes", None) or ()}
    keys = {name for key in query.partition_by for name in key}
    if weights is not None and weights in named | shown | keys:
        raise CelError("weights in an expression")
    for one in file.types:
        kinds = {one.attributes.get(name) for name in (uncertain.low, uncertain.high)}
        if one.stream in names and (len(kinds) > 1 or not kinds <= _TIMES):
            raise CelError(f"{one.name} has no times of one type")
    return uncertain


_ALLOWED = (
    *(n.Atom, n.As, n.Then, n.Repeat, n.Or, n.Project, n.Rename, n.Filter),
    *(n.And, n.All, n.Unless, n.NotBetween, n.Within),
)
_NAMING = (n.Attribute, n.Previous, n.Aggregate)
_TIMES = {Kind.LONG, Kind.INT, Kind.TIMESTAMP, Kind.DATE}


def _check_total(query: n.Query) -> None:
    """Totals are the expected number of matches."""
    if isinstance(query.per, int) or query.confidence is not None:
        raise CelError("spans or a confidence of totals with uncertain time")
    for part in _expressions_of(query):
        if isinstance(part, n.Total) and (part.label, part.function) != (None, "COUNT"):
            raise CelError(f"{part.function} of matches with uncertain time")


def _check_shown(formula: n.Formula, kept: frozenset[str]) -> None:
    """Raise CelError where an event of a match could be without a label that is kept."""
    for labels in _labels_of_atoms(formula):
        if not labels & kept:
            raise CelError("an event without a label that is kept")


def _labels_of_atoms(formula: n.Formula) -> list[frozenset[str]]:
    """The labels of each atom of a formula, as they are at its top."""
    match formula:
        case n.Atom():
            return [frozenset({formula.type})]
        case n.As():
            return [one | {formula.label} if one else one for one in _labels_of_atoms(formula.body)]
        case n.Rename():
            return [
                frozenset(formula.new if label == formula.old else label for label in one)
                for one in _labels_of_atoms(formula.body)
            ]
        case n.Project():
            return [one & formula.labels for one in _labels_of_atoms(formula.body)]
        case n.Filter() | n.Repeat() | n.Within():
            return _labels_of_atoms(formula.body)
        case n.Unless():
            return _labels_of_atoms(formula.left)
        case n.Then() | n.Or() | n.And() | n.All() | n.NotBetween():
            return _labels_of_atoms(formula.left) + _labels_of_atoms(formula.right)
    raise CelError(f"no labels for {formula}")


def _expressions_of(query: n.Query) -> list[n.Expression]:
    """All parts of the expressions of a query, in conditions and SELECT."""
    wholes = [one.expression for one in query.items or () if isinstance(one, n.ExpressionItem)]
    wholes += [
        operand
        for part in n.parts_of(query.formula)
        if isinstance(part, n.Filter)
        for comparison in n.comparisons(part.condition)
        for operand in comparison.operands
    ]
    return [part for whole in wholes for part in n.parts(whole)]


def _check_values(query: n.Query) -> None:
    """Raise CelError where a value of SELECT is not the same in all worlds of a row."""
    single = one_position(query.formula)
    for item in query.items or ():
        for part in n.parts(item.expression) if isinstance(item, n.ExpressionItem) else ():
            arguments = part.arguments if isinstance(part, n.OwnCall) else (part,)
            ordered = isinstance(part, n.OwnCall) or (
                isinstance(part, n.Aggregate)
                and (part.own is not None or part.function in ("FIRST", "LAST", "NTH", "COLLECT"))
            )
            for one in arguments:
                if ordered and isinstance(one, n.Aggregate) and one.label not in single:
                    raise CelError(f"SELECT: {part} goes by the order of events")


def times_of(rows: Sequence[Row], uncertain: n.Uncertain) -> list[list[tuple[int, Fraction]]]:
    """The possible times of each row as numbers, ascending, each with its probability. Raises
    CelError where it has none."""
    found = []
    for row in rows:
        ends = [row.values[name].value for name in (uncertain.low, uncertain.high)]
        if None in ends:
            raise CelError("an uncertain time is NULL")
        low, high = map(number_of, ends)
        if low > high:
            raise CelError("the least time is after the greatest one")
        times = range(low, high + 1, uncertain.step)
        weights = _weights(row, uncertain, len(times))
        whole = sum(weights)
        found.append([(time, one / whole) for time, one in zip(times, weights, strict=True) if one])
    return found


def _weights(row: Row, uncertain: n.Uncertain, count: int) -> list[Fraction]:
    if uncertain.weights is None:
        return [Fraction(1)] * count
    given = row.values[uncertain.weights].value
    if given is None or len(given) != count:
        raise CelError("not a weight for each point")
    if any(one is None or not 0 <= one < math.inf for one in given):
        raise CelError("a weight that is no number from 0 on")
    if not any(given):
        raise CelError("all weights are 0")
    return [Fraction(one) for one in given]


def possible_matches(
    rows: Sequence[Row],
    query: n.Query,
    uncertain: n.Uncertain,
    kinds: Mapping[str, Kind],
    work_limit: int | None,
) -> dict[Labelling, Fraction]:
    """The labellings of the matches of a part, each with its confidence."""
    times = times_of(rows, uncertain)
    kept = projected_labels(query)
    size = None if query.window is None else query.window.size
    found: dict[Labelling, Fraction] = defaultdict(Fraction)
    known: dict[tuple[int, ...], Matches] = {}
    # Windows of parts tell apart worlds with one order.
    by_time = bool(n.windows_in(query.formula))
    left = work_limit
    for choice in itertools.product(*times):
        if left is not None:
            left -= 1
            if left < 0:
                raise WorkLimitError
        world = [time for time, _ in choice]
        ranks = {time: rank for rank, time in enumerate(sorted({*world}))}
        order = tuple(world if by_time else (ranks[time] for time in world))
        if order not in known:
            known[order] = _in_world(rows, kinds, order, query.formula, work_limit)
        answers = {
            projected(mu, kept)
            for _, _, mu in known[order]
            if size is None or _length(world, mu) <= size
        }
        share = math.prod(one for _, one in choice)
        for mu in answers:
            found[mu] += share
    shares = dict(found)
    asked = query.confidence
    if asked is None:
        return shares
    bound = asked.least + TOLERANCE if asked.strict else asked.least - TOLERANCE
    return {mu: share for mu, share in shares.items() if share > bound}


def _in_world(
    rows: Sequence[Row],
    kinds: Mapping[str, Kind],
    world: Sequence[int],
    formula: n.Formula,
    work_limit: int | None,
) -> Matches:
    """The matches where the rows come at these times, with the positions of the input."""
    order = sorted(range(len(rows)), key=lambda position: (world[position], position))
    times = [world[position] for position in order]
    instants = [(times.index(time), len(times) - 1 - times[::-1].index(time)) for time in times]
    evaluator = _InWorld(
        [rows[position] for position in order], kinds, 0, work_limit, None, instants
    )
    evaluator.times = times
    return frozenset(
        (start, end, frozenset((label, order[place]) for label, place in mu))
        for start, end, mu in evaluator.answer(formula)
    )


class _InWorld(Evaluator):
    """The definitions in a world: windows of parts are measured on its times."""

    times: Sequence[int]

    def _fits(self, window: n.Window, begin: int, end: int) -> bool:
        return self.times[end] - self.times[begin] <= window.size


def _length(world: Sequence[int], mu: Labelling) -> int:
    times = [world[position] for position in support(mu)]
    return max(times) - min(times)


def between(rows: Sequence[Row], mu: Labelling, uncertain: n.Uncertain) -> tuple[Any, Any]:
    """The least and the greatest time that the events of a match can have."""
    events = [rows[position] for position in support(mu)]
    return (
        min(row.values[uncertain.low].value for row in events),
        max(row.values[uncertain.high].value for row in events),
    )


def step_of(size: int | float, unit: str, kind: Kind | None) -> int:
    """The number after BY, of whole numbers or microseconds. Raises CelError for no such number."""
    in_time = kind in (Kind.TIMESTAMP, Kind.DATE)
    if size != int(size) or size <= 0 or (unit == "TIME") != in_time or unit == "EVENTS":
        raise CelError("BY is no step between two times")
    day = dt.timedelta(days=1) // dt.timedelta(microseconds=1)
    if kind is Kind.DATE and int(size) % day:
        raise CelError("BY is no number of days")
    return int(size)
