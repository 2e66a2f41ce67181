"""Two machines have the same matches, each as often: an exploration of their product.

A match has one run in the automaton. The machine of an update may keep it in several places at
once, for example in two piles. So a state of the product is a state of the automaton with the set
of places in which the machine keeps the same partial match. Equal are the two if each accepts
exactly where the other does, and nothing comes twice. The exploration is finite, and holds for
streams of any length.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Final, TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.automata.determinize import START, DeterministicAutomaton
from celc.core.formula import ROLE

BEGIN: Final = "start"
"""The place of a match of which no event has been read."""

Place: TypeAlias = Hashable

Moves: TypeAlias = Mapping[Place, Sequence[tuple[tuple[str, ...], Place | None]]]
"""From a place: how the event is marked, and the next place; None: a match ends."""


@frozen
class Machine:
    """What an update does, by the symbol of an event. Marks `()` are of events that pass."""

    moves: tuple[Moves, ...]


@frozen
class Difference:
    """A partial match of which two machines know different things."""

    word: tuple[tuple[int, tuple[str, ...]], ...]  # (symbol, marks) of each event from its first
    what: str


def difference(
    automaton: DeterministicAutomaton,
    symbol_of: Sequence[int],
    machine: Machine,
    *,
    consumes: bool,
    lost: Set[tuple[int, int]] = frozenset(),
) -> Difference | None:
    """A shortest partial match at which the automaton and the machine differ; None: there is none.

    The automaton has one context. `symbol_of` are the symbols of its letters. consumes: a match
    makes both forget what goes on with the same event. lost: states with symbols, whose events
    take away what passes them by a key.
    """
    letters = {symbol: letter for letter, symbol in reversed([*enumerate(symbol_of)])}
    first: tuple[int | None, frozenset[Place]] = (START, frozenset([BEGIN]))
    words: dict[tuple[int | None, frozenset[Place]], tuple[tuple[int, tuple[str, ...]], ...]] = {
        first: ()
    }
    order = [first]
    for pair in order:
        state, places = pair
        for symbol in range(len(machine.moves)):
            if symbol not in letters:
                continue
            wanted = _wanted(automaton, state, automaton.class_of[letters[symbol]])
            if (state, symbol) in lost:
                wanted.pop((), None)
            found = _found(machine.moves[symbol], places)
            ends = any(None in targets for targets in (*wanted.values(), *found.values()))
            for marks in sorted({*wanted, *found}):
                ours, theirs = wanted.get(marks, []), found.get(marks, [])
                word = (*words[pair], (symbol, marks))
                if (None in ours) != (None in theirs):
                    ended, other = "automaton", "code"
                    if None in theirs:
                        ended, other = other, ended
                    return Difference(word, f"a match ends for the {ended}, not for the {other}")
                if theirs.count(None) > 1:
                    return Difference(word, "the code finds the match twice")
                if consumes and ends:
                    continue  # both forget what goes on
                on = [place for place in theirs if place is not None]
                if len(on) != len({*on}):
                    return Difference(word, "the code keeps the partial match twice in one place")
                (target,) = [one for one in ours if one is not None] or [None]
                assert target is None or isinstance(target, int)
                after = target, frozenset(on)
                if after not in words and (target is not None or on):
                    words[after] = word
                    order.append(after)
    return None


def _wanted(
    automaton: DeterministicAutomaton, state: int | None, letter: int
) -> dict[tuple[str, ...], list[Place | None]]:
    found: dict[tuple[str, ...], list[Place | None]] = {}
    for move in () if state is None else automaton.moves[state][letter]:
        if move.accepts:
            found.setdefault(move.marks, []).append(None)
        if move.target is not None:
            found.setdefault(move.marks, []).append(int(move.target))
    return found


def _found(moves: Moves, places: frozenset[Place]) -> dict[tuple[str, ...], list[Place | None]]:
    found: dict[tuple[str, ...], list[Place | None]] = {}
    for place in sorted(places, key=repr):
        for marks, target in moves.get(place, ()):
            found.setdefault(marks, []).append(target)
    return found


def marks_text(marks: Sequence[str]) -> str:
    """Marks as a person reads them; roles stand without the sign that tells them from labels."""
    return f"{{{', '.join(mark.removeprefix(ROLE) for mark in marks)}}}"
