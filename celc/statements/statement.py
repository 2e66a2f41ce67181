"""One statement on a host: each clause becomes a table of the host, from the first one on.

The first clause stands behind a source without clauses, so that the host can read the source. Its
answer stands in its place in the text from then on, also in the sources of later clauses and in the
lists of WITH. The text is changed word by word. So all that is not ours is as it was written.
"""

from __future__ import annotations

import datetime
import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

from celc.diagnostics.errors import CelError, CelWarning, Diagnostic, Diagnostics
from celc.diagnostics.messages import statements as messages
from celc.diagnostics.source import Source, Span
from celc.driver.matcher import Matcher
from celc.row_pattern.compiler import RowCompilation, compile_rows
from celc.row_pattern.parser import parse
from celc.statements.checked import BEFORE
from celc.statements.clauses import Clause, clauses_of, pattern_of
from celc.statements.host_columns import HostCall, host_calls
from celc.statements.hosts import Host, HostError, Parameters, refuse_unread
from celc.statements.places import MadeText
from celc.statements.words import Word, words_of


def run(host: Host, text: str, parameters: Parameters) -> Any:
    """The answer of a statement, as the host gives answers.

    Raises `CelError` for what is wrong with the clauses, with places in the whole statement, and
    `HostError` for what the host refuses.
    """
    return run_source(host, Source("statement.sql", text), parameters)


def run_source(host: Host, source: Source, parameters: Parameters) -> Any:
    """The answer of the statement of a file; see `run`."""
    found = Diagnostics(source)
    words = words_of(source, host.dialect, found)
    statement = Statement(host, source, words, found, parameters)
    refuse_unread(host, words, found)
    for clause in statement.clauses:
        statement.answer(clause)
    statement.warn()
    return statement.rest()


def _elsewhere(words: list[Word]) -> Span | None:
    """The first MATCH_RECOGNIZE, behind no table."""
    for one, other in pairwise(words):
        if (one.key, other.key) == ("MATCH_RECOGNIZE", "("):
            return one.span
    return None


@dataclass
class Asked:
    """A text for the host, and the values of its parameters."""

    text: str = ""
    values: list[Any] = field(default_factory=list)
    named: dict[str, Any] = field(default_factory=dict)

    @property
    def parameters(self) -> Parameters:
        return self.values or self.named or None


