"""`celc compile --to spark-sql` and `--to duckdb-sql`: statements, their files, what is refused.

The statements of three queries of the documents are golden files in `tests/sql`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pytest
from golden_files import compare
from places import ROOT, TESTS
from test_docs import blocks_in

from celc.interfaces.cli import main

_STREAM = """CREATE STREAM S { EVENT A { id: INT, ts: LONG }, EVENT B { id: INT, ts: LONG } }
"""
_PAIR = f"{_STREAM}SELECT * FROM S WHERE A ; B WITHIN 5 [ts]\n"

_GOLDEN = {
    # Neighbours of a partition; an absence between two; two types and a key.
    "cards": (
        "recipes/a-card-in-two-cities",
        ["--to", "spark-sql", "--order-by", "ts", "--positions"],
    ),
    "again": ("recipes/first-login-after-a-quiet-month", ["--to", "spark-sql", "--order-by", "ts"]),
    "fire": ("joins", ["--to", "duckdb-sql", "--tiebreak", "row", "--positions"]),
}


def _file_of(page: str, name: str) -> str:
    """A file that a page of the documents shows."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    (found,) = (one.text for one in blocks_in(text) if one.comment == f"file: {name}")
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", _GOLDEN)
def test_golden_statements(name: str, folder: Path, capsys: Any, update: bool) -> None:
    page, options = _GOLDEN[name]
    (folder / f"{name}.cel").write_text(_file_of(page, f"{name}.cel"))
    assert main(["compile", f"{name}.cel", *options]) == 0
    compare(TESTS / "sql" / f"{name}.sql", capsys.readouterr().out, update)


def test_every_golden_statement_is_compared() -> None:
    assert {path.stem for path in (TESTS / "sql").glob("*.sql")} == {*_GOLDEN}


def test_a_statement_finds_the_matches_of_the_page(folder: Path) -> None:
    """Of the recipe of cards, in DuckDB, from a file of the command line."""
    (folder / "cards.cel").write_text(_file_of("recipes/a-card-in-two-cities", "cards.cel"))
    (folder / "cards.csv").write_text(_file_of("recipes/a-card-in-two-cities", "cards.csv"))
    arguments = ["--to", "duckdb-sql", "--order-by", "ts", "--table", "main.cards", "-o", "q.sql"]
    assert main(["compile", "cards.cel", *arguments]) == 0
    table = pa.csv.read_csv("cards.csv")
    place = table.column_names.index("ts")
    times = table["ts"].cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))
    connection = duckdb.connect()
    connection.register("given", table.set_column(place, "ts", times))
    connection.execute("CREATE TABLE cards AS SELECT * FROM given")
    rows = connection.sql(f"SELECT * EXCLUDE (start_time, end_time) FROM ({_query('q.sql')})")
    assert sorted(rows.fetchall()) == [("c1", "Lima", "Rome"), ("c1", "Rome", "Lima")]
    assert main(["compile", "cards.cel", *arguments, "--positions", "--force"]) == 0
    rows = connection.sql(f"SELECT * EXCLUDE (start_time, end_time) FROM ({_query('q.sql')})")
    assert sorted(rows.fetchall()) == [("c1", 1, 2, "Lima", "Rome"), ("c1", 3, 4, "Rome", "Lima")]


def _query(path: str) -> str:
    return Path(path).read_text().strip().removesuffix(";")


def test_each_query_is_a_statement(folder: Path, capsys: Any) -> None:
    one = f"{_STREAM}QUERY one: SELECT * FROM S WHERE A ; B\n"
    (folder / "q.cel").write_text(one + "QUERY two: SELECT A FROM S WHERE A ALL B WITHIN 3 [ts]\n")
    assert main(["compile", "q.cel", "--to", "spark-sql", "--order-by", "ts"]) == 0
    printed = capsys.readouterr().out
    assert printed.count(";\n") == 2
    assert [line.split(":")[0] for line in printed.splitlines() if ", by celc" in line] == [
        "-- one",
        "-- two",
    ]


@pytest.mark.parametrize(
    ("formula", "what", "caret"),
    [
        ("A+ ; B", "have matches of any number of events", "A+"),
        ("A{2,} ; B", "have matches of any number of events", "A{2,}"),
        ("A ; !(A ; B) ; B", "what is absent has several events", "(A ; B)"),
        ("LAST(A ; B)", "a selector chooses among matches", "LAST(A ; B)"),
    ],
)
def test_what_is_none_of_joins(
    formula: str, what: str, caret: str, folder: Path, capsys: Any
) -> None:
    (folder / "q.cel").write_text(f"{_STREAM}SELECT * FROM S WHERE {formula} WITHIN 5 [ts]\n")
    assert main(["compile", "q.cel", "--to", "spark-sql"]) == 1
    told = capsys.readouterr().err
    assert "error[not-joins]: this query cannot be written as joins" in told
    assert what in told
    marked = next(line for line in told.splitlines() if set(line) == {" ", "^"})
    assert marked.count("^") == len(caret)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--table", "t"], "--table is for statements"),
        (["--to", "spark-sql", "--standalone"], "--standalone is for modules"),
        (["--to", "spark-sql", "--order-by", "id"], "a window is measured on 'ts'"),
        (["--to", "duckdb-sql", "--ties", "simultaneous"], "its events can be simultaneous"),
    ],
)
def test_wrong_command_lines(arguments: list[str], told: str, folder: Path, capsys: Any) -> None:
    (folder / "q.cel").write_text(_PAIR)
    assert main(["compile", "q.cel", *arguments]) != 0
    assert told in capsys.readouterr().err


def test_computed_values_have_no_statement_for_duckdb(folder: Path, capsys: Any) -> None:
    text = "SELECT * FROM S WHERE A AS x ; B AS y FILTER SQRT(x.v) = SQRT(y.v)\n"
    stream = (
        "CREATE STREAM S { EVENT A { ts: TIMESTAMP, v: INT }, EVENT B { ts: TIMESTAMP, v: INT } }\n"
    )
    (folder / "q.cel").write_text(stream + text)
    arguments = ["compile", "q.cel", "--order-by", "ts", "--to"]
    assert main([*arguments, "duckdb-sql"]) == 2
    assert "it computes values of single events" in capsys.readouterr().err
    assert main([*arguments, "spark-sql"]) == 0


def test_an_option_of_before(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["compile", "q.cel", "--to", "spark-sql", "--no-positions"])
    assert "no positions unless --positions asks for them" in capsys.readouterr().err


def test_a_query_without_an_order(folder: Path, capsys: Any) -> None:
    (folder / "q.cel").write_text(f"{_STREAM}SELECT * FROM S WHERE A ; B\n")
    assert main(["compile", "q.cel", "--to", "spark-sql"]) == 2
    assert "a table of SQL has no order of its own" in capsys.readouterr().err
