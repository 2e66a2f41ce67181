"""Conditions on one event at random, each in CEL and in Spark SQL, and values that provoke.

The two texts of a condition say the same by the words of the language page; whether they decide
the same is what the tests ask. The only differences in spelling are those of literals: `1.5` is a
DOUBLE in CEL and a DECIMAL in Spark, a LONG has no suffix in CEL, and a backslash in a text means
itself in CEL.
"""

from __future__ import annotations

import datetime
import math
import random
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

COLUMNS: dict[str, pa.DataType] = {
    f"{name}{number}": data_type
    for name, data_type in {
        "b": pa.bool_(),
        "i": pa.int32(),
        "l": pa.int64(),
        "f": pa.float32(),
        "d": pa.float64(),
        "s": pa.string(),
        "t": pa.timestamp("us", tz="UTC"),
        "e": pa.date32(),
        "v": pa.duration("us"),
    }.items()
    for number in (1, 2)
}
"""The attributes of the one event type: two of each type, named by its first letter (DATE: e,
INTERVAL: v)."""

PLAIN: dict[str, pa.DataType] = COLUMNS | {
    "t1": pa.int64(),
    "t2": pa.int64(),
    "e1": pa.int32(),
    "e2": pa.int32(),
    "v1": pa.int64(),
    "v2": pa.int64(),
}
"""The same for values that are numbers where COLUMNS has times: Python has none after 9999."""

IN_PARQUET = COLUMNS | {"v1": pa.int64(), "v2": pa.int64()}
"""The same in a file that Spark reads with `SPARK_SCHEMA`: Parquet has no durations."""

SPARK_SCHEMA = (
    "b1 BOOLEAN, b2 BOOLEAN, i1 INT, i2 INT, l1 BIGINT, l2 BIGINT, f1 FLOAT, f2 FLOAT, d1 DOUBLE, "
    "d2 DOUBLE, s1 STRING, s2 STRING, t1 TIMESTAMP, t2 TIMESTAMP, e1 DATE, e2 DATE, "
    "v1 INTERVAL DAY TO SECOND, v2 INTERVAL DAY TO SECOND, row BIGINT"
)

