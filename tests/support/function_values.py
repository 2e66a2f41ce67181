"""Values of each type, and calls of functions on them, for tests that compare two computations."""

import datetime as dt
import random
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
from celc_runtime.arrow.vectors import column_of
from celc_runtime.plan.expressions import Column, Leaf, OfTypes
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.values.functions import FUNCTIONS, UNITS, Function, can_cast
from celc_runtime.values.types import ArrayType, MapType, StructType, type_of

from celc.codegen.expressions.trees import tree_of_event
from celc.core.formula import (
    WHOLE_NUMBERS,
    Arithmetic,
    AttributeValue,
    Call,
    Cast,
    Choice,
    Comparison,
    Conditional,
    Constant,
    DataType,
    DecimalType,
    Expression,
    decimal_of,
)
from celc.diagnostics.source import Span
from celc.resolve.types.conversions import arithmetic

ROWS = 10_000
ZONES = ("America/St_Johns", "Europe/Berlin")
CASTS = tuple(
    map(
        DataType.__dict__.__getitem__,
        (
            *("BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "STRING"),
            *("TIMESTAMP", "TIMESTAMP_NTZ", "DATE"),
        ),
    )
)
DECIMALS = tuple(
    decimal_of(*one)
    for one in ((10, 2), (5, 5), (3, 0), (18, 4), (19, 7), (38, 0), (38, 10), (38, 38))
)
"""Those of a word, of two, and at the ends."""
TYPES = (*CASTS, *DECIMALS)
"""The types that functions take, and that CAST knows."""

PARTS = tuple(
    map(
        type_of,
        (
            *("ARRAY<INT>", "ARRAY<DOUBLE>", "ARRAY<STRING>", "ARRAY<TIMESTAMP>", "ARRAY<FLOAT>"),
            *(
                "ARRAY<DECIMAL(5, 2)>",
                "ARRAY<ARRAY<INT>>",
                "MAP<STRING, INT>",
                "MAP<STRING, DOUBLE>",
            ),
            "ARRAY<STRUCT<c: INT, `d e`: STRING>>",
            "STRUCT<c: INT, `d e`: ARRAY<STRING>, m: MAP<STRING, STRUCT<c: DATE>>>",
        ),
    )
)
"""Types whose values have parts."""

_WHOLE = {"BYTE": 8, "SHORT": 16, "INT": 32, "LONG": 64}
_REALS = (
    *(0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 2.345, 0.1, 1e-3, 9.99e-4, 1e7, 9999999.0, 1e22, 1e23),
    *(float("nan"), float("inf"), float("-inf"), 5e-324, 2.2250738585072014e-308, 127.9, -128.9),
    *(1.7976931348623157e308, 3.4028234663852886e38, 1e-45, 2.0**31, 2.0**63, -(2.0**63), 1e300),
    *(2.0**31 - 1, -(2.0**31) - 1, 2.0**53, 1e15, 123456789.125, -33.33, 90.0, 180.0),
)
_TEXTS = (
    *("", " ", "abc", "ABC", "ß", "Straße", "İ", "ΑΣ", "ΑΣ Σ", "ǅ", "ﬀ", "😀a😀", "é", "e\u0301"),
    *(" a ", "\t12\n", " 12 ", "+7", "-0", ".", "+", "-.", ".5", "5.", "1.5", "1e3", "1E400", "x1"),
    *("127", "128", "32768", "2147483648", "9223372036854775807", "9223372036854775808", "007"),
    *("NaN", "nan", "+NaN", "Infinity", "-inf", "+Infinity", "INF", "1d", "1.5F", "0x1p3", "1_0"),
    *("t", "True", " yes ", "N", "0", "1", "no", "off", "٣", "1.000000059604644775390626"),
    *("2024", "2024-2", "2024-02-29", "2023-02-29", "2024-02-29 ", "2024-02-29T", "12024-01-01"),
    *("-0044-03-15", "+2024-01-01", "2024-01-01 x", "2024-1-1 1:2:3", "2024-01-01 24:00:00"),
    *("2024-01-01 12", "2024-01-01 12:30", "2024-01-01T12:30:15.1234567", "2024-01-01 12:30:15."),
    *("2024-01-01 12:30:15Z", "2024-01-01 12:30:15 Europe/Berlin", "2024-01-01 12:30:15+1:30"),
    *("2024-01-01 12:30:15-18:00", "2024-01-01 12:30:15+19:00", "2024-01-01 12:30:15 PST"),
    *("2024-01-01 12:30:15 UTC+2", "2024-01-01 12:30:15 XYZ", "2024-01-01 12:30+01:00", "12:30:15"),
    *(
        "T12:30",
        "2024-03-10 02:30:00",
        "2024-11-03 01:30:00",
        "2024-03-31 02:30:00.5",
        "1900-01-01",
    ),
    *("2024-10-27 02:30:00", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00", "300000-01-01"),
    *("a.b.c", "a,b", "%", "_", "\\", "'", "\x00", "1\x00", "null", "5 d", "1e", "--1", "1-1"),
    *("2024-01-01 12:30:15+0130", "2024-01-01 12:30:15GMT-3:30", "2024-01-01 12:30:15 +2", "2024-"),
    *("a\rb", "aa\n", "ab\u2028", "\x85a", "S\x0b-c", "a\r\n", "[]&", "aB\U0001f600"),
    "2024-01-01 12:30:15.5 America/New_York",
)
# The hours before and after clocks change in two zones, in microseconds.
_CHANGES = (1710052200, 1730608200, 1711846800, 1729990800, 1079236860, 1099189860)
_INSTANTS = (
    0,
    -1,
    1,
    2**63 - 10**12 * 90,
    -(2**63) + 10**12 * 90,
    -62135596800000000,
    253402300799999999,
    -2208988800000000,
    4102444800000000,
)


def values(type: DataType, rows: int = ROWS, seed: int = 0) -> pa.Array:
    """A column with NULLs, limits, special values and random ones."""
    draw = random.Random(f"{type.value}{seed}")
    if type in PARTS:
        return pa.array([_with_parts(type, draw) for _ in range(rows)], arrow_type(type.value))
    special = list(_special(type))
    drawn = (_drawn(type, draw) for _ in range(rows))
    mixed = [None, *special, *drawn][:rows]
    draw.shuffle(mixed)
    found = pa.array(mixed, _storage(type))
    return found.cast(arrow_type(type.value))


def _with_parts(type: DataType, draw: random.Random) -> Any:
    """A value of any type; NULL now and then."""
    if draw.random() < 0.1:
        return None
    length = draw.choice((0, 1, 1, 2, 3, 5))
    match type:
        case ArrayType(element=element):
            return [_with_parts(element, draw) for _ in range(length)]
        case MapType(element=element):
            keys = draw.sample(_KEYS, length)
            return [(key, _with_parts(element, draw)) for key in keys]
        case StructType(fields=fields):
            return {name: _with_parts(one, draw) for name, one in fields}
        case DecimalType(scale=scale):
            return Decimal(draw.randint(-3, 3) * 25).scaleb(-scale)
        case DataType.STRING:
            return draw.choice(_KEYS)
        case DataType.TIMESTAMP:
            return dt.datetime(2024, 1, draw.randint(1, 3), tzinfo=dt.UTC)
        case DataType.DATE:
            return dt.date(2024, 1, draw.randint(1, 3))
        case DataType.FLOAT | DataType.DOUBLE:
            return draw.choice((0.0, -0.0, 1.5, 2.0, float("nan"), float("inf")))
        case _:
            return draw.randint(-2, 4)


_KEYS = ("", "a", "b", "ß", "a b", "'", "k")


def _storage(type: DataType) -> pa.DataType:
    if type in (DataType.TIMESTAMP, DataType.TIMESTAMP_NTZ):
        return pa.int64()
    return pa.int32() if type is DataType.DATE else arrow_type(type.value)


def _special(type: DataType) -> Iterator[object]:
    if isinstance(type, DecimalType):
        most, one = 10**type.precision - 1, 10**type.scale
        near = (
            0,
            1,
            -1,
            5,
            15,
            25,
            -15,
            45,
            127,
            128,
            -128,
            -129,
            32768,
            2**31,
            2**63,
            -(2**63) - 1,
        )
        shifted = (0, 1, 49, 50, 51, 99)
        whole = (n * one + s * one // 100 for n in (*near, 9, 99, 1704067200) for s in shifted)
        ends = (most, -most, most - 1, most // 2, most // 2 + 1, *near, *whole)
        yield from (_decimal(units, type) for units in ends if abs(units) <= most)
        return
    match type.value:
        case "BOOLEAN":
            yield from (True, False)
        case "BYTE" | "SHORT" | "INT" | "LONG":
            half = 2 ** (_WHOLE[type.value] - 1)
            near = (-half, half - 1, 0, 1, -1, 5, 15, 25, -15, 45, -half + 1)
            yield from near
            yield from (n for n in (128, 255, 40000, 2**31, 2**40 + 7, 10**13) if n < half)
        case "FLOAT" | "DOUBLE":
            yield from _REALS
        case "STRING":
            yield from _TEXTS
        case "DATE":
            yield from (0, -1, 19782, -719162, 2932896, 2932897, -719163, 2**24, -(2**24))
        case _:
            yield from _INSTANTS


def _decimal(units: int, type: DecimalType) -> Decimal:
    return Decimal(f"{units}e-{type.scale}")


def _drawn(type: DataType, draw: random.Random) -> object:
    if isinstance(type, DecimalType):
        most = 10 ** draw.randint(1, type.precision) - 1
        return _decimal(draw.randint(-most, most), type)
    match type.value:
        case "BOOLEAN":
            return draw.random() < 0.5
        case "BYTE" | "SHORT" | "INT" | "LONG":
            half = 2 ** (draw.randint(2, _WHOLE[type.value]) - 1)
            return draw.randint(-half, half - 1)
        case "FLOAT" | "DOUBLE":
            return draw.choice(
                (
                    draw.uniform(-1, 1),
                    round(draw.uniform(-1000, 1000), draw.randint(0, 4)),
                    draw.gauss(0, 1) * 10.0 ** draw.randint(-37, 37),
                    float(draw.randint(-(10**6), 10**6)) / 8,
                )
            )
        case "STRING":
            return draw.choice((_text, _number_text, _time_text))(draw)
        case "DATE":
            return draw.randint(-60_000, 60_000)
        case _:
            near = draw.choice(_CHANGES) * 10**6 + draw.randint(-(10**10), 10**10)
            return draw.choice((near, draw.randint(-4 * 10**15, 4 * 10**15)))


_LETTERS = "abcABCzZ .-,ßİıΣςσéäÄǅŉ😀𝔄\u0301\u00a0\u2003\tȺ\r\n\u2028"


def _text(draw: random.Random) -> str:
    return "".join(draw.choices(_LETTERS, k=draw.randint(0, 9)))


def _number_text(draw: random.Random) -> str:
    long = _decimal(draw.randint(-(10**42), 10**42), decimal_of(38, draw.randint(0, 38)))
    plain = (draw.randint(-300, 300), draw.gauss(0, 10), draw.uniform(-3e9, 3e9))
    number = draw.choice((*plain, long))
    blank = draw.choice(("", "", " ", "\t"))
    return f"{blank}{number}{draw.choice(('', blank, 'x'))}"


def _time_text(draw: random.Random) -> str:
    day = f"{draw.randint(1890, 2036)}-{draw.randint(1, 12)}-{draw.randint(1, 31):02}"
    clock = f"{draw.randint(0, 24):02}:{draw.randint(0, 59):02}:{draw.randint(0, 60):02}"
    rest = draw.choice(("", "", ".5", ".123456789", "Z", "+02:00", " Asia/Kolkata", ".25-3:30"))
    return day + draw.choice(("", f" {clock}{rest}", f"T{clock}{rest}"))


# --- calls ----------------------------------------------------------------------------------------

_NOWHERE = Span(0, 0)
_PLACES = (-2, -1, 0, 1, 2, 5, 30, 224, 256, 384, 512)  # of digits, or of characters in a text
_PARTS = ("", "a", "ß", " ", "0", "Σ")


def columns_of(type: DataType, rows: int = ROWS) -> pa.Table:
    """Two columns of a type, a column of small numbers, and the number of each row."""
    draw = random.Random(rows)
    small = pa.array([draw.choice((None, *range(-4, 7))) for _ in range(rows)], pa.int32())
    first, second = values(type, rows), values(type, rows, seed=1)
    numbers = pa.array(range(rows), pa.int32())
    columns = {"row": numbers, "a": first, "b": second, "n": small}
    if isinstance(type, ArrayType | MapType):
        asked = [_with_parts(_asked(type), draw) for _ in range(rows)]
        columns["v"] = pa.array(asked, arrow_type(_asked(type).value))
    return pa.table(columns)


def _asked(type: ArrayType | MapType) -> DataType:
    """The type of what CONTAINS asks for."""
    return type.element if isinstance(type, ArrayType) else DataType.STRING


NO_CALLS = frozenset({"COALESCE", "LEAST", "GREATEST", "NULLIF", "TO_DATE", "TO_TIMESTAMP"})
"""Functions that become something else when names are resolved."""

_ALONE = frozenset({"SIZE", "CONTAINS", "GET_JSON_OBJECT", "REGEXP_EXTRACT", "DATE_TRUNC"})
"""Functions whose calls are made apart."""


REGEXES = (
    ("(a)", 1),
    (r"^(\w*)(\W)?", 2),
    (r"([^\s]+)\s*$", 1),
    (".+?b|(.)", 0),
    ("(.)+", 1),
    ("(?:(a)|(b)|[^-c])+", 1),
    (r"[\pL&&[]{1,2}?(\P{Lu}|\x{1F600})", 0),
    ("a{,x}|([]{}]+)", 0),
    (r"(ß|S)(?P<next>\S?)", 2),
)
"""Regular expressions that RE2 and Spark's library write differently, and groups of them."""


def calls_of(type: DataType) -> Iterator[Call]:
    """Calls of all functions that take a type, on columns of `columns_of`."""
    for function in FUNCTIONS.values():
        if function.name in NO_CALLS | _ALONE:
            continue
        for operands in _operands(function, type):
            for zone in ("UTC", *ZONES) if function.zoned else (None,):
                result = function.result
                found = result if isinstance(result, DataType) else result(*_known(operands))
                yield Call(function.name, operands, found, zone, _NOWHERE)
    if type is DataType.TIMESTAMP:
        yield from _truncations()
    if type is DataType.STRING:
        for part in (_column("b", type), *(_constant(one, type) for one in _PARTS)):
            yield _call("CONTAINS", DataType.BOOLEAN, _column("a", type), part)
        yield _call("GET_JSON_OBJECT", type, _column("a", type), _constant("$.b[0]", type))
        for regex, group in REGEXES:
            operands = _column("a", type), _constant(regex, type), _constant(group, DataType.INT)
            yield _call("REGEXP_EXTRACT", type, *operands)
    yield from _casts_of(type)


def values_of(type: DataType) -> Iterator[Expression]:
    """All that is computed from columns of a type: calls, choices, and arithmetic."""
    yield from calls_of(type)
    a, b, n = _column("a", type), _column("b", type), _column("n", DataType.INT)
    yield Choice("LEAST", (a, b), type, _NOWHERE)
    yield Choice("GREATEST", (a, b), type, _NOWHERE)
    yield Choice("COALESCE", (a, b), type, _NOWHERE)
    for operator in ("=", "!=", "<", ">="):
        asked = Comparison(operator, a, b, _NOWHERE)
        yield Conditional(((asked, a),), Constant(None, type, _NOWHERE), type, _NOWHERE)
    if type in (DataType.TIMESTAMP, DataType.TIMESTAMP_NTZ):
        yield from _with_durations(a, b)
    if not type.is_numeric:
        return
    for sign, other in product(("+", "-", "*", "/", "%"), (b, n)):
        found = arithmetic(sign, a, other, _NOWHERE)
        assert found is not None
        yield found
    if type is not DataType.DOUBLE:
        for name in ("SQRT", "SIGN", "ISNAN"):
            result = FUNCTIONS[name].result
            assert isinstance(result, DataType)
            yield Call(name, (Cast(a, DataType.DOUBLE, _NOWHERE),), result, None, _NOWHERE)


def _with_durations(a: Expression, b: Expression) -> Iterator[Expression]:
    """Times plus and minus a day, and those that are less than a day after others."""
    day = Constant(86_400_000_000, DataType.INTERVAL, _NOWHERE)
    later, earlier, passed = (
        arithmetic(sign, a, other, _NOWHERE) for sign, other in (("+", day), ("-", day), ("-", b))
    )
    assert later is not None
    assert earlier is not None
    assert passed is not None
    yield from (later, earlier)
    soon = Comparison("<", passed, day, _NOWHERE)
    yield Conditional(((soon, a),), Constant(None, a.type, _NOWHERE), a.type, _NOWHERE)


def on_one_machine(value: Expression, table: pa.Table) -> pa.Array:
    """What an expression is for each row of `columns_of`."""

    def leaf(tree: Leaf | OfTypes) -> pa.Array:
        assert isinstance(tree, Column)
        return table.column(tree.name).combine_chunks()

    return column_of(tree_of_event(value), value.type.value, leaf, len(table))


def _known(operands: tuple[Expression, ...]) -> tuple[list[DataType], list[object]]:
    """The types of operands, and the values of those that are literals."""
    constants = [one.value if isinstance(one, Constant) else None for one in operands]
    return [one.type for one in operands], constants


def _call(name: str, type: DataType, *operands: Expression) -> Call:
    return Call(name, operands, type, None, _NOWHERE)


def parts_of(type: DataType) -> Iterator[Call]:
    """Calls of all that is asked of a value with parts, on columns of `columns_of`."""
    whole = _column("a", type)
    if isinstance(type, ArrayType | MapType):
        yield _call("SIZE", DataType.INT, whole)
        asked = _asked(type)
        if asked.is_compared:
            yield _call("CONTAINS", DataType.BOOLEAN, whole, _column("v", asked))
    if isinstance(type, MapType):
        for key in (_column("v", DataType.STRING), *(_constant(k, DataType.STRING) for k in _KEYS)):
            yield _call("ELEMENT", type.element, whole, key)
    if isinstance(type, ArrayType):
        if type.element in (DataType.INT, DataType.FLOAT):
            wider = _constant(2.0, DataType.DOUBLE)
            yield _call("CONTAINS", DataType.BOOLEAN, whole, wider)
        for place in (*_PLACES, _column("n", DataType.INT), _last(whole)):
            index = _constant(place, DataType.INT) if isinstance(place, int) else place
            yield from _all_of(_call("ELEMENT", type.element, whole, index))
    yield from _fields_of(whole)


def _last(whole: Expression) -> Expression:
    size = _call("SIZE", DataType.INT, whole)
    one = _constant(1, DataType.INT)
    return Arithmetic("-", size, one, DataType.INT, _NOWHERE)


def _all_of(part: Call) -> Iterator[Call]:
    """A part, and what it has parts of."""
    yield part
    if isinstance(part.type, ArrayType):
        yield _call("SIZE", DataType.INT, part)
        yield _call("ELEMENT", part.type.element, part, _constant(1, DataType.INT))
    elif isinstance(part.type, MapType):
        value = _call("ELEMENT", part.type.element, part, _constant("a", DataType.STRING))
        yield from (value, *_fields_of(value))
    else:
        yield from _fields_of(part)


def _fields_of(whole: Expression) -> Iterator[Call]:
    if isinstance(whole.type, StructType):
        for name, type in whole.type.fields:
            named = _constant(name, DataType.STRING)
            yield from _all_of(_call("FIELD", type, whole, named))


_TAKES = {
    "DOUBLE": (DataType.DOUBLE,),
    "NUMBER": (*WHOLE_NUMBERS, DataType.FLOAT, DataType.DOUBLE, *DECIMALS),
    "ROUNDED": (DataType.DOUBLE, *DECIMALS),
    "TEXT": (DataType.STRING,),
    "TIME": (DataType.TIMESTAMP,),
}


def _operands(function: Function, type: DataType) -> Iterator[tuple[Expression, ...]]:
    if function.name == "HASH":
        both = _column("a", type), _column("b", type)
        yield both[:1]
        yield (*both, _constant("é1", DataType.STRING), _column("n", DataType.INT))
        return
    kinds = [one.rstrip("?*!") for one in function.parameters]
    if type not in _TAKES[kinds[0]]:
        return
    ways: list[list[Expression]] = [[_column("a", type)]]
    for parameter, kind in zip(function.parameters[1:], kinds[1:], strict=True):
        if kind == "INT":
            ways.append([] if "!" in parameter else [_column("n", DataType.INT)])
            ways[-1].extend(_constant(one, DataType.INT) for one in _PLACES)
        else:
            ways.append([_column("b", type)])
            if type is DataType.STRING:
                ways[-1].extend(_constant(one, type) for one in _PARTS)
    if function.parameters[-1].endswith("*"):
        ways.append([_column("b", type)])
    least = sum("?" not in one for one in function.parameters)
    for count in range(least, len(ways) + 1):
        yield from _crossed(ways[:count])
    if kinds == ["TEXT", "TEXT"]:
        yield (_constant("abaß", type), _column("a", type))


def _crossed(ways: list[list[Expression]]) -> Iterator[tuple[Expression, ...]]:
    """Each way of an operand beside the first of all others, and all of them in turns."""
    first = tuple(way[0] for way in ways)
    alone = (
        (*first[:place], one, *first[place + 1 :]) for place, way in enumerate(ways) for one in way
    )
    turns = range(max(map(len, ways)))
    mixed = (
        tuple(way[(turn + 3 * place) % len(way)] for place, way in enumerate(ways))
        for turn in turns
    )
    yield from dict.fromkeys((*alone, *mixed))


def _column(name: str, type: DataType) -> Expression:
    return AttributeValue("", name, type, _NOWHERE)


def _constant(value: int | str | float, type: DataType) -> Expression:
    return Constant(value, type, _NOWHERE)


def _truncations() -> Iterator[Call]:
    """DATE_TRUNC with each of its units."""
    for unit, zone in product(dict.fromkeys(UNITS.values()), ("UTC", *ZONES)):
        operands = (_constant(unit, DataType.STRING), _column("a", DataType.TIMESTAMP))
        yield Call("DATE_TRUNC", operands, DataType.TIMESTAMP, zone, _NOWHERE)


def _casts_of(type: DataType) -> Iterator[Call]:
    """CAST and TRY_CAST of a column to each type that is not its own."""
    of_zone = (DataType.TIMESTAMP, DataType.TIMESTAMP_NTZ, DataType.DATE, DataType.STRING)
    for wanted in TYPES:
        if wanted is type or not can_cast(type, wanted):
            continue
        both = {type, wanted}
        has_zone = DataType.TIMESTAMP in both and both <= {*of_zone}
        for zone in ("UTC", *ZONES) if has_zone else ("UTC",):
            for name in ("CAST", "TRY_CAST"):
                yield Call(name, (_column("a", type),), wanted, zone, _NOWHERE)
