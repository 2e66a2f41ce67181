"""The node arena: all partial matches of a run as one shared graph in one ring of rows.

A node is a row of four int64 numbers:

======== ============================================================================
TAG      of a cell: `entry << kind_bits | kind` (which event, and how it is marked)
         of a merge of two nodes: −1
CHILD    of a cell: the node of the events before this one in the match (0: none)
         of a merge: the side whose latest start is the later one
NEXT     of a cell: another cell for the same place in the match (0: none)
         of a merge: the other side
SINCE    the latest start among all matches below; a start is the position of the first
         event in a window of events, and its time in a window of time
======== ============================================================================

Node ids only grow. A node lives in the row `id & mask`. A node is *live* while its SINCE is inside
the window, which means not below `floor_value`. No node is made before its SINCE, so each live node
was made inside the window. Ids below `next_node − size` are dead, because other nodes have taken
their rows. Two comparisons tell whether a node is live (`is_live`). Nothing is ever freed or
cleared. A new partition, or a match that consumes, only raises the lowest id that counts.

Positions and ids have 64 bits. Rows of 32-bit numbers, as in the prototypes, are half as wide. But
positions and ids would have to be moved back whenever they come near 2³¹, and without a window the
arena can hold positions of any age. On `A ; B ; C` the wide rows cost nothing that can be measured.
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.jit.kernels import njit

TAG, CHILD, NEXT, SINCE = 0, 1, 2, 3
MERGE = -1

NEVER = -(2**63)  # the SINCE of no node: before every window

ALWAYS = NEVER + 1  # the floor value without a window: every SINCE but NEVER is inside

# Scalars of a run: places in `Memory.counters`.
NEXT_NODE = 0  # the id of the next node
USABLE = 1  # ids below this are known to have free rows
LOWEST = 2  # smaller ids are dead: of another partition, or consumed
ROW = 3  # the next row of the batch
PART = 4  # the number of partitions begun in this batch
SHIFT = 5  # row in the batch minus position in the partition
ENTRY = 6  # the number of the next event whose symbol is not 0
EARLIEST = 7  # the floor value at the last event
FIRED = 8  # the number of events whose matches are to be listed
LISTED = 9  # the number of these whose listing has begun
STACK_SIZE = 10  # the stack of the interrupted walk; 0: no walk was interrupted
MATCHES_LEFT = 11  # how many more matches the interrupted walk may list
MARKED = 12  # the number of marks set so far (see `reserve`)
PASSED = 13  # the number of marks that the window has left behind
PASSED_NODE = 14  # the node of the last of these: smaller ids are dead
DEFERS = 15  # 1: the update lists nothing, the caller chooses among the matches (status CHOOSE)
READ = 16  # the number of rows of the batch whose letter and context are known
EPOCH = 17  # how often all contexts have started again
LAST = 18  # the row of the last event that mattered to a straight-line update
WORK = 19  # steps of a checked listing since the present event, or since its last match
LEAF_NODE = 20  # the newest cell among the leaves (see `runs`)
LEAF_BASE = 21  # the number of leaves that have been dropped
LEAF_FIRST = 22  # the first leaf in the window of the event whose matches are listed
LEAF_COUNT = 23  # the number of leaves that are kept, also those before LEAF_FIRST
RUN_LEFT = 24  # the number of matches of a run that did not fit into the buffers
RUN_FROM = 25  # the leaf where that run goes on, counted from the first leaf of all
BARRIER = 26  # the first node of the present instant, where simultaneous events have no order
INSTANT = 27  # the number of the present instant in the batch
KEPT_FROM = 28  # the entry of the batch's first event if `relevant` keeps all rows, else −1
COUNTERS = 29

NO_BARRIER = 2**62
"""The barrier of a batch without simultaneous events: no node is beyond it."""

MARKS = 64

FIRES = 4096
"""The number of events that can wait for their listing; `reserve` looks ahead at least this far."""

BLOCK = 2048  # rows that a branch-free update searches at once for relevant ones

PADDING = 8  # unused elements at the end of a buffer: copies write this many elements at a time

MAX_LEVELS = 32  # events: the longest match of a query whose matches are listed in runs

# What `update` and `resume` return.
DONE = 0  # the batch, or the listing, is finished
OUTPUT_FULL = 1  # empty the output buffers, call `resume`, then go on
STACK_FULL = 2  # enlarge the stack, then call `resume`
ARENA_FULL = 3  # enlarge the arena, then go on with the same event
LISTS_FULL = 4  # enlarge the union lists, then go on with the same event
CHOOSE = 5  # list the matches of the events that fired, set FIRED = 0, then go on
WINDOW_FULL = 6  # enlarge the scratch memory of a selection, then choose on
KEYS_FULL = 7  # drop old keys of a table or enlarge it, then go on with the same event
TOO_MUCH_WORK = 8  # a listing with conditions has exceeded its number of steps
LEAVES_FULL = 9  # make room for more leaves, then list on
STATES_UNKNOWN = 10  # find where the active states go, then go on with the same event
PRODUCT_FULL = 11  # enlarge the memory of a graph with conditions, then write it anew


class Memory(NamedTuple):
    """The arena and the working memory of a run, as kernels take them."""

    nodes: np.ndarray  # int64[size, 4]; size is a power of two
    heads: np.ndarray
    """int64[5, piles + 2], for generated updates. Rows 0 and 1: the newest cell of each pile and
    its SINCE. Rows 2 to 4, for simultaneous events: cell and SINCE before the instant whose barrier
    is in row 4 (`seen`); for piles that live for one instant, those of the next instant.
    Branch-free updates use the last two piles: one is always empty, the other is never read."""
    relevant: np.ndarray
    """int64[BLOCK + PADDING or more], the relevant rows of the present block, or of the whole batch
    (`room_for_rows`)."""
    counters: np.ndarray  # int64[COUNTERS]
    stack: np.ndarray  # int64[depth, 2], a node and the length of the path above it
    path: np.ndarray  # int64[depth], the tags of a path, from the last event back
    fires: np.ndarray
    """int64[FIRES, 4], the events whose matches are not listed yet: (node, row, lowest id, floor
    value)."""
    marks: np.ndarray  # int64[MARKS, 2], a ring of (key, node): smaller ids were made by that key
    trail: np.ndarray
    """int64[depth + PADDING], as `path`, filled from the end of the array back. So the events of a
    match stand in stream order, without a gap."""
    leaves: np.ndarray
    """int64[PADDING + room + PADDING], the entries of the cells that begin matches."""
    leaf_marks: np.ndarray
    """int64[room, 3], for each leaf its node, its SINCE, and the first leaf since its pile was
    emptied last (counted as LEAF_BASE counts). Leaves are for queries of fixed shape."""
    run_starts: np.ndarray  # int64[MAX_LEVELS], for queries of fixed shape


_FIRST_NODES = [NEXT_NODE, LOWEST, USABLE, PASSED_NODE]

_COUNTERS = np.zeros(COUNTERS, np.int64)
_COUNTERS[_FIRST_NODES] = 1
_COUNTERS[EARLIEST] = ALWAYS
_COUNTERS[[LAST, INSTANT]] = -2
_COUNTERS[KEPT_FROM] = -1


def new_memory(
    piles: int, *, size: int = FIRES, first_node: int = 1, first_entry: int = 0
) -> Memory:
    """Fresh memory for a run. Tests of very long runs set `first_node` and `first_entry`."""
    counters = _COUNTERS.copy()
    if first_node != 1:
        counters[_FIRST_NODES] = first_node
    counters[ENTRY] = first_entry
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
        np.empty((FIRES, 4), np.int64),
        np.zeros((MARKS, 2), np.int64),
        np.zeros(64 + PADDING, np.int64),
        np.zeros(256 + 2 * PADDING, np.int64),
        np.zeros((256, 3), np.int64),
        np.zeros(MAX_LEVELS, np.int64),
    )


def start_again(memory: Memory) -> None:
    """Forget all that a run has written, as if the memory were new."""
    memory.counters[:] = _COUNTERS
    memory.heads[0] = 0
    memory.heads[1:] = NEVER
    memory.nodes[:, SINCE] = NEVER


def keeping_rows(memory: Memory, rows: int) -> Memory:
    """The same memory, where `relevant` has room for all relevant rows of a batch (at most `rows`).

    They stand one after another, the row of the batch's first entry first.
    """
    memory.counters[KEPT_FROM] = memory.counters[ENTRY]
    if len(memory.relevant) < rows + PADDING:
        memory = memory._replace(relevant=np.empty(rows + PADDING, np.int64))
    return memory


@njit(nogil=True, cache=True)
def room_for_rows(memory, entry):  # type: ignore[no-untyped-def]
    """Where the relevant rows from this entry on are written.

    If the rows of the batch are kept, that is behind them. Else the rows of the last block are
    overwritten, which stay in the processor's cache.
    """
    first = memory.counters[KEPT_FROM]
    return memory.relevant[entry - first if first >= 0 else np.int64(0) :]


@njit(nogil=True, cache=True)
def put(nodes, node, tag, child, following, since):  # type: ignore[no-untyped-def]
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
    """The lowest id that can be live. Smaller ids: reused rows, or another partition."""
    return max(next_node - nodes.shape[0], lowest, np.int64(1))


@njit(nogil=True, cache=True)
def union(nodes, next_node, floor_value, first, first_since, second, second_since):  # type: ignore[no-untyped-def]
    """A node for the matches of two nodes, given with their SINCE; a dead node is left out.

    Returns (node, SINCE, next_node). The node with the later start becomes the left side. So a walk
    down left sides meets no dead node.
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
# The events of one instant read the piles as they were before the instant. No copy is made. The
# cells of the instant have ids from the *barrier* on, and the older cells of a pile are behind
# them. Where no two events are simultaneous, this costs one comparison for each pile that is read.


