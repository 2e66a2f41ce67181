"""MATCH_RECOGNIZE on Spark: by `match`, and as a table function of SQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventError
from celc_runtime.values.types import ddl_of
from row_cases import RowCase, compiled, row_cases, rows_of, same, table_of
from spark_routes import has_table_functions

import celc

_CASES = [case for case in row_cases() if case.expected is not None]
_FUNCTIONS = [case for case in _CASES if case.name.startswith("07-")]
_SLICE = [*_CASES[5 : -len(_FUNCTIONS) : 36], *_FUNCTIONS[2::9]]


def _frame(spark: Any, case: RowCase) -> Any:
    if not case.table:
        # Over Connect the types of a table without rows are not taken from Arrow.
        types = {name: ddl_of(type) for name, type in case.schema.items()}
        ddl = ", ".join(f"`{name}` {type}" for name, type in types.items())
        return spark.createDataFrame([], ddl)
    return spark.createDataFrame(table_of(case.schema, case.table))


def _check(case: RowCase, frame: Any) -> None:
    schema = compiled(case.query).OUTPUT_SCHEMA
    found = frame.toArrow()
    assert found.schema.names == schema.names
    columns = [found.column(name).cast(schema.field(name).type) for name in schema.names]
    table = pa.table(dict(zip(schema.names, columns, strict=True)))
    assert same(case, rows_of(table)), table.to_pylist()


def _by_match(spark: Any, case: RowCase) -> None:
    query = compiled(case.query)
    _check(case, _frame(spark, case).transform(query.match))


def _by_sql(spark: Any, case: RowCase) -> None:
    query = compiled(case.query).queries["q"]
    plan = query.plan
    query.register(spark, "row_patterns_q")
    _frame(spark, case).createOrReplaceTempView("rows_q")
    made = {one.name: one.sql for one in plan.derived}
    names = [plan.columns[n].name for n in plan.partition_by]
    keys = ", ".join(made.get(name, f"`{name}`") for name in names)
    ordered = [plan.columns[one.column].name for one in plan.order_by]
    order = ", ".join(f"`{name}`" for name in ordered if name not in made) or "id"
    spread = f"PARTITION BY ({keys})" if keys else "WITH SINGLE PARTITION"
    text = f"SELECT * FROM row_patterns_q(TABLE(rows_q) {spread} ORDER BY ({order}))"
    _check(case, spark.sql(text))


@pytest.mark.each(2)
@pytest.mark.parametrize("case", _SLICE, ids=str)
def test_some_cases(spark: Any, case: RowCase) -> None:
    _by_match(spark, case)


@pytest.mark.parametrize("case", _SLICE[::3], ids=str)
def test_some_cases_in_sql(spark: Any, case: RowCase) -> None:
    if not has_table_functions():
        pytest.skip("table functions need PySpark 4.1")
    _by_sql(spark, case)


@pytest.mark.long
@pytest.mark.parametrize("case", _CASES, ids=str)
def test_all_cases(spark: Any, case: RowCase) -> None:
    _by_match(spark, case)


@pytest.mark.long
@pytest.mark.parametrize("case", _CASES, ids=str)
def test_all_cases_in_sql(spark: Any, case: RowCase) -> None:
    if not has_table_functions():
        pytest.skip("table functions need PySpark 4.1")
    _by_sql(spark, case)


def test_types_come_from_a_data_frame(spark: Any) -> None:
    rows = [(1, "a", 3.0), (2, "a", 1.0), (1, "b", 2.0)]
    frame = spark.createDataFrame(rows, "ts INT, `k y` STRING, v DOUBLE")
    text = """SELECT * FROM t MATCH_RECOGNIZE (
      PARTITION BY `k y` ORDER BY ts MEASURES FIRST(v) AS top PATTERN (A B) DEFINE B AS v < PREV(v)
    )"""
    name = "query_1.sql"
    query = celc.compile(text, dialect="match_recognize", schema=frame.schema, name=name)
    assert [tuple(row) for row in query.match(frame).collect()] == [("a", 3.0)]
    in_pandas = frame.groupBy("k y").applyInPandas(query.match_pandas, query.OUTPUT_DDL)
    assert [tuple(row) for row in in_pandas.collect()] == [("a", 3.0)]
    everything = query.match_all(frame)
    assert everything.columns == ["query", "query_1"]
    assert [tuple(row) for row in query.rows(everything, "query_1").collect()] == [("a", 3.0)]


def test_what_fails_on_spark(spark: Any) -> None:
    case = next(case for case in row_cases() if case.error == "null-order")
    query = compiled(case.query)
    with pytest.raises(Exception, match="has NULL there"):
        _frame(spark, case).transform(query.match).collect()
    with pytest.raises(EventError, match="which is missing"):
        query.match(spark.range(3))
    assert "one task reads all rows" in query.explain_plan(_frame(spark, case))
