"""Constructors of LP-normal forms that simplify: a part without matches can leave the whole without
matches."""

from dataclasses import replace

from celc.core.formula import Clause, DataType, Window
from celc.diagnostics.source import Span
from celc.normal import normal_form as lp
from celc.normal.normal_form import Disjunction, Iteration, NormalForm, Sequence
from celc.normal.traversal import open_labels


def is_empty(form: NormalForm) -> bool:
    """Whether a form is the one without matches."""
    return isinstance(form, Disjunction) and not form.operands


def disjunction(operands: tuple[NormalForm, ...], span: Span) -> NormalForm:
    """OR without empty operands, repetitions and nesting."""
    flat: dict[NormalForm, None] = {}
    for operand in operands:
        parts = operand.operands if isinstance(operand, Disjunction) else (operand,)
        flat.update(dict.fromkeys(parts))
    if len(flat) == 1:
        return next(iter(flat))
    return Disjunction(tuple(flat), span)


def sequence(
    operands: tuple[NormalForm, ...], contiguous: tuple[bool, ...], span: Span
) -> NormalForm:
    """`;` and `:`; empty where an operand is."""
    if any(map(is_empty, operands)):
        return Disjunction((), span)
    return Sequence(operands, contiguous, span)


def iteration(
    operand: NormalForm, contiguous: bool, span: Span, least: int = 1, most: int | None = None
) -> NormalForm:
    """`+`, `:+`, `{least,most}` and `:{…}`. One round is the operand itself, and so is an empty
    operand."""
    if is_empty(operand) or most == 1:
        return operand
    return Iteration(operand, contiguous, span, None, least, most)


def rounds_of(form: Iteration, operand: NormalForm) -> NormalForm:
    """As many rounds of another operand; empty where that is empty."""
    return Disjunction((), form.span) if is_empty(operand) else replace(form, operand=operand)


def rounds_but_one(form: Iteration) -> NormalForm | None:
    """The rounds of an iteration next to one of them; None: it has one round only."""
    least = max(1, form.least - 1)
    most = None if form.most is None else form.most - 1
    if most == 0:
        return None
    return form.operand if most == 1 else replace(form, least=least, most=most)


def conjunction(left: NormalForm, right: NormalForm, span: Span) -> NormalForm:
    """AND; empty where a side is."""
    if is_empty(left) or is_empty(right):
        return Disjunction((), span)
    # Both sides have one start and one end, so a window of one side is a window of both.
    if isinstance(left, lp.Within):
        return within(conjunction(left.operand, right, span), left.window, left.span)
    if isinstance(right, lp.Within):
        return within(conjunction(left, right.operand, span), right.window, right.span)
    # For the same reason nothing lies before one side if nothing lies before the other.
    if isinstance(left, lp.AbsenceBefore) and not left.sees:
        both = conjunction(left.operand, right, span)
        return absence_before(both, left.absent, left.length, left.span)
    if isinstance(right, lp.AbsenceBefore) and not right.sees:
        both = conjunction(left, right.operand, span)
        return absence_before(both, right.absent, right.length, right.span)
    return left if left == right else lp.Conjunction(left, right, span)


def all_placed(left: NormalForm, right: NormalForm, span: Span) -> NormalForm:
    """ALL; empty where a side is."""
    if is_empty(left) or is_empty(right):
        return Disjunction((), span)
    return lp.All(left, right, span)


def unless(
    left: NormalForm, right: NormalForm, span: Span, sees: tuple[str, ...] = ()
) -> NormalForm:
    """UNLESS; the left side alone where the right is empty."""
    if is_empty(left) or is_empty(right):
        return left
    return lp.Unless(left, right, span, sees)


def absence(
    left: NormalForm,
    middle: NormalForm,
    right: NormalForm,
    span: Span,
    sees: tuple[str, ...] = (),
) -> NormalForm:
    """`; ! ;`; a plain sequence where the middle is empty."""
    if is_empty(left) or is_empty(right):
        return Disjunction((), span)
    if is_empty(middle):
        return sequence((left, right), (False,), span)
    return lp.Absence(left, middle, right, span, sees)


def then_first(form: lp.ThenFirst) -> NormalForm:
    """A formula with FIRST; empty where its left side or its operand is, and without what must be
    absent where that is empty."""
    if is_empty(form.left) or is_empty(form.chosen):
        return Disjunction((), form.span)
    absent = None if form.absent is None or is_empty(form.absent) else form.absent
    gap = None if form.gap is None or is_empty(form.gap) else form.gap
    return replace(form, absent=absent, gap=gap)


def absence_before(
    operand: NormalForm,
    absent: NormalForm,
    length: Window,
    span: Span,
    sees: tuple[str, ...] = (),
) -> NormalForm:
    """`!absent FOR length ; operand`; the operand alone where what must be absent has no match."""
    if is_empty(operand) or is_empty(absent):
        return operand
    return lp.AbsenceBefore(operand, absent, length, span, sees)


def absence_after(
    operand: NormalForm,
    absent: NormalForm,
    length: Window,
    span: Span,
    sees: tuple[str, ...] = (),
    *,
    from_start: bool,
) -> NormalForm:
    """`operand ; !absent FOR length`. It stays even where nothing can match: the end of the length
    still decides when a match is known."""
    if is_empty(operand):
        return operand
    return lp.AbsenceAfter(operand, absent, length, from_start, span, sees)


def beside_absence(form: lp.AbsenceBefore | lp.AbsenceAfter, operand: NormalForm) -> NormalForm:
    """The same absence around another operand; empty where that is empty."""
    return operand if is_empty(operand) else replace(form, operand=operand)


def correlated(form: NormalForm, clause: Clause, own: frozenset[str], span: Span) -> NormalForm:
    """The matches of a form for which one more clause holds. Clauses of one FILTER stay
    together."""
    if is_empty(form):
        return form
    labels = tuple(sorted(own))
    if isinstance(form, lp.Correlated) and form.own == labels:
        return lp.Correlated(form.operand, (*form.clauses, clause), labels, span)
    return lp.Correlated(form, (clause,), labels, span)


def within(form: NormalForm, window: Window, span: Span) -> NormalForm:
    """The matches of a form that fit a window; the form itself where all fit."""
    if is_empty(form) or (is_one_event(form) and _is_finite(window)):
        return form
    return lp.Within(form, window, span)


def is_one_event(form: NormalForm) -> bool:
    """Whether each match of a form is one event, and asks for no other."""
    match form:
        case lp.Event():
            return True
        case Disjunction():
            return all(map(is_one_event, form.operands))
        case lp.Correlated() | lp.Scope() | lp.Relabel() | lp.Where() | lp.Within():
            return is_one_event(form.operand)
        case _:
            return False


def _is_finite(window: Window) -> bool:
    """Whether every single event has the distance 0 from itself. Infinity has not, nor has an event
    that lasts."""
    attribute = window.attribute
    if window.begin is not None:
        return False
    return attribute is None or attribute.type not in (DataType.FLOAT, DataType.DOUBLE)


def scope(form: NormalForm, labels: frozenset[str], span: Span) -> NormalForm:
    """A scope that binds labels; the form itself where no condition inside looks for one of
    them."""
    if not open_labels(form) & labels:
        return form
    return lp.Scope(form, tuple(sorted(labels)), span)


def selected(strategy: lp.Strategy, operand: NormalForm, span: Span) -> NormalForm:
    """A selector; empty where its operand is."""
    return operand if is_empty(operand) else lp.Selected(strategy, operand, span)
