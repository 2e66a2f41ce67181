"""Operands of functions: columns or constants."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Operand: TypeAlias = pa.Array | pa.Scalar


def values_of(operand: Operand, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """(the values of numbers, 0 where NULL; bool[rows], where they are not NULL)."""
    if isinstance(operand, pa.Scalar):
        value = operand.as_py()
        known = np.full(rows, value is not None)
        return np.full(rows, 0 if value is None else value, operand.type.to_pandas_dtype()), known
    known = np.asarray(operand.is_valid())
    nothing = False if pa.types.is_boolean(operand.type) else 0
    return np.asarray(pc.fill_null(operand, nothing)), known


def column_of(operand: Operand, rows: int) -> pa.Array:
    """The operand as a column."""
    return pa.repeat(operand, rows) if isinstance(operand, pa.Scalar) else operand


def each(code: Callable[..., Any], type: pa.DataType, *operands: Operand, rows: int) -> pa.Array:
    """A function of Python, called once for different operands; NULL where one is NULL."""
    if len(operands) == 1 and isinstance(operands[0], pa.Array):
        return _each_value(code, type, operands[0])
    lists = [
        [one.as_py()] * rows if isinstance(one, pa.Scalar) else one.to_pylist() for one in operands
    ]
    known: dict[tuple[Any, ...], Any] = {}
    found = []
    for row in zip(*lists, strict=True):
        if row not in known:
            known[row] = None if None in row else code(*row)
        found.append(known[row])
    return pa.array(found, type)


def _each_value(code: Callable[..., Any], type: pa.DataType, column: pa.Array) -> pa.Array:
    coded = column.dictionary_encode()
    distinct = [None if one is None else code(one) for one in coded.dictionary.to_pylist()]
    return pa.array(distinct, type).take(coded.indices)
