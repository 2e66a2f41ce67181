"""The conformance cases by each way to run a query on Spark."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from cases_io import Case, load_cases
from chosen_cases import some_cases
from conftest import ON_SPARK, long_over_connect
from engines import interpreted
from reference import difference
from spark_routes import ROUTES, answers, has_table_functions, table

import celc
from celc import Matcher

_QUERIES = 30
_ROUTES = list(ROUTES)


@cache
def _matcher(query: str, ties: str | None = None) -> Matcher:
    with interpreted():
        return celc.compile(query, order_by="ts", tiebreak="row", ties=ties)


_frames: dict[str, Any] = {}


def _frame(spark: Any, case: Case) -> Any:
    key = f"{case.name} {case.query}"
    if key not in _frames:
        _frames[key] = spark.createDataFrame(table(case.events))
    return _frames[key]


@pytest.mark.parametrize("route", _ROUTES)
def test_thirty_queries(route: str, spark: Any) -> None:
    """Over Connect each route has a share of them: it is the same plan."""
    place = _ROUTES.index(route)
    cases = some_cases(_QUERIES, start=place)
    assert len(cases) == _QUERIES
    if ON_SPARK == "connect":
        cases = cases[place :: len(_ROUTES)]
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


@pytest.mark.parametrize("route", _ROUTES)
def test_simultaneous_events(route: str, spark: Any) -> None:
    """A few queries by each route, with a tiebreak for the positions inside an instant."""
    if route == "sql" and not has_table_functions():
        return
    cases = [case for case in load_cases("27") if case.order_by == ("ts",)][::5]
    assert len(cases) >= 9
    problems = _problems(spark, route, cases)
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
    cases = [case for case in load_cases() if case.query in queries]
    assert len(cases) == 4 * len(queries)
    problems = _problems(spark, "match", cases)
    assert not problems, "\n".join(problems)


@pytest.mark.long
@pytest.mark.parametrize("route", _ROUTES)
def test_all_cases(route: str, spark: Any) -> None:
    # Another order than that of `ts` is not that of these routes.
    cases = [case for case in load_cases() if case.order_by in (None, ("ts",))]
    assert len(cases) > 800
    problems = _problems(spark, route, cases)
    assert not problems, "\n".join(problems)


def _queries(stem: str) -> list[str]:
    """The queries of a file of cases."""
    return list(dict.fromkeys(case.query for case in load_cases(stem)))


_JOB = 40
"""Queries in one Spark job: more make plans that Spark takes ever longer to read."""


def _problems(spark: Any, route: str, cases: list[Case]) -> list[str]:
    """What is wrong with the answers to cases, where those of a query are one table.

    Each is a partition of its own. Where all partitions are consumed together, each case alone.
    """
    groups: dict[str, list[Case]] = {}
    for case in cases:
        alone = "CONSUME BY ANY" in case.query or case.ties is not None
        groups.setdefault(case.name if alone else case.query, []).append(case)
    wanted = list(groups.values())
    problems, read = [], 0
    for at in range(0, len(wanted), _JOB):
        items = [_as_partitions(spark, cases) for cases in wanted[at : at + _JOB]]
        for group, found in zip(wanted[at : at + _JOB], answers(route, items), strict=True):
            for case in group:
                read += 1
                if wrong := difference(_of_case(case, found), case.expected):
                    problems.append(f"{case.name}: {wrong}")
    assert read == len(cases)
    return problems


def _as_partitions(spark: Any, cases: list[Case]) -> tuple[Any, Any]:
    """The matcher of some cases' query with one more partition attribute, and their events."""
    query = cases[0].query
    if len(cases) > 1:
        query = re.sub(r"(ts: LONG|day: DATE) }", r"\1, part: STRING }", query)
        query, count = re.subn(r"PARTITION BY ", r"\g<0>part, ", query)
        if not count:
            query = re.sub(
                r"(?= WITHIN | CONSUME | LIMIT |$)", " PARTITION BY part", query, count=1
            )
    tables = [
        table(case.events).append_column("part", pa.array([case.name] * len(case.events)))
        for case in cases
    ]
    return _matcher(query, cases[0].ties), spark.createDataFrame(pa.concat_tables(tables))


def _of_case(case: Case, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers that are a case's, in the form of its `expected`."""
    own = []
    for match in found:
        partition = dict(match["partition"])
        if partition.pop("part", case.name) == case.name:
            own.append({**match, "partition": partition})
    return own
