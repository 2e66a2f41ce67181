"""Each invariant is seen to fail where a representation breaks it, and to hold on its original."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from celc import pipeline, verify
from celc.automata.construct import construct_selection
from celc.automata.determinize import DetState, Move
from celc.automata.graphs import FINAL, INITIAL, Edge
from celc.automata.letters import ContextMachine
from celc.core import formula as core
from celc.core.formula import DataType
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source, Span
from celc.normal import normal_form as lp
from celc.normal.divide import Roles
from celc.normal.flatten import FlatForm, flatten
from celc.options import Options
from celc.parse.parser import parse
from celc.pipeline import Stages, compile_source
from celc.plan.keys import KeyPlan
from celc.plan.piles import PilePlan
from celc.plan.strategy import (
    BranchFree,
    ByDefinition,
    Checked,
    EarliestInWindow,
    InWindow,
    Keyed,
    StraightLine,
    UnionLists,
)
from celc.plan.tables import Contexts, Tables
from celc.resolve import MAX_DEPTH, resolve
from celc.verify import Violation, automata, forms, plans, texts

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, value: DOUBLE, name: STRING }, EVENT B { id: INT, value: DOUBLE },
  EVENT C { id: INT, value: DOUBLE }
}
"""


def _source(body: str) -> Source:
    return Source("q.cel", f"{_DECLARED}SELECT {body}")


@cache
def _stages(body: str) -> Stages:
    (stages,) = compile_source(_source(body), Options()).queries
    return stages


def _invariants(violations: Any) -> set[str]:
    return {violation.invariant for violation in violations}


PLAIN = "* FROM S WHERE (A FILTER A.value > 1.0) ; B ; C WITHIN 9 EVENTS"


# --- syntax trees and core CEL --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda file: replace(file, span=Span(3, 5)), texts.SPANS_NEST),
        (lambda file: replace(file, streams=file.streams * 2), texts.IN_TEXT_ORDER),
        (lambda file: replace(file, queries=()), texts.QUERIES_NAMED),
        (lambda file: replace(file, queries=file.queries * 2), texts.QUERIES_NAMED),
    ],
)
def test_syntax_trees(broken: Callable[[Any], Any], invariant: str) -> None:
    source = _source("* FROM S WHERE A ; (B AND C) FILTER B.id + 1 = C.id")
    file = parse(source)
    assert not _invariants(verify.syntax_tree(file, source))
    assert invariant in _invariants(verify.syntax_tree(broken(file), source))


def _query(body: str = "x FROM S WHERE (A AS x ; B AS y) FILTER x.id / 2 > y.id") -> core.Query:
    (query,), _ = resolve(parse(_source(body)), _source(body))
    return query


def _with_predicate(change: Callable[[core.Comparison], core.Predicate]) -> core.Query:
    query = _query()
    assert isinstance(query.formula, core.Filter)
    (clause,) = query.formula.clauses
    (predicate,) = clause.predicates
    assert isinstance(predicate, core.Comparison)
    changed = replace(clause, predicates=(change(predicate),))
    return replace(query, formula=replace(query.formula, clauses=(changed,)))


def _with_clause(**changes: Any) -> core.Query:
    query = _query()
    assert isinstance(query.formula, core.Filter)
    (clause,) = query.formula.clauses
    return replace(query, formula=replace(query.formula, clauses=(replace(clause, **changes),)))


def _value(label: str, attribute: str, type: DataType) -> core.AttributeValue:
    return core.AttributeValue(label, attribute, type, Span(0, 1))


@pytest.mark.parametrize(
    ("query", "invariant"),
    [
        (_with_predicate(lambda p: replace(p, right=_value("z", "id", p.right.type))), "label"),
        (_with_clause(labels=("y", "x")), texts.CLAUSE_LABELS),
        (_with_clause(labels=()), texts.CLAUSE_LABELS),
        (_with_predicate(lambda p: replace(p, right=_value("y", "id", DataType.INT))), "typed"),
        (
            _with_predicate(lambda p: replace(p, right=core.Cast(p.left, p.left.type, p.span))),
            "typed",
        ),
        (
            _with_predicate(lambda p: replace(p, left=core.Negation(p.left, DataType.INT, p.span))),
            "typed",
        ),
        (
            _with_predicate(lambda p: replace(p, right=core.Constant(1, DataType.DOUBLE, p.span))),
            texts.TYPED,
        ),
        (
            _with_predicate(lambda p: core.PatternMatch("LIKE", p.left, "%", False, p.span)),
            texts.TYPED,
        ),
        (
            _with_predicate(lambda p: replace(p, right=_value("y", "ratio", DataType.DOUBLE))),
            texts.TYPES_DECLARED,
        ),
        (replace(_query(), streams=()), texts.TYPES_DECLARED),
        (
            replace(_query(), formula=core.Sequence((_query().formula,), (), Span(0, 1))),
            texts.GAPS,
        ),
        (replace(_query(), formula=_query("* FROM S WHERE B").formula), texts.OUTPUT_BOUND),
    ],
)
def test_core_queries(query: core.Query, invariant: str) -> None:
    named = {"label": texts.LABELS_RESOLVED, "typed": texts.TYPED}.get(invariant, invariant)
    assert not _invariants(verify.core_query(_query(), MAX_DEPTH))
    assert named in _invariants(verify.core_query(query, MAX_DEPTH))


