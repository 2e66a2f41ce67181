"""Events on one machine, from any library with columns → Arrow columns.

Only the columns that the query reads are taken. A source that has not been run yet (a relation of
DuckDB, a LazyFrame of polars, a dataset) is asked for these columns only, so its other columns are
not even read. pandas, polars and DuckDB are not imported here: whoever has a table of a library has
imported the library.

Columns keep their types, which must be the declared types or narrower ones. Values of Python, NumPy
and pandas are the exception, because their types are often an accident (in pandas, a whole number
in a column with a gap is a float). They are converted to the declared type if no value changes
(`untyped`).
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from celc_runtime.arrow.arrays import no_rows
from celc_runtime.arrow.events.conforming import is_required, not_found_error
from celc_runtime.arrow.events.paths import with_fields
from celc_runtime.arrow.tables.derived import with_derived
from celc_runtime.arrow.tables.logged_tables import why_not_plain
from celc_runtime.arrow.tables.pandas_frames import frame_table
from celc_runtime.arrow.tables.slices import EventsBetween, Stretch
from celc_runtime.arrow.tables.untyped import fitted
from celc_runtime.arrow.views import as_read, has_codes_of_null
from celc_runtime.plan.errors import EventError
from celc_runtime.program import Program

_ACCEPTED = (
    "a pyarrow Table, RecordBatch, RecordBatchReader or dataset, record batches one after another, "
    "a data frame of pandas or polars, a relation of DuckDB, anything else with "
    "__arrow_c_stream__, a dictionary of columns, or the path of a .parquet file"
)


def table_of(program: Program, events: Any, rows_seen: int = 0) -> pa.Table:
    """The columns that a query reads, of events in any form that has columns.

    rows_seen: of a table or a batch, the number of rows before. Raises TypeError for a value
    without columns, EventError if a column is missing or there twice.
    """
    if isinstance(events, EventsBetween):
        return events.stretch.of_events(program.plan, table_of(program, _reduced(program, events)))
    columns = _columns_of(program, events)
    if isinstance(columns, pa.Table):
        return _narrowed(program, columns, rows_seen)
    narrow = [_narrowed(program, pa.Table.from_batches([batch])) for batch in columns]
    if not narrow:
        names = program.file_schema.names
        return with_derived(program.plan, pa.table([pa.nulls(0)] * len(names), names=names))
    try:
        return pa.concat_tables(narrow)
    except pa.ArrowInvalid as problem:
        first = str(problem).split("\n", 1)[0]
        raise EventError(
            f"query {program.name!r}: the record batches differ in their columns: {first}"
        ) from None


def batches_of(program: Program, events: Any) -> Iterable[pa.RecordBatch]:
    """Events in any form as record batches, in their order; sources of batches are streamed."""
    if isinstance(events, EventsBetween):
        return _between(program, events)
    columns: Iterable[pa.RecordBatch] | pa.Table = _columns_of(program, events)
    if isinstance(columns, pa.Table):
        narrow: Iterable[pa.RecordBatch] = _narrowed(program, columns).to_batches()
        return narrow
    if not program.plan.source.is_as_given:
        return _derived_batches(program, columns)
    return columns


def _between(program: Program, between: EventsBetween) -> Iterator[pa.RecordBatch]:
    """The record batches of the events in a stretch."""
    rows = 0
    for batch in batches_of(program, _reduced(program, between)):
        inside = between.stretch.of_events(program.plan, pa.Table.from_batches([batch]), rows)
        rows += len(batch)
        yield from inside.to_batches()


def _reduced(program: Program, between: EventsBetween) -> Any:
    """The events, of a file or a dataset without the row groups that its statistics rule out."""
    events, stretch = between.events, between.stretch
    if isinstance(events, str | Path):
        return _parquet_batches(program, Path(events), stretch)
    if is_a(events, "pyarrow.dataset", "Dataset") and stretch.column in events.schema.names:
        taken = _taken(program, events.schema.names)
        condition = stretch.condition(events.schema.field(stretch.column).type)
        return events.scanner(columns=taken, filter=condition)
    return events


def entered(program: Program, table: pa.Table, rows_seen: int = 0) -> list[pa.RecordBatch]:
    """Rows of the input as batches of events, with the columns that are derived.

    rows_seen: the number of rows before. Raises EventError if a column is missing or there twice.
    """
    if not program.plan.source.is_as_given:
        table = _narrowed(program, table, rows_seen)
    batches: list[pa.RecordBatch] = table.to_batches()
    return batches


def _derived_batches(
    program: Program, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in batches:
        yield from entered(program, pa.Table.from_batches([batch]), rows)
        rows += len(batch)


def _columns_of(program: Program, events: Any) -> pa.Table | Iterable[pa.RecordBatch]:
    """Events as Arrow data, with the columns that are read and perhaps others."""
    if isinstance(events, pa.Table):
        return events
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    if isinstance(events, pa.RecordBatchReader):
        return _in_sound_memory(events)
    if isinstance(events, str | Path):
        return _parquet_batches(program, Path(events))
    if isinstance(events, Mapping):
        return _table_of_columns(program, events)
    foreign = _of_library(program, events)
    if foreign is not None:
        return foreign
    if hasattr(events, "__arrow_c_stream__"):
        return _of_stream(events)
    if hasattr(events, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(events)])
    if hasattr(events, "__iter__") and not isinstance(events, bytes | bytearray):
        return _checked_batches(events)
    raise TypeError(f"{_kind(events)} is no table of events: give {_ACCEPTED}")


def _kind(value: object) -> str:
    type_ = type(value)
    module = type_.__module__.split(".")[0]
    return type_.__qualname__ if module == "builtins" else f"{module}.{type_.__qualname__}"


def _of_library(program: Program, events: Any) -> pa.Table | Iterable[pa.RecordBatch] | None:
    """The columns of a table of another library, which returns only those; None: not such a
    table."""
    if is_a(events, "pandas", "DataFrame"):
        return frame_table(program, events)
    if is_a(events, "polars", "DataFrame"):
        return _of_stream(events.select(_taken(program, events.columns)))
    if is_a(events, "polars", "LazyFrame"):
        names = events.collect_schema().names()
        return _of_stream(events.select(_taken(program, names)).collect())
    if is_a(events, "duckdb", "DuckDBPyRelation"):
        quoted = ['"' + n.replace('"', '""') + '"' for n in _taken(program, events.columns)]
        return _of_stream(events.project(", ".join(quoted)))
    if type(events).__module__.split(".")[0] == "pyspark":
        raise TypeError(
            f"{_kind(events)} is a table of a Spark cluster, and match_table runs on one machine: "
            "use events.transform(query.match), or fetch the rows first with events.toArrow()"
        )
    if is_a(events, "pyarrow.dataset", "Scanner"):
        return iter(events.to_reader())
    if is_a(events, "pyarrow.dataset", "Dataset"):
        return iter(events.scanner(columns=_taken(program, events.schema.names)).to_reader())
    return None


def is_a(events: object, module: str, name: str) -> bool:
    """Whether a value is an instance of a library's class; the library need not be installed."""
    known = getattr(sys.modules.get(module), name, None)
    return known is not None and isinstance(events, known)


