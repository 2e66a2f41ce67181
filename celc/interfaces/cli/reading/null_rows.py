"""Lines of JSON that begin with `null`, which are no rows.

Arrow takes such a line for a row without any value, and ends the process where the line is the
first of a block. So Arrow reads a number in place of `null`, which it refuses as it refuses other
lines that are no objects; `refuse_null_rows` then says which line it is.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

Parsed = Callable[[io.RawIOBase | pa.BufferReader, int, list[str] | None], Any]
"""Record batches of bytes, which are parsed in blocks of a length; with names of columns where the
bytes do not begin with them."""

_ROW = re.compile(rb"\n((?:\xef\xbb\xbf)?[ \t\r]*+)null")
_PERHAPS = re.compile(rb"(?:\xef(?:\xbb\xbf?)?)?[ \t\r]*+(?:n(?:ul?)?)?\Z")
_IN_PLACE = rb"\n\g<1>0   "


class NullRows(io.RawIOBase):
    """The bytes of a stream, with a number in place of `null` where a line begins with it."""

    def __init__(self, stream: io.RawIOBase | pa.BufferReader) -> None:
        self._stream = stream
        self._begins = True  # whether the next byte begins a line
        self._held = b""  # the beginning of a line, which may go on to `null`

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        while True:
            more = -1 if size is None or size < 0 else max(1, size - len(self._held))
            data: bytes = self._stream.read(more) or b""
            text = self._held + data
            self._held = b""
            if data and (self._begins or b"\n" in data):
                end = text.rfind(b"\n") + 1
                if _PERHAPS.match(text, end):
                    text, self._held = text[:end], text[end:]
            if b"null" in text:
                before = b"\n" if self._begins else b" "
                text = _ROW.sub(_IN_PLACE, before + text)[1:]
            if text or not data:
                self._begins = text.endswith(b"\n") if text else self._begins
                return text

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def without_null_rows(parsed: Parsed) -> Parsed:
    """`parsed`, which refuses lines that begin with `null`."""
    return lambda stream, block, names: parsed(NullRows(stream), block, names)


def refuse_null_rows(rows: bytes) -> None:
    """Raises ArrowInvalid, in Arrow's words for other lines that are no objects."""
    if b"null" in rows and _ROW.search(b"\n" + rows):
        raise pa.ArrowInvalid("JSON parse error: Column() changed from object to null")