def test_depth_of_core_formulas() -> None:
    assert _invariants(verify.core_query(_query(), 2)) == {texts.DEPTH}


def test_labels_of_scopes_are_not_seen_outside() -> None:
    """The same condition is right inside the PROJECT and wrong outside."""
    inside = _query("B FROM S WHERE PROJECT[B]((A AS x ; B) FILTER x.id = 1)")
    assert isinstance(inside.formula, core.Project)
    assert isinstance(inside.formula.operand, core.Filter)
    filter_ = inside.formula.operand
    swapped = replace(filter_, operand=replace(inside.formula, operand=filter_.operand))
    assert not _invariants(verify.core_query(inside, MAX_DEPTH))
    found = _invariants(verify.core_query(replace(inside, formula=swapped), MAX_DEPTH))
    assert found == {texts.LABELS_RESOLVED}


# --- forms ----------------------------------------------------------------------------------------


def _event(form: lp.NormalForm) -> lp.Event:
    return next(iter(lp.events_of(form)))


_FORM = _stages(PLAIN).normal_form
_A = _event(_FORM)
_NOWHERE = Span(0, 1)


def _asking(predicate: core.Predicate) -> lp.Event:
    return replace(_A, clauses=(lp.EventClause((predicate,)),))


_TRUE = core.Constant(True, DataType.BOOLEAN, _NOWHERE)


@pytest.mark.parametrize(
    ("form", "invariant"),
    [
        (_asking(core.NullTest(_value("x", "id", DataType.INT), False, _NOWHERE)), "own"),
        (_asking(core.NullTest(_TRUE, True, _NOWHERE)), forms.OPEN),
        (replace(_A, clauses=(lp.EventClause(()),)), forms.OPEN),
        (_asking(core.NullTest(_value("", "ratio", DataType.INT), False, _NOWHERE)), "lacks"),
        (replace(_A, labels=("y", "x")), forms.MARKS_SORTED),
        (lp.Disjunction((_A,), _NOWHERE), forms.SIMPLIFIED),
        (lp.Iteration(lp.Disjunction((), _NOWHERE), False, _NOWHERE), forms.NOTHING_INSIDE),
        (lp.Sequence((_A,), (), _NOWHERE), forms.GAPS),
        (lp.Where(_A, lp.ALWAYS_TRUE, _NOWHERE), forms.FACTS_OPEN),
    ],
)
def test_normal_forms(form: lp.NormalForm, invariant: str) -> None:
    named = {"own": forms.ON_EVENTS, "lacks": forms.ATTRIBUTES}.get(invariant, invariant)
    assert not _invariants(verify.normal_form(_FORM))
    assert _invariants(verify.normal_form(form)) == {named}


_ROUNDS = "* FROM S WHERE ((A AS x ; B AS y) FILTER x.id = y.id)+ ; C WITHIN 9 EVENTS"
_ABSENT = "* FROM S WHERE A AS x ; !((B AS y) FILTER y.value = x.value) ; C WITHIN 9 EVENTS"


def test_scopes_of_conditions_across_events() -> None:
    form = _stages(_ROUNDS).normal_form
    assert not _invariants(verify.normal_form(form))
    assert _invariants(verify.letter_form(form)) == {forms.LETTERS_ONLY}

    def without_scopes(part: lp.NormalForm) -> lp.NormalForm:
        if isinstance(part, lp.Scope):
            return without_scopes(part.operand)
        if isinstance(part, lp.Correlated):
            return replace(part, own=())
        return lp.with_operands(part, without_scopes)

    assert _invariants(verify.normal_form(without_scopes(form))) == {forms.BOUND}