DECLARATION = (
    "CREATE STREAM S { EVENT E { b1: BOOLEAN, b2: BOOLEAN, i1: INT, i2: INT, l1: LONG, l2: LONG, "
    "f1: FLOAT, f2: FLOAT, d1: DOUBLE, d2: DOUBLE, s1: STRING, s2: STRING, "
    "t1: TIMESTAMP, t2: TIMESTAMP, e1: DATE, e2: DATE, v1: INTERVAL, v2: INTERVAL } }\n"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition in both languages; the event is labelled x."""

    cel: str
    sql: str


def queries(conditions: Iterable[Condition]) -> str:
    """A file with one query for each condition, q0, q1, …, whose matches are single events."""
    return DECLARATION + "\n".join(
        f"QUERY q{number}: SELECT NONE FROM S WHERE E AS x FILTER {condition.cel}"
        for number, condition in enumerate(conditions)
    )


# --- values ---------------------------------------------------------------------------------------

_LARGEST_FLOAT = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
_SMALLEST_FLOAT = struct.unpack("<f", b"\x01\x00\x00\x00")[0]

INTS = [
    *(0, 1, -1, 2, -2, 3, -3, 7, 10, -10, 100, 65536, 46341, -46341),
    *(2**24, 2**24 + 1, -(2**24) - 1, 2**30, 2**31 - 128, 2**31 - 65, 2**31 - 64),
    *(2**31 - 1, 2**31 - 2, -(2**31), -(2**31) + 1),
]
LONGS = [
    *INTS,
    *(2**31, -(2**31) - 1, 2**32, 3037000500, -3037000500, 2**53, 2**53 + 1, -(2**53) - 1),
    # Nearest to one FLOAT, but to another where they are rounded to a DOUBLE first.
    *(2**60 + 2**36 + 1, -(2**60) - 2**36 - 1, 2**60 + 2**37 + 2**36 - 1),
    *(2**62, 2**63 - 1, 2**63 - 2, 2**63 - 513, -(2**63), -(2**63) + 1),
]
DOUBLES = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -1.5, 2.5, 3.0, 7.0, 0.1, -0.1, 0.3, 1e-3, 100.0),
    *(math.nan, math.inf, -math.inf, 5e-324, -5e-324, 2.2250738585072014e-308),
    *(1.7976931348623157e308, -1.7976931348623157e308, 1e16, 1e300, -1e300),
    *(2.0**24 + 1, 2.0**31, -(2.0**31), 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63)),
    *(_LARGEST_FLOAT, _SMALLEST_FLOAT, 0.10000000149011612, _LARGEST_FLOAT * 1.0000001),
]
FLOATS = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -1.5, 2.5, 3.0, 7.0, 100.0, math.nan, math.inf, -math.inf),
    *(0.10000000149011612, -0.10000000149011612, 0.30000001192092896, 2.0**24, 2.0**24 + 2),
    *(_LARGEST_FLOAT, -_LARGEST_FLOAT, _SMALLEST_FLOAT, -_SMALLEST_FLOAT, 2.0**31, 2.0**63),
    *(2.0**60, 2.0**60 + 2.0**37, 1.1754943508222875e-38),
]
TEXTS = [
    *("", "a", "b", "A", "ab", "aa", "aab", "ba", "a b", " a", "a ", "abc", "c", "z"),
    *("%", "_", "a%b", "a_b", "\\", "a\\b", "\\%", ".", "a.b", "a+b", "[a]", "'", "it's", "`"),
    *("a\nb", "\n", "ab\n", "a\r\nb", "\r", "\x00", "a\x00", "a\x00b", "\t"),
    *("é", "e\u0301", "É", "ß", "ﬁ", "日本", "aéb", "\u2028", "\x85", "\ufeff", "\u0130"),
    # By bytes the second is the larger one, by the units of UTF-16 the first.
    *("\uffff", "\U00010000", "\ue000", "😀", "a😀b", "😀😀", "😀\u0301", "\U0010ffff"),
]
DAY = 86_400_000_000
TIMES = [
    *(0, 1, -1, DAY, -DAY, DAY - 1, DAY + 1, 10 * DAY, 999_999, 1_000_000, -1_000_001),
    *(19_000 * DAY, 19_000 * DAY + 1, 19_000 * DAY - 1, 19_000 * DAY + 43_200_000_000),
    *(-719_162 * DAY, -719_163 * DAY - 1, 2_932_897 * DAY - 1, 2_932_897 * DAY),
    *(2**62, -(2**62), 2**63 - 1, -(2**63)),
]
DATES = [
    *(0, 1, -1, 10, 18_999, 19_000, 19_001, -719_162, -719_163, 2_932_896, 2_932_897),
    *(106_751_991, -106_751_991, -141_427, -141_428),
]
DURATIONS = [
    *(0, 1, -1, 1_000, 999_999, 1_000_000, -1_000_001, 90_000_000, DAY, -DAY, DAY + 1, 10 * DAY),
    *(19_000 * DAY, 2**31, -(2**32), 2**53 + 1, 2**62, -(2**62), 2**62 + 1, 3_037_000_500),
    *(2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1),
]
_POOLS: dict[str, Sequence[Any]] = {
    "b": (False, True),
    "i": INTS,
    "l": LONGS,
    "f": FLOATS,
    "d": DOUBLES,
    "s": TEXTS,
    "t": TIMES,
    "e": DATES,
    "v": DURATIONS,
}


def table_of_values(rng: random.Random, rows: int) -> pa.Table:
    """Rows of values that provoke, many of them NULL, equal or nearly equal to their neighbours."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for _ in range(rows):
        nulls = rng.choice((0.0, 0.1, 0.1, 0.5))
        for kind in _POOLS:
            first, second = _value(rng, kind), _value(rng, kind)
            if rng.random() < 0.3:
                second = first
            for name, value in ((f"{kind}1", first), (f"{kind}2", second)):
                columns[name].append(None if rng.random() < nulls else value)
    # All values of a pool stand in some row, whatever the chances.
    for kind, pool in _POOLS.items():
        for row, value in zip(rng.sample(range(rows), min(rows, len(pool))), pool, strict=False):
            columns[f"{kind}1"][row] = value
    return pa.table(
        {
            name: pa.array(columns[name], PLAIN[name]).cast(data_type)
            for name, data_type in COLUMNS.items()
        }
    )


def _value(rng: random.Random, kind: str) -> Any:
    """A value of a pool, or any value of its type."""
    if rng.random() < 0.8:
        return rng.choice(_POOLS[kind])
    match kind:
        case "i":
            return rng.getrandbits(32) - 2**31
        case "l" | "t" | "v":
            return rng.getrandbits(64) - 2**63
        case "f":
            return struct.unpack("<f", rng.randbytes(4))[0]
        case "d":
            return struct.unpack("<d", rng.randbytes(8))[0]
        case "s":
            return "".join(rng.choices("aAb%_\\.é😀\n\x00", k=rng.randint(0, 6)))
        case "e":
            return rng.randint(-106_751_991, 106_751_991)
        case _:
            return rng.random() < 0.5


def _joined(form: str, *parts: Condition, sql: str | None = None) -> Condition:
    return Condition(
        form.format(*(part.cel for part in parts)),
        (sql or form).format(*(part.sql for part in parts)),
    )


# What is NULL beyond 64 bits ends the run in Spark, unless it is tried.
_TRIED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}


