"""Queries made for the tests of the verifier, and the representations that passes make of them."""

from __future__ import annotations

from functools import cache
from typing import Any

from celc.core.formula import AttributeValue, DataType
from celc.diagnostics.source import Source, Span
from celc.driver.pipeline import Stages, compile_source
from celc.options import Options

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, value: DOUBLE, name: STRING }, EVENT B { id: INT, value: DOUBLE },
  EVENT C { id: INT, value: DOUBLE }
}
"""


def source_of(body: str) -> Source:
    """The text of a query, from its items on, with declarations before it."""
    return Source("q.cel", f"{_DECLARED}SELECT {body}")


@cache
def stages_of(body: str) -> Stages:
    """All stages of the compilation of a query, which is compiled once."""
    (stages,) = compile_source(source_of(body), Options()).queries
    return stages


def invariants_of(violations: Any) -> set[str]:
    """The invariants that are broken."""
    return {violation.invariant for violation in violations}


PLAIN = "* FROM S WHERE (A FILTER A.value > 1.0) ; B ; C WITHIN 9 EVENTS"
SELECTED = "MAX * FROM S WHERE (A+ ; B)+ ; C WITHIN 9 EVENTS"


def value_of(label: str, attribute: str, type: DataType) -> AttributeValue:
    """The attribute of a label, as conditions name it."""
    return AttributeValue(label, attribute, type, Span(0, 1))
