"""Matches that follow each other, one for each start at most."""

from __future__ import annotations

import numpy as np

from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def disjoint_chain(starts, ends, after):  # type: ignore[no-untyped-def]
    """Which matches DISJOINT keeps: in the order of starts (int64, ascending, each once) each that
    starts after the end of the last one kept. `after` is the end of the last one kept before.
    Returns bool[matches], and the end of the last one kept.
    """
    kept = np.zeros(starts.shape[0], np.bool_)
    for match in range(starts.shape[0]):
        if starts[match] > after:
            kept[match] = True
            after = ends[match]
    return kept, after
