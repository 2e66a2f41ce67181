"""The invariants of LP-normal forms: as normalisation makes them, flat, and without correlation."""

from itertools import pairwise
from typing import assert_never

from celc.core import formula as core
from celc.core.fold import fold_predicate
from celc.core.terms import labels_named, looks_back, nodes_named_in
from celc.diagnostics.deadline import look
from celc.normal import normal_form as lp
from celc.normal.divide import Definitions, Division, Exact, Roles, Windowed
from celc.normal.flat_form import ABSENT, EventAfter, FlatForm, RoleClause, mark_of_round
from celc.normal.normal_form import EVENT, NormalForm
from celc.normal.rewrite import truth_of
from celc.normal.show import show_event, show_labels
from celc.normal.traversal import forms_in, labels_of, open_labels
from celc.verify.texts import GAPS
from celc.verify.violations import Violation, Violations

ON_EVENTS = "a condition on an event names nothing but the event"
OPEN = "no condition on an event is decided beforehand"
ATTRIBUTES = "an event has the attributes that its conditions name"
MARKS_SORTED = "the labels of an event are sorted, each once"
SIMPLIFIED = "an OR has no OR inside, and has two operands or is the form without matches"
NOTHING_INSIDE = "the form without matches stands alone"
FACTS_OPEN = "no fact is decided beforehand"
BOUND = "conditions across events find their labels in the scopes around them"
ROUNDS_COUNTED = "rounds are at least one, and two or more at most where there is a limit"
LETTERS_ONLY = "an automaton is built of conditions on single events"


def normal_form(form: NormalForm) -> Violations:
    """Conditions stand on their events; no part is left that can be decided or dropped.

    The alphabet relies on it: some events satisfy each condition, and some do not. The construction
    relies on the shape.
    """
    yield from _parts(form)
    for part in forms_in(form):
        if isinstance(part, lp.Disjunction) and (
            len(part.operands) == 1
            or any(isinstance(operand, lp.Disjunction) for operand in part.operands)
        ):
            yield Violation(SIMPLIFIED, f"one has {len(part.operands)} operands")
    for label in sorted(open_labels(form)):
        yield Violation(BOUND, f"not '{label}'")


def letter_form(form: NormalForm) -> Violations:
    """The invariants of a form of which an automaton is built. It need not be as simple as
    possible.

    The construction has no case for `Correlated`, `Scope`, `Within`, `AbsenceBefore` and
    `AbsenceAfter`.
    """
    yield from _parts(form)
    for part in forms_in(form):
        if isinstance(part, lp.Correlated | lp.Scope | lp.Within):
            yield Violation(LETTERS_ONLY, f"{type(part).__name__} is left")
        if isinstance(part, lp.AbsenceBefore | lp.AbsenceAfter):
            yield Violation(LETTERS_ONLY, f"{type(part).__name__} is left")


def _parts(form: NormalForm) -> Violations:
    # An absence of nothing at the end still sets the deadline of a match.
    absent = {id(part.absent) for part in forms_in(form) if isinstance(part, lp.AbsenceAfter)}
    for part in forms_in(form):
        look()
        match part:
            case lp.Event():
                yield from _event(part)
            case lp.Disjunction():
                if not part.operands and part is not form and id(part) not in absent:
                    yield Violation(NOTHING_INSIDE, "it is a part of another one")
            case lp.Sequence():
                if len(part.operands) != len(part.contiguous) + 1 or not part.contiguous:
                    yield Violation(GAPS, f"one has {len(part.operands)} operands")
            case lp.Iteration():
                most = part.least + 1 if part.most is None else part.most
                if not (1 <= part.least <= most and most >= 2):
                    yield Violation(ROUNDS_COUNTED, f"one has {part.least} to {part.most}")
            case lp.Where():
                truth = truth_of(part.fact, labels_of(part.operand))
                if truth is not None:
                    yield Violation(FACTS_OPEN, f"one is {truth}")
            case _:
                pass


