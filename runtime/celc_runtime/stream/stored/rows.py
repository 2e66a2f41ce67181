"""Events as bytes, on their way to the operator of a stream and in its state.

A row is a packed little-endian record: the number of its type, a NULL bit for each value, then the
values. A text is its length there; the bytes of all texts follow after all rows, row by row. A
value with parts, such as an ARRAY, is like a text (`arrow/nested`). So rows are joined, picked and
cut without reading any value, and no value can point outside. Decoding checks that there are as
many bytes as the lengths say, and that texts are UTF-8.

Rejected: Arrow's own format. Its schema is larger than the few events of most keys, and a reader of
bytes that may have been changed must check every offset in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import numbers, zeros
from celc_runtime.arrow.nested import from_bytes, to_bytes
from celc_runtime.plan.errors import StateError
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.stream.stored.compression import from_planes, planes
from celc_runtime.values.types import ArrayType, MapType, StructType, type_of

_FORMATS = {
    "BOOLEAN": "u1",
    "BYTE": "i1",
    "SHORT": "<i2",
    "INT": "<i4",
    "LONG": "<i8",
    "FLOAT": "<f4",
    "DOUBLE": "<f8",
    "TIMESTAMP": "<i8",
    "TIMESTAMP_NTZ": "<i8",
    "DATE": "<i4",
    "INTERVAL": "<i8",
}

_TEXT = "<u4"  # the length of a text, and of a value with parts
_DECIMAL = "V16"  # Arrow's 128 bits
_MOST_TEXT = 2**31 - 1  # bytes: the texts of one column in Arrow, and one value in Spark


class RowField(NamedTuple):
    """A value of a row."""

    name: str
    type: str

    @property
    def is_text(self) -> bool:
        """Whether its bytes are after the rows."""
        return self.format == _TEXT

    @property
    def is_nested(self) -> bool:
        """Whether it has parts."""
        return isinstance(type_of(self.type), ArrayType | MapType | StructType)

    @property
    def format(self) -> str:
        """How NumPy writes it in a record."""
        if self.type.startswith("DECIMAL"):
            return _DECIMAL
        return _FORMATS.get(self.type, _TEXT)

    @property
    def arrow_type(self) -> pa.DataType:
        return arrow_type(self.type)


class Rows(NamedTuple):
    """Events as bytes."""

    records: np.ndarray  # of the layout's dtype
    texts: np.ndarray  # uint8, in the order of rows


class Keys(NamedTuple):
    """The partitions of rows; equal partitions have equal bytes."""

    fixed: np.ndarray  # uint8[rows, width], the end of each record
    texts: np.ndarray  # uint8, the texts of row n are from starts[n] to before ends[n]
    starts: np.ndarray  # int64[rows]
    ends: np.ndarray  # int64[rows]


class RowLayout:
    """The records of a query's events.

    fields: of the events. keys: of their partitions, after the others. So the bytes of a key are
    the end of a record, and its texts the end of the row's texts. types: the number of event types.
    most_kept: how many numbers partitions have for LIMIT … PER, or totals.
    """

    def __init__(
        self,
        fields: Sequence[RowField],
        keys: Sequence[RowField],
        types: int,
        most_kept: int = 0,
    ) -> None:
        self.fields = (*fields, *keys)
        self.keys = tuple(keys)
        self.types = types
        self.most_kept = most_kept
        self._own = len(fields)
        self._texts = [place for place, field in enumerate(self.fields) if field.is_text]
        self._key_texts = [place for place in self._texts if place >= self._own]
        parts: list[tuple[str, str] | tuple[str, str, tuple[int]]] = []
        if types > 1:
            parts.append(("type", "u1" if types <= 256 else "<u2"))
        formats = [(f"f{n}", field.format) for n, field in enumerate(self.fields)]
        for name, first, last in (
            ("nulls", 0, self._own),
            ("key_nulls", self._own, len(formats)),
        ):
            # A key has a byte even without columns, because NumPy reads no records of 0 bytes.
            if last > first or name == "key_nulls":
                parts.append((name, "u1", (max(1, (last - first + 7) // 8),)))
                parts += formats[first:last]
        self.dtype = np.dtype(parts)

    @cached_property
    def of_keys(self) -> RowLayout:
        """The records of partitions alone."""
        return RowLayout((), self.keys, 1)

    def _null_bit(self, place: int) -> tuple[str, int, int]:
        """Where the record says that a field is NULL: the name of the bytes, the byte, the bit."""
        own = place < self._own
        number = place if own else place - self._own
        return "nulls" if own else "key_nulls", number // 8, number % 8

    @property
    def _null_names(self) -> list[str]:
        return [n for n in ("nulls", "key_nulls") if n in (self.dtype.names or ())]

    @cached_property
    def nothing(self) -> Rows:
        return Rows(np.zeros(0, self.dtype), np.zeros(0, np.uint8))

    # --- columns to rows --------------------------------------------------------------------------

    def encoded(self, columns: Sequence[pa.Array], codes: np.ndarray) -> Rows:
        """The rows of columns of the fields' types; `codes` are the numbers of the rows' types."""
        count = len(codes)
        records = np.zeros(count, self.dtype)
        columns = [
            to_bytes(column) if field.is_nested else column
            for field, column in zip(self.fields, columns, strict=True)
        ]
        if self.types > 1:
            records["type"] = codes
        for place, (field, column) in enumerate(zip(self.fields, columns, strict=True)):
            if column.null_count:
                missing = np.asarray(column.is_null())
                name, byte, bit = self._null_bit(place)
                records[name][:, byte] |= missing.astype(np.uint8) << bit
            if column.null_count == count:
                continue
            if field.is_text:
                records[f"f{place}"] = pc.fill_null(pc.binary_length(column), 0)
            elif field.format == _DECIMAL:
                records[f"f{place}"] = _decimals(column)
            elif column.null_count:
                values, valid = numbers(column)
                records[f"f{place}"] = np.where(valid, values, values.dtype.type(0))
            else:
                records[f"f{place}"] = numbers(column)[0]
        return Rows(records, self._texts_of(columns, count))

    def _texts_of(self, columns: Sequence[pa.Array], count: int) -> np.ndarray:
        texts = [
            pc.fill_null(columns[place].cast(pa.large_binary()), b"")
            for place in self._texts
            if columns[place].null_count < count
        ]
        if not texts:
            return np.zeros(0, np.uint8)
        together = texts[0]
        if len(texts) > 1:
            rows = np.arange(len(texts) * count).reshape(len(texts), count)
            together = pa.concat_arrays(texts).take(pa.array(rows.T.ravel()))
        elif together.offset:
            together = pa.concat_arrays([together])
        offsets = np.frombuffer(together.buffers()[1], np.int64)[: len(together) + 1]
        if not together.buffers()[2]:
            return np.zeros(0, np.uint8)
        return np.frombuffer(together.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]

    # --- rows to columns --------------------------------------------------------------------------

    def codes(self, rows: Rows) -> np.ndarray:
        if self.types == 1:
            return zeros(len(rows.records))
        codes: np.ndarray = rows.records["type"].astype(np.int32)
        return codes

    def values(self, rows: Rows, place: int) -> np.ndarray:
        return np.ascontiguousarray(rows.records[f"f{place}"])

    def missing(self, rows: Rows, place: int) -> np.ndarray:
        name, byte, bit = self._null_bit(place)
        found: np.ndarray = (rows.records[name][:, byte] >> bit) & 1 != 0
        return found

    def columns(self, rows: Rows, places: Iterable[int] | None = None) -> list[pa.Array]:
        """The columns of the fields at some places, None: of all; raises StateError if a text is
        not UTF-8."""
        count = len(rows.records)
        places = range(len(self.fields)) if places is None else [*places]
        texts = self._text_columns(rows) if not {*places}.isdisjoint(self._texts) else {}
        any_null = any(rows.records[name].any() for name in self._null_names)
        columns = []
        for place in places:
            field = self.fields[place]
            missing = self.missing(rows, place) if any_null else None
            has_null = missing is not None and missing.any()
            if field.is_text:
                column = texts[place]
                if has_null:
                    column = pc.if_else(pa.array(missing), pa.scalar(None, column.type), column)
                if field.is_nested:
                    column = from_bytes(column, field.arrow_type)
            elif field.type == "BOOLEAN":
                column = pa.array(self.values(rows, place) != 0, mask=missing)
            else:
                bits = None
                if missing is not None and has_null:
                    bits = pa.py_buffer(np.packbits(~missing, bitorder="little"))
                buffers = [bits, pa.py_buffer(self.values(rows, place))]
                column = pa.Array.from_buffers(field.arrow_type, count, buffers)
            columns.append(column)
        return columns

    def _text_columns(self, rows: Rows) -> dict[int, pa.Array]:
        count, kinds = len(rows.records), len(self._texts)
        offsets = np.zeros(count * kinds + 1, np.int64)
        np.cumsum(self._lengths(rows.records).ravel(), out=offsets[1:])
        if int(offsets[-1]) > _MOST_TEXT:
            raise StateError(
                f"the texts of {count:,} events of one bucket are {int(offsets[-1]):,} bytes "
                "long, and 2 GiB is the most: use more buckets, or smaller micro-batches"
            )
        together = pa.Array.from_buffers(
            pa.large_binary(),
            count * kinds,
            [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(rows.texts))],
        )
        found = {}
        for number, place in enumerate(self._texts):
            column = together
            if kinds > 1:
                column = together.take(pa.array(np.arange(number, count * kinds, kinds)))
            try:
                field = self.fields[place]
                found[place] = column if field.is_nested else column.cast(field.arrow_type)
            except pa.ArrowInvalid:
                raise StateError(f"a text of {self.fields[place].name!r} is not UTF-8") from None
        return found

    # --- picking and joining ----------------------------------------------------------------------

    def _lengths(self, records: np.ndarray) -> np.ndarray:
        lengths = np.empty((len(records), len(self._texts)), np.int64)
        for number, place in enumerate(self._texts):
            lengths[:, number] = records[f"f{place}"]
        return lengths

    def _ends(self, records: np.ndarray) -> np.ndarray:
        """int64[rows + 1]: where the texts of each row begin, and where the last texts end."""
        ends = np.zeros(len(records) + 1, np.int64)
        lengths = ends[1:]
        for place in self._texts:
            lengths += records[f"f{place}"]
        np.cumsum(lengths, out=lengths)
        return ends

    def taken(self, rows: Rows, index: np.ndarray) -> Rows:
        records = rows.records.take(index)  # by an index, records are copied field by field
        if not len(rows.texts):
            return Rows(records, rows.texts)
        return Rows(records, _chosen(rows.texts, self._ends(rows.records), index))

    def joined(self, parts: Sequence[Rows]) -> Rows:
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return self.nothing
        # As plain bytes, because NumPy compares the fields of records before it joins them.
        plain_bytes = [part.records.view(np.uint8) for part in parts]
        records = np.concatenate(plain_bytes).view(self.dtype)
        if not self._texts:
            return Rows(records, parts[0].texts)
        return Rows(records, np.concatenate([part.texts for part in parts]))

    def cut(self, rows: Rows, edges: np.ndarray) -> Iterator[Rows]:
        """The rows between neighbours of `edges` (ascending)."""
        ends = self._ends(rows.records)[edges].tolist() if len(rows.texts) else None
        borders = edges.tolist()
        for place in range(len(borders) - 1):
            records = rows.records[borders[place] : borders[place + 1]]
            if ends is None:
                yield Rows(records, rows.texts)
            else:
                yield Rows(records, rows.texts[ends[place] : ends[place + 1]])

    # --- keys -------------------------------------------------------------------------------------

    def keys_of(self, rows: Rows) -> Keys:
        """The keys of rows, as the bytes by which they are compared."""
        count, size = len(rows.records), self.dtype.itemsize
        fields = self.dtype.fields
        assert fields is not None
        offset = fields["key_nulls"][1]
        in_bytes = np.ascontiguousarray(rows.records).view(np.uint8).reshape(count, size)
        # Copies, so that kernels are compiled for one type of array.
        fixed = in_bytes[:, offset:].copy()
        if not self._key_texts:
            nowhere = np.zeros(count, np.int64)
            return Keys(fixed, np.zeros(0, np.uint8), nowhere, nowhere)
        ends = self._ends(rows.records)[1:]
        lengths = np.zeros(count, np.int64)
        for place in self._key_texts:
            lengths += rows.records[f"f{place}"]
        texts = rows.texts if rows.texts.flags.writeable else rows.texts.copy()
        return Keys(fixed, texts, ends - lengths, ends)

    def rows_of_keys(self, keys: Keys, index: np.ndarray) -> Rows:
        """Some keys as rows of `of_keys`, in the order of `index` (int64)."""
        layout = self.of_keys
        records = keys.fixed.take(index, axis=0).view(layout.dtype).reshape(len(index))
        return Rows(records, _pieces(keys.texts, keys.starts[index], keys.ends[index]))

    # --- bytes ------------------------------------------------------------------------------------

    def read(
        self, data: bytes, start: int, count: int, *, checked: bool = True
    ) -> tuple[Rows, int]:
        """The `count` rows that begin at a byte, with their texts, and the first byte after them.

        checked: types and NULL bits are checked too, because the bytes come from a checkpoint.
        Raises StateError if the bytes cannot be such rows.
        """
        end = start + count * self.dtype.itemsize
        if end > len(data):
            raise StateError(f"{count:,} events do not fit into {len(data):,} bytes")
        records = from_planes(data, start, count, self.dtype)
        if checked and count:
            self._check(records)
        if not self._texts:
            return Rows(records, self.nothing.texts), end
        length = int(self._lengths(records).sum())
        if end + length > len(data):
            raise StateError(f"texts of {length:,} bytes do not fit into {len(data):,}")
        return Rows(records, np.frombuffer(data, np.uint8, length, end)), end + length

    def _check(self, records: np.ndarray) -> None:
        if self.types > 1 and int(records["type"].max()) >= self.types:
            raise StateError("an event is of a type that the query does not declare")
        for name, count in (("nulls", self._own), ("key_nulls", len(self.keys))):
            spare = -count % 8 if count else 8 * (name == "key_nulls")
            if spare and int((records[name][:, -1] >> (8 - spare)).max()):
                raise StateError("an event has a value more than the query reads")


def _decimals(column: pa.Array) -> np.ndarray:
    """The bits of each value, zeros where NULL."""
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(0, pa.int8()).cast(column.type))
    found: np.ndarray = np.frombuffer(column.buffers()[1], _DECIMAL)
    return found[column.offset :][: len(column)]


def row_bytes(rows: Rows) -> bytes:
    """The bytes that `RowLayout.read` reads: the records plane by plane, and the texts."""
    return planes(rows.records) + rows.texts.tobytes()


def _chosen(texts: np.ndarray, offsets: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The bytes of some rows, one after another; offsets: where those of each row begin, and where
    the last end. Arrow copies them in a third of the time that an index for each byte takes."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(texts))]
    whole = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
    _, ends, found = whole.take(pa.array(index)).buffers()
    if not len(index) or found is None:
        return np.zeros(0, np.uint8)
    last = int(np.frombuffer(ends, np.int64, 1, 8 * len(index))[0])
    return np.frombuffer(found, np.uint8, last)


def _pieces(texts: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The bytes between starts and ends, one piece after another."""
    lengths = ends - starts
    places = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    found: np.ndarray = texts[places + np.arange(len(places))]
    return found
