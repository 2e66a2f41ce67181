"""Buckets of a stream, micro-batch by micro-batch: the rows of `match_table` on the same events,
whatever the micro-batches, the watermark's delay, and the order in which events come."""

from __future__ import annotations

import datetime as dt
import math
import random
import re
import warnings
from collections import Counter
from typing import Any

import pytest
from celc_runtime import CompiledQuery, EventWarning
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.one_bucket import bucket_run, segments
from engines import engines, interpreted, only_query, table_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import (
    EVERYTHING,
    Feature,
    random_query,
    random_stream,
    with_alternatives,
    with_chosen_keys,
)
from strategies_keys import real_keys, with_real_keys
from streams_by_hand import EVENT_TIME, Operator, in_order, instant, same_rows, streamed, timed
from test_random import TOO_LARGE, cramped
from test_random_across import LANGUAGES, Drawn, drawn, stream_for

import celc
from celc import CelError, Matcher
from celc.options import Options

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
    if "PARTITION BY" in text and rng.random() < 0.3:
        at = text.index("SELECT")
        text = "".join(with_alternatives(rng, text[:at], text[at:]))
    text = timed(with_real_keys(text))
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
    chosen = re.search(r"(?:src|dst): (\w+)", text)
    if chosen is not None:
        events = with_chosen_keys(rng, events, chosen[1])
    return real_keys(text, events)


def _check(rng: random.Random, streams: int = 4) -> int:
    """Compare a random query on some streams; how many rows there were."""
    text = _drawn(rng)
    # What hypothesis draws takes its time: the query is, streams and micro-batches are of a seed.
    rng = random.Random(rng.getrandbits(32))
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


def _compare(
    query: CompiledQuery, events: list[dict[str, Any]], rng: random.Random, text: str
) -> int:
    with cramped(rng), warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket_run, "_ROWS_AT_ONCE", rng.choice((1, 3, 1 << 20)))
        patch.setattr(segments, "_TOGETHER", rng.choice((2, 4)))
        patch.setattr(segments, "PIECE", rng.choice((100, 1 << 22)))
        warnings.simplefilter("ignore", EventWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        wanted = query.match_table(table_of(query.plan, events)).to_pylist()
        found = streamed(
            query,
            events,
            rng,
            options=StreamOptions({"row": "LONG"}, buckets=rng.choice((1, 2, 7))),
            largest=rng.choice((1, 3, 8)),
        )
    told = same_rows(found, wanted)
    assert not told, f"{told}\n{text}\n{events}"
    assert in_order(query, found), f"{text}\n{events}"
    return len(found)


@pytest.mark.long
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.randoms(use_true_random=False))
def test_random_queries_drawn_by_hypothesis(rng: random.Random) -> None:
    _check(rng)


def test_random_queries_of_seeds() -> None:
    assert sum(_check(random.Random(seed)) for seed in range(14)) >= 60


_LONG_SLICES = (30, *range(10_000, 30_000, 1_000))


@pytest.mark.long
@pytest.mark.parametrize("first", _LONG_SLICES)
def test_many_random_queries(first: int) -> None:
    """Two hundred queries, on eight streams each."""
    assert sum(_check(random.Random(seed), 8) for seed in range(first, first + 200)) >= 1_000


# --- what random queries do not have --------------------------------------------------------------

