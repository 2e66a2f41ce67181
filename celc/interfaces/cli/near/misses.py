"""`celc run --near` and `celc compile --near`: what would match if one part were bent."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from celc_runtime.plan.near.queries import SHARE

from celc.interfaces.cli.output import tell
from celc.interfaces.cli.problems import CommandProblem

if TYPE_CHECKING:
    from celc_runtime.chain.streams.near.query import NearQuery

    from celc.driver.pipeline import Compilation
    from celc.interfaces.cli.match_formats import OtherRows
    from celc.interfaces.cli.reading.stream import EventStream


def check_near(arguments: argparse.Namespace, others: Mapping[str, bool]) -> None:
    """Raises CommandProblem for options that have no meaning together; `others` are options that
    are for matches, and whether they are given."""
    for option, given in (("--near-by", arguments.near_by), ("--near-parts", arguments.near_parts)):
        if given and not arguments.near:
            raise CommandProblem(f"{option} says how near misses are found: give --near as well")
    for option, is_given in others.items():
        if arguments.near and is_given:
            raise CommandProblem(
                f"{option} is for matches, and --near gives near misses: leave one of them out"
            )


def check_near_of_run(arguments: argparse.Namespace) -> None:
    """The same for `celc run`."""
    of_matches = {
        "--max-matches": arguments.max_matches is not None,
        "--match-id": arguments.match_id,
        "--threads": arguments.threads is not None,
        "--memory": arguments.memory is not None,
    }
    check_near(arguments, of_matches)


def near_of(
    arguments: argparse.Namespace, compilation: Compilation, name: str, schema: Any
) -> NearQuery:
    """The bent forms of a query; their warnings are told. Raises CommandProblem for wrong values of
    --near-by, and CelError."""
    from celc.driver.near import near_query

    found, warned = near_query(
        [file.source for file in compilation.files],
        compilation.options,
        name=name,
        near=_near(arguments.near_by),
        all_parts=arguments.near_parts == "all",
        schema=schema,
    )
    for text in warned:
        tell(text)
    return found


def near_text(
    arguments: argparse.Namespace, compilation: Compilation, command: str, schema: Any
) -> str:
    """The text of a module that finds near misses. Raises as `near_of` does, and CommandProblem
    where there are several queries."""
    from celc.codegen.text.layout import formatted
    from celc.driver.near import near_module

    if len(compilation.queries) > 1:
        names = ", ".join(compilation.names)
        raise CommandProblem(
            f"--near is for one query, and there are {names}: give a file with one"
        )
    parts, warned = near_module(
        [file.source for file in compilation.files],
        compilation.options,
        command,
        near=_near(arguments.near_by),
        all_parts=arguments.near_parts == "all",
        schema=schema,
    )
    for text in warned:
        tell(text)
    return formatted(parts)


def _near(given: list[str]) -> float | Mapping[str, float]:
    amounts: dict[str, float] = {}
    share = SHARE
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not 0 < value < float("inf"):
            raise CommandProblem(
                f"--near-by {text}: give a positive number, such as 0.2, or an amount for an "
                "attribute, such as value=5"
            )
        if equals:
            amounts[name] = value
        else:
            share = value
    if amounts and share != SHARE:
        raise CommandProblem("--near-by: give one share, or amounts by attribute, not both")
    return amounts or share


def write_near_misses(
    near: NearQuery,
    events: EventStream,
    write: Callable[[Any], None],
    tables: Mapping[str, Any],
) -> None:
    """The near misses of one query."""
    for batch in near_misses_of(near, events, tables).to_batches():
        write(batch)
    write(None)


def near_misses_of(near: NearQuery, events: EventStream, tables: Mapping[str, Any]) -> Any:
    """The near misses of one query, as a table. All events are gathered."""
    from celc.driver.large_inputs import gathered

    table = gathered(partial(events.batches, None), near.reading.file_schema)
    return near.near_misses(table, **tables)


def rows_of(near: NearQuery) -> OtherRows:
    """What a writer needs to know of near misses."""
    from celc.interfaces.cli.match_formats import OtherRows

    # Not the name of the answer, which can be another query without what chooses among matches.
    return OtherRows(near.plan.query, near.output_schema)
