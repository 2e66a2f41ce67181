"""Tables of any library → the columns that a query reads, in the types that it declares."""

from functools import partial
from typing import Any

import pyarrow as pa

from celc_runtime.arrow.arrays import as_keys, without_views
from celc_runtime.arrow.events.conforming import conforming_column
from celc_runtime.arrow.events.partition_keys import codes_of_keys
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.plan import Attribute
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.row_pattern.schemas import input_schema


@frozen
class Reader:
    """A plan as the readers of `celc_runtime.arrow` see the plan of a query on events: a table
    whose rows have no event types."""

    row_plan: RowPlan

    @property
    def program(self) -> Any:
        """This reader in place of a program."""
        return self

    @property
    def plan(self) -> Any:
        """This reader in place of a plan."""
        return self

    @property
    def source(self) -> Any:
        """This reader in place of the part of a plan that says what is read."""
        return self

    @property
    def name(self) -> str:
        """The query's name."""
        return self.row_plan.name

    @property
    def file_schema(self) -> pa.Schema:
        """The columns to read."""
        return input_schema(self.row_plan)

    def input_schema(self) -> pa.Schema:
        """The columns to read."""
        return input_schema(self.row_plan)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns to read, with their types."""
        return tuple(
            Attribute(column.name, column.type)
            for column in (self.row_plan.columns[n] for n in self.row_plan.columns_read)
        )

    def input_type(self, name: str) -> str:
        """The type of a column, as the language names it."""
        return next(one.type for one in self.attributes if one.name == name)

    type_column = True
    type_name = ""
    stream_column = False
    tiebreak: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    derived: tuple[()] = ()  # no column is made of others


def conforming_table(plan: RowPlan, table: pa.Table) -> pa.Table:
    """The columns in the types that the query declares, those of PARTITION BY `as_keys`. Raises
    EventError where they do not fit."""
    reader = Reader(plan)
    keys = {plan.columns[number].name for number in plan.partition_by}
    arrays = []
    for field in input_schema(plan):
        column = without_views(table.column(_named(plan, field.name, table.column_names)))
        row_of = partial(_row, column)
        chunks = [
            conforming_column(reader.plan, field, without_views(chunk), row_of)
            for chunk in column.chunks
        ]
        plain = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in chunks]
        plain = [c.cast(field.type) for c in plain]
        if field.name in keys:
            plain = list(map(as_keys, plain))
        arrays.append(pa.chunked_array(plain, field.type))
    if not arrays:
        return table
    return pa.Table.from_arrays(arrays, schema=input_schema(plan))


def _named(plan: RowPlan, name: str, names: list[str]) -> int:
    found = [n for n, one in enumerate(names) if one == name]
    if not found:
        found = [n for n, one in enumerate(names) if one.casefold() == name.casefold()]
    if len(found) != 1:
        told = "is missing" if not found else "occurs more than once"
        raise EventError(
            f"query {plan.name!r} reads the column {name!r}, which {told}; the columns are: "
            f"{', '.join(map(repr, names)) or 'none'}"
        )
    return found[0]


def _row(column: pa.ChunkedArray, row: int) -> str:
    return f"row {row}"


def last_border(plan: RowPlan, table: pa.Table) -> int:
    """The first row of the last partition."""
    names = [plan.columns[number].name for number in plan.partition_by]
    columns = [pa.concat_arrays(table.column(name).chunks) for name in names]
    codes = codes_of_keys(columns, len(table))
    others = (codes != codes[-1]).nonzero()[0]
    return int(others[-1]) + 1 if len(others) else 0
