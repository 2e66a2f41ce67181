"""Groups of matches → the rows of a query with TOTAL: its items, and HAVING.

Whole numbers are exact: int64 if there is room, otherwise Python's numbers. A value that leaves its
type is an error that names the event, as the language says.

Long: a way for each function and type, which all have the same limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import numbers, plain, smallest_units
from celc_runtime.arrow.decimal_vectors import Numbers, decimal_arithmetic, decimals_as
from celc_runtime.engine.arena.batch import real_numbers
from celc_runtime.engine.totals.group_sums import OF_NOTHING, GroupSums, WholeSum
from celc_runtime.engine.totals.measures import (
    GREATEST,
    KNOWN,
    LEAST,
    VALUE,
    Measure,
    measures_of,
)
from celc_runtime.engine.totals.total_elements import NOTHING
from celc_runtime.engine.totals.wide_columns import (
    MOST_DIGITS,
    WideColumn,
    leaves_38_digits,
    wide,
)
from celc_runtime.plan.errors import TotalError
from celc_runtime.plan.expressions import Constant, DecimalArithmetic, ParameterValue
from celc_runtime.plan.plan import COUNTS, Plan
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.plan.totals import (
    EveryOfItems,
    Having,
    ItemAbsolute,
    ItemArithmetic,
    ItemCast,
    ItemCompared,
    ItemIsNull,
    ItemNegation,
    ItemOneOf,
    ItemValue,
    SomeOfItems,
    TotalItem,
    TotalOf,
    Totals,
    TotalTree,
)
from celc_runtime.values.decimals import rounded

_MICROSECONDS_PER_DAY = 86_400_000_000

_OF_COUNTS = arrow_type(COUNTS)

_ROOM = {"BYTE": 1 << 7, "SHORT": 1 << 15, "INT": 1 << 31, "LONG": 1 << 63, COUNTS: MOST_DIGITS}
"""Absolute values of whole numbers of a type are smaller than this."""

_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE", "INTERVAL")

_SAFE = 1 << 62


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


def total_rows(plan: Plan, schema: pa.Schema, groups: Groups) -> pa.RecordBatch:
    """The rows of groups that HAVING keeps; raises TotalError if a value leaves its type."""
    totals = plan.answer.totals
    assert totals is not None
    values = _Evaluation(plan, totals, groups)
    items = [values.item(item) for item in totals.items]
    columns = [*map(plain, groups.keys), *_places(plan, totals, groups)]
    columns += [_column(item, value) for item, value in zip(totals.items, items, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    if totals.having is None:
        return batch
    values.items = {item.name: value for item, value in zip(totals.items, items, strict=True)}
    truth, known = values.having(totals.having)
    return batch.filter(pa.array(truth & known))


def _places(plan: Plan, totals: Totals, groups: Groups) -> list[pa.Array]:
    if totals.per == "PARTITION":
        return []
    if isinstance(totals.per, int):
        type = arrow_type("TIMESTAMP")
        starts = groups.places * totals.per
        return [pa.array(starts).cast(type), pa.array(starts + totals.per).cast(type)]
    columns = [pa.array(groups.places)] if plan.answer.positions else []
    return columns if groups.times is None else [*columns, groups.times]


class _Value(NamedTuple):
    """A value for each group."""

    numbers: np.ndarray  # int64, float64, float32, bool, or object (Python's whole numbers)
    known: np.ndarray  # bool[rows], where it is not NULL
    words: WideColumn | None = None  # instead of `numbers`: whole numbers of 128 bits


class _Evaluation:
    """The trees of a query over one set of groups."""

    def __init__(self, plan: Plan, totals: Totals, groups: Groups) -> None:
        self._plan = plan
        self._groups = groups
        self._measures = measures_of(totals.functions)
        self._all = np.ones(len(groups), np.bool_)
        self.items: dict[str, _Value] = {}

    # --- functions of all matches -----------------------------------------------------------------

    def item(self, item: TotalItem) -> _Value:
        with np.errstate(all="ignore"):
            if isinstance(item.value, TotalOf):
                return self._function(item.value)
            return self._tree(item.value)

    def _function(self, one: TotalOf) -> _Value:
        sums = self._groups.sums
        if one.label is None:
            if one.function == "COUNT":
                return self._count(sums.counts, "the number of matches")
            return _Value(np.ldexp(sums.reals[:, 0], _exponents(sums.scales[:, 0])), self._all)
        if one.attribute is None:
            found = self._whole(Measure(one.label, None, KNOWN))
            return self._count(found.size, f"COUNT({one.label})")
        value = Measure(one.label, one.attribute, VALUE)
        known = Measure(one.label, one.attribute, KNOWN)
        match one.function:
            case "SUM" if value in self._measures.whole:
                return self._whole_sum(one, self._whole(value))
            case "SUM":
                total, scales = self._real(value)
                return _Value(np.ldexp(total, _exponents(scales)), scales > OF_NOTHING)
            case "AVG" if one.read == "INTERVAL":
                return self._mean_of_intervals(one, self._whole(value), self._whole(known))
            case "AVG" if one.of_decimals:
                return self._mean_of_decimals(one, self._whole(value), self._whole(known))
            case "AVG":
                total, scales = self._real(value)
                count, of_count = self._real(value, after=len(self._measures.real))
                return _Value(np.ldexp(total / count, _exponents(scales - of_count)), count > 0)
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

    def _count(self, counted: WideColumn, name: str) -> _Value:
        self._check(leaves_38_digits(counted), f"{name} has more than 38 digits")
        return _Value(np.zeros(0, np.int64), self._all, counted)

    def _whole_sum(self, one: TotalOf, found: WholeSum) -> _Value:
        called = f"SUM({one.label}.{one.attribute})"
        if one.read == "INTERVAL":
            self._check(leaves_38_digits(found.size), f"{called} leaves 64 bits")
            numbers = found.value.as_numbers()
            self._check_room(numbers, found.known, 1 << 63, f"{called} leaves 64 bits")
            return _Value(numbers.astype(np.int64), found.known)
        what = f"the absolute values of {called} have more than 38 digits"
        self._check(leaves_38_digits(found.size), what)
        return _Value(np.zeros(0, np.int64), found.known, found.value)

    def _mean_of_intervals(self, one: TotalOf, found: WholeSum, counted: WholeSum) -> _Value:
        called = f"AVG({one.label}.{one.attribute})"
        full = leaves_38_digits(found.size) | leaves_38_digits(counted.size)
        self._check(full, f"the sum for {called} has more than 38 digits")
        total, count = found.value.as_numbers(), counted.size.as_numbers()
        known = np.asarray(count > 0, np.bool_)
        mean = _quotient(total, np.where(known, count, 1))
        return _Value(np.where(known, mean, 0).astype(np.int64), known)

    def _mean_of_decimals(self, one: TotalOf, found: WholeSum, counted: WholeSum) -> _Value:
        called = f"AVG({one.label}.{one.attribute})"
        full = leaves_38_digits(found.size) | leaves_38_digits(counted.size)
        self._check(full, f"the sum for {called} has more than 38 digits")
        up = arrow_type(one.type).scale - arrow_type(str(one.read)).scale
        total, count = found.value.as_numbers().astype(object), counted.size.as_numbers()
        known = np.asarray(count > 0, np.bool_)
        pairs = zip((total * 10**up).tolist(), np.where(known, count, 1).tolist(), strict=True)
        return _Value(_objects(rounded(*pair) for pair in pairs), known)

    def _extreme(self, one: TotalOf) -> _Value:
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
            return _Value(reals.astype(np.float32) if one.type == "FLOAT" else reals, is_known)
        return _Value(keys, is_known)

    # --- arithmetic -------------------------------------------------------------------------------

    def _tree(self, tree: TotalTree) -> _Value:
        match tree:
            case Constant():
                return self._constant(tree)
            case TotalOf():
                return _opened(self._function(tree))
            case ItemValue():
                return _opened(self.items[tree.name])
            case ParameterValue():
                return self._of_row(tree)
            case ItemCast():
                return self._cast(tree, self._tree(tree.operand))
            case ItemNegation():
                found = self._tree(tree.operand)
                return self._changed(tree, found, lambda numbers: -numbers)
            case ItemAbsolute():
                found = self._tree(tree.operand)
                return self._changed(tree, found, np.abs)
            case ItemArithmetic():
                left, right = self._tree(tree.left), self._tree(tree.right)
                return self._arithmetic(tree, left, right)

    def _of_row(self, tree: ParameterValue) -> _Value:
        """A value of the parameter row, which is a key of the partition."""
        column = self._groups.keys[self._plan.source.partition_by.index(tree.column)]
        if tree.type.startswith("DECIMAL"):
            return _Value(smallest_units(column), np.asarray(column.is_valid()))
        values, known = numbers(plain(column))
        if tree.type == "FLOAT":
            return _Value(values.astype(np.float32), known)
        real = tree.type == "DOUBLE"
        return _Value(values.astype(np.float64 if real else np.int64), known)

    def _constant(self, tree: Constant) -> _Value:
        rows = len(self._groups)
        if tree.value is None:
            return _Value(np.zeros(rows, np.int64), np.zeros(rows, np.bool_))
        dtype: Any = np.int64
        if tree.type in ("FLOAT", "DOUBLE"):
            dtype = np.float32 if tree.type == "FLOAT" else np.float64
        elif isinstance(tree.value, int) and abs(tree.value) >= _SAFE:
            dtype = object
        return _Value(np.full(rows, tree.value, dtype), self._all)

    def _cast(self, tree: ItemCast, found: _Value) -> _Value:
        numbers = found.numbers
        if tree.scale is not None:
            cast = decimals_as(tree.type, Numbers(numbers.astype(object), found.known), tree.scale)
            return _Value(*cast)
        if tree.type == "DOUBLE":
            return _Value(numbers.astype(np.float64), found.known)
        if tree.type == "FLOAT":
            return _Value(numbers.astype(np.float32), found.known)
        if tree.type == "TIMESTAMP":  # of a DATE
            wider = _exact(numbers, np.full(len(numbers), _MICROSECONDS_PER_DAY), _product)
            known = found.known & np.asarray(np.abs(wider) < 1 << 63, np.bool_)
            return _Value(np.where(known, wider, 0).astype(np.int64), known)
        return found  # whole numbers get wider only

    def _changed(
        self,
        tree: ItemNegation | ItemAbsolute,
        found: _Value,
        change: Callable[[np.ndarray], np.ndarray],
    ) -> _Value:
        if found.numbers.dtype.kind == "f":
            return _Value(change(found.numbers), found.known)
        numbers = change(_roomy(found.numbers))
        return self._fitting(numbers, found.known, tree.type)

    def _fitting(self, numbers: np.ndarray, known: np.ndarray, type: str) -> _Value:
        """Whole numbers of a type, or times in 64 bits; raises TotalError if one does not fit."""
        room = _ROOM.get(type, 1 << 63)
        is_decimal = type.startswith("DECIMAL")
        if is_decimal:
            room = 10 ** arrow_type(type).precision
        what = f"a calculation between items leaves {'64 bits' if type in _TIMES else type}"
        self._check_room(numbers, known, room, what, symmetric=is_decimal)
        return _Value(numbers, known)

    def _arithmetic(self, tree: ItemArithmetic, left: _Value, right: _Value) -> _Value:
        known = left.known & right.known
        if tree.sides is not None:
            return self._decimals(tree, tree.sides, left, right)
        a, b, operator = left.numbers, right.numbers, tree.operator
        if operator in ("/", "%"):
            known = known & np.asarray(b != 0, np.bool_)
        if operator == "/":
            return _Value(a / np.where(known, b, 1.0), known)
        if a.dtype.kind == "f":
            if operator == "%":
                return _Value(np.fmod(a, np.where(known, b, b.dtype.type(1))), known)
            return _Value(_REAL[operator](a, b), known)
        if operator == "%":
            a, b = _roomy(a), np.where(known, _roomy(b), 1)
            rest = np.abs(a) % np.abs(b)
            return _Value(np.where(a < 0, -rest, rest), known)
        found = _exact(np.where(known, a, 0), np.where(known, b, 0), _WHOLE_OPERATIONS[operator])
        return self._fitting(found, known, tree.type)

    def _decimals(
        self, tree: ItemArithmetic, sides: tuple[str, str], left: _Value, right: _Value
    ) -> _Value:
        types = (*sides, tree.type)
        calculated = DecimalArithmetic(tree.operator, _NO_TREE, _NO_TREE, types)
        a, b = (Numbers(side.numbers.astype(object), side.known) for side in (left, right))
        found = decimal_arithmetic(calculated, a, b)
        asked = left.known & right.known
        if tree.operator in ("/", "%"):
            asked = asked & np.asarray(right.numbers != 0, np.bool_)
        what = f"a calculation between items leaves {tree.type}"
        self._check(asked & ~found.known, what)
        return _Value(*found)

    # --- HAVING -----------------------------------------------------------------------------------

    def having(self, tree: Having) -> tuple[np.ndarray, np.ndarray]:
        """bool[rows] each: where a condition is TRUE, and where it is not NULL.

        Where it is NULL, the first is arbitrary.
        """
        with np.errstate(all="ignore"):
            return self._condition(tree)

    def _condition(self, tree: Having) -> tuple[np.ndarray, np.ndarray]:
        match tree:
            case EveryOfItems():
                parts = [self._condition(part) for part in tree.parts]
                falsehood = _any(known & ~truth for truth, known in parts)
                known = np.logical_and.reduce([known for _, known in parts]) | falsehood
                return ~falsehood, known
            case SomeOfItems():
                parts = [self._condition(part) for part in tree.parts]
                truth = _any(known & truth for truth, known in parts)
                return truth, np.logical_and.reduce([known for _, known in parts]) | truth
            case ItemIsNull():
                known = self._tree(tree.operand).known
                return (known if tree.negated else ~known), self._all
            case ItemOneOf():
                return self._one_of(tree, self._tree(tree.operand))
            case ItemCompared():
                left, right = self._tree(tree.left), self._tree(tree.right)
                truth = _compared(tree.operator, left.numbers, right.numbers)
                return truth, left.known & right.known

    def _one_of(self, tree: ItemOneOf, found: _Value) -> tuple[np.ndarray, np.ndarray]:
        none = np.zeros(len(self._groups), np.bool_)
        is_in = _any(
            [none, *(_compared("=", found.numbers, _like(found.numbers, v)) for v in tree.values)]
        )
        known = found.known & is_in if tree.has_null else found.known
        return (~is_in if tree.negated else is_in), known

    # --- errors -----------------------------------------------------------------------------------

    def _check_room(
        self,
        numbers: np.ndarray,
        known: np.ndarray,
        room: int,
        what: str,
        *,
        symmetric: bool = False,
    ) -> None:
        if numbers.dtype != object and room >= 1 << 63:
            return
        least = -room + 1 if symmetric else -room
        wrong = known & ~np.asarray((numbers < room) & (numbers >= least), np.bool_)
        self._check(wrong, what)

    def _check(self, wrong: np.ndarray, what: str) -> None:
        """Raises TotalError for the first row where `wrong` (bool[rows]) is true."""
        if not wrong.any():
            return
        raise range_error(self._plan, what, int(self._groups.ends[int(np.argmax(wrong))]))


_NO_TREE = Constant(None, "INT")  # the sides are values

WITHOUT_LIMIT = "SELECT TOTAL has APPROX_COUNT(*) and AVG, which have no such limit"


def range_error(plan: Plan, what: str, end: int, instead: str = WITHOUT_LIMIT) -> TotalError:
    """The error for a total that leaves its type, for matches that end at a position."""
    return TotalError(
        f"query {plan.name!r}: {what}, of the matches that end at position {end}: {instead}, and a "
        "shorter WITHIN has fewer matches"
    )


def _any(truths: Any) -> np.ndarray:
    found: np.ndarray = np.logical_or.reduce(list(truths))
    return found


def _exponents(scales: np.ndarray) -> np.ndarray:
    """int32[rows] for `ldexp`; the result of anything beyond is Infinity or 0."""
    found: np.ndarray = np.clip(scales, -10_000, 10_000).astype(np.int32)
    return found


def _opened(value: _Value) -> _Value:
    """The value as numbers that arithmetic accepts."""
    return value if value.words is None else _Value(value.words.as_numbers(), value.known)


def _roomy(numbers: np.ndarray) -> np.ndarray:
    """Whole numbers that can be negated."""
    if numbers.dtype == object or not len(numbers):
        return numbers
    return numbers.astype(object) if int(numbers.min()) == -(1 << 63) else numbers


def _quotient(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Whole numbers by positive ones, rounded towards 0."""
    size = np.abs(_roomy(total)) // count
    found: np.ndarray = np.where(total < 0, -size, size)
    return found


