"""The first rows of files, with the types that they show.

Large inputs are sampled: a limited number of rows is read, from some of the files. CSV and Parquet
are read as `celc run` reads them, so the errors are the same. All columns of CSV are texts here.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.schemas import arrow_type

from celc.interfaces.cli.declaring import objects, texts
from celc.interfaces.cli.declaring.texts import ShownType
from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.reading.events import EventFile, Form
from celc.interfaces.cli.reading.origins import Origin
from celc.interfaces.cli.reading.text_rows import of_another_kind
from celc.interfaces.cli.reading.wanted import Wanted, another_delimiter

MOST_ROWS = 100_000
_MOST_BYTES = 32 << 20
_MOST_FILES = 100
_DELIMITERS = (",", ";", "\t", "|")


@frozen
class Sample:
    """The first rows of a table. Columns are attributes: fields of structs have names with dots."""

    table: pa.Table
    rows: str  # what was looked at, in words
    is_whole: bool  # whether these are all rows
    left_out: Mapping[str, str]  # columns that cannot be attributes, and why
    form: Form  # how texts are read
    forms: Mapping[str, tuple[str, ...]]  # columns of texts that can be times, with their forms
    given: Mapping[str, pa.Array]  # columns of CSV and of folders as the texts that they are

    def with_texts(self, name: str) -> Sample:
        """The same with a column of CSV or of folders as texts, whatever they look like: names may
        be numbers."""
        if name not in self.given:
            return self
        place = self.table.column_names.index(name)
        return replace(self, table=self.table.set_column(place, name, self.given[name]))


def sample_of(origins: Sequence[Origin], form: Form, *, guess: bool = False) -> Sample:
    """The first rows of files. `guess`: the delimiter of CSV and the form of times may be others
    than `form` says, where the files show which.

    Raises CommandProblem for a file that cannot be read.
    """
    few = _some_of(origins)
    if len({origin.format for origin in origins}) > 1:
        raise CommandProblem("the files have several formats: name those of one of them")
    most = max(1, MOST_ROWS // len(few))
    parts = [_read(origin, form, most, guess=guess) for origin in few]
    whole = len(few) == len(origins) and all(part.is_whole for part in parts)
    if origins[0].format == "parquet":
        sample = _typed(parts, whole, origins)
    else:
        sample = _shown(parts, whole, origins, guess=guess)
    return _with_folders(sample, few, [part.rows for part in parts], origins)


def _shown(
    parts: Sequence[_Part], whole: bool, origins: Sequence[Origin], *, guess: bool
) -> Sample:
    """The sample of files without types, which their values show."""
    form = parts[0].form
    columns, left_out = _joined(parts, origins)
    shown: dict[str, ShownType] = {}
    for name, values in columns.items():
        if isinstance(values, list):
            found = objects.shown_by_values(values, form.times)
        else:
            found = texts.shown_by_texts(values, form.times, numbers=True)
        if isinstance(found, str):
            left_out[name] = found
        else:
            shown[name] = found
    chosen = _form_of_times(shown) if guess and form.times.format is None else None
    form = replace(form, times=replace(form.times, format=chosen or form.times.format))
    arrays = {}
    for name, one in shown.items():
        type, values = texts.with_form(one, chosen), columns[name]
        read = objects.values_of if isinstance(values, list) else texts.values_of
        arrays[name] = read(values, type, form.times)
    rows = _words(origins, len(parts), sum(part.rows for part in parts), whole)
    forms = {name: one.forms for name, one in shown.items() if one.forms and chosen is None}
    given = columns if origins[0].format == "csv" else {}
    return Sample(pa.table(arrays), rows, whole, left_out, form, forms, given)


def _some_of(origins: Sequence[Origin]) -> list[Origin]:
    """All files, or of many some from the first to the last one."""
    if not origins:
        raise CommandProblem("there are no files to read")
    step = max(1, -(-len(origins) // _MOST_FILES))
    return [*origins[::step]]


def _words(origins: Sequence[Origin], read: int, rows: int, whole: bool) -> str:
    files = origins[0].name if len(origins) == 1 else f"{len(origins):,} files"
    counted = f"{rows:,} row{'' if rows == 1 else 's'}"
    if whole:
        return f"the {counted} of {files}" if rows else f"{files}, which has no rows"
    some = "" if read == len(origins) else f" ({read:,} of them were read)"
    return f"the first {counted} of {files}{some}"


@frozen
class _Part:
    """The first rows of one file: a table, or for JSON the values of each field."""

    columns: Mapping[str, Any]
    rows: int
    is_whole: bool
    left_out: Mapping[str, str]
    form: Form


def _read(origin: Origin, form: Form, most: int, *, guess: bool) -> _Part:
    if origin.format == "json":
        found: list[dict[str, Any]] = []
        is_whole, size = True, 0
        for length, row in _objects(origin):
            size += length
            if len(found) == most or (size > _MOST_BYTES and found):
                is_whole = False
                break
            found.append(row)
        columns, rows = objects.fields_of(found)
        return _Part(columns, rows, is_whole, {}, form)
    left_out: dict[str, str] = {}
    if origin.format == "csv":
        names, form = _header(origin, form, guess=guess)
        for name, count in Counter(names).items():
            if count > 1:
                left_out[name] = f"{count} columns have this name"
        wanted = {name: pa.string() for name in names if name not in left_out and name}
    else:
        wanted = dict.fromkeys(dict.fromkeys(parquet_schema(origin).names), pa.null())
    file = EventFile(origin, _all_of(pa.schema(list(wanted.items()))), form)
    batches, rows, is_whole, taken = [], 0, True, 0

    def told(size: int) -> None:
        nonlocal taken
        taken = size

    for batch in file.batches(told):
        if rows >= most or (taken > _MOST_BYTES and rows):
            is_whole = False
            break
        is_whole = len(batch) <= most - rows
        batches.append(batch.slice(0, most - rows))
        rows += len(batches[-1])
    if not batches:
        empty = pa.schema([(name, pa.string()) for name in wanted])
        table = (empty if origin.format == "csv" else parquet_schema(origin)).empty_table()
    else:
        table = pa.Table.from_batches(batches) if wanted else pa.table({})
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    return _Part(columns, rows, is_whole, left_out, form)


def _all_of(schema: pa.Schema) -> Wanted:
    """What a reader takes to read all columns, of which none must be there."""
    names = frozenset(schema.names)
    owners = {name: frozenset({""}) for name in names}
    return Wanted("", schema, frozenset(), "", owners, names)


def _header(origin: Origin, form: Form, *, guess: bool) -> tuple[list[str], Form]:
    """The names of the columns of a CSV file, with the delimiter that gives most of them."""
    names = EventFile(origin, _all_of(pa.schema([])), form).header()
    if any(_is_odd(name) for name in names):
        raise CommandProblem(
            f"{origin.name} is no text: its first line has bytes that are not UTF-8, or signs that "
            "are in no text"
        )
    if guess and form.delimiter is None and len(names) == 1:
        for sign in _DELIMITERS:
            other = replace(form, delimiter=sign)
            found = EventFile(origin, _all_of(pa.schema([])), other).header()
            if len(found) > len(names):
                names, form = found, other
    if not guess and (hint := another_delimiter(names)):
        raise CommandProblem(f"{origin.name} has one column, which is called {names[0]!r}{hint}")
    return names, form


def _is_odd(name: str) -> bool:
    """Whether a name has signs that no text has; bytes that are not UTF-8 are lone surrogates."""
    return any("\ud800" <= sign <= "\udfff" or (sign < " " and not sign.isspace()) for sign in name)


def _objects(origin: Origin) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of JSON lines, each with its length."""
    with origin.opened() as stream:
        for number, line in enumerate(io.BufferedReader(stream), start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except RecursionError:
                raise CommandProblem(
                    f"{origin.name}, line {number:,}: objects and arrays lie too deep in each "
                    "other: leave the row out"
                ) from None
            except ValueError:
                stream.check()  # The file itself may be cut off, and not the row.
                raise CommandProblem(
                    f"{origin.name}, line {number:,}: this is no JSON; each line is one object"
                ) from None
            if not isinstance(row, dict):
                kind = "null" if row is None else "array" if isinstance(row, list) else "value"
                told = of_another_kind(kind)
                raise CommandProblem(f"{origin.name}, line {number:,}: {told}")
            yield len(line), row


def parquet_schema(origin: Origin) -> pa.Schema:
    import pyarrow.parquet

    if origin.rows is not None:
        return origin.rows.schema
    try:
        with origin.seekable() as stream:
            return pyarrow.parquet.read_schema(stream)
    except (OSError, pa.ArrowInvalid) as problem:
        raise CommandProblem(f"{origin.name}: {problem}") from None


def typed_columns(origins: Sequence[Origin], form: Form, types: str | None) -> pa.Schema:
    """The columns of Parquet files: those of the first one, and of the folders that all are in.
    `types` is the column of the event types. Tables with a log have the columns of all files."""
    schema = parquet_schema(origins[0])
    if origins[0].columns:
        try:
            schema = pa.unify_schemas(
                [schema, *map(parquet_schema, origins[1:])], promote_options="permissive"
            )
        except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
            raise CommandProblem(f"the files differ in their columns: {problem}") from None
    for name, type in folder_types(origins, form).items():
        field = pa.field(name, pa.string() if name == types else arrow_type(type))
        place = schema.get_field_index(name)
        schema = schema.append(field) if place < 0 else schema.set(place, field)
    return schema


def _joined(
    parts: Sequence[_Part], origins: Sequence[Origin]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The columns of all parts, with NULL where a part lacks one."""
    names = dict.fromkeys(name for part in parts for name in part.columns)
    left_out = {name: why for part in parts for name, why in part.left_out.items()}
    columns: dict[str, Any] = {}
    for name in names:
        if name in left_out:
            continue
        found = [part.columns.get(name) for part in parts]
        rows = [part.rows for part in parts]
        if origins[0].format == "json":
            columns[name] = [
                value
                for one, count in zip(found, rows, strict=True)
                for value in (one if one is not None else [None] * count)
            ]
        else:
            arrays = [
                pa.nulls(count, pa.string()) if one is None else one
                for one, count in zip(found, rows, strict=True)
            ]
            columns[name] = pa.concat_arrays(arrays)
    for name in names:
        inner = [other for other in columns if other.startswith(f"{name}.")]
        if name in columns and inner and origins[0].format == "json":
            plain = columns.pop(name)
            if any(value is not None for value in plain):
                for one in (name, *inner):
                    columns.pop(one, None)
                left_out[name] = "some rows have an object there, and others have none"
    return columns, left_out


def _typed(parts: Sequence[_Part], whole: bool, origins: Sequence[Origin]) -> Sample:
    """The sample of files with types, which must agree."""
    tables = [pa.table(dict(part.columns)) for part in parts]
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowInvalid as problem:
        raise CommandProblem(f"the files differ in their columns: {problem}") from None
    except pa.ArrowTypeError as problem:
        raise CommandProblem(f"the files differ in their columns: {problem}") from None
    rows = _words(origins, len(parts), sum(part.rows for part in parts), whole)
    left_out = {name: why for part in parts for name, why in part.left_out.items()}
    return Sample(flattened(table), rows, whole, left_out, parts[0].form, {}, {})


def _with_folders(
    sample: Sample, few: Sequence[Origin], rows: Sequence[int], origins: Sequence[Origin]
) -> Sample:
    """The sample with the columns that folders such as `day=1` give the rows of files, which take
    precedence over those of the files."""
    table, given, left_out = sample.table, dict(sample.given), dict(sample.left_out)
    types = folder_types(origins, sample.form)
    for name in dict.fromkeys(name for origin in origins for name, _ in origin.folders):
        if name in table.column_names:
            table = table.drop_columns([name])
        left_out.pop(name, None)
        if name not in types:
            left_out[name] = "some files are in no folder with its value"
            continue
        values = [dict(origin.folders)[name] for origin in few]
        column = pa.concat_arrays(
            [
                pa.repeat(pa.scalar(text, pa.string()), count)
                for text, count in zip(values, rows, strict=True)
            ]
        )
        given[name] = column
        read = texts.values_of(column, types[name], sample.form.times)
        table = table.append_column(name, read)
    return replace(sample, table=table, given=given, left_out=left_out)


def folder_types(origins: Sequence[Origin], form: Form) -> dict[str, str]:
    """The types that the values of folders show, for the columns that folders give all files."""
    every = [dict(origin.folders) for origin in origins]
    shown = {}
    for name in every[0]:
        if all(name in one for one in every):
            values = pa.array([one[name] for one in every], pa.string())
            shown[name] = texts.shown_by_texts(values, form.times, numbers=True).type
    return shown


def flattened(table: pa.Table) -> pa.Table:
    """A table with a column for each field of its structs."""
    while any(pa.types.is_struct(type) and type.num_fields for type in table.schema.types):
        table = table.flatten()
    return table


def _form_of_times(shown: Mapping[str, ShownType]) -> str | None:
    """The form that most columns of texts have, if it is the only one of them: `celc run` reads all
    times in one form. None where some column has times of ISO 8601."""
    if any(one.type in ("TIMESTAMP", "DATE") for one in shown.values()):
        return None
    counts = Counter(one.forms[0] for one in shown.values() if len(one.forms) == 1)
    return counts.most_common(1)[0][0] if counts else None
