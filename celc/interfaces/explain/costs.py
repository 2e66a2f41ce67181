"""What a query of CEL costs, in words: an event, a match, and the memory, by the plan of the query.

Long: a case for each way to run a query, three times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from celc_runtime.plan.strategy import All, InRuns, Latest, United

from celc.core.formula import Query, Window, WindowUnit
from celc.core.verdict import counted, listed
from celc.driver.pipeline import Stages
from celc.normal import normal_form as lp
from celc.normal.divide import Roles, interleaves
from celc.normal.normal_form import NormalForm
from celc.normal.show import show_size
from celc.normal.traversal import operands_of
from celc.plan.adjoining.spots import AdjoiningRuns
from celc.plan.concerns import concerns_of
from celc.plan.courses import course_of
from celc.plan.deadlines import deadlines_of
from celc.plan.growth import growth_of
from celc.plan.program import Program
from celc.plan.straight_line.piles import PilePlan
from celc.plan.strategy import (
    BranchFree,
    ByDefinition,
    Checked,
    Counted,
    EarliestInWindow,
    InWindow,
    InWorlds,
    Keyed,
    Listing,
    LongestRuns,
    StraightLine,
    UnionLists,
)

_POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

ENTRY = 32
"""Bytes of an entry: a row of four numbers (`celc_runtime.engine.arena.nodes`)."""


def ties_of(update: Keyed) -> str:
    """The equalities whose sides are keys, as they are written."""
    return listed(tie.text for tie in update.keys.ties)


class Cost:
    """The costs of one query, by its plan."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._program: Program = stages.program
        self._query = stages.query

    # --- of an event

    def event(self) -> str:
        parts = [*self._classified(), *self._updated()]
        text = ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 else parts[0]
        return f"{text}{self._at_once()}{self._for_each()}{self._of_readings()}"

    def _classified(self) -> Iterator[str]:
        yield "1 look-up of its type"
        count = comparisons(self._program)
        if count:
            yield f"up to {counted(count, 'comparison')} of its own columns"

    def _updated(self) -> Iterator[str]:
        program = self._program
        match program.listing:
            case LongestRuns(run=AdjoiningRuns() as runs):
                if runs.clauses:
                    yield f"{counted(len(runs.clauses), 'comparison')} with the event before"
                yield f"up to {counted(len(runs.steps), 'step')} from the event before"
                return
            case LongestRuns(checks=None):
                return
            case LongestRuns():
                yield "1 comparison with the event before"
                return
            case InWorlds():
                return
            case _:
                pass
        match program.update:
            case BranchFree(piles=piles) | StraightLine(piles=piles):
                yield from _written(piles)
            case Keyed(piles=piles) as update:
                yield f"up to {counted(key_lookups(program, update), 'look-up')} by key"
                yield from _written(piles)
            case UnionLists() if program.tables.as_met:
                yield "1 look-up for each different state that matches have reached"
            case UnionLists():
                yield f"up to {counted(table_lookups(program), 'look-up')} in the automaton's table"
            case _:
                assert_never(program.update)
        if isinstance(program.listing, Counted):
            yield "as many additions for each total"

    def _at_once(self) -> str:
        update = self._program.update
        if isinstance(update, StraightLine) and update.bounds is not None and update.bounds.takes:
            return ", and 1 comparison with each match that has begun and that it can end"
        if isinstance(self._program.listing, InWorlds):
            return "; the orders cost more (next line)"
        return ", however many matches have begun"

    def _for_each(self) -> str:
        parameters = self._query.parameters
        if parameters is None:
            return ""
        listing = self._program.listing
        sees_all = isinstance(listing, InWindow | EarliestInWindow) and listing.all_events
        if course_of(self._program) is not None:
            return f"; all this for each row of {parameters.name} that is followed at the event"
        concerns = concerns_of(self._program, sees_all_events=sees_all)
        if concerns.of_types is None:
            return f"; all this for every row of {parameters.name}"
        return f"; all this for each row of {parameters.name} that an index finds for the event"

    def _of_readings(self) -> str:
        reads = self._query.reads
        return (
            f"; besides what {listed(reads)} cost{'' if len(reads) > 1 else 's'}" if reads else ""
        )

    # --- of a match

    def match(self) -> str:
        program = self._program
        match program.listing:
            case All() | InRuns() | Latest():
                steps = f"no search: 1 step for each of its events{self._passed_over()}"
                return f"{steps}{self._starts() or self._many()}"
            case EarliestInWindow():
                return f"no search: 1 step for each event {self._span()}, once for each last event"
            case InWindow():
                return f"1 look-up for each event {self._span()}, once for each last event"
            case United():
                return "none is listed: 1 step for each event of some match, for each last event"
            case Counted():
                return "none is listed: counts and sums are added as the events are read"
            case LongestRuns(run=AdjoiningRuns(), checks=checks):
                asked = 0 if checks is None else len(checks.events_before + checks.parts_before)
                before = f", and {counted(asked, 'look-up')} of events before it" if asked else ""
                return f"no search: 2 steps for each of its events{before}"
            case LongestRuns(checks=checks):
                asked = 0 if checks is None else _on_whole(checks)
                more = f", then {counted(asked, 'condition')} on the whole" if asked else ""
                return f"no search: 1 step for each of its events{more}"
            case Checked(unites=True):
                return (
                    "none is listed: up to 1 step for each two events of its matches, or for an "
                    "event and each of the numbers that conditions ask for, for each last event"
                )
            case Checked() as checks:
                return f"{self._searched(checks)}{self._collected(checks)}{self._waits()}"
            case ByDefinition(form=form):
                growth = growth_of(form, self._query)
                return f"a search in plain Python, whose time {growth}{self._waits()}"
            case InWorlds():
                return (
                    "a search through the orders of events that overlap in time: their number can "
                    "double with each such event"
                )
            case _:
                assert_never(program.listing)

    def _passed_over(self) -> str:
        update = self._program.update
        if not isinstance(update, Keyed) or self._query.window is None:
            return ""
        several = len({key for key in update.keys.keys if key}) > 1
        return ", and over entries that have left the window" if several else ""

    def _many(self) -> str:
        """How many matches can end at one event, if nothing chooses among them."""
        query = self._query
        if query.strategy != "ALL" or query.limit is not None or query.rate is not None:
            return ""
        power = ends_at_one(self._stages.normal_form)
        if power is None:
            return f"; the number of matches can double with each event {self._span()}"
        if power <= 0:
            return ""
        if power == 1:
            return f"; up to 1 match for each earlier event {self._span()}"
        times = f"n{str(power).translate(_POWERS)}"
        events = f"the number of events {self._span()}"
        return f"; up to {times} matches with one last event, where n is {events}"

    def _starts(self) -> str:
        chosen = self._program.per_start
        return (
            "" if chosen is None else f"; of those with one first event SELECT {chosen} keeps one"
        )

    def _span(self) -> str:
        """The events that a search may look at, as `of the last 30 MINUTES`."""
        window, keys = self._query.window, self._query.partition_by
        if window is None:
            return f"so far of the same {_columns(self._query)}" if keys else "so far"
        of_part = f" and the same {_columns(self._query)}" if keys else ""
        return f"of the last {_size(window)}{of_part}"

    def _searched(self, checks: Checked) -> str:
        rest = self._stages.division.rest
        assert isinstance(rest, Roles)
        power = chosen_events(rest.flat.form)
        update = self._program.update
        with_key = f" that has {ties_of(update)}" if isinstance(update, Keyed) else ""
        asks = _tests(checks)
        if power is not None:
            power -= 1  # the last event is there already
        span = self._span()
        if power is None:
            growth = "can double with each event"
            if checks.is_brief:
                growth = "grows with a power of the number of events"
            return (
                f"for each possible last event a search whose time {growth} {span}: {asks} a step"
            )
        if not power:
            return f"for each candidate {asks}"
        if power == 1:
            emptied = not isinstance(update, UnionLists) and update.piles.most_removals
            waits = " that still waits" if emptied else ""
            events = f"each earlier event {span}{with_key}{waits}"
            return f"for each possible last event up to {asks} with {events}"
        times = f"n{str(power).translate(_POWERS)}"
        events = f"the number of earlier events {span}{with_key}"
        return f"for each possible last event up to {times} times {asks}, where n is {events}"

    def _collected(self, checks: Checked) -> str:
        if self._program.per_start is not None:
            return self._starts()
        if checks.selector and not checks.in_order:
            return "; matches with one last event are compared with each other"
        if checks.distinct:
            return "; matches with one last event are collected, and equal rows come once"
        return ""

    def _waits(self) -> str:
        found = deadlines_of(self._program.listing)
        if not found:
            return ""
        lengths = listed(
            f"{_size(one.length)} after its {'start' if one.from_start else 'end'}" for one in found
        )
        # Another branch of an OR can be known earlier.
        most = "at most " if _has_branches(self._stages.normal_form) else ""
        return f"; a match is known {most}{lengths}"

    # --- memory

    def kept(self) -> str:
        query, listing = self._query, self._program.listing
        per = ""
        if query.partition_by and not interleaves(query):
            columns = _columns(query)
            per = f"; in a table for one {columns} at a time, on a stream for all of them"
        if isinstance(listing, ByDefinition) and listing.sees_all:
            return f"all events that the query asks for, to the end of the input{per}"
        until = self._until()
        match listing:
            case LongestRuns(run=run):
                runs_there = "runs that are" if isinstance(run, AdjoiningRuns) else "run that is"
                return f"the events of the {runs_there} open{per}"
            case Counted():
                if query.window is None:
                    return (
                        f"a count, and a sum or so for each total, for each state; no events{per}"
                    )
                return f"counts and sums of the events {self._span()}, 40 bytes and more each{per}"
            case ByDefinition() | InWorlds():
                return f"the events that can be in a match, {until}{per}"
            case _:
                pass
        update = self._program.update
        alone = not isinstance(update, UnionLists) and not update.piles.piles
        if alone:
            # A match is one event, so no partial match is open.
            return f"{self._around(listing)}{per}"
        many = 1
        if not isinstance(update, UnionLists):
            many = max(1, update.piles.nodes_per_event)
        entries = f"up to {many} entries" if many > 1 else "1 entry"
        what = f"{entries} of {ENTRY} bytes for each event that can be in a match"
        return f"{what}, and its columns that are shown or compared, {until}{per}"

    def _until(self) -> str:
        window, listing = self._query.window, self._program.listing
        if window is None:
            return "to the end of the input"
        times = self._query.uncertain
        if times is not None:
            return f"for {_size(window)} and the widest [{times.low.name}, {times.high.name}]"
        longer = [one.length for one in deadlines_of(listing) if not one.from_start]
        if isinstance(listing, Checked):
            longer += [*(one.length for one in listing.events_before)]
            longer += [*(one.length for one in listing.parts_before)]
        more = listed(map(_size, longer))
        return f"for {_size(window)}" + (
            f", and {more} more for what must be absent" if more else ""
        )

    def _around(self, listing: Listing) -> str:
        """What is kept where each match is one event: what absences around it ask for."""
        if not isinstance(listing, Checked):
            return "nothing: a match is one event"
        found = [
            f"each event that may be a match, until {_size(one.length)} have passed"
            for one in deadlines_of(listing)
        ]
        lengths = [one.length for one in listing.events_before]
        lengths += [one.length for one in listing.parts_before]
        found += [f"the events of the last {_size(length)}" for length in lengths]
        return listed(found) or "nothing: a match is one event"


