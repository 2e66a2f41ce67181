"""The values of expressions for all rows at once: rows are events, or matches.

Each node of an expression is evaluated once. Arithmetic is NumPy over whole columns. What a leaf
stands for says the caller: an attribute of events, or a function of a label's events.

Numbers follow Spark SQL with ANSI mode off. NumPy's whole numbers wrap as Spark's do. For times and
durations, a test before the operation says whether the result fits.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import decimal_column, plain, smallest_units
from celc_runtime.arrow.decimal_vectors import Numbers as Numbers
from celc_runtime.arrow.decimal_vectors import decimal_arithmetic, decimals_as
from celc_runtime.engine.arena.batch import order_preserving
from celc_runtime.engine.values.spark_arithmetic import MICROSECONDS_PER_DAY
from celc_runtime.engine.values.time_arithmetic import (
    SMALLEST,
    begins_at_time,
    can_add,
    can_multiply,
    can_subtract,
)
from celc_runtime.jit.kernels import njit
from celc_runtime.plan import expressions as trees
from celc_runtime.plan.expressions import Leaf, Tree, Truth
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.values.code import called

NUMPY_TYPES: dict[str, type[np.generic]] = {
    "BOOLEAN": np.bool_,
    "BYTE": np.int8,
    "SHORT": np.int16,
    "INT": np.int32,
    "LONG": np.int64,
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
    "TIMESTAMP": np.int64,
    "TIMESTAMP_NTZ": np.int64,
    "DATE": np.int32,
    "INTERVAL": np.int64,
}


Value: TypeAlias = pa.Array | Numbers
ValueOf: TypeAlias = Callable[[Leaf | trees.OfTypes], Value]
"""The values of a leaf for all rows; of `OfTypes` a column of truths."""


def column_of(tree: Tree, type: str, leaf: ValueOf, rows: int) -> pa.Array:
    """An expression of a type as a column. A text may be dictionary-coded."""
    with np.errstate(all="ignore"):
        return as_column(_Evaluation(leaf, rows).value(tree), type)


def as_column(value: Value, type: str) -> pa.Array:
    """Values as a column of a type."""
    wanted = arrow_type(type)
    if not isinstance(value, Numbers):
        is_coded = pa.types.is_dictionary(value.type) and value.type.value_type == wanted
        return value if is_coded or value.type == wanted else plain(value).cast(wanted)
    values, known = value
    if pa.types.is_decimal(wanted):
        return decimal_column(values, known, wanted)
    if type in ("BOOLEAN", "DATE"):
        return pa.array(values.astype(NUMPY_TYPES[type]), mask=~known).cast(wanted)
    if pa.types.is_temporal(wanted):
        return pa.array(values, pa.int64(), mask=~known).cast(wanted)
    return pa.array(values, wanted, mask=~known)


def as_numbers(column: Value) -> Numbers:
    """A column as numbers; times and durations as whole numbers, DECIMALs as those of Python."""
    if isinstance(column, Numbers):
        return column
    if pa.types.is_decimal(column.type):
        return Numbers(smallest_units(column), np.asarray(column.is_valid()))
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    if not column.null_count:
        return Numbers(np.array(column), np.ones(len(column), np.bool_))
    known = np.array(column.is_valid(), np.bool_)
    column = pc.fill_null(column, False if pa.types.is_boolean(column.type) else 0)
    return Numbers(np.array(column), known)


class _Evaluation:
    """The values of one expression and the expressions in it."""

    def __init__(self, leaf: ValueOf, rows: int) -> None:
        self._leaf = leaf
        self._rows = rows

    def value(self, tree: Tree) -> Value:
        match tree:
            case trees.Constant():
                return self._constant(tree)
            case trees.Cast():
                values, known = self._numbers(tree.operand)
                if tree.scale is not None:
                    return decimals_as(tree.type, Numbers(values.astype(object), known), tree.scale)
                values = values.astype(NUMPY_TYPES[tree.type])
                if tree.type == "TIMESTAMP":
                    known, values = known & begins_at_times(values), values * MICROSECONDS_PER_DAY
                return Numbers(values, known)
            case trees.Negation() | trees.Absolute():
                values, known = self._numbers(tree.operand)
                if tree.checked:
                    known = known & (values != SMALLEST)
                is_negation = isinstance(tree, trees.Negation)
                return Numbers(-values if is_negation else np.abs(values), known)
            case trees.DecimalArithmetic():
                return decimal_arithmetic(tree, self._numbers(tree.left), self._numbers(tree.right))
            case trees.Arithmetic():
                sides = self._numbers(tree.left), self._numbers(tree.right)
                if tree.checked:
                    return _checked_arithmetic(tree.operator, *sides)
                return _arithmetic(tree.operator, *sides)
            case trees.Call():
                return self._call(tree)
            case trees.Chosen():
                columns = [plain(self._column(one, tree.type)) for one in tree.operands]
                return _chosen(tree.function, columns)
            case trees.Conditional():
                return self._conditional(tree)
            case trees.TimesBetween():
                start, end = self._numbers(tree.start), self._numbers(tree.end)
                micros, known = _checked_arithmetic("-", end, start)
                return Numbers(_cut(micros, tree.unit), known)
            case trees.Asked():
                return self.truth(tree.condition)
            case _:
                return self._leaf(tree)

    def _numbers(self, tree: Tree) -> Numbers:
        return as_numbers(self.value(tree))

    def _column(self, tree: Tree, type: str) -> pa.Array:
        return as_column(self.value(tree), type)

    def _constant(self, tree: trees.Constant) -> Value:
        is_decimal = tree.type.startswith("DECIMAL")
        if tree.type in NUMPY_TYPES or is_decimal:
            known = np.full(self._rows, tree.value is not None)
            dtype = object if is_decimal else NUMPY_TYPES[tree.type]
            return Numbers(np.full(self._rows, tree.value or 0, dtype), known)
        return pa.repeat(pa.scalar(tree.value, arrow_type(tree.type)), self._rows)

    def _call(self, tree: trees.Call) -> pa.Array:
        operands: list[pa.Array | pa.Scalar] = []
        for operand, type in zip(tree.operands, tree.types, strict=True):
            if isinstance(operand, trees.Constant) and not type.startswith("DECIMAL"):
                operands.append(pa.scalar(operand.value, arrow_type(type)))
            else:
                operands.append(self._column(operand, type))
        return called(tree.function, operands, self._rows, tree.zone, tree.type)

    def _conditional(self, tree: trees.Conditional) -> pa.Array:
        otherwise = self._chosen_value(tree.otherwise, tree.type)
        for asked, then in reversed(tree.branches):
            holds = pc.fill_null(self.truth(asked), False)
            otherwise = pc.if_else(holds, self._chosen_value(then, tree.type), otherwise)
        return otherwise

    def _chosen_value(self, tree: Tree, type: str) -> pa.Array | pa.Scalar:
        if isinstance(tree, trees.Constant) and type == "BOOLEAN":
            return pa.scalar(tree.value, pa.bool_())
        return plain(self._column(tree, type))

    def truth(self, asked: Truth) -> pa.BooleanArray:
        """Whether a condition is TRUE or FALSE; NULL: neither."""
        match asked:
            case trees.Every():
                return _joined(pc.and_kleene, [self.truth(part) for part in asked.parts])
            case trees.Some():
                return _joined(pc.or_kleene, [self.truth(part) for part in asked.parts])
            case trees.IsNull():
                value = self.value(asked.operand)
                if isinstance(value, Numbers):
                    return pa.array(value.known if asked.negated else ~value.known)
                null = value.is_null()
                return pc.invert(null) if asked.negated else null
            case trees.Compared():
                return _compared(asked.operator, self.value(asked.left), self.value(asked.right))
            case trees.OneOf():
                return self._one_of(asked)
            case trees.OfTypes():
                return self._leaf(asked)
            case trees.Matches():
                text = plain(self._column(asked.operand, "STRING"))
                found = pc.match_substring_regex(text, asked.pattern)
                return pc.invert(found) if asked.negated else found
            case _:
                assert_never(asked)

    def _one_of(self, asked: trees.OneOf) -> pa.BooleanArray:
        value = self.value(asked.operand)
        constants = [trees.Constant(one, asked.type) for one in asked.values]
        each = [_compared("=", value, self.value(one)) for one in constants]
        known = as_column(value, asked.type).is_valid()
        found = _joined(pc.or_kleene, each) if each else pa.repeat(pa.scalar(False), self._rows)
        found = pc.if_else(known, found, pa.scalar(None, pa.bool_()))
        if asked.has_null:
            found = pc.or_kleene(found, pa.scalar(None, pa.bool_()))
        return pc.invert(found) if asked.negated else found


def _joined(join: Callable[..., pa.Array], parts: list[pa.Array]) -> pa.Array:
    found = parts[0]
    for part in parts[1:]:
        found = join(found, part)
    return found


_COMPARE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


_COMPARE_NUMBERS = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _compared(operator: str, left: Value, right: Value) -> pa.BooleanArray:
    """Whether a comparison holds, as Spark compares: NaN is equal to itself and the greatest."""
    if isinstance(left, Numbers) or isinstance(right, Numbers):
        left, right = as_numbers(left), as_numbers(right)
        truth = _COMPARE_NUMBERS[operator](*_ordered(left.values, right.values))
        return pa.array(np.asarray(truth, np.bool_), mask=~(left.known & right.known))
    if pa.types.is_floating(left.type):
        return _compared(operator, as_numbers(left), as_numbers(right))
    return _COMPARE[operator](plain(left), plain(right))


def _ordered(*sides: np.ndarray) -> Sequence[np.ndarray]:
    """Values whose order is Spark's: floating numbers as whole numbers where some are NaN."""
    if sides[0].dtype.kind != "f" or not any(np.isnan(one).any() for one in sides):
        return sides
    wide = [one.astype(np.float64) for one in sides]
    return [order_preserving(np.where(np.isnan(one), np.nan, one)) for one in wide]


