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


TYPES = """\
CREATE STREAM S { EVENT A { px: DECIMAL(5, 2), at: TIMESTAMP_NTZ, ts: TIMESTAMP, day: DATE } }
SELECT a FROM S WHERE A AS a WITHIN 0 EVENTS
"""


@pytest.fixture
def read(run: Run) -> Callable[..., Any]:
    """Runs a query of other types on one value: the value that comes out; None: an error."""
    Path("q.cel").write_text(TYPES)

    def read(name: str, value: str, *options: str, json_value: str = "") -> Any:
        if json_value:
            Path("v.jsonl").write_text(f'{{"{name}": {json_value}, "px": null}}\n')
        else:
            names = ("px", "at", "ts", "day")
            cells = ",".join(value if one == name else "" for one in names)
            Path("v.csv").write_text(f"{','.join(names)}\n{cells}\n")
        file = "v.jsonl" if json_value else "v.csv"
        with interpreted():
            code = main(
                ["run", "q.cel", file, "--format", "rows", "-o", "v.json", "--force", *options]
            )
        return json.loads(Path("v.json").read_text())["a"][0][name] if code == 0 else None

    return read


@pytest.mark.parametrize(
    ("value", "options", "wanted"),
    [
        ("2026-07-01 12:00:00.5", (), "2026-07-01 12:00:00.500000"),
        ("2026-07-01", (), "2026-07-01 00:00:00"),
        ("2026-03-29 02:30:00", ("--time-zone", "Europe/Berlin"), "2026-03-29 02:30:00"),
        ("1.7.2026 12:00", ("--time-format", "%d.%m.%Y %H:%M"), "2026-07-01 12:00:00"),
        ("1782907200", ("--time-format", "s"), "2026-07-01 12:00:00"),
        ("2026-07-01 12:00:00Z", (), None),
        ("2026-07-01 12:00+02:00", ("--time-format", "%Y-%m-%d %H:%M%z"), None),
    ],
)
def test_times_without_a_zone(
    value: str, options: tuple[str, ...], wanted: str | None, read: Any, capfd: Any
) -> None:
    assert read("at", value, *options) == wanted
    quoted = value if "s" in options else f'"{value}"'
    assert read("at", "", *options, json_value=quoted) == wanted
    if wanted is None:
        assert capfd.readouterr().err.count("line ") == 2


