"""Quotation marks of CSV that are not closed: found while Arrow reads the bytes.

Such a mark would silently take the next rows into its field, up to the next mark. A field may have
several lines; so it is taken for wrong where its mark is never closed, or where it has several
lines and other text follows the closing mark. `--on-bad-row` judges rows in the same way
(`good_rows.csv_pieces`).

Bytes without a quotation mark cost a search for it. Other bytes are scanned by one regular
expression, and only what it does not take is looked at in Python.
"""

from __future__ import annotations

import io
import re
from codecs import BOM_UTF8
from typing import Any

from celc.interfaces.cli.reading.origins import Feed

NOT_CLOSED = "a quotation mark is not closed"

_MARK = b'"'
_INSIDE = re.compile(rb'(?:[^"]++|"")*+')
_LINE_END = re.compile(rb"\r\n|\r|\n")


class QuotationMarks(io.RawIOBase):
    """The bytes of a CSV file, which end before a piece with a mark that is wrong.

    Arrow's threads read them, where an error could end the process. So `wrong` tells it.
    """

    def __init__(self, stream: Feed, delimiter: str) -> None:
        self._stream = stream
        sign = re.escape(delimiter.encode())
        self._ends = (delimiter.encode(), b"\r", b"\n")
        # Text without marks, fields of one line that are closed, and marks inside of other text.
        start, end = rb"(?<=[%b\r\n])" % sign, rb"(?=[%b\r\n])" % sign
        closed = start + rb'"[^"\r\n]*+(?:""[^"\r\n]*+)*+"' + end
        within = rb'(?<![%b\r\n])"' % sign
        self._plain = re.compile(rb'(?:[^"]*+(?:%b|%b))*+[^"]*+' % (closed, within))
        self._rest = b"\n"  # what could not be judged yet, after the byte before it
        self._before = -1  # the place of these bytes in the file
        self._opened: int | None = None
        self._has_lines = False  # whether the field that is open has several lines
        self.wrong: int | None = None
        """The place of a quotation mark that is wrong, in bytes."""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        data = b"" if self.wrong is not None else self._stream.read(size)
        self._judge(data)
        return b"" if self.wrong is not None else data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    @property
    def open_lines(self) -> int | None:
        """The place of a mark that is open since lines, if there is one."""
        return self._opened if self._has_lines else None

    def _judge(self, data: bytes) -> None:
        if self.wrong is not None:
            return
        if self._before < 0 and data.startswith(BOM_UTF8):
            data = b"  \n" + data[3:]  # A mark after it begins a field.
        text, place = self._rest + data, 1
        if self._opened is None and _MARK not in text:
            place = len(text)
        while place < len(text):
            if self._opened is None:
                place = _end(self._plain, text, place)
                if place < len(text):
                    self._opened, self._has_lines = self._before + place, False
                    place += 1
                continue
            end = _end(_INSIDE, text, place)
            self._has_lines = self._has_lines or bool(_LINE_END.search(text, place, end))
            after = text[end + 1 : end + 2]
            if end == len(text) or (not after and data):
                place = end
                break  # The next bytes say where the field ends.
            if self._has_lines and after and after not in self._ends:
                self.wrong = self._opened
                return
            self._opened, place = None, end + 1
        self._rest = text[place - 1 :]
        self._before += place - 1
        if not data:
            self.wrong = self._opened


def _end(pattern: re.Pattern[bytes], text: bytes, place: int) -> int:
    """Where the match of a pattern that matches anything ends."""
    found = pattern.match(text, place)
    assert found is not None
    return found.end()


def line_of(stream: Feed, place: int) -> int:
    """The number of the line at a place in a file, from 1."""
    lines, last = 1, b""
    while place > 0 and (data := stream.read(min(place, 1 << 20))):
        text = last + data
        lines += len(_LINE_END.findall(text)) - len(_LINE_END.findall(last))
        place, last = place - len(data), text[-1:]
    return lines
