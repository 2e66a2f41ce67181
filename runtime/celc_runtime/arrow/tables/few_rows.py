"""The way in of few rows: one kernel finds their order, partitions, types and values.

To ask Arrow and NumPy column by column takes a microsecond for each question, and a hundred rows
need a hundred of them. Here the table is handed over once, by the C data interface of Arrow, and
the kernel reads the columns where they lie. It sorts by digits, and texts by their ranks, which
takes less than Arrow needs up to many thousands of rows.

What depends on the schema is found once (`few_rows`). Rows that this kernel cannot read, or that
are wrong, take the way of all tables: NULL where none may be, a type that is not declared, columns
that are coded, in several pieces, or of real numbers to sort by. So every message comes from there.

Rejected: a call of the kernel for each column, over arrays of NumPy. To make these took longer than
all else.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import no_rows, zeros
from celc_runtime.arrow.events.conforming import conforming, names_read
from celc_runtime.arrow.events.layout import Layout, as_they_are
from celc_runtime.arrow.late_rows import LateRows, Taken
from celc_runtime.arrow.number_types import DTYPES, WHOLE
from celc_runtime.arrow.tables.few_in_order import arrange, in_order, rank_texts
from celc_runtime.engine.arena.batch import NO_INTEGERS
from celc_runtime.engine.values.spark_arithmetic import LAST_DAY, MICROSECONDS_PER_DAY
from celc_runtime.jit.instructions import byte_at, half_word_at, long_word_at, word_at
from celc_runtime.jit.kernels import is_due, njit
from celc_runtime.plan.names import unused_name
from celc_runtime.program import Program

MOST_ROWS_READ = (1 << 17) - 1
"""Of a table that is read so, if it is sorted by texts: it takes a third to two thirds of the time
then. From here on threads can read a table."""

_MOST_OF_NUMBERS = 1 << 14  # rows of a table with keys that are numbers

_MOST_OF_ONE_STREAM = 1 << 12  # rows without keys, which mostly stand in order

_SAVED, _SAVED_OF_A_ROW = 150e-6, 1e-7  # seconds that a call takes less by this way, about

_MOST_NAMES = 64  # of types: each row is compared with one after another

_MOST_COLUMNS = 60  # the bits of a number

# What is done with a column: places in the first column of `FewRows.columns`.
_TYPE, _SORT, _SORT_TEXT, _WINDOW, _KEEP = range(5)

_HEAD = 8  # the least length of the first row of what the kernel writes

_ORDER, _STARTS, _CODES, _TIES, _SPARE = range(1, 6)  # the rows after it
_FIRST = 6  # then one for each column

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class FewRows(NamedTuple):
    """How tables of one schema are read.

    schema: of the columns that the query reads. most_rows: of a table. columns: int64[columns, 6],
    for each what is done with it, its place in the table, its bytes, whether it has a sign, and of
    a window the factor of a value and the greatest value. keys: how many of the columns, the first
    ones, are keys; those to order by come next. names, ends: the declared types as bytes, and where
    each ends. codes: the second of `EventTypes.codes`. kept: for each column of numbers that
    `classify` reads its place in `columns` and its type; None: it is asked for. places, served: as
    `LateRows` takes them.
    """

    schema: pa.Schema
    most_rows: int
    columns: np.ndarray
    keys: int
    names: np.ndarray
    ends: np.ndarray
    codes: np.ndarray
    kept: tuple[tuple[int, np.dtype] | None, ...]
    window: int  # the place of its column; −1: there is none
    places: list[int]
    served: pa.Schema

    def read(self, table: pa.Table) -> LateRows | None:
        """The rows of a table of this schema in order; None: they take the way of all tables."""
        rows = len(table)
        if rows > self.most_rows or not is_due(read_few, _SAVED + _SAVED_OF_A_ROW * rows):
            return None
        batches = table.to_batches()
        if len(batches) != 1:
            return None
        (batch,) = batches
        room = np.empty((_FIRST + len(self.columns), rows + _HEAD), np.int64)
        _, array = batch.__arrow_c_array__()
        address = _pointer(array, b"arrow_array")
        if not read_few(address, self.columns, self.keys, self.names, self.ends, rows, room):
            return None
        parts, tied, nulls = room[0, :3].tolist()
        order, codes = room[_ORDER, :rows], room[_CODES].view(np.uint8)[:rows]
        keys = NO_INTEGERS if self.window < 0 else room[_FIRST + self.window, :rows]
        ties = room[_TIES].view(np.bool_)[:rows] if tied else None
        values = room.view()
        values.flags.writeable = False  # kernels are compiled for one type of array
        kept = [
            (
                None
                if one is None or nulls >> one[0] & 1
                else values[_FIRST + one[0]].view(one[1])[:rows]
            )
            for one in self.kept
        ]
        if not len(self.ends):
            codes = zeros(rows)
        taken = Taken(room[_STARTS, : parts + 2], ties, codes, self.codes, keys, kept)
        return LateRows(batch, order, {}, self.places, self.served, taken)


def few_rows(program: Program, schema: pa.Schema) -> FewRows | None:
    """How tables of the columns that a query reads are read; None: by the way of all tables.

    Raises EventError where they do not fit the query.
    """
    plan = program.plan
    source = plan.source
    if source.parameters is not None:
        return None  # conditions ask for columns that only rules have
    layout, first = Layout.of(program), source.order_by[0] if source.order_by else None
    if (
        layout.makes_keys
        or layout.local_attributes
        or layout.window_is_real
        or layout.window_attribute not in (None, first)
        or plan.interleaves
        or plan.asks_for_clock
        or not source.is_as_given
        or source.reads
        or source.begin is not None
        or source.ties is not None
        or source.uncertain is not None
        or source.stream_column
    ):
        return None
    numbered = unused_name("row", [*schema.names, *names_read(plan)])
    none = no_rows(schema.append(pa.field(numbered, pa.int64())))
    known = as_they_are(none, conforming(plan, none, 0, numbered), numbered)
    if known is None:
        return None
    columns = _Columns(schema)
    for name in (*source.key_columns, *source.order_by, *source.tiebreak):
        columns.add_sorted(name)
    keys = len(source.key_columns)
    window = -1
    if layout.window_attribute is not None and plan.matching.window is not None:
        window = columns.add_window(layout.window_attribute)
    names = [name.encode() for name in layout.declared_types.known]
    codes = np.zeros(len(source.types), np.int64)
    if source.type_name in schema.names:
        columns.add(_TYPE, source.type_name, pa.string())
        code_of = {name: code for code, name in enumerate(layout.declared_types.known)}
        codes = np.array([code_of[name] for _, name in source.types], np.uint8)
    else:
        names = []
    kept = tuple(columns.add_kept(name) for name in plan.matching.columns)
    if not columns.fit or len(names) > _MOST_NAMES:
        return None
    ends = np.cumsum([len(name) for name in names], dtype=np.int64)
    places = [place if place < len(schema) else -1 for place in known.places]
    return FewRows(
        schema,
        columns.most_rows(keys),
        np.array(columns.rows, np.int64).reshape(-1, 6),
        keys,
        np.frombuffer(b"".join(names) + b"\0", np.uint8),
        ends,
        codes,
        kept,
        window,
        places,
        known.served,
    )


class _Columns:
    """Collects the columns that the kernel reads; `fit`: it can read all that it must."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.rows: list[list[int]] = []
        self.fit = True

    def add(self, role: int, name: str, wanted: pa.DataType | None = None) -> int:
        """A column; wanted: its type. Returns its number."""
        place = self._schema.get_field_index(name)
        type = self._schema.field(place).type if place >= 0 else pa.null()
        dtype = WHOLE.get(type.id)
        self.fit &= type == wanted if wanted is not None else type.id in DTYPES
        size = DTYPES[type.id].itemsize if type.id in DTYPES else 0
        is_signed = dtype is None or dtype.kind == "i"
        self.rows.append([role, place, size, int(is_signed), 1, 2**63 - 1])
        self.fit &= len(self.rows) <= _MOST_COLUMNS
        return len(self.rows) - 1

    def add_sorted(self, name: str) -> None:
        type = self._schema.field(name).type if name in self._schema.names else pa.null()
        if type == pa.string():
            self.add(_SORT_TEXT, name, type)
        else:
            self.add(_SORT, name)
            self.fit &= type.id in WHOLE and type != pa.uint64()

    def most_rows(self, keys: int) -> int:
        """The most rows of a table that is sorted so, with a number of keys."""
        if any(role == _SORT_TEXT for role, *_ in self.rows):
            return MOST_ROWS_READ
        return _MOST_OF_NUMBERS if keys else _MOST_OF_ONE_STREAM

    def add_window(self, name: str) -> int:
        number = self.add(_WINDOW, name)
        type = self._schema.field(name).type if self.fit else pa.null()
        self.fit &= type.id in WHOLE and type != pa.uint64()
        if pa.types.is_date32(type):
            self.rows[number][4:] = [MICROSECONDS_PER_DAY, LAST_DAY]
        return number

    def add_kept(self, name: str) -> tuple[int, np.dtype] | None:
        type = self._schema.field(name).type if name in self._schema.names else pa.null()
        if type.id not in DTYPES:
            return None
        return self.add(_KEEP, name), DTYPES[type.id]


