"""Stretches of partitions that a run reads at once, and what later events need to know of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa


class Stretches(NamedTuple):
    """Stretches of partitions, one after another, each from some event of its partition on.

    events: the columns that the query reads, without types; codes: int32[rows], the number of each
    row's type among the types that the query declares; positions: int64[rows], in the partition.
    starts: int64[parts], the rows at which stretches begin, none of them empty. silent: bool[rows],
    rows that have been read before: matches that end there are not listed. absent: bool[rows], rows
    that stand for rows left out because they cannot matter. contexts: int64[parts], what the stream
    before each stretch means to nested selectors.
    """

    events: pa.RecordBatch
    codes: np.ndarray
    positions: np.ndarray
    starts: np.ndarray
    silent: np.ndarray
    absent: np.ndarray
    contexts: np.ndarray


class Behind(NamedTuple):
    """What later events need to know of stretches that have been read.

    matters: bool[rows], rows that later matches can hold. firsts: int64[parts], the first position
    of each partition that they can hold. contexts: int64[rows], the context before each row, and
    behind: int64[parts], the context behind each stretch; empty without nested selectors. keys:
    int64[rows], the values that the window is measured on; empty where it is measured on positions,
    or there is none.
    """

    matters: np.ndarray
    firsts: np.ndarray
    contexts: np.ndarray
    behind: np.ndarray
    keys: np.ndarray
