"""Folders that give columns (`day=1`), and tables of Delta Lake, in `celc run`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from engines import interpreted

from celc.interfaces.cli import main

QUERY = """\
CREATE STREAM S {
  EVENT A { id: INT, day: DATE, site: STRING },
  EVENT B { id: INT, day: DATE, site: STRING }
}
SELECT a, b FROM S WHERE A AS a ; B AS b
"""
Run = Callable[..., tuple[int, list[tuple[Any, ...]], str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the query: the exit code, the values of each event of a match, and standard error."""
    monkeypatch.chdir(tmp_path)
    Path("q.cel").write_text(QUERY)

    def run(*arguments: str) -> tuple[int, list[tuple[Any, ...]], str]:
        with interpreted():
            code = main(["run", "q.cel", *arguments, "--order-by", "id", "--format", "rows"])
        printed = capsys.readouterr()
        rows = [json.loads(line) for line in printed.out.splitlines()]
        values = [
            tuple(event[name] for event in (row["a"][0], row["b"][0]) for name in event)
            for row in rows
        ]
        return code, values, printed.err

    return run


def put(name: str, content: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    if not name.endswith(".parquet"):
        Path(name).write_text(content)
        return
    rows = [row.split(",") for row in content.splitlines()[1:]]
    ids = pa.array([int(row[1]) for row in rows], pa.int32())
    pyarrow.parquet.write_table(pa.table({"type": [row[0] for row in rows], "id": ids}), name)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_folders_give_columns(ending: str, run: Run) -> None:
    first, second = "type,id\nA,1\n", "type,id\nB,2\n"
    if ending == "jsonl":
        first, second = '{"type": "A", "id": 1}\n', '{"type": "B", "id": 2}\n'
    put(f"log/day=2026-07-01/site=b%20c/e.{ending}", first)
    put(f"log/day=2026-07-02/site=__HIVE_DEFAULT_PARTITION__/e.{ending}", second)
    expected = [(0, 1, "2026-07-01", "b c", 1, 2, "2026-07-02", None)]
    assert run("log") == (0, expected, "")
    assert run(f"log/*/*/*.{ending}") == (0, expected, "")


def test_folders_above_the_named_one_give_none(run: Run) -> None:
    put("day=2026-07-01/log/e.csv", "type,id,day,site\nA,1,2026-08-01,x\nB,2,2026-08-01,x\n")
    code, found, _ = run("day=2026-07-01/log")
    assert (code, found[0][2]) == (0, "2026-08-01")
    assert run("day=2026-07-01/log/e.csv")[1] == found
    code, found, _ = run("*/log")
    assert (code, found[0][2]) == (0, "2026-07-01")


def test_a_folder_with_a_wrong_value_is_an_error(run: Run) -> None:
    put("log/day=tomorrow/site=x/e.csv", "type,id\nA,1\n")
    code, _, told = run("log")
    assert code == 2
    assert "the folder day=tomorrow gives all rows a value that is no DATE" in told


# --- Delta Lake -----------------------------------------------------------------------------------


@pytest.fixture
def delta() -> Any:
    return pytest.importorskip("deltalake", reason="needs the package deltalake: make venv")


def _write(delta: Any, rows: list[tuple[Any, ...]], **options: Any) -> None:
    columns = list(zip(*rows, strict=True))
    types = (pa.string(), pa.int32(), pa.string(), pa.string())
    names = ("type", "id", "day", "site")
    arrays = [pa.array(column, type) for column, type in zip(columns, types, strict=True)]
    table = pa.table(arrays, names=list(names))
    day = table["day"].cast(pa.date32())
    delta.write_deltalake("lake", table.set_column(2, "day", day), **options)


ROWS = [("A", 1, "2026-07-01", "x"), ("A", 2, "2026-07-01", "y z"), ("B", 3, "2026-07-02", None)]


@pytest.mark.parametrize("parts", [[], ["day"], ["site", "day"]])
def test_deleted_rows_of_a_table_do_not_count(parts: list[str], delta: Any, run: Run) -> None:
    _write(delta, ROWS, partition_by=parts or None)
    both = [(1, "2026-07-01", "x"), (2, "2026-07-01", "y z")]
    last = (3, "2026-07-02", None)

    def ids(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return sorted((row[1:4], row[5:8]) for row in found)

    code, found, told = run("lake")
    assert (code, ids(found), told) == (0, [(one, last) for one in both], "")
    delta.DeltaTable("lake").delete("id = 1")
    code, found, told = run("lake")
    assert (code, ids(found), told) == (0, [(both[1], last)], "")


def test_a_column_that_was_added_is_null_before(delta: Any, run: Run) -> None:
    first = pa.table({"type": ["A"], "id": pa.array([1], pa.int32())})
    delta.write_deltalake("lake", first)
    _write(delta, ROWS[2:], mode="append", schema_mode="merge")
    code, found, _ = run("lake")
    events = sorted((row[1:4], row[5:8]) for row in found)
    assert code == 0
    assert events == [((1, None, None), (3, "2026-07-02", None))]


def test_tables_that_are_not_read_as_they_are_are_refused(delta: Any, run: Run) -> None:
    _write(delta, ROWS)
    log = Path("lake/_delta_log/00000000000000000000.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors"],
                "writerFeatures": ["deletionVectors"],
            }
    log.write_text("\n".join(map(json.dumps, lines)))
    code, found, told = run("lake")
    assert (code, found) == (2, [])
    assert "whose files are not read as they are (deletionVectors)" in told
    assert "spark.read.format('delta').load('lake')" in told


def test_without_the_package_the_refusal_names_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("lake/_delta_log/0.json", "{}")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    code, _, told = run("lake")
    assert code == 2
    assert "install the package deltalake (pip install 'celc[tables]')" in told
    monkeypatch.undo()


def test_a_damaged_log_is_an_error_in_words(delta: Any, run: Run) -> None:
    put("lake/_delta_log/00000000000000000000.json", "{}\n")
    code, _, told = run("lake")
    assert code == 2
    assert told.startswith("celc: lake: ")
