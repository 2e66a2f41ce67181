"""Partitions that are forgotten: key_ttl without an event, and a partition begins anew.

What a stream then finds depends on the times of events alone. So it is compared with `match_table`
on each *life* of a partition by itself: the events between two gaps of key_ttl or more.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from celc_runtime import CompiledQuery
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.one_bucket import segments
from engines import engines, interpreted, only_query, table_of
from streams_by_hand import EVENT_TIME, instant, microseconds, same_rows, streamed

from celc.options import Options

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, at: LONG, event_time: TIMESTAMP },
  EVENT B { id: INT, v: DOUBLE, at: LONG, event_time: TIMESTAMP },
  EVENT C { id: INT, v: DOUBLE, at: LONG, event_time: TIMESTAMP }
}
"""

# Each knows something else of its partitions; windows are shorter and longer than key_ttl.
_QUERIES = {
    "short": "SELECT * WHERE A ; B PARTITION BY id WITHIN 6 MILLISECONDS",
    "equal": "SELECT * WHERE A ; B PARTITION BY id WITHIN 10 MILLISECONDS",
    "long": "SELECT * WHERE A ; B PARTITION BY id WITHIN 40 MILLISECONDS",
    "next": "SELECT * WHERE A : B+ PARTITION BY id WITHIN 40 MILLISECONDS",
    "events": "SELECT * WHERE A : B+ PARTITION BY id WITHIN 9 EVENTS",
    "nested": "SELECT * WHERE NXT(A ; B+) ; C PARTITION BY id WITHIN 25 MILLISECONDS",
    "own clock": "SELECT * WHERE A ; B PARTITION BY id WITHIN 20 [at]",
    "consuming": "SELECT MAX * WHERE A+ ; B PARTITION BY id WITHIN 25 MILLISECONDS "
    "CONSUME BY PARTITION",
    "no window": "SELECT LAST * WHERE A ; B PARTITION BY id CONSUME BY PARTITION",
}

_KEY_TTL = 10


@cache
def _query(name: str) -> CompiledQuery:
    with interpreted():
        compiled = engines(_DECLARED + _QUERIES[name], Options((EVENT_TIME,)))
    return only_query(compiled.get("chosen", compiled["general"]))


def _events(rng: random.Random, keys: int) -> list[dict[str, Any]]:
    """Events of keys, each of which is silent for key_ttl, about that, and longer, again and
    again; `at` begins anew with each of its lives."""
    events = []
    for key in range(keys):
        time = rng.randint(1, 30)
        begin = time
        for _ in range(rng.randint(5, 25)):
            events.append((time, key, rng.choice("AABBC"), time - begin))
            gap = rng.choice((1, 1, 2, 3, _KEY_TTL - 1, _KEY_TTL, _KEY_TTL + 1, 30))
            time += gap
            begin = time if gap >= _KEY_TTL else begin
    return [
        {"type": type, "id": key, "v": 1.0, "at": at, "row": number, EVENT_TIME: instant(time)}
        for number, (time, key, type, at) in enumerate(sorted(events))
    ]


def _lives(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    found: list[list[dict[str, Any]]] = []
    last: dict[int, list[dict[str, Any]]] = {}
    for event in events:
        life = last.get(event["id"])
        time = microseconds(event[EVENT_TIME])
        if life is None or time - microseconds(life[-1][EVENT_TIME]) >= 1000 * _KEY_TTL:
            found.append(life := [])
            last[event["id"]] = life
        life.append(event)
    return found


def _compare(query: CompiledQuery, rng: random.Random, keys: int, largest: int) -> int:
    """Compare a stream with the lives of its partitions; how many matches there were."""
    events = _events(rng, keys)
    wanted = [
        row
        for life in _lives(events)
        for row in query.match_table(table_of(query.plan, life)).to_pylist()
    ]
    options = StreamOptions({"row": "LONG"}, key_ttl=1000 * _KEY_TTL, buckets=rng.choice((1, 3)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "_TOGETHER", rng.choice((2, 4)))
        found = streamed(query, events, rng, options=options, largest=largest)
    assert not same_rows(found, wanted), events
    return len(found)


@pytest.mark.each(5, values=False)
@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("name", _QUERIES)
def test_each_life_of_a_partition_is_a_stream_of_its_own(name: str, positions: bool) -> None:
    """In micro-batches of some events, which lives span, and of many, which hold several lives."""
    query = _query(name).with_options(positions=positions, tiebreak="row")
    rng = random.Random(name)
    assert sum(_compare(query, rng, 3, largest) for largest in (1, 4, 30, 1000)) >= 3


@pytest.mark.long
@pytest.mark.parametrize("name", _QUERIES)
def test_many_lives(name: str) -> None:
    for seed in range(200):
        rng = random.Random(seed)
        query = _query(name).with_options(positions=rng.random() < 0.7, tiebreak="row")
        _compare(query, rng, rng.randint(1, 8), rng.choice((1, 3, 10, 100)))
