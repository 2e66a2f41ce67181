"""Files with damaged rows: `--on-bad-row` and `--on-null-type` of `celc run`."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest
from engines import interpreted

from celc.interfaces.cli import main
from celc.interfaces.cli.reading.quotation_marks import QuotationMarks

QUERY = """\
CREATE STREAM Farm {
  EVENT T { id: LONG, value: DOUBLE, note: STRING, ts: TIMESTAMP },
  EVENT H { id: LONG, value: DOUBLE, note: STRING, ts: TIMESTAMP }
}
QUERY fire:
SELECT hot[id, value, note], dry[value, ts] FROM Farm
WHERE (T AS hot ; H AS dry) FILTER hot.value > 90 AND dry.value <= 5
PARTITION BY id WITHIN 10 MINUTES [ts]
"""

HEAD = "type,id,value,note,ts\n"


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, list[dict[str, Any]], str]]:
    """Runs a query on files, in their folder: the exit code, the rows, and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, query: str = QUERY) -> tuple[int, list[dict[str, Any]], str]:
        Path("q.cel").write_text(query)
        with interpreted():
            code = main(["run", "q.cel", *arguments, "--format", "rows"])
        printed = capsys.readouterr()
        return code, [json.loads(line) for line in printed.out.splitlines()], printed.err

    return run


# --- one row of each kind -------------------------------------------------------------------------

PAIR = """\
CREATE STREAM S {
  EVENT A { id: INT, note: STRING, at: TIMESTAMP }, EVENT B { id: INT, at: TIMESTAMP }
}
SELECT a[id, note], b[id] FROM S WHERE A AS a ; B AS b WITHIN 1 MINUTE [at]
"""
FIRST, LAST = b"A,1,x,2026-07-01 12:00:00", b"B,2,y,2026-07-01 12:00:30"

CSV_ROWS = {
    b"A,one,x,2026-07-01 12:00:01": "column 'id': 'one' is no INT",
    b"A,3000000000,x,2026-07-01 12:00:01": "column 'id': '3000000000' is no INT",
    b"A,1,x,yesterday": "column 'at': 'yesterday' is no TIMESTAMP of ISO 8601",
    b"A,1,x": "the file has 4 columns, and this row has 3",
    b"A,1,x,2026-07-01 12:00:01,": "the file has 4 columns, and this row has 5",
    b"A,1,\xff,2026-07-01 12:00:01": "column 'note': the text is not UTF-8",
    b'A,1,"x,2026-07-01 12:00:01': "a quotation mark is not closed",
    b'A,1,"x,2026-07-01 12:00:01\nA,1,y",2026-07-01': None,  # a text of two lines
    b"   ": "the file has 4 columns, and this row has 1",
}


@pytest.mark.parametrize(("row", "problem"), CSV_ROWS.items())
def test_a_row_of_csv_is_left_out_or_an_error(row: bytes, problem: str | None, run: Any) -> None:
    head = b"type,id,note,at\n"
    Path("e.csv").write_bytes(b"\n".join([head + FIRST, row, LAST, b""]))
    code, _, told = run("e.csv", query=PAIR)
    assert code == (0 if problem is None else 2)
    if problem is None:
        assert run("e.csv", "--on-bad-row", "skip", query=PAIR)[2] == ""
        return
    assert f"e.csv, line 3: {problem}" in told
    code, rows, told = run("e.csv", "--on-bad-row", "bad.jsonl", query=PAIR)
    assert code == 0
    assert [(one["start_pos"], one["end_pos"]) for one in rows] == [(0, 1)]
    assert told.startswith(
        f"celc: warning: query 'q': 1 of 3 rows cannot be read and were left out (--on-bad-row). "
        f"The first: e.csv, line 3: {problem}"
    )
    (bad,) = map(json.loads, Path("bad.jsonl").read_text().splitlines())
    assert (bad["file"], bad["line"]) == ("e.csv", 3)
    assert bad["row"] == row.decode("utf-8", "backslashreplace")
    assert problem in bad["problem"]


