"""The reference evaluator on queries that read queries: the cases."""

from __future__ import annotations

import pytest
from cases_io import Case, load_cases, load_refused
from places import CASES
from reference import CelError, difference, evaluate

FOLDER = CASES / "queries"


def test_cases() -> None:
    problems = []
    for case in load_cases(folder=FOLDER):
        found = evaluate(
            case.query,
            case.events,
            order_by=case.order_by,
            query=case.query_name,
            at_end=case.at_end,
            times=True,
            parameters=case.parameters,
        )
        told = difference(found, case.expected)
        problems += [f"{case.name}: {told}"] if told else []
    assert not problems


def test_all_cases_are_there() -> None:
    assert len(load_cases(folder=FOLDER)) == 136
    assert len(load_refused(folder=FOLDER)) == 10


@pytest.mark.parametrize("case", load_refused(FOLDER), ids=lambda case: case.name)
def test_cases_that_are_errors(case: Case) -> None:
    with pytest.raises(CelError):
        evaluate(case.query, case.events, order_by=case.order_by, query=case.query_name or "two")


def test_events_of_one_type_need_not_name_it_beside_rows_of_queries() -> None:
    text = """CREATE STREAM S { EVENT A { ts: LONG } }
QUERY firsts: SELECT COUNT(x) AS n FROM S WHERE A AS x
QUERY two: SELECT f, y FROM firsts, S WHERE firsts AS f ; !A ; A AS y
"""
    found = [
        evaluate(text, [{**told, "ts": ts} for ts in range(3)], order_by="ts", query="two")
        for told in ({}, {"type": "A"})
    ]
    assert not difference(*found)
    assert len(found[0]) == 2
