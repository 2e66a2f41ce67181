"""The latest start of an absent part, for each key that its events share.

As `latest_starts`, with a row of a table for each key instead of one set of starts. Only events of
the part look up their row. The row of a key holds two numbers for each position of the part, and
last for the whole part: the entry of the latest start plus one (0: there is none), and its key on
the window. A start before the partition of an event does not count.
"""

import numpy as np

from celc_runtime.engine.arena.key_tables import AHEAD, FIRST_KEY, IS_TAKEN
from celc_runtime.engine.past.latest_starts import NONE
from celc_runtime.engine.past.nearest_events import fetch_key, place_of_key
from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def follow_keys(  # type: ignore[no-untyped-def]
    keyed, positions, window, brings, entry, symbols, begins, of_key, latest, rows, found
):
    """Write the latest start of a match so far (an entry, or `NONE`), for the events in `rows`.

    Returns the number of new keys. With `of_key`, only matches with the event's key count.

    rows: a range. keyed: `(values, table, terms)`: int64[terms, events], the table of keys, and the
    terms of the key. positions: as `positions_of` returns them. window: (keys, floors) of the
    events. brings: bool[events], whether an event is one of the part and has a key. entry: the
    number of the first event. begins: int64[events], the first entry of its partition. latest:
    int64[1], the latest start of all matches so far.
    """
    values, table, terms = keyed
    positions_of, before, starts_part, ends_part = positions
    keys, floors = window
    count = starts_part.shape[0]
    new = np.zeros((2, count), np.int64)
    head = FIRST_KEY + terms.shape[0]
    whole = head + 2 * count
    taken = 0
    for row in range(rows[0], rows[1]):
        if row + AHEAD < rows[1] and brings[row + AHEAD]:
            fetch_key(table, values, terms, row + AHEAD)
        own = np.int64(NONE)
        if brings[row]:
            place = place_of_key(table, values, terms, row)
            begin, symbol = begins[row], symbols[row]
            for position in range(count):
                new[0, position] = 0
                if not positions_of[symbol, position]:
                    continue
                if starts_part[position]:
                    new[0, position], new[1, position] = entry + row + 1, keys[row]
                    continue  # an earlier start is not later than this one
                for earlier in range(count):
                    start = table[place, head + 2 * earlier]
                    if before[position, earlier] and start > max(begin, new[0, position]):
                        new[0, position] = start
                        new[1, position] = table[place, head + 2 * earlier + 1]
            for position in range(count):
                start, key = new[0, position], new[1, position]
                if start == 0:
                    continue
                if table[place, IS_TAKEN] == 0:
                    taken += 1
                    table[place, IS_TAKEN] = 1
                    for number in range(terms.shape[0]):
                        table[place, FIRST_KEY + number] = values[terms[number], row]
                if start > table[place, head + 2 * position]:
                    table[place, head + 2 * position] = start
                    table[place, head + 2 * position + 1] = key
                if ends_part[position] and key >= floors[row] and start > table[place, whole]:
                    table[place, whole] = start
                    table[place, whole + 1] = key
            if table[place, whole] > begin:
                own = table[place, whole] - 1
                latest[0] = max(latest[0], own)
        found[row] = own
        if not of_key:
            found[row] = latest[0]
    return taken
