"""MATCH_RECOGNIZE on a stream in its steady state, beside a query of CEL of the same shape, and
beside the same clause in Flink SQL.

    python benchmarks/row_streams.py [--keys N] [--rows N] [--files N] [--warm-up N]
                                     [--without cel|flink] [--alike] [--floor]

The files, the session and what is measured are those of `streaming.py`. The queries ask for two
neighbouring rows of a key within ten minutes, and all look at every row. The streams run one after
another. The goals are 0.7 of the rows a second of CEL, and 3 times those of Flink SQL, by CPU.

The steady state of both begins when the window is full and their code is compiled: neither figure
has the start of a JVM or of a job. CPU is that of all threads of Flink's process, and of all
processes of Spark. Flink has one slot, and its rows in memory, in their order; ours are read from
files, out of order, and each micro-batch writes its state. So what Flink takes to read its rows and
to hand them over by key is told beside it. Before it is timed, the rows of both answers are
counted. Without Flink's jars (`pip install ".[flink]"`) it is left out, with a word why.

`--alike`: both read the same lines of text, in the order of time, and Flink makes a checkpoint
about as often as we do, once a file.

`--floor`: also streams of Spark that find nothing, in steps: the files alone; their rows given to
Python; our operator, which shuffles rows and keeps those that wait, without its matcher; Spark's
own count. What is above a third of Flink's CPU there cannot be mended in the matcher.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from cells import FILES_OF_A_WINDOW, WARM_UP, WINDOW, Cell, events, write_files
from pyarrow import parquet
from spark_jobs import session
from streaming import DELAY, SETTINGS, FileCost, Stream, count, measured_stream

sys.path.append(str(Path(__file__).resolve().parent / "flink_streams"))

from flink_streams import FlinkRows, missing, write_lines

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
OURS_ON_LINES = "MATCH_RECOGNIZE on lines"


def streams() -> dict[str, Stream]:
    """The streams, by name."""
    rows = next(iter(celc.compile(ROWS, dialect="match_recognize").queries.values()))
    return {
        "CEL": partial(celc.compile(CEL, order_by="ts").query.match_stream, watermark=DELAY),
        "MATCH_RECOGNIZE": partial(rows.match_stream, watermark=DELAY),
    }


# --- floors ---------------------------------------------------------------------------------------


def _counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many rows there are."""
    rows = sum(map(len, batches))
    yield pa.RecordBatch.from_pydict({"rows": pa.array([rows], pa.int64())})


def _given_to_python(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("ts", DELAY).mapInArrow(_counted, "rows LONG")


def _nothing(*_: object) -> None:
    """In place of what runs the rows of a bucket."""


def _without_matcher(make: Callable[[Any], Any], options: Any) -> Any:
    """The task of a worker, which drops the rows that the watermark has passed."""
    task = make(options)
    task._reader._run.run = _nothing
    return task


def _without_matches(rows: DataFrame) -> DataFrame:
    from celc_runtime.row_pattern.streams.match import stream_rows

    query = next(iter(celc.compile(ROWS, dialect="match_recognize").queries.values()))
    return stream_rows(
        query.program,
        (query.stream_step, partial(_without_matcher, query.stream_task)),
        rows,
        tiebreak=(),
        watermark=DELAY,
        late="drop",
        api=None,
        allow_unbounded_state=False,
        max_event_time_skew=None,
        buckets=None,
        checkpoint=None,
    )


FLOORS: dict[str, Stream] = {
    "files read": lambda rows: rows,
    "rows given to Python": _given_to_python,
    "without a matcher": _without_matches,
    "Spark's count": count,
}
"""Streams that find no match, by name."""


def _lines(spark: SparkSession, folder: Path) -> DataFrame:
    """Lines of `write_lines` as a stream."""
    from pyspark.sql import functions

    read = spark.readStream.schema("type STRING, key INT, v DOUBLE, ts LONG").csv(str(folder))
    return read.withColumn("ts", functions.timestamp_micros("ts"))


# --- measuring ------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure one cell."""
    parser = argparse.ArgumentParser(description="a stream of MATCH_RECOGNIZE beside one of CEL")
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=WARM_UP)
    parser.add_argument("--without", choices=("cel", "flink"))
    parser.add_argument("--alike", action="store_true")
    parser.add_argument("--floor", action="store_true")
    asked = parser.parse_args(arguments)
    cell = Cell(asked.keys, asked.rows, asked.warm_up, asked.files)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        files = write_files(Path(folder) / "files", cell)
        names = [*([] if asked.without == "cel" else [OTHER]), OURS]
        names += [*([OURS_ON_LINES] if asked.alike else []), *(FLOORS if asked.floor else [])]
        found = _of_streams(cell, names, files, Path(folder))
        for what in ("clock", "cpu", "workers") if OTHER in found else ():
            own, other = (_median(found[name], what) for name in (OURS, OTHER))
            print(f"speed of {OURS} beside {OTHER}, by {what}: {other / own:.2f}")
        lacking = missing()
        if lacking is not None and asked.without != "flink":
            print(f"Flink SQL is left out: {lacking}")
        elif asked.without != "flink":
            _beside_flink(cell, files, found, Path(folder))
    return 0


