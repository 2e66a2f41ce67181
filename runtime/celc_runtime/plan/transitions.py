"""The tables that a generated module writes, as arrays: of automata, and of selectors in a window.

They are named tuples of arrays, because kernels take these without conversion.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

NO_WINDOW, EVENTS, KEYS, FLOORS = 0, 1, 2, 3
"""How the window is measured: not at all, by position, by `keys`, by the batch's `floors`."""


class TransitionArrays(NamedTuple):
    """An I/O-deterministic CEA as arrays. States are numbered from 0; the start is not one of them.

    A move is int64 (kind, accepts, target or −1). An unmarked event that ends a match is a move
    with target −1.
    """

    start_first: np.ndarray  # int64[symbols + 1], into start_moves
    start_moves: np.ndarray
    move_first: np.ndarray  # int64[states × symbols + 1], into moves
    moves: np.ndarray
    skip: np.ndarray  # int64[states, symbols], the state after an unmarked event, or −1
    idle: np.ndarray  # bool[symbols], events that change nothing at all
    settings: np.ndarray
    """int64[4]: the window (NO_WINDOW, EVENTS, KEYS or FLOORS), its size, CONSUME or KEEP, 1 (or
    OWN_CLOCKS) if partitions interleave."""
    following: np.ndarray
    """int64[contexts, symbols], the context after an event. If the past of the stream matters, an
    automaton reads every event; its states are the contexts, and 0 is the first one. Empty without
    contexts."""
    letters: np.ndarray
    """int64[contexts, symbols], the event's number in the other tables; empty without contexts."""
    instants: np.ndarray
    """int64[4, classes], for simultaneous events: the number of an event in the other tables, by
    its place in its instant (alone, first, between, last) and its class; otherwise without rows."""


Move = tuple[int, int, int]


def tables(
    *,
    starts: Sequence[Sequence[Move]],
    moves: Sequence[Mapping[int, Sequence[Move]]] | str,
    skip: Sequence[Sequence[int]] | str,
    idle: Sequence[bool],
    window: int,
    size: int,
    consumes: bool,
    interleaved: bool,
    following: Sequence[Sequence[int]] = (),
    letters: Sequence[Sequence[int]] = (),
    instants: Sequence[Sequence[int]] = (),
) -> TransitionArrays:
    """The arrays of the tables that a generated module writes.

    starts: by symbol. moves: by state and symbol. Large tables are text: the rows of `skip`, and
    for `moves` lines of five numbers (state, symbol, kind, ends a match, next state), sorted by
    state and symbol.
    """
    if isinstance(skip, str):
        skip = _numbers_in(skip)
    if isinstance(moves, str):
        spelled: list[dict[int, list[Move]]] = [{} for _ in skip]
        for state, symbol, kind, ends, target in _numbers_in(moves):
            spelled[state].setdefault(symbol, []).append((kind, ends, target))
        moves = spelled
    rows = [row.get(symbol, ()) for row in moves for symbol in range(len(idle))]
    return TransitionArrays(
        _offsets(starts),
        _moves(starts),
        _offsets(rows),
        _moves(rows),
        np.array(skip, np.int64).reshape(len(moves), len(idle)),
        np.array(idle, np.bool_),
        np.array([window, size, consumes, interleaved], np.int64),
        _as_matrix(following),
        _as_matrix(letters),
        _as_matrix(instants),
    )


def _numbers_in(text: str) -> list[list[int]]:
    return [[int(number) for number in line.split()] for line in text.split("\n") if line.strip()]