def _chosen(function: str, columns: list[pa.Array]) -> pa.Array:
    """LEAST, GREATEST and COALESCE: operands that are NULL are ignored."""
    if function == "COALESCE":
        return pc.coalesce(*columns)
    operator = "<" if function == "LEAST" else ">"
    best = columns[0]
    for column in columns[1:]:
        better = pc.or_(best.is_null(), pc.fill_null(_compared(operator, column, best), False))
        best = pc.if_else(pc.and_(better, column.is_valid()), column, best)
    return best


# --- arithmetic -----------------------------------------------------------------------------------


def _arithmetic(operator: str, left: Numbers, right: Numbers) -> Numbers:
    (a, left_known), (b, right_known) = left, right
    known = left_known & right_known
    match operator:
        case "+":
            return Numbers(a + b, known)
        case "-":
            return Numbers(a - b, known)
        case "*":
            return Numbers(a * b, known)
        case "/":
            return Numbers(a / b, known & (b != 0))
        case _:
            # As in C and Java, the remainder has the sign of the dividend. Whole numbers are not
            # divided by −1 either, because the quotient of the least one overflows.
            divisor = b if b.dtype.kind == "f" else np.where((b == 0) | (b == -1), 1, b)
            return Numbers(np.fmod(a, divisor.astype(a.dtype)), known & (b != 0))


