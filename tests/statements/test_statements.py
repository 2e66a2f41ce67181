"""Whole statements: on tables, and on a connection of DuckDB."""

from __future__ import annotations

import datetime
import pickle
import warnings
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from celc_runtime import EventError
from engines import interpreted
from sql_statements import FOLDER, Statement, statements, tables

import celc
from celc import CelError, HostError

_CLAUSE = (
    "MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES COUNT(*) AS n "
    "PATTERN (a b+) DEFINE b AS price > PREV(price))"
)
_RISES = 69


@pytest.fixture(scope="module")
def connection() -> Any:
    made = duckdb.connect()
    for name, table in tables().items():
        made.register(name, table)
    yield made
    made.close()


def _answer(host: Any, text: str, parameters: Any = None) -> Any:
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return celc.sql(host, text, parameters)


@pytest.mark.parametrize("statement", statements(), ids=str)
def test_statements(statement: Statement) -> None:
    assert statement.wrong_table(_answer(tables(), statement.text)) == []


@pytest.mark.parametrize("statement", [*statements()][::3], ids=str)
def test_statements_on_duckdb(statement: Statement, connection: Any) -> None:
    before = connection.sql("SELECT * FROM duckdb_views()").fetchall()
    found = _answer(connection, statement.text)
    again = _answer(connection, f"SELECT COUNT(*) AS c FROM ticker {_CLAUSE}")
    assert statement.wrong_table(found.to_arrow_table()) == []
    assert again.fetchall() == [(_RISES,)]
    # Nothing is left in the session.
    assert connection.sql("SELECT * FROM duckdb_views()").fetchall() == before


_WHERE = [
    f"SELECT 'x FROM ticker MATCH_RECOGNIZE (' AS s, COUNT(*) AS c FROM ticker {_CLAUSE}",
    f"/* FROM t MATCH_RECOGNIZE ( */ SELECT COUNT(*) AS c FROM ticker {_CLAUSE} -- MATCH_RECOGNIZE",
    f"SELECT COUNT(match_recognize) AS c FROM (SELECT 1 AS match_recognize), ticker {_CLAUSE}",
    f"SELECT COUNT(*) AS c FROM main.ticker AS t {_CLAUSE} AS m;",
    f"SELECT COUNT(*) AS c FROM ticker t {_CLAUSE} m",
    f"FROM ticker {_CLAUSE} SELECT COUNT(*) AS c",
    f"SELECT COUNT(*) AS c FROM (ticker {_CLAUSE} AS m CROSS JOIN (SELECT 1))",
    f"SELECT COUNT(*) AS c FROM (VALUES (1)) AS v, ((SELECT * FROM ticker)) AS q {_CLAUSE}",
    f"WITH a AS (FROM ticker), b AS (SELECT * FROM a {_CLAUSE}) SELECT COUNT(*) AS c FROM b",
    # A name of an inner WITH hides the outer one.
    "WITH t AS (SELECT 1 AS x), u AS (WITH t AS (SELECT * FROM ticker) SELECT * FROM t "
    f"{_CLAUSE}) SELECT COUNT(*) AS c FROM u, t",
    "WITH RECURSIVE k(i) AS (SELECT 1), t AS (SELECT * FROM ticker, k) "
    f"SELECT COUNT(*) AS c FROM t {_CLAUSE}",
    # A clause in the source of a clause, once.
    f"SELECT n AS c FROM (SELECT * FROM (SELECT * FROM (ticker {_CLAUSE}) AS i) AS j) AS q "
    "MATCH_RECOGNIZE (ORDER BY symbol, n MEASURES COUNT(*) AS n PATTERN (a+))",
    f"SELECT COUNT(*) AS c FROM (SELECT * FROM (SELECT * FROM ticker) {_CLAUSE} AS i) AS o",
    f"SELECT EXTRACT(YEAR FROM TIMESTAMP '2026-01-01') AS y, COUNT(*) AS c FROM ticker {_CLAUSE}",
    f"SELECT (SELECT COUNT(*) FROM ticker {_CLAUSE}) AS c",
    # Behind the answer of a clause.
    f"SELECT n AS c FROM ticker {_CLAUSE} AS m MATCH_RECOGNIZE (ORDER BY symbol, n "
    "MEASURES COUNT(*) AS n PATTERN (a+))",
    f"SELECT COUNT(*) AS c FROM ticker TABLESAMPLE 100% {_CLAUSE}",
    f"SELECT COUNT(*) AS c FROM ticker AS t TABLESAMPLE bernoulli(100%) REPEATABLE (1) {_CLAUSE}",
    f"SELECT COUNT(*) AS c FROM ticker {_CLAUSE} AS m TABLESAMPLE 100 PERCENT",
    f"SELECT COUNT(q) AS c FROM (FROM ticker {_CLAUSE}) AS m(s, q)",
    f"WITH t(symbol, ts, price) AS MATERIALIZED (SELECT symbol, ts, price FROM ticker) "
    f"SELECT COUNT(*) AS c FROM t {_CLAUSE}",
    f"SELECT COUNT(*) AS c FROM (SELECT 1 AS symbol) AS o RIGHT JOIN ticker {_CLAUSE} AS m "
    "ON o.symbol::VARCHAR = m.symbol",
    f"SELECT SUM(k) AS c FROM (PIVOT (SELECT 'k' AS w, n FROM ticker {_CLAUSE}) "
    "ON w USING COUNT(n))",
    # DuckDB's texts and values.
    f"SELECT $$ FROM t MATCH_RECOGNIZE ( $$ AS s, COUNT(*) AS c FROM ticker {_CLAUSE}",
    f"SELECT {{'a;': COUNT(*)}}['a;'] AS c FROM ticker {_CLAUSE};",
]


