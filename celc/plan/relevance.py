"""The events that can change an answer: a condition on each event type.

On Spark other events are dropped before rows are moved, where positions are not wanted. This is
sound only if such an event is as good as none: nothing counts it (a window of EVENTS), no condition
asks whether two events are neighbours (`:`, `:+`, STRICT), and no selector has to read it. Where
something counts it or asks for neighbours, such events are all alike. Then the query needs only
their number between two others, which Spark can find once rows are sorted. The filter holds only
conditions that Spark certainly decides as celc does. Some are left out, which only keeps more
events: an arithmetic operation may overflow, which is an error in ANSI mode; Spark's RLIKE is
another language; a cast of a DATE to a TIMESTAMP depends on the session's zone.

Some of these events are never in a match: those that an absence or UNLESS forbids. They end partial
matches, or take a way to go on from them. They are *idempotent* where several in a row do what the
first one does. Then many queries over one stream read only the first (`many`).
"""

import math
from collections.abc import Iterator, Mapping
from functools import reduce
from hashlib import blake2b
from typing import TypeAlias, assert_never

from celc_runtime.plan.relevance import AttributeTest, Clause, Relevant, Way
from celc_runtime.plan.strategy import All, InRuns, United
from celc_runtime.values.types import is_wide

from celc.automata.predicates import TypeConditions
from celc.core import formula as core
from celc.core.formula import MIRRORED, DataType, Predicate
from celc.core.traversal import OF_SEVERAL_EVENTS, formulas_in, windows_in
from celc.normal.normal_form import EventClause
from celc.plan.program import Program
from celc.plan.strategy import Checked, Counted, Keyed, StraightLine
from celc.plan.tables import Tables

_MOST_WAYS = 16  # combinations of conditions on a type; beyond them only the type is asked for

# values of an IN list; Spark plans longer ones slowly, so the condition is left out
_LONGEST_LIST = 200

_Value: TypeAlias = int | float | str | bool


def relevant_events(program: Program, *, sees_all_events: bool) -> tuple[Relevant, ...] | None:
    """The events that a query has to see, by type; None where it has to see every event.
    `sees_all_events`: the selection also reads events that the query does not ask about."""
    if _counts_others(program.query) or _selects_inside(program, sees_all_events):
        return None
    assert program.tables.is_idle(0), "an event that no condition tells apart changes nothing"
    decided = _is_decided_by_tables(program)
    return tuple(
        _relevant(program, conditions, truths, _moves(program, conditions) if decided else {})
        for conditions, truths in truths_that_matter(program)
    )


def events_told_apart(program: Program, *, sees_all_events: bool) -> tuple[Relevant, ...] | None:
    """The events of which a query has to know more than their presence, by type.

    None where other events do not matter at all (`relevant_events`), or where it has to read every
    event. `sees_all_events`: the selection also reads events that the query does not ask about.
    """
    if not _counts_others(program.query) or _selects_inside(program, sees_all_events):
        return None
    return tuple(
        _relevant(program, conditions, truths, {})
        for conditions, truths in truths_that_matter(program)
    )


def _counts_others(query: core.Query) -> bool:
    """Whether events that satisfy no condition count: in a window of EVENTS, or between
    neighbours."""
    windows = [*([] if query.window is None else [query.window]), *windows_in(query.formula)]
    counts = any(window.unit is core.WindowUnit.EVENTS for window in windows)
    return counts or query.strategy == "STRICT" or asks_for_neighbours(query.formula)


def _selects_inside(program: Program, sees_all_events: bool) -> bool:
    has_contexts = program.tables.contexts is not None
    return sees_all_events or has_contexts or has_selectors(program.query.formula)


def truths_that_matter(program: Program) -> Iterator[tuple[TypeConditions, set[int]]]:
    """For each event type the sets of TRUE conditions of events that matter. An event matters if it
    does something else than events that satisfy no condition."""
    tables = program.tables
    for conditions in program.alphabet.types:
        truths = {
            symbol.truth
            for number, symbol in program.alphabet.numbered(conditions.type)
            if tables.symbol_of[number]
        }
        if truths:
            yield conditions, truths


def asks_for_neighbours(formula: core.Formula) -> bool:
    """Whether a condition asks whether two events are neighbours: `:`, `:+`."""
    return any(_is_contiguous(part) for part in formulas_in(formula))


