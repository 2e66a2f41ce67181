"""The cases of TOTAL and COLLAPSED by each way to run a query on Spark, and as a stream."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases_io import Case, load_cases
from cases_on_spark import matcher
from celc_runtime import CompiledQuery, EventError, finish
from celc_runtime.plan.strategy import Counted, United
from conftest import ON_SPARK
from engines import as_on_spark, only_query
from places import CASES
from reference import totals_difference
from shares import share
from spark_routes import ROUTES, answers, exact, has_table_functions, table, told
from stream_routes import (
    END,
    SETTINGS,
    events,
    files,
    parts,
    query,
    run,
    settings,
    write_files,
)
from stream_routes import table as stream_table

_ROUTES = list(ROUTES)


def _cases(route: str) -> list[Case]:
    """A share of the cases for each route, without those that no list of matches answers."""
    stems = "28-totals", "29-collapsed", "40-first"
    every = [case for stem in stems for case in load_cases(stem, CASES / "totals")]
    place, step = _ROUTES.index(route), 6 if ON_SPARK == "classic" else 8
    some = [case for case in every if case.run_error is None and _has_ts(case)][place::step]
    return [case for case in some if int(case.name[-3:]) > 16 or not _is_listed(case)]


def _is_listed(case: Case) -> bool:
    one = only_query(matcher(case.query, case.ties, case.at_end))
    return not isinstance(one.program.listing, Counted | United)


def _has_ts(case: Case) -> bool:
    plain = all(isinstance(event.get("ts"), int) for event in case.events)
    return plain and not {key for event in case.events for key in event} - {*_NAMES}


_NAMES = ("type", "id", "value", "name", "ts", "src", "dst", "mileage")


def _told(case: Case, one: CompiledQuery, rows: list[dict[str, Any]]) -> str:
    """What tells the rows from the case's; times are those of `ts`, which not all cases show."""
    if case.rows is None:
        return told(one, table(case.events), rows, case.expected)
    kept = {name for row in case.rows for name in row if not rows or name in rows[0]}
    expected = [{name: row[name] for name in row if name in kept} for row in case.rows]
    types = {field.name: field.type for field in one.output_schema}
    found = [{k: _plain(v, types[k]) for k, v in row.items() if k in kept} for row in rows]
    return totals_difference(found, expected)


def _plain(value: Any, type: pa.DataType) -> Any:
    if pa.types.is_decimal(type):
        return exact(value, type)
    if pa.types.is_floating(type) and value is not None:
        return float(value)
    if pa.types.is_timestamp(type) and isinstance(value, str):
        return dt.datetime.fromisoformat(value)
    return value


@pytest.mark.parametrize(
    "route",
    [
        route if route in ("match", "sql") else pytest.param(route, marks=pytest.mark.long)
        for route in _ROUTES
    ],
)
def test_cases(route: str, spark: Any) -> None:
    if route == "sql" and not has_table_functions():
        return
    cases = _cases(route)
    assert len(cases) >= 10
    queries = [only_query(matcher(case.query, case.ties, case.at_end)) for case in cases]
    frames = [
        (one, spark.createDataFrame(table(case.events)))
        for one, case in zip(queries, cases, strict=True)
    ]
    found = answers(route, frames)
    problems = [
        f"{case.name}: {told}"
        for case, one, rows in zip(cases, queries, found, strict=True)
        if (told := _told(case, one, rows))
    ]
    assert not problems, "\n".join(problems)
    assert sum(map(len, found)) >= 20


_TOTAL = """SELECT TOTAL COUNT(*) AS n, SUM(A.id) AS s, MAX(A.v) AS most
WHERE A+ ; B PARTITION BY id WITHIN 3 SECONDS [ts]"""
_COLLAPSED = "SELECT COLLAPSED A[v], B WHERE A+ ; B PARTITION BY id WITHIN 3 SECONDS [ts]"


