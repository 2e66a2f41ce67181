"""Events that come behind the watermark and are not late, because nothing of their partitions has
been run: those of a device that was out of reach, for example.

The rows of such a stream are those of a table with the events that were not late.
"""

from __future__ import annotations

import random
import re
import warnings
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from celc_runtime import CompiledQuery, EventError, EventWarning
from celc_runtime.plan.errors import TotalError
from celc_runtime.rules.rows import rows_of
from celc_runtime.stream.match import check_stream
from celc_runtime.stream.rules import in_one_order
from engines import Event, engines, interpreted, only_query, plain_totals, table_of
from parameters import rows_table
from reference import totals_difference
from strategies import EVERYTHING, SHORTER, Feature, random_query, random_stream
from streams_by_hand import (
    EVENT_TIME,
    Heard,
    Operator,
    in_milliseconds,
    instant,
    same_rows,
    streamed_behind,
)

import celc
from celc import CelError
from celc.options import Options


def _wanted(query: CompiledQuery, heard: Heard, **rules: Any) -> list[dict[str, Any]]:
    """The rows of a table with the events that were not late, when no more come."""
    closed = query.with_options(at_end="closed")
    return closed.match_table(table_of(query.plan, heard.events), **rules).to_pylist()


# --- one case -------------------------------------------------------------------------------------

_DECLARED = f"""CREATE STREAM S {{
  EVENT A {{ id: STRING, v: DOUBLE, {EVENT_TIME}: TIMESTAMP }},
  EVENT B {{ id: STRING, v: DOUBLE, {EVENT_TIME}: TIMESTAMP }}
}}
"""


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE A ; !B FOR 10 SECONDS PARTITION BY id",
        "SELECT * WHERE A ; !B PARTITION BY id WITHIN 10 SECONDS",
        "SELECT * WHERE A+ ; !B PARTITION BY id WITHIN 10 SECONDS",
        "SELECT LAST * WHERE A+ ; !B PARTITION BY id WITHIN 10 SECONDS",
        "SELECT * WHERE (A AS x ; !(B AS b FILTER b.v = x.v) FOR 10 SECONDS) PARTITION BY id",
        "SELECT * WHERE NXT(A+) ; !B FOR 10 SECONDS PARTITION BY id",
        "SELECT * WHERE (A ; !B FOR 10 SECONDS) OR (A ; !A FOR 3 SECONDS) PARTITION BY id",
        "SELECT COLLAPSED * WHERE A ; !B FOR 10 SECONDS PARTITION BY id",
        "SELECT TOTAL COUNT(*) AS n WHERE A ; !B FOR 10 SECONDS PARTITION BY id PER END",
        "SELECT * WHERE A ; B? ; !B FOR 10 SECONDS PARTITION BY id",
    ],
)
def test_a_partition_begins_behind_the_deadline_of_its_first_match(text: str) -> None:
    """`e` is run when the watermark is 40 seconds, and what had been decided by then has been told:
    but not of what had not come. In `f` an event comes between."""
    with interpreted():
        query = only_query(celc.compile(_DECLARED + text, order_by=EVENT_TIME))
    moments = [("A", "z", 41), ("A", "d", 40), ("A", "e", 20), ("A", "f", 21), ("B", "z", 60)]
    moments += [("B", "f", 61), ("B", "e", 62), ("A", "g", 30), ("A", "g", 66)]
    events = [
        {"type": type, "id": id, "v": 1.0, EVENT_TIME: instant(1000 * second)}
        for type, id, second in moments
    ]
    operator, rows, latest = Operator(query), [], 0
    for event, (_, _, second) in zip(events, moments, strict=True):
        rows += operator.advance(table_of(query.plan, [event]), 1000 * max(0, latest - 1))
        latest = max(latest, second)
    rows += operator.finish()
    assert operator.counts["late"] == 0
    heard = Heard(rows, sorted(events, key=lambda event: event[EVENT_TIME]))
    assert not same_rows(rows, _wanted(query, heard))
    assert {row["id"] for row in rows} == set("zdefg")


# --- random queries -------------------------------------------------------------------------------

_FEATURES = {
    "absences": (EVERYTHING | SHORTER)
    | {Feature.NOT_AFTER, Feature.NOT_BEFORE, Feature.LOCAL_WINDOW},
    "starts": (EVERYTHING | SHORTER | {Feature.PER_START}) - {Feature.CONSUME_BY},
    "groups": EVERYTHING | {Feature.NOT_AFTER, Feature.LOCAL_WINDOW},
}


def _text(rng: random.Random, kind: str) -> str:
    """A query with PARTITION BY, about the event time."""
    text = in_milliseconds(random_query(rng, frozenset(_FEATURES[kind]), rng.choice((1, 2, 3))))
    lines = [line for line in text.splitlines() if not line.startswith("LIMIT")]
    if rng.random() < 0.5:
        time = rf"\1 MILLISECONDS [{EVENT_TIME}]"
        lines = [re.sub(r"^(WITHIN \d+) EVENTS", time, line) for line in lines]
    if "PARTITION BY" not in text:
        (where,) = (number for number, line in enumerate(lines) if line.startswith("WHERE"))
        lines.insert(where + 1, "PARTITION BY id")
    if kind == "groups":
        (select,) = (number for number, line in enumerate(lines) if line.startswith("SELECT"))
        lines[select] = rng.choice(("SELECT COLLAPSED *", "SELECT TOTAL COUNT(*) AS n"))
        if "TOTAL" in lines[select]:
            lines += rng.choice(([], ["PER END"], ["PER 4 MILLISECONDS"]))
    return "\n".join(lines) + "\n"


