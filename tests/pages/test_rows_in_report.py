"""Reports of MATCH_RECOGNIZE: rows as marks, matches as bars, and results that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from engines import interpreted
from row_cases import row_cases, table_of
from test_report import data_of, values

import celc
from celc.interfaces.cli import main

QUERY = """CREATE TABLE q (sym STRING, ts INT, price DOUBLE);
SELECT * FROM q MATCH_RECOGNIZE (
  PARTITION BY sym ORDER BY ts
  MEASURES FIRST(DOWN.price) AS top, LAST(UP.price) AS back
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (DOWN+ UP+)
  DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price)
)
"""


def quotes() -> pa.Table:
    prices = [5.0, 4.0, 3.0, 6.0, 6.0, 2.0, 4.0]
    return pa.table(
        {
            "sym": ["b", *["a"] * 7],
            "ts": pa.array([0, *range(7)], pa.int32()),
            "price": [1.0, *prices],
        }
    )


def rows_matcher(text: str = QUERY) -> Any:
    with interpreted():
        return celc.compile(text, dialect="match_recognize")


def report(text: str, rows: pa.Table) -> dict[str, Any]:
    query = rows_matcher(text)
    return data_of(celc.report(query.match_table(rows), rows, query=query))


def test_matches_are_bars_over_rows() -> None:
    data = report(QUERY, quotes())
    matches = data["matches"]
    assert data["types"] == ["DOWN", "UP", "in no match"]
    of_a = [n for n, lane in enumerate(data["events"]["lane"]) if lane == matches["lane"][0]]
    shown = [data["types"][data["events"]["type"][n]] for n in of_a]
    free = "in no match"
    assert shown == [free, "DOWN", "DOWN", "UP", free, "DOWN", "UP"]
    assert (matches["startPos"], matches["endPos"]) == ([1, 5], [3, 6])
    assert (values(matches, "top"), values(matches, "back")) == ([4, 2], [6, 4])
    assert values(matches, "DOWN") == ["#1, #2", "#5"]
    assert [matches["labels"][n] for n in matches["labelOf"]] == [
        "DOWN",
        "DOWN",
        "UP",
        "DOWN",
        "UP",
    ]


def test_results_of_many_rows_are_a_line_for_each_match() -> None:
    text = QUERY.replace("ONE ROW PER MATCH", "ALL ROWS PER MATCH")
    data = report(text, quotes())
    assert data["matches"]["count"] == 2
    assert "a result of 5 rows" in data["notes"][0]


def test_all_cases_have_a_report() -> None:
    checked = 0
    for case in [one for one in row_cases() if one.expected is not None][::25]:
        rows = table_of(case.schema, case.table)
        data = report(case.query, rows)
        assert data["events"]["count"] == len(rows), case
        checked += bool(data["matches"]["count"])
    assert checked > 5


def test_no_rows() -> None:
    data = report(QUERY, quotes().slice(0, 0))
    assert (data["events"]["count"], data["matches"]["count"]) == (0, 0)


def test_what_is_no_result_of_these_rows_is_refused() -> None:
    query, rows = rows_matcher(), quotes()
    found = query.match_table(rows)
    with pytest.raises(ValueError, match="the query gives 1 rows of sym, top, back"):
        celc.report(found, rows.slice(0, 6), query=query)
    with pytest.raises(ValueError, match="does not name its rows"):
        celc.report(found, query=query)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("v.sql").write_text(QUERY)
    pyarrow.csv.write_csv(quotes(), "q.csv")
    with interpreted():
        assert main(["run", "v.sql", "q.csv", "-o", "v.html"]) == 0
        assert data_of(Path("v.html").read_text("utf-8"))["matches"]["count"] == 2
        assert main(["run", "v.sql", "q.csv", "-o", "w.html", "--max-matches", "1"]) == 2
    assert "a report of MATCH_RECOGNIZE shows matches" in capsys.readouterr().err
    assert main(["explain", "v.sql", "--format", "html"]) == 2
    assert "is shown as text" in capsys.readouterr().err