def has_selectors(formula: core.Formula) -> bool:
    return any(isinstance(part, core.Selector) for part in formulas_in(formula))


def _is_contiguous(formula: core.Formula) -> bool:
    match formula:
        case core.Sequence():
            return any(formula.contiguous)
        case core.Iteration():
            return formula.contiguous
        case _:
            return False


def _is_decided_by_tables(program: Program) -> bool:
    """Whether the tables alone say what an event that is in no match does."""
    update, listing = program.update, program.listing
    if isinstance(update, Keyed) or (isinstance(update, StraightLine) and update.bounds):
        return False  # such an event moves some matches of a state, and leaves others
    if program.tables.instants is not None or program.query.parameters is not None:
        return False
    looks_outside = isinstance(listing, Checked) and listing.looks_outside
    return isinstance(listing, All | InRuns | Checked | United | Counted) and not looks_outside


_Move: TypeAlias = tuple[int | None, ...]
"""The states to which an event moves the partial matches of each state; None: it ends them."""


def _moves(program: Program, conditions: TypeConditions) -> dict[int, _Move | None]:
    """For each set of conditions that events of a type can satisfy, what such an event does. None
    where the event is in a match."""
    tables = program.tables
    return {
        symbol.truth: _move(tables, tables.symbol_of[number])
        for number, symbol in program.alphabet.numbered(conditions.type)
    }


def _move(tables: Tables, symbol: int) -> _Move | None:
    if tables.steps[symbol]:
        return None
    return tuple(tables.skip[state][symbol] for state in range(1, tables.states))


def _after(one: _Move, other: _Move) -> _Move:
    """A move after another one."""
    return tuple(None if state is None else one[state - 1] for state in other)


def _relevant(
    program: Program,
    conditions: TypeConditions,
    truths: set[int],
    moves: Mapping[int, _Move | None],
) -> Relevant:
    left_out = _left_out(program, conditions, truths)
    unmarked = {truth for truth in truths if moves.get(truth) is not None}
    if unmarked and _are_idempotent(unmarked, moves) and _are_exact(conditions, unmarked):
        ways, idempotent = _ways(conditions, truths - unmarked), _ways(conditions, unmarked)
        if len(ways) + len(idempotent) <= _MOST_WAYS:
            return Relevant(*_names(conditions), ways, idempotent=idempotent, left_out=left_out)
    ways = _ways(conditions, truths)
    asked = len(ways) <= _MOST_WAYS and all(ways)
    return Relevant(*_names(conditions), ways if asked else (), left_out=left_out)


def _left_out(program: Program, conditions: TypeConditions, truths: set[int]) -> str:
    """A digest of the conditions of a type, where the ways say less than they; else empty."""
    least = least_truths(truths)
    every = {symbol.truth for _, symbol in program.alphabet.numbered(conditions.type)}
    more = any(t not in truths and any(one & t == one for one in least) for t in every)
    clauses = [[*clauses_of(conditions, truth)] for truth in least]
    known = all(_clause(clause) is not None for some in clauses for clause in some)
    if known and not more and (len(least) <= _MOST_WAYS or not all(least)):
        return ""
    parts = [clauses, more and [[*clauses_of(conditions, truth)] for truth in sorted(truths)]]
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def _names(conditions: TypeConditions) -> tuple[str, str]:
    return conditions.type.stream, conditions.type.name


def _ways(conditions: TypeConditions, truths: set[int]) -> tuple[Way, ...]:
    return tuple(_way(conditions, truth) for truth in least_truths(truths))


def least_truths(truths: set[int]) -> list[int]:
    """The sets without those that contain another of the sets. They let through all events that any
    set does."""
    return sorted(t for t in truths if not any(s != t and s & t == s for s in truths))


def _are_idempotent(truths: set[int], moves: Mapping[int, _Move | None]) -> bool:
    """Whether events that satisfy some of the least sets of `truths` have the effect of one event
    for each set.

    The order and number of these events must not matter, unless they are in a match.
    """
    least = {truth: move for truth in least_truths(truths) if (move := moves[truth]) is not None}
    for one in least.values():
        if any(_after(one, other) != _after(other, one) for other in least.values()):
            return False
        if _after(one, one) != one:
            return False
    for truth, move in moves.items():
        parts = [part for known, part in least.items() if known & truth == known]
        if parts and move is not None and move != reduce(_after, parts):
            return False
    return True


