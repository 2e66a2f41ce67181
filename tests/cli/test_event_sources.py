"""Every form in which `celc run` takes events; the answers are checked by pandas.

The query pairs an A with a later B of the same key inside a minute, which a join finds as well.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from engines import interpreted

from celc.interfaces.cli import main
from celc.interfaces.cli.reading import origins, spool, text_blocks

QUERY = """\
CREATE STREAM S {
  EVENT A { key: STRING, id: LONG, ts: TIMESTAMP },
  EVENT B { key: STRING, id: LONG, ts: TIMESTAMP }
}
SELECT x[id], y[id] FROM S WHERE A AS x ; B AS y PARTITION BY [key] WITHIN 1 MINUTE [ts]
"""
Pairs = list[tuple[int, int]]
Run = Callable[..., tuple[int, Pairs, str]]


def frame(rows: int = 60, seed: int = 1, start: str = "2026-07-01T12:00:00") -> pd.DataFrame:
    """Events in the order of time, with NULL keys among them."""
    draw = np.random.default_rng(seed)
    seconds = np.cumsum(draw.integers(1, 20, rows))
    keys = draw.choice(["k", "l", "m"], rows).astype(object)
    keys[draw.random(rows) < 0.1] = None
    return pd.DataFrame(
        {
            "type": draw.choice(["A", "B", "C"], rows),
            "key": keys,
            "id": np.arange(rows) + 1000 * seed,
            "ts": pd.Timestamp(start, tz="UTC") + pd.to_timedelta(seconds, unit="s"),
        }
    )


def pairs_of(events: pd.DataFrame) -> Pairs:
    """What the query finds, by a join. NULL is a key like others."""
    events = events.sort_values("ts", kind="stable")
    events = events.assign(place=range(len(events)), key=events["key"].fillna("NULL"))
    both = events[events["type"] == "A"].merge(events[events["type"] == "B"], on="key")
    later = both["place_x"] < both["place_y"]
    near = both["ts_y"] - both["ts_x"] <= pd.Timedelta("1min")
    both = both[later & near]
    return sorted(zip(both["id_x"].tolist(), both["id_y"].tolist(), strict=True))


def texts(events: pd.DataFrame, times: str = "%Y-%m-%dT%H:%M:%SZ") -> pd.DataFrame:
    return events.assign(ts=events["ts"].dt.strftime(times))


def csv_bytes(events: pd.DataFrame, separator: str = ",", null: str = "", **more: Any) -> bytes:
    text: str = texts(events, **more).to_csv(index=False, sep=separator, na_rep=null)
    return text.encode()


def json_bytes(events: pd.DataFrame) -> bytes:
    rows = texts(events).to_dict("records")
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def parquet_bytes(events: pd.DataFrame) -> bytes:
    out = io.BytesIO()
    table = pa.Table.from_pandas(events, preserve_index=False)
    place = table.schema.get_field_index("ts")
    times = table.column("ts").cast(pa.timestamp("us", "UTC"))
    pa.parquet.write_table(table.set_column(place, "ts", times), out)
    return out.getvalue()


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


FORMS: dict[str, Callable[[pd.DataFrame], bytes]] = {
    "e.csv": csv_bytes,
    "e.CSV": csv_bytes,
    "e.tsv": lambda events: csv_bytes(events, "\t"),
    "e.json": json_bytes,
    "e.jsonl": json_bytes,
    "e.ndjson": json_bytes,
    "e.parquet": parquet_bytes,
    "e.csv.gz": lambda events: gzip.compress(csv_bytes(events)),
    "e.tsv.gz": lambda events: gzip.compress(csv_bytes(events, "\t")),
    "e.csv.zst": lambda events: zstd(csv_bytes(events)),
    "e.jsonl.gz": lambda events: gzip.compress(json_bytes(events)),
    "e.json.zst": lambda events: zstd(json_bytes(events)),
}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the query in the folder of a test: exit code, pairs of ids, standard error."""
    monkeypatch.chdir(tmp_path)
    Path("q.cel").write_text(QUERY)

    def run(*arguments: object, said: str = "") -> tuple[int, Pairs, str]:
        with interpreted():
            words = ["run", "q.cel", *map(str, arguments), "--format", "csv"]
            code = main(words)
        printed = capsys.readouterr()
        return code, found_in(printed.out), printed.err

    return run


def found_in(text: str) -> Pairs:
    if not text:
        return []
    table = pd.read_csv(io.StringIO(text))
    ids = [[json.loads(cell)[0]["id"] for cell in table[name]] for name in ("x", "y")]
    return sorted(zip(*ids, strict=True))


