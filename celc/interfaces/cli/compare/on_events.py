"""`celc diff --on data.parquet`: which rows of the answers came and went on given events."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
from celc_runtime.plan.errors import EventError

from celc.compare.sides import row_text
from celc.diagnostics.source import Source, visible
from celc.driver.matcher import Matcher, matches_of
from celc.driver.pipeline import compile_files
from celc.interfaces.cli.compare.pairs import DIFFERENT, SAME, pairs_of_queries
from celc.interfaces.cli.compare.streams import counted, rows_lines
from celc.interfaces.cli.declaring.schemas import SchemaOfFiles
from celc.interfaces.cli.match_formats import json_ready
from celc.interfaces.cli.output import say
from celc.interfaces.cli.queries import options_of
from celc.interfaces.cli.reading.left_out import Damage
from celc.interfaces.cli.reading.origins import opened_origins
from celc.interfaces.cli.reading.parameter_tables import (
    check_sets,
    named_files,
    opened_tables,
    tables_of,
)
from celc.interfaces.cli.reading.stream import EventStream
from celc.interfaces.cli.reading.wanted import Wanted
from celc.interfaces.cli.run import check_form, form_of, placed

SHOWN = 20  # rows that came or went, in text


def diff_on(arguments: argparse.Namespace, old: Source, new: Source, opened: ExitStack) -> int:
    """Compare the answers of two files on events; returns the exit code, 0 or 1."""
    names, missing = pairs_of_queries(old, new, arguments)
    for text in missing:
        if arguments.format != "json":
            say(f"{text}\n")
    code = DIFFERENT if missing else SAME
    form = form_of(arguments)
    origins = opened.enter_context(opened_origins(arguments.on, arguments.input_format))
    check_form(arguments, origins)
    schema = SchemaOfFiles(lambda: origins, form, arguments.type_column)
    for one, other in names:
        answers = [
            _rows(arguments, source, name, origins, form, schema)
            for source, name in ((old, one), (new, other))
        ]
        went, came = _without(answers[0], answers[1]), _without(answers[1], answers[0])
        if went or came:
            code = DIFFERENT
        if arguments.format == "json":
            _write_json(one, went, came)
        else:
            _write_text(one, went, came, len(answers[0]), len(answers[1]))
    return code


def _rows(
    arguments: argparse.Namespace,
    source: Source,
    name: str,
    origins: Any,
    form: Any,
    schema: Any,
) -> list[dict[str, Any]]:
    """The rows of a query on the events."""
    compilation = compile_files([source], options_of(arguments), schema=schema)
    of_file = [stages.query for stages in compilation.queries]
    asked = next(one for one in of_file if one.name == name)
    query = Matcher(compilation.module_parts("celc diff")).queries[name]
    named = named_files(arguments.parameters)
    check_sets(named, [asked])
    with opened_tables(named) as files:
        tables = tables_of(query, files, form)
        events = EventStream(origins, Wanted.of(asked, query, of_file), form, Damage())
        try:
            batches = [*matches_of(query, lambda: events.batches(None), tables)]
        except EventError as problem:
            raise placed(events, problem) from None
        events.refuse_misspelt()
    return [row for batch in batches for row in pa.Table.from_batches([batch]).to_pylist()]


def _without(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that are not among the others, as often as they are not."""
    left = Counter(map(row_text, others))
    found = []
    for row in rows:
        text = row_text(row)
        if left[text]:
            left[text] -= 1
        else:
            found.append(row)
    return found


def _write_json(name: str, went: list[dict[str, Any]], came: list[dict[str, Any]]) -> None:
    for change, rows in (("went", went), ("came", came)):
        for row in rows:
            told = {key: json_ready(value) for key, value in row.items()}
            line = {"query": name, "change": change, "row": told}
            say(json.dumps(line, ensure_ascii=False, default=str) + "\n")


def _write_text(
    name: str,
    went: list[dict[str, Any]],
    came: list[dict[str, Any]],
    before: int,
    after: int,
) -> None:
    say(
        f"{visible(name)}: {counted(before)} before, {counted(after)} after; "
        f"{counted(len(went))} went, {counted(len(came))} came\n"
    )
    for sign, rows in (("-", went), ("+", came)):
        if rows:
            names = list(rows[0])
            for line in rows_lines(names, [list(row.values()) for row in rows[:SHOWN]]):
                say(f"{sign} {line}\n")
            if len(rows) > SHOWN:
                say(f"{sign} … and {counted(len(rows) - SHOWN, 'more row')}\n")
