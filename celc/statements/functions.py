"""A statement over table functions of Spark: each clause becomes a function of one module, and in
the place of the clause stands a call of it.

    FROM q_clause_1(TABLE(SELECT `k`, `ts` FROM t) PARTITION BY (`k`) ORDER BY (`ts`)) AS m

There is no session. So the types of what a clause reads are those that the text says (`columns`).
What stands before the clause stays where it is, and sees the names of WITH there. `celc.sql` has
what is alike: where a clause is, its text, and what the host computes for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.values.types import ddl_of, type_of

from celc.core.formula import DataType
from celc.diagnostics.errors import CelError, Diagnostic, Diagnostics
from celc.diagnostics.messages import statements as messages
from celc.diagnostics.source import Source, Span
from celc.resolve.types.written import type_of_written
from celc.row_pattern.compiler import module_of_several
from celc.row_pattern.parser import parse
from celc.row_pattern.schemas import TableColumns, columns_of
from celc.statements.checked import behind, declarations
from celc.statements.clauses import Clause
from celc.statements.columns import Column, Columns, UnknownTableError, query_columns, readable
from celc.statements.host_columns import HostCall
from celc.statements.hosts import Host
from celc.statements.statement import Asked, Statement
from celc.statements.words import Word, words_of


@frozen
class Functions:
    """A statement over functions, and the text of the module that registers them. `warnings` are in
    the order of their places."""

    statement: str
    module: tuple[str, ...]
    names: tuple[str, ...]
    warnings: tuple[Diagnostic, ...]


def functions_of(
    source: Source,
    command: str,
    max_work: int,
    undeclared: Callable[[], Any] | None = None,
) -> Functions:
    """The functions of a statement, and the statement over them.

    Its tables are declared before it by CREATE TABLE. command: for the header of the module.
    max_work: the most steps of a search for one start. undeclared: the columns of the one table
    without a declaration, in a form that `celc.compile` takes. Raises `CelError` for what is wrong
    with the clauses, and for types that nobody tells.
    """
    found = Diagnostics(source)
    host = _Texts()
    words = words_of(source, host.dialect, found)
    declared = declarations(words)
    tables = _Tables({one.table: _declared(source, one.span) for one in declared}, undeclared)
    statement = _OverFunctions(host, source, behind(words, declared), found, tables)
    for clause in statement.clauses:
        statement.answer(clause)
    return Functions(
        statement.rest(),
        module_of_several(statement.compilations, source.text, command, max_work),
        tuple(one.query.name for one in statement.compilations),
        found.in_order(),
    )


def function_names(file: str) -> str:
    """What the names of the functions of a file begin with."""
    stem = re.sub(r"[^A-Za-z0-9_]", "_", PurePath(file).stem)
    return f"q{stem}" if not re.match("[A-Za-z_]", stem) else stem


class _Tables:
    """The columns of tables by name: of those that are declared, and of one other."""

    def __init__(
        self, declared: Mapping[str, Columns], undeclared: Callable[[], Any] | None
    ) -> None:
        self._known = {name.casefold(): columns for name, columns in declared.items()}
        self._undeclared = undeclared
        self.other: str | None = None
        """The table without a declaration that was asked for first."""

    def add(self, name: str, columns: Columns) -> None:
        self._known[name.casefold()] = columns

    def columns(self, name: str) -> Columns | None:
        """The columns of a table by its name with dots; None: not known."""
        found = self._known.get(name.rpartition(".")[2].casefold())
        if found is not None or self._undeclared is None:
            return found
        self.other = self.other or name
        if self.other.casefold() != name.casefold():
            return None
        given = columns_of(self._undeclared())
        names = {**given.types, **given.others}
        return [Column(name, given.types.get(name)) for name in names]


def _declared(source: Source, span: Span) -> Columns:
    """The columns of a CREATE TABLE. Raises `CelError` for what is wrong in it."""
    before = "".join(sign if sign == "\n" else " " for sign in source.text[: span.start])
    text = f"{before}{source.slice(span)} SELECT * FROM t MATCH_RECOGNIZE (PATTERN (a))"
    lines = Source(source.name, text)
    found = Diagnostics(lines)
    table = parse(lines).table
    assert table is not None
    types = [(one.name.text, type_of_written(one.type, found)) for one in table.columns]
    found.raise_errors()
    return [Column(name, type) for name, type in types]


class _Texts(Host):
    """Spark as it reads texts later. A table in a text is a name that stands for a call."""

    title, dialect = "Spark", "spark"

    def quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def verbatim(self, text: str) -> str:
        return text

    def table(self, name: str) -> str:
        return self.quoted(name)

    def rows(self, text: str, parameters: Any, tables: Mapping[str, Any]) -> Any:
        raise AssertionError("no session reads rows")

    def schema(self, rows: Any) -> Any:
        raise AssertionError("no session reads rows")

    def matched(self, query: Any, rows: Any, hidden: list[str]) -> Any:
        raise AssertionError("no session reads rows")

    def answer(self, text: str, parameters: Any, tables: Mapping[str, Any]) -> str:
        """The text with calls in the places of their names."""
        for name, call in reversed([*tables.items()]):  # a call can hold earlier ones
            text = text.replace(self.quoted(name), call)
        return text


class _OverFunctions(Statement):
    """A statement whose clauses become calls of functions."""

    def __init__(
        self, host: Host, source: Source, words: list[Word], found: Diagnostics, tables: _Tables
    ) -> None:
        super().__init__(host, source, words, found, calls_functions=True)
        self._known = tables
        self._function = f"{function_names(source.name)}_clause_"

    def answer(self, clause: Clause) -> None:
        """Put the call of a clause into its place. Raises `CelError`."""
        made = self._clause_text(clause, {})
        columns = self._columns(made)
        once = {name: call for call, name in columns.values()}
        schema = self._schema(clause, once)
        number = len(self._tables) + 1
        called = f"{self._function}{number}"
        query = self._compiled(self._clause_text(clause, columns), called, schema)
        name = f"{self._prefix}_{number}"
        self._tables[name] = self._call(clause, once, query.plan)
        outputs = zip(query.output_schema.names, query.plan.output_types(), strict=True)
        shown = [Column(one, type_of(type)) for one, type in outputs if one not in once]
        self._known.add(name, shown)
        self._answers[clause.first] = clause, name

    def _schema(self, clause: Clause, computed: Mapping[str, HostCall]) -> TableColumns:
        """The columns of what a clause reads, and those that Spark computes for it."""
        place = self._words[clause.first].span.to(self._words[clause.word - 1].span)
        try:
            found = query_columns(self._reading(clause, computed).text, self._known.columns)
        except UnknownTableError as unknown:
            raise self._wrong(
                messages.unknown_table(unknown.name, self._known.other, place)
            ) from None
        except ValueError as problem:
            raise self._wrong(messages.unread_source(str(problem), place)) from None
        typed = []
        for one in found:
            call = computed.get(one.name)
            if call is not None and one.type is None:
                function = self._source.slice(call.span).partition("(")[0].strip()
                raise self._wrong(messages.unknown_type_of_function(function, call.span))
            typed.append(one)
        return readable(typed)

    def _wrong(self, one: Diagnostic) -> CelError:
        self._found.add(one)
        return CelError(self._source, self._found.in_order())

    def _call(self, clause: Clause, computed: Mapping[str, HostCall], plan: RowPlan) -> str:
        """The call of the function of a clause, without the columns that Spark computes for it."""
        host = self._host
        made = {one.name: one.sql for one in plan.derived}
        quoted = [made.get(one.name, host.quoted(one.name)) for one in plan.columns]
        keys = [_key(quoted[one], plan.columns[one].type) for one in plan.partition_by]
        order = []
        for one in plan.order_by:
            if plan.columns[one.column].name in made:
                break  # what Spark has not sorted the function sorts
            last = one.nulls_first is False if not one.descending else not one.nulls_first
            way = " DESC" if one.descending else ""
            order.append(f"{quoted[one.column]}{way} NULLS {'LAST' if last else 'FIRST'}")
        read = [one.name for one in plan.attributes_of_table]
        asked = Asked()
        chosen = [host.quoted(one) for one in read if one not in computed]
        self._selected(clause, chosen or ["*"], computed, asked)
        lines = [f"TABLE({asked.text})"]
        lines.append(f"PARTITION BY ({', '.join(keys)})" if keys else "WITH SINGLE PARTITION")
        lines += [f"ORDER BY ({', '.join(order)})"] if order else []
        call = "".join([f"{plan.name}(", *(f"\n  {line}" for line in lines), "\n)"])
        hidden = [host.quoted(one.name) for one in plan.outputs if one.name in computed]
        return f"(SELECT * EXCEPT ({', '.join(hidden)}) FROM {call})" if hidden else call

    def _host_text(self, call: HostCall) -> Asked:
        """What Spark computes, in the type that the clause gives it."""
        asked = super()._host_text(call)
        type = None if call.cast is None else type_of_written(call.cast, Diagnostics(self._source))
        if type is DataType.BOOLEAN or (type is not None and type.is_numeric):
            asked.text = f"TRY_CAST({asked.text} AS {ddl_of(type.value)})"
        elif type is DataType.STRING:
            asked.text = f"CAST({asked.text} AS STRING)"
        return asked

    def _value(self, at: int) -> Any:
        """Outside the clauses a parameter stays one."""
        if at in self._inside:
            name = self._named(at)
            span = self._words[at].span
            shown = "?" if name is None else f"{self._words[at].text}{name}"
            span = span if name is None else span.to(self._words[at + 1].span)
            raise self._wrong(messages.parameter_of_function(shown, span))
        return None


def _key(text: str, type: str) -> str:
    """What divides rows as a key does. Of a key itself a call makes each NaN a partition."""
    if type_of(type) in (DataType.FLOAT, DataType.DOUBLE):
        return f"CAST({text} + 0.0D AS STRING)"
    return text
