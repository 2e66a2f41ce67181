"""Table 1 of the paper: its six queries, here and as patterns with runs, where those can say them.

Q3 has a disjunction and Q6 a nested iteration, which SASE does not have; so the paper's table 2 has
no entries for these two either.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from baselines.runs import ANY, Events, Part, Pattern
from celc_runtime.run.run import Run
from streams import QUERIES, declaration, feeding, nodes_made

import celc

SEQUENCES = {
    "Q1": (("A", False), ("B", False), ("C", False)),
    "Q2": (("A", False), ("B", False), ("C", False), ("D", False)),
    "Q4": (("A", True), ("B", False)),
    "Q5": (("A", True), ("B", True), ("C", False)),
}
"""The types of the parts, and whether a part is an iteration."""

FOREVER = 1 << 62


def pattern(name: str, strategy: int = ANY, *, consumes: bool = False) -> Pattern:
    """A query as a pattern without a window."""
    parts = tuple(Part(kind, several) for kind, several in SEQUENCES[name])
    return Pattern(parts, FOREVER, strategy, consumes=consumes)


def compiled(name: str, select: str = "*", clauses: str = "") -> Any:
    """A query as celc compiles it, over the types A to D and X."""
    formula, _ = QUERIES[name]
    text = f"{declaration('ABCDX')} SELECT {select} FROM S WHERE {formula} {clauses}"
    return next(iter(celc.compile(text).queries.values()))


def types_drawn(
    names: str, count: int, shares: tuple[float, ...] = (), seed: int = 8
) -> np.ndarray:
    """str[count]: types drawn with these shares, or equally likely ones."""
    random = np.random.default_rng(seed)
    return np.array(list(names))[random.choice(len(names), count, p=shares or None)]


def events_of(types: np.ndarray) -> Events:
    """The stream for the runs."""
    count = len(types)
    return Events(types, np.zeros(count), np.arange(count), np.zeros(count, np.int64))


def batch_of(types: np.ndarray) -> pa.RecordBatch:
    """The same stream for celc."""
    column = pa.array(types).dictionary_encode()
    return pa.RecordBatch.from_arrays([column], ["type"])


def nodes_of(query: Any, types: np.ndarray) -> tuple[int, Run]:
    """The nodes that celc makes for a stream, and the run that has read it. Nothing is listed."""
    run, _ = feeding(query, [batch_of(types)], listed=False)
    return nodes_made(run), run
