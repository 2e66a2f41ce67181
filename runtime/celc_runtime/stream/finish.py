"""The end of a stream that ends: `finish`.

A stream that has read all its input (`availableNow`) stops with its last watermark. Events after
the watermark wait in its state, as they should if the stream goes on. If no more events will come,
`finish` runs them. It reads the state as a table in a batch job, and marks the checkpoint as
finished.

Rejected: a last row of the source far in the future, which moves the watermark past all events. But
each source would need such a row, the query would have to recognize it, and nothing else could use
the watermark.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from celc_runtime.plan.errors import StateError
from celc_runtime.plan.frozen import frozen
from celc_runtime.spark.input.pipelines import refuse_in_pipelines
from celc_runtime.stream.processor import HEADER, STATE
from celc_runtime.stream.stored.state import buckets_in
from celc_runtime.stream.stored.texts import bytes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_MARK = "celc_finished"
_PLAN = "_celc_stream"
_VARIABLE = re.compile(f'"({STATE}(?:_[0-9]+)?)"')  # in what Spark notes of an operator


@frozen
class LastRows:
    """The last rows of an operator whose rows the stream shows in another form: the function that
    gives those of its buckets, their schema, and the other form."""

    function: Any
    schema: Any
    form: Callable[[DataFrame], DataFrame]


def remember_plan(matches: DataFrame, name: str, last: Mapping[str, Any]) -> DataFrame:
    """Attach what `finish` needs to a DataFrame: a name for its note, and for each state variable
    the function that gives the last matches of its buckets, or `LastRows`."""
    setattr(matches, _PLAN, (name, last, None))
    return matches


def kept(matches: DataFrame, keeps: Callable[[DataFrame], DataFrame] | None) -> DataFrame:
    """The rows of a stream that `keeps` passes on (None: all), which `finish` asks as well."""
    if keeps is None:
        return matches
    name, last, before = getattr(matches, _PLAN)
    found = keeps(matches)
    asked = keeps if before is None else lambda rows: keeps(before(rows))
    setattr(found, _PLAN, (name, last, asked))
    return found


def last_steps(matches: DataFrame) -> Mapping[str, Any]:
    """The functions that `remember_plan` attached."""
    found: Mapping[str, Any] = getattr(matches, _PLAN)[1]
    return found


def finish(
    spark: SparkSession,
    checkpoint: str,
    matches: DataFrame,
    write: Callable[[DataFrame, int], object],
) -> bool:
    """Run the events that a stream has left in its state, as if no more events came.

    checkpoint: of the stream, which has stopped. matches: the DataFrame that `match_stream`
    returned; another process calls `match_stream` again. write: a function as for `foreachBatch`.
    It takes a batch DataFrame with the columns of the stream, and the number that this micro-batch
    would have. If it fails, the next call passes the same rows and number again. When it returns,
    the checkpoint is marked as finished. Returns whether `write` was called: False if the
    checkpoint was finished before.

    A stream must not be started from the checkpoint afterwards: it would find the same matches
    again. `match_stream(…, checkpoint=…)` refuses it. Raises StateError if the state is of another
    query or damaged, or if the stream has not completed its last micro-batch.
    """
    made = getattr(matches, _PLAN, None)
    if made is None:
        raise ValueError(
            "finish takes the DataFrame that match_stream returned; what is made of it further "
            "belongs into write"
        )
    name, last, keeps = made
    if is_finished(spark, checkpoint):
        return False
    number = _last_batch(spark, checkpoint)
    found = []
    for variable, step in last.items():
        states = _states(spark, checkpoint, variable, len(last))
        if isinstance(step, LastRows):
            found.append(step.form(states.mapInArrow(step.function, step.schema)))
        else:
            found.append(states.mapInArrow(step, matches.schema))
    rest = reduce(lambda one, other: one.unionAll(other), found)
    write(rest if keeps is None else keeps(rest), number + 1)
    note = json.dumps({"query": name, "after_batch": number})
    noted = spark.createDataFrame([(note,)], "value STRING").coalesce(1)
    noted.write.mode("overwrite").text(posixpath.join(checkpoint, _MARK))
    return True


def is_finished(spark: SparkSession, checkpoint: str) -> bool:
    """Whether `finish` has run on a checkpoint."""
    return bool(files_in(spark, posixpath.join(checkpoint, _MARK)))


def check_checkpoint(
    spark: SparkSession,
    checkpoint: str,
    named: str,
    checks: Mapping[str, Callable[[int, bytes], None]],
    operators: int = 1,
) -> None:
    """Raises StateError for a checkpoint that is finished, or has the state of another query.

    The checkpoint need not exist yet. named: the query or queries, for messages. checks: for each
    state variable a function of the label of a bucket and its header. operators: their number.
    """
    refuse_finished(spark, checkpoint, named)
    if not batches_in(spark, posixpath.join(checkpoint, "commits")):
        return
    for variable, check in checks.items():
        found = _first_header(spark, checkpoint, variable, operators)
        if found is not None:
            check(*found)


def refuse_finished(spark: SparkSession, checkpoint: str, named: str) -> None:
    """Raises StateError for a checkpoint on which `finish` has run."""
    if is_finished(spark, checkpoint):
        raise StateError(
            f"{named}: the stream of this checkpoint has been ended by finish, and "
            "going on from it would find its last matches once more: begin a new checkpoint"
        )


def recorded_buckets(spark: SparkSession, checkpoint: str) -> int | None:
    """The number of buckets that a checkpoint was begun with; None: it does not exist yet.

    Raises StateError for a checkpoint of an earlier version of celc.
    """
    found = first_header(spark, checkpoint, STATE, 1)
    return None if found is None else buckets_in(found)


def first_header(
    spark: SparkSession, checkpoint: str, variable: str, operators: int
) -> bytes | None:
    """The header of some bucket; None: there is none yet. The last two arguments: the name of the
    state variable, and how many operators the stream has."""
    if not batches_in(spark, posixpath.join(checkpoint, "commits")):
        return None
    found = _first_header(spark, checkpoint, variable, operators)
    return None if found is None else found[1]


def headers_of(
    spark: SparkSession, checkpoint: str, variable: str, operators: int
) -> list[tuple[int, bytes]]:
    """The labels of all buckets of an operator, with their headers; the arguments are those of
    `first_header`."""
    if not batches_in(spark, posixpath.join(checkpoint, "commits")):
        return []
    return _headers(_pieces(spark, checkpoint, variable, operators))


def all_headers(spark: SparkSession, checkpoint: str) -> dict[str, dict[int, bytes]]:
    """The headers of all buckets by state variable and label; empty: no micro-batch has been
    completed."""
    if not batches_in(spark, posixpath.join(checkpoint, "commits")):
        return {}
    operators = _operators(spark, checkpoint)
    found = [name for _, properties in operators for name in _VARIABLE.findall(properties)]
    return {
        variable: dict(_headers(_pieces(spark, checkpoint, variable, len(operators))))
        for variable in sorted(found, key=lambda name: (len(name), name))
    }


def _headers(pieces: DataFrame) -> list[tuple[int, bytes]]:
    rows = pieces.where(f"place = {HEADER}").select("bucket", "data").collect()
    return [(row[0], bytes_of(row[1])) for row in rows]


def _states(spark: SparkSession, checkpoint: str, variable: str, operators: int) -> DataFrame:
    """The states of an operator: a row for each bucket, in the form for `finished`."""
    from pyspark.sql import functions

    pieces = functions.collect_list(functions.struct("place", "data"))
    found = _pieces(spark, checkpoint, variable, operators).groupBy("bucket")
    return found.agg(pieces.alias("state"))


def _first_header(
    spark: SparkSession, checkpoint: str, variable: str, operators: int
) -> tuple[int, bytes] | None:
    """The label of a bucket, and its header; None: there is no bucket."""
    pieces = _pieces(spark, checkpoint, variable, operators)
    found = pieces.where(f"place = {HEADER}").select("bucket", "data").limit(1).collect()
    return (found[0][0], bytes_of(found[0][1])) if found else None


def _pieces(spark: SparkSession, checkpoint: str, variable: str, operators: int) -> DataFrame:
    return (
        spark.read.format("statestore")
        .option("path", checkpoint)
        .option("operatorId", _operator(spark, checkpoint, variable, operators))
        .option("stateVarName", variable)
        .load()
        .selectExpr("key.bucket AS bucket", "user_map_key.place", "user_map_value.data")
    )


def _operator(spark: SparkSession, checkpoint: str, variable: str, wanted: int) -> int:
    """The number of the operator that keeps states in a variable; wanted: how many the stream
    has."""
    operators = _operators(spark, checkpoint)
    if len(operators) != wanted:
        raise StateError(
            f"the checkpoint {checkpoint} has {len(operators)} operators with states of their own, "
            f"and finish serves a stream with {wanted if wanted > 1 else 'one'}: run each "
            "match_stream as a stream by itself"
        )
    # An earlier version had the headers of buckets in a separate variable.
    found = [
        number
        for number, properties in operators
        if f'"{variable}"' in properties and '"header"' not in properties
    ]
    if not found:
        raise StateError(
            f"the checkpoint {checkpoint} is of an earlier version of celc, whose states this one "
            "does not read: end the stream with that version (availableNow, then finish), and "
            "begin a new checkpoint"
        )
    return int(found[0])


def _operators(spark: SparkSession, checkpoint: str) -> list[Any]:
    """The number of each operator with states of its own, and what Spark notes of it."""
    operators = (
        spark.read.format("state-metadata")
        .load(checkpoint)
        .where("lower(operatorName) like 'transformwithstate%'")
        .select("operatorId", "operatorProperties")
        .distinct()
    )
    return [*operators.collect()]


def _last_batch(spark: SparkSession, checkpoint: str) -> int:
    begun = batches_in(spark, posixpath.join(checkpoint, "offsets"))
    done = batches_in(spark, posixpath.join(checkpoint, "commits"))
    if not done:
        raise StateError(
            f"{checkpoint} is not the checkpoint of a stream that has completed a micro-batch: "
            "name its checkpointLocation, and run it first"
        )
    if begun and max(begun) > max(done):
        raise StateError(
            f"the stream of {checkpoint} was stopped within micro-batch {max(begun)}: start it "
            "once more (trigger(availableNow=True)), so that it completes it, before finish"
        )
    return max(done)


def first_line(spark: SparkSession, file: str, start: str) -> str:
    """The first line of a file of Spark's logs that starts with a text."""
    lines = spark.read.text(file).collect()
    return next(str(row[0]) for row in lines if str(row[0]).startswith(start))


def batches_in(spark: SparkSession, folder: str) -> list[int]:
    """The numbers of the micro-batches that have files in a log of Spark."""
    names = [path.rpartition("/")[2] for path in files_in(spark, folder)]
    return [int(name) for name in names if name.isdigit()]


def files_in(spark: SparkSession, folder: str) -> list[str]:
    """The files in a folder of any file system; empty if there is no such folder."""
    from pyspark.errors import AnalysisException

    refuse_in_pipelines(
        spark, "a checkpoint", "leave it out, because the pipeline keeps those of its tables"
    )
    try:
        listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(folder)
        return [row[0] for row in listed.select("path").collect()]
    except AnalysisException as error:
        if re.search("PATH_NOT_FOUND", str(error)):
            return []
        raise
