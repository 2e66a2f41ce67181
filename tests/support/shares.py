"""Shares of parameters: some in the suite, which has minutes, and the others in the long run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def share(values: Iterable[Any], each: int, *, first: int = 0) -> list[Any]:
    """The values as parameters of a test; all but every `each`-th, from place `first` on, are
    marked `long`. A tuple is the values of several arguments."""
    parameters = []
    for place, value in enumerate(values):
        marks = [] if place % each == first else [pytest.mark.long]
        several = value if isinstance(value, tuple) else (value,)
        parameters.append(pytest.param(*several, marks=marks))
    return parameters
