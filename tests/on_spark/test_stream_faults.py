"""Streams that meet what happens in real ones: late and doubled events, partitions that come and
go, wrong clocks, and sources that change."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, StateError, finish
from celc_runtime.stream.buckets import labels_of
from celc_runtime.stream.formats import StreamFormats, StreamOptions
from celc_runtime.stream.processor import HEADER, STATE
from celc_runtime.stream.stored.state import KEPT, KEYS, WAITING, BucketState, buckets_in
from celc_runtime.stream.stored.texts import bytes_of
from engines import as_on_spark
from stream_routes import (
    END,
    SETTINGS,
    START,
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

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def _settings(spark: Any) -> Iterator[None]:
    with settings(spark, SETTINGS):
        yield


QUERY = query("""QUERY pairs: SELECT x[v], y[v, name] FROM S WHERE (A AS x ; B AS y)
    FILTER x.v > 40 AND y.v > 45 PARTITION BY id WITHIN 15 SECONDS [ts]""")


def _streamed(
    spark: Any,
    folder: Path,
    chunks: list[list[dict]],
    compiled: CompiledQuery = QUERY,
    **options: Any,
) -> tuple[list[str], dict[str, int]]:
    """The matches and counts of a stream of chunks, its end included."""
    write_files(folder / "in", [table(chunk) for chunk in chunks])
    found = compiled.match_stream(files(spark, folder / "in"), **options)
    progress = run(found, folder)
    rest: list[Any] = []
    finish(spark, str(folder / "checkpoint"), found, lambda rows, _: rest.append(rows.toArrow()))
    there = spark.read.parquet(str(folder / "out")).toArrow()
    rows = [*there.to_pylist(), *rest[0].to_pylist()]
    return sorted(map(repr, rows)), sums(progress, f"celc_{compiled.name}")


def _match(spark: Any, rows: list[dict], compiled: CompiledQuery = QUERY) -> list[str]:
    return rows_of(spark.createDataFrame(table(rows)).transform(compiled.match))


# --- order ----------------------------------------------------------------------------------------


def test_exactly_the_late_events_are_missing(spark: Any, tmp_path: Path) -> None:
    """Events up to 60 seconds late where the watermark waits for 3.

    An event is late if its partition has been run up to its time, or if events that it could make a
    match with are gone.
    """
    rows = shuffled(events(300, keys=2), 60)
    write_files(tmp_path / "in", [table(part) for part in parts(rows, 8)])
    frame = files(spark, tmp_path / "in")
    found = QUERY.match_stream(frame, tiebreak="row", watermark="3 seconds", late="side")
    progress = run(found, tmp_path)
    kept: list[Any] = []
    finish(spark, str(tmp_path / "checkpoint"), found, lambda rest, _: kept.append(rest.toArrow()))
    told = [*spark.read.parquet(str(tmp_path / "out")).toArrow().to_pylist(), *kept[0].to_pylist()]
    late = {row["event"]["row"] for row in told if row["kind"] == "late"}
    assert 10 < len(late) < 200
    counts = sums(progress, "celc_pairs")
    assert (counts["late"], counts["ahead"]) == (len(late), 0)
    matches = [
        {name: row[name] for name in as_on_spark(QUERY).output_schema.names}
        for row in told
        if row["kind"] == "match"
    ]
    in_time = [row for row in rows if row["row"] not in late]
    assert sorted(map(repr, matches)) == _match(spark, in_time)

    dropped, counts = _streamed(spark, tmp_path / "drop", parts(rows, 8), watermark="3 seconds")
    assert (dropped, counts["late"]) == (_match(spark, in_time), len(late))
    stopped = QUERY.match_stream(frame, watermark="3 seconds", late="error")
    with pytest.raises(Exception, match="is late: events up to its time have been run; the waterm"):
        run(stopped, tmp_path / "stopped")


def test_events_of_one_time(spark: Any, tmp_path: Path) -> None:
    rows = [event(row // 4, "AB"[row % 2], row % 2 and 1, row=row) for row in range(40)]
    rows = [row | {"id": 1} for row in rows]
    ordered = QUERY.with_options(tiebreak="row")
    found, _ = _streamed(
        spark, tmp_path / "told", parts(shuffled(rows, 2), 4), watermark="2 seconds", tiebreak="row"
    )
    assert found == _match(spark, rows, ordered)
    assert len(found) > 100
    frame = files(spark, tmp_path / "told" / "in")
    stream = QUERY.match_stream(frame, watermark="1 second")
    said = "two events of a partition are equal in ts .*name a column that tells them apart"
    with pytest.raises(Exception, match=said):
        run(stream, tmp_path)


# --- partitions -----------------------------------------------------------------------------------


def _states(
    spark: Any, checkpoint: Path, compiled: CompiledQuery = QUERY, key_ttl: int | None = None
) -> list[BucketState]:
    """The headers of all buckets."""
    found = spark.read.format("statestore").option("path", str(checkpoint))
    found = found.option("stateVarName", STATE).load().where(f"user_map_key.place = {HEADER}")
    rows = found.selectExpr("key.bucket AS label", "user_map_value.data AS header").collect()
    headers = {row.label: bytes_of(row.header) for row in rows}
    buckets = buckets_in(headers[0])
    assert buckets
    states = StreamFormats(
        compiled.program.on_spark, StreamOptions({}, key_ttl=key_ttl, buckets=buckets)
    ).states
    numbers = {label: number for number, label in enumerate(labels_of(buckets).tolist())}
    return [states.read(header, numbers[label]) for label, header in headers.items()]


def _counts(states: list[BucketState]) -> tuple[int, int, int]:
    """How many events wait and are kept, and how many records of partitions there are."""
    waiting, kept, keys = (
        sum(segment.rows for state in states for segment in state.of_kind(kind))
        for kind in (WAITING, KEPT, KEYS)
    )
    return waiting, kept, keys


def test_an_idle_partition_shrinks(spark: Any, tmp_path: Path) -> None:
    """One with many events is idle for an hour, one has a single event; another goes on."""
    early = [event(n / 4, "AB"[n % 2], 1, row=n) for n in range(40)]
    alone = [event(3.1, "A", 2, row=100)]
    later = [event(3600 + n, "A", 3, row=200 + n) for n in range(4)]
    write_files(tmp_path / "in", [table([*early, *alone])])
    numbered = QUERY.with_options(positions=True)
    stream = numbered.match_stream(files(spark, tmp_path / "in"), watermark="1 second")
    run(stream, tmp_path)
    waiting, kept, keys = _counts(_states(spark, tmp_path / "checkpoint", numbered))
    assert (waiting + kept, keys) == (41, 2)
    write_files(tmp_path / "in", [table([row]) for row in later], first=1)
    run(stream, tmp_path)
    waiting, kept, keys = _counts(_states(spark, tmp_path / "checkpoint", numbered))
    assert waiting + kept == 4
    assert 3 <= keys <= 2 + 4
    found = rows_of(spark.read.parquet(str(tmp_path / "out")))
    assert found == _match(spark, [*early, *alone, *later], numbered)
    assert len(found) == 20 * 21 // 2


def test_partitions_that_are_forgotten(spark: Any, tmp_path: Path) -> None:
    """Without positions an idle partition goes entirely, and with key_ttl as well."""
    chunks = [[event(n / 4, "AB"[n % 2], 1, row=n) for n in range(40)]]
    chunks += [[event(3600 + n, "A", 3, row=200 + n)] for n in range(4)]
    expected = _match(spark, list(chain.from_iterable(chunks)))
    an_hour = (START + dt.timedelta(hours=1)).timestamp() * 1_000_000
    for name, compiled, options in (
        ("ttl", QUERY.with_options(positions=True), {"key_ttl": "10 minutes"}),
        ("unnumbered", QUERY, {}),
    ):
        write_files(tmp_path / name / "in", [table(chunk) for chunk in chunks])
        frame = files(spark, tmp_path / name / "in")
        run(compiled.match_stream(frame, watermark="1 second", **options), tmp_path / name)
        key_ttl = 600_000_000 if options else None
        states = _states(spark, tmp_path / name / "checkpoint", compiled, key_ttl)
        left = [segment for state in states for segment in state.segments]
        assert left
        assert all(segment.least >= an_hour for segment in left)
        found = spark.read.parquet(str(tmp_path / name / "out"))
        assert found.count() == len(expected)


# --- clocks ---------------------------------------------------------------------------------------


def test_one_event_of_the_year_2100(spark: Any, tmp_path: Path) -> None:
    """It takes the watermark with it, and all events after it are late; a guard keeps it away."""
    wrong = event(80 * 366 * 86_400, "B", 1, row=999)
    one, two, three, four = parts(events(160, keys=2), 4)
    chunks = [one, [*two, wrong], three, four]
    found, counts = _streamed(spark, tmp_path / "bare", chunks, watermark="1 second")
    # The third micro-batch is the first one to see that watermark, and takes what comes with it.
    # Without positions no other events are read than these.
    read = [row for row in four if (row["v"] or 0) > {"A": 40, "B": 45}[row["type"]]]
    assert counts["late"] == len(read) > 5
    assert found == _match(spark, [*one, *two, *three, wrong])
    guarded, counts = _streamed(
        spark, tmp_path / "guard", chunks, watermark="1 second", max_event_time_skew="1 hour"
    )
    assert (counts["late"], counts["ahead"]) == (0, 1)
    assert guarded == _match(spark, [*one, *two, *three, *four])


# --- sources that change --------------------------------------------------------------------------


def test_a_source_that_changes(spark: Any, tmp_path: Path) -> None:
    """Another column is none of the query's; without one that it reads, or with one of another
    type, it says so before the stream starts."""
    rows = events(120, keys=2)
    tables = [table(part) for part in parts(rows, 3)]
    write_files(tmp_path / "in", tables[:1])
    run(QUERY.match_stream(files(spark, tmp_path / "in")), tmp_path)
    wider = [
        one.append_column("unit", pa.array(["K"] * len(one))) for one in (*tables[1:], table([END]))
    ]
    write_files(tmp_path / "in", wider, first=1)
    schema = spark.read.parquet(str(tmp_path / "in" / "0001.parquet")).schema
    frame = files(spark, tmp_path / "in", schema)
    run(QUERY.match_stream(frame), tmp_path)
    assert rows_of(spark.read.parquet(str(tmp_path / "out"))) == _match(spark, rows)
    for changed, said in (
        (frame.drop("name"), "'name'"),
        (frame.selectExpr("* EXCEPT (v)", "CAST(v AS STRING) AS v"), "'v'.*string"),
    ):
        with pytest.raises(Exception, match=said):
            QUERY.match_stream(changed)


def test_a_checkpoint_of_another_query(spark: Any, tmp_path: Path) -> None:
    """What differs is said by the first micro-batch; before it, where the checkpoint is named."""
    write_files(tmp_path / "in", [table(events(40, keys=2)), table([END])])
    frame, checkpoint = files(spark, tmp_path / "in"), str(tmp_path / "checkpoint")
    run(QUERY.match_stream(frame), tmp_path)
    text = QUERY.text.partition("}\n}\n")[2]
    for other, options, said in (
        (query(text.replace("> 40", "> 39")), {}, "its conditions on events of type 'A' are not"),
        (query(text.replace("15 S", "16 S")), {}, "WITHIN: 0:00:15 [ts] → 0:00:16 [ts]. Begin"),
        (QUERY, {"tiebreak": "row"}, "the tiebreak columns: none → row"),
        (QUERY.with_options(positions=True), {}, "positions=False → True (with_options(posi"),
    ):
        with pytest.raises(StateError, match=re.escape(said)):
            other.match_stream(frame, checkpoint=checkpoint, **options)
    # A row that can matter: without positions no state is read for others.
    write_files(tmp_path / "in", [table([END | {"id": 0, "v": 50.0}])], first=2)
    changed = query(text.replace("> 40", "> 41"))
    with pytest.raises(Exception, match="another query; what differs: the query's text\\. Run the"):
        run(changed.match_stream(frame), tmp_path)
    # Spaces and comments are no other query.
    same = query("-- as before\n" + text.replace(" ; ", "\n  ;  "))
    run(same.match_stream(frame, checkpoint=checkpoint), tmp_path)
    # One that asks for less goes on, where the checkpoint is named.
    write_files(tmp_path / "in", [table([END | {"id": 0, "v": 60.0}])], first=3)
    run(changed.match_stream(frame, checkpoint=checkpoint), tmp_path)
    with pytest.raises(StateError, match="Begin a new checkpoint with after='"):
        same.match_stream(frame, checkpoint=checkpoint)


# --- sources and sinks ----------------------------------------------------------------------------


def test_a_rate_into_memory(spark: Any) -> None:
    """Rows of one time in each micro-batch, told apart by their number."""
    source = spark.readStream.format("rate-micro-batch").options(
        rowsPerBatch=20, startTimestamp=1_577_836_800_000, advanceMillisPerBatch=1000
    )
    columns = (
        "IF(value % 2 = 0, 'A', 'B') AS type",
        "CAST(value % 3 AS INT) AS id",
        "CAST(40 + value % 10 AS DOUBLE) AS v",
        "'n' AS name",
        "timestamp AS ts",
        "value AS row",
    )
    stream = QUERY.match_stream(
        source.load().selectExpr(*columns), tiebreak="row", watermark="1 second"
    )
    started = stream.writeStream.format("memory").queryName("pairs_found").start()
    try:
        while not started.lastProgress or started.lastProgress["batchId"] < 6:
            assert started.isActive
            started.awaitTermination(0.2)
        seconds = started.lastProgress["batchId"] - 4
    finally:
        started.stop()
    numbers = spark.range(20 * seconds).selectExpr(
        "id AS value", "timestamp_seconds(1577836800 + id DIV 20) AS timestamp"
    )
    wanted = numbers.selectExpr(*columns).transform(QUERY.with_options(tiebreak="row").match)
    last = START_OF_RATE + dt.timedelta(seconds=seconds - 1)
    found = [
        row for row in spark.table("pairs_found").toArrow().to_pylist() if row["end_time"] <= last
    ]
    assert sorted(map(repr, found)) == rows_of(wanted)
    assert len(found) > 10


START_OF_RATE = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def test_a_micro_batch_that_is_written_again(spark: Any, tmp_path: Path) -> None:
    """The function of foreachBatch fails behind its writing: a restart writes the same again."""
    rows = events(120, keys=2)
    write_files(tmp_path / "in", [table(part) for part in parts(rows, 3)] + [table([END])])
    stream = QUERY.match_stream(files(spark, tmp_path / "in"))
    folder, marker = str(tmp_path / "out"), str(tmp_path / "failed")

    def write(batch: Any, number: int) -> None:
        import os

        batch.write.mode("overwrite").parquet(f"{folder}/batch={number}")
        if number == 2 and not os.path.exists(marker):
            os.close(os.open(marker, os.O_CREAT))
            raise RuntimeError("after the write")

    write.__module__ = "__main__"  # sent by value, over Connect
    writer = stream.writeStream.foreachBatch(write)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(Exception, match="after the write"):
        finished(writer)
    finished(writer)
    assert rows_of(spark.read.parquet(f"{folder}/*")) == _match(spark, rows)
