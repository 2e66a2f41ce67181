"""Queries over queries and all queries of a module as streams: what a table answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import StateError, finish, split_late
from conftest import long_over_connect
from engines import interpreted
from stream_routes import (
    SETTINGS,
    event,
    events,
    files,
    finished,
    parts,
    settings,
    shuffled,
    sums,
    table,
    write_files,
)

import celc

_TEXT = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP },
  EVENT B { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP }
}
PARAMETERS rule { id: INT }
QUERY hot:
SELECT x.v AS v, y.v AS w FROM S WHERE (A AS x ; B AS y) FILTER x.v > 40 AND y.v > 44
AND COALESCE(UPPER(x.name), 'n') <> 'Z' PARTITION BY id WITHIN 6 SECONDS [ts]
QUERY alone:
SELECT x.v AS v FROM S WHERE (A AS x ; !B FOR 3 SECONDS) PARTITION BY id
QUERY both:
SELECT h, b FROM hot, alone, S
WHERE (hot AS h ; B AS b) FILTER b.v > 46 OR alone AS h
PARTITION BY id WITHIN 9 SECONDS [ts]
QUERY twice:
SELECT h, g, g.v AS v FROM hot WHERE hot AS h ; hot AS g PARTITION BY id WITHIN 30 SECONDS [ts]
QUERY thrice:
SELECT t FROM twice, alone WHERE (twice AS t ; alone) PARTITION BY id WITHIN 40 SECONDS [ts]
QUERY anywhere:
SELECT x[v], y[id] FROM S WHERE (A AS x ; B AS y) FILTER x.v > 44 AND y.v > 44 WITHIN 4 SECONDS [ts]
QUERY minutes:
SELECT TOTAL COUNT(*) AS n FROM S WHERE A PARTITION BY id PER 1 MINUTE
QUERY chosen:
SELECT x[id] FROM S FOR EACH rule WHERE A AS x FILTER x.id = rule.id AND x.v > 47
"""

_RULES = pa.table({"id": pa.array([1, 2, 3], pa.int32())})


@pytest.fixture(autouse=True)
def _settings(spark: Any) -> Iterator[None]:
    with settings(spark, SETTINGS):
        yield


@pytest.fixture(scope="module")
def module() -> Any:
    with interpreted():
        return celc.compile(_TEXT.replace("OR alone AS h", ""), order_by="ts")


def _written(
    spark: Any, make: Callable[[], Any], folder: Path, *, starts: int
) -> tuple[Any, list[Any]]:
    """What a stream writes that is started so many times, and `finish`; and its progress."""
    checkpoint = str(folder / "checkpoint")

    def write(batch: Any, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(folder / "out" / f"batch={number}"))

    progress: list[Any] = []
    for _ in range(starts):
        stream = make()
        writer = stream.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
        progress += finished(writer)
    stream = make()
    assert finish(spark, checkpoint, stream, write)
    assert not finish(spark, checkpoint, stream, write)
    found = spark.read.schema(stream.schema).parquet(str(folder / "out"))
    return found, progress


def _same(found: Any, wanted: pa.Table) -> None:
    left = Counter(map(repr, found.select(*wanted.column_names).toArrow().to_pylist()))
    assert left == Counter(map(repr, wanted.to_pylist()))


@long_over_connect
def test_all_queries_of_a_module(spark: Any, module: Any, tmp_path: Path) -> None:
    """Four groups: by id, without keys, a query FOR EACH, and readers among the first."""
    rows = events(90, keys=3)
    first, second = parts(shuffled(rows, 1), 2)
    write_files(tmp_path / "in", [table(first)])

    def make() -> Any:
        stream = module.match_all_stream(
            files(spark, tmp_path / "in"),
            tiebreak="row",
            watermark="2 seconds",
            checkpoint=str(tmp_path / "checkpoint"),
            rule=_RULES,
        )
        write_files(tmp_path / "in", [table(second)], first=1)
        return stream

    found, progress = _written(spark, make, tmp_path, starts=1)
    counted = sums(progress, "celc_match_all")
    assert counted["late"] == 0
    for name, query in module.queries.items():
        given = {"rule": _RULES} if name == "chosen" else {}
        as_table = query.with_options(at_end="closed", positions=False, tiebreak="row")
        wanted = as_table.match_table(table(rows), **given)
        assert wanted.num_rows, name
        _same(module.rows(found, name), wanted)


