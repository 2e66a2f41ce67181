"""Values with parts (ARRAY, STRUCT, MAP) as bytes, column by column in both directions.

A value is a byte that says whether it is there, and if it is, its content: a number's bytes; a
text's length and bytes; the fields of a struct; the number of the elements of a list, the length of
each as bytes, and the elements. Lengths and numbers of elements are 32 bits, little-endian. A map
is a list of structs. So a value can be picked and cut without reading others.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import numbers
from celc_runtime.plan.errors import StateError

_LENGTH = np.dtype("<u4")


class _Pieces(NamedTuple):
    """Bytes for each of some rows, one row after another."""

    lengths: np.ndarray  # int64[rows]
    data: np.ndarray  # uint8


def to_bytes(column: pa.Array) -> pa.Array:
    """A BINARY column with the bytes of each value; NULL where the value is."""
    pieces = _encoded(column)
    data = pa.py_buffer(np.ascontiguousarray(pieces.data))
    buffers = [None, pa.py_buffer(_starts(pieces.lengths)), data]
    found = pa.Array.from_buffers(pa.large_binary(), len(column), buffers)
    if not column.null_count:
        return found
    return pc.if_else(column.is_valid(), found, pa.scalar(None, pa.large_binary()))


def from_bytes(column: pa.Array, type: pa.DataType) -> pa.Array:
    """The values whose bytes `to_bytes` made; raises StateError if the bytes cannot be such."""
    column = column.cast(pa.large_binary())
    offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset :][: len(column) + 1]
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    there = np.asarray(column.is_valid())
    try:
        found, ends = _decoded(data, offsets[:-1][there], type)
        found.validate(full=True)
    except (IndexError, ValueError):  # ArrowInvalid is one
        raise StateError("the bytes of an ARRAY, STRUCT or MAP are not its values") from None
    if not np.array_equal(ends, offsets[1:][there]):
        raise StateError("an ARRAY, STRUCT or MAP has more bytes than values")
    return _spread(found, there)


# --- values to bytes ------------------------------------------------------------------------------


def _encoded(column: pa.Array) -> _Pieces:
    there = np.asarray(column.is_valid())
    flags = _Pieces(np.ones(len(column), np.int64), there.astype(np.uint8))
    content = _content(column.filter(pa.array(there)) if column.null_count else column)
    if column.null_count:
        lengths = np.zeros(len(column), np.int64)
        lengths[there] = content.lengths
        content = _Pieces(lengths, content.data)
    return _side_by_side([flags, content])


def _content(column: pa.Array) -> _Pieces:
    """The bytes of values of which none is NULL."""
    type, rows = column.type, len(column)
    if pa.types.is_map(type) or pa.types.is_list(type):
        counts = np.diff(_offsets_of(column, np.int32))
        elements = _encoded(_elements(column))
        starts = _starts(elements.lengths)[_starts(counts)]
        return _side_by_side(
            [
                _fixed(counts.astype(_LENGTH)),
                _Pieces(counts * _LENGTH.itemsize, elements.lengths.astype(_LENGTH).view(np.uint8)),
                _Pieces(np.diff(starts), elements.data),
            ]
        )
    if pa.types.is_struct(type):
        return _side_by_side([_encoded(column.field(n)) for n in range(type.num_fields)])
    if pa.types.is_string(type) or pa.types.is_binary(type):
        texts = pa.concat_arrays([column]) if column.offset else column
        offsets = _offsets_of(texts, np.int32).astype(np.int64)
        data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
        lengths = np.diff(offsets)
        return _side_by_side([_fixed(lengths.astype(_LENGTH)), _Pieces(lengths, data)])
    if pa.types.is_decimal(type):
        width = type.byte_width
        data = np.frombuffer(column.buffers()[1], np.uint8)[column.offset * width :]
        return _Pieces(np.full(rows, width, np.int64), data[: rows * width])
    return _fixed(np.ascontiguousarray(numbers(column)[0]))


def _elements(column: pa.Array) -> pa.Array:
    """The elements of lists, without those that no list has; those of maps as structs."""
    offsets = _offsets_of(column, np.int32)
    if not pa.types.is_map(column.type):
        return column.values[offsets[0] : offsets[-1]] if len(offsets) else column.values[:0]
    keys, items = (part[offsets[0] : offsets[-1]] for part in (column.keys, column.items))
    return pa.StructArray.from_arrays([keys, items], ["key", "value"])


def _offsets_of(column: pa.Array, dtype: type[np.generic]) -> np.ndarray:
    if not column.buffers()[1]:
        return np.zeros(len(column) + 1, dtype)
    found: np.ndarray = np.frombuffer(column.buffers()[1], dtype)[column.offset :][
        : len(column) + 1
    ]
    return found


def _fixed(values: np.ndarray) -> _Pieces:
    return _Pieces(np.full(len(values), values.itemsize, np.int64), values.view(np.uint8))


def _starts(lengths: np.ndarray) -> np.ndarray:
    """int64[rows + 1]: where each row begins, and where the last one ends."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _side_by_side(parts: Sequence[_Pieces]) -> _Pieces:
    """For each row its bytes of all parts."""
    lengths = np.vstack([part.lengths for part in parts]).sum(axis=0)
    together = np.empty(int(lengths.sum()), np.uint8)
    at = _starts(lengths)[:-1]
    for part in parts:
        together[_places(at, part.lengths)] = part.data
        at = at + part.lengths
    return _Pieces(lengths, together)