@pytest.mark.long
@pytest.mark.parametrize("text", share([_TOTAL, _COLLAPSED, f"{_TOTAL} PER 3 SECONDS"], 3))
def test_streams_give_the_rows_of_a_table(text: str, spark: Any, tmp_path: Path) -> None:
    one, rows = query(text, tiebreak="row"), events(90, 4)
    pieces = [stream_table(part) for part in [*parts(rows, 4), [END]]]
    write_files(tmp_path / "in", pieces)
    with settings(spark, SETTINGS):
        frame = one.match_stream(files(spark, tmp_path / "in"), watermark="1 second")
        run(frame, tmp_path)
    found = spark.read.parquet(str(tmp_path / "out")).toPandas()
    wanted = as_on_spark(one).match_table(stream_table(rows)).to_pandas()
    assert len(wanted) >= 20
    # Spark's pandas shows times without their zone, which is UTC here.
    for name in {"span_start", "start_time", "end_time"} & {*wanted}:
        wanted[name] = wanted[name].dt.tz_localize(None)
    order = ["id", "span_start" if text.endswith("PER 3 SECONDS") else "end_time"]
    left = found.sort_values(order).reset_index(drop=True)[[*order, *_counted(one)]]
    right = wanted.sort_values(order).reset_index(drop=True)[[*order, *_counted(one)]]
    assert left.astype(str).equals(right.astype(str))


def _counted(one: CompiledQuery) -> list[str]:
    return ["matches", "start_time"] if one.plan.answer.collapsed else ["n", "s", "most"]


def test_streams_refuse_groups_of_many_ends(spark: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "in", [stream_table(events(3, 1))])
    frame = files(spark, tmp_path / "in")
    one = query(f"{_TOTAL} PER PARTITION", tiebreak="row")
    with settings(spark, SETTINGS), pytest.raises(EventError, match="key_ttl"):
        one.match_stream(frame, key_ttl="1 hour")


def test_ranges_of_a_stream(spark: Any) -> None:
    """Totals for each end are found in time ranges side by side; those of a part are not."""
    rnd = random.Random(3)
    rows = [
        {"type": rnd.choice("AB"), "id": 1, "value": float(n), "name": "x", "ts": n}
        for n in range(400)
    ]
    frame = spark.createDataFrame(table(rows))
    text = (
        "CREATE STREAM S { EVENT A { id: INT, value: DOUBLE, ts: LONG }, "
        "EVENT B { id: INT, value: DOUBLE, ts: LONG } }\n"
        "SELECT TOTAL COUNT(*) AS n, SUM(A.value) AS s WHERE A+ ; B WITHIN 9 [ts]"
    )
    for per, reason in (("", ""), (" PER PARTITION", "a row of totals stands for matches")):
        one = only_query(matcher(text + per))
        if reason:
            assert reason in one.explain_plan(frame, ranges=4)
        found = one.match(frame, ranges=None if reason else 4).toPandas()
        wanted = as_on_spark(one).match_table(table(rows)).to_pandas()
        order = list(wanted.columns)
        left = found.sort_values(order).reset_index(drop=True)
        assert left.astype(str).equals(wanted.sort_values(order).reset_index(drop=True).astype(str))


@pytest.mark.long
def test_totals_of_partitions_on_a_stream(spark: Any, tmp_path: Path) -> None:
    """Their rows come when the stream is ended; with emit='running' one for each end."""
    totals = query(
        "SELECT TOTAL COUNT(*) AS n, SUM(y.v) AS s FROM S WHERE A AS x ; B AS y PARTITION BY id "
        "WITHIN 10 SECONDS PER PARTITION"
    )
    given = events(40, keys=2)
    write_files(tmp_path / "in", map(stream_table, parts(given, 2)))
    with settings(spark, SETTINGS):
        found = files(spark, tmp_path / "in")
        final, running = totals.match_stream(found), totals.match_stream(found, emit="running")
        run(final, tmp_path, "final")
        assert not spark.read.schema(final.schema).parquet(str(tmp_path / "out")).count()
        rows: list[Any] = []
        finish(spark, str(tmp_path / "final"), final, lambda rest, _: rows.append(rest.toArrow()))
        wanted = totals.match_table(stream_table(given))
        assert sorted(map(repr, rows[0].to_pylist())) == sorted(map(repr, wanted.to_pylist()))
        each = tmp_path / "each"
        run(running, each)
        told = spark.read.schema(running.schema).parquet(str(each / "out")).toArrow().to_pylist()
        finish(
            spark,
            str(each / "checkpoint"),
            running,
            lambda rest, _: told.extend(rest.toArrow().to_pylist()),
        )
    last = {row["id"]: row for row in sorted(told, key=lambda row: row["end_time"])}
    rows_now = [{name: row[name] for name in ("id", "n", "s")} for row in last.values()]
    assert len(told) > len(wanted)
    assert sorted(map(repr, rows_now)) == sorted(map(repr, wanted.to_pylist()))
