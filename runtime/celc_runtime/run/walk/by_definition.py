"""The walk of a query with conditions that no automaton decides.

At each event where a match could end, matches are found by the definitions (`definition`) among
remembered events.

Long: what is found at an event and when each match of it is decided ask the same remembered events.
"""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import whole_numbers
from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.arrow.matches.decided_times import LEFT_OPEN, NO_DEADLINE
from celc_runtime.engine.arena.batch import relevant_rows
from celc_runtime.engine.arena.nodes import (
    DONE,
    FIRED,
    LISTED,
    OUTPUT_FULL,
    TOO_MUCH_WORK,
    Memory,
)
from celc_runtime.engine.definition.instants import ALONE, Instants
from celc_runtime.engine.definition.nodes import Relabelled, first_in
from celc_runtime.engine.definition.open_questions import (
    Budget,
    Found,
    Labels,
    OutOfWorkError,
    Stretch,
)
from celc_runtime.engine.walk.listing import Kinds, Output
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import ByDefinition
from celc_runtime.run.past.history import History
from celc_runtime.run.source.positions import Positions
from celc_runtime.run.walk.walks import NOTED_ROWS, Floors, WalkOfRun


@dataclass(slots=True)
class _Part:
    """The remembered events of one partition, ascending."""

    entries: list[int] = field(default_factory=list)
    symbols: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # in their instants
    times: list[int] = field(default_factory=list)  # when events with a duration end
    begins: list[int] = field(default_factory=list)  # when they start
    whole: Stretch | None = None  # for nested selectors

    def drop(self, count: int) -> None:
        if count:
            for column in self.columns:
                del column[:count]
            self.whole = None

    @property
    def columns(self) -> tuple[list[int], ...]:
        events = (self.entries, self.symbols, self.positions, self.keys, self.places)
        return (*events, self.times, self.begins)


_Match: TypeAlias = tuple[int, int, tuple[tuple[int, Labels], ...]]
"""(the first event of a match, its last event, the events with labels, each with its labels)."""

_Timed: TypeAlias = tuple[_Match, int]
"""A match and its start time: where events have a duration, two can differ in nothing else."""

_Listed: TypeAlias = tuple[list[int], int, int, "_Latest"]
"""(the row at which a match ends and its events' tags, a number of a deadline, `_Way.begin`, what
is decided last)."""


_Group: TypeAlias = tuple[int, int]
"""(the first event of the matches that belong together, their start time)."""


class _Way(NamedTuple):
    """How a match is decided."""

    begin: int  # the entry of an event that starts when the match starts
    deadlines: list[int]  # their numbers; it is decided when the first one has passed


_Latest: TypeAlias = tuple[int, int]
"""The match that is decided last, among matches that are decided together: (the entry of its first
event, the number of its deadline)."""

_AT_ITS_END: _Latest = (0, NO_DEADLINE)


class _Noted(NamedTuple):
    """The relevant rows of a batch."""

    rows: np.ndarray  # int64
    entry: int  # of the first one
    parts: np.ndarray  # int64, the partition of each
    part: int  # the partition of the batch's last row


