"""The machine code of every kernel is kept for the next process, whatever stands in its closure."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from celc_runtime.engine.totals.kernel import totals_update
from celc_runtime.engine.totals.total_elements import Shape
from celc_runtime.engine.walk.collected_listing import collected_listing
from celc_runtime.engine.walk.walk import listing_kernel
from celc_runtime.jit.contents import constant_content
from celc_runtime.jit.kernels import Kernel

import celc

_DECLARATION = """CREATE STREAM S {
  EVENT A { ts: LONG, v: DOUBLE, n: LONG },
  EVENT B { ts: LONG, v: DOUBLE, n: LONG }
}
"""
_CHECKED = "SELECT * FROM S WHERE (A AS a)+ FILTER a.v > PREV(a.v) WITHIN 9 EVENTS"


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("shape", [Shape(1, 0, 0, 0, 0), Shape(2, 1, 1, 1, 1)])
def test_kernels_of_totals_are_kept(shape: Shape, *, bounded: bool) -> None:
    """Their closures hold other kernels, and numbers of NumPy."""
    kernel = totals_update(shape, bounded)
    assert isinstance(kernel, Kernel)
    assert kernel.content is not None


def test_all_kernels_in_this_process_are_kept() -> None:
    """Those of the runtime, of a query, and those that are made around the conditions of a query;
    none is compiled."""
    (query,) = celc.compile(_DECLARATION + _CHECKED).queries.values()
    checks = query.program.listing
    for make in (listing_kernel, collected_listing):
        make(checks)
    gc.unfreeze()  # what `tests/conftest.py` has set aside
    ours = [
        found
        for found in gc.get_objects()
        if isinstance(found, Kernel) and str(found.__module__).startswith("celc")
    ]
    assert len(ours) > 50
    not_kept = [found for found in ours if found.content is None]
    assert not not_kept


def test_numbers_of_different_types_are_different_contents() -> None:
    of_numbers = constant_content
    contents = [of_numbers(one) for one in (3, np.int64(3), np.uint64(3), 3.0, "3", (3,))]
    assert None not in contents
    assert len(set(contents)) == len(contents)
    assert of_numbers([3]) is None