JSON_ROWS = {
    b'{"type":"A","id":"one","at":"2026-07-01 12:00:01"}': "'id' is of the kind string",
    b'{"type":"A","id":1,"at":"yesterday"}': "column 'at': 'yesterday' is no TIMESTAMP",
    b'{"type":"A","id":1': "no JSON",
    b"A,1,x": "no JSON: Invalid value",
    b"[1, 2]": "a row is an object, and this is of another kind: array",
    b'{"type":"A","id":1,"note":"\xff"}': "column 'note': the text is not UTF-8",
    b'{"type":"A\xff","id":1}': "column 'type': the text is not UTF-8",
    b'{"type":"A"}{"type":"A"}': "a line holds one row",
}


@pytest.mark.parametrize(("row", "problem"), JSON_ROWS.items())
def test_a_line_of_json_is_left_out_or_an_error(row: bytes, problem: str, run: Any) -> None:
    first = b'{"type":"A","id":1,"at":"2026-07-01 12:00:00"}'
    last = b'{"type":"B","id":2,"at":"2026-07-01 12:00:30"}'
    Path("e.jsonl").write_bytes(b"\n".join([first, row, last]))
    if "one row" not in problem:
        code, _, told = run("e.jsonl", query=PAIR)
        assert code == 2
        assert f"e.jsonl, line 2: {problem}" in told
    code, rows, told = run("e.jsonl", "--on-bad-row", "skip", query=PAIR)
    assert code == 0
    assert [(one["start_pos"], one["end_pos"]) for one in rows] == [(0, 1)]
    assert "1 of 3 rows cannot be read" in told
    assert f"e.jsonl, line 2: {problem}" in told


def test_what_the_query_does_not_read_may_be_damaged(run: Any) -> None:
    Path("e.csv").write_bytes(b"type,id,note,at,rest\n" + FIRST + b",\xff\n" + LAST + b",7\n")
    code, rows, told = run("e.csv", "--on-bad-row", "skip", query=PAIR)
    assert (code, len(rows), told) == (0, 1, "")


def test_the_lines_after_an_open_quotation_mark_are_rows(run: Any) -> None:
    rows = [FIRST, b'A,3,"x,2026-07-01 12:00:10', LAST, b'A,4,z"y,2026-07-01 12:00:20', LAST, b""]
    Path("e.csv").write_bytes(b"\n".join([b"type,id,note,at", *rows]))
    code, found, told = run("e.csv", "--on-bad-row", "skip", query=PAIR)
    assert code == 0
    assert "1 of 5 rows" in told
    # The line with the second quotation mark is a row, which has the mark in its text.
    assert {one["a"][0]["note"] for one in found} == {"x", 'z"y'}


def test_a_quotation_mark_that_takes_rows_in_is_an_error(run: Any) -> None:
    head, open_mark = b"type,id,note,at", b'A,3,"x,2026-07-01 12:00:10'
    good, bad = b"type,id,note,at\n" + FIRST + b"\n", b'B,5,"y",2026-07-01 12:00:40'
    many = b"\n".join([b"B,3," + b"z" * 1_000 + b",2026-07-01 12:00:30"] * 3_000)
    for text, line in {
        good + open_mark: 3,  # at the end of the file
        good + open_mark + b"\n" + LAST: 3,  # never closed
        good + open_mark + b"\n" + bad + b"\n" + LAST: 3,  # text after the mark that closes it
        good + b'B,5,"a\nb",\r\n' + open_mark + b"\n" + bad: 5,
        good + b'B,x,"a",2026-07-01 12:00:00\n' + open_mark + b"\n" + bad: 3,  # 'x' is no INT
        head + b',"rest\n' + FIRST + b"\n" + LAST: 1,
        good + many + b"\n" + open_mark + b"\n" + many: 3_003,  # beyond the first block
    }.items():
        Path("e.csv").write_bytes(text)
        code, found, told = run("e.csv", query=PAIR)
        assert (code, found, told.count("\n")) == (2, [], 1)
        assert f"e.csv, line {line:,}: " in told
        assert ("is no INT" if b"B,x," in text else "a quotation mark is not closed") in told


