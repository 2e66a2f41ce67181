"""The rows that an event can concern: an index instead of a look at each row.

The conditions on one event with attributes of the set are known (`plan/parameters`). Rows are
sorted by the attributes that must equal one of the event's, then by one that it is compared with in
another way: then the rows of an event are an interval, found by binary search. A second comparison,
as in `rule.low <= x.a AND x.a <= rule.high`, is answered inside the interval by a tree of largest
values (a priority search tree laid out as an array: McCreight, Priority Search Trees, 1985), in a
time that grows with the rows found. What else is asked is left to the query itself.

Rejected: one bitmap of rows for each condition and their intersection, which looks at every row for
every event; an interval tree, which answers ranges alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa

from celc_runtime.plan.parameters import Concern, OfBoth, OfEvent, OfRow, Test
from celc_runtime.rules.constants import truth_of
from celc_runtime.rules.keys import Ranks, ranks_of
from celc_runtime.rules.rows import Rows

_MOST_CHOICES = 64
"""So many ways to choose a test from each OR are looked up; beyond them an OR is left out."""


@dataclass(frozen=True, slots=True)
class Found:
    """For some events the rows that they can concern, by one way.

    events: int64, ascending. low, high: int64[events], the interval of `order` (int32) with their
    rows. tree: int64, largest keys of parts of `order` (`tree_of`), empty where the whole interval
    is meant; else at_least: int64[events], the key that a row must reach.
    """

    events: np.ndarray
    low: np.ndarray
    high: np.ndarray
    order: np.ndarray
    tree: np.ndarray
    at_least: np.ndarray


def index_of(rows: Rows, concerns: Sequence[Concern] | None) -> RowIndex | None:
    """The index of the rows of a query, which is made once; None: an event concerns all rows."""
    if concerns is None:
        return None
    if "index" not in rows.kept:
        rows.kept["index"] = RowIndex(rows, concerns)
    found: RowIndex = rows.kept["index"]
    return found


class RowIndex:
    """An index of rows for the conditions of a query."""

    def __init__(self, rows: Rows, concerns: Sequence[Concern]) -> None:
        self._rows = rows
        self._ranks: dict[tuple[str, str], Ranks] = {}
        self._ways = {
            (one.stream, one.type): [
                self._way(tests) for way in _ways(one) for tests in _choices(way)
            ]
            for one in concerns
        }

    def find(
        self, type: tuple[str, str], events: np.ndarray, columns: pa.RecordBatch
    ) -> Iterator[Found]:
        """The rows that events of one type concern, by each way; a row may come by several.

        events: int64, the places of these events in `columns`.
        """
        for way in self._ways.get(type, ()):
            yield way.find(events, columns)

    def _way(self, tests: tuple[Test, ...]) -> _Way:
        of_rows = np.ones(self._rows.count, np.bool_)
        equal, compared, of_events = [], [], []
        for test in tests:
            match test:
                case OfEvent():
                    of_events.append(test)
                case OfRow():
                    of_rows &= truth_of(test, self._rows.columns[test.parameter])
                case OfBoth(operator="="):
                    equal.append((test, self._ranks_of(test)))
                case OfBoth():
                    compared.append((test, self._ranks_of(test)))
        return _Way(np.flatnonzero(of_rows), tuple(of_events), tuple(equal), tuple(compared))

    def _ranks_of(self, test: OfBoth) -> Ranks:
        key = (test.parameter, test.type)
        if key not in self._ranks:
            self._ranks[key] = ranks_of(self._rows.columns[test.parameter], test.type)
        return self._ranks[key]


def _ways(concern: Concern) -> tuple[tuple[tuple[Test, ...], ...], ...]:
    """The ways of a type; one without conditions where all rows are meant."""
    return concern.ways or ((),)


def _choices(way: tuple[tuple[Test, ...], ...]) -> Iterator[tuple[Test, ...]]:
    """An AND of ORs as ANDs, of one test of each OR; some ORs are left out where there are many."""
    taken, count = [], 1
    for clause in sorted(way, key=len):
        if count * len(clause) <= _MOST_CHOICES:
            taken.append(clause)
            count *= len(clause)
    yield from product(*taken)


_Tested = tuple[OfBoth, Ranks]


class _Way:
    """The rows of one AND, in an order in which those of an event are an interval."""

    def __init__(
        self,
        rows: np.ndarray,
        of_events: tuple[OfEvent, ...],
        equal: tuple[_Tested, ...],
        compared: tuple[_Tested, ...],
    ) -> None:
        self._of_events = of_events
        self._equal = equal
        # A lower bound first, and then an upper one: two bounds of one kind exclude less.
        ordered = sorted(compared, key=lambda one: _is_upper(one[0]))
        self._first = ordered[:1]
        second = [one for one in ordered[1:] if not self._first or _differ(one, self._first[0])]
        self._second = (second or ordered[1:])[:1]
        for _, ranks in (*equal, *self._first, *self._second):
            rows = rows[ranks.of_rows[rows] >= 0]  # NULL satisfies no comparison
        keys, self._combinations = self._keys_of(rows)
        places = np.argsort(keys, kind="stable")
        self._places = Places(keys[places])
        self._order = rows[places].astype(np.int32)
        self._tree = np.zeros(0, np.int64)
        if self._second:
            test, ranks = self._second[0]
            of_rows = ranks.of_rows[self._order]
            self._tree = tree_of(-of_rows if _is_upper(test) else of_rows)

    def _keys_of(self, rows: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """int64: the keys of rows, and for each equality but the first the numbers of the
        combinations that there are, so that many attributes cannot overflow."""
        keys = np.zeros(len(rows), np.int64)
        combinations: list[np.ndarray] = []
        for number, (_, ranks) in enumerate(self._equal):
            keys = keys * (ranks.size + 1) + ranks.of_rows[rows]
            if number:
                distinct, inverse = np.unique(keys, return_inverse=True)
                combinations.append(distinct)
                keys = inverse.astype(np.int64)
        for _, ranks in self._first:
            keys = keys * (ranks.size + 1) + ranks.of_rows[rows]
        return keys, combinations

    def find(self, events: np.ndarray, columns: pa.RecordBatch) -> Found:
        """The rows that events concern by this way."""
        for of_event in self._of_events:
            column = columns.column(of_event.attribute)
            events = events[truth_of(of_event, _taken(column, events))]
        keys = np.zeros(len(events), np.int64)
        for number, (test, ranks) in enumerate(self._equal):
            below, upto, known = ranks.find(_taken(columns.column(test.attribute), events))
            there = known & (upto > below)
            if not there.all():
                events, keys, below = events[there], keys[there], below[there]
            keys = keys * (ranks.size + 1) + below
            if number:
                distinct = self._combinations[number - 1]
                places = np.searchsorted(distinct, keys)
                there = places < len(distinct)
                there[there] = distinct[places[there]] == keys[there]
                events, keys = events[there], places[there]
        low_keys, high_keys = keys, keys + 1
        for test, ranks in self._first:
            least, most, known = _bounds(
                test, ranks, _taken(columns.column(test.attribute), events)
            )
            base = keys * (ranks.size + 1)
            events, base = events[known], base[known]
            low_keys, high_keys = base + least[known], base + most[known]
        low, high = self._places.of(low_keys), self._places.of(high_keys)
        at_least = np.zeros(0, np.int64)
        if self._second:
            test, ranks = self._second[0]
            least, most, known = _bounds(
                test, ranks, _taken(columns.column(test.attribute), events)
            )
            at_least = 1 - most if _is_upper(test) else least
            high = np.where(known, high, low)
        return Found(events, low, high, self._order, self._tree, at_least)


_MOST_TABLE = 1 << 22


class Places:
    """How many of the keys, int64 and ascending, are less than others: from a table where the keys
    are small numbers, else by binary search."""

    def __init__(self, keys: np.ndarray) -> None:
        self._keys = keys
        self._table = np.zeros(0, np.int64)
        if not len(keys) or keys[-1] < _MOST_TABLE:
            self._table = np.zeros(int(keys[-1]) + 2 if len(keys) else 1, np.int64)
            if len(keys):
                np.cumsum(np.bincount(keys), out=self._table[1:])

    def of(self, keys: np.ndarray) -> np.ndarray:
        """int64, for keys that are not negative."""
        found: np.ndarray
        if len(self._table):
            found = self._table[np.minimum(keys, len(self._table) - 1)]
        else:
            found = np.searchsorted(self._keys, keys)
        return found


def _taken(column: pa.Array, events: np.ndarray) -> pa.Array:
    return column if len(events) == len(column) else column.take(pa.array(events))


def _is_upper(test: OfBoth) -> bool:
    """Whether the rows of an event are those with small values, up to one of the event's."""
    return test.operator in (">", ">=")


