"""`match_id` on Spark: the bytes of one machine, by every route, with and without positions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cases_io import Case, load_cases
from cases_on_spark import query_of
from celc_runtime import finish
from chosen_cases import some_cases
from engines import interpreted, only_query
from pyspark.sql import functions
from shares import share
from spark_routes import ROUTES, has_table_functions, table
from stream_routes import (
    DECLARATIONS,
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

import celc

_CASES = 12
"""Queries in one job."""

_SOME = 5
"""Each n-th of some queries is what the suite runs; `tests/test_match_ids.py` has more, on one
machine."""


def _wanted(query: Any, case: Case) -> list[str]:
    return sorted(
        one.hex() for one in query.match_table(table(case.events))["match_id"].to_pylist()
    )


def _problems(route: str, cases: Sequence[Case], spark: Any) -> Iterator[str]:
    """What differs from the ids of one machine; half of the queries have no positions, so that
    their rows are filtered before Python."""
    asked = [
        query_of(case, route).with_options(match_id=True, positions=bool(number % 2))
        for number, case in enumerate(cases)
    ]
    found: dict[int, list[str]] = {number: [] for number in range(len(cases))}
    all_ids = None
    for number, (one, case) in enumerate(zip(asked, cases, strict=True)):
        rows = ROUTES[route](one, spark.createDataFrame(table(case.events)))
        assert rows.columns == one.output_schema.names
        ids = rows.select(functions.lit(number).alias("number"), functions.hex("match_id"))
        all_ids = ids if all_ids is None else all_ids.unionAll(ids)
    assert all_ids is not None
    for number, id in all_ids.collect():
        found[number].append(id.lower())
    for number, (one, case) in enumerate(zip(asked, cases, strict=True)):
        if sorted(found[number]) != _wanted(one, case):
            yield f"{case.name}: {sorted(found[number])} and not {_wanted(one, case)}"


@pytest.mark.parametrize(
    "route", share([name for name in ROUTES if name != "match with positions"], 5)
)
def test_some_queries(route: str, spark: Any) -> None:
    if "sql" in route and not has_table_functions():
        return
    place = list(ROUTES).index(route)
    cases = some_cases(_CASES, start=place)[place::_SOME]
    assert len(cases) >= 5
    problems = list(_problems(route, cases, spark))
    assert not problems, "\n".join(problems)


@pytest.mark.long
def test_all_cases(spark: Any) -> None:
    """Rows that are matches have ids by `match`."""
    cases = [
        case
        for case in load_cases()
        if case.order_by in (None, ("ts",))
        and not re.search("SELECT (TOTAL|COLLAPSED)", case.query)
    ]
    assert len(cases) > 600
    problems: list[str] = []
    for at in range(0, len(cases), _CASES):
        problems += _problems("match", cases[at : at + _CASES], spark)
    assert not problems, "\n".join(problems)


def test_all_queries_of_a_module_have_them(spark: Any) -> None:
    """`match_all` takes no options: the module asks for them."""
    text = f"{DECLARATIONS} QUERY pair: SELECT a, b FROM S WHERE A AS a ; B AS b "
    text += "WITHIN 2 SECONDS [ts] QUERY total: SELECT TOTAL COUNT(*) AS n FROM S WHERE A"
    with interpreted():
        module = celc.compile(text, order_by="ts", match_id=True)
    rows = stream_table(events(60, keys=2))
    wanted = sorted(module.match_all_table(rows)["pair"]["match_id"].to_pylist())
    answers = module.match_all(spark.createDataFrame(rows))
    found = module.rows(answers, "pair").select("match_id").collect()
    assert sorted(bytes(row[0]) for row in found) == wanted
    assert len({*wanted}) == len(wanted) > 10
    assert "match_id" not in module.rows(answers, "total").columns


def test_rows_with_columns_for_single_events(spark: Any) -> None:
    """SELECT FLAT with ids by every route. Positions are those of a route's tiebreak."""
    text = "SELECT FLAT a, b FROM S WHERE A AS a ; FIRST (B AS b) WITHIN 2 SECONDS [ts]"
    with interpreted():
        flat = only_query(celc.compile(DECLARATIONS + text, order_by="ts", tiebreak="row"))
    rows = stream_table(events(40, keys=2))
    one = flat.with_options(match_id=True)
    names = ["match_id", *(name for name in one.output_schema.names if name[:2] in ("a_", "b_"))]
    wanted = sorted(map(str, one.match_table(rows).select(names).to_pylist()))
    assert len(wanted) > 10
    assert {"a_ts", "a_v", "b_ts", "b_v"} < {*names}
    frame = spark.createDataFrame(rows)
    for route, way in ROUTES.items():
        if "sql" not in route or has_table_functions():
            found = way(one, frame).select(names).toArrow().to_pylist()
            assert sorted(map(str, found)) == wanted, route


