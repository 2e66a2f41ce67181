"""Events of a stream that come too late, that nothing puts in order, or that cannot be taken."""

from __future__ import annotations

import random
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, EventError
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.match import stream_matches
from engines import engines, interpreted, only_query, table_of
from streams_by_hand import EVENT_TIME, Operator, instant, microseconds, same_rows

from celc.options import Options

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, name: STRING, v: FLOAT, event_time: TIMESTAMP },
  EVENT B { id: INT, name: STRING, v: FLOAT, event_time: TIMESTAMP },
  EVENT C { id: INT, name: STRING, v: FLOAT, event_time: TIMESTAMP }
}
"""

_PAIRS = "SELECT * WHERE A ; B PARTITION BY id WITHIN 100 MILLISECONDS"


@cache
def _query(body: str = _PAIRS, *more: str) -> CompiledQuery:
    with interpreted():
        compiled = engines(_DECLARED + body, Options((EVENT_TIME, *more)))
    return only_query(compiled.get("chosen", compiled["general"]))


def _event(type: str, time: float | None, id: int | None = 1, **more: Any) -> dict[str, Any]:
    when = None if time is None else instant(0) + (instant(1) - instant(0)) * time
    return {"type": type, "id": id, EVENT_TIME: when, **more}


def _advance(operator: Operator, watermark: int, *events: dict[str, Any]) -> list[dict[str, Any]]:
    return operator.advance(table_of(operator.query.plan, events) if events else None, watermark)


def _pairs(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["start_pos"], row["end_pos"]) for row in rows]


# --- late -----------------------------------------------------------------------------------------


def test_late_is_what_is_behind_what_was_run_of_the_partition() -> None:
    operator = Operator(_query())
    assert not _advance(operator, 0, _event("A", 10), _event("A", 20))
    assert not _advance(operator, 15)
    # At 15 nothing is left out but what is not later than that.
    rows = _advance(operator, 30, _event("B", 15), _event("B", 14), _event("B", 15.001))
    assert operator.counts["late"] == 2
    assert _pairs(rows) == [(0, 1)]
    assert rows[0]["end_time"] == instant(15) + (instant(1) - instant(0)) / 1000


def test_what_another_partition_has_run_makes_no_event_late() -> None:
    """Of partition 2 nothing has been run, so its events can be put in their places still."""
    operator = Operator(_query())
    _advance(operator, 50, _event("A", 10))
    rows = _advance(operator, 50, _event("A", 10, 2), _event("B", 20, 2))
    assert operator.counts["late"] == 0
    assert [row["id"] for row in rows] == [2]
    assert _pairs(rows) == [(0, 1)]
    # From now on it has been run up to 50.
    _advance(operator, 50, _event("A", 50, 2))
    assert operator.counts["late"] == 1


def test_a_partition_has_been_run_up_to_the_watermark_of_its_last_events() -> None:
    """Not up to that of its bucket, which others move, and not up to one that events wait for."""
    operator = Operator(_query())
    _advance(operator, 20, _event("A", 10))
    _advance(operator, 40, _event("A", 30, 2), _event("A", 60))
    _advance(operator, 50)
    assert _pairs(_advance(operator, 50, _event("B", 21), _event("A", 20))) == [(0, 1)]
    assert operator.counts["late"] == 1
    _advance(operator, 50, _event("A", 50))
    assert operator.counts["late"] == 2


def test_an_event_is_late_when_what_it_could_match_with_is_gone() -> None:
    """Kept events go when the window behind them has passed, which others' events may find out."""
    for body, late in ((_PAIRS, 1), ("SELECT * WHERE A ; B PARTITION BY id WITHIN 9 EVENTS", 0)):
        operator = Operator(_query(body))
        _advance(operator, 50, _event("A", 10), _event("A", 11, 2))
        _advance(operator, 200)
        # Its window begins before events that are gone, and behind nothing that was run.
        rows = _advance(operator, 200, _event("B", 100))
        assert operator.counts["late"] == late
        assert len(rows) == 1 - late
        # Of partition 3 nothing was run, so nothing is gone.
        assert len(_advance(operator, 200, _event("A", 30, 3), _event("B", 40, 3))) == 1
        # This window begins behind what is gone.
        assert _advance(operator, 300, _event("A", 210), _event("B", 250))
        assert operator.counts["late"] == late


