"""The events that can change an answer, as constructor calls in a module's plan."""

from __future__ import annotations

from collections.abc import Iterable

from celc.codegen.escape import literal, string_literal, tuple_text
from celc.codegen.imports import Imports
from celc.plan.relevance import AttributeTest, RelevantEvents


def relevant_literal(events: Iterable[RelevantEvents], imports: Imports) -> str:
    """The field `relevant` of a plan."""
    return tuple_text(_relevant(of_type, imports) for of_type in events)


def _relevant(events: RelevantEvents, imports: Imports) -> str:
    ways = [
        tuple_text(tuple_text(_test(test, imports) for test in clause) for clause in way)
        for way in events.ways
    ]
    names = map(string_literal, (events.type.stream, events.type.name))
    return imports.call("Relevant", *names, *([tuple_text(ways)] if ways else []))


def _test(test: AttributeTest, imports: Imports) -> str:
    names = map(string_literal, (test.operator, test.attribute, test.type.value))
    values = [tuple_text(map(literal, test.values))] if test.values else []
    return imports.call("AttributeTest", *names, *values)
