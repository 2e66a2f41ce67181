"""Hot keys: keys with more events than a task should read, each cut into time ranges.

Keys are counted in a sample. First their hashes are counted: few counts are enough to see whether
there can be a hot key at all. A row of a hot key gets the numbers of the ranges that read it (more
than one if a later range reads it before its own events); all other rows get 0. The shuffle goes by
key and number. So the DataFrame is run once, and not once for each range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Window
from celc_runtime.run.ranges import Cuts, Sample, TimeRange, cuts_for, ranges_of, worthwhile
from celc_runtime.spark.input.order_column import OrderColumn, ValueColumn
from celc_runtime.spark.input.probe import asked
from celc_runtime.spark.time_ranges import BETWEEN_CUTS, Draw, bucket, quantiles

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_HASHES = 1024  # values of a key's hash, so at most as many counts, however many keys there are


@frozen
class HotKey:
    """A key: the values of its columns in portable form, and its time ranges."""

    values: tuple[Any, ...]
    ranges: tuple[TimeRange, ...]

    def matches(self, keys: Sequence[ValueColumn]) -> Column:
        """The condition of the key's rows."""
        return reduce(
            lambda one, other: one & other,
            [key.is_value(value) for key, value in zip(keys, self.values, strict=True)],
        )


@frozen
class KeySample:
    """A sample of the rows."""

    rows: DataFrame
    weight: float  # how many rows of the input a row of the sample stands for
    total: int  # the number of rows in the sample
    largest: int  # an upper bound of the rows that one key has in the sample

    @property
    def estimated(self) -> int:
        """The estimated number of all rows."""
        return round(self.total * self.weight)


def sampled_keys(draw: Draw, keys: Sequence[ValueColumn], fraction: float) -> KeySample:
    """A sample of `fraction` of the rows (1: all rows), counted by the hashes of their keys."""
    from pyspark.sql import functions

    sample = draw(fraction)
    of_key = functions.pmod(functions.hash(*(key.column for key in keys)), functions.lit(_HASHES))
    counts = sample.groupBy(of_key.alias("hash")).agg(
        functions.count(functions.lit(1)).alias("rows")
    )
    found = asked(counts.agg(functions.sum("rows"), functions.max("rows")), "a sample of the keys")[
        0
    ]
    return KeySample(sample, 1 / fraction, found[0] or 0, found[1] or 0)


def hot_keys(
    rows: DataFrame,
    sample: KeySample,
    keys: Sequence[ValueColumn],
    order: OrderColumn,
    reach: tuple[Window, Window | None],
    tasks: int,
    *,
    always: bool,
) -> list[HotKey]:
    """The keys with more rows than an equal share of the tasks, in ranges of about that share.

    reach: the window, and the farthest deadline. always: also if the ranges read so many rows twice
    that they do not pay.
    """
    window, deadline = reach
    if sample.largest * tasks <= sample.total:
        return []
    found = _with_counts(sample, keys, tasks)
    if not found:
        return []
    samples = _samples(sample, keys, order, [HotKey(values, ()) for values, _ in found])
    cuts = [
        cuts_for(of_key, order, window, max(2, math.ceil(count * tasks / sample.total)), deadline)
        for of_key, (_, count) in zip(samples, found, strict=True)
    ]
    counts = _counted(rows, keys, order, [HotKey(values, ()) for values, _ in found], cuts)
    choose = ranges_of if always else worthwhile
    hot = [
        HotKey(values, tuple(choose(of_key, numbers, window)))
        for (values, _), of_key, numbers in zip(found, cuts, counts, strict=True)
    ]
    return [key for key in hot if len(key.ranges) > 1]


def _with_counts(
    sample: KeySample, keys: Sequence[ValueColumn], tasks: int
) -> list[tuple[tuple[Any, ...], int]]:
    """The keys with more than their share of the sample, and their numbers of rows in it."""
    from pyspark.sql import functions

    names = [f"key{number}" for number in range(len(keys))]
    named = [key.column.alias(name) for key, name in zip(keys, names, strict=True)]
    counts = sample.rows.groupBy(*named).agg(functions.count(functions.lit(1)).alias("rows"))
    large = counts.where(functions.col("rows") * tasks > sample.total)
    values = [key.portable(functions.col(name)) for key, name in zip(keys, names, strict=True)]
    rows = asked(large.select("rows", *values).orderBy("rows", *names), "the hot keys")
    return [(tuple(row[1:]), int(row[0])) for row in rows]


def _number(keys: Sequence[ValueColumn], hot: Sequence[HotKey]) -> Column:
    """The number of a row's hot key, counted from 1; NULL for other keys."""
    from pyspark.sql import functions

    number = functions.when(functions.lit(False), 0)
    for at, key in enumerate(hot, 1):
        number = number.when(key.matches(keys), at)
    return number


def _samples(
    sample: KeySample, keys: Sequence[ValueColumn], order: OrderColumn, hot: Sequence[HotKey]
) -> list[Sample]:
    """For each hot key, how many rows it has and quantiles of their times, both estimated."""
    from pyspark.sql import functions

    number_of = unused_name("number", sample.rows.columns)
    numbered = sample.rows.withColumn(number_of, _number(keys, hot))
    of_hot = numbered.where(functions.col(number_of).isNotNull()).groupBy(number_of)
    found = [Sample(0, ()) for _ in hot]
    grids = of_hot.agg(functions.count(functions.lit(1)), quantiles(order))
    for number, count, grid in asked(grids, f"a sample of {order.name!r} of hot keys"):
        rows = round(count * sample.weight)
        found[number - 1] = Sample(rows, tuple(sorted(order.numbers(grid))))
    return found


def _counted(
    rows: DataFrame,
    keys: Sequence[ValueColumn],
    order: OrderColumn,
    hot: Sequence[HotKey],
    cuts: Sequence[Cuts],
) -> list[list[int]]:
    """How many rows each hot key has between its borders."""
    from pyspark.sql import functions

    number_of = unused_name("number", rows.columns)
    place = functions.when(functions.lit(False), 0)
    for at, of_key in enumerate(cuts, 1):
        place = place.when(functions.col(number_of) == at, bucket(order, of_key.borders))
    numbered = rows.withColumn(number_of, _number(keys, hot)).where(order.column.isNotNull())
    of_hot = numbered.where(functions.col(number_of).isNotNull())
    counts = [[0] * (len(of_key.borders) + 1) for of_key in cuts]
    found = of_hot.groupBy(number_of, place.alias("bucket")).agg(functions.count(functions.lit(1)))
    for number, at, count in asked(found, BETWEEN_CUTS):
        counts[number - 1][at] = count
    return counts


def range_numbers(keys: Sequence[ValueColumn], order: OrderColumn, hot: Sequence[HotKey]) -> Column:
    """The numbers of the ranges that read a row, as an array. The ranges of all hot keys are
    numbered from 1 on, key after key; rows of other keys have 0."""
    from pyspark.sql import functions

    numbers = functions.when(functions.lit(False), functions.array(functions.lit(0)))
    first = 1
    for key in hot:
        ends = [r.end for r in key.ranges[:-1] if r.end is not None]
        lows = [r.low for r in key.ranges if r.low is not None]
        unbounded = len(key.ranges) - 1 - len(lows)
        earliest = functions.lit(first) + bucket(order, ends)
        last = functions.lit(first + unbounded) + bucket(order, lows)
        numbers = numbers.when(key.matches(keys), functions.sequence(earliest, last))
        first += len(key.ranges)
    return numbers.otherwise(functions.array(functions.lit(0)))
