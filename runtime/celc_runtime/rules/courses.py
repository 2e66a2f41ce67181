"""Rows and events, prepared for rows to be followed through events (`following`).

An event costs as much as the rows that it begins, and the rows that are alive and ask for it.
Events come in order and rows are met at random. So the values of a row that moves compare lie next
to each other, and so do those of an event. Events of a row that waits are found by the values that
one or two equalities ask for.

Rejected: to visit row by row, which needs all first events sorted by rows, most of which come to
nothing; rows that are alive in a hash table by the value that they wait for, which has to be
written for each event that begins a match, and cleared when the window has passed; events found by
one equality where there are two, which visits a row at many events that fail the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.parameters import Course, OfBoth, OfEvent, OfRow, Test
from celc_runtime.plan.row_search import choices_of
from celc_runtime.program import Rows
from celc_runtime.rules.constants import truth_of
from celc_runtime.rules.following import Events, Following, Moves, States
from celc_runtime.rules.keys import Keys, keys_of
from celc_runtime.rules.ordered_keys import OrderedKeys, ordered_keys

_EQUAL, _BELOW, _UP_TO, _ABOVE, _FROM, _TRUE = range(6)
"""How an event is compared with a row; `_TRUE`: the event alone decides."""

_FEW_EVENTS = 1 << 14
"""With fewer events it is not asked whether following pays. With more, a sample of this size is."""

_MOST_VISITS = 4  # more visits of a row in its life cost more than the index of all its events

_MOST_GROUPS = 1 << 22  # combinations of values of two attributes by which events are found

_OPERATORS = {"=": _EQUAL, "<": _BELOW, "<=": _UP_TO, ">": _ABOVE, ">=": _FROM}


_Asked: TypeAlias = tuple[str, str, str, bool]
"""What is compared: (the attribute of events, the type, that of the rows, whether by order)."""


@dataclass(frozen=True)
class _Compared:
    """An attribute of events, and the attributes of the set that it is compared with."""

    attribute: str
    keys: Keys
    distinct: np.ndarray | None  # int64, for equalities: the keys of rows; codes are indices

    def of_events(self, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """(int64[events], keys, or codes, −1 where no row has the key; bool, where not NULL)."""
        keys, known = self.keys.find(column)
        if self.distinct is None:
            return keys, known
        if not len(self.distinct):
            return np.full(len(keys), -1, np.int64), known
        places = np.minimum(np.searchsorted(self.distinct, keys), len(self.distinct) - 1)
        return np.where(known & (self.distinct[places] == keys), places, -1), known


class Follower:
    """The course of a query, over the rows of a table."""

    def __init__(
        self,
        rows: Rows,
        course: Course,
        declared_types: Sequence[tuple[str, str]],
        *,
        follows_all: bool,
    ) -> None:
        """follows_all: also rows whose next event no equality finds; every event is visited for
        them while they are alive."""
        self._course = course
        self._count = rows.count
        self._rows = rows
        self._compared: dict[_Asked, _Compared] = {}
        self._columns: dict[_Asked | OfEvent, int] = {}
        self._values: dict[OfBoth, tuple[np.ndarray, np.ndarray]] = {}
        self._read_tests()
        self._finders: dict[tuple[_Asked, ...], tuple[int, int]] = {}  # number, first group
        self._groups = 0
        self._follows_all = follows_all
        self.left_out = np.zeros(rows.count, np.bool_)
        """bool[rows], those that are not followed."""
        self._moves = self._moves_by_shape(list(declared_types))
        self._states = _states_of(course)
        # Only if the first event of a match can be its last one has it to be read in any case.
        self._is_quick = not self._moves.reads[self._moves.sources == 1].any()

    def pays(
        self, columns: pa.RecordBatch, parts: np.ndarray, times: np.ndarray, floors: np.ndarray
    ) -> bool:
        """Whether a row is visited at few events of its life, as some events of many tell.

        Where events have to be searched through a long window, the index of all events that
        concern a row finds them in less time. Arguments as of `of_events`.
        """
        count, course = len(columns), self._course
        if count < _FEW_EVENTS or not self._finders:
            return True
        if all(self._can_end(state) for state in range(1, len(course.passes) + 1)):
            return True  # a life lasts as long as the first event that ends it
        sample = np.linspace(0, count - 1, _FEW_EVENTS).astype(np.int64)
        keys, _ = self._keys_of(columns.take(pa.array(sample)))
        groups = self._groups_in(keys)
        passed = 0.0
        for number in sample[:: _FEW_EVENTS // 64].tolist():
            begin = int(np.searchsorted(parts, parts[number]))
            in_window = np.searchsorted(times[begin:number], floors[number])
            passed += (number - begin - int(in_window)) / 64
        visits = 0.0
        for finder in range(groups.shape[1]):
            _, of_group = np.unique(groups[groups[:, finder] >= 0, finder], return_counts=True)
            if len(of_group):
                others = (of_group * (of_group - 1)).sum() / of_group.sum()
                visits += passed * float(others) / _FEW_EVENTS
        return visits <= _MOST_VISITS

    def _can_end(self, state: int) -> bool:
        return any(move.ends and move.source == state for move in self._course.moves)

    def of_events(
        self,
        columns: pa.RecordBatch,
        types: np.ndarray,
        parts: np.ndarray,
        times: np.ndarray,
        floors: np.ndarray,
    ) -> Following:
        """Events, all in the order of their partitions; types, parts: int64[events].

        times, floors: int64[events] as in `Events`, or empty.
        """
        keys, nulls = self._keys_of(columns)
        events = Events(keys, nulls, types, parts, times, floors, *self._index_of(keys))
        return Following(events, self._keys, self._moves, self._states, self._is_quick)

    def _keys_of(self, columns: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """(int64[events, columns], keys; int64[events], a bit for each column with NULL)."""
        count = len(columns)
        keys = np.zeros((count, max(1, len(self._columns))), np.int64)
        nulls = np.zeros(count, np.int64)
        for asked, place in self._columns.items():
            if isinstance(asked, OfEvent):
                keys[:, place] = truth_of(asked, columns.column(asked.attribute))
                continue
            found, known = self._compared[asked].of_events(columns.column(asked[0]))
            keys[:, place] = found
            if not known.all():
                nulls |= np.where(known, 0, 1 << place)
        return keys, nulls

    def _asked(self, test: OfBoth) -> _Asked:
        of_row = str(self._rows.columns[test.parameter].type)
        return test.attribute, test.type, of_row, test.operator != "="

    # --- preparing --------------------------------------------------------------------------------

    def _read_tests(self) -> None:
        """Give each comparison its column of keys of events, and its keys of rows."""
        tests = dict.fromkeys(
            test for move in self._course.moves for either in move.way for test in either
        )
        parameters: dict[_Asked, dict[str, None]] = {}
        for test in tests:
            if isinstance(test, OfBoth):
                parameters.setdefault(self._asked(test), {})[test.parameter] = None
            elif isinstance(test, OfEvent):
                self._columns[test] = len(self._columns)
        columns: dict[tuple[_Asked, str], tuple[np.ndarray, np.ndarray]] = {}
        for asked, names in parameters.items():
            attribute, type, _, ordered = asked
            arrays = [plain(self._rows.columns[name]) for name in names]
            keys = keys_of(pa.concat_arrays(arrays), type, ordered=ordered)
            distinct = None if ordered else np.unique(keys.of_rows[keys.known])
            self._columns[asked] = len(self._columns)
            self._compared[asked] = _Compared(attribute, keys, distinct)
            for number, name in enumerate(names):
                part = slice(number * self._count, (number + 1) * self._count)
                values = keys.of_rows[part]
                if distinct is not None:
                    values = np.searchsorted(distinct, values)
                columns[asked, name] = values.astype(np.int64), keys.known[part]
        for test in tests:
            if isinstance(test, OfBoth):
                self._values[test] = columns[self._asked(test), test.parameter]

    def _moves_by_shape(self, declared_types: list[tuple[str, str]]) -> Moves:
        """The moves of each shape. Also lays out the keys of rows: the shape, keys of equalities,
        and other keys."""
        choices = [
            (move, sorted(choice, key=lambda test: test.operator != "="))
            for move in self._course.moves
            for choice in choices_of(move.way)
        ]
        samples, shapes = _shapes_of([self._there(tests) for _, tests in choices], self._count)
        made, first, begun, kept = _Written(), [0], [], []
        for shape, there in enumerate(samples):
            places: dict[tuple[str, _Asked], int] = {}
            own = [choices[number] for number in there]
            is_found = all(_has_equality(tests) for _, tests in own)
            if self._course.jumps and not is_found and not self._follows_all:
                self.left_out |= shapes == shape
                own = []
            compared = [t for _, tests in own for t in tests if isinstance(t, OfBoth)]
            for one in sorted(compared, key=lambda test: test.operator != "="):
                name = one.parameter, self._asked(one)
                if name not in places:
                    places[name] = len(places) + 1
                    kept.append((shape, places[name], self._values[one][0]))
            for move, tests in own:
                made.types.append(declared_types.index((move.stream, move.type)))
                made.sources.append(1 << move.source)
                made.targets.append(1 << move.target if move.target else 0)
                made.reads.append(move.target == 0)
                made.ends.append(1 << move.source if move.ends else 0)
                for test in tests:
                    if isinstance(test, OfBoth):
                        made.operators.append(_OPERATORS[test.operator])
                        made.of_events.append(self._columns[self._asked(test)])
                        made.of_rows.append(places[test.parameter, self._asked(test)])
                    elif isinstance(test, OfEvent):
                        made.operators.append(_TRUE)
                        made.of_events.append(self._columns[test])
                        made.of_rows.append(0)
                made.tests.append(len(made.operators))
                self._add_finder(made, tests, places)
            begins = [at for at in range(first[-1], len(made.types)) if made.sources[at] == 1]
            begun.append(sum({made.targets[at] for at in begins}))
            first.append(len(made.types))
        self._keys = np.zeros(
            (self._count, 1 + max((at for _, at, _ in kept), default=0)), np.int64
        )
        self._keys[:, 0] = shapes
        of_shape = [np.flatnonzero(shapes == shape) for shape in range(len(samples))]
        for shape, place, values in kept:
            self._keys[of_shape[shape], place] = values[of_shape[shape]]
        return made.moves(first, begun)

    def _add_finder(
        self, made: _Written, tests: Sequence[Test], places: Mapping[tuple[str, _Asked], int]
    ) -> None:
        """Write by which equalities the events of a choice are found: two, if there are."""
        equal = {
            self._asked(test): places[test.parameter, self._asked(test)]
            for test in tests
            if isinstance(test, OfBoth) and test.operator == "="
        }
        asked = tuple(sorted(equal))[:2] if self._course.jumps else ()
        if len(asked) == 2 and self._groups_of(asked) > _MOST_GROUPS:
            asked = asked[:1]
        if not asked:
            values = (-1, -1, -1, -1, 1)
        else:
            if asked not in self._finders:
                self._finders[asked] = len(self._finders), self._groups
                self._groups += self._groups_of(asked)
            finder, base = self._finders[asked]
            second = equal[asked[1]] if len(asked) == 2 else -1
            scale = self._groups_of(asked[1:]) if len(asked) == 2 else 1
            values = (finder, base, equal[asked[0]], second, scale)
        columns = (made.finders, made.bases, made.firsts, made.seconds, made.scales)
        for column, value in zip(columns, values, strict=True):
            column.append(value)

    def _groups_of(self, asked: Sequence[_Asked]) -> int:
        """How many combinations of codes there are."""
        counts = (self._compared[one].distinct for one in asked)
        return math.prod(0 if one is None else len(one) for one in counts)

    def _there(self, choice: Sequence[Test]) -> np.ndarray:
        """bool[rows]: the rows for which the choice can be true; NULL satisfies no comparison."""
        found = np.ones(self._count, np.bool_)
        for test in choice:
            if isinstance(test, OfRow):
                found &= truth_of(test, self._rows.columns[test.parameter])
            elif isinstance(test, OfBoth):
                found &= self._values[test][1]
        return found

    def _index_of(self, keys: np.ndarray) -> tuple[OrderedKeys, np.ndarray, np.ndarray]:
        """(the events of each group of each finder; int64[events, finders], the group of each
        event; int64[events, finders], the next event of its group)."""
        groups = self._groups_in(keys)
        later = np.full(groups.shape, len(keys), np.int64)
        starts = np.zeros(self._groups + 1, np.int64)
        found = np.empty(groups.size, np.int64)
        _sort_by_groups(groups, starts, found, later)
        return ordered_keys(found[: starts[-1]], starts), groups, later

    def _groups_in(self, keys: np.ndarray) -> np.ndarray:
        """int64[events, finders]: the group of each event, −1 if no row asks for it."""
        groups = np.full((len(keys), len(self._finders)), -1, np.int64)
        for asked, (finder, base) in self._finders.items():
            codes = keys[:, self._columns[asked[0]]]
            known = codes >= 0
            for other in asked[1:]:
                more = keys[:, self._columns[other]]
                codes, known = codes * self._groups_of([other]) + more, known & (more >= 0)
            groups[:, finder] = np.where(known, base + codes, -1)
        return groups


@dataclass
class _Written:
    """The columns of `Moves`, while they grow."""

    types: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    reads: list[bool] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    tests: list[int] = field(default_factory=lambda: [0])
    operators: list[int] = field(default_factory=list)
    of_events: list[int] = field(default_factory=list)
    of_rows: list[int] = field(default_factory=list)
    finders: list[int] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    seconds: list[int] = field(default_factory=list)
    scales: list[int] = field(default_factory=list)

    def moves(self, first: list[int], begun: list[int]) -> Moves:
        """The columns as arrays."""
        whole = {name: np.array(column, np.int64) for name, column in vars(self).items()}
        whole["reads"] = np.array(self.reads, np.bool_)
        return Moves(np.array(first, np.int64), np.array(begun, np.int64), **whole)


def _has_equality(tests: Sequence[Test]) -> bool:
    return any(isinstance(test, OfBoth) and test.operator == "=" for test in tests)


def _shapes_of(there: Sequence[np.ndarray], rows: int) -> tuple[list[list[int]], np.ndarray]:
    """(the choices of each shape; int64[rows], the shape of each row)."""
    shapes = np.zeros(rows, np.int64)
    for choice in there:
        shapes = shapes * 2 + choice
        if shapes.size and shapes.max() > 1 << 40:
            shapes = np.unique(shapes, return_inverse=True)[1].astype(np.int64)
    _, sample, shapes = np.unique(shapes, return_index=True, return_inverse=True)
    found = [
        [number for number, choice in enumerate(there) if choice[row]] for row in sample.tolist()
    ]
    return found, shapes.astype(np.int64)


def _states_of(course: Course) -> States:
    waits, passes, reads = 0, [0], [False]
    for state, after in enumerate(course.passes, 1):
        waits |= course.waits(state) << state
        passes.append(1 << after if after else 0)
        reads.append(after == 0)
    return States(waits, np.array(passes, np.int64), np.array(reads, np.bool_))


@njit(nogil=True, cache=True)
def _sort_by_groups(groups, starts, found, later):  # type: ignore[no-untyped-def]
    """Write the events (`found`) of each group, in order, where each group begins (`starts`), and
    the next event of the group of each (`later`). A counting sort: nothing is compared."""
    for event in range(len(groups)):
        for finder in range(groups.shape[1]):
            if groups[event, finder] >= 0:
                starts[groups[event, finder] + 1] += 1
    for group in range(1, len(starts)):
        starts[group] += starts[group - 1]
    ends = starts.copy()
    for event in range(len(groups)):
        for finder in range(groups.shape[1]):
            group = groups[event, finder]
            if group >= 0:
                if ends[group] > starts[group]:
                    later[found[ends[group] - 1], finder] = event
                found[ends[group]] = event
                ends[group] += 1
