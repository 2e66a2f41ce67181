"""The command line of files of random tests: compare the queries of some seeds."""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable

from strategies import Feature
from test_random import Tally, check


def on_ten_streams(
    seed: int, tally: Tally, more: frozenset[Feature], *, compiled: bool = False
) -> None:
    """Compare the answers of one random query, which may use `more`, on ten streams."""
    try:
        depth = 2 + seed % 2
        check(random.Random(seed), tally, depth=depth, streams=10, compiled=compiled, more=more)
    except AssertionError as problem:
        raise AssertionError(f"seed {seed}: {problem}") from None


def compare_seeds(check: Callable[[int, Tally], object]) -> None:
    """Run the seeds that the command line names, and print the counts; the first difference ends
    it."""
    parser = argparse.ArgumentParser(description="compare random queries of some seeds")
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    asked = parser.parse_args()
    tally = Tally()
    for seed in range(asked.first, asked.end):
        check(seed, tally)
    print(tally)
