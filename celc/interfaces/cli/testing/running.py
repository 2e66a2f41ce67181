"""The cases of a test file, run: what is missing in an answer, and what is too much."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from celc_runtime.plan.errors import EventError, OptionClash
from celc_runtime.plan.frozen import frozen
from celc_runtime.query import CompiledQuery
from celc_runtime.row_pattern.query import RowPatternQuery

from celc.diagnostics.errors import CelError, error, warning
from celc.diagnostics.messages.wording import available, guess, quote, unknown
from celc.diagnostics.source import Source
from celc.driver.matcher import Matcher
from celc.editor.languages import CEL, language_of
from celc.interfaces.cli.declaring.schemas import SchemaOfFiles
from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.queries import read_source
from celc.interfaces.cli.reading.events import Form
from celc.interfaces.cli.reading.parameter_tables import wanted_of_set
from celc.interfaces.cli.reading.wanted import Wanted
from celc.interfaces.cli.run_rows import wanted_of_rows
from celc.interfaces.cli.testing.expected import Columns, left_over
from celc.interfaces.cli.testing.files import Case, QueryTests, Row, unknown_query
from celc.interfaces.cli.testing.given import placed, table_of
from celc.options import Options

if TYPE_CHECKING:
    from celc.driver.pipeline import Compilation

AnyQuery: TypeAlias = CompiledQuery | RowPatternQuery
Found: TypeAlias = Mapping[str, Any]
"""A row of an answer."""


@frozen(eq=False)
class Asked:
    """A compiled query with the rows that a case gives it."""

    query: AnyQuery
    wanted: Wanted
    columns: Columns
    events: pa.Table
    tables: Mapping[str, pa.Table]


@frozen(eq=False)
class Outcome:
    """What a case has shown: its answer, the rows that are expected and missing, and those that
    are too much. `expected` is a number where the case says no more; `seconds` is the time that the
    case took; `notes` are the warnings of the run."""

    case: Case
    asked: Asked
    rows: tuple[Found, ...]
    expected: int | None
    missing: tuple[Row, ...] = ()
    extra: tuple[Found, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        if self.expected is not None:
            return len(self.rows) == self.expected
        return not (self.missing or self.extra)


Run: TypeAlias = Callable[[Asked], pa.Table]
"""What finds the rows of a query in the events of a case."""


def on_this_machine(asked: Asked) -> pa.Table:
    """The answer by `match_table`."""
    if isinstance(asked.query, RowPatternQuery):
        return asked.query.match_table(asked.events)
    return asked.query.match_table(asked.events, **asked.tables)


def _called(tests: QueryTests) -> str:
    """What messages call the query file: with the folder that they have of its test file."""
    name = os.path.relpath(tests.query_file, tests.path.parent)
    return (PurePath(tests.source.name).parent / name).as_posix()


class Runner:
    """Runs cases. A query file is compiled once for all cases with the same options. `source` is
    its text, where it is not that of the file."""

    def __init__(
        self, tests: QueryTests, source: Source | None = None, run: Run = on_this_machine
    ) -> None:
        self.tests = tests
        self.source = read_source(tests.query_file, _called(tests)) if source is None else source
        self.language = language_of(tests.query_file)
        self._run = run
        self._compiled: dict[Options, Any] = {}
        self._matchers: dict[int, Matcher] = {}
        self._unknown: dict[str, None] = {}

    def compiled(self, case: Case) -> Any:
        """The query file as a case asks for it. Raises CelError."""
        if case.options in self._compiled:
            return self._compiled[case.options]
        schema, options = self.schema_of(case), case.options
        foreign = self.language.foreign(options)
        if foreign:
            name = foreign[0]
            span = self._option_at(case, name)
            message = f"{name} is for {CEL.title}; {self.language.title} has no such thing"
            raise CelError(self.tests.source, (error("test-file", span, message),))
        try:
            found = self.language.compile([self.source], options, schema)
        except CommandProblem as problem:
            raise CelError(self.tests.source, (case.given.problem(str(problem)),)) from None
        except OptionClash as problem:
            span = self._option_at(case, problem.option)
            raise CelError(self.tests.source, (error("test-file", span, str(problem)),)) from None
        if "schema" not in vars(schema):  # else the rows of the case have said what there is
            self._compiled[case.options] = found
        return found

    def schema_of(self, case: Case) -> SchemaOfFiles:
        """The columns of a case's rows, for a table that the query file does not declare."""
        origin = case.given.origin()
        return SchemaOfFiles(lambda: [origin], Form(), case.options.type_column)

    def queries(self, case: Case) -> Mapping[str, AnyQuery]:
        """The queries of the file by name, as a case asks for them. Raises CelError."""
        return self._matcher(self.compiled(case)).queries

    def _option_at(self, case: Case, name: str) -> Any:
        of_case = (*case.keys, name)
        return self.tests.value_at(*(of_case if of_case in self.tests.places else (name,)))

    def _matcher(self, compilation: Any) -> Matcher:
        if id(compilation) not in self._matchers:
            matcher = Matcher(compilation.module_parts("celc test"))
            if compilation not in self._compiled.values():
                return matcher
            self._matchers[id(compilation)] = matcher
        return self._matchers[id(compilation)]

    def asked(self, case: Case) -> Asked:
        """The query of a case, and its events. Raises CelError for what is wrong in either file."""
        compilation = self.compiled(case)
        queries = self.queries(case)
        if case.query not in queries and (case.query is not None or len(queries) > 1):
            raise unknown_query(self.tests, case, [*queries])
        query = queries[case.query] if case.query is not None else next(iter(queries.values()))
        wanted = _wanted(query, compilation)
        columns = Columns(query.output_schema, labels_of(query))
        if isinstance(case.expected, tuple):
            wrong = [one for row in case.expected for one in columns.wrong(row)]
            if wrong:
                raise CelError(self.tests.source, tuple(wrong))
        events = table_of(case.given, wanted, self.tests.source)
        if self.language is CEL and all(file.tree.streams for file in compilation.files):
            self._note_types(case, events, wanted)
        return Asked(query, wanted, columns, events, self._tables(case, query))

    def _note_types(self, case: Case, events: pa.Table, wanted: Wanted) -> None:
        """Note event types that no stream declares: such rows are passed over, and a misspelt type
        makes many a test pass."""
        if wanted.type_name not in events.column_names:
            return
        for name in events[wanted.type_name].unique().drop_null().to_pylist():
            if name not in wanted.types:
                told = (*guess(name, wanted.types), *available("declared", sorted(wanted.types)))
                message = f"no stream of the query declares the event type {quote(name)}"
                found = warning("test-event-type", case.given.span, message, *told)
                self._unknown[found.render(self.tests.source)] = None

    def _tables(self, case: Case, query: AnyQuery) -> dict[str, pa.Table]:
        sets = query.plan.source.parameters if isinstance(query, CompiledQuery) else None
        known = [] if sets is None else [sets.name]
        for name, rows in case.parameters.items():
            if name not in known:
                message = f"query {quote(query.name)} has no parameter set {quote(name)}"
                found = unknown("test-file", rows.span, message, name, "its sets", known)
                raise CelError(self.tests.source, (found,))
        if sets is None:
            return {}
        if sets.name not in case.parameters:
            message = f"query {quote(query.name)} is FOR EACH {sets.name}: give its rows"
            help = f"[case.parameters], and below it {sets.name} = …"
            raise CelError(self.tests.source, (error("test-file", case.span, message, help),))
        rows = case.parameters[sets.name]
        wanted = wanted_of_set(f"parameter set {quote(sets.name)}", sets)
        table = table_of(rows, wanted, self.tests.source, whole=True)
        names = [one.name for one in sets.attributes]  # the readers look for event types as well
        return {sets.name: table.select(names)}

    def run(self, case: Case) -> Outcome:
        """The outcome of a case. Raises CelError for what is wrong in either file."""
        begin = time.perf_counter()
        asked = self.asked(case)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = self._run(asked)
            except EventError as problem:
                raise placed(case.given, asked.wanted, str(problem), self.tests.source) from None
        notes = tuple(str(one.message) for one in caught)
        outcome = compared(case, asked, found, notes)
        return replace(outcome, seconds=time.perf_counter() - begin)

    def all(self) -> Iterator[Outcome]:
        """The outcomes of all cases."""
        return map(self.run, self.tests.cases)

    def warnings(self) -> list[str]:
        """What the compiler and the rows of cases warn of, once each."""
        found = {**self._unknown}
        for compilation in self._compiled.values():
            for file in compilation.files:
                found |= {one.render(file.source): None for one in file.warnings}
        return [*found]


