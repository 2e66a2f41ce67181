"""Rows that are followed from an event that begins a match, as a course says (`plan/parameters`).

The index finds the events at which a match of a row can begin. Each of them is a visit of the row.
After it the row is alive in some states of the course. If one of these does not wait, the next
event of the partition is visited; if all wait, the next event that has a value of the row which a
move asks for, within the window. The visits of a row up to the event after which it is dead are one
*life*. A life in which nothing has to be read is left out. Any other is read with all its events,
so also with those that end partial matches.

Why a life is enough: every partial match that begins in it meets all events that can move it or end
it, because these are visited. A row is not visited again before the end of a life, since events
that begin matches are looked up in it as well.

So an event costs as much as the rows that it begins, and the rows that are alive and ask for it.
Events come in order and rows are met at random. So the values of a row that moves compare lie next
to each other, and so do those of an event.

Rejected: to visit row by row, which needs all first events sorted by rows, most of which come to
nothing; rows that are alive in a hash table by the value that they wait for, which has to be written
for each event that begins a match, and cleared when the window has passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain
from celc_runtime.engine.values.copies import copy_to
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.parameters import Course, OfBoth, OfEvent, OfRow, Test
from celc_runtime.plan.row_search import choices_of
from celc_runtime.program import Rows
from celc_runtime.rules.constants import truth_of
from celc_runtime.rules.keys import Keys, keys_of
from celc_runtime.rules.ordered_keys import OrderedKeys, ordered_keys, place_in_group
from celc_runtime.rules.pairs import Pairs, pairs_of_places

_EQUAL, _BELOW, _UP_TO, _ABOVE, _FROM, _TRUE = range(6)
"""How an event is compared with a row; `_TRUE`: the event alone decides."""

_OPERATORS = {"=": _EQUAL, "<": _BELOW, "<=": _UP_TO, ">": _ABOVE, ">=": _FROM}


class _Moves(NamedTuple):
    """Moves with one test of each OR: choices. Those of a row are found by the row's *shape*."""

    first: np.ndarray  # int64[shapes + 1], where the choices of each shape begin in `of_shapes`
    of_shapes: np.ndarray  # int64, numbers of choices
    types: np.ndarray  # int64[choices], the type of the event among `declared_types`
    sources: np.ndarray  # int64[choices], the bit of the state
    targets: np.ndarray  # int64[choices], the bit of the state afterwards; 0: none
    reads: np.ndarray  # bool[choices], whether the event has to be read
    tests: np.ndarray  # int64[choices + 1], where the tests of each begin in the next three
    operators: np.ndarray  # int64
    of_events: np.ndarray  # int64, the column of the event's key
    of_rows: np.ndarray  # int64, the column of the row's key
    looked_up: np.ndarray  # int64[choices], the column of the row's key that finds events
    bases: np.ndarray  # int64[choices], the first group of that key among the `_Events.places`


class _States(NamedTuple):
    waits: int  # a bit for each state that waits
    passes: np.ndarray  # int64[states], the bits of the state after any other event
    reads: np.ndarray  # bool[states], whether that event has to be read


