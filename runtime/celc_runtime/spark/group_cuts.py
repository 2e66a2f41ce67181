"""Cuts of a stream at the beginnings of row groups, between which no row has to be counted.

Each row group says how many rows it has, and its least and greatest value of the order column. Take
a value that lies inside no row group: all groups are before it or behind it, so the number of rows
before it is known. If the files are in the order of time, there is such a value wherever a row
group begins. A late event stretches its group back, over the values that it is late for.

A range then begins to read where a row group begins, a little earlier than its window needs. If row
groups are large, these rows cost more than a count of all rows, so their number has a limit.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from celc_runtime.plan.plan import Window
from celc_runtime.run.ranges import Cuts, Number
from celc_runtime.spark.input.order_column import OrderColumn

_MOST_IN_VAIN = 0.1
"""Rows that a range reads in vain, as a share of its own. A count of all rows took 0.08 of the time
of two ranges, and 0.27 if few rows reach Python."""


class RowGroup(NamedTuple):
    """The number of its rows, and the least and the greatest value of the order column."""

    rows: int
    least: Number
    greatest: Number


class GroupCuts(NamedTuple):
    """The values at which the stream can be cut without a count."""

    values: tuple[Number, ...]  # ascending
    before: tuple[int, ...]  # the number of rows before each value
    rows: int  # the number of all rows

    def counts(self, cuts: Cuts) -> list[int]:
        """The number of rows between the borders of cuts, all of which lie at `values`."""
        before = (self.before[bisect_left(self.values, border)] for border in cuts.borders)
        return [after - count for count, after in pairwise((0, *before, self.rows))]


def group_cuts(groups: Sequence[RowGroup], order: OrderColumn) -> GroupCuts:
    """The values at which a row group begins, and which lie inside no other."""
    values: list[Number] = []
    before: list[int] = []
    rows = 0
    greatest: Number | None = None
    for group in sorted(groups, key=lambda group: group.least):
        is_between = greatest is None or greatest < group.least
        if is_between and order.can_cut(group.least):
            values.append(group.least)
            before.append(rows)
        rows += group.rows
        greatest = group.greatest if greatest is None else max(greatest, group.greatest)
    return GroupCuts(tuple(values), tuple(before), rows)


def cuts_between_groups(
    known: GroupCuts,
    order: OrderColumn,
    window: Window,
    ranges: int,
    deadline: Window | None = None,
) -> Cuts | None:
    """Cuts into about equal shares, as `cuts_for` makes them of a sample; None: there are too few
    values, or ranges would read too many rows in vain."""
    most = _MOST_IN_VAIN * known.rows / ranges
    places = [_nearest(known.before, known.rows * number / ranges) for number in range(1, ranges)]
    if len({*places, 0}) < ranges:
        return None
    seams, lows, ends = [], [], []
    for seam in places:
        low, before = _low(known, order, window, seam)
        end, behind = (None, 0) if deadline is None else _end(known, order, deadline, seam)
        if before + behind > most:
            return None
        seams.append(known.values[seam])
        lows.append(() if low is None else (low,))
        ends.append(end)
    return Cuts(tuple(seams), tuple(lows), () if deadline is None else tuple(ends))


def _nearest(before: Sequence[int], rows: float) -> int:
    """The place of the number that is nearest to `rows`."""
    above = bisect_left(before, rows, hi=len(before) - 1) if before else 0
    is_below = above > 0 and rows - before[above - 1] <= before[above] - rows
    return above - 1 if is_below else above


def _low(
    known: GroupCuts, order: OrderColumn, window: Window, seam: int
) -> tuple[Number | None, int]:
    """Where the range that begins at a seam may begin to read (None: with the first row), and how
    many rows it reads in vain at most."""
    if window.unit == "EVENTS":
        wanted = known.before[seam] - window.size
        place = bisect_right(known.before, wanted) - 1
        return (None, 0) if place < 0 else (known.values[place], int(wanted) - known.before[place])
    low = order.window_start(known.values[seam], window)
    place = -1 if low is None else bisect_right(known.values, low) - 1
    if place < 0:
        return None, 0
    return known.values[place], known.before[min(place + 1, seam)] - known.before[place]


def _end(
    known: GroupCuts, order: OrderColumn, deadline: Window, seam: int
) -> tuple[Number | None, int]:
    """Where the range that ends at a seam may stop reading (None: after the last row), and how many
    rows it reads in vain at most."""
    end = order.deadline_end(known.values[seam], deadline)
    if end is None:
        return None, 0
    place = bisect_left(known.values, end)
    before = known.before[place - 1]
    if place == len(known.values):
        return None, known.rows - before
    return known.values[place], known.before[place] - before
