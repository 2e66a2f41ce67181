"""Random queries with absences before a formula and at its end: the compiled answers against the
reference's.

python tests/seeds/test_random_absences.py 0 500  # seeds 0 to 499, and the counts
python tests/seeds/test_random_absences.py 0 500 --correlated  # of conditions that compare them
python tests/seeds/test_random_absences.py 0 500 --branching  # of branches with their own
python tests/seeds/test_random_absences.py 0 500 --keyed  # of absences with their neighbours' key
"""

from __future__ import annotations

import argparse
import random
import warnings
from functools import partial
from typing import Any

import pytest
from celc_runtime import CompiledQuery, EventWarning
from engines import Event, answers, engines, interpreted, only_query
from reference import check_answer, evaluate, evaluate_totals, totals_difference
from strategies import Feature
from strategies_absences import (
    branching_absence_query,
    correlated_absence_query,
    keyed_absence_query,
)
from strategies_across import wide_stream
from test_random import TOO_LARGE, Tally, check, cramped
from test_random_totals import answered

import celc
from celc import CelError
from celc.options import Options

_BEFORE = frozenset({Feature.NOT_BEFORE, Feature.LOCAL_WINDOW, Feature.COUNTED, Feature.OPTIONAL})
_AFTER = frozenset({Feature.NOT_AFTER, Feature.LOCAL_WINDOW, Feature.OPTIONAL})
_MORE = (_BEFORE, _AFTER, _AFTER | _BEFORE)