def _differ(one: _Tested, other: _Tested) -> bool:
    return _is_upper(one[0]) != _is_upper(other[0])


def _bounds(
    test: OfBoth, ranks: Ranks, events: pa.Array
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """int64[events]: the first rank of the rows that satisfy a comparison, and the one behind their
    last; and bool[events] where the event's value is not NULL."""
    below, upto, known = ranks.find(events)
    zeros, all_ranks = np.zeros(len(below), np.int64), np.full(len(below), ranks.size, np.int64)
    match test.operator:
        case ">":
            return zeros, below, known
        case ">=":
            return zeros, upto, known
        case "<":
            return upto, all_ranks, known
        case _:
            assert test.operator == "<="
            return below, all_ranks, known


def tree_of(keys: np.ndarray) -> np.ndarray:
    """int64[2 · 2^k]: node n has the larger of nodes 2n and 2n + 1; the keys are the last 2^k
    nodes, with smallest numbers behind them."""
    size = 1
    while size < len(keys):
        size *= 2
    tree = np.full(2 * size, -(2**62), np.int64)
    tree[size : size + len(keys)] = keys
    while size > 1:
        level = tree[size : 2 * size]
        size //= 2
        tree[size : 2 * size] = np.maximum(level[::2], level[1::2])
    return tree
