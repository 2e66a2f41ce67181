"""Columns of Arrow with their values one after another: no views, no runs, no extension types.

DuckDB and polars give texts as views, also inside of lists and structs. Arrow 26 can neither sort
nor take these, and casts views of lists to lists that it cannot read.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.calendar_intervals import CALENDAR_INTERVAL, with_lengths

AS_THEY_ARE = frozenset(
    type.id
    for type in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float16(), pa.float32(), pa.float64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.bool_(), pa.date32(), pa.date64()),
        *(pa.timestamp("us"), pa.duration("us"), pa.time32("s"), pa.time64("us")),
        *(pa.string(), pa.large_string()),
    )
)
"""The types, by their number in Arrow, of columns that are neither coded nor hold views."""


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
