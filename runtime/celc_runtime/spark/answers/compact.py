"""Compact answers on Spark: what tasks send, and the matches that come out of it again.

What the columns mean travels as the metadata of the column of nodes, since a DataFrame has none of
its own. Spark keeps the metadata of a column in plans and in its files. `expand` reads it on the
driver and sends it, with the runtime, to the workers, where nothing of celc need be installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from celc_runtime.arrow.events.paths import received
from celc_runtime.arrow.matches.compact import KEY, schema_of
from celc_runtime.arrow.matches.expanding import form_of, matches_of_compact
from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.jit.shipping import pickled
from celc_runtime.plan.compact_form import CompactForm, compact_ddl
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.run.walk.compact import are_graphs
from celc_runtime.spark.answers.single_labels import sent_name
from celc_runtime.spark.input.columns import column_named, mapped
from celc_runtime.spark.input.pipelines import refuse_in_pipelines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_META = KEY.decode()

_TASK = """from celc_runtime.spark.answers.compact import ExpandTask

QUERIES = {"expand": ExpandTask}
"""
"""A module with the function of tasks, as `jit.shipping` sends modules of queries: a worker gives
the runtime its own name there."""


def is_spark_frame(events: Any) -> bool:
    """Whether this is a DataFrame of Spark, classic or Connect."""
    return any(
        one.__name__ == "DataFrame" and one.__module__.partition(".")[0] == "pyspark"
        for one in type(events).__mro__
    )


def check_frame(events: Any, method: str, instead: str = "match_table") -> None:
    """Raises TypeError for what is no DataFrame of Spark, with what to call instead, EventError
    in a query function of a pipeline for a method that asks Spark a question."""
    if is_spark_frame(events):
        if method not in ("match", "match_stream"):
            refuse_in_pipelines(
                events.sparkSession, method, "call match or match_stream of each query"
            )
        return
    kind = type(events)
    library = kind.__module__.partition(".")[0]
    named = kind.__qualname__ if library == "builtins" else f"{library}.{kind.__qualname__}"
    raise TypeError(
        f"{method} takes a DataFrame of Spark, and this is {named}: {instead}(…) takes tables of "
        "Arrow, pandas, polars and DuckDB, without Spark; spark.createDataFrame(…) makes a "
        "DataFrame of one"
    )


# --- compact answers ------------------------------------------------------------------------------


def compact_wire_ddl(plan: Plan) -> str:
    """The columns on their way, named by their places, in Spark's notation."""
    return _wire_ddl([type for _, type in compact_ddl(plan)])


def with_form(program: Program, found: DataFrame) -> DataFrame:
    """The compact answers under their names, with the form of the nodes."""
    names = [name for name, _ in compact_ddl(program.plan)]
    text = schema_of(program.plan, listed=not are_graphs(program)).metadata[KEY].decode()
    columns = [column_named(sent_name(place)).alias(name) for place, name in enumerate(names)]
    nodes = column_named(sent_name(len(names) - 1))
    return found.select(*columns[:-1], nodes.alias(names[-1], metadata={_META: text}))


# --- matches --------------------------------------------------------------------------------------


def expand_frame(compact: DataFrame, limit: int | None) -> DataFrame:
    """The matches of compact answers as a DataFrame; see `celc_runtime.expand`."""
    FirstMatches(limit, "limit")  # refuses a number that cannot be
    texts = [f.metadata[_META] for f in compact.schema.fields if _META in f.metadata]
    form = form_of(texts[0] if texts else None)
    known = compact.columns
    if lacking := [name for name in form.columns if known.count(name) != 1]:
        raise EventError(
            f"expand needs the columns {', '.join(map(repr, form.columns))} of match_compact, each "
            f"once, and {lacking[0]!r} is not: {', '.join(map(repr, known))}"
        )
    rows = compact.select(*map(column_named, form.columns))
    found = mapped(rows, ExpandTask(form, limit), _wire_ddl([type for _, type in form.ddl]))
    if limit is not None:
        found = found.limit(limit)
    return found.select(
        *(column_named(sent_name(n)).alias(name) for n, (name, _) in enumerate(form.ddl))
    )


class ExpandTask:
    """What a task does with rows of compact answers: at most `limit` matches of them."""

    def __init__(self, form: CompactForm, limit: int | None) -> None:
        self._form = form
        self._limit = limit

    @classmethod
    def with_options(cls, *, form: str, limit: int | None) -> ExpandTask:
        """The task out of what its pickle holds."""
        return cls(form_of(form), limit)

    def __call__(self, batches):  # type: ignore[no-untyped-def]
        # No annotation; see `ShippedFunction`.
        found = matches_of_compact(self._form, map(received, batches), self._limit)
        return map(under_sent_names, found)

    def __reduce__(self) -> Any:
        options = {"form": self._form.to_text(), "limit": self._limit}
        return pickled({"__celc_text__": _TASK}, options, "expand")


def _wire_ddl(types: Iterable[str]) -> str:
    return ", ".join(f"{sent_name(place)} {type}" for place, type in enumerate(types))


def under_sent_names(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch under the names of the way, without its metadata."""
    return pa.RecordBatch.from_arrays(batch.columns, list(map(sent_name, range(batch.num_columns))))
