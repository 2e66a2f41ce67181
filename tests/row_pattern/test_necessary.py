"""What conditions imply for every match: WITHIN, and rows that a partition must have."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventError
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.row_pattern import able
from engines import interpreted
from row_cases import compiled

from celc.diagnostics.source import Source
from celc.row_pattern.compiler import compile_rows

_TABLE = "CREATE TABLE t (k INT, ts TIMESTAMP, d DATE, n TIMESTAMP_NTZ, v INT, s STRING);"
_MINUTE = 60_000_000
_DAY = 1440 * _MINUTE


def _text(define: str, *, pattern: str = "a x* b", order: str = "ts", rows: str = "") -> str:
    return (
        f"{_TABLE} SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY {order} "
        f"MEASURES COUNT(*) AS c, FIRST(v) AS f {rows} PATTERN ({pattern}) DEFINE {define})"
    )


def _plan(text: str) -> RowPlan:
    (query,) = compiled(text).queries.values()
    plan: RowPlan = query.plan
    return plan


@pytest.mark.parametrize(
    ("define", "more", "within"),
    [
        ("b AS ts <= a.ts + INTERVAL '5' MINUTE", {}, 5 * _MINUTE),
        ("b AS a.ts + INTERVAL '5' MINUTE > b.ts", {}, 5 * _MINUTE - 1),
        ("b AS ts - INTERVAL '5' MINUTE <= FIRST(ts)", {}, 5 * _MINUTE),
        ("b AS LAST(b.ts) - FIRST(a.ts) < INTERVAL '5' MINUTE", {}, 5 * _MINUTE - 1),
        ("b AS TIMESTAMPDIFF(MINUTE, a.ts, b.ts) < 5", {}, 5 * _MINUTE - 1),
        ("b AS TIMESTAMPDIFF(MINUTE, a.ts, b.ts) <= 5", {}, 6 * _MINUTE - 1),
        ("b AS ts BETWEEN a.ts AND a.ts + INTERVAL '5' MINUTE", {}, 5 * _MINUTE),
        ("b AS ts = a.ts + INTERVAL '5' MINUTE", {}, 5 * _MINUTE),
        ("b AS n <= a.n + INTERVAL '5' MINUTE", {"order": "n"}, 5 * _MINUTE),
        ("b AS d <= a.d + INTERVAL '2' DAY", {"order": "d"}, 2 * _DAY),
        ("b AS d - a.d < INTERVAL '2' DAY", {"order": "d"}, 1 * _DAY),
        ("b AS v > 1 AND ts <= a.ts + INTERVAL '5' MINUTE AND v < a.v", {}, 5 * _MINUTE),
        # The longest of the last rows.
        (
            "b AS ts <= a.ts + INTERVAL '5' MINUTE, c AS ts <= a.ts + INTERVAL '9' MINUTE",
            {"pattern": "a x* (b | c)"},
            9 * _MINUTE,
        ),
        ("b AS ts <= FIRST(ts) + INTERVAL '5' MINUTE", {"pattern": "(a x* b+)?"}, 5 * _MINUTE),
        # Not every last row is bounded, or not from the start.
        ("b AS ts <= a.ts + INTERVAL '5' MINUTE", {"pattern": "a x* b c?"}, None),
        ("b AS ts <= a.ts + INTERVAL '5' MINUTE", {"pattern": "x a x* b"}, None),
        ("b AS ts <= PREV(ts) + INTERVAL '5' MINUTE", {}, None),
        ("b AS ts >= a.ts - INTERVAL '5' MINUTE", {}, None),
        ("b AS ts <= a.ts + INTERVAL '5' MINUTE OR v > 1", {}, None),
        ("b AS ts <= a.ts - INTERVAL '5' MINUTE", {}, None),
        ("b AS NOT (ts <= a.ts + INTERVAL '5' MINUTE)", {}, None),
        ("b AS d <= a.d + INTERVAL '2' DAY", {}, None),
        ("b AS ts <= a.ts + INTERVAL '5' MINUTE", {"order": "ts DESC"}, None),
        ("b AS ts <= a.ts + INTERVAL '5' MINUTE", {"order": "ts NULLS FIRST"}, None),
        ("b AS ts <= a.ts + INTERVAL '5' MINUTE", {"order": "v, ts"}, None),
    ],
)
def test_within_is_derived(define: str, more: dict[str, str], within: int | None) -> None:
    found = compile_rows(Source("q", _text(define, **more)), "q")
    assert found.program.query.within == within


def test_a_bound_alone_needs_no_search() -> None:
    assert not _plan(_text("b AS ts <= a.ts + INTERVAL '5' MINUTE AND v > 1")).searches
    assert _plan(_text("b AS ts = a.ts + INTERVAL '5' MINUTE")).searches


def test_a_shorter_bound_stays() -> None:
    """Where another last row may come later, WITHIN does not say what a condition says."""
    define = "b AS ts <= a.ts + INTERVAL '5' MINUTE, c AS ts <= a.ts + INTERVAL '9' MINUTE"
    text = _text(define, pattern="a x*? (b | c)")
    (kept,) = compile_rows(Source("q", text), "q").program.conditions
    assert kept.path is not None


@pytest.mark.parametrize(
    ("define", "pattern", "count"),
    [
        ("b AS v > 3 AND v > PREV(v)", "a b+", 1),
        ("b AS v > 3, a AS s = 'x'", "a b+", 2),
        ("b AS v > 3, a AS v > 3 AND s = 'x'", "a b+", 1),
        ("b AS v > 3", "a b*", 0),
        ("b AS v > 3, c AS v < 1", "a (b | c)", 0),
        ("b AS v > 3, c AS v > 3", "a (b | c)", 1),
        ("b AS v > 3", "(a b)?", 0),
        ("b AS v > PREV(v) OR v > 3", "a b", 0),
        ("b AS v > a.v", "a b", 0),
        ("b AS s LIKE '%x' AND UPPER(s) = 'X'", "a{2} b", 1),
    ],
)
def test_what_is_required(define: str, pattern: str, count: int) -> None:
    assert len(_plan(_text(define, pattern=pattern)).required) == count


def _rows(partitions: int) -> pa.Table:
    keys = [n % partitions for n in range(4 * partitions)]
    count = len(keys)
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    times = [start + dt.timedelta(minutes=count - n) for n in range(count)]
    return pa.table(
        {
            "k": pa.array(keys, pa.int32()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "d": pa.array([None] * count, pa.date32()),
            "n": pa.array([None] * count, pa.timestamp("us")),
            "v": pa.array(
                [9 if n in (5, 5 + 2 * partitions) else 1 for n in range(count)], pa.int32()
            ),
            "s": pa.array([str(key) for key in keys]),
        }
    )


@pytest.mark.parametrize(
    "rows", ["", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"]
)
def test_partitions_without_a_row_are_left_out(rows: str, monkeypatch: Any) -> None:
    text = _text("b AS v > 3", rows=rows)
    table = _rows(50)
    with interpreted():
        query = compiled(text)
        found = query.match_table(table)
        monkeypatch.setattr(able, "_MOST_HITS", -1)
        assert query.match_table(table).sort_by("k").equals(found.sort_by("k"))
    assert {*found.column("k").to_pylist()} == ({*range(50)} if "UNMATCHED" in rows else {5})


def test_a_null_in_a_partition_without_a_row_is_an_error() -> None:
    table = _rows(50)
    times = table.column("ts").to_pylist()
    times[7] = None
    table = table.set_column(1, "ts", pa.array(times, pa.timestamp("us", "UTC")))
    with interpreted(), pytest.raises(EventError, match=r"row 7 \(counted from 0\) has NULL there"):
        compiled(_text("b AS v > 3")).match_table(table)


def test_no_partition_is_left() -> None:
    with interpreted():
        assert len(compiled(_text("b AS v > 30")).match_table(_rows(3))) == 0
