"""Functions in Python that a query calls (FUNCTION), on Spark. Workers do not have the file of the
functions, and streams are stopped and started again."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from given import copied
from pyspark.errors import PySparkException
from stream_routes import SETTINGS, files, run, settings, write_files

import celc
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options

# Read from a file that is deleted before the query is compiled: a worker has no such file either.
FUNCTIONS = """
import math

LIMIT = 1.0


def added(x):
    return math.fabs(sum(x))


def close(x, y):
    return abs(added(x) - added(y)) <= LIMIT


def beyond(x):
    return x[len(x) // 2 * 9] > 0


def picky(x):
    if len(x) > 1:
        raise ValueError("more than one")
    return True
"""
TEXT = """CREATE STREAM S {
  EVENT A { v: DOUBLE, k: STRING, ts: TIMESTAMP },
  EVENT B { v: DOUBLE, k: STRING, ts: TIMESTAMP }
}
FUNCTION close(DOUBLE[], DOUBLE[]): BOOLEAN
FUNCTION added(DOUBLE[]): DOUBLE
FUNCTION beyond(DOUBLE[]): BOOLEAN
FUNCTION picky(DOUBLE[]): BOOLEAN
SELECT added(x.v) AS sum, y.v AS y FROM S WHERE ((A AS x){1,2} ; B AS y)
FILTER """
TIMES = [dt.datetime(2024, 1, 1, 0, minute) for minute in range(5)]
EVENTS = pa.table(
    {
        "type": ["A", "A", "B", "A", "B"],
        "v": [1.0, 2.0, 3.0, None, 2.0],
        "k": ["p"] * 5,
        "ts": pa.array(TIMES, pa.timestamp("us", "UTC")),
    }
)


def _in_year(events: pa.Table, year: int) -> pa.Table:
    times = [time.replace(year=year) for time in events["ts"].to_pylist()]
    return events.set_column(3, "ts", pa.array(times, pa.timestamp("us", "UTC")))


_FAR = _in_year(EVENTS.slice(4), 2027)
ROWS = [(1.0, 2.0), (1.0, 2.0), (2.0, 2.0), (2.0, 2.0), (2.0, 3.0), (3.0, 2.0), (3.0, 3.0)]
_WITHIN = " PARTITION BY k WITHIN 1 HOUR"


def _query(condition: str) -> Any:
    source = Source("query.cel", f"{TEXT}{condition}{_WITHIN}")
    compilation = compile_source(source, Options(("ts",), functions=copied(FUNCTIONS)))
    return celc.Matcher(compilation.module_parts("test"))


def _rows(frame: Any) -> list[tuple[float, float]]:
    return sorted((row["sum"], row["y"]) for row in frame.collect())


def test_batches_and_sql(spark: Any) -> None:
    query = _query("close(x.v, y.v)")
    events = spark.createDataFrame(EVENTS)
    assert _rows(query.match(events)) == ROWS
    assert _rows(query.with_options(positions=True).match(events)) == ROWS
    events.createOrReplaceTempView("function_lists")
    query.register(spark, "close_lists", sorts=True)
    call = "TABLE(function_lists) PARTITION BY k"
    assert _rows(spark.sql(f"SELECT * FROM close_lists({call})")) == ROWS


def test_errors_in_words(spark: Any) -> None:
    events = spark.createDataFrame(EVENTS)
    for name, said in (("beyond", "IndexError"), ("picky", "ValueError: more than one")):
        with pytest.raises(PySparkException, match=f"a call of .*{name}.* ended with {said}"):
            _query(f"{name}(x.v)").match(events).collect()


@pytest.mark.long
def test_a_stream_begins_anew(spark: Any, tmp_path: Path) -> None:
    """Three runs, each with one more file. The next one goes on with the checkpoint of the last."""
    query = _query("close(x.v, y.v)")
    (tmp_path / "in").mkdir()
    with settings(spark, SETTINGS):
        for name, piece in enumerate((EVENTS.slice(0, 2), EVENTS.slice(2), _FAR)):
            pq.write_table(piece, tmp_path / "in" / f"{name}.parquet")
            run(_streamed(spark, query, tmp_path), tmp_path)
        assert _rows(spark.read.parquet(str(tmp_path / "out"))) == ROWS


def _streamed(spark: Any, query: Any, folder: Path) -> Any:
    columns = "type STRING, v DOUBLE, k STRING, ts TIMESTAMP"
    return query.match_stream(files(spark, folder / "in", columns), watermark="1 second")


@pytest.mark.long
def test_a_stream_whose_function_fails_passes_over_nothing(spark: Any, tmp_path: Path) -> None:
    """A run that fails keeps the matches that it found, and the next run fails at the same event.

    With another function the stream needs a new checkpoint, and then it finds all matches.
    """
    before = _in_year(EVENTS.slice(1, 2), 2022), _in_year(EVENTS.slice(0, 1), 2023)
    write_files(tmp_path / "in", [*before, EVENTS, _FAR])
    with settings(spark, SETTINGS):
        for _ in range(2):
            with pytest.raises(Exception, match=r"a call of .*picky.* ended with ValueError: more"):
                run(_streamed(spark, _query("picky(x.v)"), tmp_path), tmp_path)
            assert _rows(spark.read.parquet(str(tmp_path / "out"))) == [(2.0, 3.0)]
        mended = _streamed(spark, _query("close(x.v, y.v)"), tmp_path)
        with pytest.raises(Exception, match="the query's text, or the source of"):
            run(mended, tmp_path)
        (tmp_path / "anew").mkdir()
        run(mended, tmp_path / "anew")
        found = _rows(spark.read.parquet(str(tmp_path / "anew" / "out")))
        assert found == sorted([(2.0, 3.0), *ROWS])
