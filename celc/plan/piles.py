"""Transition tables → straight-line updates: the piles, and the steps of each symbol.

A *pile* is a prepend-only list of cells in the order of their starts: behind a dead cell all cells
are dead. The order holds by construction, because all cells of one pile follow one *clock*: a time
that is known for each event and never goes back. It is the latest start of a cell's sources.

Where a match begins here, the event itself is a clock. Where unmarked events leave every match in
its state, the content of a state only grows, so the latest start among some states is a clock. So
there is a pile for each pair (target, sources), and a state's content is the union of its piles.

A state can also be *fleeting*: any unmarked event loses its matches, as between the two sides of
`:` and inside STRICT. The event just before has made its content. So the state follows the clock of
its sources, an event late, and it has a pile for each such clock. It begins empty at each event
(`fresh`), and counts only if the last event that mattered was the neighbour. (States that hand
their matches on at the next event are made fleeting first: see `celc.plan.passing`.)

The third sort of state *holds* its matches until an event of some symbols, which takes them away
whole: it loses them, as `!B` and UNLESS say, or moves them to another state, as the first event of
a longer absent part does. Such a state can empty, and then the latest start in it goes back. But
each of its piles still follows its clock: cells are put on it with the time of the clock, those
after an event that emptied the pile with a later one than those before. So the latest start in one
pile is a clock as well, and there are cells of their own for each clock that an event can meet in
such a state. A move puts the whole of a pile in front of what was moved before: one merge, which is
in order for the same reason, since a *moved* pile takes from one clock only. States must not move
their matches in a circle; else merges would lie on merges, and a walk through them take long.

An event can meet matches of several clocks: some in states that stay, others in states that happen
to hold some. One cell made out of all of them would follow no clock, since the next cell may be
made out of the staying states alone, whose matches begin earlier. So there is a cell for each
clock, on a pile of its own. A clock that is never ahead of another clock needs no cell: the matches
that came out of a state are no later than its content now, while that is there, and the matches
that a state has taken in are no later than those that it hands to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from celc.automata.determinize import START, DetState
from celc.diagnostics.deadline import look
from celc.plan.passing import with_passing_states_apart
from celc.plan.tables import Step, Tables

MAX_PILES = 48
MAX_WRITES = 160
"""Beyond these, straight-line code is too long for a reader (and for the register allocator); the
general engine's tables are then the better form."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The latest start in some staying states (START: the event itself), as known in a state that
    matches have come to `through` others: a number is the state that held them last, None is a
    fleeting state, which makes the clock an event late."""

    states: frozenset[DetState]
    through: tuple[DetState | None, ...] = ()

    def behind(self, state: DetState | None) -> Clock:
        """The clock of a cell that is made of cells with this clock in a state; None: a fleeting
        one."""
        return Clock(self.states, (*self.through, state))


@dataclass(frozen=True, slots=True)
class Pile:
    """The cells of `target` that were made out of `sources` (START: matches that begin there) and
    follow one clock. `moved`: it takes whole piles of its one source, and no cells."""

    target: DetState
    sources: tuple[DetState, ...]
    clock: Clock
    moved: bool = False


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
class Removal:
    """A pile that an unmarked event empties; its content goes in front of the pile `into`, or is
    lost (None)."""

    pile: int
    into: int | None


@dataclass(frozen=True, slots=True)
class PilePlan:
    """The piles of a query, and the cells that each symbol makes from them and puts on them.

    `tables` are those that the plan follows: the tables of the query with passing states apart. An
    event first reads all that it makes cells of; then it empties the piles in `removals[symbol]`;
    then it puts on the cells. `writes[symbol]` are in an order in which no write destroys what a
    later one reads, except for the piles in `saved[symbol]`, which are copied first; fleeting piles
    are written to copies. `nodes_per_event` is the most nodes that one event can make.
    """

    tables: Tables
    piles: tuple[Pile, ...]
    fleeting: frozenset[int]
    removals: tuple[tuple[Removal, ...], ...]
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

    @property
    def most_removals(self) -> int:
        """The most piles that one event empties."""
        return max(map(len, self.removals))

    def leaves_nothing(self, symbol: int) -> bool:
        """Whether no partial match is left behind an event, because it has emptied all piles."""
        lost = {removal.pile for removal in self.removals[symbol] if removal.into is None}
        filled = any(write.pile is not None for write in self.writes[symbol])
        return bool(lost) and not filled and lost | self.fleeting == {*range(len(self.piles))}

    @property
    def moves(self) -> bool:
        """Whether events move piles to other states."""
        return any(removal.into is not None for row in self.removals for removal in row)


def plan_piles(tables: Tables) -> PilePlan | str:
    """The plan; or why the general engine must (or should) run the query, in words.

    The rule: each symbol takes an unmarked match out of its state or leaves it there, for every
    match of the state alike; a symbol means the same whatever came before; and the code stays
    small.
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
    # The update divides by it, so a query that matches nothing has one too.
    most = max(1, most)
    return PilePlan(
        tables, tuple(piles), fleeting, tuple(removals), tuple(writes), tuple(saved), most
    )


