"""The rows of a file of text, CSV or JSON lines, as Arrow parses them block by block.

Arrow wants each row to lie in one block. So blocks grow where a row is longer, and a wrong row is
reported with its line. Arrow has one error for both, and only its words differ; words change with
versions. So the rows that Arrow had read when it failed are measured.
"""

import io
from collections.abc import Callable, Iterator
from itertools import chain, takewhile

import pyarrow as pa

from celc.interfaces.cli.problems import CommandProblem, RowProblem
from celc.interfaces.cli.reading.good_rows import (
    Judge,
    Wrong,
    csv_pieces,
    good_pieces,
    json_pieces,
)
from celc.interfaces.cli.reading.null_rows import Parsed, refuse_null_rows, without_null_rows
from celc.interfaces.cli.reading.origins import Origin
from celc.interfaces.cli.reading.plain_rows import Looks
from celc.interfaces.cli.reading.quotation_marks import NOT_CLOSED, QuotationMarks, line_of
from celc.interfaces.cli.reading.text_rows import (
    FirstBytes,
    LineTooLong,
    RawColumns,
    Row,
    csv_rows,
    first_wrong,
    in_words,
    json_rows,
    longest_row,
    whole_lines,
)

_BLOCK = 1 << 20  # bytes parsed at a time; Arrow reads some blocks ahead, so this bounds memory
_PIECE = 1 << 18  # bytes that are taken apart at a time, where wrong rows are left out
_LONGEST_BLOCK = 64 << 20  # a block grows up to this size
_GROWTH = 8


