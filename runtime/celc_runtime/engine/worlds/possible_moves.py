"""The tables of an automaton, backward: for events of uncertain time.

A match is listed from its last event back. So moves are sorted by the state that they lead to, and
give the states and marks that can come before it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from celc_runtime.plan.transitions import TransitionArrays

START = -1  # instead of a state: the match begins with this event


class PossibleMoves(NamedTuple):
    """The moves of an automaton; all arrays are int64."""

    node_first: np.ndarray  # [symbols + 1], into node_states
    node_states: np.ndarray  # the states that an event of a symbol leads to, each once
    into_first: np.ndarray  # [node_states + 1], into the next two
    into_sources: np.ndarray  # the state before each move into a state of node_states
    into_kinds: np.ndarray  # how that move marks the event
    ends_first: np.ndarray  # [symbols + 1], into the next two
    ends_sources: np.ndarray  # the state before each move that ends a match
    ends_kinds: np.ndarray  # how that move marks the event


def possible_moves(tables: TransitionArrays) -> PossibleMoves:
    """The moves of tables, backward. Only marked events take part."""
    symbols = len(tables.idle)
    into: list[dict[int, list[tuple[int, int]]]] = [{} for _ in range(symbols)]
    ends: list[list[tuple[int, int]]] = [[] for _ in range(symbols)]
    for symbol, source, kind, accepts, target in moves_of(tables):
        if accepts:
            ends[symbol].append((source, kind))
        if target >= 0:
            into[symbol].setdefault(target, []).append((source, kind))
    node_first, node_states = ragged([sorted(of_symbol) for of_symbol in into])
    moves = [of_symbol[state] for of_symbol in into for state in sorted(of_symbol)]
    into_first, into_sources = ragged([[source for source, _ in row] for row in moves])
    _, into_kinds = ragged([[kind for _, kind in row] for row in moves])
    ends_first, ends_sources = ragged([[source for source, _ in row] for row in ends])
    _, ends_kinds = ragged([[kind for _, kind in row] for row in ends])
    return PossibleMoves(
        node_first,
        node_states,
        into_first,
        into_sources,
        into_kinds,
        ends_first,
        ends_sources,
        ends_kinds,
    )


def moves_of(tables: TransitionArrays) -> Iterator[tuple[int, int, int, bool, int]]:
    """(symbol, state before or START, kind, whether a match ends, state behind or −1) of all moves
    that mark an event."""
    symbols = len(tables.idle)
    for symbol in range(symbols):
        first, last = tables.start_first[symbol : symbol + 2]
        for kind, accepts, target in tables.start_moves[first:last].tolist():
            yield symbol, START, kind, bool(accepts), target
        for state in range(len(tables.skip)):
            row = state * symbols + symbol
            first, last = tables.move_first[row : row + 2]
            for kind, accepts, target in tables.moves[first:last].tolist():
                yield symbol, state, kind, bool(accepts), target


def ragged(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """(int64, where each row begins, and where the last one ends; int64, all rows joined)."""
    first = np.zeros(len(rows) + 1, np.int64)
    first[1:] = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return first, np.array([value for row in rows for value in row], np.int64)


_MOST_LETTERS = 1 << 10
_MOST_PAIRS = 1 << 20


def follows(tables: TransitionArrays, looks: np.ndarray) -> tuple[np.ndarray, bool]:
    """Which event can come before which one in a match, and whether orders commute, as in
    `Question`; looks: int64[kinds]."""
    of_look = int(looks.max(initial=0)) + 1
    letters, states = len(tables.idle) * of_look, len(tables.skip)
    if letters > _MOST_LETTERS:
        return np.zeros((0, 0), np.bool_), False
    after = np.eye(states, dtype=np.bool_)  # whether a match leads from a state to another
    out, into = np.zeros((states, letters), np.bool_), np.zeros((states, letters), np.bool_)
    steps: dict[tuple[int, int], tuple[bool, int]] = {}
    for symbol, source, kind, accepts, target in moves_of(tables):
        letter = symbol * of_look + int(looks[kind])
        steps[source, letter] = accepts, target
        if source != START:
            out[source, letter] = True
        if target >= 0:
            into[target, letter] = True
        if source != START and target >= 0:
            after[source, target] = True
    for state in range(states):
        after |= np.outer(after[:, state], after[state])
    found: np.ndarray = (into.T.astype(np.int64) @ after @ out) > 0
    both = np.argwhere(found & found.T).tolist()
    tells = of_look == len(looks)  # whether labels tell the kinds of events
    if not tells or len(both) * (states + 1) > _MOST_PAIRS:
        return found, False
    nowhere = False, -1

    def behind(state: int, one: int, other: int) -> tuple[bool, int]:
        between = steps.get((state, one), nowhere)[1]
        return nowhere if between < 0 else steps.get((between, other), nowhere)

    return found, all(
        behind(state, one, other) == behind(state, other, one)
        for state in (START, *range(states))
        for one, other in both
    )
