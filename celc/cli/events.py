"""Event files for `celc run`: parquet, CSV and JSON lines.

Files are read batch by batch and only the columns that the query reads, so that sorted input of any
size is matched in bounded memory.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
from celc_runtime.paths import arrow_fields, path_of, with_fields

from celc.cli.json_rows import Fields, keys_of
from celc.cli.problems import CommandProblem, words
from celc.cli.times import readable, with_times
from celc.cli.wanted import Wanted

_BLOCK = 1 << 20
"""Bytes that are parsed at a time. Arrow reads a number of blocks ahead, so this bounds memory."""

_LONGEST_BLOCK = 64 << 20
"""A row must lie in one block, so a block grows where a row is longer: to this, and no further."""

_GROWTH = 8

Progress = Callable[[int], None]


class EventFile:
    """A file of events, of which the wanted columns are read.

    It can be read again and again; what it is asked afterwards is about all that was read so far.
    Times in CSV and JSON are ISO 8601; without a zone they are UTC.
    """

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.path = path
        self._wanted = wanted
        self._found: set[str] = set()
        self._types: set[str] = set()
        self._keys: list[str] | None = None
        self._read: Callable[[Progress], Iterator[pa.RecordBatch]] | None = {
            ".parquet": self._parquet,
            ".csv": self._csv,
            ".jsonl": self._json,
            ".ndjson": self._json,
        }.get(path.suffix.lower())

    def batches(self, progress: Progress | None = None) -> Iterator[pa.RecordBatch]:
        """The events in the order of the file; `progress` is told the bytes read so far.

        Raises CommandProblem for a file that cannot be read, or that spells a column otherwise.
        """
        if self._read is None:
            raise CommandProblem(
                f"{self.path.name}: events are read from files that end in .csv, .jsonl, .ndjson, "
                ".parquet"
            )
        with self._reporting():
            for batch in self._read(progress or (lambda _: None)):
                yield self._noted(batch)

    def refuse_misspelt(self) -> None:
        """Raises CommandProblem for an attribute that no row has, and a key that is like it.

        Of CSV and Parquet that is known before any row is read.
        """
        if self._read != self._json:
            return
        if missing := self._unseen():
            known = self._known_keys()
            missing = [name for name in missing if name not in known]
            self._wanted.refuse_misspelt(self.path.name, missing, known)

    def lacking(self) -> list[str]:
        """The wanted names that no row had, though there were events that declare them."""
        unseen = self._unseen()
        if unseen and self._read == self._json:
            known = self._known_keys()
            unseen = [name for name in unseen if name not in known]
        return unseen

    def words_on(self, lacking: list[str]) -> str:
        """What to say of the names that no row had."""
        return self._wanted.words_on(self.path.name, lacking)

    # --- what was found ---------------------------------------------------------------------------

    def _noted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        wanted = self._wanted
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name not in self._found and column.null_count < len(column):
                self._found.add(name)
        if wanted.type_name in batch.schema.names and len(self._types) < len(wanted.types):
            names = batch.column(wanted.type_name).unique().to_pylist()
            self._types |= wanted.types.intersection(names)
        elif wanted.type_name not in batch.schema.names and len(batch):
            self._types |= wanted.types
        return batch

    def _unseen(self) -> list[str]:
        wanted = self._wanted
        return [
            name
            for name in wanted.schema.names
            if name not in self._found
            and (
                name in wanted.required
                if name not in wanted.owners
                else wanted.owners[name] & self._types
            )
        ]

    def _known_keys(self) -> list[str]:
        if self._keys is None:
            depth = max((name.count(".") for name in self._wanted.schema.names), default=0)
            with self._reporting():
                self._keys = keys_of(self.path, depth)
        return self._keys

    def _check_columns(self, given: list[str], present: set[str]) -> None:
        """Whether a file that says what its columns are has those that the query needs."""
        wanted, file = self._wanted, self.path.name
        for name in wanted.schema.names:
            if given.count(name) > 1:
                raise CommandProblem(
                    f"{file} has several columns {name!r}, which query {wanted.query!r} reads: "
                    "drop or rename all but one"
                )
        self._found |= present
        missing = [
            name
            for name in wanted.schema.names
            if name not in present and (name in wanted.owners or name in wanted.required)
        ]
        wanted.refuse_misspelt(file, missing, given)
        wanted.refuse_lacking(file, missing, given)

    def _completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The wanted columns alone, with NULL for those that the file lacks."""
        columns, fields = [], []
        for field in self._wanted.schema:
            if field.name in batch.schema.names:
                column = batch.column(field.name)
            elif field.name in self._wanted.owners:
                column = pa.nulls(len(batch), field.type)
            else:
                continue
            columns.append(column)
            fields.append(pa.field(field.name, column.type))
        if not columns:
            return self._counted(len(batch))
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _counted(self, rows: int) -> pa.RecordBatch:
        """Rows for a query that looks at no column but counts events: a column with a name that
        is longer than all names that the query asks for."""
        name = "*" * (1 + max(map(len, self._wanted.schema.names), default=0))
        return pa.RecordBatch.from_arrays([pa.nulls(rows)], [name])

    # --- formats ----------------------------------------------------------------------------------

    def _parquet(self, progress: Progress) -> Iterator[pa.RecordBatch]:
        schema = self._wanted.schema
        with self.path.open("rb") as stream:
            file = pyarrow.parquet.ParquetFile(stream)
            given = arrow_fields(file.schema_arrow)
            top = [name for name, _ in given]
            present = {name for name in schema.names if top.count(name) > 1}
            present |= {
                name
                for name in schema.names
                if name not in present and _leads_somewhere(name, given)
            }
            self._check_columns([*top, *_inner_names(given)], present)
            texts = [f.name for f in schema if f.name in top and pa.types.is_string(f.type)]
            if not present:
                for group in range(file.num_row_groups):
                    rows = file.metadata.row_group(group).num_rows
                    yield self._counted(rows)
                return
            columns = [name for name in schema.names if name in present]
            file = pyarrow.parquet.ParquetFile(stream, read_dictionary=texts, pre_buffer=False)
            for batch in file.iter_batches(batch_size=1 << 16, columns=columns):
                progress(stream.tell())
                yield self._completed(with_fields(batch, columns))

    def _csv(self, progress: Progress) -> Iterator[pa.RecordBatch]:
        schema = self._wanted.schema
        given = _header(self.path)
        present = set(given).intersection(schema.names)
        self._check_columns(given, present)
        # With no column to read, the first one tells how many rows there are.
        columns = [name for name in schema.names if name in present] or given[:1]
        known = readable(schema)
        types = {name: known[name] for name in columns if name in known}
        if not present:
            types = {columns[0]: pa.string()}

        def parsed(stream: BinaryIO, block: int) -> Any:
            return pyarrow.csv.open_csv(
                stream,
                read_options=pyarrow.csv.ReadOptions(block_size=block),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=types,
                    include_columns=[] if given.count(columns[0]) > 1 else columns,
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )

        for batch in self._in_blocks(parsed, progress):
            for field in batch.schema:
                # What Arrow has found out of a column holds when a longer block is tried.
                types.setdefault(field.name, field.type)
            yield self._completed(with_times(batch, schema))

    def _json(self, progress: Progress) -> Iterator[pa.RecordBatch]:
        schema = self._wanted.schema
        known = readable(schema)
        fields = Fields(self.path, known)
        untyped = {name: pa.null() for name in schema.names if name not in known}
        asked = {field.name: field.type for field in fields.schema}

        def parsed(stream: BinaryIO, block: int) -> Any:
            return pyarrow.json.open_json(
                stream,
                read_options=pyarrow.json.ReadOptions(block_size=block),
                parse_options=pyarrow.json.ParseOptions(
                    explicit_schema=pa.schema(list(asked.items())),
                    unexpected_field_behavior="infer" if untyped or not asked else "ignore",
                ),
            )

        rows_without_type: int | None = 0
        for batch in self._in_blocks(parsed, progress):
            columns = {name: fields.column(batch, name) for name in known}
            for name in untyped:
                if name in batch.schema.names:
                    columns[name] = batch.column(name)
                    asked.setdefault(name, columns[name].type)
            type_name = self._wanted.type_name
            if type_name not in self._wanted.required and rows_without_type is not None:
                rows_without_type = self._typeless(columns[type_name], rows_without_type)
                if rows_without_type is not None:
                    del columns[type_name]
            if not columns:
                yield self._counted(len(batch))
                continue
            batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
            yield self._completed(with_times(batch, schema))

    def _typeless(self, types: pa.Array, before: int) -> int | None:
        """How many rows the file has so far, if none of them says its event type; else None.

        A query of one event type needs no such column. But rows that say theirs and rows that do
        not cannot both be right.
        """
        if types.null_count == len(types):
            return before + len(types)
        if before:
            raise CommandProblem(
                f"{self.path.name}: {self._wanted.type_name!r} is NULL or not there in the first "
                f"{before:,} rows, and there in later ones: say the event type in all rows or none"
            )
        return None

    def _in_blocks(
        self, parsed: Callable[[BinaryIO, int], Any], progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        """Batches of parsed rows, in longer blocks from where a row is too long for one."""
        block, given = _BLOCK, 0
        while True:
            again = given
            try:
                with self.path.open("rb") as stream:
                    for batch in parsed(stream, block):
                        progress(stream.tell())
                        left = min(again, len(batch))
                        again -= left
                        batch = batch.slice(left)
                        given += len(batch)
                        if len(batch):
                            yield batch
                return
            except pa.ArrowInvalid as problem:
                if "straddling" not in str(problem):
                    raise
            if block >= _LONGEST_BLOCK:
                raise CommandProblem(
                    f"{self.path.name}: a row after row {given:,} is longer than "
                    f"{_LONGEST_BLOCK >> 20} MiB, which is the most that can be read: shorten the "
                    "values that the query does not need, or write the file as Parquet"
                )
            block *= _GROWTH

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except pa.ArrowException as problem:
            raise CommandProblem(f"{self.path.name}: {str(problem).split(chr(10), 1)[0]}") from None
        except OSError as problem:
            raise CommandProblem(f"{self.path.name}: {words(problem)}") from None


def _header(path: Path) -> list[str]:
    """The names in the first row of a CSV file. Bytes that are no UTF-8 are in no name."""
    with path.open("rb") as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
        try:
            row = next(filter(None, csv.reader(text)), None)
        except csv.Error as problem:
            raise CommandProblem(f"{path.name}: the names of its columns: {problem}") from None
    if row is None:
        raise CommandProblem(f"{path.name} is empty: a CSV file begins with the names of columns")
    return row


def _leads_somewhere(name: str, given: Any) -> bool:
    try:
        return path_of(name, given, arrow_fields) is not None
    except LookupError:
        return False


def _inner_names(given: Any, before: str = "") -> Iterator[str]:
    for name, type in given:
        for inner, below in arrow_fields(type):
            yield f"{before}{name}.{inner}"
            yield from _inner_names([(inner, below)], f"{before}{name}.")
