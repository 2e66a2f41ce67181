"""The columns of a query of MATCH_RECOGNIZE, as schemas of Arrow."""

import pyarrow as pa

from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.plan.schemas import ARROW_TYPES


def input_schema(plan: RowPlan) -> pa.Schema:
    """The columns of the table that are read."""
    return pa.schema(
        [pa.field(plan.columns[n].name, arrow_type(plan, n)) for n in plan.columns_read]
    )


def arrow_type(plan: RowPlan, column: int) -> pa.DataType:
    """The Arrow type of a column of the table."""
    return ARROW_TYPES[plan.columns[column].type]


def output_schema(plan: RowPlan) -> pa.Schema:
    """The columns of the result."""
    return pa.schema(
        [
            pa.field(output.name, _arrow_type(type))
            for output, type in zip(plan.outputs, plan.output_types(), strict=True)
        ]
    )


def _arrow_type(type: str) -> pa.DataType:
    if type.startswith("ARRAY<"):
        return pa.list_(ARROW_TYPES[type[6:-1]])
    return ARROW_TYPES[type]
