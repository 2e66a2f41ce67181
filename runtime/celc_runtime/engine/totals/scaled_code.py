"""Machine code for the numbers of `scaled_numbers`, written in LLVM's own language, because Numba
has no vectors: the same is done to all numbers of a block at once.

Most sums find equal scales. The others take a dozen instructions more, without a branch for each
number, because no processor foresees which one has the smaller scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from celc_runtime.engine.totals.scaled_numbers import NOTHING_FROM, Blocks

_DOUBLE, _WORD, _LANE = ir.DoubleType(), ir.IntType(64), ir.IntType(32)


class Numbers(NamedTuple):
    """Vectors of LLVM: the numbers of a block."""

    sizes: Any
    scales: Any


class Element(NamedTuple):
    """An element among others: the type of their array, the array, and the place."""

    kind: Any
    array: Any
    place: Any


class Vectors:
    """Writes code that works on the blocks of elements."""

    def __init__(self, context: Any, builder: Any, blocks: Blocks) -> None:
        self._context = context
        self.builder = builder
        self._width = blocks.width
        self._length = blocks.length
        self._reals = ir.VectorType(_DOUBLE, self._width)
        self._words = ir.VectorType(_WORD, self._width)

    def all_of(self, value: float) -> Any:
        """A vector of one constant."""
        return ir.Constant(self._reals, [_DOUBLE(value)] * self._width)

    def spread(self, value: Any) -> Any:
        """A vector of one value."""
        undefined = ir.Constant(self._reals, ir.Undefined)
        first = self.builder.insert_element(undefined, value, _LANE(0))
        lanes = ir.Constant(ir.VectorType(_LANE, self._width), [_LANE(0)] * self._width)
        return self.builder.shuffle_vector(first, undefined, lanes)

    def of(self, values: list[Any]) -> Any:
        """A vector of some values."""
        found = ir.Constant(self._reals, ir.Undefined)
        for lane, value in enumerate(values):
            found = self.builder.insert_element(found, value, _LANE(lane))
        return found

    def with_first(self, vector: Any, value: Any) -> Any:
        """A vector with another first value."""
        return self.builder.insert_element(vector, value, _LANE(0))

    def value(self, kind: Any, array: Any, place: Any) -> Any:
        """What an array has at a place."""
        return self.builder.load(self._address(kind, array, place))

    def first_number(self, element: Element) -> tuple[Any, ...]:
        """The size and the scale of an element's first number."""
        # Not read by itself: that takes longer behind a write of the whole block.
        first = self.read(element, 0)
        return tuple(self.builder.extract_element(vector, _LANE(0)) for vector in first)

    def read(self, element: Element, block: int) -> Numbers:
        """A block of an element."""
        return Numbers(*(self.builder.load(at, align=8) for at in self._places(element, block)))

    def write(self, element: Element, block: int, found: Numbers) -> None:
        """Write a block of an element."""
        for vector, at in zip(found, self._places(element, block), strict=True):
            self.builder.store(vector, at, align=8)

    def are_one(self, one: Element, other: Element) -> Any:
        """Whether two elements are the same."""
        builder = self.builder
        addresses = (builder.ptrtoint(self._places(each, 0)[0], _WORD) for each in (one, other))
        return builder.icmp_unsigned("==", *addresses)

    def plus(self, one: Numbers, other: Numbers) -> Numbers:
        """The sums of numbers."""
        builder = self.builder
        differ = builder.fcmp_unordered("!=", one.scales, other.scales)
        bits = ir.IntType(self._width)
        some_differ = builder.icmp_unsigned("!=", builder.bitcast(differ, bits), bits(0))
        sums = Numbers(builder.fadd(one.sizes, other.sizes), one.scales)
        return self.where(some_differ, sums, lambda: self._plus_of_scales(one, other))

    def where(self, condition: Any, numbers: Numbers, others: Callable[[], Numbers]) -> Numbers:
        """Some numbers, or others, in a branch of their own, where a condition holds."""
        before = self.builder.block
        with self.builder.if_then(condition):
            found = others()
            behind = self.builder.block
        chosen = []
        for number, other in zip(numbers, found, strict=True):
            phi = self.builder.phi(self._reals)
            phi.add_incoming(number, before)
            phi.add_incoming(other, behind)
            chosen.append(phi)
        return Numbers(*chosen)

    def have_bits(self, words: list[Any], bits: list[int]) -> Any:
        """For each lane whether its word has its bit; 0 is no bit."""
        builder, vector = self.builder, ir.Constant(self._words, ir.Undefined)
        for lane, word in enumerate(words):
            vector = builder.insert_element(vector, word, _LANE(lane))
        mask = ir.Constant(self._words, [_WORD(bit) for bit in bits])
        none = ir.Constant(self._words, [_WORD(0)] * self._width)
        return builder.icmp_unsigned("!=", builder.and_(vector, mask), none)

    def have_any(self, words: list[Any], bits: list[int]) -> Any:
        """Whether any word has its bit."""
        masks: dict[Any, int] = {}
        for word, bit in zip(words, bits, strict=True):
            masks[word] = masks.get(word, 0) | bit
        found = _WORD(0)
        for word, mask in masks.items():
            found = self.builder.or_(found, self.builder.and_(word, _WORD(mask)))
        return self.builder.icmp_unsigned("!=", found, _WORD(0))

    def _plus_of_scales(self, one: Numbers, other: Numbers) -> Numbers:
        builder = self.builder
        scales = self._larger(one.scales, other.scales)
        parts = []
        for numbers in (one, other):
            # The difference and 1023, as the last bits of a DOUBLE, are the exponent of the
            # factor; an exponent of 0 is the factor 0.
            apart = self._larger(builder.fsub(numbers.scales, scales), self.all_of(NOTHING_FROM))
            bits = builder.fadd(apart, self.all_of(2.0**52 - NOTHING_FROM))
            exponent = builder.shl(
                builder.bitcast(bits, self._words),
                ir.Constant(self._words, [_WORD(52)] * self._width),
            )
            parts.append(builder.fmul(numbers.sizes, builder.bitcast(exponent, self._reals)))
        return Numbers(builder.fadd(*parts), scales)

    def _larger(self, one: Any, other: Any) -> Any:
        is_larger = self.builder.fcmp_ordered(">", one, other)
        return self.builder.select(is_larger, one, other)

    def _address(self, kind: Any, array: Any, place: Any) -> Any:
        data = self._context.make_array(kind)(self._context, self.builder, array).data
        return self.builder.gep(data, [place])

    def _places(self, element: Element, block: int) -> list[Any]:
        """Pointers to the sizes and the scales of a block."""
        builder = self.builder
        first = builder.mul(element.place, _WORD(self._length))
        found = []
        for behind in (0, self._width):
            at = builder.add(first, _WORD(2 * self._width * block + behind))
            address = self._address(element.kind, element.array, at)
            found.append(builder.bitcast(address, self._reals.as_pointer()))
        return found
