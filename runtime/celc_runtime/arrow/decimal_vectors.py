"""The values of expressions that are DECIMALs, for all rows at once.

A value is the whole number of its smallest unit, a number of Python in an array of objects: a
tenth of a microsecond for each operation, without limits. Rejected: the pairs of words of
conditions, which take seconds to compile for an answer that Python computes in milliseconds.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import PAIRS, numbers, smallest_units
from celc_runtime.plan.expressions import DecimalArithmetic
from celc_runtime.values import decimals
from celc_runtime.values.types import DecimalType, decimal_of, type_of


class Numbers(NamedTuple):
    """A number for each row; `values` is arbitrary where `known` is false."""

    values: np.ndarray
    known: np.ndarray


def decimal_arithmetic(tree: DecimalArithmetic, left: Numbers, right: Numbers) -> Numbers:
    """A result for each row."""
    one, other, type = map(type_of, tree.types)
    assert isinstance(one, DecimalType)
    assert isinstance(other, DecimalType)
    assert isinstance(type, DecimalType)
    types = (one, other, type)
    known = left.known & right.known
    pairs = zip(left.values.tolist(), right.values.tolist(), known.tolist(), strict=True)
    return _of_list(
        [
            decimals.calculated(tree.operator, a, b, types) if there else None
            for a, b, there in pairs
        ]
    )


def _of_list(found: list[int | None]) -> Numbers:
    values = np.empty(len(found), object)
    values[:] = [value or 0 for value in found]
    return Numbers(values, np.array([value is not None for value in found], np.bool_))


def decimals_as(type: str, given: Numbers, scale: int) -> Numbers:
    """Numbers with `scale` decimals, in another type. One of the two types is a DECIMAL."""
    wanted = type_of(type)
    if not isinstance(wanted, DecimalType):
        return Numbers((given.values / 10**scale).astype(np.float64), given.known)
    power, digits = wanted.scale - scale, wanted.precision
    rows = zip(given.values.tolist(), given.known.tolist(), strict=True)
    return _of_list(
        [
            decimals.fitting(decimals.moved(one, power), digits) if there else None
            for one, there in rows
        ]
    )


def as_doubles(column: pa.Array) -> pa.Array:
    """A DECIMAL column as DOUBLEs, each the nearest one."""
    values = (smallest_units(column) / 10**column.type.scale).astype(np.float64)
    return pa.array(values, mask=np.asarray(column.is_null()))


def ranks_of_decimals(column: pa.Array) -> Numbers:
    """int64 in the order of a DECIMAL column."""
    values, known = numbers(column)
    if values.dtype == PAIRS:
        _, values = np.unique(smallest_units(column), return_inverse=True)
    return Numbers(values.astype(np.int64), known)


def sums_of_decimals(
    column: pa.Array, begins: np.ndarray, ends: np.ndarray, function: str
) -> Numbers:
    """SUM or AVG of the values of each match, which are from where it begins to before its end."""
    given = decimal_of(column.type.precision, column.type.scale)
    known = np.asarray(column.is_valid())
    units = np.where(known, smallest_units(column), 0)
    totals = np.concatenate([[0], np.cumsum(units)]).astype(object)
    counted = np.concatenate([[0], np.cumsum(known)])
    counts = (counted[ends] - counted[begins]).tolist()
    sums = (totals[ends] - totals[begins]).tolist()
    digits, average = decimals.sum_type(given).precision, decimals.average_type(given)
    found: list[int | None] = []
    for total, count in zip(sums, counts, strict=True):
        value = None if count == 0 else decimals.fitting(total, digits)
        if value is not None and function == "AVG":
            up = average.scale - given.scale
            value = decimals.quotient(value, count, up)
            value = None if value is None else decimals.fitting(value, average.precision)
        found.append(value)
    return _of_list(found)
