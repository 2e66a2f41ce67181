"""Tables of any library → the columns that a query reads, in the types that it declares."""

from functools import partial
from typing import Any

import pyarrow as pa

from celc_runtime.arrow.arrays import as_keys, in_one_piece, plain
from celc_runtime.arrow.events.conforming import conforming_column
from celc_runtime.arrow.events.partition_keys import codes_of_keys
from celc_runtime.arrow.vectors import column_of
from celc_runtime.arrow.views import without_views
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.expressions import Column, Leaf, OfTypes
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.plan import Attribute
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.row_pattern.schemas import input_schema, row_schema


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
    def kept(self) -> dict[object, Any]:
        """Nothing: each call has a reader of its own."""
        return {}

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
        return self.row_plan.attributes_of_table

    def input_type(self, name: str) -> str:
        """The type of a column, as the language names it."""
        known = (*self.attributes, *self.row_plan.attributes_read)
        return next(one.type for one in known if one.name == name)

    type_column = True
    type_name = ""
    stream_column = False
    tiebreak: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    derived: tuple[()] = ()  # `conforming_table` makes these columns
    rest: tuple[()] = ()
    is_as_given = True


def conforming_table(plan: RowPlan, table: pa.Table, *, derived: bool) -> pa.Table:
    """The columns that a query reads, in the types that it declares, those of PARTITION BY
    `as_keys`.

    derived: whether the table has the derived columns; they are made if not. Raises EventError
    where columns do not fit.
    """
    if derived:
        found = _conforming(plan, row_schema(plan), table)
    else:
        found = _with_derived(plan, _conforming(plan, input_schema(plan), table))
    for number in plan.partition_by:
        name = plan.columns[number].name
        chunks = list(map(as_keys, found.column(name).chunks))
        place = found.column_names.index(name)
        field = found.schema.field(place)
        found = found.set_column(place, field, pa.chunked_array(chunks, field.type))
    return found if found.column_names else table


def _conforming(plan: RowPlan, schema: pa.Schema, table: pa.Table) -> pa.Table:
    reader = Reader(plan)
    arrays = []
    for field in schema:
        column = without_views(table.column(_named(plan, field.name, table.column_names)))
        chunks, rows = [], 0
        for chunk in column.chunks:
            row_of = partial(_row, rows)
            chunks.append(conforming_column(reader.plan, field, without_views(chunk), row_of))
            rows += len(chunk)
        plains = [plain(chunk).cast(field.type) for chunk in chunks]
        arrays.append(pa.chunked_array(plains, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _with_derived(plan: RowPlan, table: pa.Table) -> pa.Table:
    """The columns that are read, of a table of those that they are made of."""
    if not plan.derived:
        return table

    def leaf(tree: Leaf | OfTypes) -> pa.Array:
        assert isinstance(tree, Column), "a derived column is made of columns"
        return in_one_piece(table.column(tree.name))

    made = {one.name: column_of(one.value, one.type, leaf, len(table)) for one in plan.derived}
    schema = row_schema(plan)
    columns = [plain(made[name]) if name in made else table.column(name) for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


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


def _row(rows_before: int, row: int) -> str:
    return f"row {rows_before + row:,} (counted from 0)"


def last_border(plan: RowPlan, table: pa.Table) -> int:
    """The first row of the last partition."""
    names = [plan.columns[number].name for number in plan.partition_by]
    columns = [pa.concat_arrays(table.column(name).chunks) for name in names]
    codes = codes_of_keys(columns, len(table))
    others = (codes != codes[-1]).nonzero()[0]
    return int(others[-1]) + 1 if len(others) else 0
