"""The run of a query with TOTAL: its rows are about groups of matches.

Where the automaton decides the formula, no match is listed: the kernel of `engine.totals.kernel`
finds the totals at each end (`CountedTotals`). Where the update finds the matches and no others, as
it does with keys, each event of all matches with one end is added up as often as there are matches
with it (`UnitedListing`). Otherwise matches are listed, and added up batch by batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.columns import Prepared
from celc_runtime.arrow.event_store import EventStore
from celc_runtime.arrow.total_rows import total_rows
from celc_runtime.engine.arena.nodes import ENTRY
from celc_runtime.engine.totals.measures import measures_of
from celc_runtime.engine.totals.unions import Found
from celc_runtime.plan.strategy import Counted
from celc_runtime.program import Program
from celc_runtime.run.answer.counted import CountedTotals
from celc_runtime.run.answer.match_groups import (
    WaitingGroups,
    Weights,
    groups_of_matches,
    groups_of_unions,
)
from celc_runtime.run.grouped_run import GroupedRun
from celc_runtime.run.source.positions import Positions
from celc_runtime.run.walk.united import UnitedListing


class TotalsRun(GroupedRun):
    """Feeds batches to a query, and hands out totals of its matches."""

    def __init__(self, program: Program, **options: Any) -> None:
        totals = program.plan.totals
        assert totals is not None
        super().__init__(program, are_of_ends=totals.per == "END", **options)
        self._measures = measures_of(totals.functions)
        self._waiting = WaitingGroups()
        # What was found beside the unions of matches that are on their way to `_add`.
        self._coming: deque[tuple[Found, dict[str, Weights]]] = deque()
        self._counted: CountedTotals | None = None
        match program.listing:
            case Counted(tables=tables):
                self._counted = CountedTotals(tables, program.plan, self._measures)
                # Nothing of past events is shown.
                self._events = EventStore(())

    @property
    def buffer_bytes(self) -> int:
        """The size of the buffers, and of what waits."""
        counted = 0 if self._counted is None else self._counted.nbytes
        return super().buffer_bytes + self._waiting.nbytes + counted

    def _take(self, prepared: Prepared) -> Iterator[pa.RecordBatch]:
        if isinstance(self._listing, UnitedListing):
            output = self._output
            rows, events = map(int, output.used)
            found = self._listing.found(rows, events)
            kinds = output.tags[:events] & ((1 << int(self._kinds.bits[0])) - 1)
            weights = {}
            for name, belongs in zip(self._plan.label_names, self._kinds.belongs, strict=True):
                under = belongs[kinds] != 0
                weights[name] = Weights(
                    found.weights[under], found.weight_sizes[under], found.weight_scales[under]
                )
            self._coming.append((found, weights))
        yield from super()._take(prepared)

    def _add(self, matches: pa.RecordBatch) -> None:
        if self._coming:
            found, weights = self._coming.popleft()
            groups = groups_of_unions(self._of_groups, self._measures, matches, found, weights)
            self._waiting.add(groups)
        elif len(matches):
            self._waiting.add(groups_of_matches(self._of_groups, self._measures, matches))

    def _taken(self, *, but_last_part: bool) -> Iterator[pa.RecordBatch]:
        groups = self._waiting.taken(but_last_part=but_last_part)
        if groups is None:
            return
        rows = total_rows(self._of_groups, self._rows_schema, groups)
        if len(rows):
            yield rows

    def _listed(self, prepared: Prepared, positions: Positions) -> Iterator[pa.RecordBatch]:
        if self._counted is None:
            yield from super()._listed(prepared, positions)
            return
        self._memory.counters[ENTRY] += int(np.count_nonzero(prepared.batch.symbols))
        if not self._lists_matches:
            self._counted.read_silently(prepared)
            return
        for rows, groups in self._counted.read(prepared, positions, self._silent):
            if len(self._last_ends):
                parts = np.searchsorted(prepared.parts, rows, side="right") - 1
                np.maximum.at(self._last_ends, parts, rows)
            self._waiting.add(groups)
