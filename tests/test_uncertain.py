"""Uncertain time on one machine: the cases by every way, refusals, work that does not explode."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from cases_io import Case, load_cases, load_refused
from celc_runtime import EventError
from celc_runtime.plan.errors import WorkLimitError
from celc_runtime.plan.strategy import InWorlds
from celc_runtime.run.walk import in_worlds
from celc_runtime.stream.formats import StreamOptions
from engines import interpreted, only_query, table_of
from places import CASES
from reference import difference
from streams_by_hand import Operator, instant
from uncertain_answers import has_absence, on_a_clock, possible_answers, streamed_answer

import celc
from celc.interfaces.cli import main

FOLDER = CASES / "uncertain"
_STREAM = """CREATE STREAM S UNCERTAIN [low, high] BY 1 {
  EVENT A { id: INT, value: DOUBLE, low: LONG, high: LONG },
  EVENT B { id: INT, value: DOUBLE, low: LONG, high: LONG }
}
"""


def compiled(text: str, **options: Any) -> Any:
    with interpreted():
        return only_query(celc.compile(_STREAM + text, **options))


def events(*rows: tuple[str, int, int]) -> pa.Table:
    return pa.table(
        {
            "type": [name for name, _, _ in rows],
            "id": pa.array([1] * len(rows), pa.int32()),
            "value": [float(place) for place in range(len(rows))],
            "low": [low for _, low, _ in rows],
            "high": [high for _, _, high in rows],
        }
    )


def test_cases() -> None:
    problems, ways = [], set()
    for case in load_cases(folder=FOLDER):
        with interpreted():
            query = only_query(celc.compile(case.query))
        if case.run_error:
            with pytest.raises(EventError, match=r"weight.* in row 0"):
                query.match_table(table_of(query.plan, case.events))
            continue
        listing = query.program.listing
        assert isinstance(listing, InWorlds)
        judged = listing.definition is not None, listing.by_world, listing.ordered
        ways.add((listing.one_order, listing.checks is None, *judged))
        for route, answer in possible_answers(query, case.events, random.Random(1)).items():
            told = difference(answer, case.expected)
            problems += [f"{case.name}: {route}: {told}"] if told else []
    assert not problems
    assert len(ways) >= 6, ways


@pytest.mark.parametrize(
    "formula",
    [
        "A AS a ; B AS b",
        "A AS a ; B+ AS b",
        "A AS a ; !B ; B AS b",
        "(A AS a ; B AS b) FILTER a.value < b.value",
        "(A AS a UNLESS B) ; B AS b",
    ],
)
def test_a_window_that_is_met_exactly(formula: str) -> None:
    """The latest time of one event and the first of the other are the window apart: one of the 36
    pairs of their times."""
    query = compiled(f"SELECT * FROM S WHERE ({formula}) WITHIN 10 [low]")
    (row,) = query.match_table(events(("A", 0, 5), ("B", 15, 20))).to_pylist()
    assert row["confidence"] == pytest.approx(1 / 36)
    assert not len(query.match_table(events(("A", 0, 4), ("B", 15, 20))))


def _as_streams(cases: list[Case]) -> None:
    problems, compared = [], 0
    for number, case in enumerate(cases):
        if ": TIMESTAMP" in case.query or has_absence(case.query):
            continue  # all the others get instants besides
        compared += 1
        rng = random.Random(number)
        if case.run_error:
            with pytest.raises(EventError, match=r"weight.* in an event of the stream"):
                streamed_answer(on_a_clock(case.query), case.events, ("low", "high"), rng)
            continue
        answer = streamed_answer(on_a_clock(case.query), case.events, ("low", "high"), rng)
        told = difference(answer, case.expected)
        problems += [f"{case.name}: {told}"] if told else []
    assert not problems
    assert compared >= len(cases) - 10


def test_some_cases_as_streams() -> None:
    _as_streams(load_cases(folder=FOLDER)[::5])


@pytest.mark.long
def test_all_cases_as_streams() -> None:
    _as_streams(load_cases(folder=FOLDER))


@pytest.mark.parametrize("case", load_refused(FOLDER), ids=lambda case: case.name)
def test_cases_that_are_errors(case: Any) -> None:
    with pytest.raises(celc.CelError) as refused:
        celc.compile(case.query)
    codes = {one.code for one in refused.value.diagnostics if one.severity == "error"}
    assert all(code.startswith(("uncertain-", "confidence-")) for code in codes), codes


def test_orders_are_added_up_by_subsets_and_not_one_by_one() -> None:
    # All at times 0 to 19: of k events there are k! orders, and each set is a row.
    for count in (6, 9):
        table = events(*[("A", 0, 19)] * count)
        query = compiled("SELECT * WHERE A+", max_work=count * 2**count * 20)
        found = query.match_table(table)
        assert len(found) == 2**count - 1
        whole = max(found.to_pylist(), key=lambda row: len(row["A"]))
        sure = 1.0
        for place in range(count):
            sure *= (20 - place) / 20  # no two at one time
        assert abs(whole["confidence"] - sure) < 1e-9


def test_absent_events_are_independent_of_each_other() -> None:
    # Of 40 events between, each may be before, or behind: not 3^40 worlds.
    table = events(("A", 1, 1), *[("B", 0, 2)] * 40, ("A", 9, 9))
    (row,) = compiled("SELECT * WHERE A AS x ; !B ; A AS y").match_table(table).to_pylist()
    assert abs(row["confidence"] / (2 / 3) ** 40 - 1) < 1e-9


def test_worlds_are_counted_before_they_are_gone_through() -> None:
    table = events(("A", 1, 1), *[("B", 0, 9)] * 30, ("A", 9, 9))
    with pytest.raises(WorkLimitError, match=r"position 31 .*many orders"):
        compiled("SELECT * WHERE A AS x ; !(B ; B) ; A AS y").match_table(table)


def test_more_work_than_allowed_is_an_error_that_names_the_row() -> None:
    table = events(*[("A", 0, 50)] * 12)
    with pytest.raises(WorkLimitError, match=r"position \d+ .*many orders"):
        compiled("SELECT * WHERE A{12}", max_work=10_000).match_table(table)


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ([[1.0], None], "'w' is NULL in row 1"),
        ([[1.0, 2.0], [1.0, 2.0]], "'w' has 2 weights, and there are 1 possible times in row 0"),
        ([[1.0], [1.0, None]], "a weight in 'w' is NULL in row 1"),
        ([[1.0], [1.0, -1.0]], "'w' has the weight -1.0, which is no number from 0 on in row 1"),
        ([[1.0], [1.0, float("inf")]], "'w' has the weight inf"),
        ([[float("nan")], [1.0, 1.0]], "'w' has the weight nan.* in row 0"),
        ([[1.0], [0.0, 0.0]], "all weights in 'w' are 0 in row 1"),
    ],
)
def test_wrong_weights_are_named(weights: list[Any], told: str) -> None:
    text = _STREAM.replace("BY 1", "BY 1 WEIGHTED w").replace(
        "high: LONG", "high: LONG, w: ARRAY<DOUBLE>"
    )
    with interpreted():
        query = only_query(celc.compile(text + "SELECT * WHERE A ; B"))
    table = events(("A", 1, 1), ("B", 2, 3)).append_column(
        "w", pa.array(weights, pa.list_(pa.float64()))
    )
    with pytest.raises(EventError, match=told):
        query.match_table(table)


def test_weights_have_no_scale() -> None:
    text = _STREAM.replace("BY 1", "BY 1 WEIGHTED w").replace(
        "high: LONG", "high: LONG, w: ARRAY<DOUBLE>"
    )
    with interpreted():
        query = only_query(celc.compile(text + "SELECT * WHERE A ; B"))
    for scale in (1.0, 1e308, 1e-308):
        weights = pa.array([[scale / 2, scale], [scale]], pa.list_(pa.float64()))
        (row,) = query.match_table(
            events(("A", 1, 2), ("B", 2, 2)).append_column("w", weights)
        ).to_pylist()
        assert row["confidence"] == round(1 / 3, 13)


@pytest.mark.each(2)
@pytest.mark.parametrize("chain", ["A+", "(A AS a)+ FILTER a.value >= PREV(a.value)"])
def test_a_threshold_bounds_the_sets_that_are_looked_at(chain: str) -> None:
    # No three of them are at three times with so high a probability, of 20 times each.
    table = events(*[("A", 0, 19)] * 24)
    text = f"SELECT * WHERE ({chain}) WITH CONFIDENCE >= 0.9"
    found = compiled(text, max_work=200_000).match_table(table).to_pylist()
    pairs = [row for row in found if row["confidence"] < 1]
    assert len(found) - len(pairs) == 24
    assert len(pairs) == (24 * 23 // 2 if chain == "A+" else 0)


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        ([1, None], [1, 3], "'low' is NULL in row 1"),
        ([1, 2], [None, 3], "'high' is NULL in row 0"),
        ([1, 5], [1, 3], "low 5 is after high 3 in row 1"),
        ([1, -(2**63)], [1, 3], "too far from 0 in row 1"),
        ([1, 0], [1, 2_000_000], "2,000,001 possible times"),
    ],
)
def test_wrong_times_are_named(low: list[Any], high: list[Any], told: str) -> None:
    table = pa.table({"type": ["A", "B"], "id": pa.array([1, 1], pa.int32()), "value": [0.0, 0.0]})
    table = table.append_column("low", pa.array(low, pa.int64()))
    table = table.append_column("high", pa.array(high, pa.int64()))
    with pytest.raises((EventError, ValueError), match=told):
        compiled("SELECT * WHERE A ; B").match_table(table)


@pytest.mark.long
def test_memory_of_a_long_partition_is_that_of_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = 1 << 10
    monkeypatch.setattr(in_worlds, "_KEPT", kept)
    query = compiled("SELECT * WHERE A ; B WITHIN 5 [low]")
    run = query.run()
    most = rows = 0
    for start in range(0, 8000, 1000):
        times = range(start, start + 1000)
        batch = events(*[("AB"[time % 2], time, time + 2) for time in times]).to_batches()[0]
        rows += sum(map(len, run.push(batch)))
        most = max(most, run.stored_events)
    rows += sum(map(len, run.rest()))
    assert most < 2 * kept + 1000
    assert rows > 8000


def test_the_command_line_shows_confidences(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.cel").write_text(_STREAM + "SELECT * WHERE A ; B")
    (tmp_path / "e.csv").write_text("type,id,value,low,high\nA,1,1,0,1\nB,1,1,1,2\n")
    assert not main(["run", f"{tmp_path}/q.cel", f"{tmp_path}/e.csv", "--format", "json"])
    (line,) = capsys.readouterr().out.splitlines()
    row = json.loads(line)
    assert (row["confidence"], row["start_time"], row["end_time"]) == (0.75, 0, 2)


def test_another_order_is_refused() -> None:
    query = compiled("SELECT * WHERE A ; B")
    assert query.with_options(order_by="low").plan.source.order_by == ("low",)
    with pytest.raises(ValueError, match="leave out order_by"):
        query.with_options(order_by="id")


def test_all_queries_of_a_module_at_once() -> None:
    text = "QUERY one:\nSELECT * WHERE A ; B\nQUERY two:\nSELECT * WHERE A+ WITHIN 3 [low]"
    with interpreted():
        matcher = celc.compile(_STREAM + text)
    table = events(("A", 0, 2), ("B", 1, 3), ("A", 2, 2), ("B", 4, 6))
    found = matcher.match_all_table(table)
    for name, query in matcher.queries.items():
        rows = matcher.rows(found, name).to_pylist()
        assert sorted(map(repr, rows)) == sorted(map(repr, query.match_table(table).to_pylist()))
        assert rows


def test_no_compact_answer() -> None:
    with pytest.raises(EventError, match="no confidences"):
        compiled("SELECT * WHERE A ; B").match_compact(events(("A", 0, 1)))


_CLOCK = """CREATE STREAM S UNCERTAIN [low, high] BY 1 MILLISECOND {
  EVENT A { id: INT, low: TIMESTAMP, high: TIMESTAMP },
  EVENT B { id: INT, low: TIMESTAMP, high: TIMESTAMP }
}
"""


def _on_clock(*rows: tuple[str, int, int]) -> pa.Table:
    return pa.table(
        {
            "type": [name for name, _, _ in rows],
            "id": pa.array([1] * len(rows), pa.int32()),
            "low": pa.array([instant(low) for _, low, _ in rows], pa.timestamp("us", "UTC")),
            "high": pa.array([instant(high) for _, _, high in rows], pa.timestamp("us", "UTC")),
        }
    )


def _stream_of(text: str, **options: Any) -> Operator:
    with interpreted():
        return Operator(only_query(celc.compile(_CLOCK + text)), StreamOptions({}, **options))


def test_a_stream_keeps_an_event_as_long_as_it_can_be_the_first_of_a_match() -> None:
    stream = _stream_of("SELECT * WHERE A ; B WITHIN 10 MILLISECONDS")
    # The window of the first event is long over by its least time, and not by its greatest one.
    assert not stream.advance(_on_clock(("A", 0, 100), ("A", 1, 2)), 0)
    assert not stream.advance(None, 60)
    (row,) = stream.advance(_on_clock(("B", 90, 90)), 95)
    assert (row["start_time"], row["end_time"]) == (instant(0), instant(100))
    assert row["confidence"] == round(10 / 101, 13)
    stream.advance(None, 109)
    assert stream.sum("kept")
    stream.advance(None, 111)
    assert not stream.sum("kept")


def test_a_match_of_a_stream_comes_once_and_as_soon_as_its_events_are_read() -> None:
    stream = _stream_of("SELECT * WHERE (A ; B) OR (B ; A) WITHIN 50 MILLISECONDS")
    assert not stream.advance(_on_clock(("A", 1, 30), ("B", 5, 20)), 4)
    # The watermark passes the least time of B; nothing that comes later changes the row.
    (row,) = stream.advance(None, 5)
    assert row["confidence"] > 0.9
    (other,) = stream.advance(_on_clock(("B", 10, 12)), 40)
    assert (other["start_pos"], other["end_pos"]) == (0, 2)
    assert not stream.finish()


def test_a_stream_forgets_a_partition_by_its_least_times() -> None:
    text = "SELECT * WHERE A ; B PARTITION BY id WITHIN 20 MILLISECONDS"
    for ttl, wanted in ((10, 0), (60, 1)):
        stream = _stream_of(text, key_ttl=1000 * ttl)
        rows = stream.advance(_on_clock(("A", 1, 50)), 0)
        rows += stream.advance(_on_clock(("B", 40, 60)), 5)
        assert len(rows + stream.finish()) == wanted


def test_a_late_event_of_a_stream_is_told_by_its_least_time() -> None:
    stream = _stream_of("SELECT * WHERE A ; B WITHIN 20 MILLISECONDS", late="error")
    stream.advance(_on_clock(("A", 1, 50)), 0)
    stream.advance(_on_clock(("B", 9, 9)), 8)  # the watermark has not passed it
    stream.advance(None, 10)
    with pytest.raises(EventError, match="late"):
        stream.advance(_on_clock(("B", 10, 60)), 10)


@pytest.mark.parametrize(
    ("row", "told"), [(("A", 3, 2), "is after high"), (("B", 3, None), "'high' is NULL")]
)
def test_a_wrong_time_ends_a_stream(row: Any, told: str) -> None:
    stream = _stream_of("SELECT * WHERE A WITHIN 20 MILLISECONDS")
    table = _on_clock(*[("A", 1, 2)])
    name, low, high = row
    times = [[instant(low)], [None if high is None else instant(high)]]
    wrong = pa.table(
        [[name], table["id"], *(pa.array(t, pa.timestamp("us", "UTC")) for t in times)],
        names=table.schema.names,
    )
    with pytest.raises(EventError, match=f"{told}.*in an event of the stream"):
        stream.advance(wrong, 0)
