"""Random sequences of EQL have the matches of the machine that EQL's documents describe."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest
from eql_machine import Asked, Event, sequences

import celc
from celc.diagnostics.source import Source
from celc.interfaces.importing.files import imported
from celc.interfaces.importing.languages import Columns, Translated


def _condition(draw: random.Random, category: str) -> tuple[str, Any]:
    """A condition, and what it says in Python."""
    number, other = draw.randint(0, 2), draw.randint(0, 2)
    choices = {
        "true": lambda _: True,
        f"v == {number}": lambda e: e["v"] == number,
        f"v != {number}": lambda e: e["v"] is not None and e["v"] != number,
        f"v in ({number}, {other})": lambda e: e["v"] in (number, other),
        f"v >= {number} and w <= {other}": lambda e: (
            e["v"] is not None and e["w"] is not None and e["v"] >= number and e["w"] <= other
        ),
        f"v == {number} or not w == {other}": lambda e: (
            e["v"] == number or (e["w"] is not None and e["w"] != other)
        ),
    }
    # Keys matter where many events fit.
    text = draw.choice([*choices, *["true"] * 4])
    test = choices[text]
    if category == "any":
        return text, test
    return text, lambda e: e["type"] == category and test(e)


class _Drawn:
    """A random query: its text, and its steps for the machine."""

    def __init__(self, draw: random.Random) -> None:
        self.keys = draw.choice([(), ("k",), ("k", "l"), "own", "own"])
        # With one event of a type its label is called like the type.
        categories = draw.choice(
            [
                ["process", "network"],
                ["process", "network", "file"],
                ["process"],
                ["process", "any"],
            ]
        )
        self.maxspan = draw.choice([None, 5, 20])
        self.steps: list[Asked] = []
        parts: list[str] = []
        for number in range(draw.choice([2, 2, 3, 3, 4])):
            if number and draw.random() < 0.2:
                parts.append("!" + self._step(draw, draw.choice(categories), is_missing=True))
            parts.append(self._step(draw, draw.choice(categories), is_missing=False))
        self.until = None
        ending = ""
        if draw.random() < 0.25:
            text, own = self._one(draw)
            self.until = Asked(lambda e: e["type"] == "file" and e["v"] == 1, own)
            ending = f" until [file where v == 1]{text}"
        by = f" by {', '.join(self.keys)}" if self.keys and self.keys != "own" else ""
        # A unit of time is a second; the column counts seconds.
        span = f" with maxspan={self.maxspan}s" if self.maxspan else ""
        self.text = f"sequence{by}{span} {' '.join(parts)}{ending}"

    def _one(self, draw: random.Random) -> tuple[str, tuple[str, ...]]:
        if self.keys != "own":
            return "", tuple(self.keys)
        key = draw.choice(["k", "l"])
        return f" by {key}", (key,)

    def _step(self, draw: random.Random, category: str, *, is_missing: bool) -> str:
        condition, takes = _condition(draw, category)
        text, own = self._one(draw)
        self.steps.append(Asked(takes, own, is_missing))
        return f"[{category} where {condition}]{text}"


def _events(draw: random.Random, count: int) -> list[Event]:
    time, events = 0, []
    for _ in range(count):
        time += draw.choice([1, 1, 2, 4])
        events.append(
            {
                "type": draw.choice(["process", "network", "process", "file"]),
                "k": draw.choice(["x", "x", "y", "y", None]),
                "l": draw.choice(["x", "x", "y", "y", None]),
                "v": draw.choice([0, 1, 2, None]),
                "w": draw.choice([0, 1, 2, None]),
                "t": time,
            }
        )
    return events


def _disagreement(seed: int) -> str | None:
    import pyarrow as pa

    draw = random.Random(seed)
    query, events = _Drawn(draw), _events(draw, draw.choice([8, 14, 25]))
    any_type = "any where" in query.text
    columns_of = Columns("t", "kind" if any_type else "type")
    ((_, made),) = imported("eql", [Source("drawn.eql", query.text)], columns_of)
    assert isinstance(made, Translated)
    text = made.text
    names = {"k": pa.string(), "l": pa.string(), "v": pa.int64(), "w": pa.int64()}
    columns: dict[str, Any] = {
        name: pa.array([one[name] for one in events], kind) for name, kind in names.items()
    }
    columns["t"] = pa.array([one["t"] * 1_000_000 for one in events], pa.timestamp("us", "UTC"))
    columns["kind"] = [one["type"] for one in events]
    columns["type"] = ["event" if any_type else one["type"] for one in events]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matcher = celc.compile(text, order_by=["t"])
        rows = matcher.match_table(pa.table(columns)).to_pylist()
    places = {one["t"]: place for place, one in enumerate(events)}
    found = sorted(
        tuple(
            sorted(
                places[int(event["t"].timestamp())]
                for label in row.values()
                if isinstance(label, list)
                for event in label
            )
        )
        for row in rows
    )
    expected = sorted(sequences(events, query.steps, until=query.until, maxspan=query.maxspan))
    if found == expected:
        return None
    return f"seed {seed}\n{query.text}\n{text}\nfound {found}\nexpected {expected}\n{events}"


def test_a_translation_matches_what_the_machine_matches() -> None:
    # 62: two events of one type have different keys of their own.
    assert list(filter(None, map(_disagreement, (*range(4), 62)))) == []


@pytest.mark.long
def test_many_translations_match_what_the_machine_matches() -> None:
    assert list(filter(None, map(_disagreement, range(4, 404)))) == []
