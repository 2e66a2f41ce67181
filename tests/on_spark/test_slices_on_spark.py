"""Slices on Spark: `after` and `until` of batches and streams against the rows of one machine, and
what is read of the files."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from celc_runtime import finish
from engines import interpreted
from stream_routes import (
    SETTINGS,
    START,
    event,
    events,
    files,
    finished,
    parts,
    rows_of,
    settings,
    table,
    write_files,
)

import celc

_TEXT = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP },
  EVENT B { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP }
}
PARAMETERS rule { id: INT }
QUERY pairs:
SELECT x, y.v AS w FROM S WHERE A AS x ; B AS y PARTITION BY id WITHIN 5 SECONDS [ts]
QUERY alone:
SELECT x.v AS v FROM S WHERE A AS x ; !B FOR 3 SECONDS PARTITION BY id
QUERY longest:
SELECT LONGEST x FROM S WHERE (A AS x)+ ; B WITHIN 3 SECONDS [ts]
QUERY counted:
SELECT TOTAL COUNT(*) AS n FROM S WHERE A ; B PARTITION BY id WITHIN 5 SECONDS [ts] PER 4 SECONDS
QUERY both:
SELECT p.w AS w, q.v AS v FROM pairs, alone WHERE pairs AS p ; alone AS q
PARTITION BY id WITHIN 20 SECONDS [ts]
QUERY ruled:
SELECT x FROM S FOR EACH rule WHERE (A AS x ; B AS y) FILTER x.id = rule.id WITHIN 4 SECONDS [ts]
"""

_ROWS = events(90, keys=3)
_RULES = {"rule": {"id": [0, 2]}}
_CUTS = [START + dt.timedelta(seconds=one) for one in (11.0, 24.5, 33.0)]
_SLICES = [*zip([None, *_CUTS], [*_CUTS, None], strict=True)]


@pytest.fixture(scope="module")
def module() -> Any:
    with interpreted():
        return celc.compile(_TEXT, order_by="ts", at_end="open")


def _wanted(query: Any, after: Any, until: Any, tables: Any) -> list[str]:
    found = query.match_table(table(_ROWS), after=after, until=until, **tables)
    return sorted(map(repr, found.to_pylist()))


@pytest.mark.filterwarnings("ignore")
def test_batches(spark: Any, module: Any) -> None:
    """Every query in slices; together they are the whole, which one machine checks."""
    frame = spark.createDataFrame(table(_ROWS))
    for name, query in module.queries.items():
        tables = _RULES if name == "ruled" else {}
        after, until = _SLICES[1]
        found = query.match(frame, after=after, until=until, **tables)
        assert rows_of(found) == _wanted(query, after, until, tables), name
    after, until = _SLICES[2]
    every = module.match_all(frame, after=after, until=until, **_RULES).cache()
    for name, query in module.queries.items():
        tables = _RULES if name == "ruled" else {}
        assert rows_of(module.rows(every, name)) == _wanted(query, after, until, tables), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["alone", pytest.param("pairs", marks=pytest.mark.long)])