class TextRows:
    """The rows of one file. `raw` are columns that Arrow reads in other types. `wrong` is told of
    each row that cannot be read, which is left out then; None: it is an error."""

    def __init__(
        self, origin: Origin, delimiter: str, raw: RawColumns, wrong: Wrong | None
    ) -> None:
        self.origin = origin
        self.delimiter = delimiter
        self._raw = raw
        self._wrong = wrong
        self._judge: tuple[Judge, Looks] | None = None

    @property
    def comes_slowly(self) -> bool:
        """Whether some rows may not be written yet while others are matched."""
        return self.origin.spool is not None

    def rows(self, stream: io.RawIOBase) -> Iterator[Row]:
        """The rows that are read, each with the number of its first line."""
        if self._judge is not None:
            pieces = self._good_pieces(stream, *self._judge, lambda row, why: None)
            return chain.from_iterable(pieces)
        if self.origin.format == "csv":
            return csv_rows(stream, self.delimiter)
        return json_rows(stream)

    def batches(
        self,
        parsed: Parsed,
        learn: Callable[[pa.RecordBatch], None],
        finished: Callable[[pa.RecordBatch], pa.RecordBatch],
        looks: Looks,
        progress: Callable[[int], None],
        names: list[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Batches of rows as `parsed` reads them in blocks of a length, and `finished`; `learn`
        gets each batch before, and `looks` tells which rows look plain.

        `names` are the file's columns, which `parsed` takes where the bytes do not begin with them.
        Raises CommandProblem for the first row that is wrong (unless `wrong` is told of it) or too
        long.
        """
        if self.origin.format == "json":
            parsed = without_null_rows(parsed)
        judge = self._judging(parsed, finished, names)
        self._judge = None if self._wrong is None else (judge, looks)
        block, given = _BLOCK, 0
        while True:
            again = given
            marks: QuotationMarks | None = None
            try:
                with self.origin.opened() as stream:
                    if self.origin.format == "csv" and self._judge is None:
                        marks = QuotationMarks(stream, self.delimiter)
                    try:
                        for batch in self._parsed(parsed, marks or stream, block, names):
                            if marks is not None and marks.wrong is not None:
                                raise pa.ArrowInvalid(NOT_CLOSED)
                            progress(stream.taken)
                            left = min(again, len(batch))
                            again -= left
                            learn(batch)
                            batch = finished(batch.slice(left))
                            given += len(batch)
                            if len(batch):
                                yield batch
                    except pa.ArrowInvalid:
                        # A row that is cut off is not reported where the file itself is cut off.
                        stream.check()
                        raise
                if marks is None or marks.wrong is None:
                    return
                raise self._before_mark(marks.wrong, given, judge, names)
            except LineTooLong:
                raise self._too_long(given) from None
            except pa.ArrowInvalid as problem:
                if marks is not None and marks.wrong is not None:
                    raise self._before_mark(marks.wrong, given, judge, names) from None
                longest = self._longest(given, stream.handed)
                has_no_rows = self.origin.format == "json" or not given
                if longest is None and stream.handed < block and has_no_rows:
                    return  # Arrow refuses JSON without rows, and names of columns without an end.
                if longest is not None and longest < block:
                    raise self._located(problem, given, judge, names) from None
            if block >= _LONGEST_BLOCK:
                if marks is not None and marks.open_lines is not None:
                    raise self._not_closed(marks.open_lines)
                raise self._too_long(given)
            block *= _GROWTH

    def _judging(
        self,
        parsed: Parsed,
        finished: Callable[[pa.RecordBatch], pa.RecordBatch],
        names: list[str] | None,
    ) -> Judge:
        def judge(rows: bytes) -> int:
            if self.origin.format == "json":
                refuse_null_rows(rows)
            read = parsed(pa.BufferReader(rows), len(rows) + 1, names)
            return sum(len(finished(batch)) for batch in read)

        return judge

    def in_words(self, problem: Exception, names: list[str] | None) -> str:
        """A problem of Arrow with a row, in words for the user."""
        return in_words(str(problem), names, self._raw)

    def _too_long(self, given: int) -> CommandProblem:
        return CommandProblem(
            f"{self.origin.name}: a row after row {given:,} is longer than "
            f"{_LONGEST_BLOCK >> 20} MiB, which is the most that can be read: shorten the values "
            "that the query does not need, or write the file as Parquet"
        )

    def refuse_open_marks(self) -> None:
        """Raises CommandProblem for the first quotation mark of a CSV file that is wrong."""
        with self.origin.opened() as stream:
            marks = QuotationMarks(stream, self.delimiter)
            while marks.read(_BLOCK):
                pass
        if marks.wrong is not None:
            raise self._not_closed(marks.wrong)

    def _not_closed(self, place: int) -> CommandProblem:
        """The problem of a quotation mark at a place in the file."""
        with self.origin.opened() as stream:
            line = line_of(stream, place)
        return CommandProblem(
            f"{self.origin.name}, line {line:,}: {NOT_CLOSED}. The next rows would become part of "
            "its text: close it, or leave the row out with --on-bad-row"
        )

    def _before_mark(
        self, place: int, given: int, check: Callable[[bytes], object], names: list[str] | None
    ) -> CommandProblem:
        """The first wrong row before a quotation mark that is wrong, or the mark."""
        with self.origin.opened() as stream:
            mark = line_of(stream, place)
        with self.origin.opened() as stream:
            rows = takewhile(lambda row: row[0] < mark, self.rows(stream))
            problem = pa.ArrowInvalid(NOT_CLOSED)
            line, text = first_wrong(rows, given, check, problem, names, self._raw)
        if line is None:
            return self._not_closed(place)
        return RowProblem(f"{self.origin.name}, line {line:,}: {text}")

    def _parsed(
        self,
        parsed: Parsed,
        stream: io.RawIOBase,
        block: int,
        names: list[str] | None,
    ) -> Iterator[pa.RecordBatch]:
        if self._judge is not None and self._wrong is not None:
            for piece in self._good_pieces(stream, *self._judge, self._wrong):
                rows = b"".join(row for _, row in piece)
                yield from parsed(pa.BufferReader(rows), len(rows) + 1, names)
        elif self._in_whole_lines:
            for lines in whole_lines(stream, block, _LONGEST_BLOCK):
                if lines.strip():
                    yield from parsed(pa.BufferReader(lines), len(lines) + 1, names)
        else:
            yield from parsed(stream, block, None)

    def _good_pieces(
        self, stream: io.RawIOBase, judge: Judge, looks: Looks, wrong: Wrong
    ) -> Iterator[list[Row]]:
        if self.origin.format == "csv":
            pieces = csv_pieces(stream, self.delimiter, _PIECE, _LONGEST_BLOCK, wrong)
        else:
            pieces = json_pieces(stream, _PIECE, _LONGEST_BLOCK)
        return good_pieces(pieces, judge, looks, wrong)

    @property
    def _in_whole_lines(self) -> bool:
        return self.comes_slowly and self.origin.format == "json"

    def _longest(self, given: int, handed: int) -> int | None:
        """The bytes of the longest row after the first `given` ones, among the bytes that Arrow
        got; None: there is no row."""
        if self._in_whole_lines or self._judge is not None:
            return 0  # Blocks are as long as the lines.
        with self.origin.opened() as stream:
            return longest_row(self.rows(FirstBytes(stream, handed)), given)

    def _located(
        self,
        problem: pa.ArrowInvalid,
        given: int,
        check: Callable[[bytes], object],
        names: list[str] | None,
    ) -> CommandProblem:
        """The problem with the line of the first row that has it, among those after `given`."""
        with self.origin.opened() as stream:
            rows = self.rows(stream)
            line, text = first_wrong(rows, given, check, problem, names, self._raw)
        where = self.origin.name if line is None else f"{self.origin.name}, line {line:,}"
        return RowProblem(f"{where}: {text}")
