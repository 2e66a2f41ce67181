"""Queries on Structured Streaming: the rows that `match` gives on the same events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celc_runtime import split_late
from stream_routes import (
    END,
    SETTINGS,
    event,
    events,
    files,
    finished,
    parts,
    query,
    run,
    settings,
    shuffled,
    sums,
    table,
    taken_apart,
    together,
    write_files,
)


@pytest.fixture(autouse=True)
def _settings(spark: Any) -> Iterator[None]:
    with settings(spark, SETTINGS):
        yield


KEYED = query("""QUERY keyed: SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.v > 40 AND y.v > 45
    PARTITION BY id WITHIN 15 SECONDS [ts]""")
KEYLESS = query("""QUERY keyless: SELECT MAX x[v], y[name] FROM S WHERE (A AS x)+ ; B AS y
    FILTER x.v > 45 WITHIN 8 SECONDS [ts] CONSUME BY PARTITION""").with_options(positions=False)


def test_a_stream_gives_what_match_gives(spark: Any, tmp_path: Path) -> None:
    """Two queries, one by each interface, on events that are shuffled within the watermark's delay.

    Then another query on the checkpoint of theirs.
    """
    rows = shuffled(events(160, keys=3), 5)
    write_files(tmp_path / "in", [*(table(part) for part in parts(rows, 3)), table([END])])
    frame = files(spark, tmp_path / "in")
    keyless = KEYLESS.match_stream(frame, watermark="5 seconds", api="pandas")
    keyed = KEYED.match_stream(frame, watermark="5 seconds", api="row")
    progress = run(together({"keyed": keyed, "keyless": keyless}), tmp_path)
    found = taken_apart(spark.read.parquet(str(tmp_path / "out")))

    batch = spark.createDataFrame(table([*rows, END])).cache()
    expected = together({one.name: batch.transform(one.match) for one in (KEYED, KEYLESS)})
    assert found == taken_apart(expected)
    assert min(len(found["keyed"]), len(found["keyless"])) > 10
    for name in found:
        counts = sums(progress, f"celc_{name}")
        assert (counts["matches"], counts["late"]) == (len(found[name]), 0)
        assert sums(progress, f"celc_read_{name}") == {"rows": len(rows) + 1, "undeclared": 0}

    write_files(tmp_path / "in", [table([END | {"row": -2}])], first=9)
    other = query(KEYED.text.partition("}\n}\n")[2].replace("15 SECONDS", "16 SECONDS"))
    stream = other.match_stream(frame, watermark="5 seconds", api="row")
    said = "another query; what differs: the query's text, WITHIN. Run the query that"
    with pytest.raises(Exception, match=re.escape(said)):
        run(together({"keyed": stream, "keyless": keyless}), tmp_path)
    again = taken_apart(spark.read.parquet(str(tmp_path / "out")))
    assert again == found


# --- late events ----------------------------------------------------------------------------------

LATE = [
    event(5, "A", 0, row=1001),
    event(6, "B", 1, row=1002),
    event(7, "B", 2, name=None, row=1003),
]
AHEAD = event(80 * 366 * 86_400, "B", 1, row=1004)


def test_late_events_come_apart(spark: Any, tmp_path: Path) -> None:
    """A micro-batch brings late events and one of the year 2100, which moves no watermark."""
    rows = events(120, keys=3)
    one, two, three = parts(rows, 3)
    tables = [table(part) for part in (one, two, [*LATE, AHEAD, *three], [END])]
    write_files(tmp_path / "in", tables)
    found = KEYED.match_stream(
        files(spark, tmp_path / "in"),
        tiebreak="row",
        watermark="2 seconds",
        late="side",
        max_event_time_skew="1 hour",
    )
    assert found.columns == ["kind", *KEYED.output_schema.names, "event"]
    progress = finished(
        found.writeStream.foreachBatch(_writing(str(tmp_path))).option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
    )
    matches = spark.read.parquet(str(tmp_path / "matches" / "*"))
    late = spark.read.parquet(str(tmp_path / "late" / "*"))
    expected = spark.createDataFrame(table([*rows, END])).transform(KEYED.match)
    # The events that are left out have no positions.
    assert taken_apart(together({"": matches})) == taken_apart(together({"": expected}))
    assert late.columns == ["kind", "type", "id", "v", "name", "ts", "row"]
    told = sorted(late.toArrow().to_pylist(), key=lambda row: row["row"])
    assert told == [{"kind": "late", **row} for row in LATE] + [{"kind": "ahead", **AHEAD}]
    counts = sums(progress, "celc_keyed")
    assert (counts["late"], counts["ahead"]) == (3, 1)


def _writing(folder: str) -> Any:
    """What writes a micro-batch so that writing it again changes nothing."""
    # Over Connect this runs in a Python of the server's, where here there is no celc.
    apart = _sent(split_late)

    def write(batch: Any, number: int) -> None:
        for name, part in zip(("matches", "late"), apart(batch), strict=True):
            part.write.mode("overwrite").parquet(f"{folder}/{name}/batch={number}")

    return write


def _sent(function: Any) -> Any:
    return function
