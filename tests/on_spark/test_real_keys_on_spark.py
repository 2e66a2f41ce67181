"""Keys that are DOUBLEs on Spark: every route tells the same partitions as on one machine, where
NaN equals NaN and −0.0 is 0.0, which all of them show."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from engines import interpreted, only_query
from row_cases import compiled as compiled_rows

import celc

_TABLE = pa.table(
    {
        "type": list("AABBABBAAB"),
        "k": [0.0, -0.0, 0.0, math.nan, math.nan, -math.nan, -0.0, None, 1.5, 1.5],
        "n": pa.array(range(10), pa.int64()),
    }
)
_STREAM = "CREATE STREAM S { EVENT A { k: DOUBLE, n: LONG }, EVENT B { k: DOUBLE, n: LONG } }\n"
_PAIR = "FROM S WHERE (A AS a ; B AS b) PARTITION BY k"
_QUERIES = {
    "matches": f"SELECT a, b {_PAIR} WITHIN 9 [n]",
    "total": f"SELECT TOTAL COUNT(*) AS c {_PAIR} PER PARTITION",
    "collapsed": f"SELECT COLLAPSED * {_PAIR}",
    "equal": "SELECT a, b FROM S WHERE (A AS a ; B AS b) FILTER a.k = b.k",
}


def _rows(rows: Any) -> list[str]:
    return sorted(repr(row.asDict(recursive=True)) for row in rows.collect())


@pytest.mark.each(2)
@pytest.mark.parametrize("name", _QUERIES)
def test_real_keys(name: str, spark: Any) -> None:
    with interpreted():
        query = only_query(celc.compile(_STREAM + _QUERIES[name], order_by="n", positions=True))
    wanted = sorted(map(repr, query.match_table(_TABLE).to_pylist()))
    assert wanted
    assert not query.plan.source.partition_by or "-0.0" not in str(wanted)
    frame = spark.createDataFrame(_TABLE).repartition(3)
    assert _rows(query.match(frame)) == wanted
    sorts = ["k", "n"] if query.plan.source.partition_by else ["n"]
    spread = frame.repartition("k") if query.plan.source.partition_by else frame.coalesce(1)
    by_arrow = spread.sortWithinPartitions(*sorts).mapInArrow(query.match_arrow, query.OUTPUT_DDL)
    assert _rows(by_arrow) == wanted
    if name in ("matches", "equal"):
        assert _rows(query.match(frame, plan="joins")) == wanted


def test_real_keys_of_row_patterns(spark: Any) -> None:
    text = """CREATE TABLE t (k DOUBLE, n BIGINT);
    SELECT k, f, l FROM t MATCH_RECOGNIZE (
      PARTITION BY k ORDER BY n MEASURES FIRST(n) AS f, LAST(n) AS l PATTERN (A B+))"""
    with interpreted():
        query = compiled_rows(text)
    wanted = sorted(map(repr, query.match_table(_TABLE).to_pylist()))
    assert len(wanted) == 3
    found = query.match(spark.createDataFrame(_TABLE).repartition(3))
    assert _rows(found) == wanted
