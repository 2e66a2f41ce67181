"""Groups of matches → the rows of a query with TOTAL: its items, and HAVING.

Whole numbers are exact: int64 if there is room, otherwise Python's numbers. A value that leaves its
type is an error that names the event, as the language says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import numbers, plain, smallest_units
from celc_runtime.arrow.decimal_vectors import Numbers, decimal_arithmetic, decimals_as
from celc_runtime.arrow.matches.total_values import (
    FunctionValues,
    Groups,
    Value,
    roomy,
)
from celc_runtime.arrow.vectors import column_of
from celc_runtime.engine.totals.wide_columns import MOST_DIGITS, WideColumn, wide
from celc_runtime.plan.expressions import (
    Column,
    Constant,
    DecimalArithmetic,
    Leaf,
    OfTypes,
    ParameterValue,
)
from celc_runtime.plan.plan import COUNTS, Plan
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.plan.totals import (
    EveryOfItems,
    Having,
    ItemAbsolute,
    ItemArithmetic,
    ItemCast,
    ItemCompared,
    ItemHolds,
    ItemIsNull,
    ItemMade,
    ItemNegation,
    ItemOneOf,
    ItemValue,
    SomeOfItems,
    TotalItem,
    TotalOf,
    Totals,
    TotalTree,
)

_MICROSECONDS_PER_DAY = 86_400_000_000

_OF_COUNTS = arrow_type(COUNTS)

_ROOM = {"BYTE": 1 << 7, "SHORT": 1 << 15, "INT": 1 << 31, "LONG": 1 << 63, COUNTS: MOST_DIGITS}
"""Absolute values of whole numbers of a type are smaller than this."""

_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE", "INTERVAL")

_SAFE = 1 << 62


def total_rows(plan: Plan, schema: pa.Schema, groups: Groups) -> pa.RecordBatch:
    """The rows of groups that HAVING keeps; raises TotalError if a value leaves its type."""
    totals = plan.answer.totals
    assert totals is not None
    values = _Evaluation(plan, totals, groups)
    items = [values.item(item) for item in totals.items]
    columns = [*map(plain, groups.keys), *_places(plan, totals, groups)]
    columns += [_column(item.type, value) for item, value in zip(totals.items, items, strict=True)]
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


class _Evaluation:
    """The trees of a query over one set of groups."""

    def __init__(self, plan: Plan, totals: Totals, groups: Groups) -> None:
        self._plan = plan
        self._groups = groups
        self._functions = FunctionValues(plan, totals, groups)
        self._all = np.ones(len(groups), np.bool_)
        self.items: dict[str, Value] = {}

    def item(self, item: TotalItem) -> Value:
        with np.errstate(all="ignore"):
            if isinstance(item.value, TotalOf):
                return self._functions.value_of(item.value)
            return self._tree(item.value)

    # --- arithmetic -------------------------------------------------------------------------------

    def _tree(self, tree: TotalTree) -> Value:
        match tree:
            case Constant():
                return self._constant(tree)
            case TotalOf():
                return _opened(self._functions.value_of(tree))
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
            case ItemMade():
                return self._made(tree)

    def _made(self, tree: ItemMade) -> Value:
        read = {one.name: _column(one.type, self._tree(one.value)) for one in tree.columns}

        def leaf(one: Leaf | OfTypes) -> pa.Array:
            assert isinstance(one, Column), "the others are of events"
            return read[one.name]

        return _value_of(column_of(tree.tree, tree.type, leaf, len(self._groups)), tree.type)

    def _of_row(self, tree: ParameterValue) -> Value:
        """A value of the parameter row, which is a key of the partition."""
        column = self._groups.keys[self._plan.source.partition_by.index(tree.column)]
        return _value_of(column, tree.type)

    def _constant(self, tree: Constant) -> Value:
        rows = len(self._groups)
        if tree.value is None:
            return Value(np.zeros(rows, np.int64), np.zeros(rows, np.bool_))
        dtype: Any = np.int64
        if tree.type in ("FLOAT", "DOUBLE"):
            dtype = np.float32 if tree.type == "FLOAT" else np.float64
        elif isinstance(tree.value, int) and abs(tree.value) >= _SAFE:
            dtype = object
        return Value(np.full(rows, tree.value, dtype), self._all)

    def _cast(self, tree: ItemCast, found: Value) -> Value:
        numbers = found.numbers
        if tree.scale is not None:
            cast = decimals_as(tree.type, Numbers(numbers.astype(object), found.known), tree.scale)
            return Value(*cast)
        if tree.type == "DOUBLE":
            return Value(numbers.astype(np.float64), found.known)
        if tree.type == "FLOAT":
            return Value(numbers.astype(np.float32), found.known)
        if tree.type == "TIMESTAMP":  # of a DATE
            wider = _exact(numbers, np.full(len(numbers), _MICROSECONDS_PER_DAY), _product)
            known = found.known & np.asarray(np.abs(wider) < 1 << 63, np.bool_)
            return Value(np.where(known, wider, 0).astype(np.int64), known)
        return found  # whole numbers get wider only

    def _changed(
        self,
        tree: ItemNegation | ItemAbsolute,
        found: Value,
        change: Callable[[np.ndarray], np.ndarray],
    ) -> Value:
        if found.numbers.dtype.kind == "f":
            return Value(change(found.numbers), found.known)
        numbers = change(roomy(found.numbers))
        return self._fitting(numbers, found.known, tree.type)

    def _fitting(self, numbers: np.ndarray, known: np.ndarray, type: str) -> Value:
        """Whole numbers of a type, or times in 64 bits; raises TotalError if one does not fit."""
        room = _ROOM.get(type, 1 << 63)
        is_decimal = type.startswith("DECIMAL")
        if is_decimal:
            room = 10 ** arrow_type(type).precision
        what = f"a calculation between items leaves {'64 bits' if type in _TIMES else type}"
        self._functions.check_room(numbers, known, room, what, symmetric=is_decimal)
        return Value(numbers, known)

    def _arithmetic(self, tree: ItemArithmetic, left: Value, right: Value) -> Value:
        known = left.known & right.known
        if tree.sides is not None:
            return self._decimals(tree, tree.sides, left, right)
        a, b, operator = left.numbers, right.numbers, tree.operator
        if operator in ("/", "%"):
            known = known & np.asarray(b != 0, np.bool_)
        if operator == "/":
            return Value(a / np.where(known, b, 1.0), known)
        if a.dtype.kind == "f":
            if operator == "%":
                return Value(np.fmod(a, np.where(known, b, b.dtype.type(1))), known)
            return Value(_REAL[operator](a, b), known)
        if operator == "%":
            a, b = roomy(a), np.where(known, roomy(b), 1)
            rest = np.abs(a) % np.abs(b)
            return Value(np.where(a < 0, -rest, rest), known)
        found = _exact(np.where(known, a, 0), np.where(known, b, 0), _WHOLE_OPERATIONS[operator])
        return self._fitting(found, known, tree.type)

    def _decimals(
        self, tree: ItemArithmetic, sides: tuple[str, str], left: Value, right: Value
    ) -> Value:
        types = (*sides, tree.type)
        calculated = DecimalArithmetic(tree.operator, _NO_TREE, _NO_TREE, types)
        a, b = (Numbers(side.numbers.astype(object), side.known) for side in (left, right))
        found = decimal_arithmetic(calculated, a, b)
        asked = left.known & right.known
        if tree.operator in ("/", "%"):
            asked = asked & np.asarray(right.numbers != 0, np.bool_)
        what = f"a calculation between items leaves {tree.type}"
        self._functions.check(asked & ~found.known, what)
        return Value(*found)

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
            case ItemHolds():
                return self._holds(tree)
            case ItemOneOf():
                return self._one_of(tree, self._tree(tree.operand))
            case ItemCompared():
                left, right = self._tree(tree.left), self._tree(tree.right)
                truth = _compared(tree.operator, left.numbers, right.numbers)
                return truth, left.known & right.known

    def _holds(self, tree: ItemHolds) -> tuple[np.ndarray, np.ndarray]:
        truth, known, *_ = self._tree(tree.asked)
        return truth.astype(np.bool_), known

    def _one_of(self, tree: ItemOneOf, found: Value) -> tuple[np.ndarray, np.ndarray]:
        none = np.zeros(len(self._groups), np.bool_)
        is_in = _any(
            [none, *(_compared("=", found.numbers, _like(found.numbers, v)) for v in tree.values)]
        )
        known = found.known & is_in if tree.has_null else found.known
        return (~is_in if tree.negated else is_in), known


_NO_TREE = Constant(None, "INT")  # the sides are values


def _any(truths: Any) -> np.ndarray:
    found: np.ndarray = np.logical_or.reduce(list(truths))
    return found


def _opened(value: Value) -> Value:
    """The value as numbers that arithmetic accepts."""
    return value if value.words is None else Value(value.words.as_numbers(), value.known)


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


def _like(numbers: np.ndarray, value: Any) -> np.ndarray:
    is_large = isinstance(value, int) and abs(value) >= _SAFE
    return np.full(len(numbers), value, object if is_large else None)


def _value_of(column: pa.Array, name: str) -> Value:
    """The values of a column of a type."""
    column = plain(column)
    if name == "STRING":
        return Value(np.zeros(0, np.int64), np.asarray(column.is_valid()), column=column)
    if pa.types.is_decimal(column.type):
        return Value(smallest_units(column), np.asarray(column.is_valid()))
    values, known = numbers(column)
    if name == "FLOAT":
        return Value(values.astype(np.float32), known)
    return Value(values.astype(np.float64 if name == "DOUBLE" else np.int64), known)


def _column(name: str, value: Value) -> pa.Array:
    """The column of a type that holds values."""
    if value.column is not None:
        return value.column
    type, known = arrow_type(name), value.known
    mask = None if known.all() else ~known
    if pa.types.is_decimal(type):
        # What is not known can be anything, also too large for two words.
        words = wide(np.where(known, value.numbers, 0)) if value.words is None else value.words
        return decimals(words, None if mask is None else known, type)
    if name == "BOOLEAN":
        return pa.array(value.numbers.astype(np.bool_), mask=mask)
    if name in ("FLOAT", "DOUBLE"):
        return pa.array(value.numbers.astype(np.float64), mask=mask).cast(type)
    numbers = np.where(known, value.numbers, 0).astype(np.int64)
    if name in ("INT", "DATE"):
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
