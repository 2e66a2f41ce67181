"""The columns of a query of MATCH_RECOGNIZE, as schemas of Arrow."""

import pyarrow as pa

from celc_runtime.plan.plan import Attribute
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.plan.schemas import arrow_type


def input_schema(plan: RowPlan) -> pa.Schema:
    """The columns of the table that are read."""
    return _schema(plan.attributes_of_table)


def row_schema(plan: RowPlan) -> pa.Schema:
    """The columns that are read, once the derived ones are made."""
    return _schema(plan.attributes_read)


def _schema(columns: tuple[Attribute, ...]) -> pa.Schema:
    return pa.schema([pa.field(one.name, arrow_type(one.type)) for one in columns])


def column_type(plan: RowPlan, column: int) -> pa.DataType:
    """The Arrow type of a column of the table."""
    return arrow_type(plan.columns[column].type)


def output_schema(plan: RowPlan) -> pa.Schema:
    """The columns of the result."""
    return pa.schema(
        [
            pa.field(name, arrow_type(type))
            for name, type in zip(plan.output_names(), plan.output_types(), strict=True)
        ]
    )
