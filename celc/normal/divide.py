"""LP-normal form → the work of the automaton, and the work of the listing of matches.

An automaton decides conditions on single events. A selector under WITHIN compares the matches of
one window, and a condition across events compares events of one match. Both are decided when the
matches that end at an event are listed. The automaton then finds at least all those matches.
"""

from dataclasses import replace
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.core.formula import DataType, PerEnd, Query
from celc.normal import normal_form as lp
from celc.normal.absent_forms import is_single_event
from celc.normal.constructors import is_empty, is_one_event
from celc.normal.flat_form import FlatForm, NotFlat
from celc.normal.flatten import flatten
from celc.normal.marks import UnmarkableError, marked_first, marked_last
from celc.normal.normal_form import SUPPORT, shown
from celc.normal.normalize import output_labels
from celc.normal.relax import relaxed
from celc.normal.rewrite import relabel
from celc.normal.traversal import forms_in, is_correlated, operands_of, with_operands


@frozen
class Exact:
    """The automaton finds exactly the matches of the query; nothing is left to check."""


@frozen
class Windowed:
    """The selector of SELECT, which compares the matches inside a window."""

    selected: lp.Selected


@frozen
class Roles:
    """Conditions between the events of a match, which have roles, and a selector above them."""

    flat: FlatForm
    selector: str  # NXT, LAST, MAX or NXT_OF_ENDS; empty where SELECT does not compare matches


@frozen
class Definitions:
    """The whole formula: only its definition decides its conditions across events."""

    form: lp.NormalForm
    sees_all: bool  # a nested selector compares matches over the whole stream, whatever the window
    why: NotFlat


Rest: TypeAlias = Exact | Windowed | Roles | Definitions
"""The work that is left to the listing."""


@frozen
class Division:
    """A query's work, divided."""

    found: lp.NormalForm  # the form that the automaton finds
    asked: lp.NormalForm
    """A form with all conditions on single events that the automaton or the listing needs."""
    rest: Rest


def interleaves(query: Query) -> bool:
    """Whether CONSUME BY ANY makes partitions be read in one common order."""
    return query.consume_by == "ANY" and bool(query.partition_by)


def divide(query: Query, form: lp.NormalForm) -> Division:
    """The division of a query's work between the automaton and the listing."""
    if query.uncertain is not None:
        return _divide_possible(query, form)
    if is_correlated(form) or query.lasting:
        return _divide_correlated(query, form)
    selected = _selector_in_window(query, form)
    return Division(form, form, Exact() if selected is None else Windowed(selected))


def _divide_possible(query: Query, form: lp.NormalForm) -> Division:
    """The division where time is uncertain. The automaton reads the events of a match in their
    order in a world, and so does the check of conditions between them."""
    if asks_for_worlds(form):
        why = NotFlat("whole worlds decide absences, ALL and windows of parts", query.formula.span)
        found = relaxed(form, absences=False)
        return Division(found, form, Definitions(form, sees_all=False, why=why))
    if not is_correlated(form):
        return Division(form, form, Exact())
    flat = flatten(form, query)
    if isinstance(flat, FlatForm) and not (flat.looks_outside or flat.windows):
        return Division(flat.form, flat.form, Roles(flat, ""))
    why = (
        flat
        if isinstance(flat, NotFlat)
        else NotFlat(
            "its events come in several orders where time is uncertain", query.formula.span
        )
    )
    return Division(relaxed(form), form, Definitions(form, sees_all=False, why=why))


def asks_for_worlds(form: lp.NormalForm) -> bool:
    """Whether the order of its events in a world does not tell whether they are a match."""
    return looks_between(form) or any(
        isinstance(part, lp.All | lp.Within) for part in forms_in(form)
    )


def looks_between(form: lp.NormalForm) -> bool:
    """Whether events can rule out a match that are not in it."""
    return any(isinstance(part, lp.Unless | lp.Absence) for part in forms_in(form))


def rules_out_alone(form: lp.NormalForm) -> bool:
    """Whether each event outside a match rules it out by itself, or not at all: what is absent is
    one event, and a match has one way to be one."""
    several = lp.Iteration | lp.Disjunction | lp.Conjunction | lp.All
    absent = [
        part.right if isinstance(part, lp.Unless) else part.middle
        for part in forms_in(form)
        if isinstance(part, lp.Unless | lp.Absence)
    ]
    return all(map(is_single_event, absent)) and not any(
        isinstance(part, several) for part in forms_in(form)
    )