def _event(event: lp.Event) -> Violations:
    text = show_event(event.type, event.clauses)
    if event.labels != tuple(sorted({*event.labels})):
        yield Violation(MARKS_SORTED, f"{text} carries {event.labels}")
    for clause in event.clauses:
        look()
        if not clause.predicates:
            yield Violation(OPEN, f"one of {text} is FALSE")
        for predicate in clause.predicates:
            if labels_named(predicate) - {EVENT}:
                yield Violation(ON_EVENTS, f"{text} names {sorted(labels_named(predicate))}")
            truth = fold_predicate(predicate)
            if truth is not None:
                yield Violation(OPEN, f"one of {text} is {truth}")
            for node in nodes_named_in(predicate):
                if isinstance(node, core.AttributeValue) and (
                    event.type.type_of(node.attribute) is None
                ):
                    yield Violation(ATTRIBUTES, f"{event.type.name} lacks '{node.attribute}'")


# --- flat forms -----------------------------------------------------------------------------------

ROLES_BOUND = "some event carries each role that a condition names"
ROUNDS_MARKED = "the first event of each round that a condition tells apart is marked"
ROLE_CHAINS = "a clause says for each of its roles which iterations are around it, outer ones first"
WHEN = "what is decided as soon as its events are there asks for nothing else"
NUMBERS_GONE = "iterations have no numbers when they are marked"


def flat_form(flat: FlatForm) -> Violations:
    """The form's events have the roles and marks that its clauses name; nothing is correlated.

    Listing relies on it: a clause about a role without events would never be asked.
    """
    yield from letter_form(flat.form)
    carried = labels_of(flat.form)
    for form in forms_in(flat.form):
        if isinstance(form, lp.Iteration) and form.number is not None:
            yield Violation(NUMBERS_GONE, f"one has number {form.number}")
    absent_clauses = [clause for absent in flat.absent for clause in absent.clauses]
    absent_clauses += [clause for before in flat.events_before for clause in before.clauses]
    events_after = [after for after in flat.after if isinstance(after, EventAfter)]
    absent_clauses += [clause for after in events_after for clause in after.clauses]
    for clause in (*flat.clauses, *absent_clauses):
        yield from _role_clause(clause, carried | {ABSENT})
    roles = [role for absent in flat.absent for role in (absent.first, absent.last)]
    roles += [one.role for one in flat.first]
    roles += [role for window in flat.windows for role in (window.first, window.last)]
    roles += [role for part in flat.absent_parts for role in (part.first, part.last)]
    roles += [event.first for event in flat.events_before]
    roles += [part.first for part in flat.parts_before]
    for role in roles:
        if role not in carried:
            yield Violation(ROLES_BOUND, f"not {show_labels((role,))}")


def _role_clause(clause: RoleClause, carried: frozenset[str]) -> Violations:
    for role in sorted({*clause.clause.labels} - carried):
        yield Violation(ROLES_BOUND, f"not {show_labels((role,))}")
    if len(clause.iterations) != len(clause.clause.labels):
        yield Violation(ROLE_CHAINS, f"it says so for {len(clause.iterations)} roles")
        return
    chains = sorted(clause.iterations, key=len)
    if any(longer[: len(shorter)] != shorter for shorter, longer in pairwise(chains)):
        yield Violation(ROLE_CHAINS, f"they are {clause.iterations}")
        return
    for mark in map(mark_of_round, sorted(clause.shared_iterations())):
        if mark not in carried:
            yield Violation(ROUNDS_MARKED, f"not {show_labels((mark,))}")
    predicates = clause.clause.predicates
    if clause.when == "pairs" and any(map(looks_back, predicates)):
        yield Violation(WHEN, "it looks back")


def division(found: Division) -> Violations:
    """The part for the automaton, and the roles, ask for single events only.

    The construction relies on it: a letter says all that a transition asks of an event.
    """
    yield from letter_form(found.found)
    match found.rest:
        case Roles(flat=flat):
            yield from flat_form(flat)
        case Exact() | Windowed() | Definitions():
            pass
        case _:
            assert_never(found.rest)
