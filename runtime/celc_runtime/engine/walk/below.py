"""The nodes below an event that fired, each after the nodes that it refers to.

A node of the arena is shared by many paths, whose number can double with every event. What is asked
of all matches below a node (which of its nodes lead to a match, the largest sum, the values that
they have) follows from what is known of the two nodes that it refers to. So each node is visited
once, and the cost is linear in the nodes.

Rejected: a pass over all node ids of the window from the oldest on. It needs no stack, but it costs
the window at each event, also where few events take part in its matches.
"""

from __future__ import annotations

from collections.abc import Callable

from celc_runtime.engine.arena.nodes import CHILD, NEXT, SINCE, TAG
from celc_runtime.jit.kernels import njit


def visits_below(visit: Callable[..., bool], *, compiles: bool = True) -> Callable[..., bool]:
    """A kernel that visits a node and all live nodes below it that are not known; False where a
    visit asked it to end.

    visit: (node, row, tag, below, beside, given) → whether to go on. below, beside: the rows of the
    nodes that it refers to, which have been visited; −1: it refers to no live one. The kernel takes
    (nodes, root, lowest, floor_value, known, number, waiting, given). known: int64[rows], the
    number of the walk that visited a row last; where `number` is 0, the node that was visited
    there, which then stays known. waiting: int64[rows].
    """

    def walk(nodes, root, lowest, floor_value, known, number, waiting, given):  # type: ignore[no-untyped-def]
        mask = nodes.shape[0] - 1
        waiting[0] = root
        size = 1
        while size > 0:
            node = waiting[size - 1]
            row = node & mask
            if known[row] == (number or node):
                size -= 1
                continue
            child, following = nodes[row, CHILD], nodes[row, NEXT]
            below, beside = child & mask, following & mask
            if child < lowest or nodes[below, SINCE] < floor_value:
                below = -1
            elif known[below] != (number or child):
                waiting[size] = child
                size += 1
                continue
            if following < lowest or nodes[beside, SINCE] < floor_value:
                beside = -1
            elif known[beside] != (number or following):
                waiting[size] = following
                size += 1
                continue
            size -= 1
            known[row] = number or node
            if not visit(node, row, nodes[row, TAG], below, beside, given):
                return False
        return True

    if not compiles:
        return walk
    # To count references to what a visit reads took longer than all else.
    kernel: Callable[..., bool] = njit(nogil=True, error_model="numpy", _nrt=False)(walk)
    return kernel
