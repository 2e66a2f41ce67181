"""Facts about a DataFrame before it runs, on a classic session and on Connect alike.

Spark's own EXPLAIN is the only way that both have. Its text is not made for programs, so it decides
only between plans that are both right: where the text is unknown, the simpler plan is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from celc_runtime.spark.input.pipelines import NOT_ASKED, in_query_function, refuse_in_pipelines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_CHEAP = re.compile(
    r"(Project|Filter|ColumnarToRow|Union|Coalesce|Range|FileScan|BatchScan|Scan "
    r"(parquet|orc|csv|json|text|avro)|InMemoryTableScan)\b"
)
"""Operators that cost little more than reading: they can be run for each time range."""

_READ = re.compile(
    r"(Project|Filter|ColumnarToRow|Union|Coalesce|FileScan|BatchScan|InMemory(Relation|TableScan)|"
    r"Scan (parquet|orc|csv|json|text|avro))\b"
)
"""Operators that one task runs as well as many, of few rows. A cache may have to be filled first,
so the plan below it counts."""

_CHANGING = re.compile(
    r"\b(rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|now|curdate|"
    r"spark_partition_id|current_\w+|localtimestamp|unix_timestamp|UDF)\(",
    re.IGNORECASE,
)
"""Functions by which two readings of a plan may differ."""


_BYTES_OF_A_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
"""A setting since Spark 4.1. Batches have a limit of rows as well."""

_NO_LIMIT = 2**31 - 1
_BYTES = re.compile(r"(\d+)\s*([kmgtp]?)b?", re.IGNORECASE)

_SIZE = re.compile(r"Statistics\(sizeInBytes=([\d.]+(?:E[+-]?\d+)?) (B|[KMGTPE]iB)")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

_ROW_COUNT = re.compile(r"Statistics\(sizeInBytes=[^,)]*, rowCount=([\d.]+(?:E[+-]?\d+)?)")
"""Spark writes three digits of the number."""

_SHUFFLE = re.compile(r"^\(\d+\) Exchange\b.*\nInput \[(\d+)\]: ", re.MULTILINE)
"""An exchange in Spark's EXPLAIN FORMATTED, and the number of its columns."""

_MULTIPLYING = re.compile(r"\b(Generate|Expand|FlatMap\w*|\w*MapIn\w+|MapPartitions\w*)\b")
"""Operators that may return many rows for one. Spark's sizes do not take this into account."""

_MOST_BYTES = 1 << 60
"""A larger size stands for an unknown one."""

_BYTES_OF_A_ROW = 16
"""The size that Spark gives to a row of one number of 64 bits."""

UNKNOWN = "unknown before the run"

_ROWS_FOR_ONE = 6
"""Columns in files are compressed. Measured: where Spark's size says one row of a number there were
three to four of a million events, with eight columns and with three."""


_asked: ContextVar[list[str] | None] = ContextVar("asked", default=None)


@contextmanager
def jobs_told() -> Iterator[list[str]]:
    """What is asked of Spark by a job, in words, while the block runs."""
    told: list[str] = []
    token = _asked.set(told)
    try:
        yield told
    finally:
        _asked.reset(token)


def asked(frame: DataFrame, what: str) -> list[Row]:
    """The rows of a DataFrame by which a plan is chosen; `what` they tell, in words."""
    refuse_in_pipelines(
        frame.sparkSession,
        f"a job for {what}",
        "with_options(at_end='closed') or with_options(clock=…) needs none",
    )
    tell_job(what)
    found: list[Row] = frame.collect()
    return found


def tell_job(what: str) -> None:
    """Note that a job is run before the first row, and `what` it tells."""
    told = _asked.get()
    if told is not None:
        told.append(what)


def explained(frame: DataFrame, mode: str = "") -> str:
    """The text of Spark's EXPLAIN.

    A classic session is asked as `DataFrame.explain` asks it, which prints the answer. As a
    statement, which Connect needs, it took 20 to 30 ms and not 3 to 8: Spark makes a view for it,
    and runs a job.
    """
    jvm = getattr(frame.sparkSession, "_jvm", None)
    if jvm is not None:
        from py4j.protocol import Py4JError

        try:
            text = jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), mode or "simple")
            return str(text)
        except Py4JError:
            pass  # some clusters forbid the class; what is wrong with the plan the statement says
    found = frame.sparkSession.sql(f"EXPLAIN {mode} SELECT * FROM {{events}}", events=frame)
    return str(found.collect()[0][0])


def why_not_read_twice(frame: DataFrame) -> str:
    """Why a DataFrame should not be read more than once; empty where it comes from files or a
    cache, by projections and filters alone."""
    if in_query_function(frame.sparkSession):
        return NOT_ASKED
    sections = explained(frame, "EXTENDED").split("== Physical Plan ==")
    if len(sections) != 2:
        return "Spark explains its plan in an unknown way"
    logical, physical = sections
    changing = _CHANGING.search(re.sub(r"#\d+L?", "", logical))
    if changing:
        return f"its plan has '{changing.group(1)}', so that two readings may differ"
    for operator in _operators(physical):
        if operator.startswith("LocalTableScan"):
            return "it was made of rows of the driver"
        if not _CHEAP.match(operator):
            return f"its plan has '{operator.split(' ')[0]}', which would run for each range"
        if operator.startswith("InMemoryTableScan"):
            return ""  # the plan below it runs once
    return ""


