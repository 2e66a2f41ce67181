"""Groups of matches for queries with TOTAL: from batches of matches, and groups that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import numbers, whole_numbers
from celc_runtime.arrow.matches.total_values import Groups
from celc_runtime.engine.totals.group_sums import (
    NOT_ASKED,
    GroupSums,
    WholeSum,
    all_sums,
    least_keys,
    least_pairs,
    real_sums,
)
from celc_runtime.engine.totals.measures import (
    KNOWN,
    Measure,
    MeasureSet,
    ordered_keys,
    real_values,
    whole_values,
)
from celc_runtime.engine.totals.total_elements import NOTHING, Shape
from celc_runtime.engine.totals.unions import Found
from celc_runtime.engine.totals.weighted_sums import weighted_sums
from celc_runtime.engine.totals.wide_columns import column_of, sums_between, wide
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.uncertain import CONFIDENCE

_MOST_GROUPS = 1 << 16


def groups_of_matches(plan: Plan, measures: MeasureSet, matches: pa.RecordBatch) -> Groups:
    """The groups of a batch of matches. The matches of a group must be next to each other, unless
    their times are uncertain."""
    if plan.source.uncertain is not None:
        matches = _by_groups(plan, matches)
    ends = np.asarray(matches.column("end_pos"))
    times = matches.column("end_time") if plan.source.order_by else None
    keys = tuple(matches.column(name) for name in plan.source.partition_by)
    places = places_of(plan, ends, times)
    begins = changes([places, *map(_codes, keys)])
    starts = np.flatnonzero(begins)
    stops = np.append(starts[1:], len(ends)) if len(starts) else starts
    is_uncertain = plan.source.uncertain is not None
    # The expected number of matches is the sum of their confidences.
    confidences = np.asarray(matches.column(CONFIDENCE)) if is_uncertain else None
    sums = _sums(measures, matches, starts, stops, confidences)
    lasts = stops - 1
    return Groups(
        tuple(key.take(pa.array(starts)) for key in keys),
        places[starts],
        ends[lasts],
        None if times is None else times.take(pa.array(lasts)),
        sums,
    )


def _by_groups(plan: Plan, matches: pa.RecordBatch) -> pa.RecordBatch:
    """The matches of each group together, the one with the latest time behind the others."""
    keys = tuple(matches.column(name) for name in plan.source.partition_by)
    parts = partition_numbers(keys, len(matches))
    ends = np.asarray(matches.column("end_pos"))
    times = matches.column("end_time")
    order = np.lexsort((whole_numbers(times), places_of(plan, ends, times), parts))
    return matches.take(pa.array(order))


class Weights(NamedTuple):
    """For each event under a label, the number of matches with it, in two forms."""

    words: np.ndarray  # uint64[events, 2], exact (high, low)
    sizes: np.ndarray  # float64[events], as size · 2^scale
    scales: np.ndarray  # int64[events]


def groups_of_unions(
    plan: Plan,
    measures: MeasureSet,
    unions: pa.RecordBatch,
    found: Found,
    weights: Mapping[str, Weights],
) -> Groups:
    """The groups of a batch whose rows are unions of all matches with the same end.

    found: for the whole batch. weights: by label.
    """
    ends = np.asarray(unions.column("end_pos"))
    times = unions.column("end_time") if plan.source.order_by else None
    rows = np.arange(len(unions))
    events = _Events(unions, rows, rows + 1)
    shape = measures.shape
    whole = []
    for place, measure in enumerate(measures.whole):
        values = whole_values(measure, *events.values(measure))
        words = np.zeros((len(rows), 4), np.uint64)
        weighted_sums(values, weights[measure.label].words, *events.between(measure.label), words)
        known = _are_known(measures, place, events)
        whole.append(WholeSum(column_of(words[:, :2]), column_of(words[:, 2:]), known))
    reals, scales = _no_reals(len(rows), shape)
    if shape.real >= 0:
        reals[:, 0], scales[:, 0] = found.sizes, found.scales
    for place, measure in enumerate(measures.real):
        weight = weights[measure.label]
        _add_reals(reals, scales, measures, place, events, weight.sizes, weight.scales)
    least = _least(measures, events, len(rows))
    sums = GroupSums(column_of(found.counts), tuple(whole), reals, scales, least, measures.pairs)
    keys = tuple(unions.column(name) for name in plan.source.partition_by)
    return Groups(keys, places_of(plan, ends, times), ends, times, sums)


def places_of(plan: Plan, ends: np.ndarray, times: pa.Array | None) -> np.ndarray:
    """int64[matches]: a number for each group of a partition.

    ends: the position of each match's last event. times: the first order column there.
    """
    assert plan.answer.totals is not None
    match plan.answer.totals.per:
        case "END" | "RUNNING":
            return ends.astype(np.int64)
        case "PARTITION":
            return np.zeros(len(ends), np.int64)
        case int() as length:
            assert times is not None, "the compiler asks for an order column"
            spans: np.ndarray = whole_numbers(times) // length
            return spans
        case per:
            raise AssertionError(per)


def changes(columns: Sequence[np.ndarray]) -> np.ndarray:
    """bool[rows]: where a row differs from the row before it."""
    found = np.zeros(len(columns[0]), np.bool_)
    found[:1] = True
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


def _codes(column: pa.Array) -> np.ndarray:
    """int32[rows]: a number for each value, by first appearance; −1: NULL."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return np.asarray(coded.indices.fill_null(-1).to_numpy(zero_copy_only=False))