def _flat(body: str) -> FlatForm:
    flat = flatten(_stages(body).normal_form)
    assert flat is not None
    return flat


def _changed_clause(flat: FlatForm, **changes: Any) -> FlatForm:
    return replace(flat, clauses=(replace(flat.clauses[0], **changes), *flat.clauses[1:]))


def _numbered(form: lp.NormalForm) -> lp.NormalForm:
    if isinstance(form, lp.Iteration):
        return replace(form, number=0)
    return lp.with_operands(form, _numbered)


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda flat: replace(flat, form=_FORM), forms.ROLES_BOUND),
        (lambda flat: replace(flat, form=_stages(_ROUNDS).normal_form), forms.LETTERS_ONLY),
        (lambda flat: _changed_clause(flat, iterations=((7,), (7,))), forms.ROUNDS_MARKED),
        (lambda flat: _changed_clause(flat, iterations=((0,),)), forms.ROLE_CHAINS),
        (lambda flat: _changed_clause(flat, iterations=((0,), (1, 0))), forms.ROLE_CHAINS),
        (lambda flat: replace(flat, form=_numbered(flat.form)), forms.NUMBERS_GONE),
        (
            lambda flat: replace(flat, absent=(replace(_flat(_ABSENT).absent[0], first="none"),)),
            forms.ROLES_BOUND,
        ),
    ],
)
def test_flat_forms(broken: Callable[[FlatForm], FlatForm], invariant: str) -> None:
    flat = _flat(_ROUNDS)
    assert not _invariants(verify.flat_form(flat))
    assert not _invariants(verify.flat_form(_flat(_ABSENT)))
    assert invariant in _invariants(verify.flat_form(broken(flat)))


def test_when_clauses_are_decided() -> None:
    flat = _flat("* FROM S WHERE A+ FILTER A.id > PREV(A.id) WITHIN 9 EVENTS")
    assert not _invariants(verify.flat_form(flat))
    assert _invariants(verify.flat_form(_changed_clause(flat, when="pairs"))) == {forms.WHEN}


# --- alphabets and automata -----------------------------------------------------------------------

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
    stages = _stages(_CONDITIONS)
    named = automata.EXHAUSTIVE if invariant == "gone" else invariant
    assert not _invariants(verify.alphabet(stages.alphabet, stages.normal_form))
    assert named in _invariants(verify.alphabet(broken(stages.alphabet), stages.normal_form))


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
    automaton = _stages(PLAIN).automaton
    assert not _invariants(verify.automaton(automaton))
    assert invariant in _invariants(verify.automaton(broken(automaton)))


def test_contexts_of_letters() -> None:
    stages = compile_source(_source("* FROM S WHERE NXT(A ; B) ; C"), Options()).queries[0]
    assert not _invariants(verify.automaton(stages.automaton))
    letters = stages.automaton.letters
    letters._machines[-1] = ContextMachine(tuple(row[1:] for row in letters.machine.following))
    assert automata.CONTEXTS in _invariants(verify.automaton(stages.automaton))


def test_an_automaton_without_matches_is_trimmed() -> None:
    """`B AND C` is nothing, which no earlier pass knows: what comes after it is never reached."""
    automaton = _stages("* FROM S WHERE A ; (B AND C) ; A WITHIN 9 EVENTS").automaton
    assert (automaton.states, automaton.transitions) == (2, ())
    beside = _stages("* FROM S WHERE (A ; (B AND C) ; A) OR (A ; B) WITHIN 9 EVENTS").automaton
    assert beside.states == 3


_SELECTED = "MAX * FROM S WHERE (A+ ; B)+ ; C WITHIN 9 EVENTS"


def _selection() -> tuple[Any, Any]:
    stages = _stages(_SELECTED)
    form = stages.normal_form
    assert isinstance(form, lp.Relabel)
    assert isinstance(form.operand, lp.Selected)
    return construct_selection(form.operand, stages.alphabet, _source(_SELECTED))


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
    assert not _invariants(verify.selection(selection, letters))
    broken_one = broken(selection)
    broken_one = replace(broken_one, tracker=tuple(map(tuple, broken_one.tracker)))
    assert named in _invariants(verify.selection(broken_one, letters))


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
    stages = _stages(PLAIN)
    letters = stages.automaton.letters.count
    assert not _invariants(verify.minimal(stages.minimal, letters))
    assert invariant in _invariants(verify.deterministic(broken(stages.full), letters))


