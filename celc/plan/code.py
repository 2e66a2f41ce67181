"""What stands in the data of a plan for code that only the generated module has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Code:
    """An expression of the module: a function, a table, or what calls of its engine make.

    `value`: what it is the name of, where that is data as well; None: it is code.
    """

    text: str
    value: object = None


def code(text: str, value: object = None) -> Any:
    """An expression of the module in the place of its value, of whatever type that is."""
    return Code(text, value)