# --- measures of matches --------------------------------------------------------------------------


def _sums(
    measures: MeasureSet,
    matches: pa.RecordBatch,
    starts: np.ndarray,
    stops: np.ndarray,
    confidences: np.ndarray | None,
) -> GroupSums:
    counts = (stops - starts).astype(np.int64)
    events = _Events(matches, starts, stops)
    shape = measures.shape
    whole = []
    for place, measure in enumerate(measures.whole):
        values = whole_values(measure, *events.values(measure))
        first, last = events.between(measure.label)
        sizes = np.abs(values).view(np.uint64)  # also right for −2⁶³
        of_values, of_sizes = (sums_between(some, first, last) for some in (values, sizes))
        whole.append(WholeSum(of_values, of_sizes, _are_known(measures, place, events)))
    reals, scales = _no_reals(len(counts), shape)
    if shape.real >= 0:
        reals[:, 0] = counts if confidences is None else np.add.reduceat(confidences, starts)
    for place in range(len(measures.real)):
        _add_reals(reals, scales, measures, place, events)
    least = _least(measures, events, len(counts))
    return GroupSums(wide(counts), tuple(whole), reals, scales, least, measures.pairs)


def _are_known(measures: MeasureSet, place: int, events: _Events) -> np.ndarray:
    """bool[rows]: whether a whole sum has values; empty: not asked for."""
    if place >= measures.known:
        return NOT_ASKED
    measure = measures.whole[place]
    _, known = events.values(measure)
    keys = np.where(known, np.int64(0), NOTHING)
    are_known: np.ndarray = least_keys(keys, *events.between(measure.label)) != NOTHING
    return are_known


