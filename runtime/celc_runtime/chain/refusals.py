"""What a query that reads other queries cannot do, in words."""

from __future__ import annotations

from collections.abc import Mapping

from celc_runtime.plan.errors import EventError
from celc_runtime.program import Program

TABLE_BETWEEN = (
    "write the matches of the queries that are read to a table, as a stream of its own each, and "
    "let a query over that table read it"
)
ONE_FUNCTION_EACH = (
    "register the queries that are read, keep their rows in a view, and let a query over that view "
    "read them; or use match"
)


def check_no_chain(program: Program, called: str, instead: str) -> None:
    """Raises EventError where the query reads other queries; called: the method that was called."""
    if program.plan.reads:
        raise EventError(
            f"query {program.name!r} reads the rows of {', '.join(program.plan.reads)}, and "
            f"{called} cannot run a chain of queries: {instead}"
        )


def check_without_tables(program: Program, tables: Mapping[str, object]) -> None:
    """Raises TypeError for the table of a parameter set, which no query of a chain has."""
    if tables:
        raise TypeError(f"query {program.name!r} has no parameter set {', '.join(tables)}")
