"""Matches with an absence at their end: what waits, until when, and what is said of the rest."""

from __future__ import annotations

import datetime as dt
import warnings
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventError, EventWarning
from celc_runtime.query import CompiledQuery
from engines import interpreted, only_query

import celc

_DECLARED = (
    "CREATE STREAM S { EVENT A { id: INT, ts: TIMESTAMP }, EVENT B { id: INT, ts: TIMESTAMP } }\n"
)
_TEXT = _DECLARED + "SELECT * FROM S WHERE A ; !B FOR 10 SECONDS PARTITION BY id"


def _query(text: str = _TEXT, **options: Any) -> CompiledQuery:
    with interpreted():
        return only_query(celc.compile(text, order_by="ts", **options))


def _time(seconds: int) -> dt.datetime:
    return dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)


def _events(*rows: tuple[str, int, int]) -> pa.Table:
    types, ids, seconds = zip(*rows, strict=True)
    times = pa.array([_time(s) for s in seconds], pa.timestamp("us", tz="UTC"))
    return pa.table({"type": types, "id": pa.array(ids, pa.int32()), "ts": times})


# The clock is that of partition 2.
_ROWS = _events(("A", 1, 0), ("A", 1, 5), ("A", 2, 8), ("B", 2, 16))


def _found(matches: pa.Table) -> list[tuple[int, int]]:
    rows = matches.to_pylist()
    for row in rows:
        assert row["decided_time"] == row["end_time"] + dt.timedelta(seconds=10)
    return [(row["id"], (row["end_time"] - _time(0)).seconds) for row in rows]


def test_the_clock_is_that_of_all_partitions() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _found(_query().match_table(_ROWS)) == [(1, 0), (1, 5)]


def test_what_is_undecided_is_counted_and_the_way_out_is_named() -> None:
    rows = _events(("A", 1, 0), ("A", 1, 5), ("A", 2, 12))
    with pytest.warns(EventWarning, match=r"2 matches of it are undecided.*--at-end closed"):
        found = _query().match_table(rows)
    assert _found(found) == [(1, 0)]
    with pytest.warns(EventWarning, match=r"1 match of it is undecided.*at_end='closed'"):
        assert _found(_query().match_table(rows.slice(0, 1))) == []


def test_closed_input() -> None:
    rows = _ROWS.slice(0, 3)
    wanted = [(1, 0), (1, 5), (2, 8)]
    assert _found(_query().with_options(at_end="closed").match_table(rows)) == wanted
    assert _found(_query(at_end="closed").match_table(rows)) == wanted


@pytest.mark.parametrize("wrong", ["", "open ", None.__class__, 1])
def test_other_ends_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="at_end must be 'open' or 'closed'"):
        _query().with_options(at_end=wrong)
    with pytest.raises(ValueError, match="at_end must be 'open' or 'closed'"):
        _query(at_end=wrong)


def test_a_clock_that_is_given() -> None:
    rows = _ROWS.slice(0, 3)
    late = _query().with_options(clock=_time(20))
    assert _found(late.match_table(rows)) == [(1, 0), (1, 5), (2, 8)]
    with pytest.warns(EventWarning, match="1 match"):
        # The end of the length itself can still bring a B.
        assert _found(_query().with_options(clock=_time(18)).match_table(rows)) == [(1, 0), (1, 5)]


@pytest.mark.parametrize("wrong", ["soon", 1.5, True, dt.time(1)])
def test_other_clocks_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="clock must be a TIMESTAMP"):
        _query().with_options(clock=wrong)


def test_decided_matches_come_while_events_come() -> None:
    """Those of one partition whose deadlines later events have passed."""
    query = _query(_TEXT.removesuffix(" PARTITION BY id"))
    run = query.run()
    found: list[int] = []
    for second in range(0, 100, 5):
        (batch,) = _events(("A", 1, second)).to_batches()
        found += [len(matches) for matches in run.push(batch)]
    assert sum(found) == 17  # but for those at 85, 90 and 95, the first of which waits for 96
    assert sum(map(len, run.rest())) == 0
    assert run.stored_events <= 4


def test_a_match_is_undone_up_to_the_end_of_its_length() -> None:
    for second, wanted in ((10, []), (11, [(1, 0)])):
        rows = _events(("A", 1, 0), ("B", 1, second), ("B", 2, 30))
        assert _found(_query().match_table(rows)) == wanted


def test_decided_time_ends_with_the_type() -> None:
    """A time near the end of its type has no time after it."""
    text = _DECLARED.replace("TIMESTAMP", "DATE") + "SELECT * FROM S WHERE A ; !B FOR 36 HOURS"
    query = _query(text, at_end="closed")
    days = pa.array([dt.date(2026, 1, 1)], pa.date32())
    rows = pa.table({"type": ["A"], "id": pa.array([1], pa.int32()), "ts": days})
    (row,) = query.match_table(rows).to_pylist()
    assert row["decided_time"] == dt.date(2026, 1, 2)


def test_a_label_cannot_have_the_name_of_the_column() -> None:
    text = _DECLARED + "SELECT * FROM S WHERE A AS decided_time ; !B FOR 10 SECONDS"
    with pytest.raises(celc.CelError, match="duplicate-column"):
        _query(text)


def test_selectors_know_the_clock_before_the_first_partition_ends() -> None:
    """Matches of one end, which are decided at different times, are compared once all are."""
    text = _DECLARED + "SELECT LAST * FROM S WHERE A+ ; !B PARTITION BY id WITHIN 10 SECONDS"
    rows = _events(("A", 1, 0), ("A", 1, 5), ("A", 2, 16))
    with pytest.warns(EventWarning, match="undecided"):
        found = _query(text).match_table(rows).to_pylist()
    assert [(row["id"], row["end_pos"], len(row["A"])) for row in found] == [(1, 0, 1), (1, 1, 2)]


def test_a_null_clock_is_an_error() -> None:
    rows = _ROWS.set_column(2, "ts", pa.array([None] * 4, pa.timestamp("us", tz="UTC")))
    with pytest.raises(EventError):
        _query().match_table(rows)


def test_a_route_that_sees_some_partitions_only_wants_the_clock() -> None:
    frame = _ROWS.to_pandas()
    with pytest.raises(EventError, match=r"by match_pandas: .* does not see.*clock="):
        _query().match_pandas(frame)
    # Without partitions, or where the clock is known, nothing is missing.
    assert len(_query().with_options(clock=_time(16)).match_pandas(frame)) == 2
    assert len(_query(_TEXT.removesuffix(" PARTITION BY id")).match_pandas(frame)) == 2
