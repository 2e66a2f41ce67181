"""Queries that read queries: the cases on one machine, and what is refused."""

from __future__ import annotations

import pytest
from cases_io import Case, load_cases, load_refused
from engines import interpreted
from places import TESTS
from queries_over_queries import chain_answer
from reference import difference

import celc

FOLDER = TESTS / "cases_queries"


@pytest.mark.parametrize("case", load_cases(folder=FOLDER), ids=lambda case: case.name)
def test_cases(case: Case) -> None:
    with interpreted():
        matcher = celc.compile(case.query, order_by=case.order_by)
    query = matcher.queries[case.query_name or next(iter(matcher.queries))]
    told = difference(chain_answer(query, case.events), case.expected)
    assert not told


@pytest.mark.parametrize("case", load_refused(FOLDER), ids=lambda case: case.name)
def test_cases_that_are_errors(case: Case) -> None:
    with pytest.raises(celc.CelError):
        celc.compile(case.query, order_by=case.order_by)
