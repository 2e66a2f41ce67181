"""Values and queries of many kinds in one started stream of Spark, which takes it seconds.

A batch of the same files says what has to come. Each kind has tests of its own, which compare
batches with one machine, and in the long run a stream of its own that stops and goes on.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from carried import CARRIED, VALUES, carried_query, table_of_carried
from stream_routes import SETTINGS, files, run, settings, taken_apart, together, write_files
from test_functions_in_queries import COLUMNS, EVENTS, KEYS, SAME, TEXT
from test_intervals_on_spark import LATE, jobs, query_of_jobs
from test_other_types import OTHER
from test_other_types_on_spark import DDL, QUERY, instants_of_others

import celc

_JOBS = "type STRING, ts TIMESTAMP, day DATE, took INTERVAL DAY TO SECOND, n INT"


def _kinds() -> dict[str, tuple[Any, pa.Table, str]]:
    """A query, its events, and Spark's types of them, by what the query has."""
    carried, durations = table_of_carried(), jobs(40)
    names = ", ".join(f"{name} {type}" for name, type in CARRIED.items())
    as_numbers = durations["took"].cast(pa.int64())
    return {
        "values that are carried": (
            carried_query(VALUES),
            carried,
            f"type STRING, k LONG, n INT, ts TIMESTAMP, {names}",
        ),
        "durations": (
            query_of_jobs(LATE).with_options(positions=False),
            durations.set_column(durations.schema.get_field_index("took"), "took", as_numbers),
            _JOBS,
        ),
        "functions and derived keys": (
            celc.compile(f"{TEXT}QUERY derived: {SAME}{KEYS} WITHIN 3 HOURS", order_by="ts"),
            EVENTS,
            COLUMNS,
        ),
        "a type for all others": (
            celc.compile(OTHER + "QUERY others: " + QUERY.format("A AS a ; !OTHER ; B")),
            instants_of_others(60),
            DDL,
        ),
    }


def _and_last(events: pa.Table) -> pa.Table:
    """The events, and one long after all others, so that the watermark passes these."""
    place, times = events.schema.get_field_index("ts"), events["ts"]
    far = pa.array([dt.datetime(2030, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"))
    last = events.slice(len(events) - 1).set_column(place, "ts", far)
    return pa.concat_tables([events.set_column(place, "ts", times.cast(far.type)), last])


@pytest.mark.filterwarnings("ignore::celc_runtime.PlanWarning")
def test_kinds_of_queries_in_one_stream(spark: Any, tmp_path: Path) -> None:
    streams, batches = {}, {}
    with settings(spark, SETTINGS):
        for number, (name, (query, events, ddl)) in enumerate(_kinds().items()):
            folder, rows = tmp_path / str(number), _and_last(events)
            half = len(rows) // 2
            write_files(folder, [rows.slice(0, half), rows.slice(half)])
            streams[name] = query.match_stream(files(spark, folder, ddl), watermark="1 second")
            batches[name] = query.match(spark.read.schema(ddl).parquet(str(folder)))
        stream = together(streams)
        progress = run(stream, tmp_path)
        found = taken_apart(spark.read.schema(stream.schema).parquet(str(tmp_path / "out")))
        wanted = taken_apart(together(batches))
    assert len(progress) > 2  # so that states were written, and read again
    assert found == wanted
    assert wanted.keys() == streams.keys()
