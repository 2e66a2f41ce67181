"""Calls of functions between events or rows as text that Numba compiles.

Most are calls of one kernel, which the table of functions names. CAST and ROUND have one for each
kind of value, and DATE_TRUNC one for all units.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from celc_runtime.values.functions import FUNCTIONS, STEPS, UNITS

from celc.codegen.expressions import decimals
from celc.codegen.text.imports import Imports
from celc.core import formula as core

_Text: TypeAlias = Callable[[core.Expression], str]

_BITS = {
    core.DataType.BYTE: 8,
    core.DataType.SHORT: 16,
    core.DataType.INT: 32,
    core.DataType.LONG: 64,
}
_REAL = (core.DataType.FLOAT, core.DataType.DOUBLE)
_ABOVE_ZERO = ("LN", "LOG10")  # NULL of all other numbers
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1, "WEEK": 0}


def needs(node: core.Call, text: _Text, imports: Imports) -> Iterator[str]:
    """The truths without which the value of a call is NULL although no operand is."""
    if node.function in ("CAST", "TRY_CAST"):
        yield from _cast_needs(node, text(node.operands[0]), text, imports)
    elif node.function in _ABOVE_ZERO:
        (operand,) = node.operands
        yield f"(not ({text(operand)} <= 0))"
    elif node.function == "DATE_TRUNC":
        yield imports.call("can_truncate", *_of_unit(node, text))


def operation(node: core.Call, text: _Text, imports: Imports) -> str:
    """The value of a call where it is not NULL; DECIMALs have their own (`decimals`)."""
    match node.function:
        case "CAST" | "TRY_CAST":
            return _cast(node, text, imports)
        case "ROUND":
            return _rounded(node, text, imports)
        case "DATE_TRUNC":
            return imports.call("truncate", *_of_unit(node, text))
        case _:
            return _called(FUNCTIONS[node.function].kernel, map(text, node.operands), imports)


def _called(kernel: str, operands: Iterable[str], imports: Imports) -> str:
    """A call of a kernel, or of a function of NumPy (`np.sqrt`)."""
    if not kernel.startswith("np."):
        return imports.call(kernel, *operands)
    imports.use("np")
    return f"{kernel}({', '.join(operands)})"


def _of_unit(node: core.Call, text: _Text) -> tuple[str, str, str]:
    """A time, and the length of the unit of DATE_TRUNC in months and in microseconds."""
    unit, time = node.operands
    assert isinstance(unit, core.Constant)
    name = UNITS[str(unit.value).upper()]
    return text(time), str(_MONTHS.get(name, 0)), str(STEPS.get(name, 0))


def _rounded(node: core.Call, text: _Text, imports: Imports) -> str:
    value, digits = text(node.operands[0]), str(core.digits_of(node))
    if node.type in _BITS:
        return imports.call("round_whole", value, digits, str(_BITS[node.type]))
    found = imports.call("round_real", value, digits)
    return _as_float(found, imports) if node.type is core.DataType.FLOAT else found


def _as_float(value: str, imports: Imports) -> str:
    imports.use("np")
    return f"np.float32({value})"


# --- CAST and TRY_CAST ----------------------------------------------------------------------------


def _cast_needs(node: core.Call, value: str, text: _Text, imports: Imports) -> Iterator[str]:
    (operand,), tried = node.operands, node.function == "TRY_CAST"
    match operand.type, node.type:
        case core.DataType.DATE, _:
            yield imports.call("begins_at_time", value)
        case found, core.DataType.TIMESTAMP if found in _REAL:
            imports.use("np")
            yield f"np.isfinite({value})"
            if tried:
                yield f"(abs(np.float64({value}) * 1e6) <= {2.0**63!r})"
        case found, wanted if tried and wanted in _BITS:
            yield from _fits(operand, _BITS[wanted], value, text, imports)


def _fits(
    operand: core.Expression, bits: int, value: str, text: _Text, imports: Imports
) -> Iterator[str]:
    """The test whether the operand, without its decimals, fits into a whole number of `bits`."""
    found = operand.type
    if isinstance(found, core.DecimalType):
        if bits == 64:
            wide = decimals.as_pair(operand, text, imports)
            yield imports.call("decimal_fits", wide, str(found.scale))
            return
        # Spark asks the nearest DOUBLE.
        value = decimals.as_double(operand, text, imports)
        yield imports.call("real_fits", value, str(bits))
    elif found in _REAL:
        yield imports.call("real_fits", value, str(bits))
    elif found is core.DataType.TIMESTAMP and bits < 64:
        yield imports.call("whole_fits", imports.call("seconds_of", value), str(bits))
    elif _BITS.get(found, 0) > bits:
        yield imports.call("whole_fits", value, str(bits))


def _cast(node: core.Call, text: _Text, imports: Imports) -> str:
    (operand,) = node.operands
    found, wanted, value = operand.type, node.type, text(operand)
    if wanted in _BITS:
        return _to_whole(node, value, text, imports)
    if wanted is core.DataType.BOOLEAN:
        if isinstance(found, core.DecimalType):
            return f"({value} != {decimals.constant(0, found, imports)})"
        return f"({value} != 0)"
    if wanted in _REAL:
        if found is core.DataType.TIMESTAMP:
            value = f"({value} / 1000000.0)"
        imports.use("np")
        return f"np.float{32 if wanted is core.DataType.FLOAT else 64}({value})"
    if found in _REAL:
        return imports.call("real_to_whole", f"(np.float64({value}) * 1e6)", "64")
    if found in _BITS:
        return imports.call("whole_to_time", value)
    if found is core.DataType.DATE:
        return imports.call("days_to_microseconds", value)
    if wanted is core.DataType.DATE:
        return imports.call("day_of", value)
    return value  # a TIMESTAMP, and what clocks show of it in UTC


def _to_whole(node: core.Call, value: str, text: _Text, imports: Imports) -> str:
    (operand,) = node.operands
    found, bits = operand.type, _BITS[node.type]
    exact = node.function == "TRY_CAST"
    if isinstance(found, core.DecimalType) and exact and bits < 64:
        value = decimals.as_double(operand, text, imports)
        return imports.call("real_to_whole", value, "64")
    if found in _REAL:
        value = imports.call("real_to_whole", value, str(max(bits, 32)))
        known = max(bits, 32)
    elif isinstance(found, core.DecimalType):
        wide = decimals.as_pair(operand, text, imports)
        value, known = imports.call("decimal_to_whole", wide, str(found.scale)), 64
    elif found is core.DataType.TIMESTAMP:
        value, known = imports.call("seconds_of", value), 64
    else:
        known = _BITS.get(found, 1)
    if bits >= known or exact:
        imports.use("np")
        return f"np.int64({value})"
    if bits == 32:
        return imports.call("wrap_int", value)
    return imports.call("wrap_narrow", value, str(1 << (bits - 1)))
