"""Conditions on one attribute and constants, of events or of rows."""

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import coded, text_truth
from celc_runtime.plan.conditions import TextCondition
from celc_runtime.plan.parameters import OfEvent, OfRow
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.rules.keys import number_keys, units_in


def truth_of(test: OfEvent | OfRow, column: pa.Array) -> np.ndarray:
    """bool[rows]: where the condition is TRUE of a column."""
    operator = test.operator
    if operator in ("is_null", "is_not_null"):
        null = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
        return null if operator == "is_null" else ~null
    if test.type == "STRING":
        name = test.attribute if isinstance(test, OfEvent) else test.parameter
        texts = tuple(map(str, test.operands))
        return text_truth(TextCondition(operator, name, texts), coded(column))
    if test.type.startswith("DECIMAL"):
        keys, known = units_in(column, test.type)
        constants = np.array(test.operands, object)
    else:
        keys, known = number_keys(column, test.type)
        constants, _ = number_keys(_array(test), test.type)
    truth: np.ndarray
    match operator:
        case "in":
            truth = np.isin(keys, constants)
        case "not_in":
            truth = ~np.isin(keys, constants)
        case "=":
            truth = keys == constants[0]
        case "!=":
            truth = keys != constants[0]
        case "<":
            truth = keys < constants[0]
        case "<=":
            truth = keys <= constants[0]
        case ">":
            truth = keys > constants[0]
        case _:
            assert operator == ">="
            truth = keys >= constants[0]
    found: np.ndarray = np.asarray(truth, np.bool_) & known
    return found


def _array(test: OfEvent | OfRow) -> pa.Array:
    type = arrow_type(test.type)
    if pa.types.is_temporal(type):
        whole = pa.int32() if pa.types.is_date32(type) else pa.int64()
        return pa.array(test.operands, whole).cast(type)
    return pa.array(test.operands, type)
