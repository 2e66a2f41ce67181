"""`celc run` for a `.sql` file with a whole statement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from celc.interfaces.cli import main

_STATEMENT = """WITH dear AS (SELECT * FROM quotes WHERE price > 1)
SELECT m.symbol, COUNT(*) AS runs FROM dear MATCH_RECOGNIZE (
  PARTITION BY symbol ORDER BY ts MEASURES COUNT(*) AS n
  PATTERN (a b+) DEFINE b AS price > PREV(price)) AS m
GROUP BY m.symbol ORDER BY m.symbol
"""
_TABLE = "CREATE TABLE quotes (symbol VARCHAR, ts INT, price DOUBLE, more INT);\n"
_ROWS = "symbol,ts,price\nX,1,2\nX,2,3\nX,3,2.5\nX,4,4\nY,1,0.5\nY,2,8\nY,3,9\n"
_WANTED = [{"symbol": "X", "runs": 2}, {"symbol": "Y", "runs": 1}]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("q.sql").write_text(_STATEMENT)
    Path("quotes.csv").write_text(_ROWS)
    Path("other.csv").write_text(_ROWS.replace(",", ";"))
    return tmp_path


def _rows(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    "given",
    [
        ["quotes.csv"],
        ["--table", "quotes=quotes.csv"],
        ["--table", "quotes=other.csv", "--delimiter", ";"],
    ],
)
def test_statements(folder: Path, capsys: Any, given: list[str]) -> None:
    assert main(["run", "q.sql", *given, "--format", "rows"]) == 0
    assert _rows(capsys.readouterr().out) == _WANTED
    assert main(["run", "q.sql", *given, "--max-matches", "1"]) == 0
    said = capsys.readouterr()
    assert "1 row\n" in said.out
    assert "stopped after 1 rows" in said.err


def test_a_table_before_the_statement_has_types(folder: Path, capsys: Any) -> None:
    Path("q.sql").write_text(_TABLE + _STATEMENT)
    assert main(["run", "q.sql", "quotes.csv", "--format", "rows"]) == 0
    assert _rows(capsys.readouterr().out) == _WANTED
    Path("q.sql").write_text(_TABLE + _STATEMENT.replace("price > PREV", "prize > PREV"))
    assert main(["run", "q.sql", "quotes.csv"]) == 1
    assert "q.sql:5:30: error[unknown-column]" in capsys.readouterr().err


def test_a_query_alone_is_none(folder: Path, capsys: Any) -> None:
    """What is wrong inside its clause is told of it, and its table is any file."""
    alone = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a b"
    declared = _TABLE.replace("quotes", "t") + alone
    Path("q.sql").write_text(f"{declared}+) DEFINE b AS price > 1)")
    assert main(["run", "q.sql", "quotes.csv", "--format", "rows"]) == 0
    capsys.readouterr()
    Path("q.sql").write_text(f"{declared}++) DEFINE b AS price > 1)")
    assert main(["run", "q.sql", "quotes.csv"]) == 1
    assert "error[syntax]: '+' cannot stand here" in capsys.readouterr().err


def test_a_query_alone_takes_the_columns_of_its_file(folder: Path, capsys: Any) -> None:
    """Whatever the file is called. Options that DuckDB does not take want CREATE TABLE."""
    Path("q.sql").write_text(
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES COUNT(*) AS n "
        "PATTERN (a b+) DEFINE b AS price > PREV(price))"
    )
    wanted = [("X", 2), ("X", 2), ("Y", 3)]
    assert main(["run", "q.sql", "quotes.csv", "--format", "rows"]) == 0
    rows = _rows(capsys.readouterr().out)
    assert [(row["symbol"], row["n"]) for row in rows] == wanted
    assert main(["run", "q.sql", "other.csv", "--delimiter", ";", "--format", "rows"]) == 0
    assert _rows(capsys.readouterr().out) == rows
    for given in (["quotes.csv", "other.csv"], ["quotes.csv", "--time-format", "s"]):
        assert main(["run", "q.sql", *given]) == 1
        assert "error[no-schema]: the columns of table 't' are not known" in capsys.readouterr().err


@pytest.mark.parametrize("declared", [False, True])
def test_problems_of_rows_are_told(declared: bool, folder: Path, capsys: Any) -> None:
    text = "SELECT * FROM quotes MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a b))"
    Path("q.sql").write_text(_TABLE * declared + text)
    Path("quotes.csv").write_text(f"{_ROWS}Y,,3\n")
    assert main(["run", "q.sql", "quotes.csv"]) == 2
    place = "quotes.csv, line 9: query 'q'" if declared else "query 'clause_1'"
    told = f"celc: {place} is in the order of 'ts', and row 7 (counted from 0) has NULL there. "
    assert capsys.readouterr().err.startswith(told)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "name the files of events: celc run q.sql EVENTS"),
        (["--table", "quotes"], "--table quotes: write NAME=FILE"),
        (["nix.csv"], "DuckDB refuses it: IO Error: No files found"),
        (["quotes.csv", "--table", "quotes=other.csv"], "there are two files for the table quotes"),
        (["-"], "a statement reads files, and no standard input"),
        (["quotes.csv", "--match-id"], "--match-id is not for whole statements"),
        (["quotes.csv", "--format", "html"], "a report shows the matches of one query"),
        (["q.sql"], "q.sql: the ending of its name says no format"),
    ],
)
def test_what_cannot_be_run(folder: Path, capsys: Any, given: list[str], said: str) -> None:
    assert main(["run", "q.sql", *given]) == 2
    assert said in capsys.readouterr().err


def test_what_duckdb_refuses(folder: Path, capsys: Any) -> None:
    Path("q.sql").write_text(_STATEMENT.replace("AS runs", "AS runs, nix"))
    assert main(["run", "q.sql", "quotes.csv"]) == 2
    assert 'DuckDB refuses the statement: Binder Error: Referenced column "nix"' in (
        capsys.readouterr().err
    )
    Path("q.cel").write_text("CREATE STREAM S { EVENT A { id: INT } }\nSELECT * WHERE A")
    assert main(["run", "q.cel", "quotes.csv", "--table", "a=b.csv"]) == 2
    said = capsys.readouterr().err
    assert "--table is for a .sql file" in said
    assert "the rows of FOR EACH by --parameters a=b.csv" in said


def test_statements_are_checked(folder: Path, capsys: Any) -> None:
    """Names and types where the text declares the table, else the clause alone."""
    assert main(["check", "q.sql"]) == 0
    assert "q: fine" in capsys.readouterr().out
    wrong = _STATEMENT.replace("FROM dear", "FROM quotes").replace("price > PREV", "prize > PREV")
    Path("q.sql").write_text(_TABLE + wrong)
    assert main(["check", "q.sql"]) == 1
    assert "q.sql:5:30: error[unknown-column]" in capsys.readouterr().err
    Path("q.sql").write_text(_STATEMENT.replace("b+", "b++"))
    assert main(["check", "q.sql"]) == 1
    assert "q.sql:4:16: error[syntax]" in capsys.readouterr().err
    Path("q.sql").write_text(_STATEMENT + ";\nSELECT 1")
    assert main(["check", "q.sql"]) == 1
    assert "error[second-statement]" in capsys.readouterr().err
    Path("q.sql").write_text(_STATEMENT.replace("price > PREV", "nix(PREV(price)) > PREV"))
    assert main(["check", "q.sql"]) == 1
    assert "error[host-function]" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["compile", "q.sql", "-o", "q_udf.py"], ["explain", "q.sql"]])
def test_statements_become_no_module(folder: Path, capsys: Any, command: list[str]) -> None:
    assert main(command) == 2
    assert "q.sql has a whole statement, which a host runs" in capsys.readouterr().err
