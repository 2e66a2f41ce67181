"""Flat forms: forms without correlation whose events have *roles*, and clauses over roles.

A role says that an event is one of the events that a condition compares. It is a mark like a label,
but it is never shown. With roles, the marked events of a match decide its conditions: the clause
must be TRUE for every choice of an event of each role. It no longer matters where FILTER stood, and
which labels were visible there.

In an iteration, a clause compares the events of one round with each other and with events bound
outside. Where it names several labels of a round, the first event of each round has a mark as well,
and the clause says which of its roles must be of one round (`RoleClause`). A clause about one
position of a round and others outside needs no such mark: to hold in every round is to hold for
every position.

An absent formula has no events in the match. Where it is a single event, it is looked for among all
events in the match's range (`AbsentEvent`).
"""

import itertools
from collections.abc import Sequence
from typing import Literal, TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.formula import ROLE, Clause, Expression, Window
from celc.core.terms import looks_back, nodes_named_in, type_tested
from celc.diagnostics.source import Span
from celc.normal.normal_form import Event, NormalForm
from celc.normal.traversal import events_of

When: TypeAlias = Literal["pairs", "neighbours", "earlier", "witness", "complete"]


def when_decided(clause: Clause) -> When:
    """The moment at which a clause is decided."""
    nodes = [node for predicate in clause.predicates for node in nodes_named_in(predicate)]
    if any(isinstance(predicate, core.Quantified) for predicate in clause.predicates):
        return "complete"
    if any(isinstance(node, core.Aggregate) for node in nodes):
        return "complete"
    if not any(map(looks_back, clause.predicates)):
        return "pairs"
    return "neighbours" if len(clause.labels) == 1 else "complete"


@frozen
class RoleClause:
    """A clause whose labels are roles.

    A match is put together from its last event backwards. `when` says at which moment the clause is
    decided:

    * `pairs`: as soon as each of its roles has an event, for every such choice;
    * `neighbours`: for each event of its one role, when the event of that role before it is there
      (PREV);
    * `earlier`: for each event of its one role, when any earlier event of the role is there, for
      which PREV stands here;
    * `witness`: for each event of its one role but the first, when some earlier event satisfies it,
      for which PREV stands; of the events that wait, only the most demanding one is remembered;
    * `complete`: when the match is complete (functions of a label's set).

    Which events are compared: a scope lies within an iteration or around it. So the iterations
    around one role are the first iterations around another role, or the other way round. In a round
    of the innermost iteration around both, a choice takes both events from that round. Where no
    iteration is around both, an event that is bound outside meets the events of every round. So
    each two events of a choice must be of one round of the innermost iteration around both
    (`round_of`).
    """

    clause: Clause
    written: Clause
    iterations: tuple[tuple[int, ...], ...]
    """For each role of the clause, the numbers of the iterations around it, the outermost first."""
    when: When = "pairs"

    @property
    def round_mark(self) -> str | None:
        """The mark of the innermost rounds around all roles; None: no iteration is around them
        all."""
        around = _common(self.iterations)
        return mark_of_round(around[-1]) if around else None

    def round_of(self, *places: int) -> str | None:
        """The mark of the innermost rounds around the roles at some places of the clause."""
        around = _common([self.iterations[place] for place in places])
        return mark_of_round(around[-1]) if around else None

    def shared_iterations(self) -> frozenset[int]:
        """The iterations whose rounds must be distinguished."""
        if self.when == "pairs":
            pairs = itertools.combinations(self.iterations, 2)
            return frozenset(around[-1] for around in map(_common, pairs) if around)
        around = _common(self.iterations)
        return frozenset(around[-1:])


@frozen
class KeyedPart:
    """A part that in each of its matches has events of one key only."""

    form: NormalForm  # as in `AbsentPart`
    window: Window | None  # the window around it; None: there is none
    terms: tuple[Expression, ...]  # the terms of the key


@frozen
class AbsentEvent:
    """An event that must not lie inside a match. It is looked for between the events with the roles
    `first` and `last`. Its own role is `ABSENT`."""

    events: tuple[Event, ...]  # one of these events, for which all clauses are TRUE
    clauses: tuple[RoleClause, ...]  # for every choice of an event for each of their other roles
    first: str
    last: str
    inclusive: bool  # the events with the roles `first` and `last` count too
    part: KeyedPart | None = None
    """The event is the last one of a match of this part, which must not begin before. So it counts
    only if the latest start of the part's matches with its key lies in the range as well."""


@frozen
class FirstWithKey:
    """The event with the role `role` is the first one of `events` with its key in its partition,
    wherever that begins."""

    events: tuple[Event, ...]
    terms: tuple[Expression, ...]  # the terms of the key (`celc.normal.equalities`)
    role: str


