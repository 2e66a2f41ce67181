"""Calls on small tables, one after another: they leave nothing behind."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.jit.kernels import compiling, interpreting
from engines import interpreted, only_query

import celc

DECLARED = "CREATE STREAM S { EVENT A { k: INT, v: LONG }, EVENT B { k: INT, v: LONG } }\n"
_LEAST = 100  # bytes: each array has more

QUERIES = {
    "a key": "SELECT a.v AS one, b WHERE A AS a ; B AS b PARTITION BY k WITHIN 9 [ts]",
    "neighbours": "SELECT * WHERE A : B PARTITION BY k",
    "one that ends": "SELECT FIRST * WHERE A ; B WITHIN 9 [ts]",
    "totals": "SELECT TOTAL COUNT(*) AS c WHERE A AS a ; B AS b PARTITION BY k",
}


def query_of(name: str) -> CompiledQuery:
    declared = DECLARED.replace(" }", ", ts: LONG }", 2)
    return only_query(celc.compile(declared + QUERIES[name], order_by="ts"))


def table_of(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "type": rng.choice(["A", "B"], rows),
            "k": rng.integers(0, 3, rows).astype(np.int32),
            "v": rng.integers(0, 9, rows),
            "ts": rng.permutation(rows),
        }
    )


def left_behind(call: Any) -> tuple[int, int]:
    """(bytes of Python and NumPy, bytes of Arrow) that a call leaves behind each time: the least of
    four, as Numba now and then keeps something of its own."""
    tracemalloc.start()
    try:
        found = []
        for _ in range(5):
            call()
            gc.collect()
            found.append((tracemalloc.get_traced_memory()[0], pa.total_allocated_bytes()))
    finally:
        tracemalloc.stop()
    python, arrow = zip(*found, strict=True)
    return _least_growth(python), _least_growth(arrow)


def _least_growth(sizes: Sequence[int]) -> int:
    return min(after - before for before, after in pairwise(sizes))


@pytest.mark.each(2)
@pytest.mark.parametrize("name", ["a key", "one that ends"])
def test_calls_leave_nothing(name: str) -> None:
    with interpreted():
        query = query_of(name)
    table = table_of(8, seed=3)
    with interpreting():  # Numba keeps some 15 kB of its own, however many calls there are
        assert len(query.match_table(table))
        python, arrow = left_behind(lambda: [query.match_table(table) for _ in range(40)])
    assert python < 40 * _LEAST, python
    assert arrow == 0


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_ten_thousand_calls_of_two_threads_leave_nothing(name: str) -> None:
    query = query_of(name)
    tables = [table_of(100, seed) for seed in range(4)]
    with compiling():
        wanted = [query.match_table(table) for table in tables]

    def calls(first: int) -> None:
        for number in range(first, first + 2_500):
            place = number % len(tables)
            assert query.match_table(tables[place]).equals(wanted[place])

    with ThreadPoolExecutor(2) as pool:
        # The second half of 10,000 calls is counted.
        python, arrow = left_behind(lambda: [*pool.map(calls, (0, 1))])
    assert python < 5_000 * _LEAST, python
    assert arrow == 0