@pytest.mark.parametrize("text", _WHERE)
def test_where_a_clause_stands(text: str) -> None:
    (row,) = _answer(tables(), text).to_pylist()
    assert row["c"] == _RISES


def test_a_table_function_is_a_source() -> None:
    text = (
        "SELECT * FROM range(10) AS q(i) MATCH_RECOGNIZE (ORDER BY i MEASURES COUNT(*) AS n "
        "PATTERN (a b+) DEFINE b AS i > PREV(i))"
    )
    assert _answer({}, text).to_pylist() == [{"n": 10}]


def test_names_that_are_words() -> None:
    """Quoted names are names, whatever they say; a table may be called like the clause."""
    tables = {
        "match_recognize": pa.table({"a;b": [1, 2], 'c"d': [2, 1], "select": [5, 6]}),
    }
    text = (
        'SELECT * FROM match_recognize AS "FROM t" MATCH_RECOGNIZE (ORDER BY "a;b" MEASURES '
        'LAST("c""d") AS "x (", LAST("pattern"."select") AS "MATCH_RECOGNIZE (" '
        'PATTERN ("define" "pattern"+) DEFINE "pattern" AS "select" > PREV("select"))'
    )
    assert _answer(tables, text).to_pylist() == [{"x (": 1, "MATCH_RECOGNIZE (": 6}]


def test_files_are_sources() -> None:
    path = FOLDER / "ticker.parquet"
    text = f"SELECT COUNT(*) AS c FROM '{path}' AS t {_CLAUSE}"
    assert _answer({}, text).to_pylist() == [{"c": _RISES}]


def test_a_list_may_have_positions() -> None:
    source = "SELECT * FROM UNNEST([4, 5]) WITH ORDINALITY AS q(x, i)"
    text = f"{source} MATCH_RECOGNIZE (ORDER BY i MEASURES LAST(x) AS x PATTERN (a+))"
    assert _answer({}, text).to_pylist() == [{"x": 5}]


