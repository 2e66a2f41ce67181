"""Conditions between events → bounds of piles, by which an update skips a pile after one look.

A condition like `x.v > PREV(x.v)` or `a.v < b.v` is checked while matches are listed, for each
partial match that an event would extend. Most events extend none. So the update keeps a *bound* for
a pile: the least value that a later event is compared with, over all matches of the pile. An event
that is not beyond the bound satisfies the condition with no match of the pile, and is not added.

The value is that of the last event with the earlier role. An event with the role brings its own
value. Any other event on a pile takes over the bounds of the piles that it was made from. Where
some match of a pile has no event of the role, the condition holds for it, and the pile has no
bound. Where the condition asks for less, values are compared in the reverse order. So a bound is
always a least value.

A bound is only a necessary condition, because it may come from a match that has left the window. So
there are two values: the least since the window last began anew, and the least of the time before.
What was put on a pile before that time has left the window.

Not tried: the exact least value inside the window, with a queue of candidates for each pile; a
bound in each cell, with which the walk could leave a pile in the middle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.terms import labels_in_order
from celc.core.traversal import Leaf, map_expression, nodes_of
from celc.normal.flat_form import ABSENT, RoleClause
from celc.plan.straight_line.piles import PilePlan, Write
from celc.plan.straight_line.takes import Take
from celc.plan.tables import Kind

_ORDERED = (
    *(*core.NUMBERS, *core.TIMES, core.DataType.TIMESTAMP_NTZ),
    core.DataType.INTERVAL,
)

# bounds of one update, of two variables each; other conditions are left to the walk
MAX_BOUNDS = 24

EVENT = ""  # the label of the one event that a side of a pairing reads


@frozen
class Pairing:
    """A condition on a later event and an earlier one of the same match. The later value must be
    greater, or less where it `falls`. It may be equal unless `strict`."""

    written: core.Predicate
    earlier: str  # the role of the earlier event
    later: str
    of_earlier: core.Expression
    """The earlier side of the comparison, read from its own event alone (`EVENT`)."""
    of_later: core.Expression
    falls: bool
    strict: bool


@frozen
class PileBounds:
    """The bounds that an update keeps, and the takes that compare events with those of cells."""

    pairings: tuple[Pairing, ...]
    kept: tuple[tuple[int, int], ...]  # pairs of a pile and the number of a pairing
    takes: tuple[Take, ...] = ()

    def asked(self, pile: int, marks: tuple[str, ...]) -> tuple[int, ...]:
        """The pairings by which an event with these marks is compared with a pile."""
        return tuple(
            number
            for number, pairing in enumerate(self.pairings)
            if pairing.later in marks and (pile, number) in self.kept
        )


def pile_bounds(
    query: core.Query,
    clauses: tuple[RoleClause, ...],
    piles: PilePlan,
    kinds: tuple[Kind, ...],
    takes: tuple[Take, ...] = (),
) -> PileBounds | None:
    """The bounds that conditions give, with the takes; None where there are neither.

    Each state must keep its matches. Where events take matches away, cells are on piles by the
    piles that they were made from, and a skipped pile would mix them.
    """
    if query.simultaneous or piles.fleeting or piles.most_removals:
        return None
    constant = _constant_in_partition(query)
    writes = [
        (write, kinds[write.step.kind].marks) for of_symbol in piles.writes for write in of_symbol
    ]
    pairings: list[Pairing] = []
    kept: list[tuple[int, int]] = []
    for pairing in (found for clause in clauses for found in _pairings(clause, constant)):
        of_piles = _piles_with_bound(pairing, len(piles.piles), writes)
        if of_piles and len(kept) + len(of_piles) <= MAX_BOUNDS:
            kept += [(pile, len(pairings)) for pile in of_piles]
            pairings.append(pairing)
    found = PileBounds(tuple(pairings), tuple(sorted(kept)), takes)
    return found if kept or takes else None


def asked_by(bounds: PileBounds, pile: int, take: Take, kinds: Sequence[Kind]) -> tuple[int, ...]:
    """The bounds of a pile without which an event takes none of its cells."""
    found = []
    for own in (pairing for clause in take.clauses for pairing in _pairings(clause, frozenset())):
        for number, pairing in enumerate(bounds.pairings):
            alike = replace(own, written=pairing.written, earlier=pairing.earlier, later=own.later)
            if own.later != ABSENT or alike != replace(pairing, later=ABSENT):
                continue
            same = all((pairing.earlier in k.marks) == (take.role in k.marks) for k in kinds)
            if same and (pile, number) in bounds.kept:
                found.append(number)
    return tuple(dict.fromkeys(found))


def _constant_in_partition(query: core.Query) -> frozenset[str]:
    """The attributes that have one value in all events of a partition."""
    keys = {key.name for key in query.partition_by if not key.alternatives}
    if query.parameters is not None:
        keys |= {column for column, _ in query.parameters.columns}
    return frozenset(keys)


def _pairings(condition: RoleClause, constant: frozenset[str]) -> Iterator[Pairing]:
    """The pairings of a condition: one for each order of its two events."""
    clause = condition.clause
    if not len(clause.predicates) == len(condition.written.predicates) == 1:
        return
    (comparison,), (shown,) = clause.predicates, condition.written.predicates
    if condition.round_mark is not None:
        return  # the last event of the earlier role can be of another round
    if not isinstance(comparison, core.Comparison) or comparison.beside:
        return
    if comparison.operator in ("=", "!=") or comparison.left.type not in _ORDERED:
        return
    sides = [_Side.of(side, constant) for side in (comparison.left, comparison.right)]
    labels = labels_in_order(clause)
    left, right = sides
    if left is None or right is None:
        return
    strict, rises = comparison.operator in ("<", ">"), comparison.operator[0] == "<"
    if condition.when == "neighbours" and len(labels) == 1:
        (role,) = labels
        for earlier, later, ascends in ((left, right, rises), (right, left, not rises)):
            if earlier.reads == {(role, True)} and later.reads <= {(role, False)} and later.reads:
                yield Pairing(
                    shown, role, role, earlier.at_event, later.at_event, not ascends, strict
                )
    elif condition.when == "pairs" and len(labels) == 2:
        for earlier, later, ascends in ((left, right, rises), (right, left, not rises)):
            if len(earlier.reads) == len(later.reads) == 1 and earlier.reads != later.reads:
                ((before, _),), ((after, _),) = earlier.reads, later.reads
                yield Pairing(
                    shown, before, after, earlier.at_event, later.at_event, not ascends, strict
                )


@frozen
class _Side:
    """One side of a comparison, read from one event. `reads` are the (role, whether by PREV) that
    it reads, without what is constant in a partition."""

    reads: frozenset[tuple[str, bool]]
    at_event: core.Expression

    @staticmethod
    def of(side: core.Expression, constant: frozenset[str]) -> _Side | None:
        """The side of a comparison; None if it reads more than attributes of events."""
        reads = set()
        for node in nodes_of(side):
            match node:
                case core.AttributeValue(attribute=attribute) if attribute in constant:
                    pass
                case core.AttributeValue(label=label):
                    reads.add((label, False))
                case core.Previous(label=label, distance=1):
                    reads.add((label, True))
                case (
                    core.Constant()
                    | core.Arithmetic()
                    | core.Negation()
                    | core.Absolute()
                    | core.Cast()
                    | core.Call()
                ):
                    pass
                case _:
                    return None
        return _Side(frozenset(reads), map_expression(side, _of_event))


def _of_event(leaf: Leaf) -> core.Expression:
    assert isinstance(leaf, core.AttributeValue | core.Previous)
    return core.AttributeValue(EVENT, leaf.attribute, leaf.type, leaf.span)


def _piles_with_bound(
    pairing: Pairing, piles: int, writes: list[tuple[Write, tuple[str, ...]]]
) -> list[int]:
    """The piles whose bounds by one pairing some event is compared with, and those that pass their
    bounds on to them, in order."""
    known = set(range(piles))  # those where every match has an event of the earlier role
    changed = True
    while changed:
        changed = False
        for write, marks in writes:
            inherits = not write.starts and known.issuperset(write.reads)
            if write.pile in known and pairing.earlier not in marks and not inherits:
                known.discard(write.pile)
                changed = True
    needed = {
        pile
        for write, marks in writes
        if pairing.later in marks
        for pile in write.reads
        if pile in known
    }
    waiting = list(needed)
    while waiting:
        pile = waiting.pop()
        for write, marks in writes:
            if write.pile == pile and pairing.earlier not in marks:
                waiting += set(write.reads) - needed
                needed |= set(write.reads)
    return sorted(needed)
