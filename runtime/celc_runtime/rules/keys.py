"""Values of events and of rows as whole numbers that compare as the values do."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import coded, numbers, plain, smallest_units
from celc_runtime.engine.arena.batch import order_preserving
from celc_runtime.values.decimals import moved
from celc_runtime.values.types import DecimalType, type_of

_NUMPY_TYPES: dict[str, type[np.generic]] = {
    "BYTE": np.int8,
    "SHORT": np.int16,
    "INT": np.int32,
    "LONG": np.int64,
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
}


class Keys(NamedTuple):
    """The keys of an attribute of the parameter set."""

    of_rows: np.ndarray  # int64[rows]
    known: np.ndarray  # bool[rows], where it is not NULL
    find: Callable[[pa.Array], tuple[np.ndarray, np.ndarray]]
    """For an attribute of events: (int64[events], the keys; bool[events], where not NULL)."""


def keys_of(column: pa.Array, type: str, *, ordered: bool) -> Keys:
    """The keys of an attribute of the set, compared in `type`.

    If not `ordered`, only equality of keys means anything, which is cheaper for texts.
    """
    if type.startswith("DECIMAL"):
        return _keys_of_decimals(column, type)
    if type != "STRING":
        return Keys(*number_keys(column, type), lambda events: number_keys(events, type))
    return _keys_of_ordered_texts(column) if ordered else _keys_of_texts(column)


def number_keys(column: pa.Array, type: str) -> tuple[np.ndarray, np.ndarray]:
    """(int64 in the order of the values in `type`; bool, where they are not NULL).

    NaN is the greatest number, −0.0 is 0.0.
    """
    values, valid = numbers(plain(column))
    if type in _NUMPY_TYPES:
        values = values.astype(_NUMPY_TYPES[type], copy=False)
    known: np.ndarray = np.broadcast_to(valid, values.shape)
    if values.dtype.kind == "f":
        values = values.astype(np.float64, copy=False)
        unordered = np.isnan(values)
        if unordered.any():
            values = np.where(unordered, np.nan, values)
        return order_preserving(values), known
    return values.astype(np.int64, copy=False), known


def units_in(column: pa.Array, type: str) -> tuple[np.ndarray, np.ndarray]:
    """(the values of a column of DECIMALs or whole numbers in the smallest unit of a DECIMAL, as
    numbers of Python; bool, where they are not NULL)."""
    column, wanted = plain(column), type_of(type)
    assert isinstance(wanted, DecimalType)
    if pa.types.is_decimal(column.type):
        values, scale = smallest_units(column), column.type.scale
    else:
        values, scale = numbers(column)[0].astype(object), 0
    if scale != wanted.scale:
        values = np.array([moved(one, wanted.scale - scale) for one in values.tolist()], object)
    return values, np.asarray(column.is_valid())


def _keys_of_decimals(column: pa.Array, type: str) -> Keys:
    """As `_keys_of_ordered_texts`: 64 bits do not hold all DECIMALs."""
    units, known = units_in(column, type)
    distinct = sorted(set(units[known].tolist()))

    def find(events: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        values, valid = units_in(events, type)
        keys = [bisect_left(distinct, one) + bisect_right(distinct, one) for one in values.tolist()]
        return np.array(keys, np.int64), valid

    return Keys(*find(column), find)


def _keys_of_texts(column: pa.Array) -> Keys:
    """Indices among the distinct texts; −1 for a text that no row has."""
    dictionary = coded(column)
    distinct = pc.unique(dictionary.dictionary)

    def find(events: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        of_events = coded(events)
        places = pc.index_in(of_events.dictionary, distinct).fill_null(-1)
        of_codes = np.append(np.asarray(places).astype(np.int64), -1)
        codes = _codes(of_events)
        return of_codes[codes], codes >= 0

    return Keys(*find(dictionary), find)


def _keys_of_ordered_texts(column: pa.Array) -> Keys:
    """Odd numbers for the distinct texts, 2 · index + 1; even numbers for texts between them."""
    # By bytes, as Spark compares texts.
    distinct = sorted({text.encode() for text in coded(column).dictionary.to_pylist()})

    def find(events: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        of_events = coded(events)
        texts = [text.encode() for text in of_events.dictionary.to_pylist()]
        keys = [bisect_left(distinct, text) + bisect_right(distinct, text) for text in texts]
        codes = _codes(of_events)
        return np.array([*keys, 0], np.int64)[codes], codes >= 0

    return Keys(*find(column), find)


def _codes(column: pa.DictionaryArray) -> np.ndarray:
    """int[rows]: the indices of values in the dictionary, −1 for NULL."""
    return np.asarray(column.indices.fill_null(-1).to_numpy(zero_copy_only=False))
