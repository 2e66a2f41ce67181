"""Transition tables → straight-line updates: the piles, and the steps of each symbol.

A *pile* is a prepend-only list of cells in the order of their starts: behind a dead cell all cells
are dead. The order holds by construction, because all cells of one pile follow one *clock*: a time
that is known for each event and never goes back. It is the latest start of a cell's sources.

Where unmarked events leave every match in its state, the content of a state only grows, so the
latest start among some states is a clock. Where a match begins here, the event itself is a clock.
So there is a pile for each pair (target, sources), and a state's content is the union of its piles.

A state can also be *fleeting*: any unmarked event loses its matches, as between the two sides of
`:` and inside STRICT. The event just before has made its content. So the state follows the clock of
its sources, an event late, and it has a pile for each such clock. It begins empty at each event
(`fresh`), and counts only if the last event that mattered was the neighbour.

An event can meet matches of several clocks: some in states that stay, others in fleeting states
that happen to hold some. One cell made out of all of them would follow no clock, since the next
cell may be made out of the staying states alone, whose matches begin earlier. So there is a cell
for each clock, on a pile of its own. A clock that is never ahead of another clock that always runs
needs no cell: the matches that came out of a staying state are no later than its content now, and
the matches that a state has taken in are no later than those that it hands to itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from celc.automata.determinize import START, DetState
from celc.diagnostics.deadline import look
from celc.plan.tables import Step, Tables

MAX_PILES = 48
MAX_WRITES = 160
"""Beyond these, straight-line code is too long for a reader (and for the register allocator); the
general engine's tables are then the better form. See `why_not_straight_line`."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The latest start in some staying states, `late` events ago; of START: the event itself."""

    states: frozenset[DetState]
    late: int = 0

    def a_step_later(self) -> Clock:
        """The clock of a cell that the next event makes of cells with this clock."""
        return Clock(self.states, self.late + 1)


@dataclass(frozen=True, slots=True)
class Pile:
    """The cells of `target` that were made out of `sources` (START: matches that begin there) and
    follow one clock."""

    target: DetState
    sources: tuple[DetState, ...]
    clock: Clock


@dataclass(frozen=True, slots=True)
class Write:
    """One cell to make: out of the piles `reads` (and a match begun here, where `starts`).

    `step` has the sources of this cell alone. `pile` is the pile it is put on; None: it ends a
    match.
    """

    step: Step
    starts: bool
    reads: tuple[int, ...]
    pile: int | None


@dataclass(frozen=True, slots=True)
class PilePlan:
    """The piles of a query, and the cells that each symbol makes from them and puts on them.

    `writes[symbol]` are in an order in which no write destroys what a later one reads, except for
    the piles in `saved[symbol]`, which are copied first; fleeting piles are written to copies.
    `nodes_per_event` is the most nodes that one event can make.
    """

    piles: tuple[Pile, ...]
    fleeting: frozenset[int]
    writes: tuple[tuple[Write, ...], ...]
    saved: tuple[tuple[int, ...], ...]
    nodes_per_event: int

    @property
    def most_cells(self) -> int:
        """The most cells that one event makes."""
        return max(map(len, self.writes))

    @property
    def most_reads(self) -> int:
        """The most piles that one cell is made from."""
        return max((len(write.reads) for writes in self.writes for write in writes), default=0)


def plan_piles(tables: Tables) -> PilePlan | None:
    """The plan, or None where the general engine must (or should) run the query.

    The rule: every unmarked event leaves a state as it is, or every one loses it; a symbol means
    the same whatever came before; and the code stays small.
    """
    if why_not_straight_line(tables) is not None:
        return None
    clocks = _clocks_of(tables)
    assert clocks is not None
    piles: dict[Pile, int] = {}
    for steps in tables.steps:
        for step in steps:
            if step.target is not None:
                for clock, sources in _by_clock(tables, step, clocks).items():
                    piles.setdefault(Pile(step.target, tuple(sources), clock), len(piles))
    fleeting = frozenset(index for pile, index in piles.items() if not _stays(tables, pile.target))
    writes, saved = [], []
    for steps in tables.steps:
        of_symbol = [write for step in steps for write in _writes(tables, step, clocks, piles)]
        ordered, copies = _in_safe_order(of_symbol, fleeting)
        writes.append(ordered)
        saved.append(copies)
    most = max(
        sum(1 + max(0, len(write.reads) - 1) for write in symbol_writes) for symbol_writes in writes
    )
    # The update divides by it, so a query that matches nothing has one too.
    return PilePlan(tuple(piles), fleeting, tuple(writes), tuple(saved), max(1, most))


