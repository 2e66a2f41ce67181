"""Cells that an event takes out of a pile, for FIRST with conditions between events.

A pile is a list of cells in the order of their starts. An event takes the cells for which its
conditions hold, and the others stay. Both lists keep the order. No cell is copied: a cell that is
taken belongs to the event from then on, and nobody else reads the pile.
"""

from celc_runtime.engine.arena.nodes import NEVER, NEXT, SINCE, TAG, is_live, lowest_id
from celc_runtime.jit.kernels import njit


def _taken_from(nodes, next_node, lowest, earliest, holds, past, here, first, kind_bits, head):  # type: ignore[no-untyped-def]
    """The newest cell that an event takes from a pile, its SINCE, and both of what stays.

    `holds(past, here, earlier)` decides about a cell by the entries of both events in the
    remembered columns `past`, which begin with the entry `first`. Cells that have left the window
    are in neither list.
    """
    mask, floor = nodes.shape[0] - 1, lowest_id(nodes, next_node, lowest)
    taken = kept = last_taken = last_kept = 0
    since_taken = since_kept = NEVER
    while is_live(nodes, head, floor, earliest):
        row = nodes[head & mask]
        following = row[NEXT]
        if holds(past, here, (row[TAG] >> kind_bits) - first):
            if taken == 0:
                taken, since_taken = head, row[SINCE]
            else:
                nodes[last_taken & mask, NEXT] = head
            last_taken = head
        else:
            if kept == 0:
                kept, since_kept = head, row[SINCE]
            else:
                nodes[last_kept & mask, NEXT] = head
            last_kept = head
        row[NEXT] = 0
        head = following
    return taken, since_taken, kept, since_kept


# A function among its arguments has no type of its own in machine code. So it is a part of the
# update that calls it, and Python runs it by itself wherever Python runs the update.
taken_from = njit(_taken_from, _taken_from, nogil=True, inline="always")
