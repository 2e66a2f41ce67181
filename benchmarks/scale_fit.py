"""The fit of the model of `celc size`: costs as sums of terms, with numbers of zero or more.

Relative errors are squared and added up, so that a small run counts as much as a large one. Terms
go one after another as long as the error for queries that are left out hardly grows: few terms say
more about a query that nobody has measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

_HARDLY = 1.05
"""A term stays where the error for queries that are left out is larger by so much without it."""


class Point(NamedTuple):
    """What was measured: the query's name, its terms, and the cost."""

    name: str
    terms: Mapping[str, float]
    cost: float


class Fit(NamedTuple):
    """Numbers for terms; the factors by which queries that were left out cost more than predicted;
    and the factor within which nine of ten of them lie."""

    terms: dict[str, float]
    factors: tuple[float, ...]
    factor: float


def fit(points: Sequence[Point], names: Sequence[str], kept: Sequence[str] = ()) -> Fit:
    """The model of points with the fewest of these terms; those in `kept` always stay."""
    chosen = list(names)
    error = _spread(_left_out(points, chosen))
    while True:
        tried = []
        for name in chosen:
            if name not in kept and len(chosen) > 1:
                fewer = [other for other in chosen if other != name]
                tried.append((_spread(_left_out(points, fewer)), fewer))
        if not tried:
            break
        least, fewer = min(tried, key=lambda one: one[0])
        if least > error * _HARDLY + 1e-9:
            break
        error, chosen = min(error, least), fewer
    factors = _left_out(points, chosen)
    away = np.exp(np.quantile(np.abs(np.log(factors)), 0.9))
    terms = dict(zip(chosen, map(float, _numbers(points, chosen)), strict=True))
    return Fit({name: value for name, value in terms.items() if value}, factors, float(away))


def _left_out(points: Sequence[Point], names: Sequence[str]) -> tuple[float, ...]:
    """Measured over predicted, for each point by a fit without all points of its query."""
    found = []
    for name in dict.fromkeys(point.name for point in points):
        numbers = _numbers([point for point in points if point.name != name], names)
        for point in points:
            if point.name == name:
                predicted = sum(
                    number * point.terms[term] for number, term in zip(numbers, names, strict=True)
                )
                found.append(point.cost / max(predicted, 1e-12 * point.cost))
    return tuple(found)


def _spread(factors: Sequence[float]) -> float:
    """The size of errors, as the root of their mean square, in logarithms."""
    return float(np.sqrt(np.mean(np.square(np.log(factors)))))


def _numbers(points: Sequence[Point], names: Sequence[str]) -> Any:
    """The numbers, none below zero, with the least squares of relative errors (the algorithm of
    Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23)."""
    terms = np.array([[point.terms[name] for name in names] for point in points], float)
    relative = terms / np.array([point.cost for point in points])[:, None]
    scale = np.sqrt(np.square(relative).sum(axis=0))
    scale[scale == 0] = 1.0
    relative /= scale
    numbers, free = np.zeros(len(names)), np.zeros(len(names), bool)
    while True:
        gain = relative.T @ (1.0 - relative @ numbers)
        gain[free] = 0.0
        if gain.max() < 1e-9:
            return numbers / scale
        free[int(gain.argmax())] = True
        while True:
            best = np.zeros(len(names))
            best[free] = np.linalg.lstsq(relative[:, free], np.ones(len(points)), rcond=None)[0]
            below = free & (best <= 0)
            if not below.any():
                numbers = best
                break
            # As far towards the best as no number falls below zero; those at zero are fixed.
            steps = numbers[below] / (numbers[below] - best[below])
            numbers = numbers + steps.min() * (best - numbers)
            free &= numbers > 1e-12
            numbers[~free] = 0.0
