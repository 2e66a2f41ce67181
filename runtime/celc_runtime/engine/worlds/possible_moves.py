"""The tables of an automaton read from the end of a match back, for events of uncertain time.

A match is listed from its last event back. So the moves are sorted by the state that they lead to:
which states, and which marks, can have been before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from celc_runtime.plan.transitions import TransitionArrays

START = -1
"""In place of a state: the match begins with this event."""


class PossibleMoves(NamedTuple):
    """The moves of an automaton; all arrays are int64.

    node_first[symbols + 1] into node_states: the states that an event of a symbol leads to, each
    once. into_first[moves into states + 1], by the places of node_states, into into_sources and
    into_kinds: the state before each move, and how the event is marked. ends_first[symbols + 1]
    into ends_sources and ends_kinds: the same of the moves that end a match.
    """

    node_first: np.ndarray
    node_states: np.ndarray
    into_first: np.ndarray
    into_sources: np.ndarray
    into_kinds: np.ndarray
    ends_first: np.ndarray
    ends_sources: np.ndarray
    ends_kinds: np.ndarray


def possible_moves(tables: TransitionArrays) -> PossibleMoves:
    """The moves of tables, from the end back. Only marked events take part."""
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
    """int64: where each row begins (and behind the last one), and the rows one after another."""
    first = np.zeros(len(rows) + 1, np.int64)
    first[1:] = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return first, np.array([value for row in rows for value in row], np.int64)
