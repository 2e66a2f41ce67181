"""The matches of an automaton over a string of symbols, found by following its moves.

Expected answers of listings: nothing here knows of piles, arenas or walks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from celc_runtime.plan.frozen import frozen

from celc.automata.determinize import START, DeterministicAutomaton
from celc.automata.letters import ContextMachine


class TooManyMatchesError(Exception):
    """A string has more matches than are worth comparing."""


@frozen
class Path:
    """A run of the automaton from the first event of a match to its last: the marks of each event,
    by its row. Events that pass unmarked are left out, but for the first and the last."""

    events: tuple[tuple[int, tuple[str, ...]], ...]

    @property
    def start(self) -> int:
        return self.events[0][0]

    @property
    def end(self) -> int:
        return self.events[-1][0]

    def labels(self, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """The rows of the events under each label."""
        return {name: tuple(row for row, marks in self.events if name in marks) for name in names}

    @property
    def sets(self) -> Mapping[str, tuple[int, ...]]:
        """The rows of the events under each mark."""
        marks = {mark for _, of_event in self.events for mark in of_event}
        return self.labels(sorted(marks))


def matches_by_end(
    automaton: DeterministicAutomaton,
    machine: ContextMachine,
    symbols: Sequence[int],
    keys: Sequence[float],
    size: float | None,
    *,
    consumes: Callable[[Sequence[Path]], bool],
    most: int,
) -> Iterator[tuple[int, list[Path]]]:
    """The matches that end at each row at which some end. `symbols` are letters without their
    contexts, `keys` what the window of `size` is measured on; None: there is no window.

    consumes: whether these matches make the stream begin again behind their end. Raises
    TooManyMatchesError for more than `most` partial matches.
    """
    context, letters = 0, len(machine.following[0])
    partial: list[tuple[int, tuple[tuple[int, tuple[str, ...]], ...]]] = []
    for row, symbol in enumerate(symbols):
        letter = automaton.class_of[context * letters + symbol]
        context = machine.following[context][symbol]
        found: list[Path] = []
        after: list[tuple[int, tuple[tuple[int, tuple[str, ...]], ...]]] = []
        for state, events in (*partial, (int(START), ())):
            if events and size is not None and keys[row] - keys[events[0][0]] > size:
                continue
            for move in automaton.moves[state][letter]:
                taken = (*events, (row, move.marks))
                if move.accepts:
                    found.append(Path(taken))
                if move.target is not None:
                    passes = not move.marks and state != START
                    after.append((int(move.target), events if passes else taken))
        partial = after
        if len(partial) + len(found) > most:
            raise TooManyMatchesError
        if found:
            yield row, found
            if consumes(found):
                partial, context = [], 0


# --- selectors ------------------------------------------------------------------------------------


def chosen(strategy: str, matches: Sequence[Path], names: frozenset[str]) -> list[Path]:
    """The matches of one end that a selector prefers, by the rows that have one of some labels.

    MAX: no other is a superset. NXT and LAST: of the rows in which two differ, the earliest (the
    latest) is of the preferred one.
    """
    supports = [
        frozenset(row for row, marks in one.events if names.intersection(marks)) for one in matches
    ]
    others = {*supports}
    return [
        one
        for one, own in zip(matches, supports, strict=True)
        if not any(_is_preferred(strategy, other, own) for other in others)
    ]


def _is_preferred(strategy: str, one: frozenset[int], other: frozenset[int]) -> bool:
    if one == other:
        return False
    match strategy:
        case "MAX":
            return one > other
        case "NXT":
            return min(one ^ other) in one
        case "LAST":
            return max(one ^ other) in one
        case _:
            return False