@pytest.mark.long
def test_a_chain_and_its_late_events(spark: Any, module: Any, tmp_path: Path) -> None:
    """An event that is late for one of the queries comes out once, and no query reads it."""
    rows = events(90, keys=3)
    first, second, third = parts(rows, 3)
    late = [event(1, "B", 0, row=1001), event(2, "A", 1, row=1002)]
    write_files(tmp_path / "in", [table(part) for part in (first, second, [*late, *third])])

    def make() -> Any:
        return module.both.match_stream(
            files(spark, tmp_path / "in"), tiebreak="row", watermark="2 seconds", late="side"
        )

    found, progress = _written(spark, make, tmp_path, starts=2)
    assert sums(progress, "celc_both")["late"] == 2
    matches, refused = split_late(found)
    as_table = module.both.with_options(at_end="closed", positions=False, tiebreak="row")
    _same(matches, as_table.match_table(table(rows)))
    assert sorted(row.ts.isoformat() for row in refused.collect()) == sorted(
        row.ts.isoformat() for row in spark.createDataFrame(table(late)).select("ts").collect()
    )
    for other in (module.twice, module.hot):
        with pytest.raises(StateError, match=r"quer(y|ies) .*(twice|hot)"):
            other.match_stream(
                files(spark, tmp_path / "in"), checkpoint=str(tmp_path / "checkpoint")
            )


@pytest.mark.filterwarnings("ignore:the checkpoint was begun")
@pytest.mark.long
def test_a_module_that_changes(spark: Any, tmp_path: Path) -> None:
    """One query goes on, one is taken out and one begins, in operators of two keys."""
    head, hot, alone, anywhere = (
        re.split(r"(?=QUERY (?:hot|alone|both|anywhere|minutes):)", _TEXT)[n] for n in (0, 1, 2, 4)
    )
    more = hot.replace("QUERY hot", "QUERY warm").replace("> 40", "> 20")
    rows = events(90, keys=3)
    first, second = parts(rows, 2)
    write_files(tmp_path / "in", [table(first)])
    checkpoint = str(tmp_path / "checkpoint")
    found: list[Any] = []
    for text, given in ((hot + alone + anywhere, None), (more + hot + anywhere, table(second))):
        if given is not None:
            write_files(tmp_path / "in", [given], first=1)
        with interpreted():
            module = celc.compile(head + text, order_by="ts")
        stream = module.match_all_stream(
            files(spark, tmp_path / "in"),
            tiebreak="row",
            watermark="2 seconds",
            checkpoint=checkpoint,
        )

        def write(batch: Any, number: int) -> None:
            folder = str(tmp_path / "out" / f"batch={number}")
            batch.select("query", "hot", "anywhere").write.mode("overwrite").parquet(folder)
            if "warm" in batch.columns:
                folder = str(tmp_path / "warm" / f"batch={number}")
                batch.where("query = 'warm'").select("warm.*").write.mode("overwrite").parquet(
                    folder
                )

        writer = stream.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
        found.append(finished(writer))
    assert finish(spark, checkpoint, stream, write)
    answers = spark.read.parquet(str(tmp_path / "out"))
    for name in ("hot", "anywhere"):
        query = module.queries[name].with_options(positions=False, tiebreak="row")
        wanted = query.match_table(table(rows))
        assert wanted.num_rows
        _same(answers.where(f"query = '{name}'").select(f"{name}.*"), wanted)
    query = module.queries["warm"].with_options(positions=False, tiebreak="row")
    wanted = query.match_table(table(second))
    assert wanted.num_rows
    _same(spark.read.parquet(str(tmp_path / "warm")), wanted)
