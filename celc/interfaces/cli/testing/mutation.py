"""`celc test --mutate`: changes of a query that no case notices, each with a case that would."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.frozen import frozen
from celc_runtime.query import CompiledQuery

from celc.compare import Difference, Equal, Unknown, shortest_difference
from celc.compare.sides import Side
from celc.diagnostics.errors import CelError
from celc.diagnostics.messages.wording import counted
from celc.diagnostics.source import Source, visible, visible_lines
from celc.editor.languages import CEL
from celc.interfaces.cli.match_formats import json_ready
from celc.interfaces.cli.output import say, tell
from celc.interfaces.cli.testing.expected import Columns, toml_value
from celc.interfaces.cli.testing.files import Case
from celc.interfaces.cli.testing.reports import told_change
from celc.interfaces.cli.testing.running import Runner, labels_of
from celc.mutate.mutants import Mutant, mutants_of
from celc.parse.parser import parse

SECONDS = 5.0
"""How long a stream is looked for that shows one change."""

_MOST_TOLD = 20
"""Changes for which a stream is looked for."""


@frozen(eq=False)
class Unnoticed:
    """A change that no case notices: of which query, and what tells it from the query as it is."""

    mutant: Mutant
    query: str
    shown: Difference | Equal | Unknown | None = None


@frozen(eq=False)
class Tried:
    """The changes of a query file: how many make a query, and those that no case notices."""

    source: Source
    made: int
    unnoticed: tuple[Unnoticed, ...]


def tell_unnoticed(runners: Sequence[Runner]) -> None:
    """Say which changes of the query files no case notices; of several test files of one query file
    any may notice them."""
    of_files: dict[Path, list[Runner]] = {}
    for runner in runners:
        of_files.setdefault(runner.tests.query_file.resolve(), []).append(runner)
    for together in of_files.values():
        if together[0].language is CEL:
            found = tried(together)
            say(_told(together[0], found, with_streams(together, found)))
        else:
            name = visible(together[0].source.name)
            tell(f"celc: --mutate changes queries in CEL, and {name} has MATCH_RECOGNIZE")


def tried(runners: Sequence[Runner]) -> Tried:
    """Run the cases of test files of one query file with each change of it."""
    source = runners[0].source
    made, unnoticed = 0, []
    names = runners[0].compiled(runners[0].tests.cases[0]).names
    for name, query in zip(names, parse(source).queries, strict=True):
        for mutant in mutants_of(query, source):
            noticed = _noticed(mutant, runners)
            made += noticed is not None
            if noticed is False:
                unnoticed.append(Unnoticed(mutant, name))
    return Tried(source, made, tuple(unnoticed))


def _noticed(mutant: Mutant, runners: Sequence[Runner]) -> bool | None:
    """Whether some case does not pass with a change; None: the change makes no query."""
    for runner in runners:
        changed = Runner(runner.tests, mutant.of(runner.source))
        for case in runner.tests.cases:
            try:
                changed.compiled(case)
            except CelError:
                return None
            try:
                if not changed.run(case).passed:
                    return True
            except (CelError, EventError):
                return True  # the answer has other columns, or the events do not fit any more
    return False


# --- a smallest stream that shows a change --------------------------------------------------------


def with_streams(runners: Sequence[Runner], found: Tried) -> list[Unnoticed]:
    """The changes with what tells them from the query: a smallest stream, or that there is none."""
    sides: dict[str, Side] = {}
    shown = []
    for number, one in enumerate(found.unnoticed):
        case = _case_of(runners, one.query)
        if number >= _MOST_TOLD:
            shown.append(one)
            continue
        asked: dict[str, Any] = {"query": one.query, "schema": runners[0].schema_of(case)}
        if one.query not in sides:
            sides[one.query] = Side(found.source, case.options, **asked)
        changed = Side(one.mutant.of(found.source), case.options, **asked)
        columns = _columns(runners[0], one.query)
        difference = shortest_difference(
            sides[one.query], changed, deadline=SECONDS, accepts=partial(_is_shown, columns)
        )
        shown.append(Unnoticed(one.mutant, one.query, difference))
    return shown


def _columns(runner: Runner, name: str) -> Columns:
    query = runner.queries(runner.tests.cases[0])[name]
    return Columns(query.output_schema, labels_of(query))


def _is_shown(columns: Columns, found: Difference) -> bool:
    """Whether rows as they are expected tell two answers apart."""
    old, new = (Counter(map(columns.described, one.to_pylist())) for one in (found.old, found.new))
    return old != new


def _case_of(runners: Sequence[Runner], query: str) -> Case:
    """A case of a query, whose options count for it; of a query without one any case."""
    cases = [case for runner in runners for case in runner.tests.cases]
    return next((case for case in cases if case.query in (None, query)), cases[0])


def _told(runner: Runner, tried: Tried, shown: Sequence[Unnoticed]) -> str:
    name = visible(tried.source.name)
    same = [one for one in shown if isinstance(one.shown, Equal)]
    left = [one for one in shown if not isinstance(one.shown, Equal)]
    lines = []
    if not left:
        lines.append(f"{name}: the cases notice all of {counted(tried.made - len(same), 'change')}")
    else:
        count = counted(tried.made - len(same), "change")
        lines.append(f"{name}: no case notices {len(left):,} of {count}:")
    for one in left:
        lines.append(f"  {told_change(one.mutant, tried.source)}")
        lines += [f"      {line}".rstrip() for line in _shown_lines(runner, one)]
    if same:
        lines.append(f"{counted(len(same), 'more change')} of it change no answer, as is proved")
    return "\n".join(lines) + "\n"


def _shown_lines(runner: Runner, one: Unnoticed) -> Iterator[str]:
    """A case that notices a change, as it can stand in a test file; or why there is none."""
    match one.shown:
        case Difference():
            yield from case_lines(runner, one.mutant, one.query, one.shown)
        case Unknown():
            length = counted(one.shown.bound.length, "event")
            yield f"no stream was found that shows it, of those of up to {length} none"
        case None:
            yield f"no stream was looked for: that is done for {_MOST_TOLD} changes"


def case_lines(runner: Runner, mutant: Mutant, name: str, shown: Difference) -> Iterator[str]:
    """The stream of a difference as a case, which expects the answer of the query as it is."""
    queries = runner.queries(runner.tests.cases[0])
    query = queries[name]
    columns = _columns(runner, name)
    yield "[[case]]"
    before, after = (" ".join(text.split()) for text in mutant.texts(runner.source))
    yield f"name = {toml_value(f'{before}, not {after}' if after else f'{before} is needed')}"
    if len(queries) > 1:
        yield f"query = {toml_value(name)}"
    if isinstance(query, CompiledQuery) and query.plan.choice.deadlines:
        yield 'at_end = "closed"'
    yield from _given("given", shown.events)
    for set, table in shown.parameters.items():
        yield from _given(f"parameters.{set}", table)
    rows = [columns.described(row) for row in shown.old.to_pylist()]
    if len(rows) < 2:
        yield f"expected = [{''.join(rows)}]"
    else:
        yield from ("expected = [", *(f"  {row}," for row in rows), "]")


def _given(key: str, events: pa.Table) -> Iterator[str]:
    if not len(events):
        yield f"{key} = []"
        return
    names, rows = events.column_names, events.to_pylist()
    # CSV has no nested values, an empty text there is NULL, and a lone NULL is no row.
    nested = any(pa.types.is_nested(field.type) for field in events.schema)
    if nested or len(names) < 2 or any("" in row.values() for row in rows):
        lines = [
            json.dumps({name: json_ready(value) for name, value in row.items()}, default=str)
            for row in rows
        ]
    else:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_cell(value) for value in row.values()] for row in rows)
        lines = out.getvalue().splitlines()
    yield f"{key} = '''"
    yield from map(visible_lines, lines)
    yield "'''"


def _cell(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return str(value.replace(tzinfo=None))
    if isinstance(value, bool):
        return str(value).lower()
    return json_ready(value)