def test_quotation_marks_are_judged_alike_in_all_pieces() -> None:
    """The bytes come in pieces of any length; a state machine of each byte says what is wrong."""
    for seed in range(3_000):
        draw = random.Random(seed)
        text = bytes(draw.choices(b'"",\n\rab', k=draw.randrange(16)))
        size, got = draw.randrange(1, 6), b""
        marks = QuotationMarks(io.BytesIO(text), ",")  # type: ignore[arg-type]
        while piece := marks.read(size):
            got += piece
        assert marks.wrong == _wrong_mark(text), text
        assert marks.wrong is not None or got == text


def _wrong_mark(text: bytes) -> int | None:
    place, begins = 0, True
    while place < len(text):
        if not (begins and text[place] == b'"'[0]):
            begins = text[place] in b",\r\n"
            place += 1
            continue
        opened, has_lines, place, begins = place, False, place + 1, False
        while (sign := text[place : place + 2])[:1] != b'"' or sign == b'""':
            if not sign:
                return opened
            has_lines = has_lines or sign[0] in b"\r\n"
            place += 2 if sign == b'""' else 1
        place += 1
        if has_lines and place < len(text) and text[place] not in b",\r\n":
            return opened
    return None


def test_an_error_in_a_later_row_names_its_line(run: Any) -> None:
    rows = [b"A,x,,2026-07-01 12:00:00", b",1,,2026-07-01 12:00:00", FIRST]
    Path("e.csv").write_bytes(b"\n".join([b"type,id,note,at", *rows]))
    code, _, told = run("e.csv", "--on-bad-row", "skip", query=PAIR)
    assert code == 2
    assert told.startswith("celc: e.csv, line 3: query 'q': column 'type' is NULL in row 0")
    Path("late.csv").write_bytes(b"\n".join([b"type,id,note,at", *rows, b"B,2,,"]))
    options = ("--on-bad-row", "skip", "--on-null-type", "skip")
    code, _, told = run("late.csv", *options, query=PAIR)
    assert code == 2
    assert told.startswith("celc: late.csv, line 5: ")
    assert "'at' is NULL in row 1" in told


def test_bad_rows_are_written_once_although_events_are_read_twice(run: Any) -> None:
    Path("e.csv").write_bytes(
        b"\n".join([b"type,id,note,at", FIRST, b"A,x,,", LAST, b"B,y,,", b""])
    )
    options = ("--on-bad-row", "bad.jsonl")
    assert run("e.csv", *options, query=PAIR)[0] == 0
    lines = [json.loads(line)["line"] for line in Path("bad.jsonl").read_text().splitlines()]
    assert lines == [3, 5]


# --- NULL types -----------------------------------------------------------------------------------


def test_rows_without_a_type_are_left_out(run: Any) -> None:
    rows = [FIRST, b",7,,2026-07-01 12:00:10", LAST, b""]
    Path("e.csv").write_bytes(b"\n".join([b"type,id,note,at", *rows]))
    code, found, told = run("e.csv", "--on-null-type", "skip", query=PAIR)
    assert (code, [(one["start_pos"], one["end_pos"]) for one in found]) == (0, [(0, 1)])
    assert told == (
        "celc: warning: query 'q': 1 of 3 rows have no event type ('type' is NULL) and were left "
        "out (--on-null-type skip)\n"
    )
    table = pyarrow.csv.read_csv(
        "e.csv", convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    )
    ids = table.column("id").cast("int32")
    pyarrow.parquet.write_table(table.set_column(1, "id", ids), "e.parquet")
    assert run("e.parquet", "--on-null-type", "skip", query=PAIR) == (code, found, told)
    assert "every event needs one" in run("e.parquet", query=PAIR)[2]


ONE = "CREATE STREAM S { EVENT A { id: INT } }\nSELECT a[id] FROM S WHERE A AS a"


