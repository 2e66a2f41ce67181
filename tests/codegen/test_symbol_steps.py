"""Symbols of many conditions are looked up in steps, with the same result as in one table."""

from __future__ import annotations

import numpy as np
from celc_runtime.engine.values.spark_arithmetic import symbol_steps, symbol_table
from hypothesis import given
from hypothesis import strategies as st


@given(
    st.integers(1, 14),
    st.integers(1, 7),
    st.dictionaries(st.integers(0, 2**14 - 1), st.integers(1, 300), max_size=40),
)
def test_steps_are_one_table(conditions: int, step: int, found: dict[int, int]) -> None:
    symbols = {truth % (1 << conditions): symbol for truth, symbol in found.items()}
    table = symbol_table(conditions, symbols)
    steps = symbol_steps(conditions, symbols, step)
    truth = np.arange(1 << conditions)
    at = np.zeros_like(truth)
    for number, one in enumerate(steps):
        at = np.asarray(one, np.int64)[(at << step) + (truth >> number * step & (1 << step) - 1)]
    assert (at == np.asarray(table)[truth]).all()