def test_a_table_is_made_and_explained() -> None:
    connection = duckdb.connect()
    connection.register("ticker", tables()["ticker"])
    _answer(connection, f"CREATE TABLE made AS SELECT * FROM ticker {_CLAUSE}")
    _answer(connection, f"INSERT INTO made SELECT * FROM ticker {_CLAUSE}")
    assert connection.sql("SELECT COUNT(*) FROM made").fetchall() == [(2 * _RISES,)]
    explained = _answer(connection, f"EXPLAIN SELECT n + 1 FROM ticker {_CLAUSE}").fetchall()
    assert "SCAN" in explained[0][1]


def test_intervals_of_duckdb_without_months_are_intervals() -> None:
    connection = duckdb.connect()
    values = "(1, INTERVAL '1 day 2 hours'), (2, INTERVAL '-5 minutes'), (3, NULL)"
    connection.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {values}) AS q(id, took)")
    clause = (
        "MATCH_RECOGNIZE (ORDER BY id MEASURES FINAL SUM(A.took) AS total ALL ROWS PER MATCH "
        "PATTERN (A+) DEFINE A AS took IS NULL OR took < INTERVAL '2' DAY)"
    )
    text = f"SELECT id, total = INTERVAL '25:55:00', took + INTERVAL 1 MONTH FROM t {clause}"
    rows = _answer(connection, text).fetchall()
    later = [datetime.timedelta(days=31, hours=2), datetime.timedelta(days=30, minutes=-5), None]
    assert rows == [(number, True, one) for number, one in enumerate(later, 1)]
    carried = _answer(connection, f"SELECT * FROM t {clause}")
    kept = connection.sql("SELECT took FROM t ORDER BY id").fetchall()
    assert [row[2] for row in carried.fetchall()] == [one for (one,) in kept]
    connection.execute("INSERT INTO t VALUES (4, INTERVAL '2 months')")
    with pytest.raises(EventError, match=r"'took' as INTERVAL, .* but row 3 .* has 2 months"):
        _answer(connection, f"SELECT * FROM t {clause}").fetchall()
    one_row = "MATCH_RECOGNIZE (ORDER BY id MEASURES COUNT(*) AS n PATTERN (A+))"
    assert _answer(connection, f"SELECT n FROM t {one_row}").fetchall() == [(4,)]


_ALIKE = [
    ("ts < PREV(ts) + INTERVAL '5 minutes'", "ts < PREV(ts) + INTERVAL '5' MINUTE"),
    ("EXTRACT(HOUR FROM ts) = 9", "HOUR(ts) = 9"),
    (
        "extract(day FROM ts AT TIME ZONE 'Asia/Tokyo') < 3",
        "DAY(ts AT TIME ZONE 'Asia/Tokyo') < 3",
    ),
    ("(price > 10) IS TRUE", "price > 10"),
    ("(price > 10) IS NOT TRUE", "price <= 10 OR price IS NULL"),
    ("(price > 10) IS FALSE", "price <= 10"),
    ("NVL(PREV(price), 0) < price", "COALESCE(PREV(price), 0) < price"),
    ("IFNULL(PREV(price), 0) < price", "COALESCE(PREV(price), 0) < price"),
    ("MATCH_SEQUENCE_NUMBER() < 4", "COUNT(*) < 4"),
]


@pytest.mark.parametrize(("written", "meant"), _ALIKE)
def test_words_of_other_engines(written: str, meant: str) -> None:
    text = f"SELECT * FROM ticker {_CLAUSE.replace('price > PREV(price)', '{}')}"
    found, wanted = (_answer(tables(), text.format(one)) for one in (written, meant))
    assert found == wanted
    assert len(found)


