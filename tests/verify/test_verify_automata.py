"""Each invariant of alphabets and automata fails where it is broken, and holds on the original."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from verified import PLAIN, SELECTED, invariants_of, source_of, stages_of

from celc import verify
from celc.automata.construct import construct_selection
from celc.automata.determinize import DetState, Move
from celc.automata.graphs import FINAL, INITIAL, Edge
from celc.automata.letters import ContextMachine
from celc.driver.pipeline import compile_source
from celc.normal import normal_form as lp
from celc.options import Options
from celc.verify import automata

_CONDITIONS = "* FROM S WHERE ((A FILTER A.value > 1.0) OR (A FILTER A.id = 2)) ; B WITHIN 9 EVENTS"


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda a: replace(a, symbols=a.symbols[1:]), automata.OTHERS_FIRST),
        (lambda a: replace(a, symbols=(*a.symbols, a.symbols[0])), automata.OTHERS_FIRST),
        (lambda a: replace(a, symbols=(*a.symbols, a.symbols[1])), automata.DISJOINT),
        (lambda a: replace(a, types=a.types * 2), automata.DISJOINT),
        (
            lambda a: replace(a, symbols=(*a.symbols, replace(a.symbols[1], truth=1 << 40))),
            automata.GROUPS,
        ),
        (
            lambda a: replace(
                a, types=(replace(a.types[0], groups=a.types[0].groups * 2), *a.types[1:])
            ),
            automata.GROUPS,
        ),
        (
            lambda a: replace(
                a, types=(replace(a.types[0], groups=a.types[0].groups[:1]), *a.types[1:])
            ),
            automata.GROUPS,
        ),
        # The class of those that have `id` 2 is gone.
        (lambda a: replace(a, symbols=tuple(s for s in a.symbols if s.truth != 2)), "gone"),
    ],
)
def test_alphabets(broken: Callable[[Any], Any], invariant: str) -> None:
    stages = stages_of(_CONDITIONS)
    named = automata.EXHAUSTIVE if invariant == "gone" else invariant
    assert not invariants_of(verify.alphabet(stages.alphabet, stages.normal_form))
    assert named in invariants_of(verify.alphabet(broken(stages.alphabet), stages.normal_form))


def _with_transition(**changes: Any) -> Callable[[Any], Any]:
    def change(automaton: Any) -> Any:
        first, *rest = automaton.transitions
        return replace(automaton, transitions=(replace(first, **changes), *rest))

    return change


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (_with_transition(target=0), automata.ENDS),
        (_with_transition(source=1), automata.ENDS),
        (_with_transition(target=99), automata.STATES),
        (_with_transition(marks=("y", "x")), automata.MARKS_SORTED),
        (lambda a: replace(a, states=a.states + 1), automata.TRIMMED),
        (lambda a: replace(a, transitions=a.transitions[:-1]), automata.TRIMMED),
    ],
)
def test_nondeterministic_automata(broken: Callable[[Any], Any], invariant: str) -> None:
    automaton = stages_of(PLAIN).automaton
    assert not invariants_of(verify.automaton(automaton))
    assert invariant in invariants_of(verify.automaton(broken(automaton)))


def test_contexts_of_letters() -> None:
    stages = compile_source(source_of("* FROM S WHERE NXT(A ; B) ; C"), Options()).queries[0]
    assert not invariants_of(verify.automaton(stages.automaton))
    letters = stages.automaton.letters
    letters._machines[-1] = ContextMachine(tuple(row[1:] for row in letters.machine.following))
    assert automata.CONTEXTS in invariants_of(verify.automaton(stages.automaton))


def test_an_automaton_without_matches_is_trimmed() -> None:
    """`B AND C` is nothing, which no earlier pass knows: what comes after it is never reached."""
    automaton = stages_of("* FROM S WHERE A ; (B AND C) ; A WITHIN 9 EVENTS").automaton
    assert (automaton.states, automaton.transitions) == (2, ())
    beside = stages_of("* FROM S WHERE (A ; (B AND C) ; A) OR (A ; B) WITHIN 9 EVENTS").automaton
    assert beside.states == 3


def _selection() -> tuple[Any, Any]:
    stages = stages_of(SELECTED)
    form = stages.normal_form
    assert isinstance(form, lp.Relabel)
    assert isinstance(form.operand, lp.Selected)
    return construct_selection(form.operand, stages.alphabet, source_of(SELECTED))


def _with_edge(selection: Any, state: int, edge: Edge) -> Any:
    edges = list(selection.graph.edges)
    edges[state] = (*edges[state], edge)
    return replace(selection, graph=replace(selection.graph, edges=tuple(edges)))


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda s: replace(s, tracker=(s.tracker[0][1:], *s.tracker[1:])), "tracker"),
        (lambda s: replace(s, tracker=(s.tracker[0] * 2, *s.tracker[1:])), "tracker"),
        (lambda s: replace(s, tracker=(((m, 99) for m, _ in s.tracker[0]),)), automata.STATES),
        (lambda s: replace(s, starts=s.starts[1:]), automata.STARTS),
        (lambda s: _with_edge(s, INITIAL, Edge(1, (), 2, ())), automata.STARTS),
        (lambda s: _with_edge(s, FINAL, Edge(1, (), 2, ())), automata.ENDS),
        (lambda s: _with_edge(s, 2, Edge(1, (), INITIAL, ())), automata.ENDS),
        (lambda s: _with_edge(s, 2, Edge(0, (), 2, ())), automata.READS),
        (lambda s: _with_edge(s, 2, Edge(1, (), 99, ())), automata.STATES),
    ],
)
def test_selections(broken: Callable[[Any], Any], invariant: str) -> None:
    selection, letters = _selection()
    named = automata.TRACKER_DETERMINISTIC if invariant == "tracker" else invariant
    assert not invariants_of(verify.selection(selection, letters))
    broken_one = broken(selection)
    broken_one = replace(broken_one, tracker=tuple(map(tuple, broken_one.tracker)))
    assert named in invariants_of(verify.selection(broken_one, letters))


def _with_row(row: tuple[Move, ...], symbol: int = 1, state: int = 0) -> Callable[[Any], Any]:
    def change(automaton: Any) -> Any:
        moves = [list(rows) for rows in automaton.moves]
        moves[state][symbol] = row
        return replace(automaton, moves=tuple(map(tuple, moves)))

    return change


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (_with_row((Move(("A",), True, None),) * 2), automata.IO_DETERMINISTIC),
        (_with_row((Move(("A",), True, DetState(0)),)), automata.START_APART),
        (_with_row((Move(("A",), True, DetState(99)),)), automata.STATES),
        (_with_row((Move(("A",), False, None),)), automata.MOVES_LEAD),
        (_with_row(()), automata.COMPLETABLE),
        (lambda a: replace(a, moves=(a.moves[0][1:], *a.moves[1:])), automata.TOTAL),
        (lambda a: replace(a, class_of=a.class_of[1:]), automata.CLASSES),
        (lambda a: replace(a, class_of=(0,) * len(a.class_of)), automata.CLASSES),
        (lambda a: replace(a, members=a.members[1:]), automata.MEMBERS),
    ],
)
def test_deterministic_automata(broken: Callable[[Any], Any], invariant: str) -> None:
    stages = stages_of(PLAIN)
    letters = stages.automaton.letters.count
    assert not invariants_of(verify.minimal(stages.minimal, letters))
    assert invariant in invariants_of(verify.deterministic(broken(stages.full), letters))


def test_minimal_automata() -> None:
    stages = stages_of("* FROM S WHERE (A ; C) OR (B ; C) WITHIN 9 EVENTS")
    letters = stages.automaton.letters.count
    assert stages.minimal.states < stages.full.states
    assert invariants_of(verify.deterministic(stages.full, letters)) == set()
    assert invariants_of(verify.minimal(stages.full, letters)) == {automata.SMALLEST}
