"""Matches as `celc run` writes them. A writer takes batches of matches, and None at the end."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.csv
from celc_runtime.arrow.short_floats import shown_rows, shown_values
from celc_runtime.plan.plan import DECIDED_TIME, MATCH_ID, MATCHES, Label
from celc_runtime.plan.uncertain import CONFIDENCE
from celc_runtime.query import CompiledQuery

from celc.diagnostics.source import visible, visible_json
from celc.interfaces.cli.output import is_written_directly
from celc.interfaces.cli.problems import CommandProblem

if TYPE_CHECKING:
    from celc_runtime.row_pattern.query import RowPatternQuery

Writer = Callable[[pa.RecordBatch | None], None]

ROWS_SHOWN = 40  # matches in a table at a terminal

# matches in a table in a file; it is laid out as a whole, so this bounds memory
ROWS_IN_FILE = 10_000

FORMATS = ("table", "json", "rows", "csv", "parquet", "html")

_ENDINGS = {
    ".csv": "csv",
    ".html": "html",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".txt": "table",
}


@dataclass(frozen=True)
class OtherRows:
    """Rows that are the answer of no single query."""

    name: str
    output_schema: pa.Schema


AnyRows: TypeAlias = "CompiledQuery | RowPatternQuery | OtherRows"


def format_of(output: Path | None, named: str | None) -> str:
    """The format to write: the named one, or that of the output file's ending.

    A file whose ending says no format gets none by default, because users would find too late that
    it holds a drawn table. Raises CommandProblem for such a file, and where the ending says another
    format than the named one.
    """
    if output is None or is_written_directly(output):
        return named or "table"
    ending = output.suffix.lower()
    meant = _ENDINGS.get(ending)
    said = "json" if named == "rows" else named  # both are lines of JSON
    if named is not None and meant is not None and meant != said:
        raise CommandProblem(
            f"{output} ends in {ending}, which means the format {meant}, and --format says "
            f"{named}: leave out --format, or choose another ending"
        )
    if named is None and meant is None:
        raise CommandProblem(
            f"{output}: the ending of its name says no format. Use one of {', '.join(_ENDINGS)} "
            f"(.txt: a table), or choose with --format {'|'.join(FORMATS)}"
        )
    return named or meant or "table"


PLACE_OF_NAME = "{query}"
"""Stands for the name of a query in the name of an output file."""


def files_of(output: Path | None, format: str, queries: Sequence[str]) -> list[Path | None]:
    """The output file of each query; None: standard output. Queries may share one where the format
    can tell their rows apart. Raises CommandProblem where it cannot."""
    named = output is not None and PLACE_OF_NAME in str(output)
    if not named and len(queries) > 1 and format != "json":
        ending = "." + {"rows": "json", "table": "txt"}.get(format, format)
        more = " --format rows" if format == "rows" else ""
        raise CommandProblem(
            f"there are {len(queries)} queries, and the format {format} cannot tell their matches "
            f"apart: name a query with --query ({', '.join(queries)}), write a file for each with "
            f"-o '{PLACE_OF_NAME}{ending}'{more}, or use --format json"
        )
    if not named:
        return [output for _ in queries]
    for name in queries:
        if "/" in name or "\0" in name:
            raise CommandProblem(
                f"the query {name!r} gives no name of a file: name it otherwise, or give its file "
                f"with --query and -o without {PLACE_OF_NAME}"
            )
    return [Path(str(output).replace(PLACE_OF_NAME, name)) for name in queries]


def check_csv_safe(format: str, *, safe: bool) -> None:
    """Raises CommandProblem for --csv-safe with another format."""
    if safe and format != "csv":
        raise CommandProblem(
            f"--csv-safe is for the format csv, and this is {format}: leave it out"
        )


def json_lines(query: AnyRows, out: IO[bytes]) -> Writer:
    """One object per line, as docs/language.md defines it. Rows that are not matches have other
    objects."""
    if not isinstance(query, CompiledQuery) or query.plan.answer.totals is not None:
        return _lines_of_rows(query, out)
    partition_by = query.plan.source.partition_by
    items = query.plan.answer.items  # without positions, a label without attributes has no column
    labels = [item.name for item in items if isinstance(item, Label)]
    computed = [item.name for item in query.plan.answer.expressions]
    # Without positions, the times and the events themselves say which match it is.
    has_positions = query.plan.answer.positions
    times: tuple[str, ...] = () if has_positions else ("start_time", "end_time")
    if query.plan.source.uncertain is not None:
        times = ("start_time", "end_time", CONFIDENCE)
    has_id = query.plan.answer.match_id is not None
    decided = query.plan.shows_decided_time and not query.plan.answer.collapsed

    def write(matches: pa.RecordBatch | None) -> None:
        for row in [] if matches is None else shown_rows(matches):
            line = {
                "query": query.name,
                **({MATCH_ID: json_ready(row[MATCH_ID])} if has_id else {}),
                **_parameters(query, row),
                "partition": {name: json_ready(row[name]) for name in partition_by},
                **({"start": row["start_pos"], "end": row["end_pos"]} if has_positions else {}),
                **({DECIDED_TIME: row[DECIDED_TIME]} if decided else {}),
                **({name: json_ready(row[name]) for name in times}),
                **({MATCHES: json_ready(row[MATCHES])} if query.plan.answer.collapsed else {}),
                "labels": {
                    name: [
                        event["pos"] if has_positions else json_ready(event) for event in row[name]
                    ]
                    for name in labels
                },
                "values": {name: json_ready(row[name]) for name in computed},
            }
            out.write(json_line(line))

    return write


def _lines_of_rows(query: AnyRows, out: IO[bytes]) -> Writer:
    """One object for each row: its columns, with the query's name."""

    def write(rows: pa.RecordBatch | None) -> None:
        for row in [] if rows is None else shown_rows(rows):
            line = {"query": query.name, **_parameters(query, row), "row": json_ready(row)}
            out.write(json_line(line))

    return write


