"""Several queries that share the events of a bucket: which of them each query reads.

They have the same order and partitions, and nothing has to be known of a partition but how far it
has been run. So an event waits once for all of them, and is kept once if one of them keeps it. Each
query reads those that can matter to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import coded
from celc_runtime.arrow.events.conforming import names_read
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program


class FindsRows(Protocol):
    """The rows of a batch by what queries ask of them (`many.RelevantRows`)."""

    def of(self, plan: Plan) -> np.ndarray:
        """int64: the rows that can matter to a query."""


RowsOf = Callable[
    [Plan, pa.RecordBatch, np.ndarray, Mapping[tuple[str, str], np.ndarray]], FindsRows
]
"""From the plan of the reading, a batch, the rows with which partitions begin (without the first),
and the rows of each event type."""


class Members:
    """The queries that share events, and how they read them.

    reading: the plan of the events that are stored. rows_of: finds the rows of a query.
    """

    def __init__(self, programs: Sequence[Program], reading: Plan, rows_of: RowsOf) -> None:
        self.programs = tuple(programs)
        self._reading = reading
        self._rows_of = rows_of
        types = reading.source.declared_types
        self._codes = [
            np.array([one.plan.source.declared_types.index(pair) for pair in types], np.int32)
            for one in programs
        ]

    def chosen(
        self, events: pa.RecordBatch, codes: np.ndarray, begins: np.ndarray
    ) -> Iterator[tuple[Program, np.ndarray | None, pa.RecordBatch, np.ndarray]]:
        """For each query: the query; the rows that it reads (int64; None: all); the columns that it
        reads of all rows; the numbers of all rows' types as it numbers them.

        codes: int32[rows], as the reading numbers types. begins: int64, the rows with which
        partitions begin, without the first.
        """
        events = _with_coded_texts(events)
        types = self._reading.source.declared_types
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(len(types) + 1))
        of_types = {pair: order[edges[n] : edges[n + 1]] for n, pair in enumerate(types)}
        relevant = self._rows_of(self._reading, events, begins, of_types)
        for program, numbers in zip(self.programs, self._codes, strict=True):
            plan = program.plan
            read = set(names_read(plan))
            names = [name for name in events.schema.names if name in read]
            rows = None if plan.source.relevant is None else relevant.of(plan)
            yield program, rows, events.select(names), numbers[codes]


def _with_coded_texts(events: pa.RecordBatch) -> pa.RecordBatch:
    """The same events with texts that are coded once, and not again by each query."""
    columns: list[Any] = [
        coded(column) if pa.types.is_string(column.type) else column for column in events.columns
    ]
    return pa.RecordBatch.from_arrays(columns, events.schema.names)
