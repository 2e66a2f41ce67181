"""Matches of neighbouring events, as ways through *spots*: `A AS top : (A AS down):+ : (B AS x):+`.

Where every event that a state does not mark ends its matches, a match is a stretch of neighbours.
Its events go from spot to spot: a spot is a state with the kind of the event that led there. A
condition is *local* if it only ever compares two neighbours, or asks about one event. Then each
step between spots has its own conditions, and one pass over the events, from the last one back,
finds how far a match from each start can go: no arena, and no search.

Which conditions are local, the spots tell. They know which of the roles in FIRST(…) have come
before, and, by a guess that the end of a match confirms, which of those in LAST(…) still come. So a
spot says of its event whether it is the first or the last one of a role. A condition is local if no
way of two steps or more leads between two of the events that it compares:

* `down.v < PREV(down.v)`: no way leads from `down` over others to the next `down`;
* `FIRST(down.v) < top.v`, `FIRST(up.v) > LAST(down.v)`: each step from the one to the other.

Spots from which the same steps lead on are one (as in the minimising of automata), so a guess that
changes nothing costs nothing.

Rejected: the matches between a start and an end by the walk over the arena. It finds each start's
matches at every end, to keep one of them: 0.94 of 1.2 s for the V shape among 10⁶ events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from celc.core import formula as core
from celc.core.terms import nodes_written_in
from celc.core.traversal import Leaf, map_leaves
from celc.normal.flat_form import ABSENT, FlatForm, RoleClause
from celc.plan.adjoining.spots import (
    BEFORE,
    HERE,
    MOST_STEPS,
    AdjoiningRuns,
    LocalCondition,
    Spots,
    Term,
    Which,
)
from celc.plan.tables import Tables


def adjoining_runs(tables: Tables, flat: FlatForm | None) -> AdjoiningRuns | None:
    """The spots and steps of matches of neighbours. None: a match need not be one, or a condition
    is not local.

    tables: with starts apart, and without contexts or instants. flat: the conditions on the events
    of roles; None: there are none.
    """
    if tables.states > MOST_STEPS or tables.steps[0]:
        return None
    if any(row[0] is not None for row in tables.skip):
        return None
    clauses = () if flat is None else flat.clauses
    if flat is not None and not _asks_for_starts_alone(flat):
        return None
    read = [_terms(clause) for clause in clauses]
    terms = [one for one in read if one is not None]
    if len(terms) < len(read):
        return None
    spots = Spots.of(tables, [term for one in terms for term in one])
    if spots is None:
        return None
    if flat is not None and not spots.starts_carry([*_roles_of_starts(flat)]):
        return None
    found: dict[LocalCondition, int] = {}
    conditions: dict[tuple[int | None, int], set[int]] = {}
    for clause, of_clause in zip(clauses, terms, strict=True):
        if not spots.are_near(of_clause):
            return None
        for edge in spots.edges:
            for places in spots.places(of_clause, edge):
                local = LocalCondition(_local(clause.clause, places), clause)
                number = found.setdefault(local, len(found))
                conditions.setdefault(edge, set()).add(number)
    made = spots.merged({edge: frozenset(numbers) for edge, numbers in conditions.items()})
    if len(made.steps) > MOST_STEPS:
        return None
    return replace(made, conditions=tuple(found))


# --- the terms of conditions ----------------------------------------------------------------------

_ENDS: Mapping[str, Which] = {"FIRST": "FIRST", "LAST": "LAST"}


def _terms(clause: RoleClause) -> tuple[Term, ...] | None:
    """The events that a clause compares; None: not just events of roles, each for itself."""
    if clause.when in ("earlier", "witness") or any(clause.iterations):
        return None
    found: dict[Term, None] = {}
    for predicate in clause.clause.predicates:
        if isinstance(predicate, core.Quantified):
            return None
        for node in nodes_written_in(predicate):
            if not isinstance(node, Leaf):
                continue
            which = _which(node, clause)
            if which is None:
                return None
            found[Term(node.label, which)] = None
    if not {*clause.clause.labels} <= {term.role for term in found}:
        return None  # the condition of a branch, which an event of the branch calls for
    for role in clause.clause.labels:
        found[Term(role, "each")] = None
    return tuple(found)


def _which(node: Leaf, clause: RoleClause) -> Which | None:
    match node:
        case core.AttributeValue():
            return "each"
        case core.Previous(distance=1) if clause.when == "neighbours":
            return "PREV"
        case core.Aggregate(prior=False):
            return _ENDS.get(node.function)
        case _:
            return None


def _local(clause: core.Clause, places: Mapping[Term, str]) -> core.Clause:
    """The clause, whose terms are at the places BEFORE and HERE."""

    def change(node: Leaf) -> core.Expression:
        which: Which = "each"
        if isinstance(node, core.Previous):
            which = "PREV"
        elif isinstance(node, core.Aggregate):
            which = _ENDS[node.function]
        assert node.attribute is not None
        place = places[Term(node.label, which)]
        return core.AttributeValue(place, node.attribute, node.type, node.span)

    predicates = tuple(map_leaves(one, change) for one in clause.predicates)
    return core.Clause(predicates, (BEFORE, HERE), clause.span)


def _asks_for_starts_alone(flat: FlatForm) -> bool:
    """Whether the events around a match are only asked for before it."""
    elsewhere = flat.absent or flat.first or flat.windows or flat.absent_parts or flat.after
    return not elsewhere


def _roles_of_starts(flat: FlatForm) -> Iterator[str]:
    """The roles of the first event that say what must not lie before it."""
    yield from (one.first for one in flat.parts_before)
    for before in flat.events_before:
        yield before.first
        for clause in before.clauses:
            yield from (role for role in clause.clause.labels if role != ABSENT)
            for predicate in clause.clause.predicates:
                named = (one for one in nodes_written_in(predicate) if isinstance(one, Leaf))
                yield from (node.label for node in named if node.label != ABSENT)
