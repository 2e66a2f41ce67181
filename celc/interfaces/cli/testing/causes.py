"""Which clause is to be mended where a case fails.

Of a row that is missing, its near miss says so: the row is there with one part bent. Beside this,
changes of the query are tried: one with which all cases pass shows the clause, also where a row is
too much. The second is what mutants are for in
the localisation of faults (Papadakis and Le Traon, Metallaxis, 2015).
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.frozen import frozen
from celc_runtime.query import CompiledQuery

from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source, Span
from celc.driver.near import near_query
from celc.editor.languages import CEL
from celc.interfaces.cli.testing.running import Outcome, Runner, fitting_rows
from celc.mutate.mutants import Mutant, mutants_of
from celc.near.edits import Edit
from celc.parse import syntax
from celc.parse.parser import parse
from celc.parse.trees import nodes_of

SECONDS = 10.0
"""How long changes of a query are tried, in seconds of this process."""

_SHARES = (0.1, 1.0, 10.0)
"""How far values bend, over their amount: the row that is missing is known, so any can be near."""

_TOLD = ("part", "line", "column", "asked", "found")

_UNITS = ("MINUTES", "HOURS", "SECONDS", "DAYS")

_FACTORS = tuple(Decimal(one) for one in ("3", "5", "10", "24", "60", "1000"))
"""The factors, besides 2, by which a window is tried longer and shorter: common slips of units."""

_MOST_NUMBERS = 40

_Values: TypeAlias = Mapping[str, Sequence[Decimal]]
"""The numbers in each column of the events, in their order."""


@frozen
class NearMiss:
    """A part of the query that a missing row bends: its text and place, and what was asked and
    found there."""

    part: str
    line: int
    column: int
    asked: str
    found: str | None


def near_misses_of_rows(
    outcome: Outcome, find: Callable[..., pa.Table] | None
) -> list[NearMiss | None]:
    """For each row that is missing the nearest miss that is as it is said to be.

    find: a call for the near misses of the case's events, which takes how far values bend and which
    parts; None: the query has none. Of each start only the nearest miss is found, so values bend a
    little first, and further where that finds nothing.
    """
    found: list[NearMiss | None] = [None] * len(outcome.missing)
    if find is None:
        return found
    for share in _SHARES:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = find(near=share, parts="all").to_pylist()
        except (CelError, EventError):
            break  # what has no near misses is in their documentation
        for number, row in enumerate(outcome.missing):
            fitting = fitting_rows(outcome.asked.columns, row, rows)
            if found[number] is None and fitting:
                nearest = min((rows[one] for one in fitting), key=lambda one: one["amount"])
                found[number] = NearMiss(*(nearest[name] for name in _TOLD))
        if None not in found:
            break
    return found


def finder_of(outcome: Outcome, runner: Runner) -> Callable[..., pa.Table] | None:
    """The call for the near misses of a case of a test file; None: there are none of such a
    query."""
    asked = outcome.asked
    if runner.language is not CEL or not isinstance(asked.query, CompiledQuery):
        return None

    def find(*, near: float, parts: str) -> pa.Table:
        found, _ = near_query(
            [runner.source],
            outcome.case.options,
            name=asked.query.name,
            near=near,
            all_parts=parts == "all",
        )
        return found.near_misses(asked.events, **asked.tables)

    return find


def let_in(outcome: Outcome, runner: Runner, number: int, seconds: float = 1.0) -> Mutant | None:
    """A change of the query with which the missing row of a number is there; None: none was
    found."""
    row, end = outcome.missing[number], time.process_time() + seconds
    for mutant in _changes(runner.source, [outcome]) if runner.language is CEL else ():
        if time.process_time() > end:
            break
        try:
            found = Runner(runner.tests, mutant.of(runner.source)).run(outcome.case)
        except (CelError, EventError):
            continue  # the change makes no query
        if row not in found.missing and fitting_rows(found.asked.columns, row, found.rows):
            return mutant
    return None


# --- changes with which the cases pass ------------------------------------------------------------


@frozen
class Repair:
    """A change of the query with which some failing cases pass, and all others still do."""

    mutant: Mutant
    mended: int  # failing cases that pass with it


def repairs_of(
    runner: Runner, outcomes: Sequence[Outcome], seconds: float = SECONDS
) -> list[Repair]:
    """One change for each clause with which failing cases pass: of those that mend most cases, the
    least changes first."""
    if runner.language is not CEL:
        return []
    failing = [one for one in outcomes if not one.passed]
    passing = [one for one in outcomes if one.passed]
    end = time.process_time() + seconds
    found: dict[Span, Repair] = {}
    for mutant in _changes(runner.source, failing, passing):
        if time.process_time() > end:
            break
        if mutant.place in found and found[mutant.place].mended == len(failing):
            continue
        mended = _mended(runner, mutant, failing, passing)
        if mended > (found[mutant.place].mended if mutant.place in found else 0):
            found[mutant.place] = Repair(mutant, mended)
    most = max((one.mended for one in found.values()), default=0)
    best = [one for one in found.values() if one.mended == most]
    return sorted(best, key=lambda one: (_rank(one.mutant), one.mutant.place))


def _rank(mutant: Mutant) -> int:
    """Numbers are wrong more often than whole clauses."""
    if mutant.moves is not None:
        return 0
    return 2 if "negated" in mutant.what else 1


def _mended(
    runner: Runner, mutant: Mutant, failing: Sequence[Outcome], passing: Sequence[Outcome]
) -> int:
    changed = Runner(runner.tests, mutant.of(runner.source))
    try:
        mended = sum(changed.run(one.case).passed for one in failing)
        if mended and all(changed.run(one.case).passed for one in passing):
            return mended
    except (CelError, EventError):
        pass  # the change makes no query, or one of another answer
    return 0


def _changes(
    source: Source, failing: Sequence[Outcome], passing: Sequence[Outcome] = ()
) -> Iterator[Mutant]:
    """The changes of a file's queries: numbers first, then other windows, then the rest."""
    queries = parse(source).queries
    every = [mutant for query in queries for mutant in mutants_of(query, source)]
    numbers = [mutant for query in queries for mutant in _other_units(query)]
    for query in queries:
        numbers += _other_numbers(query, source, every, _values(failing), _values(passing))
    moved = [one for one in every if one.moves is not None]
    yield from (*numbers, *moved, *(one for one in every if one.moves is None))


