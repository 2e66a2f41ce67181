"""The node arena: all partial matches of a run as one shared graph in one ring of rows.

A node is a row of four int64 numbers:

======== ============================================================================
TAG      a cell: `entry << kind_bits | kind` (which event, and how it is marked);
         −1: a merge of two nodes
CHILD    cell: what came before this event in the match (0: nothing)
         merge: the side whose latest start is the later one
NEXT     cell: another cell for the same place in the match (0: none)
         merge: the other side
SINCE    the latest start among all matches below: in a window of events the position
         of their first event, in a window of time its time
======== ============================================================================

Node ids grow for ever; a node lives in row `id & mask`. A node is *live* while SINCE is inside the
window, that is, not before `floor_value`. Whatever a node holds began after SINCE at the latest, so
a live node was made inside the window, and ids below `next_node − size` are dead: their rows belong
to others by then. Two comparisons decide it (`is_live`), and nothing is ever freed or cleared. A
new partition, or a match that consumes, only raises the lowest id that counts.

Positions and ids are 64-bit. The prototypes' 32-bit rows are half as wide, but a run would have to
be rebased whenever positions or ids come near 2³¹, in an arena that may hold positions from any
time back where there is no window; measured on `A ; B ; C`, the wide rows cost nothing visible.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from celc_runtime.jit.kernels import njit

TAG, CHILD, NEXT, SINCE = 0, 1, 2, 3
MERGE = -1

NEVER = -(2**63)
"""The SINCE of what does not exist: before every window."""

ALWAYS = NEVER + 1
"""The floor value without a window: everything but NEVER is inside it."""

# Where a run keeps its scalars, in `Memory.counters`.
NEXT_NODE = 0  # the id of the next node
USABLE = 1  # rows for ids below this are known to be free
LOWEST = 2  # nodes with smaller ids belong to another partition or have been consumed
ROW = 3  # the next row of the batch
PART = 4  # partitions entered in this batch
SHIFT = 5  # row of the batch minus position in the partition
ENTRY = 6  # the number of the next event with a symbol other than 0
EARLIEST = 7  # the floor value at the last event
FIRED = 8  # how many events wait for their matches to be listed
LISTED = 9  # how many of them have been begun
STACK_SIZE = 10  # nodes waiting in the enumeration that was interrupted; 0: none was
MATCHES_LEFT = 11  # how many more matches may be listed in it
MARKED = 12  # how many marks have been set (see `reserve`)
PASSED = 13  # how many of them the window has passed
PASSED_NODE = 14  # the node of the last of those: ids below it are dead
DEFERS = 15  # 1: what fires is not listed here, but chosen from by the caller (status CHOOSE)
READ = 16  # the rows of the batch whose letter and context are known
EPOCH = 17  # how often all contexts have begun anew
LAST = 18  # the row of the last event that mattered to a straight-line update
WORK = 19  # steps of a listing with conditions since the event at hand, or since the last match
LEAF_NODE = 20  # the newest cell among the leaves (see `runs`)
LEAF_BASE = 21  # how many leaves have been forgotten
LEAF_FIRST = 22  # the first leaf inside the window of the event that is listed
LEAF_COUNT = 23  # the leaves noted, those before LEAF_FIRST included
RUN_LEFT = 24  # matches of a run that did not fit into the buffers
RUN_FROM = 25  # the leaf at which it goes on, counted from the first leaf ever
COUNTERS = 26

MARKS = 64

FIRES = 4096
"""How many events may wait for their matches to be listed, and how far ahead `reserve` looks."""

BLOCK = 2048
"""How many rows a branch-free update looks through at once for those that matter."""

PADDING = 8
"""By how much buffers are longer than what they hold, where copies are made in steps of that."""

MAX_LEVELS = 32
"""The longest match of a query whose matches are listed in runs."""

# What `update` and `resume` return.
DONE = 0  # the batch (the enumeration) is finished
OUTPUT_FULL = 1  # take the matches out of the output buffers, call `resume`, then go on
STACK_FULL = 2  # the stack must grow, then `resume`
ARENA_FULL = 3  # the arena must grow, then go on with the same event
LISTS_FULL = 4  # the lists of the general engine must grow, then go on with the same event
CHOOSE = 5  # choose from what has fired, forget it (FIRED = 0), then go on
KEYS_FULL = 7  # a table of keys must drop old ones or grow, then go on with the same event
TOO_MUCH_WORK = 8  # a listing with conditions has taken more steps than it may
LEAVES_FULL = 9  # the leaves need more room, then list on
WINDOW_FULL = 6  # the scratch arena of a selection must grow, then choose on


class Memory(NamedTuple):
    """What a run remembers between events.

    nodes: int64[size, 4], size a power of two. heads: int64[2, piles + 2], the newest cell of
    each pile and its SINCE, used by generated straight-line and branch-free updates; the last
    two piles are for the latter: one that stays empty, one that nobody reads. relevant:
    int64[BLOCK + PADDING], the rows that matter in the block at hand. counters:
    int64[COUNTERS]. stack: int64[depth, 2] of (node, length of the path above it). path:
    int64[depth], the tags from the last event back. trail: int64[depth + PADDING], the same
    from its end back, so that a match is one stretch of it. fires: int64[FIRES, 4], the events
    whose matches are not listed yet: (node, row, lowest id and floor value that count for it).
    marks: int64[MARKS, 2], a ring of (key, node): nodes with smaller ids were made at that key
    or before. leaves: int64[PADDING + room + PADDING], entries of the cells that begin matches,
    leaf_marks: int64[room, 2], their nodes and SINCE, run_starts: int64[MAX_LEVELS], all for
    queries of fixed shape.
    """

    nodes: np.ndarray
    heads: np.ndarray
    relevant: np.ndarray
    counters: np.ndarray
    stack: np.ndarray
    path: np.ndarray
    fires: np.ndarray
    marks: np.ndarray
    trail: np.ndarray
    leaves: np.ndarray
    leaf_marks: np.ndarray
    run_starts: np.ndarray


def new_memory(
    piles: int, *, size: int = 1024, first_node: int = 1, first_entry: int = 0
) -> Memory:
    """Fresh memory for a run; `first_node` and `first_entry` are for tests of very long runs."""
    counters = np.zeros(COUNTERS, np.int64)
    counters[NEXT_NODE] = counters[LOWEST] = counters[USABLE] = first_node
    counters[ENTRY] = first_entry
    counters[EARLIEST] = ALWAYS
    counters[LAST] = -2
    counters[PASSED_NODE] = first_node
    heads = np.zeros((2, piles + 2), np.int64)
    heads[1] = NEVER
    nodes = np.zeros((size, 4), np.int64)
    nodes[:, SINCE] = NEVER
    return Memory(
        nodes,
        heads,
        np.zeros(BLOCK + PADDING, np.int64),
        counters,
        np.zeros((256, 2), np.int64),
        np.zeros(64, np.int64),
        np.zeros((FIRES, 4), np.int64),
        np.zeros((MARKS, 2), np.int64),
        np.zeros(64 + PADDING, np.int64),
        np.zeros(256 + 2 * PADDING, np.int64),
        np.zeros((256, 2), np.int64),
        np.zeros(MAX_LEVELS, np.int64),
    )


@njit(nogil=True, cache=True)
def put(nodes, node, tag, child, following, since):  # type: ignore[no-untyped-def]
    """Write a node into its row."""
    row = nodes[node & (nodes.shape[0] - 1)]
    row[0] = tag
    row[1] = child
    row[2] = following
    row[3] = since


@njit(nogil=True, cache=True)
def is_live(nodes, node, lowest, floor_value):  # type: ignore[no-untyped-def]
    """Whether a node exists and some match below it starts inside the window."""
    return node >= lowest and nodes[node & (nodes.shape[0] - 1), SINCE] >= floor_value


@njit(nogil=True, cache=True)
def lowest_id(nodes, next_node, lowest):  # type: ignore[no-untyped-def]
    """The smallest id that can still be a node: its row not taken over, its partition not over."""
    return max(next_node - nodes.shape[0], lowest, np.int64(1))


@njit(nogil=True, cache=True)
def either(nodes, next_node, floor_value, first, first_since, second, second_since):  # type: ignore[no-untyped-def]
    """The union of two nodes given with their SINCE; a dead one is left out.

    Returns (node, SINCE, next_node). The later start goes left, so that a walk down the left sides
    meets no dead node.
    """
    if second_since < floor_value:
        return first, first_since, next_node
    if first_since < floor_value:
        return second, second_since, next_node
    if first_since >= second_since:
        put(nodes, next_node, MERGE, first, second, first_since)
        return next_node, first_since, next_node + 1
    put(nodes, next_node, MERGE, second, first, second_since)
    return next_node, second_since, next_node + 1


# --- without branches: what generated branch-free updates are made of -----------------------------
#
# Which symbol comes next is as good as random, so that a branch on it is mispredicted every other
# time, and a misprediction costs more than an update. Here every event takes the same steps, and
# what it must not do has no effect: a node that is not wanted is overwritten by the next one.
# LLVM turns a choice between two loaded values back into a branch; hence the bit masks.


@njit(nogil=True, cache=True)
def chosen(mask, first, second):  # type: ignore[no-untyped-def]
    """`first` where the mask is −1, `second` where it is 0; without a branch."""
    return (first & mask) | (second & ~mask)


@njit(nogil=True, cache=True)
def put_flat(nodes, node, tag, child, following, since):  # type: ignore[no-untyped-def]
    """`put` into the arena as one row of numbers (`nodes.ravel()`): that saves multiplications."""
    place = (np.uint64(node) << np.uint64(2)) & np.uint64(nodes.shape[0] - 1)
    nodes[place] = tag
    nodes[place + np.uint64(1)] = child
    nodes[place + np.uint64(2)] = following
    nodes[place + np.uint64(3)] = since


@njit(nogil=True, cache=True)
def united(nodes, next_node, floor_value, first, first_since, second, second_since):  # type: ignore[no-untyped-def]
    """`either` without a branch, in the arena as one row of numbers."""
    is_first = -np.int64(first_since >= second_since)
    left, right = chosen(is_first, first, second), chosen(is_first, second, first)
    latest, earlier = max(first_since, second_since), min(first_since, second_since)
    put_flat(nodes, next_node, MERGE, left, right, latest)
    both = np.int64(earlier >= floor_value)
    return chosen(-both, next_node, left), latest, next_node + both


@njit(nogil=True, cache=True)
def seal(memory, next_node, count):  # type: ignore[no-untyped-def]
    """Make dead the nodes that were written ahead and not wanted: `count` of them at most."""
    nodes = memory.nodes
    for node in range(next_node, next_node + count):
        nodes[node & (nodes.shape[0] - 1), SINCE] = NEVER


@njit(nogil=True, cache=True)
def rows_that_matter(words, symbols, row, end, index):  # type: ignore[no-untyped-def]
    """Write the rows from `row` to `end` whose symbol is not 0 into `index`; returns their number.

    `words` as for `next_relevant`. Words without a relevant row are passed over; in the others each
    row is written, and the next one over it if it does not matter: no branch, 8 rows at a time.
    """
    count = np.uint64(0)
    if words.shape[0] == 0:
        while row < end:
            index[count] = row
            count += np.uint64(symbols[row] != 0)
            row += 1
        return np.int64(count)
    while row < end and row & 7:
        index[count] = row
        count += np.uint64(symbols[row] != 0)
        row += 1
    last = end & ~7
    while row < last:
        if words[np.uint64(row) >> np.uint64(3)] != 0:
            for place in range(row, row + 8):
                index[count] = place
                count += np.uint64(symbols[np.uint64(place)] != 0)
        row += 8
    while row < end:
        index[count] = row
        count += np.uint64(symbols[row] != 0)
        row += 1
    return np.int64(count)


@njit(nogil=True, cache=True)
def oldest_entry(memory, bits, floor_value):  # type: ignore[no-untyped-def]
    """The first entry that a live node refers to; the next one if there is none.

    A live cell is as late as what is live below it and was made later, so it is the first live cell
    that has the first entry. What is sealed (see `seal`) is before every `floor_value`.
    """
    nodes, counters = memory.nodes, memory.counters
    node = lowest_id(nodes, counters[NEXT_NODE], max(counters[LOWEST], counters[PASSED_NODE]))
    while node < counters[NEXT_NODE]:
        row = nodes[node & (nodes.shape[0] - 1)]
        if row[0] != MERGE and row[3] >= floor_value:
            return row[0] >> bits
        node += 1
    return counters[ENTRY]


# --- room -----------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def reserve(memory, next_node, wanted, lowest, floor_value, latest):  # type: ignore[no-untyped-def]
    """The first id from `next_node` on whose row may still be taken by a live node.

    Rows below it can be written without a look: what is dead stays dead, because the window and
    `lowest` only move on. Looks `wanted` ids ahead, and at least FIRES. Events that fired before
    must have been listed: their windows reach further back. An arena that is all but full has no
    free row: it would have to be asked again after every few events, which took twice the time.

    `latest` is not before the key of any event so far. Matches begin before their nodes are made,
    so all nodes made until a key are dead as soon as the window has left that key behind. Keys are
    noted with the next id every now and then (marks); only where the last mark that the window has
    passed does not tell enough, the nodes themselves are looked at.
    """
    nodes, counters, marks = memory.nodes, memory.counters, memory.marks
    size = nodes.shape[0]
    mask = size - 1
    while counters[PASSED] < counters[MARKED] and marks[counters[PASSED] % MARKS, 0] < floor_value:
        counters[PASSED_NODE] = marks[counters[PASSED] % MARKS, 1]
        counters[PASSED] += 1
    newest = marks[(counters[MARKED] - 1) % MARKS, 1] if counters[MARKED] > 0 else np.int64(0)
    if counters[MARKED] - counters[PASSED] < MARKS and next_node - newest >= size // 32:
        marks[counters[MARKED] % MARKS, 0] = latest
        marks[counters[MARKED] % MARKS, 1] = next_node
        counters[MARKED] += 1
    last = next_node + min(size, max(FIRES, wanted))
    # What was there before `lowest` does not count, whatever it says.
    node = min(last, max(next_node, lowest + size, counters[PASSED_NODE] + size))
    if node >= next_node + wanted and node >= min(last, next_node + FIRES // 8):
        return node
    while node < last and nodes[node & mask, SINCE] < floor_value:
        node += 1
    return node if node - next_node >= min(FIRES, size // 16) else next_node


def grown(memory: Memory) -> Memory:
    """The same nodes in an arena of twice the size."""
    old = memory.nodes
    size = len(old)
    nodes = np.full((2 * size, 4), MERGE, np.int64)
    next_node = int(memory.counters[NEXT_NODE])
    ids = np.arange(next_node - size, next_node, dtype=np.int64)
    nodes[:, SINCE] = NEVER
    nodes[ids & (2 * size - 1)] = old[ids & (size - 1)]
    # The free half: ids from next_node on fall into rows that nothing uses yet.
    memory.counters[USABLE] = next_node + min(size, FIRES)
    return memory._replace(nodes=nodes)


def with_deeper_stack(memory: Memory) -> Memory:
    """The same enumeration with twice the room for nodes that wait and for the path."""
    return memory._replace(
        stack=np.concatenate([memory.stack, np.zeros_like(memory.stack)]),
        path=np.concatenate([memory.path, np.zeros_like(memory.path)]),
        trail=np.concatenate([np.zeros_like(memory.path), memory.trail]),
    )


def with_more_leaves(memory: Memory) -> Memory:
    """The same leaves in twice the room."""
    more = np.zeros_like(memory.leaf_marks)
    return memory._replace(
        leaves=np.concatenate([memory.leaves, more[:, 0]]),
        leaf_marks=np.concatenate([memory.leaf_marks, more]),
    )


@njit(nogil=True, cache=True)
def next_relevant(words, symbols, row, rows):  # type: ignore[no-untyped-def]
    """The first row from `row` on whose symbol is not 0, or `rows`; eight rows at a step.

    `words` is the same memory as `symbols` (uint8) read as uint64, little-endian, zero behind the
    last row; or empty for wider symbols.
    """
    if words.shape[0] == 0:
        while row < rows and symbols[row] == 0:
            row += 1
        return row
    if row >= rows:
        return rows
    place = row >> 3
    word = words[place] >> np.uint64((row & 7) << 3) << np.uint64((row & 7) << 3)
    while word == 0:
        place += 1
        if place == words.shape[0]:
            return rows
        word = words[place]
    row = place << 3
    if word & np.uint64(0xFFFFFFFF) == 0:
        word >>= np.uint64(32)
        row += 4
    if word & np.uint64(0xFFFF) == 0:
        word >>= np.uint64(16)
        row += 2
    if word & np.uint64(0xFF) == 0:
        row += 1
    return row


@njit(nogil=True, cache=True)
def relevant_rows(words, symbols, count):  # type: ignore[no-untyped-def]
    """int64[count]: all rows whose symbol is not 0; there are so many."""
    found = np.empty(count + PADDING, np.int64)
    rows_that_matter(words, symbols, 0, symbols.shape[0], found)
    return found[:count]


@njit(nogil=True, cache=True)
def last_relevant_rows(words, symbols, count):  # type: ignore[no-untyped-def]
    """int64[count]: the last rows whose symbol is not 0, in order; there are so many."""
    found = np.empty(count, np.int64)
    row = symbols.shape[0]
    while count > 0:
        row -= 1
        if row & 7 == 7 and words.shape[0] > 0:
            while words[row >> 3] == 0:
                row -= 8
        if symbols[row] != 0:
            count -= 1
            found[count] = row
    return found