def compared(case: Case, asked: Asked, found: pa.Table, notes: tuple[str, ...] = ()) -> Outcome:
    """An answer beside what is expected of it. Where nothing is, all rows are too much."""
    rows = tuple(found.to_pylist())
    if isinstance(case.expected, int):
        return Outcome(case, asked, rows, case.expected, notes=notes)
    expected = case.expected or ()
    fitting = [fitting_rows(asked.columns, row, rows) for row in expected]
    missing, extra = left_over(fitting, len(rows))
    return Outcome(
        case,
        asked,
        rows,
        None,
        tuple(expected[number] for number in missing),
        tuple(rows[number] for number in extra),
        notes=notes,
    )


def fitting_rows(columns: Columns, row: Row, rows: Sequence[Found]) -> list[int]:
    """The rows that are as it is said."""
    said = {name: columns.typed(name, value) for name, value in row.values.items()}
    return [number for number, one in enumerate(rows) if columns.fits(said, one)]


def labels_of(query: AnyQuery) -> frozenset[str]:
    """The columns of an answer that are labels."""
    if isinstance(query, RowPatternQuery) or query.plan.answer.totals is not None:
        return frozenset()
    names = {label.name for label in query.plan.answer.labels}
    return frozenset(
        field.name
        for field in query.output_schema
        if field.name in names
        and pa.types.is_list(field.type)
        and pa.types.is_struct(field.type.value_type)
    )


def _wanted(query: AnyQuery, compilation: Compilation) -> Wanted:
    if isinstance(query, RowPatternQuery):
        return wanted_of_rows(query)
    of_file = [stages.query for stages in compilation.queries]
    return Wanted.of(next(one for one in of_file if one.name == query.name), query, of_file)