def _tried(operator: str, left: Condition, right: Condition) -> Condition:
    """Arithmetic with times that is NULL where it overflows."""
    return _joined(f"({{}} {operator} {{}})", left, right, sql=f"{_TRIED[operator]}({{}}, {{}})")


# --- literals -------------------------------------------------------------------------------------


def sql_text(text: str) -> str:
    """A text as a literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def cel_text(text: str) -> str:
    """A text as a literal of CEL."""
    return "'" + text.replace("'", "''") + "'"


def whole(value: int) -> Condition:
    """A whole number: INT where 32 bits hold it, else LONG, in both languages."""
    suffix = "" if -(2**31) <= value < 2**31 else "L"
    return Condition(str(value), f"{value}{suffix}")


def double(value: float) -> Condition:
    """A DOUBLE; NaN and infinity have no literal."""
    text = repr(value)
    if "e" not in text and "." not in text:
        text += ".0"
    return Condition(text, text + "D")


_EPOCH = datetime.datetime(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""What a literal can name: the years 1 to 9999."""


def _time(kind: str, value: int) -> Condition:
    if kind == "DATE":
        text = f"DATE '{(_EPOCH + datetime.timedelta(days=value)).date().isoformat()}'"
    else:
        moment = _EPOCH + datetime.timedelta(microseconds=value)
        text = f"TIMESTAMP '{moment.isoformat(sep=' ', timespec='microseconds')}'"
    return Condition(text, text)


_UNITS = (("DAY", DAY), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000), ("SECOND", 1_000_000))


def _duration(value: int) -> Condition:
    """A duration; a negative one as the difference from nothing."""
    if value < 0:
        return _joined("-({})", _duration(-value), sql="try_subtract(INTERVAL '0' SECOND, {})")
    texts, rest = [], value
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        texts += [f"{count} {unit}{'S' if count != 1 else ''}"] if count else []
    cel = " ".join([*texts, f"{rest // 1000}.{rest % 1000:03} MILLISECONDS"])
    seconds = f"{value // 1_000_000 % 60}.{value % 1_000_000:06}"
    hours = f"{value // 3_600_000_000 % 24}:{value // 60_000_000 % 60}"
    return Condition(cel, f"INTERVAL '{value // DAY} {hours}:{seconds}' DAY TO SECOND")


_MICROSECOND = _duration(1).sql
_SMALLEST = f"try_subtract({_duration(1 - 2**63).sql}, {_MICROSECOND})"

# --- conditions -----------------------------------------------------------------------------------

_SIGNS = ("=", "!=", "<", "<=", ">", ">=")
_NULL = Condition("NULL", "NULL")
_FAMILIES = {"number": 6, "text": 3, "moment": 2, "duration": 3, "boolean": 1}
_LITERALS = {"number": "ild", "text": "s", "moment": "te", "duration": "v", "boolean": "b"}


