"""Runs queries on Spark by given routes and prints what came out; a process of its own.

Reads a JSON list of {"query", "events"} from standard input and writes for each route the list of
answers in the form of the conformance cases' `expected`. All queries go into one Spark job, because
a job costs more than such a query. The workers get a Python that cannot import celc or its runtime.

    python spark_routes.py match arrow pandas < queries.json
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import black
import pyarrow as pa

import celc

_TYPES = {"id": pa.int32(), "value": pa.float64(), "ts": pa.int64()}


def worker_python(folder: Path) -> Path:
    """A Python that sees the installed packages, but none that an editable install adds."""
    path = folder / "python-without-celc"
    packages = sysconfig.get_paths()["purelib"]
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" -S "$@"\n')
    path.chmod(0o755)
    return path


def table(events: list[dict[str, Any]]) -> pa.Table:
    """A case's events with a row number for a tiebreak."""
    names = ["type", "id", "value", "name", "ts"]
    columns = {
        name: pa.array([event.get(name) for event in events], _TYPES.get(name, pa.string()))
        for name in names
    }
    return pa.table({**columns, "row": pa.array(range(len(events)), pa.int64())})


def _by_match(matcher: Any, frame: Any) -> Any:
    return frame.transform(matcher.match)


def _by_arrow(matcher: Any, frame: Any) -> Any:
    query = next(iter(matcher.queries.values()))
    keys = [] if query.plan.interleaves else list(query.plan.partition_by)
    ordered = frame.coalesce(1).sortWithinPartitions(*keys, "ts", "row")
    return ordered.mapInArrow(matcher.match_arrow, matcher.OUTPUT_DDL)


def _by_pandas(matcher: Any, frame: Any) -> Any:
    query = next(iter(matcher.queries.values()))
    keys = [] if query.plan.interleaves else list(query.plan.partition_by)
    return frame.groupBy(*keys).applyInPandas(matcher.match_pandas, matcher.OUTPUT_DDL)


ROUTES: dict[str, Callable[[Any, Any], Any]] = {
    "match": _by_match,
    "arrow": _by_arrow,
    "pandas": _by_pandas,
}


def answers(
    routes: list[str], queries: list[dict[str, Any]]
) -> dict[str, list[list[dict[str, Any]]]]:
    """By route the answer of each query, all queries by one Spark job."""
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.ansi.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    matchers = [celc.compile(item["query"], order_by="ts", tiebreak="row") for item in queries]
    frames = [spark.createDataFrame(table(item["events"])) for item in queries]
    found = {route: _by_one_job(ROUTES[route], matchers, frames) for route in routes}
    spark.stop()
    return found


def _by_one_job(
    route: Callable[[Any, Any], Any], matchers: list[Any], frames: list[Any]
) -> list[list[dict[str, Any]]]:
    from pyspark.sql import functions

    parts = [
        route(matcher, frame).select(
            functions.lit(number).alias("number"),
            functions.to_json(functions.struct("*"), {"ignoreNullFields": "false"}).alias("json"),
        )
        for number, (matcher, frame) in enumerate(zip(matchers, frames, strict=True))
    ]
    while len(parts) > 1:
        parts = [
            parts[at].unionAll(parts[at + 1]) if at + 1 < len(parts) else parts[at]
            for at in range(0, len(parts), 2)
        ]
    found: list[list[dict[str, Any]]] = [[] for _ in matchers]
    for row in parts[0].collect():
        found[row.number].append(_expected_form(matchers[row.number], json.loads(row.json)))
    return found


def _expected_form(matcher: Any, row: dict[str, Any]) -> dict[str, Any]:
    plan = next(iter(matcher.queries.values())).plan
    return {
        "partition": {name: row[name] for name in plan.partition_by},
        "start": row["start_pos"],
        "end": row["end_pos"],
        "labels": {label.name: [e["pos"] for e in row[label.name]] for label in plan.labels},
        "values": {item.name: row[item.name] for item in plan.expressions},
    }


def main() -> None:
    """See the module."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYSPARK_PYTHON"] = str(worker_python(Path(folder)))
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ["CELC_CACHE_DIR"] = folder
        # To lay modules out takes most of the time to compile them, and matters to people alone.
        black.format_str = lambda text, mode: text
        json.dump(answers(sys.argv[1:], json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