# --- the kernel -----------------------------------------------------------------------------------
#
# A column of the C data interface of Arrow is a structure of words of 64 bits: length, NULLs (−1:
# not counted), first row, number of buffers, number of columns inside, buffers, columns inside.


@njit(nogil=True, cache=True)
def read_few(array, columns, keys, names, ends, rows, room):  # type: ignore[no-untyped-def]
    """Read the rows of a record batch at an address; returns whether they could be read.

    columns, keys, names, ends: as in `FewRows`. room: int64[_FIRST + columns, rows], what is found:
    numbers, the order of the rows, where partitions begin, codes of types (uint8), ties (bool), and
    of each column its values in order; of those to sort by, as they stand.
    """
    if long_word_at(array + 16) != 0 or long_word_at(array) != rows or rows == 0:
        return False
    count = columns.shape[0]
    inside = long_word_at(array + 48)
    at = np.empty((count, 3), np.int64)  # the first row, the values, the bytes of texts
    nulls = np.int64(0)
    sorts = np.int64(0)
    order, spare = room[_ORDER], room[_SPARE]
    for number in range(count):
        column = long_word_at(inside + 8 * columns[number, 1])
        buffers, first = long_word_at(column + 40), long_word_at(column + 16)
        valid = long_word_at(buffers)
        if long_word_at(column + 8) != 0 and valid != 0 and _has_null(valid, first, rows):
            if columns[number, 0] != _KEEP:
                return False
            nulls |= np.int64(1) << number
        at[number, 0], at[number, 1] = first, long_word_at(buffers + 8)
        at[number, 2] = 0
        if columns[number, 0] == _TYPE or columns[number, 0] == _SORT_TEXT:
            at[number, 2] = long_word_at(buffers + 16)
        if columns[number, 0] == _SORT or columns[number, 0] == _SORT_TEXT:
            sorts += 1
        elif columns[number, 0] == _TYPE:
            types = room[_STARTS].view(np.uint8)
            if not _find_types(at, number, names, ends, rows, types):
                return False
    for number in range(sorts):
        if columns[number, 0] == _SORT:
            for row in range(rows):
                room[_FIRST + number, row] = _whole(at, columns, number, row)
        elif columns[number, 0] == _SORT_TEXT:
            offsets = at[number, 1] + 4 * at[number, 0]
            rank_texts(offsets, at[number, 2], rows, room[_FIRST + number], order, spare)
    in_order(room[_FIRST : _FIRST + sorts], rows, order, spare)
    for number in range(sorts, count):
        role, size, values = columns[number, 0], columns[number, 2], room[_FIRST + number]
        if role == _TYPE:
            types, codes = room[_STARTS].view(np.uint8), room[_CODES].view(np.uint8)
            for place in range(rows):
                codes[place] = types[order[place]]
        elif role == _WINDOW:
            factor, most = columns[number, 4], columns[number, 5]
            for place in range(rows):
                value = _whole(at, columns, number, order[place])
                if value < -most or value > most:
                    return False
                values[place] = value * factor
        elif size == 8:
            for place in range(rows):
                values[place] = long_word_at(at[number, 1] + 8 * (at[number, 0] + order[place]))
        elif size == 4:
            words = values.view(np.int32)
            for place in range(rows):
                words[place] = word_at(at[number, 1] + 4 * (at[number, 0] + order[place]))
        elif size == 2:
            halves = values.view(np.int16)
            for place in range(rows):
                halves[place] = half_word_at(at[number, 1] + 2 * (at[number, 0] + order[place]))
        else:
            single = values.view(np.uint8)
            for place in range(rows):
                single[place] = byte_at(at[number, 1] + at[number, 0] + order[place])
    starts, ties = room[_STARTS], room[_TIES].view(np.bool_)
    found = arrange(room[_FIRST : _FIRST + sorts], keys, rows, order, starts, ties)
    room[0, 0], room[0, 1], room[0, 2] = found[0], found[1], nulls
    return True


