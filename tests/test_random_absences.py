"""Random queries with absences before a formula and at its end: the compiled answers against the
reference's.

python tests/test_random_absences.py 0 500     # seeds 0 to 499, and the counts
"""

from __future__ import annotations

import argparse
import random

import pytest
from strategies import Feature
from test_random import Tally, check

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


def test_random_queries() -> None:
    """Sixty queries, of which many have an absence before a formula or at its end."""
    tally = Tally()
    for seed in range(60):
        one_seed(seed, tally)
    assert sum(" FOR " in text for text in tally.texts) >= 20, tally
    assert tally.pairs_with_matches >= 100, tally


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
    asked = parser.parse_args()
    tally = Tally()
    for seed in range(asked.first, asked.end):
        one_seed(seed, tally)
    print(tally, f"{sum(' FOR ' in text for text in tally.texts):,} with an absence before")


if __name__ == "__main__":
    main()
