"""Time ranges of Spark: one stream, or the events of one key, cut into parts (`run/ranges`).

The seams may be anywhere, so they are taken from the statistics of files (`file_statistics`) or
from a sample.

Positions have to be exact. Once the seams are known, the rows between them are counted, with the
same constants by which the ranges are filtered, or the statistics tell how many there are
(`group_cuts`). The counts give the position at which a range begins, how far back a window of
EVENTS reaches, and how many rows a range will read, which the range checks.

Rejected: buckets of equal width between the smallest and the largest value (one event with a wrong
date, and everything is in one bucket); a shuffle by range (an event costs twice as much, and two
cores no longer gain); one job in place of the sample and the count, which tells the least and the
greatest value of each few thousand rows of a file (a third cheaper, 0.6 s of a job of seven to
thirteen; but it counts only cuts that no late event lies across, and many streams have none).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from celc_runtime.run.ranges import GRID, Number, Sample, TimeRange
from celc_runtime.spark.input.order_column import OrderColumn
from celc_runtime.spark.input.probe import asked

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BETWEEN_CUTS = "the rows between cuts"
"""The name of jobs that count rows."""

Draw: TypeAlias = "Callable[[float], DataFrame]"
"""Draws a fraction of the rows that a plan reads: the same rows each time. The fraction 1: all."""

_FRACTION = 0.01
_SMALL_SAMPLE = 10_000
"""With fewer rows than this in a sample, all rows are read instead."""

_FEW_BORDERS = 8
"""Up to this number of borders, rows are counted border by border, which is cheaper than grouping
them by a bucket."""

# --- looking at the data --------------------------------------------------------------------------


def sampled(draw: Draw, order: OrderColumn, *, whole: bool) -> Sample:
    """The quantiles of the order column; `whole`: of all rows where a sample of them is small."""
    found = _sample(draw(_FRACTION), order, 1 / _FRACTION)
    if whole and found.rows * _FRACTION < _SMALL_SAMPLE:
        return _sample(draw(1), order, 1)
    return found


def _sample(rows: DataFrame, order: OrderColumn, weight: float) -> Sample:
    from pyspark.sql import functions

    sample = rows.agg(functions.count(functions.lit(1)), quantiles(order))
    count, grid = asked(sample, f"a sample of {order.name!r}")[0]
    return Sample(round(count * weight), tuple(sorted(order.numbers(grid))))


def quantiles(order: OrderColumn) -> Column:
    """The grid of an order column, in portable values."""
    from pyspark.sql import functions

    shares = [place / GRID for place in range(1, GRID)]
    found = functions.percentile_approx(order.column, shares)
    return functions.transform(found, order.portable)


def bucket(order: OrderColumn, borders: Sequence[Number]) -> Column:
    """How many of the borders (ascending) are not after a row's value; all of them for NULL.

    A tree of comparisons, because a row has to pass through few of them.
    """
    from pyspark.sql import functions

    def tree(low: int, high: int) -> Column:
        if low == high:
            return functions.lit(low)
        middle = (low + high) // 2
        before = order.column < order.border(borders[middle])
        return functions.when(before, tree(low, middle)).otherwise(tree(middle + 1, high))

    return tree(0, len(borders))


def counted(rows: DataFrame, order: OrderColumn, borders: Sequence[Number]) -> list[int]:
    """How many rows there are in each bucket."""
    from pyspark.sql import functions

    known = rows.where(order.column.isNotNull())  # NULL is an error of the task that reads it
    if len(borders) <= _FEW_BORDERS:
        earlier = [functions.count_if(order.column < order.border(border)) for border in borders]
        counts_of_all = known.agg(*earlier, functions.count(functions.lit(1)))
        *before, total = asked(counts_of_all, BETWEEN_CUTS)[0]
        return [after - count for count, after in pairwise((0, *before, total))]
    of_buckets = known.select(bucket(order, borders).alias("bucket")).groupBy("bucket")
    counts = [0] * (len(borders) + 1)
    for place, count in asked(of_buckets.agg(functions.count(functions.lit(1))), BETWEEN_CUTS):
        counts[place] = count
    return counts


# --- the rows of a range --------------------------------------------------------------------------


def within(order: OrderColumn, part: TimeRange) -> Column:
    """The condition of a range's rows, including those that it reads before and behind its own.

    The first range reads the rows without a value, the last range NaN, so that these errors are
    found. NaN is asked for because Parquet's writers leave it out of the maximum by which files are
    skipped.

    The comparisons stand behind `IS NULL OR`, also where rows without a value are then refused:
    statistics skip a row group by them all the same, and the groups that are read are not searched
    for a value in their dictionary first. Many different times fill a dictionary, and to unpack it
    cost twice as much as to read the rows.
    """
    from pyspark.sql import functions

    column = order.column
    compared = []
    if part.low is not None:
        late = column >= order.border(part.low)
        if part.end is None and order.declared in ("FLOAT", "DOUBLE"):
            late = late | functions.isnan(column)
        compared.append(late)
    if part.end is not None:
        compared.append(column < order.border(part.end))
    condition = functions.lit(True)
    if compared:
        condition = column.isNull() | reduce(lambda one, other: one & other, compared)
    return condition if part.start is None else condition & column.isNotNull()


def start_of(order: OrderColumn, part: TimeRange) -> Column:
    """The place in the order at which a range's own events begin; NULL: at the first event."""
    from pyspark.sql import functions

    return functions.lit(None) if part.start is None else order.border(part.start)


def later_of(order: OrderColumn, part: TimeRange) -> Column:
    """The place in the order behind a range's own events; NULL: it reads no others there."""
    from pyspark.sql import functions

    return functions.lit(None) if part.later is None else order.border(part.later)


def is_outside(order: OrderColumn, start: Column, later: Column) -> Column:
    """Whether a row is before a range's own events, which begin at `start`, or behind them, from
    `later` on; never NULL."""
    from pyspark.sql import functions

    never, column = functions.lit(False), order.column
    before = functions.coalesce(column < start, never)
    return before | functions.coalesce(column >= later, never)
