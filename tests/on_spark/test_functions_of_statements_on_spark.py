"""Statements over table functions, on a session of Spark: the rows of `celc.sql`."""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa
import pytest
from conftest import long_over_connect
from spark_routes import has_table_functions
from sql_statements import FOLDER, TABLES, Statement, statements
from statement_functions import DECLARED, functions, registered

import celc

_ALL = [*statements()]
_SLICE = [_ALL[8], _ALL[16]]  # two clauses in a join, in IN and EXISTS

pytestmark = pytest.mark.skipif(
    not has_table_functions(), reason="table functions need PySpark 4.1"
)


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    for name in TABLES:
        frame = spark.read.parquet(str(FOLDER / f"{name}.parquet"))
        frame.createOrReplaceTempView(name)
    yield spark
    for name in TABLES:
        spark.catalog.dropTempView(name)


def _answer(session: Any, text: str) -> Any:
    made = functions(text)
    registered(session, made)
    return session.sql(made.statement)


@pytest.mark.parametrize("statement", _SLICE, ids=str)
@long_over_connect
def test_some_statements(session: Any, statement: Statement) -> None:
    assert statement.wrong_table(_answer(session, DECLARED + statement.text).toArrow()) == []


@pytest.mark.long
@pytest.mark.parametrize("statement", _ALL, ids=str)
def test_all_statements(session: Any, statement: Statement) -> None:
    assert statement.wrong_table(_answer(session, DECLARED + statement.text).toArrow()) == []


@long_over_connect
def test_a_clause_below_lateral(session: Any) -> None:
    clause = (
        "MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES COUNT(*) AS n "
        "PATTERN (a b+) DEFINE b AS price > PREV(price))"
    )
    text = (
        "SELECT d.symbol, x.k FROM (SELECT DISTINCT symbol FROM ticker) AS d, LATERAL "
        f"(SELECT COUNT(*) AS k FROM ticker {clause} AS m WHERE m.symbol = d.symbol) AS x"
    )
    wanted = celc.sql(session, text).collect()
    assert sum(row.k for row in wanted) > len(wanted)
    assert sorted(_answer(session, DECLARED + text).collect()) == sorted(wanted)


_T = "CREATE TABLE t (k DOUBLE, ts INT, v INT);\n"
_ROWS = pa.table(
    {
        "k": [float("nan"), float("nan"), -0.0, 0.0, None, None, 1.0, 1.0],
        "ts": pa.array([1, 2, 1, 2, 2, 1, None, 2], pa.int32()),
        "v": pa.array([1, 2, 3, 4, 5, 6, 7, 8], pa.int32()),
    }
)
_CLAUSE = (
    "MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts DESC NULLS LAST MEASURES FIRST(v) AS a, "
    "LAST(v) AS b, CLASSIFIER() AS c ALL ROWS PER MATCH PATTERN (x y) "
    "DEFINE y AS CAST(levenshtein(CAST(v AS STRING), 'x') AS INT) < 2)"
)


def test_keys_orders_and_functions_of_spark(spark: Any) -> None:
    """NaN is one key, -0.0 is 0.0, NULLs stand where the order says."""
    spark.createDataFrame(_ROWS).createOrReplaceTempView("t")
    text = f"SELECT * FROM t {_CLAUSE} ORDER BY v"
    try:
        found = _answer(spark, _T + text).toArrow()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", celc.CelWarning)
            wanted = celc.sql(spark, text).toArrow()
        assert str(found.to_pylist()) == str(wanted.to_pylist())
        assert found["a"].to_pylist() == [2, 2, 4, 4, 5, 5, 8, 8]
        _answer(spark, f"{_T}CREATE OR REPLACE TEMP VIEW celc_view AS {text}").collect()
        assert spark.table("celc_view").count() == len(_ROWS)
    finally:
        spark.catalog.dropTempView("t")
        spark.catalog.dropTempView("celc_view")
