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
from celc_runtime.stream.one_bucket.known_keys import window_length


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

    reading: the program of the events that are stored. rows_of: finds the rows of a query.
    leaves_earlier: for each group of kept events, how many microseconds before the window of the
    reading has passed they leave; the first never does. groups: the group of each query's events.
    at_least: how many groups there are at least, because a state has them.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        reading: Program,
        rows_of: RowsOf,
        at_least: int = 0,
    ) -> None:
        self.programs = tuple(programs)
        self.leaves_earlier, self.groups = _groups(programs, reading, at_least)
        self._reading = reading.plan
        self._rows_of = rows_of
        types = reading.plan.source.declared_types
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


_SHORTER = 4
"""Events that can leave when this part of the longest window has passed, and so on by its powers,
are kept apart from the others."""

_MOST_GROUPS = 8


def _groups(
    programs: Sequence[Program], reading: Program, at_least: int
) -> tuple[tuple[int, ...], list[int]]:
    """`Members.leaves_earlier` and `Members.groups`.

    Events of a query that waits for deadlines are in the first group, by which these are noted.
    """
    whole = window_length(reading)
    assert whole is not None
    groups = []
    for program in programs:
        own, group = window_length(program), 0
        assert own is not None
        while group < _MOST_GROUPS - 1 and own * _SHORTER ** (group + 1) <= whole:
            group += 1
        groups.append(0 if program.plan.choice.deadlines else group)
    count = max(at_least, max(groups) + 1)
    stays = [whole // _SHORTER**group for group in range(count)]
    return tuple(whole - length for length in stays), groups


def _with_coded_texts(events: pa.RecordBatch) -> pa.RecordBatch:
    """The same events with texts that are coded once, and not again by each query."""
    columns: list[Any] = [
        coded(column) if pa.types.is_string(column.type) else column for column in events.columns
    ]
    return pa.RecordBatch.from_arrays(columns, events.schema.names)
