"""The rows of a table function that sorts them itself, without Spark."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, EventError, EventWarning
from celc_runtime.arrow.events import gathering
from celc_runtime.plan.plan import Plan
from celc_runtime.spark.input.columns import SPARK_TYPES
from celc_runtime.spark.sql import SortingStream
from celc_runtime.spark.worker import sorted_rows
from celc_runtime.spark.worker.task_sort import why_spark_sorts
from engines import interpreted, only_query, table_of
from numbered_rows import cut, texts_of
from strategies import compiled_queries, random_stream

import celc


def _is_sorted_by_tasks(plan: Plan) -> bool:
    declared = {one.name: SPARK_TYPES[one.type][0] for one in plan.source.attributes}
    return not why_spark_sorts(plan, dict.fromkeys(plan.source.tiebreak, "bigint") | declared)


def _read(stream: SortingStream, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What Spark does with an instance of the function."""
    stream.begin()
    for batch in partition:
        assert list(stream.read(batch)) == []
    yield from stream.rest()
    stream.end()


def _random_queries(seed: int, count: int) -> int:
    rng, matches = random.Random(seed), 0
    queries = compiled_queries(rng)
    while count:
        query = next(queries)
        if not _is_sorted_by_tasks(query.plan):
            continue
        count -= 1
        events = random_stream(rng, 24, nulls=0.2, strangers=0.1)
        rows = [{**event, "row": row} for row, event in enumerate(events)]
        table = table_of(query.plan, rows)
        mixed = table.take(pa.array(np.random.default_rng(seed).permutation(len(table))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            found = texts_of(_read(SortingStream(query.program), cut(mixed, rng, 9)))
            assert found == texts_of(query.match_table(table).to_batches()), query.text
        matches += len(found)
    return matches


@pytest.mark.each(2)
@pytest.mark.parametrize("in_memory", [True, False])
def test_random_queries(in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_memory:
        monkeypatch.setattr(sorted_rows, "_BYTES_IN_MEMORY", 300)
        monkeypatch.setattr(gathering, "ROWS_AT_ONCE", 5)
    assert _random_queries(6, 30) > 50


@pytest.mark.long
@pytest.mark.parametrize("seed", range(900, 910))
def test_many_random_queries(seed: int) -> None:
    assert _random_queries(seed, 60) > 50


def _query() -> CompiledQuery:
    text = (
        "CREATE STREAM S { EVENT A { id: LONG, ts: LONG }, EVENT B { id: LONG, ts: LONG } } "
        "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY id"
    )
    with interpreted():
        return only_query(celc.compile(text, order_by="ts"))


def _partition(key: int) -> list[dict[str, Any]]:
    return [{"type": "BA"[ts % 2], "id": key, "ts": -ts} for ts in range(4)]


def test_each_partition_of_a_table_is_sorted_alone() -> None:
    query = _query()
    stream = SortingStream(query.program)
    found: list[Any] = []
    for key in (7, 3):
        stream.begin()
        for batch in table_of(query.plan, _partition(key)).to_batches(max_chunksize=1):
            found += stream.read(batch)
        found += [row for batch in stream.rest() for row in batch.to_pylist()]
    stream.end()
    assert [(row["id"], row["start_pos"], row["end_pos"]) for row in found] == [
        *((7, start, end) for start, end in ((0, 1), (2, 3), (0, 3))),
        *((3, start, end) for start, end in ((0, 1), (2, 3), (0, 3))),
    ]


def test_a_task_that_is_stopped_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIMIT ends a task before its partition ends, or while matches are handed out."""
    monkeypatch.setattr(sorted_rows, "_BYTES_IN_MEMORY", 10)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    query = _query()
    for reads in (False, True):
        stream = SortingStream(query.program)
        stream.begin()
        for batch in table_of(query.plan, _partition(1)).to_batches(max_chunksize=1):
            list(stream.read(batch))
        assert [path.name for path in tmp_path.glob("*/*")] == ["rows"]
        if reads:
            assert len(next(stream.rest())) > 0
        stream.end()
        assert list(tmp_path.iterdir()) == []


def test_rows_that_do_not_fit_are_told_as_they_come() -> None:
    query = _query()
    table = table_of(query.plan, _partition(1))
    stream = SortingStream(query.program)
    stream.begin()
    (batch,) = table.to_batches()
    for wrong, told in (
        (batch.drop_columns(["ts"]), r"reads the column 'ts', which is missing"),
        (batch.set_column(1, "id", batch["id"].cast(pa.string())), "'id'"),
    ):
        with pytest.raises(EventError, match=told):
            stream.read(wrong)


def test_narrower_types_and_columns_that_the_query_does_not_read() -> None:
    """An INT will do for a LONG."""
    query = _query()
    table = table_of(query.plan, _partition(1))
    table = table.set_column(1, "id", table["id"].cast(pa.int32()))
    table = table.append_column("note", pa.array(["x"] * len(table)))
    assert list(table.schema.names) == ["type", "id", "ts", "note"]
    found = texts_of(_read(SortingStream(query.program), iter(table.to_batches())))
    assert found == texts_of(query.match_table(table).to_batches())
    assert len(found) == 3