def _events(rng: random.Random) -> list[Event]:
    time, found = 10, random_stream(rng, rng.randint(6, 16), nulls=0.05)
    for row, event in enumerate(found):
        event |= {"row": row, EVENT_TIME: instant(time)}
        time += rng.choice((0, 1, 1, 2, 5))
    return list(found)


def _check_seed(seed: int, kind: str, tally: Counter[str]) -> None:
    """Compare a random query, and count what was compared."""
    rng = random.Random(f"{kind} {seed}")
    text, events = _text(rng, kind), _events(rng)
    try:
        with interpreted():
            matchers = engines(text, Options((EVENT_TIME,), ("row",)))
    except CelError:
        return
    for name, matcher in matchers.items():
        query = only_query(matcher)
        if rng.random() < 0.2:
            query = query.with_options(positions=False)
        try:
            check_stream(query.program, _A_STREAM, allow_unbounded_state=True)
            heard = streamed_behind(query, events, rng, buckets=rng.choice((1, 2)))
            wanted = _wanted(query, heard)
        except (EventError, TotalError):
            continue  # refused
        if query.plan.answer.totals is None:
            told = same_rows(heard.rows, wanted)
        else:
            told = totals_difference(heard.rows, wanted)
        assert not told, f"{kind} {seed} {name}: {told}\n{text}{events}"
        tally["compared"] += 1
        tally["with rows"] += bool(wanted)
        tally["late"] += len(events) - len(heard.events)
        tally["with deadlines"] += bool(wanted and query.plan.choice.deadlines)


_A_STREAM: Any = SimpleNamespace(isStreaming=True, sparkSession=None)


@pytest.mark.each(3)
@pytest.mark.parametrize("kind", _FEATURES)
def test_random_queries(kind: str) -> None:
    tally = Counter[str]()
    with plain_totals(), warnings.catch_warnings():
        warnings.simplefilter("ignore", EventWarning)
        for seed in range(30):
            _check_seed(seed, kind, tally)
    assert min(tally["with rows"], tally["late"]) >= 15, tally
    assert tally["with deadlines"] >= (0 if kind == "starts" else 10), tally


@pytest.mark.long
@pytest.mark.parametrize("kind", _FEATURES)
@pytest.mark.parametrize("first", range(1000, 4000, 300))
def test_many_random_queries(kind: str, first: int) -> None:
    tally = Counter[str]()
    with plain_totals(), warnings.catch_warnings():
        warnings.simplefilter("ignore", EventWarning)
        for seed in range(first, first + 300):
            _check_seed(seed, kind, tally)
    assert tally["with rows"] >= 100, tally


# --- for each row of a table ----------------------------------------------------------------------

_PAIR = "(A AS a ; B AS b) FILTER a.id = rule.id AND b.id = rule.id AND b.v >= rule.least"
_SILENT = "(A AS a ; !B FOR 5 MILLISECONDS) FILTER a.id = rule.id AND a.v >= rule.least"


@pytest.mark.each(6)
@pytest.mark.parametrize(
    "text",
    [
        f"SELECT a FROM S FOR EACH rule WHERE {_SILENT}",
        f"SELECT a FROM S FOR EACH rule WHERE {_SILENT} PARTITION BY id",
        f"SELECT TOTAL COUNT(*) AS n FROM S FOR EACH rule WHERE {_SILENT} PER END",
        f"SELECT a, b FROM S FOR EACH rule WHERE {_PAIR} WITHIN 9 MILLISECONDS",
        f"SELECT LONGEST a FROM S FOR EACH rule WHERE {_PAIR} WITHIN 9 MILLISECONDS",
        f"SELECT a FROM S FOR EACH rule WHERE {_PAIR.replace(';', ':')} WITHIN 9 MILLISECONDS",
    ],
)
def test_for_each_row(text: str) -> None:
    """Each row has partitions of its own, so it has late events of its own."""
    declared = _DECLARED + "PARAMETERS rule { id: STRING, least: DOUBLE }\n"
    with interpreted():
        query = only_query(celc.compile(declared + text, order_by=EVENT_TIME, tiebreak="row"))
    query = query.with_options(positions=False)
    assert query.plan.source.parameters is not None
    count = late = 0
    for seed in range(8):
        rng = random.Random(seed)
        events = [
            {
                "type": rng.choice("AAB"),
                "id": rng.choice("abcdx"),
                "v": rng.choice((0.5, 2.0, None)),
                EVENT_TIME: instant(time),
                "row": time,
            }
            for time in sorted(rng.sample(range(1, 90), 25))
        ]
        rules = rows_table(query, [{"id": id, "least": rng.choice((0.0, 1.0))} for id in "abcd"])
        rows = in_one_order(rows_of(query.name, query.plan.source.parameters, rules))
        with plain_totals():
            heard = streamed_behind(query, events, rng, source="id", rules=rows)
            wanted = _wanted(query, heard, rule=rules)
        assert not same_rows(heard.rows, wanted), f"seed {seed}"
        count += len(wanted)
        late += len(events) - len(heard.events)
    assert min(count, late)