@pytest.mark.parametrize("forgets", ["positions", "key_ttl"])
def test_where_partitions_are_forgotten_a_new_one_begins_behind_what_was_run(forgets: str) -> None:
    """Nobody knows if it is new: so up to the watermark that its bucket has seen, it is late."""
    query, options = _query(), StreamOptions({}, key_ttl=10**6)
    if forgets == "positions":
        query, options = query.with_options(positions=False), StreamOptions({})
    operator = Operator(query, options)
    _advance(operator, 50, _event("A", 40), _event("A", 51, 2))
    assert operator.counts["late"] == 0
    rows = _advance(operator, 90, _event("B", 52, 2), _event("A", 50, 3), _event("A", 51, 4))
    assert [row["id"] for row in rows] == [2]
    assert operator.counts["late"] == 1


def test_late_events_change_nothing() -> None:
    """A partition answers as if they had not been there: no position is taken."""
    operator = Operator(_query())
    _advance(operator, 0, _event("A", 10), _event("A", 20))
    _advance(operator, 30)
    _advance(operator, 30, _event("B", 25), _event("A", 30))
    assert operator.counts["late"] == 2
    assert sorted(_pairs(_advance(operator, 50, _event("B", 40)))) == [(0, 2), (1, 2)]


def test_a_late_event_can_be_an_error() -> None:
    operator = Operator(_query(), StreamOptions({}, late="error"))
    _advance(operator, 30, _event("A", 10))
    with pytest.raises(
        EventError, match=r"an event of .*00:00:00\.020.* is late.*watermark.*late="
    ):
        _advance(operator, 30, _event("A", 20))


def test_late_events_come_back_with_all_that_is_known_of_them() -> None:
    options = StreamOptions({"row": "LONG", "tag": "BINARY"}, late="side")
    operator = Operator(_query().with_options(tiebreak=("row", "tag")), options)
    _advance(operator, 30, _event("A", 10, None, row=1, tag=b"x"), _event("A", 12, row=1, tag=b""))
    late = [
        _event("B", 20, None, row=7, tag=b"\xff", name="ä"),
        _event("A", 21, None, row=None, tag=None),
        _event("A", 22, 1, row=8, tag=b""),
    ]
    rows = _advance(operator, 30, *late, _event("B", 40, None, row=9, tag=b"y"))
    assert {row["kind"] for row in rows} == {"late"}
    found = sorted((row["event"] for row in rows), key=lambda event: event[EVENT_TIME])
    # `name` and `v` are columns that the query reads, because its labels show them.
    assert found == [{"name": None, "v": None, **event} for event in late]
    assert all(row["start_pos"] is None for row in rows)
    rows = _advance(operator, 50)
    assert [(row["kind"], row["id"], row["end_pos"], row["event"]) for row in rows] == [
        ("match", None, 1, None)
    ]


def test_late_events_have_no_column_of_a_key_that_is_chosen_by_their_type() -> None:
    """They have the columns that it is chosen among."""
    with interpreted():
        compiled = engines(
            "CREATE STREAM S { EVENT A { id: INT, event_time: TIMESTAMP },\n"
            "  EVENT B { other: INT, event_time: TIMESTAMP } }\n"
            "SELECT * WHERE A ; B PARTITION BY [other, id] WITHIN 9 EVENTS",
            Options((EVENT_TIME,)),
        )
    operator = Operator(only_query(compiled["general"]), StreamOptions({}, late="side"))
    _advance(operator, 30, _event("A", 10, 5))
    late = _event("B", 20, None, other=5)
    (row,) = _advance(operator, 30, late)
    assert row["event"] == late


