"""The rows that an event can concern, by an index instead of a test of each row.

The conditions between an event and attributes of the set are known (`plan/parameters`). Rows are
grouped by the attributes that must equal one of the event's. Each group is sorted by an attribute
that is compared in another way. So the rows of an event are the first ones of a group
(`ordered_keys`). A second comparison, as in `rule.low <= x.a AND x.a <= rule.high`, is answered by
minima: of all rows up to one, which shows at once that there is no row; and of parts of the rows,
which lead from the last row back to the others (a priority search tree stored as an array:
McCreight, Priority Search Trees, 1985). The search goes from the last row back, because the rows of
an event are mostly near it. So the time of an event grows with the rows found. Keys are compared
inside a group, whose rows are next to each other in memory. The query itself checks all other
conditions.

Rejected: a bitmap of rows for each condition, and their intersection, which looks at every row for
every event; an interval tree, which answers only ranges; ranks among the values of all rows, which
an event must look up in a long array for each comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from celc_runtime.engine.values.copies import copy_to
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.parameters import Concern, OfBoth, OfEvent, OfRow, Test
from celc_runtime.plan.row_search import bounds_of, choices_of, is_lower
from celc_runtime.program import Rows
from celc_runtime.rules.constants import truth_of
from celc_runtime.rules.following import Following
from celc_runtime.rules.keys import Keys, keys_of
from celc_runtime.rules.ordered_keys import OrderedKeys, ordered_keys, place_in_group
from celc_runtime.rules.pairs import Pairs, pairs_of_intervals, pairs_of_places

_AT_ONCE = 1 << 20  # about the pairs that are looked at before more are found


def index_of(
    rows: Rows, concerns: Sequence[Concern] | None, only: np.ndarray | None = None
) -> RowIndex | None:
    """The index of the rows of a query, made once; None: every event concerns all rows.

    only: bool[rows], the rows that the index has, always the same ones; None: all.
    """
    if concerns is None:
        return None
    name = f"index {hash(tuple(concerns))} of {'all' if only is None else 'some'}"
    if name not in rows.kept:
        rows.kept[name] = RowIndex(rows, concerns, only)
    found: RowIndex = rows.kept[name]
    return found


class RowIndex:
    """An index of rows for the conditions of a query."""

    def __init__(
        self, rows: Rows, concerns: Sequence[Concern], only: np.ndarray | None = None
    ) -> None:
        self._rows = rows
        self._only = np.ones(rows.count, np.bool_) if only is None else only
        self._keys: dict[tuple[str, str, bool], Keys] = {}
        self._ways = {
            (one.stream, one.type): [
                self._way(tests) for way in _ways(one) for tests in choices_of(way)
            ]
            for one in concerns
        }

    def find(
        self, type: tuple[str, str], events: np.ndarray, columns: pa.RecordBatch
    ) -> Iterator[Pairs]:
        """The pairs of events of one type with the rows that they concern, by each way.

        A pair may come by several ways. events: int64, the indices of these events in `columns`.
        """
        ways = self._ways.get(type, ())
        if not ways:
            return
        values = _Values(columns, events)
        for way in ways:
            yield way.find(values)

    def follow(
        self,
        type: tuple[str, str],
        events: np.ndarray,
        columns: pa.RecordBatch,
        following: Following,
    ) -> Iterator[Pairs]:
        """As `find`, for events at which a match can begin: all events to read for each row."""
        values = _Values(columns, events)
        for way in self._ways.get(type, ()):
            found = way.follow(values, following)
            if found is not None:
                yield found

    def _way(self, tests: tuple[Test, ...]) -> _Way:
        of_rows = self._only.copy()
        equal, compared, of_events = [], [], []
        for test in tests:
            match test:
                case OfEvent():
                    of_events.append(test)
                case OfRow():
                    of_rows &= truth_of(test, self._rows.columns[test.parameter])
                case OfBoth(operator="="):
                    equal.append(_Tested(test, self._keys_of(test)))
                case OfBoth():
                    compared.append(test)
        rows = np.flatnonzero(of_rows)
        places = bounds_of([test.operator for test in compared])
        bounds = tuple(_Tested(compared[at], self._keys_of(compared[at])) for at in places)
        return _Way(rows, self._rows.count, tuple(of_events), tuple(equal), bounds)

    def _keys_of(self, test: OfBoth) -> Keys:
        name = (test.parameter, test.type, test.operator != "=")
        if name not in self._keys:
            column = self._rows.columns[test.parameter]
            self._keys[name] = keys_of(column, test.type, ordered=name[2])
        return self._keys[name]


def _ways(concern: Concern) -> tuple[tuple[tuple[Test, ...], ...], ...]:
    """The ways of a type; one way without conditions if all rows are meant."""
    return concern.ways or ((),)


class _Tested:
    """A comparison of events with rows: `key of row <= key of event`, or `<` without
    `counts_equal`.

    If large values of rows are wanted, the keys are inverted.
    """

    def __init__(self, test: OfBoth, keys: Keys) -> None:
        self.test = test
        self.counts_equal = test.operator in ("<=", ">=", "=")
        self.is_lower = is_lower(test.operator)
        self.known = keys.known
        self.of_rows = self._turned(keys.of_rows)
        self._find = keys.find

    def of_events(self, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """int64, the keys of events, and bool, where they are not NULL."""
        keys, known = self._find(column)
        return self._turned(keys), known

    def _turned(self, keys: np.ndarray) -> np.ndarray:
        # Not −keys, because the least 64-bit number has no negative.
        return ~keys if self.is_lower else keys


class _Values:
    """Events of a type, and what several ways need of them; each is computed once."""

    def __init__(self, columns: pa.RecordBatch, events: np.ndarray) -> None:
        self.events = events
        self._columns = columns
        self._taken: dict[str, pa.Array] = {}
        self._keys: dict[OfBoth, tuple[np.ndarray, np.ndarray]] = {}

    def column(self, attribute: str) -> pa.Array:
        if attribute not in self._taken:
            column = self._columns.column(attribute)
            if len(self.events) != len(column):
                column = column.take(pa.array(self.events))
            self._taken[attribute] = column
        return self._taken[attribute]

    def keys(self, tested: _Tested) -> tuple[np.ndarray, np.ndarray]:
        test = tested.test
        if test not in self._keys:
            self._keys[test] = tested.of_events(self.column(test.attribute))
        return self._keys[test]


class _Way:
    """The rows of one AND, sorted so that those of an event are an interval or part of one."""

    def __init__(
        self,
        rows: np.ndarray,
        count: int,
        of_events: tuple[OfEvent, ...],
        equal: tuple[_Tested, ...],
        searched: tuple[_Tested, ...],
    ) -> None:
        self._count = count
        self._of_events = of_events
        self._equal = equal
        self._first, self._second = searched[:1], searched[1:]
        for tested in (*equal, *self._first, *self._second):
            rows = rows[tested.known[rows]]  # NULL satisfies no comparison
        groups, self._distinct = _grouped(rows, equal)
        first = [one.of_rows[rows] for one in self._first]
        places = np.lexsort((*first, groups))
        self._order = rows[places].astype(np.int32)
        keys = self._first[0].of_rows[self._order] if self._first else np.zeros(len(rows), np.int64)
        starts = np.searchsorted(groups[places], np.arange(_groups_of(self._distinct) + 1))
        self._keys = ordered_keys(keys, starts.astype(np.int64))
        self._least, self._tree = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if self._second:
            bounds = self._second[0].of_rows[self._order]
            self._least = _least_before(bounds, self._keys.starts)
            self._tree = tree_of(bounds)

    def find(self, values: _Values) -> Pairs:
        """The pairs of events with the rows that they concern by this way."""
        low, high = self._intervals_of(values)
        if not self._second:
            return pairs_of_intervals(values.events, low, high, self._order, self._count)
        events, places = self._places_in(values, low, high, slice(None))
        return pairs_of_places(events, places, self._order, self._count)

    def follow(self, values: _Values, following: Following) -> Pairs | None:
        """The pairs of the lives that begin with the events, as this way finds their rows; None:
        there are none."""
        if not len(self._order):
            return None
        low, high = self._intervals_of(values)
        ends = np.cumsum(np.maximum(high.astype(np.int64) - low, 0))
        lives, first = following.begin(), 0
        while first < len(values.events):
            behind = int(np.searchsorted(ends, (ends[first - 1] if first else 0) + _AT_ONCE))
            part = slice(first, max(first + 1, behind))
            if self._second:
                events, places = self._places_in(values, low, high, part)
            else:
                events, places = _spread(values.events[part], low[part], high[part])
            lives.add(events, self._order[places])
            first = part.stop
        return lives.pairs()

    def _intervals_of(self, values: _Values) -> tuple[np.ndarray, np.ndarray]:
        """int32[events]: for each event the interval of rows that its groups and the first
        comparison leave."""
        groups = np.zeros(len(values.events), np.int64)
        for of_event in self._of_events:
            groups[~truth_of(of_event, values.column(of_event.attribute))] = -1
        for tested, distinct in zip(self._equal, self._distinct, strict=True):
            _find_groups(distinct, *values.keys(tested), groups)
        none = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        one = self._first[0] if self._first else None
        keys, known = none if one is None else values.keys(one)
        low, high = _intervals(self._keys, groups, keys, known, one is None or one.counts_equal)
        return low, high

    def _places_in(
        self, values: _Values, low: np.ndarray, high: np.ndarray, part: slice
    ) -> tuple[np.ndarray, np.ndarray]:
        """(int32, some of the events; int32, indices in their intervals whose second bound
        admits the event)."""
        other = self._second[0]
        keys, known = values.keys(other)
        events, places = _places(
            values.events[part],
            low[part],
            high[part],
            keys[part],
            known[part],
            other.counts_equal,
            self._least,
            self._tree,
        )
        return events, places


def _grouped(
    rows: np.ndarray, equal: Sequence[_Tested]
) -> tuple[np.ndarray, list[tuple[OrderedKeys, OrderedKeys]]]:
    """(int64, the groups of rows with equal keys; for each equality, its keys).

    The second also has the combinations of a group so far with a key, so that many attributes
    cannot overflow.
    """
    groups, found = np.zeros(len(rows), np.int64), []
    for tested in equal:
        distinct, places = np.unique(tested.of_rows[rows], return_inverse=True)
        combined, groups = np.unique(groups * len(distinct) + places, return_inverse=True)
        found.append((_one_group(distinct), _one_group(combined)))
    return groups.astype(np.int64), found


def _one_group(keys: np.ndarray) -> OrderedKeys:
    return ordered_keys(keys, np.array([0, len(keys)]))


def _groups_of(distinct: Sequence[tuple[OrderedKeys, OrderedKeys]]) -> int:
    return len(distinct[-1][1].keys) if distinct else 1


@njit(nogil=True, cache=True)
def _find_groups(distinct, keys, known, groups):  # type: ignore[no-untyped-def]
    """Continue from the group of each event (int64, −1: none) to the group that also has its
    key."""
    values, combined = distinct
    count = len(values.keys)
    # All combinations are with group 0, so the indices of values are the groups.
    is_first = count > 0 and len(combined.keys) == count and combined.keys[-1] == count - 1
    for event in range(len(groups)):
        group = groups[event]
        if group < 0:
            continue
        groups[event] = -1
        if not known[event]:
            continue
        place = place_in_group(values, 0, keys[event], False)
        if place == count or values.keys[place] != keys[event]:
            continue
        if is_first:
            groups[event] = place
            continue
        wanted = group * count + place
        found = place_in_group(combined, 0, wanted, False)
        if found < len(combined.keys) and combined.keys[found] == wanted:
            groups[event] = found


@njit(nogil=True, cache=True)
def _intervals(ordered, groups, keys, known, counts_equal):  # type: ignore[no-untyped-def]
    """int32[events]: the range of an event's rows. Without keys: whole groups."""
    low, high = np.zeros(len(groups), np.int32), np.zeros(len(groups), np.int32)
    for event in range(len(groups)):
        group = groups[event]
        if group >= 0 and (len(keys) == 0 or known[event]):
            low[event] = ordered.starts[group]
            if len(keys) == 0:
                high[event] = ordered.starts[group + 1]
            else:
                high[event] = place_in_group(ordered, group, keys[event], counts_equal)
    return low, high


