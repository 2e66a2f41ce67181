"""Random files of several queries on Spark: `match_all` against each query alone, by one scan."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventWarning, PlanWarning
from conftest import ON_SPARK
from engines import as_on_spark, interpreted, table_of
from test_random import TOO_LARGE
from test_random_across import stream_for
from test_random_many import file_of, rows

import celc
from celc import CelError


class _Counted:
    """A table as a DataFrame that counts the rows that are read of it."""

    def __init__(self, spark: Any, table: pa.Table) -> None:
        self._context = spark.sparkContext
        read = self._read = self._context.accumulator(0)

        def counting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                read.add(len(batch))
                yield batch

        plain = spark.createDataFrame(table)
        self.frame = plain.mapInArrow(counting, plain.schema)

    def rows_read(self) -> int:
        """How many rows tasks have read so far."""
        return int(self._read.value)


def _compared(seed: int, spark: Any) -> tuple[int, int]:
    """Compare one file; returns how many queries it has, and how many of them have matches."""
    rng = random.Random(seed)
    file = file_of(rng)
    try:
        with interpreted():
            # Rows of a DataFrame have no order of their own.
            module = celc.compile(file.text, order_by="seq")
    except CelError as problem:
        if {d.code for d in problem.diagnostics if d.severity == "error"} - TOO_LARGE:
            raise
        return 0, 0
    queries = module.queries
    events = stream_for(rng, file)
    table = table_of(next(iter(queries.values())).plan, events)
    for query in queries.values():
        other = table_of(query.plan, events)
        for name in set(other.column_names) - set(table.column_names):
            table = table.append_column(name, other.column(name))
    if "seq" not in table.column_names or table.column("seq").null_count:
        numbers = pa.array(range(len(table)), pa.int64())
        table = table.drop_columns([n for n in ["seq"] if n in table.column_names])
        table = table.append_column("seq", numbers)
    counted = _Counted(spark, table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EventWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("ignore", PlanWarning)
        found = module.match_all(counted.frame).toArrow()
        assert counted.rows_read() == len(table), f"seed {seed}: not one scan\n{file.text}"
        with_matches = 0
        for name, query in queries.items():
            alone = as_on_spark(query).match_table(table)
            wanted = rows(alone)
            assert rows(module.rows(found, name)) == wanted, f"seed {seed}, {name}\n{file.text}"
            with_matches += bool(wanted)
    return len(queries), with_matches


@pytest.mark.skipif(ON_SPARK == "connect", reason="an accumulator counts the rows")
def test_some_random_files(spark: Any) -> None:
    counts = [_compared(seed, spark) for seed in range(3)]
    assert sum(queries for queries, _ in counts) >= 6
    assert sum(with_matches for _, with_matches in counts) >= 2


@pytest.mark.long
@pytest.mark.skipif(ON_SPARK == "connect", reason="an accumulator counts the rows")
def test_random_files(spark: Any) -> None:
    """Two hundred queries and more."""
    counts = [_compared(seed, spark) for seed in range(100, 165)]
    queries, with_matches = (sum(column) for column in zip(*counts, strict=True))
    print(f"{queries} queries at once on Spark, {with_matches} with matches")
    assert queries >= 200
    assert with_matches >= 60
