"""Money summed over a million matches is what Python's `decimal` makes of it."""

from __future__ import annotations

import random
from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engines import only_query

import celc
from celc import CelWarning

EXACT = Context(prec=100)
SIDE = 300  # events of each type, so that there are SIDE² matches

QUERY = """
CREATE STREAM S {
  EVENT Buy { px: DECIMAL(10, 2), fee: DECIMAL(18, 4) },
  EVENT Sell { px: DECIMAL(10, 2), fee: DECIMAL(18, 4) }
}
"""


def _events() -> tuple[pa.Table, list[Decimal], list[Decimal]]:
    rng = random.Random(0)
    prices = [Decimal(f"{rng.randrange(-(10**10), 10**10)}e-2") for _ in range(2 * SIDE)]
    fees = [Decimal(f"{rng.randrange(10**18)}e-4") for _ in range(2 * SIDE)]
    table = pa.table(
        {
            "type": ["Buy"] * SIDE + ["Sell"] * SIDE,
            "px": pa.array(prices, pa.decimal128(10, 2)),
            "fee": pa.array(fees, pa.decimal128(18, 4)),
        }
    )
    return table, prices, fees


def _sum(values: list[Decimal]) -> Decimal:
    total = Decimal(0)
    for value in values:
        total = EXACT.add(total, value)
    return total


def test_totals() -> None:
    table, prices, fees = _events()
    totals = "SUM(b.px) AS bought, SUM(s.fee) AS fees, AVG(s.px) AS mean, COUNT(*) AS n"
    text = f"{QUERY}SELECT TOTAL {totals} FROM S WHERE Buy AS b ; Sell AS s PER PARTITION"
    (row,) = only_query(celc.compile(text)).match_table(table).to_pylist()
    assert row["n"] == SIDE**2
    assert row["bought"] == EXACT.multiply(_sum(prices[:SIDE]), Decimal(SIDE))
    assert row["fees"] == EXACT.multiply(_sum(fees[SIDE:]), Decimal(SIDE))
    mean = EXACT.divide(_sum(prices[SIDE:]), Decimal(SIDE))
    assert row["mean"] == mean.quantize(Decimal("1e-6"))


def test_matches() -> None:
    table, prices, _ = _events()
    text = f"{QUERY}SELECT b.px + s.px AS both FROM S WHERE Buy AS b ; Sell AS s"
    rows = only_query(celc.compile(text)).match_table(table).column("both")
    assert len(rows) == SIDE**2
    assert pc.sum(rows).as_py() == EXACT.multiply(_sum(prices), Decimal(SIDE))


@pytest.mark.parametrize("events", [12, pytest.param(20, marks=pytest.mark.long)])
def test_sums_of_matches(events: int) -> None:
    """Each match is a set of purchases; one is in half of them. Of 20 there are a million."""
    rng = random.Random(1)
    prices = [Decimal(f"{rng.randrange(-(10**10), 10**10)}e-2") for _ in range(events)]
    table = pa.table({"type": ["Buy"] * events, "px": pa.array(prices, pa.decimal128(10, 2))})
    with pytest.warns(CelWarning):
        query = celc.compile(f"{QUERY}SELECT SUM(b.px) AS paid FROM S WHERE Buy+ AS b")
    rows = only_query(query).match_table(table).column("paid")
    assert len(rows) == 2**events - 1
    assert pc.sum(rows).as_py() == EXACT.multiply(_sum(prices), Decimal(2 ** (events - 1)))
