"""The conformance cases by each way to run a query on Spark."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cases_io import Case
from chosen_cases import some_cases
from engines import interpreted
from reference import difference
from spark_routes import ROUTES, answers, table

import celc
from celc import Matcher

_QUERIES = 30
_ROUTES = list(ROUTES)


@cache
def _matcher(query: str) -> Matcher:
    with interpreted():
        return celc.compile(query, order_by="ts", tiebreak="row")


_frames: dict[str, Any] = {}


def _frame(spark: Any, case: Case) -> Any:
    key = f"{case.name} {case.query}"
    if key not in _frames:
        _frames[key] = spark.createDataFrame(table(case.events))
    return _frames[key]


@pytest.mark.parametrize("route", _ROUTES)
def test_thirty_queries(route: str, spark: Any) -> None:
    cases = some_cases(_QUERIES, start=_ROUTES.index(route))
    assert len(cases) == _QUERIES
    found = answers(route, [(_matcher(case.query), _frame(spark, case)) for case in cases])
    problems = [
        f"{case.name}: {wrong}"
        for case, answer in zip(cases, found, strict=True)
        if (wrong := difference(answer, case.expected))
    ]
    assert not problems, "\n".join(problems)
