"""Durations on Spark: as attributes, keys, results and conditions, on every route."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime import EventError, split_late
from conftest import long_over_connect
from engines import interpreted, only_query
from stream_routes import SETTINGS, files, run, settings

import celc

JOBS = """CREATE STREAM Jobs {
  EVENT Started { ts: TIMESTAMP, day: DATE, took: INTERVAL, n: INT },
  EVENT Ended { ts: TIMESTAMP, day: DATE, took: INTERVAL, n: INT }
}
"""
LATE = """QUERY late_jobs:
SELECT x[took], y.ts - x.ts AS passed, SUM(y.took) AS total, x.ts + x.took AS due,
  2 * x.took AS twice
FROM Jobs
WHERE (Started AS x ; Ended AS y) FILTER y.ts - x.ts > x.took AND y.took >= 1 SECOND
PARTITION BY took WITHIN 10 MINUTES [ts]"""

_NOON = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
_SECONDS = (None, 1, 30, -5, 1)


def query_of_jobs(text: str, **options: Any) -> Any:
    """A query over `JOBS`, run as plain Python."""
    with interpreted():
        return only_query(celc.compile(JOBS + text, order_by="ts", positions=True, **options))


def jobs(rows: int = 120) -> pa.Table:
    """Events of `JOBS`, seven seconds apart."""
    micros = [_SECONDS[n * n % 7 % 5] for n in range(rows)]
    took = pa.array([None if s is None else s * 1_000_000 for s in micros], pa.int64())
    times = [_NOON + dt.timedelta(seconds=7 * n) for n in range(rows)]
    return pa.table(
        {
            "type": [("Started", "Ended")[n * n % 5 % 2] for n in range(rows)],
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "day": pa.array([time.date() for time in times], pa.date32()),
            "took": took.cast(pa.duration("us")),
            "n": pa.array(range(rows), pa.int32()),
        }
    )


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_every_batch_route(spark: Any) -> None:
    query, table = query_of_jobs(LATE), jobs()
    wanted = query.match_table(table)
    assert len(wanted) > 20
    events = spark.createDataFrame(table)
    assert dict(events.dtypes)["took"] == "interval day to second"
    assert _rows(events.transform(query.match).toArrow()) == _rows(wanted)
    by_pandas = events.groupBy("took").applyInPandas(query.match_pandas, query.output_ddl)
    assert _rows(by_pandas.toArrow()) == _rows(wanted)
    events.createOrReplaceTempView("jobs")
    query.register(spark)
    called = spark.sql(
        "SELECT * FROM late_jobs(TABLE(jobs) PARTITION BY (took) ORDER BY (ts))"
    ).toArrow()
    assert _rows(called) == _rows(wanted)
    frame = query.match_pandas(table.to_pandas())
    assert _rows(pa.Table.from_pandas(frame, preserve_index=False).select(["total", "twice"])) == (
        _rows(wanted.select(["total", "twice"]))
    )


_CONDITIONS = (
    "x.took > 500 MILLISECONDS",
    "x.took IN (1 SECOND, 30 SECONDS) OR x.took < -(2 SECONDS)",
    "x.took NOT IN (1 SECOND, 2 SECONDS)",
    "NOT (x.took BETWEEN 0 SECONDS AND 1 SECOND)",
    "x.took IS NULL",
    "x.took != 1 SECOND AND x.ts - x.took > TIMESTAMP '2026-07-01 12:05:00'",
    "x.took * 3 > 1 MINUTE OR x.day + 12 HOURS > x.ts",
    "x.took <= 106751991 DAYS 14454775.807 MILLISECONDS",
)


@long_over_connect
def test_rows_are_left_out_by_their_durations(spark: Any) -> None:
    """Spark decides every condition but the one with arithmetic, and the answers are the same."""
    table = jobs(60)
    events = spark.createDataFrame(table)
    asked, found, wanted = 0, {}, {}
    for condition in _CONDITIONS:
        query = query_of_jobs(
            f"SELECT x[n] FROM Jobs WHERE Started AS x FILTER {condition} WITHIN 5 SECONDS [ts]"
        ).with_options(positions=False)
        asked += bool(query.plan.source.relevant[0].ways)
        found[condition] = events.transform(query.match)
        wanted[condition] = _rows(query.match_table(table).select(["x"]))
    assert asked == len(_CONDITIONS) - 1
    assert _together(found, "x") == wanted


def _together(frames: Mapping[str, Any], column: str) -> dict[str, list[str]]:
    """A column of several DataFrames, found in one job."""
    tagged = [
        frame.selectExpr(f"{number} AS number", column)
        for number, frame in enumerate(frames.values())
    ]
    rows = reduce(lambda one, other: one.unionAll(other), tagged).toArrow()
    return {
        name: _rows(rows.filter(pa.compute.equal(rows["number"], number)).select([column]))
        for number, name in enumerate(frames)
    }


_FIELDS = {"DAY": 86_400, "HOUR TO MINUTE": 60, "MINUTE TO SECOND": 1, "SECOND": 1}


@long_over_connect
def test_durations_of_other_fields(spark: Any) -> None:
    """Whatever Spark calls a duration of days to seconds, it is an INTERVAL."""
    frames, wanted = {}, {}
    for fields, unit in _FIELDS.items():
        query = query_of_jobs(
            f"SELECT x[n] FROM Jobs WHERE Started AS x FILTER x.took >= {unit} SECONDS "
            "PARTITION BY took WITHIN 5 SECONDS [ts]"
        ).with_options(positions=False)
        rows = ", ".join(
            f"('Started', TIMESTAMP '2026-07-01 12:00:0{n}', DATE '2026-07-01', "
            f"CAST(INTERVAL '{n * unit}' SECOND AS INTERVAL {fields}), {n})"
            for n in range(3)
        )
        events = spark.sql(f"SELECT * FROM VALUES {rows} AS t(type, ts, day, took, n)")
        assert dict(events.dtypes)["took"] == f"interval {fields.lower()}"
        found = events.transform(query.match)
        assert dict(found.dtypes)["took"] == "interval day to second"
        frames[fields] = found
        seconds = [dt.timedelta(seconds=n * unit) for n in (1, 2)]
        wanted[fields] = sorted(repr({"took": one}) for one in seconds)
    assert _together(frames, "took") == wanted


def test_numbers_are_no_durations(spark: Any) -> None:
    events = spark.createDataFrame(jobs(3)).selectExpr("* EXCEPT (took)", "1L AS took")
    with pytest.raises(EventError, match=r"timestamp_micros\(n\) - timestamp_micros\(0\)"):
        query_of_jobs(LATE).match(events)
    mended = events.selectExpr(
        "* EXCEPT (took)", "timestamp_micros(took) - timestamp_micros(0) AS took"
    )
    assert query_of_jobs(LATE).match(mended).toArrow().num_rows == 0


@pytest.mark.long
def test_streams_keep_durations(spark: Any, tmp_path: Path) -> None:
    """In the state, as a key, in matches and in late events."""
    with settings(spark, SETTINGS):
        _stream_keeps_durations(spark, tmp_path)


def _stream_keeps_durations(spark: Any, folder: Path) -> None:
    query, table = query_of_jobs(LATE), jobs(80)
    last = table.slice(79).set_column(
        1, "ts", pa.array([_NOON + dt.timedelta(days=9)], pa.timestamp("us", "UTC"))
    )
    pieces = [table.slice(0, 40), pa.concat_tables([table.slice(40), last]), table.slice(3, 2)]
    number = table.schema.get_field_index("took")
    (folder / "in").mkdir()
    for name, piece in enumerate(pieces):
        whole = piece.set_column(number, "took", piece["took"].cast(pa.int64()))
        file = folder / "in" / f"{name}.parquet"
        pq.write_table(whole, file)
        # Spark takes files by their times, which are equal where they are written at once.
        os.utime(file, (1_700_000_000 + name,) * 2)
    schema = "type STRING, ts TIMESTAMP, day DATE, took INTERVAL DAY TO SECOND, n INT"
    stream = query.match_stream(
        files(spark, folder / "in", schema), watermark="1 second", late="side"
    )
    run(stream, folder)
    found, late = split_late(spark.read.schema(stream.schema).parquet(str(folder / "out")))
    wanted = query.match_table(pa.concat_tables([table, last]))
    assert _rows(found.toArrow()) == _rows(wanted)
    assert [row["took"] for row in late.orderBy("ts").collect()] == (
        table["took"].slice(3, 2).to_pylist()
    )
