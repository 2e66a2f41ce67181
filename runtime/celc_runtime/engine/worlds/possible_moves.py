"""The tables of an automaton, backward: for events of uncertain time.

A match is listed from its last event back. So moves are sorted by the state that they lead to, and
give the states and marks that can come before it.
"""

from collections.abc import Sequence
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
    symbols, states = len(tables.idle), len(tables.skip)
    into: list[dict[int, list[tuple[int, int]]]] = [{} for _ in range(symbols)]
    ends: list[list[tuple[int, int]]] = [[] for _ in range(symbols)]

    def add(symbol: int, source: int, moves: np.ndarray) -> None:
        for kind, accepts, target in moves.tolist():
            if accepts:
                ends[symbol].append((source, kind))
            if target >= 0:
                into[symbol].setdefault(target, []).append((source, kind))

    for symbol in range(symbols):
        first, last = tables.start_first[symbol : symbol + 2]
        add(symbol, START, tables.start_moves[first:last])
        for state in range(states):
            row = state * symbols + symbol
            first, last = tables.move_first[row : row + 2]
            add(symbol, state, tables.moves[first:last])
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


def ragged(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """(int64, where each row begins, and where the last one ends; int64, all rows joined)."""
    first = np.zeros(len(rows) + 1, np.int64)
    first[1:] = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return first, np.array([value for row in rows for value in row], np.int64)
