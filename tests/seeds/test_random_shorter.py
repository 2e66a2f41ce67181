"""Random queries with rounds in braces, `?`, IS and PREV at a distance, and with windows inside a
formula among them: the compiled answers against the reference's.

python tests/seeds/test_random_shorter.py 0 500     # seeds 0 to 499, and the counts
"""

from __future__ import annotations

import pytest
from seeds import compare_seeds, on_ten_streams
from strategies import SHORTER, Feature
from test_random import Tally

_MORE = SHORTER | {Feature.LOCAL_WINDOW}


def compare(first: int, queries: int, *, compiled: bool = False) -> Tally:
    """Seeds from `first` on until so many queries have been compared on ten streams each."""
    tally = Tally()
    seed = first
    while len(tally.texts) < queries or tally.pairs < 10 * queries:
        assert seed < first + 10 * queries, f"seeds {first} to {seed}: {tally}"
        one_seed(seed, tally, compiled=compiled)
        seed += 1
    return tally


def one_seed(seed: int, tally: Tally, *, compiled: bool = False) -> None:
    """Compare the answers of one random query on ten streams, and count them."""
    on_ten_streams(seed, tally, _MORE, compiled=compiled)


_WORDS = ("WITHIN[", "{", ":{", "?", " IS A", " IS NOT ", ", 2)", "; !")


@pytest.mark.long
def test_random_queries() -> None:
    """Thirteen queries, and more until each way to write has been met. The suite has them in
    cases, and crossed with others in `test_crossings`."""
    tally = compare(0, 13)
    assert tally.pairs_with_matches >= 30, tally
    for seed in range(1000, 1100):
        if all(any(word in text for text in tally.texts) for word in _WORDS):
            return
        one_seed(seed, tally)
    pytest.fail(f"not all of {_WORDS} in {tally.texts}")


@pytest.mark.long
@pytest.mark.parametrize("first", range(100_000, 110_000, 1000))
def test_many_random_queries(first: int) -> None:
    """A hundred queries, a thousand pairs."""
    tally = compare(first, 100)
    assert tally.pairs_with_matches > 200, f"seeds from {first}: {tally}"


@pytest.mark.long
@pytest.mark.parametrize("first", range(200_000, 203_000, 1000))
def test_many_random_queries_by_numba(first: int) -> None:
    """Ten queries, a hundred pairs, with the generated code compiled."""
    assert compare(first, 10, compiled=True).matches


if __name__ == "__main__":
    compare_seeds(one_seed)
