"""What an update does with what its piles hold: its relation, in numbers and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from celc_runtime.plan.frozen import frozen

from celc.verify.prove.code.arena_model import ALWAYS
from celc.verify.prove.code.machines import BEGIN
from celc.verify.prove.code.update_code import Before, Part, Pile


@frozen(eq=False)
class Clock:
    """How keys of events and windows are measured: the key of an event, and the earliest start in
    its window."""

    key: int
    floor: int

    def starts(self) -> tuple[int, ...]:
        """Starts at the edge of the window: just outside, at it, inside."""
        if self.floor == ALWAYS:
            return (5, 6, 7)
        return tuple(
            one for one in (self.floor - 1, *range(self.floor, self.floor + 3)) if one <= self.key
        )


@frozen(eq=False)
class Relation:
    """What events of one symbol do with what a pile holds: where it stays, and what is made of
    it."""

    stays: Mapping[Pile, tuple[Pile, ...]]
    made: Mapping[Pile | str, tuple[tuple[int, Pile | None], ...]]
    """From a pile or BEGIN: (kind, pile or None where a match ends)."""

    def reads(self) -> frozenset[Pile]:
        return frozenset(source for source in self.made if source != BEGIN)


def shown(before: Before) -> str:
    order = sorted(before.since.items(), key=lambda one: (one[1], repr(one[0])))
    piles = ", ".join(
        f"pile {pile} from {'outside the window' if since < before.floor else since - before.floor}"
        for pile, since in order
    )
    events = " ".join(map(str, before.symbols))
    return f"symbol {events} over {piles or 'empty piles'}"


def parts_text(parts: Counter[Part]) -> str:
    return (
        ", ".join(
            f"{source} with kinds {kinds}" if kinds else str(source)
            for source, kinds in sorted(parts.elements(), key=repr)
        )
        or "nothing"
    )
