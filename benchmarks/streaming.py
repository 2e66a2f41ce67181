"""Streams in their steady state: `match_stream` beside Spark's own count on the same files.

    python benchmarks/streaming.py [--keys N] [--rows N] [--files N] [--warm-up N] [--buckets N]
        [--positions true|false|both] [--only ours|count|both]

A *cell* is a number of keys and a number of rows in a micro-batch. Its files hold a minute of event
time each, and come one at a time into a folder that a stream watches. So each file costs a
micro-batch of data and the micro-batch that the watermark asks for when it has moved; "a file"
means both. The first files fill the window, warm the JVM, and are not counted. Spark's count of
rows by key and tumbling window (`groupBy(window, key).count()`) has the same keys, watermark, state
store and sink, and never leaves the JVM: the ratio to it says what patterns cost. The streams run
one after another, since a stream that waits looks for new files all the time; speeds are compared
file by file.

As a script this measures one cell; the suite's full mode measures all eight. `--buckets` is passed
to `match_stream`; without it `match_stream` chooses.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cells import FILES_OF_A_WINDOW, QUERY, WARM_UP, WINDOW, Cell, write_files
from common import Figure, Settings
from processes import tree_seconds, worker_seconds
from spark_jobs import session

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DELAY = "5 seconds"  # of the watermark behind the latest event

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
}
"""The settings of the session, for all streams."""

KEYS = (20, 2_000, 100_000, 1_000_000)
ROWS = (200_000, 1_000_000)
GOALS = {
    **{(keys, rows): 0.5 for keys in (20, 2_000) for rows in ROWS},
    **{(100_000, rows): 1.0 for rows in ROWS},
    (1_000_000, 200_000): 2.0,
    (1_000_000, 1_000_000): 3.0,
}
"""Speed beside the count, by keys and rows of a micro-batch."""

ABSOLUTE_GOALS = {(100_000, 1_000_000): 483.0}
"""Thousand rows a second, by keys and rows of a micro-batch. FlinkCEP 2.3 reached this on two
cores, with events made in memory and those that cannot matter left out by hand."""

COUNT = "Spark's count"
OURS = {False: "match_stream", True: "match_stream, positions=True"}
"""The names of our streams, without positions (False) and with them (True). Without positions,
rows that cannot matter are dropped inside the JVM."""


class FileCost(NamedTuple):
    """What one file cost: seconds on the clock, CPU seconds of all processes and of Python workers,
    and bytes written below the checkpoint's state folder, as changelogs and as anything."""

    clock: float
    cpu: float
    workers: float
    changelogs: int
    written: int


class Measured(NamedTuple):
    """A stream's files in its steady state, and the first one after a restart."""

    steady: list[FileCost]
    restart: FileCost


Stream = Callable[["DataFrame"], "DataFrame"]