def _of_stream(events: Any) -> Iterator[pa.RecordBatch]:
    try:
        return _in_sound_memory(pa.RecordBatchReader.from_stream(events))
    except pa.ArrowInvalid:
        raise TypeError(
            f"{_kind(events)} holds one column and no table of events: give {_ACCEPTED}"
        ) from None


def _in_sound_memory(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches of a stream, which another library can have made. Arrow 26 joins none without
    rows that begins behind the first row of its memory: the stream brings none of that memory."""
    return (batch if len(batch) else no_rows(batch.schema) for batch in reader)


def _checked_batches(events: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    for item in events:
        if isinstance(item, pa.RecordBatch):
            yield item
        elif isinstance(item, pa.Table):
            yield from item.to_batches()
        elif isinstance(item, Mapping):
            raise TypeError(
                f"rows as dictionaries ({_kind(item)}) are no table of events: make one of them "
                "with pyarrow.Table.from_pylist(rows)"
            )
        else:
            raise TypeError(
                f"{_kind(events)}, which gives a {_kind(item)}, is no table of events: "
                f"give {_ACCEPTED}"
            )


# --- which columns --------------------------------------------------------------------------------


def _taken(program: Program, present: list[str]) -> list[str]:
    """The columns to ask for, among those that are there; at least one, for the number of rows.

    If a field of a struct is read, it is the whole struct. Raises EventError if a column is missing
    or there twice.
    """
    taken: dict[str, None] = {}
    for name in program.file_schema.names:
        inside = [column for column in present if name.startswith(f"{column}.")]
        found = [name] if name in present else inside
        if (not found and is_required(program.plan, name)) or present.count(name) > 1:
            raise not_found_error(program.plan, name, present)
        taken.update(dict.fromkeys(found))
    return list(taken) or present[:1]


def _narrowed(program: Program, table: pa.Table, rows_seen: int = 0) -> pa.Table:
    """Only the columns that are read; a field of a struct becomes a column.

    Raises EventError if a column is missing or there twice.
    """
    given = table.schema
    known = program.kept.get("narrow")
    if known is not None and known[0].equals(given):
        narrow = table.select(known[1])
        if not any(has_codes_of_null(narrow.column(place)) for place in known[2]):
            return narrow
    names = program.file_schema.names
    table = with_fields(table, names)
    present = table.column_names
    for name in names:
        if present.count(name) != 1 and (name in present or is_required(program.plan, name)):
            raise not_found_error(program.plan, name, present)
    taken = [name for name in names if name in present] or present[:1]
    columns = [as_read(table.column(name)) for name in taken]
    narrow = pa.table(columns, names=taken)
    if program.plan.source.is_as_given and set(taken) <= set(given.names):
        places = [given.names.index(name) for name in taken]
        if narrow.schema.types == [given.types[place] for place in places]:
            coded = [n for n, one in enumerate(columns) if pa.types.is_dictionary(one.type)]
            program.kept["narrow"] = given, places, coded
    return with_derived(program.plan, narrow, rows_seen)


# --- columns of Python, and files -----------------------------------------------------------------


def _table_of_columns(program: Program, columns: Mapping[Any, Any]) -> pa.Table:
    """A dictionary of columns: arrays, series, or lists of Python values."""
    types = {field.name: field.type for field in program.file_schema}
    arrays = {}
    for name in _taken(program, [str(name) for name in columns]):
        arrays[name] = fitted(program, name, columns[name], types.get(name))
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name!r} has {length:,}" for name, length in lengths.items())
        raise EventError(f"query {program.name!r}: the columns differ in their rows: {told}")
    return pa.table(arrays)


def _parquet_batches(
    program: Program, path: Path, stretch: Stretch | None = None
) -> Iterator[pa.RecordBatch]:
    """A Parquet file, a batch at a time; of a stretch only the row groups that can have some of it.

    Other files hold no types, so the caller must choose them when reading, as `celc run` does.
    """
    if path.suffix.lower() != ".parquet":
        raise TypeError(
            f"'{path}' is not the path of a .parquet file: read other files first, as in "
            "match_table(pyarrow.csv.read_csv(path)) or match_table(pyarrow.dataset.dataset(path)),"
            " or run the query on it with `celc run`"
        )
    if path.is_dir():
        raise TypeError(
            f"'{path}' is a folder: read it first, as in "
            "match_table(pyarrow.dataset.dataset(path)), or run the query on it with `celc run`"
        )
    if why := why_not_plain([path.parent]):
        raise TypeError(f"'{path}': {why}")
    import pyarrow.parquet

    names = program.file_schema.names
    schema = pyarrow.parquet.read_schema(path)
    texts = [n for n in names if n in schema.names and pa.types.is_string(schema.field(n).type)]
    columns = _taken(program, schema.names)

    def batches() -> Iterator[pa.RecordBatch]:
        with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
            groups = None if stretch is None else _groups_of(file.metadata, stretch)
            yield from file.iter_batches(columns=columns, row_groups=groups)

    return batches()


def _groups_of(metadata: Any, stretch: Stretch) -> list[int]:
    """The row groups of a Parquet file that can have events of a stretch."""
    names = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
    if stretch.column not in names:
        return [*range(metadata.num_row_groups)]
    place, found = names.index(stretch.column), []
    for number in range(metadata.num_row_groups):
        told = metadata.row_group(number).column(place).statistics
        # Rows without an order are read, so that the run refuses them.
        is_known = told is not None and told.has_min_max and told.null_count == 0
        if not (is_known and stretch.excludes(told.min, told.max)):
            found.append(number)
    return found
