"""The reference evaluator on FOR EACH: the cases."""

from __future__ import annotations

import pytest
from cases_io import load_cases, load_refused
from places import CASES
from reference import CelError, difference, evaluate

FOLDER = CASES / "parameters"

# The reference knows no types of expressions.
_OF_TYPES = {"30-parameters/067"}


def test_cases() -> None:
    problems = []
    for case in load_cases(folder=FOLDER):
        found = evaluate(
            case.query,
            case.events,
            order_by=case.order_by,
            ties=case.ties,
            parameters=case.parameters,
        )
        told = difference(found, case.expected)
        problems += [f"{case.name}: {told}"] if told else []
    assert not problems


def test_all_cases_are_there() -> None:
    assert len(load_cases(folder=FOLDER)) == 92
    assert len(load_refused(folder=FOLDER)) == 7


def test_cases_that_are_errors() -> None:
    for case in load_refused(FOLDER):
        if case.name not in _OF_TYPES:
            with pytest.raises(CelError):
                evaluate(
                    case.query, case.events, order_by=case.order_by, parameters=case.parameters
                )
