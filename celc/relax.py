"""Correlated forms → forms without correlation that match at least as much.

What an automaton over single events cannot decide is left out: the relaxed form has every match of
the form it was made from, with the same labels, and others besides. Its automaton tells at which
events a match can end at all, and which events a match can be made of; the rest is decided on what
it finds.

Leaving a condition out of a formula admits more, but not below `!`, right of UNLESS or under NXT,
LAST and MAX, where more matches exclude others: there the whole operator goes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from celc import normal_form as lp
from celc.normal_form import NormalForm, is_correlated
from celc.rewrite import (
    all_placed,
    conjunction,
    disjunction,
    is_empty,
    iteration,
    relabel,
    selected,
    sequence,
    unless,
    where,
)


def relaxed(form: NormalForm) -> NormalForm:
    """The form without its correlations; itself where it has none."""
    if not is_correlated(form):
        return form
    match form:
        case lp.Event():
            return form
        case lp.Correlated() | lp.Scope():
            return relaxed(form.operand)
        case lp.Sequence():
            return sequence(tuple(map(relaxed, form.operands)), form.contiguous, form.span)
        case lp.Iteration():
            return iteration(relaxed(form.operand), form.contiguous, form.span)
        case lp.Disjunction():
            return disjunction(tuple(map(relaxed, form.operands)), form.span)
        case lp.Conjunction():
            return conjunction(relaxed(form.left), relaxed(form.right), form.span)
        case lp.All():
            return all_placed(relaxed(form.left), relaxed(form.right), form.span)
        case lp.Unless():
            if is_correlated(form.right):
                return relaxed(form.left)
            return unless(relaxed(form.left), form.right, form.span)
        case lp.Absence():
            left, right = relaxed(form.left), relaxed(form.right)
            if is_correlated(form.middle):
                return sequence((left, right), (False,), form.span)
            return replace(form, left=left, right=right)
        case lp.Selected():
            operand = relaxed(form.operand)
            # Whether a support is an interval does not depend on what else matches.
            return selected("STRICT", operand, form.span) if form.strategy == "STRICT" else operand
        case lp.Relabel():
            operand = relaxed(form.operand)
            for change in form.changes:
                operand = operand if is_empty(operand) else relabel(operand, change)
            return operand
        case lp.Where():
            return where(relaxed(form.operand), form.fact, form.span)
        case _:
            assert_never(form)