@njit(nogil=True, cache=True)
def seen_of_key(nodes, head, barrier, next_node, lowest):  # type: ignore[no-untyped-def]
    """(newest cell of a pile below the barrier, its SINCE); (0, NEVER) if that cell is dead."""
    mask = nodes.shape[0] - 1
    while head >= barrier:
        head = nodes[head & mask, NEXT]
    if head < lowest_id(nodes, next_node, lowest):
        return np.int64(0), np.int64(NEVER)
    return head, nodes[head & mask, SINCE]


@njit(nogil=True, cache=True)
def seen(memory, pile, head, barrier, next_node, lowest):  # type: ignore[no-untyped-def]
    """As `seen_of_key`, for a pile with a number. It is searched once for each instant."""
    heads = memory.heads
    if heads[4, pile] != barrier:
        before, since = seen_of_key(memory.nodes, head, barrier, next_node, lowest)
        heads[2, pile], heads[3, pile], heads[4, pile] = before, since, barrier
    return heads[2, pile], heads[3, pile]


# --- for generated updates without branches -------------------------------------------------------
#
# The next symbol is as good as random. So the processor guesses a branch on it wrongly every other
# time, and a wrong guess costs more than the update. Here every event takes the same steps. A step
# that an event must not take has no effect: the next node overwrites a node that is not wanted.
# LLVM turns a choice between two loaded values back into a branch. Bit masks prevent that.


