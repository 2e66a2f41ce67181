"""The conformance cases by each way to run a query on Spark."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases_io import Case, load_cases
from cases_on_spark import matcher, problems_of
from celc_runtime import EventWarning
from chosen_cases import some_cases
from conftest import ON_SPARK, long_over_connect
from engines import only_query
from spark_routes import ROUTES, answers, has_table_functions, table, told

import celc

_QUERIES = 38
_ROUTES = list(ROUTES)

_frames: dict[str, Any] = {}


def _frame(spark: Any, case: Case) -> Any:
    key = f"{case.name} {case.query}"
    if key not in _frames:
        _frames[key] = spark.createDataFrame(table(case.events))
    return _frames[key]


def _routes(other: str = "match") -> list[Any]:
    """`match` and another route; the rest is marked `long`, and over Connect the other one too.

    Each route has a plan of its own, which is the same for all queries: thirty of them take it.
    """
    suite = ("match",) if ON_SPARK == "connect" else ("match", other)
    return [
        route if route in suite else pytest.param(route, marks=pytest.mark.long)
        for route in _ROUTES
    ]


@pytest.mark.parametrize(
    "route",
    [
        pytest.param(
            route,
            marks=[pytest.mark.long] if ON_SPARK == "connect" and "positions" in route else [],
        )
        for route in _ROUTES
    ],
)
def test_thirty_queries(route: str, spark: Any) -> None:
    """By `match`; by the others, and over Connect, each route has a share of them: it is the same
    plan. `test_all_cases` is the long run of all."""
    place = _ROUTES.index(route)
    cases = some_cases(_QUERIES, start=place)
    assert len(cases) == _QUERIES
    if ON_SPARK == "connect" or route != "match":
        cases = cases[place :: len(_ROUTES)]
    if "sql" in route and not has_table_functions():
        with pytest.raises(RuntimeError, match=r"needs PySpark 4\.1 or newer"):
            matcher(cases[0].query).register(spark, name="too_early")
        return
    queries = [only_query(matcher(case.query, case.ties)) for case in cases]
    frames = [_frame(spark, case) for case in cases]
    found = answers(route, list(zip(queries, frames, strict=True)))
    problems = [
        f"{case.name}: {wrong}"
        for case, query, rows in zip(cases, queries, found, strict=True)
        if (wrong := told(query, table(case.events), rows, case.expected))
    ]
    assert not problems, "\n".join(problems)


@long_over_connect
@pytest.mark.parametrize("route", _routes("sql"))
def test_simultaneous_events(route: str, spark: Any) -> None:
    """A few queries by each route, with a tiebreak for the positions inside an instant. Events that
    last are simultaneous where they end at one time."""
    if "sql" in route and not has_table_functions():
        return
    cases = [case for case in load_cases("27") if case.order_by == ("ts",)][::10]
    assert len(cases) >= 5
    for stem in ("41", "49", "53"):
        cases += load_cases(stem)[_ROUTES.index(route) % 6 :: 12]
    problems = problems_of(cases, route, spark.createDataFrame)
    assert not problems, "\n".join(problems)


@long_over_connect
@pytest.mark.parametrize("route", _routes("pandas"))
def test_absences_at_the_end(route: str, spark: Any) -> None:
    """A few queries by each route, of those whose matches are decided later than they end."""
    if "sql" in route and not has_table_functions():
        return
    cases = [case for case in load_cases("26") if case.order_by == ("ts",)]
    cases = cases[_ROUTES.index(route) :: 10]
    assert len(cases) >= 6
    cases += load_cases("52")[_ROUTES.index(route) :: 7]
    problems = problems_of(cases, route, spark.createDataFrame)
    assert not problems, "\n".join(problems)


@long_over_connect
@pytest.mark.parametrize("route", _routes())
def test_aggregates_decimals_quantifiers_joined_texts_and_states(route: str, spark: Any) -> None:
    """A few queries by each route, of those that call what the file declares, those about DECIMALs,
    those with SOME and EVERY, those that join texts of several events, and those whose states are
    made as they are met."""
    if "sql" in route and not has_table_functions():
        return
    cases: list[Case] = []
    for stem, step in (("34", 8), ("37", 8), ("43", 16), ("48", 6), ("51", 2)):
        some = load_cases(stem)[_ROUTES.index(route) % step :: step]
        assert some
        cases += some
    problems = problems_of(cases, route, spark.createDataFrame)
    assert not problems, "\n".join(problems)


# --- all cases of a query as partitions -----------------------------------------------------------

# Queries without PARTITION BY, whose cases are parts of one table all the same: of each way to
# decide conditions across labels.
_IN_PARTS = (("15", 13), ("16", 7), ("17", 1), ("19", 2))


@long_over_connect
def test_cases_of_some_queries(spark: Any) -> None:
    """Of those with partitions, and of some that get them from their cases."""
    queries = [query for stem in ("09", "10") for query in _queries(stem) if "PARTITION" in query]
    assert len(queries) == 8
    queries += [_queries(stem)[place] for stem, place in _IN_PARTS]
    cases = [case for case in load_cases() if case.query in queries and not case.options]
    assert len(cases) == 4 * len(queries)
    problems = problems_of(cases, "match", spark.createDataFrame)
    assert not problems, "\n".join(problems)


@pytest.mark.long
@pytest.mark.parametrize("route", _ROUTES)
def test_all_cases(route: str, spark: Any) -> None:
    # Another order than that of `ts` is not that of these routes, and neither are times that are no
    # numbers: `test_limits_on_spark` has those.
    cases = [case for case in load_cases() if case.order_by in (None, ("ts",))]
    cases = [case for case in cases if not case.name.startswith("46")]
    assert len(cases) > 800
    problems = problems_of(cases, route, spark.createDataFrame)
    assert not problems, "\n".join(problems)


def _queries(stem: str) -> list[str]:
    """The queries of a file of cases."""
    return list(dict.fromkeys(case.query for case in load_cases(stem)))


def test_time_ranges_of_files(spark: Any, tmp_path: Path) -> None:
    """Cut by the statistics of files, or over Connect by a sample: the same matches."""
    rng = np.random.default_rng(8)
    types = rng.choice(["A", "B", "C"], 600)
    events = pa.table({"type": types, "ts": np.arange(600)})
    pq.write_table(events, tmp_path / "events.parquet", row_group_size=50)
    text = (
        "CREATE STREAM S { EVENT A { ts: LONG }, EVENT B { ts: LONG } } "
        "SELECT * FROM S WHERE A ; B WITHIN 3 [ts]"
    )
    query = only_query(celc.compile(text, order_by="ts", positions=True))
    frame = spark.read.parquet(str(tmp_path))
    told = query.explain_plan(frame, ranges=3)
    assert "plan: 3 time ranges" in told
    if ON_SPARK == "connect":
        assert "cuts: by a sample, because over Spark Connect no statistics of files" in told
    else:
        assert "cuts: by the statistics of the files' row groups" in told
    found = query.match(frame, ranges=3).toArrow().to_pylist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EventWarning)  # of C's
        wanted = query.match_table(events).to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    assert len(wanted) > 100
