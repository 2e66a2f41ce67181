"""Calls of the functions in the table `celc_runtime.values.functions`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal
from zoneinfo import available_timezones

from celc_runtime.values.functions import FUNCTIONS, UNITS, Function, can_cast

from celc.core import fold
from celc.core import formula as core
from celc.diagnostics.messages import functions as messages
from celc.diagnostics.messages import types
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.types.conversions import (
    Misfit,
    convert,
    is_implicit,
    is_null,
    literal_type,
    meeting_type,
)
from celc.resolve.types.derived import of_event
from celc.resolve.types.site import Site
from celc.resolve.types.written import type_of_written

Resolve = Callable[[syntax.Expression, Site], core.Expression | None]


def function_call(
    function: Function, node: syntax.Call, site: Site, expression: Resolve
) -> core.Expression | None:
    """A call with its types; None after an error."""
    arguments = (node.argument, *node.more)
    if not _has_number(function, len(arguments)):
        site.found.add(messages.number_of_arguments(function, node.span))
        return None
    operands: list[core.Expression] = []
    for number, argument in enumerate(arguments):
        is_label = site.inside is None and site.declared is None
        if is_label and syntax.is_bare_name(argument):
            text = argument.attribute.text
            site.found.add(types.needs_number(function.name, text, argument.span))
            continue
        operand = expression(argument, site)
        if operand is not None:
            parameter = function.parameters[min(number, len(function.parameters) - 1)]
            operand = _fitting(function, parameter, operand, site)
        if operand is not None:
            operands.append(operand)
    if len(operands) < len(arguments):
        return None
    if function.name in _CHOICES:
        return _choice(function, operands, node, site)
    if function.name == "NULLIF":
        return _null_if(operands, node, site)
    first = operands[0]
    if function.name in ("FLOOR", "CEIL") and first.type is core.DataType.LONG:
        return first
    result = function.result
    type = (
        result
        if isinstance(result, core.DataType)
        else result([one.type for one in operands], [_literal(one) for one in operands])
    )
    if function.name == "ROUND" and is_null(operands[-1]) and site.use == "filter":
        return core.Constant(None, type, node.span)
    zone = zone_of(node.zone, site)
    if zone is None:
        return None
    if node.zone is not None and any(map(_reads_clock, operands)):
        site.found.add(messages.zone_of_clock(function.name, node.zone.span))
        return None
    if node.zone is not None and not function.zoned:
        site.found.add(messages.no_zone_here(function.name, node.zone.span))
        return None
    if function.name == "DATE_TRUNC" and not _names_unit(operands[0]):
        site.found.add(messages.unknown_unit(UNITS, operands[0].span))
        return None
    if function.spark == "CAST":
        return settled(core.Call("CAST", tuple(operands), type, zone, node.span), site)
    zone = zone if function.zoned else None
    return settled(core.Call(function.name, tuple(operands), type, zone, node.span), site)


def _reads_clock(operand: core.Expression) -> bool:
    """Whether it is a TIMESTAMP_NTZ that is read as UTC without a CAST in the text."""
    if not isinstance(operand, core.Call) or operand.function != "CAST":
        return False
    return operand.operands[0].span == operand.span


def _literal(operand: core.Expression) -> object:
    return operand.value if isinstance(operand, core.Constant) else None


def _names_unit(operand: core.Expression) -> bool:
    return isinstance(operand, core.Constant) and str(operand.value).upper() in UNITS


_CHOICES: dict[str, Literal["LEAST", "GREATEST", "COALESCE"]] = {
    "LEAST": "LEAST",
    "GREATEST": "GREATEST",
    "COALESCE": "COALESCE",
}


def _choice(
    function: Function, operands: list[core.Expression], node: syntax.Call, site: Site
) -> core.Expression | None:
    """LEAST, GREATEST and COALESCE, in the type that all operands have in common."""
    data_type = common(operands, node.span, site)
    if data_type is None:
        return None
    chosen = tuple(convert(one, data_type) for one in operands)
    return settled(core.Choice(_CHOICES[function.name], chosen, data_type, node.span), site)


def _null_if(
    operands: list[core.Expression], node: syntax.Call, site: Site
) -> core.Expression | None:
    """NULLIF: CASE WHEN a = b THEN NULL ELSE a END."""
    data_type = common(operands, node.span, site)
    if data_type is None:
        return None
    value, other = operands
    value = convert(value, data_type) if is_null(value) else value
    equal = core.Comparison("=", convert(value, data_type), convert(other, data_type), node.span)
    null = core.Constant(None, value.type, node.span)
    return settled(core.Conditional(((equal, null),), value, value.type, node.span), site)


def common(operands: list[core.Expression], span: Span, site: Site) -> core.DataType | None:
    """The type in which all operands are, NULL aside; None after an error."""
    data_type = meeting_type(operands)
    if isinstance(data_type, Misfit):
        other = operands[data_type.number].type.value
        site.found.add(types.compared_types(data_type.before.value, other, span))
        return None
    if data_type is None:
        site.found.add(types.two_nulls(span))
    return data_type


def zone_of(node: syntax.TextLiteral | None, site: Site) -> str | None:
    """The time zone of `AT TIME ZONE`, UTC without; None after an error."""
    if node is None:
        return "UTC"
    if node.value not in available_timezones():
        site.found.add(messages.unknown_zone(node.value, sorted(available_timezones()), node.span))
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
    data_type = common(known, node.span, site)
    if data_type is None:
        return None
    *ways, otherwise = (convert(one, data_type) for one in known)
    branches = tuple(zip(truths, ways, strict=True))
    return settled(core.Conditional(branches, otherwise, data_type, node.span), site)


def cast(node: syntax.Cast, site: Site, expression: Resolve) -> core.Expression | None:
    """`CAST(e AS T)`; NULL where the value has no counterpart."""
    operand, wanted = expression(node.operand, site), type_of_written(node.type, site.found)
    zone = zone_of(node.zone, site)
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
        site.found.add(messages.no_cast(operand.type.value, wanted.value, node.span))
        return None
    name = "TRY_CAST" if node.tried else "CAST"
    return settled(core.Call(name, (operand,), wanted, zone, node.span), site)


def of_bytes(operand: core.Expression, site: Site) -> core.Expression | None:
    """A BINARY as a text that is equal where the bytes are; None after an error."""
    if operand.type is not core.DataType.BINARY:
        return operand
    if is_null(operand):
        return convert(operand, core.DataType.STRING)
    if site.use == "filter" and isinstance(operand, core.Previous | core.Aggregate):
        assert operand.attribute is not None, "a count is no BINARY"
        span, binary = operand.span, core.DataType.BINARY
        one = of_bytes(core.AttributeValue(operand.label, operand.attribute, binary, span), site)
        assert isinstance(one, core.AttributeValue)
        return replace(operand, attribute=one.attribute, type=one.type)
    text = core.Call("HEX", (operand,), core.DataType.STRING, None, operand.span)
    return settled(text, site)


def settled(value: core.Expression, site: Site) -> core.Expression | None:
    """A value that may be a constant, or an attribute of an event that is made before the query
    reads it. None: it is neither, and cannot be calculated where it stands."""
    if fold.is_constant(value):
        return core.Constant(fold.evaluate(value), value.type, value.span)
    if site.use != "filter":
        return value
    found = of_event(value, site)
    if found is value and not _has_kernel(value):
        name = value.function if isinstance(value, core.Call | core.Choice) else "CASE"
        site.found.add(messages.between_events(name, value.span))
        return None
    return found


def _has_kernel(value: core.Expression) -> bool:
    """Whether kernels calculate a value that compares events."""
    if value.type is core.DataType.STRING:
        return False
    if not isinstance(value, core.Call):
        return True
    if isinstance(value.type, core.DecimalType):
        return value.function in core.ROUNDINGS
    return value.function in FUNCTIONS and bool(FUNCTIONS[value.function].kernel)


def _has_number(function: Function, count: int) -> bool:
    least, most = function.arguments
    return least <= count and (most is None or count <= most)


def _fitting(
    function: Function, parameter: str, operand: core.Expression, site: Site
) -> core.Expression | None:
    """The operand in a type that the parameter takes."""
    kind = parameter.rstrip("?*!")
    found = operand.type
    if is_null(operand):
        return convert(operand, _NULLS.get(kind, core.DataType.STRING))
    if "!" in parameter and not isinstance(operand, core.Constant):
        site.found.add(messages.not_a_literal(function, operand.span))
        return None
    if kind == "TEXT" and found is not core.DataType.STRING:
        return _as_text(function, operand, site)
    if kind == "TIME" and found is core.DataType.TIMESTAMP_NTZ:
        # What clocks show is read as UTC, and parts are those of UTC.
        return _cast_in_utc(operand, core.DataType.TIMESTAMP)
    wanted = _wanted(kind, found)
    if wanted is None:
        site.found.add(messages.wrong_argument(function, kind, found.value, operand.span))
        return None
    return convert(operand, wanted)


def _as_text(function: Function, operand: core.Expression, site: Site) -> core.Expression | None:
    """Another value as CAST AS STRING writes it."""
    if not can_cast(operand.type, core.DataType.STRING):
        site.found.add(messages.wrong_argument(function, "TEXT", operand.type.value, operand.span))
        return None
    return _cast_in_utc(operand, core.DataType.STRING)


def _cast_in_utc(operand: core.Expression, type: core.DataType) -> core.Expression:
    found = core.Call("CAST", (operand,), type, "UTC", operand.span)
    if fold.is_constant(found):
        return core.Constant(fold.evaluate(found), type, operand.span)
    return found


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
        case _:
            return found
