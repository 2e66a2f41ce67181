"""Conditions on texts, evaluated over columns."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.plan.conditions import TextComparison, TextCondition


def truth_of_values(condition: TextCondition, values: pa.StringArray) -> np.ndarray:
    """bool[len(values)]: where the condition is TRUE for these texts; none is NULL."""
    match condition.operator:
        case "is_null":
            return np.zeros(len(values), np.bool_)
        case "is_not_null":
            return np.ones(len(values), np.bool_)
        case "in" | "not_in":
            found = pc.is_in(values, value_set=pa.array(condition.operands, pa.string()))
        case "rlike" | "not_rlike":
            found = pc.match_substring_regex(values, condition.operands[0])
        case operator:
            found = _COMPARE[operator](values, pa.scalar(condition.operands[0], pa.string()))
    truth = np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
    return ~truth if condition.operator.startswith("not_") else truth


def truth_of_columns(condition: TextComparison, left: pa.Array, right: pa.Array) -> np.ndarray:
    """bool[rows]: where the comparison of two columns of texts is TRUE. NULL is never so."""
    found = pc.fill_null(_COMPARE[condition.operator](left, right), False)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


_COMPARE: dict[str, Any] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
