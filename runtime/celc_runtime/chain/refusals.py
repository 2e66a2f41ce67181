"""Calls that a query which reads other queries does not have."""

from collections.abc import Mapping

from celc_runtime.program import Program


def check_without_tables(program: Program, tables: Mapping[str, object]) -> None:
    """Raises TypeError for the table of a parameter set: no query of a chain has one."""
    if tables:
        raise TypeError(f"query {program.name!r} has no parameter set {', '.join(tables)}")