def one_seed(seed: int, tally: Tally, *, compiled: bool = False) -> None:
    """Compare the answers of one random query on ten streams, and count them."""
    try:
        depth, more = 1 + seed % 3, _MORE[seed // 3 % 3]
        check(random.Random(seed), tally, depth=depth, streams=10, compiled=compiled, more=more)
    except AssertionError as problem:
        raise AssertionError(f"seed {seed}: {problem}") from None


def one_correlated_seed(seed: int, tally: Tally, *, by_numba: bool = False) -> None:
    """The same of a query whose absence is compared with other labels, on five streams."""
    rng = random.Random(seed)
    _compare(seed, rng, correlated_absence_query(rng), tally, by_numba=by_numba)


def one_keyed_seed(seed: int, tally: Tally, *, by_numba: bool = False) -> None:
    """The same of a query whose absences take partial matches away by key, on five streams."""
    rng = random.Random(seed)
    _compare(seed, rng, keyed_absence_query(rng), tally, by_numba=by_numba)


def one_branching_seed(seed: int, tally: Tally, *, by_numba: bool = False) -> None:
    """The same of a query whose branches have absences of their own, on five streams."""
    rng = random.Random(seed)
    _compare(seed, rng, branching_absence_query(rng), tally, by_numba=by_numba)


def _compare(
    seed: int, rng: random.Random, text: str, tally: Tally, *, by_numba: bool = False
) -> None:
    at_end = rng.choice(("open", "closed"))
    # NXT, LAST and a number of events need an order.
    words = ("NXT", "LAST", "MAX", "ANY", "COLLAPSED", "TOTAL", "LIMIT", " EVENTS")
    ordered = any(word in text for word in words)
    ties = None if ordered else rng.choice((None, None, "simultaneous"))
    options = Options(("ts",), ties=ties, at_end=at_end)
    try:
        if by_numba:
            matchers = {"chosen": celc.compile(text, order_by="ts", ties=ties, at_end=at_end)}
        else:
            with interpreted():
                matchers = dict(engines(text, options))
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE, f"seed {seed}: {codes}: {text}"
        return
    totals = "SELECT TOTAL" in text
    for _ in range(5):
        events = wide_stream(rng, rng.randint(4, 12), types=("A", "B", "C"), nulls=0.05)
        if ties is None:
            for number, event in enumerate(events):
                event["ts"] += number
        asked = partial(evaluate_totals if totals else evaluate, text, events, order_by="ts")
        wanted = asked(ties=ties, at_end=at_end)
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.texts.add(text)
        for engine, matcher in matchers.items():
            with cramped(rng), warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                warnings.simplefilter("ignore", RuntimeWarning)
                told = _difference(only_query(matcher), text, events, wanted, rng)
            assert not told, f"seed {seed}, {engine}, {ties}, {at_end}: {told}\n{text}{events}"


def _difference(
    query: CompiledQuery, text: str, events: list[Event], wanted: list[Any], rng: random.Random
) -> str:
    """What tells the answers of a query, by all routes, from the wanted one; empty: nothing."""
    if "SELECT TOTAL" in text:
        found = answered(query, events, rng)
        differences = {route: totals_difference(rows, wanted) for route, rows in found.items()}
        return "\n".join(f"{route}: {told}" for route, told in differences.items() if told)
    for route, answer in answers(query, events, rng).items():
        try:
            check_answer(text, wanted, answer)
        except AssertionError as problem:
            return f"{route}: {problem}"
    return ""


@pytest.mark.parametrize("seeds", [4, pytest.param(22, marks=pytest.mark.long)])
def test_absences_that_are_compared(seeds: int) -> None:
    """Fifty queries, of which most find what must be absent by a key."""
    tally = Tally()
    for seed in range(seeds):
        one_correlated_seed(seed, tally)
    assert tally.pairs_with_matches >= 30 * seeds // 22, tally
    assert sum(" FOR " in text for text in tally.texts) >= 5 * seeds // 22, tally


@pytest.mark.parametrize("seeds", [14, pytest.param(40, marks=pytest.mark.long)])
def test_absences_with_the_key_of_their_neighbours(seeds: int) -> None:
    tally = Tally()
    for seed in range(seeds):
        one_keyed_seed(seed, tally)
    assert tally.pairs_with_matches >= 30 * seeds // 40, tally


@pytest.mark.long
@pytest.mark.parametrize("first", range(500_000, 505_000, 1000))
def test_many_absences_with_the_key_of_their_neighbours(first: int) -> None:
    tally = Tally()
    for seed in range(first, first + 100):
        one_keyed_seed(seed, tally, by_numba=seed % 20 == 0)
    assert tally.pairs_with_matches > 60, f"seeds from {first}: {tally}"


@pytest.mark.long
@pytest.mark.parametrize("first", range(300_000, 310_000, 1000))
def test_many_absences_that_are_compared(first: int) -> None:
    tally = Tally()
    for seed in range(first, first + 200):
        one_correlated_seed(seed, tally)
    assert tally.pairs_with_matches > 300, f"seeds from {first}: {tally}"


@pytest.mark.long
@pytest.mark.parametrize("first", range(400_000, 403_000, 1000))
def test_many_absences_that_are_compared_by_numba(first: int) -> None:
    tally = Tally()
    for seed in range(first, first + 15):
        one_correlated_seed(seed, tally, by_numba=True)
    assert tally.pairs_with_matches


@pytest.mark.parametrize("seeds", [5, pytest.param(30, marks=pytest.mark.long)])
def test_branches_with_absences_of_their_own(seeds: int) -> None:
    """A match by one branch waits for the absence of that branch, and of no other."""
    tally = Tally()
    for seed in range(seeds):
        one_branching_seed(seed, tally)
    assert tally.pairs_with_matches >= 30 * seeds // 30, tally


@pytest.mark.long
@pytest.mark.parametrize("first", [30, *range(500_000, 510_000, 1000)])
def test_many_branches_with_absences_of_their_own(first: int) -> None:
    tally = Tally()
    for seed in range(first, first + 300):
        one_branching_seed(seed, tally)
    assert tally.pairs_with_matches > 300, f"seeds from {first}: {tally}"


@pytest.mark.parametrize("seeds", [3, pytest.param(14, marks=pytest.mark.long)])
def test_random_queries(seeds: int) -> None:
    """Queries of which many have an absence before a formula or at its end."""
    tally = Tally()
    for seed in range(seeds):
        one_seed(seed, tally)
    assert sum(" FOR " in text for text in tally.texts) >= 3 * seeds // 14, tally
    assert tally.pairs_with_matches >= 20 * seeds // 14, tally


@pytest.mark.long
@pytest.mark.parametrize("first", range(100_000, 110_000, 1000))
def test_many_random_queries(first: int) -> None:
    tally = Tally()
    for seed in range(first, first + 150):
        one_seed(seed, tally)
    assert tally.pairs_with_matches > 200, f"seeds from {first}: {tally}"


@pytest.mark.long
@pytest.mark.parametrize("first", range(200_000, 203_000, 1000))
def test_many_random_queries_by_numba(first: int) -> None:
    """Fifteen queries, with the generated code compiled."""
    tally = Tally()
    for seed in range(first, first + 15):
        one_seed(seed, tally, compiled=True)
    assert tally.matches


def main() -> None:
    """Run seeds; the first difference ends it."""
    parser = argparse.ArgumentParser(description="compare random queries of some seeds")
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--correlated", action="store_true")
    parser.add_argument("--branching", action="store_true")
    parser.add_argument("--keyed", action="store_true")
    asked = parser.parse_args()
    tally = Tally()
    compare = one_correlated_seed if asked.correlated else one_seed
    compare = one_keyed_seed if asked.keyed else compare
    compare = one_branching_seed if asked.branching else compare
    for seed in range(asked.first, asked.end):
        compare(seed, tally)
    print(tally, f"{sum(' FOR ' in text for text in tally.texts):,} with an absence at an end")


if __name__ == "__main__":
    main()
