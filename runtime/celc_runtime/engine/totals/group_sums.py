"""The totals of groups of matches: their number, and the sums and least keys of measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from celc_runtime.engine.totals.bounded_elements import reals_without_bounds
from celc_runtime.engine.totals.kernel import Found
from celc_runtime.engine.totals.scaled_numbers import ZERO, sizes_and_scales
from celc_runtime.engine.totals.total_elements import NOTHING, Shape
from celc_runtime.engine.totals.wide_columns import (
    WideColumn,
    differences,
    sums_of_counts,
    sums_of_groups,
    together,
)
from celc_runtime.plan.frozen import frozen

OF_NOTHING = -(2**60)  # the scale of a sum without a value
OF_ZERO = int(ZERO)  # about the scale of a sum whose values are all 0


class WholeSum(NamedTuple):
    """A sum of whole numbers."""

    value: WideColumn  # wraps around; right unless `size` is `FULL`
    size: WideColumn  # the sum of the absolute values
    known: np.ndarray  # bool[rows], whether there is any value; empty: not asked for

    def taken(self, rows: np.ndarray) -> WholeSum:
        """Some rows (int64, or bool for each row)."""
        known = self.known[rows] if len(self.known) else self.known
        return WholeSum(self.value.taken(rows), self.size.taken(rows), known)

    def summed(self, starts: np.ndarray) -> WholeSum:
        """As `GroupSums.summed`."""
        known = np.logical_or.reduceat(self.known, starts) if len(self.known) else self.known
        return WholeSum(
            sums_of_groups(self.value, starts, counts=False),
            sums_of_groups(self.size, starts, counts=True),
            known,
        )


NOT_ASKED = np.zeros(0, np.bool_)
"""`known` of a sum where nobody asks whether it has values."""


@frozen(eq=False)
class GroupSums:
    """One row for each group of matches."""

    counts: WideColumn  # the number of matches
    whole: tuple[WholeSum, ...]  # one for each whole measure
    reals: np.ndarray
    """float64[rows, numbers], the sizes of the numbers size · 2^scale in the order of
    `total_elements.Elements`; no columns: not asked for."""
    scales: np.ndarray  # int64 of the same shape; `OF_NOTHING` where no value was known
    least: np.ndarray  # int64[rows, ordered measures], as `total_elements.Elements`
    pairs: int  # of `least`

    def __len__(self) -> int:
        return len(self.counts)

    def taken(self, rows: np.ndarray) -> GroupSums:
        """Some rows (int64, or bool for each row)."""
        return GroupSums(
            self.counts.taken(rows),
            tuple(one.taken(rows) for one in self.whole),
            self.reals[rows],
            self.scales[rows],
            self.least[rows],
            self.pairs,
        )

    def copied(self) -> GroupSums:
        return self.taken(np.arange(len(self)))

    def summed(self, starts: np.ndarray) -> GroupSums:
        """The sums of groups of rows. Groups begin at the rows `starts` (int64, from 0)."""
        if len(starts) == len(self):
            return self
        reals, scales = sums_of_scaled(self.reals, self.scales, starts)
        return GroupSums(
            sums_of_groups(self.counts, starts, counts=True),
            tuple(one.summed(starts) for one in self.whole),
            reals,
            scales,
            _least_rows(self.least, self.pairs, starts),
            self.pairs,
        )


def all_sums(parts: Sequence[GroupSums]) -> GroupSums:
    if len(parts) == 1:
        return parts[0]
    wholes = zip(*(one.whole for one in parts), strict=True)
    return GroupSums(
        together([one.counts for one in parts]),
        tuple(
            WholeSum(
                together([one.value for one in same]),
                together([one.size for one in same]),
                np.concatenate([one.known for one in same]),
            )
            for same in wholes
        ),
        np.concatenate([one.reals for one in parts]),
        np.concatenate([one.scales for one in parts]),
        np.concatenate([one.least for one in parts]),
        parts[0].pairs,
    )


def found_sums(found: Found, shape: Shape, *, bounded: bool) -> GroupSums:
    """What the update has found, copied out of its buffers."""
    rows, room = int(found.used[0]), len(found.rows)
    words = found.totals.words.reshape(room, -1)[:rows].copy()
    reals = found.totals.reals
    if bounded:
        reals = reals_without_bounds(reals, shape, rows)
    sizes, scales = sizes_and_scales(reals, rows, shape.numbers)
    scales = np.where(np.isinf(sizes), 0.0, scales)
    scales = np.where(scales > OF_ZERO * 2, scales, OF_NOTHING)
    whole = []
    for number in range(shape.whole):
        place = 2 + 4 * number
        positive = WideColumn(words[:, place], words[:, place + 1])
        negative = WideColumn(words[:, place + 2], words[:, place + 3])
        value, size = differences(positive, negative), sums_of_counts(positive, negative)
        known = NOT_ASKED
        if number < shape.known:
            bits = words[:, 2 + 4 * shape.whole + number // 64]
            known = bits >> np.uint64(number % 64) & np.uint64(1) != 0
        whole.append(WholeSum(value, size, known))
    return GroupSums(
        WideColumn(words[:, 0], words[:, 1]),
        tuple(whole),
        sizes.copy(),
        scales.astype(np.int64),
        found.totals.least.reshape(room, shape.ordered)[:rows].copy(),
        shape.pairs,
    )


def sums_of_scaled(
    sizes: np.ndarray, scales: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The sums of groups of numbers size · 2^scale, in the same form.

    sizes, scales: float64 and int64[rows, numbers]. starts: int64, the first row of each group,
    from 0.
    """
    lengths = np.diff(np.append(starts, len(sizes)))
    # An infinite number counts, however small its scale is.
    scales = np.where(np.isfinite(sizes), scales, np.maximum(scales, 0))
    most = np.maximum.reduceat(scales, starts, axis=0)
    # A part that is 2⁻¹⁰⁰⁰ times another one adds nothing to it.
    lower = np.maximum(scales - np.repeat(most, lengths, axis=0), -1000).astype(np.int32)
    with np.errstate(all="ignore"):
        found: np.ndarray = np.add.reduceat(np.ldexp(sizes, lower), starts, axis=0)
    return found, most


