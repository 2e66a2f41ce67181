"""Totals of matches that are too many for a DOUBLE, beside totals of few.

No reference lists so many matches. But those of `A+ ; B` are all sets of A's, so their number and
sums follow from the number of A's in the window.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction

import pyarrow as pa
import pytest
from celc_runtime.plan.strategy import United
from engines import only_query

import celc

DECLARED = """CREATE STREAM S {
  EVENT A { id: LONG, v: DOUBLE }, EVENT B { id: LONG, v: DOUBLE }, EVENT C { v: DOUBLE }
}
"""
ITEMS = (
    "APPROX_COUNT(*) AS matches, SUM(x.v) AS total, AVG(x.v) AS mean, "
    "SUM(c.v) AS total_of_c, AVG(c.v) AS mean_of_c"
)
QUERIES = {
    "counted": f"SELECT TOTAL {ITEMS} FROM S WHERE (A AS x)+ ; B OR C AS c",
    "in a window": f"SELECT TOTAL {ITEMS} FROM S WHERE (A AS x)+ ; B OR C AS c WITHIN 2500 EVENTS",
    "of parts": f"SELECT TOTAL {ITEMS} FROM S WHERE (A AS x)+ ; B OR C AS c PER PARTITION",
}
Row = dict[str, float | None]


def _events(random_of: random.Random, count: int) -> list[tuple[str, float | None]]:
    """Many A's, and B's and C's where there are few of them and where there are many."""
    found = []
    for place in range(count):
        rare = random_of.random() < (0.2 if place < 20 else 0.005)
        type = random_of.choice("BC") if rare else "A"
        values = [None, 0.0, random_of.uniform(0, 10), 1e-200, 1e200]
        value = random_of.choices(values, [1, 1, 10, 1, 1 if type == "C" else 0])[0]
        found.append((type, value))
    return [*found, ("C", 7.0), ("C", None), ("B", None)]


def _as_double(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _row(parts: Iterator[tuple[int, Fraction, int, list[float | None]]]) -> Row:
    """What the items are, of parts of the matches: the number of matches, the sum under x and how
    many values it has, and the values under c."""
    matches, total, known, of_c = 0, Fraction(0), 0, []
    for number, more, values, some in parts:
        matches, total, known = matches + number, total + more, known + values
        of_c += [Fraction(value) for value in some if value is not None]
    return {
        "matches": _as_double(Fraction(matches)),
        "total": _as_double(total) if known else None,
        "mean": float(total / known) if known else None,
        "total_of_c": _as_double(sum(of_c, Fraction(0))) if of_c else None,
        "mean_of_c": float(sum(of_c, Fraction(0)) / len(of_c)) if of_c else None,
    }


def _expected(name: str, events: list[tuple[str, float | None]]) -> list[Row]:
    parts = []
    for end, (type, value) in enumerate(events):
        if type == "C":
            parts.append((1, Fraction(0), 0, [value]))
        if type != "B":
            continue
        first = max(0, end - 2500) if name == "in a window" else 0
        some = [one for kind, one in events[first:end] if kind == "A"]
        if some:
            known = [Fraction(one) for one in some if one is not None]
            each = 2 ** (len(some) - 1)
            parts.append(
                (2 ** len(some) - 1, each * sum(known, Fraction(0)), each * len(known), [])
            )
    if name == "of parts":
        return [_row(iter(parts))]
    return [_row(iter([part])) for part in parts]


@pytest.mark.parametrize("name", QUERIES)
def test_few_matches_beside_many(name: str) -> None:
    query = only_query(celc.compile(DECLARED + QUERIES[name]))
    for seed in range(2):
        events = _events(random.Random(seed), 3000)
        types, values = zip(*events, strict=True)
        table = pa.table({"type": types, "v": pa.array(values, pa.float64())})
        rows = query.match_table(table).to_pylist()
        expected = _expected(name, events)
        assert len(rows) == len(expected) > (0 if name == "of parts" else 10)
        for row, wanted in zip(rows, expected, strict=True):
            for item, value in wanted.items():
                assert row[item] == pytest.approx(value, rel=1e-9, abs=0), (seed, row, wanted)


def test_few_values_beside_many_matches_with_keys() -> None:
    """Each event is added up as often as there are matches with it; the last ones are in few."""
    query = only_query(
        celc.compile(
            DECLARED + "SELECT TOTAL APPROX_COUNT(*) AS matches, SUM(a.v) AS total, "
            "AVG(a.v) AS mean, SUM(x.v) AS of_x FROM S WHERE A AS a ; (A AS x)+ ; B AS b "
            "FILTER a.id = b.id AND x.id = b.id"
        )
    )
    assert isinstance(query.program.listing, United)
    count, last = 3000, [7.0, 3.0, 5.0]
    values = [*[None] * (count - len(last)), *last]
    table = pa.table(
        {
            "type": [*["A", "A"] * count, "B", "B"],
            "id": [*[1, 2] * count, 1, 3],
            "v": pa.array([*(one for value in values for one in (value, 1.0)), None, None]),
        }
    )
    row, *others = query.match_table(table).to_pylist()
    assert not others
    assert row["matches"] == math.inf
    # Of the last three A's the first is in the matches with any of the other two behind it.
    assert row["total"] == pytest.approx(3 * 7.0 + 3.0, rel=1e-9)
    assert row["mean"] == pytest.approx((3 * 7.0 + 3.0) / 4, rel=1e-9)
    assert row["of_x"] == math.inf
