"""Simultaneous events on streams: in micro-batches of one to three rows, by hand."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from cases_io import lasting_in, load_cases
from celc_runtime import EventError
from celc_runtime.stream.formats import StreamOptions
from engines import answer_of, engines, interpreted, only_query
from reference import CelError as RefusedError
from reference import WorkLimitError, as_expected, difference, evaluate
from streams_by_hand import EVENT_TIME, instant, streamed, timed
from test_random_instants import BY_START, order_free_query, simultaneous_stream

from celc import CelError
from celc.core.limits import SIMULTANEOUS
from celc.options import Options

_WITH_ROWS = StreamOptions({"row": "LONG"})


def _timed(events: list[dict[str, Any]], column: str = "ts") -> list[dict[str, Any]]:
    """The same events, with an event time that stands still where the column does."""
    values = [event[column] for event in events]
    places = {value: place for place, value in enumerate(dict.fromkeys(values), 1)}
    return [
        {**event, "row": row, EVENT_TIME: instant(places[event[column]])}
        for row, event in enumerate(events)
    ]


def _problems(
    text: str, order_by: tuple[str, ...], events: list[dict[str, Any]], expected: Any, name: str
) -> Iterator[str]:
    with interpreted():
        options = Options((EVENT_TIME, *order_by), ("row",), ties=SIMULTANEOUS)
        compiled = engines(timed(text), options)
    events = _timed(events)
    for engine, matcher in compiled.items():
        query = only_query(matcher)
        rows = streamed(query, events, random.Random(name), options=_WITH_ROWS)
        told = difference(answer_of(query, rows, events), expected)
        if told:
            yield f"{name} {engine}: {told}\n{text}\n{events}"


@pytest.mark.parametrize("each", [2, pytest.param(1, marks=pytest.mark.long)])
def test_cases(each: int) -> None:
    problems: list[str] = []
    for case in (*load_cases("27"), *load_cases("53"))[::each]:
        assert case.order_by is not None
        if case.ends_late:
            continue  # of another attribute than the event time: a stream refuses it
        problems += _problems(case.query, case.order_by, case.events, case.expected, case.name)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("each", [3, pytest.param(1, marks=pytest.mark.long)])
def test_cases_of_events_that_last(each: int) -> None:
    """A stream that is over has decided all matches."""
    problems: list[str] = []
    for case in (*load_cases("41"), *load_cases("49"))[::each]:
        text = lasting_in("MILLISECONDS", case.query)
        events = [{**event, "row": row} for row, event in enumerate(case.in_order)]
        for event in events if "TIMESTAMP" not in case.query else []:
            event |= {name: instant(9 + event[name]) for name in ("start", "end") if name in event}
        plain = [
            {
                name: value.replace(tzinfo=None) if name in ("start", "end") else value
                for name, value in event.items()
            }
            for event in events
        ]
        found = evaluate(text, plain, at_end="closed", times=True)
        expected = [as_expected(match) for match in found]
        assert case.ends_late or len(expected) == len(case.expected)
        with interpreted():
            compiled = engines(text, Options(tiebreak=("row",)))
        for engine, matcher in compiled.items():
            query = only_query(matcher)
            rng = random.Random(case.name)
            rows = streamed(query, events, rng, options=_WITH_ROWS, time="end")
            told = difference(answer_of(query, rows, events), expected)
            problems += [f"{case.name} {engine}: {told}\n{case.query}"] if told else []
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("seeds", [7, pytest.param(40, marks=pytest.mark.long)])
def test_random_queries(seeds: int) -> None:
    problems: list[str] = []
    compared = 0
    for seed in range(seeds):
        rng = random.Random(seed)
        text = order_free_query(rng, 2)
        events = simultaneous_stream(rng, 9)
        events = [event for event in events if event["type"] != "Stranger"]
        try:
            wanted = evaluate(text, events, order_by="ts", ties=SIMULTANEOUS, work_limit=50_000)
            problems += _problems(text, ("ts",), events, wanted, f"seed {seed}")
        except (WorkLimitError, CelError, RefusedError):
            continue
        compared += bool(wanted)
    assert not problems, "\n".join(problems)
    assert compared >= 8 * seeds // 40


def test_one_match_for_each_start() -> None:
    """FIRST and LONGEST compare the starts and ends of instants; a stream refuses them beside
    absences."""
    problems: list[str] = []
    compared = 0
    for seed in range(100, 140):
        rng = random.Random(seed)
        text = order_free_query(rng, 2, BY_START[:-1])
        text = re.sub("WITHIN .*", "", text) + f"WITHIN {rng.randint(1, 8)} [ts]\n"
        events = simultaneous_stream(rng, 9)
        events = [event for event in events if event["type"] != "Stranger"]
        try:
            wanted = evaluate(text, events, order_by="ts", ties=SIMULTANEOUS, work_limit=50_000)
            problems += _problems(text, ("ts",), events, wanted, f"seed {seed}")
        except (WorkLimitError, CelError, RefusedError):
            continue
        compared += bool(wanted)
    assert not problems, "\n".join(problems)
    assert compared >= 8


_TEXT = (
    "CREATE STREAM S { EVENT B { id: INT, at: TIMESTAMP }, EVENT A { id: INT, at: TIMESTAMP } }\n"
    "SELECT * FROM S WHERE A ; B WITHIN 1 HOUR"
)


def test_without_a_tiebreak_all_columns_order_the_events_of_an_instant() -> None:
    """Types first, by their names, and then the attributes, NULL first."""
    events = [
        {"type": "B", "id": 1, EVENT_TIME: instant(1)},
        {"type": "A", "id": 2, EVENT_TIME: instant(1)},
        {"type": "A", "id": None, EVENT_TIME: instant(1)},
        {"type": "B", "id": 1, EVENT_TIME: instant(3)},
    ]
    with interpreted():
        compiled = engines(
            _TEXT.replace("at:", f"{EVENT_TIME}:"), Options((EVENT_TIME,), ties=SIMULTANEOUS)
        )
    rows = streamed(only_query(compiled["general"]), events, random.Random(1))
    assert [(row["start_pos"], row["A"][0]["pos"], row["A"][0]["id"]) for row in rows] == [
        (0, 1, 2),
        (0, 0, None),
    ]
    assert {row["end_pos"] for row in rows} == {3}


def test_without_ties_the_message_names_both_ways_out() -> None:
    events = [{"type": "A", "id": 1, EVENT_TIME: instant(1)}] * 2
    with interpreted():
        compiled = engines(_TEXT.replace("at:", f"{EVENT_TIME}:"), Options((EVENT_TIME,)))
    with pytest.raises(EventError, match=r"tiebreak='id'.*ties='simultaneous'"):
        streamed(only_query(compiled["general"]), events, random.Random(1))