def _other_units(query: syntax.Query) -> Iterator[Mutant]:
    """Windows of one amount in other units."""
    for node in nodes_of(query):
        if isinstance(node, syntax.DurationWindow) and len(node.parts) == 1:
            (part,) = node.parts
            for unit in _UNITS:
                edits = (Edit(part.unit.span, unit),)
                yield Mutant("another unit", node.span, edits, part.amount.span)


def _other_numbers(
    query: syntax.Query,
    source: Source,
    mutants: Sequence[Mutant],
    failing: _Values,
    passing: _Values,
) -> Iterator[Mutant]:
    """Constants that part the values which the cases give, and other lengths of windows."""
    seen: set[Span] = set()
    attributes = {
        node.span: _attributes(node)
        for node in nodes_of(query)
        if isinstance(node, syntax.Comparison | syntax.Between | syntax.InList)
    }
    for mutant in mutants:
        if mutant.moves is None or mutant.moves in seen:
            continue
        if not query.span.start <= mutant.place.start < query.span.end:
            continue
        seen.add(mutant.moves)
        number = Decimal(source.slice(mutant.moves))
        if mutant.place in attributes:
            names = attributes[mutant.place]
            known = [value for name in names for value in failing.get(name, ())]
            others = [value for name in names for value in passing.get(name, ())]
            candidates: Iterable[Decimal] = _between(known, others, number)
        else:
            longer = [number * one for one in _FACTORS]
            shorter = [number / one for one in _FACTORS if not number % one]
            candidates = [*longer, *shorter]
        for one in candidates:
            text = f"{one.normalize():f}" if one == one.to_integral() else f"{one:.6g}"
            yield mutant.with_number(f"({text})" if one < 0 else text)


def _attributes(node: Any) -> list[str]:
    return [one.attribute.text for one in nodes_of(node) if isinstance(one, syntax.Attribute)]


def _values(outcomes: Sequence[Outcome]) -> _Values:
    """The numbers in each column of the events."""
    found: dict[str, set[Decimal]] = {}
    for outcome in outcomes:
        events = outcome.asked.events
        for name in events.column_names:
            for value in events[name].to_pylist():
                if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
                    number = Decimal(repr(value) if isinstance(value, float) else value)
                    if number.is_finite():
                        found.setdefault(name, set()).add(number)
    return {name: sorted(values) for name, values in found.items()}


def _between(
    failing: Sequence[Decimal], passing: Sequence[Decimal], number: Decimal
) -> list[Decimal]:
    """Round numbers between neighbours among the values, and outside all, and the values of failing
    cases: those that part values of failing cases first, of these the nearest.

    Values of cases that pass part the numbers too: between 100, which must stay out, and 600, which
    must come in, 500 is the answer, and the roundest number below 600 is 0.
    """
    if not failing:
        return []
    mended = {*failing}
    known = sorted({*failing, *passing})
    edges = [known[0] - abs(known[0]) - 1, *known, known[-1] + abs(known[-1]) + 1]
    first: set[Decimal] = {*failing}
    later: set[Decimal] = set()
    for one, other in itertools.pairwise(edges):
        beside = one in mended or other in mended
        (first if beside else later).add(roundest(one, other, number))
    order = [*_nearest(first, number), *_nearest(later, number)]
    return order[:_MOST_NUMBERS]


def _nearest(numbers: set[Decimal], number: Decimal) -> list[Decimal]:
    return sorted(numbers - {number}, key=lambda one: (abs(one - number), one))


def roundest(low: Decimal, high: Decimal, near: Decimal) -> Decimal:
    """The number between two, without them, with the fewest digits; of several the one nearest to a
    third number. `low` is less than `high`."""
    target = min(max(near, low), high)
    step = Decimal(10) ** (max(abs(low), abs(high), Decimal(1)).adjusted() + 1)
    while True:
        whole = (target / step).to_integral_value() * step
        inside = [one for one in (whole, whole - step, whole + step) if low < one < high]
        if inside:
            return min(inside, key=lambda one: abs(one - near))
        step /= 10
