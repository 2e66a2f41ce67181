"""Numbers of two words against Python's."""

from __future__ import annotations

import random

import numpy as np
from celc_runtime.engine.values.wide_numbers import (
    FULL,
    add_wide,
    add_wrapping,
    multiply_wide,
    multiply_wrapping,
    product_of_words,
)

_WORD = 1 << 64
_FULL = 1 << 127


def _words(number: int) -> tuple[np.uint64, np.uint64]:
    number %= _WORD * _WORD
    return np.uint64(number // _WORD), np.uint64(number % _WORD)


def _number(words: tuple[np.uint64, np.uint64]) -> int:
    return int(words[0]) * _WORD + int(words[1])


def _numbers(seed: int, count: int = 400) -> list[int]:
    """Numbers of all lengths up to 2¹²⁷, and those around the borders of words."""
    random_of = random.Random(seed)
    found = [random_of.getrandbits(random_of.randint(0, 127)) for _ in range(count)]
    borders = [0, 1, 2**32, 2**63, 2**64, 2**96, 2**126, _FULL]
    return found + [max(0, min(border + add, _FULL)) for border in borders for add in (-1, 0, 1)]


def test_counts_stay_at_the_greatest_number() -> None:
    numbers = _numbers(1)
    others = numbers[::-1]
    random.Random(2).shuffle(others)
    for first, second in zip(numbers, others, strict=True):
        words = *_words(first), *_words(second)
        assert _number(add_wide(*words)) == min(first + second, _FULL), (first, second)
        assert _number(multiply_wide(*words)) == min(first * second, _FULL), (first, second)
    assert _number((FULL, np.uint64(0))) == _FULL


def test_signed_numbers_wrap_around() -> None:
    numbers = _numbers(3)
    others = [-number for number in numbers[::-1]]
    with np.errstate(over="ignore"):
        for first, second in zip(numbers, others, strict=True):
            words = *_words(first), *_words(second)
            assert _number(add_wrapping(*words)) == (first + second) % (1 << 128)
            assert _number(multiply_wrapping(*words)) == (first * second) % (1 << 128)


def test_a_product_of_words_is_exact() -> None:
    for first, second in zip(_numbers(4), _numbers(5), strict=True):
        low, other = first % _WORD, second % _WORD
        assert _number(product_of_words(np.uint64(low), np.uint64(other))) == low * other
