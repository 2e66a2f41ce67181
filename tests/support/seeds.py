"""The command line of files of random tests: compare the queries of some seeds."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from test_random import Tally


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
