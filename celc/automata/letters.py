"""Letters, which automata read. A letter is a symbol class together with the context of an event.

A nested selector compares a match with others that may begin anywhere before it. So whether a match
may begin at an event depends on the stream before. The *context* is all that matters of that past:
the state of a deterministic machine that reads every event of the stream from the first one on.
Context machines are products of one machine for each selector. Without selectors there is one
context, and a letter is a symbol.

Where events of one instant are simultaneous, a letter also says which place of its instant an event
has (`Place`). Then there are four symbols for each class of events, and no contexts.

Sets of letters are bit sets in Python integers: bit `context · symbols + symbol`.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.automata.predicates import Alphabet
from celc.core.bits import bits_of
from celc.core.formula import EventType
from celc.normal.normal_form import EventClause

Mask: TypeAlias = int


class Place(IntEnum):
    """The place of an event in its instant. ALONE: it is the instant's only event."""

    ALONE = 0
    FIRST = 1
    BETWEEN = 2
    LAST = 3


@frozen
class ContextMachine:
    """A machine over the symbols, or over the letters of another context machine. Context 0 is the
    first."""

    following: tuple[tuple[int, ...], ...]  # `[context][letter below]`: the context after an event

    @property
    def contexts(self) -> int:
        return len(self.following)


class Letters:
    """The letters of an alphabet, in versions. Each nested selector refines the contexts.

    A mask belongs to the version in which it was made; `lift` converts it to the newest. With
    `simultaneous`, symbol `place · classes + class` is an event of a class in a place of its
    instant.
    """

    def __init__(self, alphabet: Alphabet, *, simultaneous: bool = False) -> None:
        self.alphabet = alphabet
        self.classes = len(alphabet.symbols)
        self.symbols = self.classes * (len(Place) if simultaneous else 1)
        self._machines = [ContextMachine(((0,) * self.symbols,))]
        self._parents: list[tuple[int, ...]] = [(0,)]

    @property
    def version(self) -> int:
        return len(self._machines) - 1

    @property
    def machine(self) -> ContextMachine:
        """The contexts of the newest version, over symbols."""
        return self._machines[-1]

    @property
    def count(self) -> int:
        return self.machine.contexts * self.symbols

    @property
    def all(self) -> Mask:
        return (1 << self.count) - 1

    def matching(self, event_type: EventType, clauses: Sequence[EventClause]) -> Mask:
        """The letters, in any context, of events of a type that satisfy all of the clauses."""
        mask = sum(1 << symbol for symbol in self.alphabet.matching(event_type, clauses))
        places = range(0, self.symbols, self.classes)
        return self.lift(sum(mask << place for place in places), 0)

    def at(self, place: Place) -> Mask:
        """The letters of events in a place of their instants."""
        assert self.symbols == self.classes * len(Place), "without instants there are no places"
        return self.lift((1 << self.classes) - 1 << place * self.classes, 0)

    def lift(self, mask: Mask, version: int) -> Mask:
        """The letters of the newest version for the letters of `mask` in an older version."""
        row = (1 << self.symbols) - 1
        for newer in range(version + 1, len(self._machines)):
            mask = sum(
                (mask >> parent * self.symbols & row) << context * self.symbols
                for context, parent in enumerate(self._parents[newer])
            )
        return mask

    def refine(self, tracker: Sequence[Sequence[tuple[Mask, int]]]) -> list[list[int]]:
        """Make a new version, whose contexts also distinguish the states of a tracker.

        The tracker begins in state 0. `tracker[state]` are disjoint masks of this version, each
        with the next state. Returns the new contexts: `found[state]` is a list over old contexts,
        −1 where the two never meet.
        """
        old = self.machine
        following_of = _tables(tracker, self.count)
        order = [(0, 0)]
        number = {(0, 0): 0}
        rows: list[tuple[int, ...]] = []
        for context, state in order:
            row = []
            for symbol in range(self.symbols):
                after = (
                    old.following[context][symbol],
                    following_of[state][context * self.symbols + symbol],
                )
                if after not in number:
                    number[after] = len(order)
                    order.append(after)
                row.append(number[after])
            rows.append(tuple(row))
        self._machines.append(ContextMachine(tuple(rows)))
        self._parents.append(tuple(context for context, _ in order))
        return [
            [number.get((context, state), -1) for context in range(old.contexts)]
            for state in range(len(tracker))
        ]


def machine_over(tracker: Sequence[Sequence[tuple[Mask, int]]], letters: int) -> ContextMachine:
    """A tracker as a machine over letters."""
    return ContextMachine(tuple(map(tuple, _tables(tracker, letters))))


def _tables(tracker: Sequence[Sequence[tuple[Mask, int]]], letters: int) -> list[list[int]]:
    rows = []
    for moves in tracker:
        row = [0] * letters
        for mask, following in moves:
            for letter in bits_of(mask):
                row[letter] = following
        rows.append(row)
    return rows


def partition(masks: Iterable[Mask], everything: Mask) -> list[Mask]:
    """The coarsest partition of `everything` that separates the masks, in order of first bit."""
    blocks = [everything] if everything else []
    for mask in dict.fromkeys(masks):
        refined = []
        for block in blocks:
            inside = block & mask
            if inside and inside != block:
                refined += [inside, block ^ inside]
            else:
                refined.append(block)
        blocks = refined
    return sorted(blocks, key=lambda block: block & -block)
