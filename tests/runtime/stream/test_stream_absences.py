"""Absences at the end on streams: in micro-batches of one to three rows, by hand.

The watermark is the clock, later events of a partition decide about absences of EVENTS, and
`finish` closes the stream. So the rows of a stream with `finish`
are those of a closed input. Lengths in `ts` become milliseconds of the event time.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from cases_io import load_cases
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.stream import explain
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.stored.state_rows import KEPT_ROWS, KEY_VALUES
from engines import Event, answer_of, engines, interpreted, only_query, table_of
from reference import CelError as RefusedError
from reference import WorkLimitError, as_expected, check_answer, difference, evaluate
from strategies import DECLARATION, EVERYTHING, Feature, random_query, random_stream
from strategies_absences import branching_absence_query
from strategies_across import wide_stream
from streams_by_hand import (
    EVENT_TIME,
    Operator,
    in_milliseconds,
    instant,
    same_rows,
    streamed,
)

import celc
from celc import CelError
from celc.options import Options

_WITH_ROWS = StreamOptions({"row": "LONG"})
_FEATURES = (EVERYTHING - {Feature.CONSUME_BY}) | {
    Feature.NOT_AFTER,
    Feature.NOT_BEFORE,
    Feature.LOCAL_WINDOW,
}


def _timed_events(events: list[Event]) -> list[Event]:
    return [
        {**event, "row": row, EVENT_TIME: instant(10 + int(event["ts"]))}
        for row, event in enumerate(events)
    ]


def _answers(text: str, events: list[Event], name: str) -> Iterator[tuple[str, list[Any]]]:
    """The rows of each engine, of a stream that is finished."""
    with interpreted():
        compiled = engines(text, Options((EVENT_TIME,), ("row",)))
    for engine, matcher in compiled.items():
        query = only_query(matcher)
        if why_not(query.program, Route.UNBOUNDED) is not None:
            continue
        rows = streamed(query, events, random.Random(name), options=_WITH_ROWS)
        yield engine, answer_of(query, rows, events)


@pytest.mark.parametrize("each", [3, pytest.param(1, marks=pytest.mark.long)])
def test_cases(each: int) -> None:
    problems: list[str] = []
    compared = 0
    for case in load_cases("26")[::each]:
        if case.order_by != ("ts",) or "SECONDS" in case.query or "[mileage]" in case.query:
            continue
        text, events = in_milliseconds(case.query), _timed_events(case.events)
        found = evaluate(text, events, order_by=EVENT_TIME, at_end="closed")
        wanted = [as_expected(match) for match in found]
        for engine, answer in _answers(text, events, case.name):
            compared += 1
            told = difference(answer, wanted)
            if told:
                problems.append(f"{case.name} {engine}: {told}\n{text}\n{events}")
    assert not problems, "\n".join(problems)
    assert compared >= 60 // each


def _check_seed(seed: int) -> bool:
    """Compare a random query on a stream; whether it was compared and has matches."""
    rng = random.Random(seed)
    text = in_milliseconds(random_query(rng, _FEATURES, 1 + seed % 3))
    return _compared(seed, text, _timed_events(random_stream(rng, rng.randint(4, 14), nulls=0.1)))


def _compared(seed: int, text: str, events: list[Event]) -> bool:
    """Compare a query on a stream; whether it was compared and has matches."""
    try:
        wanted = evaluate(text, events, order_by=EVENT_TIME, at_end="closed", work_limit=50_000)
        for engine, answer in _answers(text, events, f"seed {seed}"):
            try:
                check_answer(text, wanted, answer)
            except AssertionError as problem:
                raise AssertionError(f"seed {seed} {engine}: {problem}\n{text}\n{events}") from None
    except (WorkLimitError, CelError, RefusedError):
        return False
    return bool(wanted)


def _check_branching_seed(seed: int) -> bool:
    """The same of a query whose branches have absences of their own; rows about groups of matches
    are compared with those of a table."""
    rng = random.Random(seed)
    text = branching_absence_query(rng)
    events = _timed_events(wide_stream(rng, 10, nulls=0.05))
    if "COLLAPSED" in text or "TOTAL" in text:
        return _compared_groups(seed, in_milliseconds(text), events)
    return _compared(seed, in_milliseconds(text), events)


def _check_groups(seed: int) -> bool:
    """The same of such a query with COLLAPSED or TOTAL."""
    rng = random.Random(seed)
    text = branching_absence_query(rng)
    select = rng.choice(("COLLAPSED *", "COLLAPSED NONE", "TOTAL COUNT(*) AS many"))
    text = re.sub(r"SELECT .* FROM S", f"SELECT {select} FROM S", text)
    text = re.sub(r"(LIMIT|PER) .*\n", "", text)
    text += rng.choice(("", "PER PARTITION\n", "PER 4 MILLISECONDS\n")) if "TOTAL" in select else ""
    events = _timed_events(wide_stream(rng, 12, nulls=0.05))
    return _compared_groups(seed, in_milliseconds(text), events)


def _compared_groups(seed: int, text: str, events: list[Event]) -> bool:
    """Compare the rows of a stream and of a table; whether there are any."""
    rng = random.Random(seed)
    try:
        with interpreted():
            compiled = engines(text, Options((EVENT_TIME,), ("row",)))
    except CelError:
        return False
    query = only_query(rng.choice([*compiled.values()]))
    if why_not(query.program, Route.UNBOUNDED) is not None:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        closed = query.with_options(at_end="closed")
        wanted = closed.match_table(table_of(query.plan, events)).to_pylist()
        found = streamed(query, events, rng, options=_WITH_ROWS, largest=rng.choice((1, 3)))
    assert not (told := same_rows(found, wanted)), f"seed {seed}: {told}\n{text}{events}"
    return bool(wanted)


@pytest.mark.parametrize("seeds", [10, pytest.param(60, marks=pytest.mark.long)])
def test_branches_with_absences_of_their_own(seeds: int) -> None:
    """No row comes before the deadline of the branch by which it is a match."""
    assert sum(map(_check_branching_seed, range(seeds))) >= 20 * seeds // 60


@pytest.mark.parametrize("seeds", [10, pytest.param(60, marks=pytest.mark.long)])
def test_rows_of_ends_come_when_all_matches_of_the_end_are_decided(seeds: int) -> None:
    assert sum(map(_check_groups, range(seeds))) >= 15 * seeds // 60


@pytest.mark.parametrize("seeds", [10, pytest.param(60, marks=pytest.mark.long)])
def test_random_queries(seeds: int) -> None:
    assert sum(map(_check_seed, range(seeds))) >= 15 * seeds // 60


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_many_random_queries(first: int) -> None:
    assert sum(map(_check_seed, range(first, first + 100))) >= 20
    assert sum(map(_check_groups, range(first, first + 100))) >= 20


def test_an_absence_of_events_is_decided_by_events_of_its_partition() -> None:
    """Of any type, in the micro-batch that runs the last of them, and at `finish` the rest."""
    query = "A AS x ; !(B AS y FILTER y.value > 1) FOR 2 EVENTS"
    text = in_milliseconds(f"{DECLARATION}SELECT * FROM S WHERE {query} PARTITION BY id\n")
    with interpreted():
        stream = Operator(only_query(celc.compile(text, order_by=EVENT_TIME)), _WITH_ROWS)
    event = {"value": 0.0, "name": "", "ts": 0, "seq": 0}
    told = []
    for time, (type, key) in enumerate([("A", 1), ("C", 1), ("A", 2), ("C", 2), ("B", 1)], 1):
        events = [event | {"type": type, "id": key, EVENT_TIME: instant(time), "row": time}]
        told.append(len(stream.advance(table_of(stream.query.plan, events), time - 1)))
    told.append(len(stream.advance(None, 6)))
    assert told == [0, 0, 0, 0, 0, 1]
    assert len(stream.finish()) == 1


@pytest.mark.each(2)
@pytest.mark.parametrize("query", ["A ; !B FOR 3 EVENTS", "A ; C ; !B FOR 3 EVENTS WITHIN 9 [ts]"])
def test_a_state_keeps_the_last_events_of_an_absence_of_events(query: str) -> None:
    text = in_milliseconds(f"{DECLARATION}SELECT * FROM S WHERE {query}\n")
    with interpreted():
        stream = Operator(only_query(celc.compile(text, order_by=EVENT_TIME)), _WITH_ROWS)
    rng, kept = random.Random(1), []
    for time in range(1, 120):
        (event,) = random_stream(rng, 1)
        events = [event | {EVENT_TIME: instant(time), "row": time}]
        stream.advance(table_of(stream.query.plan, events), time - 1)
        kept.append(stream.sum("kept"))
    assert max(kept[60:]) <= 20


def test_a_choice_by_starts_does_not_wait_for_events() -> None:
    query = "SELECT FIRST * FROM S WHERE A ; C ; !B FOR 3 EVENTS WITHIN 9 [ts]"
    with interpreted():
        program = celc.compile(in_milliseconds(f"{DECLARATION}{query}"), order_by=EVENT_TIME)
    reason = why_not(only_query(program).program, Route.STREAM)
    assert reason is not None
    assert reason.code == "counted-absence-and-choice"


@pytest.mark.each(4)
@pytest.mark.parametrize(
    "query",
    [
        "!(A OR B) FOR 6 [ts] ; A AS x CONSUME BY ANY",
        "!(A OR B) FOR 6 [ts] ; (A OR B) PARTITION BY id CONSUME BY PARTITION",
        "!(A ; B) FOR 9 [ts] ; A AS x CONSUME BY ANY",
        "!A FOR 6 [ts] ; A ; B WITHIN 4 [ts] CONSUME BY ANY",
    ],
)
def test_what_was_consumed_is_not_looked_back_at(query: str) -> None:
    """A stream keeps events for the absences of later matches, but none that began it anew."""
    text = in_milliseconds(f"{DECLARATION}SELECT * FROM S WHERE {query}\n")
    found = 0
    for seed in range(20):
        events = random_stream(random.Random(seed), 12)
        for event in events:
            event["type"], event["id"] = "AAB"[event["ts"] % 3], event["ts"] % 2
        found += _compared(seed, text, _timed_events(events))
    assert found >= 10


def test_a_selector_in_an_absence_compares_the_whole_stream() -> None:
    """Also before what the absence reaches: without these events it chooses others."""
    query = "!(NXT(A AS a ; B AS b FILTER a.id = b.id)) FOR 4 [ts] ; C AS x"
    text = in_milliseconds(f"{DECLARATION}SELECT * FROM S WHERE {query}\n")
    found = 0
    for seed in range(20):
        rng = random.Random(seed)
        events = random_stream(rng, 10)
        for event in events:
            event["type"], event["id"] = rng.choice("AABC"), rng.choice((1, 2))
        found += _compared(seed, text, _timed_events(events))
    assert found >= 10


def test_the_plan_in_words_names_every_value_of_partitions() -> None:
    """But those of key_ttl, which is no option of the plan."""
    of_time_to_live = {"last", "since"}
    names = {*(KEY_VALUES.names or ()), KEPT_ROWS} - of_time_to_live
    assert names == {*explain._VALUES}