def _size(window: Window) -> str:
    """`3 EVENTS`, `30 MINUTES`, `3 of value`."""
    if window.unit is WindowUnit.VALUE and window.attribute is not None:
        return f"{show_size(window)} of {window.attribute.name}"
    return show_size(window)


def comparisons(program: Program) -> int:
    """The most comparisons that an event's own columns need."""
    return max(
        (
            sum(len(clause.predicates) for group in of_type.groups for clause in group)
            for of_type in program.alphabet.types
        ),
        default=0,
    )


def table_lookups(program: Program) -> int:
    """The most look-ups of an event in the table of the automaton: one for each state from which it
    goes on."""
    tables = program.tables
    kept = 0 if tables.skips_are_identities else tables.states - 1
    return kept + max(sum(len(step.sources) for step in row) for row in tables.steps)


def key_lookups(program: Program, update: Keyed) -> int:
    """The most look-ups of an event in tables with a row for each value of a key."""
    keys, piles, kinds = update.keys, update.piles.piles, program.tables.kinds
    most = 0
    for symbol, writes in enumerate(update.piles.writes):
        found: set[object] = {one.terms for one in keys.removals if symbol in one.symbols}
        for write in writes:
            asked = (*write.reads, *([] if write.pile is None else [write.pile]))
            for key in filter(None, (keys.key(piles[pile].target) for pile in asked)):
                marks = kinds[write.step.kind].marks
                found.add((key, tuple(keys.ties[tie].of(marks) for tie in key)))
        most = max(most, len(found))
    return most