class _Events(NamedTuple):
    """The events of a run, as a kernel reads them."""

    keys: np.ndarray  # int64[events, columns]
    nulls: np.ndarray  # int64[events], a bit for each column
    types: np.ndarray  # int64[events]
    parts: np.ndarray  # int64[events]
    times: np.ndarray  # int64[events], what the window is measured on; empty: there is no window
    floors: np.ndarray  # int64[events], the least time in the window that ends at the event
    places: OrderedKeys  # the events with each key that rows look up


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
        self, rows: Rows, course: Course, declared_types: Sequence[tuple[str, str]]
    ) -> None:
        self._course = course
        self._count = rows.count
        self._rows = rows
        self._compared: dict[tuple[str, str, bool], _Compared] = {}
        self._places: dict[OfBoth, int] = {}
        self._columns: dict[tuple[str, str, bool] | OfEvent, int] = {}
        of_rows: list[np.ndarray] = []
        known: dict[OfBoth, np.ndarray] = {}
        self._read_tests(of_rows, known)
        self.keys = np.ascontiguousarray(np.stack(of_rows, axis=1)) if of_rows else _no_keys(rows)
        self._bases = self._first_groups()
        self._moves = self._moves_by_shape(list(declared_types), known)
        self._states = _states_of(course)

    def of_events(
        self,
        columns: pa.RecordBatch,
        types: np.ndarray,
        parts: np.ndarray,
        times: np.ndarray,
        floors: np.ndarray,
    ) -> Following:
        """Events, all in the order of their partitions; types, parts: int64[events].

        times, floors: int64[events] as in `_Events`, or empty.
        """
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
        events = _Events(keys, nulls, types, parts, times, floors, self._index_of(keys))
        return Following(events, self.keys, self._shapes, self._moves, self._states, self._count)

    # --- preparing --------------------------------------------------------------------------------

    def _read_tests(self, of_rows: list[np.ndarray], known: dict[OfBoth, np.ndarray]) -> None:
        """Give each comparison its column of keys of rows, and of events."""
        tests = dict.fromkeys(
            test for move in self._course.moves for either in move.way for test in either
        )
        parameters: dict[tuple[str, str, bool], dict[str, None]] = {}
        for test in tests:
            if isinstance(test, OfBoth):
                parameters.setdefault(_asked(test), {})[test.parameter] = None
            elif isinstance(test, OfEvent):
                self._columns[test] = len(self._columns)
        columns: dict[tuple[tuple[str, str, bool], str], tuple[int, np.ndarray]] = {}
        for asked, names in parameters.items():
            attribute, type, ordered = asked
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
                columns[asked, name] = len(of_rows), keys.known[part]
                of_rows.append(values.astype(np.int64))
        for test in tests:
            if isinstance(test, OfBoth):
                self._places[test], known[test] = columns[_asked(test), test.parameter]

    def _first_groups(self) -> dict[tuple[str, str, bool], int]:
        """The first group of each column of codes, if events are looked up."""
        bases, groups = {}, 0
        for asked, compared in self._compared.items():
            if self._course.jumps and compared.distinct is not None:
                bases[asked] = groups
                groups += len(compared.distinct)
        self._groups = groups
        return bases

    def _moves_by_shape(
        self, declared_types: list[tuple[str, str]], known: dict[OfBoth, np.ndarray]
    ) -> _Moves:
        types, sources, targets, reads, looked_up, bases = [], [], [], [], [], []
        first, operators, of_events, of_rows = [0], [], [], []
        there: list[np.ndarray] = []
        for move in self._course.moves:
            for choice in choices_of(move.way):
                types.append(declared_types.index((move.stream, move.type)))
                sources.append(1 << move.source)
                targets.append(1 << move.target if move.target else 0)
                reads.append(move.target == 0)
                there.append(self._there(choice, known))
                asked = sorted(choice, key=lambda test: test.operator != "=")
                for test in asked:
                    if isinstance(test, OfBoth):
                        operators.append(_OPERATORS[test.operator])
                        of_events.append(self._columns[_asked(test)])
                        of_rows.append(self._places[test])
                    elif isinstance(test, OfEvent):
                        operators.append(_TRUE)
                        of_events.append(self._columns[test])
                        of_rows.append(0)
                first.append(len(operators))
                equal = next(
                    (t for t in asked if isinstance(t, OfBoth) and t.operator == "="), None
                )
                looked_up.append(-1 if equal is None else self._places[equal])
                bases.append(-1 if equal is None else self._bases.get(_asked(equal), -1))
        begins, of_shapes, self._shapes = _shapes_of(there, self._count)
        return _Moves(
            begins,
            of_shapes,
            np.array(types, np.int64),
            np.array(sources, np.int64),
            np.array(targets, np.int64),
            np.array(reads, np.bool_),
            np.array(first, np.int64),
            np.array(operators, np.int64),
            np.array(of_events, np.int64),
            np.array(of_rows, np.int64),
            np.array(looked_up, np.int64),
            np.array(bases, np.int64),
        )

    def _there(self, choice: Sequence[Test], known: dict[OfBoth, np.ndarray]) -> np.ndarray:
        """bool[rows]: the rows for which the choice can be true; NULL satisfies no comparison."""
        found = np.ones(self._count, np.bool_)
        for test in choice:
            if isinstance(test, OfRow):
                found &= truth_of(test, self._rows.columns[test.parameter])
            elif isinstance(test, OfBoth):
                found &= known[test]
        return found

    def _index_of(self, keys: np.ndarray) -> OrderedKeys:
        """The events with each code of each column that is looked up, in groups."""
        events, starts, count = [], [np.zeros(1, np.int64)], 0
        for asked in self._bases:
            codes, compared = keys[:, self._columns[asked]], self._compared[asked]
            assert compared.distinct is not None
            groups = len(compared.distinct)
            places = np.flatnonzero(codes >= 0)
            codes = codes[places]
            events.append(places[np.argsort(codes, kind="stable")])
            ends = np.cumsum(np.bincount(codes, minlength=groups))
            starts.append(count + ends)
            count += len(places)
        found = np.concatenate(events) if events else np.zeros(0, np.int64)
        return ordered_keys(found.astype(np.int64), np.concatenate(starts).astype(np.int64))


