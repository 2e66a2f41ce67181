"""Automata with marks in one simple shape, and whether two of them have the same language.

A word is a match: for each event from the first to the last a letter, and the marks that it gets.
Languages are compared by sets of states met together (Hopcroft and Karp, with classes merged), over
blocks of letters that neither side tells apart. So equality is exact, and a difference is a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.automata.automaton import Automaton, EventPredicate
from celc.automata.determinize import DeterministicAutomaton

ACCEPT = -1
"""The target of an edge that ends a match. State 0 is the beginning; no edge enters it."""

MOST_PAIRS = 60_000  # pairs of sets that are met, about ten seconds

Marks: TypeAlias = frozenset[str]


class Edge(NamedTuple):
    """Read a letter of the bit set, mark the event, go on."""

    mask: int
    marks: Marks
    target: int


@frozen
class Machine:
    """A nondeterministic automaton: `edges[state]`. Letters are 0 … `letters` − 1."""

    letters: int
    edges: tuple[tuple[Edge, ...], ...]


class TooManyStatesError(Exception):
    """The comparison takes too many steps."""


Word: TypeAlias = tuple[tuple[int, Marks], ...]


def of_automaton(automaton: Automaton) -> Machine:
    """The machine of a nondeterministic automaton."""
    edges: list[list[Edge]] = [[] for _ in range(automaton.states)]
    number = {int(automaton.initial): 0}
    for state in range(automaton.states):
        number.setdefault(state, len(number))
    for one in automaton.transitions:
        target = ACCEPT if one.target == automaton.final else number[one.target]
        mask = _letters_of(automaton, one.predicate) if _is_plain(automaton) else None
        mask = automaton.mask(one) if mask is None else mask
        edges[number[one.source]].append(Edge(mask, frozenset(one.marks), target))
    return Machine(automaton.letters.count, tuple(map(tuple, edges)))


def _is_plain(automaton: Automaton) -> bool:
    """Whether a letter is a symbol, without the context or the place of an event."""
    return automaton.letters.count == len(automaton.letters.alphabet.symbols)


def _letters_of(automaton: Automaton, predicate: object) -> int | None:
    """The symbols that satisfy a predicate, read off the alphabet; None for sets of letters."""
    if predicate is None:
        return (1 << automaton.letters.count) - 1
    if not isinstance(predicate, EventPredicate):
        return None
    wanted = {*predicate.clauses}
    mask = 0
    conditions = {(one.type.stream, one.type.name): one for one in automaton.letters.alphabet.types}
    for number, symbol in enumerate(automaton.letters.alphabet.symbols):
        if symbol.type is None or symbol.type != predicate.type:
            continue
        groups = conditions[symbol.type.stream, symbol.type.name].groups
        true = {one for bit, group in enumerate(groups) if symbol.truth >> bit & 1 for one in group}
        if wanted <= true:
            mask |= 1 << number
    return mask


def of_deterministic(automaton: DeterministicAutomaton) -> Machine:
    """The machine of a deterministic automaton, over letters and not over their classes."""
    letters = [0] * automaton.symbols
    for letter, number in enumerate(automaton.class_of):
        letters[number] |= 1 << letter
    edges: list[tuple[Edge, ...]] = []
    for rows in automaton.moves:
        found: dict[tuple[Marks, int], int] = {}
        for mask, row in zip(letters, rows, strict=True):
            for move in row:
                marks = frozenset(move.marks)
                targets = [ACCEPT] if move.accepts else []
                targets += [] if move.target is None else [int(move.target)]
                for target in targets:
                    found[marks, target] = found.get((marks, target), 0) | mask
        edges.append(tuple(Edge(mask, *key) for key, mask in found.items()))
    return Machine(len(automaton.class_of), tuple(edges))


def difference(
    left: Machine, right: Machine, most: int = MOST_PAIRS, *, places: int = 0
) -> Word | None:
    """A match of one machine alone; None where both have the same matches.

    `places`: the classes of events where a letter says the place of an event in its instant. Then
    only words count that can be instants. Raises TooManyStatesError.
    """
    if left.letters != right.letters:
        raise AssertionError("they read other letters")
    lefts, rights = _trimmed(left), _trimmed(right)
    begin = (frozenset({0}), frozenset({0}), 0)
    merged: dict[object, object] = {}

    def root(key: object) -> object:
        while key in merged:
            key = merged[key]
        return key

    waiting: list[tuple[tuple[frozenset[int], frozenset[int], int], _Path]] = [(begin, None)]
    merged["left", begin[0], 0] = ("right", begin[1], 0)
    met = 0
    while waiting:
        (ones, others, inside), path = waiting.pop()
        met += 1
        if met > most:
            raise TooManyStatesError
        asked = _well_formed(left.letters, places, inside)
        for block, after in _blocks(lefts, ones, rights, others, asked):
            moves = _moves(lefts, ones, block), _moves(rights, others, block)
            for marks in sorted(moves[0].keys() | moves[1].keys(), key=sorted):
                pair = [side.get(marks, frozenset()) for side in moves]
                step = (path, ((block & -block).bit_length() - 1, marks))
                may_end = not places or after == 0
                if may_end and (ACCEPT in pair[0]) != (ACCEPT in pair[1]):
                    return _word(step)
                on = tuple(side - {ACCEPT} for side in pair)
                if not (on[0] or on[1]):
                    continue
                one, other = root(("left", on[0], after)), root(("right", on[1], after))
                if one != other:
                    merged[one] = other
                    waiting.append(((on[0], on[1], after), step))
    return None


_Path: TypeAlias = "tuple[_Path, tuple[int, Marks]] | None"


def _word(path: _Path) -> Word:
    found = []
    while path is not None:
        path, step = path
        found.append(step)
    return tuple(reversed(found))


def _well_formed(letters: int, classes: int, inside: int) -> tuple[tuple[int, int], ...]:
    """The letters that may come next, with whether an instant has begun then and is not over.

    Places are those of `Place`: alone, first, between, last.
    """
    if not classes:
        return (((1 << letters) - 1, 0),)
    row = (1 << classes) - 1
    if inside:
        return ((row << 2 * classes, 1), (row << 3 * classes, 0))
    return ((row, 0), (row << classes, 1))


def _moves(
    edges: Sequence[Sequence[Edge]], states: Iterable[int], block: int
) -> dict[Marks, frozenset[int]]:
    found: dict[Marks, set[int]] = {}
    for state in states:
        for mask, marks, target in edges[state]:
            if mask & block:
                found.setdefault(marks, set()).add(target)
    return {marks: frozenset(targets) for marks, targets in found.items()}


def _blocks(
    lefts: Sequence[Sequence[Edge]],
    ones: Iterable[int],
    rights: Sequence[Sequence[Edge]],
    others: Iterable[int],
    asked: Iterable[tuple[int, int]],
) -> list[tuple[int, int]]:
    """Sets of letters that no edge out of these states tells apart."""
    masks = {edge.mask for state in ones for edge in lefts[state]}
    masks |= {edge.mask for state in others for edge in rights[state]}
    found = []
    for everything, after in asked:
        found += [(block, after) for block in split(everything, masks)]
    return found


def split(everything: int, masks: Iterable[int]) -> list[int]:
    """The coarsest blocks of a bit set of which each is inside or outside of each mask."""
    blocks = [everything] if everything else []
    for mask in masks:
        blocks = [part for block in blocks for part in (block & mask, block & ~mask) if part]
    return blocks


def _trimmed(machine: Machine) -> list[list[Edge]]:
    """The edges after which a match can still end."""
    before: dict[int, set[int]] = {}
    for state, edges in enumerate(machine.edges):
        for edge in edges:
            if edge.mask:
                before.setdefault(edge.target, set()).add(state)
    useful, waiting = {ACCEPT}, [ACCEPT]
    while waiting:
        for state in before.get(waiting.pop(), ()):
            if state not in useful:
                useful.add(state)
                waiting.append(state)
    return [[e for e in edges if e.mask and e.target in useful] for edges in machine.edges]


def explored(
    letters: int, begin: Any, moves: Callable[[Any], Iterable[tuple[int, Marks, Any]]]
) -> Machine:
    """The machine whose states are keys reached from `begin`; the key None ends a match. Raises
    TooManyStatesError."""
    number: dict[Any, int] = {begin: 0}
    order = [begin]
    edges: list[tuple[Edge, ...]] = []
    for key in order:
        row: dict[tuple[Marks, int], int] = {}
        for mask, marks, target in moves(key):
            if not mask:
                continue
            if target is not None and target not in number:
                number[target] = len(order)
                order.append(target)
                if len(order) > MOST_PAIRS:
                    raise TooManyStatesError
            place = ACCEPT if target is None else number[target]
            row[marks, place] = row.get((marks, place), 0) | mask
        edges.append(tuple(Edge(mask, *key) for key, mask in row.items()))
    return Machine(letters, tuple(edges))
