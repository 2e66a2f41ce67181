"""The machine code of every kernel is kept for the next process, whatever stands in its closure."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.engine.totals import totals_update
from celc_runtime.jit import kernels
from numba.core.registry import CPUDispatcher

import celc

_DECLARATION = """CREATE STREAM S {
  EVENT A { ts: LONG, v: DOUBLE, n: LONG },
  EVENT B { ts: LONG, v: DOUBLE, n: LONG }
}
"""
_QUERIES = (
    "SELECT TOTAL COUNT(*) AS n FROM S WHERE A ; B WITHIN 9 EVENTS",
    "SELECT TOTAL SUM(a.n) AS s, MIN(a.v) AS m FROM S WHERE A AS a ; B WITHIN 9 EVENTS",
    "SELECT COLLAPSED * FROM S WHERE A+ ; B WITHIN 9 EVENTS",
    "SELECT * FROM S WHERE (A AS a)+ FILTER a.v > PREV(a.v) WITHIN 9 EVENTS",
    "SELECT LONGEST * FROM S WHERE (A AS a)+ FILTER a.v > PREV(a.v) WITHIN 9 EVENTS",
)


@pytest.mark.parametrize("shape", [(1, 0, 0, 0), (2, 1, 1, 1)])
def test_kernels_of_totals_are_kept(shape: tuple[int, int, int, int]) -> None:
    """Their closures hold other kernels, and numbers of NumPy."""
    assert isinstance(totals_update(*shape)._cache, kernels.KernelCache)  # type: ignore[attr-defined]


def test_all_kernels_in_this_process_are_kept() -> None:
    table = pa.table(
        {
            "type": ["A", "B"] * 20,
            "ts": np.arange(40),
            "v": np.arange(40) * 0.5,
            "n": np.arange(40) % 3,
        }
    )
    for text in _QUERIES:
        (query,) = celc.compile(_DECLARATION + text).queries.values()
        query.match_table(table)
    ours = [
        found
        for found in gc.get_objects()
        if isinstance(found, CPUDispatcher)
        and found.py_func.__module__.startswith("celc")
        and found.py_func.__name__ != "<lambda>"  # Numba's own, of an intrinsic: never called
    ]
    assert len(ours) > 50
    not_kept = [found for found in ours if not isinstance(found._cache, kernels.KernelCache)]
    assert not not_kept


def test_numbers_of_different_types_are_different_contents() -> None:
    of_numbers = kernels._constant_content
    contents = [of_numbers(one) for one in (3, np.int64(3), np.uint64(3), 3.0, "3", (3,))]
    assert None not in contents
    assert len(set(contents)) == len(contents)
    assert of_numbers([3]) is None
