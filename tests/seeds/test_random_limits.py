"""Random queries with LIMIT n PER d and LIMIT n PER PARTITION: the compiled answers against the
reference's.

python tests/seeds/test_random_limits.py 0 500     # seeds 0 to 499, and the counts
"""

from __future__ import annotations

import random
import warnings

import pytest
from celc_runtime import EventWarning
from celc_runtime.run.answer import limited
from celc_runtime.run.choice import per_start
from engines import Event, answers, engines, interpreted, only_query
from reference import WorkLimitError, check_answer, evaluate
from seeds import compare_seeds
from strategies import random_stream
from strategies_across import wide_stream
from strategies_limits import limited_query
from test_random import TOO_LARGE, WORK_LIMIT, Tally, cramped

from celc import CelError
from celc.options import Options

_NOT_KNOWN = {"limit-before-known"}
"""LONGEST without a window of time."""


def stream_of(rng: random.Random, text: str) -> list[Event]:
    """A stream in which several events often have one time."""
    if "EVENT A { id: INT, value: DOUBLE, name: STRING, ts: LONG }" in text:
        return random_stream(rng, rng.randint(4, 12), nulls=0.05)
    return wide_stream(rng, rng.randint(4, 11), types=("A", "B", "C"), nulls=0.05)


def check(seed: int, tally: Tally) -> None:
    """Compare the answers of one random query on some streams, and count them."""
    rng = random.Random(seed)
    text = limited_query(rng)
    at_end = rng.choice(("open", "closed"))
    tally.drawn += 1
    try:
        with interpreted():
            matchers = engines(text, Options(("ts",), at_end=at_end))
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE | _NOT_KNOWN, f"seed {seed}: {codes}: {text}"
        tally.too_large += 1
        return
    for _ in range(5):
        events = stream_of(rng, text)
        try:
            wanted = evaluate(text, events, order_by="ts", work_limit=WORK_LIMIT, at_end=at_end)
        except WorkLimitError:
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.texts.add(text)
        for engine, matcher in matchers.items():
            with cramped(rng), pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                warnings.simplefilter("ignore", RuntimeWarning)
                patch.setattr(per_start, "_ROWS_PER_BATCH", rng.choice((1, 2, 1 << 16)))
                patch.setattr(limited, "_MOST_ROWS", rng.choice((0, 2, 1 << 16)))
                for route, answer in answers(only_query(matcher), events, rng).items():
                    try:
                        check_answer(text, wanted, answer)
                    except AssertionError as problem:
                        told = f"seed {seed}, {engine}, {route}, {at_end}: {problem}"
                        raise AssertionError(f"{told}\n{text}{events}") from None


@pytest.mark.parametrize("seeds", [4, pytest.param(20, marks=pytest.mark.long)])
def test_rows_that_a_limit_leaves(seeds: int) -> None:
    tally = Tally()
    for seed in range(seeds):
        check(seed, tally)
    assert tally.pairs_with_matches >= 30 * seeds // 20, tally
    assert tally.too_large <= 4, tally


@pytest.mark.long
@pytest.mark.parametrize("first", [20, *range(1000, 5000, 500)])
def test_rows_that_a_limit_leaves_of_many_queries(first: int) -> None:
    for seed in range(first, first + 500):
        check(seed, Tally())


if __name__ == "__main__":
    compare_seeds(check)
