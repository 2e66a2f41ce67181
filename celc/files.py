"""Event files for `celc run`: parquet, CSV and JSON lines.

Files are read batch by batch and only the columns that the query reads, so that sorted input of any
size is matched in bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

_BLOCK = 1 << 20
"""Bytes that are parsed at a time. Arrow reads a number of blocks ahead, so this bounds memory."""


class FileProblem(Exception):
    """A file that cannot be read or written, in words for the user."""


@dataclass(frozen=True, slots=True)
class EventFile:
    """A file of events; `schema` gives the columns wanted and their types.

    Columns of type NULL in the schema are wanted in whatever type the file has. Times in CSV and
    JSON are ISO 8601; without a zone they are UTC.
    """

    path: Path
    schema: pa.Schema

    def batches(self, progress: Callable[[int], None] | None = None) -> Iterator[pa.RecordBatch]:
        """The events in the order of the file; `progress` is told the bytes read so far."""
        reader = _READERS.get(self.path.suffix.lower())
        if reader is None:
            raise FileProblem(
                f"{self.path.name}: events are read from files that end in "
                f"{', '.join(sorted(_READERS))}"
            )
        try:
            with self.path.open("rb") as stream:
                for batch in reader(stream, self.schema):
                    if progress is not None:
                        progress(stream.tell())
                    yield batch
        except OSError as problem:
            if isinstance(problem, pa.ArrowException):
                raise FileProblem(f"{self.path.name}: {problem}") from None
            raise FileProblem(f"{self.path.name}: {problem.strerror or problem}") from None
        except pa.ArrowException as problem:
            raise FileProblem(f"{self.path.name}: {_first_line(problem)}") from None

    @property
    def size(self) -> int:
        """The size of the file in bytes, 0 where it cannot be told."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


def _first_line(problem: Exception) -> str:
    return str(problem).split("\n", 1)[0]


def _read_parquet(stream: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    file = pyarrow.parquet.ParquetFile(stream)
    present = file.schema_arrow.names
    # A name with a dot may be the path of a field, which Parquet reads without the others.
    columns = [name for name in schema.names if name in present or name.split(".")[0] in present]
    texts = [
        field.name for field in schema if field.name in present and pa.types.is_string(field.type)
    ]
    file = pyarrow.parquet.ParquetFile(stream, read_dictionary=texts, pre_buffer=False)
    if not columns:
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            # Rows are counted by a column; this name is longer than all that the query asks for.
            name = "*" * (1 + max(map(len, schema.names), default=0))
            yield pa.RecordBatch.from_arrays([pa.nulls(rows)], [name])
        return
    yield from file.iter_batches(batch_size=1 << 16, columns=columns)


def _read_csv(stream: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    reader = pyarrow.csv.open_csv(
        stream,
        read_options=pyarrow.csv.ReadOptions(block_size=_BLOCK),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=_readable(schema),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    for batch in reader:
        yield _with_times(batch, schema)


def _read_json(stream: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    known = _readable(schema)
    untyped = [name for name in schema.names if name not in known]
    reader = pyarrow.json.open_json(
        stream,
        read_options=pyarrow.json.ReadOptions(block_size=_BLOCK),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=pa.schema(list(known.items())),
            unexpected_field_behavior="infer" if untyped or not known else "ignore",
        ),
    )
    for batch in reader:
        yield _with_times(batch, schema)


def _readable(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The types to parse columns as; times are read as text first, to allow for both notations."""
    return {
        field.name: pa.string() if pa.types.is_temporal(field.type) else field.type
        for field in schema
        if not pa.types.is_null(field.type)
    }


def _with_times(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    for field in schema:
        if pa.types.is_temporal(field.type) and field.name in batch.schema.names:
            index = batch.schema.get_field_index(field.name)
            parse = _times if pa.types.is_timestamp(field.type) else _days
            batch = batch.set_column(index, field, parse(batch.column(index), field))
    return batch


def _days(texts: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return texts.cast(field.type)
    except pa.ArrowInvalid as problem:
        raise pa.ArrowInvalid(f"column {field.name!r}: {_first_line(problem)}") from None


def _times(texts: pa.Array, field: pa.Field) -> pa.Array:
    import pyarrow.compute as pc

    zoned = pc.match_substring_regex(texts, r"(Z|[+-]\d\d(:?\d\d)?)$")
    dated = pc.match_substring_regex(texts, r"^\d{4}-\d\d-\d\d$")
    plain = pc.and_(pc.invert(zoned), True)
    plain = pc.or_(plain, dated)
    try:
        local = pc.if_else(plain, texts, None).cast(pa.timestamp("us")).cast(field.type)
        return pc.coalesce(pc.if_else(plain, None, texts).cast(field.type), local)
    except pa.ArrowInvalid as problem:
        raise pa.ArrowInvalid(f"column {field.name!r}: {_first_line(problem)}") from None


_READERS: dict[str, Callable[[Any, pa.Schema], Iterator[pa.RecordBatch]]] = {
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".jsonl": _read_json,
    ".ndjson": _read_json,
}
