"""The rows of a file of text, CSV or JSON lines, as Arrow parses them block by block.

Arrow wants each row to lie in one block. So blocks grow where a row is longer, and a wrong row is
reported with its line. Arrow has one error for both, and only its words differ; words change with
versions. So the rows that Arrow had read when it failed are measured.
"""

import io
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from celc_runtime.plan.frozen import frozen

from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.reading.origins import Feed, Origin
from celc.interfaces.cli.reading.text_rows import (
    FirstBytes,
    LineTooLong,
    Row,
    csv_rows,
    first_wrong,
    json_rows,
    longest_row,
    whole_lines,
)

_BLOCK = 1 << 20  # bytes parsed at a time; Arrow reads some blocks ahead, so this bounds memory
_LONGEST_BLOCK = 64 << 20  # a block grows up to this size
_GROWTH = 8


@frozen
class TextRows:
    """The rows of one file. `durations` are its columns of INTERVALs, which Arrow reads as
    numbers."""

    origin: Origin
    delimiter: str
    durations: tuple[str, ...]

    @property
    def comes_slowly(self) -> bool:
        """Whether some rows may not be written yet while others are matched."""
        return self.origin.spool is not None

    def rows(self, stream: io.RawIOBase) -> Iterator[Row]:
        """The rows, each with the number of its first line."""
        if self.origin.format == "csv":
            return csv_rows(stream, self.delimiter)
        return json_rows(stream)

    def batches(
        self,
        parsed: Callable[[Feed | io.BytesIO, int], Any],
        finished: Callable[[pa.RecordBatch], pa.RecordBatch],
        check: Callable[[bytes], None],
        progress: Callable[[int], None],
        names: list[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Batches of rows as `parsed` reads them in blocks of a length, and `finished`.

        `check` raises for a row that is wrong by itself; `names` are the file's columns. Raises
        CommandProblem for the first row that is wrong or too long.
        """
        block, given = _BLOCK, 0
        while True:
            again = given
            try:
                with self.origin.opened() as stream:
                    try:
                        for batch in self._parsed(parsed, stream, block):
                            progress(stream.taken)
                            left = min(again, len(batch))
                            again -= left
                            batch = finished(batch.slice(left))
                            given += len(batch)
                            if len(batch):
                                yield batch
                    except pa.ArrowInvalid:
                        # A row that is cut off is not reported where the file itself is cut off.
                        stream.check()
                        raise
                return
            except LineTooLong:
                raise self._too_long(given) from None
            except pa.ArrowInvalid as problem:
                longest = self._longest(given, stream.handed)
                if longest is None and stream.handed < block and self.origin.format == "json":
                    return  # Arrow refuses JSON without rows.
                if longest is not None and longest < block:
                    raise self._located(problem, given, check, names) from None
            if block >= _LONGEST_BLOCK:
                raise self._too_long(given)
            block *= _GROWTH

    def _too_long(self, given: int) -> CommandProblem:
        return CommandProblem(
            f"{self.origin.name}: a row after row {given:,} is longer than "
            f"{_LONGEST_BLOCK >> 20} MiB, which is the most that can be read: shorten the values "
            "that the query does not need, or write the file as Parquet"
        )

    def _parsed(
        self, parsed: Callable[[Feed | io.BytesIO, int], Any], stream: Feed, block: int
    ) -> Iterator[pa.RecordBatch]:
        if self._in_whole_lines:
            for lines in whole_lines(stream, block, _LONGEST_BLOCK):
                yield from parsed(io.BytesIO(lines), len(lines) + 1)
        else:
            yield from parsed(stream, block)

    @property
    def _in_whole_lines(self) -> bool:
        return self.comes_slowly and self.origin.format == "json"

    def _longest(self, given: int, handed: int) -> int | None:
        """The bytes of the longest row after the first `given` ones, among the bytes that Arrow
        got; None: there is no row."""
        if self._in_whole_lines:
            return 0  # Blocks are as long as the lines.
        with self.origin.opened() as stream:
            return longest_row(self.rows(FirstBytes(stream, handed)), given)

    def _located(
        self,
        problem: pa.ArrowInvalid,
        given: int,
        check: Callable[[bytes], None],
        names: list[str] | None,
    ) -> CommandProblem:
        """The problem with the line of the first row that has it, among those after `given`."""
        with self.origin.opened() as stream:
            rows = self.rows(stream)
            line, text = first_wrong(rows, given, check, problem, names, self.durations)
        where = self.origin.name if line is None else f"{self.origin.name}, line {line:,}"
        return CommandProblem(f"{where}: {text}")
