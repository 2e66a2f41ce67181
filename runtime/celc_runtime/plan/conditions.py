"""Conditions on texts, evaluated once for each distinct text instead of once for each event."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class TextCondition:
    """A condition on one column.

    operator: `=`, `!=`, `<`, `<=`, `>`, `>=`, in, rlike, is_null, not_in, not_rlike or is_not_null.
    operands: the text to compare with, the values of the list, or a regular expression of RE2 (the
    compiler turns LIKE into rlike).
    """

    operator: str
    attribute: str
    operands: tuple[str, ...] = ()

    def of_values(self, values: pa.StringArray) -> np.ndarray:
        """bool[len(values)]: where the condition is TRUE of these texts, none of which is NULL."""
        match self.operator:
            case "is_null":
                return np.zeros(len(values), np.bool_)
            case "is_not_null":
                return np.ones(len(values), np.bool_)
            case "in" | "not_in":
                found = pc.is_in(values, value_set=pa.array(self.operands, pa.string()))
            case "rlike" | "not_rlike":
                found = pc.match_substring_regex(values, self.operands[0])
            case operator:
                found = _COMPARE[operator](values, pa.scalar(self.operands[0], pa.string()))
        truth = np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
        return ~truth if self.operator.startswith("not_") else truth

    @property
    def of_null(self) -> bool:
        """Whether the condition is TRUE of NULL."""
        return self.operator == "is_null"


@dataclass(frozen=True, slots=True)
class TextComparison:
    """A comparison of two text columns of one event."""

    operator: str
    left: str
    right: str
    attributes: tuple[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", (self.left, self.right))

    def of_columns(self, left: pa.Array, right: pa.Array) -> np.ndarray:
        """bool[rows]: where the comparison is TRUE."""
        found = pc.fill_null(_COMPARE[self.operator](left, right), False)
        return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


_COMPARE: dict[str, Any] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