@dataclass
class Following:
    """Events, ready for the rows to be followed through them."""

    events: _Events
    keys: np.ndarray
    shapes: np.ndarray
    moves: _Moves
    states: _States
    rows: int

    def __post_init__(self) -> None:
        self.met = np.zeros(len(self.events.types), np.bool_)
        """The events that begin a match or move one, of those that were visited."""

    def begin(self) -> Lives:
        """Follow rows anew, from other first events."""
        return Lives(self)


class Lives:
    """The lives of rows that begin at given events."""

    def __init__(self, following: Following) -> None:
        self._following = following
        self._visited = np.full(following.rows, -1, np.int64)
        self._found: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, events: np.ndarray, rows: np.ndarray) -> None:
        """Follow rows (int32) from events (int32) at which a match can begin.

        Events ascend, also from call to call.
        """
        of = self._following
        self._found.append(
            _follow(
                events,
                rows,
                of.events,
                of.keys,
                of.shapes,
                of.moves,
                of.states,
                self._visited,
                of.met,
            )
        )

    def pairs(self) -> Pairs | None:
        """The events to read for each row; None: there are none."""
        rows = np.concatenate([one for one, _ in self._found] or [np.zeros(0, np.int32)])
        if not len(rows):
            return None
        events = np.concatenate([one for _, one in self._found])
        order = np.arange(self._following.rows, dtype=np.int32)
        return pairs_of_places(events, rows, order, self._following.rows)


def _asked(test: OfBoth) -> tuple[str, str, bool]:
    return test.attribute, test.type, test.operator != "="


def _no_keys(rows: Rows) -> np.ndarray:
    return np.zeros((rows.count, 1), np.int64)


