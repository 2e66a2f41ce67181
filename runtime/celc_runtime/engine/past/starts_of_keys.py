"""The latest start of a part that must be absent, for each key that its events have in common.

As `latest_starts`, with a row of a table for each key in the place of one set of starts. Only the
events of the part look their row up; the row of a key holds for each position of the part, and for
the whole part behind them, the entry of the latest start and one more, and its key on the window.
0 stands for no start. A start before the partition of an event is none either.
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
    """Write for the events in `rows`, a range, the latest start of a match so far (an entry, `NONE`
    where there is none), with `of_key` of the matches with the event's key; returns how many keys
    were new.

    keyed: `(values, table, terms)`: int64[terms, events], the table of keys, and the numbers of the
    terms of the key. positions: those of the part, as `positions_of` gives them. window: keys and
    floors of each event on the window. brings: bool[events], whether an event is one of the part
    and has a key. entry: that of the first event. begins: int64[events], the first entry of its
    partition. latest: int64[1], the latest start of all matches so far.
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
                    continue  # no earlier start is later
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