# --- how states keep their matches ----------------------------------------------------------------


def _taken_away(tables: Tables) -> tuple[frozenset[int], ...] | None:
    """For each state the symbols that take its matches away: none of a staying state, all of a
    fleeting one; None where a state is of no sort."""
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


@dataclass(frozen=True, slots=True)
class _States:
    """The states of some tables, with the symbols that take their matches away (`taken`)."""

    tables: Tables
    taken: tuple[frozenset[int], ...]

    def stays(self, state: DetState) -> bool:
        """Whether every unmarked event leaves its matches in it."""
        return not self.taken[state]

    def is_fleeting(self, state: DetState) -> bool:
        """Whether every unmarked event loses its matches."""
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
        """Whether what has come out of a state through the states `passed` is there only as long as
        its origin: an event that empties the first empties them, and puts into them nothing but new
        matches."""
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
"""The clocks that the piles of each state follow that does not stay."""


def _clocks_of(states: _States) -> _Clocks | None:
    """The clocks of all states that do not stay; None where they are too many.

    They follow from those of the states before. Where such states feed each other in a loop
    that is also entered on the way, as in `A ; B : (C : D):+ : E`, they never end.
    """
    clocks: _Clocks = {}
    steps = [
        (step, step.target)
        for row in states.tables.steps
        for step in row
        if step.target is not None and not states.stays(step.target)
    ]
    moves = [(source, target) for source, target in states.moves() if not states.stays(target)]
    changed = True
    while changed:
        changed = False
        found: list[tuple[DetState, Clock]] = []
        for step, target in steps:
            found += [(target, clock) for clock in _by_clock(states, step, clocks)]
        for source, target in moves:
            found += [(target, clock.behind(source)) for clock in clocks.get(source, ())]
        for state, clock in found:
            known = clocks.get(state, ())
            if clock not in known:
                clocks[state] = (*known, clock)
                changed = True
        if sum(map(len, clocks.values())) > MAX_PILES:
            return None
    return clocks


def _by_clock(
    states: _States, step: Step, clocks: _Clocks
) -> dict[Clock, dict[DetState, frozenset[Clock]]]:
    """The sources of a step by the clocks that an event can meet in them.

    With each source stand those of its own clocks that count: all of them are the clock behind this
    source, or never ahead of it.
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
            before = Clock(clock.states, clock.through[:length])
            by = before.through[-1]
            if before in met and by is not None and states.is_backed(by, clock.through[length:]):
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
    """The piles that an event empties, other than fleeting ones."""
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
    """The cells of a step. A cell that ends a match is on no pile, and follows no clock."""
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
    """Writes in an order that reads each pile before it writes it, and the piles to copy first
    where there is no such order, or where an event removes or moves what it reads."""
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
