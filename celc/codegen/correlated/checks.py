"""Clauses over roles → the bodies of the generated functions `admits` and `completes`.

Matches are listed from their last event back to their first one. `admits` is asked for each event
that is put on the path of a match, and `completes` for the whole path. In their text `here` is the
newest event of the path, which is the earliest event of the match so far, `depth` its place on the
path, and `roles` the bit set of its roles.

Long: the parts of one function, in the order of its tests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from celc.codegen.correlated.choices import ChoiceCode
from celc.codegen.text.escape import comment_text
from celc.core import formula as core
from celc.core.show import show_predicate
from celc.core.terms import distances_looked_back, labels_in_order, nodes_named_in
from celc.core.traversal import Leaf, map_leaves
from celc.normal import flat_form as flat
from celc.normal.show import show_window
from celc.plan.straight_line.pile_bounds import EVENT
from celc.plan.tables import Kind


@dataclass(slots=True)
class EventCode(ChoiceCode):
    """Conditions over `event_k`, the event with role k of a clause, and over `here`, the newest
    event, which PREV reads.

    Where a clause looks further back, `here` is the event at the greatest distance, and `before_d`
    the one at a distance d. `count` is the number of events before the chosen one.
    """

    _furthest: int = 1

    def of_clause(self, clause: core.Clause, named: Mapping[str, str] | None = None) -> str:
        self._furthest = furthest(clause)
        return ChoiceCode.of_clause(self, clause, named)

    def value_at(self, expression: core.Expression, event: str) -> tuple[str, str]:
        """The value of a side of a pairing at an event, and whether it is not NULL."""
        known: dict[str, None] = {}
        self._labels, self._named = (EVENT,), {EVENT: event}
        self._needs(expression, known)
        return self._value(expression), " & ".join(known) or "True"

    def _event(self, node: core.AttributeValue | core.Previous | core.Aggregate) -> str:
        if isinstance(node, core.Previous):
            return "here" if node.distance == self._furthest else f"before_{node.distance}"
        assert isinstance(node, core.AttributeValue)
        return self._named.get(node.label, f"event_{self._labels.index(node.label)}")

    def _aggregate(self, node: core.Aggregate) -> str:
        if node.prior and node.function == "COUNT":
            return "count"
        return ChoiceCode._aggregate(self, node)

    def _lacks(self, label: str, distance: int) -> str | None:
        return None  # the condition is checked when the events before it are there


@dataclass(slots=True)
class CheckCode:
    """Writes the bodies of `admits` and `completes`, line by line."""

    choices: EventCode  # conditions over chosen events
    sets: ChoiceCode  # conditions over whole label sets; both read the same columns
    kind_bits: int
    bit_of: dict[str, int] = field(default_factory=dict)
    """The bit of each role and of each round mark."""
    later: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """For each role, the roles that the same event, or a later one, can have."""
    states: int = 0  # the rows of `state` so far: each keeps a number for each event of a path
    waiting: list[int] = field(default_factory=list)
    """The first row of `state` of each clause that waits for a witness."""
    _room: int | None = None

    def __post_init__(self) -> None:
        self.sets.room = self._room_of_sets

    def _room_of_sets(self) -> str:
        """The row of `state` in which functions sort. One serves all of them, because none needs it
        after its call."""
        if self._room is None:
            self._room = self.states
            self.states += 1
        return f"state[{self._room}]"

    def lines(self, clauses: Sequence[flat.RoleClause]) -> list[str]:
        """The body of `admits`: for each clause, and for each role that it gives the newest event,
        a loop over the events of the other roles."""
        lines: list[str] = []
        for clause in clauses:
            if clause.when == "complete":
                continue
            text = " OR ".join(map(show_predicate, clause.written.predicates))
            lines.append(f"# {comment_text(text)}")
            if clause.when == "witness":
                lines += self._for_waiting(clause)
                continue
            code = self.choices.of_clause(clause.clause)
            if clause.when == "neighbours":
                lines += self._for_neighbours(clause, code)
                continue
            if clause.when == "earlier":
                lines += self._for_later(clause, code)
                continue
            for pivot, role in enumerate(clause.clause.labels):
                if self.later.get(role, frozenset()).issuperset({*clause.clause.labels} - {role}):
                    lines += self._for_pivot(clause, pivot, code)
        return lines

    def running_lines(self, functions: Sequence[core.Aggregate]) -> list[str]:
        """Lines that keep, for each function, its value over the path so far in a row of `state`: a
        count, a sum, or the event that has the value (−1: there is none)."""
        lines: list[str] = []
        for function in functions:
            lines += self._running(function)
        return lines

    def _running(self, function: core.Aggregate) -> list[str]:
        state, name = f"state[{self.states}", function.function
        self.states += 1
        starts = "0" if name in ("COUNT", "SUM") else "-1"
        lines = [
            f"kept = {state}, depth - 1] if depth > 0 else {starts}",
            f"if roles & {1 << self.bit(function.label)}:",
        ]
        match name:
            case "COUNT":
                lines.append("    kept += 1")
            case "FIRST":  # of the events so far the newest one is the earliest of the match
                lines.append("    kept = here")
            case "LAST":
                lines += ["    if kept < 0:", "        kept = here"]
            case _:
                assert function.attribute is not None
                column, valid = self.sets.column_of(function.attribute)
                lines.append(f"    if {valid}[here]:")
                lines += [f"        {line}" for line in self._with_value(name, column)]
        lines.append(f"{state}, depth] = kept")
        if name == "SUM":  # without a value it is NULL
            some = f"state[{self.states}"
            self.states += 1
            lines += [
                f"known = {some}, depth - 1] if depth > 0 else 0",
                f"if roles & {1 << self.bit(function.label)} and {valid}[here]:",
                "    known = 1",
                f"{some}, depth] = known",
            ]
        return lines

    @staticmethod
    def _with_value(name: str, column: str) -> list[str]:
        """Lines for an event whose value is not NULL. NaN is greater than all numbers."""
        if name == "SUM":
            return [f"kept += np.int64({column}[here])"]
        value, best = f"{column}[here]", f"{column}[kept]"
        less, more = (value, best) if name == "MIN" else (best, value)
        return [
            f"if kept < 0 or {less} < {more} or ({more} != {more} and {less} == {less}):",
            "    kept = here",
        ]

    def window_lines(
        self, window: flat.RoleWindow, numbers: Mapping[core.Window, int]
    ) -> list[str]:
        """Lines that reject the events of a part that its window does not reach.

        A row of `state` keeps the last event of the part, from which the window is measured, until
        the first one is there (−1: the path is in no such part).
        """
        state, number = f"state[{self.states}", numbers[window.window]
        self.states += 1
        return [
            f"# {comment_text(show_window(window.window))}",
            f"closing = {state}, depth - 1] if depth > 0 else -1",
            f"if roles & {1 << self.bit(window.last)}:",
            "    closing = here",
            f"if closing >= 0 and key_{number}[here] < floor_{number}[closing]:",
            "    return False",
            f"if roles & {1 << self.bit(window.first)}:",
            "    closing = -1",
            f"{state}, depth] = closing",
        ]

    def complete_lines(self, clauses: Sequence[flat.RoleClause]) -> list[str]:
        """The body of `completes`: for each clause, its events by role, and a loop over all choices
        of one event for each role."""
        lines: list[str] = []
        for number in self.waiting:
            lines += [f"if state[{number + 1}, depth] != -1:", "    return False"]
        for clause in clauses:
            if clause.when != "complete":
                continue
            text = " OR ".join(map(show_predicate, clause.written.predicates))
            lines.append(f"# {comment_text(text)}")
            code = self.sets.of_clause(clause.clause)
            for number, role in enumerate(labels_in_order(clause.clause)):
                lines += self.events_of(role, number)
            indent = ""
            named = {
                node.label
                for p in clause.clause.predicates
                for node in nodes_named_in(p)
                if isinstance(node, Leaf)
            }
            for number, role in enumerate(clause.clause.labels):
                choices = f"events_{number}.shape[0]"
                if role not in named:  # one event of a branch is as good as all
                    choices = f"min(1, {choices})"
                lines.append(f"{indent}for place_{number} in range({choices}):")
                indent += "    "
            lines.append(f"{indent}if not ({code}):")
            lines.append(f"{indent}    return False")
        return lines

    def events_of(self, role: str, number: int) -> list[str]:
        """Lines that make `events_k` the events of the match that have a role."""
        room = f"state[{self.states}]"
        bits = (str(1 << self.bit(role)), str(self.kind_bits))
        count = self.sets.imports.call(
            "events_of_role", "path", "depth", "ROLES", *bits, "first", room
        )
        lines = [
            f"count_{number} = {count}",
            f"events_{number} = state[{self.states}, :count_{number}]",
        ]
        self.states += 1
        return lines

    def _for_waiting(self, clause: flat.RoleClause) -> list[str]:
        """Lines for a comparison of each event of a role with some event before it, its witness.

        Listing meets an event before its witnesses. So it waits, and of several events that wait
        the one stays that is hardest to satisfy. `state[n]` is the event that waits, and
        `state[n + 1]` the one that waited before the newest event was looked at, which must be none
        at the first event of a match. −1: no event waits; −2: one waits for ever, because its value
        is NULL.
        """
        (role,) = clause.clause.labels
        (predicate,) = clause.clause.predicates
        assert isinstance(predicate, core.Comparison)
        number = self.states
        self.waiting.append(number)
        self.states += 2
        satisfied = self.choices.of_clause(clause.clause)
        null = replace(
            clause.clause, predicates=(core.NullTest(predicate.left, False, predicate.span),)
        )
        of_newest = map_leaves(replace(predicate, right=predicate.left), _before_alone)
        assert isinstance(of_newest, core.Comparison)
        asks: core.ComparisonOperator = "<" if predicate.operator[0] == ">" else ">"
        stronger = replace(predicate, operator=asks, left=of_newest.left, right=predicate.left)
        more = self.choices.of_clause(replace(clause.clause, predicates=(stronger,)))
        alone = self.choices.of_clause(null, {role: "here"})
        return [
            f"waits = state[{number}, depth - 1] if depth > 0 else -1",
            f"waits_besides = state[{number + 1}, depth - 1] if depth > 0 else -1",
            f"if roles & {1 << self.bit(role)}:",
            "    if waits == -2:",
            "        return False  # the waiting event is not the first, and nothing satisfies it",
            "    event_0 = waits",
            f"    if waits >= 0 and {satisfied}:",
            "        waits = -1",
            "    waits_besides, event_0 = waits, waits",
            f"    if {alone}:",
            "        waits = -2",
            f"    elif waits < 0 or {more}:",
            "        waits = here",
            f"state[{number}, depth], state[{number + 1}, depth] = waits, waits_besides",
        ]

    def _for_later(self, clause: flat.RoleClause, code: str) -> list[str]:
        """Lines for a condition of the newest event with all later events of its role."""
        (role,) = clause.clause.labels
        bit = 1 << self.bit(role)
        there = self.roles_at("place_0")
        lines = [f"if roles & {bit}:", "    for place_0 in range(depth - 1, -1, -1):"]
        if clause.round_mark is not None:
            begins = f"        if {there} & {1 << self.bit(clause.round_mark)}:"
            lines += [begins, "            break  # this event begins a later round"]
        return [
            *lines,
            f"        if not {there} & {bit}:",
            "            continue",
            f"        event_0 = (path[place_0] >> {self.kind_bits}) - first",
            f"        if not ({code}):",
            "            return False",
        ]

    def _for_neighbours(self, clause: flat.RoleClause, code: str) -> list[str]:
        """Lines for a condition of the newest event with the next event of its role, or with the
        k-th next.

        k rows of `state` keep the nearest k events of the role on the path, the newest first (−1:
        this round has fewer).
        """
        (role,) = clause.clause.labels
        most = furthest(clause.clause)
        kept = [f"state[{self.states + number}" for number in range(most)]
        self.states += most
        lines = [
            f"{row} = {kept[number]}, depth - 1] if depth > 0 else -1"
            for number, row in enumerate(_nearby(most))
        ]
        lines.append(f"if roles & {1 << self.bit(role)}:")
        lines.append(f"    event_0 = {_nearby(most)[-1]}")
        for distance in sorted(_distances(clause.clause) - {most}, reverse=True):
            lines.append(f"    before_{distance} = {_nearby(most)[most - distance - 1]}")
        lines += [f"    if event_0 >= 0 and not ({code}):", "        return False"]
        shifted = ["here", *_nearby(most)[:-1]]
        lines.append(f"    {', '.join(_nearby(most))} = {', '.join(shifted)}")
        if clause.round_mark is not None:
            lines.append(f"if roles & {1 << self.bit(clause.round_mark)}:")
            names, nothing = ", ".join(_nearby(most)), ", ".join(["-1"] * most)
            lines.append(f"    {names} = {nothing}  # the events before are of other rounds")
        lines += [f"{row}, depth] = {name}" for row, name in zip(kept, _nearby(most), strict=True)]
        return lines

    def roles_of(self, kinds: Sequence[Kind]) -> tuple[int, ...]:
        """The roles of an event of each kind, as a bit set."""
        return tuple(
            sum(1 << self.bit(mark) for mark in kind.marks if mark in self.bit_of) for kind in kinds
        )

    def bit(self, role: str) -> int:
        """The number of the bit of a role or of the mark of a round."""
        return self.bit_of.setdefault(role, len(self.bit_of))

    def _for_pivot(self, clause: flat.RoleClause, pivot: int, code: str) -> list[str]:
        """Lines for the choices in which the newest event has role `pivot`, and no role before it.

        So each choice is checked once, when its last event is there. A clause asks for the choices
        in which any two events are of one round of the innermost iteration around both their roles
        (`RoleClause`). The loop for a role follows the narrowest of these conditions: the one with
        the chosen event that shares the most iterations with the role. Rounds of an inner iteration
        lie within rounds of the outer one, so it implies the others. Where no iteration is around
        both roles, the loop goes over the whole path.
        """
        labels = clause.clause.labels
        lines = [f"if roles & {1 << self.bit(labels[pivot])}:", f"    event_{pivot} = here"]
        indent = "    "
        fixed = [pivot]
        for number, role in enumerate(labels):
            if number == pivot:
                continue
            chains = clause.iterations
            beside = max(
                fixed, key=[min(len(chain), len(chains[number])) for chain in chains].__getitem__
            )
            place = "depth" if beside == pivot else f"place_{beside}"
            head = self._loop(number, number > pivot, place, clause.round_of(number, beside))
            lines += [indent + line for line in head]
            fixed.append(number)
            indent += "    "
            there = self.roles_at(f"place_{number}")
            lines.append(f"{indent}if not {there} & {1 << self.bit(role)}:")
            lines.append(f"{indent}    continue")
            lines.append(
                f"{indent}event_{number} = (path[place_{number}] >> {self.kind_bits}) - first"
            )
        lines.append(f"{indent}if not ({code}):")
        lines.append(f"{indent}    return False")
        return lines

    def _loop(self, number: int, with_newest: bool, place: str, mark: str | None) -> list[str]:
        """The head of a loop from the newest event, or from the event after it, to the path's end.

        With `mark`, the loop is only over the round of the event at `place`; the first event of
        each round has the mark.
        """
        newest = "depth" if with_newest else "depth - 1"
        if mark is None:
            return [f"for place_{number} in range({newest}, -1, -1):"]
        bit = 1 << self.bit(mark)
        lines = []
        if place != "depth":
            begin = f"begin_{number}"
            lines = [
                f"{begin} = {place}",
                f"while {begin} < depth and not {self.roles_at(begin)} & {bit}:",
                f"    {begin} += 1",
            ]
            newest = begin if with_newest else f"min({begin}, depth - 1)"
        return [
            *lines,
            f"for place_{number} in range({newest}, -1, -1):",
            f"    if place_{number} < {place} and {self.roles_at(f'place_{number}')} & {bit}:",
            "        break  # this event begins a later round",
        ]

    def roles_at(self, place: str) -> str:
        """The roles of the event at a place of the path, as a bit set."""
        return f"ROLES[path[{place}] & {(1 << self.kind_bits) - 1}]"


def furthest(clause: core.Clause) -> int:
    """How many events must come before the chosen one for a clause to be checked, at least 1."""
    found = [d for p in clause.predicates for d in distances_looked_back(p).values()]
    return max(found, default=1)


def _nearby(count: int) -> list[str]:
    """Variables with the next event of a role, the one behind it, and so on."""
    return ["nearest", *(f"nearest_{number}" for number in range(2, count + 1))][:count]


def _distances(clause: core.Clause) -> set[int]:
    """The distances at which a clause reads a value."""
    nodes = [node for predicate in clause.predicates for node in nodes_named_in(predicate)]
    return {node.distance for node in nodes if isinstance(node, core.Previous)}


def _before_alone(node: Leaf) -> core.Expression:
    """The attribute of the newest event, which PREV reads, instead of that of the chosen event."""
    assert isinstance(node, core.AttributeValue)
    return core.Previous(node.label, node.attribute, node.type, node.span)
