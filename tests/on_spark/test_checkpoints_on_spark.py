"""A checkpoint that an earlier version has written with Spark, gone on with.

    python tests/on_spark/test_checkpoints_on_spark.py      # writes it anew

`tests/checkpoints/README.md` says when one may. The checkpoint is one of several queries in one
stream, since to start a stream takes Spark seconds. Spark notes whole paths in it; in the archive
`FOLDER` stands for the folder, and there are no checksums of files.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime import CompiledQuery, EventWarning
from conftest import long_over_connect
from engines import interpreted, only_query
from places import TESTS
from stream_routes import (
    DECLARATIONS,
    END,
    SETTINGS,
    canonical,
    event,
    events,
    files,
    parts,
    run,
    settings,
    shuffled,
    table,
    together,
    wanted,
    write_files,
)

import celc

_ARCHIVE = TESTS / "checkpoints" / "on_spark.tar.gz"
_MARK = b"FOLDER"
_STREAM = "stream.json"

_QUERIES = {
    "pairs": "SELECT * WHERE A ; B PARTITION BY id WITHIN 5 SECONDS",
    "plain": "SELECT * WHERE (A AS x ; B AS y) FILTER y.v > x.v WITHIN 3 SECONDS",
    "silent": "SELECT x[v] WHERE A AS x ; !B FOR 4 SECONDS [ts] PARTITION BY id, name",
    "longest": "SELECT LONGEST x[v] WHERE A AS x ; B PARTITION BY id WITHIN 3 SECONDS",
    "totals": "SELECT TOTAL COUNT(*) AS n WHERE A ; B PARTITION BY id WITHIN 5 SECONDS "
    "PER 10 SECONDS",
    "each": "SELECT x FROM S FOR EACH rule WHERE (A AS x ; B AS y) FILTER x.id = rule.id "
    "AND y.id = rule.id WITHIN 3 SECONDS",
}
_RULES = [{"id": 0}, {"id": 2}]


def _compiled(name: str, text: str) -> CompiledQuery:
    with interpreted():
        found = only_query(celc.compile(text, order_by="ts"))
    return found.with_options(positions=name != "each")


def _stream(spark: Any, texts: dict[str, str], folder: Path) -> Any:
    """The queries over the files of a folder, as one stream."""
    streams = {}
    for name, text in texts.items():
        rules = {"rule": spark.createDataFrame(_RULES, "id INT")} if name == "each" else {}
        streams[name] = _compiled(name, text).match_stream(
            files(spark, folder / "in"), watermark="2 seconds", buckets=2, **rules
        )
    return together(streams)


def _gone_on(spark: Any, folder: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The rows that come when the stored stream goes on, and those that have to come."""
    # Python before 3.11.4 knows no filters.
    filters: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(_ARCHIVE) as archive:
        archive.extractall(folder, **filters)
    for path in folder.rglob("*"):
        if path.is_file() and _MARK in (data := path.read_bytes()):
            path.write_bytes(data.replace(_MARK, str(folder).encode()))
    stored = json.loads((folder / _STREAM).read_text(encoding="utf-8"))
    if tuple(stored["spark"]) > _version(spark):
        pytest.skip("Spark reads no checkpoint of a later Spark")
    given = [_typed(rows) for rows in stored["then"]]
    write_files(folder / "in", [table(rows) for rows in given], first=stored["first"])
    run(_stream(spark, stored["queries"], folder), folder)
    return _told(folder / "out"), stored["rows"]


def _told(out: Path) -> dict[str, list[str]]:
    """The rows of a sink. Spark reads a folder by the sink's log, whose beginning is elsewhere."""
    rows: dict[str, list[str]] = {}
    for path in out.glob("*.parquet"):
        for row in pq.read_table(path, partitioning=None).to_pylist():
            rows.setdefault(row["stream"], []).append(canonical(json.loads(row["json"])))
    return {name: sorted(texts) for name, texts in rows.items()}


def _typed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event(**row) for row in rows]


def _version(spark: Any) -> tuple[int, ...]:
    return tuple(int(number) for number in spark.version.split(".")[:2])


@long_over_connect
def test_a_stream_goes_on_from_a_checkpoint(spark: Any, tmp_path: Path) -> None:
    with settings(spark, SETTINGS):
        found, rows = _gone_on(spark, tmp_path)
    assert found == rows


# --- writing --------------------------------------------------------------------------------------


def _write(spark: Any, folder: Path) -> None:
    """Run a stream on half of the events, keep its checkpoint, and go on from there."""
    texts = {
        name: f"{DECLARATIONS}PARAMETERS rule {{ id: INT }}\nQUERY {name}: {text}\n"
        for name, text in _QUERIES.items()
    }
    every = events(60, 4)
    before, then = parts(shuffled(every, 2), 2)
    chunks = parts(before, 2)
    write_files(folder / "in", [table(rows) for rows in chunks])
    run(_stream(spark, texts, folder), folder)
    told = _told(folder / "out")
    start = event(0)["ts"]
    given = [
        [{**row, "ts": None, "seconds": (row["ts"] - start).total_seconds()} for row in rows]
        for rows in (then, [END])
    ]
    for rows in given:
        for row in rows:
            del row["ts"]
    stored = {
        "written_by": f"celc {celc.__version__}, PySpark {spark.version}",
        "spark": _version(spark),
        "queries": texts,
        "first": len(chunks),
        "then": given,
        "rows": {},
    }
    _pack(folder, stored)
    with tempfile.TemporaryDirectory() as other:
        stored["rows"], _ = _gone_on(spark, Path(other))
    for name, text in texts.items():
        query = _compiled(name, text).with_options(at_end="closed")
        rules = {"rule": pa.Table.from_pylist(_RULES, pa.schema({"id": pa.int32()}))}
        answer = query.match_table(table(every), **(rules if name == "each" else {}))
        rows = sorted([*told.get(name, []), *stored["rows"].get(name, [])])
        if name == "totals":  # in JSON a DECIMAL is a number
            place = answer.schema.get_field_index("n")
            answer = answer.set_column(place, "n", answer.column("n").cast(pa.int64()))
        assert rows == wanted(answer), name
        assert len(stored["rows"][name]) >= 3, name
    _pack(folder, stored)


def _pack(folder: Path, stored: dict[str, Any]) -> None:
    with tarfile.open(_ARCHIVE, "w:gz") as archive:
        for path in sorted((folder / "checkpoint").rglob("*")):
            if path.is_file() and path.suffix != ".crc":
                _add(archive, str(path.relative_to(folder)), path.read_bytes(), folder)
        _add(archive, _STREAM, json.dumps(stored, indent=1).encode(), folder)


def _add(archive: tarfile.TarFile, name: str, data: bytes, folder: Path) -> None:
    data = data.replace(str(folder).encode(), _MARK)
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


def main() -> None:
    """Write the checkpoint."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name, value in {**SETTINGS, "spark.sql.session.timeZone": "UTC"}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", EventWarning)
        _write(spark, Path(folder))
    spark.stop()


if __name__ == "__main__":
    main()
