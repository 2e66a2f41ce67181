"""Statements over table functions of Spark: `celc compile --to spark-functions`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from golden_files import compare
from places import TESTS
from sql_statements import statements
from statement_functions import DECLARED, functions

from celc import CelError
from celc.interfaces.cli import main

_FOLDER = TESTS / "statements" / "functions"
_GOLDEN = {2: "in_with", 5: "keys", 11: "nested", 18: "union"}
_CLAUSE = (
    "MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES COUNT(*) AS n "
    "PATTERN (a b+) DEFINE b AS price > PREV(price))"
)
_T = "CREATE TABLE t (symbol STRING, ts TIMESTAMP, price DOUBLE);\n"


def test_golden_statements_over_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, update: bool
) -> None:
    """The command line writes them; one has its module beside it."""
    monkeypatch.chdir(tmp_path)
    for number, name in _GOLDEN.items():
        text = [*statements()][number - 1].text
        Path(f"{name}.sql").write_text(DECLARED + text)
        assert main(["compile", f"{name}.sql", "--to", "spark-functions"]) == 0
        compare(_FOLDER / f"{name}.sql", capsys.readouterr().out, update)
    compare(_FOLDER / "union_udf.txt", Path("union_udf.py").read_text(), update)


@pytest.mark.parametrize("statement", statements(), ids=str)
def test_all_statements_have_functions(statement: Any) -> None:
    made = functions(DECLARED + statement.text)
    assert "MATCH_RECOGNIZE (" not in made.statement
    for name in made.names:
        assert made.statement.count(f"{name}(\n  TABLE(SELECT ") == 1


def _call(text: str, undeclared: Any = None) -> str:
    """The call of a statement's only function."""
    made = functions(text, undeclared=undeclared).statement
    return made[made.index("q_clause_1(") :]


@pytest.mark.parametrize(
    ("source", "types"),
    [
        ("t", "STRING DOUBLE"),
        ("lake.main.t AS x", "STRING DOUBLE"),
        ("(SELECT * EXCEPT (price), price AS p, CAST(price AS INT) AS price FROM t) AS q", "INT"),
        ("(SELECT symbol, ts, LAG(price) OVER (ORDER BY ts) AS price FROM t) AS q", "DOUBLE"),
        ("(SELECT symbol, ts, COUNT(*) AS price FROM nix GROUP BY ALL) AS q", "no symbol"),
        ("(SELECT t.*, u.x FROM t LEFT JOIN u ON u.k = t.symbol) AS q", "DOUBLE"),
        ("(SELECT * FROM t JOIN t AS u USING (symbol, ts, price)) AS q", "DOUBLE"),
        ("(SELECT * FROM t UNION ALL SELECT * FROM t) AS q", "DOUBLE"),
        ("(SELECT symbol, ts, price / 2 AS price FROM t) AS q", "DOUBLE"),
        ("(SELECT symbol, ts, IF(price > 1, 1, 2) AS price FROM t) AS q", "INT"),
        ("(SELECT symbol, ts, IF(price > 1, 1, 'x') AS price FROM t) AS q", "no price"),
        ("(WITH w AS (SELECT * FROM t) SELECT * FROM w AS v) AS q", "DOUBLE"),
        ("VALUES ('a', TIMESTAMP '2026-01-01 00:00:00', 1) AS q(symbol, ts, price)", "INT"),
    ],
)
def test_types_of_sources(source: str, types: str) -> None:
    """What the text does not say is an error where the clause reads it."""
    text = f"{_T}SELECT * FROM {source} {_CLAUSE.replace('COUNT(*)', 'LAST(price)')}"
    if not types.startswith("no "):
        assert types.split()[-1] in "".join(functions(text).module)
        return
    with pytest.raises(CelError, match="is not known without Spark") as caught:
        functions(text)
    one = caught.value.diagnostics[0]
    place = text.index(types[3:], text.index("MATCH_RECOGNIZE"))
    assert (one.code, one.span.start) == ("unreadable-column", place)


def test_what_a_call_reads() -> None:
    """Columns of the table that the clause names; keys, and the columns that order rows."""
    table = "CREATE TABLE t (symbol STRING, ts TIMESTAMP, price DOUBLE, volume INT);\n"
    clause = (
        "MATCH_RECOGNIZE (PARTITION BY price, UPPER(symbol) AS s ORDER BY ts DESC NULLS LAST, "
        "volume, LOWER(symbol) ALL ROWS PER MATCH PATTERN (a))"
    )
    assert _call(f"{table}SELECT m.price FROM t {clause} AS m") == (
        "q_clause_1(\n  TABLE(SELECT `symbol`, `ts`, `price`, `volume` FROM t)\n"
        "  PARTITION BY (CAST(`price` + 0.0D AS STRING), UPPER(symbol))\n"
        "  ORDER BY (`ts` DESC NULLS LAST, `volume` NULLS FIRST)\n) AS m"
    )
    alone = "SELECT * FROM t MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (a))"
    assert "FROM t)\n  WITH SINGLE PARTITION\n)" in _call(_T + alone)