_HELPED = [
    ("ts < CURRENT_TIMESTAMP", "write the time as a constant"),
    ("CLASSIFIER = 'a'", r"write CLASSIFIER\(\)"),
    ("price > (SELECT MAX(price) FROM ticker)", "a subquery stands before"),
    ("symbol ILIKE 'a%'", r"write LOWER\(x\) LIKE"),
    ("SUBSTRING(symbol FROM 1 FOR 2) = 'A'", "write SUBSTR"),
    ("TRIM(symbol FROM 'x') = 'A'", "only EXTRACT has FROM in it"),
    ("EXTRACT(SECOND FROM ts) = 1", r"write SECOND\(ts\)"),
    ("DATEDIFF(ts, PREV(ts)) < 10", "write TIMESTAMPDIFF"),
    ("stddev(price) > 1", "over rows there are COUNT"),
    ("ticker.price > 1", "'ticker' is the table"),
]


@pytest.mark.parametrize(("condition", "help"), _HELPED)
def test_what_to_write_instead(condition: str, help: str) -> None:
    text = f"SELECT * FROM ticker {_CLAUSE.replace('price > PREV(price)', condition)}"
    with pytest.raises(CelError, match=help):
        _answer(tables(), text)


def test_keys_of_the_table_by_its_name() -> None:
    text = f"SELECT * FROM ticker {_CLAUSE.replace('BY symbol', 'BY ticker.symbol')}"
    with pytest.raises(CelError, match="'ticker' is the table"):
        _answer(tables(), text)


# --- parameters -----------------------------------------------------------------------------------

_ASKED = (
    "SELECT COUNT(*) AS c FROM (SELECT * FROM ticker WHERE volume >= {0}) AS q MATCH_RECOGNIZE ("
    "PARTITION BY symbol ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a? b+) "
    "DEFINE a AS symbol <> {1}, b AS price > {2} AND ts > {3} AND volume > {4}) WHERE n > {5}"
)
_VALUES = [0, "O'x", Decimal("9.5"), datetime.datetime(2026, 1, 1), -1.5, 1]


def test_parameters() -> None:
    wanted = _answer(
        tables(),
        _ASKED.format(
            *("0", "'O''x'", "9.5", "TIMESTAMP '2026-01-01 00:00:00'", "(0 - 1.5)", "1"),
        ),
    )
    assert wanted.to_pylist()[0]["c"] > 0
    assert _answer(tables(), _ASKED.format(*"??????"), _VALUES) == wanted
    names = [f"p{number}" for number in range(6)]
    by_name = dict(zip(names, _VALUES, strict=True))
    asked = _ASKED.format(*(f":{name}" for name in names))
    assert _answer(tables(), asked, by_name) == wanted


def test_names_of_parameters_in_duckdb() -> None:
    """`$name` is a parameter, too; a colon within a value is none."""
    text = (
        "SELECT [1, 2, 3][1:n] AS l, {'a':n} AS s, $k AS k FROM ticker "
        f"{_CLAUSE.replace('COUNT(*)', 'COUNT(*) - COUNT(*) + $k')} LIMIT 1"
    )
    assert _answer(tables(), text, {"k": 2}).to_pylist() == [{"l": [1, 2], "s": {"a": 2}, "k": 2}]


def test_more_values_than_signs() -> None:
    text = f"SELECT ? AS k FROM ticker\n{_CLAUSE.replace('a b+', 'a?? b+?')}"
    assert _errors(text, [1, 2]) == [("unused-parameter", 1, 1)]


@pytest.mark.parametrize(
    ("sign", "given", "code"),
    [
        ("?", [], "missing-parameter"),
        ("?", None, "missing-parameter"),
        ("?", {"k": 1}, "missing-parameter"),
        (":k", None, "missing-parameter"),
        (":k", [], "missing-parameter"),
        ("$k", {"l": 1}, "missing-parameter"),
        (":k", {"l": 1}, "missing-parameter"),
        ("?", [[1]], "parameter-type"),
    ],
)
def test_wrong_parameters(sign: str, given: Any, code: str) -> None:
    text = (
        f"SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts PATTERN (a) DEFINE a AS price > {sign})"
    )
    assert _errors(text, given) == [(code, 1, text.index(sign) + 1)]


