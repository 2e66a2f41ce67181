"""`A ; B ; C` by a self-join of DataFrames, as a user would write it instead, beside `match`.

Events are put into buckets of the window's size; each pair of a match is in one bucket or in
neighbours. A join knows no positions, and neither does `match`; the join numbers the rows first to
stand beside `match` with `positions=True`. All ways must find the same matches before they are
timed.

Where a window is wide and has no key, the rows of the answer are the cost of each way. So the
matches of such a window are counted as well, by `SELECT TOTAL` and by the join.

Three jobs without a query show how fast any way can be that hands rows to Python, and any that
returns the matches: they read the rows that can matter, or all rows, with a function that returns
nothing; and they make as many rows as there are matches out of few.

`A ; B` with a key is what joins find best: one join, of a key and a bucket. It is measured with
200,000 rows as well, where almost all is what a job costs to begin, and by `plan="joins"` too, with
its check that no two events are equal in the order, which the join by hand does not make, and
without it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from baselines import by_hand
from celc_runtime.plan.joins import joins_text
from common import Figure, Settings, Task, quotient, rate
from processes import tree_seconds
from spark_jobs import answer, run_made, run_unmeasured, session, write

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Join(NamedTuple):
    """A size of the comparison with a self-join: `A ; B ; C`, or `A ; B`, over ten types, with a
    hundred keys or without. A wide window without keys is measured on fewer rows: it has 5,000
    matches for each C.
    """

    window: int
    keyed: bool
    rows: int
    goal: float
    labels: str = "abc"

    @property
    def formula(self) -> str:
        """The pattern as it is written."""
        return " ; ".join(f"{label.upper()} AS {label}" for label in self.labels)

    @property
    def of_query(self) -> str:
        """A condition on the rows that can matter."""
        return f"type IN ({', '.join(repr(label) for label in self.labels.upper())})"

    @property
    def name(self) -> str:
        """The size as figures call it."""
        keyed = ", keyed" if self.keyed else ""
        return f"{';'.join(self.labels.upper())} W={self.window}{keyed}"


IDS = 100
FEW_ROWS = 200_000

WARM_CALLS = 20
"""Turns of a job of few rows that are not counted: Java compiles what it does often."""

MOST_COUNTED = 2_000_000  # rows: their join counts a thousand million matches

NUMBERED = "match, positions=True"

_CHECK = "WHERE (SELECT passed FROM order_check)"

UNMEASURED = "match, batches not measured"
"""With the setting that `explain_plan` names: Spark does not add up a batch's size row by row."""


