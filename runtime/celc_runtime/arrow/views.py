"""Columns of Arrow as kernels read them: values one after another, no views, no runs, no extension
types, and texts and codes of 32 bits.

DuckDB and polars give texts as views, also inside of lists and structs. Arrow 26 can neither sort
nor take these, and casts views of lists to lists that it cannot read.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.calendar_intervals import CALENDAR_INTERVAL, with_lengths
from celc_runtime.arrow.number_types import DTYPES

AS_THEY_ARE = frozenset(DTYPES) | {pa.string().id, pa.large_string().id, pa.bool_().id}
"""The types, by their number in Arrow, of columns that are neither coded nor hold views."""


def is_text(type: pa.DataType) -> bool:
    """Whether values of a type are texts, one after another."""
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def as_read(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column `without_views`, whose pieces can be joined: texts with offsets of 32 bits, which
    may be coded, with codes of 32 bits and no NULL among the texts; other coded values decoded.

    Polars and pandas give texts with offsets of 64 bits. Offsets of 32 bits hold those of a piece
    of up to two gigabytes; a larger one stays as it is. Each piece of a coded column can have codes
    of its own. Narrow ones, as pandas makes them, do not hold those of all; Arrow then joins no
    pieces, and none where NULL has a code or where the values are of some other types.
    """
    column = without_views(column)
    type = column.type
    if not pa.types.is_dictionary(type):
        read = _texts_as_read(type)
    elif not is_text(type.value_type) or has_codes_of_null(column):
        return as_read(decoded(column))
    else:
        codes = type.index_type if type.index_type.bit_width >= 32 else pa.int32()
        read = pa.dictionary(codes, _texts_as_read(type.value_type), type.ordered)
    if read == type:
        return column
    try:
        return column.cast(read)
    except pa.ArrowInvalid:  # more bytes than offsets of 32 bits can tell
        return column


def _texts_as_read(type: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_large_string(type) else type


def has_codes_of_null(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether NULL is among the values of a coded column."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return any(chunk.dictionary.null_count for chunk in chunks)


def without_views(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The column with its values one after another.

    That is: no views of texts, which Arrow can neither sort nor take, or of lists, which it casts
    to lists that it cannot read; no run-length coding, for an extension type such as JSON the
    stored type, and durations for intervals of days.
    """
    if column.type.id in AS_THEY_ARE:
        return column
    if column.type == CALENDAR_INTERVAL:
        return with_lengths(column)
    if pa.types.is_run_end_encoded(column.type):
        return without_views(pc.run_end_decode(column))
    if isinstance(column.type, pa.BaseExtensionType):
        return without_views(column.cast(column.type.storage_type))
    if pa.types.is_list_view(column.type) or pa.types.is_large_list_view(column.type):
        return without_views(_without_list_views(column))
    if pa.types.is_dictionary(column.type):
        is_plain = column.type.value_type.id in AS_THEY_ARE
        return column if is_plain else _without_views_of_values(column)
    type = _without_views_of_texts(column.type)
    return column if type == column.type else column.cast(type)


def _without_views_of_texts(type: pa.DataType) -> pa.DataType:
    """A type whose texts and bytes, also inside of lists, structs and maps, come one after
    another."""
    if pa.types.is_string_view(type):
        return pa.large_string()
    if pa.types.is_binary_view(type):
        return pa.large_binary()
    if not pa.types.is_nested(type) or pa.types.is_union(type):
        return type
    fields = [type.field(place) for place in range(type.num_fields)]
    if pa.types.is_map(type):
        key, item = (_without_views_of_texts(one) for one in (type.key_type, type.item_type))
        return pa.map_(key, item, type.keys_sorted)
    fields = [one.with_type(_without_views_of_texts(one.type)) for one in fields]
    if pa.types.is_struct(type):
        return pa.struct(fields)
    if pa.types.is_fixed_size_list(type):
        return pa.list_(fields[0], type.list_size)
    if pa.types.is_list(type):
        return pa.list_(fields[0])
    return pa.large_list(fields[0]) if pa.types.is_large_list(type) else type


def _without_views_of_values(
    column: pa.DictionaryArray | pa.ChunkedArray,
) -> pa.Array | pa.ChunkedArray:
    """A coded column whose values come one after another. It stays coded if these are texts; what
    other values become can depend on them all."""
    coding = column.type
    values = _without_views_of_texts(coding.value_type)
    if values != coding.value_type:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        made = [
            pa.DictionaryArray.from_arrays(
                one.indices, one.dictionary.cast(values), ordered=coding.ordered
            )
            for one in chunks
        ]
        type = pa.dictionary(coding.index_type, values, coding.ordered)
        column = pa.chunked_array(made, type) if isinstance(column, pa.ChunkedArray) else made[0]
    if values == pa.large_string():
        return column
    return without_views(decoded(column))


def decoded(column: pa.DictionaryArray | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The values of a coded column."""
    if not isinstance(column, pa.ChunkedArray):
        return column.dictionary_decode()
    chunks = [chunk.dictionary_decode() for chunk in column.chunks]
    return pa.chunked_array(chunks, column.type.value_type)


def _without_list_views(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, pa.ChunkedArray):
        chunks = [_without_list_views(chunk) for chunk in column.chunks]
        return pa.chunked_array(chunks, pa.large_list(column.type.value_type))
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64())
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))])
    mask = column.is_null() if column.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(offsets), column.flatten(), mask=mask)
