"""Which rows of a damaged piece look plain, as values of their types are usually written.

It only saves time: where some rows of a piece cannot be read, those that do not look plain are
tried first. Whether a row can be read, Arrow alone decides.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

Looks = Callable[[bytes], bool]
"""Whether a row looks plain."""

_TIME = rb"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?)?"
_INTEGER = rb"-?\d{1,18}"
_NUMBER = rb"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"


def _pattern(type: pa.DataType) -> bytes | None:
    """How values of a type are usually written; None: texts, and what has no usual form."""
    if pa.types.is_timestamp(type) or pa.types.is_date(type):
        return _TIME
    if pa.types.is_integer(type):
        return _INTEGER
    return _NUMBER if pa.types.is_floating(type) else None


def csv_looks(names: Sequence[str], types: Mapping[str, pa.DataType], delimiter: str) -> Looks:
    """For rows of CSV with these columns; `types` are those of the columns that are read."""
    between = re.escape(delimiter.encode())
    text = rb'(?:(?![",' + between + rb"])[\t\x20-\x7e])*"
    cells = [_pattern(types[name]) if name in types else None for name in names]
    row = re.compile(
        between.join(text if cell is None else b"(?:" + cell + b")?" for cell in cells) + rb"\r?\n?"
    )
    return lambda given: row.fullmatch(given) is not None


def json_looks(types: Mapping[str, pa.DataType]) -> Looks:
    """For lines of JSON; `types` are those of the keys that are read."""
    numbers = [name for name, type in types.items() if _pattern(type) in (_INTEGER, _NUMBER)]
    texts = [name for name, type in types.items() if pa.types.is_string(type)]
    times = [name for name, type in types.items() if _pattern(type) == _TIME]
    time = re.compile(_TIME.decode())

    def looks(row: bytes) -> bool:
        try:
            keys = json.loads(row)
        except (ValueError, RecursionError):
            return False
        return (
            isinstance(keys, dict)
            and all(isinstance(keys.get(name, 0), int | float) for name in numbers)
            and all(isinstance(keys.get(name, ""), str) for name in texts)
            and all(time.fullmatch(str(keys.get(name, "1970-01-01"))) for name in times)
        )

    return looks
