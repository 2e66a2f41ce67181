"""Spark jobs in a session on two cores, by the CPU time of all their processes.

The driver, the JVM and the Python workers are counted (`processes.py`). Jobs write to Spark's
`noop` sink. Data is written once into a temporary folder, as Parquet, with columns that no query
reads.

Rows come in no order, a hundred for each key, and 1 % of them have a type that the query names.
`match` stands beside

- the same plan with a function that reads all columns and returns nothing, which is what the
  shuffle, the sort and Arrow cost where all rows are handed to Python;
- itself with positions;
- a loop over rows in Python, as one writes it by hand;
- the query in SQL, of a table in partitions and of one that is sorted.
"""

from __future__ import annotations

import inspect
import statistics
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from celc_runtime.plan.schemas import input_schema
from common import Figure, Settings, Task, quotient, rate
from processes import tree_seconds
from spark_jobs import answer, run, run_made, session, write
from streams import one_batch, rare_types, seconds_apart

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_OF_A_KEY = 100
PANDAS_KEYS = 10_000
"""The keys of `applyInPandas`, which calls Python for each key: with a hundred thousand it had not
ended after a quarter of an hour."""
TYPES = "ABC"
DECLARED = "key: INT, n: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP"
KEYED = "PARTITION BY key WITHIN 10 MINUTES [ts]"


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part."""
    rows = settings.events
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as folder, session() as spark:
        keyed = write_keyed(Path(folder) / "keyed", rows)
        yield from keyed_figures(spark.read.parquet(str(keyed)), rows, settings)


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
    return write(folder, table)


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
    """Many keys: `match`, the same plan with nothing to do, with positions, SQL, pandas."""
    query = query_of(KEYED)
    ways: dict[str, Callable[[], DataFrame]] = {
        "the plan alone": lambda: plan_alone(query, frame),
        "match": lambda: query.match(frame),
        "a loop by hand": lambda: by_hand(frame),
    }
    numbered = query.with_options(positions=True)
    ways["match, positions=True"] = lambda: numbered.match(frame)
    if hasattr(query, "register"):
        ways["SQL table function"] = by_sql(query, frame, "PARTITION BY (key) ORDER BY (ts)")
        ways["SQL table function of a sorted table"] = by_sql(query, frame, sorted_by="key, ts")
        if _takes(query.register, "sorts"):
            ways["SQL table function that sorts"] = by_sorting_sql(query, frame)
    else:
        print("  not available: query.register, for SQL")
    check(ways)
    tasks = [Task(way, partial(run_made, make)) for way, make in ways.items()]
    context: dict[str, Any] = {"rows": rows, "keys": max(1, rows // ROWS_OF_A_KEY)}
    timings = settings.repeated(tasks, repetitions=settings.fewer, clock=tree_seconds)
    for way in ways:
        yield rate(f"keyed, {way}", "rows/s", rows, timings[way], **context)
    alone = timings["the plan alone"].seconds
    goals = {"match": 0.625, "match, positions=True": 0.7}
    for way in list(ways)[1:]:
        name = f"keyed, cost of {way} beside the plan alone"
        yield quotient(name, timings[way].seconds, alone, goals.get(way), **context)
    # In SQL all rows are handed to Python, as with positions.
    for way in ways:
        if way.startswith("SQL"):
            other = "match, positions=True"
            name = f"keyed, cost of {way} beside {other}"
            yield quotient(name, timings[way].seconds, timings[other].seconds, 1.5, **context)
    if not settings.full:
        return
    few = frame.where(frame["key"] < PANDAS_KEYS)
    fewer = few.count()
    pandas = settings.repeated(
        [Task("pandas", lambda: run(by_pandas(query, few)))],
        repetitions=1,
        warm=False,
        clock=tree_seconds,
    )
    context["keys of applyInPandas"] = PANDAS_KEYS
    yield rate("keyed, applyInPandas", "rows/s", fewer, pandas["pandas"], **context)
    yield quotient(
        "keyed, match's speed beside applyInPandas",
        [seconds / fewer for seconds in pandas["pandas"].seconds],
        [statistics.median(timings["match"].seconds) / rows],
        10.0,
        higher_is_better=True,
        **context,
    )


def check(ways: dict[str, Callable[[], DataFrame]]) -> None:
    """Raises RuntimeError unless the ways that return matches return as many as `match`."""
    expected = answer(ways["match"]())
    for way, make in ways.items():
        if way in ("match", "the plan alone"):
            continue
        found = answer(make())
        # With positions, and by hand, the rows are others, but there are as many.
        other = "positions" in way or "by hand" in way
        same = found[0] == expected[0] if other else found == expected
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
        frame.select(*input_schema(plan).names)
        .repartition(*plan.source.partition_by)
        .sortWithinPartitions(*plan.source.partition_by, *plan.source.order_by)
    )
    return ordered.mapInArrow(read_all, query.output_ddl)


def by_hand(frame: DataFrame) -> DataFrame:
    """A;B;C by a loop over rows in Python, as a user would write it for `mapInArrow`: the same
    plan, and for each match its key and its times."""
    window = 600_000_000

    # In here, so that Spark ships it by its content: workers cannot import this file.
    def loop(batches: Any) -> Any:
        import pyarrow

        now: Any = None
        first: list[Any] = []
        pairs: list[Any] = []
        for batch in batches:
            found: list[tuple[Any, ...]] = []
            types, keys = batch.column("type").to_pylist(), batch.column("key").to_pylist()
            times = batch.column("ts").cast("int64").to_pylist()
            for kind, key, at in zip(types, keys, times, strict=True):
                if key != now:
                    now, first, pairs = key, [], []
                if kind == "C":
                    found += [(key, a, b, at) for a, b in pairs if at - a <= window]
                elif kind == "B":
                    pairs += [(a, at) for a in first if at - a <= window]
                elif kind == "A":
                    first.append(at)
            if found:
                columns = map(list, zip(*found, strict=True))
                yield pyarrow.record_batch(list(columns), names=["key", "a", "b", "c"])

    narrow = frame.select("type", "key", "ts").repartition("key")
    ordered = narrow.sortWithinPartitions("key", "ts")
    return ordered.mapInArrow(loop, "key LONG, a LONG, b LONG, c LONG")


def by_sql(
    query: Any, frame: DataFrame, parts: str = "", *, sorted_by: str = ""
) -> Callable[[], DataFrame]:
    """The query as a table function, registered once: of a table in parts that Spark cuts, or of
    one that is spread by its key and sorted."""
    spark = frame.sparkSession
    frame.select(*input_schema(query.plan).names).createOrReplaceTempView("celc_bench_events")
    query.register(spark, "celc_bench_matches")
    spread = f"SELECT * FROM celc_bench_events DISTRIBUTE BY key SORT BY {sorted_by}"
    table = f"TABLE({spread if sorted_by else 'celc_bench_events'}) {parts}"
    return lambda: spark.sql(f"SELECT * FROM celc_bench_matches({table})")


def by_sorting_sql(query: Any, frame: DataFrame) -> Callable[[], DataFrame]:
    """The query as a table function whose tasks sort what Spark has spread."""
    frame.select(*input_schema(query.plan).names).createOrReplaceTempView("celc_bench_unsorted")
    query.register(frame.sparkSession, "celc_bench_sorting", sorts=True)
    table = "TABLE(SELECT * FROM celc_bench_unsorted DISTRIBUTE BY key)"
    return lambda: frame.sparkSession.sql(f"SELECT * FROM celc_bench_sorting({table})")


def by_pandas(query: Any, frame: DataFrame) -> DataFrame:
    """One call of Python for each key."""
    narrow = frame.select(*input_schema(query.plan).names)
    return narrow.groupBy(*query.plan.source.partition_by).applyInPandas(
        query.match_pandas, query.output_ddl
    )


def _takes(function: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(function).parameters
