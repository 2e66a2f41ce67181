"""Random parts in windows that must be absent: the compiled answers against the reference's.

python tests/seeds/test_random_windows.py 0 500     # seeds 0 to 499, and the counts

Windows in all other places are drawn by `test_random_across` (`windows`).
"""

from __future__ import annotations

import random

import pytest
from engines import answers, engines, interpreted, only_query
from reference import check_answer, evaluate
from seeds import compare_seeds
from strategies import DECLARATION, random_stream
from strategies_windows import absent_window_query
from test_random import Tally, cramped


def check(seed: int, tally: Tally) -> None:
    """Compare the answers of one random query on some streams, and count them."""
    rng = random.Random(seed)
    text = DECLARATION + absent_window_query(rng)
    tally.drawn += 1
    with interpreted():
        matchers = engines(text)
    for _ in range(4):
        events = random_stream(rng, 11, nulls=0)
        for event in events:
            event["type"], event["id"] = rng.choice("ABC"), rng.choice((1, 2))
        wanted = evaluate(text, events)
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
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


@pytest.mark.parametrize("seeds", [2, pytest.param(18, marks=pytest.mark.long)])
def test_parts_in_windows_that_must_be_absent(seeds: int) -> None:
    tally = Tally()
    for seed in range(seeds):
        check(seed, tally)
    assert tally.pairs_with_matches >= 20 * seeds // 18, tally


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 3000, 250))
def test_many_parts_in_windows_that_must_be_absent(first: int) -> None:
    for seed in range(first, first + 250):
        check(seed, Tally())


if __name__ == "__main__":
    compare_seeds(check)
