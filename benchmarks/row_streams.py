"""MATCH_RECOGNIZE on a stream in its steady state, beside a query of CEL of the same shape, and
beside the same clause in Flink SQL.

    python benchmarks/row_streams.py [--keys N] [--rows N] [--files N] [--warm-up N]
                                     [--without cel|flink]

The files, the session and what is measured are those of `streaming.py`. The queries ask for two
neighbouring rows of a key within ten minutes, and all look at every row. The streams run one after
another. The goals are 0.7 of the rows a second of CEL, and 3 times those of Flink SQL, by CPU.

Flink has one slot, and its rows in memory, in their order; ours are read from files, out of order,
and each micro-batch writes its state. So what Flink takes to read its rows and to hand them over by
key is told beside it. Before it is timed, the rows of both answers are counted. Without Flink's
jars (`pip install ".[flink]"`) it is left out, with a word why.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
from cells import FILES_OF_A_WINDOW, WARM_UP, WINDOW, Cell, events, write_files
from pyarrow import parquet
from spark_jobs import session
from streaming import DELAY, SETTINGS, FileCost, Stream, measured_stream

sys.path.append(str(Path(__file__).resolve().parent / "peers"))

from in_flink_sql import FlinkRows, missing

import celc

CEL = f"""
CREATE STREAM S {{
  EVENT A {{ key: INT, v: DOUBLE, ts: TIMESTAMP }},
  EVENT B {{ key: INT, v: DOUBLE, ts: TIMESTAMP }},
  EVENT C {{ key: INT, v: DOUBLE, ts: TIMESTAMP }},
  EVENT X {{ key: INT, v: DOUBLE, ts: TIMESTAMP }}
}}
SELECT a[v], b[v] FROM S WHERE (A AS a : B AS b) FILTER a.v > 0.5 AND b.v > 0.5
PARTITION BY key WITHIN {WINDOW} SECONDS [ts]
"""

ROWS = f"""
CREATE TABLE t (type STRING, key INT, v DOUBLE, ts TIMESTAMP);
SELECT * FROM t MATCH_RECOGNIZE (
  PARTITION BY key ORDER BY ts MEASURES a.v AS a, b.v AS b
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (a b) WITHIN INTERVAL '{WINDOW}' SECOND
  DEFINE a AS type = 'A' AND v > 0.5, b AS type = 'B' AND v > 0.5
)
"""


FLINK = f"""
SELECT * FROM t MATCH_RECOGNIZE (
  PARTITION BY `key` ORDER BY ts MEASURES a.v AS a, b.v AS b
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN (a b) WITHIN INTERVAL '{WINDOW * 1000}.001' SECOND(6, 3)
  DEFINE a AS a.type = 'A' AND a.v > 0.5, b AS b.type = 'B' AND b.v > 0.5
)
"""
"""Microseconds are Flink's milliseconds there, and its WITHIN is the time that is too long."""

OURS, OTHER = "MATCH_RECOGNIZE", "CEL"


def streams() -> dict[str, Stream]:
    """The streams, by name."""
    rows = next(iter(celc.compile(ROWS, dialect="match_recognize").queries.values()))
    return {
        "CEL": partial(celc.compile(CEL, order_by="ts").query.match_stream, watermark=DELAY),
        "MATCH_RECOGNIZE": partial(rows.match_stream, watermark=DELAY),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure one cell."""
    parser = argparse.ArgumentParser(description="a stream of MATCH_RECOGNIZE beside one of CEL")
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=WARM_UP)
    parser.add_argument("--without", choices=("cel", "flink"))
    asked = parser.parse_args(arguments)
    cell = Cell(asked.keys, asked.rows, asked.warm_up, asked.files)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        files = write_files(Path(folder) / "files", cell)
        names = [OURS] if asked.without == "cel" else [OTHER, OURS]
        found = _of_streams(cell, names, files, Path(folder))
        for what in ("clock", "cpu", "workers") if len(found) == 2 else ():
            own, other = (_median(found[name], what) for name in (OURS, OTHER))
            print(f"speed of {OURS} beside {OTHER}, by {what}: {other / own:.2f}")
        lacking = missing()
        if lacking is not None and asked.without != "flink":
            print(f"Flink SQL is left out: {lacking}")
        elif asked.without != "flink":
            _beside_flink(cell, files, found[OURS], Path(folder))
    return 0


def _of_streams(
    cell: Cell, names: Sequence[str], files: Sequence[Path], folder: Path
) -> dict[str, list[FileCost]]:
    """What the files of a steady state cost the streams of celc, by name."""
    found: dict[str, list[FileCost]] = {}
    with session() as spark:
        for setting, value in SETTINGS.items():
            spark.conf.set(setting, value)
        for name in names:
            cost = measured_stream(spark, cell, streams()[name], files, folder / name)
            found[name] = cost.steady
            for one in cost.steady:
                print(
                    f"{name}: {one.clock:.3f} s on the clock, {one.cpu:.2f} s of CPU, "
                    f"{one.workers:.2f} s of workers, {one.written:,} bytes of state",
                    flush=True,
                )
    return found


def _median(costs: Sequence[FileCost], what: str) -> float:
    return statistics.median(getattr(one, what) for one in costs)


def _beside_flink(cell: Cell, files: Sequence[Path], own: Sequence[FileCost], folder: Path) -> None:
    """Print what the last files cost in Flink SQL, once the window is full."""
    check_flink(folder)
    warm_up = min(cell.warm_up, FILES_OF_A_WINDOW + 2)
    chosen = files[len(files) - 1 - cell.files - warm_up :]
    (folder / "flink").mkdir()
    with FlinkRows(folder / "flink", list(map(parquet.read_table, chosen))) as flink:
        matched, read = flink.sql(FLINK).seconds[warm_up:], flink.read().seconds[warm_up:]
    for one, without in zip(matched, read, strict=True):
        print(f"Flink SQL {flink.version}: {one:.2f} s of CPU, of which {without:.2f} s to read")
    ours, theirs = _median(own, "cpu"), statistics.median(matched)
    net = theirs - statistics.median(read)
    print(
        f"speed of {OURS} beside Flink SQL, by cpu: {theirs / ours:.2f}; beside what Flink takes "
        f"without reading: {net / ours:.2f}"
    )


def check_flink(folder: Path) -> None:
    """Raise RuntimeError where Flink SQL finds other rows than celc on a small stream."""
    small = Cell(2_000, 50_000, 3, 2)
    tables = [events(small, number) for number in range(6)]
    query = next(iter(celc.compile(ROWS, dialect="match_recognize").queries.values()))
    (folder / "small").mkdir()
    with FlinkRows(folder / "small", tables) as flink:
        found, wanted = flink.sql(FLINK).rows, len(query.match_table(pa.concat_tables(tables)))
    if not found == wanted > 0:
        raise RuntimeError(f"Flink SQL finds {found:,} rows, and celc {wanted:,}")


if __name__ == "__main__":
    sys.exit(main())
