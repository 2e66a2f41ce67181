"""What can be said of a statement without a host: its clauses, and names and types where the text
declares the table."""

from __future__ import annotations

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import CelError, Diagnostic, Diagnostics
from celc.diagnostics.source import Source, Span
from celc.row_pattern.compiler import compile_rows
from celc.row_pattern.parser import first_wrong, parse
from celc.statements.clauses import Clause, clauses_of, pattern_of
from celc.statements.host_columns import host_calls
from celc.statements.places import MadeText
from celc.statements.words import Word, words_of

DIALECT = "duckdb"
"""Whose words are read where no host is named: it is also the one of the command line."""

BEFORE = "SELECT * FROM {0} "
"""What makes a whole text of a clause. What its source is a host says, or a declaration."""


def is_statement(source: Source) -> bool:
    """Whether a text is more than one query of MATCH_RECOGNIZE, so that a host has to read it.

    What is wrong inside the clause of a lone query is a mistake in that.
    """
    wrong = first_wrong(source.text)
    if wrong is None:
        return False
    try:
        words, clauses = _clauses(source, Diagnostics(source))
    except CelError:
        # No lone query goes wrong before its clause.
        return wrong < source.text.casefold().find("match_recognize")
    places = [(words[one.word].span.start, words[one.last].span.end) for one in clauses]
    return bool(clauses) and not any(start <= wrong < end for start, end in places)


@frozen
class PlacedClause:
    """Where a clause is, from MATCH_RECOGNIZE to its closing parenthesis; and the parameters in it,
    such as `?` and `:name`."""

    span: Span
    parameters: tuple[Span, ...]


def clauses_in(source: Source) -> list[PlacedClause]:
    """The clauses of a statement, in the order of their places. Raises `CelError`."""
    words, clauses = _clauses(source, Diagnostics(source))
    found = []
    for clause in clauses:
        pattern = pattern_of(words, clause)
        parameters = []
        for at in range(clause.word + 2, clause.last):
            word, following, before = words[at], words[at + 1], words[at - 1]
            is_named = following.span.start == word.span.end and following.key.isidentifier()
            # `j:k` is a part of a text of JSON.
            stands_alone = word.key == "$" or before.span.end < word.span.start
            if at in pattern:
                continue
            if word.key == "?":
                parameters.append(word.span)
            elif word.key in (":", "$") and is_named and stands_alone:
                parameters.append(word.span.to(following.span))
        span = Span(words[clause.word].span.start, words[clause.last].span.end)
        found.append(PlacedClause(span, tuple(parameters)))
    return sorted(found, key=lambda one: one.span.start)


def problems_of(source: Source) -> tuple[Diagnostic, ...]:
    """The errors and warnings of a statement, in the order of their places."""
    found = Diagnostics(source)
    try:
        words, clauses = _clauses(source, found)
    except CelError as problem:
        return problem.diagnostics
    declared = {
        one.table.casefold(): one.span
        for one in declarations(words_of(source, DIALECT, Diagnostics(source)))
    }
    for clause in clauses:
        name = words[clause.first].text.casefold()
        is_table = clause.first + 1 == clause.word or words[clause.first + 1].key != "."
        in_with = {words[at].text.casefold() for names in clause.names for at, _ in names.entries}
        is_declared = name in declared and is_table and name not in in_with
        made = MadeText(words[clause.word].span.start)
        if is_declared:
            made.copy(source.slice(declared[name]), declared[name].start)
        made.write(f" {BEFORE.format('t')}", made.origin)
        end = words[clause.last].span.end
        made.copy(source.text[made.origin : end], made.origin)
        found.extend(made.back(one) for one in _of_clause(made.text, source.name, is_declared))
    return found.in_order()


def _of_clause(text: str, name: str, is_declared: bool) -> tuple[Diagnostic, ...]:
    found = Diagnostics(Source(name, text))
    try:
        host_calls(parse(found.source, found), found)
        if not is_declared or found.has_errors:
            return found.in_order()
        return compile_rows(found.source, "statement").warnings
    except CelError as problem:
        # The host may have it.
        return tuple(one for one in problem.diagnostics if one.code != "unknown-function")


@frozen
class Declaration:
    """`CREATE TABLE t (…);` before a statement: the name of its table, and its place."""

    table: str
    span: Span


def declarations(words: list[Word]) -> list[Declaration]:
    """What stands before a statement, which begins behind the last one's end."""
    found: list[Declaration] = []
    first = 0
    while [word.key for word in words[first : first + 2]] == ["CREATE", "TABLE"]:
        for at in range(first, len(words)):
            if words[at].key in ("AS", "SELECT", "WITH") and words[at - 1].key != "TIMESTAMP":
                return found
            if words[at].key == ";":
                break
        else:
            return found
        found.append(Declaration(words[first + 2].text, words[first].span.to(words[at].span)))
        first = at + 1
    return found


def behind(words: list[Word], found: list[Declaration]) -> list[Word]:
    """The words of the statement itself."""
    end = found[-1].span.end if found else 0
    return [word for word in words if word.span.start >= end]


def _clauses(source: Source, found: Diagnostics) -> tuple[list[Word], list[Clause]]:
    """The words of a statement behind a declaration, and its clauses. Raises `CelError`."""
    words = words_of(source, DIALECT, found)
    rest = behind(words, declarations(words))
    clauses = clauses_of(rest, found)
    found.raise_errors()
    return rest, clauses