# --- functions of the host ------------------------------------------------------------------------

_HOST = (
    "SELECT * FROM ticker MATCH_RECOGNIZE (PARTITION BY LEFT(symbol, 2), {key} ORDER BY ts "
    "MEASURES FIRST({first}) AS f, SUM({of_b}) AS s PATTERN (a b+) "
    "DEFINE b AS {of_b} + 1 > PREV({near}) AND price > PREV(price))"
)
_KEY, _NEAR = "levenshtein ( symbol,  /* as it is */ 'A' )", "levenshtein(symbol, 'ACMA')"


def test_functions_of_the_host() -> None:
    """They are columns of the source, computed before."""
    asked = _HOST.format(
        key=_KEY, first="hamming(symbol, symbol)", of_b="levenshtein(b.symbol, ?)", near=_NEAR
    )
    found = _answer(tables(), asked, ["ACMA", "ACMA"])
    columns = f"*, {_KEY} AS k, hamming(symbol, symbol) AS h, {_NEAR} AS n"
    before = asked.replace("FROM ticker", f"FROM (SELECT {columns} FROM ticker) AS t")
    by_hand = before.replace(f"2), {_KEY}", "2), k").replace("levenshtein(b.symbol, ?)", "b.n")
    by_hand = by_hand.replace("FIRST(hamming(symbol, symbol))", "FIRST(h)").replace(
        f"PREV({_NEAR})", "PREV(n)"
    )
    wanted = _answer(tables(), by_hand)
    assert found.column_names == ["LEFT(symbol, 2)", "levenshtein ( symbol, 'A' )", "f", "s"]
    assert found.to_pylist()
    assert [[*row.values()] for row in found.to_pylist()] == [
        [*row.values()] for row in wanted.to_pylist()
    ]


def test_lambdas_are_the_host_s() -> None:
    """Their parameters are no columns and no variables, though one may be called like that."""
    text = (
        "SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts, symbol MEASURES "
        "LAST(list_transform(b.tags, lambda b: b || '!')) AS t, LAST(b.tags) AS u PATTERN (a b) "
        "DEFINE b AS len(list_filter(b.tags, lambda x, i: x > 'a')) > 0)"
    )
    rows = _answer(tables(), text).to_pylist()
    assert rows
    assert all(row["t"] == [one and f"{one}!" for one in row["u"]] for row in rows)


def test_parameters_of_two_calls_are_told_apart() -> None:
    text = (
        "SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts, symbol MEASURES COUNT(*) AS n PATTERN "
        "(a) DEFINE a AS levenshtein(symbol, ?) = 0 AND levenshtein(symbol, ?) > 0)"
    )
    assert len(_answer(tables(), text, ["ACME", "ACME"])) == 0
    assert len(_answer(tables(), text, ["ACME", "BETA"])) > 0


def test_columns_of_the_host_are_not_shown() -> None:
    text = (
        "SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts, symbol ALL ROWS PER MATCH "
        "PATTERN (a) DEFINE a AS levenshtein(symbol, 'ACME') = 0)"
    )
    found = _answer(tables(), text)
    assert {*found.column_names} == {"symbol", "ts", "price", "volume", "tags"}
    assert {*found.column("symbol").to_pylist()} == {"ACME"}


@pytest.mark.parametrize(
    ("condition", "place"),
    [
        ("levenshtein(a.symbol, b.symbol) > 1", 0),
        ("levenshtein(PREV(symbol), 'A') > 1", len("levenshtein(")),
        ("price > 1 AND levenstein(symbol, 'A') > 1", len("price > 1 AND ")),
        # It would read rows that are none of the table.
        ("unnest(tags) > 'a'", 0),
        ("price > 1 AND stddev(b.price) > 1", len("price > 1 AND ")),
    ],
)
def test_wrong_functions_of_the_host(condition: str, place: int) -> None:
    before = "SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n\n"
    head = "PATTERN (a b) DEFINE b AS "
    wanted = [("host-function", 2, len(head) + place + 1)]
    assert _errors(f"{before}{head}{condition})") == wanted