class DefinitionWalk(WalkOfRun):
    """Finds the matches that end at each event that fired, by the definitions."""

    most_rows = NOTED_ROWS

    def __init__(
        self, definition: ByDefinition, plan: Plan, instants: Instants | None = None
    ) -> None:
        self._instants = instants
        self._definition = definition
        self._plan = plan
        self._history = History(definition.remembers, plan)
        self._parts: dict[int, _Part] = {}
        self._part = 0
        self._consumed = -1
        self._waiting: list[_Listed] = []
        # For the matches in the buffers, in their order; kept only if somebody asks for them.
        self._numbers: list[int] = []
        self._begins: list[int] = []
        self._latest: list[_Latest] = []
        # Whether matches with one start and one end belong together, and not those with one end.
        self._by_start = plan.choice.per_start is not None
        asks = plan.choice.rate is not None and plan.shows_decided_time
        self._asks_for_latest = asks and (definition.joins_ends or self._by_start)
        labels = plan.answer.label_names
        self._kinds = {
            frozenset(labels[column] for column in kind.columns): number
            for number, kind in enumerate(plan.matching.kinds)
        }
        self._looked_at: deque[_Noted] = deque()
        self._noted = _Noted(np.zeros(0, np.int64), 0, np.zeros(0, np.int64), 0)

    @property
    def nbytes(self) -> int:
        kept = sum(4 * len(part.entries) for part in self._parts.values())
        return self._history.nbytes + 32 * kept

    @property
    def history(self) -> History:
        return self._history

    def look(self, prepared: Prepared, positions: Positions) -> None:
        """Note the relevant events of a batch, with their positions and entries."""
        batch, entry = prepared.batch, self._history.next
        rows = relevant_rows(batch.symbols)
        count = len(rows)
        if len(batch.slots):
            parts = batch.slots[rows]
        else:
            parts = self._part + np.searchsorted(prepared.parts, rows, side="right")
            self._part += len(prepared.parts)
        self._looked_at.append(_Noted(rows, entry, parts, self._part))
        if not count:
            return
        of_rows = positions.of(rows)
        symbols, places = batch.symbols[rows], np.full(count, ALONE)
        if self._instants is not None:
            places = self._instants.place_of[symbols]
            symbols = self._instants.class_of[symbols]
        self._history.append(prepared.events, rows, symbols, positions, prepared.parts)
        keys = batch.keys[rows] if len(batch.keys) else of_rows
        values: tuple[np.ndarray, ...] = (symbols, of_rows, keys, places)
        if self._plan.source.begin is not None:
            columns = (self._plan.source.order_by[0], self._plan.source.begin)
            relevant = prepared.events.select(columns).take(pa.array(rows))
            values += tuple(whole_numbers(relevant.column(name)) for name in columns)
        for part, number, *event in zip(
            parts.tolist(), range(entry, entry + count), *(v.tolist() for v in values), strict=True
        ):
            kept = self._parts.get(part)
            if kept is None:
                kept = self._parts[part] = _Part()
            for column, value in zip(kept.columns, (number, *event), strict=False):
                column.append(value)
            kept.whole = None  # it lacks the new events

    def enter(self, prepared: Prepared, positions: Positions, memory: Memory) -> Prepared:
        self._noted = self._looked_at.popleft()
        return prepared

    def leave(self, floors: Floors, oldest: Callable[[], int]) -> None:
        """End a batch: keep the events that a later window can reach; without a window, all."""
        bounded = self._plan.matching.window is not None and not self._definition.sees_all
        behind = floors() if bounded else None
        noted = self._noted
        first_kept = noted.entry + len(noted.rows)
        for number in list(self._parts):
            part = self._parts[number]
            if not self._plan.interleaves and number > noted.part:
                continue  # a later batch, which has been looked at but not entered
            if not self._plan.interleaves and number < noted.part:
                del self._parts[number]
                continue
            gone = bisect_left(part.entries, self._consumed + 1)
            if self._plan.matching.one_event and not self._definition.sees_all:
                read = bisect_left(part.entries, noted.entry + len(noted.rows))
                gone = self._reached(part, gone, read)
            elif behind is not None:
                floor = behind if isinstance(behind, int) else int(behind[number])
                gone = self._reached(part, gone, first_in(part.keys, floor, gone))
            part.drop(gone)
            part.whole = None
            if part.entries:
                first_kept = min(first_kept, part.entries[0])
        self._history.drop(first_kept)
        self._noted = noted._replace(rows=noted.rows[:0])

    def _reached(self, part: _Part, first: int, start: int) -> int:
        """The first event of a partition, from `first` on, that matches from `start` on need."""
        history, found = self._history, start
        if not part.entries:
            return found
        for hops in self._plan.matching.reaches:
            at = start
            for number in hops:
                keys, floors = history.window(number)
                # After the last event, no window reaches farther back than from it.
                floor = floors[part.entries[min(at, len(part.entries) - 1)] - history.first]
                at = bisect_left(
                    part.entries, floor, lo=first, key=lambda entry: keys[entry - history.first]
                )
            found = min(found, at)
        return found

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        counters = memory.counters
        while True:
            while self._waiting:
                tags, number, begin, latest = self._waiting[-1]
                matches, used = int(output.used[0]), int(output.used[1])
                room = used + len(tags) - 1 <= len(output.tags)
                if matches == len(output.rows) or not room:
                    return OUTPUT_FULL
                output.rows[matches], output.ends[matches] = tags[0], used + len(tags) - 1
                output.tags[used : used + len(tags) - 1] = tags[1:]
                output.used[0], output.used[1] = matches + 1, used + len(tags) - 1
                if self._definition.ways:
                    self._numbers.append(number)
                    if self._asks_for_latest:
                        self._latest.append(latest)
                if self._plan.source.begin is not None:
                    self._begins.append(begin)
                self._waiting.pop()
            if counters[LISTED] == counters[FIRED]:
                counters[LISTED] = counters[FIRED] = 0
                return DONE
            fire = memory.fires[counters[LISTED]]
            counters[LISTED] += 1
            if output.limit[0]:
                try:
                    self._waiting = self._matches(int(fire[1]), int(fire[3]), int(output.limit[0]))
                except OutOfWorkError:
                    return TOO_MUCH_WORK

    def _matches(self, row: int, floor: int, limit: int) -> list[_Listed]:
        """The matches that end at a row, the first one last."""
        noted = self._noted
        place = int(np.searchsorted(noted.rows, row))
        part = self._parts[int(noted.parts[place])]
        end = bisect_left(part.entries, noted.entry + place)
        window = self._plan.matching.window
        if window is not None and window.unit == "EVENTS":
            # The kernel counts rows. On a stream, not every row with a position is read again.
            floor = part.positions[end] - int(window.size)
        start = bisect_left(part.entries, self._consumed + 1)
        first = first_in(part.keys, floor, start)
        if first > end:
            return []
        budget = Budget(self._plan.choice.max_work)
        if part.whole is None or part.whole.first != start:
            part.whole = self._stretch(part, start, budget)
        part.whole.budget = budget
        stretch = self._stretch(part, first, budget)
        stretch.whole = part.whole
        with np.errstate(all="ignore"):
            if self._definition.ways:
                return self._by_deadline(row, part, stretch, end)[::-1][-limit:]
            found = self._definition.formula.ending(stretch, end)
        begins: dict[_Timed, int] = {}
        for match in found:
            timed, event = self._timed(match)
            begins.setdefault(timed, part.entries[event])
        matches = sorted(begins, key=_by_latest_start)
        if matches and self._plan.matching.consume_by != "NONE":
            self._consumed = part.entries[end]
        return [
            (self._tags(row, part, *timed[0]), NO_DEADLINE, begins[timed], _AT_ITS_END)
            for timed in reversed(matches[:limit])
        ]

    def _timed(self, match: Found) -> tuple[_Timed, int]:
        """A match as the answer tells it from others, and an event that starts when it starts."""
        if self._plan.source.begin is None:
            return (match[:3], 0), match.start
        time, first, event = match.begin
        return ((first, match.end, match.labels), time), event

    def _by_deadline(self, row: int, part: _Part, stretch: Stretch, end: int) -> list[_Listed]:
        """The matches that end at an event, each with its deadline, without those returned before.

        If matches with the same end belong together, or those with the same start and end, all of
        them must be decided first.
        """
        ways, together = self._ways_to_end(part, stretch, end), self._definition.joins_ends
        judged = {match: self._judged(row, part, match, ways[match]) for match in ways}
        if together and self._was_chosen(row, part, stretch, end):
            return []
        groups: dict[_Group, dict[_Timed, _Way]] = {}
        if together or self._by_start:
            for match, way in ways.items():
                groups.setdefault(self._group(match), {})[match] = way
        is_open = {
            number: not all(judged[match][1] for match in group) for number, group in groups.items()
        }
        latest: dict[_Group, _Latest] = {}
        if self._asks_for_latest:
            latest = {number: self._decided_last(part, group) for number, group in groups.items()}
        if self._definition.chooses:
            ways = self._chosen(ways, stretch, end)
            judged = {match: self._judged(row, part, match, ways[match]) for match in ways}
        elif not together:
            ways = {match: ways[match] for match in ways if not judged[match][2]}
        listed = []
        for match in sorted(ways, key=_by_latest_start):
            group = self._group(match)
            number = LEFT_OPEN if is_open.get(group) else judged[match][0]
            tags = self._tags(row, part, *match[0])
            listed.append((tags, number, ways[match].begin, latest.get(group, _AT_ITS_END)))
        return listed

    def _group(self, match: _Timed) -> _Group:
        """What matches with one end share if they belong together: their start, or nothing."""
        return (match[0][0], match[1]) if self._by_start else (0, 0)

    def _chosen(
        self, ways: Mapping[_Timed, _Way], stretch: Stretch, end: int
    ) -> dict[_Timed, _Way]:
        """The matches that SELECT chooses, as they look behind it, each with its deadlines.

        Matches that look alike are one, which is decided when the first of them is. Matches that
        are not chosen decide nothing.
        """
        chosen: dict[_Timed, _Way] = {}
        formula = self._definition.formula
        assert isinstance(formula, Relabelled)
        for match in formula.part.ending(stretch, end):
            timed, _ = self._timed(match)
            (first, last, labels), time = timed
            shown = (first, last, formula.relabelled(labels)), time
            begin, numbers = ways[timed]
            chosen.setdefault(shown, _Way(begin, [])).deadlines.extend(numbers)
        return chosen

    def _was_chosen(self, row: int, part: _Part, stretch: Stretch, end: int) -> bool:
        """Whether all matches that end at an event, and survived the events read then, were
        decided."""
        noted = self._noted

        def was_read(entry: int) -> bool:
            assert self.was_read is not None
            return self.was_read(int(noted.rows[entry - noted.entry]))

        if not was_read(part.entries[end]):
            return False
        # Events that were read before come before those that were not.
        count = bisect_left(part.entries, True, key=lambda entry: not was_read(entry))
        before = _Part()
        for column, found in zip(before.columns, part.columns, strict=True):
            column += found[:count]
        then = self._stretch(before, stretch.first, stretch.budget)
        then.whole = self._stretch(before, (stretch.whole or stretch).first, stretch.budget)
        ways = self._ways_to_end(before, then, end)
        return all(self._judged(row, part, match, ways[match])[2] for match in ways)

    def _ways_to_end(self, part: _Part, stretch: Stretch, end: int) -> dict[_Timed, _Way]:
        """The matches that end at an event, each with its deadlines."""
        found: dict[_Timed, _Way] = {}
        for way in self._definition.ways:
            number = NO_DEADLINE if way.deadline is None else way.deadline
            for match in way.formula.ending(stretch, end):
                timed, event = self._timed(match)
                found.setdefault(timed, _Way(part.entries[event], [])).deadlines.append(number)
        return found

    def _judged(self, row: int, part: _Part, timed: _Timed, way: _Way) -> tuple[int, bool, bool]:
        """(the deadline of a match that passes first, whether it has passed, whether it had
        before)."""
        assert self.judge is not None
        entries = way.begin, part.entries[timed[0][1]]
        judged = [(number, *self.judge(number, entries, row)) for number in way.deadlines]
        if len(judged) == 1:
            return judged[0]
        # Passed deadlines come first. Deadlines of one length from one event pass together.
        return min(judged, key=lambda one: (not one[2], not one[1], self._passes(one[0], entries)))

    def _passes(self, number: int, entries: tuple[int, int]) -> float:
        """A number that is greater for later deadlines on the same attribute."""
        if number == NO_DEADLINE:
            return -math.inf
        deadline = self._plan.choice.deadlines[number]
        window = self._plan.matching.local_windows[deadline.window]
        entry = entries[0] if deadline.from_start else entries[1]
        return float(self._history.value(deadline.window, entry) + window.size)

    def _decided_last(self, part: _Part, ways: Mapping[_Timed, _Way]) -> _Latest:
        found = []
        for ((_, end, _), _), way in ways.items():
            entries = way.begin, part.entries[end]
            time, number = min((self._passes(number, entries), number) for number in way.deadlines)
            found.append((time, entries[0], number))
        _, entry, number = max(found)
        return entry, number

    def latest(self, output: Output) -> tuple[np.ndarray, np.ndarray] | None:
        if not self._asks_for_latest or not self._definition.ways:
            return None
        found = np.array(self._latest, np.int64).reshape(-1, 2)
        self._latest = []
        return found[:, 0].copy(), found[:, 1].copy()

    def deadlines(self, output: Output) -> np.ndarray:
        if not self._definition.ways:
            return super().deadlines(output)
        found = np.array(self._numbers, np.int64)
        self._numbers = []
        return found

    def begins(self, output: Output, starts: np.ndarray) -> np.ndarray:
        if self._plan.source.begin is None:
            return starts
        found = np.array(self._begins, np.int64)
        self._begins = []
        return found

    def _stretch(self, part: _Part, first: int, budget: Budget) -> Stretch:
        remembered = self._history
        return Stretch(
            part.entries,
            part.symbols,
            part.positions,
            part.places,
            remembered.past,
            remembered.first,
            first,
            budget,
            times=part.times,
            begins=part.begins,
        )

    def _tags(
        self, row: int, part: _Part, start: int, end: int, labels: tuple[tuple[int, Labels], ...]
    ) -> list[int]:
        carried = dict(labels)
        events = sorted({start, end, *carried})
        return [
            row,
            *(
                part.entries[event] << self._plan.matching.kind_bits
                | self._kinds[carried.get(event, frozenset())]
                for event in events
            ),
        ]


def _by_latest_start(timed: _Timed) -> tuple[object, ...]:
    (start, _, labels), time = timed
    return -start, [(event, sorted(carried)) for event, carried in labels], -time
