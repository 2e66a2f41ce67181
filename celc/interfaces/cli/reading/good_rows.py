"""The rows of a text file that can be read, without those that cannot (`--on-bad-row`).

Arrow refuses a whole block for one wrong row. So the file is taken apart into rows first, and a
piece of rows that Arrow refuses is parted until the wrong rows stand alone. A row is wrong exactly
where Arrow, or the reading of times, refuses it alone: the answer is that of the file without these
rows. Reading each value in Python would take longer, and would accept other values.
"""

import csv
import io
from collections import deque
from collections.abc import Callable, Iterator

import pyarrow as pa

from celc.interfaces.cli.reading.plain_rows import Looks
from celc.interfaces.cli.reading.quotation_marks import NOT_CLOSED
from celc.interfaces.cli.reading.text_rows import Row, whole_lines

Judge = Callable[[bytes], int]
"""Counts the rows in bytes; raises ArrowInvalid where one cannot be read."""

Wrong = Callable[[Row, Exception], None]
"""Is told of a row that is left out, and why."""

_ANOTHER_COUNT = "a line holds one row, and this line holds another number"


def good_pieces(
    pieces: Iterator[list[Row]], judge: Judge, looks: Looks, wrong: Wrong
) -> Iterator[list[Row]]:
    """Pieces of rows that can be read together; `wrong` is told of each other row, in order."""
    for rows in pieces:
        problems = dict(_problems(rows, judge, looks))
        for row in rows:
            if row[0] in problems:
                wrong(row, problems[row[0]])
        if good := [row for row in rows if row[0] not in problems]:
            yield good


def _problems(
    rows: list[Row], judge: Judge, looks: Looks | None
) -> Iterator[tuple[int, Exception]]:
    """The lines of rows that cannot be read. With `looks`, they are first sought among rows that do
    not look plain."""
    try:
        if judge(b"".join(row for _, row in rows)) == len(rows):
            return
        problem: Exception = pa.ArrowInvalid(_ANOTHER_COUNT)
    except pa.ArrowInvalid as found:
        problem = found
    if len(rows) == 1:
        yield rows[0][0], problem
        return
    if looks is not None:
        plain: list[Row] = []
        others: list[Row] = []
        for row in rows:
            (plain if looks(row[1]) else others).append(row)
        if plain and others:
            yield from _problems(plain, judge, None)
            if len(others) > len(plain) // 4:
                yield from _problems(others, judge, None)
            else:
                for row in others:
                    yield from _problems([row], judge, None)
            return
    middle = len(rows) // 2
    yield from _problems(rows[:middle], judge, None)
    yield from _problems(rows[middle:], judge, None)


def json_pieces(stream: io.RawIOBase, block: int, longest: int) -> Iterator[list[Row]]:
    """The nonempty lines of a JSON lines file, in pieces as they come."""
    before = 0
    for lines in whole_lines(stream, block, longest):
        split = list(io.BytesIO(lines))
        yield [(before + n, line) for n, line in enumerate(split, start=1) if line.strip()]
        before += len(split)


def csv_pieces(
    stream: io.RawIOBase, delimiter: str, block: int, longest: int, wrong: Wrong
) -> Iterator[list[Row]]:
    """The rows of a CSV file after the names of columns, in pieces as they come.

    A quotation mark that is not closed would swallow the rows up to the next one. So a row of
    several lines must close its quotation marks right before a delimiter or the end of a line; of
    another, `wrong` is told, with its first line, and its other lines are rows again.
    """
    lines = _Lines(stream, block, longest)
    csv.field_size_limit(max(csv.field_size_limit(), longest))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    named, number = False, 1
    piece: list[Row] = []
    while True:
        problem = ""
        try:
            cells = next(reader, None)
        except csv.Error:
            cells = [""]
            if len(lines.taken) > 1 or lines.ended:
                problem = NOT_CLOSED
        if cells is None:
            break
        taken = lines.taken[:1] if problem else lines.taken
        row = number, "".join(taken).encode("utf-8", "surrogateescape")
        number += len(taken)
        lines.take_back(len(taken))
        if not named:
            named = bool(cells)
        elif problem:
            if piece:
                yield piece
                piece = []
            wrong(row, pa.ArrowInvalid(problem))
        elif cells:
            piece.append(row)
        if piece and lines.waits:
            yield piece
            piece = []
    if piece:
        yield piece


class _Lines:
    """The lines of a stream, for a reader of CSV. Some can be taken back, even after the last."""

    def __init__(self, stream: io.RawIOBase, block: int, longest: int) -> None:
        self._blocks = whole_lines(stream, block, longest)
        self._next: deque[str] = deque()
        self._first = True
        self.taken: list[str] = []
        """The lines that were handed out since the last row."""
        self.ended = False
        """Whether the last line that was asked for was not there."""

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        while not self._next:
            block = next(self._blocks, None)
            if block is None:
                self.ended = True
                raise StopIteration
            text = block.decode("utf-8", "surrogateescape")
            if self._first:
                text, self._first = text.removeprefix("\ufeff"), False
            self._next.extend(io.StringIO(text, newline=""))
        self.ended = False
        self.taken.append(self._next.popleft())
        return self.taken[-1]

    def take_back(self, kept: int) -> None:
        """Forget the first `kept` lines of those that were handed out; the others come again."""
        self._next.extendleft(reversed(self.taken[kept:]))
        self.taken.clear()

    @property
    def waits(self) -> bool:
        """Whether the next line may not have come yet."""
        return not self._next
