"""Declarative Pipelines of Spark: queries in query functions, and a pipeline that runs.

A query function must not ask Spark for the schema of its input, so a query takes the columns that
it declares.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from celc_runtime.spark.input import declared
from engines import interpreted, only_query
from places import ROOT

import celc

_ONLY = (
    "CREATE STREAM S { EVENT A { k: LONG, v: DOUBLE, s: STRING, ts: TIMESTAMP } } "
    "SELECT a.v AS v, a.s AS s, a.ts AS at FROM S WHERE A AS a ; A FILTER a[v > 0] "
    "PARTITION BY [k] WITHIN 10 MINUTES [ts]"
)
_TEXT = "query 'query' declares 's' as STRING, but the column's type is int: cast the column to str"


@pytest.fixture
def in_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """celc believes that it is called in a query function, so it takes the declared columns. Spark
    itself knows nothing of it, and still answers every question."""
    monkeypatch.setattr(declared, "in_query_function", lambda _: True)


def _query() -> Any:
    with interpreted():
        return only_query(celc.compile(_ONLY, order_by="ts"))


@pytest.mark.usefixtures("in_function")
def test_columns_are_those_that_are_declared(spark: Any) -> None:
    from pyspark.sql import functions

    noon = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
    rows = [(1, 2.0, "x", noon, "A"), (1, 3.0, "y", noon + dt.timedelta(minutes=5), "B")]
    names = "k int, v float, s string, ts timestamp, type string"
    events = spark.createDataFrame(
        [*rows, (1, 4.0, "z", noon + dt.timedelta(minutes=9), "A")], names
    )
    for frame in (events, events.withColumn("more", functions.lit(1))):
        (found,) = _query().match(frame).collect()
        assert (found.k, found.v, found.s) == (1, 2.0, "x")
    # Without a column of types, each row is an A.
    assert _query().match(events.drop("type")).count() == 3
    # A time without a zone is in UTC, whatever the zone of the session is.
    naive = events.withColumn("ts", functions.expr("TIMESTAMP_NTZ '2026-07-01 12:00:00'"))
    naive = naive.withColumn("ts", functions.expr("ts + make_dt_interval(0, 0, 0, v)"))
    first, *_ = _query().match(naive).collect()
    assert first.at.astimezone(dt.UTC) == noon + dt.timedelta(seconds=2)


@pytest.mark.usefixtures("in_function")
def test_another_type_ends_the_run_in_words(spark: Any) -> None:
    events = spark.sql("SELECT 1L AS k, 1D AS v, 1 AS s, current_timestamp() AS ts")
    with pytest.raises(Exception, match=re.escape(_TEXT)):
        _query().match(events).collect()


@pytest.mark.long
def test_the_example_runs(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "pipelines", tmp_path, dirs_exist_ok=True)
    spec = tmp_path / "spark-pipeline.yml"
    text = spec.read_text(encoding="utf-8")
    spec.write_text(text.replace("/tmp/celc-pipeline", f"{tmp_path}/storage"), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
    environment["PYSPARK_PYTHON"] = sys.executable
    done = subprocess.run(
        [Path(sys.executable).with_name("spark-pipelines"), "run", "--spec", spec],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tables = tmp_path / "spark-warehouse"
    for table in ("dry_heat", "dry_heat_as_it_comes"):
        found = pq.read_table(tables / table).to_pylist()
        assert sorted(row["sensor"] for row in found) == ["roof", "wall"]