@njit(nogil=True, cache=True)
def _has_null(valid, first, rows):  # type: ignore[no-untyped-def]
    """Whether a bit of some rows is 0."""
    for row in range(first, first + rows):
        if not (byte_at(valid + (row >> 3)) >> (row & 7)) & 1:
            return True
    return False


@njit(nogil=True, cache=True)
def _whole(at, columns, number, row):  # type: ignore[no-untyped-def]
    """A whole number of a column as it stands."""
    size, is_signed = columns[number, 2], columns[number, 3]
    address = at[number, 1] + size * (at[number, 0] + row)
    if size == 8:
        return np.int64(long_word_at(address))
    if size == 4:
        value = np.int64(word_at(address))
        return value if is_signed else value & np.int64(0xFFFFFFFF)
    if size == 2:
        value = np.int64(half_word_at(address))
        return value if is_signed else value & np.int64(0xFFFF)
    value = np.int64(byte_at(address))
    return value - ((value & 128) << 1) if is_signed else value


@njit(nogil=True, cache=True)
def _find_types(at, number, names, ends, rows, codes):  # type: ignore[no-untyped-def]
    """Write the number of each row's type among the names; returns whether all have one."""
    offsets, data = at[number, 1] + 4 * at[number, 0], at[number, 2]
    for row in range(rows):
        first = np.int64(word_at(offsets + 4 * row))
        length = np.int64(word_at(offsets + 4 * row + 4)) - first
        code, begin = np.int64(-1), np.int64(0)
        for name in range(ends.shape[0]):
            if ends[name] - begin == length:
                same = np.int64(0)
                while same < length and byte_at(data + first + same) == names[begin + same]:
                    same += 1
                if same == length:
                    code = np.int64(name)
                    break
            begin = ends[name]
        if code < 0:
            return False
        codes[row] = code
    return True
