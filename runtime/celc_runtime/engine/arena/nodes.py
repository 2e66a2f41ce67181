"""The node arena: all partial matches of a run as one shared graph in one ring of rows.

A node is a row of four int64 numbers:

======== ============================================================================
TAG      a cell: `entry << kind_bits | kind` (which event, and how it is marked);
         −1: a merge of two nodes
CHILD    cell: the node of the events before this one in the match (0: none)
         merge: the side whose latest start is the later one
NEXT     cell: another cell for the same place in the match (0: none)
         merge: the other side
SINCE    the latest start among all matches below: in a window of events the position
         of their first event, in a window of time its time
======== ============================================================================

Node ids grow for ever; a node lives in row `id & mask`. A node is *live* while SINCE is inside the
window, that is, not before `floor_value`. A node is made at SINCE or later, so a live node was made
inside the window. Ids below `next_node − size` are dead: their rows belong to other nodes by then.
Two comparisons tell whether a node is live (`is_live`), and nothing is ever freed or cleared. A new
partition, or a match that consumes, only raises the lowest id that counts.

Positions and ids are 64-bit. The prototypes' 32-bit rows are half as wide, but a run would have to
be rebased whenever positions or ids come near 2³¹; without a window, the arena may hold positions
of any age. Measured on `A ; B ; C`, the wide rows cost nothing visible.
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.jit.kernels import njit

TAG, CHILD, NEXT, SINCE = 0, 1, 2, 3
MERGE = -1

NEVER = -(2**63)
"""The SINCE of a node that does not exist: before every window."""

ALWAYS = NEVER + 1
"""The floor value without a window: every SINCE but NEVER is inside it."""

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
STACK_SIZE = 10  # nodes waiting in the walk that was interrupted; 0: no walk was
MATCHES_LEFT = 11  # how many more matches that walk may list
MARKED = 12  # how many marks have been set (see `reserve`)
PASSED = 13  # how many of the marks the window has passed
PASSED_NODE = 14  # the node of the last mark passed: ids below it are dead
DEFERS = 15  # 1: the update lists nothing, the caller chooses among the matches (status CHOOSE)
READ = 16  # the rows of the batch whose letter and context are known
EPOCH = 17  # how often all contexts have begun anew
LAST = 18  # the row of the last event that mattered to a straight-line update
WORK = 19  # steps of a listing with conditions since the event at hand, or since the last match
LEAF_NODE = 20  # the newest cell among the leaves (see `runs`)
LEAF_BASE = 21  # how many leaves have been forgotten
LEAF_FIRST = 22  # the first leaf inside the window of the event that is listed
LEAF_COUNT = 23  # the leaves noted, those before LEAF_FIRST included
RUN_LEFT = 24  # matches of a run that did not fit into the buffers
RUN_FROM = 25  # the leaf at which that run goes on, counted from the first leaf ever
BARRIER = 26  # the first node of the instant at hand, where simultaneous events have no order
INSTANT = 27  # the number of that instant in the batch
KEPT_FROM = (
    28  # the entry of the batch's first event, if `relevant` keeps all rows; −1: it does not
)
COUNTERS = 29

NO_BARRIER = 2**62
"""The barrier where no two events of a batch are simultaneous: no node is beyond it."""

MARKS = 64

FIRES = 4096
"""How many events may wait for their matches to be listed; and the fewest ids that `reserve`
looks ahead."""

BLOCK = 2048
"""How many rows a branch-free update searches at once for the relevant ones."""

PADDING = 8
"""Elements at the end of a buffer that hold nothing: copies write so many elements at a time."""

MAX_LEVELS = 32
"""The longest match of a query whose matches are listed in runs."""

# What `update` and `resume` return.
DONE = 0  # the batch (the enumeration) is finished
OUTPUT_FULL = 1  # take the matches out of the output buffers, call `resume`, then go on
STACK_FULL = 2  # the stack must grow, then `resume`
ARENA_FULL = 3  # the arena must grow, then go on with the same event
LISTS_FULL = 4  # the lists of the general engine must grow, then go on with the same event
CHOOSE = 5  # list the matches of the events that fired, set FIRED = 0, then go on
WINDOW_FULL = 6  # the scratch memory of a selection must grow, then choose on
KEYS_FULL = 7  # a table of keys must drop old keys or grow, then go on with the same event
TOO_MUCH_WORK = 8  # a listing with conditions has taken more steps than it may
LEAVES_FULL = 9  # the leaves need more room, then list on


class Memory(NamedTuple):
    """The arena and the working memory of a run, as the kernels take them.

    nodes: int64[size, 4], size a power of two. heads: int64[5, piles + 2], the newest cell of
    each pile and its SINCE, used by generated straight-line and branch-free updates. The last
    two piles are for branch-free updates: one that stays empty, and one that is never read. Rows 2
    to 4 are for simultaneous events: the cell and the SINCE before the instant whose barrier is in
    row 4 (`seen`); for piles that live for one instant, those of the next.
    relevant: int64[BLOCK + PADDING or more], the relevant rows of the block at hand, or of all the
    batch (`room_for_rows`). counters: int64[COUNTERS]. stack: int64[depth, 2] of (node, length of
    the path above it). path: int64[depth], the tags from the last event back. trail: int64[depth +
    PADDING], the same from its end back, so that a match is one stretch of it. fires: int64[FIRES,
    4], the events whose matches are not listed yet: (node, row, lowest id, floor value). marks:
    int64[MARKS, 2], a ring of (key, node): nodes with smaller ids were made at that key or
    before. leaves: int64[PADDING + room + PADDING], entries of the cells that begin matches;
    leaf_marks: int64[room, 3], their nodes, their SINCE, and the first leaf since their pile was
    emptied last, counted as LEAF_BASE counts; run_starts: int64[MAX_LEVELS]: all three for queries
    of fixed shape.
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
    piles: int, *, size: int = FIRES, first_node: int = 1, first_entry: int = 0
) -> Memory:
    """Fresh memory for a run; `first_node` and `first_entry` are for tests of very long runs."""
    counters = np.zeros(COUNTERS, np.int64)
    counters[NEXT_NODE] = counters[LOWEST] = counters[USABLE] = first_node
    counters[ENTRY] = first_entry
    counters[EARLIEST] = ALWAYS
    counters[LAST] = counters[INSTANT] = -2
    counters[KEPT_FROM] = -1
    counters[PASSED_NODE] = first_node
    heads = np.zeros((5, piles + 2), np.int64)
    heads[1:] = NEVER
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
        np.zeros((256, 3), np.int64),
        np.zeros(MAX_LEVELS, np.int64),
    )


