"""TIMESTAMP_NTZ, BINARY, SHORT and BYTE in queries on one machine."""

from __future__ import annotations

from typing import Any

import pytest
from clocks_and_bytes import ALL, DECLARATION, EVENTS, TIMES

import celc
from celc.diagnostics.errors import CelError


@pytest.mark.parametrize(("condition", "formula", "expected"), ALL)
def test_conditions(condition: str, formula: str, expected: list[Any]) -> None:
    query = celc.compile(f"{DECLARATION}SELECT * FROM S WHERE {formula} FILTER {condition}")
    found = [(row["start_pos"], row["end_pos"]) for row in query.match_table(EVENTS).to_pylist()]
    wanted = [one if isinstance(one, tuple) else (one, one) for one in expected]
    assert sorted(found) == wanted


def test_values() -> None:
    items = (
        "MIN(y.at) AS least, MAX(y.at) AS most, LAST(y.at) - FIRST(x.at) AS took, "
        "FIRST(y.data) AS data, IF(FIRST(x.data) = LAST(y.data), 1, 0) AS same, "
        "SUM(y.n) AS n, MIN(y.b) AS b"
    )
    text = f"SELECT {items} FROM S WHERE A AS x ; B+ AS y FILTER x.row = 0 AND COUNT(y) = 4"
    (row,) = celc.compile(DECLARATION + text).match_table(EVENTS).to_pylist()
    assert (row["least"], row["most"]) == (TIMES[5], TIMES[4])
    assert row["took"] == TIMES[5] - TIMES[0]  # type: ignore[operator]
    assert (row["data"], row["same"], row["n"], row["b"]) == (b"", 0, 33072, 5)


def test_totals() -> None:
    text = "SELECT TOTAL MIN(y.at) AS least, MAX(y.at) AS most, SUM(y.n) AS n, MAX(y.b) AS b "
    query = celc.compile(f"{DECLARATION}{text}FROM S WHERE A AS x ; B AS y PER PARTITION")
    (row,) = query.match_table(EVENTS).to_pylist()
    assert (row["least"], row["most"], row["n"], row["b"]) == (TIMES[5], TIMES[4], 33377, 127)


@pytest.mark.parametrize("key", ["at", "data", "n", "b", "HOUR(at)"])
def test_keys(key: str) -> None:
    query = celc.compile(
        f"{DECLARATION}SELECT x, y FROM S WHERE (A OR B) AS x ; (A OR B) AS y PARTITION BY {key}"
    )
    found = query.match_table(EVENTS).to_pylist()
    pairs = sorted((row["x"][0]["row"], row["y"][0]["row"]) for row in found)
    wanted = {"data": [(0, 3), (1, 5)], "HOUR(at)": [(1, 2), (1, 4), (2, 4)]}
    assert pairs == wanted.get(key, [])


def test_an_order_column_without_a_zone() -> None:
    text = "SELECT * FROM S WHERE B AS x : B AS y"
    query = celc.compile(DECLARATION + text, order_by="at")
    known = EVENTS.filter(EVENTS["at"].is_valid())
    found = query.match_table(known).to_pylist()
    assert [(row["start_time"], row["end_time"]) for row in found] == []
    small = celc.compile(f"{DECLARATION}SELECT * FROM S WHERE A AS x ; B AS y", order_by="at")
    found = small.match_table(known).to_pylist()
    assert sorted((row["start_time"], row["end_time"]) for row in found) == [
        (TIMES[0], TIMES[1]),
        (TIMES[0], TIMES[4]),
        (TIMES[2], TIMES[4]),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("A AS x ; B AS y FILTER x.data < y.data", "compared-types"),
        ("A AS x FILTER x.data = 'a'", "compared-types"),
        ("A AS x FILTER x.at = TIMESTAMP '2024-01-01 00:00:00'", "compared-types"),
        ("A AS x FILTER HOUR(x.at AT TIME ZONE 'Europe/Berlin') = 2", "zone-of-clock"),
        ("A AS x ; B AS y WITHIN 1 HOUR [at]", "duration-on-other-type"),
    ],
)
def test_mistakes(text: str, code: str) -> None:
    with pytest.raises(CelError) as caught:
        celc.compile(f"{DECLARATION}SELECT * FROM S WHERE {text}")
    assert [one.code for one in caught.value.diagnostics] == [code]
