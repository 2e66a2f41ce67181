"""All errors and warnings of a text, as `celc check` finds them."""

from dataclasses import replace
from pathlib import PurePath
from typing import Literal, TypeAlias

from celc.diagnostics.errors import CelError, Diagnostic, Diagnostics
from celc.diagnostics.source import Source
from celc.options import Options
from celc.parse.parser import parse
from celc.pipeline import compile_source
from celc.resolve.resolver import resolve
from celc.row_pattern.compiler import compile_rows
from celc.row_pattern.parser import parse as parse_rows
from celc.row_pattern.resolver import resolve as resolve_rows

Dialect: TypeAlias = Literal["cel", "match_recognize"]

# seconds for a compilation while somebody types; an error says where they were too few
MAX_SECONDS = 5.0


_DEFAULTS = Options()


def diagnostics_of(
    source: Source, dialect: Dialect, options: Options = _DEFAULTS
) -> tuple[Diagnostic, ...]:
    """The errors and warnings of a text, in the order of their places. `options` are those of `celc
    check`. Without a time limit there, it is MAX_SECONDS."""
    if options.max_compile_seconds is None:
        options = replace(options, max_compile_seconds=MAX_SECONDS)
    try:
        if dialect == "match_recognize":
            name = PurePath(source.name).stem
            return compile_rows(source, name, max_work=options.max_work).warnings
        return compile_source(source, options).warnings
    except CelError as problem:
        return problem.diagnostics


def errors_of_names(
    source: Source, dialect: Dialect, options: Options = _DEFAULTS
) -> tuple[Diagnostic, ...]:
    """Only the errors about names, types and clauses, which need no automaton."""
    try:
        if dialect == "match_recognize":
            found = Diagnostics(source)
            resolve_rows(parse_rows(source, found), found, PurePath(source.name).stem, None)
        else:
            resolve(parse(source), source, order_by=options.order_by, ties=options.ties)
    except CelError as problem:
        return tuple(one for one in problem.diagnostics if one.severity == "error")
    return ()
