"""The values of the functions of TOTAL, for groups of matches.

Whole numbers are exact: int64 if there is room, otherwise Python's numbers. A value that leaves its
type is an error that names the event, as the language says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.engine.arena.batch import real_numbers
from celc_runtime.engine.totals.group_sums import OF_NOTHING, GroupSums, WholeSum
from celc_runtime.engine.totals.measures import (
    BITS_OF_PIECES,
    GREATEST,
    KNOWN,
    LEAST,
    VALUE,
    Measure,
    measures_of,
    pair_of,
    pieces_of,
)
from celc_runtime.engine.totals.total_elements import NOTHING
from celc_runtime.engine.totals.wide_columns import (
    MOST_DIGITS,
    WideColumn,
    leaves_38_digits,
)
from celc_runtime.plan.errors import TotalError
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.plan.totals import TotalOf, Totals
from celc_runtime.values.decimals import rounded


class Groups(NamedTuple):
    """Groups of matches."""

    keys: tuple[pa.Array, ...]  # the partition of each group, column by column
    places: np.ndarray  # int64, identifies a group of a partition: end position or number of span
    ends: np.ndarray  # int64, the position of the last end
    times: pa.Array | None  # the first order column there; None: there is no order column
    sums: GroupSums

    def __len__(self) -> int:
        return len(self.places)

    def taken(self, rows: np.ndarray) -> Groups:
        index = pa.array(rows)
        return Groups(
            tuple(key.take(index) for key in self.keys),
            self.places[rows],
            self.ends[rows],
            None if self.times is None else self.times.take(index),
            self.sums.taken(rows),
        )


class Value(NamedTuple):
    """A value for each group."""

    numbers: np.ndarray  # int64, float64, float32, bool, or object (Python's whole numbers)
    known: np.ndarray  # bool[rows], where it is not NULL
    words: WideColumn | None = None  # instead of `numbers`: whole numbers of 128 bits
    column: pa.Array | None = None  # instead of `numbers`: texts


class FunctionValues:
    """The functions of all matches of a query, over one set of groups."""

    def __init__(self, plan: Plan, totals: Totals, groups: Groups) -> None:
        self._plan = plan
        self._groups = groups
        self._measures = measures_of(totals.functions)
        self._all = np.ones(len(groups), np.bool_)

    def value_of(self, one: TotalOf) -> Value:
        """The value for each group; raises TotalError if one leaves its type."""
        sums = self._groups.sums
        if one.label is None:
            if one.function == "COUNT":
                return self._count(sums.counts, "the number of matches")
            return Value(np.ldexp(sums.reals[:, 0], _exponents(sums.scales[:, 0])), self._all)
        if one.attribute is None:
            found = self._whole(Measure(one.label, None, KNOWN))
            return self._count(found.size, f"COUNT({one.label})")
        value = _value_of(one)
        known = Measure(one.label, one.attribute, KNOWN)
        match one.function:
            case "SUM" if one.of_wide:
                return self._wide_sum(one)
            case "SUM" if value in self._measures.whole:
                return self._whole_sum(one, self._whole(value))
            case "SUM":
                total, scales = self._real(value)
                return Value(np.ldexp(total, _exponents(scales)), scales > OF_NOTHING)
            case "AVG" if one.read == "INTERVAL":
                return self._mean_of_intervals(one, self._whole(value), self._whole(known))
            case "AVG" if one.of_decimals:
                return self._mean_of_decimals(one, self._whole(known))
            case "AVG":
                total, scales = self._real(value)
                count, of_count = self._real(value, after=len(self._measures.real))
                return Value(np.ldexp(total / count, _exponents(scales - of_count)), count > 0)
            case "MIN" | "MAX" if one.of_wide:
                return self._wide_extreme(one)
            case "MIN" | "MAX":
                return self._extreme(one)
            case _:
                raise AssertionError(one.function)

    def _whole(self, measure: Measure) -> WholeSum:
        return self._groups.sums.whole[self._measures.whole.index(measure)]

    def _real(self, measure: Measure, after: int = 0) -> tuple[np.ndarray, np.ndarray]:
        sums, column = self._groups.sums, 1 + after + self._measures.real.index(measure)
        return sums.reals[:, column], sums.scales[:, column]

    def _least(self, measure: Measure) -> np.ndarray:
        column: np.ndarray = self._groups.sums.least[:, self._measures.ordered.index(measure)]
        return column

    def _is_known(self, known: Measure) -> np.ndarray:
        found: np.ndarray = self._least(known) != NOTHING
        return found

    def _count(self, counted: WideColumn, name: str) -> Value:
        self.check(leaves_38_digits(counted), f"{name} has more than 38 digits")
        return Value(np.zeros(0, np.int64), self._all, counted)

    def _whole_sum(self, one: TotalOf, found: WholeSum) -> Value:
        called = _called(one)
        if one.read == "INTERVAL":
            self.check(leaves_38_digits(found.size), f"{called} leaves 64 bits")
            numbers = found.value.as_numbers()
            self.check_room(numbers, found.known, 1 << 63, f"{called} leaves 64 bits")
            return Value(numbers.astype(np.int64), found.known)
        what = f"the absolute values of {called} have more than 38 digits"
        self.check(leaves_38_digits(found.size), what)
        return Value(np.zeros(0, np.int64), found.known, found.value)

    def _mean_of_intervals(self, one: TotalOf, found: WholeSum, counted: WholeSum) -> Value:
        called = _called(one)
        full = leaves_38_digits(found.size) | leaves_38_digits(counted.size)
        self.check(full, f"the sum for {called} has more than 38 digits")
        total, count = found.value.as_numbers(), counted.size.as_numbers()
        known = np.asarray(count > 0, np.bool_)
        mean = _quotient(total, np.where(known, count, 1))
        return Value(np.where(known, mean, 0).astype(np.int64), known)

    def _wide_sum(self, one: TotalOf) -> Value:
        total, size, known = self._of_pieces(one)
        what = f"the absolute values of {_called(one)} have more than 38 digits"
        self.check(np.asarray(size >= MOST_DIGITS, np.bool_), what)
        return Value(total, known)

    def _of_pieces(self, one: TotalOf) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(the sum of DECIMALs of more than 18 digits, and that of their absolute values, as
        Python's numbers; bool[rows], where there are any)."""
        pieces = [self._whole(piece) for piece in pieces_of(_value_of(one))]
        full = np.logical_or.reduce([leaves_38_digits(piece.size) for piece in pieces])
        self.check(full, f"the sum for {_called(one)} has more than 38 digits")
        total = size = np.zeros(len(self._groups), object)
        for piece in reversed(pieces):
            total = (total << BITS_OF_PIECES) + piece.value.as_numbers()
            size = (size << BITS_OF_PIECES) + piece.size.as_numbers()
        return total, size, pieces[0].known

    def _mean_of_decimals(self, one: TotalOf, counted: WholeSum) -> Value:
        too_many = f"the sum for {_called(one)} has more than 38 digits"
        self.check(leaves_38_digits(counted.size), too_many)
        if one.of_wide:
            total, _, _ = self._of_pieces(one)
        else:
            found = self._whole(_value_of(one))
            self.check(leaves_38_digits(found.size), too_many)
            total = found.value.as_numbers().astype(object)
        up = arrow_type(one.type).scale - arrow_type(str(one.read)).scale
        count = counted.size.as_numbers()
        known = np.asarray(count > 0, np.bool_)
        pairs = zip((total * 10**up).tolist(), np.where(known, count, 1).tolist(), strict=True)
        means = _objects(rounded(*pair) for pair in pairs)
        what = f"{_called(one)} leaves {one.type}"
        self.check_room(means, known, MOST_DIGITS, what, symmetric=True)
        return Value(means, known)

    def _wide_extreme(self, one: TotalOf) -> Value:
        what = LEAST if one.function == "MIN" else GREATEST
        high, low = map(self._least, pair_of(_value_of(one)._replace(what=what)))
        is_known = high != NOTHING
        if one.function == "MAX":
            high, low = ~high, ~low
        units = high.astype(object) * 2**64 + (low.astype(object) + 2**63)
        return Value(np.where(is_known, units, 0), is_known)

    def _extreme(self, one: TotalOf) -> Value:
        assert one.label is not None
        what = LEAST if one.function == "MIN" else GREATEST
        keys = self._least(Measure(one.label, one.attribute, what))
        known = Measure(one.label, one.attribute, KNOWN)
        is_known = keys != NOTHING
        if known in self._measures.ordered:
            is_known = self._is_known(known)
        keys = np.where(is_known, keys if one.function == "MIN" else ~keys, 0)
        if one.type in ("FLOAT", "DOUBLE"):
            reals = real_numbers(keys)
            return Value(reals.astype(np.float32) if one.type == "FLOAT" else reals, is_known)
        return Value(keys, is_known)

    # --- errors -----------------------------------------------------------------------------------

    def check_room(
        self,
        numbers: np.ndarray,
        known: np.ndarray,
        room: int,
        what: str,
        *,
        symmetric: bool = False,
    ) -> None:
        """Raises TotalError for the first known number that is not in [-room, room), or with
        `symmetric` not in (-room, room)."""
        if numbers.dtype != object and room >= 1 << 63:
            return
        least = -room + 1 if symmetric else -room
        wrong = known & ~np.asarray((numbers < room) & (numbers >= least), np.bool_)
        self.check(wrong, what)

    def check(self, wrong: np.ndarray, what: str) -> None:
        """Raises TotalError for the first row where `wrong` (bool[rows]) is true."""
        if not wrong.any():
            return
        raise range_error(self._plan, what, int(self._groups.ends[int(np.argmax(wrong))]))


