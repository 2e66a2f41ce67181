"""The passes of a compilation, in order: text → syntax → query → program → module text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from celc_runtime.plan.frozen import frozen

from celc.core.limits import DEFAULT_MAX_WORK
from celc.diagnostics.errors import Diagnostic, Diagnostics
from celc.diagnostics.source import Source
from celc.options import is_work
from celc.row_pattern import core
from celc.row_pattern.module import module_parts
from celc.row_pattern.parser import parse
from celc.row_pattern.program import Program, program
from celc.row_pattern.resolver import resolve
from celc.row_pattern.schemas import columns_of


@frozen
class RowCompilation:
    """A compiled text: its query, its program, and its warnings in order of place."""

    source: Source
    query: core.Query
    program: Program
    warnings: tuple[Diagnostic, ...]
    max_work: int

    @property
    def files(self) -> tuple[RowCompilation, ...]:
        """The compiled files: one alone is a module."""
        return (self,)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the query."""
        return (self.query.name,)

    def module_text(self, command: str) -> str:
        """The generated module; `command` is named in its header."""
        from celc.codegen.text.layout import formatted  # with black, which only readers need

        return formatted(self.module_parts(command))

    def module_parts(self, command: str) -> tuple[str, ...]:
        """The generated module in parts that are not laid out yet, as a `Matcher` loads it."""
        return module_parts([self.program], self.source.text, command, self.max_work)


def compile_rows(
    source: Source, name: str, schema: Any = None, max_work: int = DEFAULT_MAX_WORK
) -> RowCompilation:
    """All passes for a text of MATCH_RECOGNIZE.

    schema: the columns of the table, for a text without CREATE TABLE, in a form that
    `columns_of` takes. max_work: the most steps of a search for one start. Raises `CelError`
    with its errors, ValueError for a schema or a number that cannot be.
    """
    if not is_work(max_work):
        raise ValueError(f"max_work must be a whole number from 1 on, not {max_work!r}")
    columns = None if schema is None else columns_of(schema)
    found = Diagnostics(source)
    query = resolve(parse(source, found), found, name, columns)
    made = program(query, found)
    found.raise_errors()
    return RowCompilation(source, query, made, found.in_order(), max_work)


def module_of_several(
    compiled: Sequence[RowCompilation], text: str, command: str, max_work: int
) -> tuple[str, ...]:
    """The module of queries that are parts of one text, in parts; the header names `command`."""
    return module_parts([one.program for one in compiled], text, command, max_work)
