"""A query as joins → its part of a module."""

from typing import ClassVar

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.joins import Joins

from celc.codegen.text.emit import emit
from celc.codegen.text.imports import Imports
from celc.codegen.text.templates import TemplateView
from celc.core.formula import Query
from celc.plan.code import code


@frozen
class JoinsView(TemplateView):
    """The constant with the SQL of a query."""

    template: ClassVar[str] = "joins"

    number: int
    joins: str


def joins_literal(
    number: int, query: Query, text: str, imports: Imports
) -> tuple[Joins, tuple[TemplateView, ...]]:
    """The query as joins, and the part of the module before it. `text` is the text of the file."""
    # sqlglot takes longer to import than a query to compile, and `celc check` needs none of it.
    from celc.relational.joins import NotJoined, joins_of

    joined = joins_of(query)
    if isinstance(joined, NotJoined):
        line = text.count("\n", 0, joined.span.start) + 1
        return Joins(why_not=f"{joined.what} (line {line})"), ()
    found: Joins = code(f"JOINS_{number}", joined)
    return found, (JoinsView(number, emit(joined, imports)),)