def test_minimal_automata() -> None:
    stages = _stages("* FROM S WHERE (A ; C) OR (B ; C) WITHIN 9 EVENTS")
    letters = stages.automaton.letters.count
    assert stages.minimal.states < stages.full.states
    assert _invariants(verify.deterministic(stages.full, letters)) == set()
    assert _invariants(verify.minimal(stages.full, letters)) == {automata.SMALLEST}


# --- tables and plans -----------------------------------------------------------------------------


def _with_step(symbol: int = 1, **changes: Any) -> Callable[[Tables], Tables]:
    def change(tables: Tables) -> Tables:
        steps = list(tables.steps)
        first, *rest = steps[symbol]
        steps[symbol] = (replace(first, **changes), *rest)
        return replace(tables, steps=tuple(steps))

    return change


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda t: replace(t, skip=t.skip[1:]), plans.TOTAL),
        (lambda t: replace(t, skip=(t.skip[0], t.skip[1][1:], *t.skip[2:])), plans.TOTAL),
        (lambda t: replace(t, steps=t.steps[1:]), plans.TOTAL),
        (lambda t: replace(t, skip=(t.skip[1], *t.skip[1:])), plans.IN_RANGE),
        (_with_step(sources=(99,)), plans.IN_RANGE),
        (_with_step(target=0), plans.IN_RANGE),
        (_with_step(kind=99), plans.IN_RANGE),
        (_with_step(sources=(1, 2)), plans.STARTS_MARKED),
        (lambda t: replace(t, steps=(t.steps[1], *t.steps[1:])), plans.INERT),
        (lambda t: replace(t, symbol_of=t.symbol_of[1:]), plans.SYMBOLS),
        (lambda t: replace(t, symbol_of=(0,) * len(t.symbol_of)), plans.SYMBOLS),
        (lambda t: replace(t, symbol_of=t.symbol_of[::-1]), plans.SYMBOLS),
        (
            lambda t: replace(t, steps=(t.steps[0], t.steps[1] * 2, *t.steps[2:])),
            plans.ONE_STEP,
        ),
        (
            lambda t: replace(t, steps=(*t.steps[:-1], (*t.steps[-1], *t.steps[1]))),
            plans.ENDS_LAST,
        ),
    ],
)
def test_tables(broken: Callable[[Tables], Tables], invariant: str) -> None:
    stages = _stages(PLAIN)
    classes = len(stages.alphabet.symbols)
    assert not _invariants(verify.tables(stages.program.tables, classes))
    assert invariant in _invariants(verify.tables(broken(stages.program.tables), classes))


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda c: replace(c, following=c.following[1:]), plans.TOTAL),
        (lambda c: replace(c, letters=((99,) * len(c.letters[0]), *c.letters[1:])), "range"),
        # What no atom asks for is taken for what begins a match.
        (lambda c: replace(c, letters=tuple(row[::-1] for row in c.letters)), plans.INERT),
    ],
)
def test_tables_with_contexts(broken: Callable[[Contexts], Contexts], invariant: str) -> None:
    stages = _stages("* FROM S WHERE NXT(A ; B) ; C")
    classes = len(stages.alphabet.symbols)
    tables = stages.program.tables
    assert tables.contexts is not None
    named = plans.IN_RANGE if invariant == "range" else invariant
    assert not _invariants(verify.tables(tables, classes))
    wrong = replace(tables, contexts=broken(tables.contexts))
    assert named in _invariants(verify.tables(wrong, classes))


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda s: replace(s, following=s.following[1:]), plans.TOTAL),
        (lambda s: replace(s, symbols=tuple((99,) * len(row) for row in s.symbols)), "range"),
        (lambda s: replace(s, tables=_with_step(kind=99)(s.tables)), plans.IN_RANGE),
        (lambda s: replace(s, tables=_with_step(sources=(0, 1))(s.tables)), plans.STARTS_APART),
    ],
)
def test_selection_tables(broken: Callable[[Any], Any], invariant: str) -> None:
    compiled = _stages(_SELECTED).program
    assert isinstance(compiled.listing, InWindow)
    chosen = compiled.listing.tables
    named = plans.IN_RANGE if invariant == "range" else invariant
    assert not _invariants(verify.selection_tables(chosen, compiled.tables.symbols))
    assert named in _invariants(verify.selection_tables(broken(chosen), compiled.tables.symbols))


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda e: replace(e, back=e.back[1:]), plans.TOTAL),
        (lambda e: replace(e, ends=(99,) * len(e.ends)), plans.IN_RANGE),
        (lambda e: replace(e, ends=(1,) * len(e.ends)), plans.SETS),
        (lambda e: replace(e, back=(e.back[1], *e.back[1:])), plans.SETS),
    ],
)
def test_sets_of_states(broken: Callable[[Any], Any], invariant: str) -> None:
    listing = _stages("NXT * FROM S WHERE A ; B ; C WITHIN 9 EVENTS").program.listing
    assert isinstance(listing, EarliestInWindow)
    chosen = listing.tables
    assert not _invariants(verify.earliest(chosen))
    assert invariant in _invariants(verify.earliest(broken(chosen)))


