"""Each invariant of LP-normal forms fails where it is broken, and holds on the original."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from verified import PLAIN, invariants_of, stages_of, value_of

from celc import verify
from celc.core import formula as core
from celc.core.formula import DataType
from celc.diagnostics.source import Span
from celc.normal import normal_form as lp
from celc.normal.divide import Roles
from celc.normal.flat_form import FlatForm
from celc.normal.flatten import flatten
from celc.normal.traversal import events_of, with_operands
from celc.verify import forms


def _event(form: lp.NormalForm) -> lp.Event:
    return next(iter(events_of(form)))


_FORM = stages_of(PLAIN).normal_form
_A = _event(_FORM)
_NOWHERE = Span(0, 1)


def _asking(predicate: core.Predicate) -> lp.Event:
    return replace(_A, clauses=(lp.EventClause((predicate,)),))


_TRUE = core.Constant(True, DataType.BOOLEAN, _NOWHERE)


@pytest.mark.parametrize(
    ("form", "invariant"),
    [
        (_asking(core.NullTest(value_of("x", "id", DataType.INT), False, _NOWHERE)), "own"),
        (_asking(core.NullTest(_TRUE, True, _NOWHERE)), forms.OPEN),
        (replace(_A, clauses=(lp.EventClause(()),)), forms.OPEN),
        (_asking(core.NullTest(value_of("", "ratio", DataType.INT), False, _NOWHERE)), "lacks"),
        (replace(_A, labels=("y", "x")), forms.MARKS_SORTED),
        (lp.Disjunction((_A,), _NOWHERE), forms.SIMPLIFIED),
        (lp.Iteration(lp.Disjunction((), _NOWHERE), False, _NOWHERE), forms.NOTHING_INSIDE),
        (lp.Sequence((_A,), (), _NOWHERE), forms.GAPS),
        (lp.Where(_A, lp.ALWAYS_TRUE, _NOWHERE), forms.FACTS_OPEN),
    ],
)
def test_normal_forms(form: lp.NormalForm, invariant: str) -> None:
    named = {"own": forms.ON_EVENTS, "lacks": forms.ATTRIBUTES}.get(invariant, invariant)
    assert not invariants_of(verify.normal_form(_FORM))
    assert invariants_of(verify.normal_form(form)) == {named}


_ROUNDS = "* FROM S WHERE ((A AS x ; B AS y) FILTER x.id = y.id)+ ; C WITHIN 9 EVENTS"
_ABSENT = "* FROM S WHERE A AS x ; !((B AS y) FILTER y.value = x.value) ; C WITHIN 9 EVENTS"


def test_scopes_of_conditions_across_events() -> None:
    form = stages_of(_ROUNDS).normal_form
    assert not invariants_of(verify.normal_form(form))
    assert invariants_of(verify.letter_form(form)) == {forms.LETTERS_ONLY}

    def without_scopes(part: lp.NormalForm) -> lp.NormalForm:
        if isinstance(part, lp.Scope):
            return without_scopes(part.operand)
        if isinstance(part, lp.Correlated):
            return replace(part, own=())
        return with_operands(part, without_scopes)

    assert invariants_of(verify.normal_form(without_scopes(form))) == {forms.BOUND}


def _flat(body: str) -> FlatForm:
    flat = flatten(stages_of(body).normal_form)
    assert flat is not None
    return flat


def _changed_clause(flat: FlatForm, **changes: Any) -> FlatForm:
    return replace(flat, clauses=(replace(flat.clauses[0], **changes), *flat.clauses[1:]))


def _numbered(form: lp.NormalForm) -> lp.NormalForm:
    if isinstance(form, lp.Iteration):
        return replace(form, number=0)
    return with_operands(form, _numbered)


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda flat: replace(flat, form=_FORM), forms.ROLES_BOUND),
        (lambda flat: replace(flat, form=stages_of(_ROUNDS).normal_form), forms.LETTERS_ONLY),
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
    assert not invariants_of(verify.flat_form(flat))
    assert not invariants_of(verify.flat_form(_flat(_ABSENT)))
    assert invariant in invariants_of(verify.flat_form(broken(flat)))


def test_when_clauses_are_decided() -> None:
    flat = _flat("* FROM S WHERE A+ FILTER A.id > PREV(A.id) WITHIN 9 EVENTS")
    assert not invariants_of(verify.flat_form(flat))
    assert invariants_of(verify.flat_form(_changed_clause(flat, when="pairs"))) == {forms.WHEN}


def test_divisions() -> None:
    division = stages_of(_ABSENT).division
    assert not invariants_of(verify.division(division))
    assert isinstance(division.rest, Roles)
    flat = replace(division.rest.flat, form=_FORM)
    assert invariants_of(verify.division(replace(division, rest=replace(division.rest, flat=flat))))
    whole = stages_of(_ABSENT).normal_form
    assert forms.LETTERS_ONLY in invariants_of(verify.division(replace(division, found=whole)))
