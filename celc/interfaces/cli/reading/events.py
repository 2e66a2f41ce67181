"""The events of one file for `celc run`: Parquet, CSV and JSON lines. Only the columns that the
query reads are read, batch by batch, so sorted input of any size is matched in bounded memory."""

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
from celc_runtime.arrow.events.paths import arrow_fields, with_fields
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.schemas import NAMES_OF_TYPES

from celc.interfaces.cli.problems import CommandProblem, words
from celc.interfaces.cli.reading.iceberg_tables import IcebergFile
from celc.interfaces.cli.reading.json_fields import Fields, keys_of
from celc.interfaces.cli.reading.left_out import ERRORS, LeftOut
from celc.interfaces.cli.reading.origins import Origin
from celc.interfaces.cli.reading.plain_rows import csv_looks, json_looks
from celc.interfaces.cli.reading.text_blocks import TextRows
from celc.interfaces.cli.reading.text_rows import Row
from celc.interfaces.cli.reading.times import TimeForm, with_durations, with_times
from celc.interfaces.cli.reading.wanted import Wanted, inner_names, leads_somewhere

Progress = Callable[[int], None]


@frozen
class Form:
    """The form of texts in files."""

    delimiter: str | None = None  # between the fields of CSV; default: by the file's ending
    null_texts: tuple[str, ...] = ()  # the texts of CSV that are NULL, besides the empty text
    times: TimeForm = TimeForm()  # of CSV and JSON


