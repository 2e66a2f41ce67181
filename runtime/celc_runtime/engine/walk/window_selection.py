"""Choosing among the matches in the window of an event: by a selector's automaton, or the earliest.

A selector's automaton was made for a whole stream. Here it reads the events of one window as if the
stream began there. It marks only the events of chosen matches. It builds its nodes in a scratch
arena, which is cleared after their matches have been listed.

*Exact*: the matches in the window that ends at j are the matches of the stream that begins at the
window's first event, and the automaton chooses among those (Theorem 4 of the CEL paper).

*Cost*: (events of the window that matter) × (states of the automaton that are alive at once, a
number fixed by the query), for any number of matches that are not chosen; plus the length of each
chosen match.

NXT needs no automaton of its own if an event can be marked in one way only (`choose_earliest`). A
backward pass over the window finds the states that reach the end. A forward pass marks an event
whenever that leads to such a state. That is two table look-ups for each event. For a sequence like
`A ; B ; C` both passes stop early: backward, when every state reaches the end whatever comes
before; forward, when only the last event is left to mark.
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.batch import next_relevant_row
from celc_runtime.engine.arena.nodes import (
    DONE,
    FIRED,
    LISTED,
    MERGE,
    NEXT_NODE,
    OUTPUT_FULL,
    WINDOW_FULL,
    put,
)
from celc_runtime.engine.walk.listing import fire_alone, list_fired
from celc_runtime.jit.kernels import njit


class WindowEvents(NamedTuple):
    """The events that a window can reach back to, in order; those of the batch come last.

    All are int64[events].
    """

    rows: np.ndarray  # their rows in the batch, −1 for events of earlier batches
    letters: np.ndarray  # their symbols in their context
    keys: np.ndarray  # what the window is measured on
    parts: np.ndarray  # the numbers of their partitions
    entries: np.ndarray  # their numbers among the events whose symbol is not 0


# Places in the array `places`: the state of the windows of a run.
CURSOR = 0  # the last event that fired
FIRST = 1  # the first event of its window
BOUNDARY = 2  # the last event that a match has consumed, −1: none
INTERLEAVED = 3  # 1: partitions interleave
CONSUMES = 4  # 1: matches consume their events


@njit(nogil=True, cache=True)
def append_events(events, at, batch, keys, parts, shift, entry, part, all_events):  # type: ignore[no-untyped-def]
    """Write the events of a batch from index `at` on.

    keys: as in `WindowEvents`, for each row; empty: the window is measured on positions, which are
    rows − `shift`. parts: the rows at which a partition begins. part: the number of the partition
    before these. entry: the number of the next event whose symbol is not 0. all_events: also write
    events with symbol 0.
    """
    symbols = batch.symbols
    rows = symbols.shape[0]
    entered = 0
    row = 0
    while row < rows:
        if symbols[row] == 0 and not all_events:
            row = next_relevant_row(batch.words, symbols, row + 1, rows)
            continue
        while entered < parts.shape[0] and parts[entered] <= row:
            shift = parts[entered]
            entered += 1
        events.rows[at] = row
        events.letters[at] = symbols[row]
        events.keys[at] = keys[row] if keys.shape[0] else row - shift
        events.parts[at] = batch.slots[row] if batch.slots.shape[0] else part + entered
        events.entries[at] = entry
        entry += symbols[row] != 0
        at += 1
        row += 1


@njit(nogil=True, cache=True)
def _window_of(fire, events, places):  # type: ignore[no-untyped-def]
    """The index of the first event in the window, and of the event that fired."""
    cursor = places[CURSOR]
    while events.rows[cursor] != fire[1]:
        cursor += 1
    places[CURSOR] = cursor
    first = max(places[FIRST], places[BOUNDARY] + 1)
    if not places[INTERLEAVED]:
        while events.parts[first] != events.parts[cursor] or events.keys[first] < fire[3]:
            first += 1
        places[FIRST] = first
    return first, cursor


@njit(nogil=True, cache=True)
def choose_by_automaton(memory, output, kinds, selector, events, scratch, contents, places):  # type: ignore[no-untyped-def]
    """List the matches that a selector's automaton chooses at each event that fired.

    Returns a status. contents: int64[2, states], room for the node of each state before and after
    an event.
    """
    counters = memory.counters
    while True:
        if scratch.counters[FIRED]:
            status = list_fired(scratch, output, kinds)
            if status != DONE:
                return status
        if counters[LISTED] == counters[FIRED]:
            counters[LISTED] = counters[FIRED] = 0
            return DONE
        fire = memory.fires[counters[LISTED]]
        first, cursor = _window_of(fire, events, places)
        floor_value = fire[3]
        root = _read_window(selector, events, scratch, contents, kinds, first, cursor, floor_value)
        if root < 0:
            return WINDOW_FULL
        counters[LISTED] += 1
        if places[CONSUMES]:
            places[BOUNDARY] = cursor
        if root > 0 and output.limit[0] > 0:
            fire_alone(scratch, root, fire[1])


@njit(nogil=True, cache=True)
def _read_window(selector, events, scratch, contents, kinds, first, last, floor_value):  # type: ignore[no-untyped-def]
    """Build the nodes of the chosen matches that end at event `last`.

    Returns their root, 0: no match, −1: no room.
    """
    nodes, bits = scratch.nodes, kinds.bits[0]
    states = selector.skip.shape[0]
    columns = selector.skip.shape[1]
    part = events.parts[last]
    tracker = np.int64(0)
    node = np.int64(1)
    now = 0
    begun = False
    for state in range(states):
        contents[0, state] = 0
    for at in range(first, last + 1):
        letter = events.letters[at]
        if selector.quiet[letter] and at != last:
            continue
        if events.parts[at] != part or events.keys[at] < floor_value:
            continue
        if node + selector.most[0] > nodes.shape[0]:
            return np.int64(-1)
        column = selector.symbols[tracker, letter]
        tracker = selector.following[tracker, letter]
        tag = events.entries[at] << bits
        ends = at == last
        root = np.int64(0)
        if begun:
            for state in range(states):
                contents[1 - now, state] = 0
            for state in range(states):
                content = contents[now, state]
                if content == 0:
                    continue
                place = state * columns + column
                for index in range(selector.move_first[place], selector.move_first[place + 1]):
                    kind, accepts, target = selector.moves[index]
                    if ends and accepts:
                        put(nodes, node, tag | kind, content, root, 0)
                        root = node
                        node += 1
                    elif not ends and target >= 0:
                        put(nodes, node, tag | kind, content, contents[1 - now, target], 0)
                        contents[1 - now, target] = node
                        node += 1
                target = selector.skip[state, column]
                if not ends and target >= 0:
                    if contents[1 - now, target] == 0:
                        contents[1 - now, target] = content
                    else:
                        put(nodes, node, MERGE, content, contents[1 - now, target], 0)
                        contents[1 - now, target] = node
                        node += 1
            now = 1 - now
        for index in range(selector.start_first[column], selector.start_first[column + 1]):
            kind, accepts, target = selector.start_moves[index]
            if ends and accepts:
                put(nodes, node, tag | kind, 0, root, 0)
                root = node
                node += 1
            elif not ends and target >= 0:
                put(nodes, node, tag | kind, 0, contents[now, target], 0)
                contents[now, target] = node
                node += 1
                begun = True
        if ends:
            scratch.counters[NEXT_NODE] = node
            return root
    return np.int64(0)


@njit(nogil=True, cache=True)
def choose_earliest(memory, output, kinds, selector, events, sets, places):  # type: ignore[no-untyped-def]
    """List the match of the earliest events at each event that fired.

    Returns a status. sets: int64[room], for each event of the window the set of states from which
    the events after it lead to the end.
    """
    counters, bits, tags = memory.counters, kinds.bits[0], output.tags
    letters, entries, states = events.letters, events.entries, selector.states[0]
    while counters[LISTED] < counters[FIRED]:
        fire = memory.fires[counters[LISTED]]
        first, last = _window_of(fire, events, places)
        used = output.used[1]
        if output.used[0] == output.rows.shape[0] or used + last + 1 - first > tags.shape[0]:
            return OUTPUT_FULL
        if last + 1 - first > sets.shape[0]:
            return WINDOW_FULL
        reached = selector.ends[letters[last]]
        at = last - 1
        while at >= first and not selector.settled[reached]:
            sets[at - first] = reached * states
            reached = selector.back[reached + letters[at]]
            at -= 1
        settled_until, settled = at, reached * states
        state = np.int64(0)
        for at in range(first, last):
            if selector.done[state]:
                break
            # No branch on the event, because whether it is marked cannot be predicted.
            place = state + letters[at]
            step = selector.steps[(settled if at <= settled_until else sets[at - first]) + place]
            tags[used] = entries[at] << bits | selector.kinds[place]
            used += step & 1
            state = step >> 1
        if output.limit[0] > 0:
            tags[used] = entries[last] << bits | selector.end_kinds[state + letters[last]]
            output.rows[output.used[0]], output.ends[output.used[0]] = fire[1], used + 1
            output.used[0], output.used[1] = output.used[0] + 1, used + 1
        counters[LISTED] += 1
        if places[CONSUMES]:
            places[BOUNDARY] = last
    counters[LISTED] = counters[FIRED] = 0
    return DONE
