"""Queries on Structured Streaming: the rows that `match` gives on the same events."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import celc_runtime
import pyarrow as pa
import pytest
from celc_runtime import finish, split_late
from celc_runtime.stream.monitor import micro_batch
from conftest import long_over_connect
from engines import as_on_spark, interpreted, only_query
from pyspark import cloudpickle
from stream_routes import (
    END,
    SCHEMA,
    SETTINGS,
    event,
    events,
    files,
    finished,
    parts,
    query,
    rows_of,
    run,
    settings,
    shuffled,
    sums,
    table,
    write_files,
)

import celc


@pytest.fixture(autouse=True)
def _settings(spark: Any) -> Iterator[None]:
    with settings(spark, SETTINGS):
        yield


KEYED = query("""QUERY keyed: SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.v > 40 AND y.v > 45
    PARTITION BY id WITHIN 15 SECONDS [ts]""")
KEYLESS = query("""QUERY keyless: SELECT MAX x[v], y[name] FROM S WHERE (A AS x)+ ; B AS y
    FILTER x.v > 45 WITHIN 8 SECONDS [ts] CONSUME BY PARTITION""")


# --- late events ----------------------------------------------------------------------------------

LATE = [
    event(5, "A", 0, row=1001),
    event(6, "B", 1, row=1002),
    event(7, "B", 2, name=None, row=1003),
]
AHEAD = event(80 * 366 * 86_400, "B", 1, row=1004)


@long_over_connect
def test_late_events_come_apart(spark: Any, tmp_path: Path) -> None:
    """A micro-batch brings late events and one of the year 2100, which moves no watermark.

    All are written in foreachBatch, and so is what `finish` finds.
    """
    rows = events(120, keys=3)
    one, two, three = parts(rows, 3)
    tables = [table(part) for part in (one, two, [*LATE, AHEAD, *three])]
    write_files(tmp_path / "in", tables)
    found = KEYED.match_stream(
        files(spark, tmp_path / "in"),
        tiebreak="row",
        watermark="2 seconds",
        late="side",
        max_event_time_skew="1 hour",
    )
    assert found.columns == ["kind", *as_on_spark(KEYED).output_schema.names, "event"]
    write, checkpoint = _writing(str(tmp_path)), str(tmp_path / "checkpoint")
    with _sent_by_value():
        writer = found.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
        progress = finished(writer)
    assert finish(spark, checkpoint, found, write)
    assert not finish(spark, checkpoint, found, write)
    matches = spark.read.parquet(str(tmp_path / "matches" / "*"))
    late = spark.read.parquet(str(tmp_path / "late" / "*"))
    expected = spark.createDataFrame(table(rows)).transform(KEYED.match)
    assert rows_of(matches) == rows_of(expected)
    assert late.columns == ["kind", "type", "id", "v", "name", "ts", "row"]
    told = sorted(late.toArrow().to_pylist(), key=lambda row: row["row"])
    assert told == [{"kind": "late", **row} for row in LATE] + [{"kind": "ahead", **AHEAD}]
    counts = sums(progress, "celc_keyed")
    assert (counts["late"], counts["ahead"]) == (3, 1)
    told_by_monitor = [micro_batch(one) for one in progress]
    # Without positions rows that can change nothing are not read.
    read = [row for row in rows if (row["v"] or 0) > {"A": 40, "B": 45}[row["type"]]]
    assert sum(one["rows"] for one in told_by_monitor) == len(read) + 4
    assert max(one["keys"] for one in told_by_monitor) == 3
    assert sum(one["matches"] for one in told_by_monitor) == counts["matches"] > 0
    assert all(one["bytes"] > 88 for one in told_by_monitor)


def _writing(folder: str) -> Any:
    """What writes a micro-batch so that writing it again changes nothing."""

    def write(batch: Any, number: int) -> None:
        batch.persist()  # or each part would run the micro-batch
        for name, part in zip(("matches", "late"), split_late(batch), strict=True):
            part.write.mode("overwrite").parquet(f"{folder}/{name}/batch={number}")
        batch.unpersist()

    return write


@contextmanager
def _sent_by_value() -> Iterator[None]:
    """Over Connect, a function for foreachBatch runs in a Python of the server's, which has neither
    celc nor this module here."""
    modules = (celc_runtime, sys.modules[__name__])
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


# --- a key by the type of the event ---------------------------------------------------------------

CHOSEN = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP },
  EVENT B { other: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP }
}
QUERY chosen: SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.v > 40
PARTITION BY [other, id] WITHIN 6 SECONDS [ts] CONSUME BY PARTITION
"""


@pytest.mark.long
def test_a_key_by_the_type_of_the_event(spark: Any, tmp_path: Path) -> None:
    """`other` is the partition of B, and a number that says nothing in rows of A."""
    with interpreted():
        chosen = only_query(celc.compile(CHOSEN, order_by="ts"))
    rows = [
        row | ({"other": row["row"] % 2} if row["type"] == "A" else {"other": row["id"], "id": 7})
        for row in events(150, keys=3)
    ]
    schema = SCHEMA.append(pa.field("other", pa.int32()))
    late = event(5, "B", 7, other=1, row=1001)
    tables = [table(part, schema) for part in parts(rows, 3)]
    write_files(tmp_path / "in", [*tables, table([late], schema)])
    stream = chosen.match_stream(files(spark, tmp_path / "in"), watermark="1 second", late="side")
    run(stream, tmp_path)
    found, refused = split_late(spark.read.parquet(str(tmp_path / "out")))
    rest: list[Any] = []
    checkpoint = str(tmp_path / "checkpoint")
    assert finish(spark, checkpoint, stream, lambda batch, _: rest.append(batch.toArrow()))
    (end,) = rest
    more, none = split_late(spark.createDataFrame(end))
    assert rows_of(none) == []
    expected = spark.createDataFrame(table(rows, schema)).transform(chosen.match)
    assert expected.columns[0] == "other"
    assert sorted(rows_of(found) + rows_of(more)) == rows_of(expected)
    assert len(rows_of(expected)) > 10
    (told,) = refused.toArrow().to_pylist()
    assert told == {
        "kind": "late",
        **{n: late[n] for n in ("type", "id", "v", "name", "ts", "other")},
    }


# --- one after another ----------------------------------------------------------------------------


def test_a_stream_gives_what_match_gives(spark: Any, tmp_path: Path) -> None:
    """No partitions, no positions, by pandas, on events shuffled within the watermark's delay.

    Then another query on the checkpoint of this one.
    """
    rows, last = shuffled(events(160, keys=3), 5), END | {"v": 50.0}  # one that can matter
    write_files(tmp_path / "in", [*(table(part) for part in parts(rows, 2)), table([last])])
    frame = files(spark, tmp_path / "in")
    stream = KEYLESS.match_stream(frame, watermark="5 seconds", api="pandas")
    progress = run(stream, tmp_path)
    found = rows_of(spark.read.parquet(str(tmp_path / "out")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", celc_runtime.PlanWarning)
        expected = spark.createDataFrame(table(rows)).transform(KEYLESS.match)
    assert found == rows_of(expected)
    counts = sums(progress, "celc_keyless")
    assert (counts["matches"], counts["late"]) == (len(found), 0)
    assert len(found) > 10

    write_files(tmp_path / "in", [table([last])], first=9)
    changed = KEYLESS.text.partition("}\n}\n")[2].replace("8 SECONDS", "9 SECONDS")
    other = query(changed).match_stream(frame, api="pandas")
    said = "another query; what differs: the query's text, WITHIN. Run the query that"
    with pytest.raises(Exception, match=re.escape(said)):
        run(other, tmp_path)
