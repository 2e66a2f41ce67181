"""Random queries whose events take matches out of their states: the compiled answers against the
reference's.

python tests/seeds/test_random_removals.py 0 500     # seeds 0 to 499, and the counts
"""

from __future__ import annotations

from functools import partial

import pytest
from seeds import compare_seeds
from strategies_removals import TYPES, removal_query
from test_random import Tally
from test_random_neighbours import check as check_drawn

check = partial(check_drawn, draw=removal_query, types="".join(TYPES), length=20)


@pytest.mark.parametrize("seeds", [4, pytest.param(24, marks=pytest.mark.long)])
def test_states_that_empty(seeds: int) -> None:
    """Seeds 7, 36 and 232 are among those that piles of several clocks get wrong."""
    tally = Tally()
    for seed in (*range(seeds), 232):
        check(seed, tally)
    assert tally.pairs >= 5 * seeds, tally
    assert tally.pairs_with_matches >= 2 * seeds, tally


@pytest.mark.long
def test_states_that_empty_by_machine_code() -> None:
    tally = Tally()
    for seed in range(900, 902):
        check(seed, tally, compiled=True)
    assert tally.pairs_with_matches >= 3, tally


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_states_that_empty_in_many_queries(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed, Tally())


@pytest.mark.long
def test_states_that_empty_in_many_queries_by_machine_code() -> None:
    for seed in range(3000, 3100):
        check(seed, Tally(), compiled=True)


if __name__ == "__main__":
    compare_seeds(check)