def rows_as_json(query: AnyRows, out: IO[bytes]) -> Writer:
    """One object for each row, with its columns as Parquet has them."""

    def write(rows: pa.RecordBatch | None) -> None:
        for row in [] if rows is None else shown_rows(rows):
            out.write(json_line({name: json_ready(value) for name, value in row.items()}))

    return write


def json_line(row: dict[str, object]) -> bytes:
    """A row as a line of JSON. It has letters of all languages as they are."""
    return (visible_json(json.dumps(row, default=str, ensure_ascii=False)) + "\n").encode()


def _parameters(query: AnyRows, row: dict[str, object]) -> dict[str, object]:
    """The row of the parameter set, which is then not among the other columns."""
    parameters = query.plan.source.parameters if isinstance(query, CompiledQuery) else None
    if parameters is None:
        return {}
    return {"parameters": {parameters.name: json_ready(row.pop(parameters.name))}}


_LONGS = 2**63


def json_ready(value: object) -> object:
    """A value for JSON. Numbers that JSON lacks are texts, as in Spark's `to_json`; durations are
    microseconds.

    Bytes are hexadecimal. A DECIMAL is a text with all its decimals, because readers take long
    numbers for DOUBLEs; a whole one that a LONG can hold is a number, as a LONG is.
    """
    match value:
        case Decimal() if value.as_tuple().exponent == 0 and -_LONGS <= value < _LONGS:
            return int(value)
        case Decimal():
            return f"{value:f}"
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case timedelta():
            return value // timedelta(microseconds=1)
        case bytes():
            return value.hex()
        case list():
            return list(map(json_ready, value))
        case dict():
            return {name: json_ready(item) for name, item in value.items()}
        case _:
            return value


def csv(query: AnyRows, out: IO[bytes], *, safe: bool = False) -> Writer:
    """CSV with a header; a label column has the JSON text of its events. With `safe`, no text is a
    formula of a spreadsheet."""

    def spelled(text: str) -> str:
        text = visible(text) if out.isatty() else text
        return f"'{text}" if safe and _is_formula(text) else text

    schema = _flat(pa.RecordBatch.from_pylist([], query.output_schema), spelled).schema
    writer = pyarrow.csv.CSVWriter(out, schema)

    def write(matches: pa.RecordBatch | None) -> None:
        if matches is None:
            writer.close()
        else:
            writer.write_batch(_flat(matches, spelled))

    return write


_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet that reads a text may run it as a formula."""
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


def parquet(query: AnyRows, out: IO[bytes]) -> Writer:
    """A parquet file of the output schema."""
    import pyarrow.parquet  # it takes longer than a query to compile

    class Quiet(pyarrow.parquet.ParquetWriter):  # type: ignore[misc]
        """A writer that is dropped silently where the events turn out to be wrong."""

        def __del__(self) -> None:
            # The base class would try to finish the file, which is closed by then.
            pass

    writer = Quiet(out, query.output_schema)

    def write(matches: pa.RecordBatch | None) -> None:
        if matches is None:
            writer.close()
        else:
            writer.write_batch(matches)

    return write


def _flat(matches: pa.RecordBatch, spelled: Callable[[str], str]) -> pa.RecordBatch:
    """Matches as cells of CSV; `spelled` writes their texts."""
    columns = []
    for field, column in zip(matches.schema, matches.columns, strict=True):
        if pa.types.is_list(field.type) or pa.types.is_struct(field.type):
            texts = [json.dumps(json_ready(events), default=str) for events in shown_values(column)]
            column = pa.array(texts, pa.string())
        elif pa.types.is_binary(field.type):
            values = [None if one is None else one.hex() for one in column.to_pylist()]
            column = pa.array(values, pa.string())
        elif pa.types.is_string(field.type):
            values = [None if text is None else spelled(text) for text in column.to_pylist()]
            column = pa.array(values, pa.string())
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, list(map(spelled, matches.schema.names)))
