"""Flat forms: forms without correlation whose events carry *roles*, and clauses over roles.

A role says that an event is one of the events that a condition compares. It is a mark like a label,
but it is shown nowhere. With the roles on the events, all that a match needs to satisfy can be
read off its marked events: for every choice of an event of each role, the clause is TRUE. Where
FILTER stood, and which labels were visible there, no longer matters.

In the rounds of an iteration, a clause compares the events that one round has bound, with each
other and with events bound outside. Where it names several labels of a round, the first event of
each round carries a mark as well, and the clause says which of its roles have to be of one round
(`RoleClause`). A clause about one position of a round and others outside needs no such mark: to
hold in every round is to hold for every position.

An absent formula has no events in the match. Where it is a single event, it is looked for among all
events that lie in the match's way (`AbsentEvent`).
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from celc.core import formula as core
from celc.core.formula import Clause, Expression, Window
from celc.core.terms import looks_back, nodes_named_in, type_tested
from celc.diagnostics.source import Span
from celc.normal.normal_form import ROLE, Event, NormalForm
from celc.normal.traversal import events_of

When: TypeAlias = Literal["pairs", "neighbours", "earlier", "witness", "complete"]


def when_decided(clause: Clause) -> When:
    """The moment at which a clause is decided."""
    nodes = [node for predicate in clause.predicates for node in nodes_named_in(predicate)]
    if any(isinstance(node, core.Aggregate) for node in nodes):
        return "complete"
    if not any(map(looks_back, clause.predicates)):
        return "pairs"
    return "neighbours" if len(clause.labels) == 1 else "complete"


@dataclass(frozen=True, slots=True)
class RoleClause:
    """A clause whose labels are roles.

    `iterations`: for each role of the clause, the numbers of the iterations around it, the
    outermost first. `when`: the moment at which the clause is decided, as a match is put together
    from its last event back:

    * `pairs`: as soon as each of its roles has an event, for every such choice;
    * `neighbours`: for each event of its one role, when the event of that role before it is there
      (PREV);
    * `earlier`: for each event of its one role, when any earlier event of the role is there, for
      which PREV stands here;
    * `witness`: for each event of its one role but the first, when some earlier event is there that
      satisfies it, for which PREV stands; of the events that wait, only the most demanding one has
      to be known;
    * `complete`: when the match is complete (functions of a label's set).

    Which events are compared with each other: a scope lies within an iteration or around it, so the
    iterations around one role are the first iterations around another role, or the other way
    round.
    In a round of the innermost iteration around both, a choice takes both events from that round.
    Where no iteration is around both, nothing ties the two: an event that is bound outside meets
    the events of every round. So a choice is asked exactly if each two of its events are of one
    round of the innermost iteration around both (`round_of`).
    """

    clause: Clause
    written: Clause
    iterations: tuple[tuple[int, ...], ...]
    when: When = "pairs"

    @property
    def round_mark(self) -> str | None:
        """The mark of the innermost rounds around all roles; None: no iteration is around them."""
        around = _common(self.iterations)
        return mark_of_round(around[-1]) if around else None

    def round_of(self, *places: int) -> str | None:
        """The mark of the innermost rounds around the roles at some places of the clause."""
        around = _common([self.iterations[place] for place in places])
        return mark_of_round(around[-1]) if around else None

    def shared_iterations(self) -> frozenset[int]:
        """The iterations whose rounds have to be told apart."""
        if self.when == "pairs":
            pairs = itertools.combinations(self.iterations, 2)
            return frozenset(around[-1] for around in map(_common, pairs) if around)
        around = _common(self.iterations)
        return frozenset(around[-1:])


@dataclass(frozen=True, slots=True)
class KeyedPart:
    """A part of which all events have one key, made of these terms, in each of its matches.

    `form` is made as that of an `AbsentPart`; `window` is that around it, None: there is none.
    """

    form: NormalForm
    window: Window | None
    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AbsentEvent:
    """An event that must not lie inside a match.

    It is one of `events` for which all clauses are TRUE, for every choice of an event for each of
    their other roles. Its own role is `ABSENT`.

    It is looked for from the event with the role `first` to the event with the role `last`; both
    count where `inclusive`. With a `part` it is the last event of a match of that part, which must
    not begin before: so it counts only if the latest start of the matches of the part with its key
    lies there as well.
    """

    events: tuple[Event, ...]
    clauses: tuple[RoleClause, ...]
    first: str
    last: str
    inclusive: bool
    part: KeyedPart | None = None


@dataclass(frozen=True, slots=True)
class FirstWithKey:
    """The event with the role `role` is the first one of `events` with its key, which is made of
    these terms (`celc.normal.equalities`), in its partition: wherever that begins."""

    events: tuple[Event, ...]
    terms: tuple[Expression, ...]
    role: str


@dataclass(frozen=True, slots=True)
class RoleWindow:
    """A window of a part of the formula, from the event with the role `first` to the next event
    with the role `last`.

    In a match, no event from the one to the other has either role a second time: parts that are
    matched several times are matched one after another. So no mark of a round is needed.
    """

    window: Window
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class AbsentPart:
    """A part that must not lie inside a match: `!(WITHIN[w](φ))`, or right of UNLESS. It is in a
    window, or all its events have one key, made of the terms `key`, or both.

    It must not lie between the event with the role `first` and the next event with the role `last`;
    both count where `inclusive`. `form` is made of events, `;`, OR, `+` and rounds (`{2,4}`). Of
    its matches that end at an event, the one with the latest start fits the window if any does, and
    lies between two events if any does. So the latest start behind every event is all that has to
    be known.
    """

    form: NormalForm
    window: Window | None
    first: str
    last: str
    inclusive: bool
    key: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class EventBefore:
    """An event that must not lie before the event with the role `first`, as far back as `length`.

    It is one of `events` for which all clauses are TRUE, as in `AbsentEvent`.
    """

    events: tuple[Event, ...]
    clauses: tuple[RoleClause, ...]
    length: Window
    first: str


@dataclass(frozen=True, slots=True)
class PartBefore:
    """A part that must not end before the event with the role `first`, and begin as far back as
    `length` or later.

    `form` is made as that of an `AbsentPart`; `window` is that around it, None: there is none. Of
    its matches that fit the window and end before an event, the one with the latest start is close
    enough if any is.
    """

    form: NormalForm
    window: Window | None
    length: Window
    first: str


@dataclass(frozen=True, slots=True)
class EventAfter:
    """An event that must not lie after the last event of a match, as far as `length` from there,
    or with `from_start` from the first event; else as `EventBefore`."""

    events: tuple[Event, ...]
    clauses: tuple[RoleClause, ...]
    length: Window
    from_start: bool


@dataclass(frozen=True, slots=True)
class PartAfter:
    """A part that must not begin after the last event of a match, and end as far as `length` from
    there, or with `from_start` from the first event; else as `PartBefore`.

    Of its matches that begin after an event, the first one to end is near enough if any is.
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
    """The iterations around all of several roles; each chain is the beginning of a longer one."""
    shortest = min(chains, key=len, default=())
    assert all(chain[: len(shortest)] == shortest for chain in chains), chains
    return shortest


@dataclass(frozen=True, slots=True)
class NotFlat:
    """Why the marked events of a match do not decide the conditions of a form, as a person reads it
    after "because"; `span`: the innermost part of the text of which that is so."""

    reason: str
    span: Span


@dataclass(frozen=True, slots=True)
class FlatForm:
    """A form whose events carry roles, and the conditions on the events of these roles.

    `windows` are those of parts of the formula; `events_before` and `parts_before` must not lie
    before a part of it; those of `after` must not lie after the match.
    """

    form: NormalForm
    clauses: tuple[RoleClause, ...]
    absent: tuple[AbsentEvent, ...] = ()
    first: tuple[FirstWithKey, ...] = ()
    windows: tuple[RoleWindow, ...] = ()
    absent_parts: tuple[AbsentPart, ...] = ()
    events_before: tuple[EventBefore, ...] = ()
    parts_before: tuple[PartBefore, ...] = ()
    after: tuple[EventAfter | PartAfter, ...] = ()

    @property
    def looks_outside(self) -> bool:
        """Whether some condition asks for events that are not in the match."""
        before = self.events_before or self.parts_before
        inside = self.absent or self.first or self.absent_parts
        return bool(inside or before or self.after)

    @property
    def events_outside(self) -> tuple[Event, ...]:
        """The events that it asks for there."""
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
