"""Constants that are NaN or infinite, beside values of several events and rows."""

from __future__ import annotations

import operator

import pyarrow as pa
import pytest
from engines import interpreted

import celc

_REALS = (1.0, float("nan"), float("inf"), -float("inf"))
_OPERATORS = {"<": operator.lt, ">=": operator.ge, "=": operator.eq}
_EVENTS = """CREATE STREAM S { EVENT A { v: DOUBLE, ts: LONG }, EVENT B { w: DOUBLE, ts: LONG } }
SELECT * FROM S WHERE (A AS x ; B AS y) FILTER """
_ROWS = """CREATE TABLE t (ts LONG, v DOUBLE, w DOUBLE);
SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS c PATTERN (a) DEFINE a AS """


def _key(value: float) -> tuple[bool, float]:
    """As Spark orders numbers: NaN equals NaN, and is the largest."""
    return (True, 0.0) if value != value else (False, value)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("sign", _OPERATORS)
@pytest.mark.parametrize("constant", ["nan", "inf", "-inf"])
def test_comparisons(constant: str, sign: str, is_first: bool) -> None:
    def condition(value: str) -> str:
        sides = (f"CAST('{constant}' AS DOUBLE)", value)
        return f" {sign} ".join(sides if is_first else sides[::-1])

    with interpreted():
        of_events = celc.compile(_EVENTS + condition("x.v + y.w"), order_by="ts")
        of_rows = celc.compile(f"{_ROWS}{condition('v + FIRST(w)')})", dialect="match_recognize")
    for value in _REALS:
        sides = _key(float(constant)), _key(value)
        wanted = int(_OPERATORS[sign](*(sides if is_first else sides[::-1])))
        events = {"type": ["A", "B"], "ts": [1, 2], "v": [value, None], "w": [None, 0.0]}
        (query,) = of_events.queries.values()
        assert query.match_table(pa.table(events)).num_rows == wanted, value
        rows = pa.table({"ts": [1], "v": [value], "w": [0.0]})
        (query,) = of_rows.queries.values()
        assert query.match_table(rows).num_rows == wanted, value
