"""Conformance cases on DataFrames whose rows lie in other ways than a small table's.

However rows are spread over files and Spark partitions, `match` finds the same matches, positions
among them. What reads rows as they lie finds the same in sorted rows, and refuses others.
"""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases_io import Case, load_cases
from cases_on_spark import matcher, problems_of
from conftest import ON_SPARK
from engines import only_query
from spark_routes import Way, answers, has_table_functions, table, told

pytestmark = [pytest.mark.long] if ON_SPARK == "connect" else []

_ROWS_OF_A_FILE = 3
_SPARK_PARTITIONS = 5

_CASES = (
    ("01", "SELECT * FROM S WHERE A ; B ; C"),
    ("02", "SELECT * FROM S WHERE A+ ; B+ ; C"),
    ("06", "SELECT MAX * FROM S WHERE (A+ ; B)+ ; C"),
    ("08", "SELECT NXT * FROM S WHERE A ; B ; C WITHIN 3 EVENTS"),
    ("09", "SELECT LAST * FROM S WHERE A+ ; B PARTITION BY id"),
    ("14", "SELECT * FROM S WHERE A ; !B ; C WITHIN 4 EVENTS"),
)


def _is(case: Case, query: str) -> bool:
    return case.query.endswith(f"\n{query}")


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    found = [case for stem, query in _CASES for case in load_cases(stem) if _is(case, query)]
    assert len({case.query for case in found}) == len(_CASES)
    return found


# --- how rows lie ---------------------------------------------------------------------------------


def _at_random(rows: int, seed: int) -> list[int]:
    return random.Random(seed).sample(range(rows), rows)


def _shuffled(spark: Any, rows: pa.Table, _: Path) -> Any:
    rows = rows.take(pa.array(_at_random(len(rows), len(rows)), pa.int64()))
    return spark.createDataFrame(rows).repartition(_SPARK_PARTITIONS)


def _nearly_sorted(spark: Any, rows: pa.Table, _: Path) -> Any:
    order = list(range(len(rows)))
    for place in range(0, len(rows) - 1, 7):
        order[place], order[place + 1] = order[place + 1], order[place]
    return spark.createDataFrame(rows.take(pa.array(order, pa.int64()))).coalesce(1)


def _beside_empty_partitions(spark: Any, rows: pa.Table, _: Path) -> Any:
    from pyspark.sql import functions

    return spark.createDataFrame(rows).repartition(_SPARK_PARTITIONS, functions.lit(0))


def _in_small_files(spark: Any, rows: pa.Table, folder: Path) -> Any:
    for number in itertools.count():
        made = folder / str(number)
        if not made.exists():
            break
    made.mkdir(parents=True)
    order = _at_random(len(rows), number)
    for start in range(0, len(rows), _ROWS_OF_A_FILE):
        part = rows.take(pa.array(order[start : start + _ROWS_OF_A_FILE]))
        pq.write_table(part, made / f"{start}.parquet")
    return spark.read.parquet(str(made))


_LAYOUTS: dict[str, Callable[[Any, pa.Table, Path], Any]] = {
    "shuffled": _shuffled,
    "nearly sorted": _nearly_sorted,
    "beside empty partitions": _beside_empty_partitions,
    "in small files": _in_small_files,
}


def _sort_columns(plan: Any) -> list[str]:
    return [*plan.source.partition_by, "ts", "row"]


def _presorted(query: Any, frame: Any) -> Any:
    """The rows spread and sorted by Spark, and read as they lie."""
    keys, order = query.plan.source.partition_by, _sort_columns(query.plan)
    spread = frame.repartition(_SPARK_PARTITIONS, *keys) if keys else frame.coalesce(1)
    return query.match(spread.sortWithinPartitions(*order), presorted=True)


def _sorted_in_sql(query: Any, frame: Any) -> Any:
    """The same in SQL, with no partitions in the call."""
    keys, name = query.plan.source.partition_by, f"q{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(f"{name}_events")
    query.register(frame.sparkSession, name=name)
    spread = f"SELECT * FROM {name}_events DISTRIBUTE BY {', '.join(keys)}"
    table = f"TABLE({spread} SORT BY {', '.join(_sort_columns(query.plan))})"
    return frame.sparkSession.sql(f"SELECT * FROM {name}({table})")


# --- answers --------------------------------------------------------------------------------------


def _problems(cases: list[Case], way: Way, layout: str, spark: Any, folder: Path) -> list[str]:
    return problems_of(cases, way, lambda rows: _LAYOUTS[layout](spark, rows, folder))


@pytest.mark.each(4)
@pytest.mark.parametrize("layout", _LAYOUTS)
def test_partitions(layout: str, cases: list[Case], spark: Any, tmp_path: Path) -> None:
    """The cases of a query as partitions of one table. `test_whole_streams` has small files."""
    problems = _problems(cases, "match", layout, spark, tmp_path)
    assert not problems, "\n".join(problems)


@pytest.mark.each(2)
@pytest.mark.parametrize("layout", ["in small files", "shuffled"])
def test_whole_streams(layout: str, cases: list[Case], spark: Any, tmp_path: Path) -> None:
    """Each case alone, of queries without PARTITION BY, in one task."""
    alone = [case for case in cases if "PARTITION" not in case.query][::4]
    made = [_LAYOUTS[layout](spark, table(case.events), tmp_path) for case in alone]
    queries = [only_query(matcher(case.query)) for case in alone]
    assert len(queries) == 5
    found = answers("match", list(zip(queries, made, strict=True)))
    problems = [
        f"{case.name}: {wrong}"
        for case, query, rows in zip(alone, queries, found, strict=True)
        if (wrong := told(query, table(case.events), rows, case.expected))
    ]
    assert not problems, "\n".join(problems)


def test_sorted_rows_are_read_as_they_lie(cases: list[Case], spark: Any, tmp_path: Path) -> None:
    ways: list[Way] = [_presorted, *([_sorted_in_sql] if has_table_functions() else [])]
    for way in ways:
        problems = _problems(cases, way, "shuffled", spark, tmp_path)
        assert not problems, "\n".join(problems)


def test_nearly_sorted_rows_are_not_taken_for_sorted(
    cases: list[Case], spark: Any, tmp_path: Path
) -> None:
    case = next(case for case in cases if len(case.events) > 5)
    frame = _nearly_sorted(spark, table(case.events), tmp_path)
    query = only_query(matcher(case.query))
    with pytest.raises(Exception, match="the events are not in the order of ts, row"):
        query.match(frame, presorted=True).collect()


@pytest.mark.parametrize("rows", [0, 1])
def test_hardly_any_rows(rows: int, spark: Any, tmp_path: Path) -> None:
    """One row that is a whole match, and none."""
    events = [{"type": "A", "id": 1, "ts": 1}]
    case = next(
        case for case in load_cases("01") if case.query.endswith("\nSELECT * FROM S WHERE A")
    )
    frames = [
        layout(spark, table(events).slice(0, rows), tmp_path)
        for layout in _LAYOUTS.values()
        if rows or layout is not _in_small_files
    ]
    found = answers("match", [(matcher(case.query), frame) for frame in frames])
    assert [len(answer) for answer in found] == [rows] * len(frames)


@pytest.mark.long
@pytest.mark.parametrize("layout", _LAYOUTS)
def test_all_cases(layout: str, spark: Any, tmp_path: Path) -> None:
    cases = [case for case in load_cases() if case.order_by in (None, ("ts",))]
    problems = _problems(cases, "match", layout, spark, tmp_path)
    assert not problems, "\n".join(problems)
