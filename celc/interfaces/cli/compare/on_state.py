"""`celc diff --state CHECKPOINT q.cel`: whether a query goes on with the state of a stream.

The checkpoint says what the query needed that ran last, in which order it read, and which options
it had, so only the text of the new query is asked for. Spark reads the state, in a session of its
own on this machine.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from celc_runtime import CompiledQuery, StateError
from celc_runtime.arrow.tables.slices import shown_bound
from celc_runtime.chain.streams.checkpoint import compared, recorded_units
from celc_runtime.chain.streams.header import is_of_module, read
from celc_runtime.stream.finish import all_headers, is_finished
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.going_on import (
    Known,
    NotGoneOn,
    decided,
    known_of_checkpoint,
    last_query,
    way_out,
)
from celc_runtime.stream.processor import STATE
from celc_runtime.stream.stored.needs import Needs
from celc_runtime.stream.stored.state import buckets_in
from celc_runtime.stream.tasks import formats_of

from celc.diagnostics.source import Source, visible
from celc.driver.matcher import Matcher
from celc.driver.pipeline import compile_files
from celc.interfaces.cli.compare.pairs import DIFFERENT, SAME
from celc.interfaces.cli.declaring.schemas import schema_of
from celc.interfaces.cli.output import say
from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.queries import options_of
from celc.interfaces.cli.testing.on_spark import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = re.compile(r"\bQUERY (\S+) :", re.IGNORECASE)
_LONG = 2**62  # microseconds; a key_ttl behind which no window leaves events


def diff_on_state(arguments: argparse.Namespace, source: Source) -> int:
    """Compare the queries of a file with a checkpoint; returns the exit code, 0 or 1."""
    with _session() as spark:
        if is_finished(spark, arguments.state):
            raise CommandProblem(
                f"{arguments.state}: finish has ended the stream of this checkpoint, so that no "
                "query goes on with it"
            )
        headers = all_headers(spark, arguments.state)
        if not any(headers.values()):
            raise CommandProblem(
                f"{arguments.state}: this is not the checkpoint of a stream of celc that has "
                "completed a micro-batch with events: name its checkpointLocation"
            )
        if any(is_of_module(one) for of in headers.values() for one in of.values()):
            return _module(arguments, source, headers, spark)
        known = known_of_checkpoint(spark, arguments.state, STATE)
    assert known is not None
    return _query(arguments, source, known)


def _query(arguments: argparse.Namespace, source: Source, known: Known) -> int:
    old = last_query(known)
    query = _asked(arguments, _queries(arguments, source, old), old)
    options = _options(query, known, old)
    program = query.program
    try:
        found = decided(program, formats_of(program, options), known, arguments.state)
    except NotGoneOn as problem:
        why = "; ".join(problem.why)
        told = {"why": problem.why, "after": problem.after}
        _tell(arguments, query.name, "begins anew", f"{why}\n  {problem.instead}", told)
        return DIFFERENT
    if not found.accepts or (known.notes and not found.new):
        words = "it is the query that ran last"
    else:
        words = "all events that it needs have been kept"
        if found.since is not None:
            words += f"; its rows are those known after {shown_bound(found.since, 'TIMESTAMP')}"
    _tell(arguments, query.name, "goes on", words, {"why": [], "after": None})
    return SAME


def _queries(
    arguments: argparse.Namespace, source: Source, old: Needs | None
) -> Mapping[str, CompiledQuery]:
    """The queries of the file, in the order in which the stream reads."""
    options = options_of(arguments)
    if old is not None:
        options = replace(
            options,
            order_by=options.order_by or tuple(old.order),
            tiebreak=options.tiebreak or tuple(old.tiebreak),
            ties=options.ties or (old.ties or None),
        )
    compilation = compile_files([source], options, schema=schema_of(arguments))
    found: Mapping[str, CompiledQuery] = Matcher(compilation.module_parts("celc diff")).queries
    return found


def _asked(
    arguments: argparse.Namespace, queries: Mapping[str, CompiledQuery], old: Needs | None
) -> CompiledQuery:
    name = arguments.query
    if name is None and len(queries) > 1 and old is not None:
        found = _NAME.search(old.text)
        name = None if found is None else found[1].strip("`")
    if name is None and len(queries) == 1:
        (name,) = queries
    if name not in queries:
        raise CommandProblem(
            f"say with --query which query goes on; the file has {', '.join(queries)}"
        )
    query = queries[name]
    return query if old is None else query.with_options(positions=old.positions)


def _options(query: CompiledQuery, known: Known, old: Needs | None) -> StreamOptions:
    """The options of the stream, as far as what a query needs depends on them."""
    types, ttl = {}, None
    if old is not None:
        own = {one.name for one in query.plan.source.attributes}
        ties = [(name, type) for name, type, _ in old.fields if name in old.tiebreak]
        types = {name: type for name, type in ties if name not in own}
        if "last" in old.values:
            ttl = 1 if "since" in old.values else _LONG
    buckets = (buckets_in(header) for _, header in known.headers)
    return StreamOptions(types, key_ttl=ttl, buckets=next(filter(None, buckets), 1))


def _module(
    arguments: argparse.Namespace,
    source: Source,
    headers: Mapping[str, Mapping[int, bytes]],
    spark: SparkSession,
) -> int:
    """Compare the queries that one stream runs together. Each goes on as it was."""
    queries = _queries(arguments, source, None)
    states = [
        read("the stream", one)
        for of in headers.values()
        for one in of.values()
        if is_of_module(one)
    ]
    programs = {name: query.program for name, query in queries.items()}
    found = compared(recorded_units(states), programs)
    words = {
        "goes on": "its text is the same",
        "new": "it begins with the events that arrive from then on",
        "gone": "its state is dropped",
    }
    if "changed" in found.values():
        words["changed"] = (
            "its text has changed, or a declaration before it: give it another name, so that it "
            f"begins anew. Or: {way_out([*programs.values()], spark, arguments.state)}"
        )
    for name, result in found.items():
        told: dict[str, Any] = {"why": [words[result]] if result != "goes on" else []}
        _tell(
            arguments, name, "begins anew" if result == "changed" else result, words[result], told
        )
    return SAME if {*found.values()} == {"goes on"} else DIFFERENT


def _tell(
    arguments: argparse.Namespace, name: str, result: str, words: str, told: dict[str, Any]
) -> None:
    if arguments.format == "json":
        one = {"query": name, "result": result, **told}
        say(json.dumps(one, ensure_ascii=False) + "\n")
    else:
        say(f"{visible(name)}: {result}: {words}\n")


@contextmanager
def _session() -> Iterator[SparkSession]:
    with local_session("--state", 1) as session:
        try:
            yield session
        except StateError as problem:
            raise CommandProblem(str(problem)) from None
