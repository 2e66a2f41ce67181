"""FOR EACH on one machine: the cases, by the chosen engine and by the general one."""

from __future__ import annotations

import pytest
from cases_io import Case, load_cases, load_refused
from engines import engines, interpreted, only_query
from parameters import matches_for_each
from places import TESTS
from reference import difference

import celc
from celc.diagnostics.errors import CelError
from celc.options import Options

FOLDER = TESTS / "cases_parameters"


def _by_query() -> dict[tuple[str, Options], list[Case]]:
    found: dict[tuple[str, Options], list[Case]] = {}
    for case in load_cases(folder=FOLDER):
        options = Options(case.order_by, ties=case.ties, at_end=case.at_end)
        found.setdefault((case.query, options), []).append(case)
    return found


def test_cases() -> None:
    problems = []
    with interpreted():
        for (text, options), cases in _by_query().items():
            for name, matcher in engines(text, options).items():
                query = only_query(matcher)
                for case in cases:
                    answer = matches_for_each(query, case.events, case.parameters["rule"])
                    told = difference(answer, case.expected)
                    problems += [f"{case.name} ({name}): {told}"] if told else []
    assert not problems, "\n".join(problems)


def test_one_case_with_machine_code() -> None:
    case = next(case for case in load_cases(folder=FOLDER) if case.name == "30-parameters/001")
    matcher = celc.compile(case.query, order_by=case.order_by)
    answer = matches_for_each(only_query(matcher), case.events, case.parameters["rule"])
    assert not difference(answer, case.expected)


@pytest.mark.parametrize("case", load_refused(FOLDER), ids=lambda case: str(case.name))
def test_refused(case: Case) -> None:
    with pytest.raises(CelError):
        celc.compile(case.query, order_by=case.order_by)