def test_a_file_of_json_without_types_has_one_type(run: Any) -> None:
    Path("e.jsonl").write_text('{"id": 1}\n{"id": 2}\n')
    code, found, told = run("e.jsonl", "--on-null-type", "skip", query=ONE)
    assert (code, len(found), told) == (0, 2, "")
    Path("e.jsonl").write_text('{"id": 1}\n{"id": 2, "type": "A"}\n')
    code, found, told = run("e.jsonl", "--on-null-type", "skip", query=ONE)
    assert (code, [one["a"][0]["id"] for one in found]) == (0, [2])
    assert "1 of 2 rows have no event type" in told


def test_a_later_type_of_a_long_file_counts_from_its_first_row(run: Any) -> None:
    many = 40_000  # more than Arrow reads at a time
    rows = "".join(f'{{"id": {n}, "pad": "{"x" * 30}"}}\n' for n in range(many))
    Path("e.jsonl").write_text(f'{rows}{{"id": 7, "type": "A"}}\n')
    assert "say the event type in all rows or none" in run("e.jsonl", query=ONE)[2]
    code, found, told = run("e.jsonl", "--on-null-type", "skip", query=ONE)
    assert (code, [one["a"][0]["id"] for one in found]) == (0, [7])
    assert f"{many:,} of {many + 1:,} rows have no event type" in told


# --- options --------------------------------------------------------------------------------------


def test_options_without_a_meaning_are_errors(run: Any) -> None:
    Path("e.csv").write_bytes(b"\n".join([b"type,id,note,at", FIRST, LAST, b""]))
    pyarrow.parquet.write_table(pyarrow.csv.read_csv("e.csv"), "e.parquet")
    code, _, told = run("e.parquet", "--on-bad-row", "skip", query=PAIR)
    assert code == 2
    assert "--on-bad-row is for csv and json" in told
    Path("old.jsonl").write_text("old")
    code, _, told = run("e.csv", "--on-bad-row", "old.jsonl", query=PAIR)
    assert (code, Path("old.jsonl").read_text()) == (2, "old")
    assert "use --force to overwrite it" in told
    code, _, told = run("e.csv", "--on-bad-row", "e.csv", "--force", query=PAIR)
    assert code == 2
    assert "is the file e.csv that is read" in told
    code, _, told = run("e.csv", "--on-bad-row", "o.json", "-o", "o.json", query=PAIR)
    assert code == 2
    assert "name two" in told


# --- a file with every kind of damage -------------------------------------------------------------


class DirtyFiles:
    """A million rows or fewer, with every kind of damage at 1 %, and the clean ones of them."""

    def __init__(self, rows: int, seed: int) -> None:
        draw = random.Random(seed)
        self.csv, self.json, self.clean = io.BytesIO(), io.BytesIO(), io.BytesIO()
        self.bad = self.without_type = 0
        for out in (self.csv, self.clean):
            out.write(HEAD.encode())
        for number in range(rows):
            self._add(draw, number)

    def _add(self, draw: random.Random, number: int) -> None:
        time = str(datetime(2026, 7, 1) + timedelta(seconds=number))
        cells = [draw.choice("TH"), str(draw.randrange(50)), f"{draw.random() * 100:.2f}", "note"]
        cells.append(time)
        keys = dict(zip(HEAD.strip().split(","), cells, strict=True))
        row = ",".join(cells).encode()
        line = json.dumps(keys | {"id": int(cells[1]), "value": float(cells[2])}).encode()
        kind = draw.randrange(100)
        if kind < 6:
            self.bad += 1
        elif kind == 6:
            self.without_type += 1
        else:
            self.clean.write(row + b"\n")
        match kind:
            case 0:
                row, line = row.replace(b",note", b",,note"), line[: draw.randrange(1, len(line))]
            case 1:
                row, line = row[:-20], b"garbage"
            case 2:
                row = row.replace(b",note", b"x,note")
                line = line.replace(b'"value": ', b'"value": "x", "old": ')
            case 3:
                row, line = row.replace(b"note", b"n\xff"), line.replace(b'"note", ', b'"n\xff", ')
            case 4:
                row, line = row[:-2] + b"7x", line.replace(b'"ts": "', b'"ts": "x')
            case 5:
                row, line = row.replace(b",note", b',"note'), b"[1, 2]"
            case 6:
                row, line = row[1:], line.replace(b'"type"', b'"kind"')
        self.csv.write(row + b"\n")
        self.json.write(line + b"\n")

    def matches(self) -> list[tuple[int, float, float]]:
        """The matches of the clean rows, found by pandas."""
        import pandas

        rows = pandas.read_csv(io.BytesIO(self.clean.getvalue()), parse_dates=["ts"])
        hot = rows[(rows.type == "T") & (rows.value > 90)]
        dry = rows[(rows.type == "H") & (rows.value <= 5)]
        pairs = hot.reset_index().merge(dry.reset_index(), on="id")
        later = (pairs.index_y > pairs.index_x) & (
            pairs.ts_y - pairs.ts_x <= pandas.Timedelta("10min")
        )
        found = pairs[later][["id", "value_x", "value_y"]]
        return sorted(map(tuple, found.values.tolist()))


