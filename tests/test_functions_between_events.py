"""Kernels of functions between events give what vectorised code gives of one event.

`f(IF(y.ok, x.v, x.v))` names two events, so a kernel computes it, and `f(x.v)` names one.
"""

from __future__ import annotations

import math
import random
import re
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.jit.kernels import compiling

import celc

_LIMITS = (0.0, -0.0, math.inf, -math.inf, math.nan, 127.5, 128.0, -128.5, -129.0, 32767.9, 1e13)
_POWERS = tuple(sign * 2.0**power for power in (31, 53, 63) for sign in (1, -1))


def _double(rng: random.Random) -> float:
    kind = rng.randrange(5)
    if kind == 0:
        return float(struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0])
    if kind == 1:
        return rng.randint(-(10 ** rng.randint(1, 17)), 10**17) / 10 ** rng.randint(0, 20)
    if kind == 2:
        return (rng.randint(-1000, 1000) + 0.5) / 10 ** rng.randint(0, 3)
    return rng.choice((*_LIMITS, *_POWERS)) if kind == 3 else rng.gauss(0, 100)


def _float(rng: random.Random) -> float:
    return float(np.float32(np.clip(_double(rng), -3e38, 3e38)))


def _whole(bits: int) -> Callable[[random.Random], int]:
    most = 2 ** (bits - 1) - 1

    def drawn(rng: random.Random) -> int:
        small = min(most, 200)
        known = (most, -most - 1, 0, 5, 50, -50)
        return rng.choice((rng.randint(-most - 1, most), rng.randint(-small, small), *known))

    return drawn


def _decimal(digits: int, scale: int) -> Callable[[random.Random], Decimal]:
    def drawn(rng: random.Random) -> Decimal:
        units = rng.randint(-(10 ** rng.randint(0, digits)) + 1, 10 ** rng.randint(0, digits) - 1)
        return Decimal((units < 0, tuple(map(int, str(abs(units)))), -scale))

    return drawn


def _time(rng: random.Random) -> int:
    most = 2**63 - 1
    limits = (most, -most - 1, -1, 0, rng.randint(-(10**5), 10**5) * 86_400_000_000)
    return rng.choice((rng.randint(-most, most), rng.randint(0, 2 * 10**15), *limits))


def _day(rng: random.Random) -> int:
    last = 106_751_991  # a midnight beyond it is no TIMESTAMP
    days = (rng.randint(-(2**31), 2**31 - 1), rng.randint(-40_000, 40_000))
    return rng.choice((*days, rng.randint(-800_000, 2_000_000), last, last + 1, -last, -last - 1))


_ATTRIBUTES: dict[str, tuple[str, pa.DataType, Callable[[random.Random], Any]]] = {
    "v": ("DOUBLE", pa.float64(), _double),
    "f": ("FLOAT", pa.float32(), _float),
    "y": ("BYTE", pa.int8(), _whole(8)),
    "h": ("SHORT", pa.int16(), _whole(16)),
    "i": ("INT", pa.int32(), _whole(32)),
    "k": ("LONG", pa.int64(), _whole(64)),
    "d": ("DECIMAL(10, 2)", pa.decimal128(10, 2), _decimal(10, 2)),
    "e": ("DECIMAL(38, 10)", pa.decimal128(38, 10), _decimal(38, 10)),
    "g": ("DECIMAL(38, 30)", pa.decimal128(38, 30), _decimal(38, 30)),
    "ok": ("BOOLEAN", pa.bool_(), lambda rng: rng.random() < 0.5),
    "ts": ("TIMESTAMP", pa.timestamp("us", "UTC"), _time),
    "nt": ("TIMESTAMP_NTZ", pa.timestamp("us"), _time),
    "dt": ("DATE", pa.date32(), _day),
}
_NUMBERS = ("v", "f", "y", "h", "i", "k", "d", "e", "g")
_DECIMALS = ("d", "e", "g")
_WANTED = ("BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "BOOLEAN", "TIMESTAMP")
_WANTED_DECIMALS = ("DECIMAL(10, 2)", "DECIMAL(18, 0)", "DECIMAL(38, 10)", "DECIMAL(38, 38)")


def _calls() -> Iterator[str]:
    """All functions of numbers and times that have kernels of their own, `{v}` for a value."""
    for name in (*_NUMBERS, "ok", "ts"):
        for wanted in (*_WANTED, *_WANTED_DECIMALS):
            if (name == "ok" and wanted == "TIMESTAMP") or (name == "ts" and wanted == "BOOLEAN"):
                continue
            if not (name in _DECIMALS and wanted in ("FLOAT", "TIMESTAMP")):
                yield f"CAST({{{name}}} AS {wanted})"
                yield f"TRY_CAST({{{name}}} AS {wanted})"
    yield from ("CAST({ts} AS DATE)", "CAST({nt} AS DATE)", "CAST({ts} AS TIMESTAMP_NTZ)")
    yield from ("CAST({nt} AS TIMESTAMP)", "CAST({dt} AS TIMESTAMP)", "CAST({dt} AS TIMESTAMP_NTZ)")
    for name in _NUMBERS:
        yield from (f"ROUND({{{name}}}, {digits})" for digits in (-18, -5, -1, 0, 1, 2, 7, 20))
        yield f"ISNAN({{{name}}})"
    for part in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "DAYOFWEEK"):
        yield from (f"{part}({{{name}}})" for name in ("ts", "nt", "dt"))
    for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "MILLISECOND"):
        yield from (f"DATE_TRUNC('{unit}', {{{name}}})" for name in ("ts", "dt"))


def _events(rows: int) -> pa.Table:
    rng = random.Random(0)
    columns: dict[str, pa.Array] = {"type": pa.array(["A"] * rows + ["B"])}
    for name, (_, type, drawn) in _ATTRIBUTES.items():
        values = [None if rng.random() < 0.05 else drawn(rng) for _ in range(rows)]
        stored = {"ts": pa.int64(), "nt": pa.int64(), "dt": pa.int32()}.get(name, type)
        columns[name] = pa.array([*values, None], stored).cast(type)
    return pa.table(columns)


def _different(call: str) -> str:
    one = re.sub(r"\{(\w+)\}", r"a.\1", call)
    several = re.sub(r"\{(\w+)\}", r"IF(b.ok, a.\1, a.\1)", call)
    return f"IF({several} IS DISTINCT FROM {one}, 1e0, 0e0)"


def _found(calls: list[str], events: pa.Table) -> int:
    """How many events have another value of some of the calls."""
    attributes = ", ".join(f"{name}: {type}" for name, (type, *_) in _ATTRIBUTES.items())
    query = celc.compile(
        f"CREATE STREAM S {{ EVENT A {{ {attributes} }}, EVENT B {{ {attributes} }} }}\n"
        f"SELECT * FROM S WHERE A AS a ; B AS b FILTER {' + '.join(map(_different, calls))} > 0"
    )
    return len(query.match_table(events))


def _check(calls: list[str], rows: int) -> None:
    events = _events(rows)
    for first in range(0, len(calls), 24):
        some = calls[first : first + 24]
        if _found(some, events):
            wrong = [call for call in some if _found([call], events)]
            raise AssertionError(f"kernels differ: {wrong}")


@pytest.mark.long
def test_kernels_are_vectorised_code() -> None:
    _check(list(_calls()), 60)


_PARTS = 16  # each compiles for about half a minute


@pytest.mark.long
@pytest.mark.parametrize("part", range(_PARTS))
def test_machine_code_is_vectorised_code(part: int) -> None:
    with compiling():
        _check(list(_calls())[part::_PARTS], 2000)
