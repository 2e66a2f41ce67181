"""Syntax trees for tests: parsed in one call, and written by hand without spans."""

from __future__ import annotations

from typing import Any

import pytest

from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.parse.parser import parse

# Spans do not count when trees are compared.
S = Span(0, 0)


def parsed(text: str) -> syntax.File:
    return parse(Source("q.cel", text))


def query(text: str) -> syntax.Query:
    (only,) = parsed(text).queries
    return only


def formula(text: str) -> syntax.Formula:
    return query(text).formula


def condition(text: str) -> syntax.Condition:
    tree = formula(f"A FILTER {text}")
    assert isinstance(tree, syntax.Filter)
    return tree.condition


def value(text: str) -> syntax.Expression:
    tree = condition(f"{text} = 0")
    assert isinstance(tree, syntax.Comparison)
    return tree.left


def codes(text: str) -> list[str]:
    with pytest.raises(CelError) as caught:
        parsed(text)
    return [diagnostic.code for diagnostic in caught.value.diagnostics]


# --- trees by hand --------------------------------------------------------------------------------


def name(text: str) -> syntax.Name:
    return syntax.Name(text, S)


def names(*texts: str) -> tuple[syntax.Name, ...]:
    return tuple(name(text) for text in texts)


def event(type: str, stream: str | None = None) -> syntax.EventAtom:
    return syntax.EventAtom(name(stream) if stream else None, name(type), S)


A, B, C, D = event("A"), event("B"), event("C"), event("D")


def labelled(operand: syntax.Formula, label: str) -> syntax.As:
    return syntax.As(operand, name(label), S)


def repeated(operand: syntax.Formula, *, contiguous: bool = False) -> syntax.Iteration:
    return syntax.Iteration(operand, contiguous, S)


def sequence(first: syntax.Formula, *links: tuple[str, syntax.Formula]) -> syntax.Sequence:
    made = [syntax.Link(op[0] == ":", op.endswith("!"), right, S) for op, right in links]
    return syntax.Sequence(first, tuple(made), S)


def joined(first: syntax.Formula, *joints: tuple[Any, syntax.Formula]) -> syntax.Conjunction:
    return syntax.Conjunction(first, tuple(syntax.Joint(op, right, S) for op, right in joints), S)


def either(*operands: syntax.Formula) -> syntax.Disjunction:
    return syntax.Disjunction(operands, S)


def attribute(label: str | None, of: str) -> syntax.Attribute:
    return syntax.Attribute(name(label) if label else None, name(of), S)


def integer(number: int) -> syntax.IntegerLiteral:
    return syntax.IntegerLiteral(number, S)


def text_literal(text: str) -> syntax.TextLiteral:
    return syntax.TextLiteral(text, S)


def compared(
    left: syntax.Expression, operator: syntax.ComparisonOperator, right: syntax.Expression
) -> syntax.Comparison:
    return syntax.Comparison(operator, left, right, S)


def computed(left: syntax.Expression, operator: Any, right: syntax.Expression) -> syntax.Arithmetic:
    return syntax.Arithmetic(operator, left, right, S)


def called(function: str, argument: syntax.Expression, *, prior: bool = False) -> syntax.Call:
    return syntax.Call(name(function), argument, prior, S)


XA, YB = attribute("x", "a"), attribute("y", "b")
X1 = compared(attribute("x", "a"), "=", integer(1))