def _cut(values: np.ndarray, unit: int) -> np.ndarray:
    """Whole units, towards 0."""
    units = np.floor_divide(values, unit)
    found: np.ndarray = units + ((units < 0) & (units * unit != values))
    return found


def _checked_arithmetic(operator: str, left: Numbers, right: Numbers) -> Numbers:
    """Arithmetic of 64-bit numbers; NULL if the result has more bits."""
    result = _arithmetic(operator, left, right)
    fits = np.empty(len(result.known), np.bool_)
    operands = left.values.astype(np.int64), right.values.astype(np.int64)
    what_fits(ord(operator), *operands, fits)
    return result._replace(known=result.known & fits)


@njit(nogil=True, cache=True)
def what_fits(operator, left, right, fits):  # type: ignore[no-untyped-def]
    """Write where 64 bits hold the result of `+`, `-` or `*`, given as its code."""
    for row in range(fits.shape[0]):
        if operator == _PLUS:
            fits[row] = can_add(left[row], right[row])
        elif operator == _MINUS:
            fits[row] = can_subtract(left[row], right[row])
        else:
            fits[row] = can_multiply(left[row], right[row])


_PLUS, _MINUS = ord("+"), ord("-")


@njit(nogil=True, cache=True)
def begins_at_times(days):  # type: ignore[no-untyped-def]
    """bool[rows]: whether the midnight of each DATE is a TIMESTAMP."""
    fits = np.empty(days.shape[0], np.bool_)
    for row in range(days.shape[0]):
        fits[row] = begins_at_time(days[row])
    return fits
