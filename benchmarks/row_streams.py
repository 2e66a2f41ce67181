"""MATCH_RECOGNIZE on a stream in its steady state, beside a query of CEL of the same shape.

    python benchmarks/row_streams.py [--keys N] [--rows N] [--files N] [--warm-up N]

The files, the session and what is measured are those of `streaming.py`. Both queries ask for two
neighbouring rows of a key within ten minutes, and both look at every row. The streams run one after
another. The goal is 0.7 of the rows a second of CEL.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cells import WARM_UP, WINDOW, Cell, write_files
from spark_jobs import session
from streaming import DELAY, SETTINGS, FileCost, Stream, measured_stream

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
    asked = parser.parse_args(arguments)
    cell = Cell(asked.keys, asked.rows, asked.warm_up, asked.files)
    found: dict[str, list[FileCost]] = {}
    with session() as spark, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for name, value in SETTINGS.items():
            spark.conf.set(name, value)
        files = write_files(Path(folder) / "files", cell)
        for name, stream in streams().items():
            cost = measured_stream(spark, cell, stream, files, Path(folder) / name)
            found[name] = cost.steady
            for one in cost.steady:
                print(
                    f"{name}: {one.clock:.3f} s on the clock, {one.cpu:.2f} s of CPU, "
                    f"{one.workers:.2f} s of workers, {one.written:,} bytes of state",
                    flush=True,
                )
    for what in ("clock", "cpu", "workers"):
        own, other = (
            statistics.median(getattr(one, what) for one in found[name])
            for name in ("MATCH_RECOGNIZE", "CEL")
        )
        print(f"speed of MATCH_RECOGNIZE beside CEL, by {what}: {other / own:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