_Clocks: TypeAlias = dict[DetState, tuple[Clock, ...]]
"""The clocks that the content of each fleeting state can follow."""


def _clocks_of(tables: Tables) -> _Clocks | None:
    """The clocks of all fleeting states; None where they are too many.

    They follow from those of the states before. Where fleeting states feed each other in a loop
    that is also entered on the way, as in `A ; B : (C : D):+ : E`, they never end.
    """
    clocks: _Clocks = {}
    fleeting = [
        (step, step.target)
        for steps in tables.steps
        for step in steps
        if step.target is not None and not _stays(tables, step.target)
    ]
    changed = True
    while changed:
        changed = False
        for step, target in fleeting:
            known = clocks.get(target, ())
            more = [clock for clock in _by_clock(tables, step, clocks) if clock not in known]
            if more:
                clocks[target] = (*known, *more)
                changed = True
        if sum(map(len, clocks.values())) > MAX_PILES:
            return None
    return clocks


def _by_clock(
    tables: Tables, step: Step, clocks: _Clocks
) -> dict[Clock, dict[DetState, frozenset[Clock]]]:
    """The sources of a step by the clocks that an event can meet in them.

    With each source stand those of its own clocks that count: all of them are an event late, or
    never ahead of a clock that always runs.
    """
    staying = [s for s in step.sources if s != START and _stays(tables, s)]
    always = Clock(frozenset([START] if START in step.sources else staying))
    groups: dict[Clock, dict[DetState, frozenset[Clock]]] = {}

    def never_ahead(clock: Clock) -> bool:
        # A state that feeds itself goes on from the latest start of all that it ever took in.
        return START in always.states or clock.states <= always.states or step.target in staying

    for source in step.sources:
        if source == START or source in staying:
            groups.setdefault(always, {})[source] = frozenset()
            continue
        for own in clocks.get(source, ()):
            group = groups.setdefault(always if never_ahead(own) else own.a_step_later(), {})
            group[source] = group.get(source, frozenset()) | {own}
    return groups


def _writes(tables: Tables, step: Step, clocks: _Clocks, piles: dict[Pile, int]) -> Iterator[Write]:
    """The cells of a step. A cell that ends a match is on no pile, and follows no clock."""
    if step.target is None:
        reads = [n for s in step.sources for pile, n in piles.items() if pile.target == s]
        yield Write(step, START in step.sources, tuple(reads), None)
        return
    for clock, sources in _by_clock(tables, step, clocks).items():
        reads = [
            number
            for source, own in sources.items()
            for pile, number in piles.items()
            if pile.target == source and (not own or pile.clock in own)
        ]
        number = piles[Pile(step.target, tuple(sources), clock)]
        yield Write(replace(step, sources=tuple(sources)), START in sources, tuple(reads), number)


def why_not_straight_line(tables: Tables) -> str | None:
    """Why only the general engine can run a query; None where straight-line code can."""
    if tables.contexts is not None:
        return "nested selectors depend on the events before a match"
    if not all(_stays(tables, DetState(s)) or _is_lost(tables, s) for s in range(1, tables.states)):
        return "an unmarked event can change the state of a match"
    piles = {(step.target, step.sources) for steps in tables.steps for step in steps if step.target}
    writes = sum(map(len, tables.steps))
    if len(piles) > MAX_PILES or writes > MAX_WRITES:
        return f"{writes} moves and {len(piles)} piles are too many for code that people read"
    if _clocks_of(tables) is None:
        return f"states that last for one event need more than {MAX_PILES} piles"
    return None


def _stays(tables: Tables, state: DetState) -> bool:
    look()
    return all(target == state for target in tables.skip[state])


def _is_lost(tables: Tables, state: int) -> bool:
    look()
    return all(target is None for target in tables.skip[state])


def _in_safe_order(
    writes: list[Write], fleeting: frozenset[int]
) -> tuple[tuple[Write, ...], tuple[int, ...]]:
    """Writes in an order that reads each pile before it writes it, and the piles to copy first
    where there is no such order."""
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
