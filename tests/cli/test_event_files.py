"""What `celc run` reads: nested fields, names that a file lacks or spells otherwise, long rows."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from engines import interpreted

import celc
from celc.interfaces.cli import main
from celc.interfaces.cli.reading import events as event_files
from celc.interfaces.cli.reading import text_blocks
from celc.interfaces.cli.reading.origins import Origin, opened_origins

Row = dict[str, Any]

LOGIN = """\
CREATE STREAM S {
  EVENT Login { id: INT, `auth.mfa`: BOOLEAN },
  EVENT Logout { id: INT, reason: STRING }
}
"""
TIMED = LOGIN.replace(" }", ", ts: TIMESTAMP }")


def row(id: int, type: str = "Login", **more: Any) -> Row:
    return {"type": type, "id": id, "ts": f"2026-07-01 12:00:{id:02}", **more}


def write_json(path: Path, rows: list[Row]) -> Path:
    path = path.with_suffix(".jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_csv(path: Path, rows: list[Row]) -> Path:
    path = path.with_suffix(".csv")
    pa.csv.write_csv(pa.Table.from_pylist(rows), path)
    return path


def write_parquet(path: Path, rows: list[Row]) -> Path:
    path = path.with_suffix(".parquet")
    table = pa.Table.from_pylist(rows)
    for name, type in (("ts", pa.timestamp("us", "UTC")), ("id", pa.int32())):
        if name in table.schema.names:
            place = table.schema.get_field_index(name)
            column = table.column(name)
            if pa.types.is_string(column.type):
                column = column.cast(pa.timestamp("us"))
            table = table.set_column(place, name, column.cast(type))
    pa.parquet.write_table(table, path)
    return path


FILES = {"json": write_json, "csv": write_csv, "parquet": write_parquet}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs a query on a file: the exit code, the ids of the label x, and standard error."""

    def run(text: str, events: Path, *options: str) -> tuple[int, list[list[int]], str]:
        source = tmp_path / "q.cel"
        source.write_text(text)
        with interpreted():
            code = main(["run", str(source), str(events), "--format", "json", *options])
        printed = capsys.readouterr()
        ids = [json.loads(line)["labels"]["x"] for line in printed.out.splitlines()]
        return code, ids, printed.err

    return run


def origin_of(path: Path) -> Origin:
    with opened_origins([str(path)], None) as (origin,):
        return origin


# --- nested fields --------------------------------------------------------------------------------

WITHOUT_MFA = f"{LOGIN}SELECT * FROM S WHERE Login AS x FILTER x.`auth.mfa` IS NULL"
WITH_MFA = f"{LOGIN}SELECT * FROM S WHERE Login AS x FILTER x.`auth.mfa` = TRUE"


def test_nested_fields_of_json_are_read(run: Any, tmp_path: Path) -> None:
    rows = [
        row(1, auth={"mfa": True}),
        row(2, auth={"mfa": False, "other": [1, {"deep": None}]}),
        row(3, auth={}),
        row(4, auth=None),
        row(5),
        row(6, auth={"mfa": True}),
    ]
    events = write_json(tmp_path / "e", rows)
    assert run(WITH_MFA, events) == (0, [[0], [5]], "")
    assert run(WITHOUT_MFA, events) == (0, [[2], [3], [4]], "")


def test_a_key_with_a_dot_comes_before_a_field(run: Any, tmp_path: Path) -> None:
    rows = [
        row(1, auth={"mfa": True}),
        row(2, **{"auth.mfa": True, "auth": {"mfa": False}}),
        row(3, **{"auth.mfa": False, "auth": {"mfa": True}}),
        row(4, **{"auth.mfa": True}),
    ]
    assert run(WITH_MFA, write_json(tmp_path / "e", rows)) == (0, [[0], [1], [3]], "")
    # A value at the place of the object is no object, and none is needed.
    rows = [row(1, **{"auth.mfa": True, "auth": "password"})]
    assert run(WITH_MFA, write_json(tmp_path / "e", rows)) == (0, [[0]], "")


DEEP = """\
CREATE STREAM S { EVENT A { `a.b.c`: INT, `a.b`: STRING, `t.at`: TIMESTAMP } }
SELECT x FROM S WHERE A AS x FILTER x.`a.b.c` > 0
"""


