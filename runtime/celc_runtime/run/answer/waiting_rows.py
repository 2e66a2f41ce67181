"""The rows that LIMIT … PER takes one after another: their order, and their times as keys."""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import numbers, whole_numbers
from celc_runtime.engine.arena.batch import order_preserving, real_numbers
from celc_runtime.plan.plan import Plan, Window

_LEAST = -(2**63)


def place_fields(plan: Plan) -> list[pa.Field]:
    """The columns behind those of a row by which rows are put in order.

    They are the number of the partition, the known time as a key, the entries of the last and of
    the first event, the time at which the match starts as a key (0 if events have no length), then
    the entries of the events under each label. A column of the row can have the same name, so they
    are taken by their places.
    """
    names = ("part", "known", "end", "start", "begin")
    places = [pa.field(name, pa.int64()) for name in names]
    return [*places, *(pa.field(name, pa.list_(pa.int64())) for name in plan.answer.label_names)]


def places_of(rows: pa.RecordBatch, plan: Plan) -> list[np.ndarray]:
    """The first five of these columns."""
    first = rows.num_columns - len(place_fields(plan))
    return [np.asarray(column) for column in rows.columns[first : first + 5]]


def later(times: pa.Array, size: int | float) -> np.ndarray:
    """int64: times plus a length, as keys."""
    if pa.types.is_floating(times.type):
        return order_preserving(numbers(times)[0].astype(np.float64) + size)
    found: np.ndarray = whole_numbers(times) + math.floor(size)
    return found


def before(known: np.ndarray, length: Window | None, plan: Plan) -> np.ndarray:
    """int64: for each known time the greatest one that does not count any more; for PER PARTITION
    there is none."""
    if length is None:
        return np.full(len(known), _LEAST)
    if plan.source.type_of(plan.source.order_by[0]) in ("FLOAT", "DOUBLE"):
        return order_preserving(real_numbers(known) - length.size)
    # Between whole numbers, a fraction in the length makes it longer.
    size = math.ceil(length.size)
    return np.where(known >= _LEAST + size, known - size, _LEAST)


class WaitingRows:
    """Rows with their `place_fields`, put in the order in which LIMIT … PER takes them.

    Rows of one known time are only in the order of their ends and starts: how many of them stay
    does not depend on more. `first_of` looks closer where some are left out.
    """

    def __init__(self, rows: pa.RecordBatch, plan: Plan) -> None:
        self.rows = rows
        self.parts, self.known, self.ends, self._starts, self._begins = places_of(rows, plan)
        names = plan.answer.label_names
        columns = rows.columns[rows.num_columns - len(names) :]
        self._labels = [(np.asarray(one.offsets), np.asarray(one.values)) for one in columns]
        rate = plan.choice.rate
        assert rate is not None
        support = None if rate.support is None else names.index(rate.support)
        self._told_apart = [number for number in range(len(names)) if number != support]
        self._preferred: dict[int, tuple[float, ...]] = {}
        starts = (self._starts, self._begins)
        self.order = np.lexsort((*starts, self.ends, self.known, self.parts))
        if support is not None:
            self._keep_distinct()

    def groups_of_parts(self) -> Iterator[tuple[int, np.ndarray]]:
        """The numbers of the partitions, each with its known times, ascending.

        A known time is int64[2]: where its rows begin in `order`, and where they end.
        """
        parts, known = self.parts[self.order], self.known[self.order]
        if not len(parts):
            return
        is_new_part = np.append(True, parts[1:] != parts[:-1])
        is_new = is_new_part | np.append(True, known[1:] != known[:-1])
        firsts = np.flatnonzero(is_new)
        groups = np.stack([firsts, np.append(firsts[1:], len(parts))], 1)
        edges = [*np.flatnonzero(is_new_part[firsts]).tolist(), len(groups)]
        for first, behind in pairwise(edges):
            yield int(parts[firsts[first]]), groups[first:behind]

    def first_of(self, first: int, behind: int, count: int) -> np.ndarray:
        """int64: the first `count` rows of one known time."""
        rows = self.order[first:behind]
        if len(rows) <= count:
            return rows
        last = rows[count - 1]
        alike = (self.ends[rows] == self.ends[last]) & (self._starts[rows] == self._starts[last])
        alike &= self._begins[rows] == self._begins[last]
        begin, end = np.flatnonzero(alike)[[0, -1]].tolist()
        among = sorted(rows[begin : end + 1].tolist(), key=self._key)
        return np.concatenate([rows[:begin], np.array(among, np.int64)])[:count]

    def _key(self, row: int) -> tuple[tuple[float, ...], ...]:
        """What puts rows with one start and one end in order."""
        return (self._preference(row), *self._told_of(row))

    def _told_of(self, row: int) -> tuple[tuple[int, ...], ...]:
        return tuple(self._entries(row, number) for number in self._told_apart)

    def _entries(self, row: int, number: int) -> tuple[int, ...]:
        offsets, entries = self._labels[number]
        return tuple(entries[offsets[row] : offsets[row + 1]].tolist())

    def _preference(self, row: int) -> tuple[float, ...]:
        """What is less for the events that NXT prefers: of two sets that with the least event that
        is in only one of them."""
        if row in self._preferred:
            return self._preferred[row]
        events = {
            entry for number in range(len(self._labels)) for entry in self._entries(row, number)
        }
        return (*sorted(events), math.inf)

    def _keep_distinct(self) -> None:
        """Leave one of the rows that look alike: the first that is known, at the place of the one
        that NXT prefers."""
        columns = (self.parts, self.ends, self._starts, self._begins)
        by_place = np.lexsort((self.known, *columns[::-1]))
        same = np.ones(max(0, len(by_place) - 1), np.bool_)
        for column in columns:
            same &= column[by_place[1:]] == column[by_place[:-1]]
        shared = np.append(same, False) | np.append(False, same)[: len(by_place)]
        first: dict[tuple[object, ...], int] = {}
        gone = np.zeros(len(self.parts), np.bool_)
        for row in by_place[shared[: len(by_place)]].tolist():
            place = tuple(int(column[row]) for column in columns)
            one = first.setdefault((*place, self._told_of(row)), row)
            best = min(self._preference(one), self._preference(row))
            self._preferred[one] = best
            gone[row] = one != row
        self.order = self.order[~gone[self.order]]