def _value_of(one: TotalOf) -> Measure:
    assert one.label is not None
    return Measure(one.label, one.attribute, VALUE)


def _called(one: TotalOf) -> str:
    return f"{one.function}({one.label}.{one.attribute})"


WITHOUT_LIMIT = "SELECT TOTAL has APPROX_COUNT(*) and AVG, which have no such limit"


def range_error(plan: Plan, what: str, end: int, instead: str = WITHOUT_LIMIT) -> TotalError:
    """The error for a total that leaves its type, for matches that end at a position."""
    return TotalError(
        f"query {plan.name!r}: {what}, of the matches that end at position {end}: {instead}, and a "
        "shorter WITHIN has fewer matches"
    )


def _exponents(scales: np.ndarray) -> np.ndarray:
    """int32[rows] for `ldexp`; the result of anything beyond is Infinity or 0."""
    found: np.ndarray = np.clip(scales, -10_000, 10_000).astype(np.int32)
    return found


def roomy(numbers: np.ndarray) -> np.ndarray:
    """Whole numbers that can be negated."""
    if numbers.dtype == object or not len(numbers):
        return numbers
    return numbers.astype(object) if int(numbers.min()) == -(1 << 63) else numbers


def _quotient(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Whole numbers by positive ones, rounded towards 0."""
    size = np.abs(roomy(total)) // count
    found: np.ndarray = np.where(total < 0, -size, size)
    return found


def _objects(found: Iterable[int]) -> np.ndarray:
    return np.array(list(found), object)