def _as_matrix(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """int64[rows, columns]; there may be no rows."""
    return np.array(rows, np.int64).reshape(len(rows), len(rows[0]) if rows else 0)


def _offsets(rows: Sequence[Sequence[Move]]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)


def _moves(rows: Sequence[Sequence[Move]]) -> np.ndarray:
    return np.array([move for row in rows for move in row], np.int64).reshape(-1, 3)


class SelectorArrays(NamedTuple):
    """A selector's automaton, and the tracker that reads the window before a match begins.

    The other fields are as in `TransitionArrays`.
    """

    following: np.ndarray  # int64[trackers, letters], the tracker's next state
    symbols: np.ndarray  # int64[trackers, letters], the column of the other tables
    quiet: np.ndarray  # bool[letters], the letters that change nothing unless they end a match
    start_first: np.ndarray
    start_moves: np.ndarray
    move_first: np.ndarray
    moves: np.ndarray
    skip: np.ndarray
    most: np.ndarray  # int64[1], the most nodes that one event makes


def selection(
    *,
    following: Sequence[Sequence[int]],
    symbols: Sequence[Sequence[int]],
    quiet: Sequence[bool],
    starts: Sequence[Sequence[Move]],
    moves: Sequence[Mapping[int, Sequence[Move]]],
    skip: Sequence[Sequence[int]],
) -> SelectorArrays:
    """The arrays of a selector's tables as a generated module writes them."""
    columns = len(starts)
    found = tables(
        starts=starts,
        moves=moves,
        skip=skip,
        idle=(False,) * columns,
        window=0,
        size=0,
        consumes=False,
        interleaved=False,
    )
    most = max(
        (
            len(starts[column]) + len(moves) + sum(len(row.get(column, ())) for row in moves)
            for column in range(columns)
        ),
        default=0,
    )
    return SelectorArrays(
        _as_matrix(following),
        _as_matrix(symbols),
        np.array(quiet, np.bool_),
        found.start_first,
        found.start_moves,
        found.move_first,
        found.moves,
        found.skip,
        np.array([most + 1], np.int64),
    )


class EarliestArrays(NamedTuple):
    """The tables of NXT over a window, if an event can be marked in one way only.

    Tables are flat, and values are stored as indices into the next table, because each look-up
    waits for the one before. State 0 is the start.
    """

    ends: np.ndarray  # int64[letters], the first set for `back`
    back: np.ndarray
    """int64[sets × letters], the set of states that reach the end, as (number × letters), read from
    the end back."""
    steps: np.ndarray
    """int64[sets × states × letters], the step from a state at an event, given the set after the
    event: 2 × (next state × letters) + (1 if the event is marked); −1: lost."""
    kinds: np.ndarray  # int64[states × letters], how an event is marked
    end_kinds: np.ndarray  # likewise for the last event
    states: np.ndarray  # int64[1]
    settled: np.ndarray  # bool[sets × letters], true for sets that no event changes any more
    done: np.ndarray  # bool[states × letters], true for states where only the last event is marked


def earliest(
    *,
    marks: Sequence[Mapping[int, tuple[int, int]]],
    skip: Sequence[Sequence[int]],
    end_kinds: Sequence[Mapping[int, int]],
    sets: Sequence[Sequence[int]],
    ends: Sequence[int],
    back: Sequence[Sequence[int]],
) -> EarliestArrays:
    """The arrays of the tables of NXT as a generated module writes them."""
    states, letters = len(skip), len(ends)
    kinds = np.zeros((states, letters), np.int64)
    last = np.zeros((states, letters), np.int64)
    steps = np.full((len(sets), states, letters), -1, np.int64)
    for state in range(states):
        for letter in range(letters):
            kind, marked = marks[state].get(letter, (0, -1))
            kinds[state, letter] = kind
            last[state, letter] = end_kinds[state].get(letter, 0)
            for number, members in enumerate(sets):
                if marked in members:
                    steps[number, state, letter] = 2 * letters * marked + 1
                elif skip[state][letter] in members:
                    steps[number, state, letter] = 2 * letters * skip[state][letter]
    settled = np.zeros((len(sets), letters), np.bool_)
    settled[:, 0] = [all(after == number for after in row) for number, row in enumerate(back)]
    done = np.zeros((states, letters), np.bool_)
    done[:, 0] = [
        not marks[state] and all(after == state for after in skip[state]) for state in range(states)
    ]
    return EarliestArrays(
        letters * np.array(ends, np.int64),
        letters * _as_matrix(back).ravel(),
        steps.ravel(),
        kinds.ravel(),
        last.ravel(),
        np.array([states], np.int64),
        settled.ravel(),
        done.ravel(),
    )
