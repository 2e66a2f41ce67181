"""Bounds of piles: an event passes over a pile only where its comparison fails for all of it.

The update is given the values that events compare. So the code is tried with values just below,
at and just above the bounds of piles. What a pile holds afterwards must still be above its bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from celc.plan.straight_line.pile_bounds import PileBounds
from celc.verify.prove.code.arena_model import NO_BOUND
from celc.verify.prove.code.machines import BEGIN
from celc.verify.prove.code.module_text import WrongError
from celc.verify.prove.code.relations import Relation
from celc.verify.prove.code.update_code import ADMITTING, BOUND, VALUE, After, Before, Pile
from celc.verify.prove.code.update_step import UpdateStep


def check_bounds(step: UpdateStep, bounds: PileBounds, marks: Sequence[tuple[str, ...]]) -> None:
    """Raises WrongError where an event is not held against a bound, or a bound is too high."""
    for symbol, relation in enumerate(step.relations, 1):
        asked = {
            number
            for source, made in relation.made.items()
            for kind, _ in made
            for number in _asked(bounds, source, marks[kind])
        }
        for number in (None, *sorted(asked)):
            for value in (VALUE - 1, VALUE, VALUE + 1) if number is not None else (VALUE,):
                for before in _states(step, bounds, symbol, number, value):
                    _check(step, bounds, marks, relation, before)


def _states(
    step: UpdateStep, bounds: PileBounds, symbol: int, number: int | None, value: int
) -> Iterator[Before]:
    """States in which all piles hold matches. The bound `number` is VALUE in all of them, that of
    now or the one before; the one before may be out of date."""
    starts = dict.fromkeys(step.code.piles, step.clock.starts()[-1])
    given = {} if number is None else {f"value_{number}": value}
    turned = ((step.clock.floor, False), (step.clock.floor - 1, True))
    for place, (at_key, turns), low in product(range(2), turned, (ADMITTING, BOUND + 1)):
        if turns and place == 1:
            continue  # nothing is newer than the older bounds then, so nothing is live
        kept: list[int] = []
        for at, (_, own) in enumerate(bounds.kept):
            pair = [NO_BOUND, NO_BOUND]
            pair[place] = VALUE if own == number else low + at
            kept += pair
        yield Before(
            starts,
            (symbol,),
            step.clock.key,
            step.clock.floor,
            bounds=[*kept, at_key],
            given=given,
            taken=step.takes.get(symbol, frozenset()),
        )


def _check(
    step: UpdateStep,
    bounds: PileBounds,
    marks: Sequence[tuple[str, ...]],
    relation: Relation,
    before: Before,
) -> None:
    least = {one: min(before.bounds[2 * at : 2 * at + 2]) for at, one in enumerate(bounds.kept)}

    def admits(source: Pile | str, kind: int, to: Pile | None) -> bool:
        for number in _asked(bounds, source, marks[kind]):
            value = before.given.get(f"value_{number}", VALUE)
            bound = least[source, number]  # type: ignore[index]
            if not (bound < value or (bound == value and not bounds.pairings[number].strict)):
                return False
        return True

    after = step.compare(before, relation, admits, may_admit_more=True)
    _check_kept(bounds, marks, relation, after, least, admits)


def _check_kept(
    bounds: PileBounds,
    marks: Sequence[tuple[str, ...]],
    relation: Relation,
    after: After,
    least: dict[tuple[int, int], int],
    admits: Callable[[Pile | str, int, Pile | None], bool],
) -> None:
    for at, (pile, number) in enumerate(bounds.kept):
        if after.heads[pile][0] == 0:
            continue  # everything was taken
        now = min(after.bounds[2 * at : 2 * at + 2])
        needed = [least[pile, number]] if pile in relation.stays.get(pile, ()) else []
        for source, made in relation.made.items():
            for kind, to in made:
                if to != pile or not admits(source, kind, to):
                    continue  # what is admitted besides is refused by the listing
                if bounds.pairings[number].earlier in marks[kind]:
                    needed.append(BOUND)
                elif source != BEGIN:
                    needed.append(least.get((source, number), NO_BOUND))  # type: ignore[arg-type]
        if needed and now > min(needed):
            raise WrongError(
                f"the bound of pile {pile} by condition {number} is {now - min(needed)} too high"
            )


def _asked(bounds: PileBounds, source: Pile | str, marks: tuple[str, ...]) -> list[int]:
    """The pairings by which an event with these marks is compared with what a pile holds."""
    return [
        number
        for number, pairing in enumerate(bounds.pairings)
        if pairing.later in marks and (source, number) in bounds.kept
    ]
