"""`celc init` and `celc.declare`: what they write for files and tables is in the layout of `celc
fmt`, compiles, and finds matches."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

import celc
from celc.interfaces.cli.command import main

TIMES = [datetime(2026, 7, 1) + timedelta(minutes=3 * row) for row in range(300)]


def _nested(path: Path) -> str:
    rows = [
        {
            "type": ("login", "page view", "logout")[row % 3],
            "user": {"id": row % 5, "geo": {"lat": 1.5 * row}},
            "tags": ["a", "b"],
            "mixed": row if row % 2 else "x",
            "either": {"a": 1} if row % 2 else 5,
            "ts": f"{time.isoformat()}Z",
        }
        for row, time in enumerate(TIMES)
    ]
    (path / "nested.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return "nested.jsonl"


def _semicolons(path: Path) -> str:
    rows = "".join(f"{'ab'[row % 2]};{row},5;0{row};{row}.5\n" for row in range(50))
    (path / "semi.csv").write_text(f"kind;value;id;x y\n{rows}")
    return "semi.csv --type-column kind"


def _with_bom(path: Path) -> str:
    rows = "".join(f"{'AB'[row % 2]},{time},{row}\r\n" for row, time in enumerate(TIMES))
    (path / "bom.csv").write_bytes(b"\xef\xbb\xbf" + f"type,time,v\r\n{rows}".encode())
    return "bom.csv"


def _dates_as_texts(path: Path) -> str:
    rows = "".join(
        f"{('open', 'close')[row % 2]},{time:%d.%m.%Y %H:%M},{time:%d.%m.%Y %H:%M}\n"
        for row, time in enumerate(TIMES)
    )
    (path / "dates.csv").write_text(f"event,when,seen\n{rows}")
    return "dates.csv --type-column event"


def _wide(path: Path) -> str:
    names = ",".join(f"c{number}" for number in range(500))
    rows = "".join(
        f"{'AB'[row % 2]},{row},{','.join(str(row * k) for k in range(500))}\n" for row in range(40)
    )
    (path / "wide.csv").write_text(f"type,ts,{names}\n{rows}")
    return "wide.csv"


def _empty(path: Path) -> str:
    (path / "empty.csv").write_text("type,ts,v\n")
    return "empty.csv"


def _partitioned(path: Path) -> str:
    for day in (0, 1):
        folder = path / "parts" / f"day%20of=2026-07-0{day + 1}" / f"n={day or 'x'}"
        folder.mkdir(parents=True)
        table = pa.table({"type": ["A", "B"], "v": [day, 2 * day + 1]})
        pyarrow.parquet.write_table(table, folder / "a.parquet")
    return "parts"


def _one_type(path: Path) -> str:
    rows = "".join(f"{time.isoformat()},{row % 7},\n" for row, time in enumerate(TIMES))
    (path / "one-type.csv").write_text(f"ts,v,nothing\n{rows}")
    return "one-type.csv"


def _null_types(path: Path) -> str:
    rows = "".join(
        f"{('A', 'B', '')[row % 3]},{time.isoformat()}\n" for row, time in enumerate(TIMES)
    )
    (path / "nulls.csv").write_text(f"type,ts\n{rows}")
    return "nulls.csv"


def _rare_types(path: Path) -> str:
    rows = "".join(f"{'AB'[row % 2]},{row},x\n" for row in range(5000))
    (path / "rare.tsv").write_text(
        f"type,n,SELECT\n{rows}oops!,5000,\nFIRST,5001,\n".replace(",", "\t")
    )
    return "rare.tsv"


def _many_rows(path: Path, rows: int = 10_000_000) -> str:
    numbers = pa.array(range(rows))
    kinds = pa.array(["A", "B"]).take(pa.compute.bit_wise_and(numbers, 1))
    times = pa.compute.add(numbers, 1_782_000_000).cast(pa.timestamp("s"))
    table = pa.table({"type": kinds, "ts": times, "v": numbers})
    pyarrow.csv.write_csv(table, path / "many.csv")
    return "many.csv"


# What is made, the lines that the text must have, and whether the query finds matches.
SHAPES: dict[str, tuple[Callable[[Path], str], list[str], bool]] = {
    "nested JSON": (
        _nested,
        [
            "  EVENT `page view` {\n"
            "    `user.id`: LONG, `user.geo.lat`: DOUBLE, tags: ARRAY<STRING>, ts: PRIMARY_TIME\n"
            "  }, -- 100 rows\n",
            "'mixed' (it has numbers and texts)",
            "'either' (some rows have an object there, and others have none)",
            "WITHIN 1 HOUR\n",
        ],
        True,
    ),
    "semicolons": (
        _semicolons,
        [
            "-- Run it: celc run semi.cel semi.csv --type-column kind --delimiter ';'\n",
            "  EVENT a { value: STRING, id: STRING, `x y`: DOUBLE }, -- 25 rows\n",
            "WITHIN 100 EVENTS\n",
        ],
        True,
    ),
    "a BOM": (_with_bom, ["  EVENT A { time: PRIMARY_TIME, v: LONG }, -- 150 rows\n"], True),
    "dates as texts": (
        _dates_as_texts,
        [
            "--type-column event --time-format '%d.%m.%Y %H:%M'\n",
            "  EVENT open { when: PRIMARY_TIME, seen: TIMESTAMP }, -- 150 rows\n",
        ],
        True,
    ),
    "500 columns": (
        _wide,
        ["    c499: LONG\n", "-- 'ts' seems to order", "WITHIN 10 [ts]\n"],
        True,
    ),
    "no rows": (
        _empty,
        ["empty.csv, which has no rows", "EVENT empty { ts: STRING, v: STRING }"],
        False,
    ),
    "a partitioned folder": (
        _partitioned,
        ["from the 4 rows of 2 files", "EVENT A { v: LONG, `day of`: DATE, n: STRING }"],
        True,
    ),
    "one type": (
        _one_type,
        ["  EVENT `one-type` { ts: PRIMARY_TIME, v: LONG, nothing: STRING } -- 300 rows\n"],
        True,
    ),
    "NULL types": (
        _null_types,
        ["which --on-null-type skip leaves out: 100\n", "nulls.csv --on-null-type skip\n"],
        True,
    ),
    "rare types": (
        _rare_types,
        [
            "  -- EVENT `oops!` { n: LONG }, -- 1 row\n  -- EVENT FIRST { n: LONG }, -- 1 row\n",
            "  EVENT B { n: LONG, SELECT: STRING }, -- 2,500 rows\n",
            "  EVENT OTHER {}\n}\n",
        ],
        True,
    ),
}


@pytest.fixture
def run(tmp_path: Path, capsys: Any, monkeypatch: Any) -> Any:
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return code, *capsys.readouterr()

    return command


def _ran(run: Any, path: Path, given: str) -> tuple[str, str]:
    """The text that `celc init` writes, and the answer of the command that it names."""
    code, text, said = run("init", *given.split(" "))
    assert (code, said) == (0, "")
    assert celc.format_text(text) == text
    found = re.search(r"^-- Run it: celc (run (\S+\.cel) .*)$", text, re.MULTILINE)
    assert found is not None
    (path / found[2].strip("'")).write_text(text)
    code, answer, said = run(*shlex.split(found[1]))
    assert code == 0, said
    assert "error" not in said
    return text, answer


@pytest.mark.each(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_what_it_writes_compiles_and_runs(shape: str, run: Any, tmp_path: Path) -> None:
    make, lines, matches = SHAPES[shape]
    text, answer = _ran(run, tmp_path, make(tmp_path))
    for line in lines:
        assert line in text
    assert bool(re.search(r"^[1-9][\d,]* match", answer, re.MULTILINE)) == matches, answer


@pytest.mark.long
def test_it_samples_ten_million_rows_and_says_so(run: Any, tmp_path: Path) -> None:
    text, answer = _ran(run, tmp_path, _many_rows(tmp_path))
    assert text.startswith("-- Written by celc init from the first 100,000 rows of many.csv.\n")
    assert "-- Rows that were not read may have other event types, other types" in text
    assert "  EVENT A { ts: PRIMARY_TIME, v: LONG }, -- 50,000 rows\n" in text
    assert re.search(r"^5,000,000 matches", answer, re.MULTILINE)


@pytest.mark.long
def test_more_rows_than_are_read_are_told(run: Any, tmp_path: Path) -> None:
    text, answer = _ran(run, tmp_path, _many_rows(tmp_path, 200_000))
    assert text.startswith("-- Written by celc init from the first 100,000 rows of many.csv.\n")
    assert re.search(r"^100,000 matches", answer, re.MULTILINE)
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(tmp_path / "many.csv"), tmp_path / "p.parquet")
    assert "from the first 100,000 rows of p.parquet." in run("init", "p.parquet")[1]


def test_columns_that_are_no_attributes_are_told(run: Any, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("Type,pos,v,v,,n\nA,1,2,3,4,5\n")
    text, _ = _ran(run, tmp_path, "e.csv")
    assert "Left out: 'v' (2 columns have this name), 'Type' (celc needs a column of this" in text
    assert "EVENT e { n: LONG }" in text


def test_times_that_can_be_read_in_two_ways_stay_texts(run: Any, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("type,when,zip,big\nA,03/04/2026,01234,99999999999999999999\n")
    text, _ = _ran(run, tmp_path, "e.csv")
    assert "'when' has times, which are texts here: --time-format '%d/%m/%Y' or '%m/%d/%Y'" in text
    assert "{ when: STRING, zip: STRING, big: STRING }" in text
    assert "{ when: PRIMARY_TIME" not in text
    assert "when: DATE" in run("init", "e.csv", "--time-format", "%m/%d/%Y")[1]


def test_a_column_that_looks_like_the_types_is_proposed(run: Any, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("user,action\n" + "ann,in\nbob,out\neve,in\njim,out\n")
    text = run("init", "e.csv")[1]
    assert "-- 'action' looks like a column of event types: --type-column action\n" in text


def test_a_column_of_keys_does_not_look_like_the_types(run: Any, tmp_path: Path) -> None:
    """It has few values, each often, as well."""
    for key in ("user_id", "card", "deviceId", "customer"):
        (tmp_path / "e.csv").write_text(f"{key},page\n" + "u1,cart\nu2,pay\n" * 4)
        text = run("init", "e.csv")[1]
        assert "-- 'page' looks like a column of event types: --type-column page\n" in text
        (tmp_path / "e.csv").write_text(f"{key},v\n" + "u1,1\nu2,2\n" * 4)
        assert "looks like" not in run("init", "e.csv")[1]


def test_it_writes_a_file_and_names_it(run: Any, tmp_path: Path) -> None:
    (tmp_path / "my events.csv").write_text("type,v\nA,1\nB,2\n")
    assert run("init", "my events.csv", "-o", "q.cel", "--name", "Shop") == (0, "", "")
    text = (tmp_path / "q.cel").read_text()
    assert "-- Run it: celc run q.cel 'my events.csv'\nCREATE STREAM Shop {\n" in text
    assert run("init", "my events.csv", "-o", "q.cel")[0] == 2


@pytest.mark.parametrize(
    ("name", "data", "more", "said"),
    [
        ("none.csv", None, "", "none.csv: there is no such file"),
        ("e.csv", b"\x89PNG\r\n\x1a\n\0\0\xff,", "", "e.csv is no text: its first line has bytes"),
        ("e.csv", b"a,b\n1,\xff\xfe\n", "", "e.csv"),
        ("e.json", b"\x89PNG\r\n", "", "e.json, line 1: this is no JSON; each line is one object"),
        ("e.json", b"[1]\n", "", "e.json, line 1: a row is an object, and this is of another kind"),
        ("e.json", b"\n", "", "e.json: there are no columns to declare"),
        ("e.csv", b"", "", "e.csv is empty: a CSV file begins with the names of columns"),
        ("e.parquet", b"no", "", "e.parquet: "),
        ("e.xlsx", b"no", "", "e.xlsx: events are read from files that end in"),
        (
            "e.csv",
            b"kind,v\nA,1\n",
            "--type-column kid",
            "e.csv: no column is called 'kid'; did you",
        ),
    ],
)
def test_what_cannot_be_declared_is_told_in_words(
    name: str, data: bytes | None, more: str, said: str, run: Any, tmp_path: Path
) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    code, text, told = run("init", name, *more.split())
    assert (code, text) == (2, "")
    assert told.startswith(f"celc: {said}")
    assert "Traceback" not in told


# --- celc.declare ---------------------------------------------------------------------------------

TABLE = pa.table(
    {
        "kind": ["A", "B"] * 20,
        "ts": pa.array(range(40)).cast(pa.timestamp("s")),
        "v": [None, 2.5] * 20,
        "s": [{"x": 1, "y": "a"}] * 40,
    }
)
WANTED = """-- Written by celc init from the 40 rows of a table.
-- Event types are in the column 'kind'.
-- 'ts' seems to order the events.
CREATE STREAM events {
  EVENT A { ts: PRIMARY_TIME, `s.x`: LONG, `s.y`: STRING }, -- 20 rows
  EVENT B { ts: PRIMARY_TIME, v: DOUBLE, `s.x`: LONG, `s.y`: STRING } -- 20 rows
}

