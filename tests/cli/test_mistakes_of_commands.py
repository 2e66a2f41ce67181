"""What `celc run` says to arguments in the wrong place, and to events without a column of types."""

from __future__ import annotations

from pathlib import Path

import pytest

from celc.interfaces.cli.command import main

QUERY = "CREATE STREAM S { EVENT A { v: INT }, EVENT B { v: INT } }\nSELECT * FROM S WHERE A ; B\n"


def said(tmp_path: Path, events: str, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    (tmp_path / "q.cel").write_text(QUERY, encoding="utf-8")
    (tmp_path / name).write_text(events, encoding="utf-8")
    assert main(["run", str(tmp_path / "q.cel"), str(tmp_path / name)]) == 2
    return capsys.readouterr().err


def test_the_query_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.cel").write_text(QUERY, encoding="utf-8")
    (tmp_path / "e.csv").write_text("type,v\nA,1\n", encoding="utf-8")
    query, events = str(tmp_path / "q.cel"), str(tmp_path / "e.csv")
    assert main(["run", events, query]) == 2
    told = f"celc: the query comes before its events: celc run {query} {events}\n"
    assert capsys.readouterr().err == told


def test_a_missing_column_of_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = said(tmp_path, "kind,v\nA,1\n", "e.csv", capsys)
    assert told.endswith("if another column has the event types, name it with --type-column\n")


def test_other_columns_say_nothing_of_types(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--type-column" not in said(tmp_path, "kind;v\nA;1\n", "e.csv", capsys)


def test_rows_without_a_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = said(tmp_path, '{"kind": "A", "v": 1}\n', "e.jsonl", capsys)
    assert "another column of types is named by" in told
    assert "--type-column" in told