# --- errors ---------------------------------------------------------------------------------------


def _errors(text: str, parameters: Any = None) -> list[tuple[str, int, int]]:
    with pytest.raises(CelError) as caught:
        _answer(tables(), text, parameters)
    problem = caught.value
    return [
        (one.code, *problem.source.line_and_column(one.span.start)) for one in problem.diagnostics
    ]


_OPEN = _CLAUSE[:-1]
_OF_TABLE = ("unknown-variable", 2, _CLAUSE.index("price >") + 1)
_WRONG = [
    (f"SELECT *\nFROM ticker {_OPEN}", [("unclosed-parenthesis", 2, 13)]),
    (f"SELECT *\nFROM ticker) {_CLAUSE}", [("lone-parenthesis", 2, 12)]),
    (f"SELECT * FROM ticker {_CLAUSE};\nSELECT 1", [("second-statement", 2, 1)]),
    (f"CREATE VIEW v AS SELECT * FROM ticker {_CLAUSE}", [("view-of-clause", 1, 1)]),
    (f"CREATE OR REPLACE VIEW v AS SELECT * FROM ticker {_CLAUSE}", [("view-of-clause", 1, 1)]),
    (f"CREATE MACRO m() AS TABLE\nSELECT * FROM ticker {_CLAUSE}", [("view-of-clause", 1, 1)]),
    (f"PREPARE p AS\nSELECT * FROM ticker {_CLAUSE}", [("view-of-clause", 1, 1)]),
    (f"SELECT * FROM ticker AS t\n{_CLAUSE.replace('price >', 't.price >')}", [_OF_TABLE]),
    (
        f"SELECT * FROM ticker t(symbol, ts, price)\n{_CLAUSE.replace('price >', 't.price >')}",
        [_OF_TABLE],
    ),
    (f"SELECT * FROM ticker JOIN logins USING (ts)\n{_CLAUSE}", [("no-source", 2, 1)]),
    (f"SELECT * FROM ticker WHERE price > 1\n{_CLAUSE}", [("no-clause", 2, 1)]),
    (f"SELECT\n{_CLAUSE} FROM ticker", [("no-clause", 2, 1)]),
    ("", [("no-clause", 1, 1)]),
    (
        f"SELECT * FROM ticker\n{_CLAUSE.replace('COUNT(*)', 'RANK() OVER ()')}",
        [("syntax", 2, _CLAUSE.index("COUNT") + 1 + len("RANK() "))],
    ),
    (
        f"SELECT * FROM logins l,\nLATERAL (SELECT * FROM ticker WHERE symbol = l.who) q {_CLAUSE}",
        [("source-from-outside", 2, 1)],
    ),
    (
        "SELECT * FROM logins l WHERE EXISTS (SELECT 1 FROM\n"
        f"(SELECT * FROM ticker WHERE symbol = l.who) AS q {_CLAUSE})",
        [("source-refused", 2, 1)],
    ),
    (f"SELECT *\nFROM nix {_CLAUSE}", [("source-refused", 2, 6)]),
    (f"SELECT * FROM\n{_CLAUSE}", [("no-source", 2, 1)]),
    ("SELECT 'FROM t MATCH_RECOGNIZE (' AS s", [("no-clause", 1, 1)]),
    ("SELECT\n'abc FROM ticker", [("unclosed-text", 2, 1)]),
    (f"SELECT * FROM ticker {_CLAUSE}\n/* abc", [("unclosed-text", 2, 1)]),
    (f'SELECT * FROM ticker {_CLAUSE} AS\n"m', [("unclosed-text", 2, 1)]),
    (
        "SELECT * FROM ticker MATCH_RECOGNIZE (\n  ORDER BY ts ALL ROWS PER MATCH\n"
        "  PATTERN (a b)\n"
        "  DEFINE b AS prize > 1,\n         a AS pryce > 1)",
        [("unknown-column", 4, 15), ("unknown-column", 5, 15)],
    ),
    (
        "SELECT * FROM ticker MATCH_RECOGNIZE (\n  ORDER BY ts\n  PATTERN (a b++))",
        [("syntax", 3, 16)],
    ),
    # In the second clause, behind one that is answered.
    (
        f"SELECT * FROM (SELECT * FROM ticker {_CLAUSE}) AS q\nMATCH_RECOGNIZE (ORDER BY n\n"
        "MEASURES LAST(k) AS z PATTERN (a))",
        [("unknown-column", 3, 15)],
    ),
]