@pytest.mark.parametrize(
    "event",
    [
        {"a.b.c": 1, "a.b": "x"},
        {"a": {"b.c": 1, "b": "x"}},
        {"a": {"b.c": 1}, "a.b": "x"},
        {"a": {"b": "x"}, "a.b.c": 1},
    ],
)
def test_fields_are_found_at_any_depth_as_in_a_table(event: Row, run: Any, tmp_path: Path) -> None:
    event = event | {"t": {"at": "2026-07-01T12:00:00Z"}}
    found = run(DEEP, write_json(tmp_path / "e", [event, event]), "--order-by", "t.at")
    assert found == (0, [[0], [1]], "")
    deep = DEEP.replace("`a.b`: STRING, ", "")
    event = {"a": {"b": {"c": 1, "d": 2}}, "t": {"at": "2026-07-01T12:00:00Z"}}
    events = write_json(tmp_path / "e", [event])
    assert run(deep, events, "--order-by", "t.at") == (0, [[0]], "")


def test_json_and_tables_agree_on_nested_fields(run: Any, tmp_path: Path) -> None:
    rows = [row(n, auth={"mfa": (True, False, None)[n % 3]}) for n in range(9)]
    with interpreted():
        query = next(iter(celc.compile(WITH_MFA).queries.values()))
    found = [run(WITH_MFA, FILES[name](tmp_path / "e", rows)) for name in ("json", "parquet")]
    assert found[0] == found[1]
    table = pa.parquet.read_table(tmp_path / "e.parquet")
    matches = query.match_table(table).to_pylist()
    assert found[0][1] == [[event["pos"] for event in match["x"]] for match in matches]


OBJECTS = {
    "s": "STRUCT<a: LONG, d: STRUCT<e: LONG>>",
    "s.a": "LONG",
    "s.c": "DOUBLE",
    "s.d": "STRUCT<f: LONG>",
    "s.d.e": "LONG",
    "s.d.g": "STRING",
}


def test_objects_are_read_as_a_whole_and_by_their_fields(tmp_path: Path, capsys: Any) -> None:
    inner = pa.struct([("e", pa.int64()), ("f", pa.int64()), ("g", pa.string())])
    whole = pa.struct([("a", pa.int64()), ("c", pa.float64()), ("d", inner)])
    rows: list[Any] = [
        {"a": 1, "c": 0.5, "d": {"e": 2, "f": 3, "g": "x"}},
        {"a": None, "c": 1.5, "d": {"e": None, "f": 4, "g": None}},
        {"a": 2, "c": None, "d": None},
        None,
    ]
    table = pa.table({"type": ["A"] * 4, "s": pa.array(rows, whole)})
    with_flat = table.append_column("s.a", pa.array([7, None, 8, 9]))
    for number, given in enumerate((table, with_flat)):
        events = tmp_path / f"e{number}.jsonl"
        events.write_text("".join(json.dumps(row) + "\n" for row in given.to_pylist()))
        for seed in range(20):
            names = random.Random(seed).sample([*OBJECTS], 1 + seed % len(OBJECTS))
            declared = ", ".join(f"`{name}`: {OBJECTS[name]}" for name in names)
            text = f"CREATE STREAM S {{ EVENT A {{ {declared} }} }}\nSELECT x FROM S WHERE A AS x"
            with interpreted():
                found = next(iter(celc.compile(text).queries.values())).match_table(given)
                (tmp_path / "q.cel").write_text(text)
                command = ["run", str(tmp_path / "q.cel"), str(events), "--format", "rows"]
                assert main(command) == 0
            printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            wanted = found.to_pylist()
            if given is with_flat and "s.a" in names:
                # In JSON the key of a row, if it is not NULL, comes before the field.
                for match in wanted:
                    if match["x"][0]["s.a"] is None:
                        match["x"][0]["s.a"] = rows[match["x"][0]["pos"]]["a"]
            assert printed == wanted, text


def test_a_field_has_one_type_in_json(run: Any, tmp_path: Path) -> None:
    text = (
        "CREATE STREAM S { EVENT A { s: STRUCT<a: INT>, `s.a`: STRING } }\n"
        "SELECT x FROM S WHERE A AS x FILTER x.`s.a` = '1'"
    )
    events = write_json(tmp_path / "e", [{"type": "A", "s": {"a": 1}}])
    assert (
        "'s.a' is also a field of 's', which is declared as an object"
        in run(text.replace("SELECT x", "SELECT x[s]"), events)[2]
    )


# --- names that a file lacks ----------------------------------------------------------------------

IDS = f"{LOGIN}SELECT x[id] FROM S WHERE Login AS x FILTER x.id IS NULL OR x.id > 0"


def renamed(rows: list[Row], old: str, new: str) -> list[Row]:
    return [{new if key == old else key: value for key, value in row.items()} for row in rows]


