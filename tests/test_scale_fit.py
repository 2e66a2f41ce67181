"""The fit behind `celc size`: it finds the numbers of which costs were made, and says its error."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from places import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from scale_fit import Point, fit

_NUMBERS = {"job": 0.5, "row": 4e-7, "match": 2e-6, "key": 0.0}


def _points(noise: float) -> list[Point]:
    rng = np.random.default_rng(5)
    found = []
    for query in range(12):
        share, keys = rng.random(), rng.random()
        for rows in (3e5, 1e6):
            terms = {"job": 1.0, "row": rows, "match": share * rows, "key": keys * rows}
            cost = sum(_NUMBERS[name] * amount for name, amount in terms.items())
            found.append(Point(f"q{query}", terms, cost * float(np.exp(noise * rng.normal()))))
    return found


def test_numbers_are_found() -> None:
    found = fit(_points(0.0), list(_NUMBERS))
    assert found.terms == pytest.approx({"job": 0.5, "row": 4e-7, "match": 2e-6})
    assert found.factor == pytest.approx(1.0)


def test_the_error_is_that_of_queries_that_were_left_out() -> None:
    found = fit(_points(0.1), list(_NUMBERS), kept=("job", "row"))
    assert found.terms["row"] == pytest.approx(4e-7, rel=0.3)
    assert found.terms["match"] == pytest.approx(2e-6, rel=0.2)
    assert 1.1 < found.factor < 1.35
    assert len(found.factors) == 24


def test_no_number_is_below_zero() -> None:
    points = [Point(f"q{n}", {"row": n, "less": 10.0 - n}, 3.0 * n) for n in range(1, 9)]
    assert fit(points, ["row", "less"]).terms == pytest.approx({"row": 3.0})


def test_a_term_that_a_query_alone_has_stays_where_it_is_needed() -> None:
    points = _points(0.0)
    points = [
        Point(p.name, {**p.terms, "text": p.terms["row"] * (p.name in ("q1", "q2"))}, p.cost)
        for p in points
    ]
    points = [Point(p.name, p.terms, p.cost + 1e-6 * p.terms["text"]) for p in points]
    assert fit(points, [*_NUMBERS, "text"]).terms["text"] == pytest.approx(1e-6)
