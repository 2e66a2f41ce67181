"""The order of a task's rows, beside a sort of Python's own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.spark.worker.row_order import codes_of_keys, order_of

_DAY = 86_400_000_000


def _chunked(values: Sequence[Any], type: pa.DataType) -> pa.ChunkedArray:
    middle = len(values) // 2
    return pa.chunked_array([pa.array(values[:middle], type), pa.array(values[middle:], type)])


def _check(keys: Sequence[Any], columns: Sequence[pa.ChunkedArray]) -> bool:
    """Whether two rows may be equal in the first column of the order."""
    codes = codes_of_keys([_chunked(keys, pa.string())], len(keys))
    found = order_of(codes.copy(), columns)
    values = [[_place(one) for one in column.to_pylist()] for column in columns]
    by = [(int(codes[row]), *(column[row] for column in values)) for row in range(len(keys))]
    assert sorted(found.rows.tolist()) == list(range(len(keys)))
    assert [by[row] for row in found.rows] == sorted(by)
    assert found.codes.tolist() == [code for code, *_ in sorted(by)]
    if columns and not found.may_tie:
        assert len({(code, first) for code, first, *_ in by}) == len(by)
    return found.may_tie


def _place(value: Any) -> tuple[bool, Any]:
    """A value where NULL comes first and texts are compared byte by byte."""
    if value is None:
        return False, 0
    return True, value.encode() if isinstance(value, str) else value


_FIRST = {
    "few": lambda rng: rng.randrange(5),
    "many": lambda rng: rng.randrange(10**6),
    "negative": lambda rng: rng.randrange(-50, 50),
    "any 64 bits": lambda rng: rng.randrange(-(2**63), 2**63),
    "half of 64 bits": lambda rng: rng.randrange(2**62),
    "nearly all bits": lambda rng: rng.randrange(2**58),
    "microseconds": lambda rng: rng.randrange(400 * _DAY),
    "milliseconds": lambda rng: 7 + 1_000 * rng.randrange(2**48),
    "seconds": lambda rng: 1_000_000 * rng.randrange(2**38),
    "the same": lambda rng: 7,
    "NULL too": lambda rng: rng.choice([None, -3, 4, 5]),
}


@pytest.mark.parametrize("kind", _FIRST)
def test_rows_are_in_the_order_of_key_and_columns(kind: str) -> None:
    rng = random.Random(3)
    may_tie = set()
    for rows in (1, 2, 3, 17, 400):
        for number_of_keys in (1, 3, 100):
            keys = [f"k{rng.randrange(number_of_keys)}" for _ in range(rows)]
            first = _chunked([_FIRST[kind](rng) for _ in range(rows)], pa.int64())
            texts = [rng.choice(["", "a", "ä", "Z", None]) for _ in range(rows)]
            numbers = rng.sample(range(-rows, rows), rows)
            columns = [first, _chunked(texts, pa.string()), _chunked(numbers, pa.int32())]
            for most in (0, 1, 2, 3):
                may_tie.add(_check(keys, columns[:most]))
    assert may_tie == {True, False} or kind in ("the same", "NULL too")


def test_rows_that_are_in_order_stay_where_they_are() -> None:
    times = _chunked([0, 0, 1, 2, 2, 2, 5], pa.int64())
    found = order_of(np.zeros(7, np.int64), [times, _chunked([5, 4, 3, 2, 3, 1, 0], pa.int64())])
    assert found.rows.tolist() == [1, 0, 2, 5, 3, 4, 6]
    assert found.may_tie
    ascending = _chunked(range(7), pa.int64())
    assert order_of(np.zeros(7, np.int64), [ascending]).rows.tolist() == list(range(7))


@pytest.mark.parametrize("step", [1, 1_000, 1_000_000])
def test_times_of_a_whole_unit_are_told_from_others_at_any_place(step: int) -> None:
    """One value alone is none of the unit, and is greater than one that comes later."""
    rows = 5_000
    apart = step * (10**18 // (rows * step) | 1)
    times = np.random.default_rng(1).permutation(rows).astype(np.int64) * apart
    for more in (1, 1_000):
        times[-1] = int(times.max())
        times[2_000] = int(times.max()) + more
        order = order_of(np.zeros(rows, np.int64), [pa.chunked_array([pa.array(times)])])
        assert (times[order.rows] == np.sort(times)).all()
