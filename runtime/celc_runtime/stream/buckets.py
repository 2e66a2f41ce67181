"""The buckets of a stream: which bucket a partition is in, and which task a bucket goes to.

A checkpoint begins with a number of buckets, and keeps it. A partition's bucket is the hash of its
key modulo this number. Spark sends rows to a task by its own hash of the value that rows are
grouped by. A bucket's *label* is this value, chosen so that the buckets are spread evenly over
tasks.
"""

import numpy as np

MOST_BUCKETS = 1 << 14

FOR_EACH_TASK = 4
"""Buckets for each task, by default. With more, their fixed costs would count; with fewer, some
tasks would take much longer than others."""

_SEED = 42  # of Spark's hash partitioning


def spark_hashes(values: np.ndarray) -> np.ndarray:
    """int64: Spark's hash of INT values (Murmur3, 32 bits), by which it partitions rows."""
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

    The hash of bucket n's label is n modulo `buckets`. So any number of tasks that divides the
    number of buckets gets equally many. Bucket 0 always has label 0. Every micro-batch with rows
    reaches it, and it notices if the checkpoint has another number of buckets.
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
