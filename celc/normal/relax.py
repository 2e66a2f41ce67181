"""Correlated forms → forms without correlation that match at least as much.

Conditions that an automaton over single events cannot decide are left out. The relaxed form has
every match of the original form, with the same labels, and others. Its automaton tells at which
events a match can end, and of which events it can consist. The listing decides the omitted
conditions.

Usually a formula matches more if a condition is left out. But below `!`, right of UNLESS and under
NXT, LAST and MAX, a match can exclude other matches. So if a condition there cannot be decided, the
whole operator is left out.
"""

from dataclasses import replace
from typing import assert_never

from celc.normal import normal_form as lp
from celc.normal.constructors import (
    absence,
    all_placed,
    conjunction,
    disjunction,
    is_empty,
    iteration,
    rounds_of,
    selected,
    sequence,
    then_first,
    unless,
)
from celc.normal.normal_form import NormalForm
from celc.normal.rewrite import relabel, where
from celc.normal.traversal import forms_in, is_correlated


def relaxed(form: NormalForm, *, selectors: bool = True, absences: bool = True) -> NormalForm:
    """The form without its correlations. A form without correlations is returned as it is.

    selectors: if False, NXT, LAST and MAX are left out too. Their choice depends on where the
    stream begins, and CONSUME BY lets it begin anew. For events with a duration, it also depends on
    which events overlap.
    absences: if False, UNLESS, `!` and the choice of FIRST are left out too. An absent event with a
    duration can end inside a match but start before it. If time is uncertain, whole worlds decide
    what is absent.
    """
    return _Relaxation(selectors, absences).of(form)


class _Relaxation:
    def __init__(self, selectors: bool, absences: bool) -> None:
        self._selectors = selectors
        self._absences = absences

    def _stays(self, form: NormalForm) -> bool:
        """Whether nothing of a form has to be left out."""
        if is_correlated(form) or (not self._absences and _rules_out(form)):
            return False
        return self._selectors or not _selects(form)

    def of(self, form: NormalForm) -> NormalForm:
        """The relaxed form."""
        if self._stays(form):
            return form
        match form:
            case lp.Event():
                return form
            case lp.Correlated() | lp.Scope() | lp.Within() | lp.MarkedEnds():
                return self.of(form.operand)
            case lp.AbsenceBefore() | lp.AbsenceAfter():
                return self.of(form.operand)
            case lp.Sequence():
                return sequence(tuple(map(self.of, form.operands)), form.contiguous, form.span)
            case lp.Iteration():
                return rounds_of(form, self.of(form.operand))
            case lp.Disjunction():
                return disjunction(tuple(map(self.of, form.operands)), form.span)
            case lp.Conjunction():
                return conjunction(self.of(form.left), self.of(form.right), form.span)
            case lp.All():
                return all_placed(self.of(form.left), self.of(form.right), form.span)
            case lp.Unless():
                if not (self._absences and self._stays(form.right)):
                    return self.of(form.left)
                return unless(self.of(form.left), form.right, form.span)
            case lp.Absence():
                left, right = self.of(form.left), self.of(form.right)
                if not (self._absences and self._stays(form.middle)):
                    return sequence((left, right), (False,), form.span)
                return absence(left, form.middle, right, form.span, form.sees)
            case lp.ThenFirst():
                left = self.of(form.left)
                asked = (form.chosen, form.absent, form.gap)
                if self._absences and all(one is None or self._stays(one) for one in asked):
                    return then_first(replace(form, left=left))
                rounds = iteration(self.of(form.chosen), False, form.span, form.least, form.most)
                return sequence((left, rounds), (False,), form.span)
            case lp.Selected():
                operand = self.of(form.operand)
                # STRICT looks at one match alone, so it stays.
                is_strict = form.strategy == "STRICT"
                return selected("STRICT", operand, form.span) if is_strict else operand
            case lp.Relabel():
                operand = self.of(form.operand)
                for change in form.changes:
                    operand = operand if is_empty(operand) else relabel(operand, change)
                return operand
            case lp.Where():
                return where(self.of(form.operand), form.fact, form.span)
            case _:
                assert_never(form)


def _rules_out(form: NormalForm) -> bool:
    """Whether a form has an operator by which events outside a match can exclude it."""
    ruling = lp.Unless | lp.Absence | lp.ThenFirst
    return any(isinstance(part, ruling) for part in forms_in(form))


def _selects(form: NormalForm) -> bool:
    """Whether a form has a selector that compares matches; STRICT does not."""
    return any(
        isinstance(part, lp.Selected) and part.strategy != "STRICT" for part in forms_in(form)
    )
