"""Chains of single events under a nested NXT or LAST: one match alone shows whether it is the
choice.

NXT(φ) and LAST(φ) compare all matches of φ that end at one event. Let φ be x1 ; … ; xn, where each
xi is a single event in the support. Let every condition across events, after equalities have been
joined, compare one place with the last place. Then the events that can be at a place before the
last, its *candidates*, depend on the last event only. The matches that end there are all ascending
choices of a candidate for each place.

> All supports have n events. Two of them differ at some places. LAST prefers the one with the later
> event at the last such place, NXT the one with the earlier event at the first such place.
>
> A match is the choice of LAST exactly if, for each place i < n, no other candidate for i lies
> strictly between its events at i and i + 1. If one does, it can replace the event at i: the choice
> still ascends, and it is better. If none does, suppose that another match is better, and let i be
> the last place at which it differs. Its event there is a later candidate for i, and lies before
> its event at i + 1, which both matches share. So it would lie between.
>
> A match is the choice of NXT exactly if, for each place i < n, no other candidate for i lies
> strictly between its events at i − 1 and i, or for i = 1 anywhere before. The proof is the same,
> read from the first place on.

So the choice of a selector is an absence of single events, each of which is compared with the match
(`AbsentEvent`). A candidate for the first place of NXT is looked for in the whole stream before the
match. If all conditions there are equalities, the event of the match must be the first one with its
key (`FirstWithKey`).

MAX prefers no support to another of the same size, so it chooses all matches of a chain.

Equalities are joined where they compare the same types. From x.id = y.id and y.id = z.id follows
x.id = z.id, and the equality of x and y follows from those with z. NULL is equal to nothing, so no
joined equality has one. An equality that is not joined to the last place leaves the query to the
definition, because then the candidates of one place depend on the event at another.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from celc_runtime.plan.frozen import frozen

from celc.core.formula import Clause, Expression
from celc.core.terms import labels_in_order
from celc.normal import normal_form as lp
from celc.normal.equalities import Term, equality, equality_of
from celc.normal.flat_form import when_decided
from celc.normal.normal_form import NormalForm, shown


class NotAChainError(Exception):
    """The matches that a selector compares are not those of a chain."""


@frozen
class Tie:
    """A term of a place that equalities join to the last place, and the number of their join."""

    term: Expression
    join: int
    written: Clause


@frozen
class Place:
    """A place of a chain."""

    events: tuple[lp.Event, ...]  # the events that can be there
    role: str  # the role of the event that is there
    ties: tuple[Tie, ...] = ()
    others: tuple[tuple[Clause, frozenset[str]], ...] = ()
    """The other conditions, each with its labels that are on the place."""


@frozen
class Chain:
    """A chain. The events of `form` have the roles of their places."""

    form: NormalForm
    places: tuple[Place, ...]


def chain_of(form: NormalForm, new_role: Callable[[], str]) -> Chain:
    """The chain that a form is. Raises NotAChainError for any other form."""
    reader = _Reader(new_role)
    marked, _ = reader.read(form)
    if any(clause.open for clause in reader.clauses):
        raise NotAChainError  # an event around the selector would decide what it chooses
    return Chain(marked, reader.joined())


@dataclass(slots=True)
class _Asked:
    """A clause, the places of its labels, and those of its labels that are bound further out."""

    clause: Clause
    place_of: dict[str, int]
    open: set[str]


@dataclass(slots=True)
class _Reader:
    new_role: Callable[[], str]
    places: list[Place] = field(default_factory=list)
    clauses: list[_Asked] = field(default_factory=list)

    def read(self, form: NormalForm) -> tuple[NormalForm, range]:
        """The form with the roles of its places, and the numbers of these places."""
        first = len(self.places)
        match form:
            case lp.Event():
                marked: NormalForm = self._place((form,))[0]
            case lp.Disjunction():
                events = tuple(one for one in form.operands if isinstance(one, lp.Event))
                if not events or len(events) < len(form.operands):
                    raise NotAChainError
                marked = replace(form, operands=self._place(events))
            case lp.Sequence() if not any(form.contiguous):
                marked = replace(form, operands=tuple(self.read(o)[0] for o in form.operands))
            case lp.Correlated():
                operand, places = self.read(form.operand)
                for clause in form.clauses:
                    if when_decided(clause) != "pairs":
                        raise NotAChainError
                    asked = _Asked(clause, {}, {*labels_in_order(clause)})
                    self._bind(asked, form.own, places)
                    self.clauses.append(asked)
                marked = replace(form, operand=operand)
            case lp.Scope():
                before = len(self.clauses)
                operand, places = self.read(form.operand)
                for asked in self.clauses[before:]:
                    self._bind(asked, form.labels, places)
                marked = replace(form, operand=operand)
            case _:
                raise NotAChainError
        return marked, range(first, len(self.places))

    def _place(self, events: tuple[lp.Event, ...]) -> tuple[lp.Event, ...]:
        """Add a place. Returns its events with its role."""
        if any(event.simultaneous or not shown(frozenset(event.labels)) for event in events):
            raise NotAChainError
        role = self.new_role()
        self.places.append(Place(events, role))
        return tuple(
            replace(event, labels=tuple(sorted({*event.labels, role}))) for event in events
        )

    def _bind(self, asked: _Asked, labels: tuple[str, ...], places: range) -> None:
        """Find the places of the labels that are bound here."""
        for label in sorted(asked.open.intersection(labels)):
            having = [
                number
                for number in places
                if any(label in event.labels for event in self.places[number].events)
            ]
            if len(having) != 1:
                raise NotAChainError
            if not all(label in event.labels for event in self.places[having[0]].events):
                raise NotAChainError  # without the label the condition would not be checked
            asked.open.discard(label)
            asked.place_of[label] = having[0]

    def joined(self) -> tuple[Place, ...]:
        last = len(self.places) - 1
        joins: list[tuple[dict[tuple[int, Expression], Term], Clause]] = []
        others: list[list[tuple[Clause, frozenset[str]]]] = [[] for _ in self.places]
        for asked in self.clauses:
            sides = equality_of(asked.clause)
            numbers = sorted({*asked.place_of.values()})
            if sides is not None and len(numbers) == 2:
                pair = {(asked.place_of[term[0]], term[1]): term for term in sides}
                met = [join for join in joins if not pair.keys().isdisjoint(join[0])]
                for join, _ in met:
                    pair = join | pair
                joins = [*(join for join in joins if join not in met), (pair, asked.clause)]
            elif len(numbers) == 1 or (len(numbers) == 2 and last in numbers):
                own = {label for label, number in asked.place_of.items() if number == numbers[0]}
                others[numbers[0]].append((asked.clause, frozenset(own)))
            else:
                raise NotAChainError
        ties: list[list[Tie]] = [[] for _ in self.places]
        for number, (join, clause) in enumerate(joins):
            ends = [term for (place, _), term in join.items() if place == last]
            if not ends:
                raise NotAChainError  # the candidates of one place depend on another
            for (place, plain), term in join.items():
                ties[place].append(Tie(plain, number, equality(term, ends[0], clause)))
        return tuple(
            replace(place, ties=tuple(ties[number]), others=tuple(others[number]))
            for number, place in enumerate(self.places)
        )