def _piles(stages: Stages) -> PilePlan:
    update = stages.program.update
    assert isinstance(update, BranchFree | StraightLine)
    return update.piles


def _with_write(symbol: int, **changes: Any) -> Callable[[Any], Any]:
    def change(plan: Any) -> Any:
        writes = list(plan.writes)
        first, *rest = writes[symbol]
        writes[symbol] = (replace(first, **changes), *rest)
        return replace(plan, writes=tuple(writes))

    return change


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda p: replace(p, piles=p.piles * 40), plans.IN_RANGE),
        (lambda p: replace(p, writes=p.writes[1:]), plans.TOTAL),
        (lambda p: replace(p, writes=((), (), *p.writes[2:])), plans.ALL_WRITTEN),
        (lambda p: replace(p, writes=((), (), *p.writes[2:])), plans.ALL_STEPS),
        (lambda p: replace(p, nodes_per_event=0), plans.ENOUGH_NODES),
        (_with_write(1, reads=(0,)), plans.PILES_FIT),
        (_with_write(1, starts=False), plans.PILES_FIT),
        (_with_write(2, pile=0), plans.PILES_FIT),
    ],
)
def test_straight_lines(broken: Callable[[Any], Any], invariant: str) -> None:
    stages = _stages(PLAIN)
    plan = _piles(stages)
    assert not _invariants(verify.straight_line(plan, stages.program.tables))
    assert invariant in _invariants(verify.straight_line(broken(plan), stages.program.tables))


def test_piles_are_read_before_they_are_written() -> None:
    """`A ; A ; A`: each event hands on what the one before has left."""
    stages = _stages("* FROM S WHERE A ; A ; A WITHIN 9 EVENTS")
    plan = _piles(stages)
    assert not _invariants(verify.straight_line(plan, stages.program.tables))
    reverse = replace(plan, writes=tuple(writes[::-1] for writes in plan.writes))
    assert _invariants(verify.straight_line(reverse, stages.program.tables)) == {plans.READ_BEFORE}
    saved = tuple(tuple(range(len(plan.piles))) for _ in plan.writes)
    assert not _invariants(
        verify.straight_line(replace(reverse, saved=saved), stages.program.tables)
    )


_KEYED = (
    "* FROM S WHERE (A AS x ; B AS y ; C AS z) FILTER x.id = y.id AND y.id = z.id WITHIN 9 EVENTS"
)


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda j: replace(j, keys=j.keys[1:]), plans.KEYS),
        (lambda j: replace(j, keys=((0,), *j.keys[1:])), plans.KEYS),
        (lambda j: replace(j, keys=((), (5,), *j.keys[2:])), plans.KEYS),
        (lambda j: replace(j, ties=(replace(j.ties[0], terms=()),)), plans.KEYS_BROUGHT),
    ],
)
def test_keys(broken: Callable[[KeyPlan], KeyPlan], invariant: str) -> None:
    program = _stages(_KEYED).program
    assert isinstance(program.update, Keyed)
    keys = program.update.keys
    assert not _invariants(verify.joins(keys, program.tables))
    assert invariant in _invariants(verify.joins(broken(keys), program.tables))


_COMPARED = _KEYED.replace("WITHIN", "AND x.value < z.value WITHIN")


def test_checks() -> None:
    program = _stages(_COMPARED).program
    update, checks = program.update, program.listing
    assert isinstance(update, Keyed)
    assert isinstance(checks, Checked)
    assert not _invariants(verify.checks(checks, update.keys))
    twice = replace(checks, clauses=update.keys.decided)
    assert _invariants(verify.checks(twice, update.keys)) == {plans.DECIDED_ONCE}
    nothing = Checked((), (), "", distinct=False, max_work=1, reason="")
    assert _invariants(verify.checks(nothing, None)) == {plans.SOMETHING_LEFT}


