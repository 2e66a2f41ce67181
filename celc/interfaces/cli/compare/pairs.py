"""The queries of two files that `celc diff` compares, and its exit codes."""

from __future__ import annotations

import argparse

from celc.diagnostics.source import Source
from celc.interfaces.cli.declaring.schemas import schema_of
from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.queries import options_of

SAME, DIFFERENT, NOT_PROVED = 0, 1, 3
"""Exit codes, beside 2 for whatever is wrong."""


def pairs_of_queries(
    old: Source, new: Source, arguments: argparse.Namespace
) -> tuple[list[tuple[str, str]], list[str]]:
    """The queries to compare, those of one name, or the only ones; and what only one file has.

    Raises CelError with the errors of a text.
    """
    from celc.driver.pipeline import compile_files

    options, schema = options_of(arguments), schema_of(arguments)
    sources = (old, new)
    found = [compile_files([source], options, schema=schema).names for source in sources]
    if arguments.query is not None:
        for source, names in zip(sources, found, strict=True):
            if arguments.query not in names:
                raise CommandProblem(
                    f"there is no query '{arguments.query}' in {source.name}; its queries: "
                    f"{', '.join(names)}"
                )
        return [(arguments.query, arguments.query)], []
    if [len(names) for names in found] == [1, 1]:
        return [(found[0][0], found[1][0])], []
    both = [(name, name) for name in found[0] if name in found[1]]
    missing = [f"{name} is only in {old.name}" for name in found[0] if name not in found[1]]
    missing += [f"{name} is only in {new.name}" for name in found[1] if name not in found[0]]
    return both, missing
