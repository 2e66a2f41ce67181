"""Uncertain time on one machine: the cases by every way, refusals, work that does not explode."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from cases_io import load_cases, load_refused
from celc_runtime import EventError
from celc_runtime.plan.errors import WorkLimitError
from celc_runtime.plan.strategy import InWorlds
from engines import interpreted, only_query
from places import TESTS
from reference import difference
from uncertain import possible_answers

import celc
from celc.cli import main

FOLDER = TESTS / "cases_uncertain"
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
        listing = query.program.listing
        assert isinstance(listing, InWorlds)
        ways.add((listing.one_order, listing.definition is None, listing.checks is None))
        for route, answer in possible_answers(query, case.events, random.Random(1)).items():
            told = difference(answer, case.expected)
            problems += [f"{case.name}: {route}: {told}"] if told else []
    assert not problems
    assert len(ways) >= 5, ways


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


def test_more_work_than_allowed_is_an_error_that_names_the_row() -> None:
    table = events(*[("A", 0, 50)] * 12)
    with pytest.raises(WorkLimitError, match=r"position \d+ .*many orders"):
        compiled("SELECT * WHERE A{12}", max_work=10_000).match_table(table)


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


def test_memory_of_a_long_partition_is_that_of_the_window() -> None:
    query = compiled("SELECT * WHERE A ; B WITHIN 5 [low]")
    run = query.run()
    most = rows = 0
    for start in range(0, 400_000, 50_000):
        times = range(start, start + 50_000)
        batch = events(*[("AB"[time % 2], time, time + 2) for time in times]).to_batches()[0]
        rows += sum(map(len, run.push(batch)))
        most = max(most, run.stored_events)
    rows += sum(map(len, run.rest()))
    assert most < 2 * (1 << 16) + 50_000
    assert rows > 400_000


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
    assert query.with_options(order_by="low").plan.order_by == ("low",)
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