def _operators(physical: str) -> Iterator[str]:
    """The lines of a physical plan."""
    for line in physical.splitlines():
        operator = re.sub(r"^[\s:+|-]*(\*\(\d+\) )?", "", line)
        # AdaptiveSparkPlan surrounds plans with an exchange, and the exchange is to be named.
        if operator and not operator.startswith("AdaptiveSparkPlan"):
            yield operator


class Size(NamedTuple):
    """How large a DataFrame is, as far as Spark knows without reading it.

    most_rows: a number of rows that it hardly exceeds, which for files is known by their sizes;
    None: Spark knows nothing. is_read: whether all that Spark does for the rows is to read files.
    """

    most_rows: int | None
    is_read: bool


def size_of(frame: DataFrame) -> Size:
    """The size of a DataFrame, by one question to Spark."""
    if in_query_function(frame.sparkSession):
        return Size(None, False)
    # Spark takes the size of files for that of its own rows, which are wider.
    text = explained(frame.selectExpr("0L AS number"), "COST")
    found = _SIZE.search(text)
    if found is None or _MULTIPLYING.search(text):
        return Size(None, False)
    size = float(found.group(1)) * 1024 ** _UNITS.index(found.group(2))
    if size > _MOST_BYTES:
        return Size(None, False)
    _, told, physical = text.partition("== Physical Plan ==")
    is_read = bool(told) and all(map(_READ.match, _operators(physical)))
    return Size(round(size / _BYTES_OF_A_ROW * _ROWS_FOR_ONE), is_read)


def told_rows(frame: DataFrame) -> str:
    """How many rows a DataFrame has, in words, as far as Spark knows without reading it."""
    if in_query_function(frame.sparkSession):
        return UNKNOWN
    known = _ROW_COUNT.search(explained(frame, "COST"))
    if known is not None:
        return f"about {round(float(known.group(1))):,} (Spark's statistics)"
    most = size_of(frame).most_rows
    return UNKNOWN if most is None else f"{UNKNOWN}; by the size of the data perhaps {most:,}"


def shuffled_columns(frame: DataFrame) -> list[int]:
    """How many columns each shuffle of a DataFrame moves."""
    return [int(columns) for columns in _SHUFFLE.findall(explained(frame, "FORMATTED"))]


def is_spread_by(frame: DataFrame, keys: list[str]) -> bool:
    """Whether Spark knows that equal keys are in one of its partitions: it then groups by them
    without an exchange."""
    grouped = frame.groupBy(*keys).count()
    return _exchanges(grouped) == _exchanges(frame)


def _exchanges(frame: DataFrame) -> int:
    return len(re.findall(r"\bExchange\b", explained(frame)))


def parallelism(frame: DataFrame) -> int:
    """How many tasks the session runs at a time, as Spark counts them where it makes a range.

    Connect tells it only by a job, which takes 0.1 s.
    """
    from pyspark.sql import functions

    context = getattr(frame.sparkSession, "_sc", None)
    if context is not None:
        return int(context.defaultParallelism)
    slices = frame.sparkSession.range(1 << 16).select(functions.spark_partition_id().alias("slice"))
    row = asked(slices.agg(functions.max("slice")), "the number of tasks")[0]
    return int(row[0]) + 1


def arrow_line(spark: SparkSession) -> str:
    """A line about a setting by which rows reach Python slowly; empty where it is not so."""
    from pyspark.errors import PySparkException

    try:
        given = str(spark.conf.get(_BYTES_OF_A_BATCH))
    except PySparkException:
        return ""  # this Spark has no such setting
    found = _BYTES.fullmatch(given)
    # Spark has no limit for −1 either.
    if found is None:
        return ""
    if int(found.group(1)) << 10 * " kmgtp".index(found.group(2).lower() or " ") >= _NO_LIMIT:
        return ""
    return (
        f"arrow: Spark measures a batch after each row, because {_BYTES_OF_A_BATCH} is {given}; "
        f"with {_NO_LIMIT} rows reach Python up to twice as fast"
    )


def has_class(spark: SparkSession, name: str) -> bool:
    """Whether Spark can load a Java class; True where the session does not allow the question.

    SQL asks it, because a Connect session has no access to Java.
    """
    from pyspark.errors import PySparkException

    try:
        frame = spark.sql("SELECT try_reflect('java.lang.Class', 'forName', :name)", {"name": name})
        return frame.collect()[0][0] is not None
    except PySparkException:
        # Some clusters forbid reflection. If the class is missing there, the stream itself fails.
        return True
