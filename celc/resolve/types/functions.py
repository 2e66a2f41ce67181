"""Calls of the functions in the table `celc_runtime.values.functions`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, Protocol
from zoneinfo import available_timezones

from celc_runtime.values.functions import (
    UNITS,
    Function,
    can_cast,
)
from celc_runtime.values.json_paths import read_path
from celc_runtime.values.types import ArrayType, MapType

from celc.core import formula as core
from celc.core.traversal import predicates_of
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import functions as messages
from celc.diagnostics.messages import types
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.types.between import folded, settled
from celc.resolve.types.conversions import (
    Misfit,
    convert,
    is_implicit,
    is_null,
    literal_type,
    meeting_type,
)
from celc.resolve.types.formats import by_format
from celc.resolve.types.regexes import has_group
from celc.resolve.types.site import Site
from celc.resolve.types.written import type_of_written

Resolve = Callable[[syntax.Expression, Site], core.Expression | None]


def function_call(
    function: Function, node: syntax.Call, site: Site, expression: Resolve
) -> core.Expression | None:
    """A call with its types; None after an error."""
    arguments = (node.argument, *node.more)
    if not has_number(function, len(arguments), node.span, site.found):
        return None
    operands: list[core.Expression] = []
    for argument in arguments:
        is_label = site.inside is None and site.declared is None
        if is_label and syntax.is_bare_name(argument):
            text = argument.attribute.text
            site.found.add(types.needs_number(function.name, text, argument.span))
            continue
        operand = expression(argument, site)
        if operand is not None:
            operands.append(operand)
    if len(operands) < len(arguments):
        return None
    found = called(function, operands, node.zone, node.span, site.found)
    if found is None:
        return None
    if function.name == "ROUND" and is_null(operands[-1]) and site.use == "filter":
        return core.Constant(None, found.type, node.span)
    return settled(found, site)


def has_number(function: Function, count: int, span: Span, found: Diagnostics) -> bool:
    """Whether a function takes `count` arguments; if not, this is reported."""
    least, most = function.arguments
    fits = least <= count and (most is None or count <= most)
    if not fits:
        found.add(messages.number_of_arguments(function, span))
    return fits


def called(
    function: Function,
    operands: list[core.Expression],
    zone: syntax.TextLiteral | None,
    span: Span,
    found: Diagnostics,
) -> core.Expression | None:
    """A call of as many operands as the function takes; None after an error."""
    if zone is not None and not function.zoned:
        found.add(messages.no_zone_here(function.name, zone.span))
        return None
    parameters = function.parameters
    fitting = [
        _fitting(function, parameters[min(number, len(parameters) - 1)], operand, found)
        for number, operand in enumerate(operands)
    ]
    taken = [one for one in fitting if one is not None]
    if len(taken) < len(fitting):
        return None
    if function.name in _CHOICES:
        return _choice(function, taken, span, found)
    if function.name == "NULLIF":
        return _null_if(taken, span, found)
    if function.name == "CONTAINS":
        return _contains(taken, span, found)
    first = taken[0]
    if function.name in ("FLOOR", "CEIL") and first.type is core.DataType.LONG:
        return first
    result = function.result
    type = (
        result
        if isinstance(result, core.DataType)
        else result([one.type for one in taken], [_literal(one) for one in taken])
    )
    named = zone_of(zone, found)
    if named is None:
        return None
    if zone is not None and any(map(_reads_clock, taken)):
        found.add(messages.zone_of_clock(function.name, zone.span))
        return None
    if function.name == "DATE_TRUNC" and not _names_unit(taken[0]):
        found.add(messages.unknown_unit(UNITS, taken[0].span))
        return None
    if function.name == "GET_JSON_OBJECT" and not _is_path(taken[1]):
        text = found.source.slice(taken[1].span)
        found.add(messages.json_path(text, taken[1].span))
        return None
    if function.name == "REGEXP_EXTRACT" and not has_group(taken, found):
        return None
    if function.spark == "CAST" and len(taken) > 1:
        assert isinstance(taken[1], core.Constant)
        return by_format(taken[0], taken[1], type, named, span, found)
    if function.spark == "CAST":
        return core.Call("CAST", tuple(taken), type, named, span)
    return core.Call(function.name, tuple(taken), type, named if function.zoned else None, span)


def _reads_clock(operand: core.Expression) -> bool:
    """Whether it is a TIMESTAMP_NTZ that is read as UTC without a CAST in the text."""
    if not isinstance(operand, core.Call) or operand.function != "CAST":
        return False
    return operand.operands[0].span == operand.span


def _literal(operand: core.Expression) -> object:
    return operand.value if isinstance(operand, core.Constant) else None


def _names_unit(operand: core.Expression) -> bool:
    return isinstance(operand, core.Constant) and str(operand.value).upper() in UNITS


def _is_path(operand: core.Expression) -> bool:
    return isinstance(operand, core.Constant) and (
        operand.value is None or read_path(str(operand.value)) is not None
    )


_CHOICES: dict[str, Literal["LEAST", "GREATEST", "COALESCE"]] = {
    "LEAST": "LEAST",
    "GREATEST": "GREATEST",
    "COALESCE": "COALESCE",
}


def _choice(
    function: Function, operands: list[core.Expression], span: Span, found: Diagnostics
) -> core.Expression | None:
    """LEAST, GREATEST and COALESCE, in the type that all operands have in common."""
    data_type = common(operands, span, found)
    if data_type is None:
        return None
    chosen = tuple(convert(one, data_type) for one in operands)
    return core.Choice(_CHOICES[function.name], chosen, data_type, span)


def _null_if(
    operands: list[core.Expression], span: Span, found: Diagnostics
) -> core.Expression | None:
    """NULLIF: CASE WHEN a = b THEN NULL ELSE a END."""
    data_type = common(operands, span, found)
    if data_type is None:
        return None
    value, other = operands
    value = convert(value, data_type) if is_null(value) else value
    equal = core.Comparison("=", convert(value, data_type), convert(other, data_type), span)
    null = core.Constant(None, value.type, span)
    return core.Conditional(((equal, null),), value, value.type, span)


def _contains(
    operands: list[core.Expression], span: Span, found: Diagnostics
) -> core.Expression | None:
    """CONTAINS of a text, an ARRAY or a MAP."""
    whole, value = operands
    wanted: core.DataType | Misfit | None = core.DataType.STRING
    if isinstance(whole.type, ArrayType):
        # An element, which a literal takes the type of.
        zero = core.Constant(0, core.DataType.INT, whole.span)
        element = core.Call("ELEMENT", (whole, zero), whole.type.element, None, whole.span)
        wanted = meeting_type([element, value]) if element.type.is_compared else None
    elif not isinstance(whole.type, MapType) and whole.type is not core.DataType.STRING:
        wanted = None
    takes = value.type is wanted or isinstance(whole.type, ArrayType) or is_null(value)
    if not isinstance(wanted, core.DataType) or not takes:
        found.add(messages.not_contained(whole.type, value.type.value, span))
        return None
    pair = (whole, convert(value, wanted))
    return core.Call("CONTAINS", pair, core.DataType.BOOLEAN, None, span)


def common(operands: list[core.Expression], span: Span, found: Diagnostics) -> core.DataType | None:
    """The type in which all operands are, NULL aside; None after an error."""
    data_type = meeting_type(operands)
    if isinstance(data_type, Misfit):
        other = operands[data_type.number].type.value
        # `CASE …`, `COALESCE(…)`: the text begins with the name.
        name = found.source.slice(span).partition("(")[0].split()[0].upper()
        found.add(messages.no_common_type(name, data_type.before.value, other, span))
        return None
    if data_type is None:
        found.add(types.two_nulls(span))
    return data_type


def zone_of(node: syntax.TextLiteral | None, found: Diagnostics) -> str | None:
    """The time zone of `AT TIME ZONE`, UTC without; None after an error."""
    if node is None:
        return "UTC"
    if node.value not in available_timezones():
        found.add(messages.unknown_zone(node.value, sorted(available_timezones()), node.span))
        return None
    return node.value


def conditional(
    node: syntax.Conditional, site: Site, expression: Resolve
) -> core.Expression | None:
    """IF and CASE."""
    asked = [site.judge(one, site) for one, _ in node.branches]
    values = [expression(one, site) for _, one in node.branches]
    null = core.Constant(None, core.DataType.BOOLEAN, node.span)
    values.append(null if node.otherwise is None else expression(node.otherwise, site))
    known = [one for one in values if one is not None]
    truths = [one for one in asked if one is not None]
    if len(known) < len(values) or len(truths) < len(asked):
        return None
    data_type = common(known, node.span, site.found)
    if data_type is None:
        return None
    *ways, otherwise = (convert(one, data_type) for one in known)
    if site.use != "select" and any(map(_asks_rlike, truths)):
        site.found.add(messages.rlike_in_value(node.span))
        return None
    branches = tuple(zip(truths, ways, strict=True))
    return settled(core.Conditional(branches, otherwise, data_type, node.span), site)


def _asks_rlike(truth: core.Truth) -> bool:
    """Whether a condition has RLIKE: Spark, which computes values of one event, has other regular
    expressions."""
    found = predicates_of(truth)
    return any(isinstance(one, core.PatternMatch) and one.operator == "RLIKE" for one in found)


def cast(node: syntax.Cast, site: Site, expression: Resolve) -> core.Expression | None:
    """`CAST(e AS T)`; NULL where the value has no counterpart."""
    found = cast_to(expression(node.operand, site), node, site.found)
    return None if found is None else settled(found, site)


class WrittenCast(Protocol):
    """A CAST or TRY_CAST in the text."""

    @property
    def type(self) -> syntax.WrittenType:
        """The type that is wanted."""

    @property
    def tried(self) -> bool:
        """Whether it is TRY_CAST."""

    @property
    def zone(self) -> syntax.TextLiteral | None:
        """That of AT TIME ZONE."""

    @property
    def span(self) -> Span:
        """Its place."""


def cast_to(
    operand: core.Expression | None, node: WrittenCast, found: Diagnostics
) -> core.Expression | None:
    """An operand in the type that a CAST names; None after an error, in the operand too."""
    wanted, zone = type_of_written(node.type, found), zone_of(node.zone, found)
    if operand is None or wanted is None or zone is None:
        return None
    if is_null(operand) or operand.type is wanted:
        return convert(operand, wanted)
    if isinstance(wanted, core.DecimalType):
        # A literal is the DECIMAL that it spells.
        operand = convert(operand, literal_type(operand))
    if is_implicit(operand.type, wanted):
        return convert(operand, wanted)
    if not can_cast(operand.type, wanted):
        found.add(messages.no_cast(operand.type.value, wanted.value, node.span))
        return None
    name = "TRY_CAST" if node.tried else "CAST"
    return core.Call(name, (operand,), wanted, zone, node.span)


def of_bytes(operand: core.Expression, site: Site) -> core.Expression | None:
    """A BINARY as a text that is equal where the bytes are; None after an error."""
    if operand.type is not core.DataType.BINARY:
        return operand
    if is_null(operand):
        return convert(operand, core.DataType.STRING)
    if isinstance(operand, core.Variable):
        site.found.add(messages.bytes_of_parameter(operand.span))
        return None
    if site.use == "filter" and isinstance(operand, core.Previous | core.Aggregate):
        assert operand.attribute is not None, "a count is no BINARY"
        span, binary = operand.span, core.DataType.BINARY
        one = of_bytes(core.AttributeValue(operand.label, operand.attribute, binary, span), site)
        assert isinstance(one, core.AttributeValue)
        return replace(operand, attribute=one.attribute, type=one.type)
    text = core.Call("HEX", (operand,), core.DataType.STRING, None, operand.span)
    return settled(text, site)


def _fitting(
    function: Function, parameter: str, operand: core.Expression, found: Diagnostics
) -> core.Expression | None:
    """The operand in a type that the parameter takes."""
    kind = parameter.rstrip("?*!")
    type = operand.type
    if is_null(operand):
        return convert(operand, _NULLS.get(kind, core.DataType.STRING))
    if "!" in parameter and not isinstance(operand, core.Constant):
        found.add(messages.not_a_literal(function, operand.span))
        return None
    if kind == "TEXT" and type is not core.DataType.STRING:
        return _as_text(function, operand, found)
    if kind == "TIME" and type is core.DataType.TIMESTAMP_NTZ:
        # What clocks show is read as UTC, and parts are those of UTC.
        return _cast_in_utc(operand, core.DataType.TIMESTAMP)
    wanted = _wanted(kind, type)
    if wanted is None:
        found.add(messages.wrong_argument(function, kind, type.value, operand.span))
        return None
    return convert(operand, wanted)


def _as_text(
    function: Function, operand: core.Expression, found: Diagnostics
) -> core.Expression | None:
    """Another value as CAST AS STRING writes it."""
    if not can_cast(operand.type, core.DataType.STRING):
        found.add(messages.wrong_argument(function, "TEXT", operand.type.value, operand.span))
        return None
    return _cast_in_utc(operand, core.DataType.STRING)


def _cast_in_utc(operand: core.Expression, type: core.DataType) -> core.Expression:
    return folded(core.Call("CAST", (operand,), type, "UTC", operand.span))


_NULLS = {
    "DOUBLE": core.DataType.DOUBLE,
    "ROUNDED": core.DataType.DOUBLE,
    "INT": core.DataType.INT,
    "NUMBER": core.DataType.INT,
    "TIME": core.DataType.TIMESTAMP,
}


def _wanted(kind: str, found: core.DataType) -> core.DataType | None:
    """The type in which a parameter takes a value of a type; None: it does not."""
    match kind:
        case "DOUBLE":
            return core.DataType.DOUBLE if found.is_numeric else None
        case "NUMBER":
            return found if found.is_numeric else None
        case "ROUNDED":
            if found in core.WHOLE_NUMBERS:
                return core.DataType.LONG
            is_real = found in (core.DataType.FLOAT, core.DataType.DOUBLE)
            return core.DataType.DOUBLE if is_real else (found if found.is_numeric else None)
        case "INT":
            return core.DataType.INT if found in core.WHOLE_NUMBERS[:3] else None
        case "HASHED":
            return found if can_cast(found, core.DataType.STRING) else None
        case "TIME":
            return core.DataType.TIMESTAMP if found in core.TIMES else None
        case "PARTS":
            return found if isinstance(found, ArrayType | MapType) else None
        case _:
            return found
