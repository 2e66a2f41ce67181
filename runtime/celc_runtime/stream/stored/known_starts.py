"""The starts of partitions whose matches are known, if SELECT LONGEST or DISJOINT waits.

A match waits as kept events. The events of the window are kept, so all matches of a start are found
again as long as a later match can have this start. When none can, its match is returned. So a state
needs only the starts that are finished (the position `first` of a partition), and where the last
match ends that DISJOINT has kept (`after`).
"""

import numpy as np

from celc_runtime.run.source.stretches import Starts

END_OF_TIME = 2**63 - 1  # microseconds: the watermark of a stream that has ended


def has_ended(watermark: int) -> bool:
    """Whether it is the watermark of a stream that has ended, perhaps in whole milliseconds."""
    return watermark >= END_OF_TIME - 1000


def known_starts(
    values: np.ndarray,
    positions: np.ndarray,
    times: np.ndarray,
    edges: np.ndarray,
    border: int | None,
) -> Starts:
    """The starts whose matches are known.

    values: KEY_VALUES[parts]. positions, times: int64[rows] of the events, part by part. edges:
    int64[parts + 1], where parts begin. border: no later match starts at this time or before; None:
    the events of each part decide.
    """
    until = None
    if border is not None:
        passed = np.add.reduceat((times <= border).astype(np.int64), edges[:-1])
        first, last = edges[:-1] + passed, edges[1:] - 1
        until = positions[np.minimum(first, last)] + (first > last)
    return Starts(values["first"], until, values["after"].copy())
