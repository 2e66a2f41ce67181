"""Parts of values: fields of STRUCTs, elements of ARRAYs and MAPs, and what texts of JSON hold.

A chain of parts (`x.a.b[0].c`) is one value: no column is made of what stands on the way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from celc_runtime.values.functions import FUNCTIONS
from celc_runtime.values.types import ArrayType, MapType, StructType

from celc.core import formula as core
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import functions as messages
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.types.between import settled
from celc.resolve.types.conversions import convert, is_null
from celc.resolve.types.functions import Resolve, function_call
from celc.resolve.types.site import Site

_INDEXES = core.WHOLE_NUMBERS[:3]  # the types of places in an ARRAY: those that an INT holds


def part(node: syntax.Part, site: Site, expression: Resolve) -> core.Expression | None:
    """A part of a value with its type; None after an error."""
    if isinstance(node, syntax.JsonValue):
        return _json(node, site, expression)
    found = _part(node, site, expression)
    return None if found is None else settled(found, site)


def _part(node: syntax.Expression, site: Site, expression: Resolve) -> core.Expression | None:
    match node:
        case syntax.Field():
            if _names_label(node.operand, site):
                text, span = node.name.text, node.span
                site.found.add(messages.label_in_brackets(text, span))
                return None
            whole = _part(node.operand, site, expression)
            return None if whole is None else field_of(whole, node.name, node.span, site.found)
        case syntax.Element():
            whole = _part(node.operand, site, expression)
            index = expression(node.index, site)
            if whole is None or index is None:
                return None
            return element_of(whole, index, node.span, site.found)
        case _:
            return expression(node, site)


def _names_label(operand: syntax.Expression, site: Site) -> bool:
    """Whether the name before a dot inside `x[…]` is no attribute, and so was meant as a label."""
    if site.inside is None or not syntax.is_bare_name(operand):
        return False
    return operand.attribute.text not in site.schema.types


class _Name(Protocol):
    """A name in the text."""

    @property
    def text(self) -> str:
        """What it says."""

    @property
    def span(self) -> Span:
        """Its place."""


def field_of(
    whole: core.Expression, name: _Name, span: Span, found: Diagnostics
) -> core.Expression | None:
    """`whole.name`; None after an error."""
    if not isinstance(whole.type, StructType):
        text = found.source.slice(whole.span)
        found.add(messages.no_fields(whole.type, text, name.text, span))
        return None
    types = dict(whole.type.fields)
    if name.text not in types:
        found.add(messages.unknown_field(name.text, types, name.span))
        return None
    named = core.Constant(name.text, core.DataType.STRING, name.span)
    return core.Call("FIELD", (whole, named), types[name.text], None, span)


def element_of(
    whole: core.Expression, index: core.Expression, span: Span, found: Diagnostics
) -> core.Expression | None:
    """`whole[index]`; None after an error."""
    match whole.type:
        case StructType() if isinstance(index, core.Constant) and isinstance(index.value, str):
            return field_of(whole, syntax.Name(index.value, index.span), span, found)
        case ArrayType(element=element):
            wanted = core.DataType.INT
            fits = index.type in _INDEXES
        case MapType(element=element):
            wanted = core.DataType.STRING
            fits = index.type is wanted
        case _:
            found.add(messages.no_elements(whole.type, found.source.slice(whole.span), span))
            return None
    if not fits and not is_null(index):
        found.add(messages.wrong_index(whole.type, index.type.value, index.span))
        return None
    return core.Call("ELEMENT", (whole, convert(index, wanted)), element, None, span)


# --- JSON -----------------------------------------------------------------------------------------


def _json(node: syntax.JsonValue, site: Site, expression: Resolve) -> core.Expression | None:
    """`e:b.c[0]` is GET_JSON_OBJECT(e, '$.b.c[0]')."""
    path = json_path(node.path, node.span, site.found)
    if path is None:
        return None
    function = FUNCTIONS["GET_JSON_OBJECT"]
    call = syntax.Call(
        syntax.Name(function.name, node.span),
        node.operand,
        False,
        node.span,
        more=(syntax.TextLiteral(path, node.span),),
    )
    return function_call(function, call, site, expression)


def json_path(steps: Sequence[str | int], span: Span, found: Diagnostics) -> str | None:
    """The path as Spark writes it; None after an error."""
    path = "$"
    for step in steps:
        text = _step(step)
        if text is None:
            found.add(messages.json_name(str(step), span))
            return None
        path += text
    return path


def _step(step: str | int) -> str | None:
    """A step of a path as Spark writes it; None: Spark cannot."""
    if isinstance(step, int):
        return f"[{step}]"
    if step in ("", "*") or step[0].isspace():
        return None
    if re.fullmatch(r"[^\W\d]\w*", step) or "'" in step:
        return None if {".", "["} & {*step} else f".{step}"
    return f"['{step}']"