def test_joins_make_way(spark: Any) -> None:
    """Joins do not compute ids: the plan is the kernel's, and where joins are asked for that is
    said."""
    pair = query("SELECT a, b FROM S WHERE A AS a ; B AS b WITHIN 2 SECONDS [ts]")
    frame = spark.createDataFrame(stream_table(events(40, keys=2)))
    with_ids = pair.with_options(match_id=True, positions=False)
    with pytest.raises(ValueError, match="match_id is computed in Python"):
        with_ids.match(frame, plan="joins")
    found = sorted(bytes(row[0]) for row in with_ids.match(frame).select("match_id").collect())
    wanted = with_ids.match_table(stream_table(events(40, keys=2)))["match_id"].to_pylist()
    assert found == sorted(wanted)


def test_time_ranges_have_the_ids_of_the_whole(spark: Any) -> None:
    """Rows before a range come to Python twice, and all in any order."""
    pair = query("SELECT a, b FROM S WHERE A AS a ; B AS b WITHIN 3 SECONDS [ts]")
    rows = stream_table(events(200, keys=2))
    with_ids = pair.with_options(match_id=True)
    frame = spark.createDataFrame(rows).repartition(3)
    found = with_ids.match(frame, ranges=3).select("match_id").collect()
    wanted = with_ids.match_table(rows)["match_id"].to_pylist()
    assert sorted(bytes(row[0]) for row in found) == sorted(wanted)
    assert len({*wanted}) == len(wanted) > 50


@pytest.mark.long
def test_a_stream_that_starts_anew_goes_on_with_the_same_ids(spark: Any, tmp_path: Path) -> None:
    """A query (with a column for a single event's attribute) that is compiled again goes on from
    the state, and `finish` ends it."""
    text = """QUERY keyed: SELECT FLAT x[v], COUNT(y) AS n FROM S WHERE (A AS x ; (B AS y)+)
        FILTER x.v > 40 PARTITION BY id WITHIN 4 SECONDS [ts]"""
    rows = events(90, keys=3)
    checkpoint = str(tmp_path / "checkpoint")
    first = 0
    with settings(spark, SETTINGS):
        for part in parts(rows, 2):
            with interpreted():
                made = only_query(celc.compile(DECLARATIONS + text, order_by="ts", tiebreak="row"))
            keyed = made.with_options(match_id=True, positions=False)
            write_files(tmp_path / "in", [stream_table(one) for one in parts(part, 2)], first)
            first += 2
            stream = keyed.match_stream(files(spark, tmp_path / "in"), watermark="1 second")
            run(stream, tmp_path)
        found = spark.read.parquet(str(tmp_path / "out")).select("match_id", "x_v").collect()
        rest: list[Any] = []
        assert finish(
            spark,
            checkpoint,
            stream,
            lambda batch, _: rest.extend(batch.select("match_id", "x_v").collect()),
        )
    told = sorted((bytes(row.match_id), row.x_v) for row in (*found, *rest))
    wanted = keyed.match_table(stream_table(rows)).select(["match_id", "x_v"]).to_pylist()
    assert told == sorted((row["match_id"], row["x_v"]) for row in wanted)
    assert len({*told}) == len(told) > 30