def test_events_too_far_ahead_are_refused_like_late_ones() -> None:
    options = StreamOptions({}, late="side", ahead="ahead")
    operator = Operator(_query(), options)
    events = [_event("A", 10), _event("A", 10**9), _event("A", 10**9, 2)]
    table = table_of(operator.query.plan, events)
    marked = table.append_column("ahead", pa.array([False, True, True]))
    rows = operator.advance(marked, 0)
    assert operator.counts["ahead"] == 2
    assert [(row["kind"], row["event"]["id"]) for row in rows] == [("ahead", 1), ("ahead", 2)]
    assert operator.sum("waiting") == 1
    with pytest.raises(EventError, match="too far ahead of the clock"):
        Operator(_query(), options._replace(late="error")).advance(marked, 0)


# --- random late events ---------------------------------------------------------------------------

_BY_COUNT = "SELECT * WHERE A ; B PARTITION BY id WITHIN 7 EVENTS"
_BY_TIME = "SELECT * WHERE A ; B PARTITION BY id WITHIN 9 MILLISECONDS"


_MicroBatches = list[tuple[int, list[dict[str, Any]]]]
"""Watermarks, and the events that come with them."""


class _Told(NamedTuple):
    """What came of a stream: rows, and the numbers of events late, or too far ahead."""

    matches: list[dict[str, Any]]
    late: set[int]
    ahead: set[int]


