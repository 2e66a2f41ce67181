"""Files that other programs write, and that are not quite what `celc run` reads."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from engines import interpreted

from celc.interfaces.cli import main
from celc.interfaces.cli.reading import text_blocks
from celc.interfaces.cli.reading.null_rows import NullRows

Run = Callable[..., tuple[int, str, str]]

QUERY = """\
CREATE STREAM S { EVENT A { id: INT, name: STRING, ts: TIMESTAMP } }
SELECT a FROM S WHERE A AS a WITHIN 1 HOUR [ts]
"""
NAMES = "type,id,name,ts"
TIME = "2026-07-01 12:00:00"


def row(number: int, **more: Any) -> str:
    ts = f"2026-07-01 12:00:{number:02}"
    return json.dumps({"type": "A", "id": number, "name": "x", "ts": ts, **more}) + "\n"


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the query on files with these bytes: (exit code, positions, standard error)."""
    monkeypatch.chdir(tmp_path)
    Path("q.cel").write_text(QUERY)

    def run(files: dict[str, str | bytes], *options: str) -> tuple[int, str, str]:
        for name, data in files.items():
            Path(name).write_bytes(data if isinstance(data, bytes) else data.encode())
        with interpreted():
            code = main(["run", "q.cel", *files, "--format", "json", *options])
        out, err = capfd.readouterr()
        found = " ".join(str(json.loads(line)["start"]) for line in out.splitlines())
        return code, found, err

    return run


@pytest.mark.parametrize("line", ["null", " \tnull", "null x", "nullx", "null,"])
@pytest.mark.parametrize("before", [0, 1, 40])
def test_a_line_that_begins_with_null_is_no_row(
    line: str, before: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow 26 ends the process where such a line is the first of a block."""
    monkeypatch.setattr(text_blocks, "_BLOCK", 256)
    rows = [row(number) for number in range(50)]
    text = "".join([*rows[:before], line + "\n", *rows[before:]])
    code, _, err = run({"a.jsonl": text})
    told = "a row is an object, and this is of another kind: null"
    assert (code, err) == (2, f"celc: a.jsonl, line {before + 1}: {told}\n")
    code, found, err = run({"a.jsonl": text}, "--on-bad-row", "skip")
    assert (code, found) == (0, " ".join(map(str, range(50))))
    assert "1 of 51 rows cannot be read and were left out (--on-bad-row). The first: a" in err


def test_a_file_of_null_alone_is_refused(run: Run) -> None:
    assert run({"a.jsonl": "null"})[0] == 2
    assert run({"a.jsonl": b"\xef\xbb\xbfnull\n"})[0] == 2


def test_null_rows_are_found_however_the_bytes_come() -> None:
    rng = random.Random(1)
    kinds = ["null", " null", '{"a":null}', '"null"', "nul", "n", "", "  ", "\r", "nullnull", "x"]
    for _ in range(300):
        lines = [rng.choice(kinds) for _ in range(rng.randint(1, 8))]
        begin, end = rng.choice(("", "", "\ufeff")), rng.choice(("", "\n"))
        stream = NullRows(pa.BufferReader((begin + "\n".join(lines) + end).encode()))
        found = b""
        while piece := stream.read(rng.choice((1, 2, 3, 100, 5))):
            found += piece
        are_null = [line.lstrip().startswith("null") for line in lines]
        wanted = "\n".join(
            line.replace("null", "0   ", 1) if is_null else line
            for line, is_null in zip(lines, are_null, strict=True)
        )
        assert found.decode() == begin + wanted + end


def test_names_of_columns_without_an_end_are_a_file_without_rows(run: Run) -> None:
    assert run({"a.csv": NAMES}) == (0, "", "")
    assert run({"a.csv": f"\n\n{NAMES}", "b.csv": f"{NAMES}\nA,1,x,{TIME}\n"}) == (0, "0", "")


def test_a_deep_value_that_the_query_does_not_read_is_passed_over(run: Run) -> None:
    deep = "[" * 5000 + "]" * 5000
    text = '{"type": "A", "id": 1, "deep": ' + deep + f', "ts": "{TIME}"}}\n'
    code, found, err = run({"a.jsonl": text})
    assert (code, found) == (0, "0")
    assert "no row has 'name'" in err
    assert main(["init", "a.jsonl"]) == 2


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-be"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_text_in_utf_16_is_told(coding: str, name: str, run: Run) -> None:
    text = f"\ufeff{NAMES}\n" if coding == "utf-16-be" else f"{NAMES}\n"
    code, _, err = run({name: text.encode(coding)})
    assert code == 2
    assert err.startswith(f"celc: {name}: the text is UTF-16, and files are read in UTF-8: ")


@pytest.mark.parametrize(
    ("name", "text", "line", "told"),
    [
        ("a.csv", f"{NAMES}\nA,1,caf\xe9,{TIME}\n", 2, "column 'name': the text is not UTF-8: "),
        ("a.jsonl", row(1).replace("x", "\xe9"), 1, "column 'name': the text is not UTF-8: "),
    ],
)
def test_a_text_in_another_coding_is_told(
    name: str, text: str, line: int, told: str, run: Run
) -> None:
    code, _, err = run({name: text.encode("latin-1")})
    assert code == 2
    assert err.startswith(f"celc: {name}, line {line}: {told}convert the file")


def test_the_lines_of_an_array_are_shown(run: Run) -> None:
    code, _, err = run({"a.json": f"[{row(1)}]"})
    assert code == 2
    assert "of another kind: array: give each row a line of its own" in err
    assert "jq -c '.[]'" in err


def test_times_that_are_numbers_name_the_option(run: Run) -> None:
    text = row(1, ts=1782907200)
    code, _, err = run({"a.jsonl": text})
    assert code == 2
    assert "'ts' is of the kind number, and string is needed for a time: " in err
    assert "--time-format s, ms, us or ns" in err
    assert run({"a.jsonl": text}, "--time-format", "s") == (0, "0", "")


def test_a_column_of_another_type_names_its_file(run: Run, tmp_path: Path) -> None:
    fine = pa.table({"type": ["A"], "id": pa.array([1], pa.int32()), "name": ["x"]})
    fine = fine.append_column("ts", pa.array([1782907200], pa.timestamp("s")))
    wrong = fine.set_column(2, "name", pa.array([b"x"]))
    for name, table in (("a", fine), ("b", wrong)):
        pa.parquet.write_table(table, tmp_path / f"{name}.parquet")
    with interpreted():
        files = {f"{name}.parquet": (tmp_path / f"{name}.parquet").read_bytes() for name in "ab"}
        code, _, err = run(files)
    assert code == 2
    told = "declares 'name' as STRING, but the column's type is binary: "
    assert err.startswith(f"celc: b.parquet: query 'q' {told}")


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz"])
def test_a_damaged_archive_is_told_by_each_command(
    name: str, run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    text = f"{NAMES}\nA,1,x,{TIME}\n" if "csv" in name else row(1)
    code, _, err = run({name: gzip.compress(text.encode())[:-6]})
    assert (code, err[: err.index(":", 6)]) == (2, f"celc: {name}")
    assert main(["init", name]) == 2
    assert capfd.readouterr().err == err
