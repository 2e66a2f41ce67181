"""SHORT and BYTE: calculations wrap at 16 and 8 bits, as in Spark with ANSI mode off."""

from __future__ import annotations

import pyarrow as pa
import pytest

import celc

TEXT = """CREATE STREAM S {
  EVENT A { h: SHORT, b: BYTE, n: INT, ts: LONG },
  EVENT B { h: SHORT, b: BYTE, n: INT, ts: LONG }
}
"""
EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "B", "A"],
        "h": pa.array([5, 32767, -32768, None, 7], pa.int16()),
        "b": pa.array([1, 127, -128, 3, None], pa.int8()),
        "n": pa.array([1, 2, 3, 4, 5], pa.int32()),
        "ts": [1, 2, 3, 4, 5],
    }
)


def answer(query: str) -> pa.Table:
    return celc.compile(TEXT + query, order_by="ts").match_table(EVENTS)


@pytest.mark.each(6)
@pytest.mark.parametrize("by", ["python", "machine_code"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x.h > 5", [1, 4]),
        ("x.h + x.h < 0", [1]),
        ("x.h + 1 > 32767", [1]),
        ("x.b * x.b = 1", [0, 1]),
        ("-x.b = -128 AND ABS(x.h) = -32768", [2]),
        ("x.h IN (5, 7, 100000)", [0, 4]),
        ("x.b < 100000000000", [0, 1, 2, 3]),
        ("x.h + x.b = x.n + 5", [0]),
        ("x.h / 2 = 2.5 OR x.h % 4 = 3", [0, 1, 4]),
    ],
)
def test_conditions(condition: str, expected: list[int], by: str) -> None:
    """In Python, and by machine code where `machine_code` in the name of a test asks for it."""
    found = answer(f"SELECT * FROM S WHERE (A OR B) AS x FILTER {condition}")
    assert [row["x"][0]["pos"] for row in found.to_pylist()] == expected


def test_between_events() -> None:
    found = answer("SELECT * FROM S WHERE A AS x ; B AS y FILTER y.h - x.h = x.n + 32761")
    assert [(row["x"][0]["pos"], row["y"][0]["pos"]) for row in found.to_pylist()] == [(0, 1)]


def test_select_and_totals() -> None:
    found = answer(
        "SELECT x.h + y.h AS s, x.h * 2 AS d, -y.b AS m, SUM(x.h) AS t, MIN(y.b) AS least "
        "FROM S WHERE A AS x ; B AS y"
    )
    types = {name: found.schema.field(name).type for name in ("s", "d", "m", "t", "least")}
    assert types == {
        "s": pa.int16(),
        "d": pa.int32(),
        "m": pa.int8(),
        "t": pa.int64(),
        "least": pa.int8(),
    }
    assert [tuple(row[name] for name in types) for row in found.to_pylist()] == [
        (-32764, 10, -127, 5, 127),
        (None, -65536, -3, -32768, 3),
        (None, 10, -3, 5, 3),
    ]
    totals = answer(
        "SELECT TOTAL SUM(x.h) AS s, MAX(x.b) AS m FROM S WHERE (A OR B) AS x PER PARTITION"
    )
    assert totals.select(["s", "m"]).to_pylist() == [{"s": 11, "m": 127}]


def test_windows_and_keys() -> None:
    table = EVENTS.set_column(1, "h", pa.array([1, 2, 3, 300, 301], pa.int16()))
    query = celc.compile(TEXT + "SELECT * FROM S WHERE A AS x ; B AS y WITHIN 5 [h]", order_by="h")
    assert [row["end_pos"] for row in query.match_table(table).to_pylist()] == [1]
    keyed = answer("SELECT * FROM S WHERE (A OR B) AS x PARTITION BY b")
    assert keyed.schema.field("b").type == pa.int8()
    assert sorted(keyed["b"].to_pylist(), key=str) == [-128, 1, 127, 3, None]
