"""Random queries with FIRST before operands of sequences, in rounds and without, with each other
operator around and inside: the compiled answers against the reference's.

python tests/seeds/test_random_firsts.py 0 500     # seeds 0 to 499, and the counts
"""

from __future__ import annotations

import pytest
from seeds import compare_seeds, on_ten_streams
from strategies import SHORTER, Feature
from test_random import Tally

_MORE = SHORTER | {Feature.THEN_FIRST, Feature.LOCAL_WINDOW}
_WITH_ENDS = _MORE | {Feature.NOT_BEFORE, Feature.NOT_AFTER}


def one_seed(seed: int, tally: Tally, *, compiled: bool = False) -> None:
    """Compare the answers of one random query on ten streams, and count them."""
    more = _WITH_ENDS if seed % 5 == 0 else _MORE
    on_ten_streams(seed, tally, more, compiled=compiled)


def compare(first: int, queries: int, *, compiled: bool = False) -> Tally:
    """Seeds from `first` on until so many queries with FIRST have been compared."""
    tally = Tally()
    seed = first
    while sum("; FIRST" in text for text in tally.texts) < queries:
        assert seed < first + 20 * queries, f"seeds {first} to {seed}: {tally}"
        one_seed(seed, tally, compiled=compiled)
        seed += 1
    return tally


_WORDS = ("; FIRST ", "(FIRST ", ")+", ")? ; ", "; !", "PREV(", "(!", "UNLESS")


@pytest.mark.parametrize("queries", [7, pytest.param(20, marks=pytest.mark.long)])
def test_random_queries(queries: int) -> None:
    """So many queries, and more until each way to write has been met. Of three faults put into
    the normal form twenty see two, the first of them by query 12, and seven see none."""
    tally = compare(0, queries)
    assert tally.pairs_with_matches >= 2 * queries, tally
    for seed in range(1000, 1100):
        if all(any(word in text for text in tally.texts) for word in _WORDS):
            return
        one_seed(seed, tally)
    pytest.fail(f"not all of {_WORDS} in {tally.texts}")


@pytest.mark.long
@pytest.mark.parametrize("first", range(100_000, 110_000, 1000))
def test_many_random_queries(first: int) -> None:
    """Fifty queries with FIRST, five hundred pairs."""
    tally = compare(first, 50)
    assert tally.pairs_with_matches > 100, f"seeds from {first}: {tally}"


if __name__ == "__main__":
    compare_seeds(one_seed)
