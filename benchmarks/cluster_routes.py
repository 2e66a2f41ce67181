"""Queries, events and routes for `cluster.py`, with their answers on one machine.

Half of all rows have one hot key; the others are spread over the other keys. Each row has a time of
its own, and times go on from file to file. A pair has equal tags. The hot key has so many tags that
its matches grow with its rows, and not with their square.

An answer is reduced to the number of its rows and a checksum, which Spark and NumPy compute alike.
So no answer has to be in memory as a whole.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import dataset, parquet

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOT = 0
"""The key that half of the rows have."""

MOST_FILE_ROWS = 2_500_000
MOST_ROWS_AT_ONCE = 10_000_000  # of keys other than HOT, by `match_table` on one machine

START = 1_767_225_600 * 1_000_000  # the time of the first row, in microseconds since 1970
STEP = 1_000  # microseconds between two rows
SECOND = 1_000  # milliseconds: the window of a query without a key

TYPES = {"id": "LONG", "tag": "LONG", "v": "DOUBLE", "n": "LONG", "ts": "TIMESTAMP"}


class Answer(NamedTuple):
    """An answer, reduced to two numbers."""

    rows: int
    checksum: int  # the sum of a hash of each row, so that the order of rows does not matter


# --- events ---------------------------------------------------------------------------------------


class Data(NamedTuple):
    """Events in files below a folder."""

    folder: Path
    rows: int
    keys: int  # besides HOT

    @property
    def files(self) -> int:
        """The number of files, without the last one of a stream."""
        return max(8, -(-self.rows // MOST_FILE_ROWS))

    @property
    def file_rows(self) -> int:
        """The rows of each file; the last one may have fewer."""
        return -(-self.rows // self.files)

    @property
    def window(self) -> int:
        """The window of a query with a key, in milliseconds: a twentieth of all time."""
        return max(1, self.rows * STEP // 20_000)

    @property
    def events(self) -> Path:
        """The folder of the Parquet files."""
        return self.folder / "events"

    @property
    def stream(self) -> Path:
        """The folder with the same files for a stream, and one more, whose only row moves the
        watermark past all others."""
        return self.folder / "stream"

    @property
    def streamed(self) -> Path:
        """The folder with the answer and the checkpoint of the stream that ran last."""
        return self.folder / "streamed"


def write(data: Data) -> None:
    """Write the events."""
    data.events.mkdir(parents=True)
    data.stream.mkdir()
    for number in range(data.files):
        begin = number * data.file_rows
        name = f"{number:04}.parquet"
        table = _events(data, begin, min(data.file_rows, data.rows - begin))
        parquet.write_table(table, data.events / name, row_group_size=125_000)
        os.link(data.events / name, data.stream / name)
    last = {"type": ["X"], "id": [-1], "tag": [-1], "v": [0.0], "n": [-1]}
    end = pa.array([START + 10 * data.rows * STEP], _TIME)
    row = pa.table({**last, "ts": end}).cast(pa.schema(_FIELDS))
    parquet.write_table(row, data.stream / f"{data.files:04}.parquet")
    for number, file in enumerate(sorted(data.stream.iterdir())):
        os.utime(file, (1_800_000_000 + number,) * 2)  # a stream reads them in this order


_TIME = pa.timestamp("us", tz="UTC")
_FIELDS = [
    ("type", pa.string()),
    ("id", pa.int64()),
    ("tag", pa.int64()),
    ("v", pa.float64()),
    ("n", pa.int64()),
    ("ts", _TIME),
]


def _events(data: Data, begin: int, rows: int) -> pa.Table:
    """The rows of a file, in no order."""
    rng = np.random.default_rng([17, begin])
    hot = rng.random(rows) < 0.5
    numbers = begin + rng.permutation(rows)
    tags = np.where(hot, rng.integers(0, max(2, data.rows // 40), rows), rng.integers(0, 2, rows))
    columns = {
        "type": pa.array(["A", "B", "X"]).take(pa.array(rng.integers(0, 3, rows))),
        "id": pa.array(np.where(hot, HOT, rng.integers(1, data.keys + 1, rows))),
        "tag": pa.array(tags),
        "v": pa.array(rng.random(rows)),
        "n": pa.array(numbers),
        "ts": pa.array(START + numbers * STEP, _TIME),
    }
    return pa.table(columns, schema=pa.schema(_FIELDS))


# --- queries --------------------------------------------------------------------------------------


class Query(NamedTuple):
    """A query, and the columns of its answer that are compared."""

    compiled: Any
    columns: tuple[str, ...]  # expressions of Spark SQL, each a whole number or a time
    by_time: bool = False
    """Whether a row depends on the events of one window alone; else it depends on all earlier
    events of its key."""
    where: tuple[str, int] | None = None
    """(column, number): only rows with a greater number in the column count."""
    given: Mapping[str, Any] = MappingProxyType({})  # tables of parameters, by set


_DECLARED = "CREATE STREAM S {{ {} }}\n".format(
    ", ".join(
        f"EVENT {name} {{ {', '.join(f'{a}: {t}' for a, t in TYPES.items())} }}" for name in "ABX"
    )
)
_PAIR = "WHERE (A AS a ; B AS b) FILTER a.tag = b.tag"
_RULES = "PARAMETERS rule { number: LONG, low: DOUBLE }\n"
_CLAUSE = """MATCH_RECOGNIZE (
  PARTITION BY id ORDER BY ts
  MEASURES FIRST(n) AS first_n, LAST(n) AS last_n, COUNT(*) AS length
  PATTERN (a b+ c) DEFINE a AS type = 'A', b AS type = 'B' AND v > 0.2, c AS v < PREV(v)
) AS m"""
_TABLE = "CREATE TABLE events (type STRING, {});\n".format(
    ", ".join(f"{name} {type}" for name, type in TYPES.items())
)
LEAST = 3
STATEMENT = (
    f"SELECT m.id, m.first_n, m.last_n, m.length FROM events {_CLAUSE} WHERE m.length > {LEAST}"
)


class Queries:
    """The queries over some data, compiled when they are asked for."""

    def __init__(self, data: Data) -> None:
        self._within = f"PARTITION BY id WITHIN {data.window} MILLISECONDS [ts]"

    def _of(self, text: str, **options: Any) -> Any:
        compiled = celc.compile(_DECLARED + text, name="cluster.cel", order_by="ts", **options)
        (query,) = compiled.queries.values()
        return query

    @cached_property
    def pairs(self) -> Query:
        """Two events with one tag, of one key, in a window of time."""
        compiled = self._of(f"SELECT a[n], b[n] FROM S {_PAIR} {self._within}")
        return Query(compiled, ("id", "end_time", "a[0].n", "b[0].n"), by_time=True)

    @cached_property
    def positions(self) -> Query:
        """The same, with the positions of both events among those of their key."""
        columns = ("id", "start_pos", "end_pos", "a[0].n", "b[0].n")
        return Query(self.pairs.compiled.with_options(positions=True), columns)

    @cached_property
    def ranges(self) -> Query:
        """Two events of any keys, in a second."""
        text = "SELECT a[n], b[n] FROM S WHERE (A AS a ; B AS b) FILTER a.v > 0.99 AND b.v > 0.9"
        columns = ("end_time", "a[0].n", "b[0].n")
        return Query(self._of(f"{text} WITHIN {SECOND} MILLISECONDS [ts]"), columns, by_time=True)

    @cached_property
    def totals(self) -> Query:
        """How many pairs end at each event, and a sum over them."""
        text = (
            "SELECT TOTAL COUNT(*) AS pairs, SUM(a.n) AS numbers FROM S "
            f"WHERE (A AS a ; B AS b) FILTER a.v > 0.9 {self._within}"
        )
        return Query(self._of(text), ("id", "end_time", "pairs", "numbers"), by_time=True)

    @cached_property
    def for_each(self) -> Query:
        """The pairs of five rows of a table, each with a limit of its own."""
        text = (
            f"{_RULES}SELECT rule[number], a[n], b[n] FROM S FOR EACH rule {_PAIR} "
            f"AND b.v > rule.low {self._within}"
        )
        rules = pa.table({"number": pa.array(range(5), pa.int64()), "low": [0.5, 0.6, 0.7, 0.8, 1]})
        columns = ("id", "rule.number", "a[0].n", "b[0].n")
        return Query(self._of(text), columns, by_time=True, given={"rule": rules})

    @cached_property
    def rows(self) -> Query:
        """MATCH_RECOGNIZE: runs of rows of one key."""
        text = f"{_TABLE}SELECT * FROM events {_CLAUSE}"
        compiled = celc.compile(text, dialect="match_recognize", name="cluster.sql")
        return Query(compiled, ("id", "first_n", "last_n", "length"))

    @cached_property
    def statement(self) -> Query:
        """A statement around the same clause."""
        return self.rows._replace(where=("length", LEAST))


# --- routes ---------------------------------------------------------------------------------------

Route = Callable[["SparkSession", Data, Query], "DataFrame"]


def _events_of(spark: SparkSession, data: Data) -> DataFrame:
    return spark.read.parquet(str(data.events))


def _match(spark: SparkSession, data: Data, query: Query) -> DataFrame:
    found: DataFrame = query.compiled.match(_events_of(spark, data), **query.given)
    return found


def _joins(spark: SparkSession, data: Data, query: Query) -> DataFrame:
    found: DataFrame = query.compiled.match(_events_of(spark, data), plan="joins")
    return found


def _ranges(spark: SparkSession, data: Data, query: Query) -> DataFrame:
    found: DataFrame = query.compiled.match(_events_of(spark, data), ranges=3)
    return found


def _arrow(spark: SparkSession, data: Data, query: Query) -> DataFrame:
    spread = _events_of(spark, data).repartition("id").sortWithinPartitions("id", "ts")
    return spread.mapInArrow(query.compiled.match_arrow, query.compiled.output_ddl)


def _pandas(spark: SparkSession, data: Data, query: Query) -> DataFrame:
    keys = _events_of(spark, data).groupBy("id")
    return keys.applyInPandas(query.compiled.match_pandas, query.compiled.output_ddl)


def _sql(spark: SparkSession, data: Data, query: Query) -> DataFrame:
    query.compiled.register(spark, "pairs_of")
    _events_of(spark, data).createOrReplaceTempView("events")
    return spark.sql("SELECT * FROM pairs_of(TABLE(events) PARTITION BY (id) ORDER BY (ts))")


def _sorting_sql(spark: SparkSession, data: Data, query: Query) -> DataFrame:
    query.compiled.register(spark, "sorted_pairs_of", sorts=True)
    _events_of(spark, data).createOrReplaceTempView("events")
    rows = "SELECT * FROM events DISTRIBUTE BY id"
    return spark.sql(f"SELECT * FROM sorted_pairs_of(TABLE({rows}))")


def _statement(spark: SparkSession, data: Data, query: Query) -> DataFrame:
    _events_of(spark, data).createOrReplaceTempView("events")
    found: DataFrame = celc.sql(spark, STATEMENT)
    return found


def _stream(spark: SparkSession, data: Data, query: Query) -> DataFrame:
    """Run a stream over the files in four micro-batches, and read its answer."""
    schema = spark.read.parquet(str(data.events)).schema
    files = spark.readStream.schema(schema).option("maxFilesPerTrigger", -(-data.files // 4))
    found = query.compiled.match_stream(files.parquet(str(data.stream)), watermark="1 second")
    shutil.rmtree(data.streamed, ignore_errors=True)
    writer = found.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(data.streamed / "checkpoint"))
    writer.start(str(data.streamed / "answer")).awaitTermination()
    return spark.read.parquet(str(data.streamed / "answer"))


ROUTES: dict[str, tuple[str, Route]] = {
    "match": ("pairs", _match),
    "match with positions": ("positions", _match),
    "joins": ("pairs", _joins),
    "SQL": ("pairs", _sql),
    "SQL that sorts": ("pairs", _sorting_sql),
    "mapInArrow": ("positions", _arrow),
    "applyInPandas": ("positions", _pandas),
    "ranges without a key": ("ranges", _ranges),
    "totals": ("totals", _match),
    "FOR EACH": ("for_each", _match),
    "MATCH_RECOGNIZE": ("rows", _match),
    "statement": ("statement", _statement),
    "stream": ("pairs", _stream),
}
"""By the name of a route on Spark: (the name of its query in `Queries`, how to run it)."""


# --- answers --------------------------------------------------------------------------------------

_MODULUS, _FACTOR = 2**31 - 1, 48271


def answer_on_spark(frame: DataFrame, columns: tuple[str, ...]) -> Answer:
    """Run a job and reduce its answer."""
    term = "1"
    for column in columns:
        of_time = column.endswith("_time")
        number = f"unix_micros({column})" if of_time else f"CAST({column} AS BIGINT)"
        number = f"pmod({number}, {_MODULUS})"
        term = f"pmod({term} * pmod({number} * {_FACTOR} + 11, {_MODULUS}) + {number}, {_MODULUS})"
    found = frame.selectExpr(f"{term} AS term").selectExpr("count(term)", "sum(term)").first()
    assert found is not None
    return Answer(int(found[0]), int(found[1] or 0))


def answer_of(table: pa.Table, columns: tuple[str, ...]) -> Answer:
    """A table, reduced as `answer_on_spark` does."""
    term = np.ones(len(table), np.int64)
    for column in columns:
        number = np.mod(_numbers(table, column), _MODULUS)
        factor = np.mod(number * _FACTOR + 11, _MODULUS)
        term = np.mod(term * factor + number, _MODULUS)
    return Answer(len(table), int(term.sum()))


def _numbers(table: pa.Table, column: str) -> Any:
    parts = re.fullmatch(r"(\w+)(\[0\])?(?:\.(\w+))?", column)
    assert parts is not None
    found = table[parts[1]].combine_chunks()
    if parts[2]:
        found = pc.list_element(found, 0)
    if parts[3]:
        found = pc.struct_field(found, parts[3])
    return np.asarray(found.cast(pa.int64()))


def answer_of_one_machine(data: Data, query: Query) -> Answer:
    """The answer by `match_table`, of all events, part by part where they are many."""
    rows = checksum = 0
    for part, begin in _by_time(data) if query.by_time else _by_key(data):
        found = query.compiled.match_table(part, **query.given)
        if begin is not None:
            found = found.filter(pc.greater_equal(found["end_time"], pa.scalar(begin, _TIME)))
        if query.where is not None:
            found = found.filter(pc.greater(found[query.where[0]], query.where[1]))
        answer = answer_of(found, query.columns)
        rows, checksum = rows + answer.rows, checksum + answer.checksum
    return Answer(rows, checksum)


def _by_time(data: Data) -> Iterator[tuple[pa.Table, int | None]]:
    """The events in parts: (the events of a file and of one window before it, the first time of the
    file). Few events are one part, and the time is None."""
    if data.rows <= MOST_ROWS_AT_ONCE:
        yield parquet.read_table(data.events), None
        return
    files = dataset.dataset(data.events)
    for number in range(data.files):
        begin = START + number * data.file_rows * STEP
        first, end = begin - max(data.window, SECOND) * 1000, begin + data.file_rows * STEP
        ts = dataset.field("ts")
        inside = (ts >= pa.scalar(first, _TIME)) & (ts < pa.scalar(end, _TIME))
        yield files.to_table(filter=inside), begin


def _by_key(data: Data) -> Iterator[tuple[pa.Table, None]]:
    """The events of the hot key, then the events of the other keys in parts."""
    if data.rows <= MOST_ROWS_AT_ONCE:
        yield parquet.read_table(data.events), None
        return
    files, key = dataset.dataset(data.events), dataset.field("id")
    yield files.to_table(filter=key == HOT), None
    step = -(-data.keys * 2 * MOST_ROWS_AT_ONCE // data.rows)
    for begin in range(1, data.keys + 1, step):
        yield files.to_table(filter=(key >= begin) & (key < begin + step)), None
