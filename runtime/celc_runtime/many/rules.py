"""Rules that are rows of a few queries: the queries of a module that was compiled by shape.

A *shape* is a query FOR EACH row of a table of constants, and each row is a rule with a name of its
own. `QUERIES[name]` is the query of that row alone. All queries of the module together run each
shape once, over all of its rows; every row of its answer names its rule, in the column of the
parameter set, and is an answer of that rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import in_one_piece
from celc_runtime.plan.parameters import Parameters
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import arrow_type, output_schema
from celc_runtime.program import Program, Rows
from celc_runtime.rules.inner import parameters_of


def with_rules(queries: Mapping[str, Any], rules: Mapping[str, Sequence[Any]]) -> QueriesOfRules:
    """The queries of a module.

    queries: the compiled ones, by name. rules: of those that are shapes the table, by their names:
    its columns, of which the first has the names of rules, and then its rows.
    """
    return QueriesOfRules(queries, rules)


class QueriesOfRules(Mapping[str, Any]):
    """The queries of a module by name: a query for each rule, made when it is asked for, and those
    that are no shapes."""

    def __init__(self, queries: Mapping[str, Any], rules: Mapping[str, Sequence[Any]]) -> None:
        self._queries = queries
        self._tables = {name: _Table(queries[name].program, rows) for name, rows in rules.items()}
        self._places = {
            str(row[0]): (name, place)
            for name, (_, *rows) in rules.items()
            for place, row in enumerate(rows)
        }
        plain = (name for name in queries if name not in rules)
        self._names = dict.fromkeys([*self._places, *plain])
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._places:
            # A shape is none of the queries, but workers of Spark ask for it by its name.
            return self._queries[name]
        if name not in self._made:
            shape, place = self._places[name]
            query = self._queries[shape]
            self._made[name] = type(query)(self._tables[shape].rule(name, place))
        return self._made[name]

    @property
    def compiled(self) -> tuple[str, ...]:
        """The names of what has code of its own: shapes, and queries that are none."""
        return tuple(self._queries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @cached_property
    def programs(self) -> dict[str, Program]:
        """What is run for all queries: each shape for all of its rules, and the other queries."""
        return {
            name: self._tables[name].program if name in self._tables else query.program
            for name, query in self._queries.items()
        }

    @cached_property
    def shapes(self) -> dict[str, str]:
        """The program that runs each query: that of its shape, or one of its own."""
        return {name: self._places[name][0] if name in self._places else name for name in self}

    def with_all_rules(self, found: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The answers of all queries by name, of those of the programs."""
        rules: dict[str, list[str]] = {}
        for name, shape in self.shapes.items():
            rules.setdefault(shape, []).append(name)
        by_name: dict[str, pa.Table] = {}
        for shape, names in rules.items():
            if shape in self._tables:
                by_name |= by_rule(self.programs[shape], found[shape], names)
            else:
                by_name[shape] = found[shape]
        return {name: by_name[name] for name in self}


def programs_of(queries: Mapping[str, Any]) -> dict[str, Program]:
    """The programs that are run for all queries of a module."""
    if isinstance(queries, QueriesOfRules):
        return queries.programs
    return {name: query.program for name, query in queries.items()}


class _Table:
    """The rules of a shape."""

    def __init__(self, program: Program, rows: Sequence[Sequence[Any]]) -> None:
        self._program = program
        self._given = rows

    @cached_property
    def program(self) -> Program:
        """The query over all rules; the column of its set has the name of each answer's rule."""
        names = str(self._given[0][0])
        shown = replace(parameters_of(self._program.plan), shown=(names,), named_by=names)
        return self._of(self._program.name, shown, self._rows)

    def rule(self, name: str, place: int) -> Program:
        """The query of one rule, without a column of the set."""
        hidden = replace(parameters_of(self._program.plan), shown=(), hidden=True, named_by="")
        return self._of(name, hidden, self._rows.take(np.array([place])))

    def _of(self, name: str, parameters: Parameters, rows: Rows) -> Program:
        plan = self._program.plan
        source = replace(plan.source, parameters=parameters)
        return replace(self._program, plan=replace(plan, name=name, source=source), rows=rows)

    @cached_property
    def _rows(self) -> Rows:
        columns, *rows = self._given
        parameters = parameters_of(self._program.plan)
        values = zip(*rows, strict=True)
        arrays = {
            name: pa.array(column, arrow_type(parameters.type_of(name)))
            for name, column in zip(columns, values, strict=True)
        }
        return Rows(len(rows), arrays)


# --- answers --------------------------------------------------------------------------------------


def names_column(plan: Plan) -> str | None:
    """The column of the answers of a shape that names their rules; None: it is the answer of one
    query."""
    parameters = plan.source.parameters
    return parameters.name if parameters is not None and parameters.named_by else None


def answer_schema(program: Program) -> pa.Schema:
    """The columns of the answer of one query that a program runs."""
    if names_column(program.plan) is None:
        return program.output_schema
    return output_schema(_of_rule(program.plan))


def answer_ddl(program: Program) -> str:
    """The same in Spark's notation."""
    return _of_rule(program.plan).output_ddl()


def _of_rule(plan: Plan) -> Plan:
    if names_column(plan) is None:
        return plan
    hidden = replace(parameters_of(plan), shown=(), hidden=True, named_by="")
    return replace(plan, source=replace(plan.source, parameters=hidden))


_Rows = TypeVar("_Rows", pa.RecordBatch, pa.Table)


def parted(program: Program, answer: _Rows) -> tuple[pa.Array, _Rows]:
    """(The names of the queries of an answer's rows; the rows as these queries answer them)."""
    column = names_column(program.plan)
    if column is None:
        return pa.repeat(pa.scalar(program.name, pa.string()), len(answer)), answer
    place = _place(program.plan)
    return in_one_piece(answer.column(place)).field(0), answer.remove_column(place)


def by_rule(program: Program, answer: pa.Table, names: Sequence[str]) -> dict[str, pa.Table]:
    """The answers of all rules of a shape, by name; `names` are those of the rules."""
    schema = answer_schema(program)
    found = dict.fromkeys(names, schema.empty_table())
    if not len(answer):
        return found
    of_rows, rows = parted(program, answer)
    coded = of_rows.dictionary_encode()
    codes = np.asarray(coded.indices)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(coded.dictionary)))
    table = rows.take(pa.array(order))
    begin = 0
    for name, end in zip(coded.dictionary.to_pylist(), ends.tolist(), strict=True):
        found[name] = table.slice(begin, end - begin)
        begin = end
    return found


def _place(plan: Plan) -> int:
    return len(plan.source.partition_by) + (plan.answer.match_id is not None)
