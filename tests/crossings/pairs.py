"""Each two features in some query: with a third one where that makes a new pair too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import combinations

from .check import FEATURES, Drawn, built
from .drafts import UnfitError

_NAMES = tuple(one.name for one in FEATURES)
_TRIES = 40
_THIRDS = 6
"""This number of features is drawn, and one is taken that makes new pairs with both others."""

Pair = frozenset[str]


def seeded(names: Sequence[str], seed: int) -> tuple[int, Drawn] | None:
    """The first seed from this one on with which these features fit together; None: there is
    none. Seeds stay odd, or even."""
    for tried in range(seed, seed + 2 * _TRIES, 2):
        try:
            return tried, built(tried, names)
        except UnfitError:
            continue
    return None


@cache
def covering(first: int = 1) -> tuple[tuple[tuple[int, Drawn], ...], tuple[tuple[str, ...], ...]]:
    """Queries with their seeds in which each two features come together, and the pairs that no
    query can have."""
    left = set(map(frozenset, combinations(_NAMES, 2)))
    found, unfit = [], []
    for number, pair in enumerate(combinations(_NAMES, 2)):
        if frozenset(pair) not in left:
            continue
        seed = first + 1000 * number
        for names in (*_with_thirds(pair, left), pair):
            if (one := seeded(names, seed)) is not None:
                found.append(one)
                break
        else:
            unfit.append(pair)
        for other in combinations(pair if one is None else one[1].features, 2):
            left.discard(frozenset(other))
    return tuple(found), tuple(unfit)


def _with_thirds(pair: tuple[str, ...], left: AbstractSet[Pair]) -> Iterator[tuple[str, ...]]:
    """The pair with a third feature, those first that make most new pairs."""
    new = {
        name: sum(frozenset((one, name)) in left for one in pair)
        for name in _NAMES
        if name not in pair
    }
    best = sorted(new, key=lambda name: -new[name])[:_THIRDS]
    return ((*pair, name) for name in best if new[name])


def pairs_of(seed: int, one: Drawn) -> Iterator[tuple[int, Drawn]]:
    """Queries with two of the features of a query that is refused with three."""
    if len(one.features) > 2:
        for pair in combinations(one.features, 2):
            if (alone := seeded(pair, seed)) is not None:
                yield alone
