"""Spark jobs in a session on two cores, by the CPU time of all their processes.

The driver, the JVM and the Python workers are counted (`processes.py`). Jobs write to Spark's
`noop` sink. Data is written once into a temporary folder, as Parquet, with columns that no query
reads.

*Keyed*: rows in no order, a hundred for each key, 1 % of them of types that the query names.
`match` stands beside the same plan with a function that reads all columns and returns nothing:
what the shuffle, the sort and Arrow cost where all rows are handed to Python. *Keyless*: rows in
the order of time; there two time ranges on two cores stand beside one on one core, by the clock on
the wall. *Join*: what a user would write instead with DataFrames, a self-join of events in buckets
of the window's size, with keys and without.
"""

from __future__ import annotations

import inspect
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import baselines
import numpy as np
import pyarrow as pa
from common import Figure, Settings, Task, quotient, rate
from processes import pin_tree, tree_seconds
from pyarrow import parquet
from streams import one_batch, rare_types, seconds_apart

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_OF_A_KEY = 100
FILES = 8
ROW_GROUP = 125_000
TYPES = "ABC"
DECLARED = "key: INT, n: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP"
KEYED = "PARTITION BY key WITHIN 10 MINUTES [ts]"
KEYLESS = {"W=1000 rows": "WITHIN 1000 EVENTS", "a window of 10 minutes": "WITHIN 10 MINUTES [ts]"}


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part."""
    rows = 10_000_000 if settings.full else 1_000_000
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as folder, session() as spark:
        keyed = write_keyed(Path(folder) / "keyed", rows)
        yield from keyed_figures(spark.read.parquet(str(keyed)), rows, settings)
        keyless = write_keyless(Path(folder) / "keyless", rows)
        yield from range_figures(spark.read.parquet(str(keyless)), rows, settings)
        yield from join_figures(spark, Path(folder) / "join", rows, settings)


@contextmanager
def session() -> Iterator[SparkSession]:
    """A session on two cores, whose workers run this Python."""
    tools = Path(__file__).parent.parent / "tools"
    if "JAVA_HOME" not in os.environ:
        found = subprocess.run(
            [sys.executable, tools / "java.py"], capture_output=True, text=True, check=True
        )
        os.environ["JAVA_HOME"] = found.stdout.strip()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def run(frame: DataFrame) -> None:
    """Run a job, and drop what it returns."""
    frame.write.format("noop").mode("overwrite").save()


def answer(frame: DataFrame) -> tuple[Any, ...]:
    """The number of rows and a checksum of them that no order changes."""
    from pyspark.sql import functions

    columns = [functions.col(f"`{name}`") for name in frame.columns]
    found = frame.agg(functions.count("*"), functions.bit_xor(functions.xxhash64(*columns))).first()
    assert found is not None
    return tuple(found)


# --- data -----------------------------------------------------------------------------------------


def events(rows: int, keys: int) -> pa.Table:
    """One event a second; columns that queries read, and two that none does."""
    rng = np.random.default_rng(11)
    texts = pa.array([f"sensor {number}" for number in range(1_000)])
    batch = one_batch(
        type=rare_types(TYPES, rows, 0.01),
        key=pa.array(rng.integers(0, keys, rows).astype(np.int32)),
        n=pa.array(rng.integers(0, 1_000, rows).astype(np.int32)),
        v=pa.array(rng.random(rows)),
        name=texts.take(pa.array(rng.integers(0, len(texts), rows))),
        ts=seconds_apart(rows),
        unread=pa.array(rng.random(rows)),
        note=texts.take(pa.array(rng.integers(0, len(texts), rows))),
    )
    return pa.Table.from_batches([batch])


def write_keyed(folder: Path, rows: int) -> Path:
    """Rows of many keys in no order: times are shuffled as well."""
    table = events(rows, max(1, rows // ROWS_OF_A_KEY))
    # A key's hundred events within minutes, as its window wants them.
    rng = np.random.default_rng(12)
    times = rng.permutation(rows).astype(np.int64) * 10_000
    shuffled = pa.array(times, pa.timestamp("us", tz="UTC"))
    table = table.set_column(table.schema.get_field_index("ts"), "ts", shuffled)
    return _write(folder, table)


def write_keyless(folder: Path, rows: int) -> Path:
    """Rows in the order of their times."""
    return _write(folder, events(rows, 1))


def _write(folder: Path, table: pa.Table) -> Path:
    folder.mkdir()
    step = -(-len(table) // FILES)
    for number in range(FILES):
        part = table.slice(number * step, step)
        parquet.write_table(part, folder / f"part-{number:02}.parquet", row_group_size=ROW_GROUP)
    return folder


def query_of(clauses: str) -> Any:
    """A;B;C over the types of the data, ordered by time."""
    declared = ", ".join(f"EVENT {name} {{ {DECLARED} }}" for name in (*TYPES, "X"))
    text = (
        f"CREATE STREAM S {{ {declared} }} "
        f"SELECT * FROM S WHERE A AS a ; B AS b ; C AS c {clauses}"
    )
    return next(iter(celc.compile(text, order_by="ts").queries.values()))


# --- keys -----------------------------------------------------------------------------------------


def keyed_figures(frame: DataFrame, rows: int, settings: Settings) -> Iterator[Figure]:
    """Many keys: `match`, the same plan with nothing to do, without positions, SQL, pandas."""
    query = query_of(KEYED)
    ways: dict[str, Callable[[], DataFrame]] = {
        "the plan alone": lambda: plan_alone(query, frame),
        "match": lambda: query.match(frame),
    }
    if _takes(query.with_options, "positions"):
        without = query.with_options(positions=False)
        ways["match, positions=False"] = lambda: without.match(frame)
    else:
        print("  not available: with_options(positions=False)")
    if hasattr(query, "register"):
        ways["SQL table function"] = by_sql(query, frame)
    else:
        print("  not available: query.register, for SQL")
    check(query, ways)
    tasks = [Task(way, partial(_run_made, make)) for way, make in ways.items()]
    context: dict[str, Any] = {"rows": rows, "keys": max(1, rows // ROWS_OF_A_KEY)}
    timings = settings.repeated(tasks, repetitions=settings.fewer, clock=tree_seconds)
    for way in ways:
        yield rate(f"keyed, {way}", "rows/s", rows, timings[way], **context)
    alone = timings["the plan alone"].seconds
    goals = {"match": 0.7, "match, positions=False": 0.625}
    for way in list(ways)[1:]:
        name = f"keyed, cost of {way} beside the plan alone"
        yield quotient(name, timings[way].seconds, alone, goals.get(way), **context)
    if not settings.full:
        return
    pandas = settings.repeated(
        [Task("pandas", lambda: run(by_pandas(query, frame)))],
        repetitions=1,
        warm=False,
        clock=tree_seconds,
    )
    yield rate("keyed, applyInPandas", "rows/s", rows, pandas["pandas"], **context)
    yield quotient(
        "keyed, match's speed beside applyInPandas",
        pandas["pandas"].seconds,
        [statistics.median(timings["match"].seconds)],
        10.0,
        higher_is_better=True,
        **context,
    )


def _run_made(make: Callable[[], DataFrame]) -> None:
    run(make())


def check(query: Any, ways: dict[str, Callable[[], DataFrame]]) -> None:
    """Raises RuntimeError unless the ways that return matches return as many as `match`."""
    expected = answer(ways["match"]())
    for way, make in ways.items():
        if way in ("match", "the plan alone"):
            continue
        found = answer(make())
        # Without positions the rows are others, but there are as many.
        same = found[0] == expected[0] if "positions" in way else found == expected
        if not same:
            raise RuntimeError(f"{way}: {found}, but match: {expected} (rows, checksum)")


def plan_alone(query: Any, frame: DataFrame) -> DataFrame:
    """The plan of `match` with a function that reads every column and returns nothing."""

    # In here, so that Spark ships it by its content: workers cannot import this file.
    def read_all(batches: Any) -> Any:
        read = 0
        for batch in batches:
            for column in batch.columns:
                read += column.nbytes + column.null_count
        # Never true; makes this a generator.
        if read < 0:
            yield batch

    plan = query.plan
    ordered = (
        frame.select(*plan.input_schema().names)
        .repartition(*plan.partition_by)
        .sortWithinPartitions(*plan.partition_by, *plan.order_by)
    )
    return ordered.mapInArrow(read_all, query.output_ddl)


def by_sql(query: Any, frame: DataFrame) -> Callable[[], DataFrame]:
    """The query as a table function, registered once."""
    spark = frame.sparkSession
    frame.select(*query.plan.input_schema().names).createOrReplaceTempView("celc_bench_events")
    query.register(spark, "celc_bench_matches")
    return lambda: spark.sql(
        "SELECT * FROM celc_bench_matches("
        "TABLE(celc_bench_events) PARTITION BY (key) ORDER BY (ts))"
    )


def by_pandas(query: Any, frame: DataFrame) -> DataFrame:
    """One call of Python for each key."""
    narrow = frame.select(*query.plan.input_schema().names)
    return narrow.groupBy(*query.plan.partition_by).applyInPandas(
        query.match_pandas, query.output_ddl
    )


def _takes(function: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(function).parameters


# --- no keys --------------------------------------------------------------------------------------


def range_figures(frame: DataFrame, rows: int, settings: Settings) -> Iterator[Figure]:
    """No key: two time ranges on two cores beside one on one core, by the clock on the wall."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("  not available: two ranges on two cores, for there is one")
        return
    for name, clause in KEYLESS.items():
        query = query_of(clause)
        if not _takes(query.match, "ranges"):
            whole = settings.repeated(
                [Task("match", partial(_run_ranges, query, frame, None))],
                repetitions=settings.fewer,
                clock=tree_seconds,
            )
            yield rate(f"keyless, {name}, match", "rows/s", rows, whole["match"], rows=rows)
            print("  not available: match(…, ranges=…)")
            continue
        one, two = (answer(query.match(frame, ranges=ranges)) for ranges in (1, 2))
        if one != two:
            raise RuntimeError(f"keyless, {name}: one range gives {one}, two give {two}")
        tasks = [
            Task("one", partial(_run_ranges, query, frame, 1), partial(pin_tree, cores[:1])),
            Task("two", partial(_run_ranges, query, frame, 2), partial(pin_tree, cores)),
        ]
        try:
            timings = settings.repeated(
                tasks, repetitions=settings.repetitions, clock=time.perf_counter
            )
        finally:
            pin_tree(cores)
        context: dict[str, Any] = {"rows": rows, "matches": one[0]}
        for which, ranges in (("one", "one range on one core"), ("two", "two ranges")):
            yield rate(f"keyless, {name}, {ranges}", "rows/s", rows, timings[which], **context)
        yield quotient(
            f"keyless, {name}, two ranges' speed beside one",
            timings["one"].seconds,
            timings["two"].seconds,
            1.6,
            higher_is_better=True,
            **context,
        )


