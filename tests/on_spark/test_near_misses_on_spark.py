"""Near misses of a DataFrame are those of the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventError, finish, split_late
from celc_runtime.many.near.on_spark import as_on_spark
from celc_runtime.plan.near.queries import TOLD
from celc_runtime.stream.monitor import micro_batch
from near_answers import asked_of, compiled_near, near_cases
from stream_routes import (
    SETTINGS,
    events,
    files,
    finished,
    parts,
    settings,
    shuffled,
    table,
    write_files,
)

import celc

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, ts: LONG }, EVENT B { id: INT, v: DOUBLE, ts: LONG },
  EVENT C { id: INT, v: DOUBLE, ts: LONG }
}
PARAMETERS rule { v: DOUBLE }
"""
_EVENTS = pa.table(
    {
        "type": list("ACBCABACB") * 2,
        "id": pa.array([1] * 9 + [2] * 5 + [None] * 4, pa.int32()),
        "v": [1.0, 2.0, 3.0, 2.8, 1.0, 1.9, 1.0, 2.0, 2.9] * 2,
        "ts": list(range(18)),
    }
)
_RULES = pa.table({"v": [3.1, 3.0, 3.1]})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM S WHERE (A AS a ; !C ; B AS b) FILTER b.v > 2.5 "
        "PARTITION BY id WITHIN 5 [ts]",
        "SELECT a, b.v AS v, c FROM S WHERE A AS a ; B AS b ; (C AS c FILTER c.v > 9)",
        "SELECT * FROM S FOR EACH rule WHERE (A AS a ; B AS b) FILTER b.v > rule.v PARTITION BY id",
    ],
)
def test_a_data_frame_has_those_of_the_table(spark: Any, query: str) -> None:
    asked = celc.compile(_DECLARED + query, order_by="ts")
    parameters = {"rule": _RULES} if "FOR EACH" in query else {}
    expected = asked.near_misses(_EVENTS, **parameters).drop_columns(["start_pos", "end_pos"])
    found = asked.near_misses(spark.createDataFrame(_EVENTS.to_pandas(), _SCHEMA), **parameters)
    assert found.columns == expected.column_names
    rows = [_without_positions(row) for row in expected.to_pylist()]
    assert rows
    assert sorted(map(repr, (row for row in found.toArrow().to_pylist()))) == sorted(
        map(repr, rows)
    )


@pytest.mark.long
def test_cases(spark: Any) -> None:
    """Positions apart, a DataFrame has the rows of the table."""
    for case in near_cases():
        if "error" in case:
            continue
        asked, events, tables = compiled_near(case["query"], case["events"], **asked_of(case))
        expected = asked.near_misses(events, **tables).drop_columns(["start_pos", "end_pos"])
        frame = spark.createDataFrame(events)
        found = asked.near_misses(frame, **tables).toArrow()
        rows = [_without_positions(row) for row in expected.to_pylist()]
        given = [_without_positions(row) for row in found.to_pylist()]
        assert sorted(map(repr, given)) == sorted(map(repr, rows)), case["name"]


_SCHEMA = "type STRING, id INT, v DOUBLE, ts BIGINT"


def _without_positions(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (
            [{k: v for k, v in one.items() if k != "pos"} for one in value]
            if isinstance(value, list)
            else value
        )
        for name, value in row.items()
    }


def test_an_order_is_needed(spark: Any) -> None:
    asked = celc.compile(_DECLARED + "SELECT * FROM S WHERE (A ; B) FILTER B.v > 9")
    with pytest.raises(EventError, match="order"):
        asked.near_misses(spark.createDataFrame(_EVENTS.to_pandas(), _SCHEMA))


# --- streams --------------------------------------------------------------------------------------

_IN_TIME = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP },
  EVENT B { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP }
}
PARAMETERS rule { v: DOUBLE }
QUERY hot:
"""
_STREAMED = (
    "SELECT x.v AS v, y[id] FROM S WHERE (A AS x ; B AS y ; !A FOR 2 SECONDS) "
    "FILTER x.v > 40 AND y.v > 44 PARTITION BY id WITHIN 5 SECONDS [ts]"
)
_FOR_EACH = (
    "SELECT x.v AS v FROM S FOR EACH rule WHERE (A AS x ; B AS y) FILTER x.v > rule.v "
    "PARTITION BY id WITHIN 3 SECONDS [ts]"
)


def _written(spark: Any, make: Callable[[], Any], folder: Path) -> tuple[Any, list[dict[str, Any]]]:
    """What a stream writes that stops and is started again, and `finish`; and what `monitor` shows
    of its micro-batches."""
    checkpoint = str(folder / "checkpoint")
    shown: list[dict[str, Any]] = []

    def write(batch: Any, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(folder / "out" / f"batch={number}"))

    for _ in range(2):
        stream = make()
        writer = stream.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
        shown += map(micro_batch, finished(writer))
    stream = make()
    assert finish(spark, checkpoint, stream, write)
    return spark.read.schema(stream.schema).parquet(str(folder / "out")), shown


@pytest.mark.parametrize(
    "query", [_STREAMED, pytest.param(_FOR_EACH, marks=pytest.mark.long)], ids=["plain", "for each"]
)
def test_a_stream_has_those_of_the_table(spark: Any, query: str, tmp_path: Path) -> None:
    asked = celc.compile(_IN_TIME + query, order_by="ts")
    rows = events(90, keys=3)
    first, second = parts(shuffled(rows, 1), 2)
    write_files(tmp_path / "in", [table(first)])
    late = "side" if query is _STREAMED else "drop"
    given = {"rule": _RULES} if query is _FOR_EACH else {}

    def make() -> Any:
        stream = asked.match_stream(
            files(spark, tmp_path / "in"),
            near=0.2,
            tiebreak="row",
            watermark="2 seconds",
            late=late,
            checkpoint=str(tmp_path / "checkpoint"),
            **given,
        )
        write_files(tmp_path / "in", [table(second)], first=1)
        return stream

    with settings(spark, SETTINGS):
        found, shown = _written(spark, make, tmp_path)
        if late == "side":
            found, others = split_late(found)
            assert not others.count()
        found = found.toArrow().to_pylist()
    in_order = table(sorted(rows, key=lambda row: (row["ts"], row["row"])))
    ended = asked.with_options(positions=False, at_end="closed")
    matches = ended.match_table(in_order, **given)
    runs = asked._near_query(0.2, None, None)
    near = as_on_spark(runs.plan, runs.of_table(runs.given(given), in_order, at_end="closed"))
    names = matches.column_names
    assert near.column_names == [*names, *TOLD]
    for kind, wanted in (("match", matches), ("near", near)):
        told = [row for row in found if row["kind"] == kind]
        told = [{name: row[name] for name in wanted.column_names} for row in told]
        assert wanted.num_rows > 3
        assert sorted(map(repr, told)) == sorted(map(repr, wanted.to_pylist()))
    # The query and its near misses are told together, and may leave out other rows each. A query
    # FOR EACH reads an event once for each row that it concerns.
    most = len(rows) * (1 + (len(_RULES) if given else 1))
    assert len(rows) < sum(one["rows"] for one in shown) <= most
    # `finish` gives the last rows, of which no micro-batch tells.
    assert 0 < sum(one["matches"] for one in shown) <= len(found)
    assert max(one["kept"] for one in shown) > 0
