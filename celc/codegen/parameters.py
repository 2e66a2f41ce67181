"""The parameter set of a query as a constructor call in a module's plan."""

from __future__ import annotations

from typing import assert_never

from celc.codegen.escape import literal, string_literal, string_tuple, tuple_text
from celc.codegen.imports import Imports
from celc.core import formula as core
from celc.plan.concerns import Concern, Concerns, OfBoth, OfEvent, OfRow, Test


def columns_added(parameters: core.Parameters | None) -> frozenset[str]:
    """The columns of events that come from the parameter table, and not from the input."""
    if parameters is None:
        return frozenset()
    values = {column for column, _ in parameters.columns}
    patterns = {one.column for one in parameters.patterns}
    fixed = {parameters.number, f"{parameters.number}pos"}
    return frozenset(values | patterns | fixed)


def parameters_call(parameters: core.Parameters, concerns: Concerns, imports: Imports) -> str:
    """The set, and the rows that an event concerns."""
    attributes = (
        imports.call("Parameter", string_literal(one.name), string_literal(one.type.value))
        for one in parameters.attributes
    )
    fields = [
        string_literal(parameters.name),
        tuple_text(attributes),
        string_tuple(parameters.shown),
        tuple_text(map(string_tuple, parameters.columns)),
        string_literal(parameters.number),
    ]
    if parameters.patterns:
        patterns = (
            imports.call(
                "Pattern",
                *map(string_literal, (one.column, one.operator, one.attribute, one.parameter)),
            )
            for one in parameters.patterns
        )
        fields.append(f"patterns={tuple_text(patterns)}")
    if parameters.position is not None:
        fields.append(f"position={string_literal(parameters.position)}")
    if parameters.row_by_row:
        fields.append("row_by_row=True")
    if parameters.consume_by != "NONE":
        fields.append(f"consume_by={string_literal(parameters.consume_by)}")
    if concerns.of_types is None:
        fields.append(f"why={string_literal(concerns.why)}")
    else:
        of_types = (_concern(one, imports) for one in concerns.of_types)
        fields.append(f"concerns={tuple_text(of_types)}")
    return imports.call("Parameters", *fields)


def _concern(concern: Concern, imports: Imports) -> str:
    ways = [
        tuple_text(tuple_text(_test(test, imports) for test in clause) for clause in way)
        for way in concern.ways
    ]
    names = map(string_literal, (concern.type.stream, concern.type.name))
    return imports.call("Concern", *names, *([tuple_text(ways)] if ways else []))


def _test(test: Test, imports: Imports) -> str:
    match test:
        case OfEvent(operator, name, type, values):
            kind = "OfEvent"
        case OfRow(operator, name, type, values):
            kind = "OfRow"
        case OfBoth(operator, attribute, parameter, type):
            texts = map(string_literal, (operator, attribute, parameter, type.value))
            return imports.call("OfBoth", *texts)
        case _:
            assert_never(test)
    operands = [tuple_text(map(literal, values))] if values else []
    texts = map(string_literal, (operator, name, type.value))
    return imports.call(kind, *texts, *operands)
