"""Bounds for COUNT(DISTINCT …): a node is entered only if a match below can have enough values.

`COUNT(DISTINCT x.a) >= 3` asks for events of x with three values. For each node it is known which
values the matches below or beside it bring, and with each value the latest start of such a match.
So a window, or a match that consumes, never makes this knowledge wrong. It is computed once for
each node, not once for each last event. No more values are kept than the condition asks for: those
with the latest starts. The values of the path and of the node together are the most that a match
can have. The bound is exact if one match can contain all events that bring them, as under a `+`.
Then each node that is entered leads to a match.

The number of values on the path is kept with each event. So a match that has enough of them is
known at once, and a match that has too many is given up.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from celc_runtime.engine.arena.nodes import CHILD, MERGE, NEXT, SINCE, TAG
from celc_runtime.engine.walk.below import visits_below
from celc_runtime.engine.walk.search import ASKED, CONSUMED, COUNT, MOST_KEPT, NEWEST
from celc_runtime.engine.walk.sum_bounds import reaching
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import Checked


def bounds_of(
    checks: Checked,
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Three kernels. `add` notes sums and values of a path up to its newest event, and says whether
    there are not too many. `may_reach` says whether some match below or beside a node can have
    enough. `has_enough` says whether the path has enough.
    """
    add_sums, may_reach_sums = reaching(checks.weigh, checks.limits, compiles=checks.compiles)
    if not checks.varieties:
        kernels = _for_sums_alone(add_sums, may_reach_sums)
    else:
        kernels = (
            _add_of(checks, add_sums),
            _may_reach_of(checks, may_reach_sums),
            _has_enough_of(checks),
        )
    if not checks.compiles:
        return kernels
    add, may_reach, has_enough = kernels
    compiled = njit(nogil=True, error_model="numpy", inline="always")
    return compiled(add), compiled(may_reach), compiled(has_enough)