def put(path: str | Path, data: bytes | str) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffled", [False, True], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("name", FORMS)
def test_a_file_of_every_form(name: str, shuffled: bool, run: Run) -> None:
    events = frame()
    if shuffled:
        events = events.sample(frac=1, random_state=2)
    put(name, FORMS[name](events))
    expected = pairs_of(events)
    assert len(expected) > 5
    assert run(name)[:2] == (0, expected)


@pytest.mark.parametrize("sizes", [(40, 40, 1, 0), (0, 60)])
def test_several_files_are_one_stream(sizes: tuple[int, ...], run: Run) -> None:
    """Matches go across their borders, and an empty one does no harm."""
    events = frame(sum(sizes), seed=3)
    names = ["b.csv.gz", "a.parquet", "c.jsonl", "d.jsonl"][: len(sizes)]
    start = 0
    for name, size in zip(names, sizes, strict=True):
        put(name, FORMS[f"e.{name.split('.', 1)[1]}"](events.iloc[start : start + size]))
        start += size
    across = pairs_of(events)
    assert run(*names)[:2] == (0, across)
    # In another order the events have to be sorted, and are.
    assert run(*reversed(names))[:2] == (0, across)


def test_folders_and_patterns_are_read_by_name(run: Run) -> None:
    parts = [frame(30, seed, f"2026-07-0{seed}") for seed in (1, 2, 3)]
    for day, part in enumerate(parts, start=1):
        put(f"log/day={day}/part-0.csv.gz", gzip.compress(csv_bytes(part)))
    for hidden in ("_SUCCESS", ".e.csv", "day=1/_temporary/e.csv", ".git/e.csv"):
        put(f"log/{hidden}", "no events")
    expected = pairs_of(pd.concat(parts))
    for argument in ("log", "log/", "log/**/*.csv.gz", "log/*/part-?.csv.gz", "log/day=*", "l*"):
        assert run(argument) == (0, expected, run("log")[2]), argument
    assert run("log/day=[12]")[:2] == (0, pairs_of(pd.concat(parts[:2])))
    assert run("log/day=1", "log/day=3/*")[:2] == (0, pairs_of(pd.concat(parts[::2])))


@pytest.mark.parametrize("argument", ["log", "log/*", "log/**/*.csv", "l*"])
def test_hidden_names_are_passed_over_as_spark_does(argument: str, run: Run) -> None:
    """By patterns as well; the folder of a column is none, whatever the column is called."""
    events = frame(30)
    put("log/_day=1/e.csv", csv_bytes(events))
    for hidden in ("_temporary/0/e.csv", "_delta.csv", ".old/e.csv", "_day=1/_e.csv", "_SUCCESS"):
        put(f"log/{hidden}", csv_bytes(events))
    assert run(argument)[:2] == (0, pairs_of(events))


