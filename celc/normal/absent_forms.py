"""What must be absent: whether it is a single event, has a key, or can be followed event by event.

The simplest possible way is used. Where an OR has no common way for its operands, each operand has
its own.
"""

from functools import reduce

from celc.core.formula import Clause
from celc.core.terms import labels_in_order
from celc.diagnostics.source import Span
from celc.normal import normal_form as lp
from celc.normal.alternatives import alternatives_of
from celc.normal.flat_form import NotFlat
from celc.normal.keyed_patterns import NotKeyedError, keyed_pattern_of
from celc.normal.normal_form import NormalForm
from celc.normal.traversal import count_events, forms_in, operands_of

# positions of a part in a window that is followed event by event; each event costs a step for each
# pair
_MOST_WATCHED = 1_000


class NotFlatError(Exception):
    """The marked events of a match do not decide the conditions; the text says why. `part` is the
    part of the form that it is about."""

    def __init__(self, reason: str, part: NormalForm | Clause) -> None:
        super().__init__(reason)
        # The span of a form with conditions covers the conditions only.
        parts = (part,) if isinstance(part, Clause) else tuple(forms_in(part))
        self.told = NotFlat(reason, reduce(Span.to, (one.span for one in parts)))


def is_watchable(form: NormalForm) -> bool:
    """Whether a form is a window around a part that can be followed event by event."""
    return isinstance(form, lp.Within) and can_be_followed(form.operand)


def can_be_followed(form: NormalForm) -> bool:
    """Whether the matches of a form can be followed event by event."""
    if not all(map(_is_plain, forms_in(form))):
        return False
    return count_events(form) <= _MOST_WATCHED


def _is_plain(part: NormalForm) -> bool:
    match part:
        case lp.Event():
            return not part.simultaneous
        case lp.Disjunction():
            return True
        case lp.Sequence():
            return not any(part.contiguous)
        case lp.Iteration():
            return not part.contiguous
        case _:
            return False


def is_single_event(form: NormalForm) -> bool:
    """Whether a form is one event, which has all labels of the form that its conditions name."""
    try:
        events, clauses, own = single_event(form)
    except NotFlatError:
        return False
    named = own & {label for one in clauses for label in labels_in_order(one)}
    return all(named.issubset(event.labels) for event in events)


def _has_key(form: NormalForm, firm: frozenset[str]) -> bool:
    try:
        pattern = keyed_pattern_of(form, firm)
    except NotKeyedError:
        return False
    return can_be_followed(pattern.form)


def to_be_absent(form: NormalForm, firm: frozenset[str] | None = None) -> tuple[NormalForm, ...]:
    """The forms that must all be absent where a form must be; the form itself where it is looked
    for as a whole.

    `firm` are the labels around it that every match binds, where a pattern can have a key.
    """
    whole = can_be_followed(form) or is_watchable(form) or is_single_event(form)
    whole = whole or (firm is not None and _has_key(form, firm))
    return (form,) if whole else alternatives_of(form)


def last_events(form: NormalForm) -> tuple[lp.Event, ...]:
    """The last events of the matches of a form that can be followed event by event."""
    match form:
        case lp.Event():
            return (form,)
        case lp.Sequence():
            return last_events(form.operands[-1])
        case _:
            found = [event for part in operands_of(form) for event in last_events(part)]
            return tuple(dict.fromkeys(found))


def single_event(
    form: NormalForm,
) -> tuple[tuple[lp.Event, ...], tuple[Clause, ...], frozenset[str]]:
    """The events that a form of one event can be, its conditions across events, and the labels that
    it may bind."""
    match form:
        case lp.Event():
            return (form,), (), frozenset()
        case lp.Scope():
            events, clauses, own = single_event(form.operand)
            return events, clauses, own.union(form.labels)
        case lp.Correlated():
            events, clauses, own = single_event(form.operand)
            return events, (*clauses, *form.clauses), own.union(form.own)
        case lp.Disjunction() if all(isinstance(o, lp.Event) for o in form.operands):
            return tuple(o for o in form.operands if isinstance(o, lp.Event)), (), frozenset()
        case _:
            reason = "an absence at one end is of a pattern with conditions or neighbours"
            raise NotFlatError(reason, form)
