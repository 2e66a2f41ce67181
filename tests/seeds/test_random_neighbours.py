"""Random formulas of `:` and `;` under small windows: the compiled answers against the reference's.

python tests/seeds/test_random_neighbours.py 0 500     # seeds 0 to 499, and the counts
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from engines import answers, engines, interpreted, only_query
from reference import check_answer, evaluate
from seeds import compare_seeds
from strategies import DECLARATION, random_stream
from strategies_neighbours import neighbour_query
from test_random import Tally, cramped

import celc
from celc.options import Options


def check(
    seed: int,
    tally: Tally,
    draw: Callable[[random.Random], str] = neighbour_query,
    types: str = "ABC",
    length: int = 11,
    *,
    compiled: bool = False,
) -> None:
    """Compare the answers of one random query on some streams, and count them.

    `compiled`: as users run it, by the engine that the compiler chooses, compiled by Numba.
    """
    rng = random.Random(seed)
    text = DECLARATION + draw(rng)
    tally.drawn += 1
    if compiled:
        matchers = {"chosen": celc.compile(text)}
    else:
        with interpreted():
            matchers = engines(text, Options(None))
    for _ in range(6):
        events = random_stream(rng, length, nulls=0)
        for event in events:
            event["type"] = rng.choice(types)
        wanted = evaluate(text, events)
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.matches += len(wanted)
        tally.texts.add(text)
        for engine, matcher in matchers.items():
            with cramped(rng):
                for route, answer in answers(only_query(matcher), events, rng).items():
                    try:
                        check_answer(text, wanted, answer)
                    except AssertionError as problem:
                        raise AssertionError(
                            f"seed {seed}: {engine} engine, {route}: {problem}\n{text}{events}"
                        ) from None


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param([*range(126, 130), *range(183, 186)], id="some"),
        pytest.param(range(200), id="more", marks=pytest.mark.long),
    ],
)
def test_neighbours_of_different_ages(seeds: Sequence[int]) -> None:
    """Seeds 128 and 184 are among those that a pile without order gets wrong."""
    tally = Tally()
    for seed in seeds:
        check(seed, tally)
    assert tally.pairs >= 6 * len(seeds), tally
    assert tally.pairs_with_matches >= 3 * len(seeds) // 2, tally


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 4000, 500))
def test_neighbours_of_different_ages_in_many_queries(first: int) -> None:
    for seed in range(first, first + 500):
        check(seed, Tally())


if __name__ == "__main__":
    compare_seeds(check)