def joins(rows: int) -> list[Join]:
    """The sizes of the comparison, for a number of rows."""
    return [
        Join(50, False, rows, 1.5),
        Join(1_000, False, rows // 20, 1.2),
        Join(50, True, rows, 1.0),
        Join(1_000, True, rows, 1.0),
        Join(50, True, rows, 1.1, "ab"),
        Join(50, True, FEW_ROWS, 0.95, "ab"),
    ]


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part."""
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as folder, session() as spark:
        for number, join in enumerate(joins(settings.events)):
            written = write(Path(folder) / str(number), _events(join.rows))
            yield from _figures_of_join(spark.read.parquet(str(written)), join, settings)
        wide = Join(1_000, False, min(settings.events, MOST_COUNTED), 10.0)
        written = write(Path(folder) / "counted", _events(wide.rows))
        yield from _figures_of_count(spark.read.parquet(str(written)), wide, settings)


def _events(rows: int) -> pa.Table:
    table = by_hand.stream(rows)
    ids = np.random.default_rng(13).integers(0, IDS, rows)
    return table.append_column("id", pa.array(ids)).append_column("row", pa.array(np.arange(rows)))


def _figures_of_count(frame: DataFrame, join: Join, settings: Settings) -> Iterator[Figure]:
    query = _total_of_join(join)
    ways: dict[str, Callable[[], DataFrame]] = {
        "matches counted by SELECT TOTAL": lambda: query.match(frame).select("matches"),
        "matches counted by the self-join": lambda: by_join(frame, join).groupBy().count(),
    }
    counts = {way: make().collect()[0][0] for way, make in ways.items()}
    if len(set(counts.values())) > 1:
        raise RuntimeError(f"the self-join counts other matches: {counts}")
    tasks = [Task(way, partial(run_made, make)) for way, make in ways.items()]
    timings = settings.repeated(tasks, repetitions=settings.fewer, clock=tree_seconds)
    (total, _), (other, count) = counts.items()
    context: dict[str, Any] = {"rows": join.rows, "matches": count, "window": join.window}
    for way in ways:
        yield rate(f"{join.name}, {way}", "rows/s", join.rows, timings[way], **context)
    yield quotient(
        f"{join.name}, speed of matches counted by SELECT TOTAL beside the self-join",
        timings[other].seconds,
        timings[total].seconds,
        join.goal,
        higher_is_better=True,
        **context,
    )


def _figures_of_join(frame: DataFrame, join: Join, settings: Settings) -> Iterator[Figure]:
    own = "ts" if join.keyed else "row"
    query = _query_of_join(join, own)
    numbered = _query_of_join(join, "ts").with_options(positions=True)
    ways: dict[str, Callable[[], DataFrame]] = {
        "match": lambda: _fields(query.match(frame), join.labels, own),
        NUMBERED: lambda: _fields(
            numbered.match(frame), join.labels, "ts" if join.keyed else "pos"
        ),
        "self-join": lambda: by_join(frame, join),
        "self-join of numbered rows": lambda: by_join(_with_numbers(frame, join), join),
    }
    answers = {way: answer(make()) for way, make in ways.items()}
    if len(set(answers.values())) > 1:
        raise RuntimeError(f"the self-join finds other matches (rows, checksum): {answers}")
    alone: dict[str, Callable[[], DataFrame]] = {
        "no query, the rows that can matter": lambda: to_nothing(frame.where(join.of_query), join),
        "no query, all rows": lambda: to_nothing(frame, join),
        "no query, the rows of the answer": lambda: out_of_few(frame, answers["match"][0]),
    }
    if len(join.labels) == 2:
        alone["match, plan='joins'"] = lambda: query.match(frame, plan="joins")
        alone["the same, ties unchecked"] = lambda: _unchecked(query, frame.where(join.of_query))
    every = {**ways, **alone}
    tasks = [Task(way, partial(run_made, make)) for way, make in every.items()]
    tasks.append(Task(UNMEASURED, partial(run_unmeasured, frame.sparkSession, ways["match"])))
    for _ in range(WARM_CALLS if join.rows == FEW_ROWS else 0):
        for task in tasks:
            task.run()
    timings = settings.repeated(tasks, repetitions=settings.fewer, clock=tree_seconds)
    context: dict[str, Any] = {
        "rows": join.rows,
        "matches": answers["match"][0],
        "window": join.window,
        "keys": IDS if join.keyed else 0,
    }
    name = join.name if join.rows != FEW_ROWS else f"{join.name}, {join.rows:,} rows"
    for way in (*ways, UNMEASURED):
        yield rate(f"{name}, {way}", "rows/s", join.rows, timings[way], **context)
    for way, other in (
        ("match", "self-join"),
        (UNMEASURED, "self-join"),
        (NUMBERED, "self-join of numbered rows"),
        (NUMBERED, "self-join"),
        *((way, "self-join") for way in alone),
    ):
        figure = quotient(
            f"{name}, speed of {way} beside the {other}",
            timings[other].seconds,
            timings[way].seconds,
            None if way in alone else join.goal,
            higher_is_better=True,
            **context,
        )
        yield replace(figure, compared=way not in alone)


def _unchecked(query: Any, rows: DataFrame) -> DataFrame:
    """The statement of `plan="joins"` without its check of the order."""
    plan = query.with_options(positions=False).program.plan
    text = joins_text(plan, query.program.joins, "{rows}")
    if text.count(_CHECK) != 1:
        raise RuntimeError(f"the statement has no line {_CHECK!r}, or several")
    return rows.sparkSession.sql(text.replace(_CHECK, ""), rows=rows)


def to_nothing(rows: DataFrame, join: Join) -> DataFrame:
    """The columns of the query in the tasks that `match` has, for a function that returns nothing.

    With keys there is a shuffle; without a key one task reads all rows. Nothing is sorted.
    """

    # In here, so that Spark ships it by its content: workers cannot import this file.
    def read(batches: Any) -> Any:
        for _ in batches:
            pass
        return iter(())

    names = ["type", *(["id"] if join.keyed else []), "ts", "row"]
    columns = rows.select(*names)
    together = columns.repartition("id") if join.keyed else columns.coalesce(1)
    return together.mapInArrow(read, "nothing INT")


def out_of_few(frame: DataFrame, matches: int) -> DataFrame:
    """A DataFrame with this number of rows, each of three numbers: a thousand or fewer are made of
    each row of a range."""
    each = min(1_000, max(1, matches))
    few = frame.sparkSession.range(-(-matches // each))
    many = few.selectExpr("id", f"explode(sequence(1, {each})) AS place")
    return many.selectExpr("id AS a", "id + place AS b", "id - place AS c")


def _fields(matches: DataFrame, labels: str, field: str) -> DataFrame:
    """A field of each label's only event."""
    from pyspark.sql import functions

    return matches.select(*(functions.col(f"`{label}`")[0][field].alias(label) for label in labels))


def _query_of_join(join: Join, shown: str) -> Any:
    """The pattern with an attribute of each event."""
    selected = ", ".join(f"{label}[{shown}]" for label in join.labels)
    return _query(join, selected, "id: LONG, ts: LONG, row: LONG")


def _total_of_join(join: Join) -> Any:
    """The number of all matches of the pattern."""
    return _query(join, "TOTAL COUNT(*) AS matches", "ts: LONG, row: LONG", " PER PARTITION")


def _query(join: Join, selected: str, attributes: str, last: str = "") -> Any:
    declared = ", ".join(f"EVENT {name} {{ {attributes} }}" for name in by_hand.TYPES)
    clauses = "PARTITION BY id " if join.keyed else ""
    text = (
        f"CREATE STREAM S {{ {declared} }} SELECT {selected} FROM S "
        f"WHERE {join.formula} {clauses}WITHIN {join.window} [ts]{last}"
    )
    compiled = celc.compile(text, order_by="ts", tiebreak="row")
    return next(iter(compiled.queries.values()))


def _with_numbers(frame: DataFrame, join: Join) -> DataFrame:
    """The rows with their positions in place of a given number."""
    from pyspark.sql import Window, functions

    window = Window.partitionBy(*(["id"] if join.keyed else [])).orderBy("ts", "row")
    return frame.withColumn("row", functions.row_number().over(window).cast("bigint") - 1)


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

    *earlier, latest = list(join.labels)
    found = of_type(latest.upper(), latest).withColumnRenamed("bucket", "home")
    follows = latest
    for label in reversed(earlier):
        pairs = with_neighbour(found).join(of_type(label.upper(), label), on)
        found = pairs.where(
            (col(label) < col(follows)) & (col(f"{latest}_ts") - col(f"{label}_ts") <= window)
        ).drop("bucket")
        follows = label
    if join.keyed:
        return found.select(*(col(f"{label}_ts").alias(label) for label in join.labels))
    return found.select(*join.labels)
