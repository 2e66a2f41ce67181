"""Random queries whose conditions are decided by a search while matches are listed: their answers
against the reference's.

python tests/seeds/test_random_searches.py 0 500     # seeds 0 to 499, and the counts
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from celc_runtime.engine.walk import latest_checked, search, walk
from engines import answers, engines, interpreted, only_query
from reference import check_answer, evaluate
from seeds import compare_seeds
from strategies_across import WIDE_DECLARATION, wide_stream
from strategies_searches import in_tenths, searching_query
from test_random import Tally, cramped

import celc
from celc.options import Options


@contextmanager
def _impatient(rng: random.Random) -> Iterator[None]:
    """Searches note places without a match from the first step on (`PATIENCE`), in tables that are
    almost too small for them."""
    with pytest.MonkeyPatch.context() as patch:
        for listing in (walk, latest_checked):
            patch.setattr(listing, "PATIENCE", rng.choice((0, 0, 0, 64)))
        patch.setattr(search, "_FIRST_SLOTS", rng.choice((2, 4, 64)))
        patch.setattr(search, "_FIRST_TOPS", 1)
        yield


def check(seed: int, tally: Tally, *, compiled: bool = False) -> None:
    """Compare the answers of one random query on some streams, and count them.

    compiled: as users run it, by the engine that the compiler chooses and by machine code. Else by
    every engine that can run it, in Python.
    """
    rng = random.Random(seed)
    text = WIDE_DECLARATION + searching_query(rng)
    tally.drawn += 1
    if compiled:
        matchers = {"chosen": celc.compile(text)}
    else:
        with interpreted():
            matchers = engines(text, Options(None))
    for _ in range(10):
        types = rng.choice(("AAABBC", "AAACCB", "AAAAAB"))
        events = wide_stream(rng, rng.choice((6, 9, 12)), types=types, nulls=0.05)
        in_tenths(rng, events)
        wanted = evaluate(text, events)
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.matches += len(wanted)
        tally.texts.add(text)
        for engine, matcher in matchers.items():
            with cramped(rng), _impatient(rng):
                for route, answer in answers(only_query(matcher), events, rng).items():
                    try:
                        check_answer(text, wanted, answer)
                    except AssertionError as problem:
                        raise AssertionError(
                            f"seed {seed}: {engine} engine, {route}: {problem}\n{text}{events}"
                        ) from None


@pytest.mark.parametrize("seeds", [4, pytest.param(8, marks=pytest.mark.long)])
def test_searches(seeds: int) -> None:
    tally = Tally()
    for seed in range(seeds):
        check(seed, tally)
    assert tally.pairs >= 80 * seeds // 8, tally
    assert tally.pairs_with_matches >= 25 * seeds // 8, tally


@pytest.mark.long
def test_searches_by_machine_code() -> None:
    tally = Tally()
    for seed in range(900, 902):
        check(seed, tally, compiled=True)
    assert tally.pairs_with_matches >= 2, tally


@pytest.mark.long
@pytest.mark.parametrize("first", [8, *range(1000, 2000, 100)])
def test_searches_of_many_queries(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed, Tally())


@pytest.mark.long
def test_searches_of_many_queries_by_machine_code() -> None:
    for seed in range(3000, 3100):
        check(seed, Tally(), compiled=True)


if __name__ == "__main__":
    compare_seeds(check)
