"""Uncertain time: the answer of a part as a sum over all its possible worlds.

A world gives each event one of its times. In it events of one time are simultaneous, so that the
instant of an event is the rank of its time. Positions stay those of the input. Worlds in which the
events come in the same order have the same matches, and differ in what fits the window.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from . import nodes as n
from .conditions import Row
from .names import projected_labels
from .semantics import Evaluator, Labelling, Matches, WorkLimitError, projected, support
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
    selects = query.selector != "ALL" or query.per_start or query.collapsed or query.per is not None
    if (
        selects
        or query.limit is not None
        or query.rate
        or query.consume_by != "NONE"
        or query.for_each
    ):
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
    _check_shown(query.formula, projected_labels(query))
    for one in file.types:
        kinds = {one.attributes.get(name) for name in (uncertain.low, uncertain.high)}
        if one.stream in names and (len(kinds) > 1 or not kinds <= _TIMES):
            raise CelError(f"{one.name} has no times of one type")
    return uncertain


_ALLOWED = (n.Atom, n.As, n.Then, n.Repeat, n.Or, n.Project, n.Rename, n.Filter)
_TIMES = {Kind.LONG, Kind.INT, Kind.TIMESTAMP, Kind.DATE}


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
        case n.Filter() | n.Repeat():
            return _labels_of_atoms(formula.body)
        case n.Then() | n.Or():
            return _labels_of_atoms(formula.left) + _labels_of_atoms(formula.right)
    raise CelError(f"no labels for {formula}")


def times_of(rows: Sequence[Row], uncertain: n.Uncertain) -> list[list[int]]:
    """The possible times of each row as numbers, ascending. Raises CelError where it has none."""
    found = []
    for row in rows:
        ends = [row.values[name].value for name in (uncertain.low, uncertain.high)]
        if None in ends:
            raise CelError("an uncertain time is NULL")
        low, high = map(number_of, ends)
        if low > high:
            raise CelError("the least time is after the greatest one")
        found.append(list(range(low, high + 1, uncertain.step)))
    return found


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
    left = work_limit
    for world in itertools.product(*times):
        if left is not None:
            left -= 1
            if left < 0:
                raise WorkLimitError
        ranks = {time: rank for rank, time in enumerate(sorted({*world}))}
        order = tuple(ranks[time] for time in world)
        if order not in known:
            instants = [(rank, rank) for rank in order]
            known[order] = Evaluator(rows, kinds, 0, work_limit, None, instants).answer(
                query.formula
            )
        answers = {
            projected(mu, kept)
            for _, _, mu in known[order]
            if size is None or _length(world, mu) <= size
        }
        for mu in answers:
            found[mu] += 1
    worlds = 1
    for points in times:
        worlds *= len(points)
    shares = {mu: count / worlds for mu, count in found.items()}
    asked = query.confidence
    if asked is None:
        return shares
    bound = asked.least + TOLERANCE if asked.strict else asked.least - TOLERANCE
    return {mu: share for mu, share in shares.items() if share > bound}


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
