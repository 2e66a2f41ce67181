"""A search for a stream on which two queries differ, over a small domain of events and times.

Streams are tried by their length, the short ones first, so that the example is easy to read. If a
length has few streams, the search tries all of them: then it also proves that there is none of this
length. If it has many, the search draws streams from random walks through the automaton of a query.
The automaton finds at least every match, so most of these streams hold one; streams of random
events seldom do. Many streams are one run of a query, each as a partition of its own, because a run
costs more than a stream.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, product
from time import monotonic
from typing import Any, NamedTuple

import pyarrow as pa
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.frozen import frozen

from celc.compare.conditions import MAX_REPEATED, asked_by
from celc.compare.events import Domain, domain_of
from celc.compare.results import Bound, Difference
from celc.compare.sides import Side, rows_by_stream, rows_of
from celc.compare.tables import Stream, Tables, parameter_tables
from celc.compare.times import Clocks, Pattern, clocks_of, patterns
from celc.compare.values import candidates
from celc.compare.words import shown_length, shown_values

MOST_STREAMS = 120_000  # of one length: with more, the length is searched at random
LONGEST = 8  # events of a stream, unless the caller says otherwise


class Stage(NamedTuple):
    """A step of the search: first random streams of each length, then all short streams."""

    drawn: int
    """The most random streams of each length; 0: none."""
    all_up_to: int
    """All streams of this number of events, and of fewer, are tried."""


STAGES = (Stage(250, 1), Stage(0, 2), Stage(1500, 3), Stage(8000, LONGEST))

SHORT_STEPS = 0.2  # the share of random streams in which no step of time is longer than a unit
MOST_BEFORE_ANOTHER = 50  # equal events; behind more of them no second event is tried
MOST_MISSES = 500  # draws that repeat a stream, after which a length counts as searched
MOST_TOGETHER = 2500  # streams in one run
MOST_ROWS = 200_000  # events in one run
MOST_REPEATED_TYPES = 40  # events of the domain that are tried as repeated ones
MOST_PARAMETER_ROWS = 60  # choices of one row from each parameter table


class OutOfTime(Exception):
    """The time for the comparison is over."""


@frozen
class Walk:
    """The moves of the automaton of one side, over the events of the domain."""

    after: tuple[tuple[frozenset[int], ...], ...]
    """`after[state][event]` are the states that the event leads to."""
    ends: tuple[tuple[bool, ...], ...]
    """`ends[state][event]`: whether the event ends a match."""


class Search:
    """The streams over which some queries are searched, and runs of the queries over them.

    sides: the queries; `differing` and `difference` want two. until: seconds of the monotonic
    clock, at which the search stops.
    """

    def __init__(self, sides: Sequence[Side], until: float) -> None:
        self.sides = tuple(sides)
        self.until = until
        asked = asked_by(stages for side in sides for stages in side.read)
        self.asked = asked
        spreads, ways = _spreads(sides)
        for name in ways:
            asked.clocks.pop(name, None)
        self.clocks: Clocks = clocks_of(asked)
        self.domain: Domain = domain_of(sides, asked, spreads)
        self.tables = [Tables(side, self.domain, self.clocks, ways) for side in sides]
        sets = {
            f"{stages.query.parameters.name}.{one.name}": one.type
            for side in sides
            for stages in side.read
            if stages.query.parameters is not None
            for one in stages.query.parameters.attributes
        }
        found = {name: candidates(name, type, asked) for name, type in sets.items()}
        self.parameters: dict[str, pa.Table] = parameter_tables(sides, found)
        self.tried = 0
        """The number of streams that both queries have answered."""
        self.complete = 0
        """All streams with up to this number of events have been tried."""
        self._walks = [_walk(side, number, sides, self.domain) for number, side in enumerate(sides)]
        self._chosen = random.Random(1)

    def is_over(self) -> bool:
        """Whether the time is over."""
        return monotonic() > self.until

    def bound(self, ended: str) -> Bound:
        """How far the search has come."""
        driver = self.clocks.driver
        times: tuple[str, ...] = ()
        if driver is not None:
            unit = self.clocks.units[driver]
            type = self.clocks.types[driver]
            steps = [unit, *self.clocks.lengths[driver]]
            times = tuple(shown_length(step, type) for step in steps)
        return Bound(self.complete, self.tried, shown_values(self.domain), times, ended)

    # --- streams ---

    def stream(self, letters: Sequence[int], pattern: Pattern, begin: int = 0) -> Stream:
        """The stream with these events.

        The clock whose steps matter goes as `pattern` says. All others go on by one unit from event
        to event. begin: which of the first times of a clock to take.
        """
        times = {}
        for name, begins in self.clocks.begins.items():
            start = begins[min(begin, len(begins) - 1)]
            if name == self.clocks.driver:
                times[name] = tuple(start + step for step in pattern)
            else:
                unit = self.clocks.units[name]
                times[name] = tuple(start + place * unit for place in range(len(letters)))
        return Stream(tuple(letters), times)

    def _patterns(self, count: int) -> list[Pattern]:
        driver = self.clocks.driver
        if driver is None:
            return [(0,) * count]
        return patterns(count, self.clocks.units[driver], self.clocks.lengths[driver])

    def _begins(self) -> int:
        return max(map(len, self.clocks.begins.values()), default=1)

    def all_streams(self, count: int) -> Iterator[Stream] | None:
        """All streams of `count` events, those with short steps of time first; None if there are
        more than MOST_STREAMS."""
        times = self._patterns(count)
        begins = range(self._begins())
        letters = range(len(self.domain.letters))
        if len(letters) ** count * len(times) * len(begins) > MOST_STREAMS:
            return None
        whole = product(begins, product(letters, repeat=count), times)
        return (self.stream(word, time, begin) for begin, word, time in whole)

    def walked(self, count: int) -> Iterator[Stream]:
        """Random streams of `count` events, no stream twice. Most of them hold a match."""
        chosen = self._chosen
        times = self._patterns(count)
        seen: set[Any] = set()
        misses = 0
        while misses < MOST_MISSES:
            walk = chosen.choice(self._walks)
            word = None if walk is None else _walked_word(walk, count, chosen)
            if word is None:
                word = tuple(chosen.randrange(len(self.domain.letters)) for _ in range(count))
            time = chosen.choice(times[:1] if chosen.random() < SHORT_STEPS else times)
            begin = chosen.randrange(self._begins())
            if (word, time, begin) in seen:
                misses += 1
                continue
            seen.add((word, time, begin))
            yield self.stream(word, time, begin)

    def repeated(self) -> Iterator[Stream]:
        """Streams in which one event is repeated, for numbers such as that of `COUNT(x) >= 12`.

        The event comes as often as the number says, once less, and once or twice more. Each such
        stream is tried alone, and with another event behind it.
        """
        counts = sorted(
            {more for one in self.asked.counts for more in (one - 1, one, one + 1, one + 2)}
        )
        driver = self.clocks.driver
        letters = [
            number
            for number, letter in enumerate(self.domain.letters)
            if any(symbol != 0 for symbol in letter.symbols)
        ][:MOST_REPEATED_TYPES]
        for count in counts:
            if not LONGEST < count <= MAX_REPEATED + 2:
                continue
            steps: Pattern = tuple(range(count + 1))
            if driver is not None:
                # All of these events have to lie in the shortest window.
                unit = self.clocks.units[driver]
                least = min(self.clocks.lengths[driver], default=unit * 10 * count)
                whole = isinstance(unit, int)
                step = min(unit, least // (2 * count) if whole else least / (2 * count))
                steps = tuple(place * step for place in range(count + 1))
            for letter in letters:
                yield self.stream([letter] * count, steps[:count])
                for other in letters if count <= MOST_BEFORE_ANOTHER else ():
                    if other != letter:
                        yield self.stream([*[letter] * count, other], steps)

    # --- runs ---

    def batches(self, streams: Iterable[Stream]) -> Iterator[list[Stream]]:
        """The streams in groups for one run each. Groups grow, so that the first answers come soon.
        Raises OutOfTime."""
        waiting = iter(streams)
        size = 50
        while batch := list(islice(waiting, size)):
            if self.is_over():
                raise OutOfTime
            yield batch
            rows = sum(len(one.letters) for one in batch) // len(batch)
            size = max(1, min(MOST_TOGETHER, size * 4, MOST_ROWS // max(rows, 1)))

    def answers(self, number: int, batch: list[Stream]) -> dict[int, Any]:
        """The rows of query `number` on each stream of a batch, by the place of the stream.

        A stream without rows is absent. One on which the query stops with an error has None, and
        shows no difference; such streams are found by halving the batch.
        """
        try:
            table = self.sides[number].over_streams.rows(
                self.tables[number].of(batch), self.parameters
            )
        except EventError:
            if len(batch) == 1:
                return {0: None}
            half = len(batch) // 2
            first = self.answers(number, batch[:half])
            second = self.answers(number, batch[half:])
            return first | {half + place: rows for place, rows in second.items()}
        return rows_by_stream(table)

    def differing(self, batch: list[Stream]) -> Iterator[Stream]:
        """The streams of a batch for which the answers of both queries differ."""
        self.tried += len(batch)
        old, new = (self.answers(number, batch) for number in (0, 1))
        for place in sorted({*old, *new}):
            one, other = old.get(place, {}), new.get(place, {})
            if one is not None and other is not None and one != other:
                yield batch[place]

    def difference(self, stream: Stream) -> Difference | None:
        """The answers of both queries to one stream, if they differ; else None. Here each query is
        run as it is, and not in the form that runs over many streams at once."""
        events = [table.of([stream], numbered=False) for table in self.tables]
        for parameters in (*self._single_rows(), self.parameters):
            try:
                old, new = (
                    side.alone.rows(table, parameters)
                    for side, table in zip(self.sides, events, strict=True)
                )
            except EventError:
                continue
            if rows_of(old) != rows_of(new):
                return Difference(events[0], old, new, parameters)
        return None

    def _single_rows(self) -> Iterator[dict[str, pa.Table]]:
        """The parameter tables with one row each."""
        if not self.parameters:
            return
        most = MOST_PARAMETER_ROWS
        for places in islice(product(*(range(len(t)) for t in self.parameters.values())), most):
            yield {
                name: table.slice(place, 1)
                for place, (name, table) in zip(places, self.parameters.items(), strict=True)
            }

    # --- the search ---

    def found(
        self, streams: Iterable[Stream], shows: Callable[[list[Stream]], Iterator[Stream]]
    ) -> Iterator[Stream]:
        """Those of the streams that `shows` returns: it is given a batch, and returns the streams
        of it that show what is searched. Raises OutOfTime."""
        for batch in self.batches(streams):
            yield from shows(batch)

    def in_stages(
        self, shows: Callable[[list[Stream]], Iterator[Stream]], longest: int
    ) -> Iterator[Stream]:
        """The streams that show what is searched, in the order of STAGES. Raises OutOfTime."""
        for drawn, all_up_to in STAGES:
            for count in range(self.complete + 1, longest + 1 if drawn else 0):
                yield from self.found(islice(self.walked(count), drawn), shows)
            yield from self.all_shorter(shows, min(all_up_to, longest) + 1)
            if not drawn:
                yield from self.found(self.repeated(), shows)

    def all_shorter(
        self, shows: Callable[[list[Stream]], Iterator[Stream]], length: int
    ) -> Iterator[Stream]:
        """The streams of fewer than `length` events that show what is searched, by their length.

        Stops at the first length with too many streams; `complete` is then the length before it.
        Raises OutOfTime.
        """
        for count in range(self.complete + 1, length):
            streams = self.all_streams(count)
            if streams is None:
                return
            yield from self.found(streams, shows)
            self.complete = count

    def shrunk(
        self,
        stream: Stream,
        difference: Difference,
        shown: Callable[[Stream], Difference | None],
    ) -> Difference:
        """The difference on a stream that is as small as one can make it by taking out one event
        after another. shown: the difference on a stream, or None."""
        place = 0
        while place < len(stream.letters) and len(stream.letters) > 1:
            less = stream.without(place)
            found = None if self.is_over() else shown(less)
            if found is None:
                place += 1
            else:
                stream, difference = less, found
        return difference


def _spreads(
    sides: Sequence[Side],
) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[str, int]]]:
    """The attributes that lie a distance from a clock: the end of an uncertain time, and the start
    of an event that lasts. They are given (the distances to try by attribute; by attribute the
    clock, and 1 if the attribute is later than it, else −1)."""
    values: dict[str, tuple[int, ...]] = {}
    ways: dict[str, tuple[str, int]] = {}
    for side in sides:
        for stages in side.read:
            query = stages.query
            if query.uncertain is not None:
                low, high, step = query.uncertain.low, query.uncertain.high, query.uncertain.step
                values[high.name] = (0, step, 2 * step)
                ways[high.name] = (low.name, 1)
            elif query.begin is not None and not query.reads:
                unit = 1 if query.begin.type.is_numeric else 1_000_000
                values[query.begin.name] = (0, unit, 3 * unit)
                ways[query.begin.name] = (query.order_by[0].name, -1)
    return values, ways


def _walk(side: Side, number: int, sides: Sequence[Side], domain: Domain) -> Walk | None:
    """The moves of the automaton of a side over the domain; None if it reads more of an event than
    its symbol, or if an event of the domain has none."""
    stages = side.stages
    letters = stages.automaton.letters
    place = sum(len(one.read) for one in sides[:number])
    symbols = [letter.symbols[place] for letter in domain.letters]
    plain = letters.machine.contexts == 1 and letters.symbols == letters.classes
    if not plain or None in symbols:
        return None
    automaton = stages.minimal
    after, ends = [], []
    for rows in automaton.moves:
        moves = [rows[automaton.class_of[symbol]] for symbol in symbols if symbol is not None]
        after.append(
            tuple(frozenset(m.target for m in row if m.target is not None) for row in moves)
        )
        ends.append(tuple(any(move.accepts for move in row) for row in moves))
    return Walk(tuple(after), tuple(ends))


def _walked_word(walk: Walk, count: int, chosen: random.Random) -> tuple[int, ...] | None:
    """The numbers of `count` events that hold a match; None if no match has this length.

    In half of the cases one or two of the events are random ones, before, inside or after it.
    """
    word: list[int] = []
    extra = chosen.choice((0, 0, 0, 1, 1, 2))
    extra = min(extra, count - 1)
    states = frozenset({0})
    for place in range(count - extra):
        last = place == count - extra - 1
        ways = [
            letter
            for letter in range(len(walk.ends[0]))
            if any(
                walk.ends[state][letter] if last else walk.after[state][letter] for state in states
            )
        ]
        if not ways:
            return None
        letter = chosen.choice(ways)
        word.append(letter)
        states = frozenset(chain.from_iterable(walk.after[state][letter] for state in states))
    for _ in range(extra):
        word.insert(chosen.randrange(len(word) + 1), chosen.randrange(len(walk.ends[0])))
    return tuple(word)
