"""The nodes below an event that fired, each after the nodes that it refers to.

Many paths share a node of the arena. Their number can double with every event. Some questions are
about all matches below a node: which nodes lead to a match, the largest sum, the values that they
have. The answer for a node follows from the answers for the two nodes that it refers to. So each
node is visited once, and the cost is linear in the nodes.

Rejected: a pass over all node ids of the window from the oldest on. It needs no stack, but each
event then costs the whole window, even if few events take part in its matches.
"""

from collections.abc import Callable

from celc_runtime.engine.arena.nodes import CHILD, NEXT, SINCE, TAG
from celc_runtime.jit.kernels import njit


def visits_below(visit: Callable[..., bool], *, compiles: bool = True) -> Callable[..., bool]:
    """A kernel that visits a node and all live nodes below it that are not visited yet.

    It returns False if a visit asked it to stop.

    visit: (node, row, tag, below, beside, given) → whether to go on. below, beside: the rows of the
    nodes that it refers to, which were visited before; −1: no live node. The kernel takes (nodes,
    root, lowest, floor_value, known, number, waiting, given). known: int64[rows], the number of the
    walk that visited the row last. If `number` is 0, it holds the node that was visited there,
    which then stays known. waiting: int64[rows].
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
    # Counting references to what a visit reads took longer than everything else.
    kernel: Callable[..., bool] = njit(nogil=True, error_model="numpy", _nrt=False)(walk)
    return kernel
