"""Rules by shape on Spark, as a batch and as a stream: each is answered as it is alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celc_runtime import finish
from engines import interpreted
from stream_routes import SETTINGS, events, files, finished, parts, settings, table, write_files

import celc
from celc import Matcher
from celc.diagnostics.source import Source
from celc.driver.by_shape import compile_by_shape
from celc.options import Options

_STREAM = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP },
  EVENT B { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP }
}
"""
_RULES = {
    f"{name}{number}": f"{_STREAM}QUERY {name}{number}: {query.format(number)}"
    for name, query in {
        "pair": "SELECT x, y[v] FROM S WHERE (A AS x ; B AS y) FILTER x.id = {0} AND y.id = {0} "
        "AND x.v > 3{0} PARTITION BY id WITHIN 6 SECONDS [ts]",
        "one": "SELECT x.v AS v FROM S WHERE A AS x FILTER x.id = {0} AND x.v > 40",
        "sum": "SELECT TOTAL COUNT(*) AS n FROM S WHERE A AS x FILTER x.id = {0} "
        "PARTITION BY id PER 1 MINUTE",
    }.items()
    for number in (1, 2, 3)
}
_RULES["plain"] = (
    f"{_STREAM}QUERY plain: SELECT x, y FROM S WHERE (A AS x ; B AS y) FILTER x.v < y.v "
    "PARTITION BY id WITHIN 2 SECONDS [ts]"
)


@pytest.fixture(autouse=True)
def _settings(spark: Any) -> Iterator[None]:
    with settings(spark, SETTINGS):
        yield


@pytest.fixture(scope="module")
def module() -> Matcher:
    sources = [Source(f"{name}.cel", text) for name, text in _RULES.items()]
    compilation = compile_by_shape(sources, Options(("ts",)))
    assert len(compilation.rules) == 3
    with interpreted():
        return Matcher(compilation.module_parts("celc compile"))


def _alone(name: str) -> Any:
    with interpreted():
        (query,) = celc.compile(_RULES[name], order_by="ts").queries.values()
    return query.with_options(at_end="closed", positions=False)


def _counted(rows: Any) -> Counter[str]:
    return Counter(map(repr, rows.to_pylist()))


def _check(module: Any, found: Any, given: Any) -> None:
    everything = found.toArrow()
    names = {"query", "plain", *(name for name in found.columns if name.startswith("shape_"))}
    assert set(found.columns) == names
    assert len(names) == 5
    total = 0
    for name in _RULES:
        wanted = _alone(name).match_table(given)
        rows = module.rows(everything, name)
        assert rows.column_names == wanted.column_names
        assert _counted(rows) == _counted(wanted), name
        total += wanted.num_rows
        assert wanted.num_rows, name
    assert everything.num_rows == total


def test_all_rules_of_a_batch(spark: Any, module: Any, tmp_path: Path) -> None:
    given = table(events(120, keys=4))
    write_files(tmp_path / "in", [given])
    frame = spark.read.parquet(str(tmp_path / "in"))
    _check(module, module.match_all(frame), given)
    one = module.queries["pair2"].match(frame).toArrow()
    assert _counted(one) == _counted(_alone("pair2").match_table(given))


@pytest.mark.long
def test_all_rules_of_a_stream(spark: Any, module: Any, tmp_path: Path) -> None:
    rows = events(120, keys=4)
    write_files(tmp_path / "in", [table(part) for part in parts(rows, 2)])
    checkpoint, out = str(tmp_path / "checkpoint"), str(tmp_path / "out")
    stream = module.match_all_stream(
        files(spark, tmp_path / "in"), watermark="2 seconds", checkpoint=checkpoint
    )

    def write(batch: Any, number: int) -> None:
        batch.write.mode("overwrite").parquet(f"{out}/batch={number}")

    finished(stream.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint))
    assert finish(spark, checkpoint, stream, write)
    found = spark.read.schema(stream.schema).parquet(out).select(*stream.columns)
    _check(module, found, table(rows))
