"""The model: what a query costs is a sum of terms, each an amount times a measured number.

`measured.json` has the numbers, with the date and the machine. `benchmarks/scale.py` makes it: it
runs queries of many shapes over several sizes and finds the numbers, none below zero, with the
least relative errors. The error is that of queries which were left out of such a fit, one at a
time, so that it is the error for a query that was not measured.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from celc_runtime.plan.frozen import frozen

from celc.interfaces.cli.sizing.shape import Shape

MEASURED: Final = Path(__file__).with_name("measured.json")

Terms = Mapping[str, float]


@frozen
class Batch:
    """The amounts of a batch job. relevant: the part of the rows that can matter to the query.
    in_window: such rows of one key in a window. text: bytes of a text."""

    rows: float
    keys: float
    relevant: float
    matches: float
    in_window: float
    tasks: float
    text: float


@frozen
class Stream(Batch):
    """The amounts of a micro-batch of a stream. state: events that the state holds."""

    state: float


def terms(shape: Shape, amounts: Batch) -> dict[str, float]:
    """The amounts that costs are sums of, by their names."""
    kept = amounts.rows * amounts.relevant
    # Matches of one end travel together. They are taken to fall on events at random.
    can_end = kept / shape.types
    ends = -can_end * math.expm1(-amounts.matches / can_end) if can_end else 0.0
    found = {
        "job": 1.0,
        "column of the answer": float(shape.values),
        "task": amounts.tasks,
        "row": amounts.rows,
        "number of a row": amounts.rows * shape.numbers,
        "text of a row": amounts.rows * shape.texts,
        "event": kept,
        "number of an event": kept * shape.numbers,
        "text of an event": kept * shape.texts,
        "byte of an event": kept * (8 * shape.numbers + amounts.text * shape.texts),
        "event in tables": kept * shape.tables,
        "step of a search": kept * steps(shape, amounts.in_window),
        "end": ends,
        "value of an end": ends * shape.values,
        "real number or text of an end": ends * shape.real,
        "other value of an end": ends * shape.other,
        "match": amounts.matches,
        "value of a match": amounts.matches * shape.values,
        "key": min(amounts.keys, kept),
    }
    if isinstance(amounts, Stream):
        found["event of the state"] = amounts.state
        found["byte of the state"] = amounts.state * (
            8 * shape.numbers + amounts.text * shape.texts
        )
    return found


def of_one_task(found: Terms, tasks: float) -> dict[str, float]:
    """The amounts of a task, of so many that share them."""
    return {name: 1.0 if name == "job" else value / tasks for name, value in found.items()}


def steps(shape: Shape, in_window: float) -> float:
    """The steps of the search for each event that can matter: an event of the last type looks at
    the events of the other types, of which there are as many."""
    if not shape.search:
        return 0.0
    return float((in_window / shape.types) ** shape.search / shape.types)


@frozen
class Predicted:
    """A cost with its interval: nine of ten queries that were not measured lie within."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Predicted:
        """The cost on a machine that takes so many times as long."""
        return Predicted(self.value * factor, self.low * factor, self.high * factor)


class Model:
    """What was measured."""

    def __init__(self, measured: Mapping[str, Any]) -> None:
        self.measured = measured

    def has(self, name: str) -> bool:
        """Whether a cost was measured."""
        return name in self.measured["costs"]

    def cost(self, name: str, found: Terms) -> Predicted:
        """A cost, such as `batch cpu` in seconds, of these terms."""
        of = self.measured["costs"][name]
        value = sum(number * found[term] for term, number in of["terms"].items())
        return Predicted(value, value / of["factor"], value * of["factor"])

    def parts(self, name: str, found: Terms) -> dict[str, float]:
        """The same cost, term by term."""
        of = self.measured["costs"][name]
        return {term: number * found[term] for term, number in of["terms"].items()}

    def most(self, name: str) -> float:
        """The most rows that were measured for a cost."""
        return float(self.measured["costs"][name]["most rows"])


@cache
def model() -> Model:
    """The model that comes with celc."""
    return Model(json.loads(MEASURED.read_text("utf-8")))
