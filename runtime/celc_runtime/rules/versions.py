"""VALID [since, until]: from when to when each row of a parameter table counts.

Rows with one key are versions, ordered by `since`. A version ends where it says so, or where the
next one begins, whatever is earlier. What comes of it is two columns of times without NULL, the
first and the last time that an event can have. So the query compares them as any values of a row,
and the index of rows finds the rows of an event by them.

Rejected: rows that are cut by the query itself, which sees one row at a time; NULL in the two
columns, which would make four ways to find a row of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import numbers
from celc_runtime.arrow.nested import to_bytes
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.parameters import Parameters
from celc_runtime.program import Rows


def with_times(parameters: Parameters, rows: Rows) -> Rows:
    """The rows with the columns of the first and the last time of each.

    Raises EventError for a row that ends before it begins, a time that is NaN, and two rows with
    one key and one beginning.
    """
    valid = parameters.valid
    assert valid is not None
    since, begins = numbers(rows.columns[valid.since])
    until, ends = numbers(rows.columns[valid.until])
    check_times(parameters, rows)
    until, ends = _cut(parameters, rows, (since, begins), (until, ends))
    first, last = stretch_of(rows.columns[valid.since].type, (since, begins), (until, ends))
    columns = {**rows.columns, valid.first: first, valid.last: last}
    return Rows(rows.count, columns, frozenset((valid.first, valid.last)))


Times = tuple[np.ndarray, np.ndarray]
"""Times of rows as numbers, and bool[rows]: whether there is one, and not NULL."""


def stretch_of(type: pa.DataType, since: Times, until: Times) -> tuple[pa.Array, pa.Array]:
    """The columns of the first and the last time of rows, of the type of their times."""
    of_numbers = since[0].dtype
    least: Any
    most: Any
    if of_numbers.kind == "f":
        # An event of a time that is NaN is an error.
        least, most = of_numbers.type(-np.inf), of_numbers.type(np.inf)
        before = np.nextafter(until[0], least)
        lowest = until[0] == least
    else:
        least, most = np.iinfo(of_numbers).min, np.iinfo(of_numbers).max
        lowest = until[0] == least
        before = until[0] - ~lowest
    first = np.where(since[1], since[0], least)
    last = np.where(until[1], before, most)
    is_never = until[1] & (lowest | (since[1] & (until[0] <= since[0])))
    first, last = np.where(is_never, most, first), np.where(is_never, least, last)
    made = [pa.array(one.astype(of_numbers), _number_type(type)) for one in (first, last)]
    return made[0].cast(type), made[1].cast(type)


def coded_keys(column: pa.Array) -> pa.DictionaryArray:
    """The column as codes; equal values have equal codes."""
    if pa.types.is_nested(column.type):
        column = to_bytes(column)
    return column.dictionary_encode(null_encoding="encode")


def _number_type(type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(type) else type


def check_times(parameters: Parameters, rows: Rows) -> None:
    """Raises EventError for a row that ends before it begins, and a time that is NaN."""
    valid = parameters.valid
    assert valid is not None
    since, until = numbers(rows.columns[valid.since]), numbers(rows.columns[valid.until])
    for name, (times, there) in ((valid.since, since), (valid.until, until)):
        odd = there & (times != times)
        if odd.any():
            row = int(np.flatnonzero(odd)[0])
            raise EventError(f"{_row_text(parameters, rows, [row])}: {name!r} is NaN, and no time")
    wrong = since[1] & until[1] & (until[0] < since[0])
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise EventError(
            f"{_row_text(parameters, rows, [row])}: it is valid until "
            f"{_shown(rows, valid.until, row)}, before it begins at "
            f"{_shown(rows, valid.since, row)}; let {valid.until!r} be later, or equal for a row "
            "that is never valid"
        )


def _cut(parameters: Parameters, rows: Rows, since: Times, until: Times) -> Times:
    """The ends of rows, each at most at the beginning of the next version."""
    valid = parameters.valid
    assert valid is not None
    keys = np.asarray(coded_keys(rows.columns[parameters.attributes[0].name]).indices)
    order = np.lexsort((since[0], since[1], keys))
    one, following = order[:-1], order[1:]
    same = keys[one] == keys[following]
    there = since[1]
    together = same & (there[one] == there[following])
    together &= ~there[one] | (since[0][one] == since[0][following])
    if together.any():
        place = int(np.flatnonzero(together)[0])
        pair = sorted((int(one[place]), int(following[place])))
        raise EventError(
            f"{_row_text(parameters, rows, pair)}: both have one {parameters.attributes[0].name!r} "
            f"and begin at {_shown(rows, valid.since, pair[0])}, but they differ; of one key only "
            "one row begins at a time"
        )
    times, ends = until[0].copy(), until[1].copy()
    is_cut = same & (~ends[one] | (since[0][following] < times[one]))
    times[one[is_cut]] = since[0][following[is_cut]]
    ends[one[is_cut]] = True
    return times, ends


def _row_text(parameters: Parameters, rows: Rows, places: Sequence[int]) -> str:
    texts = (
        "{"
        + ", ".join(
            f"{one.name}: {_shown(rows, one.name, number)}" for one in parameters.attributes
        )
        + "}"
        for number in places
    )
    what = "row" if len(places) == 1 else "rows"
    return f"parameters {parameters.name!r}: {what} {' and '.join(texts)}"


def _shown(rows: Rows, name: str, number: int) -> str:
    value = rows.columns[name][number]
    if not value.is_valid:
        return "NULL"
    return str(pc.cast(value, pa.string())) if not pa.types.is_nested(value.type) else str(value)
