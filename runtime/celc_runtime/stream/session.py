"""The settings of a session that a stream needs: set if nobody has, refused if they contradict.

States are in Spark's RocksDB store, because `transformWithState` runs with no other. Spark reads
the settings when the stream starts, so `match_stream` can set them. A setting that the user has
made is left alone: a session may serve other streams.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from celc_runtime.plan.errors import PlanWarning
from celc_runtime.spark.input.pipelines import in_query_function, tables_of_stream
from celc_runtime.spark.input.probe import has_class
from celc_runtime.values.warned import warn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
"""Whether a micro-batch writes its changes, and not the whole store."""

_LIBRARY = "org.rocksdb.RocksDB"

TASKS = "spark.sql.shuffle.partitions"
TASKS_OF_SPARK = 200
_MOST_TASKS_OF_A_CORE = 8  # a micro-batch waits for all of them, also for empty ones

_ANY_TWO = {STORE: ("a", "b"), CHANGELOG: ("true", "false"), TASKS: ("1", "2")}


def prepare(spark: SparkSession) -> None:
    """Set what a stream needs and the session does not say, announce it, and check the rest.

    Another provider with the same class name is accepted, if Spark can load it. Raises RuntimeError
    if the stream could not run: Spark itself would fail later, with a long trace.
    """
    if in_query_function(spark):
        _look_at_pipeline(spark)
        return
    set_here = {}
    for name, value in ((STORE, ROCKS_DB), (CHANGELOG, "true")):
        if _is_unset(spark, name) and _has_set(spark, name, value):
            set_here[name] = value
    store = str(spark.conf.get(STORE))
    if not _is_rocks_db(store):
        raise RuntimeError(_another_store(repr(store)))
    for name, remedy in (
        (store, f"call spark.conf.set({STORE!r}, {ROCKS_DB!r}), or add the JAR that has it"),
        (_LIBRARY, "add the JAR of org.rocksdb:rocksdbjni that belongs to this Spark"),
    ):
        if not has_class(spark, name):
            raise RuntimeError(
                f"match_stream keeps its states in Spark's RocksDB store, and Spark cannot load "
                f"its class {name}: {remedy}"
            )
    if set_here:
        listed = " and ".join(f"{name} = {value}" for name, value in set_here.items())
        warn(
            f"match_stream has set {listed} in this session, because a stream of celc keeps its "
            "states in Spark's RocksDB store; set them yourself, and this is not said",
            PlanWarning,
        )
    _look_at_tasks(spark)


def _look_at_pipeline(spark: SparkSession) -> None:
    """Warn in a query function of a pipeline, where no setting can be made and none of a single
    flow is seen, about those that the pipeline does not make for all of its flows."""
    lacking = [
        f"{name}: {value}"
        for name, value in ((STORE, ROCKS_DB), (CHANGELOG, "true"))
        if _is_unset(spark, name) or (name == STORE and not _is_rocks_db(str(spark.conf.get(name))))
    ]
    if lacking:
        warn(
            "match_stream keeps its states in Spark's RocksDB store, and sets nothing in a "
            f"pipeline: write {' and '.join(lacking)} under `configuration:` in spark-pipeline.yml,"
            " or give it as spark_conf={…} of the table",
            PlanWarning,
        )


def tell_of_tables(named: str, events: DataFrame) -> None:
    """Warn in a query function of a pipeline about each table that a stream reads by its name.
    named: the query, as messages call it."""
    for table in tables_of_stream(events):
        warn(
            f"{named}: Spark plans a stream of match_stream before the pipeline begins, so the "
            f"table {table!r} has to be there by then: if this pipeline makes it, read what it is "
            "made of, as by spark.readStream.format(…).load(…), or leave it to another pipeline",
            PlanWarning,
        )


def _is_rocks_db(store: str) -> bool:
    return store.endswith(f".{ROCKS_DB.rpartition('.')[2]}")


def _is_unset(spark: SparkSession, name: str) -> bool:
    """Whether nobody has set it.

    Spark answers with the default in the question, if it fits the type of the setting. A single
    default might be what somebody has set.
    """
    return all(spark.conf.get(name, value) == value for value in _ANY_TWO[name])


def _has_set(spark: SparkSession, name: str, value: str) -> bool:
    """Whether the session accepted it; raises RuntimeError if it forbids the store.

    A stream also runs without the changelog. A warning says what that costs.
    """
    from pyspark.errors import PySparkException

    try:
        spark.conf.set(name, value)
    except PySparkException as problem:
        if name == STORE:
            raise RuntimeError(
                f"{_another_store('none')}. (Spark does not let match_stream set it here: "
                f"{str(problem).splitlines()[0]})"
            ) from problem
        warn(
            f"Spark does not let match_stream set {name} = {value} here, so each micro-batch "
            f"writes the whole store: {str(problem).splitlines()[0]}",
            PlanWarning,
        )
        return False
    return True


def _another_store(found: str) -> str:
    return (
        f"match_stream keeps its states in Spark's RocksDB store, and the session has {found}: "
        f"before match_stream is called, call spark.conf.set({STORE!r}, {ROCKS_DB!r})"
    )


def _look_at_tasks(spark: SparkSession) -> None:
    """Warn if Spark's own number of tasks is left, and the cores are few."""
    context = getattr(spark, "_sc", None)
    if context is None or not _is_unset(spark, TASKS):
        return  # Connect shows the number of cores only by a job
    cores = int(context.defaultParallelism)
    if cores * _MOST_TASKS_OF_A_CORE < TASKS_OF_SPARK:
        _tell_of_tasks(cores)


@cache
def _tell_of_tasks(cores: int) -> None:
    """Warn once in a process."""
    warn(
        f"{TASKS} is {TASKS_OF_SPARK}, because nobody has set it, and Spark has {cores} cores: "
        f"each task costs time in each micro-batch. Call spark.conf.set({TASKS!r}, '{cores}') "
        "before the stream is begun; its checkpoint keeps the number",
        PlanWarning,
    )


_LIMIT = "spark.broadcast.UDFCompressionThreshold"
_SPARKS_OWN = 1 << 14  # bytes, about the most that Spark adds to a function


def check_size(spark: SparkSession, processor: object) -> None:
    """Raises RuntimeError if Spark would send the processor of a stream as a broadcast, which the
    workers of `transformWithState` do not read."""
    from pyspark import cloudpickle

    context: Any = getattr(spark, "_sc", None)
    if context is None:
        return  # Connect sends every function as it is
    most = int(context._jvm.PythonUtils.getBroadcastThreshold(context._jsc))
    size = len(cloudpickle.dumps(processor)) + _SPARKS_OWN
    if size > most:
        raise RuntimeError(
            f"the queries of this stream are {size:,} bytes when they are packed with celc's "
            f"runtime, and this session sends at most {most:,} bytes to the workers that run them: "
            f"make the session with .config({_LIMIT!r}, '{2 * size}'), or make several modules of "
            "the queries, each a stream of its own"
        )