@njit(nogil=True, cache=True)
def select_by_mask(mask, first, second):  # type: ignore[no-untyped-def]
    """`first` where the mask is −1, `second` where it is 0; without a branch."""
    return (first & mask) | (second & ~mask)


@njit(nogil=True, cache=True)
def put_flat(nodes, node, tag, child, following, since):  # type: ignore[no-untyped-def]
    """`put` for the flat arena (`nodes.ravel()`), which saves multiplications."""
    place = (np.uint64(node) << np.uint64(2)) & np.uint64(nodes.shape[0] - 1)
    nodes[place] = tag
    nodes[place + np.uint64(1)] = child
    nodes[place + np.uint64(2)] = following
    nodes[place + np.uint64(3)] = since


@njit(nogil=True, cache=True)
def union_flat(nodes, next_node, floor_value, first, first_since, second, second_since):  # type: ignore[no-untyped-def]
    is_first = -np.int64(first_since >= second_since)
    left, right = select_by_mask(is_first, first, second), select_by_mask(is_first, second, first)
    latest, earlier = max(first_since, second_since), min(first_since, second_since)
    put_flat(nodes, next_node, MERGE, left, right, latest)
    both = np.int64(earlier >= floor_value)
    return select_by_mask(-both, next_node, left), latest, next_node + both


