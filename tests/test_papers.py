"""The papers' own examples: the reference and every compiled route answer as is stated there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from cases_io import Case, case_stems, load_cases
from engines import answers, engines, interpreted, only_query
from reference import difference, evaluate

from celc import check

FOLDER = Path(__file__).parent / "cases_papers"
CASES = load_cases(folder=FOLDER)
SELECTED = tuple(
    f"-{name}{place}" for name in ("strict", "nxt", "last", "max") for place in ("", "-inside")
)

# Conditions on two labels do not compile yet; everything else must.
MAY_BE_REFUSED = {
    f"selectors/{formula}{form}"
    for formula in ("phi1-correlated", "phi2-correlated", "phi4")
    for form in ("", *SELECTED)
}


def errors_of(case: Case) -> set[str]:
    """The codes of the errors that keep a case from being compiled."""
    return {found.code for found in check(case.query) if found.severity == "error"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reference(case: Case) -> None:
    assert not difference(evaluate(case.query, case.events), case.expected)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled(case: Case) -> None:
    errors = errors_of(case)
    if errors:
        assert errors == {"not-supported"}
        assert case.name in MAY_BE_REFUSED
        return
    with interpreted():
        compiled = engines(case.query)
    for seed in range(3):
        for engine, matcher in compiled.items():
            found = answers(only_query(matcher), case.events, random.Random(seed))
            for route, answer in found.items():
                told = difference(answer, case.expected)
                assert not told, f"{engine} {route}: {told}"


def test_cases_are_named_after_their_files() -> None:
    assert all(case.name.split("/")[0] in case_stems(FOLDER) for case in CASES)


def test_refusals_are_cases_and_refused() -> None:
    """What has come to compile must not be left on the list."""
    assert {case.name for case in CASES if errors_of(case)} == MAY_BE_REFUSED
