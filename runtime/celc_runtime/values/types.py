"""The types of values, named as in Spark SQL.

A type is one object, however often it is made: types are compared with `is`. The data of a module
holds the text of a type (`DataType.value`), from which `type_of` makes the object again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import ClassVar

MOST_DIGITS = 38  # of a DECIMAL, as in Spark and in Arrow's 128 bits
MOST_NARROW = 18  # of a DECIMAL that 64 bits always hold


class DataType:
    """A type of the language; `value` is its text, such as `INT` or `DECIMAL(10, 2)`."""

    __slots__ = ("value",)

    BOOLEAN: ClassVar[DataType]
    BYTE: ClassVar[DataType]
    SHORT: ClassVar[DataType]
    INT: ClassVar[DataType]
    LONG: ClassVar[DataType]
    FLOAT: ClassVar[DataType]
    DOUBLE: ClassVar[DataType]
    STRING: ClassVar[DataType]
    BINARY: ClassVar[DataType]
    TIMESTAMP: ClassVar[DataType]
    TIMESTAMP_NTZ: ClassVar[DataType]
    DATE: ClassVar[DataType]
    INTERVAL: ClassVar[DataType]

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return self.value

    def __reduce__(self) -> tuple[Callable[[str], DataType], tuple[str]]:
        return type_of, (self.value,)

    @property
    def is_numeric(self) -> bool:
        """Whether it is a type of numbers."""
        return self in NUMBERS or isinstance(self, DecimalType)

    @property
    def is_compared(self) -> bool:
        """Whether two values can be compared. ARRAY, MAP and STRUCT are only carried."""
        return not isinstance(self, ArrayType | MapType | StructType)

    @property
    def is_ordered(self) -> bool:
        """Whether one of two values is the smaller one."""
        return self.is_compared and self is not DataType.BINARY

    @property
    def is_checked(self) -> bool:
        """Whether arithmetic of this type is NULL where 64 bits do not hold the result. Its values
        are microseconds. Arithmetic on numbers wraps."""
        return self in (DataType.TIMESTAMP, DataType.TIMESTAMP_NTZ, DataType.INTERVAL)


class DecimalType(DataType):
    """DECIMAL(p, s): whole numbers of at most p digits, the last s of them behind the point."""

    __slots__ = ("precision", "scale")

    def __init__(self, precision: int, scale: int) -> None:
        super().__init__(f"DECIMAL({precision}, {scale})")
        self.precision = precision
        self.scale = scale

    @property
    def is_wide(self) -> bool:
        """Whether 64 bits do not hold all values."""
        return self.precision > MOST_NARROW


class ArrayType(DataType):
    """ARRAY<T>."""

    __slots__ = ("element",)

    def __init__(self, element: DataType) -> None:
        super().__init__(f"ARRAY<{element.value}>")
        self.element = element


class MapType(DataType):
    """MAP<STRING, T>."""

    __slots__ = ("element",)

    def __init__(self, element: DataType) -> None:
        super().__init__(f"MAP<STRING, {element.value}>")
        self.element = element


class StructType(DataType):
    """STRUCT<a: T, …>."""

    __slots__ = ("fields",)

    def __init__(self, fields: tuple[tuple[str, DataType], ...]) -> None:
        inner = ", ".join(f"{_field_name(name)}: {type.value}" for name, type in fields)
        super().__init__(f"STRUCT<{inner}>")
        self.fields = fields


def _field_name(name: str) -> str:
    return name if _WORD.fullmatch(name) else "`" + name.replace("`", "``") + "`"


_WORD = re.compile(r"[^\W\d]\w*")

SIMPLE_TYPES = tuple(
    map(
        DataType,
        (
            *("BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"),
            *("STRING", "BINARY", "TIMESTAMP", "TIMESTAMP_NTZ", "DATE", "INTERVAL"),
        ),
    )
)
"""The types without parameters."""

for _one in SIMPLE_TYPES:
    setattr(DataType, _one.value, _one)

_BY_NAME = {one.value: one for one in SIMPLE_TYPES}

WHOLE_NUMBERS = (DataType.BYTE, DataType.SHORT, DataType.INT, DataType.LONG)

NUMBERS = (*WHOLE_NUMBERS, DataType.FLOAT, DataType.DOUBLE)
"""The numbers but DECIMALs, narrow ones first: of two the later one holds the values of both."""


@cache
def decimal_of(precision: int, scale: int) -> DecimalType:
    """DECIMAL(precision, scale).

    Raises:
        ValueError: there are no such numbers of at most 38 digits.
    """
    if not 1 <= precision <= MOST_DIGITS or not 0 <= scale <= precision:
        raise ValueError(f"there is no type DECIMAL({precision}, {scale})")
    return DecimalType(precision, scale)


COUNTS = decimal_of(38, 0)
"""The type of counts of matches, and of sums of whole numbers over matches."""


def is_wide(type: DataType) -> bool:
    """Whether it is a DECIMAL whose values need more than 64 bits."""
    return isinstance(type, DecimalType) and type.is_wide


@cache
def array_of(element: DataType) -> ArrayType:
    """ARRAY<element>."""
    return ArrayType(element)


@cache
def map_of(element: DataType) -> MapType:
    """MAP<STRING, element>."""
    return MapType(element)


@cache
def struct_of(fields: tuple[tuple[str, DataType], ...]) -> StructType:
    """STRUCT<…> of fields, each with its name and type."""
    return StructType(fields)


@cache
def type_of(text: str) -> DataType:
    """The type with this text (`DataType.value`).

    Raises:
        ValueError: no type has it.
    """
    reader = _Reader(text)
    found = reader.type()
    reader.expect("")
    return found


class _Reader:
    """Reads the text of a type, a word or sign at a time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = [*re.findall(r"`(?:[^`]|``)*`|\w+|\S", text), ""]
        self._at = 0

    def _word(self) -> str:
        word: str = self._words[self._at]
        self._at += 1
        return word

    def expect(self, sign: str) -> None:
        """Pass over a sign; `""` is the end."""
        if self._word() != sign:
            raise ValueError(f"{self._text!r} is no type")

    def type(self) -> DataType:
        """The type that stands here."""
        name = self._word()
        if name in _BY_NAME:
            return _BY_NAME[name]
        if name == "DECIMAL":
            self.expect("(")
            precision = self._number()
            self.expect(",")
            scale = self._number()
            self.expect(")")
            return decimal_of(precision, scale)
        if name == "STRUCT":
            return struct_of(tuple(self._fields()))
        if name not in ("ARRAY", "MAP"):
            raise ValueError(f"{self._text!r} is no type")
        self.expect("<")
        if name == "MAP":
            self.expect("STRING")
            self.expect(",")
        element = self.type()
        self.expect(">")
        return array_of(element) if name == "ARRAY" else map_of(element)

    def _fields(self) -> Iterator[tuple[str, DataType]]:
        self.expect("<")
        sign = ","
        while sign == ",":
            name = self._word()
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            self.expect(":")
            yield name, self.type()
            sign = self._word()
        if sign != ">":
            raise ValueError(f"{self._text!r} is no type")

    def _number(self) -> int:
        word = self._word()
        if not word.isdecimal():
            raise ValueError(f"{self._text!r} is no type")
        return int(word)


_DDL_NAMES = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "LONG": "BIGINT",
    "INTERVAL": "INTERVAL DAY TO SECOND",
}
"""The types whose name in Spark's DDL differs from that in the language."""


def ddl_of(type: str) -> str:
    """A type, by its text, as Spark's DDL spells it."""
    if type in _BY_NAME:
        return _DDL_NAMES.get(type, type)
    match type_of(type):
        case ArrayType(element=element):
            return f"ARRAY<{ddl_of(element.value)}>"
        case MapType(element=element):
            return f"MAP<STRING, {ddl_of(element.value)}>"
        case StructType(fields=fields):
            inner = (f"`{name.replace('`', '``')}`: {ddl_of(one.value)}" for name, one in fields)
            return f"STRUCT<{', '.join(inner)}>"
        case _:
            return type
