"""Bounds for sums: a node is entered only if a match below it can still reach a sum.

A condition such as SUM(x.a) > c or AVG(x.a) > c says that the weights of a match's events add up to
more than a limit (for the average: the weights are a − c, the limit is 0). The largest sum of the
matches below or beside a live node follows from the nodes below it. It is computed once for each
event at which matches end, because the window moves in between. Then for any path, one addition
tells whether some match below satisfies the condition. So at most one partial match without a
match, for each node of the path, lies between two matches. That holds for one such condition. Two
at a time are the subset-sum problem: each of the two bounds still holds, but a node that passes
both may have no match.

A bound cuts only what is proved. Sums here are float64 in the order of the graph. The condition
adds events from left to right. So sums that differ by less than the rounding errors of both count
as equal (`_ERROR`). Nothing is cut if a weight is NaN or infinite, or if sums of whole numbers
could wrap (`_MOST`). The condition itself decides about every match.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from celc_runtime.engine.arena.nodes import MERGE
from celc_runtime.engine.walk.below import visits_below
from celc_runtime.jit.kernels import njit

_ERROR = 2.0**-48  # for each event: more than the relative error of an addition in either order

_MOST = 2.0**61  # sums of absolute values up to here are finite and cannot wrap in int64


def reaching(
    weigh: Callable[..., Any] | None, limits: tuple[float, ...], *, compiles: bool
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Two kernels. `add` notes the sums of a path up to its newest event. `may_reach` says whether
    some match below or beside a node can reach each of the limits.

    weigh: (past, first, tag, number) → two float64: the weight of an event in a condition, and the
    sum of absolute values behind it. None: there is no such condition.
    """
    if weigh is None:
        pair = _add_nothing, _may_always
    else:
        fill = _fill_of(weigh, len(limits), compiles=compiles)
        pair = _add_of(weigh, len(limits)), _may_reach_of(limits, fill)
    if not compiles:
        return pair
    add, may_reach = pair
    compiled = njit(nogil=True, error_model="numpy", inline="always")
    return compiled(add), compiled(may_reach)


def _add_nothing(past, first, tag, depth, sums):  # type: ignore[no-untyped-def]
    pass


def _may_always(  # type: ignore[no-untyped-def]
    nodes, node, depth, lowest, floor_value, past, first, kinds, search, number
):
    return True


def _add_of(weigh: Callable[..., Any], bounds: int) -> Callable[..., Any]:
    def add(past, first, tag, depth, sums):  # type: ignore[no-untyped-def]
        for which in range(bounds):
            weight, size = weigh(past, first, tag, which)
            if not size < _MOST:  # or it is no number
                weight, size = 0.0, np.inf
            before, before_size = 0.0, 0.0
            if depth > 0:
                before, before_size = sums[which, depth - 1], sums[bounds + which, depth - 1]
            sums[which, depth] = before + weight
            sums[bounds + which, depth] = before_size + size

    return add


def _may_reach_of(limits: tuple[float, ...], fill: Callable[..., Any]) -> Callable[..., Any]:
    bounds = len(limits)

    def may_reach(  # type: ignore[no-untyped-def]
        nodes, node, depth, lowest, floor_value, past, first, kinds, search, number
    ):
        at = node & (nodes.shape[0] - 1)
        best, sums = search.best, search.sums
        if search.known[at] != number:
            given = past, first, kinds, search
            fill(nodes, node, lowest, floor_value, search.known, number, search.waiting, given)
        found = True
        length = best[at, 2 * bounds] + depth
        for which in range(bounds):
            limit = limits[which]
            sum, size = best[at, which], best[at, bounds + which]
            if depth > 0:
                sum += sums[which, depth - 1]
                size += sums[bounds + which, depth - 1]
            error = (length + 4.0) * _ERROR * (size + abs(limit))
            if size < _MOST and sum + error < limit:
                found = False
        return found

    return may_reach


def _fill_of(weigh: Callable[..., Any], bounds: int, *, compiles: bool) -> Callable[..., Any]:
    """The kernel that computes the best sums of a node from those of the nodes below it."""

    def fill(node, row, tag, below, beside, given):  # type: ignore[no-untyped-def]
        past, first, kinds, search = given
        best = search.best
        begins = tag != MERGE and kinds.starts[tag & ((np.int64(1) << kinds.bits[0]) - 1)]
        for which in range(bounds):
            sum = 0.0 if begins else -np.inf
            total = 0.0
            if below >= 0:
                sum = max(sum, best[below, which])
                total = best[below, bounds + which]
            if tag != MERGE:
                weight, absolute = weigh(past, first, tag, which)
                if not absolute < _MOST:
                    weight, absolute = 0.0, np.inf
                sum += weight
                total += absolute
            if beside >= 0:
                sum = max(sum, best[beside, which])
                total = max(total, best[beside, bounds + which])
            best[row, which], best[row, bounds + which] = sum, total
        length = best[below, 2 * bounds] if below >= 0 else 0.0
        if tag != MERGE:
            length += 1.0
        if beside >= 0:
            length = max(length, best[beside, 2 * bounds])
        best[row, 2 * bounds] = length
        return True

    visit: Callable[..., bool] = fill
    if compiles:
        visit = njit(nogil=True, error_model="numpy", _nrt=False, inline="always")(fill)
    return visits_below(visit, compiles=compiles)
