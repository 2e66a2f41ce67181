"""Query functions of Spark Declarative Pipelines: DataFrames whose columns nobody may ask for.

A pipeline calls its query functions to learn the graph of its tables, before any of them is there.
So Spark refuses every question in them (ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION): the schema of
a DataFrame, its EXPLAIN, even the meaning of a schema in DDL. There the columns are those that the
query declares (`declared`). PySpark keeps the schema of a DataFrame once it has been told; celc
tells it of steps whose columns it makes itself, and later steps read it there.

A server of Connect makes plans of steps one by one, and some of them it analyses at once, when no
table of the pipeline is there: withColumn, to, withWatermark and transformWithState are among them,
select and mapInArrow are not. So `match` keeps to the latter. A stream cannot, so it reads what is
there before the pipeline begins.

Rejected: to plan the query on an empty DataFrame in a session of its own and put the real one in
its place, which takes the insides of Spark's plans; and to hand all columns to Python, which moves
every row that cannot matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import quoted
from celc_runtime.spark.input.ddl import schema_of_ddl
from celc_runtime.values.types import ddl_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

CONTEXT = "PipelineAnalysisContext"
"""The message of Spark's by which a client says in which query function of a pipeline it is."""

NOT_ASKED = "Spark answers no question in a query function of a pipeline"

_NONE: Mapping[str, str] = MappingProxyType({})

_STREAM = re.compile(r"\bSTREAM\b", re.IGNORECASE)


def in_query_function(spark: SparkSession) -> bool:
    """Whether the caller is in a query function of a pipeline, where Spark answers no question."""
    if getattr(spark, "_jvm", None) is not None:
        return False  # pipelines are defined by clients of Connect
    local = getattr(getattr(spark, "client", None), "thread_local", None)
    for _, extension in getattr(local, "user_context_extensions", ()):
        if extension.type_url.endswith(CONTEXT):
            from pyspark.sql.connect.proto import PipelineAnalysisContext

            if PipelineAnalysisContext.FromString(extension.value).flow_name:
                return True
    return False


def is_stream(events: DataFrame) -> bool:
    """Whether a DataFrame is a stream. In a query function its plan is looked at, as PySpark has
    written it: what is read as a stream, or SQL with the word STREAM."""
    if not in_query_function(events.sparkSession):
        return bool(events.isStreaming)
    return any(map(_is_read_as_stream, _leaves(_relation(events))))


def tables_of_stream(events: DataFrame) -> list[str]:
    """In a query function, the tables by name that a stream reads; elsewhere none."""
    if not in_query_function(events.sparkSession):
        return []
    return [
        message.named_table.unparsed_identifier
        for message in _leaves(_relation(events))
        if message.DESCRIPTOR.name == "Read" and message.HasField("named_table")
    ]


def _is_read_as_stream(message: Any) -> bool:
    if message.DESCRIPTOR.name == "Read":
        return bool(message.is_streaming)
    return _STREAM.search(message.query) is not None


def _relation(events: DataFrame) -> Any:
    written: Any = events
    return written._plan.plan(written.sparkSession.client)


def _leaves(message: Any) -> Iterator[Any]:
    """What a plan reads: the messages `Read` and `SQL` in it."""
    if message.DESCRIPTOR.name in ("Read", "SQL"):
        yield message
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for one in [value] if hasattr(value, "ListFields") else value:
            yield from _leaves(one)


def refuse_in_pipelines(spark: SparkSession, what: str, instead: str) -> None:
    """Raises EventError in a query function of a pipeline, for `what` asks Spark a question;
    `instead`: what to write."""
    if in_query_function(spark):
        raise EventError(f"{what} asks Spark a question, and {NOT_ASKED}: {instead}")


def still_known(
    frame: DataFrame, before: DataFrame, names: Iterable[str], more: Mapping[str, str] = _NONE
) -> DataFrame:
    """In a query function, a DataFrame of columns `names`, with the types that they have in the one
    before or, by the types of attributes, in `more`; elsewhere the DataFrame as it is."""
    if not in_query_function(frame.sparkSession):
        return frame
    from pyspark.sql.types import StructType

    made = schema_of(more)
    fields = [(made if name in more else before.schema)[name] for name in names]
    return _told(frame, StructType(fields))


def with_types(frame: DataFrame, types: Mapping[str, str]) -> DataFrame:
    """A DataFrame of exactly these columns, by the types of attributes, with PySpark's note of
    them."""
    return _told(frame, schema_of(types))


def with_parts(
    frame: DataFrame, first: Mapping[str, str], middle: Mapping[str, Any], last: Mapping[str, str]
) -> DataFrame:
    """In a query function, a DataFrame of exactly these columns, those in the middle by their types
    of Spark, with PySpark's note of them; elsewhere the DataFrame as it is."""
    if not in_query_function(frame.sparkSession):
        return frame
    from pyspark.sql.types import StructField, StructType

    ties = [StructField(name, type) for name, type in middle.items()]
    fields = [*schema_of(first).fields, *ties, *schema_of(last).fields]
    return _told(frame, StructType(fields))


def as_ddl(frame: DataFrame, ddl: str) -> DataFrame:
    """In a query function, a DataFrame of these columns, so that PySpark knows them; elsewhere the
    DataFrame as it is."""
    known = in_query_function(frame.sparkSession)
    return _told(frame, schema_of_ddl(ddl)) if known else frame


def _told(frame: DataFrame, schema: StructType) -> DataFrame:
    """The DataFrame, which has exactly this schema, with PySpark's note of it."""
    noted: Any = frame
    noted._cached_schema = schema
    return frame


def schema_of(types: Mapping[str, str]) -> StructType:
    """Columns by their names and the types of attributes as a schema of Spark."""
    return schema_of_ddl(
        ", ".join(f"{quoted(name)} {ddl_of(type)}" for name, type in types.items())
    )
