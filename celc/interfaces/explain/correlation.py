"""Lines of `celc explain`: how conditions across events are decided.

Keys decide some of them, others are decided while matches are listed, or by definition.
"""

from collections.abc import Iterable

from celc.core.formula import Window
from celc.normal.flat_form import EventAfter, PartAfter, RoleClause, When
from celc.normal.normal_form import Event, NormalForm
from celc.normal.show import show_clause, show_length, show_window
from celc.normal.traversal import events_of
from celc.plan.adjoining.spots import AdjoiningRuns
from celc.plan.deadlines import deadlines_of
from celc.plan.keys import KeyPlan, named_term
from celc.plan.program import Program
from celc.plan.strategy import ByDefinition, Checked, Keyed, LongestRuns

_WHEN: dict[When, str] = {
    "pairs": "when the events it compares are there",
    "neighbours": "when the position before it is there",
    "earlier": "by each position before it",
    "witness": "by one position before it",
    "complete": "when the match is complete",
}
"""When a condition is decided while a match is listed from its end back."""


def across_lines(program: Program) -> list[str]:
    """A line for each way in which conditions across events are decided."""
    lines = _key_lines(program.update.keys) if isinstance(program.update, Keyed) else []
    match program.listing:
        case ByDefinition():
            lines.append(
                "conditions across events: by definition, where the tables find that a match can "
                "end"
            )
        case Checked() as checks:
            lines += _check_lines(checks)
        case LongestRuns(run=AdjoiningRuns() as runs, checks=checks):
            shown = [f"  {show_clause(clause.written)}" for clause in runs.clauses]
            between = "conditions that are decided between two neighbours:"
            lines += [between, *shown] if shown else []
            lines += _check_lines(checks) if checks is not None and checks.asks else []
        case LongestRuns(checks=Checked() as checks):
            lines += _check_lines(checks)
    return [*lines, *deadline_lines(program)]


def _key_lines(plan: KeyPlan) -> list[str]:
    """The states whose partial matches are looked up by a key, and the absences that use one."""
    lines = ["partial matches are kept apart by key:"]
    for number, tie in enumerate(plan.ties):
        states = [str(state) for state, key in enumerate(plan.keys) if number in key]
        lines.append(f"  {tie.text}: state {', '.join(states)}")
    for removal in plan.removals:
        key = ", ".join(named_term(term)[0] for term in removal.terms)
        lines.append(f"  an absent event takes away those of state {removal.state} with its {key}")
    return lines


def clause_line(clause: RoleClause) -> str:
    """A condition, and when it is decided."""
    return f"{show_clause(clause.written)}: {_WHEN[clause.when]}"


def deadline_lines(program: Program) -> list[str]:
    """A line for each deadline of matches; none where a match is decided at its end."""
    lines = []
    for deadline in deadlines_of(program.listing):
        length, counted = show_length(deadline.length), "start" if deadline.from_start else "end"
        lines.append(
            f"matches are decided when the deadline {length} of their {counted} has passed"
        )
    if lines:
        lines.append(
            "a deadline that is a time on the first order column is passed by the clock, the "
            "greatest such time in all events; on a stream by the watermark"
        )
    return lines


def _events_after(after: EventAfter | PartAfter) -> Iterable[Event]:
    match after:
        case EventAfter(events=events):
            return events
        case PartAfter(form=form):
            return events_of(form)


def _names(form: NormalForm, window: Window | None) -> str:
    """The events of a part, and the window around it."""
    names = ", ".join(dict.fromkeys(event.name for event in events_of(form)))
    return names if window is None else f"{show_window(window)} of {names}"


def _check_lines(checks: Checked) -> list[str]:
    """What is decided while matches are listed, and what shortens the search."""
    lines = []
    if checks.asks:
        lines.append("conditions that are decided while matches are listed, from their end back:")
    lines += [f"  {clause_line(clause)}" for clause in checks.clauses]
    for absent in checks.absent:
        names = " or ".join(dict.fromkeys(event.name for event in absent.events))
        if absent.part is not None:
            names = _names(absent.part.form, absent.part.window)
        lines.append(f"  no {names} inside: when the match is complete")
    for first in checks.first:
        names = " or ".join(dict.fromkeys(event.name for event in first.events))
        key = ", ".join(named_term(term)[0] for term in first.terms)
        lines.append(f"  no {names} with the same {key} before it in the stream: when it is there")
    for of_part in checks.windows:
        lines.append(f"  {show_window(of_part.window)}: when an event before its last one is there")
    for part in checks.absent_parts:
        names = _names(part.form, part.window)
        lines.append(f"  no {names} inside: when both events around it are there")
    for before in checks.events_before:
        names = " or ".join(dict.fromkeys(event.name for event in before.events))
        length = show_length(before.length)
        lines.append(f"  no {names} before it {length}: when the match is complete")
    for before_it in checks.parts_before:
        names = ", ".join(dict.fromkeys(event.name for event in events_of(before_it.form)))
        length = show_length(before_it.length)
        lines.append(f"  no {names} before it {length}: when the event behind it is there")
    for after in checks.after:
        names = ", ".join(dict.fromkeys(event.name for event in _events_after(after)))
        length = show_length(after.length)
        counted = " from its start" if after.from_start else ""
        lines.append(f"  no {names} after it {length}{counted}: when later events are known")
    if checks.sum_bounds:
        lines.append("partial matches from which no sum of these can be reached are left out")
    if checks.variety_bounds:
        lines.append("partial matches that cannot have so many different values are left out")
    if checks.greatest:
        lines.append("of matches that further events leave TRUE, only the greatest are listed")
    if checks.rounds:
        lines.append("the sets of their events that have enough different values are counted")
    if checks.fails_alike:
        lines.append("an event behind which no match was found is not tried again at this end")
    if checks.distinct and not checks.in_order:
        lines.append("matches that look alike are collected at each end, and reported once")
    if checks.in_order:
        lines.append("LAST takes the latest events first, and the first match that is found")
    elif checks.selector:
        lines.append(f"{checks.selector} chooses among the matches that end at one event")
    return lines
