"""Values of functions where they stand: constants, attributes of an event that are made before the
query reads it, and what kernels compute between events."""

from __future__ import annotations

from dataclasses import replace

from celc_runtime.values.functions import FUNCTIONS, LEAST_PLACES, MOST_PLACES

from celc.core import fold
from celc.core import formula as core
from celc.core.terms import joined_texts
from celc.core.traversal import nodes_of
from celc.diagnostics.messages import functions as messages
from celc.diagnostics.messages import parameters
from celc.resolve.types.derived import of_event
from celc.resolve.types.site import Site


def folded(value: core.Expression) -> core.Expression:
    """The value, which may be a constant."""
    if fold.is_constant(value):
        return core.Constant(fold.evaluate(value), value.type, value.span)
    return value


def settled(value: core.Expression, site: Site) -> core.Expression | None:
    """A value that may be a constant, or an attribute of an event that is made before the query
    reads it. None: it is neither, and cannot be calculated where it stands."""
    value = folded(value)
    if isinstance(value, core.Constant):
        return value
    if site.use != "filter":
        return value
    found = of_event(value, site)
    if found is value and isinstance(value, core.Call) and value.function == "CONCAT":
        return _joined(value, site)
    if found is value and not _is_calculated(value):
        _refuse(value, value, site)
        return None
    return never_null(found) if found is value else found


def _joined(value: core.Call, site: Site) -> core.Call | None:
    """Texts of several events one after another. Each piece is a constant, or a text of one event;
    None: one is neither, or is of a parameter set, which is reported."""
    found = [of_event(one, site) for one in joined_texts(value)]
    for one in found:
        if not isinstance(
            one, core.Constant | core.AttributeValue | core.Previous | core.Aggregate
        ):
            _refuse(one, value, site)
            return None
    return replace(value, operands=tuple(found))


def _refuse(value: core.Expression, whole: core.Expression, site: Site) -> None:
    """Report a value that is of no single event, in a `whole` function."""
    if any(isinstance(node, core.Variable) for node in nodes_of(value)):
        text = site.found.source.slice(whole.span)
        site.found.add(parameters.function_of_set(text, whole.span))
        return
    site.found.add(messages.between_events(_computed_by(value), value.span))


def never_null(value: core.Expression) -> core.Expression:
    """A value between events or rows. ISNAN is FALSE of NULL, but its code is asked of no NULL."""
    if not isinstance(value, core.Call) or value.function != "ISNAN":
        return value
    false = core.Constant(False, core.DataType.BOOLEAN, value.span)
    return core.Choice("COALESCE", (value, false), core.DataType.BOOLEAN, value.span)


def _computed_by(value: core.Expression) -> str:
    """What computes a value, in words."""
    match value:
        case core.Call(function="ELEMENT"):
            return "[…]"
        case core.Call(function="FIELD", operands=(_, core.Constant(value=name))):
            return f".{name}"
        case core.Call() | core.Choice():
            return value.function
        case _:
            return "CASE"


def _is_calculated(value: core.Expression) -> bool:
    """Whether kernels calculate a value that compares events."""
    if value.type is core.DataType.STRING:
        return False
    return not isinstance(value, core.Call) or has_kernel(value)


def has_kernel(call: core.Call) -> bool:
    """Whether there is code for a function between events, or rows: of numbers, BOOLEANs and times
    in UTC."""
    types = [call.type, *(one.type for one in call.operands)]
    if call.function == "DATE_TRUNC":
        types.remove(core.DataType.STRING)  # the unit
    if core.DataType.STRING in types or call.zone not in (None, "UTC"):
        return False
    if call.function in ("CAST", "TRY_CAST"):
        from_decimal = isinstance(call.operands[0].type, core.DecimalType)
        return not (from_decimal and call.type in (core.DataType.FLOAT, core.DataType.TIMESTAMP))
    if call.function == "ROUND" and call.type in (core.DataType.FLOAT, core.DataType.DOUBLE):
        return LEAST_PLACES <= core.digits_of(call) <= MOST_PLACES
    if isinstance(call.type, core.DecimalType):
        return call.function in core.ROUNDINGS
    return call.function in FUNCTIONS and bool(FUNCTIONS[call.function].kernel)
