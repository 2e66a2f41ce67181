"""The matches that end at an event and satisfy conditions, as a graph, without a list of them.

A condition between events cuts paths of the arena, so not every path below an event is a match. But
most conditions need only a few numbers about the events after a node: the event that is compared
with earlier ones, the most demanding value so far, a count. So the matches below a node depend on
the node and these numbers alone. A node of the graph stands for both. It is the *product* of the
arena and the conditions: there is a way from an event to one before it only if the conditions admit
the two, and every way through the graph is a match again.

Each pair of a node and numbers is visited once. So an event costs as many steps as there are pairs,
not as many as there are matches, whose number can double with each event: with PREV that is a step
for each two neighbours. A search with conditions remembers in the same way what failed
(`failures`).

The product is the collapsed format of SASE++ (the SASE paper on expensive queries, section 5.1),
with conditions decided while it is built.

Rejected: to mark edges of the arena. An edge there is shared by matches for which a condition is
TRUE and others for which it is not. To build the product as events are read: most of its nodes are
never below an event that ends matches.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import (
    CHILD,
    DONE,
    FIRED,
    LISTED,
    MERGE,
    NEXT,
    NEXT_NODE,
    OUTPUT_FULL,
    PRODUCT_FULL,
    SINCE,
    STACK_FULL,
    TAG,
    TOO_MUCH_WORK,
    lowest_id,
)
from celc_runtime.engine.graph.match_graph import END, GRAPHS, NODES
from celc_runtime.engine.walk.failures import is_full, slot_of
from celc_runtime.engine.walk.search import CONSUMED, NUMBER
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import Checked

# Places in a frame: a node, the length of the path above it, what comes next, whether its event is
# admitted and begins matches, the node of the graph below it.
_NODE, _DEPTH, _NEXT, _TRUTH, _BELOW = 0, 1, 2, 3, 4
FRAME = 5

_STEPS_OF_A_PAIR = 8
"""What a pair counts as, of the most steps at one event: it takes room, which a step does not."""

_ENTER, _BELOW_IS_KNOWN, _BESIDE_IS_KNOWN = 0, 1, 2
_REFUSED, _ADMITTED, _BEGINS = 0, 1, 2


class Product(NamedTuple):
    """The memory of the walk through pairs of a node and numbers."""

    frames: np.ndarray  # int64[room, FRAME], the nodes from the root down
    pairs: np.ndarray  # int64[slots, keys + 2], a hash table as of `failures`
    places: np.ndarray  # int64[slots], the node of the graph that a pair became, −1: none


def new_product(keys: int) -> Product:
    """Memory where `keys` numbers decide, with a node, about the matches below."""
    return Product(
        np.zeros((256, FRAME), np.int64),
        np.zeros((1024, keys + 2), np.int64),
        np.zeros(1024, np.int64),
    )


def larger(product: Product) -> Product:
    """Twice the room. What is noted there is dropped."""
    slots, width = product.pairs.shape
    return Product(
        np.zeros((2 * len(product.frames), FRAME), np.int64),
        np.zeros((2 * slots, width), np.int64),
        np.zeros(2 * slots, np.int64),
    )


# Long: one walk through the pairs, which Numba compiles as one loop.
@cache
def product_kernel(checks: Checked) -> Callable[..., int]:
    """The kernel (memory, graphs, kinds, fire, given, product) that writes the graph of an event.

    It returns where the graph ends in `graphs.nodes`, or a negative status: −OUTPUT_FULL,
    −STACK_FULL (the path), −PRODUCT_FULL or −TOO_MUCH_WORK. The mark of a node is
    twice its kind, plus one if a match begins with it. The graph is written anew after that.
    """
    admits, completes = checks.steps or checks.admits, checks.ends or checks.completes

    # Long: see above.
    def write(memory, graphs, kinds, fire, given, product):  # type: ignore[no-untyped-def]
        nodes, path, used = memory.nodes, memory.path, graphs.used
        mask, bits = nodes.shape[0] - 1, kinds.bits[0]
        kind_mask = (np.int64(1) << bits) - 1
        lowest, floor_value = lowest_id(nodes, memory.counters[NEXT_NODE], fire[2]), fire[3]
        past, first, search = given.past, given.first, given.search
        state, numbers = search.state, search.numbers
        frames, pairs, places = product.frames, product.pairs, product.places
        numbers[NUMBER] += 1
        number, consumed = numbers[NUMBER], numbers[CONSUMED]
        used[END] = used[NODES]
        frames[0, _NODE], frames[0, _DEPTH], frames[0, _NEXT] = fire[0], 0, _ENTER
        size, work, known, found = 1, 0, 0, np.int64(-1)
        while size > 0:
            frame = frames[size - 1]
            node, depth = frame[_NODE], frame[_DEPTH]
            at = node & mask
            tag = nodes[at, TAG]
            if frame[_NEXT] == _ENTER:
                if depth > 0:
                    # No two paths lead to a node of the last event, and nothing is above it.
                    slot = slot_of(pairs, number, node, state, depth - 1)
                    if pairs[slot, 0] == number:
                        found = places[slot]
                        size -= 1
                        continue
                work += _STEPS_OF_A_PAIR
                if work > given.most_work:
                    return np.int64(-TOO_MUCH_WORK)
                if depth >= path.shape[0] - 1:
                    return np.int64(-STACK_FULL)
                if size + 1 >= frames.shape[0] or is_full(pairs, known + size):
                    return np.int64(-PRODUCT_FULL)
                frame[_NEXT], frame[_TRUTH] = _BELOW_IS_KNOWN, _ADMITTED
                child, below = nodes[at, CHILD], depth
                if tag != MERGE:
                    below = depth + 1
                    path[depth] = tag
                    if (tag >> bits) <= consumed or not admits(past, first, path, depth, state):
                        frame[_TRUTH] = _REFUSED
                    elif kinds.starts[tag & kind_mask] and completes(
                        past, first, path, depth, state
                    ):
                        frame[_TRUTH] = _BEGINS
                found = np.int64(-1)
                if (
                    frame[_TRUTH] != _REFUSED
                    and child >= lowest
                    and nodes[child & mask, SINCE] >= floor_value
                ):
                    frames[size, _NODE], frames[size, _DEPTH] = child, below
                    frames[size, _NEXT] = _ENTER
                    size += 1
            elif frame[_NEXT] == _BELOW_IS_KNOWN:
                frame[_BELOW], frame[_NEXT] = found, _BESIDE_IS_KNOWN
                following, found = nodes[at, NEXT], np.int64(-1)
                if following >= lowest and nodes[following & mask, SINCE] >= floor_value:
                    frames[size, _NODE], frames[size, _DEPTH] = following, depth
                    frames[size, _NEXT] = _ENTER
                    size += 1
            else:
                below = frame[_BELOW]
                if tag == MERGE:
                    is_needed = below >= 0 and found >= 0
                else:
                    is_needed = below >= 0 or frame[_TRUTH] == _BEGINS
                if not is_needed:
                    found = max(below, found)
                else:
                    end = used[END]
                    if end == graphs.nodes.shape[0]:
                        return np.int64(-OUTPUT_FULL)
                    entry, mark = np.int64(-1), np.int64(-1)
                    if tag != MERGE:
                        entry = tag >> bits
                        mark = 2 * (tag & kind_mask) + (frame[_TRUTH] == _BEGINS)
                    graphs.nodes[end, 0], graphs.nodes[end, 1] = entry, mark
                    graphs.nodes[end, 2], graphs.nodes[end, 3] = below, found
                    found = end - used[NODES]
                    used[END] = end + 1
                if depth > 0:
                    slot = slot_of(pairs, number, node, state, depth - 1)
                    pairs[slot, 0], pairs[slot, 1] = number, node
                    for row in range(pairs.shape[1] - 2):
                        pairs[slot, row + 2] = state[row, depth - 1]
                    places[slot] = found
                    known += 1
                size -= 1
        return used[END]

    return kernel_with(checks, write, _nrt=False)


@cache
def products_of_fired(checks: Checked) -> Callable[..., int]:
    """A kernel (memory, graphs, kinds, given, product) as `graphs_of_fired`, with conditions.

    It returns DONE or what it needs.
    """
    write = product_kernel(checks)

    def products(memory, graphs, kinds, given, product):  # type: ignore[no-untyped-def]
        counters, used = memory.counters, graphs.used
        while counters[LISTED] < counters[FIRED]:
            if used[GRAPHS] == graphs.rows.shape[0]:
                return OUTPUT_FULL
            fire = memory.fires[counters[LISTED]]
            end = write(memory, graphs, kinds, fire, given, product)
            if end < 0:
                return -end
            if end > used[NODES]:
                note_consumed(graphs, given)
                graphs.rows[used[GRAPHS]], graphs.ends[used[GRAPHS]] = fire[1], end
                used[GRAPHS] += 1
                used[NODES] = end
            counters[LISTED] += 1
        counters[LISTED] = counters[FIRED] = 0
        return DONE

    return kernel_with(checks, products)


def kernel_with(checks: Checked, kernel: Callable[..., int], **options: Any) -> Callable[..., int]:
    """A kernel that calls the functions of `checks`, compiled if these are."""
    if not checks.compiles:
        return kernel  # for debugging: compiled code cannot call interpreted conditions
    if options:
        options["error_model"] = "numpy"
    compiled: Callable[..., int] = njit(nogil=True, **options)(kernel)
    return compiled


@njit(nogil=True, cache=True)
def note_consumed(graphs, given):  # type: ignore[no-untyped-def]
    """With CONSUME BY no later match has an event up to the end of the graph written last."""
    if not given.consumes:
        return
    first = graphs.used[NODES]
    node = graphs.used[END] - 1 - first
    while graphs.nodes[first + node, 0] < 0:
        node = graphs.nodes[first + node, 2]
    given.search.numbers[CONSUMED] = graphs.nodes[first + node, 0]