@pytest.mark.parametrize("new", ["ID", "Id", "idd"])
@pytest.mark.parametrize("format", FILES)
def test_a_name_that_is_spelt_otherwise_is_an_error(
    format: str, new: str, run: Any, tmp_path: Path
) -> None:
    events = FILES[format](tmp_path / "e", renamed([row(1), row(2)], "id", new))
    code, _, said = run(IDS, events)
    assert code == 2
    assert said.startswith(f"celc: {events.name}: no row has 'id', which query 'q' reads; did you")
    assert f"did you mean '{new}'?" in said
    assert len(said.splitlines()) == 1
    target = tmp_path / "out.json"
    assert run(IDS, events, "-o", str(target))[0] == 2
    assert not target.exists()


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_table_without_a_column_that_is_read_is_an_error(
    format: str, run: Any, tmp_path: Path
) -> None:
    """As for match_table and on Spark: a table says itself what it has."""
    rows = [{k: v for k, v in row(n, size=n).items() if k != "id"} for n in range(3)]
    code, found, said = run(IDS, FILES[format](tmp_path / "e", rows))
    assert (code, found) == (2, [])
    assert "query 'q' cannot do without the column 'id', which is missing; the columns are:" in said


def test_a_key_that_no_row_has_is_null_with_a_warning(run: Any, tmp_path: Path) -> None:
    rows = [{k: v for k, v in row(n, size=n).items() if k != "id"} for n in range(3)]
    events = write_json(tmp_path / "e", rows)
    code, found, said = run(IDS, events)
    assert (code, found) == (0, [[0], [1], [2]])
    assert said == (
        f"celc: warning: {events.name}: no row has 'id', which query 'q' reads: it is NULL in all "
        "events\n"
    )
    code, found, said = run(IDS, events, "--strict-schema")
    assert code == 2
    assert said == (
        f"celc: {events.name}: no row has 'id', which query 'q' reads: it is NULL in all events "
        "(--strict-schema)\n"
    )
    target = tmp_path / "out.json"
    assert run(IDS, events, "--strict-schema", "-o", str(target))[0] == 2
    assert not target.exists()


def test_keys_of_other_event_types_are_not_missed(run: Any, tmp_path: Path) -> None:
    """Logout's attribute can be nowhere where there is no Logout."""
    text = f"{LOGIN}SELECT * FROM S WHERE Login AS x OR (Logout AS x FILTER x.reason = 'r')"
    rows = [row(n, **{"auth.mfa": True}) for n in range(3)]
    events = write_json(tmp_path / "e", rows)
    assert run(text, events, "--strict-schema")[::2] == (0, "")
    rows.append(row(9, "Logout", **{"auth.mfa": None}))
    events = write_json(tmp_path / "e", rows)
    code, _, said = run(text, events)
    assert (code, "no row has 'reason'" in said) == (0, True)
    assert run(text, events, "--strict-schema")[0] == 2


def test_a_declared_name_is_no_misspelling_of_another(run: Any, tmp_path: Path) -> None:
    stream = "CREATE STREAM S { EVENT A { temp_in: INT, temp_out: INT } }\n"
    text = f"{stream}SELECT * FROM S WHERE A AS x FILTER x.temp_in IS NULL"
    events = write_json(tmp_path / "e", [{"temp_out": 1}])
    code, found, said = run(text, events)
    assert (code, found) == (0, [[0]])
    assert "no row has 'temp_in'" in said


def test_a_name_that_is_null_in_all_rows_is_there(run: Any, tmp_path: Path) -> None:
    rows = [row(1) | {"id": None, "ID": 7}]
    assert run(IDS, write_json(tmp_path / "e", rows), "--strict-schema") == (0, [[0]], "")


def test_attributes_that_the_query_does_not_read_are_not_missed(run: Any, tmp_path: Path) -> None:
    events = write_json(tmp_path / "e", [row(1)])
    assert run(IDS, events, "--strict-schema") == (0, [[0]], "")


def test_a_misspelt_column_of_types_or_order_is_told_as_such(run: Any, tmp_path: Path) -> None:
    ordered = f"{TIMED}SELECT x FROM S WHERE Login AS x WITHIN 1 HOUR [ts]"
    for old, new in (("type", "Type"), ("ts", "TS")):
        for format, write in FILES.items():
            events = write(tmp_path / "e", renamed([row(1, **{"auth.mfa": True})], old, new))
            code, found, said = run(ordered, events)
            assert (code, found) == (2, []), format
            assert f"no row has '{old}'" in said, format
            assert f"did you mean '{new}'?" in said, format


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_table_without_a_column_for_its_order_is_an_error(
    format: str, run: Any, tmp_path: Path
) -> None:
    ordered = f"{TIMED}SELECT x[id] FROM S WHERE Login AS x WITHIN 1 HOUR [ts]"
    rows = [{"type": "Login", "id": 1}]
    code, _, said = run(ordered, FILES[format](tmp_path / "e", rows))
    assert code == 2
    assert "cannot do without the column 'ts', which is missing; the columns are: 'type'" in said