@njit(nogil=True, cache=True)
def _spread(events, low, high):  # type: ignore[no-untyped-def]
    """(int32, events; int32, the indices in their intervals), event by event."""
    count = 0
    for number in range(len(low)):
        count += max(0, high[number] - low[number])
    of_events, places = np.empty(count, np.int32), np.empty(count, np.int32)
    count = 0
    for number in range(len(low)):
        for place in range(low[number], high[number]):
            of_events[count], places[count] = events[number], place
            count += 1
    return of_events, places


@njit(nogil=True, cache=True)
def _least_before(bounds, starts):  # type: ignore[no-untyped-def]
    """int64: for each index, the least bound so far in its group."""
    least = bounds.copy()
    for group in range(len(starts) - 1):
        for place in range(starts[group] + 1, starts[group + 1]):
            least[place] = min(least[place], least[place - 1])
    return least


def tree_of(keys: np.ndarray) -> np.ndarray:
    """int64[2 · 2^k]: node n has the smaller of nodes 2n and 2n + 1.

    The keys are the last 2^k nodes, filled with the largest number.
    """
    size = 1
    while size < len(keys):
        size *= 2
    tree = np.full(2 * size, 2**63 - 1, np.int64)
    tree[size : size + len(keys)] = keys
    while size > 1:
        level = tree[size : 2 * size]
        size //= 2
        tree[size : 2 * size] = np.minimum(level[::2], level[1::2])
    return tree


