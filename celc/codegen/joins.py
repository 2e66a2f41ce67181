"""A query as joins → its part of a module."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from celc.codegen.escape import literal_lines, string_literal, string_tuple, tuple_text
from celc.codegen.imports import Imports
from celc.codegen.plan_arguments import PlanArgument
from celc.codegen.templates import TemplateView
from celc.core.formula import Query


@dataclass(frozen=True, slots=True)
class JoinsView(TemplateView):
    """The constant with the SQL of a query. `numbered` and `plain` are literals of lines."""

    template: ClassVar[str] = "joins"

    number: int
    numbered: tuple[str, ...]
    plain: tuple[str, ...]
    arguments: tuple[PlanArgument, ...]


def joins_literal(
    number: int, query: Query, text: str, imports: Imports
) -> tuple[str, tuple[TemplateView, ...]]:
    """The expression for a query as joins, and the part of the module before it. `text` is the text
    of the file."""
    # sqlglot takes longer to import than a query to compile, and `celc check` needs none of it.
    from celc.relational.joins import NotJoined, joins_of

    joined = joins_of(query)
    if isinstance(joined, NotJoined):
        line = text.count("\n", 0, joined.span.start) + 1
        why = f"why_not={string_literal(f'{joined.what} (line {line})')}"
        return imports.call("Joins", why), ()
    imports.use("Joins")
    arguments = (
        PlanArgument("place", string_literal(joined.place)),
        PlanArgument("time", string_literal(joined.time)),
        PlanArgument("measure", string_literal(joined.measure)),
        PlanArgument("keys", string_tuple(joined.keys)),
        PlanArgument("unit", string_literal(joined.unit)),
        PlanArgument("attributes", string_tuple(joined.attributes)),
        PlanArgument("counts", str(joined.counts)),
        PlanArgument("bands", _bands_text(joined.bands)),
        PlanArgument("untied", _bands_text(joined.untied)),
        PlanArgument("reads", tuple_text(map(string_tuple, joined.reads))),
    )
    numbered, plain = tuple(literal_lines(joined.numbered)), tuple(literal_lines(joined.plain))
    return f"JOINS_{number}", (JoinsView(number, numbered, plain, arguments),)


def _bands_text(bands: Iterable[Iterable[tuple[str, ...]]]) -> str:
    return tuple_text(tuple_text(map(string_tuple, types)) for types in bands)