def told_of(files: DirtyFiles, rows: int) -> list[str]:
    return [
        f"{files.bad:,} of {rows:,} rows cannot be read and were left out",
        f"{files.without_type:,} of {rows - files.bad:,} rows have no event type",
    ]


@pytest.mark.each(2)
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_dirty_file_has_the_matches_of_its_clean_rows(ending: str, run: Any) -> None:
    rows = 12_000
    files = DirtyFiles(rows, seed=5)
    text = files.csv if ending == "csv" else files.json
    Path(f"e.{ending}").write_bytes(text.getvalue())
    options = ("--on-bad-row", "bad.jsonl", "--on-null-type", "skip")
    code, found, told = run(f"e.{ending}", *options)
    assert code == 0
    values = [(one["id"], one["hot"][0]["value"], one["dry"][0]["value"]) for one in found]
    assert sorted(values) == files.matches()
    for words in told_of(files, rows):
        assert words in told
    assert len(Path("bad.jsonl").read_text().splitlines()) == files.bad


@pytest.mark.long
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_million_dirty_rows_take_no_more_memory_than_a_few(ending: str, tmp_path: Path) -> None:
    # Not ru_maxrss: it begins with the memory of the process that started this one, which has the
    # rows.
    program = (
        "import sys; from celc.interfaces.cli import main; code = main(sys.argv[1:]); "
        "status = open('/proc/self/status').read(); "
        "print(status.partition('VmHWM:')[2].split()[0], file=sys.stderr); sys.exit(code)"
    )
    # With PARTITION BY the events would be gathered and sorted, and Parquet gathers many matches.
    text = QUERY.replace("dry.value <= 5", "dry.value <= 5 AND hot.id = dry.id")
    (tmp_path / "q.cel").write_text(text.replace("PARTITION BY id ", "").replace("> 90", "> 99.5"))
    used = []
    for rows in (200_000, 1_000_000):
        files = DirtyFiles(rows, seed=rows)
        events, out = tmp_path / f"e{rows}.{ending}", tmp_path / f"m{rows}.parquet"
        events.write_bytes((files.csv if ending == "csv" else files.json).getvalue())
        options = ["--on-bad-row", str(tmp_path / f"bad{rows}.jsonl"), "--on-null-type", "skip"]
        command = [sys.executable, "-c", program, "run", str(tmp_path / "q.cel"), str(events)]
        ran = subprocess.run(
            [*command, "-o", str(out), *options], check=True, stderr=subprocess.PIPE, text=True
        )
        for words in told_of(files, rows):
            assert words in ran.stderr
        table = pyarrow.parquet.read_table(out).to_pylist()
        pairs = [(one["hot"][0], one["dry"][0]) for one in table]
        values = [(hot["id"], hot["value"], dry["value"]) for hot, dry in pairs]
        assert sorted(values) == [one for one in files.matches() if one[1] > 99.5]
        used.append(int(ran.stderr.split()[-1]))
    assert used[1] < used[0] * 1.3
