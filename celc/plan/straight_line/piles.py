"""Transition tables → straight-line updates: the piles, and the steps of each symbol.

A *pile* is a prepend-only list of cells in the order of their starts. Behind a dead cell all cells
are dead. The order holds by construction, because all cells of one pile follow one *clock*: a time
that is known for each event and never goes back. The clock is the latest start of a cell's sources.

Where a match begins, the event itself is a clock. Where unmarked events leave every match in its
state, a state only gains matches, so the latest start among some states is a clock. So there is a
pile for each pair (target, sources), and the content of a state is the union of its piles.

A state can also be *fleeting*: any unmarked event loses its matches, as between the two sides of
`:` and inside STRICT. The event just before made its content. So the state follows the clock of its
sources, one event late, and has a pile for each such clock. It begins empty at each event
(`fresh`). It counts only if the last event that mattered was the neighbour. (States that pass their
matches on at the next event are made fleeting first: see `celc.plan.straight_line.passing`.)

The third sort of state *holds* its matches until an event of certain symbols takes all of them
away. It loses them, as `!B` and UNLESS say, or moves them to another state, as the first event of a
longer absent part does. Such a state can become empty, and then its latest start goes back. But
each of its piles still follows its clock: cells put on after an event that emptied the pile have a
later time than those before. So the latest start in one pile is a clock as well. There is a
separate cell for each clock that an event can meet in such a state. A move puts a whole pile in
front of what was moved before. This merge keeps the order for the same reason, because a *moved*
pile takes from one clock only. States must not move their matches in a circle. Otherwise merges
would be stacked on merges, and walks through them would take long.

An event can meet matches of several clocks: some in states that stay, others in states that hold
some at the moment. One cell for all of them would follow no clock, because the next cell may come
from the staying states alone, whose matches begin earlier. So there is a cell for each clock, on
its own pile. A clock that is never ahead of another clock needs no cell. Matches that came out of a
state are no later than its present content, while it has any. Matches that a state has taken in are
no later than those that it passes to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.automata.determinize import START, DetState
from celc.diagnostics.deadline import look
from celc.plan.straight_line.passing import with_passing_states_apart
from celc.plan.tables import Step, Tables

MAX_PILES = 48
MAX_WRITES = 160
"""More code is too long for a reader and for the register allocator. The general engine's tables
are then better."""


@frozen
class Clock:
    """The latest start in some staying states, as known in a state that matches came to through
    others. START among the states is the event itself."""

    states: frozenset[DetState]
    through: tuple[DetState | None, ...] = ()
    """The state that held them last; None: a fleeting state, which makes the clock an event
    late."""

    def behind(self, state: DetState | None) -> Clock:
        """The clock of a cell that is made of cells with this clock in a state; None: a fleeting
        state."""
        return Clock(self.states, (*self.through, state))


@frozen
class Pile:
    """The cells of `target` that were made from `sources` (START: matches begin there) and follow
    one clock."""

    target: DetState
    sources: tuple[DetState, ...]
    clock: Clock
    moved: bool = False  # it takes whole piles of its one source, and no single cells


@frozen
class Write:
    """One cell to make."""

    step: Step  # its sources are those of this cell alone
    starts: bool  # a match begins here too
    reads: tuple[int, ...]  # the piles that the cell is made from
    pile: int | None  # the pile it is put on; None: it ends a match


@frozen
class Removal:
    """A pile that an unmarked event empties."""

    pile: int
    into: int | None  # the pile that gets the content, in front; None: it is lost


@frozen
class PilePlan:
    """The piles of a query, and the cells that each symbol makes from them and puts on them.

    An event first reads everything that it makes cells of. Then it empties the piles in
    `removals[symbol]`. Then it puts on the cells.
    """

    tables: Tables
    """The tables that the plan follows: those of the query, with passing states apart."""
    piles: tuple[Pile, ...]
    fleeting: frozenset[int]  # piles of fleeting states; they are written to copies
    removals: tuple[tuple[Removal, ...], ...]
    writes: tuple[tuple[Write, ...], ...]
    """`[symbol]`: in an order in which no write destroys what a later one reads, except in
    `saved`."""
    saved: tuple[tuple[int, ...], ...]  # `[symbol]`: the piles to copy first
    nodes_per_event: int  # the most nodes that one event can make

    @property
    def most_cells(self) -> int:
        return max(map(len, self.writes))

    @property
    def most_reads(self) -> int:
        return max((len(write.reads) for writes in self.writes for write in writes), default=0)

    @property
    def most_removals(self) -> int:
        return max(map(len, self.removals))

    def leaves_nothing(self, symbol: int) -> bool:
        """Whether an event empties all piles, so that no partial match is left."""
        lost = {removal.pile for removal in self.removals[symbol] if removal.into is None}
        filled = any(write.pile is not None for write in self.writes[symbol])
        return bool(lost) and not filled and lost | self.fleeting == {*range(len(self.piles))}

    @property
    def moves(self) -> bool:
        return any(removal.into is not None for row in self.removals for removal in row)


def plan_piles(tables: Tables) -> PilePlan | str:
    """The plan; or why the general engine must (or should) run the query, in words.

    The rule: each symbol treats all unmarked matches of a state alike (takes them out or leaves
    them); a symbol means the same whatever came before; the code stays small.
    """
    if tables.contexts is not None:
        return "nested selectors depend on the events before a match"
    tables = with_passing_states_apart(tables)
    pairs = {(step.target, step.sources) for steps in tables.steps for step in steps if step.target}
    count = sum(map(len, tables.steps))
    if len(pairs) > MAX_PILES or count > MAX_WRITES:
        return f"{count} moves and {len(pairs)} piles are too many for code that people read"
    taken = _taken_away(tables)
    if taken is None:
        return "an unmarked event can change the state of a match"
    states = _States(tables, taken)
    if not states.come_to_an_end():
        return "unmarked events can move a match in a circle"
    clocks = _clocks_of(states)
    if clocks is None:
        return f"states that last for one event, or that events empty, need over {MAX_PILES} piles"
    return _plan(states, clocks)


def _plan(states: _States, clocks: _Clocks) -> PilePlan | str:
    tables = states.tables
    piles: dict[Pile, int] = {}
    for steps in tables.steps:
        for step in steps:
            if step.target is not None:
                for clock, sources in _by_clock(states, step, clocks).items():
                    piles.setdefault(Pile(step.target, tuple(sources), clock), len(piles))
    for source, target in states.moves():
        for clock in clocks.get(source, ()):
            moved = Pile(target, (source,), clock.behind(source), moved=True)
            piles.setdefault(moved, len(piles))
    if len(piles) > MAX_PILES:
        return f"{len(piles)} piles are too many for code that people read"
    fleeting = frozenset(n for pile, n in piles.items() if states.is_fleeting(pile.target))
    removals, writes, saved = [], [], []
    for symbol, steps in enumerate(tables.steps):
        taken = tuple(_removals(states, symbol, piles))
        of_symbol = [write for step in steps for write in _writes(states, step, clocks, piles)]
        ordered, copies = _in_safe_order(of_symbol, fleeting, taken)
        removals.append(taken)
        writes.append(ordered)
        saved.append(copies)
    most = max(
        sum(max(1, len(write.reads)) for write in of_symbol)
        + sum(removal.into is not None for removal in taken)
        for of_symbol, taken in zip(writes, removals, strict=True)
    )
    # The update divides by it, so it is at least 1 even where nothing matches.
    most = max(1, most)
    return PilePlan(
        tables, tuple(piles), fleeting, tuple(removals), tuple(writes), tuple(saved), most
    )


# --- how states keep their matches ----------------------------------------------------------------


def _taken_away(tables: Tables) -> tuple[frozenset[int], ...] | None:
    """For each state the symbols that take its matches away. A staying state has none, a fleeting
    state all. None where a state is of no known sort."""
    taken = []
    for state, row in enumerate(tables.skip):
        look()
        symbols = frozenset(symbol for symbol, target in enumerate(row) if target != state)
        if state != START and 0 in symbols and any(target is not None for target in row):
            return None
        taken.append(symbols)
    for row in tables.skip[1:]:
        targets = {target for target in row if target is not None}
        if any(0 in taken[target] for target in targets):
            return None  # moved to a fleeting state
    return tuple(taken)


@frozen
class _States:
    """The states of some tables, with the symbols that take their matches away (`taken`)."""

    tables: Tables
    taken: tuple[frozenset[int], ...]

    def stays(self, state: DetState) -> bool:
        return not self.taken[state]

    def is_fleeting(self, state: DetState) -> bool:
        return 0 in self.taken[state]

    def moves(self) -> Iterator[tuple[DetState, DetState]]:
        """The pairs of states of which the first moves matches to the second, each once."""
        for state in range(1, self.tables.states):
            targets = dict.fromkeys(self.tables.skip[state])
            for target in targets:
                if target is not None and target != state:
                    yield DetState(state), target

    def come_to_an_end(self) -> bool:
        """Whether no match is moved in a circle."""
        targets: dict[DetState, set[DetState]] = {}
        for source, target in self.moves():
            targets.setdefault(source, set()).add(target)
        while targets:
            last = [state for state, behind in targets.items() if not behind & targets.keys()]
            if not last:
                return False
            for state in last:
                del targets[state]
        return True

    def is_backed(self, by: DetState, passed: Sequence[DetState | None]) -> bool:
        """Whether what came out of a state through the states `passed` is there only as long as its
        origin.

        An event that empties the first empties them too, and puts only new matches into them.
        """
        symbols = self.taken[by]
        if not all(state is None or symbols <= self.taken[state] for state in passed):
            return False
        if any(
            row[symbol] in passed and row[symbol] != state
            for state, row in enumerate(self.tables.skip)
            for symbol in symbols
            if row[symbol] is not None
        ):
            return False
        return not any(
            step.target in passed or (step.target is not None and self.is_fleeting(step.target))
            for symbol in symbols
            for step in self.tables.steps[symbol]
            if step.sources != (START,)
        )


# --- clocks ---------------------------------------------------------------------------------------

_Clocks: TypeAlias = dict[DetState, tuple[Clock, ...]]


def _clocks_of(states: _States) -> _Clocks | None:
    """The clocks of all states that do not stay; None where they are too many.

    They follow from the clocks of the states before. There is no end to them where such states feed
    each other in a loop that can also be entered on the way, as in `A ; B : (C : D):+ : E`.
    """
    clocks: _Clocks = {}
    steps = [
        (step, step.target)
        for row in states.tables.steps
        for step in row
        if step.target is not None and not states.stays(step.target)
    ]
    moves = [(source, target) for source, target in states.moves() if not states.stays(target)]
    seen: set[tuple[DetState, Clock]] = set()
    fresh = {source for step, _ in steps for source in step.sources}
    fresh.update(source for source, _ in moves)
    while fresh:
        # What comes of states without a new clock was found before.
        found: list[tuple[DetState, Clock]] = []
        for step, target in steps:
            if not fresh.isdisjoint(step.sources):
                found += [(target, clock) for clock in _by_clock(states, step, clocks)]
        for source, target in moves:
            if source in fresh:
                found += [(target, clock.behind(source)) for clock in clocks.get(source, ())]
        fresh = set()
        for state, clock in found:
            if (state, clock) not in seen:
                seen.add((state, clock))
                clocks[state] = (*clocks.get(state, ()), clock)
                fresh.add(state)
        if len(seen) > MAX_PILES:
            return None
    return clocks


def _by_clock(
    states: _States, step: Step, clocks: _Clocks
) -> dict[Clock, dict[DetState, frozenset[Clock]]]:
    """The sources of a step by the clocks that an event can meet in them.

    With each source stand those of its own clocks that count. Each is the clock behind this source,
    or never ahead of it.
    """
    staying = [s for s in step.sources if s != START and states.stays(s)]
    always = Clock(frozenset([START] if START in step.sources else staying))
    met = {
        own.behind(None if states.is_fleeting(source) else source): None
        for source in step.sources
        if source != START and source not in staying
        for own in clocks.get(source, ())
    }

    def group_of(clock: Clock) -> Clock:
        # A state that feeds itself goes on from the latest start of all that it ever took in.
        if START in always.states or clock.states <= always.states or step.target in staying:
            return always
        for length in range(1, len(clock.through)):
            by = clock.through[length - 1]
            before = Clock(clock.states, clock.through[:length])
            if by is not None and before in met and states.is_backed(by, clock.through[length:]):
                return before
        return clock

    groups: dict[Clock, dict[DetState, frozenset[Clock]]] = {}
    for source in step.sources:
        if source == START or source in staying:
            groups.setdefault(always, {})[source] = frozenset()
            continue
        for own in clocks.get(source, ()):
            group = groups.setdefault(
                group_of(own.behind(None if states.is_fleeting(source) else source)), {}
            )
            group[source] = group.get(source, frozenset()) | {own}
    return groups


# --- the steps of a symbol ------------------------------------------------------------------------


def _removals(states: _States, symbol: int, piles: dict[Pile, int]) -> Iterator[Removal]:
    for pile, number in piles.items():
        if symbol in states.taken[pile.target] and not states.is_fleeting(pile.target):
            target = states.tables.skip[pile.target][symbol]
            if target is None:
                yield Removal(number, None)
            else:
                clock = pile.clock.behind(pile.target)
                yield Removal(number, piles[Pile(target, (pile.target,), clock, moved=True)])


def _writes(
    states: _States, step: Step, clocks: _Clocks, piles: dict[Pile, int]
) -> Iterator[Write]:
    """The cells of a step. A cell that ends a match is on no pile and follows no clock."""
    if step.target is None:
        reads = [n for s in step.sources for pile, n in piles.items() if pile.target == s]
        yield Write(step, START in step.sources, tuple(reads), None)
        return
    for clock, sources in _by_clock(states, step, clocks).items():
        reads = [
            number
            for source, own in sources.items()
            for pile, number in piles.items()
            if pile.target == source and (not own or pile.clock in own)
        ]
        number = piles[Pile(step.target, tuple(sources), clock)]
        yield Write(replace(step, sources=tuple(sources)), START in sources, tuple(reads), number)


def _in_safe_order(
    writes: list[Write], fleeting: frozenset[int], removals: Sequence[Removal]
) -> tuple[tuple[Write, ...], tuple[int, ...]]:
    """Writes in an order that reads each pile before writing it, and the piles to copy first.

    A pile is copied where there is no such order, or where an event removes or moves what it reads.
    """
    left = list(writes)
    ordered: list[Write] = []
    read = {pile for write in writes for pile in write.reads}
    saved: dict[int, None] = {}
    for removal in removals:
        if removal.pile in read or removal.into is not None:
            saved[removal.pile] = None
        if removal.into in read:
            assert removal.into is not None
            saved[removal.into] = None
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
    return tuple(ordered), tuple(sorted(saved))
