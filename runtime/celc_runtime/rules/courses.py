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

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain
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

_AHEAD = 64  # rows whose shapes are read together

_OPERATORS = {"=": _EQUAL, "<": _BELOW, "<=": _UP_TO, ">": _ABOVE, ">=": _FROM}


class _Moves(NamedTuple):
    """Moves with one test of each OR: choices. Rows that have the same ones are of one *shape*, and
    each shape has choices of its own, because the keys of its rows lie in columns of their own."""

    first: np.ndarray  # int64[shapes + 1], where the choices of each shape begin
    begun: np.ndarray  # int64[shapes], the bits of the states after an event that begins a match
    types: np.ndarray  # int64[choices], the type of the event among `declared_types`
    sources: np.ndarray  # int64[choices], the bit of the state
    targets: np.ndarray  # int64[choices], the bit of the state afterwards; 0: none
    reads: np.ndarray  # bool[choices], whether the event has to be read
    ends: np.ndarray  # int64[choices], the bit of the state that holds no partial match afterwards
    tests: np.ndarray  # int64[choices + 1], where the tests of each begin in the next three
    operators: np.ndarray  # int64
    of_events: np.ndarray  # int64, the column of the event's key
    of_rows: np.ndarray  # int64, the column of the row's key
    looked_up: np.ndarray  # int64[choices], the column of the row's code that finds events
    found_by: np.ndarray  # int64[choices], the column of their codes
    bases: np.ndarray  # int64[choices], the first group of these codes in `_Events.places`


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
    places: OrderedKeys  # the events with each code that rows look up
    later: np.ndarray  # int32[events, columns], the next event with the same code in such a column


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
        self._bases = self._first_groups()
        self._follows_all = follows_all
        self.left_out = np.zeros(rows.count, np.bool_)
        """bool[rows], those that are not followed."""
        self._moves = self._moves_by_shape(list(declared_types))
        self._states = _states_of(course)
        # Only if the first event of a match can be its last one has it to be read in any case.
        self._is_quick = not self._moves.reads[self._moves.sources == 1].any()

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
        events = _Events(keys, nulls, types, parts, times, floors, *self._index_of(keys))
        return Following(events, self._keys, self._moves, self._states, self._is_quick)

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

    def _first_groups(self) -> dict[_Asked, int]:
        """The first group of each column of codes, if events are looked up."""
        bases, groups = {}, 0
        for asked, compared in self._compared.items():
            if self._course.jumps and compared.distinct is not None:
                bases[asked] = groups
                groups += len(compared.distinct)
        self._groups = groups
        return bases

    def _moves_by_shape(self, declared_types: list[tuple[str, str]]) -> _Moves:
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
            if self._course.jumps and not all(_has_equality(tests) for _, tests in own):
                if not self._follows_all:
                    self.left_out |= shapes == shape
                    own = []
            compared = [t for _, tests in own for t in tests if isinstance(t, OfBoth)]
            for test in sorted(compared, key=lambda test: test.operator != "="):
                name = test.parameter, self._asked(test)
                if name not in places:
                    places[name] = len(places) + 1
                    kept.append((shape, places[name], self._values[test][0]))
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
                looked_up, found_by, base = self._look_up(tests, compared, places)
                made.looked_up.append(looked_up)
                made.found_by.append(found_by)
                made.bases.append(base)
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

    def _look_up(
        self,
        tests: Sequence[Test],
        compared: Sequence[OfBoth],
        places: Mapping[tuple[str, _Asked], int],
    ) -> tuple[int, int, int]:
        """(the column of the row's code that finds the events of a choice, that of the events' codes,
        and the first group of these); -1 where events are not looked up.

        compared: all comparisons of the row. An attribute that more of them ask for is preferred:
        it is looked up once for all.
        """
        equal = [test for test in tests if isinstance(test, OfBoth) and test.operator == "="]
        if not equal or not self._course.jumps:
            return -1, -1, -1
        often = Counter(map(self._asked, compared))
        test = max(equal, key=lambda test: often[self._asked(test)])
        asked = self._asked(test)
        return places[test.parameter, asked], self._columns[asked], self._bases[asked]

    def _there(self, choice: Sequence[Test]) -> np.ndarray:
        """bool[rows]: the rows for which the choice can be true; NULL satisfies no comparison."""
        found = np.ones(self._count, np.bool_)
        for test in choice:
            if isinstance(test, OfRow):
                found &= truth_of(test, self._rows.columns[test.parameter])
            elif isinstance(test, OfBoth):
                found &= self._values[test][1]
        return found

    def _index_of(self, keys: np.ndarray) -> tuple[OrderedKeys, np.ndarray]:
        """(the events with each code of each column that is looked up, in groups; `later`)."""
        found, starts, count = [np.zeros(0, np.int64)], [np.zeros(1, np.int64)], 0
        later = np.full(keys.shape if self._bases else (0, 0), len(keys), np.int32)
        for asked in self._bases:
            column, compared = self._columns[asked], self._compared[asked]
            assert compared.distinct is not None
            places = np.flatnonzero(keys[:, column] >= 0)
            places = places[np.argsort(keys[places, column], kind="stable")]
            codes = keys[places, column]
            same = codes[1:] == codes[:-1]
            later[places[:-1][same], column] = places[1:][same]
            found.append(places)
            counts = np.bincount(codes, minlength=len(compared.distinct))
            starts.append(count + np.cumsum(counts))
            count += len(places)
        groups = np.concatenate(starts).astype(np.int64)
        return ordered_keys(np.concatenate(found).astype(np.int64), groups), later


