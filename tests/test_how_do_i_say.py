"""docs/how-do-i-say.md: each shape answers as a function written by hand in plain Python does.

No query is longer than in the engine that the page names.
"""

from __future__ import annotations

import datetime as dt
import random
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.plan.schemas import input_schema
from engines import interpreted
from places import ROOT
from shapes_by_hand import SHAPES, Event, Match
from test_docs import blocks_in, shown_match

import celc

PAGE = ROOT / "docs" / "how-do-i-say.md"
START = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Shape:
    """An example of the page: `there` is the text of each engine that it names."""

    query: str
    events: str
    answer: tuple[str, ...]
    there: dict[str, str]
    declarations: str


def shapes() -> dict[int, list[Shape]]:
    found: dict[int, list[Shape]] = {}
    declared = {"": ""}
    for block in blocks_in(PAGE.read_text(encoding="utf-8")):
        kind, _, number = block.comment.partition(": ")
        if kind == "declarations":
            declared[number] = block.text
        elif kind == "shape":
            declarations = declared.get(number, declared[""])
            found[int(number)] = [
                _shape(part, declarations) for part in block.text.strip("\n").split("\n\n")
            ]
    return found


def _shape(text: str, declarations: str) -> Shape:
    fields: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        name = line[:8].strip() or name
        fields.setdefault(name, []).append(" ".join(line[8:].split()))
    query, events, answer = (fields.pop(key) for key in ("query", "events", "answer"))
    there = {engine: " ".join(lines) for engine, lines in fields.items()}
    return Shape(" ".join(query), " ".join(events), tuple(answer), there, declarations)


def events_of(text: str) -> list[Event]:
    found, second = [], 0
    for position, word in enumerate(text.split()):
        event = re.fullmatch(r"([A-Z])(\d+)?([a-z])?([a-z])?(?:@(\d+):(\d\d))?", word)
        assert event, word
        kind, value, key, parent, minutes, seconds = event.groups()
        second = int(minutes) * 60 + int(seconds) if minutes else second + 1
        parent = parent or key
        found.append(Event(position, kind, int(value) if value else None, key, parent, second))
    return found


def random_events(rng: random.Random, kinds: str, gap: int, most: int) -> list[Event]:
    """Up to `most` events of the letters `kinds`, `gap` seconds apart or a little more or less."""
    second, found = 0, []
    for position in range(rng.randrange(4, most + 1)):
        second += rng.choice((1, gap, 2 * gap - 1))
        key, parent = rng.choice("xy"), rng.choice("xy")
        value = rng.randrange(6) * rng.choice((1, 12, 13))
        found.append(Event(position, rng.choice(kinds), value, key, parent, second))
    return found


def table_of(query: CompiledQuery, events: list[Event]) -> pa.Table:
    rows = [
        {
            "type": one.type,
            "v": one.v,
            "k": one.key,
            "pid": one.key,
            "ppid": one.parent,
            "ts": START + dt.timedelta(seconds=one.second),
        }
        for one in events
    ]
    return pa.Table.from_pylist(rows, input_schema(query.plan))


def compiled(shape: Shape) -> CompiledQuery:
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore", celc.CelWarning)
        (query,) = celc.compile(shape.declarations + shape.query).queries.values()
    return query


def answer_of(query: CompiledQuery, events: list[Event]) -> list[str]:
    return [
        shown_match(query, row) for row in query.match_table(table_of(query, events)).to_pylist()
    ]


def shown(matches: Iterator[Match], query: CompiledQuery) -> list[str]:
    """Matches that were found by hand, in the notation of the page."""
    lines = []
    for match in matches:
        parts = [f"{match.start}..{match.end}"]
        for label in query.plan.answer.labels:
            positions = sorted(match.labels.get(label.name, ()))
            parts.append(f"{label.name}={{{','.join(map(str, positions))}}}")
        lines.append(" ".join(parts))
    return sorted(lines)


def test_the_page_has_every_shape() -> None:
    assert {number: len(found) for number, found in shapes().items()} == {
        number: len(found) for number, found in SHAPES.items()
    }
    assert sorted(SHAPES) == list(range(1, 29))


@pytest.mark.filterwarnings("ignore:.*undecided")
@pytest.mark.parametrize("number", SHAPES)
def test_answers_are_those_found_by_hand(number: int) -> None:
    rng = random.Random(number)
    for shape, by_hand in zip(shapes()[number], SHAPES[number], strict=True):
        query = compiled(shape)
        events = events_of(shape.events)
        assert answer_of(query, events) == [" ".join(line.split()) for line in shape.answer]
        assert shown(by_hand.find(events), query) == sorted(shape.answer)
        matches = 0
        for _ in range(30):
            events = random_events(rng, by_hand.types, by_hand.gap, by_hand.most)
            answer = sorted(answer_of(query, events))
            assert answer == shown(by_hand.find(events), query), events
            matches += len(answer)
        assert matches >= 5, shape.query


def test_no_query_is_longer_than_there() -> None:
    for number, found in shapes().items():
        for shape in found:
            assert shape.there, number
            for engine, text in shape.there.items():
                assert len(shape.query) <= len(text), f"{number}: {engine}"
