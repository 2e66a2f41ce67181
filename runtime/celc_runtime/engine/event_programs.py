"""Events as short programs over states: what each symbol does to what the states hold.

An event is a matrix over the states, with few entries that are not 0. A program says the same in
steps from place to place, in an order in which nothing is overwritten before it was read. So an
event copies only what two steps need. `engine/totals.py` runs these programs over totals of partial
matches.

Rejected: the matrices themselves, which cost (states)² an event; and a list of moves that reads one
vector and writes another, which copies all states for each event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from celc_runtime.plan.transitions import TransitionArrays

MOVE, ADD, COPY, CLEAR = 0, 1, 2, 3
"""The steps of a program over places, which hold elements: (step, source, target, kind). MOVE adds
the matches of the source, each with one event more, ADD as they are; COPY and CLEAR leave nothing
of what was in the target."""


class Changes(NamedTuple):
    """What an event changes, as programs by symbol.

    Places are the states, then the *end*, for matches that end here or, from the end of the window
    back, for those that begin here, then some for what is needed twice, and last the *start*, which
    holds one match without events.

    forward: int64[…, 4], the steps of the programs that an event is for a vector of partial
    matches; backward: the same for the rows of the matrix of all that follows; starts: the steps
    that begin matches. forward_first, backward_first, starts_first: int64[symbols + 1] into these.
    begins, ends: bool[symbols], whether a match can begin that does not end at once, and whether
    one can end. places: int64[1], how many there are.
    """

    forward: np.ndarray
    forward_first: np.ndarray
    backward: np.ndarray
    backward_first: np.ndarray
    starts: np.ndarray
    starts_first: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    places: np.ndarray


Step = tuple[int, int, int, int]
Ways = dict[int, tuple[int, list[tuple[int, int]]]]
"""For each state that a symbol changes where its matches go unmarked (−1: nowhere), and the ways of
marked ones: a kind and the next place."""


def changes_of(tables: TransitionArrays) -> Changes:
    """The programs of an automaton."""
    symbols, states = len(tables.idle), len(tables.skip)
    start = 2 * states + 1
    forward: list[list[Step]] = []
    backward: list[list[Step]] = []
    starts: list[list[Step]] = []
    begins, ends = np.zeros(symbols, np.bool_), np.zeros(symbols, np.bool_)
    for symbol in range(symbols):
        ways: Ways = {}
        for state, row in enumerate(tables.skip):
            place = state * symbols + symbol
            moves = tables.moves[tables.move_first[place] : tables.move_first[place + 1]]
            if len(moves) or row[symbol] != state:
                ways[state] = int(row[symbol]), _places_of(moves, states)
        first, last = tables.start_first[symbol : symbol + 2]
        of_start = _places_of(tables.start_moves[first:last], states)
        begins[symbol] = any(target < states for _, target in of_start)
        all_ways = [*of_start, *(way for _, some in ways.values() for way in some)]
        ends[symbol] = any(target == states for _, target in all_ways)
        forward.append(forward_steps(ways, states))
        # What follows from a match that begins here is what follows behind the event.
        going_on = [(MOVE, target, states, kind) for kind, target in of_start if target < states]
        begun = [(CLEAR, 0, states, 0), *going_on] if going_on else []
        backward.append([*begun, *backward_steps(ways, states)])
        starts.append([(MOVE, start, target, kind) for kind, target in of_start])
    return Changes(
        *_laid_out(forward),
        *_laid_out(backward),
        *_laid_out(starts),
        begins,
        ends,
        np.array([start + 1], np.int64),
    )


def _places_of(moves: np.ndarray, end: int) -> list[tuple[int, int]]:
    found = []
    for kind, accepts, target in moves.tolist():
        found += [(kind, end)] if accepts else []
        found += [(kind, target)] if target >= 0 else []
    return found


def _laid_out(programs: list[list[Step]]) -> tuple[np.ndarray, np.ndarray]:
    first = np.concatenate([[0], np.cumsum([len(program) for program in programs])])
    steps = [step for program in programs for step in program]
    return np.array(steps, np.int64).reshape(-1, 4), first.astype(np.int64)


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


def forward_steps(ways: Ways, end: int) -> list[Step]:
    """The steps that make of each state what it is behind the event. A state's matches are handed
    on before others are added to it, so that nothing is copied, except where they go in a
    circle."""
    order, is_circle = _read_after(ways)
    apart = _kept_apart(ways, is_circle=is_circle)
    steps: list[Step] = []
    if is_circle:
        steps += [(COPY, state, end + 1 + state, 0) for state in order]
        steps += [(CLEAR, 0, state, 0) for state in order if ways[state][0] != state]
    for state in order:
        skip, some = ways[state]
        source = end + 1 + state if state in apart else state
        if not is_circle and state in apart:
            steps.append((COPY, state, source, 0))
            steps += [(CLEAR, 0, state, 0)] if skip != state else []
        steps += [(MOVE, source, target, kind) for kind, target in some if target != state]
        steps += [(ADD, source, skip, 0)] if skip not in (-1, state) else []
        steps += [(MOVE, source, state, kind) for kind, target in some if target == state]
        if state not in apart and skip != state:
            steps.append((CLEAR, 0, state, 0))
    return steps


def backward_steps(ways: Ways, end: int) -> list[Step]:
    """The steps that make of what follows from each state behind the event what follows before it.
    A state is changed before those that it leads to."""
    order, is_circle = _read_after(ways)
    apart = _kept_apart(ways, is_circle=is_circle)
    steps: list[Step] = []
    if is_circle:
        steps += [(COPY, state, end + 1 + state, 0) for state in order]
    for state in reversed(order):
        skip, some = ways[state]
        if not is_circle and state in apart:
            steps.append((COPY, state, end + 1 + state, 0))
        places = {
            target: (
                end + 1 + target if target in apart and (is_circle or target == state) else target
            )
            for target in (state, skip, *(target for _, target in some))
        }
        if skip == -1:
            steps.append((CLEAR, 0, state, 0))
        elif skip != state:
            steps.append((COPY, places[skip], state, 0))
        own = [kind for kind, target in some if target == state]
        steps += [(MOVE, places[state], state, kind) for kind in own]
        others = [way for way in some if way[1] not in (state, end)]
        steps += [(MOVE, places[target], state, kind) for kind, target in others]
    return steps
