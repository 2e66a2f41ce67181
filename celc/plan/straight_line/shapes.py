"""Straight-line updates → the shape of a query's matches, where all have the same shape.

The shape is fixed if every way from the start to a match takes the same kinds of events in the same
places, as in `A ; B ; C`. Such matches are listed column by column
(`celc_runtime.engine.walk.runs`). This also requires that all cells that begin a match are on one
pile, and that nothing else is read with it.
"""

from celc_runtime.plan.strategy import InRuns

from celc.automata.determinize import START, DetState
from celc.plan.straight_line.piles import PilePlan

# events of the longest match that is listed column by column; the same as in
# `celc_runtime.engine.arena.nodes`
MAX_LEVELS = 32


def fixed_shape(plan: PilePlan) -> InRuns | None:
    """The shape of all matches; None where shapes differ, or cannot be listed column by column."""
    writes = [write for of_symbol in plan.writes for write in of_symbol]
    steps = {write.step for write in writes}
    places: dict[DetState, int] = {START: 0}
    kinds: dict[int, int] = {}
    length = 0
    left = set(steps)
    while left:
        known = {step for step in left if all(source in places for source in step.sources)}
        if not known:
            return None  # a loop
        for step in known:
            from_places = {places[source] for source in step.sources}
            if len(from_places) != 1:
                return None
            place = from_places.pop()
            if kinds.setdefault(place, step.kind) != step.kind:
                return None
            if step.target is None:
                if length not in (0, place + 1):
                    return None
                length = place + 1
            elif places.setdefault(step.target, place + 1) != place + 1:
                return None
        left -= known
    if not 2 <= length <= MAX_LEVELS or len(kinds) != length:
        return None
    leaf_piles = {write.pile for write in writes if write.starts}
    if len(leaf_piles) != 1:
        return None
    (leaf_pile,) = leaf_piles
    if leaf_pile is None or any(
        leaf_pile in write.reads and len(write.reads) > 1 for write in writes
    ):
        return None
    return InRuns(kinds=tuple(kinds[place] for place in range(length)), leaf_pile=leaf_pile)
