"""The shortest stream on which two queries differ, or a proof that there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from time import monotonic

from celc.compare.product import Pair, TooManyStates, Word, differences
from celc.compare.proof import (
    Automata,
    automata_of,
    same_form,
    why_not_automata,
    why_not_equal_clauses,
)
from celc.compare.results import Difference, Equal, Unknown
from celc.compare.search import LONGEST, OutOfTime, Search
from celc.compare.sides import Side
from celc.compare.tables import Stream
from celc.compare.times import Clocks
from celc.diagnostics.source import Source
from celc.options import Options

MOST_WORDS = 60  # differences of the automata that are tried, where clauses may hide some

PROVED = "their automata have the same matches, and their clauses are equal"

CONFIRMING = 0.25
"""The part of the time in which a shorter difference than the first one is looked for."""

_DEFAULTS = Options()


def shortest_difference(
    old: Source | Side,
    new: Source | Side,
    *,
    options: Options = _DEFAULTS,
    query: str | None = None,
    deadline: float | None = 20.0,
    longest: int = LONGEST,
    accepts: Callable[[Difference], bool] = lambda _: True,
) -> Difference | Equal | Unknown:
    """The shortest stream on which two queries differ, or that there is none, or that none was
    found.

    old, new: the texts, or a `Side` of each, which keeps what was compiled for other comparisons.
    options: those of the compilation of texts; both are asked with `at_end="closed"`. query: the
    name of the query in texts with several. deadline: seconds after which the search ends (None: it
    ends by itself). longest: streams of up to so many events are searched. accepts: which
    differences count.

    `Equal` is proved. A `Difference` has been run by both queries. Raises CelError with the errors
    of a text, ValueError where `query` names none.
    """
    until = monotonic() + (deadline if deadline is not None else 1e9)
    one, other = (
        side if isinstance(side, Side) else Side(side, options, query=query) for side in (old, new)
    )
    if same_form(one, other):
        return Equal("both are the same formula with the same clauses")
    return _Comparison(one, other, until, longest, accepts).found()


class _Comparison:
    def __init__(
        self,
        old: Side,
        new: Side,
        until: float,
        longest: int,
        accepts: Callable[[Difference], bool],
    ) -> None:
        self._sides = (old, new)
        self._accepts = accepts
        self._until, self._longest = until, longest
        self._why = why_not_automata(old, new)
        self._automata: Automata | None = None
        if self._why is None:
            self._automata = automata_of(old, new)
            if self._automata is None:
                self._why = "conditions on one event type are too many"
        self._other = why_not_equal_clauses(old, new) if self._why is None else None

    def found(self) -> Difference | Equal | Unknown:
        least: int | None = None
        """The length of the shortest stream on which the automata differ."""
        if self._automata is not None:
            try:
                word = next(self._words(self._automata), None)
            except TooManyStates:
                self._why = "the product of their automata is too large"
                self._automata = None
            else:
                if word is None and self._other is None:
                    return Equal(PROVED)
                if self._other is not None and self._match_nothing(self._automata):
                    return Equal("neither of them has a match")
                least = None if word is None else len(word.pairs)
        search = Search(self._sides, self._until)
        if least is not None and search.domain.is_exact:
            # There may be no event with two symbols that a test of conditions takes for possible.
            least = self._least_of(search)
            if least is None and self._other is None:
                return Equal(PROVED)
        begun = monotonic()
        first = None if least is None else self._by_automata(search)
        proved = least if self._other is None else 1
        if first is not None and len(first.events) == proved:
            return replace(first, shortest=True)
        ended = "all streams of the domain that are few enough were tried, and some of the others"
        try:
            first = first or self._walked(search)
            length = self._longest + 1
            if first is not None:
                # To find a shorter one, or that there is none, is worth a part of the time.
                length = len(first.events)
                search.until = min(self._until, monotonic() + (self._until - begun) * CONFIRMING)
            shorter = self._verified(search, search.all_shorter(search.differing, length))
            if shorter is not None:
                return replace(shorter, shortest=True, bound=search.bound("a difference was found"))
        except OutOfTime:
            ended = "the time was over"
        bound = search.bound(ended if first is None else "a difference was found")
        if first is not None:
            complete = search.complete >= len(first.events) - 1
            return replace(first, shortest=complete, bound=bound)
        why = self._why or self._other
        if why is None:
            why = "their automata differ, but no event is known that shows it, or clauses hide it"
        return Unknown(bound, why)

    def _match_nothing(self, automata: Automata) -> bool:
        """Whether both automata have no match. Raises TooManyStates."""
        old, new = automata.machines
        alone = ((old, new.without_matches), (old.without_matches, new))
        return all(
            next(self._words(replace(automata, machines=machines)), None) is None
            for machines in alone
        )

    def _words(self, automata: Automata) -> Iterator[Word]:
        return differences(
            automata.machines, automata.pairs, automata.windows, lambda: monotonic() > self._until
        )

    def _realised(self, search: Search) -> tuple[dict[Pair, int], Automata]:
        """An event of the domain for each pair of symbols, and the automata with these pairs."""
        assert self._automata is not None
        place = len(self._sides[0].read)
        letter_of: dict[Pair, int] = {}
        for number, letter in enumerate(search.domain.letters):
            one, other = letter.symbols[0], letter.symbols[place]
            if one is not None and other is not None:
                letter_of.setdefault((one, other), number)
        pairs = tuple(pair for pair in self._automata.pairs if pair in letter_of)
        return letter_of, replace(self._automata, pairs=pairs)

    def _least_of(self, search: Search) -> int | None:
        """The length of the shortest stream of events that there are on which the automata
        differ."""
        try:
            word = next(self._words(self._realised(search)[1]), None)
        except TooManyStates:
            return 0
        return None if word is None else len(word.pairs)

    def _by_automata(self, search: Search) -> Difference | None:
        """A difference of the automata that both queries show."""
        assert self._automata is not None
        letter_of, kept = self._realised(search)
        try:
            for word in islice(self._words(kept), MOST_WORDS):
                letters = [letter_of[pair] for pair in word.pairs]
                times = _times_of(word, self._automata, search.clocks)
                found = self._shown(search, Stream(tuple(letters), times))
                if found is not None:
                    return found
        except TooManyStates:
            pass
        return None

    def _shown(self, search: Search, stream: Stream) -> Difference | None:
        """The difference that the queries as they are show in a stream, if it counts."""
        found = search.difference(stream)
        return found if found is not None and self._accepts(found) else None

    def _walked(self, search: Search) -> Difference | None:
        """A difference that random streams show, without events that it does not need."""
        for stream in search.in_stages(search.differing, self._longest):
            found = self._shown(search, stream)
            if found is not None:
                return search.shrunk(stream, found, lambda less: self._shown(search, less))
        return None

    def _verified(self, search: Search, streams: Iterator[Stream]) -> Difference | None:
        """The first stream that the queries as they are tell apart as well."""
        return next(filter(None, (self._shown(search, stream) for stream in streams)), None)


def _times_of(word: Word, automata: Automata, clocks: Clocks) -> dict[str, tuple[int | float, ...]]:
    """Times for a stream of the product."""
    count = len(word.pairs)
    found: dict[str, tuple[int | float, ...]] = {}
    sizes_of = dict(automata.windows.clocks)
    names = [name for name, _ in automata.windows.clocks]
    for name, begins in clocks.begins.items():
        unit, begin = clocks.units[name], begins[0]
        if name not in sizes_of:
            found[name] = tuple(begin + place * unit for place in range(count))
            continue
        ranges = [one[names.index(name)] for one in word.ranges]
        passed = _passed(ranges, sizes_of[name], unit)
        before = [begin - (word.start - place) * unit for place in range(word.start)]
        found[name] = (*before, *(begin + step for step in passed))
    return found


def _passed(
    ranges: list[int], sizes: tuple[int | float, ...], unit: int | float
) -> list[int | float]:
    """The times since the start that lie in these ranges: in the first as small as they can be,
    then as large as they can be."""
    found: list[int | float] = []
    for place, now in enumerate(ranges):
        later = sum(1 for one in ranges[place + 1 :] if one == now)
        low = sizes[now - 1] if now else 0
        high = sizes[now] if now < len(sizes) else low + unit * (later + 1)
        if now == 0:
            inside = ranges.count(0)
            step = unit if (inside - 1) * unit <= high else 0
            found.append(place * step)
            continue
        wanted = high - later * unit
        found.append(wanted if wanted > low else high)
    return found