@njit(nogil=True, cache=True)
def seal(memory, next_node, count):  # type: ignore[no-untyped-def]
    """Mark the `count` rows from `next_node` on as dead. They were written ahead, but not
    wanted."""
    nodes = memory.nodes
    for node in range(next_node, next_node + count):
        nodes[node & (nodes.shape[0] - 1), SINCE] = NEVER


@njit(nogil=True, cache=True)
def oldest_entry(memory, bits, floor_value):  # type: ignore[no-untyped-def]
    """The first entry that a live node refers to; the next entry if no node is live.

    A live cell was made later than the live cells below it. So the first live cell has the first
    entry. The SINCE of a sealed row (see `seal`) is below every `floor_value`.
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
    """The first id from `next_node` on whose row may still hold a live node.

    Rows of smaller ids can be written without a test. A dead node stays dead, because the window
    and `lowest` only move forward. The search looks `wanted` ids ahead, and at least FIRES. The
    matches of events that fired before must be listed already, because their windows reach further
    back. An arena that is nearly full counts as full. Otherwise this would be called again after
    every few events, which took twice the time.

    `latest` is not below the key of any event so far. No node is made before its match begins. So
    all nodes that were made by a certain key are dead as soon as the window has passed that key.
    From time to time the key and the next id are noted as a *mark*. If the last mark that the
    window has passed does not free enough rows, the nodes themselves are read.
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
    # Nodes below `lowest` are dead, whatever their SINCE is.
    node = min(last, max(next_node, lowest + size, counters[PASSED_NODE] + size))
    if node >= next_node + wanted and node >= min(last, next_node + FIRES // 8):
        return node
    while node < last and nodes[node & mask, SINCE] < floor_value:
        node += 1
    return node if node - next_node >= min(FIRES, size // 16) else next_node


def grown(memory: Memory) -> Memory:
    old = memory.nodes
    size = len(old)
    nodes = np.full((2 * size, 4), MERGE, np.int64)
    next_node = int(memory.counters[NEXT_NODE])
    ids = np.arange(next_node - size, next_node, dtype=np.int64)
    nodes[:, SINCE] = NEVER
    nodes[ids & (2 * size - 1)] = old[ids & (size - 1)]
    # The free half: no node uses the rows of ids from next_node on.
    memory.counters[USABLE] = next_node + min(size, FIRES)
    return memory._replace(nodes=nodes)


def with_deeper_stack(memory: Memory) -> Memory:
    """The same walk with twice the room on the stack and for the path."""
    return memory._replace(
        stack=np.concatenate([memory.stack, np.zeros_like(memory.stack)]),
        path=np.concatenate([memory.path, np.zeros_like(memory.path)]),
        trail=np.concatenate([np.zeros_like(memory.path), memory.trail]),
    )


def with_more_leaves(memory: Memory) -> Memory:
    more = np.zeros_like(memory.leaf_marks)
    return memory._replace(
        leaves=np.concatenate([memory.leaves, more[:, 0]]),
        leaf_marks=np.concatenate([memory.leaf_marks, more]),
    )