@pytest.mark.parametrize(("text", "wanted"), _WRONG)
def test_errors_have_places(text: str, wanted: list[tuple[str, int, int]]) -> None:
    assert _errors(text) == wanted


def test_what_the_host_refuses() -> None:
    text = f"SELECT SUM(m.k) FROM ticker {_CLAUSE} AS m"
    with pytest.raises(HostError, match=r'DuckDB refuses .* column named "k"') as caught:
        _answer(tables(), text)
    problem = caught.value
    assert problem.statement == text
    assert text in str(problem)
    assert "MATCH_RECOGNIZE" not in problem.rewritten
    assert str(pickle.loads(pickle.dumps(problem))) == str(problem)


def test_types_that_duckdb_does_not_read() -> None:
    narrow = pa.array([1.5, 2.5], pa.float16())
    wide = pa.array([Decimal("1.50"), None], pa.decimal256(20, 2))
    lists = pa.array([[1.5], None], pa.list_(pa.float16()))
    table = pa.table({"id": [1, 2], "narrow": narrow, "wide": wide, "l": lists})
    clause = "MATCH_RECOGNIZE (ORDER BY id MEASURES SUM(narrow) + SUM(wide) AS s PATTERN (a+))"
    text = f"SELECT s\nFROM Narrow {clause}"
    with pytest.raises(CelError) as caught:
        _answer({"narrow": table}, text)
    problems = caught.value.diagnostics
    places = {caught.value.source.slice(one.span) for one in problems}
    assert (places, {one.code for one in problems}) == ({"Narrow"}, {"unread-column"})
    assert [one.message for one in problems] == [
        f"DuckDB cannot read the table 'Narrow': its column '{name}' is {type}"
        for name, type in (
            ("narrow", "halffloat"),
            ("wide", "decimal256(20, 2)"),
            ("l", "list<item: halffloat>"),
        )
    ]
    # What the help says, on the tables so far.
    for one in problems:
        (help,) = one.help
        table = eval(help.partition(": ")[2], {"table": table, "pa": pa})
    found = _answer({"narrow": table}, text)
    assert found.to_pylist() == [{"s": 5.5}]
    # A table that no statement names is not in the way.
    others = {**tables(), "odd": pa.table({"narrow": narrow})}
    found = _answer(others, f"SELECT COUNT(*) AS c FROM ticker {_CLAUSE}")
    assert found.to_pylist() == [{"c": _RISES}]


def test_what_is_no_host() -> None:
    with pytest.raises(TypeError, match="a SparkSession, a connection of DuckDB or a dictionary"):
        celc.sql(pa.table({"a": [1]}), "SELECT 1")


def test_warnings_have_places() -> None:
    text = (
        "SELECT * FROM ticker MATCH_RECOGNIZE (ORDER BY ts, symbol MEASURES COUNT(*) AS n\n"
        "  PATTERN (a b+) DEFINE b AS SUM(b.volume) > 9)"
    )
    with interpreted(), pytest.warns(celc.CelWarning, match=r"statement\.sql:2:"):
        celc.sql(tables(), text)
