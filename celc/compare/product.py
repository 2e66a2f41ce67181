"""The matches of two automata, compared: a search in their product, shortest streams first.

Both automata are I/O-deterministic: a match is one run, and its marks tell which. So two of them
have the same matches if no pair of states that they reach together accepts in one and not in the
other. A letter of the product is a pair of symbols that one event can have. Where a nested selector
looks back, the context machines of both run along, from the first event of the stream on.

A window is one more part of the state. What it measures grows along a match, and all that matters
is which of the windows still hold a match: so many events, or on a clock one of the ranges into
which the sizes cut the time since the start.

This is the test of Hopcroft and Karp with breadth-first search in place of their union of states,
because a shortest stream is wanted.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from celc_runtime.plan.frozen import frozen

from celc.automata.determinize import DeterministicAutomaton, Move
from celc.automata.letters import Letters
from celc.compare.values import DAY
from celc.core.formula import DataType, Query, WindowUnit

MOST_NODES = 400_000

Pair = tuple[int, int]
"""The symbols of an event in both queries."""


class TooManyStates(Exception):
    """The product is too large, or the time is over."""


@frozen
class Window:
    """The window of a query: the name of a clock (empty: it counts events), and its size."""

    clock: str
    size: int | float


@frozen
class Word:
    """A stream that shows a difference, as pairs of symbols; a match starts at event `start`.

    `ranges`: for each clock, by name, the range of the time since the start at each event from
    there on.
    """

    pairs: tuple[Pair, ...]
    start: int
    ranges: tuple[tuple[int, ...], ...]


@frozen
class Measured:
    """The windows of both queries as parts of a state: how many events matter, and for each clock
    the sizes in rising order."""

    windows: tuple[Window | None, Window | None]
    events: int
    clocks: tuple[tuple[str, tuple[int | float, ...]], ...]

    def fits(self, side: int, steps: int, ranges: Sequence[int]) -> bool:
        """Whether a match still fits the window of a side."""
        window = self.windows[side]
        if window is None:
            return True
        if not window.clock:
            return steps <= window.size
        names = [name for name, _ in self.clocks]
        place = names.index(window.clock)
        return ranges[place] <= self.clocks[place][1].index(window.size)


def window_of(query: Query) -> Window | None:
    """The window of a query; its size as its clock can tell it."""
    window = query.window
    if window is None:
        return None
    if window.unit is WindowUnit.EVENTS:
        return Window("", int(window.size))
    clock = window.attribute or query.order_by[0]
    size = window.size
    if clock.type is DataType.DATE:
        size = math.floor(size / DAY) * DAY
    elif clock.type not in (DataType.FLOAT, DataType.DOUBLE):
        size = math.floor(size)
    return Window(clock.name, size)


def measured(old: Window | None, new: Window | None) -> Measured:
    """The windows as parts of a state."""
    windows = (old, new)
    events = max((int(one.size) for one in windows if one and not one.clock), default=-1) + 1
    clocks: dict[str, set[int | float]] = {}
    for one in windows:
        if one is not None and one.clock:
            clocks.setdefault(one.clock, set()).add(one.size)
    return Measured(windows, events, tuple((n, tuple(sorted(s))) for n, s in clocks.items()))


@frozen
class Machine:
    """An automaton with the letters that it reads."""

    automaton: DeterministicAutomaton
    letters: Letters

    def row(self, context: int, state: int | None, symbol: int) -> tuple[Move, ...]:
        """The moves of a match in a state (None: there is no match) at an event."""
        if state is None:
            return ()
        letter = context * self.letters.symbols + symbol
        return self.automaton.moves[state][self.automaton.class_of[letter]]

    def context(self, context: int, symbol: int) -> int:
        """The context after an event."""
        return self.letters.machine.following[context][symbol]

    @property
    def without_matches(self) -> Machine:
        """The same letters, of which an automaton without matches is made."""
        nothing: tuple[tuple[Move, ...], ...] = ((),) * self.automaton.symbols
        return Machine(replace(self.automaton, moves=(nothing,)), self.letters)

    @property
    def looks_back(self) -> bool:
        """Whether events before a match matter."""
        return self.letters.machine.contexts > 1


_Node = tuple[bool, int, int, int | None, int | None, int, tuple[int, ...]]
"""Whether a match has begun, both contexts, both states, events since the start, ranges."""


def differences(
    machines: tuple[Machine, Machine],
    pairs: Sequence[Pair],
    windows: Measured,
    is_over: Callable[[], bool],
) -> Iterator[Word]:
    """Streams that end with a match of one automaton that is none of the other, shortest first;
    none: both have the same matches.

    One stream for each pair of states and event that shows a difference. `is_over`: whether to
    stop. Raises TooManyStates then, and where there are too many states.
    """
    old, new = machines
    first: _Node = (False, 0, 0, 0, 0, 0, (0,) * len(windows.clocks))
    before: dict[_Node, tuple[_Node, Pair] | None] = {first: None}
    waiting = deque([first])
    while waiting:
        if is_over():
            raise TooManyStates
        node = waiting.popleft()
        begun, one, other, *_ = node
        for pair in pairs:
            contexts = old.context(one, pair[0]), new.context(other, pair[1])
            if not begun and (old.looks_back or new.looks_back):
                _meet((False, *contexts, *first[3:]), node, pair, before, waiting)
            told = False
            for differs, after in _steps(machines, node, pair, contexts, windows):
                if differs is not None and not told:
                    told = True
                    yield _word(node, pair, differs, before)
                if after is not None:
                    _meet(after, node, pair, before, waiting)
        if len(before) > MOST_NODES:
            raise TooManyStates


def _meet(
    after: _Node,
    node: _Node,
    pair: Pair,
    before: dict[_Node, tuple[_Node, Pair] | None],
    waiting: deque[_Node],
) -> None:
    if after not in before:
        before[after] = (node, pair)
        waiting.append(after)


def _steps(
    machines: tuple[Machine, Machine],
    node: _Node,
    pair: Pair,
    contexts: Pair,
    windows: Measured,
) -> Iterator[tuple[tuple[int, ...] | None, _Node | None]]:
    """For each way to mark the event, and each time that may have passed: the ranges if that shows
    a difference, and the state after it."""
    begun, one, other, *states, steps, ranges = node
    old = {m.marks: m for m in machines[0].row(one, states[0], pair[0])}
    new = {m.marks: m for m in machines[1].row(other, states[1], pair[1])}
    if not old and not new:
        return
    steps = min(steps + 1, windows.events) if begun else 0
    for later in _later(ranges, windows, begun=begun):
        fits = [windows.fits(side, steps, later) for side in (0, 1)]
        for marks in dict.fromkeys((*old, *new)):
            moves = old.get(marks), new.get(marks)
            accepts = [
                move is not None and move.accepts and fit
                for move, fit in zip(moves, fits, strict=True)
            ]
            targets = [
                None if move is None or not fit else move.target
                for move, fit in zip(moves, fits, strict=True)
            ]
            after: _Node | None = None
            if targets != [None, None]:
                after = (True, *contexts, targets[0], targets[1], steps, later)
            yield later if accepts[0] != accepts[1] else None, after


def _later(ranges: tuple[int, ...], windows: Measured, *, begun: bool) -> Iterator[tuple[int, ...]]:
    """The ranges in which the time since the start can be at the next event, the least first."""
    if not begun or not ranges:
        yield ranges
        return
    tops = [len(sizes) for _, sizes in windows.clocks]
    yield from product(*(range(now, top + 1) for now, top in zip(ranges, tops, strict=True)))


def _word(
    node: _Node,
    pair: Pair,
    ranges: tuple[int, ...],
    before: dict[_Node, tuple[_Node, Pair] | None],
) -> Word:
    pairs, found = [pair], [ranges]
    at: _Node | None = node
    start_of = 0
    while at is not None:
        step = before[at]
        if step is None:
            break
        before_it, read = step
        pairs.append(read)
        if at[0]:
            found.append(at[6])
        else:
            start_of += 1
        at = before_it
    return Word(tuple(pairs[::-1]), start_of, tuple(found[::-1]))