def _shapes_of(
    there: Sequence[np.ndarray], rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(int64[shapes + 1], where the choices of each shape begin; int64, the choices; int64[rows],
    the shape of each row). Rows of one shape have the same choices."""
    shapes = np.zeros(rows, np.int64)
    for choice in there:
        shapes = shapes * 2 + choice
        if len(there) > 1 and shapes.size and shapes.max() > 1 << 40:
            shapes = np.unique(shapes, return_inverse=True)[1].astype(np.int64)
    _, sample, shapes = np.unique(shapes, return_index=True, return_inverse=True)
    of_shapes = [
        [number for number, choice in enumerate(there) if choice[row]] for row in sample.tolist()
    ]
    begins = np.cumsum([0, *map(len, of_shapes)])
    choices = [number for found in of_shapes for number in found]
    return begins.astype(np.int64), np.array(choices, np.int64), shapes.astype(np.int64)


def _states_of(course: Course) -> _States:
    waits, passes, reads = 0, [0], [False]
    for state, after in enumerate(course.passes, 1):
        waits |= course.waits(state) << state
        passes.append(1 << after if after else 0)
        reads.append(after == 0)
    return _States(waits, np.array(passes, np.int64), np.array(reads, np.bool_))


# --- kernels --------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def _admits(choice, event, row, events, keys, moves):  # type: ignore[no-untyped-def]
    """Whether an event is of the type of a choice and satisfies its tests."""
    if events.types[event] != moves.types[choice]:
        return False
    for test in range(moves.tests[choice], moves.tests[choice + 1]):
        column, operator = moves.of_events[test], moves.operators[test]
        of_event, of_row = events.keys[event, column], keys[row, moves.of_rows[test]]
        if operator == 0:
            if of_event != of_row:
                return False
            continue
        if operator == 5:
            if of_event == 0:
                return False
            continue
        if (events.nulls[event] >> column) & 1:
            return False
        if operator == 1 and of_event >= of_row:
            return False
        if operator == 2 and of_event > of_row:
            return False
        if operator == 3 and of_event <= of_row:
            return False
        if operator == 4 and of_event < of_row:
            return False
    return True


@njit(nogil=True, cache=True)
def _visit(event, row, alive, events, keys, shapes, moves, states):  # type: ignore[no-untyped-def]
    """(the states of the row after an event; whether the event has to be read; whether a match can
    begin with it; whether it does anything at all)."""
    shape, sources = shapes[row], alive | 1
    after, reads, begins, met = alive & states.waits, False, False, False
    for number in range(moves.first[shape], moves.first[shape + 1]):
        choice = moves.of_shapes[number]
        if sources & moves.sources[choice] == 0:
            continue
        if not _admits(choice, event, row, events, keys, moves):
            continue
        met = True
        after |= moves.targets[choice]
        reads |= moves.reads[choice]
        begins |= moves.sources[choice] == 1
    rest = alive & ~states.waits
    if rest:
        for state in range(1, len(states.passes)):
            if (rest >> state) & 1:
                after |= states.passes[state]
                reads |= states.reads[state]
    return after, reads, begins, met


@njit(nogil=True, cache=True)
def _next(event, row, alive, events, keys, shapes, moves, states):  # type: ignore[no-untyped-def]
    """The next event that has to be visited; −1: there is none in the partition."""
    count = len(events.types)
    found = np.int64(count)
    if alive & ~states.waits:
        found = np.int64(event) + 1
    else:
        shape, sources = shapes[row], alive | 1
        before = np.int64(-1)
        for number in range(moves.first[shape], moves.first[shape + 1]):
            choice = moves.of_shapes[number]
            if sources & moves.sources[choice] == 0:
                continue
            group = moves.bases[choice] + keys[row, moves.looked_up[choice]]
            if group == before:
                continue
            before = group
            place = place_in_group(events.places, group, event, True)
            if place < events.places.starts[group + 1]:
                found = min(found, events.places.keys[place])
    if found < count and events.parts[found] == events.parts[event]:
        return found
    return np.int64(-1)


@njit(nogil=True, cache=True)
def _follow(  # type: ignore[no-untyped-def]
    first, rows, events, keys, shapes, moves, states, visited, met
):
    """(int32, rows; int32, the events to read for them): those of each row ascend.

    visited: int64[rows], the last event of the last life of each row. met: bool[events].
    """
    room, count = max(1024, len(first)), 0
    of_rows, of_events = np.empty(room, np.int32), np.empty(room, np.int32)
    for number in range(len(first)):
        row, event = np.int64(rows[number]), np.int64(first[number])
        if event <= visited[row]:
            continue
        begin, alive, latest, is_read = count, np.int64(0), event, False
        while True:
            alive, reads, begins, did = _visit(
                event, row, alive, events, keys, shapes, moves, states
            )
            is_read |= reads
            if did:
                met[event] = True
            if begins:
                latest = event
            if count == begin and alive == 0 and not is_read:
                break
            if count == room:
                room *= 2
                more_rows, more_events = np.empty(room, np.int32), np.empty(room, np.int32)
                copy_to(more_rows, 0, of_rows)
                copy_to(more_events, 0, of_events)
                of_rows, of_events = more_rows, more_events
            of_rows[count], of_events[count] = row, event
            count += 1
            if alive == 0:
                break
            found = _next(event, row, alive, events, keys, shapes, moves, states)
            if found < 0:
                break
            if len(events.times) and events.times[latest] < events.floors[found]:
                break
            event = found
        if event > first[number]:
            visited[row] = event
        if not is_read:
            count = begin
    return of_rows[:count].copy(), of_events[:count].copy()
