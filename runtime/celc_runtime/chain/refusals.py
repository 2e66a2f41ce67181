"""What a call of a query that reads other queries cannot give."""

from __future__ import annotations

from collections.abc import Mapping

from celc_runtime.program import Program


def check_without_tables(program: Program, tables: Mapping[str, object]) -> None:
    """Raises TypeError for the table of a parameter set, which no query of a chain has."""
    if tables:
        raise TypeError(f"query {program.name!r} has no parameter set {', '.join(tables)}")
