"""Transition tables → straight-line updates: which piles there are, and what each symbol does.

A *pile* is a prepend-only list of cells. Where unmarked events leave every match in its state, the
cells that are made for one state out of one set of sources come in the order of their starts: what
the sources hold only grows, so the latest start among it never goes back. So there is a pile for
each pair (target, sources), each is in time order by construction, a state's content is the union
of its piles, and the number of piles is known when the code is written.
"""

from __future__ import annotations

from dataclasses import dataclass

from celc.determinize import START, DetState
from celc.tables import Step, Tables

MAX_PILES = 48
MAX_WRITES = 160
"""Beyond these, straight-line code is longer than a reader (and the register allocator) can take;
the general engine's tables are then the better form. See `can_be_straight_line`."""


@dataclass(frozen=True, slots=True)
class Pile:
    """The cells of `target` that were made out of `sources` (START: matches that begin there)."""

    target: DetState
    sources: tuple[DetState, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """One cell to make: out of the piles `reads` (and a match begun here, where `starts`).

    `pile` is the pile it is put on; None: it ends a match.
    """

    step: Step
    starts: bool
    reads: tuple[int, ...]
    pile: int | None


@dataclass(frozen=True, slots=True)
class StraightLine:
    """The plan of an update in straight-line code.

    `writes[symbol]` are in an order in which no write destroys what a later one reads, except for
    the piles in `saved[symbol]`, which are copied first. `nodes_per_event` is the most nodes that
    one event can make.
    """

    piles: tuple[Pile, ...]
    writes: tuple[tuple[Write, ...], ...]
    saved: tuple[tuple[int, ...], ...]
    nodes_per_event: int


def plan_straight_line(tables: Tables) -> StraightLine | None:
    """The plan, or None where the general engine must (or should) run the query.

    The rule: unmarked events change no state, symbol 0 does nothing, a symbol means the same
    whatever came before, and the code stays small.
    """
    if tables.contexts is not None or not tables.skips_are_identities or not tables.is_idle(0):
        return None
    piles: dict[Pile, int] = {}
    for steps in tables.steps:
        for step in steps:
            if step.target is not None:
                piles.setdefault(Pile(step.target, step.sources), len(piles))
    of_state: dict[DetState, tuple[int, ...]] = {}
    for pile, index in piles.items():
        of_state[pile.target] = (*of_state.get(pile.target, ()), index)
    if len(piles) > MAX_PILES or sum(map(len, tables.steps)) > MAX_WRITES:
        return None
    writes, saved = [], []
    for steps in tables.steps:
        ordered, copies = _in_safe_order([_write(step, piles, of_state) for step in steps])
        writes.append(ordered)
        saved.append(copies)
    most = max(
        sum(1 + max(0, len(write.reads) - 1) for write in symbol_writes) for symbol_writes in writes
    )
    # The update divides by it, so a query that matches nothing has one too.
    return StraightLine(tuple(piles), tuple(writes), tuple(saved), max(1, most))


def _write(step: Step, piles: dict[Pile, int], of_state: dict[DetState, tuple[int, ...]]) -> Write:
    reads = tuple(
        pile for source in step.sources if source != START for pile in of_state.get(source, ())
    )
    pile = None if step.target is None else piles[Pile(step.target, step.sources)]
    return Write(step, START in step.sources, reads, pile)


def _in_safe_order(writes: list[Write]) -> tuple[tuple[Write, ...], tuple[int, ...]]:
    """Order writes so that piles are read before they are written; copy where they cannot be."""
    left = list(writes)
    ordered: list[Write] = []
    saved: dict[int, None] = {}
    while left:
        ready = next(
            (
                write
                for write in left
                if write.pile is None
                or write.pile in saved
                or all(other is write or write.pile not in other.reads for other in left)
            ),
            None,
        )
        if ready is None:
            pile = left[0].pile
            assert pile is not None
            saved[pile] = None
            continue
        left.remove(ready)
        ordered.append(ready)
    return tuple(ordered), tuple(saved)
