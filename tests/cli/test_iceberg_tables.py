"""Tables of Apache Iceberg in `celc run`: their rows are those that the table has now."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from engines import interpreted

from celc.interfaces.cli import main

QUERY = "SELECT x FROM log WHERE A AS x"
Run = Callable[..., tuple[int, list[Any], str]]


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    sql = pytest.importorskip(
        "pyiceberg.catalog.sql", reason="needs the package pyiceberg: make venv"
    )
    found = sql.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    found.create_namespace("n")
    return found


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a query: the exit code, the events of the label x, and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, query: str = QUERY) -> tuple[int, list[Any], str]:
        Path("q.cel").write_text(query)
        with interpreted():
            code = main(["run", "q.cel", *arguments, "--format", "rows"])
        printed = capsys.readouterr()
        events = [json.loads(line)["x"][0] for line in printed.out.splitlines()]
        return code, [{k: v for k, v in one.items() if k != "pos"} for one in events], printed.err

    return run


def rows(first: int, count: int, **more: Any) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "type": ["A"] * count,
            "id": pa.array(numbers, pa.int32()),
            "day": [date(2026, 7, 1 + n % 3) for n in numbers],
            "s": [{"a": n, "b": str(n)} for n in numbers],
        }
        | more
    )


def metadata_of(table: Any) -> Path:
    return Path(table.metadata_location.removeprefix("file://"))


def as_json(table: Any) -> list[Any]:
    found = table.scan().to_arrow().to_pylist()
    return sorted(
        (
            {k: str(v) if isinstance(v, date) else v for k, v in one.items() if k != "type"}
            for one in found
        ),
        key=lambda one: one["id"],
    )


@pytest.mark.parametrize("by", [None, "day", "type"])
def test_the_rows_are_those_of_the_table(by: str | None, catalog: Any, run: Run) -> None:
    table = catalog.create_table("n.log", schema=rows(0, 1).schema)
    if by is not None:
        with table.update_spec() as spec:
            spec.add_identity(by)
    table.append(rows(0, 7))
    table.delete("id = 2")
    table.overwrite(rows(10, 1), overwrite_filter="id = 3")
    every = "SELECT x[id, day, s] FROM log WHERE A AS x"
    code, found, told = run("n/log", query=every)
    assert (code, sorted(found, key=lambda one: one["id"])) == (0, as_json(table))
    assert "without version-hint.text, so its newest metadata is read: 0000" in told
    newest = metadata_of(table)
    (newest.parent / "version-hint.text").write_text(newest.name.removesuffix(".metadata.json"))
    assert run("n/log", query=every)[::2] == (0, told.partition("\n")[2])
    # Columns that are added, renamed and widened are those of today, in old files as well.
    from pyiceberg.types import LongType, StringType

    with table.update_schema() as schema:
        schema.rename_column("id", "number")
        schema.rename_column("s.a", "first")
        schema.update_column("id", LongType())
    with table.update_schema() as schema:
        schema.add_column("id", StringType())
    last = rows(20, 1, id=["x"], s=[{"first": 5, "b": "y"}])
    table.append(last.append_column("number", pa.array([20], pa.int64())))
    today = "SELECT x[number, id, `s.first`] FROM log WHERE A AS x"
    code, found, _ = run(str(metadata_of(table)), query=today)
    wanted = [
        {"number": one["number"], "id": one["id"], "s.first": one["s"]["first"]}
        for one in table.scan().to_arrow().to_pylist()
    ]
    assert [code, *sorted(found, key=str)] == [0, *sorted(wanted, key=str)]


def test_files_of_deleted_positions_count(catalog: Any, run: Run, tmp_path: Path) -> None:
    table = catalog.create_table("n.log", schema=rows(0, 1).schema)
    table.append(rows(0, 5))
    metadata = _with_deleted_positions(table, [1, 3], tmp_path)
    code, found, told = run(str(metadata), query="SELECT x[id] FROM log WHERE A AS x")
    assert (code, found) == (0, [{"id": 0}, {"id": 2}, {"id": 4}]), told


def _with_deleted_positions(table: Any, positions: list[int], folder: Path) -> Path:
    """New metadata of a table of one file, with a file of positions as other engines write it."""
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestWriterV2,
        write_manifest_list,
    )
    from pyiceberg.typedef import Record

    class OfDeletes(ManifestWriterV2):  # type: ignore[misc]
        def content(self) -> Any:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    (task,) = table.scan().plan_files()
    path = folder / "positions.parquet"
    deleted = pa.table({"file_path": [task.file.file_path] * len(positions), "pos": positions})
    pyarrow.parquet.write_table(deleted, path)
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"file://{path}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(positions),
        file_size_in_bytes=path.stat().st_size,
        spec_id=0,
    )
    old, number = table.current_snapshot(), 77
    of_files = table.io.new_output(f"file://{folder}/deletes.avro")
    with OfDeletes(table.spec(), table.schema(), of_files, number, "deflate") as writer:
        writer.add_entry(
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=number, data_file=file
            )
        )
    of_list = table.io.new_output(f"file://{folder}/list.avro")
    with write_manifest_list(2, of_list, number, old.snapshot_id, 2, "deflate") as manifests:
        manifests.add_manifests([writer.to_manifest_file(), *old.manifests(table.io)])
    metadata = json.loads(metadata_of(table).read_text())
    (snapshot,) = metadata["snapshots"]
    snapshot |= {"snapshot-id": number, "sequence-number": 2, "manifest-list": of_list.location}
    metadata |= {"current-snapshot-id": number, "last-sequence-number": 2, "refs": {}}
    newest = metadata_of(table).with_name("00009-x.metadata.json")
    newest.write_text(json.dumps(metadata))
    return newest


def test_a_table_that_cannot_be_read_is_refused(catalog: Any, run: Run) -> None:
    table = catalog.create_table("n.log", schema=rows(0, 1).schema)
    assert run("n/log", query=f"CREATE STREAM log {{ EVENT A {{ id: INT }} }}\n{QUERY}")[:2] == (
        0,
        [],
    )
    code, _, told = run("n/log")
    assert (code, "there are no files to read" in told) == (2, True)
    table.append(rows(0, 3))
    newest = metadata_of(table)
    declared = f"CREATE STREAM log {{ EVENT A {{ id: STRING }} }}\n{QUERY}"
    code, _, told = run("n/log", query=declared)
    assert (code, "'id'" in told) == (2, True), told
    code, _, told = run("n/log/data")
    assert (code, "celc run reads that log only where" in told) == (2, True)
    code, _, told = run("n/log", "--input-format", "csv")
    assert (code, "leave out --input-format" in told) == (2, True)
    beside = newest.with_name(newest.name.replace("-", "-a"))
    beside.write_text(newest.read_text())
    code, _, told = run("n/log")
    assert (code, "newest metadata is not known" in told, beside.name in told) == (2, True, True)
    text = newest.read_text()
    beside.write_text(text.replace('"manifest-list":"file://', '"manifest-list":"s3://b'))
    code, _, told = run(str(beside))
    assert (code, "names s3://b" in told, "no file of this machine" in told) == (2, True, True)
    beside.write_text(text[: len(text) // 2])
    assert run(str(beside))[2].count("\n") == 1
    beside.unlink()
    (data,) = Path("n/log/data").iterdir()
    data.rename("moved.parquet")
    code, _, told = run("n/log")
    assert (code, "which is no file of this machine" in told) == (2, True)


def test_without_the_package_the_refusal_names_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "t" / "metadata").mkdir(parents=True)
    (tmp_path / "t" / "metadata" / "v3.metadata.json").write_text("{}")
    (tmp_path / "t" / "metadata" / "version-hint.text").write_text("3\n")
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog.noop", None)
    code, _, told = run("t")
    assert code == 2
    assert "install the package pyiceberg (pip install 'celc[tables]')" in told
