"""The nearest event with a key before each event, and after each, in one pass over the events.

*Before*: a table holds the latest event with each key. *After*: a table holds for each key the
latest event that still waits for the next one with this key. The waiting events of a key form a
linked list: the place for an event's answer holds −2 − (the entry of the waiting event before it).
The next event with the key is the answer for all of them. So each event is linked once and answered
once.

Both tables are read by entries. A key whose entry is before `begin` is of another partition.
"""

import numpy as np

from celc_runtime.engine.arena.key_tables import (
    AHEAD,
    FIRST_KEY,
    IS_TAKEN,
    fetch_ahead,
    hash_of,
    hash_of_three,
    hash_of_two,
    row_of,
    row_of_three,
    row_of_two,
)
from celc_runtime.jit.kernels import njit

ALIVE = 0  # the SINCE of a key's event: the entry alone says whether the key is still needed

NO_ENTRY = -1  # no event; every answer that is not an entry is negative


@njit(nogil=True, cache=True, inline="always")
def place_of_key(table, values, terms, row):  # type: ignore[no-untyped-def]
    """The row of an event's key, or the free row where it belongs; `terms` make the key."""
    if terms.shape[0] == 1:
        return row_of(table, values[terms[0], row])
    if terms.shape[0] == 2:
        return row_of_two(table, values[terms[0], row], values[terms[1], row])
    return row_of_three(table, values[terms[0], row], values[terms[1], row], values[terms[2], row])


@njit(nogil=True, cache=True, inline="always")
def fetch_key(table, values, terms, row):  # type: ignore[no-untyped-def]
    """Start loading the row at which the search for an event's key begins."""
    if terms.shape[0] == 1:
        hashed = hash_of(values[terms[0], row])
    elif terms.shape[0] == 2:
        hashed = hash_of_two(values[terms[0], row], values[terms[1], row])
    else:
        hashed = hash_of_three(values[terms[0], row], values[terms[1], row], values[terms[2], row])
    fetch_ahead(table, hashed)


@njit(nogil=True, cache=True, inline="always")
def _enter(table, place, values, terms, row, entry):  # type: ignore[no-untyped-def]
    """Make an event the latest one of its key; returns the number of new keys (0 or 1)."""
    is_new = np.int64(table[place, IS_TAKEN] == 0)
    table[place, IS_TAKEN] = 1
    for number in range(terms.shape[0]):
        table[place, FIRST_KEY + number] = values[terms[number], row]
    table[place, FIRST_KEY + terms.shape[0]] = entry
    table[place, FIRST_KEY + terms.shape[0] + 1] = ALIVE
    return is_new


@njit(nogil=True, cache=True)
def nearest_before(  # type: ignore[no-untyped-def]
    values, table, brings, asks, begins, key, asking, are_same, entry, rows, found
):
    """Write the entry of the nearest event before, for the events in the range `rows`.

    Returns the number of new keys. values: int64[terms, events]. table: its pile's newest cell is
    the entry. brings: bool[events], whether an event is one that is searched for, and has a key.
    asks: bool[events], whether it has a key to ask for. begins: int64[events], the first entry of
    each event's partition. key, asking: the terms of both keys. are_same: whether these are equal.
    entry: the number of the first event. found: int64[events], the answers.
    """
    new, place = 0, np.int64(0)
    head = FIRST_KEY + key.shape[0]
    for row in range(rows[0], rows[1]):
        if row + AHEAD < rows[1]:
            fetch_key(table, values, asking, row + AHEAD)
        answer = np.int64(NO_ENTRY)
        if asks[row]:
            place = place_of_key(table, values, asking, row)
            if table[place, IS_TAKEN] != 0 and table[place, head] >= begins[row]:
                answer = table[place, head]
        found[row] = answer
        if brings[row]:
            if not (are_same and asks[row]):
                place = place_of_key(table, values, key, row)
            new += _enter(table, place, values, key, row, entry + row)
    return new


@njit(nogil=True, cache=True)
def nearest_after(  # type: ignore[no-untyped-def]
    values, table, brings, asks, begins, key, asking, are_same, entry, rows, first, found
):
    """As `nearest_before`, for the nearest event after.

    `found` has the answers of all events from the entry `first` on. Answers of earlier events are
    written too.
    """
    new, place = 0, np.int64(0)
    head = FIRST_KEY + key.shape[0]
    for row in range(rows[0], rows[1]):
        if row + AHEAD < rows[1]:
            fetch_key(table, values, asking, row + AHEAD)
        oldest = max(first, begins[row])
        if brings[row]:
            place = place_of_key(table, values, key, row)
            if table[place, IS_TAKEN] != 0:
                waiting = table[place, head]
                while waiting >= oldest:
                    following = -2 - found[waiting - first]
                    found[waiting - first] = entry + row
                    waiting = following
                table[place, head] = NO_ENTRY
        answer = np.int64(NO_ENTRY)
        if asks[row]:
            if not (are_same and brings[row]):
                place = place_of_key(table, values, asking, row)
            if table[place, IS_TAKEN] != 0 and table[place, head] >= oldest:
                answer = -2 - table[place, head]
            new += _enter(table, place, values, asking, row, entry + row)
        found[entry + row - first] = answer
    return new
