"""The buckets of a stream: which bucket a partition is in, and which task a bucket goes to.

A checkpoint is begun with a number of buckets, and keeps it. A partition's bucket is the hash of
its key modulo this number. Spark sends rows to a task by a hash of its own, of the value that rows
are grouped by. So a bucket has a *label* as that value, chosen so that the labels of the buckets
are spread evenly over tasks.
"""

from __future__ import annotations

import numpy as np

MOST_BUCKETS = 1 << 14

FOR_EACH_TASK = 4
"""How many buckets there are for each task, unless the user says otherwise: enough that tasks take
about equally long, and few enough that the fixed cost of a bucket is small."""

_SEED = 42  # of Spark's hash partitioning


def spark_hashes(values: np.ndarray) -> np.ndarray:
    """int64: Spark's hash of INT values, Murmur3 with 32 bits, by which it partitions rows."""
    word = values.astype(np.uint32)
    word = word * np.uint32(0xCC9E2D51)
    word = (word << np.uint32(15)) | (word >> np.uint32(17))
    word = word * np.uint32(0x1B873593)
    state = np.uint32(_SEED) ^ word
    state = (state << np.uint32(13)) | (state >> np.uint32(19))
    state = state * np.uint32(5) + np.uint32(0xE6546B64)
    state = state ^ np.uint32(4)
    state = state ^ (state >> np.uint32(16))
    state = state * np.uint32(0x85EBCA6B)
    state = state ^ (state >> np.uint32(13))
    state = state * np.uint32(0xC2B2AE35)
    state = state ^ (state >> np.uint32(16))
    return state.astype(np.int32).astype(np.int64)


def labels_of(buckets: int) -> np.ndarray:
    """int32[buckets]: the value by which Spark groups the rows of each bucket.

    The hash of bucket n's label is n modulo `buckets`, so that any number of tasks that divides the
    number of buckets gets equally many of them. Bucket 0 has label 0, whatever `buckets` is: every
    micro-batch with rows comes by there, and finds out if the checkpoint has another number.
    """
    labels = np.full(buckets, -1, np.int64)
    labels[0] = 0
    begin = 1
    while (labels < 0).any():
        tried = np.arange(begin, begin + 16 * buckets + 64)
        begin += len(tried)
        # Backwards, so that the first label of a bucket is written last.
        found, tried = spark_hashes(tried)[::-1] % buckets, tried[::-1]
        fresh = np.full(buckets, -1, np.int64)
        fresh[found] = tried
        labels = np.where(labels < 0, fresh, labels)
    return labels.astype(np.int32)
