"""`celc compile --to spark-sql` and `--to duckdb-sql`: queries as statements of SQL."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from celc.diagnostics.errors import CelError, raise_all
from celc.diagnostics.messages.costs import not_joins
from celc.diagnostics.source import Source, visible
from celc.interfaces.cli.output import check_output, say, written
from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.queries import compiled
from celc.version import VERSION

if TYPE_CHECKING:
    from celc_runtime.plan.joins import Joins
    from celc_runtime.query import CompiledQuery

    from celc.core.formula import Query
    from celc.driver.pipeline import Compilation
    from celc.relational.expressions import Dialect

DIALECTS: dict[str, Dialect] = {"spark-sql": "spark", "duckdb-sql": "duckdb"}
"""The values of `--to` that are not modules, with the dialects of SQL."""


def write_statements(arguments: argparse.Namespace, paths: Sequence[Path]) -> None:
    """Print the statements of the queries, or write them to the output file."""
    if arguments.standalone:
        raise CommandProblem("--standalone is for modules: leave out --standalone or --to")
    check_output(arguments.output, force=arguments.force, inputs=paths)
    compilation = compiled(arguments, paths)
    text = _statements(compilation, DIALECTS[arguments.to], arguments)
    if arguments.output is None:
        say(text)
        return
    with written(arguments.output) as out:
        out.write(text.encode())


def _statements(compilation: Compilation, dialect: Dialect, arguments: argparse.Namespace) -> str:
    """The statements of all queries. Raises CelError with all queries that cannot be statements."""
    from celc_runtime.plan.joins import Joins

    from celc.driver.matcher import Matcher
    from celc.relational.joins import joins_of

    found: list[tuple[Query, Joins, str]] = []
    problems: list[CelError] = []
    for file in compilation.files:
        wrong = []
        for stages in file.queries:
            joined = joins_of(stages.query, dialect)
            if isinstance(joined, Joins):
                found.append((stages.query, joined, _as_comment(stages.query, file.source)))
            else:
                wrong.append(not_joins(joined.what, joined.span))
        if wrong:
            problems.append(CelError(file.source, tuple(wrong)))
    raise_all(problems)
    # The module's plan says from what the events are read.
    queries = Matcher(compilation.module_parts("celc compile")).queries
    return "\n".join(
        comment + _statement(queries[query.name], query, joined, dialect, arguments)
        for query, joined, comment in found
    )


def _statement(
    made: CompiledQuery,
    query: Query,
    joined: Joins,
    dialect: Dialect,
    arguments: argparse.Namespace,
) -> str:
    """The statement of one query, without its comment."""
    from celc_runtime.plan.joins import NotJoined, joins_text, table_name

    table = arguments.table
    if table is None:
        table = query.streams[0].name if len(query.streams) == 1 else "stream"
    try:
        plan = made.program.on_spark.plan
        text = joins_text(
            plan, joined, table_name(table, dialect), dialect, typed=plan.source.type_column
        )
    except NotJoined as problem:
        raise CommandProblem(str(problem)) from None
    return f"{text.rstrip()};\n"


def _as_comment(query: Query, source: Source) -> str:
    """The head of a statement: the query as it is written, but for what Spark would replace by the
    value of a variable, which can have lines of its own."""
    head = f"{visible(query.name)}: the matches of this query in CEL, by celc {VERSION}"
    _, column = source.line_and_column(query.span.start)
    lines = textwrap.dedent(" " * (column - 1) + source.slice(query.span)).split("\n")
    shown = [head, *(f"  {visible(one.rstrip())}" for one in lines if one.strip())]
    return "".join(f"-- {one}\n" for one in shown).replace("${", "$ {")
