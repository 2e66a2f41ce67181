"""Matches in the kernel's buffers → Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain, taken, whole_column
from celc_runtime.arrow.event_store import (
    INSTANT_POSITION,
    POSITION,
    EventStore,
    PastEvents,
)
from celc_runtime.arrow.late_rows import LateRows
from celc_runtime.arrow.matches.decided_times import decided_times
from celc_runtime.arrow.matches.match_ids import match_ids
from celc_runtime.arrow.matches.together import LEAST_MATCHES, Asked, looked_up
from celc_runtime.arrow.matches.values import LabelValues, computed_column
from celc_runtime.engine.walk.listing import (
    Kinds,
    Output,
    label_columns,
    label_columns_by_numpy,
)
from celc_runtime.jit.kernels import is_due
from celc_runtime.plan.expressions import Aggregate, Computed
from celc_runtime.plan.plan import Label, Plan
from celc_runtime.plan.schemas import struct_type


def matches_batch(
    plan: Plan,
    schema: pa.Schema,
    output: Output,
    found: LabelEntries,
    events: pa.RecordBatch,
    store: EventStore,
    entries_read: int,
    deadlines: np.ndarray,
    in_instants: bool = False,
    begins: np.ndarray | None = None,
    items: Sequence[Label | Computed] | None = None,
) -> pa.RecordBatch:
    """The matches in the buffers as one batch of the output schema.

    Arrow uses the arrays made here without a copy. The buffers may be reused afterwards.

    found: the events of these matches. events: the batch with the matches' last events.
    entries_read: the number of entries so far. deadlines: int64[matches], the numbers of their
    deadlines (`decided_times`), if the output says when matches are decided. in_instants: a
    match starts at the first position of its first instant, and ends at the last of its last.
    items: those of the plan's answer; None: they are asked for.
    begins: int64[matches], for events with a duration, entries of events that start when the
    matches start.
    """
    matches = int(output.used[0])
    rows = output.rows[:matches]
    items = plan.answer.items if items is None else items
    values = _Values(store.stretch(int(found.starts.min()), entries_read))

    if matches >= LEAST_MATCHES:
        values.look_up(_asked(plan, found, matches, rows, items))

    at_end = partial(values.at_end, events, rows)
    labels = LabelValues(
        plan.answer.label_names,
        matches,
        found.offsets,
        found.entries,
        values.of,
        at_end,
        found.counts,
    )
    columns = []
    if plan.answer.match_id is not None:
        columns.append(match_ids(plan, found.starts, found.ends, labels))
    columns += [at_end(name) for name in plan.source.key_columns]
    if plan.answer.positions and in_instants:
        ends = pa.array(store.last_positions(rows))
        columns += [values.of(INSTANT_POSITION, found.starts), ends]
    elif plan.answer.positions:
        columns += [values.of(POSITION, found.starts), values.of(POSITION, found.ends)]
    if plan.source.order_by:
        starts = found.starts if begins is None else begins
        columns += [
            values.of(plan.source.begin or plan.source.order_by[0], starts),
            at_end(plan.source.order_by[0]),
        ]
    if plan.shows_decided_time:
        columns.append(decided_times(plan, columns[-2], columns[-1], deadlines))
    for item in items:
        if isinstance(item, Computed):
            columns.append(computed_column(item, labels))
        else:
            columns.append(label_column(plan, item, labels))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _asked(
    plan: Plan,
    found: LabelEntries,
    matches: int,
    rows: np.ndarray,
    items: Sequence[Label | Computed],
) -> list[Asked]:
    """The columns of matches that take one value of an event for each match."""
    asked = [Asked(name, rows, True) for name in (*plan.source.key_columns, *plan.source.order_by)]
    del asked[len(plan.source.key_columns) + 1 :]
    if plan.answer.positions:
        asked += [Asked(POSITION, places, False) for places in (found.starts, found.ends)]
    if plan.source.order_by and plan.source.begin is None:
        asked.append(Asked(plan.source.order_by[0], found.starts, False))
    names = plan.answer.label_names
    for item in items:
        if isinstance(item, Label):
            label, attributes = item.name, item.attributes
            attributes = (POSITION, *attributes) if plan.answer.positions else attributes
        else:
            tree = item.value
            if not isinstance(tree, Aggregate) or tree.function not in ("FIRST", "LAST"):
                continue
            label, attributes = tree.label, () if tree.attribute is None else (tree.attribute,)
        places = found.entries[names.index(label)]
        if len(places) == matches:
            asked += [Asked(name, places, False) for name in attributes]
    return asked


class FirstMatches:
    """Passes on the first `most` matches (None: all), and stops the search after them.

    keeps: the rows that count, of batches of rows; None: all.
    """

    def __init__(
        self,
        most: int | None,
        called: str = "max_matches",
        *,
        keeps: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]] | None = None,
    ) -> None:
        if most is not None and (type(most) is not int or most < 1):
            raise ValueError(f"{called} must be a whole number from 1, not {most!r}")
        self._left = most
        self._keeps = keeps

    @property
    def are_all(self) -> bool:
        """Whether `most` matches were passed on, so that the run was stopped."""
        return self._left == 0

    @property
    def ends_early(self) -> bool:
        """Whether not all matches may be asked for."""
        return self._left is not None

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of matches; the last one is cut."""
        return iter(batches) if self._left is None and self._keeps is None else self._some(batches)

    def _some(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self.are_all:
            return
        for batch in batches if self._keeps is None else self._keeps(batches):
            if self._left is None:
                yield batch
                continue
            batch = batch.slice(0, self._left)
            self._left -= len(batch)
            yield batch
            if self.are_all:
                return


class _Values:
    """Attributes of entries, each looked up once: a label and the start or end of matches can have
    the same array of entries."""

    def __init__(self, stretch: PastEvents) -> None:
        self._stretch = stretch
        # Arrays are told apart by `id`. They are held here, so no two have the same one.
        self._found: dict[int, tuple[np.ndarray, np.ndarray, dict[str, pa.Array]]] = {}
        self._together: dict[tuple[str, int], pa.Array] = {}

    def look_up(self, asked: Sequence[Asked]) -> None:
        """Look up columns together, as many as can be. Their places must not be let go of."""
        inside = self._stretch.inside
        if inside is not None and asked:
            self._together = looked_up(asked, inside)

    def known(self, name: str, places: np.ndarray) -> pa.Array | None:
        """A column that has been looked up for places; None: it has not."""
        return self._together.get((name, id(places)))

    def at_end(self, events: pa.RecordBatch, rows: np.ndarray, name: str) -> pa.Array:
        """A column of events in rows of their batch."""
        known = self.known(name, rows)
        if known is not None:
            return known
        if isinstance(events, LateRows):
            return plain(taken(events.unmoved(name), events.order[rows]))
        return plain(taken(events.column(name), rows))

    def of(self, name: str, entries: np.ndarray) -> pa.Array:
        together = self.known(name, entries)
        if together is not None:
            return together
        known = self._found.get(id(entries))
        if known is None:
            known = self._found[id(entries)] = entries, self._stretch.places(entries), {}
        _, places, columns = known
        column = columns.get(name)
        if column is None:
            if name == POSITION:
                column = whole_column(self._stretch.positions(entries), _INT64)
            else:
                column = self._stretch.column(name, places)
            columns[name] = column
        return column


_INT64 = pa.int64()

_SAVED = (
    15e-9  # seconds that the kernel of columns saves for each event of a match, of three columns
)


class LabelEntries(NamedTuple):
    """The entries of the listed matches."""

    starts: np.ndarray  # int64[matches], the first entry of each match
    ends: np.ndarray  # int64[matches], the last entry of each match
    offsets: list[np.ndarray]  # for each label int32[matches + 1], see `entries`
    entries: list[np.ndarray]
    """For each label int64, match after match; those of match m are from `offsets[m]` to before
    `offsets[m + 1]`."""
    counts: list[int]
    """For each label how many of its events each match has; empty: not all have as many."""


def entries_of_tags(names: Sequence[str], output: Output, kinds: Kinds) -> LabelEntries:
    """The entries of matches that are listed one after another."""
    matches, used = int(output.used[0]), int(output.used[1])
    offsets = np.empty((len(names), matches + 1), np.int32)
    entries = np.empty((len(names), used + 1), np.int64)
    starts, ends = np.empty(matches, np.int64), np.empty(matches, np.int64)
    fill = label_columns if is_due(label_columns, used * _SAVED) else label_columns_by_numpy
    fill(output, kinds, offsets, entries, starts, ends)
    of_labels = [entries[number, : offsets[number, -1]] for number in range(len(names))]
    return LabelEntries(starts, ends, list(offsets), of_labels, [])


def entries_of_runs(
    labels: int, output: Output, columns: tuple[tuple[int, ...], ...]
) -> LabelEntries:
    """The entries of matches of one shape, whose places are columns already.

    columns: for each place, the label columns of its event.
    """
    matches, stride = int(output.used[0]), len(output.rows)
    places = [
        output.tags[place * stride : place * stride + matches] for place in range(len(columns))
    ]
    found = LabelEntries(places[0], places[-1], [], [], [])
    for of_label in _places_of(labels, columns):
        under = [places[place] for place in of_label]
        found.counts.append(len(under))
        found.offsets.append(_ramp(matches, len(under)))
        found.entries.append(
            under[0] if len(under) == 1 else np.stack(under or [_NO_ENTRIES], 1).ravel()
        )
    return found


@lru_cache(maxsize=256)
def _places_of(labels: int, columns: tuple[tuple[int, ...], ...]) -> list[list[int]]:
    """For each label the places of its events; columns: as above."""
    return [
        [place for place, of_place in enumerate(columns) if number in of_place]
        for number in range(labels)
    ]


_NO_ENTRIES = np.zeros(0, np.int64)

_RAMPS: dict[int, np.ndarray] = {}


def _ramp(matches: int, size: int) -> np.ndarray:
    """int32[matches + 1]: 0, size, 2 · size, …; shared between batches."""
    steps = _RAMPS.get(size)  # another thread may replace it meanwhile
    if steps is None or len(steps) <= matches:
        steps = np.arange(max(matches, 1 << 16) + 1, dtype=np.int32) * np.int32(size)
        steps.flags.writeable = False
        _RAMPS[size] = steps
    return steps[: matches + 1]


def label_column(plan: Plan, label: Label, labels: LabelValues) -> pa.Array:
    """The column of a label: the events of each match as structs."""
    names = (POSITION, *label.attributes) if plan.answer.positions else label.attributes
    values = [labels.column(label.name, name) for name in names]
    structs = pa.StructArray.from_arrays(values, fields=list(struct_type(plan, label)))
    offsets = whole_column(labels.offsets(label.name), pa.int32())
    return pa.ListArray.from_arrays(offsets, structs)