def _divide_correlated(query: Query, form: lp.NormalForm) -> Division:
    """Roles where the events of a match decide the conditions, else definitions."""
    if query.per_start is not None and query.compares_ends and not is_empty(form):
        form = _without_first(form)
    nests = nests_selectors(form, top=query.strategy not in ("ALL", "ANY"))
    roles = _roles(query, form)
    if isinstance(roles, NotFlat):
        consumes = query.consume_by != "NONE"
        selectors = not (consumes or query.lasting)
        found = relaxed(form, selectors=selectors, absences=not query.lasting)
        sees_all = nests or (query.lasting and any(map(_looks_far_back, forms_in(form))))
        return Division(found, form, Definitions(form, sees_all, roles))
    found = roles.flat.form
    asked = roles.flat.events_outside
    return Division(found, lp.Disjunction((found, *asked), form.span) if asked else found, roles)


def compares_late(query: Query, flat: FlatForm) -> bool:
    """Whether matches with one end belong together, but are decided at different times."""
    return joins_ends(query) and any(one.from_start for one in flat.after)


def joins_ends(query: Query) -> bool:
    """Whether the rows of matches with one end depend on all of these matches. They do where
    matches are compared, counted or united. FIRST and LONGEST compare those with one start, and
    LIMIT comes after that."""
    if query.per_start is not None:
        return False
    is_one_row = query.collapsed or (
        query.total is not None and isinstance(query.total.per, PerEnd)
    )
    return is_one_row or query.strategy != "ALL" or query.limit is not None


def _roles(query: Query, form: lp.NormalForm) -> Roles | NotFlat:
    """The form with roles, and the selector that is left to the listing; NotFlat where roles do not
    decide."""
    if query.lasting and query.simultaneous:
        return _roles_in_instants(query, form)
    if query.lasting and any(map(_asks_for_the_end_of_a_part, forms_in(form))):
        return NotFlat(
            "':' before a part of several events asks when the whole part ends", query.formula.span
        )
    roles = _with_roles(query, form)
    if isinstance(roles, NotFlat):
        return roles
    reason = _why_no_roles(query, form, roles.flat)
    return NotFlat(reason, query.formula.span) if reason else roles


def _roles_in_instants(query: Query, form: lp.NormalForm) -> Roles | NotFlat:
    """The form with roles for events that last, or NotFlat.

    Their automaton tells instants apart, so that all matches of an end come together. Roles work
    only in matches that take one event after another.
    """
    plain = in_one_order(form, selects=query.selects)
    if plain is None:
        return NotFlat(
            "events that last can be in one match while they overlap", query.formula.span
        )
    roles = _roles(replace(query, simultaneous=False), plain)
    if isinstance(roles, NotFlat):
        return roles
    try:
        flat = _marked_at_events(roles.flat.form)
    except UnmarkableError:
        return NotFlat("no one part holds the event at which a window begins", query.formula.span)
    if not all(map(_tells_events, forms_in(flat))):
        # Two that look alike can start at different times, which the automaton does not tell.
        return NotFlat("no label shows all events of a match", query.formula.span)
    return replace(roles, flat=replace(roles.flat, form=_in_order(flat, simultaneous=True)))


def _marked_at_events(form: lp.NormalForm) -> lp.NormalForm:
    """The form with the marks of ends at events. Where events are read to the end of their instant,
    the ends of a match need not be events of it. Raises UnmarkableError."""
    form = with_operands(form, _marked_at_events)
    if not isinstance(form, lp.MarkedEnds):
        return form
    found = form.operand
    for mark in form.first:
        found = marked_first(found, mark)
    for mark in form.last:
        found = marked_last(found, mark)
    return found


def _tells_events(form: lp.NormalForm) -> bool:
    """Whether a part shows its events, which stand in no part that hides them."""
    if isinstance(form, lp.Event):
        return bool(shown(frozenset(form.labels)) - {SUPPORT})
    return not isinstance(form, lp.Relabel | lp.MarkedEnds)


def in_one_order(form: lp.NormalForm, *, selects: bool = False) -> lp.NormalForm | None:
    """The form for events in one order; None where a match can take two events of an instant.
    `selects`: SELECT has a selector, or FIRST or LONGEST, which is the outermost one. STRICT asks
    for events without any in between, also in one instant."""
    chosen = form.operand if selects and isinstance(form, lp.Relabel) else None
    if isinstance(chosen, lp.Selected) and chosen.strategy == "STRICT":
        return None
    parts = (part for part in forms_in(form) if part is not chosen)
    if not all(isinstance(part, _ONE_AFTER_ANOTHER) for part in parts):
        return None
    return _in_order(form, simultaneous=False)


