"""Simultaneous events: which rows belong to one instant, and batches of whole instants.

The update must know the last event of an instant when it reads it. So a batch is cut: the rows of
its last instant wait for the next batch, which may begin with more of them.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import differs, numbers, plain_batch
from celc_runtime.engine.definition.instants import note_changes
from celc_runtime.plan.plan import Plan

_FIRST_LOOK = 64  # rows that are first searched for the border of an instant; then twice as many


def begins_instant(plan: Plan, events: pa.RecordBatch) -> np.ndarray:
    """bool[rows]: whether a row differs in partition or time from the row before; True for the
    first."""
    found = np.zeros(len(events), np.bool_)
    found[:1] = True
    for name in (*plan.source.key_columns, *plan.source.order_by):
        column = events.column(name)
        if column.null_count or not is_whole(column.type):
            found[1:] |= differs(column)
        else:
            note_changes(numbers(column)[0], found)
    return found


def is_whole(type: pa.DataType) -> bool:
    """Whether the values of a type are whole numbers or times of up to 64 bits."""
    whole = pa.types.is_integer(type) or pa.types.is_temporal(type)
    return bool(whole and type != pa.uint64())


class WholeInstants:
    """Cuts the batches of one run at the ends of instants, and keeps the last instant back.

    Events conform to the query. Positions are int64[rows], or None: all rows come.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._held: list[tuple[pa.RecordBatch, np.ndarray | None]] = []

    @property
    def rows(self) -> int:
        return sum(len(events) for events, _ in self._held)

    def of(
        self, events: pa.RecordBatch, positions: np.ndarray | None
    ) -> Iterator[tuple[pa.RecordBatch, np.ndarray | None]]:
        """The instants that a batch completes, those kept back first, in one or two batches."""
        if not len(events):
            return
        more = self._continuing(events)
        if more:
            self._hold(events.slice(0, more), None if positions is None else positions[:more])
        if more == len(events):
            return
        yield from self.rest()
        cut = self._last_instant(events)
        if cut > more:
            yield events.slice(more, cut - more), None if positions is None else positions[more:cut]
        self._hold(events.slice(cut), None if positions is None else positions[cut:])

    def rest(self) -> Iterator[tuple[pa.RecordBatch, np.ndarray | None]]:
        """The rows that are kept back. No more rows of their instant come."""
        if not self._held:
            return
        held, self._held = self._held, []
        events = pa.Table.from_batches([batch for batch, _ in held]).combine_chunks()
        positions = [given for _, given in held if given is not None]
        yield events.to_batches()[0], np.concatenate(positions) if positions else None

    def _hold(self, events: pa.RecordBatch, positions: np.ndarray | None) -> None:
        # A copy, because a slice would keep its whole batch. Texts may be coded in one batch and
        # not in another one.
        rows = pa.array(np.arange(len(events)))
        self._held.append((plain_batch(events).take(rows), positions))

    def _continuing(self, events: pa.RecordBatch) -> int:
        """The number of rows at the beginning that belong to the instant kept back."""
        if not self._held:
            return 0
        last, _ = self._held[-1]
        before, size = last.slice(len(last) - 1), 1
        while True:
            rows = plain_batch(events.slice(0, size))
            both = pa.Table.from_batches([before, rows]).combine_chunks().to_batches()[0]
            begins = np.flatnonzero(begins_instant(self._plan, both)[1:])
            if len(begins):
                return int(begins[0])
            if size >= len(events):
                return len(events)
            size = max(_FIRST_LOOK, 2 * size)

    def _last_instant(self, events: pa.RecordBatch) -> int:
        """The row at which the last instant of a batch begins, as far as the batch shows it."""
        size = _FIRST_LOOK
        while True:
            start = max(0, len(events) - size)
            begins = np.flatnonzero(begins_instant(self._plan, events.slice(start)))
            if len(begins) > 1 or start == 0:
                return start + int(begins[-1])
            size *= 2