def test_times_without_a_zone_in_parquet_have_none(run: Run, tmp_path: Path) -> None:
    Path("q.cel").write_text(TYPES)
    at = pa.array([1_774_751_400], pa.timestamp("s"))  # 02:30, which Berlin's clocks leave out
    table = pa.table({"px": pa.nulls(1, pa.decimal128(5, 2)), "at": at})
    columns = {"ts": pa.nulls(1, pa.timestamp("us", "UTC")), "day": pa.nulls(1, pa.date32())}
    for name, column in columns.items():
        table = table.append_column(name, column)
    pa.parquet.write_table(table, "v.parquet")
    with interpreted():
        assert (
            main(["run", "q.cel", "v.parquet", "--time-zone", "Europe/Berlin", "-o", "v.csv"]) == 0
        )
    assert "2026-03-29 02:30:00" in Path("v.csv").read_text()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("12345", "column 'px': 12345.00 is no DECIMAL(5, 2)"),
        ("-1000", "column 'px': -1000.00 is no DECIMAL(5, 2)"),
        ("1e5", "column 'px': '1e5' is no DECIMAL(5, 2)"),
        ("1e40", "column 'px': '1e40' is no DECIMAL"),
        ("0.125", "column 'px': a number has more decimals than its type"),
    ],
)
def test_a_number_with_more_digits_than_its_decimal(
    value: str, told: str, read: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """Arrow's reader of CSV looks at the digits of the text alone."""
    assert read("px", value) is None
    assert f"celc: v.csv, line 2: {told}\n" in capfd.readouterr().err
    assert read("px", "", json_value=value) is None
    assert "celc: v.jsonl, line 1: " in capfd.readouterr().err
    assert read("px", "999.99") == "999.99"


@pytest.mark.parametrize("format", ["rows", "json", "csv", "txt", "html"])
def test_times_that_python_has_not_are_shown(format: str, run: Run) -> None:
    Path("q.cel").write_text(TYPES.replace("SELECT a", "SELECT a, a.ts AS at, a.day AS d"))
    Path("v.csv").write_text("px,at,ts,day\n,,0001-01-01 00:00:00+14:00,0000-01-01\n")
    name = "out.json" if format == "rows" else f"out.{format}"
    options = ["--format", "rows"] if format == "rows" else []
    with interpreted():
        assert main(["run", "q.cel", "v.csv", "-o", name, *options]) == 0
    shown = Path(name).read_text()
    assert "0000-12-31" in shown or format == "html"
    assert "0000-01-01" in shown or format == "html"
    assert '"ts": "0000-12-31 10:00:00+00:00"' in shown or format != "rows"


@pytest.mark.parametrize(
    ("type", "value", "options", "wanted"),
    [
        ("ARRAY<DATE>", '["2026-07-01", null]', (), ["2026-07-01", None]),
        ("ARRAY<INTERVAL>", "[5, -1]", (), [5, -1]),
        ("STRUCT<t: TIMESTAMP, n: INT>", '{"t": null, "n": 1}', (), {"t": None, "n": 1}),
        (
            "ARRAY<STRUCT<t: TIMESTAMP>>",
            '[{"t": "2026-07-01 12:00:00"}, null]',
            ("--time-zone", "Europe/Berlin"),
            [{"t": "2026-07-01 10:00:00+00:00"}, None],
        ),
        (
            "ARRAY<TIMESTAMP_NTZ>",
            '["1.7.2026"]',
            ("--time-format", "%d.%m.%Y"),
            ["2026-07-01 00:00:00"],
        ),
        (
            "ARRAY<TIMESTAMP>",
            "[1782907200]",
            ("--time-format", "s"),
            ["2026-07-01 12:00:00+00:00"],
        ),
    ],
)
def test_times_inside_of_other_values(
    type: str, value: str, options: tuple[str, ...], wanted: Any, run: Run
) -> None:
    """They are read as times outside are."""
    query = f"CREATE STREAM S {{ EVENT A {{ n: INT, x: {type} }} }}\nSELECT a FROM S WHERE A AS a"
    Path("q.cel").write_text(query)
    rows = ['{"n": 1}', f'{{"x": {value}}}', '{"x": null}', f'{{"x": {value}}}']
    Path("v.jsonl").write_text("\n".join(rows))
    with interpreted():
        assert (
            main(["run", "q.cel", "v.jsonl", "--format", "rows", "-o", "out.json", *options]) == 0
        )
    lines = Path("out.json").read_text().splitlines()
    assert [json.loads(line)["a"][0]["x"] for line in lines] == [None, wanted, None, wanted]


@pytest.mark.parametrize(
    ("type", "name", "text", "told"),
    [
        (
            "ARRAY<INT>",
            "v.csv",
            'n,x\n1,"[1]"\n',
            "CSV has no such values: give the events as JSON",
        ),
        ("MAP<STRING, INT>", "v.jsonl", '{"x": {"a": 1}}\n', "declare a STRUCT with the keys"),
    ],
)
def test_values_that_a_format_has_not(type: str, name: str, text: str, told: str, run: Run) -> None:
    query = f"CREATE STREAM S {{ EVENT A {{ n: INT, x: {type} }} }}\nSELECT a FROM S WHERE A AS a"
    Path("q.cel").write_text(query)
    code, _, err = run({name: text})
    assert code == 2
    assert f"celc: {name}: query 'q' declares 'x' as {type}, and " in err
    assert told in err


def test_a_query_without_a_declaration_is_told_the_same(
    run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("q.cel").write_text("SELECT x FROM log WHERE A AS x WITHIN 1 HOUR [ts]")
    code, _, err = run({"log.csv": f"{NAMES.replace(',', ';')}\nA;1;x;{TIME}\n"})
    told = f"log.csv has one column, which is called {NAMES.replace(',', ';')!r}"
    assert (code, err) == (2, f"celc: {told}; if ';' is between its fields, give --delimiter ';'\n")
    for line, kind in (("null", "null"), ("[1]", "array: give each row a line"), ("1", "value")):
        code, _, err = run({"log.jsonl": line})
        told = f"celc: log.jsonl, line 1: a row is an object, and this is of another kind: {kind}"
        assert (code, err[: len(told)]) == (2, told)
    Path("log.csv").write_text(f"{NAMES}\nA,1,x,{TIME}\n")
    assert main(["run", "q.cel", "log.csv", "--near"]) == 1
    assert "error[no-near-misses]: a query over a table that" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["px", "ts", "day"])
def test_an_empty_text_in_quotes_is_no_null(
    name: str, read: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    assert read(name, '""') is None
    err = capfd.readouterr().err
    assert f"celc: v.csv, line 2: column '{name}': '' is no " in err
    assert "An empty text in quotes is a text: leave out the quotes where it is NULL" in err


_PLAIN = """\
CREATE STREAM S { EVENT A { id: INT, name: STRING, ts: TIMESTAMP } }
PARAMETERS rule { id: INT }
"""
_OVER_NO_ROWS = {
    "over queries": "QUERY one: SELECT a.id AS n FROM S WHERE A AS a\n"
    "QUERY two: SELECT x, y FROM one WHERE one AS x ; one AS y WITHIN 1 HOUR [ts]",
    "FOR EACH": "SELECT a FROM S FOR EACH rule WHERE A AS a FILTER a.id = rule.id",
    "late": "QUERY one: SELECT FIRST a FROM S WHERE A AS a ; !A FOR 1 HOUR PARTITION BY id\n"
    "QUERY two: SELECT a FROM S WHERE A AS a",
}


@pytest.mark.parametrize("threads", [[], ["--threads", "2"], ["--memory", "1GiB"]])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("kind", [*_OVER_NO_ROWS, "plain"])
def test_a_file_without_rows_has_no_matches(
    kind: str, name: str, threads: list[str], run: Run
) -> None:
    Path("q.cel").write_text(_PLAIN + _OVER_NO_ROWS.get(kind, "SELECT a FROM S WHERE A AS a"))
    Path("rules.csv").write_text("id\n1\n")
    columns = {"type": "string", "id": "int32", "name": "string", "ts": pa.timestamp("us", "UTC")}
    none = pa.schema([*columns.items()]).empty_table()
    pa.parquet.write_table(none, "none.parquet")
    data = {"a.csv": f"{NAMES}\n", "a.jsonl": "", "a.parquet": Path("none.parquet").read_bytes()}
    rules = ["--parameters", "rule=rules.csv"] if kind == "FOR EACH" else []
    assert run({name: data[name]}, "--order-by", "ts", *threads, *rules) == (0, "", "")