def _written(piles: PilePlan) -> Iterator[str]:
    if piles.nodes_per_event:
        yield f"up to {counted(piles.nodes_per_event, 'new entry', 'new entries')} of {ENTRY} bytes"


def _columns(query: Query) -> str:
    """The partition keys; that of FOR EACH is a row of the parameter set."""
    rows = set() if query.parameters is None else {query.parameters.number}
    return ", ".join(
        f"row of {query.parameters.name}" if str(key) in rows and query.parameters else str(key)
        for key in query.partition_by
    )


def _on_whole(checks: Checked) -> int:
    return sum(clause.when == "complete" for clause in checks.clauses)


def _tests(checks: Checked) -> str:
    """What a try compares."""
    count = len(checks.clauses) + len(checks.windows) + len(checks.first)
    absent = len(checks.absent) + len(checks.absent_parts)
    absent += len(checks.events_before) + len(checks.parts_before) + len(checks.after)
    parts = [counted(count, "comparison")] if count or not absent else []
    parts += [f"{counted(absent, 'look-up')} of events that must be absent"] if absent else []
    return " and ".join(parts)


def chosen_events(form: NormalForm) -> int | None:
    """How many events of a match are chosen one by one; None: there is no limit. A neighbour (`:`)
    is not chosen."""
    parts: tuple[NormalForm, ...] = operands_of(form)
    match form:
        case lp.Event():
            return 1
        case lp.Absence():
            parts = (form.left, form.right)
        case lp.Unless():
            parts = (form.left,)
        case lp.AbsenceBefore() | lp.AbsenceAfter():
            parts = (form.operand,)
        case lp.ThenFirst():
            parts = (form.left, form.chosen)
        case _:
            pass
    powers = [power for power in map(chosen_events, parts) if power is not None]
    if len(powers) < len(parts):
        return None
    match form:
        case lp.Disjunction() | lp.Conjunction():
            return max(powers, default=0)
        case lp.Iteration(contiguous=True) if powers == [1]:
            return 2  # where the run begins, and where it ends
        case lp.Iteration():
            return None if form.most is None else powers[0] * form.most
        case lp.Sequence():
            return sum(powers) - sum(form.contiguous)
        case _:
            return sum(powers)


def _has_branches(form: NormalForm) -> bool:
    """Whether a match is one of a branch, with absences of its own."""
    if isinstance(form, lp.Disjunction | lp.AbsenceAfter):
        return isinstance(form, lp.Disjunction)
    inner = operands_of(form)
    return len(inner) == 1 and _has_branches(inner[0])


def ends_at_one(form: NormalForm) -> int | None:
    """The power of the number of events to which matches with one last event can grow; None: there
    is no limit."""
    if isinstance(form, lp.ThenFirst):
        # What comes before the end chooses it.
        return chosen_events(form.left)
    inner = operands_of(form)
    if len(inner) == 1 and not isinstance(form, lp.Iteration):
        return ends_at_one(inner[0])
    power = chosen_events(form)
    return None if power is None else power - 1
