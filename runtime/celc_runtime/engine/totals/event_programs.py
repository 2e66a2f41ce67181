"""Events as short programs over places: what each symbol does to what the states hold.

An event is a matrix over the states, with few entries that are not 0. A program says the same in
steps from place to place, in an order in which nothing is overwritten before it was read. So an
event copies only what two steps need. `engine/totals/kernel.py` runs these programs over totals of
partial matches: over the vector of those in each state, and over products of the matrices of many
events. An entry of a product has a place only where some events lead from the one state to the
other, and a program has no steps for the others, which are 0.

All steps over places are of one kind, because events come in an order that no processor foresees:
to choose between kinds of steps costs more than the steps.

Rejected: the matrices themselves, which cost (states)² an event; a list of moves that reads one
vector and writes another, which copies all states for each event; and one program for the vector
and for each row of a product, which also runs over entries that are 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from celc_runtime.plan.transitions import TransitionArrays

MOVE, ADD, COPY, CLEAR = 0, 1, 2, 3
"""The steps over states: (step, source, target, kind). MOVE adds the matches of the source, each
with one event more, ADD as they are; COPY and CLEAR leave nothing of what was in the target."""

SOURCE, TARGET, KEEP, LABELS = (np.uint64(number) for number in range(4))
"""What a step over places has. It adds to the target the matches of the source, each with one event
more. KEEP is 0 where nothing stays of what was in the target, else 1. The words from LABELS on say
for which measures the event counts, as in `Changes`."""

PAIRS, END_OF_PAIRS = TARGET, KEEP
"""What a step that ends matches has in the place of these: two places in `Changes.pairs`."""

PRODUCT, VECTOR, STARTS, BEHIND = (np.uint64(number) for number in range(4))
"""The program of a symbol has steps over the product, then those over the vector, then those that
begin matches."""

PLACES, LATER_PLACES, GROWTH = 0, 1, 2
"""What `Changes.sizes` has: how many places there are of both kinds, and by how many bits a number
grows at most at an event, for its own sake."""


class Changes(NamedTuple):
    """What an event changes, as programs by symbol.

    The places of `forward` are those of the vector: its states, the *start*, which holds one match
    without events, the *zero*, which holds none, and copies of states; and behind
    these the entries of the product, and copies of these. The places of `backward` are the states
    of a vector of the matches that begin, the zero, the entries of the product of all that follows,
    and copies of these.

    All numbers are uint64, which machine code reads without asking whether they are negative, and
    all arrays have one axis, where it finds a place without reading their shapes. forward,
    backward: steps over places. forward_first: [symbols × 4], where in `forward` the parts of a
    symbol's program begin. backward_first: [symbols × 2], where it begins and ends. ends: how a
    symbol ends matches, from a place of the vector, with an event; and the ways there from the
    states of the front, in `pairs`, of two numbers each: a state and the place of an entry.
    ends_first: [symbols × 2]. Bit b of a step's word LABELS + w says whether the event counts for
    measure 64·w + b of all whole, then real, then ordered ones. begins: bool[symbols], whether a
    match can begin that does not end at once. ones, later_ones: [states], the entries from a state
    to itself. sizes: [3].
    """

    forward: np.ndarray
    forward_first: np.ndarray
    backward: np.ndarray
    backward_first: np.ndarray
    ends: np.ndarray
    pairs: np.ndarray
    ends_first: np.ndarray
    begins: np.ndarray
    ones: np.ndarray
    later_ones: np.ndarray
    sizes: np.ndarray


Step = tuple[int, int, int, int]
Ways = dict[int, tuple[int, list[tuple[int, int]]]]
"""For each state that a symbol changes where its matches go unmarked (−1: nowhere), and the ways of
marked ones: a kind and the next state."""


# --- programs over places -------------------------------------------------------------------------


# Long: a list of the programs.
def changes_of(tables: TransitionArrays, labels: np.ndarray) -> Changes:
    """The programs of an automaton; labels: uint64[kinds + 1, words], for which measures an event
    of each kind counts; the last kind is that of no event."""
    symbols, states, unmarked = len(tables.idle), len(tables.skip), len(labels) - 1
    ways = [_ways_of(tables, symbol) for symbol in range(symbols)]
    starts = [
        _moves_in(tables.start_moves, tables.start_first, symbol) for symbol in range(symbols)
    ]
    reached = _reached(ways, states)
    reaching = [[state for state in range(states) if to in reached[state]] for to in range(states)]
    start, zero = states, states + 1

    places = _Places([*((_VECTOR, state) for state in range(states)), _START, _ZERO])
    of_vector = [
        [*_in_lane(forward_steps(one, states), range(states), _VECTOR, places, zero, unmarked)]
        for one in ways
    ]
    ones = [places.of(state, state) for state in range(states)]
    parts: list[list[Step]] = []
    for one, vector, some in zip(ways, of_vector, starts, strict=True):
        steps = forward_steps(one, states)
        rows = [_in_lane(steps, reached[row], row, places, zero, unmarked) for row in range(states)]
        begun = [(start, target, 1, kind) for kind, _, target in some if target >= 0]
        parts += [[step for row in rows for step in row], vector, begun]

    later = _Places([*((_VECTOR, state) for state in range(states)), _ZERO])
    later_ones = [later.of(state, state) for state in range(states)]
    backward: list[list[Step]] = []
    for one, some in zip(ways, starts, strict=True):
        # What follows from a match that begins here is what follows behind the event.
        program = [
            (later.of(column, target), column, 1, kind)
            for kind, _, target in some
            if target >= 0
            for column in reached[target]
        ]
        steps = backward_steps(one, states)
        for column in range(states):
            program += _in_lane(steps, reaching[column], column, later, states, unmarked)
        backward.append(program)

    ends: list[list[Step]] = []
    pairs: list[tuple[int, int]] = []
    for symbol, some in enumerate(starts):
        found = [(start, 0, 0, kind) for kind, accepts, _ in some if accepts]
        for state in range(states):
            moves = _moves_in(tables.moves, tables.move_first, state * symbols + symbol)
            for kind in (kind for kind, accepts, _ in moves if accepts):
                first = len(pairs)
                pairs += [(row, places.of(row, state)) for row in reaching[state]]
                found.append((state, 2 * first, 2 * len(pairs), kind))
        ends.append(found)
    most = max(map(len, [*parts, *backward]), default=0)
    step = LABELS + np.uint64(labels.shape[1])
    return Changes(
        _with_labels(parts, labels),
        step * _borders(parts, 3),
        _with_labels(backward, labels),
        step * _borders(backward, 1),
        _with_labels(ends, labels),
        np.array(pairs, np.uint64).reshape(-1),
        step * _borders(ends, 1),
        np.array([any(target >= 0 for _, _, target in some) for some in starts], np.bool_),
        np.array(ones, np.uint64),
        np.array(later_ones, np.uint64),
        np.array([len(places), len(later), (most + 1).bit_length()], np.uint64),
    )


def _moves_in(moves: np.ndarray, first: np.ndarray, place: int) -> list[list[int]]:
    found: list[list[int]] = moves[first[place] : first[place + 1]].tolist()
    return found


def _ways_of(tables: TransitionArrays, symbol: int) -> Ways:
    found: Ways = {}
    for state, row in enumerate(tables.skip):
        moves = _moves_in(tables.moves, tables.move_first, state * len(tables.idle) + symbol)
        some = [(kind, target) for kind, _, target in moves if target >= 0]
        if some or row[symbol] != state:
            found[state] = int(row[symbol]), some
    return found


def _reached(all_ways: Sequence[Ways], states: int) -> list[list[int]]:
    """For each state the states that some events lead to from there; its own is one of them."""
    found = []
    for state in range(states):
        reached, new = {state}, [state]
        while new:
            ways = [one[new[-1]] for one in all_ways if new[-1] in one]
            new.pop()
            for skip, some in ways:
                more = {skip, *(target for _, target in some)} - reached - {-1}
                reached |= more
                new += sorted(more)
        found.append(sorted(reached))
    return found


_VECTOR, _START, _ZERO = -1, (-2, 0), (-2, 1)
"""The lane of the vector, and places in none."""


class _Places:
    """Numbers of places, from 0 on as they are asked for: by lane, which is the vector, or a row or
    column of a product, and by state or copy of a state."""

    def __init__(self, first: Iterable[tuple[int, int]]) -> None:
        self._numbers = {place: number for number, place in enumerate(first)}

    def __len__(self) -> int:
        return len(self._numbers)

    def of(self, lane: int, state: int) -> int:
        """The number of a place."""
        return self._numbers.setdefault((lane, state), len(self._numbers))


def _in_lane(
    steps: Iterable[Step],
    used: Collection[int],
    lane: int,
    places: _Places,
    zero: int,
    unmarked: int,
) -> Iterator[Step]:
    """Steps over states as steps over the places of a lane, of which only the states in `used` can
    hold matches."""
    holding, cleared = set(used), set[int]()
    for step, source, target, kind in steps:
        if step in (COPY, CLEAR) and target in holding:
            holding.remove(target)
            cleared.add(target)
        if step == CLEAR or source not in holding:
            continue
        keep = int(target in holding)
        kind = kind if step == MOVE else unmarked
        yield places.of(lane, source), places.of(lane, target), keep, kind
        holding.add(target)
        cleared.discard(target)
    for state in sorted(cleared.intersection(used)):
        yield zero, places.of(lane, state), 0, unmarked


def _with_labels(programs: Iterable[Iterable[Step]], labels: np.ndarray) -> np.ndarray:
    """Programs as numbers, with labels in the place of kinds."""
    steps = np.array([step for program in programs for step in program], np.uint64).reshape(-1, 4)
    numbers: np.ndarray = np.concatenate(
        [steps[:, :3], labels[steps[:, 3].astype(np.int64)]], axis=1
    )
    return numbers.reshape(-1)


def _borders(programs: Sequence[Sequence[Step]], parts: int) -> np.ndarray:
    """uint64[symbols × (parts + 1)]: where the parts of each symbol's program begin and end."""
    firsts = np.concatenate([[0], np.cumsum([len(program) for program in programs])])
    symbols = len(programs) // parts
    places = parts * np.arange(symbols)[:, None] + np.arange(parts + 1)
    found: np.ndarray = firsts[places].astype(np.uint64).reshape(-1)
    return found


