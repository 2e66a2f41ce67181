"""The template of section 6.1, `SEQ(A a, B+ b[], C c)` under skip till any match, and its stream.

Events are a unit of time apart; one in five is an A, one in ten a B, one in five a C. Values are
uniform in [0, 1). The paper does not give its shares, nor its ranges of values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from baselines.runs import MOST, Events, Part, Pattern, query_of, stream_of

import celc

SHARES = {"A": 0.2, "B": 0.1, "C": 0.2, "D": 0.5}

TRUE_VALUE = Pattern(
    (Part("A"), Part("B", several=True, against=MOST), Part("C")),
    window=25,
)
"""`b[i].v >= max(b[..i-1].v)`: true-value consistent."""

FALSE_VALUE = Pattern(
    (Part("A"), Part("B", several=True, high=0.4), Part("C", against=MOST, above=False)),
    window=25,
)
"""`c.v < max(b[].v)`: false-value consistent."""


def within(pattern: Pattern, window: int) -> Pattern:
    """The same in another window."""
    return replace(pattern, window=window)


def stream(count: int, seed: int = 3) -> Events:
    """Random events."""
    random = np.random.default_rng(seed)
    types = np.array(list(SHARES))[random.choice(len(SHARES), count, p=list(SHARES.values()))]
    return Events(types, random.random(count), np.arange(count), np.zeros(count, np.int64))


def compiled(pattern: Pattern) -> Any:
    """The query as celc compiles it."""
    query = celc.compile(stream_of(list(SHARES)) + query_of(pattern), order_by="ts")
    return next(iter(query.queries.values()))


def batch_of(events: Events) -> pa.RecordBatch:
    """The stream for celc."""
    return pa.RecordBatch.from_pydict(
        {
            "type": pa.array(events.types).dictionary_encode(),
            "v": events.values,
            "ts": events.times,
            "id": events.keys,
        }
    )
