"""Marks on the first or last events of the matches of a form, and of the rounds of an iteration.

For simultaneous events these are the first event of the first instant and the last event of the
last instant. They need not belong to the match.
"""

from dataclasses import replace

from celc.normal import normal_form as lp
from celc.normal.constructors import disjunction, rounds_but_one
from celc.normal.normal_form import NormalForm
from celc.normal.traversal import with_operands


class UnmarkableError(Exception):
    """No single part of a form has the first (or last) event of its matches."""


def marked_rounds(form: NormalForm, iteration: int, mark: str) -> NormalForm:
    """The form with a mark on the first event of each round of one of its iterations."""
    if isinstance(form, lp.Iteration) and form.number == iteration:
        return replace(form, operand=marked_first(form.operand, mark))
    return with_operands(form, lambda part: marked_rounds(part, iteration, mark))


def marked_first(form: NormalForm, mark: str) -> NormalForm:
    """The form with a mark on the first event of each match.

    Raises UnmarkableError for operators whose first event no one part holds.
    """
    match form:
        case lp.Event() if not form.simultaneous:
            return replace(form, labels=tuple(sorted({*form.labels, mark})))
        case lp.Event():
            return lp.MarkedEnds(form, (mark,), (), form.span)
        case lp.Sequence():
            first = marked_first(form.operands[0], mark)
            return replace(form, operands=(first, *form.operands[1:]))
        case lp.Disjunction():
            return replace(form, operands=tuple(marked_first(o, mark) for o in form.operands))
        case lp.Iteration():
            # The first round of the inner iteration alone.
            first, others = marked_first(form.operand, mark), rounds_but_one(form)
            if others is None:
                return first
            both = lp.Sequence((first, others), (form.contiguous,), form.span)
            return both if form.least > 1 else disjunction((first, both), form.span)
        case lp.Absence() | lp.Unless() | lp.ThenFirst():
            return replace(form, left=marked_first(form.left, mark))
        case lp.MarkedEnds():
            return replace(form, first=(*form.first, mark))
        case lp.Conjunction() | lp.Relabel():
            return marked(form, (mark,), ())
        case _:
            raise UnmarkableError


def marked_last(form: NormalForm, mark: str) -> NormalForm:
    """The form with a mark on the last event of each match.

    Raises UnmarkableError for operators whose last event no one part holds.
    """
    match form:
        case lp.Event() if not form.simultaneous:
            return replace(form, labels=tuple(sorted({*form.labels, mark})))
        case lp.Event():
            return lp.MarkedEnds(form, (), (mark,), form.span)
        case lp.Sequence():
            last = marked_last(form.operands[-1], mark)
            return replace(form, operands=(*form.operands[:-1], last))
        case lp.Disjunction():
            return replace(form, operands=tuple(marked_last(o, mark) for o in form.operands))
        case lp.Iteration():
            last, others = marked_last(form.operand, mark), rounds_but_one(form)
            if others is None:
                return last
            both = lp.Sequence((others, last), (form.contiguous,), form.span)
            return both if form.least > 1 else disjunction((last, both), form.span)
        case lp.Absence():
            return replace(form, right=marked_last(form.right, mark))
        case lp.Unless():
            return replace(form, left=marked_last(form.left, mark))
        case lp.MarkedEnds():
            return replace(form, last=(*form.last, mark))
        case lp.Conjunction() | lp.Relabel() | lp.ThenFirst():
            return marked(form, (), (mark,))
        case _:
            raise UnmarkableError


def marked_ends(form: NormalForm, first: str, last: str) -> NormalForm:
    """The form with one mark on the first event of each match and another on the last."""
    return marked(form, (first,), (last,))


def marked(form: NormalForm, first: tuple[str, ...], last: tuple[str, ...]) -> NormalForm:
    """The form with some marks on the first event of each match and others on the last.

    Unlike in `marked_first`, no part of the form is written twice. Where no single part has the
    event, its automaton is marked.
    """
    match form:
        case lp.Event() if not form.simultaneous:
            return replace(form, labels=tuple(sorted({*form.labels, *first, *last})))
        case lp.Sequence():
            begin, *between, end = form.operands
            operands = (marked(begin, first, ()), *between, marked(end, (), last))
            return replace(form, operands=operands)
        case lp.Disjunction():
            return replace(form, operands=tuple(marked(o, first, last) for o in form.operands))
        case _ if not first and not last:
            return form
        case _:
            return lp.MarkedEnds(form, first, last, form.span)


def without_numbers(form: NormalForm) -> NormalForm:
    if isinstance(form, lp.Iteration):
        return replace(form, operand=without_numbers(form.operand), number=None)
    return with_operands(form, without_numbers)
