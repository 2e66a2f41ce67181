"""Conformance cases as partitions of tables, one for each query, on Spark.

A query's cases run in one job, and several queries in one as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
from cases_io import Case
from celc_runtime.query import CompiledQuery
from engines import interpreted, only_query, parts_of
from spark_routes import Way, answers, table, told

import celc
from celc import Matcher

_JOB = 40
"""Queries in one Spark job: more make plans that Spark takes ever longer to read."""


@cache
def matcher(query: str, ties: str | None = None, at_end: str = "open") -> Matcher:
    """A query whose events are ordered by their times, and where these tie by their rows. Events
    that last say their order themselves."""
    order_by = None if " LASTING " in query else "ts"
    with interpreted():
        return celc.compile(query, order_by=order_by, tiebreak="row", ties=ties, at_end=at_end)


def query_of(case: Case, way: Way) -> CompiledQuery:
    """A case's query; only `match` finds the clock of all partitions itself."""
    query = only_query(matcher(case.query, case.ties, case.at_end))
    if not query.plan.asks_for_clock or way in ("match", "match with positions"):
        return query
    known = [e for part in parts_of(query.plan, case.events).values() for e in part]
    (order,) = query.plan.source.order_by
    return query.with_options(clock=max(event[order] for event in known)) if known else query


def problems_of(cases: list[Case], way: Way, made: Callable[[pa.Table], Any]) -> list[str]:
    """What is wrong with the answers to cases, where those of a query are one table.

    Each is a partition of its own. Where all partitions are consumed together, each case alone.
    `made` makes a DataFrame of a table.
    """
    groups: dict[str, list[Case]] = {}
    for case in cases:
        alone = "CONSUME BY ANY" in case.query or case.ties is not None or case.ends_late
        groups.setdefault(case.name if alone else case.query, []).append(case)
    wanted = list(groups.values())
    problems, read = [], 0
    for at in range(0, len(wanted), _JOB):
        items = [_as_partitions(made, cases, way) for cases in wanted[at : at + _JOB]]
        for group, found in zip(wanted[at : at + _JOB], answers(way, items), strict=True):
            for case in group:
                read += 1
                rows = _of_case(case, found)
                query, events = query_of(case, way), table(case.in_order)
                if wrong := told(query, events, rows, case.expected, apart="part"):
                    problems.append(f"{case.name}: {wrong}")
    assert read == len(cases)
    return problems


def _as_partitions(made: Callable[[pa.Table], Any], cases: list[Case], way: Way) -> tuple[Any, Any]:
    """The matcher of some cases' query with one more partition attribute, and their events."""
    if len(cases) == 1:
        return query_of(cases[0], way), made(table(cases[0].in_order))
    query = re.sub(r"(ts: LONG|day: DATE|end: \w+) }", r"\1, part: STRING }", cases[0].query)
    query, count = re.subn(r"PARTITION BY ", r"\g<0>part, ", query)
    if not count:
        query = re.sub(r"(?= WITHIN | CONSUME | LIMIT |$)", " PARTITION BY part", query, count=1)
    tables = [
        table(case.in_order).append_column("part", pa.array([case.name] * len(case.in_order)))
        for case in cases
    ]
    return only_query(matcher(query)), made(pa.concat_tables(tables))


def _of_case(case: Case, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that are a case's."""
    return [row for row in found if row.get("part", case.name) == case.name]