class EventFile:
    """The wanted columns of the events of one origin. They can be read again. The other methods
    answer for all events that were read so far."""

    def __init__(
        self, origin: Origin, wanted: Wanted, form: Form, left_out: LeftOut | None = None
    ) -> None:
        self.origin, self._wanted, self._form = origin, wanted, form
        self._left_out = LeftOut(ERRORS) if left_out is None else left_out
        self._found: set[str] = set()
        self._types: set[str] = set()
        self._rows_read = 0
        self._keys: list[str] | None = None
        self.misfits: frozenset[str] = frozenset()  # columns of a type that does not fit
        delimiter = form.delimiter or ("\t" if origin.tabbed else ",")
        wrong = self._wrong if self._left_out.damage.skips_bad_rows else None
        self._rows = TextRows(origin, delimiter, form.times.raw_columns(wanted.schema), wrong)
        self._names: list[str] | None = None
        self._folders = {
            name: self._of_folder(name, text)
            for name, text in origin.folders
            if name in wanted.schema.names
        }
        self._found |= self._folders.keys()
        self._read = {"csv": self._csv, "json": self._json, "parquet": self._parquet}[origin.format]

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.origin.name

    def batches(self, progress: Progress | None = None) -> Iterator[pa.RecordBatch]:
        """The events in the order of the file; `progress` gets the bytes read so far. Raises
        CommandProblem for a file that cannot be read, or that spells a column differently."""
        with self._reporting():
            for batch in self._read(progress or (lambda _: None)):
                has_type = self._has_type(batch)
                if has_type is None:
                    self._left_out.read(len(batch))
                else:
                    typed = batch.filter(has_type)
                    self._left_out.read(len(batch), len(batch) - len(typed))
                    batch = typed
                yield self._noted(batch)

    def _has_type(self, batch: pa.RecordBatch) -> pa.Array | None:
        """Which rows have an event type, if others are left out; None: no row is left out."""
        name = self._wanted.type_name
        if not self._left_out.damage.skips_null_types or name not in batch.schema.names:
            return None
        types = batch.column(name)
        return types.is_valid() if types.null_count else None

    def _wrong(self, row: Row, problem: Exception) -> None:
        """Leave out a row that cannot be read."""
        line, text = row
        self._left_out.bad(self.name, line, text, self._rows.in_words(problem, self._names))

    def refuse_misspelt(self) -> None:
        """Raises CommandProblem where no row has an attribute, but some key is like it.

        CSV and Parquet are checked before any row is read.
        """
        if self.origin.format == "json" and (missing := self.lacking()):
            self._wanted.refuse_misspelt(self.name, missing, self._known_keys())

    def lacking(self) -> list[str]:
        """The wanted names that no row had, although events that declare them occur."""
        return [name for name in self._unseen() if not self.has(name)]

    def has(self, name: str) -> bool:
        """Whether some row that was read has a wanted name, perhaps with NULL."""
        if name in self._found:
            return True
        return self.origin.format == "json" and name in self._known_keys()

    def place_of(self, row: int) -> str:
        """The place of a row in words; `row` counts from 0, without rows that are left out."""
        row = self._with_typeless(row)
        if self.origin.format != "parquet":
            with self.origin.opened() as stream:
                for number, (line, _) in enumerate(self._rows.rows(stream)):
                    if number == row:
                        return f"{self.name}, line {line:,}"
        return f"{self.name}, row {row:,} (counted from 0)"

    def _with_typeless(self, row: int) -> int:
        """The number of a row when the rows without an event type count as well."""
        if not self._left_out.damage.skips_null_types:
            return row
        before, left = 0, row
        for batch in self._read(lambda _: None):
            has_type = self._has_type(batch)
            if has_type is None:
                has_type = pa.repeat(True, len(batch))
            typed = pc.sum(has_type, min_count=0).as_py()
            if left < typed:
                return before + int(pc.indices_nonzero(has_type)[left].as_py())
            before, left = before + len(batch), left - typed
        return row

    # --- what was found ---------------------------------------------------------------------------

    def _noted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        wanted = self._wanted
        self._rows_read += len(batch)
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
        if not self._rows_read:
            return []  # no row lacks anything
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
            with self._reporting(), self.origin.opened() as stream:
                self._keys = keys_of(stream, depth)
        return self._keys

    def _of_folder(self, name: str, text: str | None) -> pa.Scalar:
        """The value that a folder such as `day=1` gives all rows, in its declared type."""
        type, times = self._wanted.schema.field(name).type, self._form.times
        raw = times.readable(self._wanted.schema).get(name, pa.string())
        try:
            column = pa.array([text], pa.string()).cast(raw)
            batch = pa.RecordBatch.from_arrays([column], [name])
            return with_times(batch, self._wanted.schema, times).column(0)[0]
        except pa.ArrowInvalid:
            raise CommandProblem(
                f"{self.name}: the folder {name}={text} gives all rows a value that is no "
                f"{NAMES_OF_TYPES.get(str(type), str(type))}"
            ) from None

    def _check_columns(self, given: list[str], present: set[str]) -> None:
        """Raises CommandProblem where a file with column names lacks a needed one."""
        wanted, file = self._wanted, self.name
        present = present | self._folders.keys()
        given = [*given, *(name for name in self._folders if name not in given)]
        for name in wanted.schema.names:
            if given.count(name) > 1:
                raise CommandProblem(
                    f"{file} has several columns {name!r}, which query {wanted.query!r} reads: "
                    "drop or rename all but one"
                )
        self._found |= present
        wanted.refuse_unread(file, self.origin.format, present)
        missing = [
            name
            for name in wanted.schema.names
            if name not in present | self.origin.columns
            and (name in wanted.owners or name in wanted.required)
        ]
        wanted.refuse_misspelt(file, missing, given)
        wanted.refuse_lacking(file, missing, given)

    def _completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Only the wanted columns, with NULL for those that the file lacks."""
        columns, fields = [], []
        for field in self._wanted.schema:
            if field.name in self._folders:
                column = pa.repeat(self._folders[field.name], len(batch))
            elif field.name in batch.schema.names:
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
        """Rows for a query that reads no column but counts events. They have one column, with a
        name that is longer than all names of the query."""
        name = "*" * (1 + max(map(len, self._wanted.schema.names), default=0))
        return pa.RecordBatch.from_arrays([pa.nulls(rows)], [name])

    # --- formats ----------------------------------------------------------------------------------

    def _parquet(self, progress: Progress) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet  # it takes longer than a query to compile

        schema = self._wanted.schema
        if self.origin.rows is not None:
            yield from self._of_table(self.origin.rows, progress)
            return
        with self.origin.seekable() as stream:
            file = pyarrow.parquet.ParquetFile(stream)
            top, present = self._present(file.schema_arrow)
            self.misfits = self._wanted.misfits(file.schema_arrow)
            texts = [f.name for f in schema if f.name in top and pa.types.is_string(f.type)]
            texts = [name for name in texts if name not in self.misfits]
            if not present:
                for group in range(file.num_row_groups):
                    rows = file.metadata.row_group(group).num_rows
                    yield self._completed(self._counted(rows))
                return
            columns = [name for name in schema.names if name in present]
            file = pyarrow.parquet.ParquetFile(stream, read_dictionary=texts, pre_buffer=False)
            for batch in file.iter_batches(batch_size=1 << 16, columns=columns):
                progress(stream.tell())
                yield self._typed(batch, columns)

    def _of_table(self, rows: IcebergFile, progress: Progress) -> Iterator[pa.RecordBatch]:
        """The rows of a file as its table has them."""
        top, present = self._present(rows.schema)
        columns = [name for name in self._wanted.schema.names if name in present]
        # With no column to read, the first column gives the number of rows.
        read = [name for name in top if any(f"{one}.".startswith(f"{name}.") for one in columns)]
        for batch in rows.batches(read or top[:1]):
            counted = self._completed(self._counted(len(batch)))
            yield self._typed(batch, columns) if columns else counted
        progress(rows.size)

    def _present(self, given: pa.Schema) -> tuple[list[str], set[str]]:
        """The columns of a file with types, and the wanted ones that it has."""
        schema, fields = self._wanted.schema, arrow_fields(given)
        top = [name for name, _ in fields]
        present = {name for name in schema.names if top.count(name) > 1}
        present |= {
            name for name in schema.names if name not in present and leads_somewhere(name, fields)
        }
        present -= self._folders.keys()
        self._check_columns([*top, *inner_names(fields)], present)
        return top, present

    def _typed(self, batch: pa.RecordBatch, columns: list[str]) -> pa.RecordBatch:
        """A batch of a file with types, complete, with fields of structs as columns."""
        schema = self._wanted.schema
        batch = with_fields(batch, columns)
        return self._completed(with_durations(self._form.times.zoned(batch, schema), schema))

    def _csv(self, progress: Progress) -> Iterator[pa.RecordBatch]:
        schema = self._wanted.schema
        given = self.header()
        present = set(given).intersection(schema.names) - self._folders.keys()
        self._check_columns(given, present)
        # With no column to read, the first column gives the number of rows.
        columns = [name for name in schema.names if name in present] or given[:1]
        known = self._form.times.readable(schema)
        types = {name: known[name] for name in columns if name in known}
        if not present:
            types = {columns[0]: pa.string()}

        self._names = given

        def parsed(stream: Any, block: int, names: list[str] | None) -> Any:
            return pyarrow.csv.open_csv(
                stream,
                read_options=pyarrow.csv.ReadOptions(
                    block_size=block,
                    column_names=names,
                    # With threads, dozens of blocks are read ahead of the rows that are passed on.
                    use_threads=names is None and not self._rows.comes_slowly,
                ),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=self._rows.delimiter, newlines_in_values=True
                ),
                convert_options=self._conversion(
                    types, [] if given.count(columns[0]) > 1 else columns
                ),
            )

        def learn(batch: pa.RecordBatch) -> None:
            for field in batch.schema:
                # The type that Arrow found for a column stays when another block is read.
                types.setdefault(field.name, field.type)

        def finished(batch: pa.RecordBatch) -> pa.RecordBatch:
            return self._completed(with_times(batch, schema, self._form.times))

        looks = csv_looks(given, {name: self._type(name) for name in types}, self._rows.delimiter)
        yield from self._rows.batches(parsed, learn, finished, looks, progress, given)

    def _type(self, name: str) -> pa.DataType:
        """The type of a column, where texts of ISO 8601 are times; others have no usual form."""
        schema, times = self._wanted.schema, self._form.times
        type = schema.field(name).type if name in schema.names else pa.string()
        return pa.null() if pa.types.is_temporal(type) and times.format else type

    def _conversion(self, types: dict[str, pa.DataType], columns: list[str]) -> Any:
        return pyarrow.csv.ConvertOptions(
            column_types=types,
            include_columns=columns,
            null_values=["", *self._form.null_texts],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )

    def header(self) -> list[str]:
        """The names in the first row of a CSV file. Bytes that are not UTF-8 are in no name."""
        with self.origin.opened() as stream:
            lines = io.TextIOWrapper(
                io.BufferedReader(stream), "utf-8-sig", errors="surrogateescape", newline=""
            )
            try:
                row = next(filter(None, csv.reader(lines, delimiter=self._rows.delimiter)), None)
            except csv.Error as problem:
                raise CommandProblem(f"{self.name}: the names of its columns: {problem}") from None
            stream.check()
        if row is not None and any("\n" in name for name in row):
            self._rows.refuse_open_marks()
        if row is None:
            raise CommandProblem(
                f"{self.name} is empty: a CSV file begins with the names of columns"
            )
        return row

    def _json(self, progress: Progress) -> Iterator[pa.RecordBatch]:
        schema = self._wanted.schema
        self._wanted.refuse_unread(self.name, "json", schema.names)
        known = self._form.times.readable(schema)
        with self.origin.opened() as stream:
            fields = Fields(self.name, known, stream)
        untyped = {name: pa.null() for name in schema.names if name not in known}
        asked = {field.name: field.type for field in fields.schema}
        skips = self._left_out.damage.skips_bad_rows

        def parsed(stream: Any, block: int, _: list[str] | None) -> Any:
            return pyarrow.json.open_json(
                stream,
                read_options=pyarrow.json.ReadOptions(block_size=block, use_threads=not skips),
                parse_options=pyarrow.json.ParseOptions(
                    explicit_schema=pa.schema(list(asked.items())),
                    unexpected_field_behavior="infer" if untyped or not asked else "ignore",
                ),
            )

        def learn(batch: pa.RecordBatch) -> None:
            for name in untyped:
                if name in batch.schema.names:
                    asked.setdefault(name, batch.column(name).type)

        def finished(batch: pa.RecordBatch) -> pa.RecordBatch:
            columns = {name: fields.column(batch, name) for name in known}
            for name in untyped:
                if name in batch.schema.names:
                    columns[name] = batch.column(name)
            if not columns:
                return self._counted(len(batch))
            batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
            return with_times(batch, schema, self._form.times)

        looks = json_looks({name: self._type(name) for name in known})
        yield from self._agreeing(self._rows.batches(parsed, learn, finished, looks, progress))

    def _agreeing(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Complete batches, without the column of the event types where no row has a type."""
        type_name = self._wanted.type_name
        # Rows of MATCH_RECOGNIZE have no event types.
        rows_without_type: int | None = 0 if type_name else None
        for batch in batches:
            if type_name not in self._wanted.required and rows_without_type is not None:
                types = batch.column(type_name)
                rows_without_type = self._typeless(types, rows_without_type)
                if rows_without_type is not None:
                    batch = batch.drop_columns([type_name])
            yield self._completed(batch)

    def _typeless(self, types: pa.Array, before: int) -> int | None:
        """The number of rows so far, if none of them has an event type; None otherwise.

        A query of one event type needs no such column. But rows with and without a type cannot both
        be right.
        """
        if types.null_count == len(types):
            if self._left_out.damage.skips_null_types and self._has_types:
                return None
            return before + len(types)
        if before:
            raise CommandProblem(
                f"{self.name}: {self._wanted.type_name!r} is NULL or not there in the first "
                f"{before:,} rows, and there in later ones: say the event type in all rows or none"
            )
        return None

    @property
    def _has_types(self) -> bool:
        """Whether some row of a file of JSON lines has an event type."""
        return self._wanted.type_name in self._known_keys()

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except pa.ArrowException as problem:
            raise CommandProblem(f"{self.name}: {str(problem).split(chr(10), 1)[0]}") from None
        except OSError as problem:
            raise CommandProblem(f"{self.name}: {words(problem)}") from None