def _sum(a: Any, b: Any) -> Any:
    return a + b


def _difference(a: Any, b: Any) -> Any:
    return a - b


def _product(a: Any, b: Any) -> Any:
    return a * b


_WHOLE_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
}
_REAL = _WHOLE_OPERATIONS


def _exact(a: np.ndarray, b: np.ndarray, operation: Callable[[Any, Any], Any]) -> np.ndarray:
    """The exact results of an operation on whole numbers: int64 if all fit, else Python's."""
    if not len(a):
        return a
    if a.dtype != object and b.dtype != object:
        most, other = (max(-int(one.min()), int(one.max())) for one in (a, b))
        if (most * other if operation is _product else most + other) < 1 << 63:
            found: np.ndarray = operation(a, b)
            return found
    exact: np.ndarray = operation(a.astype(object), b.astype(object))
    return exact


def _compared(operator: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """bool[rows]. NaN equals itself and is greater than all other numbers, as in Spark."""
    equal, less = left == right, left < right
    if left.dtype.kind == "f" or right.dtype.kind == "f":
        nan, other = np.isnan(left.astype(np.float64)), np.isnan(right.astype(np.float64))
        equal, less = equal | (nan & other), less | (~nan & other)
    equal, less = np.asarray(equal, np.bool_), np.asarray(less, np.bool_)
    by_operator: dict[str, np.ndarray] = {
        "=": equal,
        "!=": ~equal,
        "<": less,
        "<=": less | equal,
        ">": ~(less | equal),
        ">=": ~less,
    }
    return by_operator[operator]


def _objects(found: Iterable[int]) -> np.ndarray:
    return np.array(list(found), object)


def _like(numbers: np.ndarray, value: Any) -> np.ndarray:
    is_large = isinstance(value, int) and abs(value) >= _SAFE
    return np.full(len(numbers), value, object if is_large else None)


def _column(item: TotalItem, value: _Value) -> pa.Array:
    type, known = arrow_type(item.type), value.known
    mask = None if known.all() else ~known
    if pa.types.is_decimal(type):
        # What is not known can be anything, also too large for two words.
        words = wide(np.where(known, value.numbers, 0)) if value.words is None else value.words
        return decimals(words, None if mask is None else known, type)
    if item.type == "BOOLEAN":
        return pa.array(value.numbers.astype(np.bool_), mask=mask)
    if item.type in ("FLOAT", "DOUBLE"):
        return pa.array(value.numbers.astype(np.float64), mask=mask).cast(type)
    numbers = np.where(known, value.numbers, 0).astype(np.int64)
    if item.type in ("INT", "DATE"):
        return pa.array(numbers.astype(np.int32), mask=mask).cast(type)
    return pa.array(numbers, mask=mask).cast(type)


def decimals(
    words: WideColumn, known: np.ndarray | None, type: pa.DataType = _OF_COUNTS
) -> pa.Array:
    """A column of DECIMALs, which has the layout of the words.

    known: bool[rows], where it is not NULL.
    """
    both = np.empty((len(words), 2), np.uint64)
    both[:, 0], both[:, 1] = words.low, words.high
    validity = None if known is None else pa.array(known).buffers()[1]
    return pa.Array.from_buffers(type, len(words), [validity, pa.py_buffer(both)])
