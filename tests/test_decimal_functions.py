"""Functions of DECIMALs, and CAST from and to them, in queries on one machine."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import celc

ONE = "(A OR B) AS x"
TWO = "A AS x ; (A OR B) AS y"

MONEY = """CREATE STREAM S {
  EVENT A {
    px: DECIMAL(10, 2), w: DECIMAL(38, 10), n: SHORT, t: STRING, f: DECIMAL(9, 0) = FLOOR(px)
  },
  EVENT B { px: DECIMAL(10, 2), w: DECIMAL(38, 10), n: SHORT, t: STRING, f: DECIMAL(9, 0) = 7 }
}
"""
PRICES = pa.table(
    {
        "type": ["A", "B", "A", "B"],
        "px": pa.array(map(Decimal, ("1.50", "-2.25", "0.05", "1.50")), pa.decimal128(10, 2)),
        "w": pa.array(
            map(Decimal, ("1.5", "-0.0000000001", "9999999999999999999999999999.5", "1.5")),
            pa.decimal128(38, 10),
        ),
        "n": pa.array([1, -7, None, 32767], pa.int16()),
        "t": ["1.505", "x", None, "1e-2"],
    }
)


@pytest.mark.parametrize(
    ("condition", "formula", "expected"),
    [
        ("ROUND(x.px, 1) = 1.5", ONE, [(0,), (3,)]),
        ("FLOOR(x.w) = -1 OR CEIL(x.w) > 2", ONE, [(1,), (2,)]),
        ("CAST(x.t AS DECIMAL(4, 2)) = 1.51", ONE, [(0,)]),
        ("TRY_CAST(x.t AS DECIMAL(4, 2)) = 0.01", ONE, [(3,)]),
        ("CAST(x.px AS STRING) = '-2.25' OR x.w || '' = '-1E-10'", ONE, [(1,)]),
        ("CAST(x.px AS INT) = -2", ONE, [(1,)]),
        ("CAST(x.w AS LONG) = 4477988020393345023", ONE, [(2,)]),
        ("TRY_CAST(x.w AS LONG) IS NULL", ONE, [(2,)]),
        ("SQRT(x.px) > 1.2 AND ISNAN(SQRT(x.px)) = FALSE", ONE, [(0,), (3,)]),
        ("x.f = 1 OR x.f = 7", ONE, [(0,), (1,), (3,)]),
        ("IF(x.px > 1, x.px, x.w) < 0", ONE, [(1,)]),
        ("CAST(x.n + 1 AS SHORT) = -32768", ONE, [(3,)]),
        ("FLOOR(y.px - x.px) = -4", TWO, [(0, 1)]),
        ("CEIL(y.w - x.w) = -1", TWO, [(0, 1)]),
        ("ROUND(y.px - x.px, 1) = -3.8", TWO, [(0, 1)]),
        ("ROUND(y.px * 100, -2) = -200", TWO, [(0, 1)]),
        ("CAST(y.px - x.px AS DECIMAL(2, 1)) = -3.8", TWO, [(0, 1)]),
        ("CAST(y.px - x.px AS DECIMAL(2, 2)) IS NULL", TWO, [(0, 1), (0, 2), (2, 3)]),
        ("CAST(y.px - x.px AS DOUBLE) = -3.75", TWO, [(0, 1)]),
        ("GREATEST(x.px, y.px) = x.px", TWO, [(0, 1), (0, 2), (0, 3)]),
        ("NULLIF(x.px, y.px) IS NULL", TWO, [(0, 3)]),
        ("x.px IS DISTINCT FROM y.px", TWO, [(0, 1), (0, 2), (2, 3)]),
        ("SIGN(x.px - y.px) = -1", TWO, [(2, 3)]),
    ],
)
def test_decimals(condition: str, formula: str, expected: list[tuple[int, ...]]) -> None:
    query = f"{MONEY}SELECT * FROM S WHERE {formula} FILTER {condition}"
    found = celc.compile(query).match_table(PRICES).to_pylist()
    labels = [label for label in ("x", "y") if found and label in found[0]]
    assert [tuple(row[label][0]["pos"] for label in labels) for row in found] == expected


def test_decimals_in_select() -> None:
    items = {
        "CAST(x.px AS STRING) || ' EUR'": "-2.25 EUR",
        "CASE WHEN x.px < 0 THEN x.px ELSE 0.5 END": Decimal("-2.25"),
        "ROUND(x.w, 9)": Decimal("0E-9"),
        "FLOOR(x.w)": Decimal(-1),
        "CAST(x.px AS DECIMAL(3, 1))": Decimal("-2.3"),
        "CAST(x.px * 1000 AS BYTE)": 54,
        "HASH(x.px, x.w)": -1710938975,
    }
    text = ", ".join(f"{item} AS v{place}" for place, item in enumerate(items))
    query = celc.compile(
        f"{MONEY}SELECT {text} FROM S WHERE B AS x ; B AS y PARTITION BY ROUND(px)"
    )
    assert not query.match_table(PRICES).num_rows
    query = celc.compile(f"{MONEY}SELECT {text} FROM S WHERE B AS x ; B AS y")
    (row,) = query.match_table(PRICES).to_pylist()
    assert [row[f"v{place}"] for place in range(len(items))] == [*items.values()]