# --- steps over states ----------------------------------------------------------------------------


def _read_after(ways: Ways) -> tuple[list[int], bool]:
    """The states, each after all those that its matches go to; and whether some go in a circle."""
    order: list[int] = []
    open_ones: list[int] = []
    is_circle = False

    def visit(state: int) -> None:
        nonlocal is_circle
        if state in open_ones:
            is_circle = True
        if state in order or state in open_ones:
            return
        open_ones.append(state)
        skip, some = ways[state]
        for target in (skip, *(target for _, target in some)):
            if target != state and target in ways:
                visit(target)
        open_ones.remove(state)
        order.append(state)

    for state in ways:
        visit(state)
    return order, is_circle


def _kept_apart(ways: Ways, *, is_circle: bool) -> set[int]:
    """The states of which what they hold is needed after they have changed."""
    if is_circle:
        return set(ways)
    found = set()
    for state, (skip, some) in ways.items():
        own = sum(target == state for _, target in some)
        if own > 1 or (own == 1 and skip != state):
            found.add(state)
    return found


def forward_steps(ways: Ways, states: int) -> list[Step]:
    """The steps that make of each state what it is behind the event. A state's matches are handed
    on before others are added to it, so that nothing is copied, except where they go in a circle:
    then a state's copy is at its number + `states`."""
    order, is_circle = _read_after(ways)
    apart = _kept_apart(ways, is_circle=is_circle)
    steps: list[Step] = []
    if is_circle:
        steps += [(COPY, state, states + state, 0) for state in order]
        steps += [(CLEAR, 0, state, 0) for state in order if ways[state][0] != state]
    for state in order:
        skip, some = ways[state]
        source = states + state if state in apart else state
        if not is_circle and state in apart:
            steps.append((COPY, state, source, 0))
            steps += [(CLEAR, 0, state, 0)] if skip != state else []
        steps += [(MOVE, source, target, kind) for kind, target in some if target != state]
        steps += [(ADD, source, skip, 0)] if skip not in (-1, state) else []
        steps += [(MOVE, source, state, kind) for kind, target in some if target == state]
        if state not in apart and skip != state:
            steps.append((CLEAR, 0, state, 0))
    return steps


def backward_steps(ways: Ways, states: int) -> list[Step]:
    """The steps that make of what follows from each state behind the event what follows before it.
    A state is changed before those that it leads to."""
    order, is_circle = _read_after(ways)
    apart = _kept_apart(ways, is_circle=is_circle)
    steps: list[Step] = []
    if is_circle:
        steps += [(COPY, state, states + state, 0) for state in order]
    for state in reversed(order):
        skip, some = ways[state]
        if not is_circle and state in apart:
            steps.append((COPY, state, states + state, 0))
        places = {
            target: (
                states + target if target in apart and (is_circle or target == state) else target
            )
            for target in (state, skip, *(target for _, target in some))
        }
        if skip == -1:
            steps.append((CLEAR, 0, state, 0))
        elif skip != state:
            steps.append((COPY, places[skip], state, 0))
        own = [kind for kind, target in some if target == state]
        steps += [(MOVE, places[state], state, kind) for kind in own]
        others = [way for way in some if way[1] != state]
        steps += [(MOVE, places[target], state, kind) for kind, target in others]
    return steps
