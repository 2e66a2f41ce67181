"""Streams in their steady state: `match_stream` beside Spark's own count on the same files.

    python benchmarks/streaming.py [--keys N] [--rows N] [--files N] [--warm-up N] [--buckets N]
        [--positions true|false|both] [--only ours|others|both]

A *cell* is a number of keys and a number of rows in a micro-batch. Its files hold a minute of event
time each, and come one at a time into a folder that a stream watches. So each file costs a
micro-batch of data and the micro-batch that the watermark asks for when it has moved; "a file"
means both. The first files fill the window, warm the JVM, and are not counted. Spark's count of
rows by key and tumbling window (`groupBy(window, key).count()`) has the same keys, watermark, state
store and sink, and never leaves the JVM: the ratio to it says what patterns cost. The operator of
`match_stream` with a matcher that does nothing says what of that no matcher can save. The streams
run one after another, since a stream that waits looks for new files all the time. Speeds are
compared file by file, on the clock and in CPU seconds of all processes.

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
from no_matcher import without_a_matcher
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
    **dict(zip([(keys, 200_000) for keys in KEYS], (0.75, 1.0, 2.0, 4.0), strict=True)),
    **dict(zip([(keys, 1_000_000) for keys in KEYS], (0.7, 0.85, 1.4, 6.0), strict=True)),
}
"""Speed beside the count, by keys and rows of a micro-batch."""

GOAL_OF_FLOOR = 0.85
"""Speed beside the same operator with a matcher that does nothing."""

ABSOLUTE_GOALS = {(100_000, 1_000_000): 483.0}
"""Thousand rows a second, by keys and rows of a micro-batch. FlinkCEP 2.3 reached this on two
cores, with events made in memory and those that cannot matter left out by hand."""

COUNT = "Spark's count"
FLOOR = "the operator with a matcher that does nothing"
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
            yield from figures_of(cell, dict(measured(spark, cell, [COUNT, FLOOR, *OURS.values()])))


# --- figures --------------------------------------------------------------------------------------


def figures_of(cell: Cell, found: dict[str, Measured]) -> Iterator[Figure]:
    """The figures of one cell, from what its streams cost, by name."""
    others = {name: found[name] for name in (COUNT, FLOOR) if name in found}
    for name, other in others.items():
        yield from _own_figures(cell, name, other)
    for name in OURS.values():
        ours = found.get(name)
        if ours is None:
            continue
        goal = ABSOLUTE_GOALS.get((cell.keys, cell.rows))
        yield from _own_figures(cell, name, ours, goal)
        yield from _state_figures(cell, name, ours)
        for beside, other in others.items():
            yield from _speeds_beside(cell, name, ours, beside, other)
        if COUNT in others:
            yield _delay_beside(cell, name, ours, others[COUNT])


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


def _speeds_beside(
    cell: Cell, name: str, ours: Measured, beside: str, other: Measured
) -> Iterator[Figure]:
    goal = GOALS.get((cell.keys, cell.rows)) if beside == COUNT else GOAL_OF_FLOOR
    pairs = list(zip(ours.steady, other.steady, strict=True))
    for speed, values in (
        ("speed", [there.clock / own.clock for own, there in pairs]),
        ("speed in CPU seconds", [there.cpu / own.cpu for own, there in pairs]),
    ):
        yield Figure(
            f"{cell.name}: {speed} of {name} beside {beside}",
            "times",
            tuple(values),
            goal=goal,
            context=cell.context,
        )


def _delay_beside(cell: Cell, name: str, ours: Measured, count: Measured) -> Figure:
    own, other = (statistics.median(cost.clock for cost in of.steady) for of in (ours, count))
    delay = max(0.0, count.restart.clock - other)  # Spark's own start, and reading its states
    return Figure(
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
    streams: dict[str, Stream] = {COUNT: count, FLOOR: nothing}
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


def nothing(rows: DataFrame) -> DataFrame:
    """The plan of `match_stream` without a matcher."""
    columns = rows.selectExpr("type", "CAST(key AS BIGINT) AS id", "v", "ts AS timestamp")
    return without_a_matcher(columns, "type IN ('A', 'B', 'C') AND v > 0.5", DELAY)


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
    streams = [COUNT, FLOOR] if asked.only != "ours" else []
    if asked.only != "others":
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
    parser.add_argument("--only", choices=("ours", "others", "both"), default="both")
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
