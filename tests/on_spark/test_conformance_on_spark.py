"""The conformance cases by each way to run a query on Spark."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from cases_io import Case, load_cases
from chosen_cases import some_cases
from engines import interpreted
from reference import difference
from spark_routes import ROUTES, answers, has_table_functions, table

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
    if route == "sql" and not has_table_functions():
        with pytest.raises(RuntimeError, match=r"needs PySpark 4\.1 or newer"):
            _matcher(cases[0].query).register(spark, name="too_early")
        return
    found = answers(route, [(_matcher(case.query), _frame(spark, case)) for case in cases])
    problems = [
        f"{case.name}: {wrong}"
        for case, answer in zip(cases, found, strict=True)
        if (wrong := difference(answer, case.expected))
    ]
    assert not problems, "\n".join(problems)


# --- all of them ----------------------------------------------------------------------------------

_JOB = 40
"""Queries in one Spark job: more make plans that Spark takes ever longer to read."""


@pytest.mark.long
@pytest.mark.parametrize("route", _ROUTES)
def test_all_cases(route: str, spark: Any) -> None:
    """All cases of a query go through it at once, each as a partition of its own.

    Where all partitions are consumed together, each case alone.
    """
    common = [case for case in load_cases() if case.is_common]
    groups: dict[str, list[Case]] = {}
    for case in common:
        alone = "CONSUME BY ANY" in case.query
        groups.setdefault(case.name if alone else case.query, []).append(case)
    wanted = list(groups.values())
    problems, read = [], 0
    for at in range(0, len(wanted), _JOB):
        items = [_as_partitions(spark, cases) for cases in wanted[at : at + _JOB]]
        for cases, found in zip(wanted[at : at + _JOB], answers(route, items), strict=True):
            for case in cases:
                answer = _of_case(case, found)
                read += 1
                if wrong := difference(answer, case.expected):
                    problems.append(f"{case.name}: {wrong}")
    assert read == len(common) > 800
    assert not problems, "\n".join(problems)


def _as_partitions(spark: Any, cases: list[Case]) -> tuple[Any, Any]:
    """The matcher of some cases' query with one more partition attribute, and their events."""
    query = cases[0].query
    if len(cases) > 1:
        query = query.replace("ts: LONG }", "ts: LONG, part: STRING }")
        query, count = re.subn(r"PARTITION BY ", r"\g<0>part, ", query)
        if not count:
            query = re.sub(
                r"(?= WITHIN | CONSUME | LIMIT |$)", " PARTITION BY part", query, count=1
            )
    tables = [
        table(case.events).append_column("part", pa.array([case.name] * len(case.events)))
        for case in cases
    ]
    return _matcher(query), spark.createDataFrame(pa.concat_tables(tables))


def _of_case(case: Case, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers that are a case's, in the form of its `expected`."""
    own = []
    for match in found:
        partition = dict(match["partition"])
        if partition.pop("part", case.name) == case.name:
            own.append({**match, "partition": partition})
    return own
