"""Streams of MATCH_RECOGNIZE by hand: what is kept, late rows, ties, and other queries' states."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventError, StateError
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import check
from celc_runtime.stream.formats import StreamOptions
from memory import resident
from row_streams_by_hand import RowOperator, as_read, query_of

_DAY = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)
_SCHEMA = pa.schema(
    [("k", pa.int32()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int32()), ("nr", pa.int64())]
)


def _query(pattern: str, define: str, *, measures: str = "LAST(v) AS last", rest: str = "") -> Any:
    """`pattern` may have its closing parenthesis, and WITHIN or SUBSET behind it."""
    pattern += "" if ") WITHIN" in pattern or ") SUBSET" in pattern else ")"
    return query_of(
        "CREATE TABLE t (k INT, ts TIMESTAMP, v INT);\n"
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts\n"
        f"MEASURES {measures} {rest} PATTERN ({pattern} DEFINE {define})"
    )


class _Stream:
    """A stream in seconds after `_DAY`."""

    def __init__(self, query: Any, **options: Any) -> None:
        self.query = query
        self.operator = RowOperator(query, StreamOptions({}, has_types=False, **options))

    def told(
        self, rows: list[tuple[int, int, int]], watermark: int, **more: list[Any]
    ) -> list[dict[str, Any]]:
        """What comes of rows (key, second, value), and more columns."""
        times = [_DAY + dt.timedelta(seconds=second) for _, second, _ in rows]
        keys, values = [key for key, _, _ in rows], [value for _, _, value in rows]
        nr = more.get("nr", [None] * len(rows))
        given = pa.table([keys, times, values, nr], schema=_SCHEMA)
        read = as_read(self.query, given)
        if "nr" in more:
            read = read.append_column("nr", given["nr"])
        moment = int((_DAY + dt.timedelta(seconds=watermark)).timestamp() * 1000)
        return self.operator.advance(read if rows else None, moment)


_RISES = _query("A B+", "A AS v > 0, B AS v > PREV(v)", rest="AFTER MATCH SKIP PAST LAST ROW")


def test_a_match_waits_for_the_row_that_ends_it() -> None:
    stream = _Stream(_RISES)
    assert stream.told([(1, 1, 1), (1, 2, 2), (1, 3, 3)], 4) == []
    assert stream.operator.sum("kept") == 3
    assert stream.told([(1, 5, 1)], 5) == [{"k": 1, "last": 3}]
    assert stream.operator.finish() == []


def test_a_start_comes_if_all_that_can_become_of_those_before_leads_to_it() -> None:
    """A B may become A B X D, and the next start is its B all the same."""
    query = _query(
        "A B X*? D | A B | E F) SUBSET S = (B, F)",
        "A AS v = 1, B AS v = 2, D AS v = 9, E AS v = 2, F AS v = 3",
        measures="MATCH_NUMBER() AS n, LAST(v) AS last",
        rest="AFTER MATCH SKIP TO LAST S",
    )
    stream = _Stream(query)
    assert stream.told([(1, 1, 1), (1, 2, 2), (1, 3, 3)], 3) == [{"k": 1, "n": 2, "last": 3}]
    assert stream.told([(1, 4, 9)], 4) == [{"k": 1, "n": 1, "last": 9}]
    assert stream.operator.finish() == []


def test_numbers_come_before_the_matches_that_are_numbered_before() -> None:
    query = _query(
        "A X* D | A | E",
        "A AS v = 1, D AS v = 9, E AS v = 2",
        measures="MATCH_NUMBER() AS n, LAST(v) AS last",
        rest="AFTER MATCH SKIP TO NEXT ROW",
    )
    stream = _Stream(query)
    assert stream.told([(1, 1, 1), (1, 2, 2)], 2) == [{"k": 1, "n": 2, "last": 2}]
    assert stream.operator.finish() == [{"k": 1, "n": 1, "last": 1}]


def test_what_ends_only_at_the_end_may_end_without_it() -> None:
    stream = _Stream(_query("(A | B) $ | A", "A AS v > 0, B AS v < 0"))
    assert stream.told([(1, 1, 5)], 1) == [{"k": 1, "last": 5}]
    assert stream.told([(1, 2, -5)], 2) == []
    assert stream.operator.finish() == [{"k": 1, "last": -5}]


def test_what_no_row_can_fulfil_is_not_waited_for() -> None:
    never = _Stream(_query("A B | A", "A AS v > 0, B AS v > 5 AND v < 3"))
    assert never.told([(1, 1, 1)], 1) == [{"k": 1, "last": 1}]
    assert never.operator.sum("kept") == 0
    assert _query("A B", "A AS v > 5, B AS v < 3").plan.realisable == (0, 1, 2)
    assert _query("A B", "A AS v > 5, B AS v < PREV(v)").plan.realisable == ()


def test_a_condition_that_is_true_whatever_comes_is_not_waited_for() -> None:
    stream = _Stream(_query("A", "A AS v > 5 OR NEXT(v) > 5"))
    assert stream.told([(1, 1, 6)], 1) == [{"k": 1, "last": 6}]
    assert stream.told([(1, 2, 1)], 2) == []
    assert stream.told([(1, 3, 6)], 3) == [{"k": 1, "last": 1}, {"k": 1, "last": 6}]


def test_a_window_that_has_passed_ends_it_without_a_row() -> None:
    within = _query("A B+) WITHIN INTERVAL '5' SECOND", "A AS v > 0, B AS v > PREV(v)")
    stream = _Stream(within)
    assert stream.told([(1, 1, 1), (1, 2, 2)], 3) == []
    assert stream.told([], 5) == []
    assert stream.told([], 7) == [{"k": 1, "last": 2}]


def test_partitions_that_can_match_no_more_keep_nothing() -> None:
    """Two thousand partitions of a row that can begin no match leave neither rows nor records."""
    stream = _Stream(_query("A B", "A AS v > 0, B AS v < 0"))
    for number in range(40):
        stream.told([(50 * number + n, number, 0) for n in range(50)], number)
    assert stream.operator.sum("kept") == stream.operator.sum("known") == 0
    assert stream.told([(7, 90, 1), (7, 91, -1)], 95) == [{"k": 7, "last": -1}]


def test_what_prev_reads_stays() -> None:
    stream = _Stream(_query("A B", "A AS v > PREV(v, 2), B AS v < 0"))
    stream.told([(1, n, 0) for n in range(30)], 30)
    assert stream.told([(1, 31, 1), (1, 32, -1)], 33) == [{"k": 1, "last": -1}]
    numbered = _query("A", "A AS v > 0", measures="MATCH_NUMBER() AS n, PREV(FIRST(v)) AS b")
    stream = _Stream(numbered)
    assert stream.told([(1, 1, 5), (1, 2, 0), (1, 3, 6)], 3) == [
        {"k": 1, "n": 1, "b": None},
        {"k": 1, "n": 2, "b": 0},
    ]
    assert stream.told([(1, 4, 7)], 4) == [{"k": 1, "n": 3, "b": 6}]


def test_the_first_row_of_a_partition_is_known() -> None:
    stream = _Stream(_query("^ A B", "A AS v > 0, B AS v < 0"))
    assert stream.told([(1, 1, 0), (1, 2, 1), (1, 3, -1)], 3) == []
    assert stream.told([(1, 4, 1), (1, 5, -1), (2, 4, 1), (2, 5, -1)], 5) == [{"k": 2, "last": -1}]


@pytest.mark.long
def test_the_state_is_bounded_by_within() -> None:
    """500 micro-batches: what is kept and stored does not grow, nor does the process."""
    query = _query(
        "A B* C) WITHIN INTERVAL '20' SECOND",
        "A AS v > 2, B AS v BETWEEN 1 AND 3, C AS v = 9",
        rest="AFTER MATCH SKIP TO NEXT ROW",
    )
    stream, rng = _Stream(query, buckets=2), random.Random(5)
    kept, sizes, memory = [], [], []
    for number in range(500):
        rows = [(rng.randrange(8), number, rng.choice((0, 1, 2, 3, 4, 9))) for _ in range(2)]
        rows = list({key: (key, second, value) for key, second, value in rows}.values())
        stream.told(rows, number)
        kept.append(stream.operator.sum("kept"))
        sizes.append(stream.operator.sum("bytes"))
        memory.append(resident())
    assert max(kept[400:]) <= max(kept[50:150]) + 20
    assert max(sizes[400:]) <= 2 * max(sizes[50:150])
    assert max(memory[400:]) <= 1.05 * max(memory[200:300]), memory[::50]


def test_late_rows() -> None:
    side = _Stream(_RISES, late="side")
    side.told([(1, 5, 1)], 6)
    late = side.told([(1, 4, 8), (2, 4, 8)], 7)
    assert [(row["kind"], row["event"]["k"], row["event"]["v"]) for row in late] == [
        ("late", 1, 8),
        ("late", 2, 8),
    ]
    drop = _Stream(_RISES)
    drop.told([(1, 5, 1)], 6)
    assert drop.told([(1, 4, 8)], 7) == []
    assert drop.operator.counts["late"] == 1
    stop = _Stream(_RISES, late="error")
    stop.told([(1, 5, 1)], 6)
    with pytest.raises(EventError, match="is late: events up to its time have been run"):
        stop.told([(1, 4, 8)], 7)


def test_ties_need_a_tiebreak() -> None:
    stream = _Stream(_RISES)
    with pytest.raises(EventError, match="two rows of a partition are equal in ts"):
        stream.told([(1, 1, 1), (1, 1, 2)], 2)
    options = StreamOptions({"nr": "LONG"}, has_types=False, tiebreak=("nr",))
    stream.operator = RowOperator(_RISES, options)
    stream.told([(1, 1, 2), (1, 1, 1)], 2, nr=[2, 1])
    assert stream.told([(1, 3, 0)], 3, nr=[3]) == [{"k": 1, "last": 2}]


def test_matches_have_the_ids_of_the_batch() -> None:
    """Also where only conditions read a column, and rows come once more in a later micro-batch."""
    query = query_of(
        "CREATE TABLE t (k INT, ts TIMESTAMP, v INT);\n"
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(ts) AS since\n"
        "ALL ROWS PER MATCH WITH UNMATCHED ROWS AFTER MATCH SKIP TO NEXT ROW\n"
        "PATTERN (A B* | C) DEFINE A AS v > 3, B AS v > 1, C AS v = 0)"
    ).with_options(match_id=True)
    shown = [(1, second, value) for second, value in enumerate((4, 2, 5, 1, 4, 0, 2, 5, 4, 0))]
    times = [_DAY + dt.timedelta(seconds=second) for _, second, _ in shown]
    keys, values = [key for key, _, _ in shown], [value for _, _, value in shown]
    batch = pa.table(
        {"k": pa.array(keys, pa.int32()), "ts": times, "v": pa.array(values, pa.int32())}
    )
    wanted = query.match_table(batch).to_pylist()
    ids = {row["match_id"] for row in wanted}
    assert None in ids
    assert len(ids) == 1 + sum(value > 3 or value == 0 for value in values)
    stream, found = _Stream(query), []
    for row in shown:
        found += stream.told([row], row[1])
    found += stream.operator.finish()
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_an_id_needs_a_name_of_its_own() -> None:
    with pytest.raises(ValueError, match="has a column 'match_id' already"):
        _query("A", "A AS v > 0", measures="LAST(v) AS match_id").with_options(match_id=True)


def test_conditions_of_one_row_are_all_that_is_kept_of_it() -> None:
    """A column that only conditions read is NULL in the state, and so is a row that fits nothing,
    but a stream that goes on with late='side' shows rows as they came."""
    stream = _Stream(_query("A B", "A AS v > 0, B AS v < 0", measures="MATCH_NUMBER() AS n"))
    assert stream.told([(1, 1, 1), (1, 2, 0), (1, 3, 5)], 0) == []
    stream.operator.options = stream.operator.options._replace(late="side")
    told = stream.told([(1, 4, -5), (1, 5, 7)], 5)
    assert [row["n"] for row in told] == [1]
    (late,) = stream.told([(1, 4, 8)], 6)
    assert (late["kind"], late["event"]["v"]) == ("late", 8)


def test_days_are_times() -> None:
    """WITHIN in days, measured on a DATE; rows of one day need a tiebreak."""
    query = query_of(
        "CREATE TABLE t (k INT, d DATE, v INT);\n"
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY d\n"
        "MEASURES FIRST(d) AS since, LAST(v) AS last\n"
        "PATTERN (A B+) WITHIN INTERVAL '2' DAY DEFINE A AS v > 0, B AS v > PREV(v))"
    )
    options = StreamOptions({"nr": "LONG"}, has_types=False, tiebreak=("nr",))
    operator = RowOperator(query, options)
    told = []
    for day, v, nr in ((1, 2, 2), (1, 1, 1), (2, 3, 3), (3, 4, 4), (4, 5, 5)):
        given = pa.table(
            [[1], [dt.date(2026, 5, day)], [v], [nr]],
            schema=pa.schema(
                [("k", pa.int32()), ("d", pa.date32()), ("v", pa.int32()), ("nr", pa.int64())]
            ),
        )
        # The day before is behind the watermark.
        moment = int((_DAY + dt.timedelta(days=day - 1, seconds=-1)).timestamp() * 1000)
        read = as_read(query, given).append_column("nr", given["nr"])
        told.append(operator.advance(read, moment))
    first = {"k": 1, "since": dt.date(2026, 5, 1), "last": 4}
    assert told == [[], [], [], [], [first]]
    assert operator.finish() == []


def test_rows_that_have_no_place_are_refused() -> None:
    """NULL has a place behind the first column alone, where NULLS FIRST or NULLS LAST says so."""
    text = (
        "CREATE TABLE t (k INT, ts TIMESTAMP, v INT);\n"
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts NULLS FIRST, v\n"
        "MEASURES LAST(v) AS last PATTERN (A) DEFINE A AS v IS NULL)"
    )
    schema = pa.schema([_SCHEMA.field(name) for name in ("k", "ts", "v")])
    for ts, v, column in ((None, 1, "ts"), (_DAY, None, "v")):
        stream = RowOperator(query_of(text), StreamOptions({}, has_types=False))
        with pytest.raises(EventError, match=f"the order column '{column}' is NULL in an event"):
            stream.advance(pa.table([[1], [ts], [v]], schema=schema), 0)
    last = RowOperator(query_of(text.replace("FIRST, v", "FIRST, v NULLS LAST")), stream.options)
    rows = pa.table([[1, 1], [_DAY, _DAY], [None, 2]], schema=schema)
    assert last.advance(rows, int(_DAY.timestamp() * 1000)) == [{"k": 1, "last": None}]


def test_a_partition_without_an_order_is_refused() -> None:
    """A stream has no other order: the batch reads the rows of a partition as they come."""
    query = query_of(
        "CREATE TABLE t (k LONG, v LONG);\n"
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k MEASURES LAST(v) AS last\n"
        "PATTERN (A B) DEFINE B AS v > PREV(v))"
    )
    assert query.match_table(pa.table({"k": [1, 1], "v": [1, 2]})).to_pylist() == [
        {"k": 1, "last": 2}
    ]
    with pytest.raises(EventError, match="let ORDER BY begin with a TIMESTAMP or a DATE"):
        check(query.program, Route.STREAM)


def test_a_state_of_another_query_is_refused() -> None:
    stream = _Stream(_RISES)
    stream.told([(1, 1, 1)], 2)
    other = _query("A B", "A AS v > 0, B AS v > PREV(v)")
    stream.query = stream.operator.query = other
    with pytest.raises(StateError, match="the state of another query"):
        stream.told([(1, 3, 1)], 4)


def test_errors_name_the_time() -> None:
    stream = _Stream(_query("A B?", "A AS v > 0, B AS v > 5", rest="AFTER MATCH SKIP TO LAST B"))
    with pytest.raises(
        EventError, match=r"begins at ts=2026-05-01 00:00:01.* of the partition k=1"
    ):
        stream.told([(1, 1, 1), (1, 2, 0)], 2)
