"""The state of a query in the form of another one, which goes on with it.

The driver has compared what both need (`stored/needs`). What is kept suffices then, but it can have
more columns and types of events. So a bucket is written anew when it next has work.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from celc_runtime.stream.one_bucket.segments import Segments
from celc_runtime.stream.stored.blocks import block_of
from celc_runtime.stream.stored.needs import Needs, layout_of
from celc_runtime.stream.stored.rows import RowLayout, Rows
from celc_runtime.stream.stored.state import KEPT, WAITING, BucketState, StateFormat
from celc_runtime.stream.stored.state_rows import KeptEvents


def carry_over(
    old: Needs,
    new: Needs,
    state: BucketState,
    segments: Segments,
    states: StateFormat,
    load: Callable[[int], bytes | None],
    time: int,
) -> None:
    """Write the events of a bucket in the form of another query. states: its format; load: as of
    `Segments`; time: the index of the column of their times."""
    if (old.fields, old.keys, old.types) == (new.fields, new.keys, new.types):
        return
    layout, before = states.layout, layout_of(old)
    earlier = states.with_layout(before)
    read = Segments(state, earlier, load)
    for segment in state.of_kind(WAITING):
        rows, _ = _moved(old, new, before, layout, earlier.waiting(segment, read.data(segment)))
        segments.remove(segment)
        segments.add_waiting([block_of(layout, rows, time)])
    for place, segment in enumerate([*state.segments]):
        if segment.kind != KEPT:
            continue
        kept = read.kept(segment)
        rows, index = _moved(old, new, before, layout, kept.rows)
        moved = KeptEvents(rows, kept.positions[index], kept.contexts)
        segments.add_kept(moved, place if len(rows.records) else None)
        segments.remove(segment)


def _moved(
    old: Needs, new: Needs, before: RowLayout, after: RowLayout, rows: Rows
) -> tuple[Rows, np.ndarray]:
    """The rows of types that the new query knows, and their places (int64)."""
    numbers = {tuple(pair): number for number, pair in enumerate(new.types)}
    codes = np.array([numbers.get(tuple(pair), -1) for pair in old.types] or [0], np.int32)
    codes = codes[before.codes(rows)]
    index = np.flatnonzero(codes >= 0)
    names = [field.name for field in before.fields]
    places = [names.index(field.name) for field in after.fields]
    columns = before.columns(before.taken(rows, index), places)
    return after.encoded(columns, codes[index]), index