def test_functions_of_spark_have_a_cast() -> None:
    condition = "CAST(levenshtein(symbol, 'x') AS INT) > 1 AND price >"
    text = f"{_T}SELECT * FROM t {_CLAUSE.replace('price >', condition)}"
    assert "TRY_CAST(levenshtein(symbol, 'x') AS INT) AS `celc_" in _call(text)
    shown = text.replace("MEASURES COUNT(*) AS n", "ALL ROWS PER MATCH")
    assert "(SELECT * EXCEPT (`celc_" in functions(shown).statement
    with pytest.raises(CelError, match=r"host-function.*whose type is not known") as caught:
        functions(text.replace("CAST(", "(").replace(" AS INT)", ")"))
    assert caught.value.diagnostics[0].span.start == text.index("levenshtein") - 4


def test_the_columns_of_a_file() -> None:
    """They are those of one table without a declaration."""
    schema = pa.schema([("symbol", pa.string()), ("ts", pa.int64()), ("price", pa.float64())])
    text = f"SELECT * FROM t {_CLAUSE} AS a JOIN T {_CLAUSE} AS b USING (symbol)"
    assert functions(text, undeclared=schema).names == ("q_clause_1", "q_clause_2")
    with pytest.raises(CelError, match="--schema gives those of 't'") as caught:
        functions(text.replace("JOIN T", "JOIN u"), undeclared=schema)
    assert caught.value.diagnostics[0].span.start == text.index("T MATCH")


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        (f"SELECT *\nFROM lake.t AS x {_CLAUSE}", "no-schema", (2, 6)),
        (f"SELECT *\nFROM (SELECT * FROM t, u) AS q {_CLAUSE}", "no-schema", (2, 6)),
        (
            f"{_T}SELECT * FROM t {_CLAUSE.replace('price >', ':k >')}",
            "missing-parameter",
            (2, 116),
        ),
        (f"{_T}SELECT * FROM t {_CLAUSE.replace('price >', '? >')}", "missing-parameter", (2, 116)),
        (f"{_T}CREATE VIEW v AS SELECT * FROM t {_CLAUSE}", "view-of-clause", (2, 1)),
        (f"{_T}SELECT * FROM (SELECT FROM FROM) AS q {_CLAUSE}", "source-refused", (2, 15)),
        (f"\nCREATE TABLE t (symbol NIX);\nSELECT * FROM t {_CLAUSE}", "unknown-type", (2, 24)),
        (
            f"{_T}SELECT * FROM t {_CLAUSE.replace('price >', 'prize >')}",
            "unknown-column",
            (2, 116),
        ),
        (f"{_T}SELECT 1 FROM t", "no-clause", (1, 1)),
    ],
)
def test_errors_of_functions(text: str, code: str, place: tuple[int, int]) -> None:
    with pytest.raises(CelError) as caught:
        functions(text)
    one = caught.value.diagnostics[0]
    at = caught.value.source.line_and_column(one.span.start)
    assert (one.code, at) == (code, place)


def test_what_stays_as_it_is() -> None:
    """Parameters outside, comments, a temporary view; double quotes are around names."""
    text = f'{_T}CREATE TEMP VIEW v AS SELECT "n", ? AS x -- what\nFROM t {_CLAUSE} WHERE n > :k;'
    made = functions(text, "2026 q.sql")
    assert made.names == ("q2026_q_clause_1",)
    assert made.statement.startswith(
        "CREATE TEMP VIEW v AS SELECT `n`, ? AS x -- what\nFROM q2026_q"
    )
    assert made.statement.endswith("  ORDER BY (`ts` NULLS FIRST)\n) WHERE n > :k")


def test_a_file_whose_name_is_none_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("2026-q.sql").write_text(f"{_T}SELECT * FROM t {_CLAUSE}")
    assert main(["compile", "2026-q.sql", "--to", "spark-functions"]) == 0
    said = capsys.readouterr().out
    assert "importlib.import_module('2026-q_udf').register_all(spark)" in said
    assert "FROM q2026_q_clause_1(" in said
    assert Path("2026-q_udf.py").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["q.sql", "--table", "t"], "leave out --table"),
        (["q.cel"], "is for a .sql file with MATCH_RECOGNIZE"),
        (["q.sql", "--ties", "simultaneous"], "--ties is for CEL"),
    ],
)
def test_what_the_command_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, options: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.sql").write_text(f"{_T}SELECT * FROM t {_CLAUSE}")
    Path("q.cel").write_text("CREATE STREAM S { EVENT A { id: INT } }\nSELECT * WHERE A")
    assert main(["compile", *options, "--to", "spark-functions"]) == 2
    assert said in capsys.readouterr().err
