"""LP-normal form → the machine of its matches, written down once more from the definitions.

`celc.automata` builds the automaton that celc runs. This is a second construction of the same
language, without its states in between, its sharing or its reductions: slow, and short enough to be
read beside the table of definitions. The two are compared exactly (`machines.difference`).

Selectors that compare a match with others have no machine here. `NotUnderstoodError` names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from celc.automata.predicates import Alphabet
from celc.core.formula import ROLE, EventType
from celc.normal import normal_form as lp
from celc.verify.prove.constants import clause_of_type
from celc.verify.prove.machines import ACCEPT, Edge, Machine, Marks, explored, split
from celc.verify.prove.verdict import NotUnderstoodError

PLACES = 4  # of an event in its instant: alone, first, between, last
NONE: Marks = frozenset()


def is_label(mark: str) -> bool:
    """Whether a mark is a label, or that of the support, and no role."""
    return not mark.startswith(ROLE)


def labels_among(marks: Marks) -> Marks:
    """The labels among the marks of an event."""
    return frozenset(filter(is_label, marks))


class Languages:
    """Machines of forms over the symbols of an alphabet, or over symbols with places where events
    are simultaneous."""

    def __init__(self, alphabet: Alphabet, *, simultaneous: bool) -> None:
        self.alphabet = alphabet
        self.classes = len(alphabet.symbols)
        self.letters = self.classes * (PLACES if simultaneous else 1)
        self.all = (1 << self.letters) - 1

    # Long: a case for each kind of form.
    def of(self, form: lp.NormalForm) -> Machine:
        """The machine of a form. Raises NotUnderstoodError and TooManyStatesError."""
        match form:
            case lp.Event():
                return self._event(form)
            case lp.Disjunction():
                return self._either([self.of(one) for one in form.operands])
            case lp.Sequence():
                parts = [self.of(one) for one in form.operands]
                found = parts[0]
                for part, contiguous in zip(parts[1:], form.contiguous, strict=True):
                    found = self._then(found, part, self._gap(contiguous))
                return found
            case lp.Iteration():
                return self._rounds(form)
            case lp.Conjunction():
                return self._both(self.of(form.left), self.of(form.right))
            case lp.All():
                return self._anyhow(self.of(form.left), self.of(form.right))
            case lp.Unless():
                return self._unless(self.of(form.left), Watch(self.of(form.right), self.all))
            case lp.Absence():
                watch = Watch(self.of(form.middle), self.all)
                return self._then(self.of(form.left), self.of(form.right), watch)
            case lp.ThenFirst():
                return self._then_first(form)
            case lp.Where():
                return self._where(form)
            case lp.Relabel():
                return _marked_by(self.of(form.operand), form.changes)
            case lp.MarkedEnds():
                return _with_ends(self.of(form.operand), {*form.first}, {*form.last})
            case lp.Selected(strategy="STRICT"):
                return self._strict(self.of(form.operand))
            case lp.Selected():
                raise NotUnderstoodError(f"{form.strategy} compares a match with others")
            case _:
                raise NotUnderstoodError(f"{type(form).__name__} compares several events")

    # --- single events ----------------------------------------------------------------------------

    def symbols(self, event_type: EventType, clauses: Iterable[lp.EventClause]) -> int:
        """The letters, in any place, of the events of a type that satisfy all clauses."""
        wanted = {*clauses}
        found = 0
        for number, symbol in enumerate(self.alphabet.symbols):
            if symbol.type != event_type:
                continue
            groups = next(one.groups for one in self.alphabet.types if one.type == event_type)
            true = {c for bit, group in enumerate(groups) if symbol.truth >> bit & 1 for c in group}
            if wanted <= true:
                found |= 1 << number
        return sum(found << place for place in range(0, self.letters, self.classes))

    def _event(self, form: lp.Event) -> Machine:
        asked, marks = self.symbols(form.type, form.clauses), frozenset(form.labels)
        if not form.simultaneous:
            return Machine(self.letters, ((Edge(asked, marks, ACCEPT),),))
        alone, first, between, last = (
            ((1 << self.classes) - 1) << place * self.classes for place in range(PLACES)
        )
        waits, has = 1, 2
        return Machine(
            self.letters,
            (
                (
                    Edge(alone & asked, marks, ACCEPT),
                    Edge(first, NONE, waits),
                    Edge(first & asked, marks, has),
                ),
                (
                    Edge(between, NONE, waits),
                    Edge(between & asked, marks, has),
                    Edge(last & asked, marks, ACCEPT),
                ),
                (Edge(between, NONE, has), Edge(last, NONE, ACCEPT)),
            ),
        )

    # --- one after another ------------------------------------------------------------------------

    def _gap(self, contiguous: bool) -> Watch:
        """What may lie between two parts: nothing, or any events."""
        watched = Edge(self.all, NONE, ACCEPT) if contiguous else Edge(0, NONE, ACCEPT)
        return Watch(Machine(self.letters, ((watched,),)), self.all)

    def _either(self, parts: Sequence[Machine]) -> Machine:
        def moves(key: Any) -> Iterable[tuple[int, Marks, Any]]:
            places = list(enumerate([0] * len(parts))) if key == "begin" else [key]
            for number, state in places:
                for mask, marks, target in parts[number].edges[state]:
                    yield mask, marks, None if target == ACCEPT else (number, target)

        return explored(self.letters, "begin", moves)

    def _then(self, left: Machine, right: Machine, gap: Watch) -> Machine:
        """Both parts, with events between them that complete no match of `gap`."""

        def moves(key: Any) -> Iterable[tuple[int, Marks, Any]]:
            side, state = key
            if side == "left":
                for mask, marks, target in left.edges[state]:
                    yield mask, marks, (("between", NONE) if target == ACCEPT else ("left", target))
                return
            if side == "between":
                for mask, after in gap.steps(state):
                    yield mask, NONE, ("between", after)
            begin = 0 if side == "between" else state
            for mask, marks, target in right.edges[begin]:
                yield mask, marks, None if target == ACCEPT else ("right", target)

        return explored(self.letters, ("left", 0), moves)

    def _rounds(self, form: lp.Iteration) -> Machine:
        """`least` to `most` rounds; without a limit those after the least one are not counted."""
        one, gap = self.of(form.operand), self._gap(form.contiguous)
        known = form.least if form.most is None else form.most

        def moves(key: Any) -> Iterable[tuple[int, Marks, Any]]:
            place, number, state = key
            if place == "between":
                for mask, after in gap.steps(frozenset()):
                    yield mask, NONE, ("between", number, after)
            begin = 0 if place == "between" else state
            for mask, marks, target in one.edges[begin]:
                if target != ACCEPT:
                    yield mask, marks, ("round", number, target)
                    continue
                done = number
                if done >= form.least:
                    yield mask, marks, None
                if form.most is None or done < form.most:
                    yield mask, marks, ("between", min(done + 1, known), frozenset())

        return explored(self.letters, ("round", 1, 0), moves)

    def _then_first(self, form: lp.ThenFirst) -> Machine:
        """In each round a run of what is chosen, beside a watch in which none may end sooner."""
        left, one = self.of(form.left), self.of(form.chosen)
        chosen = Watch(one, self.all)
        absent = None if form.absent is None else Watch(self.of(form.absent), self.all)
        gap = None if form.gap is None else Watch(self.of(form.gap), self.all)
        known = form.least if form.most is None else form.most

        def waits(number: int) -> list[Watch]:
            asked = (absent, gap if number == 1 else None)
            return [watch for watch in asked if watch is not None]

        def moves(key: Any) -> Iterable[tuple[int, Marks, Any]]:
            place, number, state, watched, others = key
            if place == "left":
                for mask, marks, target in left.edges[state]:
                    if target != ACCEPT:
                        yield mask, marks, ("left", 0, target, NONE, ())
                    else:
                        yield mask, marks, ("wait", 1, 0, NONE, (NONE,) * len(waits(1)))
                return
            for mask, marks, target in one.edges[0 if place == "wait" else state]:
                if target == ACCEPT:
                    if number >= form.least:
                        yield mask, marks, None
                    if form.most is None or number < form.most:
                        # In the rounds after the first no gap is watched.
                        after = min(number + 1, max(known, 2))
                        rest = (NONE,) * len(waits(after))
                        yield mask, marks, ("wait", after, 0, NONE, rest)
                    continue
                for free, going in chosen.steps(watched):
                    yield mask & free, marks, ("run", number, target, going, ())
            if place == "wait":
                found: list[tuple[int, tuple[frozenset[int], ...]]] = [(self.all, ())]
                for watch, at in zip(waits(number), others, strict=True):
                    found = [
                        (mask & free, (*so_far, going))
                        for mask, so_far in found
                        for free, going in watch.steps(at)
                    ]
                for mask, so_far in found:
                    for free, going in chosen.steps(watched):
                        yield mask & free, NONE, ("wait", number, 0, going, so_far)

        return explored(self.letters, ("left", 0, 0, NONE, ()), moves)

    # --- side by side -----------------------------------------------------------------------------

    def _both(self, left: Machine, right: Machine) -> Machine:
        """AND: the same events with the same labels; roles of both."""

        def moves(key: Any) -> Iterable[tuple[int, Marks, Any]]:
            for mask, marks, target in left.edges[key[0]]:
                for other, others, to in right.edges[key[1]]:
                    if labels_among(marks) == labels_among(others) and (target == ACCEPT) == (
                        to == ACCEPT
                    ):
                        both = None if target == ACCEPT else (target, to)
                        yield mask & other, marks | others, both

        return explored(self.letters, (0, 0), moves)

    def _anyhow(self, left: Machine, right: Machine) -> Machine:
        """ALL: each side may begin later than the other, and end earlier."""

        def steps(machine: Machine, state: int) -> Iterable[Edge]:
            if state != ACCEPT:
                yield from machine.edges[state]
            if state in (0, ACCEPT):
                yield Edge(self.all, NONE, state)

        def moves(key: Any) -> Iterable[tuple[int, Marks, Any]]:
            for mask, marks, target in steps(left, key[0]):
                for other, others, to in steps(right, key[1]):
                    if (target, to) != (0, 0):  # the first event belongs to one of them
                        ends = target == to == ACCEPT
                        yield mask & other, marks | others, None if ends else (target, to)

        return explored(self.letters, (0, 0), moves)

    def _unless(self, left: Machine, watch: Watch) -> Machine:
        def moves(key: Any) -> Iterable[tuple[int, Marks, Any]]:
            for free, after in watch.steps(key[1]):
                for mask, marks, target in left.edges[key[0]]:
                    yield mask & free, marks, None if target == ACCEPT else (target, after)

        return explored(self.letters, (0, frozenset()), moves)

    # --- conditions on a match --------------------------------------------------------------------

    def _strict(self, machine: Machine) -> Machine:
        """The labelled events are an interval, or there are none."""
        before, inside, behind = range(3)

        def moves(key: Any) -> Iterable[tuple[int, Marks, Any]]:
            state, phase = key
            for mask, marks, target in machine.edges[state]:
                if labels_among(marks):
                    if phase == behind:
                        continue
                    after = inside
                else:
                    after = behind if phase != before else before
                yield mask, marks, None if target == ACCEPT else (target, after)

        return explored(self.letters, (0, before), moves)

    def _where(self, form: lp.Where) -> Machine:
        machine, simple = self.of(form.operand), _simple(form.fact)
        satisfied = {one: self._satisfying(one) for one in simple}

        def moves(key: Any) -> Iterable[tuple[int, Marks, Any]]:
            state, known = key
            for mask, marks, target in machine.edges[state]:
                masks = [satisfied[one] for one in simple if one.label in marks]
                for block in split(mask, masks):
                    after = tuple(
                        _learnt(one, at, bool(satisfied[one] & block)) if one.label in marks else at
                        for one, at in zip(simple, known, strict=True)
                    )
                    if target != ACCEPT:
                        yield block, marks, (target, after)
                    elif _holds(form.fact, dict(zip(simple, after, strict=True))):
                        yield block, marks, None

        return explored(self.letters, (0, (0,) * len(simple)), moves)

    def _satisfying(self, fact: lp.SimpleFact) -> int:
        """The letters of events with the label of a fact that satisfy its clause."""
        if isinstance(fact, lp.CountOf):
            return 0
        found = 0
        for conditions in self.alphabet.types:
            clause = clause_of_type(fact.clause, conditions.type)
            if clause is True:
                found |= self.symbols(conditions.type, ())
            elif clause is not False:
                found |= self.symbols(conditions.type, (clause,))
        return found


class Watch:
    """All matches of a machine that are under way, wherever they began; none may end."""

    def __init__(self, machine: Machine, everything: int) -> None:
        self._machine = machine
        self._all = everything
        self._known: dict[frozenset[int], list[tuple[int, frozenset[int]]]] = {}

    def steps(self, states: frozenset[int]) -> list[tuple[int, frozenset[int]]]:
        """Disjoint sets of letters that end no match, each with the states after them."""
        if states not in self._known:
            edges = [edge for state in {0, *states} for edge in self._machine.edges[state]]
            found = []
            for block in split(self._all, {edge.mask for edge in edges}):
                after = frozenset(edge.target for edge in edges if edge.mask & block)
                if ACCEPT not in after:
                    found.append((block, after))
            self._known[states] = found
        return self._known[states]


def _marked_by(machine: Machine, changes: Sequence[lp.LabelChange]) -> Machine:
    return Machine(
        machine.letters,
        tuple(
            tuple(e._replace(marks=reduce(changed_marks, changes, e.marks)) for e in edges)
            for edges in machine.edges
        ),
    )


def changed_marks(marks: Marks, change: lp.LabelChange) -> Marks:
    """The marks of an event after one change; roles stay, and give no label."""
    labels = labels_among(marks)
    match change:
        case lp.AddLabel(label=label):
            return marks | {label} if labels else marks
        case lp.RenameLabel(old=old, new=new):
            return marks - {old} | {new} if old in marks else marks
        case lp.KeepLabels(labels=kept):
            return frozenset(one for one in marks if one in kept or one not in labels)
        case lp.KeepSupport(labels=kept):
            rest = frozenset(one for one in marks if one in kept or one not in labels)
            return rest | {lp.SUPPORT} if labels else marks
        case lp.AddToAll(role=role):
            return marks | {role}
        case lp.AddRole(label=label, role=role):
            return marks | {role} if label in marks else marks


def _with_ends(machine: Machine, first: set[str], last: set[str]) -> Machine:
    def marked(state: int, edge: Edge) -> Edge:
        more = (first if state == 0 else set()) | (last if edge.target == ACCEPT else set())
        return edge._replace(marks=edge.marks | more)

    rows = enumerate(machine.edges)
    return Machine(machine.letters, tuple(tuple(marked(s, e) for e in row) for s, row in rows))


def _simple(fact: lp.Fact) -> tuple[lp.SimpleFact, ...]:
    match fact:
        case lp.Not():
            return _simple(fact.fact)
        case lp.AnyOf():
            return tuple(dict.fromkeys(one for part in fact.facts for one in _simple(part)))
        case _:
            return (fact,)


def _learnt(fact: lp.SimpleFact, known: int, satisfied: bool) -> int:
    """What is known of a fact after one more event with its label: 0 nothing, 1 yes, 2 no."""
    match fact:
        case lp.CountOf():
            return min(known + 1, len(fact.truths) - 1)
        case lp.SomeEvent():
            return 1 if satisfied == fact.holds else known
        case lp.EndEvent(end="FIRST"):
            return known or (1 if satisfied else 2)
        case lp.EndEvent():
            return 1 if satisfied else 2


def _holds(fact: lp.Fact, known: dict[lp.SimpleFact, int]) -> bool:
    match fact:
        case lp.Not():
            return not _holds(fact.fact, known)
        case lp.AnyOf():
            return any(_holds(one, known) for one in fact.facts)
        case lp.CountOf():
            return fact.truths[known[fact]]
        case _:
            return known[fact] == 1
