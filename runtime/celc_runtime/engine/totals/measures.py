"""The measures that all functions of TOTAL are computed from.

A function needs several: AVG is a sum divided by a number of values, and a sum without a value is
NULL. A measure that several functions need is kept once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from celc_runtime.engine.totals.measured_events import (
    write_keys,
    write_keys_of_reals,
    write_known,
    write_whole,
)
from celc_runtime.engine.totals.total_elements import Shape
from celc_runtime.plan.totals import TotalOf

VALUE, KNOWN, LEAST, GREATEST = "value", "known", "least", "greatest"

PIECES = 3
"""The summands of a DECIMAL of more than 18 digits, all with its sign. So the sums of their
absolute values give that of the DECIMALs."""
BITS_OF_PIECES = 40
"""Bits of a piece; the last one has all that are left, at most 47. A smaller number than 10³⁶ has
pieces that bounded elements add up."""

_WHOLE = ("BYTE", "SHORT", "INT", "LONG", "INTERVAL")
_WIDEST = ("LONG", "TIMESTAMP", "TIMESTAMP_NTZ", "INTERVAL")
"""Types whose greatest value also stands for "no value"."""

_SIGN, _ONE = np.uint64(1 << 63), np.uint64(1)
_OF_PIECE = np.uint64((1 << BITS_OF_PIECES) - 1)


class Measure(NamedTuple):
    """A number for each event under a label."""

    label: str
    attribute: str | None
    what: str
    """`VALUE`: the attribute. `KNOWN`: 1 where the attribute is not NULL; without an attribute, 1
    for every event. `LEAST`, `GREATEST`: a key in the order of the values, or in the opposite
    order."""
    part: int | None = None
    """The number of a part, for a DECIMAL that 64 bits do not hold; else None. A value has `PIECES`
    pieces, the lowest first; a key has two, the higher one first."""


@dataclass(frozen=True)
class MeasureSet:
    """All measures of a query: sums of whole numbers, sums of DOUBLEs, and least keys."""

    whole: tuple[Measure, ...]
    real: tuple[Measure, ...]
    known: int  # the first sums of `whole`: those that are NULL if they have no values
    counted: int  # the first sums of `real`: those that need the number of their values
    pairs: int  # the first keys of `ordered` that are pairs: a part, and the one behind it
    ordered: tuple[Measure, ...]
    approximate: bool  # whether the number of matches is also needed as a DOUBLE

    @property
    def shape(self) -> Shape:
        counts_reals = bool(self.real) or self.approximate
        real = len(self.real) if counts_reals else -1
        counts = len(self.whole), self.known, real, self.counted, len(self.ordered)
        return Shape(*counts, self.pairs)


def measures_of(functions: Iterable[TotalOf]) -> MeasureSet:
    """The measures that the functions of a query are computed from."""
    summed: dict[Measure, None] = {}
    whole: dict[Measure, None] = {}
    real: dict[Measure, None] = {}
    paired: dict[Measure, None] = {}
    counted: dict[Measure, None] = {}
    ordered: dict[Measure, None] = {}
    approximate = False
    for one in functions:
        label, attribute = one.label, one.attribute
        approximate |= one.function == "APPROX_COUNT"
        if label is None:
            continue
        if attribute is None:
            whole[Measure(label, None, KNOWN)] = None
            continue
        value, known = Measure(label, attribute, VALUE), Measure(label, attribute, KNOWN)
        match one.function:
            case "SUM" | "AVG" if one.of_wide:
                summed |= dict.fromkeys(pieces_of(value))
                if one.function == "AVG":
                    whole[known] = None
            case "MIN" | "MAX" if one.of_wide:
                what = LEAST if one.function == "MIN" else GREATEST
                paired |= dict.fromkeys(pair_of(Measure(label, attribute, what)))
            case "SUM":
                if one.read in _WHOLE or one.of_decimals:
                    summed[value] = None
                else:
                    real[value] = None
            case "AVG" if one.read == "INTERVAL" or one.of_decimals:
                summed[value] = None
                whole[known] = None
            case "AVG":
                counted[value] = None
            case "MIN" | "MAX":
                what = LEAST if one.function == "MIN" else GREATEST
                ordered[Measure(label, attribute, what)] = None
                if one.read in _WIDEST:
                    ordered[known] = None
            case _:
                raise AssertionError(one.function)
    reals = tuple(counted | real)
    wholes = tuple(summed | whole)
    keys, pairs = tuple(paired | ordered), len(paired) // 2
    return MeasureSet(wholes, reals, len(summed), len(counted), pairs, keys, approximate)


def pieces_of(value: Measure) -> list[Measure]:
    """The summands of a wide value, the lowest first."""
    return [value._replace(part=part) for part in range(PIECES)]


def pair_of(key: Measure) -> list[Measure]:
    """The two parts of a wide key, the higher first."""
    return [key._replace(part=part) for part in (0, 1)]


def write_measured_whole(
    measure: Measure, values: np.ndarray, known: np.ndarray, to: np.ndarray, first: int, width: int
) -> None:
    """Write the summands of a whole sum to to[first], to[first + width], …

    values: numbers of any type. known: bool[rows]. to: int64.
    """
    if measure.what == KNOWN:
        values = np.ones(len(known), np.int64)
    elif measure.part is not None:
        values = _piece(values, measure.part)
    write_whole(values, known, to, first, width)


def write_measured_keys(
    measure: Measure, values: np.ndarray, known: np.ndarray, to: np.ndarray, first: int, width: int
) -> None:
    """Write keys of events, whose least is kept, in the same places."""
    greatest = measure.what == GREATEST
    if measure.what == KNOWN:
        write_known(known, to, first, width)
    elif measure.part is not None:
        part = values["low"] ^ _SIGN if measure.part else values["high"]
        write_keys(part.view(np.int64), known, greatest, to, first, width)
    elif values.dtype.kind == "f":
        write_keys_of_reals(real_values(values), known, greatest, to, first, width)
    else:
        write_keys(values, known, greatest, to, first, width)


def _piece(values: np.ndarray, part: int) -> np.ndarray:
    """int64[rows]: one of the summands of `PAIRS`, with their signs."""
    negative = values["high"] < 0
    low, high = values["low"].copy(), values["high"].astype(np.uint64)
    low[negative] = ~low[negative] + _ONE
    high[negative] = ~high[negative] + (low[negative] == 0)
    if part == 0:
        size = low & _OF_PIECE
    elif part == 1:
        size = (
            low >> np.uint64(BITS_OF_PIECES) | high << np.uint64(64 - BITS_OF_PIECES)
        ) & _OF_PIECE
    else:
        size = high >> np.uint64(2 * BITS_OF_PIECES - 64)
    piece = size.view(np.int64)
    return np.where(negative, -piece, piece)


def whole_values(measure: Measure, values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """int64[rows]: what events add to a whole sum."""
    found = np.empty(len(known), np.int64)
    write_measured_whole(measure, values, known, found, 0, 1)
    return found


def real_values(values: np.ndarray) -> np.ndarray:
    """float64[rows]: what events add to a real sum, where their values are known."""
    return values.astype(np.float64, copy=False)


def ordered_keys(measure: Measure, values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """int64[rows]: the keys of events, whose least is kept."""
    found = np.empty(len(known), np.int64)
    write_measured_keys(measure, values, known, found, 0, 1)
    return found
