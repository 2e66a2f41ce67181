"""The numbers that are added up, so that all functions of TOTAL follow from them.

AVG is a sum over a number of values, and a sum of no value is NULL, so a function needs several of
them. Each is kept once, however many functions need it.
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

_WHOLE = ("INT", "LONG", "INTERVAL")
_WIDEST = ("LONG", "TIMESTAMP", "INTERVAL")
"""The types whose greatest value is the one that stands for no value."""


class Measure(NamedTuple):
    """A number of each event under a label: the `VALUE` of its attribute, 1 where that is `KNOWN`
    (and of every event, without an attribute), or a key in the order of its values (`LEAST`), or in
    the opposite order (`GREATEST`)."""

    label: str
    attribute: str | None
    what: str


@dataclass(frozen=True)
class MeasureSet:
    """All measures of a query: sums of whole numbers, sums of DOUBLEs, and least keys.

    known: of so many of the whole sums, the first ones, it is wanted whether they have values.
    counted: of so many of the real sums, the first ones, it is known as well how many values they
    have. approximate: whether the number of matches is also wanted as a DOUBLE.
    """

    whole: tuple[Measure, ...]
    real: tuple[Measure, ...]
    known: int
    counted: int
    ordered: tuple[Measure, ...]
    approximate: bool

    @property
    def shape(self) -> Shape:
        """How many there are of each kind."""
        counts_reals = bool(self.real) or self.approximate
        real = len(self.real) if counts_reals else -1
        return Shape(len(self.whole), self.known, real, self.counted, len(self.ordered))


def measures_of(functions: Iterable[TotalOf]) -> MeasureSet:
    """The measures that the functions of a query follow from."""
    summed: dict[Measure, None] = {}
    whole: dict[Measure, None] = {}
    real: dict[Measure, None] = {}
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
            case "SUM":
                if one.read in _WHOLE:
                    summed[value] = None
                else:
                    real[value] = None
            case "AVG" if one.read == "INTERVAL":
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
    return MeasureSet(wholes, reals, len(summed), len(counted), tuple(ordered), approximate)


def write_measured_whole(
    measure: Measure, values: np.ndarray, known: np.ndarray, to: np.ndarray, first: int, width: int
) -> None:
    """Write the events' parts of a sum of whole numbers to to[first] and every `width` places; to:
    int64, values: of any kind of numbers, known: bool[rows]."""
    if measure.what == KNOWN:
        values = np.ones(len(known), np.int64)
    write_whole(values, known, to, first, width)


def write_measured_keys(
    measure: Measure, values: np.ndarray, known: np.ndarray, to: np.ndarray, first: int, width: int
) -> None:
    """Write the same way the events' keys, of which the least is kept."""
    greatest = measure.what == GREATEST
    if measure.what == KNOWN:
        write_known(known, to, first, width)
    elif values.dtype.kind == "f":
        write_keys_of_reals(real_values(values), known, greatest, to, first, width)
    else:
        write_keys(values, known, greatest, to, first, width)


def whole_values(measure: Measure, values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """int64[rows]: what events add to a sum of whole numbers."""
    found = np.empty(len(known), np.int64)
    write_measured_whole(measure, values, known, found, 0, 1)
    return found


def real_values(values: np.ndarray) -> np.ndarray:
    """float64[rows]: what events add to a sum of DOUBLEs, where their values are known."""
    return values.astype(np.float64, copy=False)


def ordered_keys(measure: Measure, values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """int64[rows]: the keys of events, of which the least is kept."""
    found = np.empty(len(known), np.int64)
    write_measured_keys(measure, values, known, found, 0, 1)
    return found