def _run_ranges(query: Any, frame: DataFrame, ranges: int | None) -> None:
    run(query.match(frame) if ranges is None else query.match(frame, ranges=ranges))


# --- the self-join --------------------------------------------------------------------------------


class Join(NamedTuple):
    """A size of the comparison with a self-join: `A ; B ; C` over ten types, with a hundred keys or
    without. A wide window without keys is measured on fewer rows: it has 5,000 matches for each C.
    """

    window: int
    keyed: bool
    rows: int
    goal: float


IDS = 100


def joins(rows: int) -> list[Join]:
    """The sizes of the comparison, for a number of rows."""
    return [
        Join(50, False, rows, 1.0),
        Join(1_000, False, rows // 20, 10.0),
        Join(50, True, rows, 1.0),
        Join(1_000, True, rows, 10.0),
    ]


def join_figures(
    spark: SparkSession, folder: Path, rows: int, settings: Settings
) -> Iterator[Figure]:
    """A;B;C by a self-join of events in buckets, beside `match`; the same matches."""
    for number, join in enumerate(joins(rows)):
        table = baselines.stream(join.rows)
        ids = np.random.default_rng(13).integers(0, IDS, len(table))
        table = table.append_column("id", pa.array(ids))
        table = table.append_column("row", pa.array(np.arange(len(table))))
        frame = spark.read.parquet(str(_write(folder.with_name(f"join-{number}"), table)))
        yield from _figures_of_join(frame, join, settings)


def _figures_of_join(frame: DataFrame, join: Join, settings: Settings) -> Iterator[Figure]:
    from pyspark.sql import functions

    query = _query_of_join(join)
    places = "ts" if join.keyed else "pos"
    shown = [functions.col(f"`{label}`")[0][places].alias(label) for label in ("a", "b", "c")]
    ways = {
        "match": lambda: query.match(frame).select(*shown),
        "self-join": lambda: by_join(frame, join),
    }
    answers = {way: answer(make()) for way, make in ways.items()}
    if answers["match"] != answers["self-join"]:
        raise RuntimeError(f"the self-join finds other matches (rows, checksum): {answers}")
    tasks = [Task(way, partial(_run_made, make)) for way, make in ways.items()]
    timings = settings.repeated(tasks, repetitions=settings.fewer, clock=tree_seconds)
    context: dict[str, Any] = {
        "rows": join.rows,
        "matches": answers["match"][0],
        "window": join.window,
        "keys": IDS if join.keyed else 0,
    }
    name = f"A;B;C W={join.window}{', keyed' if join.keyed else ''}"
    for way in ways:
        yield rate(f"{name}, {way}", "rows/s", join.rows, timings[way], **context)
    yield quotient(
        f"{name}, match's speed beside the self-join",
        timings["self-join"].seconds,
        timings["match"].seconds,
        join.goal,
        higher_is_better=True,
        **context,
    )


def _query_of_join(join: Join) -> Any:
    declared = ", ".join(f"EVENT {name} {{ id: LONG, ts: LONG }}" for name in baselines.TYPES)
    clauses = "PARTITION BY id " if join.keyed else ""
    text = (
        f"CREATE STREAM S {{ {declared} }} SELECT a[ts], b[ts], c[ts] FROM S "
        f"WHERE {baselines.QUERY} {clauses}WITHIN {join.window} [ts]"
    )
    compiled = celc.compile(text, order_by="ts", tiebreak="row")
    return next(iter(compiled.queries.values()))


def by_join(frame: DataFrame, join: Join) -> DataFrame:
    """Events in buckets of the window's size; each pair is in one bucket or in neighbours.

    Shows the rows of events, or with keys, whose positions a join does not know, their times.
    """
    from pyspark.sql import functions
    from pyspark.sql.functions import col

    window, on = join.window, ["bucket", *(["id"] if join.keyed else [])]

    def of_type(name: str, label: str) -> DataFrame:
        bucket = functions.floor(col("ts") / window)
        return frame.where(col("type") == name).select(
            col("row").alias(label), col("ts").alias(f"{label}_ts"), bucket.alias("bucket"), *on[1:]
        )

    def with_neighbour(events: DataFrame) -> DataFrame:
        both = functions.explode(functions.array(col("home"), col("home") - 1))
        return events.withColumn("bucket", both)

    last = with_neighbour(of_type("C", "c").withColumnRenamed("bucket", "home"))
    ended = last.join(of_type("B", "b"), on).where(
        (col("b") < col("c")) & (col("c_ts") - col("b_ts") <= window)
    )
    pairs = with_neighbour(ended.drop("bucket"))
    whole = pairs.join(of_type("A", "a"), on).where(
        (col("a") < col("b")) & (col("c_ts") - col("a_ts") <= window)
    )
    if join.keyed:
        return whole.select(*(col(f"{label}_ts").alias(label) for label in "abc"))
    return whole.select("a", "b", "c")
