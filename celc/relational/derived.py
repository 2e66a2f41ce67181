"""Derived columns → their expressions of Spark SQL, over the columns of the input."""

from celc.core.formula import Derived, Query
from celc.relational.expressions import Writer
from celc.relational.functions import typed


def sql_of(query: Query, derived: Derived) -> str:
    """The expression of a derived column. It has no table names."""
    writer = Writer("spark", by_stream=query.needs_stream_column, alone="")
    return typed(derived.value, writer).sql("spark")