def test_misspelt_nested_fields_are_told_as_such(run: Any, tmp_path: Path) -> None:
    rows = [row(1, auth={"MFA": True})]
    for format in ("json", "parquet"):
        code, _, said = run(WITHOUT_MFA, FILES[format](tmp_path / "e", rows))
        assert code == 2, format
        assert "no row has 'auth.mfa'" in said
        assert "did you mean 'auth.MFA'?" in said


def test_fields_of_one_struct_are_not_alike_for_its_name(run: Any, tmp_path: Path) -> None:
    rows = [row(1, auth={"mode": 1, "user": "u"})]
    code, found, said = run(WITHOUT_MFA, write_json(tmp_path / "e", rows))
    assert (code, found) == (0, [[0]]), said
    assert "no row has 'auth.mfa'" in said
    code, _, said = run(WITHOUT_MFA, FILES["parquet"](tmp_path / "e", rows))
    assert (code, "did you mean" in said) == (2, False), said


def test_a_file_without_rows_lacks_nothing(run: Any, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("type,id,ts\n")
    assert run(IDS, tmp_path / "e.csv", "--strict-schema") == (0, [], "")


def test_undeclared_columns_of_csv_do_no_harm(run: Any, tmp_path: Path) -> None:
    """Whatever they hold, and however late it turns out."""
    lines = [f"Login,{n},2026-07-01T12:00:00Z,{n}\n" for n in range(60_000)]
    events = tmp_path / "e.csv"
    events.write_text(
        "".join(["type,id,ts,note\n", *lines, "Login,-1,2026-07-01T12:00:00Z,word\n"])
    )
    text = f"{LOGIN}SELECT x[id] FROM S WHERE Login AS x FILTER x.id < 0"
    assert run(text, events) == (0, [[60_000]], "")


# --- event types ----------------------------------------------------------------------------------

ONE = "CREATE STREAM S { EVENT A { id: INT } }\nSELECT * FROM S WHERE A AS x\n"


@pytest.mark.parametrize("format", FILES)
def test_a_query_of_one_type_reads_the_types_that_are_there(
    format: str, run: Any, tmp_path: Path
) -> None:
    rows = [{"type": "A", "id": 1}, {"type": "B", "id": 2}, {"type": "A", "id": 3}]
    code, found, said = run(ONE, FILES[format](tmp_path / "e", rows))
    assert (code, found) == (0, [[0], [1]])
    assert "1 of the rows have a type that none of its streams declares" in said
    rows = [{"id": 1}, {"id": 2}]
    assert run(ONE, FILES[format](tmp_path / "e", rows)) == (0, [[0], [1]], "")


def test_rows_with_and_without_a_type_do_not_mix(run: Any, tmp_path: Path) -> None:
    rows: list[Row] = [{"type": "A", "id": 1}, {"id": 2}]
    code, _, said = run(ONE, write_json(tmp_path / "e", rows))
    assert (code, "column 'type' is NULL in row 1" in said) == (2, True)
    # The same wherever a block of the file ends.
    rows = [{"id": n, "pad": " " * 90} for n in range(20_000)] + [{"type": "A", "id": 2}]
    code, _, said = run(ONE, write_json(tmp_path / "e", rows))
    assert code == 2
    assert "'type' is NULL" in said


# --- long rows ------------------------------------------------------------------------------------


def long_file(path: Path, format: str, place: int, length: int, rows: int = 40) -> Path:
    """Rows of which the one at a place has a long value."""
    path = path.with_suffix({"csv": ".csv", "json": ".jsonl"}[format])
    with path.open("w") as stream:
        if format == "csv":
            stream.write("type,id,tie,note\n")
        for n in range(rows):
            note = "x" * (length if n == place else 60_000)
            line = f"A,{n},{n},{note}"
            if format == "json":
                line = json.dumps({"type": "A", "id": n, "tie": n, "note": note})
            stream.write(line + "\n")
    return path


@pytest.mark.each(5, values=False)
@pytest.mark.parametrize("place", [0, 25, 39])
@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize("length", [3 << 20, 20 << 20])
def test_a_row_longer_than_a_block_is_read(
    format: str, place: int, length: int, run: Any, tmp_path: Path
) -> None:
    events = long_file(tmp_path / "e", format, place, length)
    expected = (0, [[n] for n in range(40)], "")
    assert run(ONE, events) == expected
    if place:
        assert run(ONE, events, "--order-by", "id", "--tiebreak", "tie") == expected


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_row_that_is_too_long_is_told_as_such(
    format: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_blocks, "_LONGEST_BLOCK", 8 << 20)
    events = long_file(tmp_path / "e", format, 30, 17 << 20)
    code, _, said = run(ONE, events)
    assert code == 2
    assert said.startswith(f"celc: {events.name}: a row after row ")
    assert "is longer than 8 MiB" in said
    assert "Parquet" in said
    assert len(said.splitlines()) == 1


@pytest.fixture
def other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow says in other words what it does not read, as another version of it may."""

    def reworded(opened: Any) -> Any:
        def batches(*arguments: Any, **options: Any) -> Any:
            try:
                yield from opened(*arguments, **options)
            except pa.ArrowInvalid:
                raise pa.ArrowInvalid("in other words") from None

        return batches

    for module, name in ((pa.csv, "open_csv"), (pa.json, "open_json")):
        monkeypatch.setattr(module, name, reworded(getattr(module, name)))


@pytest.mark.usefixtures("other_words")
@pytest.mark.parametrize("format", ["csv", "json"])
def test_what_is_too_long_for_a_block_is_seen_by_its_length(
    format: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = long_file(tmp_path / "e", format, 25, 3 << 20)
    assert run(ONE, events) == (0, [[n] for n in range(40)], "")
    monkeypatch.setattr(text_blocks, "_LONGEST_BLOCK", 1 << 20)
    assert "is longer than 1 MiB" in run(ONE, events)[2]
    rows = events.read_text().splitlines()
    wrong = rows[20].replace("19", "nineteen", 1).replace("20", "twenty", 1)
    events.write_text("\n".join([*rows[:20], wrong, *rows[21:24]]))
    code, _, said = run(ONE, events)
    assert (code, said) == (2, f"celc: {events.name}, line 21: in other words\n")


@pytest.mark.usefixtures("other_words")
@pytest.mark.parametrize("text", ["", "\n \n", "\n" * 3000])
def test_json_without_rows_has_no_events(
    text: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_blocks, "_BLOCK", 1000)
    events = tmp_path / "e.jsonl"
    events.write_text(text)
    assert run(ONE, events)[:2] == (0, [])
    events.write_text(text + '{"type": "A", "id": 0}\n' + text + '{"type": "A", "id": 1}\n' + text)
    assert run(ONE, events)[:2] == (0, [[0], [1]])


@pytest.mark.parametrize("format", ["csv", "json"])
def test_ordinary_files_are_read_in_small_blocks(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What blocks grow to is for the file alone that needs it."""
    sizes = []
    options = {"csv": pa.csv, "json": pa.json}[format].ReadOptions
    module = {"csv": event_files.pyarrow.csv, "json": event_files.pyarrow.json}[format]

    def noted(**arguments: Any) -> Any:
        sizes.append(arguments["block_size"])
        return options(**arguments)

    monkeypatch.setattr(module, "ReadOptions", noted)
    with interpreted():
        (query,) = celc.compile(ONE).queries.values()
    wanted = event_files.Wanted(
        "q", query.file_schema, frozenset(), "type", {"id": frozenset({"A"})}, frozenset()
    )
    for place, length, expected in ((0, 60_000, [1]), (30, 3 << 20, [1, 8])):
        sizes.clear()
        path = long_file(tmp_path / "e", format, place, length)
        events = event_files.EventFile(origin_of(path), wanted, event_files.Form())
        assert [n for batch in events.batches() for n in batch["id"].to_pylist()] == [*range(40)]
        assert sizes == [size << 20 for size in expected]


def test_memory_does_not_grow_with_a_file_that_lacks_a_name(tmp_path: Path) -> None:
    """The search for names like it goes through the file row by row."""
    with interpreted():
        (query,) = celc.compile(ONE).queries.values()
    wanted = event_files.Wanted(
        "q", query.file_schema, frozenset(), "type", {"id": frozenset({"A"})}, frozenset()
    )
    peaks = []
    for rows in (20_000, 80_000):
        path = write_json(tmp_path / "e", [{f"k{n % 50}": "x" * 40} for n in range(rows)])
        events = event_files.EventFile(origin_of(path), wanted, event_files.Form())
        assert sum(len(batch) for batch in events.batches()) == rows
        tracemalloc.start()
        assert events.lacking() == ["id"]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