def _are_exact(conditions: TypeConditions, truths: set[int]) -> bool:
    """Whether a reader of columns decides all tests of the conditions."""
    return all(
        found is not None and all(map(_is_exact, found))
        for truth in truths
        for found in map(_clause, clauses_of(conditions, truth))
    )


def _is_exact(test: AttributeTest) -> bool:
    orders_texts = test.type == DataType.STRING.value and test.operator in ("<", "<=", ">", ">=")
    is_pattern = test.operator in ("like", "not_like")
    return not is_pattern and not orders_texts and test.attribute != core.TYPE


def _way(conditions: TypeConditions, truth: int) -> Way:
    """The clauses of the groups in a bit set, without those that Spark may decide otherwise."""
    clauses = map(_clause, clauses_of(conditions, truth))
    return tuple(clause for clause in clauses if clause is not None)


def clauses_of(conditions: TypeConditions, truth: int) -> Iterator[EventClause]:
    for bit, group in enumerate(conditions.groups):
        if truth >> bit & 1:
            yield from group


def _clause(clause: EventClause) -> Clause | None:
    tests = [_test(predicate) for predicate in clause.predicates]
    known = tuple(test for test in tests if test is not None)
    return known if len(known) == len(tests) else None


def _test(predicate: Predicate) -> AttributeTest | None:
    """A predicate as a test, if it compares an attribute with constants."""
    match predicate:
        case core.NullTest():
            return _on_attribute(
                "is_not_null" if predicate.negated else "is_null", predicate.operand, ()
            )
        case core.Membership():
            if predicate.negated and predicate.has_null:
                return None
            operator = "not_in" if predicate.negated else "in"
            return _on_attribute(operator, predicate.operand, predicate.values)
        case core.PatternMatch():
            if predicate.operator != "LIKE" or "\\" in predicate.pattern:
                return None
            operator = "not_like" if predicate.negated else "like"
            return _on_attribute(operator, predicate.operand, (predicate.pattern,))
        case core.Comparison():
            left, right = predicate.left, predicate.right
            if isinstance(right, core.Constant) and right.value is not None:
                return _on_attribute(predicate.operator, left, (right.value,))
            if isinstance(left, core.Constant) and left.value is not None:
                return _on_attribute(MIRRORED[predicate.operator], right, (left.value,))
            return None
        case core.Quantified():
            raise AssertionError(OF_SEVERAL_EVENTS)
        case _:
            assert_never(predicate)


_LOSSLESS = (
    (DataType.INT, DataType.LONG),
    (DataType.INT, DataType.DOUBLE),
    (DataType.FLOAT, DataType.DOUBLE),
)


def _on_attribute(
    operator: str, operand: core.Expression, values: tuple[_Value, ...]
) -> AttributeTest | None:
    type = operand.type
    if isinstance(operand, core.Cast):
        if (operand.operand.type, type) not in _LOSSLESS:
            return None
        operand = operand.operand
    if not isinstance(operand, core.AttributeValue):
        return None
    if values and is_wide(type):
        return None  # one machine compares 64 bits here
    if len(values) > _LONGEST_LIST or not all(map(_can_be_written, values)):
        return None
    if any(_is_in_calendar_gap(value, type) for value in values):
        return None
    return AttributeTest(operator, operand.attribute, type.value, values)


_CALENDAR_GAP = range(-141_440, -141_424)
"""Days since 1970 around the days of October 1582 that the Gregorian calendar left out. Spark also
hands filters to Parquet as days of the older calendar, which has other days in their place."""


def _is_in_calendar_gap(value: _Value, type: DataType) -> bool:
    if not isinstance(value, int) or type not in (DataType.DATE, DataType.TIMESTAMP):
        return False
    return (value if type is DataType.DATE else value // 86_400_000_000) in _CALENDAR_GAP


def _can_be_written(value: _Value) -> bool:
    """Whether a constant can be a literal of Spark's: without lone surrogates, infinity and NaN."""
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return not isinstance(value, float) or math.isfinite(value)
