"""Rows of CSV and JSON files with their lines, to report where a row is wrong and why.

Arrow reads blocks in parallel and does not report the line. So where Arrow cannot read a row, the
rows are read once more, one by one.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.schemas import NAMES_OF_TYPES, named_type


@frozen
class RawColumns:
    """Columns that Arrow reads in other types than they are declared in."""

    durations: tuple[str, ...] = ()  # INTERVALs, as numbers
    times: tuple[str, ...] = ()  # TIMESTAMPs, as texts; as numbers with --time-format


Row = tuple[int, bytes]
"""The number of a row's first line, counted from 1, and its bytes."""

NOT_UTF8 = "the text is not UTF-8"
_REMEDIES = {
    NOT_UTF8: "convert the file, as iconv -f LATIN1 -t UTF-8 does of one in Latin-1, or leave such "
    "rows out with --on-bad-row",
    "array": "give each row a line of its own, without [ ] and commas, as jq -c '.[]' writes an "
    "array",
    "a time": "read numbers since 1970 with --time-format s, ms, us or ns",
}
"""What to do, by the end of the words on a wrong row."""

_LONGEST_FIELD = 64 << 20

_NOT_CONVERTED = re.compile(
    r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to ([^:]+): (.*)", re.DOTALL
)
_NO_NUMBER = re.compile(
    r"In CSV column #(\d+): .*?The string '(.*)' is not a valid decimal128 number", re.DOTALL
)
_OF_DECIMAL = re.compile(
    r"(?:In CSV column #(\d+): )?(?:Row #\d+: )?(?:Error converting '(?P<a>.*)' to "
    r"(?P<type>decimal128\(.*\)): prec|The string '(?P<b>.*)' cannot be represented as dec|"
    r"The string '(?P<c>.*)' is not a valid dec|Rescaling Decimal|(?P<d>Empty string) cannot)",
    re.DOTALL,
)
_COUNT = re.compile(r"CSV parse error: (?:Row #\d+: )?Expected (\d+) columns, got (\d+)")
_JSON_KIND = re.compile(r"JSON parse error: Column\(/?(.*)\) changed from (\w+) to (\w+)")
_JSON_VALUE = re.compile(r"Failed to convert JSON to ([^,]+), couldn't parse: ?(.*)", re.DOTALL)
_JSON_DECIMAL = re.compile(r"Failed to convert JSON to (decimal128\(.*?\)): (\S+) requires")


def csv_rows(stream: io.RawIOBase, delimiter: str) -> Iterator[Row]:
    """The rows of a CSV file after the names of columns. Bytes that are not UTF-8 stay as they
    are."""
    kept: list[str] = []

    def lines() -> Iterator[str]:
        text = io.TextIOWrapper(
            io.BufferedReader(stream), "utf-8-sig", errors="surrogateescape", newline=""
        )
        for line in text:
            kept.append(line)
            yield line

    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    reader = csv.reader(lines(), delimiter=delimiter)
    named, first = False, 1
    for row in reader:
        raw = "".join(kept).encode("utf-8", "surrogateescape")
        kept.clear()
        if row and named:
            yield first, raw
        named = named or bool(row)
        first = reader.line_num + 1


def json_rows(stream: io.RawIOBase) -> Iterator[Row]:
    """The nonempty lines of a JSON lines file, each after the empty lines before it."""
    empty: list[bytes] = []
    for number, line in enumerate(io.BufferedReader(stream), start=1):
        empty.append(line)
        if line.strip():
            yield number, b"".join(empty)
            empty.clear()


def longest_row(rows: Iterator[Row], given: int) -> int | None:
    """The bytes of the longest row after the first `given` ones; None: there is no row."""
    try:
        return max((len(row) for _, row in islice(rows, given, None)), default=None)
    except csv.Error:
        return _LONGEST_FIELD  # a field is longer


class FirstBytes(io.RawIOBase):
    """The first bytes of a stream."""

    def __init__(self, stream: io.RawIOBase, count: int) -> None:
        self._stream = stream
        self._left = count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(min(len(buffer), self._left)) or b""
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)


class LineTooLong(Exception):
    """A line is longer than a block may be."""


def whole_lines(stream: io.RawIOBase, block: int, longest: int) -> Iterator[bytes]:
    """The lines of a stream, in pieces of whole lines, as soon as they come.

    Arrow's reader of JSON reads the next blocks before it passes on the rows of a block. Raises
    LineTooLong for a line longer than `longest`.
    """
    rest: list[bytes] = []
    length = 0
    while data := stream.read(block):
        end = data.rfind(b"\n") + 1
        if end:
            lines = b"".join([*rest, data[:end]])
            rest, length = [], 0
            yield lines
        rest.append(data[end:])
        length += len(data) - end
        if length > longest:
            raise LineTooLong
    if last := b"".join(rest):
        yield last