class Statement:
    """A statement whose clauses become tables of a host, one after another."""

    def __init__(
        self,
        host: Host,
        source: Source,
        words: list[Word],
        found: Diagnostics,
        parameters: Parameters = None,
        *,
        calls_functions: bool = False,
    ) -> None:
        """words: of the source, or those of them behind declarations. calls_functions: the host
        will read the clauses as calls of functions of its session.

        Raises `CelError` where the statement has no clause, or is none that a host can read.
        """
        clauses = clauses_of(words, found, calls_functions=calls_functions)
        if not clauses and not found.has_errors:
            first = Span(0, len(source.text.split("\n", 1)[0]))
            found.add(messages.no_clause(_elsewhere(words) or first))
        found.raise_errors()
        if host.dialect == "spark" and not calls_functions:
            _warn_of_quotes(source, words, found)
        self.clauses = clauses
        self._host, self._source, self._words = host, source, words
        self._parameters, self._found = parameters, found
        self._signs = {at for one in clauses for at in pattern_of(words, one)}
        self._inside = {at for one in clauses for at in range(one.word, one.last)}
        asked = (at for at, word in enumerate(words) if word.key == "?" and at not in self._signs)
        # Of each `?`, among all of them.
        self._numbers = {at: number for number, at in enumerate(asked)}
        if isinstance(parameters, Sequence) and len(parameters) > len(self._numbers):
            place = Span(0, len(source.text.split("\n", 1)[0]))
            found.add(messages.unused_parameter(len(self._numbers), len(parameters), place))
            found.raise_errors()
        self._answers: dict[int, tuple[Clause, str]] = {}
        """By the first word: the widest clause there with an answer, and its name."""
        self._tables: dict[str, Any] = {}
        self.compilations: list[RowCompilation] = []
        self._prefix = f"celc_{uuid.uuid4().hex[:12]}"
        # What the module of a clause says is the same at each call, so that its machine code, and
        # the workers that have loaded it, are those of the first one.
        self._columns_prefix = f"celc_{hashlib.sha256(source.text.encode()).hexdigest()[:12]}_c"

    def answer(self, clause: Clause) -> None:
        """Put the answer of a clause into its place. Raises `CelError`."""
        host = self._host
        made = self._clause_text(clause, {})
        columns = self._columns(made)
        rows, schema = self._rows(clause, columns)
        number = len(self._tables) + 1
        name = f"{self._prefix}_{number}"
        query = self._compiled(self._clause_text(clause, columns), f"clause_{number}", schema)
        hidden = [one for one in query.output_schema.names if one.startswith(self._columns_prefix)]
        self._tables[name] = host.matched(query, rows, hidden)
        self._answers[clause.first] = clause, name

    def _columns(self, made: MadeText) -> dict[int, tuple[HostCall, str]]:
        """What the host computes for a clause, each with the name of its column, by the place where
        it begins. Raises `CelError`."""
        found = Diagnostics(Source(self._source.name, made.text))
        try:
            calls = host_calls(parse(found.source, found), found)
        except CelError as problem:
            raise self._refused(made, problem.diagnostics) from None
        if found.has_errors:
            raise self._refused(made, found.items)
        names: dict[tuple[str, str], str] = {}
        columns = {}
        for call in calls:
            span = made.span(call.span)
            moved = replace(call, span=span, prefixes=tuple(map(made.span, call.prefixes)))
            if call.key is not None:
                moved = replace(moved, key=(made.place(call.key[0] - 1) + 1, call.key[1]))
            asked = self._host_text(moved)
            known = asked.text, repr(asked.values)
            name = names.setdefault(known, f"{self._columns_prefix}{len(names) + 1}")
            columns[span.start] = moved, name
        return columns

    def _refused(self, made: MadeText, items: Iterable[Diagnostic]) -> CelError:
        self._found.extend(map(made.back, items))
        return CelError(self._source, self._found.in_order())

    def _rows(self, clause: Clause, columns: Mapping[int, tuple[HostCall, str]]) -> tuple[Any, Any]:
        """What a clause reads, with the columns that the host computes, and its types. Raises
        `CelError` where the host refuses it."""
        once = {name: call for call, name in columns.values()}
        try:
            return self._read(clause, once)
        except Exception as problem:
            self._found.add(self._why_refused(clause, once, problem))
            raise CelError(self._source, self._found.in_order()) from problem

    def _read(self, clause: Clause, columns: Mapping[str, HostCall]) -> tuple[Any, Any]:
        asked = self._reading(clause, columns)
        rows = self._host.rows(asked.text, asked.parameters, self._tables)
        return rows, self._host.schema(rows)

    def _why_refused(
        self, clause: Clause, columns: Mapping[str, HostCall], problem: Exception
    ) -> Diagnostic:
        """What of a source and its columns the host refuses."""
        title = self._host.title
        first, last = self._words[clause.first], self._words[clause.word - 1]
        tried: list[tuple[Span, Mapping[str, HostCall]]] = [(first.span.to(last.span), {})]
        tried += [(call.span, {name: call}) for name, call in columns.items()]
        for number, (span, some) in enumerate(tried if columns else ()):
            try:
                self._read(clause, some)
            except Exception as alone:
                if number:
                    return messages.host_function_refused(title, _reason(alone), span)
                break
        return messages.source_refused(title, _reason(problem), tried[0][0])

    def warn(self) -> None:
        """Give the warnings to Python's."""
        from celc_runtime.values.warned import warn

        for one in self._found.in_order():
            warn(one.render(self._source), CelWarning)

    def rest(self) -> Any:
        """The answer of the statement around. Raises `HostError`."""
        asked = Asked()
        behind = self._written(0, len(self._words) - 1, asked)
        asked.text += self._host.verbatim(behind)
        try:
            return self._host.answer(asked.text, asked.parameters, self._tables)
        except Exception as problem:
            raise HostError(
                self._host.title, _reason(problem), self._source.text, asked.text
            ) from problem

    # --- texts --------------------------------------------------------------------------------

    def _reading(self, clause: Clause, columns: Mapping[str, HostCall]) -> Asked:
        """The query that reads the source of a clause, with columns that the host computes."""
        asked = Asked()
        lists = [one for one in clause.names if one.entries]
        for number, names in enumerate(lists):
            asked.text += ("SELECT * FROM (" if number else "") + "WITH "
            asked.text += "RECURSIVE " if names.is_recursive else ""
            for place, (first, last) in enumerate(names.entries):
                asked.text += ", " if place else ""
                self._written(first, last, asked)
            asked.text += " "
        self._selected(clause, ["*"], columns, asked)
        asked.text += ")" * (len(lists) - 1)
        return asked

    def _selected(
        self,
        clause: Clause,
        chosen: Iterable[str],
        columns: Mapping[str, HostCall],
        asked: Asked,
    ) -> None:
        """Add the SELECT of columns of the source of a clause, and of those that the host
        computes."""
        asked.text += "SELECT " + ", ".join(chosen)
        for name, call in columns.items():
            made = self._host_text(call)
            asked.text += f", {made.text} AS {self._host.quoted(name)}"
            asked.values += made.values
            asked.named |= made.named
        asked.text += " FROM "
        self._written(clause.first, clause.word - 1, asked)
        # WHERE takes no function that makes rows, as UNNEST does, and no aggregate.
        asked.text += " WHERE TRUE" if columns else ""
        for call in columns.values():
            made = self._host_text(call)
            asked.text += f" OR ({made.text}) IS NULL"
            asked.values += made.values

    def _written(self, first: int, last: int, asked: Asked) -> str:
        """Add the words from one to another as the host is to read them, with the answers that are
        there; returns what stands behind the last word up to the end of the text."""
        host, words, text = self._host, self._words, self._source.text
        at, end = first, words[first].span.start
        while at <= last:
            word = words[at]
            asked.text += host.verbatim(text[end : word.span.start])
            known = self._answers.get(at)
            if known is not None and known[0].last <= last:
                asked.text += host.table(known[1])
                at = known[0].last + 1
                end = words[at - 1].span.end
                continue
            name = self._named(at)
            if at in self._numbers:
                asked.values.append(self._value(at))
            if name is not None:
                asked.named[name] = self._value(at)
                asked.text += host.parameter(name)
                at += 1
            elif word.is_quoted:
                asked.text += host.verbatim(host.quoted(word.text))
            elif word.key != ";":
                asked.text += host.verbatim(text[word.span.start : word.span.end])
            at += 1
            end = words[at - 1].span.end
        return text[end:] if last == len(words) - 1 else ""

    # --- parameters ---------------------------------------------------------------------------

    def _named(self, at: int) -> str | None:
        """The name of a parameter that begins at a word, if one does."""
        words = self._words
        if words[at].key not in self._host.parameter_signs or at + 1 == len(words):
            return None
        has_names = isinstance(self._parameters, Mapping)
        if at in self._signs or not (has_names or at in self._inside):
            return None
        name, before = words[at + 1], words[at - 1]
        if not name.key.isidentifier() or name.span.start != words[at].span.end:
            return None
        # `e:b` is a part of a text of JSON, `l[1:n]` a part of a list, `{'a':b}` a STRUCT.
        is_value = (
            before.can_be_name or before.key in (")", "]") or not before.key.strip("0123456789")
        )
        touches = before.span.end == words[at].span.start
        is_part = words[at].key == ":" and is_value and (touches or not has_names)
        return None if is_part else name.text

    def _value(self, at: int) -> Any:
        """The value of the parameter at a word. Raises `CelError` where none is given."""
        name = self._named(at)
        given = self._parameters or ()
        if name is not None and isinstance(given, Mapping) and name in given:
            return given[name]
        if name is None and isinstance(given, Sequence) and self._numbers[at] < len(given):
            return given[self._numbers[at]]
        span = self._words[at].span
        if name is not None:
            span = span.to(self._words[at + 1].span)
        known = list(given) if isinstance(given, Mapping) else []
        sign = self._words[at].text
        shown = f"{sign}{name}" if name is not None else f"number {self._numbers[at] + 1}"
        self._found.add(messages.missing_parameter(shown, known, span))
        self._found.raise_errors()
        raise AssertionError

    # --- the clause ---------------------------------------------------------------------------

    def _clause_text(self, clause: Clause, columns: Mapping[int, tuple[HostCall, str]]) -> MadeText:
        """The clause as a text of its own, with constants for parameters and columns for what the
        host computes."""
        made = MadeText(self._words[clause.word].span.start)
        called = self._called(clause) or "( … )"
        made.write(BEFORE.format(_quoted(called)), made.origin)
        end, at = made.origin, clause.word
        names: list[tuple[int, str]] = []  # of keys, where they end
        while at <= clause.last:
            span = self._words[at].span
            while names and names[0][0] <= span.start:
                place, key = names.pop(0)
                made.copy(self._source.text[end:place], end)
                made.write(f" AS {_quoted(key)}", place)
                end = place
            call, column = columns.get(span.start, (None, ""))
            written = None
            if call is not None:
                written = (f"{_quoted(call.variable)}." if call.variable else "") + _quoted(column)
                until = call.span.end
                if call.key is not None and call.key not in names:
                    names.append(call.key)
                while self._words[at].span.end < until:
                    at += 1
            elif (named := self._named(at)) is not None or at in self._numbers:
                written = self._literal(at)
                at += named is not None
            if written is not None:
                made.copy(self._source.text[end : span.start], end)
                made.write(written, span.start)
                end = self._words[at].span.end
            at += 1
        last = self._words[clause.last].span.end
        made.copy(self._source.text[end:last], end)
        return made

    def _called(self, clause: Clause) -> str | None:
        """What the source of a clause is called, if it has a name: for messages."""
        at, depth = clause.word - 1, 0
        while at > clause.first and (self._words[at].key == ")" or depth):
            depth += (self._words[at].key == ")") - (self._words[at].key == "(")
            at -= 1
        word = self._words[at]
        return word.text if word.can_be_name else None

    def _host_text(self, call: HostCall) -> Asked:
        """What the host computes, as it reads it."""
        asked = Asked()
        inside = [
            at
            for at, word in enumerate(self._words)
            if call.span.start <= word.span.start
            and word.span.end <= call.span.end
            and not any(one.start <= word.span.start < one.end for one in call.prefixes)
        ]
        at = 0
        while at < len(inside):
            last = at
            while last + 1 < len(inside) and inside[last + 1] == inside[last] + 1:
                last += 1
            self._written(inside[at], inside[last], asked)
            at = last + 1
        return asked

    def _compiled(self, made: MadeText, name: str, schema: Any) -> Any:
        try:
            compilation = compile_rows(Source(self._source.name, made.text), name, schema)
        except CelError as problem:
            raise self._refused(made, problem.diagnostics) from None
        self._found.extend(map(made.back, compilation.warnings))
        self.compilations.append(compilation)
        matcher = Matcher(compilation.module_parts("celc.sql"), compilation.warnings)
        (query,) = matcher.queries.values()
        return query

    def _literal(self, at: int) -> str:
        """The value of a parameter as a constant of the clause. Raises `CelError`."""
        value = self._value(at)
        text = _constant(value)
        if text is None:
            name = self._named(at)
            shown = f":{name}" if name is not None else f"number {self._numbers[at] + 1}"
            kind = type(value).__name__
            self._found.add(messages.parameter_type(shown, kind, self._words[at].span))
            self._found.raise_errors()
        assert text is not None
        return text


def _warn_of_quotes(source: Source, words: list[Word], found: Diagnostics) -> None:
    for word in words:
        if word.is_quoted and source.text[word.span.start] == '"':
            found.add(messages.quoted_name_on_spark(word.text, word.span))
            return


def _constant(value: Any) -> str | None:
    """A value as it is written in the clause; None where it cannot be."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | Decimal():
            return f"({value:f})" if isinstance(value, Decimal) else f"({value})"
        case float():
            return f"(CAST('{value!r}' AS DOUBLE))"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return None


def _quoted(name: str) -> str:
    """A name in the clause."""
    return '"' + name.replace('"', '""') + '"'


def _reason(problem: Exception) -> str:
    """What a host says, without the plans and stacks behind it."""
    text = str(problem).strip() or type(problem).__name__
    for mark in ("\n\nJVM stacktrace", ";\n'", "; line ", "\nLINE ", "\n== SQL"):
        text = text.partition(mark)[0]
    return " ".join(text.split())
