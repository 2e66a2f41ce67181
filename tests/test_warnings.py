"""What `celc.compile` warns of, as Python's warnings."""

from __future__ import annotations

import datetime as dt
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventWarning
from engines import interpreted

import celc
from celc.driver.matcher import Matcher

_NEVER = """CREATE STREAM S { EVENT A { n: INT, ts: LONG } }
SELECT x FROM S WHERE A AS x FILTER x.n > 3 AND x.n < 2
"""
_ROWS = """CREATE TABLE t (v INT, ts TIMESTAMP);
SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(A.v) AS v PATTERN (A+ B)
DEFINE A AS SUM(A.v) < 9)
"""


def test_warnings_name_the_line_that_compiles() -> None:
    def compiled() -> celc.Matcher:
        return celc.compile(_NEVER, name="low.cel", order_by="ts")

    with interpreted(), pytest.warns(celc.CelWarning) as caught:
        matcher = compiled()
    (found,) = caught
    line = compiled.__code__.co_firstlineno + 1
    assert (Path(found.filename), found.lineno) == (Path(__file__), line)
    assert str(found.message).startswith("low.cel:2:49: warning[never-matches]: ")
    assert [one.code for one in matcher.warnings] == ["never-matches"]


def test_row_patterns_are_warned_of_too() -> None:
    with pytest.warns(celc.CelWarning, match=r"query.sql:.*warning\[path-search\]") as caught:
        celc.compile(_ROWS, dialect="match_recognize")
    assert {Path(found.filename) for found in caught} == {Path(__file__)}


def test_what_was_said_is_not_said_again() -> None:
    with interpreted():
        matcher = celc.compile(_NEVER, order_by="ts")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Matcher(matcher.source)
            pickle.loads(pickle.dumps(matcher))
            matcher.with_options(ties="simultaneous")
        # Another text is another matter.
        with pytest.warns(celc.CelWarning, match="never-matches"):
            celc.compile(_NEVER, order_by="ts")


def test_a_device_that_stays_silent_is_reported() -> None:
    text = """CREATE STREAM S {
  EVENT On { id: INT, ts: TIMESTAMP }, EVENT Beat { id: INT, ts: TIMESTAMP }
}
SELECT * FROM S WHERE On AS x ; !Beat FOR 10 MINUTES [ts] PARTITION BY id
"""
    times = [dt.datetime(2026, 7, 1, 12, minute, tzinfo=dt.UTC) for minute in (0, 1, 5, 40)]
    events = {"type": ["On", "On", "Beat", "On"], "id": [1, 2, 2, 2], "ts": times}
    with warnings.catch_warnings(), interpreted():
        warnings.simplefilter("error", celc.CelWarning)
        query = celc.compile(text)
    (row,) = query.match_table(events).to_pylist()
    assert (row["id"], row["decided_time"]) == (1, times[0] + dt.timedelta(minutes=10))


@pytest.mark.parametrize(
    "read",
    [
        lambda query, events: query.match_table(events),
        lambda query, events: query.match_table(events, max_matches=1),
        lambda query, events: query.match_all_table(events),
        lambda query, events: query.near.match_table(events),
        lambda query, events: pa.Table.from_batches(query.match_arrow(events.to_batches())),
        lambda query, events: query.match_pandas(events.to_pandas()),
        lambda query, events: events.to_pandas().pipe(query.match_pandas),
    ],
    ids=["table", "first", "all", "one of them", "batches", "pandas", "pipe"],
)
def test_warnings_of_a_run_name_the_line_that_runs(
    read: Callable[[celc.Matcher, pa.Table], Any],
) -> None:
    text = """CREATE STREAM S { EVENT A { n: INT }, EVENT B { n: INT } }
QUERY near: SELECT * FROM S WHERE A ; B"""
    events = pa.table({"type": ["A", "C", "A", "B"], "n": pa.array([1, 2, 3, 4], pa.int32())})
    with interpreted(), pytest.warns(EventWarning) as caught:
        read(celc.compile(text), events)
    assert {Path(found.filename) for found in caught} == {Path(__file__)}
