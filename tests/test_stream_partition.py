"""Partitions of a stream, micro-batch by micro-batch: the rows of `match_table` on the same events,
whatever the micro-batches, the watermark's delay, and the order in which events come."""

from __future__ import annotations

import random
import re
import warnings
from dataclasses import replace
from typing import Any

import pytest
from celc_runtime import CompiledQuery, EventWarning
from celc_runtime.stream_tasks import StreamOptions
from engines import Event, engines, interpreted, only_query, table_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import EVERYTHING, Feature, random_query, random_stream
from streams_by_hand import EVENT_TIME, in_order, instant, same_rows, streamed, timed
from test_random import TOO_LARGE, cramped
from test_random_across import LANGUAGES, Drawn, drawn, stream_for

from celc import CelError, Matcher
from celc.pipeline import Options

# --- random queries -------------------------------------------------------------------------------


def _drawn(rng: random.Random) -> str:
    """A query over events with an event time."""
    kind = rng.choice(("all", "all", "across", "look back"))
    if kind == "all":
        left_out = frozenset({Feature.CORRELATION, Feature.PREV, Feature.PRIOR})
        features = EVERYTHING - (left_out if rng.random() < 0.5 else frozenset())
        text = random_query(rng, features, rng.choice((2, 3, 3, 4)))
    else:
        text = drawn(rng, LANGUAGES[kind], rng.choice((2, 3))).text
    text = timed(text)
    if "PARTITION BY" in text:
        text = text.replace("CONSUME BY ANY", "CONSUME BY PARTITION")
    if "WITHIN" not in text and rng.random() < 0.5:
        window = rng.choice(("WITHIN 3 EVENTS", "WITHIN 4 MILLISECONDS", "WITHIN 9 MILLISECONDS"))
        clauses = re.search(r"^(CONSUME|LIMIT)", text, re.MULTILINE)
        place = clauses.start() if clauses else len(text)
        text = f"{text[:place].rstrip()}\n{window}\n{text[place:]}"
    if rng.random() < 0.5:
        text = re.sub(r"WITHIN (\d+) \[ts\]", r"WITHIN \1 MILLISECONDS", text)
    return text


def _events(rng: random.Random, text: str) -> list[dict[str, Any]]:
    """Events for a query, with times that can stand still, told apart by `row`."""
    if "CREATE STREAM T" in text or "seq" in text:
        events = stream_for(rng, Drawn(text, None))
    else:
        length = rng.randint(0, 40 if "WITHIN" in text else 11)
        events = random_stream(rng, length, nulls=rng.choice((0, 0.1)), strangers=0.1)
    ties = rng.choice((0.0, 0.2))
    time = 1
    for number, event in enumerate(events):
        time += 0 if rng.random() < ties else rng.choice((1, 1, 2, 3, 12))
        event["row"], event[EVENT_TIME] = number, instant(time)
        if rng.random() < 0.5:
            event["id"] = 1
    return events


def _check(rng: random.Random, streams: int = 4) -> int:
    """Compare a random query on some streams; how many rows there were."""
    text = _drawn(rng)
    try:
        with interpreted():
            compiled = engines(text, Options((EVENT_TIME,)))
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE, f"{codes}: {text}"
        return 0
    matcher: Matcher = rng.choice([*compiled.values()])
    query = only_query(matcher).with_options(tiebreak="row")
    if rng.random() < 0.2:
        query = query.with_options(positions=False)
    rows = 0
    for _ in range(streams):
        events = _events(rng, text)
        rows += _compare(query, events, rng, text)
    return rows


def _compare(query: CompiledQuery, events: list[dict[str, Any]], rng: random.Random, text: str) -> int:
    with cramped(rng), warnings.catch_warnings():
        warnings.simplefilter("ignore", EventWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        wanted = query.match_table(table_of(query.plan, events)).to_pylist()
        found = streamed(
            query, events, rng, options=StreamOptions({"row": "LONG"}), largest=rng.choice((1, 3, 8))
        )
    told = same_rows(found, wanted)
    assert not told, f"{told}\n{text}\n{events}"
    assert in_order(query, found), f"{text}\n{events}"
    return len(found)


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.randoms(use_true_random=False))
def test_random_queries_drawn_by_hypothesis(rng: random.Random) -> None:
    _check(rng)


def test_random_queries_of_seeds() -> None:
    assert sum(_check(random.Random(seed)) for seed in range(60)) >= 500


@pytest.mark.long
@pytest.mark.parametrize("first", range(10_000, 30_000, 1_000))
def test_many_random_queries(first: int) -> None:
    """Two hundred queries, on eight streams each."""
    assert sum(_check(random.Random(seed), 8) for seed in range(first, first + 200)) >= 2_000
