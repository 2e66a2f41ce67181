"""Matches that do not overlap, at most one for each start."""

import numpy as np

from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def disjoint_chain(starts, ends, after):  # type: ignore[no-untyped-def]
    """Which matches DISJOINT keeps: each that starts after the end of the last one kept.

    starts: int64, ascending, without duplicates. after: the end of the last match kept before.
    Returns bool[matches], and the end of the last match kept.
    """
    kept = np.zeros(starts.shape[0], np.bool_)
    for match in range(starts.shape[0]):
        if starts[match] > after:
            kept[match] = True
            after = ends[match]
    return kept, after