class Generator:
    """Random conditions over the attributes of `COLUMNS`.

    `families` says how often operands of each kind are compared; `attributes` is the share of
    attributes among the operands, the others being literals.
    """

    def __init__(
        self,
        rng: random.Random,
        families: Mapping[str, int] = _FAMILIES,
        attributes: float = 0.65,
    ) -> None:
        self._rng = rng
        self._families = families
        self._attributes = attributes

    def condition(self, depth: int = 2) -> Condition:
        """Predicates joined by AND, OR and NOT up to some depth."""
        rng = self._rng
        choice = rng.random()
        if depth == 0 or choice < 0.45:
            return self._predicate()
        if choice < 0.6:
            return _joined("NOT ({})", self.condition(depth - 1))
        parts = [self.condition(depth - 1) for _ in range(2)]
        return _joined(f"({{}}) {rng.choice(('AND', 'OR'))} ({{}})", *parts)

    def _predicate(self) -> Condition:
        rng = self._rng
        (family,) = rng.choices(list(self._families), list(self._families.values()))
        shape = rng.random()
        if shape < 0.55:
            return _joined(f"{{}} {rng.choice(_SIGNS)} {{}}", *self._pair(family))
        if shape < 0.65:
            operand, low = self._pair(family)
            high = self._operand(family, null=operand is not _NULL)
            word = rng.choice(("BETWEEN", "NOT BETWEEN"))
            return _joined(f"{{}} {word} {{}} AND {{}}", operand, low, high)
        if shape < 0.82:
            return self._in_list(family)
        if shape < 0.92 and (family != "text" or shape < 0.84):
            return _joined(f"{{}} IS {rng.choice(('', 'NOT '))}NULL", self._operand(family))
        return self._pattern() if "text" in self._families else self._in_list(family)

    def _in_list(self, family: str) -> Condition:
        rng = self._rng
        length = rng.choice((1, 2, 3, 5, 8, 9, 10, 11, 14, 30))
        kinds = _LITERALS[family]
        if rng.random() < 0.7:
            kinds = rng.choice(kinds)
        if rng.random() < 0.8:
            items = [self._literal(rng.choice(kinds)) for _ in range(length)]
        else:
            items = [self._operand(family) for _ in range(min(length, 4))]
        if rng.random() < 0.15:
            items.insert(rng.randrange(len(items) + 1), _NULL)
        form = f"{{}} {rng.choice(('IN', 'NOT IN'))} ({', '.join('{}' for _ in items)})"
        return _joined(form, self._operand(family), *items)

    # --- operands -----------------------------------------------------------------------------

    def _pair(self, family: str, depth: int = 2) -> list[Condition]:
        # NULL against NULL has no type, and is an error of CEL.
        sides = [self._operand(family, depth), self._operand(family, depth, null=True)]
        self._rng.shuffle(sides)
        return sides

    def _operand(self, family: str, depth: int = 2, *, null: bool = False) -> Condition:
        rng = self._rng
        if null and rng.random() < 0.02:
            return _NULL
        choice = rng.random()
        if family == "duration" and depth and choice > 0.5:
            return self._calculated_duration(depth - 1)
        if family == "moment" and depth and choice > 0.75:
            return self._calculated_moment(depth - 1)
        if family != "number" or depth == 0 or choice < 0.6:
            if rng.random() < self._attributes:
                name = rng.choice("ilfd" if family == "number" else _LITERALS[family])
                name += rng.choice("12")
                return Condition(f"x.{name}", name)
            return self._literal(rng.choice(_LITERALS[family]))
        if choice < 0.68:
            return _joined("-({})", self._operand(family, depth - 1))
        if choice < 0.76:
            return _joined("ABS({})", self._operand(family, depth - 1))
        return _joined(f"({{}} {rng.choice('+-*/%')} {{}})", *self._pair(family, depth - 1))

    def _calculated_duration(self, depth: int) -> Condition:
        rng = self._rng
        match rng.randrange(6):
            case 0:
                zero = "INTERVAL '0' SECOND"
                operand = self._operand("duration", depth)
                return _joined("-({})", operand, sql=f"try_subtract({zero}, {{}})")
            case 1:
                operand = self._operand("duration", depth)
                negated = f"try_subtract(INTERVAL '0' SECOND, {operand.sql})"
                positive = f"({operand.sql}) >= INTERVAL '0' SECOND"
                sql = f"CASE WHEN {positive} THEN {operand.sql} ELSE {negated} END"
                return Condition(f"ABS({operand.cel})", sql)
            case 2:
                return _tried("-", self._operand("moment", depth), self._operand("moment", depth))
            case 3:
                factor = self._whole_number()
                sides = [self._operand("duration", depth), factor]
                rng.shuffle(sides)
                return _tried("*", *sides)
            case _:
                sides = [self._operand("duration", depth), self._operand("duration", depth)]
                return _tried(rng.choice("+-"), *sides)

    def _calculated_moment(self, depth: int) -> Condition:
        rng = self._rng
        sides = [self._operand("moment", depth), self._operand("duration", depth)]
        if rng.random() < 0.3:
            return _tried("+", *reversed(sides))
        if rng.random() < 0.5:
            return _tried("+", *sides)
        # Spark negates the duration, which cannot be done with the smallest one.
        moment, duration = sides
        added = f"try_add(try_add({moment.sql}, {_duration(2**63 - 1).sql}), {_MICROSECOND})"
        plain = _tried("-", *sides)
        sql = f"CASE WHEN ({duration.sql}) = {_SMALLEST} THEN {added} ELSE {plain.sql} END"
        return Condition(plain.cel, sql)

    def _whole_number(self) -> Condition:
        kind = self._rng.choice("il")
        name = f"{kind}{self._rng.choice('12')}"
        attribute = Condition(f"x.{name}", name)
        return self._rng.choice((attribute, self._literal(kind)))

    def _literal(self, kind: str) -> Condition:
        rng = self._rng
        value = rng.choice(_POOLS[kind])
        match kind:
            case "b":
                word = "TRUE" if value else "FALSE"
                return Condition(word, word)
            case "i" | "l":
                value += rng.choice((0, 0, 0, 1, -1))
                return whole(min(max(value, -(2**63)), 2**63 - 1))
            case "d":
                return double(value if math.isfinite(value) else 2.5)
            case "s":
                return Condition(cel_text(value), sql_text(value))
            case "v":
                return _duration(min(max(value, -(2**63) + 1), 2**63 - 1))
            case "t":
                return _time(
                    "TIMESTAMP", min(max(value, _FIRST_DAY * DAY), (_LAST_DAY + 1) * DAY - 1)
                )
            case _:
                return _time("DATE", min(max(value, _FIRST_DAY), _LAST_DAY))

    # --- patterns -----------------------------------------------------------------------------

    def _pattern(self) -> Condition:
        rng = self._rng
        if rng.random() < 0.6:
            word, pattern = rng.choice(("LIKE", "NOT LIKE")), self._like()
        else:
            word, pattern = rng.choice(("RLIKE", "NOT RLIKE")), self._regex(2)
        right = Condition(cel_text(pattern), sql_text(pattern))
        return _joined(f"{{}} {word} {{}}", self._operand("text", null=True), right)

    def _like(self) -> str:
        rng = self._rng
        parts = ("a", "b", "%", "%", "_", "_", "\\%", "\\_", "\\\\", ".", "é", "😀", "\n", "+", "^")
        if rng.random() < 0.7:
            return "".join(rng.choices(parts, k=rng.randint(0, 5)))
        text = rng.choice(TEXTS)
        text = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        form = rng.choice(("{}", "%{}", "{}%", "%{}%", "_{}", "{}_", "{}%{}"))
        return form.format(text, text)

    def _regex(self, depth: int) -> str:
        """An expression that means the same to Java and to RE2."""
        rng = self._rng
        if depth == 0 or rng.random() < 0.35:
            characters = ("a", "b", "ab", "é", "😀", "日", "%", "_", "\\.", "\\\\")
            classes = ("[ab]", "[^a]", "[a-c]", "[é😀]", "(?s:.)")
            return rng.choice((*characters, *classes, "\\A", "^", "\\z"))
        inner = [self._regex(depth - 1) for _ in range(rng.randint(1, 3))]
        form = rng.random()
        if form < 0.4:
            return "".join(inner)
        if form < 0.6:
            return "(" + "|".join(inner) + ")"
        return f"(?:{inner[0]})" + rng.choice(("*", "+", "?", "{1,2}", "*?"))
