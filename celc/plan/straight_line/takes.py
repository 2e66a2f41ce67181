"""FIRST with conditions between events → updates that take the matches which an event ends.

In `A ; FIRST (B … b.v > a.v)` a B ends the waiting matches whose A is below it, and no later B does
so again. So the update looks at each cell that waits, and takes the fitting ones out of their pile:
one look for each waiting cell and event, and each cell is taken once. (Before, every B met all A's
of the window, and the listing looked for an earlier B of each: `benchmarks/first.py`, the order.)

A cell is one event with all partial matches before it. So the condition must compare the absent
event with the event of the cell alone, and each partial match of the pile must end with such an
event. The cells move from list to list, they are not copied: whoever reads the pile takes from it.
So each event that goes on from there must be one that takes, under the same conditions, and the
listing must ask for these conditions again. What else it asks for does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from celc_runtime.plan.frozen import frozen

from celc.automata.determinize import DetState
from celc.automata.predicates import Alphabet
from celc.core.formula import Clause
from celc.core.traversal import Leaf, map_leaves
from celc.normal.flat_form import ABSENT, AbsentEvent, RoleClause
from celc.plan.key_removals import goes_on, waiting_states
from celc.plan.straight_line.piles import PilePlan
from celc.plan.tables import Tables, symbols_of


@frozen
class Take:
    """Events with some symbols take those cells of piles for which all clauses hold.

    The clauses compare the event (`ABSENT`) with the event of the cell (`role`).
    """

    piles: tuple[int, ...]
    symbols: frozenset[int]
    clauses: tuple[RoleClause, ...]
    role: str


def takes_of(
    piles: PilePlan,
    alphabet: Alphabet,
    clauses: Sequence[RoleClause],
    absent: Iterable[AbsentEvent],
) -> tuple[tuple[Take, ...], tuple[AbsentEvent, ...]]:
    """The takes that decide absences, and the absences that they do not decide. `clauses` are the
    conditions that the listing checks."""
    takes: list[Take] = []
    left: list[AbsentEvent] = []
    for one in absent:
        symbols = frozenset(symbols_of(one.events, alphabet, piles.tables))
        take = _take(piles, clauses, one, symbols)
        if take is None or any({*take.piles} & {*other.piles} for other in takes):
            left.append(one)
        else:
            takes.append(take)
    return tuple(takes), tuple(left)


def _take(
    piles: PilePlan, clauses: Sequence[RoleClause], absent: AbsentEvent, symbols: frozenset[int]
) -> Take | None:
    tables = piles.tables
    role = _role_of(absent)
    if role is None or absent.inclusive or absent.part is not None:
        return None
    waiting = waiting_states(tables, absent)
    if not waiting or goes_on(tables, waiting, symbols) or not _ends_with(tables, waiting, role):
        return None
    out = [
        (symbol, tables.kinds[step.kind].marks)
        for symbol, steps in enumerate(tables.steps)
        for step in steps
        if waiting.intersection(step.sources)
    ]
    for symbol, marks in out:
        if symbol not in symbols or absent.last not in marks:
            return None
        if not all(_is_asked(tables, one, role, marks, clauses) for one in absent.clauses):
            return None
    of_states = tuple(n for n, pile in enumerate(piles.piles) if pile.target in waiting)
    return Take(of_states, symbols, absent.clauses, role) if out else None


def _role_of(absent: AbsentEvent) -> str | None:
    """The one role of the match with which the absent event is compared; None: there are others."""
    roles = {label for one in absent.clauses for label in one.clause.labels} - {ABSENT}
    plain = all(one.when == "pairs" and ABSENT in one.clause.labels for one in absent.clauses)
    return roles.pop() if plain and len(roles) == 1 else None


def _ends_with(tables: Tables, waiting: set[DetState], role: str) -> bool:
    """Whether each partial match in a waiting state has the role at its last event, and at no
    other one."""
    behind = set(waiting)
    order = list(waiting)
    for state in order:
        reached = {step.target for steps in tables.steps for step in steps if state in step.sources}
        for target in {*reached, *tables.skip[state]} - behind - {None}:
            assert target is not None
            behind.add(target)
            order.append(target)
    for steps in tables.steps:
        for step in steps:
            has_role = role in tables.kinds[step.kind].marks
            if (step.target in waiting) != has_role or (has_role and behind & {*step.sources}):
                return False
    return True


def _is_asked(
    tables: Tables,
    asked: RoleClause,
    role: str,
    marks: Sequence[str],
    clauses: Sequence[RoleClause],
) -> bool:
    """Whether the listing asks for a clause of the absent event between the event of the cell and
    the event that takes it. Its roles can have other names, if the same events have them."""
    for one in clauses:
        if one.when != "pairs" or one.round_mark is not None or len(one.clause.labels) != 2:
            continue
        left, right = one.clause.labels
        for of_cell, taking in ((left, right), (right, left)):
            if taking not in marks or not _on_the_same(tables, of_cell, role):
                continue
            if _named(one.clause, {of_cell: role, taking: ABSENT}) == _named(asked.clause, {}):
                return True
    return False


def _on_the_same(tables: Tables, one: str, other: str) -> bool:
    """Whether the same events have two roles."""
    return all((one in kind.marks) == (other in kind.marks) for kind in tables.kinds)


def _named(clause: Clause, names: dict[str, str]) -> frozenset[object]:
    """The predicates of a clause under other roles."""

    def change(node: Leaf) -> Leaf:
        return replace(node, label=names.get(node.label, node.label))

    return frozenset(map_leaves(predicate, change) for predicate in clause.predicates)
