"""The steps of a proof that read code: what they say of queries, and of code that was changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from places import ROOT

from celc.diagnostics.source import Source
from celc.driver.matcher import Matcher
from celc.driver.pipeline import compile_source
from celc.driver.proof_runs import listed_by
from celc.driver.proving import representations
from celc.options import Options
from celc.verify.prove.code.steps import CODE_STEPS, listing_step
from celc.verify.prove.representations import Representations
from celc.verify.prove.verdict import Verdict


def given(name: str) -> Representations:
    """The representations of a query in `generated`."""
    text = (ROOT / "generated" / f"{name}.cel").read_text("utf-8")
    compilation = compile_source(Source(f"{name}.cel", text), Options())
    found, *_ = representations(compilation, "".join(compilation.module_parts("celc compile")))
    return found


def wrong(found: Representations) -> Iterator[Verdict]:
    """The steps that are wrong."""
    yield from (one for one in (step(found) for step in CODE_STEPS) if one.kind == "wrong")


@pytest.mark.parametrize(
    "name", ["above", "all", "alarm", "chain", "first_of_key", "nested_nxt", "unless"]
)
def test_the_code_does_what_the_automaton_says(name: str) -> None:
    found = given(name)
    assert [step(found).kind for step in CODE_STEPS] == ["exact"] * 3


@pytest.mark.parametrize("name", ["q2", "chain", "first_above"])
def test_the_rows_are_the_paths_of_the_automaton(name: str) -> None:
    found = given(name)
    verdict = listing_step(found, listed_by(Matcher(found.module).queries[found.query.name]))
    assert verdict.kind == "bounded", verdict


@pytest.mark.parametrize(
    ("name", "before", "after", "said"),
    [
        ("q2", "(0, 1, 1, 0, 0)", "(0, 1, 2, 0, 0)", "a match ends for the"),
        ("q2", "since_0 >= earliest", "since_0 > earliest", "wanted"),
        ("q2", "earliest = key - 100", "earliest = key - 99", "EARLIEST becomes"),
        ("unless", "(1, 2, 0, 0, 0, 0, -1)", "(1, 2, 0, 0, 0, 2, 0)", "a match ends for"),
        ("contiguous", "if row != last + 1", "if row == last", "a match ends for"),
        ("chain", " and known[0, row]", " ", "wanted nothing"),
        ("q1", "        row = relevant[at]", "        row = = relevant[at]", "is not Python"),
        ("above", "least_0_0 = min(least_0_0, bound_0)", "pass", "too high"),
        ("q2", "Kind((1,), starts=False)", "Kind((2,), starts=False)", "matching of the plan"),
    ],
)
def test_code_that_was_changed_is_wrong(name: str, before: str, after: str, said: str) -> None:
    found = given(name)
    assert before in found.module
    changed = replace(found, module=found.module.replace(before, after, 1))
    problems = [one.counterexample or "" for one in wrong(changed)]
    assert any(said in one for one in problems), problems
