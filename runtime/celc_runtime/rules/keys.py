"""Values of events and of rows as whole numbers that compare as the values do."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import coded, numbers, plain
from celc_runtime.engine.batch import order_preserving

_NUMPY_TYPES: dict[str, type[np.generic]] = {
    "INT": np.int32,
    "LONG": np.int64,
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
}


class Ranks(NamedTuple):
    """The place of each row's value among the distinct ones, int64[rows], −1 for NULL; how many
    distinct values there are; and the places that are less than a value of an event, and those that
    are not greater: `find` gives both (int64[events]) and bool[events] where it is not NULL."""

    of_rows: np.ndarray
    size: int
    find: Callable[[pa.Array], tuple[np.ndarray, np.ndarray, np.ndarray]]


def ranks_of(column: pa.Array, type: str) -> Ranks:
    """The ranks of an attribute of the set, compared in `type`."""
    return _ranks_of_texts(column) if type == "STRING" else _ranks_of_numbers(column, type)


def number_keys(column: pa.Array, type: str) -> tuple[np.ndarray, np.ndarray]:
    """int64 of the same order as the values in `type`, and bool where they are not NULL. NaN is the
    largest, −0.0 is 0.0."""
    values, valid = numbers(plain(column))
    if type in _NUMPY_TYPES:
        values = values.astype(_NUMPY_TYPES[type])
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        return order_preserving(np.where(np.isnan(values), np.nan, values)), valid
    return values.astype(np.int64), valid


def _ranks_of_numbers(column: pa.Array, type: str) -> Ranks:
    keys, valid = number_keys(column, type)
    distinct = np.unique(keys[valid])
    of_rows = np.where(valid, np.searchsorted(distinct, keys), -1)

    def find(events: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        wanted, known = number_keys(events, type)
        below = np.searchsorted(distinct, wanted, side="left")
        upto = below.copy()
        inside = below < len(distinct)
        upto[inside] += distinct[below[inside]] == wanted[inside]
        return below, upto, known

    return Ranks(of_rows, len(distinct), find)


def _ranks_of_texts(column: pa.Array) -> Ranks:
    dictionary = coded(column)
    # By bytes, as Spark compares texts.
    spelled = [text.encode() for text in dictionary.dictionary.to_pylist()]
    distinct = sorted(set(spelled))
    places = {text: place for place, text in enumerate(distinct)}
    of_codes = np.array([*(places[text] for text in spelled), -1], np.int64)
    of_rows = of_codes[_codes(dictionary)]

    def find(events: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        of_events = coded(events)
        texts = [text.encode() for text in of_events.dictionary.to_pylist()]
        below = np.array([*(bisect_left(distinct, text) for text in texts), 0], np.int64)
        upto = np.array([*(bisect_right(distinct, text) for text in texts), 0], np.int64)
        codes = _codes(of_events)
        return below[codes], upto[codes], codes >= 0

    return Ranks(of_rows, len(distinct), find)


def _codes(column: pa.DictionaryArray) -> np.ndarray:
    """int64[rows]: the places of values in the dictionary, −1 for NULL."""
    indices = column.indices.cast(pa.int64())
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False))
