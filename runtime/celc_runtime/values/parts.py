"""Parts of values: fields of STRUCTs, elements of ARRAYs and MAPs, SIZE and CONTAINS.

An ARRAY and a MAP are alike for Arrow: places where the values of each row begin, and one column of
all values. A row that is NULL may have values there all the same, which count for nothing.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.values.operands import Operand, column_of, values_of


def _starts_and_lengths(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Where the values of each row begin among all values, and how many there are."""
    offsets = np.asarray(column.offsets).astype(np.int64)
    lengths = np.where(np.asarray(column.is_valid()), np.diff(offsets), 0)
    return offsets[:-1], lengths


def _size(operand: Operand, rows: int) -> pa.Array:
    """The number of elements; of NULL -1, as in Spark."""
    if pa.types.is_string(operand.type):  # NULL without a type
        return pa.repeat(pa.scalar(-1, pa.int32()), rows)
    column = column_of(operand, rows)
    _, lengths = _starts_and_lengths(column)
    sizes = np.where(np.asarray(column.is_valid()), lengths, -1)
    return pa.array(sizes.astype(np.int32))


def _field(operand: Operand, name: Operand, rows: int) -> pa.Array:
    column = column_of(operand, rows)
    return pc.struct_field(column, column.type.get_field_index(name.as_py()))


def _element(operand: Operand, index: Operand, rows: int) -> pa.Array:
    column = column_of(operand, rows)
    starts, lengths = _starts_and_lengths(column)
    if pa.types.is_map(column.type):
        place, items = _first_found(column.keys, index, starts, lengths), column.items
        known = place < lengths
    else:
        place, known = values_of(index, rows)
        items = column.values
        known = known & (place >= 0) & (place < lengths)
    return items.take(pa.array(np.where(known, starts + place, 0), pa.int64(), mask=~known))


def _first_found(
    values: pa.Array, wanted: Operand, starts: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """The place of a value among those of each row; their number where it is none of them."""
    rows = _rows(lengths)
    places = np.arange(len(rows)) - (np.cumsum(lengths) - lengths)[rows]
    same = _is_same(values.take(pa.array(starts[rows] + places)), wanted, rows)
    first: np.ndarray = lengths.copy()
    # Of several places of a row the first one is written last.
    found = np.flatnonzero(same)[::-1]
    first[rows[found]] = places[found]
    return first


def _rows(lengths: np.ndarray) -> np.ndarray:
    """The row of each value."""
    rows: np.ndarray = np.repeat(np.arange(len(lengths)), lengths)
    return rows


def _is_same(values: pa.Array, wanted: Operand, rows: np.ndarray) -> np.ndarray:
    """Where a value is the wanted one of its row. NaN is equal to itself; NULL to nothing."""
    others = wanted if isinstance(wanted, pa.Scalar) else wanted.take(pa.array(rows))
    if values.type != others.type:
        values = values.cast(others.type)
    same = pc.fill_null(pc.equal(values, others), False)
    if pa.types.is_floating(values.type):
        both = pc.and_(pc.is_nan(values), pc.is_nan(others))
        same = pc.or_(same, pc.fill_null(both, False))
    return np.asarray(same)


def _contains(operand: Operand, wanted: Operand, rows: int) -> pa.Array:
    """Whether a text has a part, an ARRAY an element, a MAP a key; NULL if one of both is, and if
    it is not found among elements of which one is NULL."""
    column = column_of(operand, rows)
    asked = column_of(wanted, rows).is_valid()
    known = np.asarray(column.is_valid()) & np.asarray(asked)
    if pa.types.is_string(column.type):
        return _is_part(column, wanted, known)
    is_map = pa.types.is_map(column.type)
    starts, lengths = _starts_and_lengths(column)
    values = column.keys if is_map else column.values
    found = _first_found(values, wanted, starts, lengths) < lengths
    if values.null_count:
        rows_of = _rows(lengths)
        places = np.arange(len(rows_of)) + (starts - (np.cumsum(lengths) - lengths))[rows_of]
        null = np.asarray(values.is_null())[places]
        has_null = np.bincount(rows_of[null], minlength=len(lengths)) > 0
        known = known & (found | ~has_null)
    return pa.array(found, mask=~known)


def _is_part(column: pa.Array, wanted: Operand, known: np.ndarray) -> pa.Array:
    if isinstance(wanted, pa.Scalar):
        if not wanted.is_valid:
            return pa.nulls(len(column), pa.bool_())
        return pc.match_substring(column, wanted.as_py())
    pairs = zip(column.to_pylist(), wanted.to_pylist(), strict=True)
    found = [None not in pair and pair[1] in pair[0] for pair in pairs]
    return pa.array(found, pa.bool_(), mask=~known)


CODE: dict[str, Callable[..., pa.Array]] = {
    "SIZE": _size,
    "CONTAINS": _contains,
    "FIELD": _field,
    "ELEMENT": _element,
}
