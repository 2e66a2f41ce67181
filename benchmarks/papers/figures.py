"""What the scripts of figures have in common: lines, sentences that must hold, and growth.

A script has a function `make(small)`, which returns what it has made. Small runs take seconds in
Python and time nothing: their sentences are about counts, which are the same at every run. Others
have CPU seconds too, each the least of some runs that take turns.

A paper's numbers stand in its `paper.toml`, as printed, with the place. A script gives ours for
each of them, by the same words.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Panel:
    """A picture: lines by name. `log`: the axes that are logarithmic, such as "xy"."""

    title: str
    x: str
    y: str
    lines: Mapping[str, Points]
    log: str = ""


@dataclass(frozen=True)
class Sentence:
    """What must hold of a figure, whether it does, and the numbers that say so.

    `timed`: it is about seconds, so small runs have no such sentence.
    """

    text: str
    holds: bool
    seen: str
    timed: bool = False


@dataclass(frozen=True)
class Made:
    """What a script has made. `ours`: our numbers beside those that the paper prints."""

    panels: tuple[Panel, ...]
    sentences: tuple[Sentence, ...]
    ours: Mapping[str, str] = field(default_factory=dict)


def slope(points: Iterable[tuple[float, float]]) -> float:
    """The exponent of growth: the slope of the least squares in a plot of logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    middle, height = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    across = sum((x - middle) * (y - height) for x, y in logs)
    return float(across / sum((x - middle) ** 2 for x, _ in logs))


def grows(
    what: str, points: Sequence[tuple[float, float]], exponent: float, within: float = 0.2
) -> Sentence:
    """That a count grows with an exponent ± `within`, over all points."""
    found = slope(points)
    return Sentence(
        f"{what} with the exponent {exponent:g} ± {within:g}",
        abs(found - exponent) <= within,
        f"{found:.2f}",
    )


def exponents(points: Sequence[tuple[float, float]]) -> list[float]:
    """The exponents between neighbouring points."""
    return [slope(pair) for pair in pairwise(points)]


def bends_up(what: str, points: Sequence[tuple[float, float]], last: float) -> Sentence:
    """That growth is faster than any power seen before: exponents rise, up to at least `last`."""
    found = exponents(points)
    rises = all(later > one for one, later in pairwise(found))
    return Sentence(
        f"{what} ever faster: the exponent rises from point to point, to {last:g} or more",
        rises and found[-1] >= last,
        ", ".join(f"{one:.2f}" for one in found),
    )


def ratios(upper: Points, lower: Points) -> list[float]:
    """How many times one line is another, point by point."""
    return [y / other for (_, y), (_, other) in zip(upper, lower, strict=True)]


def least_seconds(ways: Mapping[str, Callable[[], object]], runs: int = 5) -> dict[str, float]:
    """CPU seconds of this process for each way: the least of some runs, which take turns.

    A first turn is not counted, because it compiles.
    """
    seconds = dict.fromkeys(ways, math.inf)
    for turn in range(runs + 1):
        for name, run in ways.items():
            start = time.process_time()
            run()
            taken = time.process_time() - start
            if turn:
                seconds[name] = min(seconds[name], taken)
    return seconds
