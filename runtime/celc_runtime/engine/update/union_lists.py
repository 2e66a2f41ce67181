"""The general update, driven by tables: it runs any I/O-deterministic CEA.

Generated straight-line updates keep one prepend-only list of cells for each way into a state. That
works only if an unmarked event leaves every state as it is: then the cells of a list come in the
order of their starts. With `:`, and wherever other passing events end or change matches, matches
meet in a state out of order. Here a state holds a *union list*, the structure of the CORE paper
(Bucchi et al., VLDB 2022), with these invariants:

1. A state's list is n₀, n₁, …, nₖ with SINCE(n₀) ≥ SINCE(n₁) > … > SINCE(nₖ), and n₀ is a cell.
2. Every nᵢ is *safe*: a cell, or a merge whose left side is a cell.
3. States are kept in the order of SINCE(n₀), latest first.

States are visited in that order, and hand on their lists. The first arrival at a state founds its
list: a new cell, or the whole list of a state whose matches pass on unmarked (its n₀ is a cell). A
later arrival starts no later, so it is inserted behind n₀. By (1) and (3), the founding order is
again the order of (3).

*A list has at most |states| + 1 elements.* Let m be SINCE(n₀), the event at which that match began.
At that time the other states had at most |states| different values of SINCE(n₀). Since then, values
below m only disappear: a new match starts later than m, and every inserted element carries the
SINCE(n₀) of the state that it came from. So the values behind n₀ are from that one set, and the
values in a list are distinct.

*Merges are shallow.* `_as_node` hands a list on as one node n₀ ∪ (n₁ ∪ (…)). Its left side is the
cell n₀, so it is safe. `_union_of_equals` unites two safe nodes of equal SINCE with the two cells
first: c₁ ∪ (c₂ ∪ (r₁ ∪ r₂)), the later of r₁ and r₂ on the left. That is safe again. So a left path
from any node has at most three merges, and the delay of the enumeration does not depend on the
stream.

Nothing here allocates for each live match. An event costs (states × moves) for any window.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from celc_runtime.engine.arena.batch import window_floor
from celc_runtime.engine.arena.nodes import (
    ALWAYS,
    ARENA_FULL,
    CHILD,
    DONE,
    ENTRY,
    EPOCH,
    FIRED,
    FIRES,
    LISTS_FULL,
    LOWEST,
    MERGE,
    NEVER,
    NEXT,
    NEXT_NODE,
    PART,
    READ,
    ROW,
    SHIFT,
    SINCE,
    STATES_UNKNOWN,
    TAG,
    USABLE,
    is_live,
    lowest_id,
    put,
    reserve,
)
from celc_runtime.engine.walk.listing import list_fired
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.transitions import EVENTS, FLOORS, KEYS, TransitionArrays

_KERNEL: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy", "_nrt": False}
"""Options of kernels that make no arrays. Counting references to the arrays of a run, about fifty,
took longer than an event."""

_PART: dict[str, Any] = {**_KERNEL, "inline": "always"}
"""Options of the parts of an event's step. As real calls, passing all these arrays took as long
again as the step, or longer."""

UNKNOWN = -2
"""In `skip`: nobody has asked yet where a state goes with an event (`states_as_met`)."""

KEEP, CONSUME = 0, 1

OWN_CLOCKS = 2  # in `settings`: partitions interleave, and each has its own keys for the window


class Lists(NamedTuple):
    """The union lists of each partition slot; there is one slot unless partitions interleave.

    One more slot, the last one, is scratch space for the present event.
    """

    active: np.ndarray  # int64[slots], the number of states that hold something
    order: np.ndarray  # int64[slots, states], these states, latest start first
    length: np.ndarray  # int64[slots, states]
    items: np.ndarray  # int64[slots, states, room]
    clock: np.ndarray  # int64[slots], the number of events read
    context: np.ndarray  # int64[slots, 2], the context, and the epoch in which it was reached


def new_lists(states: int, *, slots: int = 1, room: int = 4) -> Lists:
    states = max(states, 1)
    return Lists(
        np.zeros(slots + 1, np.int64),
        np.zeros((slots + 1, states), np.int64),
        np.zeros((slots + 1, states), np.int64),
        np.zeros((slots + 1, states, room), np.int64),
        np.zeros(slots + 1, np.int64),
        np.zeros((slots + 1, 2), np.int64),
    )


@njit(nogil=True, cache=True)
def contexts_before(following, symbols, starts, begun, firsts, consumed):  # type: ignore[no-untyped-def]
    """(int64[rows], int64[parts]): the context before each row, and after each partition.

    starts: int64[parts], the first rows of partitions. begun: int64[parts], the contexts in which
    they begin. consumed: bool[parts]; where True, the context starts again at the row in `firsts`
    (int64[parts]).
    """
    before = np.empty(symbols.shape[0], np.int64)
    behind = np.empty(starts.shape[0], np.int64)
    for part in range(starts.shape[0]):
        end = starts[part + 1] if part + 1 < starts.shape[0] else symbols.shape[0]
        context = begun[part]
        for row in range(starts[part], end):
            if consumed[part] and row == firsts[part]:
                context = np.int64(0)
            before[row] = context
            context = following[context, symbols[row]]
        behind[part] = 0 if consumed[part] and firsts[part] >= end else context
    return before, behind


def with_more_slots(lists: Lists, slots: int) -> Lists:
    old = len(lists.active) - 1
    if slots <= old:
        return lists
    grown = new_lists(lists.order.shape[1], slots=max(slots, 2 * old), room=lists.items.shape[2])
    for target, source in zip(grown, lists, strict=True):
        target[:old] = source[:old]
    return grown


def with_longer_lists(lists: Lists) -> Lists:
    return lists._replace(items=np.concatenate([lists.items, np.zeros_like(lists.items)], axis=2))


@njit(**_KERNEL)
def update_lists(batch, memory, lists, output, kinds, tables):  # type: ignore[no-untyped-def]
    """Read the events of a batch from `counters[ROW]` on; returns a status of `arena.nodes`."""
    symbols, counters = batch.symbols, memory.counters
    window, size, interleaved = tables.settings[0], tables.settings[1], tables.settings[3]
    rows = symbols.shape[0]
    row = counters[ROW]
    has_contexts = tables.following.shape[0] > 0
    status = DONE
    while row < rows and status == DONE:
        slot = np.int64(0)
        if interleaved:
            slot = batch.slots[row]
            position = lists.clock[slot]
        else:
            if row >= batch.part_starts[counters[PART]]:
                while row >= batch.part_starts[counters[PART] + 1]:
                    counters[PART] += 1
                counters[SHIFT] = batch.part_starts[counters[PART]]
                counters[PART] += 1
                counters[LOWEST] = counters[NEXT_NODE]
                lists.active[0] = 0
                lists.context[0, 0] = 0
                if batch.contexts.shape[0] > 0:
                    lists.context[0, 0] = batch.contexts[counters[PART] - 1]
                lists.context[0, 1] = counters[EPOCH]
            position = row - counters[SHIFT]
        symbol = np.int64(symbols[row])
        matters = symbol != 0
        if has_contexts:
            # Once for each event. An event that did not fit comes here twice.
            if row == counters[READ]:
                if lists.context[slot, 1] != counters[EPOCH]:
                    lists.context[slot, 0], lists.context[slot, 1] = 0, counters[EPOCH]
                context = lists.context[slot, 0]
                batch.letters[row] = tables.letters[context, symbol]
                lists.context[slot, 0] = tables.following[context, symbol]
                counters[READ] = row + 1
            symbol = batch.letters[row]
        if not tables.idle[symbol]:
            key, floor_value = position, np.int64(ALWAYS)
            if window == EVENTS:
                floor_value = position - size
            elif window == KEYS:
                key = batch.keys[row]
                floor_value = window_floor(key, size)
            elif window == FLOORS:
                key = batch.keys[row]
                floor_value = batch.floors[row]
            status = _event(
                memory, lists, output, kinds, tables, row, slot, symbol, key, floor_value,
            )  # fmt: skip
            if status != DONE:
                break
        if matters:
            counters[ENTRY] += 1
        if interleaved:
            lists.clock[slot] += 1
        row += 1
    counters[ROW] = row
    if status == DONE:
        return list_fired(memory, output, kinds)
    return status


def update_by_tables(tables: TransitionArrays) -> Callable[..., int]:
    """The update (batch, memory, lists, output, kinds) for these tables; modules can be called
    so."""
    return partial(update_lists, tables=tables)


@njit(**_PART)
def _event(memory, lists, output, kinds, tables, row, slot, symbol, key, floor_value):  # type: ignore[no-untyped-def]
    """Let all states of a partition slot read one event; returns a status of `arena.nodes`.

    The new lists are made in the scratch slot, and copied over the old ones at the end. So an event
    for which there was no room has changed nothing, and can be read again.
    """
    nodes, counters = memory.nodes, memory.counters
    settings = tables.settings
    symbols = tables.idle.shape[0]
    scratch = lists.active.shape[0] - 1
    before = counters[NEXT_NODE]
    entry = counters[ENTRY]
    bits = kinds.bits[0]
    lowest = lowest_id(nodes, before, counters[LOWEST])

    wanted = 4 * (tables.start_first[symbol + 1] - tables.start_first[symbol])
    changes = wanted > 0
    for place in range(lists.active[slot]):
        state = lists.order[slot, place]
        at = state * symbols + symbol
        if tables.skip[state, symbol] == UNKNOWN:
            return STATES_UNKNOWN
        moves = tables.move_first[at + 1] - tables.move_first[at]
        wanted += lists.length[slot, state] + 4 + 5 * moves
        changes |= moves > 0 or tables.skip[state, symbol] != state
    if not changes:
        return DONE  # every state keeps its list as it is
    if before + wanted > counters[USABLE] or counters[FIRED] == FIRES:
        status = list_fired(memory, output, kinds)
        if status != DONE:
            return status
        # If partitions interleave, the window of another partition can reach further back.
        floor_of_all = floor_value
        if settings[3] == OWN_CLOCKS or (settings[3] and settings[0] == EVENTS):
            floor_of_all = np.int64(ALWAYS)
        counters[USABLE] = reserve(memory, before, wanted, counters[LOWEST], floor_of_all, key)
        if before + wanted > counters[USABLE]:
            return ARENA_FULL
        lowest = lowest_id(nodes, before, counters[LOWEST])

    for place in range(lists.active[scratch]):
        lists.length[scratch, lists.order[scratch, place]] = 0
    lists.active[scratch] = 0
    fired = np.int64(0)
    full = False

    if key >= floor_value:
        for index in range(tables.start_first[symbol], tables.start_first[symbol + 1]):
            kind, accepts, target = tables.start_moves[index]
            if accepts:
                fired = _new_node(nodes, counters, entry << bits | kind, 0, fired, key)
            if target >= 0:
                node = _new_node(nodes, counters, entry << bits | kind, 0, 0, key)
                full |= not _add(nodes, counters, lists, scratch, target, node)

    for place in range(lists.active[slot]):
        state = lists.order[slot, place]
        length = lists.length[slot, state]
        while length > 0 and not is_live(
            nodes, lists.items[slot, state, length - 1], lowest, floor_value
        ):
            length -= 1
        if length == 0:
            continue
        whole = np.int64(0)
        since = nodes[lists.items[slot, state, 0] & (nodes.shape[0] - 1), SINCE]
        at = state * symbols + symbol
        for index in range(tables.move_first[at], tables.move_first[at + 1]):
            kind, accepts, target = tables.moves[index]
            if whole == 0:
                whole = _as_node(nodes, counters, lists, slot, state, length)
            if accepts:
                fired = _new_node(nodes, counters, entry << bits | kind, whole, fired, since)
            if target >= 0:
                node = _new_node(nodes, counters, entry << bits | kind, whole, 0, since)
                full |= not _add(nodes, counters, lists, scratch, target, node)
        target = tables.skip[state, symbol]
        if target >= 0:
            if lists.length[scratch, target] == 0:
                lists.order[scratch, lists.active[scratch]] = target
                lists.active[scratch] += 1
                lists.length[scratch, target] = length
                for item in range(length):
                    lists.items[scratch, target, item] = lists.items[slot, state, item]
            else:
                if whole == 0:
                    whole = _as_node(nodes, counters, lists, slot, state, length)
                full |= not _add(nodes, counters, lists, scratch, target, whole)

    if full:
        # Only new rows of the arena were written. So the event can be read again.
        counters[NEXT_NODE] = before
        return LISTS_FULL
    lists.active[slot] = lists.active[scratch]
    for place in range(lists.active[scratch]):
        state = lists.order[scratch, place]
        lists.order[slot, place] = state
        lists.length[slot, state] = lists.length[scratch, state]
        for item in range(lists.length[scratch, state]):
            lists.items[slot, state, item] = lists.items[scratch, state, item]

    if fired != 0:
        fire = memory.fires[counters[FIRED]]
        fire[0], fire[1], fire[2], fire[3] = fired, row, counters[LOWEST], floor_value
        counters[FIRED] += 1
        if settings[2] == CONSUME:
            counters[LOWEST] = counters[NEXT_NODE]
            lists.active[slot] = 0
            # The stream starts again at the next event, for every context.
            counters[EPOCH] += 1
    return DONE


@njit(**_PART)
def _new_node(nodes, counters, tag, child, following, since):  # type: ignore[no-untyped-def]
    """Make a node, a cell or a merge; returns its id."""
    node = counters[NEXT_NODE]
    put(nodes, node, tag, child, following, since)
    counters[NEXT_NODE] = node + 1
    return node


@njit(**_PART)
def _as_node(nodes, counters, lists, slot, state, length):  # type: ignore[no-untyped-def]
    """A list as one node, n₀ ∪ (n₁ ∪ (… ∪ nₖ)). It is safe (invariant 2)."""
    node = lists.items[slot, state, length - 1]
    for item in range(length - 2, -1, -1):
        left = lists.items[slot, state, item]
        since = nodes[left & (nodes.shape[0] - 1), SINCE]
        node = _new_node(nodes, counters, MERGE, left, node, since)
    return node


@njit(**_PART)
def _add(nodes, counters, lists, slot, state, node):  # type: ignore[no-untyped-def]
    """Insert a safe node into a list, first or behind n₀; False: the list is full."""
    mask = nodes.shape[0] - 1
    length = lists.length[slot, state]
    if length == 0:
        lists.order[slot, lists.active[slot]] = state
        lists.active[slot] += 1
        lists.items[slot, state, 0] = node
        lists.length[slot, state] = 1
        return True
    since = nodes[node & mask, SINCE]
    place = 1
    while place < length and nodes[lists.items[slot, state, place] & mask, SINCE] > since:
        place += 1
    if place < length and nodes[lists.items[slot, state, place] & mask, SINCE] == since:
        lists.items[slot, state, place] = _union_of_equals(
            nodes, counters, lists.items[slot, state, place], node, since
        )
        return True
    if length == lists.items.shape[2]:
        return False
    for item in range(length, place, -1):
        lists.items[slot, state, item] = lists.items[slot, state, item - 1]
    lists.items[slot, state, place] = node
    lists.length[slot, state] = length + 1
    return True


@njit(**_KERNEL)
def _union_of_equals(nodes, counters, first, second, since):  # type: ignore[no-untyped-def]
    """Unite two safe nodes of equal SINCE into one safe node."""
    mask = nodes.shape[0] - 1
    if nodes[first & mask, TAG] != MERGE:
        return _new_node(nodes, counters, MERGE, first, second, since)
    if nodes[second & mask, TAG] != MERGE:
        return _new_node(nodes, counters, MERGE, second, first, since)
    first_rest, second_rest = nodes[first & mask, NEXT], nodes[second & mask, NEXT]
    # A rest may be dead, and its row may hold another node. A wrong SINCE would put it on a left
    # side and break the order. So a rest that may be dead counts as the earlier one.
    lowest = lowest_id(nodes, counters[NEXT_NODE], counters[LOWEST])
    first_since = nodes[first_rest & mask, SINCE] if first_rest >= lowest else np.int64(NEVER)
    second_since = nodes[second_rest & mask, SINCE] if second_rest >= lowest else np.int64(NEVER)
    if first_since < second_since:
        first_rest, second_rest = second_rest, first_rest
        first_since = second_since
    rest = _new_node(nodes, counters, MERGE, first_rest, second_rest, first_since)
    inner = _new_node(nodes, counters, MERGE, nodes[second & mask, CHILD], rest, since)
    return _new_node(nodes, counters, MERGE, nodes[first & mask, CHILD], inner, since)
