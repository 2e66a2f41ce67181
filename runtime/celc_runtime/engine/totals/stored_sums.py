"""The totals of partitions as plain numbers, for the state of a stream.

A row has as many int64 as the measures of its query need (`most_words`): the position of the last
end, −1 or less if there was no match; the number of matches; the whole sums, each with the sum of
its absolute values, and whether it has values; the sizes and scales of the reals; the least keys.
Any numbers are a row, so nothing has to be checked when a state is read.
"""

import numpy as np

from celc_runtime.engine.totals.group_sums import NOT_ASKED, OF_NOTHING, GroupSums, WholeSum
from celc_runtime.engine.totals.measures import MeasureSet
from celc_runtime.engine.totals.total_elements import NOTHING
from celc_runtime.engine.totals.wide_columns import WideColumn


def most_words(measures: MeasureSet) -> int:
    """How many int64 a row has."""
    shape = measures.shape
    return 3 + 4 * shape.whole + shape.known + 2 * shape.numbers + shape.ordered


def words_of(ends: np.ndarray, sums: GroupSums) -> np.ndarray:
    """int64[rows, words]: totals as numbers. ends: int64[rows], the positions of the last ends."""
    columns = [ends, *_halves(sums.counts)]
    for one in sums.whole:
        columns += [*_halves(one.value), *_halves(one.size)]
    columns += [one.known.astype(np.int64) for one in sums.whole if len(one.known)]
    parts = [np.stack(columns, axis=1), sums.reals.view(np.int64), sums.scales, sums.least]
    return np.concatenate(parts, axis=1)


def sums_in(words: np.ndarray, measures: MeasureSet) -> tuple[np.ndarray, GroupSums]:
    """(int64[rows], the positions of the last ends, −1: no match; the totals) of `words_of`."""
    shape = measures.shape
    is_none = words[:, 0] < 0
    place = 3 + 4 * shape.whole
    known = words[:, place : place + shape.known] != 0
    place += shape.known
    reals = np.ascontiguousarray(words[:, place : place + shape.numbers]).view(np.float64)
    scales = words[:, place + shape.numbers : place + 2 * shape.numbers]
    least = words[:, place + 2 * shape.numbers :]
    whole = []
    for number in range(shape.whole):
        first = 3 + 4 * number
        is_known = known[:, number] & ~is_none if number < shape.known else NOT_ASKED
        value, size = _wide(words, first, is_none), _wide(words, first + 2, is_none)
        whole.append(WholeSum(value, size, is_known))
    no_row = is_none[:, None]
    sums = GroupSums(
        _wide(words, 1, is_none),
        tuple(whole),
        np.where(no_row, 0.0, reals),
        np.where(no_row, OF_NOTHING, scales),
        np.where(no_row, NOTHING, least),
        shape.pairs,
    )
    return np.where(is_none, -1, words[:, 0]), sums


def running(sums: GroupSums, parts: np.ndarray) -> GroupSums:
    """For each row the sums of all rows of its partition up to it. parts: int64[rows], the
    partitions of the rows, which are next to each other."""
    rows = np.arange(len(parts))
    step = 1
    while step < len(parts):
        # Each row holds the sums of the `step` rows up to it.
        goes_on = np.zeros(len(parts), np.bool_)
        goes_on[step:] = parts[step:] == parts[:-step]
        if not goes_on.any():
            break
        starts = np.cumsum(1 + goes_on) - 1 - goes_on
        index = np.repeat(rows, 1 + goes_on)
        index[starts[goes_on]] -= step
        sums = sums.taken(index).summed(starts)
        step *= 2
    return sums


def _halves(column: WideColumn) -> tuple[np.ndarray, np.ndarray]:
    return column.high.view(np.int64), column.low.view(np.int64)


def _wide(words: np.ndarray, place: int, is_none: np.ndarray) -> WideColumn:
    high, low = (np.where(is_none, 0, words[:, place + n]).view(np.uint64) for n in (0, 1))
    return WideColumn(high, low)
