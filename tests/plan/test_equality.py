"""Which values are equal: in a key, in a check while listing, and by the definitions."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest
from engines import answers, engines, interpreted, only_query
from reference import as_expected, difference, evaluate
from strategies_across import WIDE_DECLARATION
from test_plans import plan_of

NAN = float("nan")
_DAY = dt.date(2024, 2, 29)
_LARGE = 2**53
_TENTH = 0.10000000149011612
"""The FLOAT next to 0.1, which is another DOUBLE."""


@pytest.mark.parametrize(
    ("left", "right", "given", "wanted"),
    [
        # Each value of the first label, each of the second, and which of them are equal.
        (
            *("value", "value"),
            ([NAN, -0.0, None, 1.5], [NAN, 0.0, None, -0.0]),
            {(0, 0), (1, 1), (1, 3)},
        ),
        (
            *("ratio", "value"),
            ([NAN, -0.0, _TENTH, 0.5], [NAN, 0.0, 0.1, 0.5, _TENTH]),
            {(0, 0), (1, 1), (2, 4), (3, 3)},
        ),
        (
            *("id", "number"),
            ([1, -1, None, 2**31 - 1], [1, 2**32 + 1, None, -1, 2**31 - 1]),
            {(0, 0), (1, 3), (3, 4)},
        ),
        # A LONG is widened to DOUBLE, which rounds what it cannot hold.
        (
            *("number", "value"),
            ([_LARGE, _LARGE + 1, _LARGE + 2, 0], [float(_LARGE), -0.0, NAN]),
            {(0, 0), (1, 0), (3, 1)},
        ),
        (*("name", "code"), (["", "p", None, "P"], ["", "p", None, "p "]), {(0, 0), (1, 1)}),
        (*("flag", "flag"), ([True, None, False], [False, None, True]), {(0, 2), (2, 0)}),
        (*("day", "day"), ([_DAY, None], [_DAY, dt.date(1970, 1, 1), None]), {(0, 0)}),
    ],
)
@pytest.mark.parametrize("plan", ["keys", "checks", "definition"])
def test_which_values_are_equal(
    left: str, right: str, given: tuple[list[Any], list[Any]], wanted: set[Any], plan: str
) -> None:
    """NaN = NaN, −0.0 = 0.0, and what is compared with NULL is unknown."""
    equal = f"x.{left} = y.{right}"
    body = {
        "keys": f"SELECT * WHERE A AS x ; B AS y FILTER {equal}",
        "checks": f"SELECT x, y WHERE A AS x ; (B AS y OR C) FILTER {equal}",
        "definition": f"SELECT * WHERE A AS x ; (B AS y UNLESS (C ; C FILTER C.id = x.id)) "
        f"FILTER {equal}",
    }[plan]
    assert plan_of(body) == plan
    ones, others = given
    events = [{"type": "A", "ts": n, left: value} for n, value in enumerate(ones)]
    events += [{"type": "B", "ts": len(ones) + n, right: value} for n, value in enumerate(others)]
    expected = [
        {
            "partition": {},
            "start": one,
            "end": len(ones) + other,
            "labels": {"x": [one], "y": [len(ones) + other]},
        }
        for one, other in wanted
    ]
    text = WIDE_DECLARATION + body
    assert not difference([as_expected(match) for match in evaluate(text, events)], expected)
    with interpreted():
        matchers = engines(text)
    for matcher in matchers.values():
        query = only_query(matcher)
        for answer in answers(query, events, random.Random(0)).values():
            assert not difference(answer, expected)