def keeping_rows(memory: Memory, rows: int) -> Memory:
    """The same memory where `relevant` keeps the relevant rows of a batch, of which there are at
    most `rows`: one after another, that of the batch's first entry first."""
    memory.counters[KEPT_FROM] = memory.counters[ENTRY]
    if len(memory.relevant) < rows + PADDING:
        memory = memory._replace(relevant=np.empty(rows + PADDING, np.int64))
    return memory


@njit(nogil=True, cache=True)
def room_for_rows(memory, entry):  # type: ignore[no-untyped-def]
    """Where the relevant rows from this entry on are written: behind those of the batch that are
    kept, or over those of the last block, which stay in the processor's cache."""
    first = memory.counters[KEPT_FROM]
    return memory.relevant[entry - first if first >= 0 else np.int64(0) :]


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
    """The smallest id that can be live: below it, rows are reused, or of another partition."""
    return max(next_node - nodes.shape[0], lowest, np.int64(1))


@njit(nogil=True, cache=True)
def union(nodes, next_node, floor_value, first, first_since, second, second_since):  # type: ignore[no-untyped-def]
    """A node for the matches of two nodes, given with their SINCE; a dead node is left out.

    Returns (node, SINCE, next_node). The node with the later start goes left, so that a walk down
    the left sides meets no dead node.
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


# --- simultaneous events --------------------------------------------------------------------------
#
# The events of one instant read the piles as they were before it. No copy is made: the cells of the
# instant at hand have ids from the *barrier* on, and a pile's older cells are behind them. Where no
# two events are simultaneous, that is one comparison for each pile that is read.


@njit(nogil=True, cache=True)
def seen_of_key(nodes, head, barrier, next_node, lowest):  # type: ignore[no-untyped-def]
    """The newest cell of a pile below the barrier, and its SINCE; a dead one is (0, NEVER)."""
    mask = nodes.shape[0] - 1
    while head >= barrier:
        head = nodes[head & mask, NEXT]
    if head < lowest_id(nodes, next_node, lowest):
        return np.int64(0), np.int64(NEVER)
    return head, nodes[head & mask, SINCE]


@njit(nogil=True, cache=True)
def seen(memory, pile, head, barrier, next_node, lowest):  # type: ignore[no-untyped-def]
    """The same of a pile with a number, found once for each instant."""
    heads = memory.heads
    if heads[4, pile] != barrier:
        before, since = seen_of_key(memory.nodes, head, barrier, next_node, lowest)
        heads[2, pile], heads[3, pile], heads[4, pile] = before, since, barrier
    return heads[2, pile], heads[3, pile]


# --- for generated updates without branches -------------------------------------------------------
#
# Which symbol comes next is as good as random, so that a branch on it is mispredicted every other
# time, and a misprediction costs more than an update. Here every event takes the same steps. Steps
# that it must not take have no effect: a node that is not wanted is overwritten by the next one.
# LLVM turns a choice between two loaded values back into a branch; hence the bit masks.


@njit(nogil=True, cache=True)
def select_by_mask(mask, first, second):  # type: ignore[no-untyped-def]
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
def union_flat(nodes, next_node, floor_value, first, first_since, second, second_since):  # type: ignore[no-untyped-def]
    """`union` without a branch, in the arena as one row of numbers."""
    is_first = -np.int64(first_since >= second_since)
    left, right = select_by_mask(is_first, first, second), select_by_mask(is_first, second, first)
    latest, earlier = max(first_since, second_since), min(first_since, second_since)
    put_flat(nodes, next_node, MERGE, left, right, latest)
    both = np.int64(earlier >= floor_value)
    return select_by_mask(-both, next_node, left), latest, next_node + both


@njit(nogil=True, cache=True)
def seal(memory, next_node, count):  # type: ignore[no-untyped-def]
    """Make dead the `count` rows from `next_node` on: nodes written ahead that are not wanted."""
    nodes = memory.nodes
    for node in range(next_node, next_node + count):
        nodes[node & (nodes.shape[0] - 1), SINCE] = NEVER


@njit(nogil=True, cache=True)
def oldest_entry(memory, bits, floor_value):  # type: ignore[no-untyped-def]
    """The first entry that a live node refers to; the next entry if no node is live.

    A live cell was made later than the live cells below it, so the first live cell has the first
    entry. The SINCE of a sealed row (see `seal`) is before every `floor_value`.
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

    Rows below it can be written without a test: a dead node stays dead, because the window and
    `lowest` only move on. Looks `wanted` ids ahead, and at least FIRES. The matches of events that
    fired before must have been listed: their windows reach further back. An arena that is all but
    full counts as full: it would have to be asked again after every few events, which took twice
    the time.

    `latest` is not before the key of any event so far. A match begins before its nodes are made, so
    all nodes made until a key are dead as soon as the window has left that key behind. Keys are
    noted with the next id every now and then (marks). Where the last mark that the window has
    passed does not free enough rows, the nodes themselves are read.
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
    # Nodes below `lowest` are dead, whatever their SINCE.
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
    """The same walk with twice the room for the nodes that wait and for the path."""
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
