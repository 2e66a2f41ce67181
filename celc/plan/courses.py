"""How the partial matches of a parameter row go on: which events a row that is alive has to read.

The index of rows answers "which rows does this event concern?". Of three consecutive events with
conditions on each, most events concern some row at some step, and almost none of them matters: the
step before was not taken. So a row is followed from an event that can begin a match: `:` has to
look at the very next event, `;` at the next event that satisfies a condition of the row. This is
the active-node index of Cayuga (A General Algebra and Implementation for Monitoring Event Streams,
section 4.3), with one instance for each row and beginning.

A course is the automaton without what it remembers: its states, and moves under the conditions of
single events. Conditions across events are left out, and a move that needs fewer conditions than
another one can always be taken as well. So a course goes wherever a partial match can go, and
perhaps further. What it never follows to the end of a match is in no match, and may be left out.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.parameters import Concern, Course, Move, OfBoth, Test
from celc_runtime.plan.row_search import choices_of
from celc_runtime.plan.strategy import All, InRuns, United

from celc.automata.determinize import START
from celc.automata.predicates import TypeConditions
from celc.plan.concerns import MOST_WAYS, columns_of, way_of
from celc.plan.program import Program
from celc.plan.relevance import (
    asks_for_neighbours,
    clauses_of,
    has_selectors,
    least_truths,
    truths_that_matter,
)
from celc.plan.strategy import Checked, Counted, Keyed, StraightLine
from celc.plan.tables import Tables

_MOST_STATES = 60  # the kernel keeps the states of a row in the bits of a number

_MOST_TESTS = 60  # comparisons of an event with a row, likewise

_READ = 0
"""The target of a move whose event has to be read."""


@frozen
class _Edge:
    """A move under one set of TRUE conditions."""

    conditions: TypeConditions
    source: int
    target: int | None
    truth: int


def course_of(program: Program) -> Course | None:
    """How the rows of a query FOR EACH are followed.

    None if the tables do not decide what an event does, or if to follow a row would leave out no
    event that the index of rows finds.
    """
    if not _is_decided_by_tables(program):
        return None
    tables, columns = program.tables, columns_of(program)
    states = range(1, tables.states)
    waiting = {state for state in states if tables.skip[state][0] == state}
    for followed in (set(states), set(states) - waiting):
        if not followed or len(followed) > _MOST_STATES:
            continue
        found = _course(program, followed, columns)
        if found is not None and _is_worthwhile(program, found):
            return found
    return None


def _is_decided_by_tables(program: Program) -> bool:
    """Whether the tables say all that an event can do to the partial matches of a row."""
    query, tables, update, listing = program.query, program.tables, program.update, program.listing
    parameters = query.parameters
    assert parameters is not None
    if parameters.sees_all or parameters.row_by_row or has_selectors(query.formula):
        return False
    if tables.contexts is not None or tables.instants is not None or tables.as_met:
        return False
    # The next event is not the next one in time where several have one time.
    if query.simultaneous or query.lasting or tables.steps[0]:
        return False
    if isinstance(update, Keyed) and update.keys.removals:
        return False
    if isinstance(update, StraightLine) and update.bounds is not None and update.bounds.takes:
        return False
    looks_outside = isinstance(listing, Checked) and listing.looks_outside
    return isinstance(listing, All | InRuns | Checked | United | Counted) and not looks_outside


def _course(program: Program, followed: set[int], columns: dict[str, str]) -> Course | None:
    """The course over some states; None where these wait and no equality finds the events that go
    on."""
    tables = program.tables
    numbers = {state: number for number, state in enumerate(sorted(followed), 1)}

    def number_of(state: int | None) -> int | None:
        return None if state is None else numbers.get(state, _READ)

    passes = tuple(number_of(tables.skip[state][0]) for state in sorted(followed))
    edges = [
        _Edge(conditions, numbers.get(source, 0), number_of(target), truth)
        for conditions, truth, source, target in _edges(program)
    ]
    # A state that is not followed may hold partial matches at any time. What takes those away has
    # to be read.
    edges = [
        (
            _Edge(one.conditions, 0, _READ, one.truth)
            if one.source == 0 and one.target is None
            else one
        )
        for one in edges
    ]
    begins, moves = [], []
    of_place = sorted(edges, key=_place)
    for _, group in groupby(of_place, key=_place):
        same = list(group)
        one = same[0]
        for truth in least_truths({edge.truth for edge in same}):
            way = way_of(one.conditions, truth, columns)
            type = one.conditions.type
            ends = one.target is None and _ends(program, one, truth, way, sorted(followed))
            moves.append(Move(type.stream, type.name, one.source, one.target, way, ends))
    for conditions, _ in truths_that_matter(program):
        type = conditions.type
        truths = {
            edge.truth for edge in edges if edge.conditions is conditions and edge.source == 0
        }
        ways = tuple(way_of(conditions, truth, columns) for truth in least_truths(truths))
        if truths:
            asked = len(ways) <= MOST_WAYS and all(ways)
            begins.append(Concern(type.stream, type.name, ways if asked else ()))
    found = Course(tuple(begins), tuple(moves), passes)
    if len(_tests_of(found)) > _MOST_TESTS:
        return None
    if found.jumps and not all(map(_is_looked_up, moves)):
        return None
    return found


def _ends(
    program: Program, edge: _Edge, truth: int, way: Sequence[Sequence[Test]], followed: list[int]
) -> bool:
    """Whether all events that satisfy a set of conditions end the partial matches of a state, and
    the way asks for all of these conditions."""
    tables, state = program.tables, followed[edge.source - 1]
    whole = len(way) == len(list(clauses_of(edge.conditions, truth)))
    if not whole or len(list(choices_of(way))) != math.prod(map(len, way)):
        return False
    return all(
        tables.skip[state][tables.symbol_of[number]] is None
        for number, symbol in program.alphabet.numbered(edge.conditions.type)
        if symbol.truth & truth == truth
    )


def _place(edge: _Edge) -> tuple[str, str, int, int]:
    target = -1 if edge.target is None else edge.target
    return edge.conditions.type.stream, edge.conditions.type.name, edge.source, target


def _edges(program: Program) -> Iterator[tuple[TypeConditions, int, int, int | None]]:
    """(the conditions of the type, those that are TRUE, a state, the state after the event). START
    is the state of matches that begin; the state after the last event of a match is `_READ`, which
    is no state that a partial match has."""
    tables = program.tables
    for conditions in program.alphabet.types:
        for number, symbol in program.alphabet.numbered(conditions.type):
            for source, target in _moves_of(tables, tables.symbol_of[number]):
                yield conditions, symbol.truth, source, target


def _moves_of(tables: Tables, symbol: int) -> Iterator[tuple[int, int | None]]:
    """The moves of a symbol that differ from those of an event that satisfies no condition."""
    for step in tables.steps[symbol]:
        for source in step.sources:
            yield source, int(START) if step.target is None else step.target
    for state in range(1, tables.states):
        if tables.skip[state][symbol] != tables.skip[state][0]:
            yield state, tables.skip[state][symbol]


def _is_worthwhile(program: Program, course: Course) -> bool:
    """Whether a row has to be followed, or whether that leaves out events.

    Where partial matches wait without end, and all events that go on with one can begin one as
    well, the index finds the same events.
    """
    query = program.query
    if query.strategy == "STRICT" or asks_for_neighbours(query.formula):
        return True
    if not course.jumps or query.window is None:
        return False
    begins = {(one.stream, one.type): {*one.ways} for one in course.begins}
    return any(move.way not in begins.get((move.stream, move.type), ()) for move in course.moves)


def _is_looked_up(move: Move) -> bool:
    """Whether an equality with the row finds the events of a move, at least of some rows: those for
    which one side of an OR is true, as in `rule.a IS NULL OR x.a = rule.a`."""
    return any(
        isinstance(test, OfBoth) and test.operator == "="
        for choice in choices_of(move.way)
        for test in choice
    )


def _tests_of(course: Course) -> set[Test]:
    return {test for move in course.moves for either in move.way for test in either}