def test_a_pattern_can_name_what_is_hidden(run: Run) -> None:
    events = frame(30)
    put("log/_raw/e.csv", csv_bytes(events))
    for argument in ("log/_raw/*.csv", "log/_*/e.csv", "log/_raw", "log/_raw/e.csv"):
        assert run(argument)[:2] == (0, pairs_of(events)), argument


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("_delta_log/00000000000000000000.json", "table is a table of Delta Lake: its log"),
        ("metadata/00001-cafe.metadata.json", "table is a table of Apache Iceberg: its log"),
        ("metadata/version-hint.text", "table is a table of Apache Iceberg: its log"),
        (".hoodie/hoodie.properties", "table is a table of Apache Hudi: its log"),
        ("_spark_metadata/0", "table was written by a stream of Spark: its log"),
    ],
)
def test_tables_whose_log_says_which_files_count_are_refused(
    log: str, told: str, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A folder, a folder around it, a pattern, a file of it, another name of it, a set of rules."""
    put("lake/table/day=1/e.csv", csv_bytes(frame(30)))
    put(f"lake/table/{log}", "{}\n")
    put("lake/plain.csv", csv_bytes(frame(30)))
    Path("link").symlink_to(Path("lake/table/day=1"))
    for argument in (
        *("lake/table", "lake", "lake/table/day=1", "lake/table/*/*.csv", "lake/**/*.csv", "l*k"),
        *("lake/table/day=1/e.csv", "link/e.csv", Path("lake/table").absolute()),
    ):
        code, found, said = run(argument)
        assert (code, found) == (2, []), argument
        if log[:9] in ("_delta_lo", "metadata/") and Path(argument).name == "table":
            continue  # it is read by its log: test_folders_with_values.py, test_iceberg_tables.py
        assert told in said
        assert "Read it with Spark and match the DataFrame" in said
    assert run("lake/plain.csv")[0] == 0
    monkeypatch.chdir("lake/table/day=1")
    assert main(["run", "../../../q.cel", "e.csv"]) == 2
    assert told in capsys.readouterr().err


def test_a_table_of_parameters_in_a_folder_with_a_log_is_refused(run: Run, capsys: Any) -> None:
    rules = "PARAMETERS rule { id: LONG } SELECT * FROM S FOR EACH rule WHERE A AS a"
    put("q.cel", f"CREATE STREAM S {{ EVENT A {{ id: LONG }} }} {rules} FILTER a.id = rule.id")
    put("e.csv", "id\n1\n")
    put("rules/e.csv", "id\n1\n")
    put("rules/_delta_log/0.json", "{}")
    assert main(["run", "q.cel", "e.csv", "--parameters", "rule=rules/e.csv"]) == 2
    assert "rules is a table of Delta Lake" in capsys.readouterr().err


def test_files_of_a_folder_are_read_in_the_order_of_their_names(run: Run, capsys: Any) -> None:
    """Where nothing else orders events, that is their order."""
    for name, type in (("b", "B"), ("a", "A"), ("c", "A")):
        put(f"log/{name}.csv", f"type,id\n{type},1\n")
    stream = "CREATE STREAM S { EVENT A { id: LONG }, EVENT B { id: LONG } }\n"
    put("q.cel", f"{stream}SELECT * FROM S WHERE A ; B")
    for arguments, count in ((["log"], 1), (["log/*"], 1), (["log/b.csv", "log/a.csv"], 0)):
        assert main(["run", "q.cel", *arguments, "--format", "json"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == count


def test_files_that_are_no_event_files_are_told_of(run: Run) -> None:
    put("log/e.csv", csv_bytes(frame()))
    put("log/a/README.md", "# Log")
    put("log/notes.txt", "a note")
    code, found, said = run("log")
    assert (code, found) == (0, pairs_of(frame()))
    assert "log: not read, because of the ending of the name: log/a/README.md and 1 more" in said


def test_a_name_with_signs_of_patterns_is_a_name_first(run: Run) -> None:
    put("[e]*.csv", csv_bytes(frame()))
    assert run("[e]*.csv")[:2] == (0, pairs_of(frame()))


# --- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "separator"), [(";", ";"), ("|", "|"), ("\\t", "\t"), ("tab", "\t"), (" ", " ")]
)
def test_delimiters(option: str, separator: str, run: Run) -> None:
    put("e.csv", csv_bytes(frame(), separator))
    assert run("e.csv", "--delimiter", option)[:2] == (0, pairs_of(frame()))
    put("e.tsv", csv_bytes(frame(), separator))
    assert run("e.tsv", "--delimiter", option)[:2] == (0, pairs_of(frame()))


@pytest.mark.parametrize("option", ["", ";;", '"', "\n", "é", "\\x"])
def test_delimiters_that_are_none(option: str, run: Run) -> None:
    put("e.csv", csv_bytes(frame()))
    code, _, said = run("e.csv", "--delimiter", option)
    assert (code, "--delimiter" in said, len(said.splitlines())) == (2, True, 1)


def test_texts_for_null(run: Run) -> None:
    events = frame()
    expected = pairs_of(events)
    put("e.csv", csv_bytes(events, null="NA"))
    assert run("e.csv", "--null-text", "NA", "--null-text", "-")[:2] == (0, expected)
    # The key NA is NULL with one spelling and a text with the other, so the groups are the same;
    # a number that is NA can be read in one way only.
    data = csv_bytes(events).replace(b",1003,", b",n/a,")
    put("e.csv", data)
    code, _, said = run("e.csv")
    assert (code, said) == (2, "celc: e.csv, line 5: column 'id': 'n/a' is no LONG\n")
    code, _, _ = run("e.csv", "--null-text", "n/a")
    assert code == 0


def test_quoted_texts_are_not_null(run: Run, capsys: Any) -> None:
    put("q.cel", "CREATE STREAM S { EVENT A { t: STRING } } SELECT x[t] FROM S WHERE A AS x")
    put("e.csv", 't,u\nNA,1\n"NA",2\n,3\n"",4\n')
    assert main(["run", "q.cel", "e.csv", "--null-text", "NA", "--format", "csv"]) == 0
    table = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert [json.loads(cell)[0]["t"] for cell in table["x"]] == [None, "NA", None, ""]


def test_a_line_break_inside_quotes_is_read_wherever_a_block_ends(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_blocks, "_BLOCK", 200)
    events = frame()
    put("e.csv", csv_bytes(events.assign(note='a\nb,"9"\r\nc')))
    assert run("e.csv")[:2] == (0, pairs_of(events))


# --- times ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "format",
    ["%d/%m/%Y %H:%M:%S", "%Y%m%d%H%M%S", "%b %d %Y %I:%M:%S %p", "%Y-%m-%d %H:%M:%S.%f %z"],
)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_formats_of_times(format: str, suffix: str, run: Run) -> None:
    events = frame()
    put("e.csv", csv_bytes(events, times=format))
    rows = texts(events, format).to_dict("records")
    put("e.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert run(f"e{suffix}", "--time-format", format)[:2] == (0, pairs_of(events))


def test_formats_are_read_as_python_reads_them(run: Run) -> None:
    """One digit where two are usual is a time, and a day that there is not is none."""
    events = frame(20)
    lines = csv_bytes(events, times="%d/%m/%Y %H:%M:%S").decode().replace("01/07/", "1/7/")
    put("e.csv", lines)
    assert run("e.csv", "--time-format", "%d/%m/%Y %H:%M:%S")[:2] == (0, pairs_of(events))
    put("e.csv", lines.replace("1/7/", "31/6/", 1))
    code, _, said = run("e.csv", "--time-format", "%d/%m/%Y %H:%M:%S")
    assert code == 2
    assert said.startswith("celc: e.csv, line 2: column 'ts': '31/6/2026 12:00:")
    assert said.endswith("' is no time of the form %d/%m/%Y %H:%M:%S\n")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_times_that_are_numbers(unit: str, suffix: str, run: Run) -> None:
    events = frame()
    numbers = events["ts"].dt.as_unit(unit).astype("int64")
    if unit == "s":
        numbers = numbers.astype(float) + 0.25
    told = events.assign(ts=numbers)
    put("e.csv", told.to_csv(index=False, float_format="%.2f"))
    put("e.jsonl", "".join(json.dumps(row) + "\n" for row in told.to_dict("records")))
    assert run(f"e{suffix}", "--time-format", unit)[:2] == (0, pairs_of(events))


@pytest.mark.parametrize(
    ("unit", "number", "micros"),
    [
        ("s", "1782907200.123456", 1782907200123456),
        ("s", "-1.5", -1500000),
        ("ms", "1782907200123", 1782907200123000),
        ("us", "1782907200123457", 1782907200123457),
        ("ns", "1782907200123457999", 1782907200123457),
        ("ns", "-1", -1),
        ("s", "253402300799", 253402300799000000),
    ],
)
def test_numbers_are_exact(unit: str, number: str, micros: int, run: Run, capsys: Any) -> None:
    put("q.cel", "CREATE STREAM S { EVENT A { ts: TIMESTAMP } } SELECT x[ts] FROM S WHERE A AS x")
    put("e.csv", f"ts,n\n{number},1\n,2\n")
    put("e.jsonl", f'{{"ts": {number}}}\n{{"ts": null}}\n')
    for name in ("e.csv", "e.jsonl"):
        target = f"{name}.parquet"
        assert main(["run", "q.cel", name, "--time-format", unit, "-o", target]) == 0
        rows = pa.parquet.read_table(target).column("x").combine_chunks().flatten().field("ts")
        assert rows.cast(pa.int64()).to_pylist() == [micros, None]


def test_a_unit_that_is_wrong(run: Run) -> None:
    put("e.csv", "type,key,id,ts\nA,k,1,1782907200\nA,k,1,1782907200123\n")
    code, _, said = run("e.csv", "--time-format", "s")
    assert code == 2
    assert said == (
        "celc: e.csv, line 3: column 'ts': 1782907200123 s since 1970 is no time of the years 1 to "
        "9999; is the unit of --time-format right?\n"
    )


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "UTC"])
@pytest.mark.parametrize("format", [None, "%d.%m.%Y %H:%M:%S"])
def test_times_without_a_zone_are_those_of_a_place(zone: str, format: str | None, run: Run) -> None:
    """One file has times with a zone and the other has none, so a wrong zone finds no pairs."""
    events = frame()
    first, second = events.iloc[::2], events.iloc[1::2]
    local = second.assign(ts=second["ts"].dt.tz_convert(zone).dt.tz_localize(None))
    times = format or "%Y-%m-%d %H:%M:%S"
    options = [] if format is None else ["--time-format", format]
    put("a.parquet", parquet_bytes(first))
    put("b.csv", csv_bytes(local, times=times))
    expected = pairs_of(events)
    assert len(expected) > len(pairs_of(first)) + len(pairs_of(second))
    assert run("a.parquet", "b.csv", "--time-zone", zone, *options)[:2] == (0, expected)
    table = pa.table({name: pa.array(local[name], from_pandas=True) for name in local})
    pa.parquet.write_table(table, "c.parquet")
    assert run("a.parquet", "c.parquet", "--time-zone", zone)[:2] == (0, expected)


@pytest.mark.parametrize(
    ("time", "many"), [("2026-10-25 02:30:00", "twice"), ("2026-03-29 02:30:00", "never")]
)
def test_times_that_clocks_show_twice_or_never(time: str, many: str, run: Run) -> None:
    put("e.csv", f"type,key,id,ts\nA,k,1,2026-01-01 00:00:00\nB,k,2,{time}\n")
    code, _, said = run("e.csv", "--time-zone", "Europe/Berlin")
    assert code == 2
    assert said.startswith(
        f"celc: e.csv, line 3: column 'ts': {time} was {many} shown by clocks in Europe/Berlin: "
    )
    put("e.csv", f"type,key,id,ts\nA,k,1,2026-01-01 00:00:00\nB,k,2,{time}+01:00\n")
    assert run("e.csv", "--time-zone", "Europe/Berlin")[0] == 0


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--time-zone", "Europe/Atlantis"),
        ("--time-zone", ""),
        ("--time-format", "%Q"),
        ("--time-format", "day"),
        ("--time-format", "%d/%m %"),
    ],
)
def test_zones_and_formats_that_there_are_not(option: str, value: str, run: Run) -> None:
    put("e.csv", csv_bytes(frame()))
    code, _, said = run("e.csv", option, value)
    assert (code, said.startswith(f"celc: {option} {value}"), len(said.splitlines())) == (
        2,
        True,
        1,
    )


def test_days_in_a_format(run: Run, capsys: Any) -> None:
    put("q.cel", "CREATE STREAM S { EVENT A { d: DATE } } SELECT x[d] FROM S WHERE A AS x")
    put("e.csv", "d,n\n31/12/2026,1\n,2\n")
    options = ["--format", "csv", "--time-format", "%d/%m/%Y"]
    assert main(["run", "q.cel", "e.csv", *options]) == 0
    assert '""d"": ""2026-12-31""' in capsys.readouterr().out


def test_an_option_without_a_file_for_it(run: Run) -> None:
    put("e.parquet", parquet_bytes(frame()))
    put("e.jsonl", json_bytes(frame()))
    for name, option, value in (
        ("e.parquet", "--delimiter", ";"),
        ("e.parquet", "--null-text", "NA"),
        ("e.parquet", "--time-format", "s"),
        ("e.jsonl", "--null-text", "NA"),
    ):
        code, _, said = run(name, option, value)
        assert (code, said.startswith(f"celc: {option} is for csv")) == (2, True)


def test_the_column_of_the_types_has_another_name(run: Run) -> None:
    put("e.csv", csv_bytes(frame().rename(columns={"type": "kind"})))
    assert run("e.csv", "--type-column", "kind")[:2] == (0, pairs_of(frame()))
    code, _, said = run("e.csv", "--type-column", "sort")
    assert (code, "'sort'" in said) == (2, True)
    code, _, said = run("e.csv", "--type-column", "id")
    assert (code, said.startswith("celc: --type-column: query 'q' cannot")) == (2, True)


# --- what can be read once ------------------------------------------------------------------------


@pytest.mark.parametrize("shuffled", [False, True], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("name", ["e.csv", "e.jsonl", "e.parquet", "e.csv.gz", "e.json.zst"])
def test_standard_input(
    name: str, shuffled: bool, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = frame(3000)
    if shuffled:
        events = events.sample(frac=1, random_state=2)
    put(name, FORMS[name](events))
    format = {"csv": "csv", "parquet": "parquet"}.get(name.split(".")[1], "json")
    with subprocess.Popen(["cat", name], stdout=subprocess.PIPE) as piped:
        monkeypatch.setattr(sys, "stdin", piped.stdout)
        assert run("-", "--input-format", format)[:2] == (0, pairs_of(events))


def test_standard_input_beside_files(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    events = frame(90)
    put("a.csv", csv_bytes(events.iloc[:30]))
    put("b.csv", csv_bytes(events.iloc[30:60]))
    put("c.csv", csv_bytes(events.iloc[60:]))
    with open("b.csv", "rb") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        found = run("a.csv", "-", "c.csv", "--input-format", "csv")
    assert found[:2] == (0, pairs_of(events))


def test_named_pipes(run: Run) -> None:
    """Several as well, after which signals are told to nobody, as before."""
    events = frame()
    names = ("one", "two")
    for name, part in zip(names, (events.iloc[:30], events.iloc[30:]), strict=True):
        put(f"{name}.csv", csv_bytes(part))
        os.mkfifo(f"{name}.pipe.csv")
    with subprocess.Popen("cat one.csv > one.pipe.csv & cat two.csv > two.pipe.csv", shell=True):
        found = run("one.pipe.csv", "two.pipe.csv")
    assert found[:2] == (0, pairs_of(events))
    assert signal.set_wakeup_fd(-1) == -1


def test_what_is_kept_of_standard_input_has_no_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So nothing is left of it, however the process ends."""
    monkeypatch.setattr(spool.tempfile, "tempdir", str(tmp_path))
    before = set(os.listdir(tmp_path))
    reading, writing = os.pipe()
    os.write(writing, b"a,b\n")
    with os.fdopen(reading, "rb") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        with origins.opened_origins(["-"], "csv") as (origin,):
            assert origin.spool is not None
            assert origin.spool.starts_with(4) == b"a,b\n"
            assert set(os.listdir(tmp_path)) == before
    os.close(writing)


def test_lines_that_come_slowly_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole lines are, before there is a block of them, and never a part of a line alone."""
    reading, writing = os.pipe()
    kept = spool.Spool(reading)
    try:
        for text in (b"type,id\n", b"A,1\nA,2\n"):
            os.write(writing, text)
            place = 0 if text.startswith(b"t") else 8
            assert kept.read_at(place, 1 << 20) == text
        os.write(writing, b"A,")
        os.write(writing, b"3\n")
        assert kept.read_at(16, 1 << 20) == b"A,3\n"
        os.write(writing, b"A,4")
        os.close(writing)
        assert kept.read_at(20, 1 << 20) == b"A,4"
        assert kept.read_at(23, 1 << 20) == b""
        assert kept.read_at(0, 7) == b"type,id"
    finally:
        kept.close()
        os.close(reading)


@pytest.mark.each(8)
@pytest.mark.parametrize(("number", "code"), [("INT", 130), ("TERM", 143)])
@pytest.mark.parametrize("sent", ["", "type,key,id,ts\n", "type,key,id,ts\nA,k,1,2026-07-01\n"])
def test_a_signal_ends_the_wait_for_standard_input(
    number: str, code: int, sent: str, tmp_path: Path
) -> None:
    """Also while a thread of Arrow waits, which no signal reaches."""
    put(tmp_path / "q.cel", QUERY)
    program = (
        "import os\nfrom celc.__main__ import process\n"
        "from celc.interfaces.cli.reading import origins, spool\n"
        "wait = spool.Spool._wait\n"
        "def told(self):\n"
        f"    if self._length == {len(sent)}: os.write(2, b'waits\\n')\n"
        "    wait(self)\n"
        "spool.Spool._wait = told\nprocess()"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program, "run", "q.cel", "-", "--input-format", "csv"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert running.stdin is not None
    assert running.stderr is not None
    running.stdin.write(sent)
    running.stdin.flush()
    assert running.stderr.readline() == "waits\n"
    subprocess.run(["kill", f"-{number}", str(running.pid)], check=True)
    assert running.wait(timeout=60) == code
    said = running.stderr.read().splitlines()
    assert [line for line in said if line != "waits"] == [
        f"celc: {'interrupted' if number == 'INT' else 'terminated'}"
    ]
    running.stdin.close()
    running.stderr.close()
    assert os.listdir(tmp_path) == ["q.cel"]


# --- broken forms ---------------------------------------------------------------------------------


def refused(run: Run, *arguments: object) -> str:
    """The one line that a broken form gives; no match is found before."""
    code, found, said = run(*arguments)
    assert (code, found, len(said.splitlines())) == (2, [], 1), said
    return said.removeprefix("celc: ").removesuffix("\n")


def test_compressed_files_of_several_members_are_read_whole(run: Run) -> None:
    events = frame(3000)
    data = csv_bytes(events)
    half = len(data) // 2
    expected = pairs_of(events)
    put("e.csv.gz", gzip.compress(data[:half]) + gzip.compress(data[half:]))
    assert run("e.csv.gz")[:2] == (0, expected)
    put("e.csv.zst", zstd(data[:half]) + zstd(data[half:]))
    assert run("e.csv.zst")[:2] == (0, expected)


@pytest.mark.parametrize("kind", ["gz", "zst"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_damaged_compressed_files(kind: str, suffix: str, run: Run) -> None:
    data = {"csv": csv_bytes, "jsonl": json_bytes}[suffix](frame(3000))
    whole = {"gz": gzip.compress, "zst": zstd}[kind](data)
    name = f"e.{suffix}.{kind}"
    for broken in (whole[:-6], whole[: len(whole) // 2], data, whole + b"more"):
        put(name, broken)
        said = refused(run, name)
        word = {"gz": "gzip", "zst": "zstd"}[kind]
        assert said.startswith(f"{name}: it is no {word} file, or a damaged one: "), said


@pytest.mark.long
def test_a_process_that_met_a_damaged_file_ends_in_order(tmp_path: Path) -> None:
    """A thread of Arrow that is left with a stream of Python would abort it at times."""
    put(tmp_path / "q.cel", QUERY)
    whole = gzip.compress(csv_bytes(frame(60_000)))
    put(tmp_path / "e.csv.gz", whole[:-100])
    for _ in range(4):
        ended = subprocess.run(
            [sys.executable, "-m", "celc", "run", "q.cel", "e.csv.gz"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)


def test_a_folder_with_one_bad_file_names_it(run: Run) -> None:
    put("log/a.csv", csv_bytes(frame()))
    put("log/day=2/e.csv", csv_bytes(frame()) + b"A,k,no,2026-07-02T00:00:00Z\n")
    assert refused(run, "log") == "log/day=2/e.csv, line 62: column 'id': 'no' is no LONG"
    put("log/day=2/e.csv", b"type,key,ID,ts\n")
    assert refused(run, "log").startswith("log/day=2/e.csv: no row has 'id'")
    put("log/day=2/e.csv", b"")
    assert refused(run, "log").startswith("log/day=2/e.csv is empty")


def test_arguments_that_name_nothing(run: Run) -> None:
    Path("empty").mkdir()
    assert refused(run, "empty").startswith("empty: there are no event files in this folder")
    assert refused(run, "*.csv") == "*.csv: no file has a name of this pattern"
    assert refused(run, "e.csv") == "e.csv: there is no such file"
    assert refused(run, "q.cel/e.csv") == "q.cel/e.csv: there is no such file"
    assert refused(run, "q.cel").startswith("q.cel: events are read from files that end in .csv")
    assert refused(run, "-", "-") == "standard input (-) can be named once"
    assert refused(run, "-").startswith("standard input has no ending that says its format")


def test_a_file_of_another_ending_is_read_in_the_format_that_is_named(run: Run) -> None:
    put("events.log", csv_bytes(frame()))
    assert run("events.log", "--input-format", "csv")[:2] == (0, pairs_of(frame()))
    put("events.log.gz", gzip.compress(json_bytes(frame())))
    assert run("events.log.gz", "--input-format", "json")[:2] == (0, pairs_of(frame()))
    assert "Parquet" in refused(run, "events.log", "--input-format", "parquet")


def test_standard_input_that_is_closed_or_empty(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert refused(run, "-", "--input-format", "csv") == "standard input is closed"
    for format in origins.FORMATS:
        with open(os.devnull, "rb") as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            assert refused(run, "-", "--input-format", format) == "standard input is empty"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read(run: Run) -> None:
    put("log/e.csv", csv_bytes(frame())).chmod(0)
    for argument in ("log/e.csv", "log"):
        assert refused(run, argument) == "log/e.csv: Permission denied"


def test_an_output_among_the_inputs(run: Run) -> None:
    for day in (1, 2):
        put(f"log/day={day}/e.csv", csv_bytes(frame()))
    before = Path("log/day=2/e.csv").read_bytes()
    Path("same.csv").symlink_to("log/day=2/e.csv")
    for argument in ("log", "log/*/*.csv", "log/day=2/../day=2/e.csv"):
        for target in ("log/day=2/e.csv", "same.csv"):
            with interpreted():
                assert main(["run", "q.cel", argument, "-o", target, "--force"]) == 2
            assert Path("log/day=2/e.csv").read_bytes() == before


def test_files_that_do_not_fit_together(run: Run, capsys: Any) -> None:
    one = "CREATE STREAM S { EVENT A { id: LONG } } SELECT x[id] FROM S WHERE A AS x"
    put("q.cel", one)
    put("a.csv", "type,id\nA,1\n")
    put("b.jsonl", '{"id": 2}\n')
    assert main(["run", "q.cel", "a.csv", "b.jsonl"]) == 2
    assert "b.jsonl does not say the event type of its rows in 'type', and a.csv does" in (
        capsys.readouterr().err
    )
    put("a.csv", "type,id,n\nA,1,1\n")
    put("b.csv", "type,id,n\nA,1,x\n")
    assert main(["run", "q.cel", "a.csv", "b.csv", "--order-by", "id", "--tiebreak", "n"]) == 2
    assert "b.csv: column 'n' is string, and in a.csv it is int64" in capsys.readouterr().err


def test_a_key_that_some_files_lack_is_not_missed(run: Run, capsys: Any) -> None:
    put("q.cel", "CREATE STREAM S { EVENT A { id: LONG } } SELECT x[id] FROM S WHERE A AS x")
    put("a.jsonl", '{"n": 1}\n')
    put("b.jsonl", '{"id": 2}\n')
    put("c.jsonl", '{"n": 2}\n')
    assert main(["run", "q.cel", "a.jsonl", "b.jsonl", "--strict-schema"]) == 0
    capsys.readouterr()
    assert main(["run", "q.cel", "a.jsonl", "c.jsonl"]) == 0
    assert "a.jsonl and 1 more file: no row has 'id'" in capsys.readouterr().err
    put("c.jsonl", '{"ID": 2}\n')
    assert main(["run", "q.cel", "b.jsonl", "c.jsonl"]) == 2
    assert "c.jsonl: no row has 'id', which query 'q' reads; did you mean 'ID'?" in (
        capsys.readouterr().err
    )


# --- places of problems ---------------------------------------------------------------------------


@pytest.mark.each(4)
@pytest.mark.parametrize("block", [100, 1 << 20])
@pytest.mark.parametrize("place", [0, 31, 59])
@pytest.mark.parametrize(
    ("suffix", "old", "new", "said"),
    [
        ("csv", ",{id},", ",{id}x,", "column 'id': '{id}x' is no LONG"),
        ("csv", ",{id},", ",", "the file has 4 columns, and this row has 3"),
        ("csv", "{time}", "noon", "column 'ts': "),
        ("jsonl", '"id": {id}', '"id": "{id}"', "'id' is of the kind string, and number is needed"),
        ("jsonl", '"id": {id}', '"id": {id}.5', "{id}.5 is no LONG"),
        ("jsonl", '"id": {id}', '"id": ', "no JSON: "),
        ("jsonl", "{time}", "noon", "column 'ts': "),
    ],
)
def test_a_bad_row_is_told_by_file_and_line(
    suffix: str,
    old: str,
    new: str,
    said: str,
    place: int,
    block: int,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text_blocks, "_BLOCK", block)
    events = frame()
    words = {
        "id": str(events["id"][place]),
        "time": events["ts"][place].strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    for text in ("id", "time"):
        old, new, said = (one.replace(f"{{{text}}}", words[text]) for one in (old, new, said))
    good = {"csv": csv_bytes, "jsonl": json_bytes}[suffix](events).decode()
    assert good.count(old) == 1
    # An empty line is a line, too.
    bad = good.replace(old, new).replace("\n", "\n\n", 1)
    line = 1 + good[: good.index(old)].count("\n")
    line += line > 1
    put(f"first.{suffix}", good)
    put(f"second.{suffix}", bad)
    found = refused(run, f"first.{suffix}", f"second.{suffix}", "--order-by", "id")
    assert found.startswith(f"second.{suffix}, line {line}: {said}"), found


@pytest.mark.parametrize("shuffled", [False, True], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_bad_event_is_told_by_file_and_place(suffix: str, shuffled: bool, run: Run) -> None:
    events = frame(30)
    if shuffled:
        events = events.sample(frac=1, random_state=2).reset_index(drop=True)
    bad = events.copy()
    bad.loc[17, "type"] = None
    write = FORMS[f"e.{suffix}"]
    put(f"first.{suffix}", write(events))
    put(f"second.{suffix}", write(bad))
    said = refused(run, f"first.{suffix}", f"second.{suffix}")
    place = {"csv": "line 19", "jsonl": "line 18", "parquet": "row 17 (counted from 0)"}[suffix]
    assert said.startswith(f"second.{suffix}, {place}: "), said
    assert "'type' is NULL in row 47" in said