@frozen
class RoleWindow:
    """A window of a part of the formula, from the event with the role `first` to the next event
    with the role `last`.

    Between the two no event has either role a second time, because parts that are matched several
    times are matched one after another. So no mark of a round is needed.
    """

    window: Window
    first: str
    last: str


@frozen
class AbsentPart:
    """A part that must not lie inside a match: `!(WITHIN[w](φ))`, or right of UNLESS.

    It is in a window, or all its events have one key, or both. It must not lie between the event
    with the role `first` and the next event with the role `last`. Of its matches that end at an
    event, the one with the latest start fits the window if any does, and lies between two events if
    any does. So only the latest start behind every event must be known.
    """

    form: NormalForm  # made of events, `;`, OR, `+` and rounds (`{2,4}`)
    window: Window | None
    first: str
    last: str
    inclusive: bool  # the events with the roles `first` and `last` count too
    key: tuple[Expression, ...] = ()  # the terms of the key


@frozen
class EventBefore:
    """An event that must not lie before the event with the role `first`, as far back as `length`.
    It is one of `events` for which all clauses are TRUE, as in `AbsentEvent`."""

    events: tuple[Event, ...]
    clauses: tuple[RoleClause, ...]
    length: Window
    first: str


@frozen
class PartBefore:
    """A part that must not end before the event with the role `first` and begin within `length`
    before it.

    Of its matches that fit the window and end before an event, the one with the latest start is
    close enough if any is.
    """

    form: NormalForm  # as in `AbsentPart`
    window: Window | None  # the window around it; None: there is none
    length: Window
    first: str


@frozen
class EventAfter:
    """An event that must not lie after the last event of a match, within `length` from there.

    With `from_start` the length is counted from the first event. All else is as in `EventBefore`.
    """

    events: tuple[Event, ...]
    clauses: tuple[RoleClause, ...]
    length: Window
    from_start: bool


@frozen
class PartAfter:
    """A part that must not begin after the last event of a match and end within `length` from
    there.

    With `from_start` the length is counted from the first event. All else is as in `PartBefore`. Of
    its matches that begin after an event, the first one to end is near enough if any is.
    """

    form: NormalForm
    window: Window | None
    length: Window
    from_start: bool


ABSENT = f"{ROLE}absent"


def mark_of_round(iteration: int) -> str:
    """The mark of the first event of each round of an iteration."""
    return f"{ROLE}round {iteration}"


def _common(chains: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The iterations around all of several roles. Each chain is the beginning of a longer one."""
    shortest = min(chains, key=len, default=())
    assert all(chain[: len(shortest)] == shortest for chain in chains), chains
    return shortest


@frozen
class NotFlat:
    """Why the marked events of a match do not decide the conditions of a form."""

    reason: str  # as a person reads it after "because"
    span: Span  # the innermost part of the text for which this is so


@frozen
class FlatForm:
    """A form whose events have roles, and the conditions on the events of these roles."""

    form: NormalForm
    clauses: tuple[RoleClause, ...]
    absent: tuple[AbsentEvent, ...] = ()
    first: tuple[FirstWithKey, ...] = ()
    windows: tuple[RoleWindow, ...] = ()  # windows of parts of the formula
    absent_parts: tuple[AbsentPart, ...] = ()
    events_before: tuple[EventBefore, ...] = ()  # must not lie before a part of the formula
    parts_before: tuple[PartBefore, ...] = ()  # must not lie before a part of the formula
    after: tuple[EventAfter | PartAfter, ...] = ()  # must not lie after the match

    @property
    def looks_outside(self) -> bool:
        """Whether some condition asks for events that are not in the match."""
        before = self.events_before or self.parts_before
        inside = self.absent or self.first or self.absent_parts
        return bool(inside or before or self.after)

    @property
    def events_outside(self) -> tuple[Event, ...]:
        """The events that these conditions ask for."""
        found = [event for absent in self.absent for event in absent.events]
        parts = [absent.part for absent in self.absent if absent.part is not None]
        found += [event for part in parts for event in events_of(part.form)]
        found += [event for one in self.first for event in one.events]
        found += [event for part in self.absent_parts for event in events_of(part.form)]
        found += [event for before in self.events_before for event in before.events]
        found += [event for part in self.parts_before for event in events_of(part.form)]
        for after in self.after:
            found += after.events if isinstance(after, EventAfter) else events_of(after.form)
        return tuple(found)


def asks_for_types(flat: FlatForm) -> bool:
    """Whether some clause asks for the type of an event, which its roles do not tell."""
    return any(
        type_tested(predicate) is not None
        for clause in flat.clauses
        for predicate in clause.clause.predicates
    )
