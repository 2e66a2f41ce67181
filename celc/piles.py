"""Transition tables → straight-line updates: which piles there are, and what each symbol does.

A *pile* is a prepend-only list of cells. Where unmarked events leave every match in its state, the
cells that are made for one state out of one set of sources come in the order of their starts: what
the sources hold only grows, so the latest start among it never goes back. So there is a pile for
each pair (target, sources), each is in time order by construction, a state's content is the union
of its piles, and the number of piles is known when the code is written.

A state can also be *fleeting*: any event that passes unmarked loses its matches, as between the two
sides of `:` and inside STRICT. Then what it holds was made by the event just before, all of it out
of the same sources at the same time, so that a pile is in time order again. It begins empty at each
event (`fresh`), and counts only if the last event that mattered was the neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass

from celc.deadline import look
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
    the piles in `saved[symbol]`, which are copied first; fleeting piles are written beside what is
    read. `nodes_per_event` is the most nodes that one event can make.
    """

    piles: tuple[Pile, ...]
    fleeting: frozenset[int]
    writes: tuple[tuple[Write, ...], ...]
    saved: tuple[tuple[int, ...], ...]
    nodes_per_event: int


def plan_straight_line(tables: Tables) -> StraightLine | None:
    """The plan, or None where the general engine must (or should) run the query.

    The rule: unmarked events leave a state as it is or lose it, whatever they are; symbol 0 marks
    nothing; a symbol means the same whatever came before; and the code stays small.
    """
    if why_not_straight_line(tables) is not None:
        return None
    piles: dict[Pile, int] = {}
    for steps in tables.steps:
        look()
        for step in steps:
            if step.target is not None:
                piles.setdefault(Pile(step.target, step.sources), len(piles))
    of_state: dict[DetState, tuple[int, ...]] = {}
    for pile, index in piles.items():
        of_state[pile.target] = (*of_state.get(pile.target, ()), index)
    fleeting = frozenset(index for pile, index in piles.items() if not _stays(tables, pile.target))
    writes, saved = [], []
    for steps in tables.steps:
        look()
        ordered, copies = _in_safe_order(
            [_write(step, piles, of_state) for step in steps], fleeting
        )
        writes.append(ordered)
        saved.append(copies)
    most = max(
        sum(1 + max(0, len(write.reads) - 1) for write in symbol_writes) for symbol_writes in writes
    )
    # The update divides by it, so a query that matches nothing has one too.
    return StraightLine(tuple(piles), fleeting, tuple(writes), tuple(saved), max(1, most))


def _write(step: Step, piles: dict[Pile, int], of_state: dict[DetState, tuple[int, ...]]) -> Write:
    reads = tuple(
        pile for source in step.sources if source != START for pile in of_state.get(source, ())
    )
    pile = None if step.target is None else piles[Pile(step.target, step.sources)]
    return Write(step, START in step.sources, reads, pile)


def why_not_straight_line(tables: Tables) -> str | None:
    """Why a query is run by the general engine; None where straight-line code can do it."""
    if tables.contexts is not None:
        return "nested selectors look at what came before a match"
    if not all(_stays(tables, DetState(s)) or _is_lost(tables, s) for s in range(1, tables.states)):
        return "events that pass unmarked change states"
    if tables.steps[0]:
        return "every event can be part of a match"
    piles = {(step.target, step.sources) for steps in tables.steps for step in steps if step.target}
    writes = sum(map(len, tables.steps))
    if len(piles) > MAX_PILES or writes > MAX_WRITES:
        return f"{writes} moves of {len(piles)} kinds are too many for code that is read"
    return None


def why_straight_line(plan: StraightLine) -> str:
    """Why a query is run by code of its own: what it takes, and what it may take at most."""
    writes = sum(map(len, plan.writes))
    kept = "as they are or lose them" if plan.fleeting else "as they are"
    return (
        f"events that pass unmarked leave matches {kept}, "
        f"and it takes {writes} of {MAX_WRITES} moves, {len(plan.piles)} of {MAX_PILES} piles"
    )


def _stays(tables: Tables, state: DetState) -> bool:
    look()
    return all(target == state for target in tables.skip[state])


def _is_lost(tables: Tables, state: int) -> bool:
    look()
    return all(target is None for target in tables.skip[state])


def _in_safe_order(
    writes: list[Write], fleeting: frozenset[int]
) -> tuple[tuple[Write, ...], tuple[int, ...]]:
    """Order writes so that piles are read before they are written; copy where they cannot be."""
    left = list(writes)
    ordered: list[Write] = []
    saved: dict[int, None] = {}
    while left:
        look()
        ready = next(
            (
                write
                for write in left
                if write.pile is None
                or write.pile in saved
                or write.pile in fleeting
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