def _of_streams(
    cell: Cell, names: Sequence[str], files: Sequence[Path], folder: Path
) -> dict[str, list[FileCost]]:
    """What the files of a steady state cost the streams of Spark, by name."""
    found: dict[str, list[FileCost]] = {}
    with session() as spark:
        for setting, value in SETTINGS.items():
            spark.conf.set(setting, value)
        made = streams() | FLOORS
        for name in names:
            if name == OURS_ON_LINES:
                lines = _as_lines(files, folder / "lines")
                cost = measured_stream(spark, cell, made[OURS], lines, folder / name, _lines)
            else:
                cost = measured_stream(spark, cell, made[name], files, folder / name)
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


def _as_lines(files: Sequence[Path], folder: Path) -> list[Path]:
    """The rows of files as lines of text, in the order of time."""
    folder.mkdir()
    found = [folder / f"{file.stem}.csv" for file in files]
    for file, to in zip(files, found, strict=True):
        write_lines(parquet.read_table(file).sort_by("ts"), to)
    return found


def _beside_flink(
    cell: Cell, files: Sequence[Path], found: dict[str, list[FileCost]], folder: Path
) -> None:
    """Print what the last files cost in Flink SQL, once the window is full."""
    check_flink(folder)
    warm_up = min(cell.warm_up, FILES_OF_A_WINDOW + 2)
    chosen = files[len(files) - 1 - cell.files - warm_up :]
    (folder / "flink").mkdir()
    with FlinkRows(folder / "flink", list(map(parquet.read_table, chosen))) as flink:
        told = {"in memory": flink.sql(FLINK), "reading alone": flink.read()}
        if OURS_ON_LINES in found:
            told["on lines"] = flink.lines(FLINK)
            a_file = statistics.median(told["on lines"].clock[warm_up:])
            told["on lines, with checkpoints"] = flink.kept(FLINK, a_file)
    cpu = {name: statistics.median(one.seconds[warm_up:]) for name, one in told.items()}
    for name, one in told.items():
        clock = statistics.median(one.clock[warm_up:])
        print(f"Flink SQL {flink.version} {name}: {cpu[name]:.2f} s of CPU, {clock:.2f} s of clock")
    theirs, read = cpu["in memory"], cpu["reading alone"]
    for name in [OURS, *(name for name in FLOORS if name in found)]:
        own = _median(found[name], "cpu")
        print(f"speed of {name} beside Flink SQL, by cpu: {theirs / own:.2f}")
        if name == OURS:
            print(f"beside what Flink takes without reading: {(theirs - read) / own:.2f}")
    if OURS_ON_LINES in found:
        own = _median(found[OURS_ON_LINES], "cpu")
        for name in ("on lines", "on lines, with checkpoints"):
            print(f"speed of {OURS_ON_LINES} beside Flink SQL {name}: {cpu[name] / own:.2f}")


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
