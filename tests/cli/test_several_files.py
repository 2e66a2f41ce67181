"""Several files that become one module: on the command line, and what cannot be one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from celc import Matcher
from celc.cli import main

_STREAM = """CREATE STREAM S { EVENT A { id: INT }, EVENT B { id: INT } }
"""


def _files(folder: Path, **bodies: str) -> list[str]:
    paths = []
    for name, text in bodies.items():
        paths.append(folder / f"{name}.cel")
        paths[-1].write_text(text)
    return list(map(str, paths))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_become_one_module(folder: Path, capsys: Any) -> None:
    one = f"{_STREAM}QUERY one: SELECT * FROM S WHERE A ; B"
    two = f"{_STREAM}-- the same stream\nQUERY two: SELECT * FROM S WHERE B ; A"
    files = _files(folder, a=one, b=two)
    assert main(["compile", *files]) == 2
    assert "2 files become one module: name it with -o" in capsys.readouterr().err
    assert main(["compile", *files, "-o", "all_udf.py"]) == 0
    assert "celc compile a.cel b.cel -o all_udf.py" in (folder / "all_udf.py").read_text()
    of_files = (folder / "all_udf.py").read_text().split("QUERY =")[1]
    (folder / "rules").mkdir()
    _files(folder / "rules", a=one, b=two)
    assert main(["compile", "rules", "-o", "rules_udf.py"]) == 0
    assert (folder / "rules_udf.py").read_text().split("QUERY =")[1] == of_files


def test_the_name_of_a_file_ends_no_comment(folder: Path) -> None:
    one, two = f"{_STREAM}QUERY one: SELECT * FROM S WHERE A ; B", "QUERY two: SELECT * WHERE B ; A"
    files = _files(folder, **{"a\nb": one, "c\u2028d": _STREAM + two})
    assert main(["compile", *files, "-o", "all_udf.py"]) == 0
    text = Matcher((folder / "all_udf.py").read_text()).QUERY
    assert f"-- a\\nb.cel\n{_STREAM}" in text
    assert f"-- c\\u2028d.cel\n{_STREAM}" in text


def test_files_are_run_together(folder: Path, capsys: Any) -> None:
    one, two = f"{_STREAM}QUERY one: SELECT * FROM S WHERE A ; B", "QUERY two: SELECT * WHERE B ; A"
    files = _files(folder, a=one, b=_STREAM + two)
    (folder / "events.csv").write_text("type,id\nA,1\nB,2\nA,3\n")
    assert main(["run", *files, "events.csv", "--format", "json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["query"], line["start"], line["end"]) for line in lines] == [
        ("one", 0, 1),
        ("two", 1, 2),
    ]
    assert main(["run", *files, "events.csv", "--query", "two", "--format", "json"]) == 0
    assert '"query": "two"' in capsys.readouterr().out
    assert main(["run", *files, "events.csv", "--query", "three"]) == 2
    assert "there is no query 'three' in the files" in capsys.readouterr().err


def test_files_that_do_not_go_together(folder: Path, capsys: Any) -> None:
    one = f"{_STREAM}QUERY one: SELECT * FROM S WHERE A ; B"
    other = _STREAM.replace("EVENT B { id: INT }", "EVENT B { id: LONG, v: INT }").replace(
        "A { id: INT", "A { id: LONG"
    )
    files = _files(folder, a=one, b=other + one.removeprefix(_STREAM))
    assert main(["compile", *files, "-o", "all_udf.py"]) == 1
    told = capsys.readouterr().err
    assert (
        "b.cel:1:15: error[declared-otherwise]: stream 'S' is declared otherwise in a.cel:1" in told
    )
    assert "error[query-of-two-files]: a query called 'one' stands in a.cel:2 as well" in told
    assert told.rstrip().endswith("2 errors")
    assert not (folder / "all_udf.py").exists()


def test_errors_of_several_files_are_all_told(folder: Path, capsys: Any) -> None:
    files = _files(
        folder, a=f"{_STREAM}SELECT x FROM S WHERE A", b=f"{_STREAM}SELECT y FROM S WHERE A"
    )
    assert main(["compile", *files, "-o", "all_udf.py"]) == 1
    told = capsys.readouterr().err
    assert "a.cel:2:8: error" in told
    assert "b.cel:2:8: error" in told
    assert "2 errors" in told


def test_with_a_query_the_warnings_are_about_it(folder: Path, capsys: Any) -> None:
    likes = [f"QUERY {n}: SELECT x FROM S WHERE A AS x FILTER x.s LIKE '.*{n}.*'" for n in "abc"]
    reader = "QUERY d: SELECT * FROM b WHERE b AS y ; b"
    streams = "CREATE STREAM S { EVENT A { s: STRING, ts: TIMESTAMP } }"
    (file,) = _files(folder, some="\n".join((streams, *likes, reader)))
    (folder / "events.csv").write_text("type,s,ts\nA,x,2026-07-01 00:00:00\n")
    for query, told in {"b": "b", "d": "b", "a": "a"}.items():
        assert main(["run", file, "events.csv", "--query", query, "--order-by", "ts"]) == 0
        said = capsys.readouterr().err
        assert [n for n in "abc" if f"'.*{n}.*'" in said] == [told], said
