"""Cuts where row groups begin: what is known of them without a count, beside a count."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from celc_runtime.plan.plan import Window
from celc_runtime.run.ranges import Cuts, is_even, ranges_of
from celc_runtime.spark.group_cuts import (
    GroupCuts,
    RowGroup,
    cuts_between_groups,
    group_cuts,
)
from celc_runtime.spark.input.order_column import OrderColumn

LONGS = OrderColumn("ts", "LONG", "bigint")


def _drawn(rng: random.Random, groups: int, late: float) -> tuple[np.ndarray, list[RowGroup]]:
    """Values in groups that follow each other, of which the part `late` lies in a later group; many
    are equal, and a value may go on in the next group."""
    values = np.sort(np.array([rng.randrange(4 * groups * 8) for _ in range(groups * 8)]))
    edges = sorted({0, len(values), *(rng.randrange(len(values)) for _ in range(groups))})
    parts = [values[low:high] for low, high in pairwise(edges)]
    for number in range(len(parts) - 1):
        if rng.random() < late:
            other = rng.randrange(number, len(parts))
            parts[other] = np.append(parts[other], parts[number][-1])
            parts[number] = parts[number][:-1]
    parts = [part for part in parts if len(part)]
    found = [RowGroup(len(part), int(part.min()), int(part.max())) for part in parts]
    rng.shuffle(found)
    return values, found


@pytest.mark.parametrize("seed", range(40))
def test_cuts_have_as_many_rows_before_them_as_a_count_finds(seed: int) -> None:
    rng = random.Random(seed)
    values, groups = _drawn(rng, rng.randint(1, 30), rng.choice((0, 0.05, 0.5)))
    found = group_cuts(groups, LONGS)
    assert found.rows == len(values)
    assert list(found.before) == [int((values < value).sum()) for value in found.values]
    assert list(found.values) == sorted(set(found.values))
    clean = {
        group.least
        for group in groups
        if not any(other.least < group.least <= other.greatest for other in groups)
    }
    assert set(found.values) == clean


def test_groups_across_which_late_events_lie_are_not_cut() -> None:
    groups = [RowGroup(10, 0, 9), RowGroup(10, 10, 19), RowGroup(10, 15, 29), RowGroup(10, 30, 39)]
    assert group_cuts(groups, LONGS) == GroupCuts((0, 10, 30), (0, 10, 30), 40)
    assert group_cuts([*groups, RowGroup(1, 5, 35)], LONGS) == GroupCuts((0,), (0,), 41)
    # Equal values stand together, whichever group has them.
    assert group_cuts([RowGroup(5, 0, 5), RowGroup(5, 5, 9)], LONGS).values == (0,)
    assert group_cuts([], LONGS) == GroupCuts((), (), 0)


def test_a_value_that_no_literal_holds_is_no_cut() -> None:
    """The days of October 1582, where the calendar changed."""
    days = OrderColumn("day", "DATE", "date")
    groups = [RowGroup(10, -141_500, -141_431), RowGroup(10, -141_430, 0), RowGroup(10, 1, 9)]
    assert group_cuts(groups, days).values == (-141_500, 1)


@pytest.mark.parametrize("seed", range(60))
def test_ranges_read_what_their_windows_and_deadlines_reach(seed: int) -> None:
    rng = random.Random(seed)
    values, groups = _drawn(rng, rng.randint(20, 200), rng.choice((0, 0, 0.02)))
    known = group_cuts(groups, LONGS)
    unit = rng.choice(("EVENTS", "VALUE"))
    window = Window(unit, rng.choice((0, 1, 7, 40, 10_000)), None if unit == "EVENTS" else "ts")
    deadline = rng.choice((None, Window("VALUE", rng.choice((0, 3, 50)), "ts")))
    count = rng.randint(2, 6)
    cuts = cuts_between_groups(known, LONGS, window, count, deadline)
    if cuts is None:
        return
    counts = known.counts(cuts)
    assert sum(counts) == len(values)
    ranges = ranges_of(cuts, counts, window)
    assert len(ranges) == count
    most = 0.1 * len(values) / count
    for part in ranges:
        low, end = part.low, part.end
        is_read = np.ones(len(values), np.bool_)
        if low is not None:
            is_read &= values >= low
        if end is not None:
            is_read &= values < end
        assert part.rows == is_read.sum()
        assert part.first_position == (0 if low is None else (values < low).sum())
        if part.start is not None:
            before = int((values < part.start).sum())
            wanted = (
                max(0, before - int(window.size))
                if unit == "EVENTS"
                else int((values < part.start - window.size).sum())
            )
            assert part.first_position <= wanted
            assert wanted - part.first_position <= most
        if deadline is not None and part.later is not None:
            assert end is None or end > part.later + deadline.size - 1
            behind = int((values < part.later + deadline.size).sum())
            assert part.first_position + part.rows - behind <= most


def test_the_ranges_are_as_even_as_the_groups_are() -> None:
    groups = [RowGroup(100, 100 * number, 100 * number + 99) for number in range(40)]
    known = group_cuts(groups, LONGS)
    cuts = cuts_between_groups(known, LONGS, Window("EVENTS", 50, None), 4)
    assert cuts == Cuts((1000, 2000, 3000), ((900,), (1900,), (2900,)))
    assert is_even(cuts, known.counts(cuts))


def test_large_groups_are_not_read_in_vain() -> None:
    """Two ranges of a window of ten rows would read 100 rows more."""
    few = group_cuts([RowGroup(100, 100 * n, 100 * n + 99) for n in range(10)], LONGS)
    many = group_cuts([RowGroup(10, 10 * n, 10 * n + 9) for n in range(100)], LONGS)
    for unit, attribute in (("EVENTS", None), ("VALUE", "ts")):
        window = Window(unit, 10, attribute)
        assert cuts_between_groups(few, LONGS, window, 2) is None
        assert cuts_between_groups(many, LONGS, window, 2) is not None


def test_too_few_groups_are_not_cut() -> None:
    window = Window("VALUE", 0, "ts")
    for groups in ([], [RowGroup(9, 0, 9)], [RowGroup(9, 0, 9), RowGroup(9, 10, 19)]):
        known = group_cuts(groups, LONGS)
        assert cuts_between_groups(known, LONGS, window, 3) is None
        assert (cuts_between_groups(known, LONGS, window, 2) is None) == (len(groups) < 2)
