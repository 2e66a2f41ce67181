"""Matches as a table for people: columns where they fit, else one match a block.

The first matches decide the layout. No column becomes narrower than its longest word, so names and
numbers can be read and copied.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import IO

import pyarrow as pa
from celc_runtime.arrow.short_floats import shown_rows
from celc_runtime.arrow.shown import duration_text
from rich.cells import cell_len

from celc.diagnostics.source import visible
from celc.interfaces.cli.match_formats import AnyRows, OtherRows

_BETWEEN_COLUMNS = 2  # spaces between two columns

_WORDS = re.compile(r"(?<!\d{4}-\d\d-\d\d) ")
"""The space between words. A day and its time are one word."""

Lines = list[str]


class Table:
    """The first `most` matches, drawn when `most` or all have come, and the number of all matches.
    `warn_beyond`: warns where there are more, because the table goes to a file."""

    def __init__(
        self,
        query: AnyRows,
        out: IO[bytes],
        most: int,
        width: int,
        *,
        warn_beyond: bool,
    ) -> None:
        self._names = [visible(name) for name in query.output_schema.names]
        self._are_matches = not isinstance(query, OtherRows) and query.plan.is_of_matches
        self._out = out
        self._most = most
        self._width = width
        self._warn_beyond = warn_beyond
        self._rows: list[list[object]] = []
        self._count = 0
        self._drawn = False
        self._times = Times([])

    def write(self, matches: pa.RecordBatch | None) -> None:
        """Take a batch of matches; None: there are no more."""
        if matches is not None:
            left = max(0, self._most - self._count)
            self._rows += [list(row.values()) for row in shown_rows(matches.slice(0, left))]
            self._count += len(matches)
        if not self._drawn and (matches is None or self._count >= self._most):
            self._drawn = True
            self._times = Times(self._rows)
            self._put("".join(f"{line}\n" for line in self._drawing()))
            self._rows.clear()
        if matches is None:
            self._put(self._end())

    def _drawing(self) -> Iterator[str]:
        cells = [[self._times.lines(value) for value in row] for row in self._rows]
        widths = column_widths(self._names, cells, self._width)
        if widths is None:
            return blocks(self._names, cells, self._width)
        return columns(self._names, cells, widths)

    def _end(self) -> str:
        count, most = self._count, self._most
        one, many = ("match", "matches") if self._are_matches else ("row", "rows")
        text = f"{count:,} {one if count == 1 else many}"
        if count > most:
            text += f", the first {most:,} shown"
            if self._warn_beyond:
                warnings.warn(
                    f"the file has the first {most:,} of {count:,} matches, the most that a table "
                    "can have: use another format for all of them",
                    stacklevel=2,
                )
        return f"{text}{self._times.note}\n"

    def _put(self, text: str) -> None:
        self._out.write(text.encode("utf-8", "backslashreplace"))


# --- values ---------------------------------------------------------------------------------------


class Times:
    """Values as text. Times are short: without their zone UTC, and without the day where all share
    it."""

    def __init__(self, rows: Sequence[Sequence[object]]) -> None:
        found = list(_times_in(rows))
        days = {time.date() for time in found}
        self._day: date | None = days.pop() if len(days) == 1 else None
        self.note = ""
        if found:
            on = f" on {self._day}" if self._day is not None else ""
            self.note = f" (times in UTC{on})"
        """The note on times below the table."""

    def lines(self, value: object) -> Lines:
        """The lines of a cell."""
        if isinstance(value, list):
            return [line for item in value for line in self._item(item)]
        return self._item(value) if isinstance(value, dict) else [self._text(value)]

    def _item(self, item: object) -> Lines:
        if not isinstance(item, dict):
            return self.lines(item)
        told = ", ".join(
            f"{visible(name)}={self._text(value)}" for name, value in item.items() if name != "pos"
        )
        if "pos" not in item:
            return [told]  # the row of a parameter set
        return [f"#{item['pos']}" + (f" {told}" if told else "")]

    def _text(self, value: object) -> str:
        if isinstance(value, datetime):
            plain = _utc(value)
            return str(plain.time() if self._day is not None else plain)
        if isinstance(value, timedelta):
            return duration_text(value)
        if isinstance(value, bytes):
            return value.hex()
        return "NULL" if value is None else visible(str(value))


def _times_in(value: object) -> Iterator[datetime]:
    if isinstance(value, datetime):
        yield _utc(value)
    elif isinstance(value, dict):
        yield from _times_in(list(value.values()))
    elif isinstance(value, list):
        for item in value:
            yield from _times_in(item)


def _utc(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo is not None else time


# --- layout ---------------------------------------------------------------------------------------


def column_widths(
    names: Sequence[str], cells: Sequence[Sequence[Lines]], width: int
) -> list[int] | None:
    """The widths of columns side by side; None where they do not fit into `width`. A column is at
    least as wide as its longest word. Columns with longer lines get the rest of the width."""
    least, whole = [], []
    for place, name in enumerate(names):
        lines = [line for row in cells for line in row[place]]
        least.append(max([cell_len(name), *map(_longest_word, lines)]))
        whole.append(max([cell_len(name), *map(cell_len, lines)]))
    left = width - sum(least) - _BETWEEN_COLUMNS * (len(names) - 1)
    if left < 0:
        return None
    needs = sorted(range(len(names)), key=lambda place: whole[place] - least[place])
    for done, place in enumerate(needs):
        more = min(whole[place] - least[place], left // (len(needs) - done))
        least[place] += more
        left -= more
    return least


def _longest_word(line: str) -> int:
    return max(map(cell_len, _WORDS.split(line)))


def columns(
    names: Sequence[str], cells: Sequence[Sequence[Lines]], widths: Sequence[int]
) -> Iterator[str]:
    """A line of names, and below it the matches."""
    yield _joined(names, widths)
    yield _joined(["─" * width for width in widths], widths)
    for row in cells:
        wrapped = [
            [part for line in lines for part in _wrapped(line, width)]
            for lines, width in zip(row, widths, strict=True)
        ]
        for number in range(max(map(len, wrapped), default=0)):
            yield _joined([part[number] if number < len(part) else "" for part in wrapped], widths)


def _joined(texts: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        text + " " * (width - cell_len(text)) for text, width in zip(texts, widths, strict=True)
    ]
    return (" " * _BETWEEN_COLUMNS).join(padded).rstrip(" ")


def blocks(names: Sequence[str], cells: Sequence[Sequence[Lines]], width: int) -> Iterator[str]:
    """Each match below its own line, with a line or more for each column."""
    names_width = max(map(cell_len, names))
    for number, row in enumerate(cells, start=1):
        title = f"── match {number:,} "
        yield title + "─" * max(0, min(width, 80) - cell_len(title))
        for name, lines in zip(names, row, strict=True):
            room = width - names_width - _BETWEEN_COLUMNS
            parts = [part for line in lines for part in _wrapped(line, room)]
            for first, part in enumerate(parts or [""]):
                yield _joined([name if not first else "", part], [names_width, 0])


def _wrapped(line: str, width: int) -> Lines:
    """A line in parts of a width, cut between words; a longer word stays whole."""
    parts = [""]
    for place, word in enumerate(_WORDS.split(line)):
        if place and cell_len(parts[-1]) + 1 + cell_len(word) <= width:
            parts[-1] += f" {word}"
        elif place:
            parts.append(word)
        else:
            parts[-1] = word
    return parts


def table(
    query: AnyRows,
    out: IO[bytes],
    most: int,
    width: int,
    *,
    warn_beyond: bool,
) -> Callable[[pa.RecordBatch | None], None]:
    """A writer of a table that is `width` wide, with up to `most` matches."""
    return Table(query, out, most, width, warn_beyond=warn_beyond).write
