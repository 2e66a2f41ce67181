"""Random conditions on COUNT(PRIOR x): lists, unions, totals and graphs against the reference.

By hand: `python tests/seeds/test_random_counts_before.py 0 500`.
"""

from __future__ import annotations

import random
import sys
from collections import Counter

import pytest
from celc_runtime import expand
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from engines import answer_of, interpreted, table_of
from reference import difference, evaluate, evaluate_totals, totals_difference
from strategies_counts_before import counted_events, counting_file

import celc

_REFUSED = {"exponential-output", "unbound-label", "simultaneous-window"}


def check(seed: int, found: Counter[str]) -> None:
    """Compare the queries of one file on two streams, and count how they are run."""
    rng = random.Random(seed)
    text, ties = counting_file(rng), rng.choice((None, None, "simultaneous"))
    try:
        with interpreted():
            queries = celc.compile(text, order_by="ts", ties=ties).queries
    except celc.CelError as problem:
        codes = {one.code for one in problem.diagnostics if one.severity == "error"}
        assert codes <= _REFUSED, codes
        found["refused"] += 1
        return
    one, united, counted = (queries[name] for name in ("one", "united", "counted"))
    is_graph = why_not(one.program, Route.COMPACT) is None
    found["graphs" if is_graph else "lists"] += 1
    for _ in range(2):
        events = counted_events(rng)
        table = table_of(one.plan, events)
        matches = one.match_table(table)
        found["with matches"] += bool(len(matches))
        rows = counted.match_table(table).to_pylist()
        told = {
            "one": difference(
                answer_of(one, matches.to_pylist(), events),
                evaluate(text, events, query="one", order_by="ts", ties=ties),
            ),
            "united": difference(
                answer_of(united, united.match_table(table).to_pylist(), events),
                evaluate(text, events, query="united", order_by="ts", ties=ties),
            ),
            "counted": totals_difference(
                rows, evaluate_totals(text, events, query="counted", order_by="ts", ties=ties)
            ),
        }
        for name, difference_of in told.items():
            assert not difference_of, f"seed {seed}, {name}\n{text}{events}\n{difference_of}"
        if is_graph:
            expanded = expand(one.match_compact(table)).read_all()
            same = repr(expanded.to_pylist()) == repr(matches.to_pylist())  # NaN, too
            assert same, f"seed {seed}, match_compact\n{text}{events}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", [5, pytest.param(24, marks=pytest.mark.long)])
def test_counts_before(seeds: int) -> None:
    found: Counter[str] = Counter()
    for seed in range(seeds):
        check(seed, found)
    assert found["graphs"] >= 8 * seeds // 24, found
    assert found["with matches"] >= 16 * seeds // 24, found


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_many_counts_before() -> None:
    found: Counter[str] = Counter()
    for seed in range(24, 1000):
        check(seed, found)
    assert found["graphs"] > 300, found


if __name__ == "__main__":
    tally: Counter[str] = Counter()
    for number in range(*map(int, sys.argv[1:])):
        check(number, tally)
    print(tally)