@njit(nogil=True, cache=True)
def _is_below(bound, key, counts_equal):  # type: ignore[no-untyped-def]
    return bound < key or (counts_equal and bound == key)


@njit(nogil=True, cache=True)
def _last_below(tree, place, key, counts_equal):  # type: ignore[no-untyped-def]
    """The last index up to `place` whose bound is below the key; there is one."""
    size = len(tree) >> 1
    node = size + place
    while not _is_below(tree[node], key, counts_equal):
        while node & 1 == 0:
            node >>= 1
        node -= 1
    while node < size:
        node = 2 * node + 1
        if not _is_below(tree[node], key, counts_equal):
            node -= 1
    return node - size


@njit(nogil=True, cache=True)
def _places(  # type: ignore[no-untyped-def]
    events, low, high, keys, known, counts_equal, least, tree
):
    """The pairs of an event (int32) and an index (int32) in its interval whose bound is below the
    event's key."""
    room, count = max(1024, len(events)), 0
    of_events, places = np.empty(room, np.int32), np.empty(room, np.int32)
    for number in range(len(events)):
        place = np.int64(high[number]) - 1
        if not known[number]:
            continue
        while place >= low[number] and _is_below(least[place], keys[number], counts_equal):
            place = _last_below(tree, place, keys[number], counts_equal)
            if count == room:
                room *= 2
                grown_events, grown_places = np.empty(room, np.int32), np.empty(room, np.int32)
                copy_to(grown_events, 0, of_events)
                copy_to(grown_places, 0, places)
                of_events, places = grown_events, grown_places
            of_events[count], places[count] = events[number], place
            count += 1
            place -= 1
    return of_events[:count], places[:count]
