"""The functions of values of one event, or of one match: one table for all that knows them.

Resolution takes names and types from here, documents and editors the meaning, Spark its expression.
The code on one machine has the name of the function in `values/code`, and that
between events the name `kernel` in `celc_runtime.engine.values.functions`, or one of NumPy.

Meaning: that of Spark's function with ANSI mode off, but for calendar parts, which are those of
UTC or of a named zone, whatever the session's zone is, and regular expressions, which are RE2's.

Long: an entry for each function.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from celc_runtime.values.decimals import rounded_type, whole_type
from celc_runtime.values.types import DataType, DecimalType

Parameter: TypeAlias = str
"""What an argument can be. `DOUBLE`, `INT`, `STRING`, `BINARY`: values of this type, and numbers
that are read as it; `TEXT`: any value, as CAST AS STRING reads it; `NUMBER`: any number, with its
own type; `ROUNDED`: the same, whole numbers as LONG and FLOATs as DOUBLE; `HASHED`: a number, text,
BOOLEAN or time; `TIME`: a TIMESTAMP, or a DATE as its midnight; `PARTS`: an ARRAY or a MAP; `ANY`:
any value. With `?` it may be left out, with `*` there may be several, and with `!` it is a
literal."""


Result: TypeAlias = Callable[[Sequence[DataType], Sequence[object]], DataType]
"""The type of a result, by the types of the arguments and their values; None: it is no literal."""


class Function(NamedTuple):
    """A function of the language."""

    name: str
    parameters: tuple[Parameter, ...]
    result: DataType | Result
    meaning: str  # one sentence
    example: tuple[str, str]  # a call, and its value
    spark: str | Callable[[Sequence[str]], str]
    """Its expression of Spark SQL, with `{0}` for an argument; by the arguments, where their number
    is not fixed. `{zone}` is the name of the zone."""
    kernel: str = ""  # its code between events; empty: it is of one event, or of a match
    zoned: bool = False  # whether `AT TIME ZONE` can stand in it

    @property
    def arguments(self) -> tuple[int, int | None]:
        """The least and the greatest number of its arguments; None: there is no greatest."""
        least = sum(not one.rstrip("!").endswith(("?", "*")) for one in self.parameters)
        return least, None if self.parameters[-1].endswith("*") else len(self.parameters)


_DOUBLE, _INT = DataType.DOUBLE, DataType.INT
_STRING, _BOOLEAN = DataType.STRING, DataType.BOOLEAN


def _same(types: Sequence[DataType], constants: Sequence[object]) -> DataType:
    return types[0]


def _whole(types: Sequence[DataType], constants: Sequence[object]) -> DataType:
    """LONG, or a DECIMAL without decimals."""
    (type,) = types
    return whole_type(type) if isinstance(type, DecimalType) else DataType.LONG


def _rounded(types: Sequence[DataType], constants: Sequence[object]) -> DataType:
    type, *_ = types
    *_, digits = (0, *constants[1:])
    if not isinstance(type, DecimalType):
        return type
    return rounded_type(type, digits if isinstance(digits, int) else 0)


LEAST_PLACES, MOST_PLACES = -18, 38
"""The digits behind the point to which ROUND takes a DOUBLE between events."""

_LIMITED = (
    "CASE WHEN ISNAN({{0}}) THEN 0L WHEN {{0}} >= 9223372036854775808.0D THEN 9223372036854775807L "
    "WHEN {{0}} <= -9223372036854775808.0D THEN -9223372036854775807L - 1L ELSE {} END"
)
"""A DOUBLE as a LONG, also in ANSI mode."""

_NUMERIC = (
    Function(
        "SQRT",
        ("DOUBLE",),
        _DOUBLE,
        "the square root; NaN of a negative number",
        ("SQRT(9)", "3.0"),
        "SQRT({0})",
        "np.sqrt",
    ),
    Function(
        "POWER",
        ("DOUBLE", "DOUBLE"),
        _DOUBLE,
        "the first number to the power of the second",
        ("POWER(2, 10)", "1024.0"),
        "POWER({0}, {1})",
        "power",
    ),
    Function(
        "EXP",
        ("DOUBLE",),
        _DOUBLE,
        "e to the power of a number",
        ("EXP(0)", "1.0"),
        "EXP({0})",
        "np.exp",
    ),
    Function(
        "LN",
        ("DOUBLE",),
        _DOUBLE,
        "the natural logarithm; NULL of a number that is not above 0",
        ("LN(1)", "0.0"),
        "LN({0})",
        "np.log",
    ),
    Function(
        "LOG10",
        ("DOUBLE",),
        _DOUBLE,
        "the logarithm to base 10; NULL of a number that is not above 0",
        ("LOG10(1000)", "3.0"),
        "LOG10({0})",
        "np.log10",
    ),
    Function(
        "SIN", ("DOUBLE",), _DOUBLE, "the sine of an angle", ("SIN(0)", "0.0"), "SIN({0})", "np.sin"
    ),
    Function(
        "COS",
        ("DOUBLE",),
        _DOUBLE,
        "the cosine of an angle",
        ("COS(0)", "1.0"),
        "COS({0})",
        "np.cos",
    ),
    Function(
        "ATAN2",
        ("DOUBLE", "DOUBLE"),
        _DOUBLE,
        "the angle of the point (x, y), as ATAN2(y, x)",
        ("ATAN2(0, 1)", "0.0"),
        "ATAN2({0}, {1})",
        "angle",
    ),
    Function(
        "RADIANS",
        ("DOUBLE",),
        _DOUBLE,
        "an angle in degrees as one in radians",
        ("RADIANS(0)", "0.0"),
        "RADIANS({0})",
        "np.radians",
    ),
    Function(
        "SIGN",
        ("DOUBLE",),
        _DOUBLE,
        "-1.0, 0.0 or 1.0 for a number below, at or above 0",
        ("SIGN(-7)", "-1.0"),
        "SIGN({0})",
        "np.sign",
    ),
    Function(
        "FLOOR",
        ("ROUNDED",),
        _whole,
        "the greatest whole number that is not above",
        ("FLOOR(-1.5)", "-2"),
        _LIMITED.format("FLOOR({0})"),
        "floor",
    ),
    Function(
        "CEIL",
        ("ROUNDED",),
        _whole,
        "the least whole number that is not below",
        ("CEIL(1.2)", "2"),
        _LIMITED.format("CEIL({0})"),
        "ceiling",
    ),
    Function(
        "ROUND",
        ("NUMBER", "INT!?"),
        _rounded,
        "the number with so many digits behind the point (0 without), halves away from 0",
        ("ROUND(2.345, 2)", "2.35"),
        lambda texts: f"ROUND({', '.join(texts)})",
        "round_real",
    ),
    Function(
        "ISNAN",
        ("DOUBLE",),
        _BOOLEAN,
        "whether a number is NaN; FALSE of NULL",
        ("ISNAN(1)", "FALSE"),
        "ISNAN({0})",
        "np.isnan",
    ),
)

_TEXTS = (
    Function(
        "LENGTH",
        ("TEXT",),
        _INT,
        "the number of characters",
        ("LENGTH('abc')", "3"),
        "CHAR_LENGTH({0})",
    ),
    Function(
        "LOWER",
        ("TEXT",),
        _STRING,
        "the text in small letters",
        ("LOWER('Ab')", "'ab'"),
        "LOWER({0})",
    ),
    Function(
        "UPPER",
        ("TEXT",),
        _STRING,
        "the text in capitals",
        ("UPPER('Ab')", "'AB'"),
        "UPPER({0})",
    ),
    Function(
        "TRIM",
        ("TEXT",),
        _STRING,
        "the text without spaces at both ends",
        ("TRIM(' a ')", "'a'"),
        "TRIM({0})",
    ),
    Function(
        "LTRIM",
        ("TEXT",),
        _STRING,
        "the text without spaces at its beginning",
        ("LTRIM(' a')", "'a'"),
        "LTRIM({0})",
    ),
    Function(
        "RTRIM",
        ("TEXT",),
        _STRING,
        "the text without spaces at its end",
        ("RTRIM('a ')", "'a'"),
        "RTRIM({0})",
    ),
    Function(
        "SUBSTR",
        ("TEXT", "INT", "INT?"),
        _STRING,
        "the part of a text from a place on (1: the first; -1: the last), of at most so many "
        "characters",
        ("SUBSTR('abcd', 2, 2)", "'bc'"),
        lambda texts: f"SUBSTR({', '.join(texts)})",
    ),
    Function(
        "REPLACE",
        ("TEXT", "TEXT", "TEXT?"),
        _STRING,
        "the text with another text (nothing, if left out) for each occurrence of one",
        ("REPLACE('a-b', '-', '+')", "'a+b'"),
        lambda texts: f"REPLACE({', '.join(texts)})",
    ),
    Function(
        "STARTSWITH",
        ("TEXT", "TEXT"),
        _BOOLEAN,
        "whether a text begins with another one",
        ("STARTSWITH('abc', 'ab')", "TRUE"),
        "STARTSWITH({0}, {1})",
    ),
    Function(
        "ENDSWITH",
        ("TEXT", "TEXT"),
        _BOOLEAN,
        "whether a text ends with another one",
        ("ENDSWITH('abc', 'bc')", "TRUE"),
        "ENDSWITH({0}, {1})",
    ),
    Function(
        "POSITION",
        ("TEXT", "TEXT"),
        _INT,
        "where the first text first occurs in the second, from 1; 0: nowhere",
        ("POSITION('b', 'abc')", "2"),
        "POSITION({0}, {1})",
    ),
    Function(
        "CONCAT",
        ("TEXT", "TEXT*"),
        _STRING,
        "the texts one after another; NULL if one is NULL",
        ("CONCAT('a', 'b')", "'ab'"),
        lambda texts: f"CONCAT({', '.join(texts)})",
    ),
    Function(
        "SPLIT_PART",
        ("TEXT", "TEXT", "INT"),
        _STRING,
        "the part of a text between two of its separators, by its number (-1: the last); '' if "
        "there is none, NULL for number 0",
        ("SPLIT_PART('a-b-c', '-', 2)", "'b'"),
        "SPLIT_PART({0}, {1}, NULLIF({2}, 0))",
    ),
    Function(
        "REGEXP_EXTRACT",
        ("TEXT", "TEXT!", "INT?!"),
        _STRING,
        "what a group of a regular expression (by its number, 1 without; 0: the whole) holds where "
        "the expression is first found; '' if it is not found",
        ("REGEXP_EXTRACT('order-17', '([a-z]+)-([0-9]+)', 2)", "'17'"),
        lambda texts: f"REGEXP_EXTRACT({', '.join(texts)})",
    ),
    Function(
        "MD5",
        ("TEXT",),
        _STRING,
        "the MD5 checksum of a text, in 32 hexadecimal digits",
        ("MD5('a')", "'0cc175b9c0f1b6a831c399e269772661'"),
        "MD5({0})",
    ),
    Function(
        "SHA2",
        ("TEXT", "INT!"),
        _STRING,
        "the SHA-2 checksum of a text, in hexadecimal digits; of 224, 256 (also 0), 384 or 512 "
        "bits, else NULL",
        ("LENGTH(SHA2('a', 256))", "64"),
        "SHA2({0}, {1})",
    ),
)


def _part(name: str, meaning: str, example: tuple[str, str], kernel: str) -> Function:
    return Function(name, ("TIME",), _INT, meaning, example, f"{name}({{0}})", kernel, zoned=True)


_WHEN = "TIMESTAMP '2024-02-29 13:14:15'"
_TIMES = (
    _part("YEAR", "the year of a time", (f"YEAR({_WHEN})", "2024"), "year_of"),
    _part("MONTH", "the month of a time, from 1", (f"MONTH({_WHEN})", "2"), "month_of"),
    _part("DAY", "the day of the month of a time, from 1", (f"DAY({_WHEN})", "29"), "day_of_month"),
    _part("HOUR", "the hour of a time, from 0 to 23", (f"HOUR({_WHEN})", "13"), "hour_of"),
    _part("MINUTE", "the minute of a time, from 0", (f"MINUTE({_WHEN})", "14"), "minute_of"),
    _part("SECOND", "the whole second of a time", (f"SECOND({_WHEN})", "15"), "second_of"),
    _part(
        "DAYOFWEEK",
        "the day of the week of a time, from 1 (Sunday) to 7",
        (f"DAYOFWEEK({_WHEN})", "5"),
        "day_of_week",
    ),
)

UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    "QUARTER": "QUARTER",
    **dict.fromkeys(("MONTH", "MM", "MON"), "MONTH"),
    "WEEK": "WEEK",
    **dict.fromkeys(("DAY", "DD"), "DAY"),
    **{one: one for one in ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")},
}
"""The units of DATE_TRUNC, by each of their names in capitals."""

STEPS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": 1_000_000,
    "MINUTE": 60 * 1_000_000,
    "HOUR": 3600 * 1_000_000,
    "DAY": 86_400 * 1_000_000,
}
"""Those with a fixed length, in microseconds."""

_TRUNCATED = (
    Function(
        "DATE_TRUNC",
        ("TEXT!", "TIME"),
        DataType.TIMESTAMP,
        "the time at which the year, quarter, month, week (from Monday), day, hour, minute, "
        "second, millisecond or microsecond of a time begins",
        (f"DATE_TRUNC('HOUR', {_WHEN})", "TIMESTAMP '2024-02-29 13:00:00'"),
        "DATE_TRUNC({0}, {1})",
        "truncate",
        zoned=True,
    ),
)

_READ = (
    Function(
        "TO_DATE",
        ("TEXT", "TEXT!?"),
        DataType.DATE,
        "the date that a text says in a format, without as CAST AS DATE",
        ("TO_DATE('29.2.2024', 'd.M.yyyy')", "DATE '2024-02-29'"),
        "CAST",
    ),
    Function(
        "TO_TIMESTAMP",
        ("TEXT", "TEXT!?"),
        DataType.TIMESTAMP,
        "the time that a text says in a format, without as CAST AS TIMESTAMP",
        ("TO_TIMESTAMP('02/29/24 1:14:15 PM', 'MM/dd/yy h:mm:ss a')", _WHEN),
        "CAST",
        zoned=True,
    ),
)
"""They are other words for CAST, but for formats (`celc.resolve.types.formats`)."""

_OF_ALL = (
    Function(
        "HASH",
        ("HASHED", "HASHED*"),
        _INT,
        "a number for one or several values, the same for the same values: Spark's Murmur3",
        ("HASH('a', 2)", "201997482"),
        lambda texts: f"HASH({', '.join(texts)})",
    ),
    Function(
        "NULLIF",
        ("ANY", "ANY"),
        _same,
        "the first value, or NULL if it is equal to the second",
        ("NULLIF(3, 2)", "3"),
        "NULLIF({0}, {1})",
    ),
    Function(
        "COALESCE",
        ("ANY", "ANY*"),
        _same,
        "the first value that is not NULL",
        ("COALESCE(NULL, 2)", "2"),
        lambda texts: f"COALESCE({', '.join(texts)})",
    ),
    Function(
        "LEAST",
        ("ANY", "ANY", "ANY*"),
        _same,
        "the least value that is not NULL",
        ("LEAST(3, 2)", "2"),
        lambda texts: f"LEAST({', '.join(texts)})",
    ),
    Function(
        "GREATEST",
        ("ANY", "ANY", "ANY*"),
        _same,
        "the greatest value that is not NULL",
        ("GREATEST(3, 2)", "3"),
        lambda texts: f"GREATEST({', '.join(texts)})",
    ),
)

_OF_PARTS = (
    Function(
        "SIZE",
        ("PARTS",),
        _INT,
        "the number of elements of an ARRAY, or of keys of a MAP; -1 of NULL",
        ("SIZE(NULL)", "-1"),
        "COALESCE(SIZE({0}), -1)",
    ),
    Function(
        "CONTAINS",
        ("ANY", "ANY"),
        _BOOLEAN,
        "whether a text has another one in it, an ARRAY an element, or a MAP a key",
        ("CONTAINS('abc', 'b')", "TRUE"),
        "CONTAINS({0}, {1})",
    ),
    Function(
        "GET_JSON_OBJECT",
        ("TEXT", "TEXT!"),
        _STRING,
        "what a text of JSON holds at a path, as `x.a:b[0].c`; NULL if it holds nothing there",
        ("GET_JSON_OBJECT('{\"b\": [1.50]}', '$.b[0]')", "'1.5'"),
        "GET_JSON_OBJECT({0}, {1})",
    ),
)
"""What has parts; elements and fields themselves are no functions (`values/parts`)."""


def can_cast(found: DataType, wanted: DataType) -> bool:
    """Whether CAST takes a value of a type to another type, as in Spark with ANSI mode off."""
    plain = (_STRING, _BOOLEAN)
    times = (DataType.TIMESTAMP, DataType.DATE, DataType.TIMESTAMP_NTZ)
    if found.is_numeric:
        return wanted.is_numeric or wanted in (*plain, DataType.TIMESTAMP)
    if found in plain:
        return wanted.is_numeric or wanted in plain or (found is _STRING and wanted in times)
    if found in times:
        of_instant = found is DataType.TIMESTAMP and wanted.is_numeric
        return wanted is _STRING or wanted in times or of_instant
    return False


_ALL = (*_NUMERIC, *_TEXTS, *_TIMES, *_TRUNCATED, *_READ, *_OF_ALL, *_OF_PARTS)

FUNCTIONS = {one.name: one for one in _ALL}
"""The functions by their names."""