def cells_of_mode(full: bool) -> list[Cell]:
    """The cells of the suite's mode. The quick one fills half of the window."""
    if full:
        return [Cell(keys, rows) for keys in KEYS for rows in ROWS]
    return [Cell(keys, ROWS[0], warm_up=FILES_OF_A_WINDOW // 2) for keys in (2_000, 100_000)]


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part."""
    settings.calibrated()  # for the record: what the machine was like
    with session() as spark:
        for cell in cells_of_mode(settings.full):
            yield from figures_of(cell, dict(measured(spark, cell, [COUNT, *OURS.values()])))


# --- figures --------------------------------------------------------------------------------------


def figures_of(cell: Cell, found: dict[str, Measured]) -> Iterator[Figure]:
    """The figures of one cell, from what its streams cost, by name."""
    count = found.get(COUNT)
    if count is not None:
        yield from _own_figures(cell, COUNT, count)
    for name in OURS.values():
        ours = found.get(name)
        if ours is None:
            continue
        goal = ABSOLUTE_GOALS.get((cell.keys, cell.rows))
        yield from _own_figures(cell, name, ours, goal)
        yield from _state_figures(cell, name, ours)
        if count is not None:
            yield from _figures_beside(cell, name, ours, count)


def _own_figures(
    cell: Cell, name: str, of: Measured, goal: float | None = None
) -> Iterator[Figure]:
    millions = cell.rows / 1e6
    yield Figure(
        f"{cell.name}: {name}",
        "thousand rows a second",
        tuple(cell.rows / 1e3 / cost.clock for cost in of.steady),
        goal=goal,
        context=cell.context,
    )
    for whose, seconds in (
        ("CPU", [cost.cpu for cost in of.steady]),
        ("CPU of Python workers", [cost.workers for cost in of.steady]),
    ):
        yield Figure(
            f"{cell.name}: {name}, {whose}",
            "seconds a million rows",
            tuple(each / millions for each in seconds),
            higher_is_better=False,
            context=cell.context,
        )
    yield Figure(
        f"{cell.name}: {name}, first file after a restart",
        "s",
        (of.restart.clock,),
        higher_is_better=False,
        context=cell.context,
    )


def _state_figures(cell: Cell, name: str, of: Measured) -> Iterator[Figure]:
    yield Figure(
        f"{cell.name}: {name}, changelogs of a file",
        "bytes",
        tuple(float(cost.changelogs) for cost in of.steady),
        higher_is_better=False,
        context=cell.context,
    )
    # Snapshots fall into few files, so that a median would leave them out.
    mean = statistics.fmean(cost.written for cost in of.steady)
    yield Figure(
        f"{cell.name}: {name}, all state written of a file, mean",
        "bytes",
        (mean,),
        higher_is_better=False,
        context=cell.context,
        compared=False,  # Spark makes snapshots by the clock
    )


def _figures_beside(cell: Cell, name: str, ours: Measured, count: Measured) -> Iterator[Figure]:
    pairs = list(zip(ours.steady, count.steady, strict=True))
    yield Figure(
        f"{cell.name}: speed of {name} beside {COUNT}",
        "times",
        tuple(other.clock / own.clock for own, other in pairs),
        goal=GOALS.get((cell.keys, cell.rows)),
        context=cell.context,
    )
    own, other = (statistics.median(cost.clock for cost in of.steady) for of in (ours, count))
    delay = max(0.0, count.restart.clock - other)  # Spark's own start, and reading its states
    yield Figure(
        f"{cell.name}: {name}, first file after a restart, the count's delay aside",
        "steady files",
        (max(0.0, ours.restart.clock - delay) / own,),
        higher_is_better=False,
        goal=2.0,
        context=cell.context,
    )


# --- streams --------------------------------------------------------------------------------------


def measured(
    spark: SparkSession, cell: Cell, streams: Sequence[str]
) -> Iterator[tuple[str, Measured]]:
    """Run streams, by name, one after another on the same files; tell what each cost."""
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    made = _made(cell)
    # Spark may still be writing a snapshot of a stream that has ended.
    with tempfile.TemporaryDirectory(prefix="celc-bench-", ignore_cleanup_errors=True) as name:
        files = write_files(Path(name) / "files", cell)
        for number, which in enumerate(streams):
            yield which, measured_stream(spark, cell, made[which], files, Path(name) / str(number))


def measured_stream(
    spark: SparkSession,
    cell: Cell,
    stream: Stream,
    files: Sequence[Path],
    folder: Path,
    rows: Callable[[SparkSession, Path], DataFrame] | None = None,
) -> Measured:
    """What a stream costs on files, in a folder of its own. rows: reads this folder as a stream;
    None: the files are Parquet."""
    source = folder / "source"
    source.mkdir(parents=True)

    def frame() -> DataFrame:
        if rows is not None:
            return stream(rows(spark, source))
        schema = spark.read.parquet(str(files[0])).schema
        return stream(spark.readStream.schema(schema).parquet(str(source)))

    steady = _run(frame(), folder, files[:-1])[cell.warm_up :]
    (restart,) = _run(frame(), folder, files[-1:])
    return Measured(steady, restart)


def _made(cell: Cell) -> dict[str, Stream]:
    """All streams by name."""
    streams: dict[str, Stream] = {COUNT: count}
    for positions, name in OURS.items():
        query = celc.compile(QUERY, order_by="ts", positions=positions).query
        options = {} if cell.buckets is None else {"buckets": cell.buckets}
        streams[name] = partial(query.match_stream, watermark=DELAY, **options)
    return streams


def count(rows: DataFrame) -> DataFrame:
    """Spark's own count of rows by key and tumbling window."""
    from pyspark.sql import functions

    window = functions.window("ts", f"{WINDOW} seconds")
    return rows.withWatermark("ts", DELAY).groupBy(window, "key").count()


def _run(frame: DataFrame, folder: Path, files: Sequence[Path]) -> list[FileCost]:
    """Show a stream the files one by one, and tell what each cost."""
    with _started(frame, folder / "checkpoint") as running:
        return [_shown(running, folder, file) for file in files]


def _shown(running: Any, folder: Path, file: Path) -> FileCost:
    state = folder / "checkpoint" / "state"
    before = _sizes(state)
    cpu, workers, clock = tree_seconds(), worker_seconds(), time.perf_counter()
    (folder / "source" / file.name).hardlink_to(file)  # whole from the beginning
    running.processAllAvailable()
    clock, cpu, workers = (
        time.perf_counter() - clock,
        tree_seconds() - cpu,
        worker_seconds() - workers,
    )
    new = {path: size for path, size in _sizes(state).items() if before.get(path) != size}
    changelogs = sum(size for path, size in new.items() if path.suffix == ".changelog")
    return FileCost(clock, cpu, workers, changelogs, sum(new.values()))


def _sizes(folder: Path) -> dict[Path, int]:
    """The bytes of each file below a folder, which need not exist yet."""
    sizes = {}
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                sizes[path] = path.stat().st_size
        except FileNotFoundError:
            continue  # Spark has just renamed or deleted it
    return sizes


@contextmanager
def _started(frame: DataFrame, checkpoint: Path) -> Iterator[Any]:
    writer = frame.writeStream.format("noop").outputMode("append")
    running = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        yield running
    finally:
        running.stop()


# --- the command line -----------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure one cell."""
    from suite import line

    asked = _parser().parse_args(arguments)
    cell = Cell(asked.keys, asked.rows, asked.warm_up, asked.files, asked.buckets)
    streams = [COUNT] if asked.only != "ours" else []
    if asked.only != "count":
        streams += [name for which, name in OURS.items() if asked.positions in (which, None)]
    found = {}
    with session() as spark:
        for name, costs in measured(spark, cell, streams):
            found[name] = costs
            print(f"\n{name}", flush=True)
            for which, cost in [*enumerate(costs.steady, 1), ("restart", costs.restart)]:
                print(f"  file {which}: {_text(cost)}", flush=True)
    print()
    for figure in figures_of(cell, found):
        least, most = min(figure.values), max(figure.values)
        print(f"{line(figure)} [{least:,.5g} to {most:,.5g}]")
    return 0


def _text(cost: FileCost) -> str:
    return (
        f"{cost.clock:7.3f} s on the clock, {cost.cpu:6.2f} s of CPU, {cost.workers:6.2f} s of "
        f"workers, {cost.changelogs:11,} bytes of changelogs, {cost.written:12,} of all state"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keys", type=_size, default=100_000, metavar="N")
    parser.add_argument("--rows", type=_size, default=200_000, metavar="N", help="of a file")
    parser.add_argument(
        "--files", type=_size, default=5, metavar="N", help="that are measured, besides the warm-up"
    )
    parser.add_argument(
        "--warm-up",
        type=_size,
        default=WARM_UP,
        metavar="N",
        help=f"files before those; {FILES_OF_A_WINDOW} fill the window (default: {WARM_UP})",
    )
    parser.add_argument("--buckets", type=_size, metavar="N", help="the option of match_stream")
    parser.add_argument(
        "--positions", type=_positions, metavar="true|false|both", help="default: both"
    )
    parser.add_argument("--only", choices=("ours", "count", "both"), default="both")
    return parser


def _size(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


def _positions(text: str) -> bool | None:
    """None: both."""
    choices = {"true": True, "false": False, "both": None}
    if text not in choices:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(choices)}")
    return choices[text]


if __name__ == "__main__":
    sys.exit(main())