def _micro_batches(rng: random.Random, keys: int) -> _MicroBatches:
    """Watermarks, and events of which many are behind them. Events have even times and watermarks
    odd ones: what a watermark reaches, it passes."""
    found = []
    watermark, number = 0, 0
    for _ in range(rng.randint(5, 25)):
        events = []
        for _ in range(rng.choice((0, 1, 1, 2, 5))):
            time = max(2, watermark // 2 * 2 + 2 * rng.randint(-8, 8))
            type, id = rng.choice("AABBC"), rng.randrange(keys)
            events.append(_event(type, time, id, row=number, ahead=rng.random() < 0.05))
            number += 1
        found.append((watermark, events))
        watermark = max(watermark, rng.choice((0, watermark + 1 + watermark % 2, watermark + 6)))
        watermark += watermark % 2 == 0 and watermark > 0
    return found


def _told(query: CompiledQuery, options: StreamOptions, stream: _MicroBatches, seed: int) -> _Told:
    operator = Operator(query, options, rng=random.Random(seed))
    rows: list[dict[str, Any]] = []
    for watermark, events in stream:
        rows += operator.advance(table_of(query.plan, events) if events else None, watermark)
    rows += operator.finish()
    told = _Told([], set(), set())
    for row in rows:
        if row.get("kind", "match") == "match":
            told.matches.append({name: row[name] for name in query.output_schema.names})
        else:
            (told.late if row["kind"] == "late" else told.ahead).add(row["event"]["row"])
    if options.late == "side":
        counts = operator.counts["late"], operator.counts["ahead"]
        assert counts == (len(told.late), len(told.ahead))
    return told


def _behind_what_was_run(stream: _MicroBatches, refused: set[int]) -> set[int]:
    """The numbers of the events up to whose times their partitions had been run, where these
    events were not."""
    found = set()
    run_to: dict[int, int] = {}
    waiting: list[tuple[int, int]] = []
    for watermark, events in stream:
        for event in events:
            time = microseconds(event[EVENT_TIME]) // 1000
            if not event["ahead"] and time <= run_to.get(event["id"], -1):
                found.add(event["row"])
            if event["row"] not in refused:
                waiting.append((time, event["id"]))
        run_to |= {id: watermark for time, id in waiting if time <= watermark}
        waiting = [(time, id) for time, id in waiting if time > watermark]
    return found


@pytest.mark.each(3, values=False)
@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("body", [_BY_COUNT, _BY_TIME])
@pytest.mark.parametrize("key_ttl", [None, 20_000])
def test_matches_are_those_of_the_events_that_were_not_late(
    body: str, buckets: int, key_ttl: int | None
) -> None:
    """Late are those up to the time to which their partition has been run, and no others, unless
    what they could match with may be gone. And late='drop' and 'error' know the same ones."""
    late, more = 0, 0
    for seed in range(8):
        rng = random.Random(seed)
        query = _query(body).with_options(tiebreak="row")
        if rng.random() < 0.3:
            query = query.with_options(positions=False)
        side = StreamOptions(
            {"row": "LONG"}, late="side", ahead="ahead", buckets=buckets, key_ttl=key_ttl
        )
        stream = _micro_batches(rng, rng.randint(1, 4))
        events = sorted(
            (event for _, batch in stream for event in batch),
            key=lambda event: (event[EVENT_TIME], event["row"]),
        )
        told = _told(query, side, stream, seed)
        assert told.ahead == {event["row"] for event in events if event["ahead"]}
        in_time = [event for event in events if event["row"] not in told.late | told.ahead]
        if key_ttl is None:
            wanted = query.match_table(table_of(query.plan, in_time)).to_pylist()
            assert not same_rows(told.matches, wanted), stream
            behind = _behind_what_was_run(stream, told.late | told.ahead)
            assert told.late >= behind
            if body == _BY_COUNT and query.plan.answer.positions:
                assert told.late == behind
            more += len(told.late - behind)
        late += len(told.late)
        dropped = _told(query, side._replace(late="drop"), stream, seed)
        assert not same_rows(dropped.matches, told.matches)
        if told.late | told.ahead:
            with pytest.raises(EventError, match=r"is late|too far ahead"):
                _told(query, side._replace(late="error"), stream, seed)
        else:
            _told(query, side._replace(late="error"), stream, seed)
    assert late >= 20
    assert more or body == _BY_COUNT or key_ttl


# --- order ----------------------------------------------------------------------------------------


def test_events_of_one_time_need_a_tiebreak() -> None:
    operator = Operator(_query())
    _advance(operator, 0, _event("A", 10), _event("B", 10, 2))
    _advance(operator, 0, _event("B", 10))
    with pytest.raises(EventError, match=r"equal in event_time \(event_time is .*tiebreak='id'"):
        _advance(operator, 20)


def test_a_tiebreak_that_leaves_events_equal_is_an_error() -> None:
    query = _query().with_options(tiebreak="row")
    operator = Operator(query, StreamOptions({"row": "LONG"}))
    events = [_event("A", 10, row=2), _event("B", 10, row=1), _event("B", 10, row=2)]
    _advance(operator, 0, *events[:2])
    assert not _advance(operator, 11)
    operator = Operator(query, StreamOptions({"row": "LONG"}))
    with pytest.raises(EventError, match="equal in event_time, row"):
        _advance(operator, 11, *events)


@pytest.mark.parametrize(
    ("type", "ascending"),
    [
        ("LONG", [None, -(2**60), -1, 0, 2**60]),
        ("INT", [None, -3, 2]),
        ("STRING", [None, "", "Z", "a", "aa", "ä", "\U0001f600"]),
        ("BINARY", [None, b"", b"\x00", b"\x7f", b"\x80", b"\xff\xff"]),
        ("BOOLEAN", [None, False, True]),
        ("DOUBLE", [None, float("-inf"), -1.5, -0.0, 1e-300, float("inf"), float("nan")]),
        ("FLOAT", [None, -2.5, 0.0, 0.5]),
        ("TIMESTAMP", [None, instant(-5), instant(0), instant(7)]),
    ],
)
def test_a_tiebreak_orders_as_spark_does(type: str, ascending: list[Any]) -> None:
    """NULL first, texts by bytes, NaN last; in whichever order the events come."""
    query = _query("SELECT * WHERE A AS x").with_options(tiebreak="tie")
    rng = random.Random(type)
    operator = Operator(query, StreamOptions({"tie": type}), rng=rng)
    events = [_event("A", 10, number, tie=value) for number, value in enumerate(ascending)]
    rng.shuffle(events)
    names = ("type", "id", EVENT_TIME, "name", "v")
    read = [{name: event.get(name) for name in names} for event in events]
    table = table_of(query.plan, read)
    ties = pa.array([event["tie"] for event in events], _TIE_TYPES[type])
    table = table.set_column(table.schema.get_field_index("tie"), "tie", ties)
    rows = operator.advance(table, 20)
    assert [row["x"][0]["id"] for row in rows] == [*range(len(ascending))]


_TIE_TYPES = {
    "LONG": pa.int64(),
    "INT": pa.int16(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
}


# --- what cannot be taken -------------------------------------------------------------------------


def test_an_event_without_a_time_is_an_error() -> None:
    with pytest.raises(EventError, match="order column 'event_time' is NULL"):
        _advance(Operator(_query()), 0, _event("A", 1), _event("A", None))


@pytest.mark.parametrize("value", [None, float("nan")])
def test_so_is_one_that_another_order_column_cannot_place(value: float | None) -> None:
    """Also where it is the only event of its partition, and there is nothing to sort."""
    operator = Operator(_query(_PAIRS, "v"))
    with pytest.raises(EventError, match=r"order column 'v' is (NULL|NaN)"):
        _advance(operator, 20, _event("A", 1, v=value))


def test_an_event_without_a_type_is_an_error() -> None:
    event = _event("A", 1)
    table = table_of(_query().plan, [event]).set_column(0, "type", pa.array([None], pa.string()))
    with pytest.raises(EventError, match="'type' is NULL"):
        Operator(_query()).advance(table, 0)


def test_events_of_other_types_are_no_part_of_the_stream() -> None:
    """They take no position, and need no time that is told apart."""
    operator = Operator(_query())
    strangers = [_event("Stranger", 10), _event("Stranger", 10), _event("Other", 15)]
    rows = _advance(operator, 30, _event("A", 10), *strangers, _event("B", 20))
    assert _pairs(rows) == [(0, 1)]
    assert operator.counts["events"] == 2
    assert not _advance(operator, 30, _event("Stranger", 25))
    assert operator.counts["late"] == 0


def test_values_that_are_measured_by_the_window_must_not_fall() -> None:
    """In a micro-batch, and from one to the next, although nothing is kept of the one before."""
    text = _DECLARED.replace("id: INT", "id: INT, at: LONG") + _PAIRS.replace(
        "100 MILLISECONDS", "5 [at]"
    )
    with interpreted():
        query = only_query(engines(text, Options((EVENT_TIME,)))["general"])
    operator = Operator(query)
    _advance(operator, 0, _event("C", 1, at=7), _event("C", 2, at=7))
    _advance(operator, 2)
    assert not operator.sum("kept")
    with pytest.raises(EventError, match="falls"):
        _advance(operator, 9, _event("B", 3, at=6))
    with pytest.raises(EventError, match=r"decreases|falls|descend"):
        _advance(Operator(query), 9, _event("B", 1, at=7), _event("B", 2, at=6))
    with pytest.raises(EventError, match="NULL"):
        _advance(Operator(query), 9, _event("B", 1, at=None))


def test_a_moment_cannot_be_a_partition() -> None:
    """Before anything runs; what is no stream is refused before that."""
    query = _query("SELECT * WHERE A ; B PARTITION BY event_time WITHIN 5 MILLISECONDS")
    with pytest.raises(EventError, match="'event_time' is in PARTITION BY"):
        stream_matches(
            query.program, SimpleNamespace(isStreaming=True, sparkSession=None), **_DEFAULTS
        )
    with pytest.raises(EventError, match="use match"):
        stream_matches(
            query.program, SimpleNamespace(isStreaming=False, sparkSession=None), **_DEFAULTS
        )


_DEFAULTS: dict[str, Any] = {
    "checkpoint": None,
    "watermark": "1 second",
    "late": "drop",
    "api": None,
    "allow_unbounded_state": False,
    "max_event_time_skew": None,
    "key_ttl": None,
    "buckets": None,
}