def first_wrong(
    rows: Iterator[Row],
    given: int,
    check: Callable[[bytes], object],
    problem: Exception,
    names: Sequence[str] | None,
    raw: RawColumns,
) -> tuple[int | None, str]:
    """The line of the first wrong row after the first `given` rows, and the problem in words.

    A row is wrong where `check` raises. Where no row is wrong by itself, the line is None and the
    problem is `problem`.
    """
    for _ in range(given):
        next(rows, None)
    for line, row in rows:
        try:
            check(row)
        except pa.ArrowInvalid as found:
            return line, _with_remedy(in_words(str(found), names, raw))
    return None, _with_remedy(in_words(str(problem), names, raw))


def of_another_kind(kind: str) -> str:
    """A line of JSON that is no object, with what to do."""
    return _with_remedy(_of_another_kind(kind))


def _of_another_kind(kind: str) -> str:
    return f"a row is an object, and this is of another kind: {kind}"


def _with_remedy(words: str) -> str:
    if ": '' is no " in words:
        return f"{words}. An empty text in quotes is a text: leave out the quotes where it is NULL"
    return next(
        (f"{words}: {told}" for end, told in _REMEDIES.items() if words.endswith(end)), words
    )


def in_words(problem: str, names: Sequence[str] | None, raw: RawColumns) -> str:
    """A problem of Arrow with a row, in words for the user."""
    if (found := _NOT_CONVERTED.match(problem)) and names is not None:
        column, type, reason = names[int(found[1])], _type(found[2]), found[3]
        if column in raw.durations:
            type = "INTERVAL, which is a whole number of microseconds"
        if value := re.match(r"invalid value '(.*)'", reason, re.DOTALL):
            return f"column {column!r}: {value[1]!r} is no {type}"
        if "invalid UTF8" in reason:
            return f"column {column!r}: {NOT_UTF8}"
        return f"column {column!r}: no {type}: {reason.splitlines()[0]}"
    if (found := _NO_NUMBER.match(problem)) and names is not None:
        told = f"column {names[int(found[1])]!r}: {found[2]!r} is no number"
        # Arrow reads both DECIMALs and times that are numbers in this way.
        is_time = re.search(r"\d[-:]\d", found[2])
        return f"{told}, and --time-format says that times are numbers" if is_time else told
    if found := _OF_DECIMAL.match(problem):
        return _of_decimal(found, names, raw)
    if found := _COUNT.match(problem):
        return f"the file has {found[1]} columns, and this row has {found[2]}"
    if found := _JSON_KIND.match(problem):
        if not found[1]:
            return _of_another_kind(found[3])
        told = f"{found[1]!r} is of the kind {found[3]}, and {found[2].replace('_', ' ')} is needed"
        return f"{told} for a time" if found[1] in raw.times and found[3] == "number" else told
    if found := _JSON_VALUE.match(problem) or _JSON_DECIMAL.match(problem):
        return f"{found[2]} is no {_type(found[1])}"
    first = problem.splitlines()[0]
    return re.sub(r"\.? in row \d+$", "", first.replace("JSON parse error: ", "no JSON: "))


def _of_decimal(found: re.Match[str], names: Sequence[str] | None, raw: RawColumns) -> str:
    """A number that is no DECIMAL. Times that are numbers are read as DECIMALs."""
    name = names[int(found[1])] if found[1] and names is not None else None
    column = "" if name is None else f"column {name!r}: "
    value, type = found["a"] or found["b"] or found["c"], found["type"] or "DECIMAL"
    if name in raw.times:
        type = "time since 1970"
    elif found["c"]:
        type = "number"
    if found["d"]:
        value = ""
    if value is None:
        return f"{column}a number has more decimals than its type"
    return f"{column}{value!r} is no {_type(type)}"


def _type(arrow: str) -> str:
    """A type as queries name it."""
    return NAMES_OF_TYPES.get(arrow, arrow.replace("decimal128", "DECIMAL"))


def refuse_misread(name: str, column: pa.Array) -> None:
    """Raises ArrowInvalid for what Arrow's readers let pass: a text that is not UTF-8, and a number
    with more digits than its DECIMAL."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as problem:
        told = NOT_UTF8 if "UTF8" in str(problem) else f"a value is no {named_type(column.type)}"
        if pa.types.is_decimal(column.type):
            digits = column.type.precision - column.type.scale
            values = (one for one in column.to_pylist() if one is not None)
            long = next(one for one in values if abs(one) >= 10**digits)
            told = f"{long:f} is no {named_type(column.type)}"
        raise pa.ArrowInvalid(f"column {name!r}: {told}") from None