def _for_sums_alone(
    add_sums: Callable[..., Any], may_reach_sums: Callable[..., Any]
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    def add(past, first, path, depth, bits, search):  # type: ignore[no-untyped-def]
        add_sums(past, first, path[depth], depth, search.sums)
        return True

    def may_reach(  # type: ignore[no-untyped-def]
        nodes, node, path, depth, lowest, floor_value, past, first, kinds, search, number
    ):
        return may_reach_sums(
            nodes, node, depth, lowest, floor_value, past, first, kinds, search, number
        )

    def has_enough(depth, search):  # type: ignore[no-untyped-def]
        return True

    return add, may_reach, has_enough


def _add_of(checks: Checked, add_sums: Callable[..., Any]) -> Callable[..., Any]:
    holds, same, bounds = checks.holds, checks.same, len(checks.varieties)
    assert holds is not None
    assert same is not None
    mosts = tuple(most for _, most, _ in checks.varieties)
    # It is enough to tell this many values apart.
    enough = tuple(
        max(least, most + 1 if most < 2**31 else 0) for least, most, _ in checks.varieties
    )
    always = tuple(int(asks) for _, _, asks in checks.varieties)

    def add(past, first, path, depth, bits, search):  # type: ignore[no-untyped-def]
        add_sums(past, first, path[depth], depth, search.sums)
        varied = search.varied
        fits = True
        for which in range(bounds):
            here = holds(past, first, path[depth], which)
            count, newest, asked = np.int64(0), np.int64(-1), np.int64(always[which])
            if depth > 0:
                count = varied[which, COUNT, depth - 1]
                newest = varied[which, NEWEST, depth - 1]
                asked = varied[which, ASKED, depth - 1]
            if here > -2:
                asked = np.int64(1)
            if here >= 0 and count < enough[which]:
                place = newest
                while place >= 0 and not same(past, here, (path[place] >> bits) - first, which):
                    place = varied[which, NEWEST, place - 1] if place > 0 else np.int64(-1)
                if place < 0:
                    count += 1
                    newest = np.int64(depth)
            varied[which, COUNT, depth] = count
            varied[which, NEWEST, depth] = newest
            varied[which, ASKED, depth] = asked
            if asked and count > mosts[which]:
                fits = False
        return fits

    return add


def _has_enough_of(checks: Checked) -> Callable[..., Any]:
    bounds = len(checks.varieties)
    leasts = tuple(least for least, _, _ in checks.varieties)

    def has_enough(depth, search):  # type: ignore[no-untyped-def]
        found = True
        for which in range(bounds):
            if search.varied[which, ASKED, depth]:
                found &= search.varied[which, COUNT, depth] >= leasts[which]
        return found

    return has_enough


def _may_reach_of(checks: Checked, may_reach_sums: Callable[..., Any]) -> Callable[..., Any]:
    same, bounds = checks.same, len(checks.varieties)
    assert same is not None
    leasts = tuple(least for least, _, _ in checks.varieties)
    kept = tuple(min(least, MOST_KEPT) for least in leasts)
    always = tuple(int(asks) for _, _, asks in checks.varieties)
    fill = _fill_of(checks)

    def may_reach(  # type: ignore[no-untyped-def]
        nodes, node, path, depth, lowest, floor_value, past, first, kinds, search, number
    ):
        mask, bits = nodes.shape[0] - 1, kinds.bits[0]
        at = node & mask
        varied, consumed = search.varied, search.numbers[CONSUMED]
        found = True
        for which in range(bounds):
            have, newest, asked = np.int64(0), np.int64(-1), np.int64(always[which])
            if depth > 0:
                have = varied[which, COUNT, depth - 1]
                newest = varied[which, NEWEST, depth - 1]
                asked = varied[which, ASKED, depth - 1]
            if not found or not asked or have >= leasts[which]:
                continue
            if search.held[at] != node:
                given = nodes, lowest, floor_value, past, first, kinds, search
                # 0: what is known of a node stays known.
                fill(nodes, node, lowest, floor_value, search.held, 0, search.waiting, given)
            values, starts = search.values[which, at], search.starts[which, at]
            below = search.sizes[which, at]
            while below > 0:
                start = starts[below - 1]
                if (
                    start >= lowest
                    and nodes[start & mask, SINCE] >= floor_value
                    and nodes[start & mask, TAG] >> bits > consumed
                ):
                    break  # the values before have later starts
                below -= 1
            missing = leasts[which] - have
            if below == kept[which]:
                continue
            if below < missing:
                found = False
                continue
            for one in range(below):
                place = newest
                while place >= 0 and not same(
                    past, values[one] - first, (path[place] >> bits) - first, which
                ):
                    place = varied[which, NEWEST, place - 1] if place > 0 else np.int64(-1)
                if place < 0:
                    missing -= 1
            if missing > 0:
                found = False
        return found and may_reach_sums(
            nodes, node, depth, lowest, floor_value, past, first, kinds, search, number
        )

    return may_reach


def _merge_of(checks: Checked) -> Callable[..., None]:
    """The kernel that merges the values of two nodes, each value with its latest start."""
    same, kept = checks.same, tuple(min(least, MOST_KEPT) for least, _, _ in checks.varieties)
    assert same is not None

    def put_behind(past, first, value, start, size, values, starts, which):  # type: ignore[no-untyped-def]
        """Insert a value after those with later starts, unless it is there; returns the new
        number."""
        if size == kept[which]:
            return size
        for place in range(size):
            if same(past, value - first, values[place] - first, which):
                return size
        values[size], starts[size] = value, start
        return size + 1

    insert: Callable[..., Any] = put_behind
    if checks.compiles:
        insert = njit(nogil=True, error_model="numpy")(put_behind)

    def merge(  # type: ignore[no-untyped-def]
        nodes, own, own_start, one, other, lowest, floor_value, past, first, search, which
    ):
        """Write the values of two nodes (rows; −1: none) and one more (start 0: none) to the last
        row."""
        mask = nodes.shape[0] - 1
        into, size = nodes.shape[0], np.int64(0)
        values, starts, sizes = search.values[which], search.starts[which], search.sizes[which]
        left, right = 0, 0
        lefts = sizes[one] if one >= 0 else 0
        rights = sizes[other] if other >= 0 else 0
        while left < lefts or right < rights:
            if right == rights or (left < lefts and starts[one, left] >= starts[other, right]):
                row, place = one, left
                left += 1
            else:
                row, place = other, right
                right += 1
            start = starts[row, place]
            if own_start >= start and own_start > 0:
                size = insert(past, first, own, own_start, size, values[into], starts[into], which)
                own_start = np.int64(0)
            if start < lowest or nodes[start & mask, SINCE] < floor_value:
                continue  # it is dead, and its event may be dropped already
            size = insert(
                past, first, values[row, place], start, size, values[into], starts[into], which
            )
        if own_start > 0:
            size = insert(past, first, own, own_start, size, values[into], starts[into], which)
        sizes[into] = size

    if not checks.compiles:
        return merge
    compiled: Callable[..., None] = njit(nogil=True, error_model="numpy")(merge)
    return compiled


@njit(nogil=True, cache=True)
def _covers(nodes, node, lowest):  # type: ignore[no-untyped-def]
    """Whether all that is beside a cell is below it too, so that a match can go on with both."""
    mask = nodes.shape[0] - 1
    child, following = nodes[node & mask, CHILD], nodes[node & mask, NEXT]
    if child == following:
        return True
    if child < lowest or nodes[child & mask, TAG] != MERGE:
        return False
    return nodes[child & mask, CHILD] == following or nodes[child & mask, NEXT] == following


def _fill_of(checks: Checked) -> Callable[..., Any]:
    """The kernel that finds the values of a node from those of the nodes below it."""
    holds, bounds, merge = checks.holds, len(checks.varieties), _merge_of(checks)
    assert holds is not None

    def fill(node, row, tag, below, beside, given):  # type: ignore[no-untyped-def]
        nodes, lowest, floor_value, past, first, kinds, search = given
        bits, room, latest = kinds.bits[0], nodes.shape[0], search.latest
        start = latest[below] if below >= 0 else np.int64(0)
        if tag != MERGE and kinds.starts[tag & ((np.int64(1) << bits) - 1)]:
            start = node
        latest[row] = max(start, latest[beside]) if beside >= 0 else start
        other = beside
        if beside >= 0 and below >= 0 and tag != MERGE and _covers(nodes, node, lowest):
            other = -1
        for which in range(bounds):
            own_start = np.int64(0)
            if tag != MERGE and holds(past, first, tag, which) >= 0:
                own_start = start
            merge(
                nodes,
                tag >> bits,
                own_start,
                below,
                other,
                lowest,
                floor_value,
                past,
                first,
                search,
                which,
            )
            count = search.sizes[which, room]
            search.sizes[which, row] = count
            for place in range(count):
                search.values[which, row, place] = search.values[which, room, place]
                search.starts[which, row, place] = search.starts[which, room, place]
        return True

    visit: Callable[..., bool] = fill
    if checks.compiles:
        visit = njit(nogil=True, error_model="numpy", _nrt=False)(fill)
    return visits_below(visit, compiles=checks.compiles)
