"""Patterns with the same matches in the same order of preference: `celc.row_pattern.simplify`.

A pattern is a generator of its derivations here, as the standard defines them: an empty round whose
number is at least the lower bound is the last one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

import pytest

from celc.row_pattern import core
from celc.row_pattern.simplify import simplest, size_of

_MOST = 7
"""Rows of a derivation."""


def _derived(pattern: core.Pattern, rows: str) -> Iterator[str]:
    """The rows so far with those that the pattern takes, in order of preference."""
    match pattern:
        case core.OneRow():
            if len(rows) < _MOST:
                yield rows + "AB"[pattern.variable]
        case core.Concatenation():
            if not pattern.parts:
                yield rows
                return
            first, *rest = pattern.parts
            for before in _derived(first, rows):
                yield from _derived(core.Concatenation(tuple(rest)), before)
        case core.Alternation():
            for part in pattern.parts:
                yield from _derived(part, rows)
        case core.Repetition():
            yield from _rounds(pattern, rows, 0)


def _rounds(pattern: core.Repetition, rows: str, done: int) -> Iterator[str]:
    def another() -> Iterator[str]:
        if pattern.most is not None and done == pattern.most:
            return
        for after in _derived(pattern.part, rows):
            if after == rows and done + 1 >= pattern.least:
                yield after
            else:
                yield from _rounds(pattern, after, done + 1)

    stops = [rows] if done >= pattern.least else []
    yield from (*stops,) if pattern.reluctant else ()
    yield from another()
    yield from (*stops,) if not pattern.reluctant else ()


def _order(pattern: core.Pattern) -> list[str]:
    """Its words of up to `_MOST` rows, each once, the preferred one first."""
    return list(dict.fromkeys(islice(_derived(pattern, ""), 100_000)))


def _random(rng: random.Random, depth: int) -> core.Pattern:
    if depth == 0 or rng.random() < 0.2:
        return core.OneRow(rng.choice((0, 0, 1)), excluded=False)
    match rng.randrange(4):
        case 0:
            parts = tuple(_random(rng, depth - 1) for _ in range(rng.randint(1, 3)))
            return core.Concatenation(parts)
        case 1:
            return core.Alternation((_random(rng, depth - 1), _random(rng, depth - 1)))
        case _:
            least = rng.randrange(3)
            most = rng.choice((None, *range(max(least, 1), 4)))
            return core.Repetition(_random(rng, depth - 1), least, most, rng.random() < 0.3)


@pytest.mark.each(4)
@pytest.mark.parametrize("seed", range(200))
def test_the_order_of_preference_stays(seed: int) -> None:
    pattern = _random(random.Random(seed), 3)
    assert _order(simplest(pattern)) == _order(pattern), pattern


_ROW = core.OneRow(0, excluded=False)


def _times(part: core.Pattern, least: int, most: int | None) -> core.Repetition:
    return core.Repetition(part, least, most, reluctant=False)


def test_optional_rows_are_counted() -> None:
    optional = _times(_times(_ROW, 0, 1), 4_000, 4_000)
    pattern = core.Concatenation((optional, _times(_ROW, 4_000, 4_000)))
    assert simplest(pattern) == _times(_ROW, 4_000, 8_000)
    assert size_of(simplest(pattern)) == 8_000
    either = core.Alternation((_ROW, core.OneRow(1, excluded=False)))
    assert simplest(_times(_times(either, 0, 1), 9, 9)) == _times(either, 0, 9)


def test_other_orders_stay_as_they_are() -> None:
    either = core.Alternation((_ROW, core.OneRow(1, excluded=False)))
    for pattern in (
        _times(_times(either, 1, 3), 2, 2),  # rows are exchanged before they are left out
        _times(_times(_ROW, 2, 2), 1, 3),  # no odd number of rows
        _times(_times(_ROW, 2, 3), 1, 2),  # 6, 5, 3, 4 and 2 rows
        _times(core.Repetition(_ROW, 0, 3, reluctant=True), 1, 2),
    ):
        assert simplest(pattern) == pattern
