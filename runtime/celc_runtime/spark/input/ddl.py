"""Schemas in Spark's notation, as celc writes them, read without Spark.

PySpark asks Spark what a text means, which is one call of the JVM or one question to the server of
a Connect session, and a pipeline allows no question at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

_WORD = re.compile(r"`(?:[^`]|``)*`|\w+|[<>(),:]")

_PLAIN = {
    "BOOLEAN": "BooleanType",
    "TINYINT": "ByteType",
    "SMALLINT": "ShortType",
    "INT": "IntegerType",
    "BIGINT": "LongType",
    "FLOAT": "FloatType",
    "DOUBLE": "DoubleType",
    "STRING": "StringType",
    "BINARY": "BinaryType",
    "TIMESTAMP": "TimestampType",
    "TIMESTAMP_NTZ": "TimestampNTZType",
    "DATE": "DateType",
}


def schema_of_ddl(ddl: str) -> StructType:
    """The schema that a text of celc's says, of the types of attributes in Spark's spelling."""
    from pyspark.sql.types import StructType

    reader = _Reader(ddl)
    return StructType(list(reader.fields("")))


class _Reader:
    """Reads one text, word by word."""

    def __init__(self, ddl: str) -> None:
        self._words: list[str] = _WORD.findall(ddl)
        self._next = 0

    def fields(self, end: str) -> Iterator[StructField]:
        """The fields up to the word `end`, which is read as well."""
        from pyspark.sql.types import StructField

        while not self._has(end):
            name = self._word()
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            self._has(":")
            yield StructField(name, self._type())
            self._has(",")

    def _type(self) -> DataType:
        from pyspark.sql import types

        word = self._word().upper()
        if word in _PLAIN:
            found: DataType = getattr(types, _PLAIN[word])()
            return found
        if word == "INTERVAL":
            self._read("DAY", "TO", "SECOND")
            return types.DayTimeIntervalType()
        if word == "DECIMAL":
            self._read("(")
            precision = int(self._word())
            self._read(",")
            scale = int(self._word())
            self._read(")")
            return types.DecimalType(precision, scale)
        self._read("<")
        if word == "STRUCT":
            return types.StructType(list(self.fields(">")))
        first = self._type()
        if word == "ARRAY":
            self._read(">")
            return types.ArrayType(first)
        assert word == "MAP", word
        self._read(",")
        value = self._type()
        self._read(">")
        return types.MapType(first, value)

    def _word(self) -> str:
        self._next += 1
        return self._words[self._next - 1]

    def _read(self, *words: str) -> None:
        for word in words:
            found = self._word()
            assert found == word, (found, word)

    def _has(self, word: str) -> bool:
        """Whether the next word is this one, which is then read; of no word: whether none is
        left."""
        if self._next == len(self._words):
            return not word
        if self._words[self._next] != word:
            return False
        self._next += 1
        return True
