"""The SQL of functions within functions grows with the depth of an expression, not as its power."""

from __future__ import annotations

import pytest
from engines import interpreted, only_query

import celc

_STREAM = (
    "-- order-by: ts\n"
    "CREATE STREAM S { EVENT A { v: DOUBLE, n: LONG, s: STRING, ts: TIMESTAMP, value_0: INT } }\n"
)

_AROUND = (
    ("v", "FLOOR({} / 2e0)"),
    ("v", "CAST(CAST({} AS INT) AS DOUBLE)"),
    ("v", "IF({} IS DISTINCT FROM 3, 1e0, 2e0)"),
    ("n", "ABS({})"),
    ("n", "CAST(CAST({} AS TIMESTAMP) AS LONG)"),
    ("n", "({} * 3 + value_0)"),
    ("ts", "DATE_TRUNC('HOUR', {} + 1 HOUR)"),
    ("ts", "DATE_TRUNC('DAY', {} AT TIME ZONE 'Europe/Berlin')"),
    ("ts", "CAST(CAST({} AS STRING) AS TIMESTAMP)"),
    ("s", "CAST(HASH({}) AS STRING)"),
)


def _sql(inner: str, around: str, depth: int) -> str:
    for _ in range(depth):
        inner = around.format(inner)
    text = f"{_STREAM}SELECT * FROM S WHERE A AS a FILTER a[HASH({inner}) = 3]"
    with interpreted():
        (derived,) = only_query(celc.compile(text)).plan.source.derived
    return derived.sql


@pytest.mark.each(4)
@pytest.mark.parametrize(("inner", "around"), _AROUND, ids=[around for _, around in _AROUND])
def test_sql_grows_with_the_depth(inner: str, around: str) -> None:
    one, two, three = (len(_sql(inner, around, depth)) for depth in (4, 6, 8))
    assert three - two < 1.5 * (two - one) + 3000
    assert three < 30_000