SELECT FIRST *
FROM events
WHERE A AS x ; B AS y
WITHIN 1 MINUTE
"""


def test_tables_of_all_libraries_give_one_text(tmp_path: Path) -> None:
    import duckdb
    import polars

    pyarrow.parquet.write_table(TABLE, tmp_path / "e.parquet")
    flat = {name: TABLE.column(name).to_pylist() for name in TABLE.column_names}
    given = TABLE  # noqa: F841, DuckDB reads it by this name
    for one in (
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_pandas(types_mapper=None),
        polars.from_arrow(TABLE),
        polars.from_arrow(TABLE).lazy(),
        duckdb.sql("SELECT * FROM given"),
        pyarrow.dataset.dataset(TABLE),
        flat,
        pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches()),
    ):
        assert celc.declare(one, type_column="kind") == WANTED
    query = celc.compile(WANTED, type_column="kind")
    assert len(query.match_table(TABLE)) == 20
    of_file = celc.declare(tmp_path / "e.parquet", type_column="kind", name="events")
    assert of_file.partition("CREATE")[2] == WANTED.partition("CREATE")[2]


def test_a_table_that_is_none_is_told() -> None:
    with pytest.raises(TypeError, match="int is no table of events: give a DataFrame"):
        celc.declare(5)
    with pytest.raises(ValueError, match="no column is called 'kin'; did you mean 'kind'"):
        celc.declare(TABLE, type_column="kin")
    with pytest.raises(
        ValueError, match=r"column 'v' is double, and the event types of a table are texts"
    ):
        celc.declare(TABLE, type_column="v")
    with pytest.raises(ValueError, match=r"none\.csv: there is no such file"):
        celc.declare("none.csv")
