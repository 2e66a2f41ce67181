"""What examples/ has for other tools: a model of dbt, a daily script, tables of lakes."""

from __future__ import annotations

import datetime as dt
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from places import ROOT

import celc

EXAMPLES = ROOT / "examples"
# The command `celc` of the environment in which the tests run.
_PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_model_of_dbt_is_that_of_its_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as its script writes it, and answers as the query does."""
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.setenv("PATH", _PATH)
    project = EXAMPLES / "dbt"
    written = _module(project / "write_models.py").write_model(
        project / "fire.cel", "readings", tmp_path
    )
    text = written.read_text("utf-8")
    assert text == (project / "models" / "fire.sql").read_text("utf-8")
    readings = pa.csv.read_csv(project / "seeds" / "readings.csv")
    connection = duckdb.connect()
    connection.register("seed", readings)
    found = connection.sql(text.replace("{{ ref('readings') }}", "seed")).to_arrow_table()
    answer = celc.compile_files(project / "fire.cel").fire.match_table(readings)
    wanted = answer.select(found.schema.names).cast(found.schema)
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))
    assert len(found) == 3


def _events(*rows: tuple[str, int, float, int]) -> pa.Table:
    """Events given by type, place, value, and the minute of a noon."""
    noon = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
    types, ids, values, minutes = zip(*rows, strict=True)
    times = [noon + dt.timedelta(minutes=minute) for minute in minutes]
    return pa.table(
        {
            "type": types,
            "id": pa.array(ids, pa.int64()),
            "value": values,
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )


_FIRST = (("T", 1, 41.5, 0), ("H", 1, 24.5, 7))
_LATER = (("T", 2, 45.0, 20), ("H", 2, 20.0, 21))


def test_matches_are_merged_into_a_table_of_delta(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    run = _module(EXAMPLES / "lakes" / "delta.py").matches_of
    deltalake.write_deltalake(f"{tmp_path}/events", _events(*_FIRST))
    assert [run(str(tmp_path)), run(str(tmp_path))] == [1, 0]
    deltalake.write_deltalake(f"{tmp_path}/events", _events(*_LATER), mode="append")
    assert run(str(tmp_path)) == 1


def test_matches_are_merged_into_a_table_of_iceberg(tmp_path: Path) -> None:
    catalogs: Any = pytest.importorskip("pyiceberg.catalog.sql")
    run = _module(EXAMPLES / "lakes" / "iceberg.py").matches_of
    catalog = catalogs.SqlCatalog(
        "local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}"
    )
    catalog.create_namespace("farm")
    events = catalog.create_table("farm.events", _events(*_FIRST).schema)
    events.append(_events(*_FIRST))
    assert [run(catalog), run(catalog)] == [1, 0]
    events.append(_events(*_LATER))
    assert run(catalog) == 1


@pytest.mark.long
def test_days_add_up(tmp_path: Path) -> None:
    """The daily script: a match that begins on one day and ends on the next is in one file."""
    (tmp_path / "events").mkdir()
    night = _events(("T", 1, 41.5, 715), ("H", 1, 24.5, 722), ("T", 1, 42.0, 1440))
    pq.write_table(night, tmp_path / "events" / "night.parquet")
    shutil.copytree(EXAMPLES / "daily", tmp_path / "job")
    for _ in range(2):
        for after, until in (
            ("2026-07-01", "2026-07-02"),
            ("2026-07-02 00:00:00+00:00", "2026-07-03 00:00:00+00:00"),
        ):
            subprocess.run(
                [tmp_path / "job" / "matches.sh", after, until, "events", "matches"],
                cwd=tmp_path,
                env=os.environ | {"PATH": _PATH},
                check=True,
            )
    found = {path.stem: len(pq.read_table(path)) for path in (tmp_path / "matches").iterdir()}
    # Spark reads no file with a colon in its name.
    assert found == {"known-after-2026-07-01": 0, "known-after-2026-07-02-00-00-00-00-00": 1}
