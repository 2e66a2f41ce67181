"""Faults that are seeded into the passes are found by the proof of some query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest
from seeded_faults import FAULTS, QUERIES, SIMULTANEOUS, STREAM, Fault, seeded

from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.driver import pipeline
from celc.driver.matcher import Matcher
from celc.driver.proved_answers import rows_of_module
from celc.driver.proving import representations
from celc.options import Options
from celc.verify.prove.steps import STEPS
from celc.verify.prove.verdict import Verdict

_OF_THE_SUITE = tuple(
    one for one in FAULTS if "bounds = (1" in one.new or "reached >> INITIAL" in one.new
)


def _compiled(name: str) -> pipeline.Compilation:
    ties = "simultaneous" if name in SIMULTANEOUS else None
    options = Options(order_by=("ts",), ties=ties)  # type: ignore[arg-type]
    return pipeline.compile_source(Source("q.cel", STREAM + QUERIES[name]), options)


def _shown(compilation: pipeline.Compilation) -> tuple[object, ...]:
    """All that a fault can change of a compilation."""
    (one,) = compilation.queries
    return (
        one.normal_form,
        one.division,
        one.alphabet,
        one.automaton.transitions,
        one.minimal,
        (compilation.module_parts("celc compile q.cel")),
    )


@cache
def _unharmed(name: str) -> tuple[object, ...]:
    return _shown(_compiled(name))


def _verdicts(compilation: pipeline.Compilation) -> Iterator[Verdict]:
    parts = compilation.module_parts("celc compile q.cel")
    (given,) = representations(compilation, "".join(parts))
    for step in STEPS:
        yield step(given)
    yield rows_of_module(given, Matcher(parts).queries[given.query.name])


def _told(fault: Fault) -> tuple[str, str]:
    """What becomes of a fault, and where: found, unnoticed, refused by the compiler, or without any
    effect on the queries."""
    names = [fault.query, *(one for one in QUERIES if one != fault.query)]
    if fault in _OF_THE_SUITE:
        names = names[:1]
    for name in names:
        _unharmed(name)
    outcome = "without effect", ""
    with seeded(fault):
        for name in names:
            try:
                compilation = _compiled(name)
                shown = _shown(compilation)
            except (CelError, AssertionError, LookupError, TypeError, AttributeError) as problem:
                outcome = "refused", f"{name}: {type(problem).__name__} {problem}"
                continue
            if shown == _unharmed(name):
                continue
            for verdict in _verdicts(compilation):
                if verdict.kind == "wrong":
                    return "found", f"{name}: {verdict.step}: {verdict.counterexample}"
            outcome = "unnoticed", name
    return outcome


@pytest.fixture(autouse=True)
def _without_verifying(monkeypatch: pytest.MonkeyPatch) -> None:
    """The invariants of representations, which tests check, would find some of the faults first."""
    monkeypatch.setattr(pipeline, "VERIFYING", False)


@pytest.mark.parametrize("fault", _OF_THE_SUITE, ids=lambda fault: fault.query)
def test_a_fault_is_found(fault: Fault) -> None:
    what, where = _told(fault)
    assert what == "found", where


@pytest.mark.long
def test_most_faults_are_found() -> None:
    counts: Counter[str] = Counter()
    for fault in FAULTS:
        what, where = _told(fault)
        counts[what] += 1
        print(what, fault, where[:300], sep=" | ", flush=True)
    print(counts)
    assert counts["found"] >= 0.85 * len(FAULTS)