def real_sums(
    values: np.ndarray,
    known: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    weights: np.ndarray | None = None,
    scales: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The sums of ranges of numbers, as sizes and scales of `GroupSums`.

    values: float64. known: bool, which of them count. starts, ends: as in `sums_between`. weights,
    scales: float64 and int64; a number counts weight · 2^scale times, or once without them.

    Differences of running sums would lose the digits of small numbers after large ones.
    """
    # Adding 0.0 turns −0.0 into 0.0.
    sizes, exponents = np.frexp(np.where(known, values, 0.0) + 0.0)
    if weights is not None:
        sizes = sizes * weights
    of_all = exponents.astype(np.int64) + (0 if scales is None else scales)
    of_all = np.where(known, np.where(sizes == 0.0, OF_ZERO, of_all), OF_NOTHING)
    found, most = sums_of_scaled(
        np.append(sizes, 0.0)[:, None], np.append(of_all, OF_NOTHING)[:, None], starts
    )
    is_empty = starts == ends
    return np.where(is_empty, 0.0, found[:, 0]), np.where(is_empty, OF_NOTHING, most[:, 0])


def _least_rows(least: np.ndarray, pairs: int, starts: np.ndarray) -> np.ndarray:
    """The least keys of groups of rows, which begin at `starts`."""
    found: np.ndarray = np.minimum.reduceat(least, starts, axis=0)
    rows = np.append(starts, len(least))
    for pair in range(0, 2 * pairs, 2):
        ends = rows[1:]
        found[:, pair : pair + 2] = least_pairs(least[:, pair], least[:, pair + 1], starts, ends)
    return found


def least_pairs(
    high: np.ndarray, low: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """int64[ranges, 2]: the least pair of each range, `NOTHING` twice of an empty one.

    starts, ends: ascending; a range begins where another one ends, or later.
    """
    first = least_keys(high, starts, ends)
    of_first = np.zeros(len(high), np.bool_)
    lengths = ends - starts
    places = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    of_first[places] = high[places] == np.repeat(first, lengths)
    second = least_keys(np.where(of_first, low, NOTHING), starts, ends)
    return np.stack([first, second], axis=1)


def least_keys(keys: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """int64: the least key of each range, `NOTHING` of an empty one."""
    found: np.ndarray = np.minimum.reduceat(np.append(keys, NOTHING), starts)
    found[starts == ends] = NOTHING
    return found
