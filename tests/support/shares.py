"""Shares of parameters: some in the suite, which has minutes, and the others in the long run."""

from __future__ import annotations

from collections import defaultdict
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


def leave_to_the_long_run(items: Iterable[pytest.Item]) -> None:
    """Mark as `long` what the mark `each(n)` of a test leaves out of the suite: all but each n-th
    of its cases. Of a product of parameters, a case with a value that none before had stays, unless
    the mark says `values=False`."""
    tests: dict[tuple[Any, str], list[pytest.Function]] = defaultdict(list)
    for item in items:
        asked = item.get_closest_marker("each")
        if isinstance(item, pytest.Function) and asked and not item.get_closest_marker("long"):
            tests[item.path, item.originalname].append(item)
    for cases in tests.values():
        asked = cases[0].get_closest_marker("each")
        assert asked is not None
        (each,) = asked.args
        keeps = asked.kwargs.get("values", True)
        is_product = keeps and len([*cases[0].iter_markers("parametrize")]) > 1
        seen: set[tuple[str, int]] = set()
        for place, case in enumerate(cases):
            values = {(name, id(value)) for name, value in case.callspec.params.items()}
            if place % each == 0 or (is_product and values - seen):
                seen |= values
            else:
                case.add_marker(pytest.mark.long)
