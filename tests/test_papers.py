"""The papers' own examples: the reference and every compiled route answer as is stated there."""

from __future__ import annotations

import random

import pytest
from cases_io import Case, case_stems, load_cases
from engines import answers, engines, interpreted, only_query
from places import CASES
from reference import difference, evaluate

FOLDER = CASES / "papers"
CASES = load_cases(folder=FOLDER)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reference(case: Case) -> None:
    assert not difference(evaluate(case.query, case.events), case.expected)


@pytest.mark.each(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled(case: Case) -> None:
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