_GENERAL = UnionLists("no other update is allowed")


@pytest.mark.parametrize(
    ("body", "changes", "invariant"),
    [
        ("LAST * FROM S WHERE A ; B WITHIN 9 EVENTS", {"update": _GENERAL}, plans.LATEST_OF_PILES),
        (_KEYED, {"listing": ByDefinition(_FORM, False, 1, "")}, plans.KEYS_BEFORE_DEFINITIONS),
        (_COMPARED, {"listing.max_work": 0}, plans.BOUNDED),
        ("* FROM S WHERE A+ ; B WITHIN 9 EVENTS", {"update": _GENERAL}, plans.STARTS_APART),
    ],
)
def test_programs(body: str, changes: dict[str, Any], invariant: str) -> None:
    program = _stages(body).program
    assert not _invariants(verify.program(program))
    for name, value in changes.items():
        whole, _, field = name.partition(".")
        broken = replace(getattr(program, whole), **{field: value}) if field else value
        program = replace(program, **{whole: broken})
    assert invariant in _invariants(verify.program(program))


def _broken_parts() -> Iterator[tuple[str, str, Callable[[Any], Any]]]:
    """Queries of each update and listing with data of its own, and a way to break that."""
    yield "* FROM S WHERE A ; B WITHIN 9 EVENTS", "update.piles", _fewer_nodes
    yield _KEYED, "update.piles", _fewer_nodes
    yield _KEYED, "update.keys", lambda keys: replace(keys, keys=keys.keys[1:])
    yield _COMPARED, "listing.clauses", lambda clauses: ()
    yield _SELECTED, "listing.tables", lambda found: replace(found, following=found.following[1:])
    earliest = "NXT * FROM S WHERE A ; B ; C WITHIN 9 EVENTS"
    yield earliest, "listing.tables", lambda found: replace(found, back=found.back[1:])
    yield _SELECTED, "tables", lambda found: replace(found, steps=found.steps[1:])


def _fewer_nodes(piles: PilePlan) -> PilePlan:
    return replace(piles, nodes_per_event=0)


@pytest.mark.parametrize(("body", "name", "broken"), _broken_parts())
def test_each_part_of_a_program_is_looked_at(
    body: str, name: str, broken: Callable[[Any], Any]
) -> None:
    program = _stages(body).program
    assert not _invariants(verify.program(program))
    whole, _, field = name.partition(".")
    part = getattr(program, whole)
    changed = replace(part, **{field: broken(getattr(part, field))}) if field else broken(part)
    assert _invariants(verify.program(replace(program, **{whole: changed})))


def test_divisions() -> None:
    division = _stages(_ABSENT).division
    assert not _invariants(verify.division(division))
    assert isinstance(division.rest, Roles)
    flat = replace(division.rest.flat, form=_FORM)
    assert _invariants(verify.division(replace(division, rest=replace(division.rest, flat=flat))))
    whole = _stages(_ABSENT).normal_form
    assert forms.LETTERS_ONLY in _invariants(verify.division(replace(division, found=whole)))


# --- when it runs ---------------------------------------------------------------------------------


def test_it_is_on_in_all_tests() -> None:
    assert pipeline.VERIFYING


def test_the_error_says_which_pass_what_and_where() -> None:
    found = Violation("symbol 0 is in no match", "it has 2 steps")
    with pytest.raises(verify.VerificationError) as caught:
        verify.verify("tabulate", "tables", [found])
    assert str(caught.value) == (
        "after the pass 'tabulate', tables: symbol 0 is in no match, but it has 2 steps"
    )
    assert not isinstance(caught.value, CelError)
    verify.verify("tabulate", "tables", [])


def test_a_pass_that_goes_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = pipeline.minimise
    monkeypatch.setattr(
        pipeline, "minimise", lambda full: replace(made(full), class_of=made(full).class_of[1:])
    )
    with pytest.raises(verify.VerificationError, match="'minimise'"):
        compile_source(_source(PLAIN), Options())


@pytest.mark.parametrize(("value", "on"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_it_is_off_by_default_and_not_imported(value: str | None, on: bool) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "CELC_VERIFY"}
    if value is not None:
        environment["CELC_VERIFY"] = value
    script = (
        "import sys, celc\n"
        f"assert not celc.check({_source(PLAIN).text!r}, name='q')\n"
        "print('celc.verify' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == [str(on)]
