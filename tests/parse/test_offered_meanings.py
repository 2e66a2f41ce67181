"""What a message offers means what was meant: on random events, against the meaning by hand, or by
the reference where what was meant can be written.

The queries that the reference can answer as they stand are in `test_offers_of_the_reference.py`.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from itertools import chain

import pyarrow as pa
import pytest
from engines import interpreted
from reference import evaluate

import celc
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options

STREAM = """CREATE STREAM S {
  EVENT A { v: DOUBLE, ts: TIMESTAMP }, EVENT B { v: DOUBLE, ts: TIMESTAMP },
  EVENT C { v: DOUBLE, ts: TIMESTAMP }
}
"""
VALUES = (None, 0.0, -0.0, 1.0, 5.0, -5.0, math.nan, math.inf, -math.inf)
MINUTE = 60_000_000
Event = tuple[str, float | None, int]
"""Type, value, time in microseconds."""


def _meant(query: str) -> str:
    """A query as it is, where it is right; else after the change that it offers."""
    wrong = [one for one in celc.check(STREAM + query) if one.severity == "error"]
    return mended(query) if wrong else STREAM + query


def mended(query: str) -> str:
    """A query after the first change that its only error offers."""
    with pytest.raises(CelError) as refused:
        celc.compile(STREAM + query, order_by="ts")
    (found,) = refused.value.diagnostics
    fix, text = found.fixes[0], STREAM + query
    return text[: fix.span.start] + fix.text + text[fix.span.end :]


def answers(text: str, events: list[Event]) -> list[tuple[int, ...]]:
    """The positions of the matches."""
    table = pa.table(
        {
            "type": [type for type, _, _ in events],
            "v": pa.array([value for _, value, _ in events], pa.float64()),
            "ts": pa.array([time for _, _, time in events], pa.timestamp("us")),
        }
    )
    with interpreted():
        rows = celc.compile(text, order_by="ts").match_table(table).to_pylist()
    return sorted(
        tuple(
            sorted(
                {
                    event["pos"]
                    for label in row.values()
                    if isinstance(label, list)
                    for event in label
                }
            )
        )
        for row in rows
    )


def meant(text: str, events: list[Event]) -> list[tuple[int, ...]]:
    """The positions of the matches by the reference."""
    rows = [{"type": type, "v": value, "ts": moment(time)} for type, value, time in events]
    found = evaluate(text, rows, order_by="ts")
    return sorted(tuple(sorted({*chain(*(at for _, at in one.labels))})) for one in found)


def moment(time: int) -> dt.datetime:
    return dt.datetime(2026, 1, 1) + dt.timedelta(microseconds=time)


def stream(rng: random.Random, length: int) -> list[Event]:
    time, events = 0, []
    for _ in range(length):
        time += rng.choice((1, 1, 2, 5)) * MINUTE
        events.append((rng.choice("ABC"), rng.choice(VALUES), time))
    return events


def same(left: float | None, right: float | None) -> bool:
    """Equality in which NULL is a value, and NaN a number."""
    if left is None or right is None:
        return left is right
    return left == right or (math.isnan(left) and math.isnan(right))


CONDITIONS: dict[str, Callable[[float | None, float | None], bool]] = {
    "x.v IS DISTINCT FROM y.v": lambda x, y: not same(x, y),
    "x.v IS NOT DISTINCT FROM y.v": same,
    "NOT x.v IS DISTINCT FROM y.v": same,
    "x.v IS DISTINCT FROM 5": lambda x, _: not same(x, 5.0),
    "x.v IS NOT DISTINCT FROM -5": lambda x, _: same(x, -5.0),
    "NOT x.v IS NOT DISTINCT FROM 5": lambda x, _: not same(x, 5.0),
    "x.v IS DISTINCT FROM NULL": lambda x, _: x is not None,
    "x.v IS NOT DISTINCT FROM NULL": lambda x, _: x is None,
    "ISNAN(x.v)": lambda x, _: x is not None and math.isnan(x),
    "x.v = NaN": lambda x, _: x is not None and math.isnan(x),
    "x.v != NaN": lambda x, _: x is not None and not math.isnan(x),
    "(x.v > 1) = TRUE": lambda x, _: x is not None and (math.isnan(x) or x > 1),
    "(x.v > 1 OR y.v > 1) = FALSE": lambda x, y: (
        x is not None and y is not None and x <= 1 and y <= 1
    ),
    "y.v > 1 AND x.v IS DISTINCT FROM y.v": lambda x, y: (
        y is not None and (math.isnan(y) or y > 1) and not same(x, y)
    ),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions(condition: str) -> None:
    text = _meant(f"SELECT * FROM S WHERE A AS x ; B AS y FILTER {condition}")
    events: list[Event] = [("A", value, n) for n, value in enumerate(VALUES)]
    events += [("B", value, 100 + n) for n, value in enumerate(VALUES)]
    holds, size = CONDITIONS[condition], len(VALUES)
    assert answers(text, events) == [
        (x, size + y)
        for x, left in enumerate(VALUES)
        for y, right in enumerate(VALUES)
        if holds(left, right)
    ]


@pytest.mark.parametrize(
    "query", ["A ; !B FOR 5 MINUTES ; C", "A AS p ; !(B AS q) FOR 5 MINUTES [ts] ; C AS r"]
)
@pytest.mark.parametrize("seed", range(3))
def test_an_absence_of_some_length_between_two_events(query: str, seed: int) -> None:
    events = stream(random.Random(seed), 25)
    length = 5 * MINUTE
    assert answers(mended(f"SELECT * FROM S WHERE {query}"), events) == [
        (a, c)
        for a, (first, _, begin) in enumerate(events)
        for c, (last, _, end) in enumerate(events)
        if (first, last) == ("A", "C")
        and end > begin + length
        and not any(type == "B" and begin < time <= begin + length for type, _, time in events)
    ]


@pytest.mark.parametrize(
    ("query", "written"),
    [
        ("(A?) : B", "(A : B) OR B"),
        ("(A? OR B) ; C", "(A ; C) OR (B ; C) OR C"),
        ("C ; ((A?))", "(C ; A) OR C"),
        ("C ; (A?)+ ; B", "(C ; A+ ; B) OR (C ; B)"),
    ],
)
def test_an_operand_that_can_be_missing(query: str, written: str) -> None:
    events = stream(random.Random(7), 12)
    found = answers(mended(f"SELECT * FROM S WHERE {query}"), events)
    assert found == meant(f"{STREAM}SELECT * FROM S WHERE {written}", events)
    assert found


def test_a_parameter_can_be_called_type() -> None:
    sets = "PARAMETERS rule { type: STRING }\n"
    text = f"{STREAM}{sets}SELECT * FOR EACH rule WHERE A AS x FILTER rule.type = 'A'"
    assert celc.compile(text, order_by="ts")


def test_formulas_with_conditions_of_their_own() -> None:
    events = stream(random.Random(3), 40)
    query = "SELECT * FROM S WHERE A AS x FILTER x.v > 1 OR (B AS y) FILTER y.v <= 1"
    written = "((A AS x) FILTER x.v > 1) OR ((B AS y) FILTER y.v <= 1)"
    found = answers(mended(query), events)
    assert found == meant(f"{STREAM}SELECT * FROM S WHERE {written}", events)
    assert found


def warned_fixes(text: str, code: str) -> list[str]:
    """A query after each change that a warning offers."""
    found = compile_source(Source("q.cel", text), Options(order_by=("ts",))).warnings
    (warned,) = [one for one in found if one.code == code]
    return [text[: fix.span.start] + fix.text + text[fix.span.end :] for fix in warned.fixes]


def test_a_stream_that_chooses_nothing_can_be_left_out() -> None:
    text = f"{STREAM}SELECT * FROM S WHERE S>A ; B"
    events = stream(random.Random(5), 20)
    (changed,) = warned_fixes(text, "stream-not-read")
    found = answers(changed, events)
    assert found == meant(text, events)
    assert found


def test_a_regular_expression_after_like_is_offered_as_one() -> None:
    """The warning says that LIKE reads it otherwise, so the meaning changes, to the pattern's."""
    declared = "CREATE STREAM S { EVENT A { name: STRING, ts: TIMESTAMP } }\n"
    texts = ["foo", "a foo b", "fo", ".*foo.*", "FOO", ""]
    table = pa.table({"type": ["A"] * len(texts), "name": texts, "ts": range(len(texts))})
    table = table.set_column(2, "ts", table["ts"].cast(pa.timestamp("us")))
    query = f"{declared}SELECT x FROM S WHERE A AS x FILTER x.name LIKE '.*foo.*'"
    offers = warned_fixes(query, "like-regex")
    assert offers
    for changed in offers:
        with interpreted():
            rows = celc.compile(changed, order_by="ts").match_table(table).to_pylist()
        assert [row["x"][0]["name"] for row in rows] == [t for t in texts if "foo" in t]
