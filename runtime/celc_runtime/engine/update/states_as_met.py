"""The states of a deterministic automaton, made when a run meets them (Theorem 5 of the CEL paper).

A state is a set of states of a nondeterministic automaton, as a number with a bit for each. The
kernel follows tables of the usual form. Where it meets a pair of a state and a symbol that nobody
has asked for, it stops before the event, and the pair is written here. Partial matches never name a
state, only the lists do. So when the tables are full, all states are forgotten but those that have
a list now, as in the lazy automata of RE2: a stream meets as many states as it likes, in bounded
memory, and a restart begins with no states and makes those that it meets.
"""

from __future__ import annotations

import numpy as np

from celc_runtime.engine.update.union_lists import UNKNOWN, Lists, new_lists
from celc_runtime.plan.transitions import TransitionArrays

MOST_BYTES = 1 << 28  # of the tables and lists of all states that are kept

_FIRST_ROOM = 64  # states
_OF_A_SET = 200  # bytes of a set and its number in Python


class TooManyStates(Exception):
    """More states are in use at one event than `MOST_BYTES` can hold."""


class StatesAsMet:
    """The states that a run has met. `tables` are those to follow, with `room` for more states."""

    def __init__(self, found: TransitionArrays, passing: int, most_bytes: int = MOST_BYTES) -> None:
        """found: the tables of the nondeterministic automaton; passing: the kind of its moves on
        events that are passed."""
        symbols = len(found.idle)
        self._passing = passing
        self._symbols, self._given = symbols, found
        self._starts = [
            _by_kind(found.start_moves[begin:end])
            for begin, end in zip(found.start_first[:-1], found.start_first[1:], strict=True)
        ]
        kinds = (
            {kind for state in range(len(found.skip)) for kind, _, _ in self._of(state, symbol)}
            for symbol in range(symbols)
        )
        self._width = max(map(len, kinds), default=0)
        each = symbols * (16 + 24 * self._width) + _OF_A_SET + 2 * (16 + 8 * 4)
        self._most = most_bytes // each // 2  # tables are doubled
        self._sets: list[int] = []
        self._numbers: dict[int, int] = {}
        self.room = 0
        self.tables = found
        self._begin()

    def _of(self, state: int, symbol: int) -> np.ndarray:
        """The moves of a state of the given tables."""
        at = state * self._symbols + symbol
        return self._given.moves[self._given.move_first[at] : self._given.move_first[at + 1]]

    def _begin(self) -> None:
        """Empty tables, in which only the states where matches begin are numbered."""
        self._sets, self._numbers, self.room = [], {}, 0
        self._widen(_FIRST_ROOM)
        starts = [
            [(kind, ends, self._number(targets)) for kind, (ends, targets) in row.items()]
            for row in self._starts
        ]
        counts = [len(row) for row in starts]
        self.tables = self.tables._replace(
            start_first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            start_moves=np.array([one for row in starts for one in row], np.int64).reshape(-1, 3),
        )

    def _widen(self, room: int) -> None:
        if room > max(2 * self._most, 2 * _FIRST_ROOM):
            raise TooManyStates(len(self._sets))
        old, more = self.tables, room - self.room
        pairs = more * self._symbols
        skip = np.full((more, self._symbols), UNKNOWN, np.int64)
        moves = np.tile(np.array([0, 0, -1], np.int64), (pairs * self._width, 1))
        if self.room:
            skip = np.concatenate([old.skip, skip])
            moves = np.concatenate([old.moves, moves])
        first = np.arange(room * self._symbols + 1, dtype=np.int64) * self._width
        self.room = room
        self.tables = old._replace(skip=skip, moves=moves, move_first=first)

    def _number(self, targets: int) -> int:
        """The number of a set; −1 of the empty one."""
        if not targets:
            return -1
        number = self._numbers.setdefault(targets, len(self._sets))
        if number == len(self._sets):
            self._sets.append(targets)
            if number == self.room:
                self._widen(2 * self.room)
        return number

    def meet(self, lists: Lists, active: list[int], symbol: int) -> Lists:
        """Find where active states go with a symbol; returns the lists with room for all states.

        If there are too many states, forgets all that have no list. The lists have one slot. Raises
        TooManyStates.
        """
        wanted = len(active) * (self._width + 1)
        if len(self._sets) + wanted > self._most:
            kept = [self._sets[state] for state in active]
            self._begin()
            numbers = [self._number(one) for one in kept]
            lists = self._moved(lists, active, numbers)
            active = numbers
        for state in active:
            if self.tables.skip[state, symbol] == UNKNOWN:
                self._write(state, symbol)
        return self._moved(lists, active, active) if self.room > lists.order.shape[1] else lists

    def _write(self, state: int, symbol: int) -> None:
        by_kind: dict[int, tuple[int, int]] = {}
        passed, rest = 0, self._sets[state]
        while rest:
            one = (rest & -rest).bit_length() - 1
            rest &= rest - 1
            for kind, (ends, targets) in _by_kind(self._of(one, symbol)).items():
                if kind == self._passing:
                    passed, targets = passed | targets, 0
                if ends or targets:
                    known = by_kind.get(kind, (0, 0))
                    by_kind[kind] = (known[0] | ends, known[1] | targets)
            after = int(self._given.skip[one, symbol])
            passed |= 1 << after if after >= 0 else 0
        at = (state * self._symbols + symbol) * self._width
        found = [(kind, ends, self._number(to)) for kind, (ends, to) in sorted(by_kind.items())]
        target = self._number(passed)
        for place, move in enumerate(found):
            self.tables.moves[at + place] = move
        self.tables.skip[state, symbol] = target

    def _moved(self, lists: Lists, before: list[int], after: list[int]) -> Lists:
        """The lists of states with new numbers, with room for all states."""
        made = new_lists(self.room, room=lists.items.shape[2])
        made.clock[:], made.context[:] = lists.clock, lists.context
        made.active[0] = len(after)
        made.order[0, : len(after)] = after
        made.length[0, after] = lists.length[0, before]
        made.items[0, after] = lists.items[0, before]
        return made


def _by_kind(moves: np.ndarray) -> dict[int, tuple[int, int]]:
    """For each kind whether a match ends, and the set of targets."""
    found: dict[int, tuple[int, int]] = {}
    for kind, ends, target in moves.tolist():
        known = found.get(kind, (0, 0))
        found[kind] = (known[0] | ends, known[1] | (1 << target if target >= 0 else 0))
    return found
