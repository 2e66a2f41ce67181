"""The reference evaluator on uncertain time: the cases."""

from __future__ import annotations

import pytest
from cases_io import load_cases, load_refused
from places import CASES
from reference import CelError, difference, evaluate

FOLDER = CASES / "uncertain"


def test_cases() -> None:
    problems = []
    for case in load_cases(folder=FOLDER):
        if case.run_error:
            with pytest.raises(CelError, match="weight"):
                evaluate(case.query, case.events)
            continue
        found = evaluate(case.query, case.events, order_by=case.order_by, times=True)
        told = difference(found, case.expected)
        problems += [f"{case.name}: {told}"] if told else []
    assert not problems


def test_all_cases_are_there() -> None:
    assert len(load_cases(folder=FOLDER)) == 109
    assert len(load_refused(folder=FOLDER)) == 14


@pytest.mark.parametrize("case", load_refused(FOLDER), ids=lambda case: case.name)
def test_cases_that_are_errors(case) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CelError):
        evaluate(case.query, case.events, order_by=case.order_by)
