"""Calls of the functions in the table `celc_runtime.values.functions`."""

from __future__ import annotations

from collections.abc import Callable

from celc_runtime.values.functions import FUNCTIONS, Function

from celc.core import fold
from celc.core import formula as core
from celc.diagnostics.messages import functions as messages
from celc.diagnostics.messages import types
from celc.parse import syntax
from celc.resolve.types.conversions import convert, is_null
from celc.resolve.types.derived import of_event
from celc.resolve.types.site import Site

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
        if site.inside is None and syntax.is_bare_name(argument):
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
    result = function.result
    type = (
        result
        if isinstance(result, core.DataType)
        else result([operand.type for operand in operands])
    )
    zone = "UTC" if function.zoned else None
    return settled(core.Call(function.name, tuple(operands), type, zone, node.span), site)


def settled(value: core.Expression, site: Site) -> core.Expression | None:
    """A value that may be a constant, or an attribute of an event that is made before the query
    reads it. None: it is neither, and cannot be calculated where it stands."""
    if fold.is_constant(value):
        return core.Constant(fold.evaluate(value), value.type, value.span)
    if site.use == "select":
        return value
    found = of_event(value, site)
    if found is value and not _has_kernel(value):
        name = value.function if isinstance(value, core.Call | core.Choice) else "CASE"
        site.found.add(messages.between_events(name, value.span))
        return None
    return found


def _has_kernel(value: core.Expression) -> bool:
    """Whether kernels calculate a value that compares events."""
    return isinstance(value, core.Call) and bool(FUNCTIONS[value.function].kernel)


def _has_number(function: Function, count: int) -> bool:
    parameters = function.parameters
    least = sum("?" not in one for one in parameters)
    return least <= count <= len(parameters) or (count >= least and parameters[-1].endswith("*"))


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
    wanted = _wanted(kind, found)
    if wanted is None:
        site.found.add(messages.wrong_argument(function, kind, found.value, operand.span))
        return None
    return convert(operand, wanted)


_NULLS = {
    "DOUBLE": core.DataType.DOUBLE,
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
        case "INT":
            return found if found is core.DataType.INT else None
        case "TIME":
            return core.DataType.TIMESTAMP if found in core.TIMES else None
        case "TEXT":
            return found if found is core.DataType.STRING else None
        case _:
            return found
