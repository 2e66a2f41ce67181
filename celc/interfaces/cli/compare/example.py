"""`celc example q.cel`: a smallest stream with a match, and one with a near miss of each part."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from celc.compare.examples import Example, examples_of
from celc.compare.sides import Side
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import visible
from celc.editor.languages import ROW_PATTERNS, language_of
from celc.interfaces.cli.compare.streams import (
    answer_lines,
    as_json,
    counted,
    event_text,
    indented,
    parameters_lines,
)
from celc.interfaces.cli.declaring.schemas import schema_of
from celc.interfaces.cli.output import say, tell
from celc.interfaces.cli.problems import FINE, QUERY_WRONG, CommandProblem
from celc.interfaces.cli.queries import options_of, read_source


def example(arguments: argparse.Namespace) -> int:
    """Show small streams for the queries of a file; returns the exit code: 1 where no stream with a
    match was found."""
    if language_of(arguments.source) is ROW_PATTERNS:
        raise CommandProblem("celc example is for queries of CEL, and MATCH_RECOGNIZE is none")
    from celc.driver.pipeline import compile_files

    source, options = read_source(arguments.source), options_of(arguments)
    schema = schema_of(arguments)
    names = compile_files([source], options, schema=schema).names
    if arguments.query is not None and arguments.query not in names:
        raise CommandProblem(
            f"there is no query '{arguments.query}' in the file; its queries: {', '.join(names)}"
        )
    code = FINE
    for name in names:
        if arguments.query not in (None, name):
            continue
        side = Side(source, options, query=name, schema=schema)
        try:
            for one in examples_of(side, arguments.seconds):
                if one.events is None and not one.of:
                    code = QUERY_WRONG
                _write(arguments, side, one)
        except CelError as problem:
            told = "; ".join(one.message for one in problem.diagnostics)
            tell(f"celc: {visible(name)}: no near misses: {visible(told)}")
    return code


def _write(arguments: argparse.Namespace, side: Side, one: Example) -> None:
    if arguments.format == "json":
        say(json.dumps(_object(side.query.name, one), ensure_ascii=False, default=str) + "\n")
    else:
        say("".join(f"{line}\n" for line in _lines(side, one)))


def _lines(side: Side, one: Example) -> Iterator[str]:
    name = side.query.name
    what = "a near miss" if one.is_near else "a match"
    whose = f" of `{visible(' '.join(one.of.split()))}`" if one.of else ""
    place = f", line {one.line}" if one.of else ""
    if one.events is None or one.answer is None:
        yield f"{visible(name)}: no stream with {what}{whose}{place} was found"
        yield ""
        return
    smallest = "a smallest stream" if one.shortest else "a stream"
    events = counted(len(one.events), "event")
    yield f"{visible(name)}: {smallest} with {what}{whose}{place}, {events}:"
    yield ""
    yield from indented(event_text(one.events, side.lacking(one.events)).splitlines())
    yield from parameters_lines(one.parameters)
    yield ""
    # Which part it is stands above.
    told = [name for name in ("part", "line", "column") if one.is_near]
    yield from indented(answer_lines(one.answer.drop_columns(told)))
    yield ""


def _object(name: str, one: Example) -> dict[str, Any]:
    return {
        "query": name,
        "example": "near miss" if one.is_near else "match",
        "of": one.of or None,
        "line": one.line if one.of else None,
        "column": one.column if one.of else None,
        "shortest": one.shortest,
        "events": None if one.events is None else as_json(one.events),
        "parameters": {key: as_json(table) for key, table in one.parameters.items()},
        "answer": None if one.answer is None else as_json(one.answer),
    }
