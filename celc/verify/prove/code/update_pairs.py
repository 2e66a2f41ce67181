"""Two events in one call of an update: one after the other, and in one instant.

What an update does with one event is known (`update_step`). Two events one after the other must do
that one after the other, so nothing is carried over but the piles. Two events of one instant, which
have no order, must both read the piles as they were before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product

from celc.verify.prove.code.arena_model import ALWAYS
from celc.verify.prove.code.machines import BEGIN
from celc.verify.prove.code.module_text import WrongError
from celc.verify.prove.code.relations import Relation, parts_text, shown
from celc.verify.prove.code.update_code import Before, Part, Pile
from celc.verify.prove.code.update_step import UpdateStep

MOST_PAIRS = 100
"""Pairs of symbols; of more symbols each is tried with the one behind it."""


def check_pairs(step: UpdateStep) -> None:
    """Raises WrongError where two events do something else than each of them does."""
    if step.consumes or step.takes:
        return  # what the first event does is hidden, or is another event's choice
    symbols = range(1, step.symbols)
    pairs: Iterable[tuple[int, int]] = product(symbols, symbols)
    if len(symbols) ** 2 > MOST_PAIRS:
        pairs = ((one, one % len(symbols) + 1) for one in symbols)
    for first, second in pairs:
        before = _before(step, first, second)
        relations = step.relations[first - 1], step.relations[second - 1]
        _compare(step, before, _one_after_the_other(step, *relations))
        if step.code.has_instants and before.rises == 0:
            before = _before(step, first, second)
            before.same_instant = True
            _compare(step, before, _together(step, *relations))


def _before(step: UpdateStep, first: int, second: int) -> Before:
    """All piles hold matches, as late as both windows allow."""
    by_position = step.by_position()
    clock = step.clock
    start = clock.starts()[-1]
    without = clock.floor == ALWAYS
    return Before(
        dict.fromkeys(step.code.piles, start) if start > clock.floor or without else {},
        (first, second),
        clock.key,
        clock.floor,
        rises=int(by_position and not without),
        key_rises=int(by_position or without),
    )


def _compare(step: UpdateStep, before: Before, wanted: dict[Pile | None, list[Part]]) -> None:
    if not before.since:
        return
    found = step.answer(before)
    for pile in (*step.code.piles, None):
        ours, theirs = Counter(wanted.get(pile, ())), Counter(found.get(pile, ()))
        if ours != theirs:
            where = "the matches that end" if pile is None else f"pile {pile}"
            together = " in one instant" if before.same_instant else ""
            raise WrongError(
                f"{shown(before)}{together}: {where}: wanted {parts_text(ours - theirs)}, "
                f"found instead {parts_text(theirs - ours)}"
            )


def _after(
    relation: Relation, held: dict[Pile | None, list[Part]]
) -> dict[Pile | None, list[Part]]:
    """What piles hold after an event, given what they hold before it."""
    found: dict[Pile | None, list[Part]] = {}
    for kind, to in relation.made.get(BEGIN, ()):
        found.setdefault(to, []).append((BEGIN, (kind,)))
    for pile, parts in held.items():
        if pile is None:
            continue
        for source, kinds in parts:
            for kind, to in relation.made.get(pile, ()):
                found.setdefault(to, []).append((source, (*kinds, kind)))
            for to in relation.stays.get(pile, ()):
                found.setdefault(to, []).append((source, kinds))
    return found


def _one_after_the_other(
    step: UpdateStep, first: Relation, second: Relation
) -> dict[Pile | None, list[Part]]:
    held: dict[Pile | None, list[Part]] = {pile: [(pile, ())] for pile in step.code.piles}
    between = _after(first, held)
    found = _after(second, between)
    found.setdefault(None, []).extend(between.get(None, []))
    return found


def _together(step: UpdateStep, first: Relation, second: Relation) -> dict[Pile | None, list[Part]]:
    held: dict[Pile | None, list[Part]] = {pile: [(pile, ())] for pile in step.code.piles}
    made: dict[Pile | None, list[Part]] = {}
    for relation in (first, second):
        for to, parts in _after(relation, held).items():
            made.setdefault(to, []).extend(part for part in parts if part[1])
    for pile in step.code.piles:
        if pile in first.stays.get(pile, ()) and pile in second.stays.get(pile, ()):
            made.setdefault(pile, []).append((pile, ()))
    return made
