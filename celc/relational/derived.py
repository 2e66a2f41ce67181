"""Derived columns → their expressions of Spark SQL, over the columns of the input."""

from celc.core.formula import Derived
from celc.relational.expressions import Writer
from celc.relational.functions import typed


def sql_of(derived: Derived, *, by_stream: bool) -> str:
    """The expression of a derived column. It has no table names. by_stream: types are distinguished
    by their stream as well."""
    writer = Writer("spark", by_stream=by_stream, alone="")
    return typed(derived.value, writer).sql("spark")
