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

_OF_GROUP = MOST_BUCKETS
"""How far apart the hashes of two groups' buckets are."""


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


def labels_of_group(group: int, buckets: int) -> np.ndarray:
    """int32[buckets]: the labels of the buckets of a group of queries, one of several that share an
    operator.

    The hash of a label says which group and which bucket it is. So labels of groups differ, buckets
    are spread evenly over tasks, and the label of a bucket does not depend on their number.
    """
    return _of_hashes(_OF_GROUP * group + np.arange(buckets, dtype=np.int64))


def group_of_label(label: int) -> int:
    """The group whose bucket has a label."""
    return int(spark_hashes(np.array([label]))[0]) // _OF_GROUP


def _of_hashes(hashes: np.ndarray) -> np.ndarray:
    """int32: the INT values that Spark hashes to given hashes; each step of `spark_hashes` can be
    undone."""
    state = hashes.astype(np.uint32)
    state = state ^ (state >> np.uint32(16))
    state = state * _inverse(0xC2B2AE35)
    state = state ^ (state >> np.uint32(13)) ^ (state >> np.uint32(26))
    state = state * _inverse(0x85EBCA6B)
    state = state ^ (state >> np.uint32(16)) ^ np.uint32(4)
    state = (state - np.uint32(0xE6546B64)) * _inverse(5)
    state = (state >> np.uint32(13)) | (state << np.uint32(19))
    word = (state ^ np.uint32(_SEED)) * _inverse(0x1B873593)
    word = (word >> np.uint32(15)) | (word << np.uint32(17))
    found: np.ndarray = (word * _inverse(0xCC9E2D51)).astype(np.int32)
    return found


def _inverse(factor: int) -> np.uint32:
    return np.uint32(pow(factor, -1, 1 << 32))
