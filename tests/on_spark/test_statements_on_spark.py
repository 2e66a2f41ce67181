"""Whole statements with MATCH_RECOGNIZE on a session of Spark."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from celc_runtime.plan.errors import EventError
from conftest import long_over_connect
from duckdb_cases import Case, cases
from sql_statements import FOLDER, TABLES, Statement, statements

import celc
from celc import CelError, HostError

_ALL = [*statements()]
_SLICE = [_ALL[4], _ALL[10]]
_CLAUSE = (
    "MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES COUNT(*) AS n "
    "PATTERN (a b+) DEFINE b AS price > PREV(price))"
)


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    for name in TABLES:
        frame = spark.read.parquet(str(FOLDER / f"{name}.parquet"))
        frame.createOrReplaceTempView(name)
    yield spark
    for name in TABLES:
        spark.catalog.dropTempView(name)


def _answer(host: Any, text: str, parameters: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", celc.CelWarning)
        return celc.sql(host, text, parameters)


def _views(session: Any) -> set[str]:
    return {row.viewName for row in session.sql("SHOW VIEWS").collect()}


@pytest.mark.parametrize("statement", _SLICE, ids=str)
@long_over_connect
def test_some_statements(session: Any, statement: Statement) -> None:
    assert statement.wrong_table(_answer(session, statement.text).toArrow()) == []


@pytest.mark.long
@pytest.mark.parametrize("statement", _ALL, ids=str)
def test_all_statements(session: Any, statement: Statement) -> None:
    assert statement.wrong_table(_answer(session, statement.text).toArrow()) == []


@pytest.mark.long
@pytest.mark.parametrize("case", [one for one in cases() if one.is_of_spark][::16], ids=str)
def test_cases_of_duckdb(spark: Any, case: Case) -> None:
    for name, table in case.tables.items():
        spark.createDataFrame(table).createOrReplaceTempView(name)
    try:
        assert case.wrong(spark) == []
    finally:
        for name in case.tables:
            spark.catalog.dropTempView(name)


def test_answers_are_lazy_and_leave_nothing(session: Any) -> None:
    """A first answer is read behind a second call, with parameters, braces and functions of
    Spark's alone."""
    before = _views(session)
    text = (
        "SELECT '{' || :word AS word, m.n FROM ticker MATCH_RECOGNIZE (PARTITION BY symbol "
        "ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a{{1}} b+) "
        "DEFINE b AS price > PREV(price) AND soundex(b.symbol) <> :word) AS m"
    ).replace("{{1}}", "{1}")
    first = _answer(session, text, {"word": "it's"})
    second = _answer(session, f"SELECT COUNT(*) AS c FROM ticker {_CLAUSE} WHERE n > ?", [1])
    assert _views(session) == before
    rows = first.collect()
    assert second.collect()[0].c == len(rows)
    assert {row.word for row in rows} == {"{it's"}


@long_over_connect
def test_errors_of_statements(session: Any) -> None:
    with pytest.raises(CelError, match="source-refused") as caught:
        _answer(session, f"SELECT * FROM\n  nix {_CLAUSE}")
    (one,) = caught.value.diagnostics
    assert caught.value.source.line_and_column(one.span.start) == (2, 3)
    with pytest.raises(CelError, match="celc has no such function, and Spark refuses it"):
        _answer(session, f"SELECT * FROM ticker {_CLAUSE.replace('price >', 'nix(price) >')}")
    text = f"SELECT m.k FROM ticker {_CLAUSE} AS m"
    with pytest.raises(HostError) as refused:
        _answer(session, text).collect()
    assert refused.value.statement == text


_SOURCES = [
    "ticker TABLESAMPLE (100 PERCENT) AS q",
    "VALUES ('A', 1, 1.0), ('A', 2, 2.0) AS q(symbol, ts, price)",
    "ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts ALL ROWS PER MATCH PATTERN (x)) AS q",
]


@pytest.mark.long
def test_sources(session: Any) -> None:
    whole, made, behind = (
        _answer(session, f"SELECT COUNT(*) AS c FROM {source} {_CLAUSE} AS m").collect()[0].c
        for source in _SOURCES
    )
    assert (made, behind) == (1, whole)


@pytest.mark.long
def test_dots_in_expressions(session: Any) -> None:
    condition = "CONCAT(symbol, 'a.b') <> CONCAT(symbol, 'a_b') AND price >"
    clause = _CLAUSE.replace("BY symbol", "BY symbol, ROUND(price * 0.5, 1) * 0")
    text = f"SELECT COUNT(*) AS c FROM ticker {clause.replace('price >', condition)}"
    plain = _answer(session, f"SELECT COUNT(*) AS c FROM ticker {_CLAUSE}").collect()
    assert _answer(session, text).collect() == plain


@pytest.mark.long
def test_a_dot_in_a_name(session: Any) -> None:
    source = "(SELECT *, price AS `a.b` FROM ticker) AS q"
    text = f"SELECT * FROM {source} {_CLAUSE.replace('COUNT(*)', 'LAST(`a.b`)')}"
    with pytest.raises(EventError, match=r"'a\.b'.*rename it before"):
        _answer(session, text)


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "why"), [("explode(tags)", "GENERATOR"), ("stddev(price)", "WHERE_CONDITION")]
)
def test_functions_of_several_rows(session: Any, function: str, why: str) -> None:
    """Functions that make rows, or one of several, would read others than those of the table."""
    with pytest.raises(CelError, match=f"host-function.*Spark refuses it.*{why}"):
        _answer(session, f"SELECT * FROM ticker {_CLAUSE.replace('COUNT(*)', function)}")


@long_over_connect
def test_double_quotes_are_names(session: Any) -> None:
    text = f'SELECT "n" FROM ticker {_CLAUSE}'
    with pytest.warns(celc.CelWarning, match="Spark alone reads it as a text"):
        found = celc.sql(session, text)
    assert found.columns == ["n"]
