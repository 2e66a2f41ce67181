"""The input rows of a case in a test file, and errors about them.

A case gives its rows as CSV text, lines of JSON, a list of rows, or columns. The readers of `celc
run` read them as if they were a file. An error is shown at the row in the test file.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import CelError, Diagnostic, error
from celc.diagnostics.messages.wording import quoted
from celc.diagnostics.source import Source, Span
from celc.interfaces.cli.match_formats import json_ready
from celc.interfaces.cli.problems import CommandProblem

if TYPE_CHECKING:
    import pyarrow as pa

    from celc.interfaces.cli.reading.origins import Origin
    from celc.interfaces.cli.reading.wanted import Wanted

NAME = "given"
"""The name of the rows in messages of the readers. `Rows.problem` cuts it off, because an error is
shown at its place in the test file."""

FORMS = (
    "a text of CSV, a text with lines of JSON, a list of rows as in [{ type = 'A', v = 1 }], or a "
    "table of columns as in { type = ['A', 'B'], v = [1, 2] }"
)

_LINE = re.compile(rf"{NAME}, line ([\d,]+): (.*)", re.DOTALL)


_OF_OPTIONS = re.compile(r"[;,] (name another form with|and) --time-format.*", re.DOTALL)
"""Advice of the readers about options of the command line, which a test file does not have."""


@frozen
class Rows:
    """The rows of a case as bytes that the readers of files can read."""

    format: str  # "csv" or "json"
    data: bytes
    span: Span  # of the value in the test file
    lines: tuple[Span, ...]  # the place of each line of `data` in the test file; empty: not known

    def origin(self) -> Origin:
        """The rows as a source for the readers of files."""
        from celc.interfaces.cli.reading.origins import Origin

        return Origin(NAME, None, self.format, None, False, len(self.data), data=self.data)

    def problem(self, told: str) -> Diagnostic:
        """An error, at its row. told: the message of the readers or of the query."""
        span, found = self.span, _LINE.match(told)
        if found is not None:
            line = int(found[1].replace(",", "")) - 1
            span = self.lines[line] if line < len(self.lines) else span
            told = found[2]
        told = told.removeprefix(f"{NAME}: ").replace("--type-column", "type_column")
        return error("test-rows", span, _OF_OPTIONS.sub("", told))


def rows_of(value: object, span: Span, at: Callable[..., Span], text: str) -> Rows | str:
    """The rows that a value of a test file gives, or a message that says what is wrong with it.

    span: the place of the value in `text`. at(n): the place of its element n.
    """
    match value:
        case str():
            return rows_of_text(value, span, tuple(lines_of_text(span, text, value)))
        case list() if all(isinstance(one, dict) for one in value):
            places = tuple(at(number) for number in range(len(value)))
            return Rows("json", _json(value), span, places)
        case dict() if value and all(isinstance(one, list) for one in value.values()):
            sizes = {name: len(one) for name, one in value.items()}
            if len({*sizes.values()}) > 1:
                told = ", ".join(f"{name!r} has {size}" for name, size in sizes.items())
                return f"all columns have the same number of rows, and here {told}"
            rows = [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
            return Rows("json", _json(rows), span, tuple(span for _ in rows))
    return f"rows are {FORMS}"


def _json(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row, default=_written) + "\n" for row in rows).encode()


def _written(value: Any) -> object:
    if isinstance(value, dt.datetime):
        return value.isoformat(" ")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return json_ready(value) if isinstance(value, dt.timedelta | bytes) else str(value)


def rows_of_text(value: str, span: Span, places: tuple[Span, ...]) -> Rows:
    """The rows of a text: lines of JSON if it begins with `{`, else CSV.

    places: where its lines stand in the test file.
    """
    if value.lstrip().startswith("{") or not value.strip():
        return Rows("json", value.encode(), span, places)
    return Rows("csv", _without_blanks(value).encode(), span, places)


def lines_of_text(span: Span, text: str, value: str) -> Iterator[Span]:
    """The places of the lines of a TOML text in three quotes; of another text none."""
    quote = text[span.start : span.start + 3]
    if quote not in ('"""', "'''"):
        return
    at = span.start + 3
    for newline in ("\r\n", "\n"):
        if text.startswith(newline, at):
            at += len(newline)
            break
    for _ in value.split("\n"):
        end = text.find("\n", at, span.end)
        end = span.end - 3 if end < 0 else end
        begin = at + len(text[at:end]) - len(text[at:end].lstrip())
        yield Span(begin, max(begin, end))
        at = end + 1


def _without_blanks(text: str) -> str:
    """CSV without the blanks around its fields, which people write to align columns.

    The number of lines stays the same.
    """
    out = io.StringIO()
    quoted = False
    field = ""
    for sign in text:
        if sign == '"':
            quoted = not quoted
        if quoted or sign not in ",\n":
            field += sign
        else:
            out.write(field.strip(" \t\r") + sign)
            field = ""
    out.write(field.strip(" \t\r"))
    return out.getvalue()


def table_of(rows: Rows, wanted: Wanted, source: Source, *, whole: bool = False) -> pa.Table:
    """The events as the query reads them.

    whole: whether it is an error if a column of the query is in no row. Raises CelError at the row
    that is wrong.
    """
    import pyarrow as pa
    from celc_runtime.arrow.arrays import plain_batch

    from celc.interfaces.cli.reading.events import Form
    from celc.interfaces.cli.reading.stream import EventStream

    if not rows.data.strip():
        return pa.table({field.name: pa.array([], field.type) for field in wanted.schema})
    try:
        stream = EventStream([rows.origin()], wanted, Form())
        found = [pa.Table.from_batches([plain_batch(batch)]) for batch in stream.batches()]
        stream.refuse_misspelt()
        if whole and (lacking := stream.lacking()):
            raise CommandProblem(f"no row has {quoted(lacking)}, which {wanted.query} declares")
    except CommandProblem as problem:
        raise CelError(source, (rows.problem(str(problem)),)) from None
    if not found:
        return pa.table({field.name: pa.array([], field.type) for field in wanted.schema})
    return pa.concat_tables(found, promote_options="default")


def placed(rows: Rows, wanted: Wanted, told: str, source: Source) -> CelError:
    """The error of a query that has refused the events, at the row that its message names."""
    from celc.interfaces.cli.reading.events import Form
    from celc.interfaces.cli.reading.stream import EventStream

    try:
        stream = EventStream([rows.origin()], wanted, Form())
        for _ in stream.batches():
            pass
        told = stream.placed(told)
    except CommandProblem:
        pass  # what is wrong has been told by the query
    return CelError(source, (rows.problem(told),))