def test_a_batch_and_then_a_stream(spark: Any, module: Any, name: str, tmp_path: Path) -> None:
    """What a batch found until a time, and a stream after it, is the answer to all; a stream until
    a time and another one after it as well."""
    write_files(tmp_path / "in", [table(part) for part in parts(_ROWS, 3)])
    cut, next_cut = _CUTS[1:]
    with settings(spark, SETTINGS):
        query, folder = module.queries[name], tmp_path / name
        found = _wanted(query, None, cut, {})
        for bounds in ({"after": cut, "until": next_cut}, {"after": next_cut}):
            rows = _streamed(spark, query, tmp_path / "in", folder, bounds)
            assert rows == _wanted(query.with_options(at_end="closed"), *_of(bounds), {})
            found += rows
        whole = query.with_options(at_end="closed", positions=False).match_table(table(_ROWS))
        assert sorted(found) == sorted(map(repr, whole.to_pylist()))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_all_queries_as_a_stream_after_a_time(spark: Any, tmp_path: Path) -> None:
    """One operator for all of them, with the rows that `finish` finds."""
    write_files(tmp_path / "in", [table(part) for part in parts(_ROWS, 2)])
    with interpreted():
        module = celc.compile(_TEXT, order_by="ts")
    after, checkpoint = _CUTS[1], str(tmp_path / "checkpoint")
    with settings(spark, SETTINGS):
        source = files(spark, tmp_path / "in")
        stream = module.match_all_stream(source, watermark="1 second", after=after, **_RULES)
        writer = stream.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        finished(writer.option("checkpointLocation", checkpoint))
        frames = [spark.read.parquet(str(tmp_path / "out")).toArrow()]
        assert finish(spark, checkpoint, stream, lambda rows, _: frames.append(rows.toArrow()))
    for name, query in module.queries.items():
        found = [row for one in frames for row in module.rows(one, name).to_pylist()]
        closed = query.with_options(at_end="closed")
        tables = _RULES if name == "ruled" else {}
        assert sorted(map(repr, found)) == _wanted(closed, after, None, tables), name


def _of(bounds: dict[str, Any]) -> tuple[Any, Any]:
    return bounds["after"], bounds.get("until")


def _streamed(spark: Any, query: Any, source: Path, folder: Path, bounds: Any) -> list[str]:
    """The rows of a stream that ends, with what `finish` finds."""
    found: list[Any] = []
    stream = query.match_stream(files(spark, source), watermark="1 second", **bounds)

    def write(batch: Any, _: int) -> None:
        found.extend(batch.toArrow().to_pylist())

    checkpoint = str(folder / f"{len(bounds)}")
    matches = folder / f"matches{len(bounds)}"
    writer = stream.writeStream.format("parquet").option("path", str(matches))
    finished(writer.option("checkpointLocation", checkpoint))
    found += spark.read.parquet(str(matches)).toArrow().to_pylist()
    assert finish(spark, checkpoint, stream, write)
    return sorted(map(repr, found))


def test_a_day_of_thirty_reads_a_day_and_a_window(
    spark: Any, module: Any, tmp_path: Path, rows_read: Callable[[Any], int]
) -> None:
    """The condition on the order column reaches the files: their statistics leave out 28 days."""
    day = 86_400
    for number in range(30):
        rows = [event(number * day + second, "AB"[second % 2], 1) for second in range(0, day, 1801)]
        pq.write_table(table(rows), tmp_path / f"{number:02}.parquet")
    frame = spark.read.parquet(str(tmp_path))
    until = START + dt.timedelta(days=20)
    query = module.queries["pairs"]
    bounds = {"after": until - dt.timedelta(days=1), "until": until}
    of_day = len(range(0, day, 1801))
    assert of_day <= rows_read(query.match(frame, **bounds)) <= 3 * of_day
    text = query.explain_plan(frame, **bounds)
    assert "slice: events of 'ts' after 20" in text
    line = next(one for one in text.splitlines() if one.startswith("slice: "))
    assert re.search(r"so far before `after` a row asks: the window\)", line), line


@pytest.fixture
def rows_read(spark: Any) -> Callable[[Any], int]:
    """How many rows the scans of a DataFrame's plan have read."""

    def read(frame: Any) -> int:
        if not hasattr(frame, "_jdf"):
            pytest.skip("Spark Connect shows no metrics of scans")
        frame.collect()
        plan = frame._jdf.queryExecution().executedPlan()
        text = plan.toString()
        assert "FileScan" in text
        found, waiting = 0, [plan]
        while waiting:
            node = waiting.pop()
            name = node.nodeName()
            if name.startswith("AdaptiveSparkPlan"):
                waiting.append(node.executedPlan())
            elif "QueryStage" in node.getClass().getSimpleName():
                waiting.append(node.plan())
            if name.startswith("Scan parquet"):
                found += node.metrics().apply("numOutputRows").value()
            children = node.children()
            waiting += [children.apply(one) for one in range(children.size())]
        return found

    return read
