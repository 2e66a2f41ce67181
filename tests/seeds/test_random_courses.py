"""Random queries FOR EACH with several steps under conditions of the row, many of them neighbours:
the compiled answers against the reference's.

python tests/seeds/test_random_courses.py 0 500     # seeds 0 to 499, and the counts
python tests/seeds/test_random_courses.py 17 18 --numba     # seed 17, as users run it
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping
from typing import Any

import pytest
from engines import engines, interpreted
from strategies import DECLARATION, random_stream
from strategies_courses import PARAMETERS, followed_query, rules_of
from test_random import TOO_LARGE
from test_random_across import Drawn, Events
from test_random_parameters import Counts, compare

import celc
from celc import CelError, Matcher
from celc.options import Options


def check(seed: int, tally: Counts, *, streams: int = 4, by_numba: bool = False) -> None:
    """Compare the answers of one random query on some streams, and count them."""
    rng = random.Random(seed)
    query = Drawn(DECLARATION + PARAMETERS + followed_query(rng), rng.choice((None, "ts", "ts")))
    tally.drawn += 1
    order = None if query.order_by is None else (query.order_by,)
    try:
        if by_numba:
            matcher = celc.compile(query.text, order_by=query.order_by)
            matchers: Mapping[str, Matcher] = {"chosen": matcher}
        else:
            with interpreted():
                matchers = engines(query.text, Options(order))
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        if codes - TOO_LARGE - {"consumed-absence", "late-choice"}:
            raise
        tally.too_large += bool(codes & TOO_LARGE)
        tally.not_yet += not codes & TOO_LARGE
        return

    def given() -> tuple[Events, list[dict[str, Any]]]:
        nulls = rng.choice((0, 0, 0.1))
        events = random_stream(rng, rng.randint(0, 16), nulls=nulls, strangers=rng.choice((0, 0.1)))
        types = rng.choice(("AB", "AAB", "ABC", "ABCD"))
        for event in events:
            if event["type"] != "Stranger":
                event["type"] = rng.choice(types)
        return events, rules_of(rng, events)

    compare(rng, f"seed {seed}", query, None, matchers, tally, given, streams=streams)


@pytest.mark.parametrize("seeds", [3, pytest.param(12, marks=pytest.mark.long)])
def test_random_courses(seeds: int) -> None:
    """Dozens of queries on some streams and tables, by every engine."""
    tally = Counts()
    for seed in range(seeds):
        check(seed, tally, streams=3)
    assert len(tally.texts) >= 8 * seeds // 12, tally
    assert tally.pairs_with_matches >= 3 * seeds // 12, tally
    assert tally.followed >= 4 * seeds // 12, tally


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 1600, 150))
def test_many_random_courses(first: int) -> None:
    tally = Counts()
    for seed in range(first, first + 150):
        check(seed, tally, streams=8)
    print(f"random courses of seeds {first}…: {tally}")
    assert tally.followed >= 40, tally


@pytest.mark.long
def test_many_random_courses_by_numba() -> None:
    tally = Counts()
    for seed in range(5000, 5040):
        check(seed, tally, by_numba=True)


def main() -> None:
    """Run seeds by hand; stop at the first difference."""
    parser = argparse.ArgumentParser(description="compare random queries of some seeds")
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--numba", action="store_true")
    asked = parser.parse_args()
    tally = Counts()
    for seed in range(asked.first, asked.end):
        check(seed, tally, streams=8, by_numba=asked.numba)
    print(tally, f"followed {tally.followed}, not yet {tally.not_yet}, totals {tally.totals}")


if __name__ == "__main__":
    main()
