"""The numbers of totals that no DOUBLE holds: kernels add and multiply them as arrays would."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from celc_runtime.engine.totals.scaled_numbers import (
    INFINITE,
    NOTHING_FROM,
    UNKNOWN,
    ZERO,
    settled,
    side_by_side,
    sizes_and_scales,
)
from celc_runtime.engine.totals.total_elements import parts_of_scaled
from celc_runtime.jit.kernels import njit

_ELEMENTS, _EVENTS = 6, 5
_SHAPES = [(0, 0, 0), (1, 0, 3), (1, 1, 0), (3, 2, 1), (5, 5, 62)]
"""Real sums, those whose values are counted, other measures before them; labels in one word and in
two."""
_Numbers = tuple[np.ndarray, np.ndarray]
"""Sizes and scales."""


def _number(random_of: random.Random) -> tuple[float, float]:
    """A size and a scale: of no value, of zeros, infinite, or any, mostly of a few scales."""
    kind = random_of.random()
    if kind < 0.1:
        return 0.0, UNKNOWN + random_of.randint(0, 99)
    if kind < 0.2:
        return 0.0, ZERO
    if kind < 0.25:
        return random_of.choice((math.inf, -math.inf)), INFINITE
    if kind < 0.28:
        return math.nan, 256.0
    size = random_of.choice((-1, 1)) * 2.0 ** random_of.uniform(-128, 128)
    return size, 256.0 * random_of.choice((0, 0, 0, 1, 2, 3, 4, 5, -1, 99_999))


def _elements(random_of: random.Random, numbers: int) -> np.ndarray:
    found = [[_number(random_of) for _ in range(numbers)] for _ in range(_ELEMENTS)]
    for element in found:
        if not math.isfinite(element[0][0]) or element[0][1] == ZERO:
            element[0] = 1.0, 256.0  # a count is finite
        element[0] = abs(element[0][0]), element[0][1]
        if element[0][0] == 0.0:
            element[:] = [(0.0, UNKNOWN)] * numbers  # no match has no value
    values = np.array(found)
    return side_by_side(values[:, :, 0], values[:, :, 1])


def _assert_same(one: np.ndarray, other: np.ndarray, numbers: int) -> None:
    """The order of additions is not the same, so the last digits are not."""
    for size, scale, of_other, other_scale in zip(
        *(
            array.reshape(-1)
            for values in (one, other)
            for array in sizes_and_scales(values, _ELEMENTS, numbers)
        ),
        strict=True,
    ):
        assert (size, scale) == (of_other, other_scale) or (
            math.isnan(size) == math.isnan(of_other)
            and scale == other_scale
            and (math.isnan(size) or math.isclose(size, of_other, rel_tol=1e-9))
        ), (size, scale, of_other, other_scale)


def _plus(one: _Numbers, other: _Numbers) -> _Numbers:
    scales = np.maximum(one[1], other[1])
    sizes = np.zeros(scales.shape)
    for more, of_more in (one, other):
        apart = np.maximum(of_more - scales, NOTHING_FROM)
        sizes += more * np.where(apart > NOTHING_FROM, np.exp2(apart), 0.0)
    return sizes, scales


def _moved(
    source: _Numbers, shape: tuple[int, int, int], words: list[int], event: np.ndarray
) -> _Numbers:
    """The numbers with an event more; words: a bit for each measure whose label it has."""
    real, counted, whole = shape
    times, scale = source[0][0], source[1][0]
    sizes, scales = np.zeros(len(source[0])), source[1].copy()
    for number, of_sum in enumerate((*range(real), *range(counted)), 1):
        bit = whole + of_sum
        if times == 0.0 or not words[bit // 64] >> bit % 64 & 1:
            continue
        value, of_value = event[of_sum]
        if number > real:
            value, of_value = (0.0, UNKNOWN) if of_value == UNKNOWN else (1.0, 0.0)
        sizes[number], scales[number] = times * value, scale + of_value
    return _plus(source, (sizes, scales))


def _product(one: _Numbers, two: _Numbers) -> _Numbers:
    left = one[0] * two[0][0], one[1] + two[1][0]
    right = one[0][0] * two[0], one[1][0] + two[1]
    right[0][0] = 0.0
    return _plus(left, right)


@pytest.mark.parametrize("shape", _SHAPES, ids=str)
def test_kernels_do_what_arrays_say(shape: tuple[int, int, int]) -> None:
    real, counted, _ = shape
    numbers = 1 + real + counted
    clear, copy, move, multiply = parts_of_scaled(*shape)

    def operate(operation, to, one, two, target, keep, place, other, program, measured):  # type: ignore[no-untyped-def]
        if operation == 0:
            clear(to, target)
        elif operation == 1:
            copy(to, target, one, place)
        elif operation == 2:
            move(to, target, one, place, keep, program, np.uint64(1), other, measured)
        else:
            multiply(to, target, keep, one, place, two, other)

    compiled: Callable[..., None] = njit(cache=False)(operate)
    random_of = random.Random(str(shape))
    done = 0
    for _ in range(400):
        arrays = [_elements(random_of, numbers) for _ in range(3)]
        events = np.array([[_number(random_of) for _ in range(real)] for _ in range(_EVENTS)])
        words = [random_of.choice((0, 2**64 - 1, random_of.getrandbits(64))) for _ in range(2)]
        operation = random_of.randint(0, 3)
        target, place, keep = random_of.randrange(6), random_of.randrange(6), random_of.randrange(2)
        other = random_of.randrange(_EVENTS)
        # A move can lead from an element to itself.
        source = 0 if operation == 2 and random_of.random() < 0.6 else 1
        if random_of.random() < 0.5 and source == 0:
            place = target

        to, one, two = (
            tuple(found[element].copy() for found in sizes_and_scales(array, _ELEMENTS, numbers))
            for array, element in zip(
                (arrays[0], arrays[source], arrays[2]), (target, place, other), strict=True
            )
        )
        with np.errstate(all="ignore"):
            found: _Numbers
            if operation == 0:
                found = np.zeros(numbers), np.full(numbers, UNKNOWN)
            elif operation == 1:
                found = one
            elif operation == 2:
                found = _moved(one, shape, words, events[other])
            else:
                found = _product(one, two)
            if keep and operation > 1:
                found = _plus(to, found)
        wanted = arrays[0].copy()
        for whole, part in zip(sizes_and_scales(wanted, _ELEMENTS, numbers), found, strict=True):
            whole[target] = part

        places = np.uint64(target), np.uint64(keep), np.uint64(place), np.uint64(other)
        program = np.array([0, *words], np.uint64)
        compiled(
            operation, arrays[0], arrays[source], arrays[2], *places, program, events.reshape(-1)
        )
        _assert_same(wanted, arrays[0], numbers)
        done += operation > 1
    assert done > 100


def _exactly(size: float, scale: float) -> Fraction:
    return Fraction(size) * Fraction(2) ** int(scale)


def test_products_and_sums_are_those_of_exact_numbers() -> None:
    """Operations on finite numbers of any scale are right to 45 binary digits."""
    _, _, _, part = parts_of_scaled(1, 0, 0)
    multiply = njit(cache=False)(lambda *arguments: part(*arguments))
    random_of = random.Random(1)
    for _ in range(500):
        numbers = [
            (
                [2.0 ** random_of.uniform(-128, 128) for _ in range(2)],
                [256.0 * random_of.randint(-3, 9) for _ in range(2)],
            )
            for _ in range(3)
        ]
        to, one, two = (side_by_side(np.array([a]), np.array([b])) for a, b in numbers)
        multiply(to, np.uint64(0), np.uint64(1), one, np.uint64(0), two, np.uint64(0))
        found = sizes_and_scales(to, 1, 2)
        kept, first, second = (
            [_exactly(*pair) for pair in zip(*of, strict=True)] for of in numbers
        )
        exact = [
            kept[0] + first[0] * second[0],
            kept[1] + first[0] * second[1] + first[1] * second[0],
        ]
        for size, scale, wanted in zip(found[0][0], found[1][0], exact, strict=True):
            assert abs(_exactly(size, scale) / wanted - 1) < Fraction(1, 2**45)


@pytest.mark.parametrize("numbers", range(5))
def test_numbers_are_where_they_were_put(numbers: int) -> None:
    sizes, scales = (np.arange(k, k + 3.0 * numbers).reshape(3, numbers) for k in (1, 1000))
    values = side_by_side(sizes, scales)
    assert len(values) == 3 * 2 * numbers
    for found, wanted in zip(sizes_and_scales(values, 3, numbers), (sizes, scales), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_settled_numbers_are_the_same_and_near_1() -> None:
    for exponent in range(-1000, 1000, 7):
        size, scale = settled(1.5 * 2.0**exponent, 512.0)
        assert 2.0**-128 <= size <= 2.0**128
        assert math.log2(size / 1.5) + scale == exponent + 512
    assert settled(0.0, ZERO) == (0.0, ZERO)
    assert settled(-math.inf, INFINITE) == (-math.inf, INFINITE)
    assert math.isnan(settled(math.nan, 0.0)[0])
