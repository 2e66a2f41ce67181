"""Syntax trees and core formulas as text. A node is one line, or its parts stand below it."""

from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from typing import Any

from celc.core import formula as core
from celc.diagnostics.source import Span, visible
from celc.parse import syntax

_WIDTH = 100


def tree_text(node: Any, *, without: tuple[str, ...] = ()) -> str:
    """A node of the syntax tree or of core CEL, without its places in the text.

    A part that is not a node is named where the name says more than the value, as in `contiguous`
    and `negated`. `without` names parts to leave out.
    """
    return "".join(f"{visible(line)}\n" for line in _lines(node, "", without))


def _lines(value: Any, indent: str, without: tuple[str, ...] = ()) -> Iterator[str]:
    text = _inline(value, without)
    parts = [part for name, part in _parts(value) if name not in without and _is_tree(part)]
    if len(indent) + len(text) <= _WIDTH or not parts:
        yield f"{indent}{text}"
        return
    plain = [
        text
        for name, part in _parts(value)
        if name not in without and not _is_tree(part)
        for text in [_named(name, part)]
        if text
    ]
    yield f"{indent}{type(value).__name__}" + (f"({', '.join(plain)})" if plain else "")
    for part in parts:
        for one in part if isinstance(part, tuple) else (part,):
            yield from _lines(one, indent + "  ")


def _parts(value: Any) -> list[tuple[str, Any]]:
    if not _is_node(value):
        return []
    named = ((one, getattr(value, one.name)) for one in fields(value))
    return [
        (one.name, part)
        for one, part in named
        if part is not None and part != one.default and not isinstance(part, Span)
    ]


def _is_node(value: Any) -> bool:
    """Whether a value is shown with parts of its own. Names and declared types are words."""
    if isinstance(
        value,
        syntax.Name
        | core.EventType
        | core.AttributeDeclaration
        | core.OwnAggregate
        | core.OwnFunction
        | Span,
    ):
        return False
    return type(value).__module__ in (syntax.__name__, core.__name__) and not isinstance(
        value, Enum
    )


def _is_tree(part: Any) -> bool:
    return _is_node(part) or (isinstance(part, tuple) and any(map(_is_node, part)))


def _inline(value: Any, without: tuple[str, ...] = ()) -> str:
    match value:
        case tuple():
            return f"[{', '.join(map(_inline, value))}]"
        case syntax.Name():
            return value.text
        case core.EventType():
            return f"{value.stream}>{value.name}"
        case core.OwnAggregate() | core.OwnFunction():
            return value.name
        case core.AttributeDeclaration():
            return f"{value.name}: {value.type.value}"
        case Enum():
            return str(value.value)
    if not _is_node(value):
        return repr(value)
    texts = [_named(name, part) for name, part in _parts(value) if name not in without]
    return f"{type(value).__name__}({', '.join(filter(None, texts))})"


def _named(name: str, part: Any) -> str:
    """A part of a node as text; empty for a value that most nodes have."""
    if part is False or part == ():
        return ""
    if name in ("least", "most", "distance"):
        return f"{name}={part}"
    if isinstance(part, bool) or (
        isinstance(part, tuple) and all(isinstance(one, bool) for one in part)
    ):
        return f"{name}={_inline(part)}" if part is not True else name
    if name in ("value", "values", "pattern", "text"):
        return _inline(part)
    if isinstance(part, tuple) and all(isinstance(one, str) for one in part):
        return f"[{', '.join(part)}]"
    return part if isinstance(part, str) else _inline(part)
