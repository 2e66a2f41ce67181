"""Near misses of a DataFrame are those of the table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventError

import celc

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, ts: LONG }, EVENT B { id: INT, v: DOUBLE, ts: LONG },
  EVENT C { id: INT, v: DOUBLE, ts: LONG }
}
PARAMETERS rule { v: DOUBLE }
"""
_EVENTS = pa.table(
    {
        "type": list("ACBCABACB") * 2,
        "id": pa.array([1] * 9 + [2] * 5 + [None] * 4, pa.int32()),
        "v": [1.0, 2.0, 3.0, 2.8, 1.0, 1.9, 1.0, 2.0, 2.9] * 2,
        "ts": list(range(18)),
    }
)
_RULES = pa.table({"v": [3.1, 3.0, 3.1]})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM S WHERE (A AS a ; !C ; B AS b) FILTER b.v > 2.5 "
        "PARTITION BY id WITHIN 5 [ts]",
        "SELECT a, b.v AS v, c FROM S WHERE A AS a ; B AS b ; (C AS c FILTER c.v > 9)",
        "SELECT * FROM S FOR EACH rule WHERE (A AS a ; B AS b) FILTER b.v > rule.v PARTITION BY id",
    ],
)
def test_a_data_frame_has_those_of_the_table(spark: Any, query: str) -> None:
    asked = celc.compile(_DECLARED + query, order_by="ts")
    parameters = {"rule": _RULES} if "FOR EACH" in query else {}
    expected = asked.near_misses(_EVENTS, **parameters).drop_columns(["start_pos", "end_pos"])
    found = asked.near_misses(spark.createDataFrame(_EVENTS.to_pandas(), _SCHEMA), **parameters)
    assert found.columns == expected.column_names
    rows = [_without_positions(row) for row in expected.to_pylist()]
    assert rows
    assert sorted(map(repr, (row for row in found.toArrow().to_pylist()))) == sorted(
        map(repr, rows)
    )


_SCHEMA = "type STRING, id INT, v DOUBLE, ts BIGINT"


def _without_positions(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (
            [{k: v for k, v in one.items() if k != "pos"} for one in value]
            if isinstance(value, list)
            else value
        )
        for name, value in row.items()
    }


def test_an_order_is_needed(spark: Any) -> None:
    asked = celc.compile(_DECLARED + "SELECT * FROM S WHERE (A ; B) FILTER B.v > 9")
    with pytest.raises(EventError, match="order"):
        asked.near_misses(spark.createDataFrame(_EVENTS.to_pandas(), _SCHEMA))
