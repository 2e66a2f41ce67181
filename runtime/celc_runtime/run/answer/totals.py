"""The answer of TOTAL: its rows are about groups of matches.

There are three ways. If the automaton decides the formula, no match is listed: the kernel of
`engine.totals.kernel` computes the totals at each end (`CountedWalk`). If the update finds exactly
the matches of the query, as it does with keys, each event of the matches with the same end is
weighted by the number of matches with it (`UnitedWalk`). Otherwise matches are listed, and added
batch by batch.

On a stream, the totals of a partition go on for ever: they are numbers among what a state knows of
it (`engine.totals.stored_sums`), and rows are made of them when the stream ends, or for each end.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain
from celc_runtime.arrow.matches.total_rows import total_rows
from celc_runtime.arrow.matches.total_values import Groups
from celc_runtime.engine.totals.measures import measures_of
from celc_runtime.engine.totals.stored_sums import running, sums_in, words_of
from celc_runtime.engine.totals.unions import Found
from celc_runtime.program import Program
from celc_runtime.run.answer.answers import GroupRows
from celc_runtime.run.answer.counted import CountedWalk
from celc_runtime.run.answer.match_groups import (
    WaitingGroups,
    Weights,
    groups_of_matches,
    groups_of_unions,
)
from celc_runtime.run.source.stretches import Stretches
from celc_runtime.run.walk.in_worlds import WorldsWalk
from celc_runtime.run.walk.listed import Listed
from celc_runtime.run.walk.united import UnitedWalk


class TotalRows(GroupRows):
    def __init__(self, program: Program, *, in_instants: bool) -> None:
        totals = program.plan.answer.totals
        assert totals is not None
        super().__init__(program, are_of_ends=totals.per == "END", in_instants=in_instants)
        self._measures = measures_of(totals.functions)
        self._waiting = WaitingGroups()
        self._is_running = totals.per == "RUNNING"
        self._before: Groups | None = None  # of stretches: the totals of their partitions
        self._words = np.zeros((0, 0), np.int64)  # the same as numbers

    @property
    def nbytes(self) -> int:
        return self._waiting.nbytes

    def resume(self, stretches: Stretches) -> None:
        """Begin stretches, of whose partitions the totals are known."""
        if stretches.kept is None:
            return
        source, starts = self._of_groups.source, pa.array(stretches.starts)
        firsts = [
            plain(stretches.events.column(name).take(starts))
            for name in (*source.key_columns, *source.order_by[:1])
        ]
        keys = tuple(firsts[: len(source.key_columns)])
        ends, sums = sums_in(stretches.kept, self._measures)
        # The totals before stand before all ends, or belong to the only row.
        places = np.full(len(ends), -1 if self._is_running else 0, np.int64)
        self._words = stretches.kept
        self._before = Groups(keys, places, ends, firsts[-1] if source.order_by else None, sums)

    def rest(self) -> Iterator[pa.RecordBatch]:
        if self._before is None:
            yield from super().rest()
            return
        groups, parts = self._waiting.taken_after(self._before)
        if self._is_running:
            groups = Groups(*groups[:4], running(groups.sums, parts))
        lasts = np.flatnonzero(np.append(np.diff(parts) > 0, True))
        self._words[:] = words_of(groups.ends[lasts], groups.sums.taken(lasts))
        ended = np.flatnonzero(groups.places >= 0)
        if self._is_running and len(ended):
            yield from self._made(groups.taken(ended))

    def rows(self, listed: Listed) -> Iterator[pa.RecordBatch]:
        if isinstance(listed.walk, CountedWalk):
            self._waiting.add(listed.walk.groups)
        elif isinstance(listed.walk, WorldsWalk):
            yield listed.walk.rows
        else:
            yield from super().rows(listed)

    def add(self, rows: pa.RecordBatch, listed: Listed | None) -> Iterator[pa.RecordBatch]:
        if listed is not None and isinstance(listed.walk, UnitedWalk):
            found, weights = _of_unions(listed.walk, listed)
            groups = groups_of_unions(self._of_groups, self._measures, rows, found, weights)
        else:
            groups = groups_of_matches(self._of_groups, self._measures, rows)
        self._waiting.add(groups)
        yield from ()

    def _taken(self, *, but_last_part: bool) -> Iterator[pa.RecordBatch]:
        groups = self._waiting.taken(but_last_part=but_last_part)
        if groups is not None:
            yield from self._made(groups)

    def _made(self, groups: Groups) -> Iterator[pa.RecordBatch]:
        rows = total_rows(self._of_groups, self._rows_schema, groups)
        if len(rows):
            yield rows


def _of_unions(walk: UnitedWalk, listed: Listed) -> tuple[Found, dict[str, Weights]]:
    """What was found for the unions in the buffers, and for each label the weights of its events.

    The weight of an event is the number of matches that it is in.
    """
    output, kinds = listed.output, listed.kinds
    rows, events = map(int, output.used)
    found = walk.found(rows, events)
    marks = output.tags[:events] & ((1 << int(kinds.bits[0])) - 1)
    weights = {}
    for name, belongs in zip(listed.plan.answer.label_names, kinds.belongs, strict=True):
        under = belongs[marks] != 0
        weights[name] = Weights(
            found.weights[under], found.weight_sizes[under], found.weight_scales[under]
        )
    return found, weights
