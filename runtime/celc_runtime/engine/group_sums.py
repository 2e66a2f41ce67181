"""What is known of all matches of each group: their number, and the sums and least keys of
measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from celc_runtime.engine.total_elements import NOTHING, Shape
from celc_runtime.engine.totals import Found
from celc_runtime.engine.wide_columns import WideColumn, sums_of_groups, together


class WholeSum(NamedTuple):
    """A sum of whole numbers: `value` wraps around, and is right unless `size`, the sum of the
    absolute values, is `FULL`."""

    value: WideColumn
    size: WideColumn


@dataclass(frozen=True, slots=True, eq=False)
class GroupSums:
    """Rows about groups of matches.

    counts: the number of matches. whole: a sum for each whole measure. reals: float64[rows, 1 +
    real measures], the number of matches and the sums, times 2 to the power of `scales`
    (int64[rows]); of no columns where nothing asks for them. least: int64[rows, ordered measures].
    """

    counts: WideColumn
    whole: tuple[WholeSum, ...]
    reals: np.ndarray
    scales: np.ndarray
    least: np.ndarray

    def __len__(self) -> int:
        return len(self.counts)

    def taken(self, rows: np.ndarray) -> GroupSums:
        """Some rows (int64, or bool for each row)."""
        return GroupSums(
            self.counts.taken(rows),
            tuple(WholeSum(one.value.taken(rows), one.size.taken(rows)) for one in self.whole),
            self.reals[rows],
            self.scales[rows],
            self.least[rows],
        )

    def copied(self) -> GroupSums:
        """The same rows in memory of their own."""
        return self.taken(np.arange(len(self)))

    def summed(self, starts: np.ndarray) -> GroupSums:
        """One row for each group of rows; groups begin at the rows `starts` (int64, from 0)."""
        if len(starts) == len(self):
            return self
        most = np.maximum.reduceat(self.scales, starts)
        lengths = np.diff(np.append(starts, len(self)))
        # A part that is 2⁻¹⁰⁰⁰ of another one is nothing beside it.
        lower = np.maximum(self.scales - np.repeat(most, lengths), -1000).astype(np.int32)
        with np.errstate(all="ignore"):
            reals = np.add.reduceat(np.ldexp(self.reals, lower[:, None]), starts, axis=0)
        return GroupSums(
            sums_of_groups(self.counts, starts, counts=True),
            tuple(
                WholeSum(
                    sums_of_groups(one.value, starts, counts=False),
                    sums_of_groups(one.size, starts, counts=True),
                )
                for one in self.whole
            ),
            reals,
            most,
            np.minimum.reduceat(self.least, starts, axis=0),
        )


def all_sums(parts: Sequence[GroupSums]) -> GroupSums:
    """The rows of several, one after another."""
    if len(parts) == 1:
        return parts[0]
    wholes = zip(*(one.whole for one in parts), strict=True)
    return GroupSums(
        together([one.counts for one in parts]),
        tuple(
            WholeSum(together([one.value for one in same]), together([one.size for one in same]))
            for same in wholes
        ),
        np.concatenate([one.reals for one in parts]),
        np.concatenate([one.scales for one in parts]),
        np.concatenate([one.least for one in parts]),
    )


def no_sums(shape: Shape) -> GroupSums:
    """No rows."""
    nothing = WideColumn(np.zeros(0, np.uint64), np.zeros(0, np.uint64))
    return GroupSums(
        nothing,
        (WholeSum(nothing, nothing),) * shape.whole,
        np.zeros((0, 1 + shape.real)),
        np.zeros(0, np.int64),
        np.zeros((0, shape.ordered), np.int64),
    )


def found_sums(found: Found) -> GroupSums:
    """What the update has found, in memory of its own."""
    rows = int(found.used[0])
    words = found.totals.words[:rows].copy()
    whole = [
        WholeSum(
            WideColumn(words[:, place], words[:, place + 1]),
            WideColumn(words[:, place + 2], words[:, place + 3]),
        )
        for place in range(2, words.shape[1], 4)
    ]
    return GroupSums(
        WideColumn(words[:, 0], words[:, 1]),
        tuple(whole),
        found.totals.reals[:rows].copy(),
        found.scales[:rows].copy(),
        found.totals.least[:rows].copy(),
    )


def real_sums(values: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """float64: the sums of stretches of numbers (float64); starts, ends as in `sums_between`.

    Not by differences of running sums, which lose the digits of small numbers behind large ones.
    """
    found: np.ndarray = np.add.reduceat(np.append(values, 0.0), starts)
    found[starts == ends] = 0.0
    return found


def least_keys(keys: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """int64: the least keys of stretches, `NOTHING` of none."""
    found: np.ndarray = np.minimum.reduceat(np.append(keys, NOTHING), starts)
    found[starts == ends] = NOTHING
    return found