def _places(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The places of the bytes of pieces that begin at some places."""
    shifts = starts - _starts(lengths)[:-1]
    found: np.ndarray = np.repeat(shifts, lengths) + np.arange(int(lengths.sum()))
    return found


# --- bytes to values ------------------------------------------------------------------------------


def _decoded(
    data: np.ndarray, starts: np.ndarray, type: pa.DataType
) -> tuple[pa.Array, np.ndarray]:
    """The values that begin at some places, and the place after each."""
    there = data[starts] != 0
    ends = starts + 1
    found, ends[there] = _values(data, ends[there], type)
    return _spread(found, there), ends


def _values(data: np.ndarray, starts: np.ndarray, type: pa.DataType) -> tuple[pa.Array, np.ndarray]:
    rows = len(starts)
    if pa.types.is_map(type) or pa.types.is_list(type):
        counts, at = _lengths(data, starts)
        sizes = _taken(data, at, counts * _LENGTH.itemsize).view(_LENGTH).astype(np.int64)
        at = at + counts * _LENGTH.itemsize
        # The elements of a row begin after those before them in the row.
        before = _starts(sizes)
        firsts = _starts(counts)
        begins = np.repeat(at - before[firsts[:-1]], counts) + before[:-1]
        offsets = pa.array(firsts, pa.int32())
        ends = at + before[firsts[1:]] - before[firsts[:-1]]
        if pa.types.is_map(type):
            pairs = pa.struct([("key", type.key_type), ("value", type.item_type)])
            elements, after = _decoded(data, begins, pairs)
            made = pa.MapArray.from_arrays(offsets, elements.field(0), elements.field(1))
        else:
            elements, after = _decoded(data, begins, type.value_type)
            made = pa.ListArray.from_arrays(offsets, elements)
        if not np.array_equal(after, begins + sizes):
            raise ValueError("elements have other lengths")
        return made.cast(type), ends
    if pa.types.is_struct(type):
        fields = []
        for field in type:
            column, starts = _decoded(data, starts, field.type)
            fields.append(column)
        return pa.StructArray.from_arrays(fields, fields=list(type)), starts
    if pa.types.is_string(type) or pa.types.is_binary(type):
        lengths, at = _lengths(data, starts)
        texts = pa.py_buffer(_taken(data, at, lengths))
        offsets = pa.py_buffer(_starts(lengths))
        binary = pa.Array.from_buffers(pa.large_binary(), rows, [None, offsets, texts])
        return binary.cast(type), at + lengths
    width = 1 if pa.types.is_boolean(type) else type.bit_width // 8
    taken = _taken(data, starts, np.full(rows, width, np.int64))
    if pa.types.is_boolean(type):
        return pa.array(taken != 0), starts + width
    return pa.Array.from_buffers(type, rows, [None, pa.py_buffer(taken)]), starts + width


def _lengths(data: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 32-bit numbers at some places, and the places after them."""
    width = np.full(len(starts), _LENGTH.itemsize, np.int64)
    return _taken(data, starts, width).view(_LENGTH).astype(np.int64), starts + _LENGTH.itemsize


def _taken(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    # Before any memory is taken for lengths that may be wrong.
    if len(starts) and int((starts + lengths).max()) > len(data):
        raise IndexError("a value goes on past the end")
    found: np.ndarray = data[_places(starts, lengths)]
    return found


def _spread(found: pa.Array, there: np.ndarray) -> pa.Array:
    """Values for the rows that have one, NULL for the others."""
    if there.all():
        return found
    return found.take(pa.array(np.cumsum(there) - 1, mask=~there))
