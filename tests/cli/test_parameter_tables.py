"""`celc run --parameters rule=rules.csv`: tables of parameter sets, and messages on wrong ones."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from engines import interpreted

from celc.interfaces.cli import main

_QUERY = """CREATE STREAM Quotes { EVENT Q { ts: LONG, symbol: STRING, price: DOUBLE } }
PARAMETERS rule { id: LONG, symbol: STRING, factor: DOUBLE }
SELECT a, b FROM Quotes FOR EACH rule
WHERE (Q AS a ; Q AS b)
FILTER a.symbol = rule.symbol AND b.symbol = rule.symbol AND b.price > rule.factor * a.price
WITHIN 10 [ts]
"""
_EVENTS = "ts,symbol,price\n1,A,2.0\n2,B,3.0\n3,A,5.0\n4,B,3.5\n"
_RULES = "id,symbol,factor\n1,A,2.0\n2,B,1.1\n2,B,1.1\n"


@pytest.fixture
def said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """The exit code and what is printed of a run with a table of rules."""

    def said(rules: str, *options: str, name: str = "r.csv", query: str = _QUERY) -> Any:
        (tmp_path / "q.cel").write_text(query)
        (tmp_path / "e.csv").write_text(_EVENTS)
        (tmp_path / name).write_text(rules)
        options = options or ("--parameters", "rule=FILE", "--format", "json")
        options = tuple(one.replace("FILE", str(tmp_path / name)) for one in options)
        with interpreted():
            code = main(["run", str(tmp_path / "q.cel"), str(tmp_path / "e.csv"), *options])
        return code, capsys.readouterr()

    return said


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl"])
def test_matches_say_their_rows(said: Any, name: str) -> None:
    rules = _RULES
    if name == "r.jsonl":
        rows = [line.split(",") for line in _RULES.splitlines()[1:]]
        made = ({"id": int(a), "symbol": b, "factor": float(c)} for a, b, c in rows)
        rules = "".join(json.dumps(row) + "\n" for row in made)
    code, printed = said(rules, name=name)
    assert code == 0
    rows = [json.loads(line) for line in printed.out.splitlines()]
    assert [row["parameters"]["rule"] for row in rows] == [
        {"id": 1, "symbol": "A", "factor": 2.0},
        {"id": 2, "symbol": "B", "factor": 1.1},
    ]
    assert [row["labels"] for row in rows] == [{"a": [0], "b": [2]}, {"a": [1], "b": [3]}]


def test_totals_say_their_rows(said: Any) -> None:
    query = _QUERY.replace("SELECT a, b", "SELECT TOTAL COUNT(*) AS n")
    code, printed = said(_RULES, query=query)
    assert code == 0
    first = json.loads(printed.out.splitlines()[0])
    assert first["parameters"] == {"rule": {"id": 1, "symbol": "A", "factor": 2.0}}
    assert first["row"] == {"end_pos": 2, "end_time": 3, "n": 1}


def test_rows_of_a_query_meet_the_rows_of_a_table(said: Any) -> None:
    """And the query that is read is answered beside its reader."""
    head = _QUERY.split("SELECT")[0]
    below = "QUERY dear: SELECT a.price AS price, a.symbol AS symbol FROM Quotes\nWHERE Q AS a\n"
    reader = "QUERY two: SELECT d, e FROM dear FOR EACH rule\nWHERE (dear AS d ; dear AS e)\n"
    conditions = "FILTER d.symbol = rule.symbol AND e.price > rule.factor * d.price\n"
    code, printed = said(
        _RULES,
        *("--parameters", "rule=FILE", "--format", "json", "--order-by", "ts"),
        query=f"{head}{below}{reader}{conditions}",
    )
    assert code == 0
    rows = [json.loads(line) for line in printed.out.splitlines()]
    found = [
        (row["parameters"]["rule"]["id"], row["labels"]) for row in rows if "parameters" in row
    ]
    assert found == [
        (1, {"d": [0], "e": [2]}),
        (2, {"d": [1], "e": [2]}),
        (2, {"d": [1], "e": [3]}),
    ]
    assert len(rows) == len(found) + 4


def test_two_queries_read_a_table_that_comes_through_a_pipe(said: Any, tmp_path: Path) -> None:
    """It can be read once only."""
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(_RULES,))
    writer.start()
    head, clauses = _QUERY.split("SELECT a, b")
    query = f"{head}QUERY one: SELECT a, b{clauses} QUERY two: SELECT a, b{clauses}"
    options = ("--parameters", f"rule={pipe}", "--format", "json")
    code, printed = said(_RULES, *options, query=query)
    writer.join()
    assert code == 0
    rows = [json.loads(line) for line in printed.out.splitlines()]
    assert [row["query"] for row in rows] == ["one", "one", "two", "two"]


def test_a_table_without_rows_has_no_matches(said: Any) -> None:
    code, printed = said("id,symbol,factor\n")
    assert (code, printed.out) == (0, "")


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("id,symbol\n1,A\n", "cannot do without the column 'factor', which is missing"),
        ("id,symbol,factr\n1,A,2\n", "did you mean 'factr'?"),
        ("id,symbol,factor\n1,A,xx\n", "line 2: column 'factor': 'xx' is no DOUBLE"),
    ],
)
def test_what_does_not_fit_the_set_is_an_error(said: Any, rules: str, told: str) -> None:
    code, printed = said(rules)
    assert code != 0
    assert told in printed.err
    assert "r.csv" in printed.err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--format", "json"), "query 'q' is FOR EACH rule: name the file with its rows"),
        (("--parameters", "r.csv"), "write NAME=FILE, as in rule=rules.csv"),
        (("--parameters", "rules=r.csv"), "no query that is run is FOR EACH rules"),
        (("--parameters", "rule=none.csv"), "none.csv: there is no such file"),
        (("--parameters", "rule=a", "--parameters", "rule=b"), "is given twice"),
    ],
)
def test_options_that_cannot_be_are_errors(said: Any, options: Any, told: str) -> None:
    code, printed = said(_RULES, *options)
    assert code != 0
    assert told in printed.err


def test_lines_that_lack_an_attribute_are_an_error(said: Any) -> None:
    code, printed = said('{"id": 1, "symbol": "A"}\n', name="r.jsonl")
    assert code != 0
    assert "no row has 'factor', which parameter set 'rule' declares" in printed.err
