"""What totals do with their numbers (`scaled_numbers`): each operation twice, as Python, which says
what it means, and as machine code.

Rejected: loops over the numbers of an element with a branch for each, which took a fifth longer
where counts are large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from celc_runtime.engine.totals.scaled_code import Element, Numbers, Vectors
from celc_runtime.engine.totals.scaled_numbers import (
    NOTHING_FROM,
    UNKNOWN,
    blocks_of,
    in_blocks,
    sizes_and_scales,
)

_DOUBLE, _WORD = ir.DoubleType(), ir.IntType(64)
_UNSIGNED = types.uint64
_SizesAndScales = tuple[np.ndarray, np.ndarray]


def _plus(one: _SizesAndScales, other: _SizesAndScales) -> _SizesAndScales:
    """The sums of numbers, each given as sizes and scales."""
    scales = np.maximum(one[1], other[1])
    sizes = np.zeros(scales.shape)
    with np.errstate(all="ignore"):
        for more, of_more in (one, other):
            apart = np.maximum(of_more - scales, NOTHING_FROM)
            sizes += more * np.where(apart > NOTHING_FROM, np.exp2(apart), 0.0)
    return sizes, scales


@cache
def parts_of_scaled(real: int, counted: int, whole: int) -> tuple[Callable[..., None], ...]:
    """`clear`, `copy`, `move` and `multiply`, as the parts of `total_elements`, for the numbers of
    elements: the count, `real` sums, and the number of values of the first `counted` ones.

    The sums are the measures behind `whole` others. measured: float64[rows × 2 · real], as in
    `total_elements.Measures`.
    """
    numbers = 1 + real + counted
    length = blocks_of(numbers).length
    sums = (*range(real), *range(counted))  # of each number but the count

    def read(values: np.ndarray, place: Any) -> _SizesAndScales:
        sizes, scales = sizes_and_scales(values[length * int(place) :], 1, numbers)
        return sizes[0].copy(), scales[0].copy()

    def write(values: np.ndarray, place: Any, found: _SizesAndScales) -> None:
        at = length * int(place)
        values[at : at + length] = in_blocks(found[0][None], found[1][None])

    def clear(to, target):  # type: ignore[no-untyped-def]
        write(to, target, (np.zeros(numbers), np.full(numbers, UNKNOWN)))

    def copy(to, target, source, place):  # type: ignore[no-untyped-def]
        write(to, target, read(source, place))

    def move(to, target, source, place, keep, program, labels_at, measured, event):  # type: ignore[no-untyped-def]
        moved, kept = read(source, place), read(to, target)
        times, scale = moved[0][0], moved[1][0]
        sizes, scales = np.zeros(numbers), moved[1].copy()
        for number, sum_number in enumerate(sums, 1):
            bit = whole + sum_number
            if times == 0.0 or not int(program[int(labels_at) + bit // 64]) >> bit % 64 & 1:
                continue
            at = 2 * (int(event) * real + sum_number)
            value, of_value = measured[at], measured[at + 1]
            if number > real:
                value, of_value = (0.0, UNKNOWN) if of_value == UNKNOWN else (1.0, 0.0)
            sizes[number], scales[number] = times * value, scale + of_value
        moved = _plus(moved, (sizes, scales))
        write(to, target, _plus(kept, moved) if keep else moved)

    def multiply(to, target, keep, first, place, second, other):  # type: ignore[no-untyped-def]
        one, two = read(first, place), read(second, other)
        with np.errstate(all="ignore"):
            left = one[0] * two[0][0], one[1] + two[1][0]
            right = one[0][0] * two[0], one[1][0] + two[1]
        right[0][0] = 0.0
        found = _plus(left, right)
        write(to, target, _plus(read(to, target), found) if keep else found)

    return _compiled((clear, copy, move, multiply), _Code(real, counted, whole))


# --- machine code ---------------------------------------------------------------------------------


class _Code:
    """Writes the operations for elements of one shape."""

    def __init__(self, real: int, counted: int, whole: int) -> None:
        self._real = real
        self._whole = whole
        numbers = 1 + real + counted
        self.blocks = blocks_of(numbers)
        sums = [None, *range(real), *range(counted)]
        sums += [None] * (self.blocks.width * self.blocks.number - numbers)
        # The sum whose label each number needs.
        self._sums: list[int | None] = sums

    def clear(self, vectors: Vectors, to: Element) -> None:
        nothing = Numbers(vectors.all_of(0.0), vectors.all_of(UNKNOWN))
        for block in range(self.blocks.number):
            vectors.write(to, block, nothing)

    def copy(self, vectors: Vectors, to: Element, source: Element) -> None:
        for block in range(self.blocks.number):
            vectors.write(to, block, vectors.read(source, block))

    def move(
        self,
        vectors: Vectors,
        to: Element,
        source: Element,
        keep: Any,
        labels: Element,
        measured: Element,
    ) -> None:
        """labels: the first word of the labels of the event, measured: the event."""
        builder = vectors.builder
        times, scale = (vectors.spread(value) for value in vectors.first_number(source))
        keeps = builder.icmp_unsigned("!=", keep, _WORD(0))
        is_other = builder.not_(vectors.are_one(to, source))
        # Most moves leave an element where it is, and double it before an event is added.
        doubles = builder.and_(keeps, builder.not_(is_other))
        factor = vectors.spread(builder.select(doubles, _DOUBLE(2.0), _DOUBLE(1.0)))
        for block in range(self.blocks.number):
            moved = vectors.read(source, block)
            doubled = Numbers(builder.fmul(moved.sizes, factor), moved.scales)
            moved = self._with_event(vectors, doubled, (times, scale), labels, measured, block)
            moved = self._with_kept(vectors, moved, to, block, builder.and_(keeps, is_other))
            vectors.write(to, block, moved)

    def multiply(
        self, vectors: Vectors, to: Element, keep: Any, first: Element, second: Element
    ) -> None:
        builder = vectors.builder
        times, scale = (vectors.spread(value) for value in vectors.first_number(first))
        other_times, other_scale = (vectors.spread(one) for one in vectors.first_number(second))
        keeps = builder.icmp_unsigned("!=", keep, _WORD(0))
        for block in range(self.blocks.number):
            one, two = vectors.read(first, block), vectors.read(second, block)
            found = Numbers(
                builder.fmul(one.sizes, other_times), builder.fadd(one.scales, other_scale)
            )
            more = Numbers(builder.fmul(times, two.sizes), builder.fadd(scale, two.scales))
            if block == 0:
                # The count is one product, not two.
                more = more._replace(sizes=vectors.with_first(more.sizes, _DOUBLE(0.0)))
            if self._real > 0:
                found = vectors.plus(found, more)
            vectors.write(to, block, self._with_kept(vectors, found, to, block, keeps))

    def _with_event(
        self,
        vectors: Vectors,
        moved: Numbers,
        count: tuple[Any, Any],
        labels: Element,
        measured: Element,
        block: int,
    ) -> Numbers:
        """The numbers of a block and what an event adds to them for so many matches; count: vectors
        of its size and scale."""
        if all(number is None for number in self._sums_of(block)):
            return moved
        builder, (times, scale) = vectors.builder, count
        words, bits = self._labels(vectors, labels, block)

        def with_event() -> Numbers:
            value = self._measured(vectors, measured, block)
            # An infinite value times no match would be no number.
            is_some = builder.fcmp_unordered("!=", times, vectors.all_of(0.0))
            adds = builder.and_(vectors.have_bits(words, bits), is_some)
            sizes, scales = builder.fmul(times, value.sizes), builder.fadd(scale, value.scales)
            added = Numbers(
                builder.select(adds, sizes, vectors.all_of(0.0)),
                # Where nothing is added no scale shall differ.
                builder.select(adds, scales, moved.scales),
            )
            return vectors.plus(moved, added)

        return vectors.where(vectors.have_any(words, bits), moved, with_event)

    def _with_kept(
        self, vectors: Vectors, numbers: Numbers, to: Element, block: int, keeps: Any
    ) -> Numbers:
        """The numbers of a block and, if `keeps`, those that it has already."""
        return vectors.where(keeps, numbers, lambda: vectors.plus(vectors.read(to, block), numbers))

    def _sums_of(self, block: int) -> list[int | None]:
        width = self.blocks.width
        return self._sums[block * width : (block + 1) * width]

    def _labels(self, vectors: Vectors, labels: Element, block: int) -> tuple[list[Any], list[int]]:
        """The words of the labels of each number of a block, and the bits that it needs."""
        loaded: dict[int, Any] = {}
        words, bits = [], []
        for number in self._sums_of(block):
            bit = 0 if number is None else self._whole + number
            place = bit // 64
            if place not in loaded:
                at = vectors.builder.add(labels.place, _WORD(place))
                loaded[place] = vectors.value(labels.kind, labels.array, at)
            words.append(loaded[place])
            bits.append(0 if number is None else 1 << bit % 64)
        return words, bits

    def _measured(self, vectors: Vectors, measured: Element, block: int) -> Numbers:
        """What an event adds to each number of a block for one match, if it has the labels."""
        builder = vectors.builder
        first = builder.mul(measured.place, _WORD(2 * self._real))
        sizes, scales = [], []
        for lane, number in enumerate(self._sums_of(block)):
            if number is None:
                sizes.append(_DOUBLE(0.0))
                scales.append(_DOUBLE(UNKNOWN))
                continue
            at = builder.add(first, _WORD(2 * number))
            size = vectors.value(measured.kind, measured.array, at)
            at = builder.add(at, _WORD(1))
            scale = vectors.value(measured.kind, measured.array, at)
            if block * self.blocks.width + lane > self._real:
                # The number of its values: 1, or none.
                is_known = builder.fcmp_ordered("!=", scale, _DOUBLE(UNKNOWN))
                size = builder.select(is_known, _DOUBLE(1.0), _DOUBLE(0.0))
                scale = builder.select(is_known, _DOUBLE(0.0), _DOUBLE(UNKNOWN))
            sizes.append(size)
            scales.append(scale)
        return Numbers(vectors.of(sizes), vectors.of(scales))


def _compiled(
    meanings: tuple[Callable[..., None], ...], code: _Code
) -> tuple[Callable[..., None], ...]:
    """The functions, which are the code where a kernel is compiled."""

    def written(write: Callable[..., None], *kinds: Any) -> tuple[Any, Any]:
        """The signature of an operation, and what writes its code."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            given = zip(signature.args, arguments, strict=True)
            write(Vectors(context, builder, code.blocks), *_grouped(given))
            return context.get_dummy_value()

        return types.void(*kinds), generate

    @intrinsic
    def clear_code(typing_context, to, target):  # type: ignore[no-untyped-def]
        return written(code.clear, to, _UNSIGNED)

    @intrinsic
    def copy_code(typing_context, to, target, source, place):  # type: ignore[no-untyped-def]
        return written(code.copy, to, _UNSIGNED, source, _UNSIGNED)

    @intrinsic
    def move_code(  # type: ignore[no-untyped-def]
        typing_context, to, target, source, place, keep, program, labels_at, measured, event
    ):
        of_program, of_measured = (program, _UNSIGNED), (measured, _UNSIGNED)
        return written(
            code.move, to, _UNSIGNED, source, _UNSIGNED, _UNSIGNED, *of_program, *of_measured
        )

    @intrinsic
    def multiply_code(  # type: ignore[no-untyped-def]
        typing_context, to, target, keep, first, place, second, other
    ):
        of_parts = (first, _UNSIGNED, second, _UNSIGNED)
        return written(code.multiply, to, _UNSIGNED, _UNSIGNED, *of_parts)

    def clear(to, target):  # type: ignore[no-untyped-def]
        return lambda to, target: clear_code(to, target)

    def copy(to, target, source, place):  # type: ignore[no-untyped-def]
        return lambda to, target, source, place: copy_code(to, target, source, place)

    def move(to, target, source, place, keep, program, labels_at, measured, event):  # type: ignore[no-untyped-def]
        def moving(to, target, source, place, keep, program, labels_at, measured, event):  # type: ignore[no-untyped-def]
            move_code(to, target, source, place, keep, program, labels_at, measured, event)

        return moving

    def multiply(to, target, keep, first, place, second, other):  # type: ignore[no-untyped-def]
        def multiplying(to, target, keep, first, place, second, other):  # type: ignore[no-untyped-def]
            multiply_code(to, target, keep, first, place, second, other)

        return multiplying

    for meaning, coded in zip(meanings, (clear, copy, move, multiply), strict=True):
        overload(meaning, jit_options={"nogil": True, "_nrt": False}, inline="always")(coded)
    return meanings


def _grouped(given: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
    """Arguments of an operation: an array and the place behind it are an element."""
    for kind, argument in given:
        if isinstance(kind, types.Array):
            _, place = next(given)
            yield Element(kind, argument, place)
        else:
            yield argument
