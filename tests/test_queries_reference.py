"""The reference evaluator on queries that read queries: the cases."""

from __future__ import annotations

import pytest
from cases_io import Case, load_cases, load_refused
from places import TESTS
from reference import CelError, difference, evaluate

FOLDER = TESTS / "cases_queries"


def test_cases() -> None:
    problems = []
    for case in load_cases(folder=FOLDER):
        found = evaluate(
            case.query, case.events, order_by=case.order_by, query=case.query_name, times=True
        )
        told = difference(found, case.expected)
        problems += [f"{case.name}: {told}"] if told else []
    assert not problems


def test_all_cases_are_there() -> None:
    assert len(load_cases(folder=FOLDER)) == 61
    assert len(load_refused(folder=FOLDER)) == 15


@pytest.mark.parametrize("case", load_refused(FOLDER), ids=lambda case: case.name)
def test_cases_that_are_errors(case: Case) -> None:
    with pytest.raises(CelError):
        evaluate(case.query, case.events, order_by=case.order_by, query=case.query_name or "two")
