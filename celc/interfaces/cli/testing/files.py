"""`fire.test.toml`: a file with cases of the queries in a file beside it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import CelError, Diagnostics, Related, error
from celc.diagnostics.files import SUFFIXES, read_file
from celc.diagnostics.messages.wording import available, guess, quote, unknown
from celc.diagnostics.source import Source, Span
from celc.interfaces.cli.problems import CommandProblem, words
from celc.interfaces.cli.settings.project import options_for
from celc.interfaces.cli.testing.given import Rows, lines_of_text, rows_of
from celc.interfaces.cli.toml.places import Path as Keys
from celc.interfaces.cli.toml.places import Place, places_of
from celc.interfaces.cli.toml.reading import values_of
from celc.options import AT_END, Options

SUFFIX = ".test.toml"

_TEXTS = ("at_end", "ties", "type_column")
_LISTS = ("order_by", "tiebreak")
OPTIONS = (*_TEXTS, *_LISTS)
"""Options of a compilation that a file or a case can have."""

_OF_BOTH = ("query", *OPTIONS)
_OF_FILE = ("file", "functions", *_OF_BOTH, "case")
_OF_CASE = ("name", *_OF_BOTH, "given", "parameters", "expected")

NULL = "NULL"
"""The text that stands for NULL in TOML, which has none."""


@frozen
class Row:
    """What is said of a row of an answer, by its columns, and where."""

    values: Mapping[str, Any]
    span: Span


@frozen
class Case:
    """Rows that are given, and what is expected of them: rows, their number, or None: nothing yet.

    `span` is the place of its name, `keys` lead to it, and `query` names one among several.
    """

    name: str
    span: Span
    keys: Keys
    query: str | None
    given: Rows
    parameters: Mapping[str, Rows]
    expected: tuple[Row, ...] | int | None
    options: Options


@frozen(eq=False)
class QueryTests:
    """A test file: its text, the places in it, the query file, and its cases."""

    path: Path
    source: Source
    places: Mapping[Keys, Place]
    query_file: Path
    cases: tuple[Case, ...]

    def value_at(self, *keys: str | int) -> Span:
        """Where a value stands, or the nearest one around it."""
        return _place(self.places, keys).value


def read_tests(path: Path, name: str | None = None) -> QueryTests:
    """A test file, which messages call `name`.

    Raises CelError with all that is wrong in it, and CommandProblem where it cannot be read.
    """
    try:
        source = read_file(path, name or path.name)
    except OSError as problem:
        raise CommandProblem(f"{path}: {words(problem)}") from None
    except ValueError as problem:
        raise CommandProblem(str(problem)) from None
    content = values_of(source, "test-file")
    reader = _Reader(path, source, places_of(source.text))
    found = reader.tests(content)
    reader.found.raise_errors()
    return found


def _place(places: Mapping[Keys, Place], keys: Keys) -> Place:
    while keys and keys not in places:
        keys = keys[:-1]
    return places.get(keys, Place(Span(0, 0), Span(0, 0)))


class _Reader:
    """Reads a file; what is wrong is gathered in `found`."""

    def __init__(self, path: Path, source: Source, places: Mapping[Keys, Place]) -> None:
        self.path, self.source, self.places = path, source, places
        self.found = Diagnostics(source)

    def wrong(self, keys: Keys, message: str, *help: str, of_key: bool = False) -> None:
        place = _place(self.places, keys)
        span = place.key if of_key else place.value
        self.found.add(error("test-file", span, message, *help))

    def known(self, table: Mapping[str, Any], keys: Keys, names: Collection[str]) -> None:
        """Report the keys of a table that have no meaning there."""
        for name in table:
            if name not in names:
                what = "a case has" if keys else "above its cases a file has"
                told = (*guess(name, names), *available(what, names))
                message = f"{quote(name)} has no meaning here"
                self.wrong((*keys, name), message, *told, of_key=True)

    def text(self, table: Mapping[str, Any], keys: Keys, name: str) -> str | None:
        value = table.get(name)
        if value is None or isinstance(value, str):
            return value
        self.wrong((*keys, name), f"{quote(name)} is a text in quotation marks")
        return None

    def tests(self, content: Mapping[str, Any]) -> QueryTests:
        self.known(content, (), _OF_FILE)
        functions = self.functions(content)
        query_file = self.query_file(content)
        of_project = replace(options_for(query_file), joins=False, functions=functions)
        options = self.options(content, (), of_project)
        query = self.text(content, (), "query")
        cases = content.get("case", [])
        if not isinstance(cases, list) or not all(isinstance(one, dict) for one in cases):
            self.wrong(("case",), "a case begins with [[case]]")
            cases = []
        elif not cases:
            help = "write [[case]], and below it name, given and expected"
            self.wrong((), "this file has no case", help)
        read = tuple(
            self.case(case, ("case", number), query, options) for number, case in enumerate(cases)
        )
        self.different(read)
        return QueryTests(self.path, self.source, self.places, query_file, read)

    def query_file(self, content: Mapping[str, Any]) -> Path:
        given = self.text(content, (), "file")
        folder, stem = self.path.parent, self.path.name.removesuffix(SUFFIX)
        tried = [given] if given is not None else [f"{stem}{suffix}" for suffix in SUFFIXES]
        for name in tried:
            if (folder / name).is_file():
                return folder / name
        beside = sorted(one.name for one in folder.iterdir() if one.suffix in SUFFIXES)
        if given is None:
            message = f"there is no {' and no '.join(tried)} beside this file"
            more = "name the file of the query, as in file = 'fire.cel'"
            self.wrong((), message, *available("query files here", beside), more)
        else:
            told = (*guess(given, beside), *available("query files here", beside))
            self.wrong(("file",), f"there is no file {quote(given)}", *told)
        return folder / tried[0]

    def functions(self, content: Mapping[str, Any]) -> Any:
        name = self.text(content, (), "functions")
        if name is None:
            return None
        from celc.driver.given_functions import NotGivenError, functions_of_file

        try:
            return functions_of_file(self.path.parent / name)
        except NotGivenError as problem:
            self.wrong(("functions",), str(problem))
            return None

    def options(self, table: Mapping[str, Any], keys: Keys, before: Options) -> Options:
        chosen = before
        for name in _TEXTS:
            value = self.text(table, keys, name)
            if value is None:
                continue
            changes: dict[str, Any] = {name: value}
            try:
                chosen = replace(chosen, **changes)
            except ValueError:
                known = AT_END if name == "at_end" else ("simultaneous",)
                told = (*guess(value, known), *available(f"{name} can be", known))
                self.wrong((*keys, name), f"{name} is not {quote(value)}", *told)
        for name in _LISTS:
            value = table.get(name)
            given = [value] if isinstance(value, str) else value
            if given is None:
                continue
            if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
                self.wrong((*keys, name), f"{name} is the name of a column, or a list of such")
            else:
                listed: dict[str, Any] = {name: tuple(given)}
                chosen = replace(chosen, **listed)
        return chosen

    def case(
        self, case: Mapping[str, Any], keys: Keys, query: str | None, options: Options
    ) -> Case:
        self.known(case, keys, _OF_CASE)
        name = self.text(case, keys, "name")
        header = _place(self.places, keys).key
        named = _place(self.places, (*keys, "name")).value
        if "given" not in case:
            self.found.add(error("test-file", header, "this case has no 'given': the rows"))
        given = self.rows(case.get("given", []), (*keys, "given"))
        tables = case.get("parameters", {})
        if not isinstance(tables, dict):
            message = "'parameters' has a table of rows for each set, as in [case.parameters]"
            self.wrong((*keys, "parameters"), message)
            tables = {}
        parameters = {
            one: self.rows(rows, (*keys, "parameters", one)) for one, rows in tables.items()
        }
        return Case(
            name if name is not None else f"case {int(keys[-1]) + 1}",
            named if name is not None else header,
            keys,
            self.text(case, keys, "query") or query,
            given,
            parameters,
            self.expected(case.get("expected"), (*keys, "expected")),
            self.options(case, keys, options),
        )

    def rows(self, value: object, keys: Keys) -> Rows:
        span = _place(self.places, keys).value
        found = rows_of(
            value, span, lambda number: _place(self.places, (*keys, number)).value, self.source.text
        )
        if isinstance(found, Rows):
            return found
        self.wrong(keys, found)
        return Rows("json", b"", span, ())

    def expected(self, value: object, keys: Keys) -> tuple[Row, ...] | int | None:
        match value:
            case None:
                return None
            case str():
                return self.lines(value, keys)
            case bool():
                pass
            case int() if value >= 0:
                return value
            case list() if all(isinstance(one, dict) for one in value):
                return tuple(
                    Row(_with_nulls(one), _place(self.places, (*keys, number)).value)
                    for number, one in enumerate(value)
                )
        message = (
            "'expected' is a list of rows, as in [{ hot = 0, dry = 3 }], a text with lines of "
            "JSON, or the number of rows"
        )
        self.wrong(keys, message)
        return None

    def lines(self, value: str, keys: Keys) -> tuple[Row, ...]:
        """Rows in a text with lines of JSON."""
        span = _place(self.places, keys).value
        places = tuple(lines_of_text(span, self.source.text, value))
        rows: list[Row] = []
        for number, line in enumerate(value.split("\n")):
            if not line.strip():
                continue
            at = places[number] if places else span
            try:
                row = json.loads(line)
            except ValueError as problem:
                self.found.add(error("test-file", at, f"this is no line of JSON: {problem}"))
                continue
            if not isinstance(row, dict):
                self.found.add(error("test-file", at, 'a row is an object, as in {"hot": 0}'))
                continue
            rows.append(Row(row, at))
        return tuple(rows)

    def different(self, cases: tuple[Case, ...]) -> None:
        """Report names that two cases have."""
        first: dict[str, Case] = {}
        for case in cases:
            other = first.setdefault(case.name, case)
            if other is not case:
                related = [Related(other.span, "the first one")]
                message = f"two cases are called {quote(case.name)}"
                self.found.add(error("test-file", case.span, message, related=related))


def _with_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_nulls(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_nulls(one) for one in value]
    return None if isinstance(value, str) and value == NULL else value


def unknown_query(tests: QueryTests, case: Case, names: Collection[str]) -> CelError:
    """The error about a query that the query file has not, or that must be named."""
    if case.query is None:
        message = f"{tests.query_file.name} has several queries: say which one"
        told = (*available("its queries", names), "write query = '…' in the case, or above all")
        return CelError(tests.source, (error("test-file", case.span, message, *told),))
    span = tests.value_at(*case.keys, "query")
    if (*case.keys, "query") not in tests.places:
        span = tests.value_at("query")
    message = f"{tests.query_file.name} has no query {quote(case.query)}"
    found = unknown("test-file", span, message, case.query, "its queries", names)
    return CelError(tests.source, (found,))


def files_of_tests(paths: Collection[Path]) -> Iterator[Path]:
    """The test files that paths of files and folders name, each once. Raises CommandProblem for a
    file of another name, and where there is none."""
    seen: set[Path] = set()
    for path in paths:
        if path.is_dir():
            found = sorted(one for one in path.rglob(f"*{SUFFIX}") if one.is_file())
            if not found:
                raise CommandProblem(f"{path}: there is no {SUFFIX} file in this folder")
        elif not path.exists():
            raise CommandProblem(f"{path}: there is no such file")
        elif not path.name.endswith(SUFFIX):
            beside = path.with_name(path.stem + SUFFIX)
            more = f"; {beside} is there" if beside.is_file() else ""
            raise CommandProblem(f"{path}: the name of a test file ends in {SUFFIX}{more}")
        else:
            found = [path]
        for one in found:
            if one.resolve() not in seen:
                seen.add(one.resolve())
                yield one