_ATTRIBUTES = {
    "ok": "BOOLEAN",
    "small": "INT",
    "large": "LONG",
    "ratio": "FLOAT",
    "value": "DOUBLE",
    "name": "STRING",
    "at": "TIMESTAMP",
    "day": "DATE",
}
_VALUES: dict[str, list[Any]] = {
    "ok": [True, False],
    "small": [-(2**31), 0, 2**31 - 1],
    "large": [-(2**63), 0, 2**63 - 1],
    "ratio": [-0.0, 1.5, math.inf, math.nan],
    "value": [0.0, -1e-300, -math.inf, math.nan],
    "name": ["", "a", "äöü", "\U0001f600\0", "a" * 300],
    "at": [instant(0), instant(-1), dt.datetime(9999, 12, 31, tzinfo=dt.UTC)],
    "day": [dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
}


def _wide(*keys: str) -> CompiledQuery:
    """A query whose labels show attributes of all types, in parts of some of them."""
    shown = ", ".join(f"{name}: {type}" for name, type in _ATTRIBUTES.items())
    text = (
        "CREATE STREAM S {\n"
        f"  EVENT A {{ {shown}, event_time: TIMESTAMP }}, EVENT B {{ {shown}, "
        "event_time: TIMESTAMP }\n}\n"
        "SELECT * WHERE A AS x ; B AS y WITHIN 20 MILLISECONDS\n"
    ).replace("WITHIN", f"PARTITION BY {', '.join(keys)} WITHIN" if keys else "WITHIN")
    with interpreted():
        matcher = engines(text, Options((EVENT_TIME,)))
    return only_query(matcher.get("chosen", matcher["general"]))


def _wide_events(rng: random.Random, nulls: float, *keys: str) -> list[dict[str, Any]]:
    events = []
    for number in range(1, 60):
        values = {name: rng.choice(_VALUES[name]) for name in _ATTRIBUTES}
        for name in values:
            if rng.random() < nulls:
                values[name] = None
        # A text as long as that would be alone in its part.
        values |= {name: rng.choice((None, *_VALUES[name][:4])) for name in keys}
        events.append({"type": rng.choice("AB"), **values, EVENT_TIME: instant(number)})
    return events


@pytest.mark.each(2)
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_attributes_of_all_types(nulls: float) -> None:
    """Values and NULLs come out as they came in, also those that were in the state."""
    query, rng = _wide(), random.Random(nulls)
    for _ in range(3):
        events = _wide_events(rng, nulls)
        wanted = query.match_table(table_of(query.plan, events)).to_pylist()
        assert wanted
        assert not same_rows(streamed(query, events, rng), wanted)


@pytest.mark.each(8)
@pytest.mark.parametrize(
    "keys", [*((name,) for name in _ATTRIBUTES), ("value", "ratio"), ("ok", "name", "day")]
)
def test_partitions_by_attributes_of_all_types(keys: tuple[str, ...]) -> None:
    """NULL is a partition, and NaN is one; -0.0 and 0.0 are the same one, which shows as 0.0, in
    labels too: its events' own values are not kept."""
    query, rng = _wide(*keys), random.Random(repr(keys))
    rows = 0
    for _ in range(2):
        events = _wide_events(rng, 0.1, *keys)
        wanted = query.match_table(table_of(query.plan, events)).to_pylist()
        rows += len(wanted)
        for row in wanted:
            for shown in (row, *row["x"], *row["y"]):
                floats = {name: shown[name] for name in keys if type(shown.get(name)) is float}
                shown |= {name: value + 0.0 for name, value in floats.items()}
        assert not same_rows(streamed(query, events, rng), wanted)
    assert rows


@pytest.mark.each(2)
@pytest.mark.parametrize("seed", range(3))
def test_a_micro_batch_that_is_run_again_does_the_same(seed: int) -> None:
    """What is left of a process that is killed anywhere in a micro-batch is the checkpoint before
    it: another process with the same states, timers and rows answers with the same rows, and leaves
    the same bytes. So nothing is lost and nothing comes twice."""
    query, rng = _wide("name"), random.Random(seed)
    events = _wide_events(rng, 0.2, "name")
    table = table_of(query.plan, events)
    options = StreamOptions({}, buckets=3)
    headers: dict[int, bytes] = {}
    segments: dict[int, dict[int, bytes]] = {}
    timers: dict[int, set[int]] = {}
    rows: list[dict[str, Any]] = []

    def process(number: int) -> Operator:
        made = Operator(query, options, rng=random.Random(number))
        made.headers = dict(headers)
        made.segments = {label: dict(of_label) for label, of_label in segments.items()}
        made.timers = {label: set(of_label) for label, of_label in timers.items()}
        return made

    for place in range(0, len(events) + 10, 5):
        part = table.slice(place, 5) if place < len(events) else None
        tries = []
        for _ in range(2):
            one = process(place)
            found = one.advance(part, max(0, place - 3))
            tries.append((found, one.headers, one.segments, one.timers))
        assert repr(tries[0]) == repr(tries[1])  # NaN is not equal to itself
        found, headers, segments, timers = tries[1]
        rows += found
    rows += process(seed).finish()
    wanted = query.match_table(table).to_pylist()
    assert wanted
    assert not same_rows(rows, wanted)


def test_rows_of_one_partition_that_are_as_many_as_those_of_all() -> None:
    """Partitions are run one by one here. Of partition 2, a row stands for one that was left out,
    so it reads as many rows as the micro-batch has."""
    text = timed(
        "CREATE STREAM S { EVENT A { id: INT }, EVENT B { id: INT }, EVENT C { id: INT } }\n"
    )
    with interpreted():
        matcher = engines(
            f"{text}SELECT * WHERE A ; B PARTITION BY id WITHIN 9 EVENTS", Options((EVENT_TIME,))
        )
    query = only_query(matcher["general"])
    events = [
        {"type": type, "id": id, EVENT_TIME: instant(time)}
        for type, id, time in (("A", 2, 1), ("C", 2, 2), ("A", 1, 3), ("B", 2, 4))
    ]
    table = table_of(query.plan, events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket_run, "_ROWS_AT_ONCE", 1)
        operator = Operator(query)
        operator.advance(table.slice(0, 2), 2)
        rows = operator.advance(table.slice(2), 5)
    wanted = query.match_table(table).to_pylist()
    assert wanted
    assert not same_rows(rows, wanted)


def test_a_stream_without_events() -> None:
    query = _wide()
    assert streamed(query, [], random.Random(0)) == []
    operator = Operator(query)
    assert operator.advance(table_of(query.plan, []), 10) == []
    assert operator.advance(None, 20) == []
    assert not any(operator.segments.values())
    assert not operator.timers


def test_a_limit_holds_for_each_end() -> None:
    """Also where the matches that end at one event begin in several earlier micro-batches."""
    text = timed("CREATE STREAM S { EVENT A { id: INT }, EVENT B { id: INT } }\n") + (
        "SELECT * WHERE A ; B WITHIN 8 EVENTS LIMIT 2"
    )
    with interpreted():
        query = only_query(engines(text, Options((EVENT_TIME,)))["general"])
    events = [{"type": "AAAB"[n % 4], "id": n, EVENT_TIME: instant(n + 1)} for n in range(40)]
    for seed in range(5):
        rows = streamed(query, events, random.Random(seed), largest=1)
        assert Counter(row["end_pos"] for row in rows) == dict.fromkeys(range(3, 40, 4), 2)
        assert not same_rows(rows, query.match_table(table_of(query.plan, events)).to_pylist())


def test_matches_of_a_partition_come_in_the_order_of_their_ends() -> None:
    """Within a micro-batch, and from one to the next."""
    query = _wide("ok")
    for seed in range(5):
        rng = random.Random(seed)
        events = _wide_events(rng, 0.0, "ok")
        for largest in (3, 60):
            rows = streamed(query, events, rng, largest=largest)
            assert len(rows) > 50
            assert in_order(query, rows)


def test_two_streams_with_types_of_one_name() -> None:
    """Types are numbered by stream and name; an event of a stream that is not declared is none."""
    declared = "".join(
        f"CREATE STREAM {name} {{ EVENT A {{ id: INT, event_time: TIMESTAMP }} }}\n"
        for name in "ST"
    )
    text = f"{declared}SELECT * FROM S, T WHERE S>A AS x ; T>A AS y WITHIN 6 EVENTS"
    with interpreted():
        query = only_query(engines(text, Options((EVENT_TIME,)))["general"])
    for seed in range(5):
        rng = random.Random(seed)
        events = [
            {"type": rng.choice("AAB"), "stream": rng.choice("STU"), "id": n}
            | {EVENT_TIME: instant(n + 1)}
            for n in range(40)
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            wanted = query.match_table(table_of(query.plan, events)).to_pylist()
        assert wanted
        assert not same_rows(streamed(query, events, rng), wanted)


def test_one_type_and_no_column_of_types() -> None:
    text = "CREATE STREAM S { EVENT A { id: INT, event_time: TIMESTAMP } }\n" + (
        "SELECT * WHERE (A AS x ; A AS y) FILTER x.id > 1 AND y.id < 2 WITHIN 3 MILLISECONDS"
    )
    with interpreted():
        query = only_query(engines(text, Options((EVENT_TIME,)))["general"])
    rng = random.Random(1)
    events = [{"id": rng.randint(0, 3), EVENT_TIME: instant(n + 1)} for n in range(40)]
    wanted = query.match_table(table_of(query.plan, events)).to_pylist()
    assert wanted
    found = streamed(query, events, rng, options=StreamOptions({}, has_types=False))
    assert not same_rows(found, wanted)


def test_a_generated_module_as_users_run_it() -> None:
    """Compiled by Numba, with a state that grows, is consumed, and shrinks."""
    text = timed("CREATE STREAM S { EVENT A { id: INT }, EVENT B { id: INT } }\n") + (
        "SELECT MAX * WHERE (A+ AS x ; B AS y) FILTER x.id > 0 PARTITION BY id "
        "WITHIN 9 MILLISECONDS CONSUME BY PARTITION"
    )
    query = only_query(celc.compile(text, order_by=EVENT_TIME))
    for seed in range(10):
        rng = random.Random(seed)
        events = [
            {"type": rng.choice("AAAB"), "id": rng.randint(0, 2), EVENT_TIME: instant(n + 1)}
            for n in range(60)
        ]
        wanted = query.match_table(table_of(query.plan, events)).to_pylist()
        assert wanted
        assert not same_rows(streamed(query, events, rng), wanted)