@dataclass
class Following:
    """Events, ready for the rows to be followed through them."""

    events: _Events
    keys: np.ndarray
    moves: _Moves
    states: _States
    is_quick: bool

    def begin(self) -> Lives:
        """Follow rows anew, from other first events."""
        return Lives(self)


class Lives:
    """The lives of rows that begin at given events."""

    def __init__(self, following: Following) -> None:
        self._following = following
        self._visited = np.full(len(following.keys), -1, np.int64)
        self._found: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, events: np.ndarray, rows: np.ndarray) -> None:
        """Follow rows (int32) from events (int32) at which a match can begin.

        Events ascend, also from call to call.
        """
        of, number, room = self._following, 0, max(1024, len(events))
        while number < len(events):
            of_rows, of_events = np.empty(room, np.int32), np.empty(room, np.int32)
            shapes = np.empty(_AHEAD, np.int64)
            number, count = _follow(
                number,
                events,
                rows,
                of.events,
                of.keys,
                of.moves,
                of.states,
                self._visited,
                of.is_quick,
                shapes,
                of_rows,
                of_events,
            )
            self._found.append((of_rows[:count].copy(), of_events[:count].copy()))
            room *= 2  # one life can be longer

    def pairs(self) -> Pairs | None:
        """The events to read for each row; None: there are none."""
        rows = np.concatenate([one for one, _ in self._found] or [np.zeros(0, np.int32)])
        if not len(rows):
            return None
        events = np.concatenate([one for _, one in self._found])
        count = len(self._following.keys)
        return pairs_of_places(events, rows, np.arange(count, dtype=np.int32), count)


@dataclass
class _Written:
    """The columns of `_Moves`, while they grow."""

    types: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    reads: list[bool] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    tests: list[int] = field(default_factory=lambda: [0])
    operators: list[int] = field(default_factory=list)
    of_events: list[int] = field(default_factory=list)
    of_rows: list[int] = field(default_factory=list)
    looked_up: list[int] = field(default_factory=list)
    found_by: list[int] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)

    def moves(self, first: list[int], begun: list[int]) -> _Moves:
        """The columns as arrays."""
        whole = {name: np.array(column, np.int64) for name, column in vars(self).items()}
        whole["reads"] = np.array(self.reads, np.bool_)
        return _Moves(np.array(first, np.int64), np.array(begun, np.int64), **whole)


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


def _states_of(course: Course) -> _States:
    waits, passes, reads = 0, [0], [False]
    for state, after in enumerate(course.passes, 1):
        waits |= course.waits(state) << state
        passes.append(1 << after if after else 0)
        reads.append(after == 0)
    return _States(waits, np.array(passes, np.int64), np.array(reads, np.bool_))


# --- kernels --------------------------------------------------------------------------------------


@njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
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


@njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
def _visit(event, row, alive, events, keys, moves, states):  # type: ignore[no-untyped-def]
    """(the states of the row after an event; whether the event has to be read; whether a match can
    begin with it)."""
    shape, sources = keys[row, 0], alive | 1
    after, left, reads, begins = np.int64(0), alive & states.waits, False, False
    for choice in range(moves.first[shape], moves.first[shape + 1]):
        if sources & moves.sources[choice] == 0:
            continue
        if not _admits(choice, event, row, events, keys, moves):
            continue
        after |= moves.targets[choice]
        left &= ~moves.ends[choice]
        reads |= moves.reads[choice]
        begins |= moves.sources[choice] == 1
    rest = alive & ~states.waits
    if rest:
        for state in range(1, len(states.passes)):
            if (rest >> state) & 1:
                after |= states.passes[state]
                reads |= states.reads[state]
    return after | left, reads, begins


@njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
def _next(event, row, alive, events, keys, moves, states):  # type: ignore[no-untyped-def]
    """The next event that has to be visited; −1: there is none in the partition."""
    count = len(events.types)
    found = np.int64(count)
    if alive & ~states.waits:
        found = np.int64(event) + 1
    else:
        shape, sources = keys[row, 0], alive | 1
        before = np.int64(-1)
        for choice in range(moves.first[shape], moves.first[shape + 1]):
            if sources & moves.sources[choice] == 0:
                continue
            if moves.bases[choice] < 0:
                found = np.int64(event) + 1
                continue
            code = keys[row, moves.looked_up[choice]]
            group = moves.bases[choice] + code
            if group == before:
                continue
            before = group
            if events.keys[event, moves.found_by[choice]] == code:
                found = min(found, np.int64(events.later[event, moves.found_by[choice]]))
                continue
            place = place_in_group(events.places, group, event, True)
            if place < events.places.starts[group + 1]:
                found = min(found, events.places.keys[place])
    if found < count and events.parts[found] == events.parts[event]:
        return found
    return np.int64(-1)


@njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
def _goes_on(event, row, shape, events, keys, moves, states):  # type: ignore[no-untyped-def]
    """Whether a match that begins with an event can go on with another one.

    Mostly it cannot. A processor that foresees this reads the keys of many rows at once, though
    each of them is far from the one before.
    """
    alive = moves.begun[shape]
    found = _next(event, row, alive, events, keys, moves, states)
    if found < 0 or (len(events.times) and events.times[event] < events.floors[found]):
        return False
    if alive & states.waits:
        return True
    for choice in range(moves.first[shape], moves.first[shape + 1]):
        if alive & moves.sources[choice] and _admits(choice, found, row, events, keys, moves):
            return True
    for state in range(1, len(states.passes)):
        if (alive >> state) & 1 and (states.passes[state] or states.reads[state]):
            return True
    return False


@njit(nogil=True, cache=True, error_model="numpy", _nrt=False)
def _follow(  # type: ignore[no-untyped-def]
    number,
    first,
    rows,
    events,
    keys,
    moves,
    states,
    visited,
    is_quick,
    shapes,
    of_rows,
    of_events,
):
    """Write the rows (int32) and the events (int32) that are read for them; those of each row
    ascend. Returns (the number of the first event that is left for more room, how many were
    written).

    visited: int64[rows], the last event of the last life of each row. shapes: int64,
    room for those of some rows. They are read together, because rows are far from each
    other: the processor then waits once, and the first keys of a row come with its shape.
    """
    count, block, ahead = 0, number, number
    while number < len(first):
        if number == ahead:
            block, ahead = number, min(number + len(shapes), len(first))
            for one in range(number, ahead):
                shapes[one - number] = keys[rows[one], 0]
        row, event = np.int64(rows[number]), np.int64(first[number])
        if is_quick and not _goes_on(
            event, row, shapes[number - block], events, keys, moves, states
        ):
            number += 1
            continue
        if event <= visited[row]:
            number += 1
            continue
        begin, alive, latest, is_read = count, np.int64(0), event, False
        while True:
            alive, reads, begins = _visit(event, row, alive, events, keys, moves, states)
            is_read |= reads
            if begins:
                latest = event
            if count == begin and alive == 0 and not is_read:
                break
            if count == len(of_rows):
                return number, begin
            of_rows[count], of_events[count] = row, event
            count += 1
            if alive == 0:
                break
            found = _next(event, row, alive, events, keys, moves, states)
            if found < 0:
                break
            if len(events.times) and events.times[latest] < events.floors[found]:
                break
            event = found
        if event > first[number]:
            visited[row] = event
        if not is_read:
            count = begin
        number += 1
    return number, count
