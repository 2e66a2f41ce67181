"""Operations on DECIMALs against Python's `decimal`, and machine code against Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pytest
from celc_runtime.engine.values import decimal_sets, decimals
from celc_runtime.engine.values import decimals_in_python as plain
from celc_runtime.jit.kernels import compiling
from celc_runtime.values.decimals import result_type
from celc_runtime.values.types import DecimalType, decimal_of

EXACT = Context(prec=400, rounding=ROUND_HALF_UP)  # digits: enough for exact products


def _type(rng: random.Random) -> DecimalType:
    """A random DECIMAL type."""
    precision = rng.randint(1, 38)
    return decimal_of(precision, rng.randint(0, precision))


def _units(rng: random.Random, type: DecimalType) -> int:
    """A random value of a type as a whole number; often at a limit, or at a tie of rounding."""
    most = 10**type.precision - 1
    kind = rng.random()
    if kind < 0.2:
        size = rng.choice((0, most, 1, 10 ** rng.randrange(type.precision)))
    elif kind < 0.3:
        size = 5 * 10 ** rng.randrange(type.precision)
    else:
        size = rng.randrange(10 ** rng.randint(1, type.precision))
    return min(size, most) * rng.choice((1, -1))


def _fitted(value: Decimal, type: DecimalType) -> int | None:
    """An exact value, rounded to a type; None if it has too many digits."""
    units = int(EXACT.quantize(value, Decimal(f"1e-{type.scale}")).scaleb(type.scale, EXACT))
    return units if abs(units) < 10**type.precision else None


def _pair(units: int) -> tuple[np.int64, np.uint64]:
    """A whole number as (high word, low word), the form of kernels."""
    return np.int64(units >> 64), np.uint64(units & (2**64 - 1))


def _back(pair: Any) -> int | None:
    """The whole number of a pair; None for NULL."""
    if not plain.is_decimal(pair):
        return None
    return int(pair[0]) << 64 | int(pair[1])


def _operations(
    rng: random.Random, of: Callable[[str], Any]
) -> Iterator[tuple[str, int | float | None, int | float | None]]:
    """(a text, the result, the right result) of each kind of operation on two random values.

    of: the function with a name, in machine code or in Python.
    """
    one, other = _type(rng), _type(rng)
    a, b = _units(rng, one), _units(rng, other)
    x, y = Decimal(f"{a}e-{one.scale}"), Decimal(f"{b}e-{other.scale}")
    left, right = _pair(a), _pair(b)
    scale = max(one.scale, other.scale)
    ups = (scale - one.scale, scale - other.scale)
    exact = {"+": EXACT.add(x, y), "-": EXACT.subtract(x, y), "*": EXACT.multiply(x, y)}
    if b:
        exact["/"] = EXACT.divide(x, y)
        exact["%"] = EXACT.remainder(x, y)
    for operator in ("+", "-", "*", "/", "%"):
        type = result_type(operator, one, other)
        digits = type.precision
        match operator:
            case "+" | "-":
                name = "add_decimals" if operator == "+" else "subtract_decimals"
                found = of(name)(left, right, *ups, scale - type.scale, digits)
            case "*":
                down = one.scale + other.scale - type.scale
                found = of("multiply_decimals")(left, right, down, digits)
            case "/":
                up = type.scale + other.scale - one.scale
                found = of("divide_decimals")(left, right, up, digits)
            case _:
                found = of("remainder_decimals")(left, right, *ups)
        wanted = _fitted(exact[operator], type) if operator in exact else None
        yield f"{x} {operator} {y}", _back(found), wanted
    power = other.scale - one.scale
    found = of("rescale_decimal")(left, power, other.precision)
    yield f"{x} as {other.value}", _back(found), _fitted(x, other)
    yield f"-({x})", _back(of("negate_decimal")(left)), -a
    yield f"ABS({x})", _back(of("absolute_decimal")(left)), abs(a)
    for name, rounding in (("floor", ROUND_FLOOR), ("ceil", ROUND_CEILING)):
        wanted = int(x.to_integral_value(rounding, EXACT))
        yield f"{name}({x})", _back(of(f"{name}_decimal")(left, one.scale)), wanted
    yield f"DOUBLE({x})", float(of("decimal_to_double")(left, one.scale)), float(x)
    yield f"{x} < {y}", left < right, a < b


def test_operations_are_those_of_decimal() -> None:
    rng = random.Random(0)
    for _ in range(10_000):
        for what, found, wanted in _operations(rng, lambda name: getattr(plain, name)):
            assert found == wanted, what


def test_machine_code_is_the_same() -> None:
    rng = random.Random(1)
    with compiling():
        assert decimals.decimal_to_double(_pair(0), 30) == 0.0
        for _ in range(200):
            for what, found, wanted in _operations(rng, lambda name: getattr(decimals, name)):
                assert found == wanted, what


@pytest.mark.parametrize("digits", [28, 38])
def test_sums_by_machine_code(digits: int) -> None:
    rng = random.Random(digits)
    narrow = np.array([rng.randrange(-(10**18), 10**18) for _ in range(200)], np.int64)
    units = [rng.randrange(-(10**digits), 10**digits) for _ in range(200)]
    pairs = np.zeros(200, [("low", np.uint64), ("high", np.int64)])
    pairs["low"] = [one & (2**64 - 1) for one in units]
    pairs["high"] = [one >> 64 for one in units]
    valid = np.array([rng.random() < 0.9 for _ in range(200)])
    with compiling():
        for count in (0, 1, 7, 200):
            events = np.array(sorted(rng.sample(range(200), count)), np.int64)
            for values, name in ((narrow, "sum_of_decimals"), (pairs, "sum_of_wide")):
                found = getattr(decimal_sets, name)(values, valid, events, digits)
                assert _back(found) == _back(getattr(plain, name)(values, valid, events, digits))
