"""LIMIT … PER on Spark: the cases by every way to run a query."""

from __future__ import annotations

from typing import Any

import celc_runtime
import pyarrow as pa
import pytest
from cases_io import Case, load_cases
from celc_runtime import CompiledQuery
from conftest import long_over_connect
from engines import interpreted, only_query, table_of
from shares import share
from spark_routes import ROUTES, answers, has_table_functions, told

import celc

_CASES = load_cases("46")


def _query(case: Case) -> CompiledQuery:
    with interpreted():
        compiled = celc.compile(
            case.query, order_by=case.order_by, tiebreak="row", at_end=case.at_end
        )
    return only_query(compiled)


def _table(query: CompiledQuery, case: Case) -> pa.Table:
    rows = [{**event, "row": row} for row, event in enumerate(case.events)]
    return table_of(query.plan, rows)


@long_over_connect
@pytest.mark.parametrize("each", [3, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("route", share([name for name in ROUTES if name != "sorting sql"], 4))
def test_cases(route: str, each: int, spark: Any) -> None:
    if "sql" in route and not has_table_functions():
        return
    # One job for each way. The suite has `match` and SQL.
    cases = _CASES[len(route) % each :: each]
    queries = [_query(case) for case in cases]
    tables = [_table(query, case) for query, case in zip(queries, cases, strict=True)]
    frames = [spark.createDataFrame(table) for table in tables]
    found = answers(route, list(zip(queries, frames, strict=True)))
    problems = [
        f"{case.name}: {wrong}"
        for case, query, table, rows in zip(cases, queries, tables, found, strict=True)
        if (wrong := told(query, table, rows, case.expected))
    ]
    assert not problems, "\n".join(problems)


def test_time_ranges_are_not_cut(spark: Any) -> None:
    """Every row depends on those before it, so that all rows of a part are one task's."""
    query = _query(_CASES[0])
    frame = spark.createDataFrame(_table(query, _CASES[0]))
    with pytest.warns(celc_runtime.PlanWarning, match="with LIMIT … PER every row depends"):
        query.match(frame, ranges=2).collect()
