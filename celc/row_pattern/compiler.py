"""The passes of a compilation, in order: text → syntax → query → program → module text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from celc.diagnostics.errors import Diagnostic, Diagnostics
from celc.diagnostics.source import Source
from celc.row_pattern import core
from celc.row_pattern.module import module_text
from celc.row_pattern.parser import parse
from celc.row_pattern.program import Program, program
from celc.row_pattern.resolver import resolve


@dataclass(frozen=True, slots=True)
class RowCompilation:
    """A compiled text: its query, its program, and its warnings in order of place."""

    source: Source
    query: core.Query
    program: Program
    warnings: tuple[Diagnostic, ...]

    def module_text(self, command: str) -> str:
        """The generated module; `command` is named in its header."""
        return module_text(self.program, self.source.text, command)


def compile_rows(
    source: Source, name: str, schema: Mapping[str, str] | None = None
) -> RowCompilation:
    """All passes for a text of MATCH_RECOGNIZE.

    schema: types by column, for a text without CREATE TABLE. Raises `CelError` with its errors.
    """
    query = resolve(parse(source), source, name, schema)
    found = Diagnostics(source)
    made = program(query, found)
    found.raise_errors()
    return RowCompilation(source, query, made, found.in_order())