_ONE_AFTER_ANOTHER = (
    *(lp.Event, lp.Sequence, lp.Iteration, lp.Disjunction),
    *(lp.Where, lp.Relabel, lp.Correlated, lp.Scope, lp.Within),
)


def _in_order(form: lp.NormalForm, *, simultaneous: bool) -> lp.NormalForm:
    """The form whose events are read one by one, or to the end of their instants."""
    if isinstance(form, lp.Event):
        return replace(form, simultaneous=simultaneous)
    return with_operands(form, lambda part: _in_order(part, simultaneous=simultaneous))


def _asks_for_the_end_of_a_part(form: lp.NormalForm) -> bool:
    """Whether `:` or `:+` of events that last asks that nothing ends before a part of several
    events does. Of one event its place in the order of ends tells it."""
    match form:
        case lp.Sequence(operands=operands, contiguous=gaps):
            pairs = zip(operands[1:], gaps, strict=True)
            return any(gap and not is_single_event(part) for part, gap in pairs)
        case lp.Iteration(operand=operand, contiguous=True):
            return not is_single_event(operand)
        case _:
            return False


def _why_no_roles(query: Query, form: lp.NormalForm, flat: FlatForm) -> str:
    """Why clauses around the formula keep its roles from deciding the conditions; empty where
    nothing does."""
    consumes = query.consume_by != "NONE"
    if flat.looks_outside and interleaves(query):
        return "with CONSUME BY ANY, events of other partitions lie between those of a match"
    if consumes and (flat.events_before or flat.parts_before):
        return "CONSUME BY forgets the events before a match, which an absence asks for"
    if consumes and nests_selectors(form, top=query.strategy not in ("ALL", "ANY")):
        return "a selector inside sees the stream as if it began anew after CONSUME BY"
    if compares_late(query, flat):
        return "matches with one end are decided one after another, as an absence behind them ends"
    return ""


def _with_roles(query: Query, form: lp.NormalForm) -> Roles | NotFlat:
    by_start = query.per_start is not None and query.compares_ends
    if is_empty(form) or (query.strategy not in ("NXT", "LAST", "MAX") and not by_start):
        flat = flatten(form, query)
        return flat if isinstance(flat, NotFlat) else Roles(flat, "")
    assert isinstance(form, lp.Relabel)
    assert isinstance(form.operand, lp.Selected)
    flat = flatten(form.operand.operand, query)
    if isinstance(flat, NotFlat):
        return flat
    # Labels that are projected away count for the supports that are compared.
    shown = relabel(flat.form, lp.KeepSupport(output_labels(query)))
    return Roles(replace(flat, form=shown), form.operand.strategy)


def _without_first(form: lp.NormalForm) -> lp.NormalForm:
    """The form with SELECT FIRST's choice only among the matches of each end. With conditions
    across events the least end is found in the order of ends, not by an automaton."""
    assert isinstance(form, lp.Relabel)
    assert isinstance(form.operand, lp.Selected)
    chosen = lp.Selected("NXT_OF_ENDS", form.operand.operand, form.operand.span)
    return replace(form, operand=chosen)


def _looks_far_back(form: lp.NormalForm) -> bool:
    """Whether an absence before a match of events that last depends on events before its length: on
    those of several, only the last one ends inside. Sums of floating numbers are rounded."""
    if not isinstance(form, lp.AbsenceBefore):
        return False
    begin = form.length.begin
    is_real = begin is not None and begin.type in (DataType.FLOAT, DataType.DOUBLE)
    return is_real or not is_one_event(form.absent)


def nests_selectors(form: lp.NormalForm, *, top: bool) -> bool:
    """Whether a selector other than SELECT's (`top`) compares matches, over the whole stream."""
    match form:
        case lp.Relabel():
            return nests_selectors(form.operand, top=top)
        case lp.Selected() if form.strategy not in lp.INSIDE_MATCHES and not top:
            return True
        case _:
            return any(nests_selectors(part, top=False) for part in operands_of(form))


def _selector_in_window(query: Query, form: lp.NormalForm) -> lp.Selected | None:
    """The selector of SELECT where it compares matches in a window; the formula is its operand."""
    if query.window is None or query.strategy not in ("NXT", "LAST", "MAX"):
        return None
    if isinstance(form, lp.Relabel) and isinstance(form.operand, lp.Selected):
        return form.operand
    return None  # a formula without matches
