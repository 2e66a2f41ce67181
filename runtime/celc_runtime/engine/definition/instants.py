"""The places of events in their instants, where simultaneous events have no order.

The tables of the general engine then know an event by its class and its place in its instant:
alone, first, between, or last. A match contains whole instants, so it starts at the first event of
an instant and ends at the last event of one.
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.jit.kernels import njit

ALONE, FIRST, BETWEEN, LAST = range(4)


class Instants(NamedTuple):
    """The symbols of events by class and place, and the way back."""

    symbols: np.ndarray  # int64[4, classes], the symbol of an event by place and class
    class_of: np.ndarray  # int64[symbols], a class that a symbol stands for
    place_of: np.ndarray  # int64[symbols], the place that belongs to this class


def instants_of(symbols: np.ndarray) -> Instants:
    """`Instants` of `symbols` (int64[4, classes])."""
    class_of = np.zeros(int(symbols.max()) + 1, np.int64)
    place_of = np.zeros_like(class_of)
    for place in reversed(range(len(symbols))):
        for number in reversed(range(symbols.shape[1])):
            class_of[symbols[place, number]] = number
            place_of[symbols[place, number]] = place
    return Instants(symbols, class_of, place_of)


@njit(nogil=True, cache=True)
def write_symbols(table, begins, symbols):  # type: ignore[no-untyped-def]
    """Turn classes into symbols, in place.

    begins: bool[rows], the rows at which instants begin; empty: each row is an instant.
    """
    rows = symbols.shape[0]
    if begins.shape[0] == 0:
        for row in range(rows):
            symbols[row] = table[0, symbols[row]]
        return
    for row in range(rows):
        ends = row + 1 == rows or begins[row + 1]
        place = (0 if ends else 1) if begins[row] else (3 if ends else 2)
        symbols[row] = table[place, symbols[row]]


@njit(nogil=True, cache=True)
def note_changes(values, begins):  # type: ignore[no-untyped-def]
    """Set `begins` (bool[rows]) to True where a value differs from the value before it."""
    for row in range(1, values.shape[0]):
        begins[row] |= values[row] != values[row - 1]


class InstantRows(NamedTuple):
    """The rows of a batch by instants."""

    numbers: np.ndarray  # int64[rows], the number of each row's instant
    starts: np.ndarray
    """int64[instants + 1], the first row of each instant, then the number of rows."""

    def first(self, rows: np.ndarray) -> np.ndarray:
        """int64: the first row of each row's instant."""
        found: np.ndarray = self.starts[self.numbers[rows]]
        return found

    def last(self, rows: np.ndarray) -> np.ndarray:
        """int64: the last row of each row's instant."""
        found: np.ndarray = self.starts[self.numbers[rows] + 1] - 1
        return found


def instant_rows(begins: np.ndarray) -> InstantRows:
    """`begins`: bool[rows], the rows at which instants begin; the first row must be one."""
    return InstantRows(*_instant_rows(begins))


@njit(nogil=True, cache=True)
def _instant_rows(begins):  # type: ignore[no-untyped-def]
    numbers = np.empty(begins.shape[0], np.int64)
    starts = np.empty(begins.shape[0] + 1, np.int64)
    number = np.int64(-1)
    for row in range(begins.shape[0]):
        number += begins[row]
        numbers[row] = number
        # The next row overwrites this, unless an instant begins there. So there is no branch.
        starts[number + 1] = row + 1
    starts[0] = 0
    return numbers, starts[: number + 2]
