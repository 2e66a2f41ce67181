"""The answers of many queries in one table: a column `query`, and a column for each query."""

from collections import Counter
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

import pyarrow as pa

from celc_runtime.many.rules import answer_ddl, answer_schema, parted
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import quoted
from celc_runtime.program import Program

QUERY = "query"  # the column with the name of the query that a row answers

_SHOWN = 100  # names that a message lists, at most

_CHUNK = 1 << 13  # rows of a batch at most: in each, the columns of all other queries are NULL


def check_names(programs: Collection[str]) -> None:
    """Raises EventError if the names of queries, `programs`, cannot be columns of one table."""
    alike = Counter(name.casefold() for name in (QUERY, *programs))
    for name in programs:
        if alike[name.casefold()] > 1:
            raise EventError(
                f"query {name!r}: match_all has a column for each query beside the column 'query', "
                "and Spark does not tell names apart that differ in case only: give the query "
                f"another name, as in QUERY {name}_1:"
            )


def ddl_of(programs: Mapping[str, Program]) -> str:
    """The columns of the answers in Spark's notation."""
    columns = [f"{quoted(name)} STRUCT<{answer_ddl(one)}>" for name, one in programs.items()]
    return ", ".join([f"{QUERY} STRING", *columns])


class WideRows:
    """Makes rows of one table from the rows of each query."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self._programs = programs
        self._types = {name: pa.struct(answer_schema(one)) for name, one in programs.items()}
        self._names = [QUERY, *programs]

    def of(self, name: str, answer: pa.RecordBatch) -> list[pa.RecordBatch]:
        return [
            self._wide(name, answer.slice(start, _CHUNK)) for start in range(0, len(answer), _CHUNK)
        ]

    def _wide(self, name: str, answer: pa.RecordBatch) -> pa.RecordBatch:
        rows = len(answer)
        names, answer = parted(self._programs[name], answer)
        columns: list[pa.Array] = [names]
        for other, type in self._types.items():
            if other == name:
                columns.append(pa.StructArray.from_arrays(answer.columns, fields=list(type)))
            else:
                columns.append(_nulls(type).slice(0, rows))
        return pa.RecordBatch.from_arrays(columns, self._names)


@cache
def _nulls(type: pa.DataType) -> pa.Array:
    """NULLs that all batches share: with many queries they are most of an answer."""
    return pa.nulls(_CHUNK, type)


def rows_of(answers: Any, name: str, columns: Mapping[str, str]) -> Any:
    """One query's part of the answers; `columns` are those of all queries, by name.

    answers: the tables by name of `match_all_table`, or a DataFrame of Spark or a pyarrow Table
    with the columns of `match_all`. Raises ValueError for a query that the module does not have,
    TypeError for other answers.
    """
    if name not in columns:
        known = [*columns] if len(columns) <= _SHOWN else [*[*columns][:_SHOWN], "…"]
        raise ValueError(f"there is no query {name!r}; the queries are: {', '.join(known)}")
    column = columns[name]
    if isinstance(answers, Mapping):
        return answers[name]
    if isinstance(answers, pa.Table):
        import pyarrow.compute as pc

        of_query = answers.filter(pc.equal(answers.column(QUERY), name)).column(column)
        batches = [pa.RecordBatch.from_struct_array(chunk) for chunk in of_query.chunks]
        return pa.Table.from_batches(batches, pa.schema(list(of_query.type)))
    if type(answers).__module__.split(".")[0] == "pyspark":
        from pyspark.sql import functions

        chosen = answers.where(functions.col(QUERY) == functions.lit(name))
        return chosen.select(f"{quoted(column)}.*")
    raise TypeError(
        f"{type(answers).__name__} is no answer of match_all or match_all_table: give what one of "
        "them has returned"
    )
