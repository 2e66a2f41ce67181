"""Random queries whose conditions further events keep TRUE: the compiled answers against the
reference's.

python tests/seeds/test_random_growing.py 0 500     # seeds 0 to 499, and the counts
"""

from __future__ import annotations

import random
import warnings

import pytest
from celc_runtime import EventWarning
from celc_runtime.engine.walk import search, varieties
from celc_runtime.plan.strategy import Checked
from engines import answers, engines, interpreted, only_query
from reference import check_answer, evaluate
from seeds import compare_seeds
from strategies_across import WIDE_DECLARATION, wide_stream
from strategies_growing import growing_query, growing_union
from streams_by_hand import EVENT_TIME, in_milliseconds, instant, streamed
from test_random import TOO_LARGE, Tally, cramped
from test_random_totals import Asked, answered, told, wanted_of

import celc
from celc import CelError
from celc.options import Options


def check(seed: int, tally: Tally, *, compiled: bool = False) -> None:
    """Compare the answers of one random query on some streams, and count them.

    `compiled`: as users run it, by the engine that the compiler chooses, compiled by Numba.
    """
    rng = random.Random(seed)
    text = WIDE_DECLARATION + growing_query(rng)
    tally.drawn += 1
    kept = search.MOST_KEPT if compiled else rng.choice((1, 2, search.MOST_KEPT))
    try:
        if compiled:
            matchers = {"chosen": celc.compile(text)}
        else:
            with interpreted():
                matchers = engines(text, Options(None))
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE, f"{codes}: {text}"
        tally.too_large += 1
        return
    for _ in range(8):
        types = rng.choice(("AAABBC", "AAACCB", "AAAAAB"))
        events = wide_stream(rng, rng.choice((6, 9, 12)), types=types, nulls=0.05)
        wanted = evaluate(text, events)
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.matches += len(wanted)
        tally.texts.add(text)
        for engine, matcher in matchers.items():
            with cramped(rng), pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                warnings.simplefilter("ignore", RuntimeWarning)  # sums that wrap, in Python
                patch.setattr(search, "_FIRST_TOPS", 1)
                for reader in (search, varieties):
                    patch.setattr(reader, "MOST_KEPT", kept)
                for route, answer in answers(only_query(matcher), events, rng).items():
                    try:
                        check_answer(text, wanted, answer)
                    except AssertionError as problem:
                        raise AssertionError(
                            f"seed {seed}: {engine} engine, {route}: {problem}\n{text}{events}"
                        ) from None


def check_unions(seed: int, tally: Tally, *, compiled: bool = False) -> int:
    """Compare the unions of one random query on some streams, by each way to run it, and count
    them; returns how many engines count what they do not list."""
    rng = random.Random(seed)
    asked = Asked(WIDE_DECLARATION + growing_union(rng), None)
    as_stream = Asked(in_milliseconds(asked.text), EVENT_TIME)
    streams = rng.random() < 0.4 and "CONSUME" not in asked.text
    asked = as_stream if streams else asked
    tally.drawn += 1
    order = (EVENT_TIME,) if streams else None
    try:
        if compiled:
            matchers = {"chosen": celc.compile(asked.text, order_by=asked.order_by)}
        else:
            with interpreted():
                matchers = engines(asked.text, Options(order))
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE, f"{codes}: {asked.text}"
        tally.too_large += 1
        return 0
    for _ in range(6):
        types = rng.choice(("AAABBC", "AAACCB", "AAAAAB"))
        events = wide_stream(rng, rng.choice((6, 9, 12)), types=types, nulls=0.05)
        for number, event in enumerate(events if streams else ()):
            event[EVENT_TIME] = instant(1 + number)
        wanted = wanted_of(asked, events)
        if wanted is None:
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        for engine, matcher in matchers.items():
            one = only_query(matcher)
            with cramped(rng), pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                warnings.simplefilter("ignore", RuntimeWarning)
                patch.setattr(search, "_FIRST_TOPS", 1)
                if streams:
                    found = {"as a stream": list(streamed(one, events, rng))}
                else:
                    found = answered(one, events, rng)
                for route, rows in found.items():
                    differs = told(asked, one, rows, wanted)
                    where = f"seed {seed}: {engine} engine, {route}"
                    assert not differs, f"{where}: {differs}\n{asked.text}{events}"
    listings = [only_query(matcher).program.listing for matcher in matchers.values()]
    return sum(isinstance(one, Checked) and bool(one.rounds) for one in listings)


@pytest.mark.parametrize("seeds", [7, pytest.param(12, marks=pytest.mark.long)])
def test_growing_unions(seeds: int) -> None:
    tally, counted = Tally(), 0
    for seed in range(seeds):
        counted += check_unions(seed, tally)
    assert tally.pairs_with_matches >= 15 * seeds // 12, tally
    assert counted >= 4 * seeds // 12, counted


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_unions_of_many_queries(first: int) -> None:
    for seed in range(first, first + 100):
        check_unions(seed, Tally())


@pytest.mark.long
def test_unions_of_many_queries_by_machine_code() -> None:
    for seed in range(3000, 3050):
        check_unions(seed, Tally(), compiled=True)


@pytest.mark.parametrize("seeds", [3, pytest.param(10, marks=pytest.mark.long)])
def test_growing(seeds: int) -> None:
    tally = Tally()
    for seed in range(seeds):
        check(seed, tally)
    assert tally.pairs >= 80 * seeds // 10, tally
    assert tally.pairs_with_matches >= 12 * seeds // 10, tally


@pytest.mark.long
@pytest.mark.parametrize("first", [10, *range(1000, 2000, 100)])
def test_growing_of_many_queries(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed, Tally())


@pytest.mark.long
def test_growing_of_many_queries_by_machine_code() -> None:
    for seed in range(3000, 3050):
        check(seed, Tally(), compiled=True)


if __name__ == "__main__":
    compare_seeds(check)