def _no_reals(rows: int, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    numbers = rows, shape.numbers
    return np.zeros(numbers), np.zeros(numbers, np.int64)


def _add_reals(
    reals: np.ndarray,
    scales: np.ndarray,
    measures: MeasureSet,
    place: int,
    events: _Events,
    *weights: np.ndarray,
) -> None:
    """Write the sums of a real measure, and the numbers of its values, into their columns."""
    measure = measures.real[place]
    values, known = events.values(measure)
    between = events.between(measure.label)
    columns = [(1 + place, real_values(values))]
    if place < measures.counted:
        columns.append((1 + len(measures.real) + place, np.ones(len(values))))
    for column, added in columns:
        reals[:, column], scales[:, column] = real_sums(added, known, *between, *weights)


def _least(measures: MeasureSet, events: _Events, rows: int) -> np.ndarray:
    least = np.zeros((rows, measures.shape.ordered), np.int64)
    keys = [ordered_keys(one, *events.values(one)) for one in measures.ordered]
    between = [events.between(one.label) for one in measures.ordered]
    paired = 2 * measures.pairs
    for place in range(0, paired, 2):
        pair = least_pairs(keys[place], keys[place + 1], *between[place])
        least[:, place : place + 2] = pair
    for place in range(paired, len(keys)):
        least[:, place] = least_keys(keys[place], *between[place])
    return least


def measured(measure: Measure, column: pa.Array | None, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """(the numbers of a measure's attribute; bool[rows], where they are known).

    Without an attribute all are known.
    """
    if column is None:
        assert measure.what == KNOWN
        return np.zeros(rows, np.int64), np.ones(rows, np.bool_)
    return numbers(column)


class _Events:
    """The events of matches under their labels, and where the events of each group are."""

    def __init__(self, matches: pa.RecordBatch, starts: np.ndarray, stops: np.ndarray) -> None:
        self._matches = matches
        self._starts, self._stops = starts, stops

    def between(self, label: str) -> tuple[np.ndarray, np.ndarray]:
        """int64[groups] twice: the first event of each group, and the event after its last."""
        column = self._matches.column(label)
        offsets = np.asarray(column.offsets).astype(np.int64)
        offsets = offsets - offsets[0]
        return offsets[self._starts], offsets[self._stops]

    def values(self, measure: Measure) -> tuple[np.ndarray, np.ndarray]:
        """`measured` for all events under the label of a measure."""
        events = self._matches.column(measure.label).flatten()
        column = None if measure.attribute is None else events.field(measure.attribute)
        return measured(measure, column, len(events))


# --- groups that wait -----------------------------------------------------------------------------


class WaitingGroups:
    """The groups of a run whose rows have not been returned yet."""

    def __init__(self) -> None:
        self._waiting: list[Groups] = []
        self._rows = self._merged = 0

    @property
    def nbytes(self) -> int:
        return 100 * self._rows

    def add(self, groups: Groups) -> None:
        """Add groups. Groups that are there already grow."""
        if not len(groups):
            return
        self._waiting.append(groups)
        self._rows += len(groups)
        if self._rows > max(_MOST_GROUPS, 2 * self._merged):
            self._keep(self._together()[0])
            self._merged = self._rows

    def taken(self, *, but_last_part: bool = False) -> Groups | None:
        """Remove and return all groups, each once, by partition and place; None: there are none.

        but_last_part: the groups of the last partition stay.
        """
        if not self._waiting:
            return None
        groups, parts = self._together()
        self._waiting, self._rows, self._merged = [], 0, 0
        if but_last_part:
            known = int(np.searchsorted(parts, parts[-1]))
            self._keep(groups.taken(np.arange(known, len(groups))))
            groups = groups.taken(np.arange(known))
        return groups if len(groups) else None

    def taken_after(self, before: Groups) -> tuple[Groups, np.ndarray]:
        """Remove and return all groups, each once, together with those before them; and for each
        int64, the number of its partition.

        before: one group for each partition, also where nothing is in it. They number the
        partitions. A group at the place of a later one grows, and others stand before it.
        """
        self._waiting = [before, *self._waiting]
        found = self._together()
        self._waiting, self._rows, self._merged = [], 0, 0
        return found

    def _keep(self, groups: Groups) -> None:
        self._waiting, self._rows = [groups], len(groups)

    def _together(self) -> tuple[Groups, np.ndarray]:
        """(all groups, each once; int64[groups], the numbers of their partitions, ascending)."""
        groups = _joined(self._waiting)
        parts = partition_numbers(groups.keys, len(groups))
        rises = (np.diff(parts) > 0) | ((np.diff(parts) == 0) & (np.diff(groups.places) > 0))
        if rises.all():  # each is there once, in order
            return groups, parts
        moments = groups.ends if groups.times is None else whole_numbers(groups.times)
        order = np.lexsort((moments, groups.places, parts))
        groups, parts = groups.taken(order), parts[order]
        starts = np.flatnonzero(changes([groups.places, parts]))
        lasts = np.append(starts[1:], len(parts)) - 1
        ends = np.maximum.reduceat(groups.ends, starts)
        times = None if groups.times is None else groups.times.take(pa.array(lasts))
        keys = tuple(key.take(pa.array(starts)) for key in groups.keys)
        sums = groups.sums.summed(starts)
        return Groups(keys, groups.places[starts], ends, times, sums), parts[starts]


def _joined(parts: Sequence[Groups]) -> Groups:
    if len(parts) == 1:
        return parts[0]
    return Groups(
        tuple(_chained(same) for same in zip(*(one.keys for one in parts), strict=True)),
        np.concatenate([one.places for one in parts]),
        np.concatenate([one.ends for one in parts]),
        None if parts[0].times is None else _chained([one.times for one in parts]),
        all_sums([one.sums for one in parts]),
    )


def _chained(arrays: Sequence[pa.Array]) -> pa.Array:
    return pa.chunked_array(list(arrays)).combine_chunks()


def partition_numbers(keys: Sequence[pa.Array], rows: int) -> np.ndarray:
    """int64[rows]: the number of each row's partition, by first appearance."""
    if not keys:
        return np.zeros(rows, np.int64)
    number = np.zeros(rows, np.int64)
    for key in keys:
        codes = _codes(key).astype(np.int64) + 1
        number = number * (int(codes.max()) + 1) + codes
        # Renumbered from 0 by first appearance, so that the next product cannot overflow.
        distinct, first, number = np.unique(number, return_index=True, return_inverse=True)
        rank = np.empty(len(distinct), np.int64)
        rank[np.argsort(first)] = np.arange(len(distinct))
        number = rank[number]
    return number
