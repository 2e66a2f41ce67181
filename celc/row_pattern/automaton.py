"""Pattern → automaton whose moves out of each state stand in order of preference.

A state is a place of the pattern that has just taken a row (the rows of its quantifiers written
out), or the place before the first row. The moves out of a state are what can take the next row,
found by following the pattern from that place in order of preference; what is found again later is
left out, because the first way to the same place has failed by then. Acceptance ends the list: a
match that can end never tries a move behind it.

An empty round whose number is at least the lower bound is the last one (19075-5, 7.2.8). A loop
around the row that was taken has a round with a row, so only loops that were entered since then can
have an empty round: the following of the pattern carries these along.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import assert_never

from celc_runtime.plan.frozen import frozen

from celc.row_pattern import core
from celc.row_pattern.simplify import can_be_empty


@frozen
class Move:
    """Takes a row of a variable, where `condition` holds (its number; −1: any row). `target` is the
    state after it."""

    variable: int
    excluded: bool
    target: int
    condition: int = -1


@frozen
class State:
    """The moves in order of preference, and whether the pattern may end behind them (`accepts`), or
    end at the end of the partition (`accepts_at_end`)."""

    moves: tuple[Move, ...]
    accepts: bool
    accepts_at_end: bool


@frozen
class Automaton:
    """`first` is the state before the first row of a partition, `start` before any other."""

    states: tuple[State, ...]
    first: int
    start: int


# --- the pattern as a graph -----------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Node:
    """A step of the pattern. `next` are the ways on in order of preference."""

    next: list[_Node] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Take(_Node):
    row: core.OneRow = core.OneRow(0, False)
    number: int = 0


@dataclass(slots=True, eq=False)
class _At(_Node):
    first: bool = False


@dataclass(slots=True, eq=False)
class _Begin(_Node):
    """A round begins; `round` tells it from other rounds that can be open at the same time."""

    round: int = 0


@dataclass(slots=True, eq=False)
class _End(_Node):
    """A round ends: `next` after a row, `last` after none."""

    round: int = 0
    last: _Node | None = None


@dataclass(slots=True, eq=False)
class _Accept(_Node):
    pass


class _Graph:
    """Writes a pattern as steps, from its end to its beginning."""

    def __init__(self) -> None:
        self.takes: list[_Take] = []
        self._rounds = 0

    def before(self, pattern: core.Pattern, then: _Node) -> _Node:
        """The step that begins `pattern` and goes on with `then`."""
        match pattern:
            case core.OneRow():
                take = _Take([then], pattern, len(self.takes))
                self.takes.append(take)
                return take
            case core.Anchor():
                return _At([then], pattern.first)
            case core.Concatenation():
                for part in reversed(pattern.parts):
                    then = self.before(part, then)
                return then
            case core.Alternation():
                return _Node([self.before(part, then) for part in pattern.parts])
            case core.Repetition():
                return self._repeated(pattern, then)
            case _:
                assert_never(pattern)

    def _repeated(self, pattern: core.Repetition, then: _Node) -> _Node:
        least, most = pattern.least, pattern.most
        if most is None:
            # The round without end: from the lower bound on, all rounds are alike.
            choice = _Node()
            again = self._round(pattern.part, choice, then)
            choice.next = [then, again] if pattern.reluctant else [again, then]
            # The last round that has to be is one of them, so the part is written once.
            following = again if least else choice
        else:
            following = then
            for _ in range(most - max(least, 1) if least else most):
                further = self._round(pattern.part, following, then)
                following = _Node([then, further] if pattern.reluctant else [further, then])
            if least:
                following = self._round(pattern.part, following, then)
        for _ in range(least - 1):
            following = self.before(pattern.part, following)
        return following

    def _round(self, part: core.Pattern, then: _Node, last: _Node) -> _Node:
        """A round whose number is at least the lower bound: after a row it goes on with `then`,
        after none with `last`."""
        if not can_be_empty(part):
            return self.before(part, then)
        self._rounds += 1
        number = self._rounds
        return _Begin([self.before(part, _End([then], number, last))], number)


# --- following it ---------------------------------------------------------------------------------


@frozen
class _Found:
    takes: tuple[int, ...]
    accepts: bool


def _follow(begin: _Node, *, at_first: bool, at_end: bool) -> _Found:
    """The rows that can be taken next, in order of preference, up to acceptance.

    The same step with the same empty rounds open is not followed twice: all it leads to has been
    found.
    """
    takes: dict[int, None] = {}
    seen: set[tuple[int, frozenset[int]]] = set()
    waiting: list[tuple[_Node, frozenset[int]]] = [(begin, frozenset())]
    while waiting:
        node, empty = waiting.pop()
        key = (id(node), empty)
        if key in seen:
            continue
        seen.add(key)
        match node:
            case _Take():
                takes.setdefault(node.number)
            case _Accept():
                return _Found(tuple(takes), True)
            case _At():
                if at_first if node.first else at_end:
                    waiting.append((node.next[0], empty))
            case _Begin():
                waiting.append((node.next[0], empty | {node.round}))
            case _End():
                assert node.last is not None
                on = node.last if node.round in empty else node.next[0]
                waiting.append((on, empty - {node.round}))
            case _:
                waiting += [(way, empty) for way in reversed(node.next)]
    return _Found(tuple(takes), False)


MOST_MOVES = 2_000_000
"""The most moves of an automaton: 2,000 rows have them, each of which can be followed by any later
one."""


def automaton(pattern: core.Pattern) -> Automaton | None:
    """The automaton of a pattern; None where it has more than `MOST_MOVES` moves."""
    graph = _Graph()
    accept = _Accept()
    begin = graph.before(pattern, accept)
    states: list[State] = []
    moves = 0
    for take in graph.takes:
        states.append(_state(graph, take.next[0], at_first=False))
        moves += len(states[-1].moves)
        if moves > MOST_MOVES:
            return None
    start, first = len(states), len(states) + 1
    states.append(_state(graph, begin, at_first=False))
    states.append(_state(graph, begin, at_first=True))
    return _reachable(Automaton(tuple(states), first, start))


def _state(graph: _Graph, begin: _Node, *, at_first: bool) -> State:
    found = _follow(begin, at_first=at_first, at_end=False)
    end = _follow(begin, at_first=at_first, at_end=True)
    moves = tuple(
        Move(graph.takes[number].row.variable, graph.takes[number].row.excluded, number)
        for number in found.takes
    )
    return State(moves, found.accepts, end.accepts)


def _reachable(made: Automaton) -> Automaton:
    """The states that can be reached, numbered in the order in which they are found."""
    order: dict[int, int] = {}
    waiting = [made.first, made.start]
    while waiting:
        state = waiting.pop()
        if state in order:
            continue
        order[state] = len(order)
        waiting += [move.target for move in reversed(made.states[state].moves)]
    numbered = sorted(order, key=order.__getitem__)
    states = tuple(
        State(
            tuple(
                Move(m.variable, m.excluded, order[m.target], m.condition)
                for m in made.states[one].moves
            ),
            made.states[one].accepts,
            made.states[one].accepts_at_end,
        )
        for one in numbered
    )
    return Automaton(states, order[made.first], order[made.start])


def depths_of(made: Automaton) -> list[int]:
    """By state, the fewest rows of a match before the one that the state has taken; −1: none has
    been taken."""
    far = len(made.states) + 1
    found = [far] * len(made.states)
    found[made.first] = found[made.start] = -1
    waiting = [made.first, made.start]
    while waiting:
        following = []
        for state in waiting:
            for move in made.states[state].moves:
                if found[state] + 1 < found[move.target]:
                    found[move.target] = found[state] + 1
                    following.append(move.target)
        waiting = following
    return found


# --- fewer states ---------------------------------------------------------------------------------

_MOST_COMPARED = 300_000  # moves compared; beyond it the automaton stays as it is


def with_conditions(made: Automaton, of_state: tuple[int, ...]) -> Automaton:
    """The automaton whose moves have the conditions of the states they lead to; states that cannot
    be told apart are one."""
    states = tuple(
        State(
            tuple(Move(m.variable, m.excluded, m.target, of_state[m.target]) for m in one.moves),
            one.accepts,
            one.accepts_at_end,
        )
        for one in made.states
    )
    return _merged(Automaton(states, made.first, made.start))


def _merged(made: Automaton) -> Automaton:
    """States with the same moves into the same states, in the same order, are one."""
    group = [0] * len(made.states)
    count = 0
    moves_of_all = sum(len(state.moves) for state in made.states)
    seen = [
        (
            (state.accepts, state.accepts_at_end),
            [((move.variable, move.excluded, move.condition), move.target) for move in state.moves],
        )
        for state in made.states
    ]
    for compared in itertools.count(1):
        if compared * moves_of_all > _MOST_COMPARED:
            return made
        numbers: dict[object, int] = {}
        keys = [
            (group[number], ends, *dict.fromkeys((label, group[to]) for label, to in moves))
            for number, (ends, moves) in enumerate(seen)
        ]
        for key in keys:
            numbers.setdefault(key, len(numbers))
        if len(numbers) == count:
            break
        count = len(numbers)
        group = [numbers[key] for key in keys]
    kept: dict[int, State] = {}
    for number, state in enumerate(made.states):
        moves = dict.fromkeys(
            Move(m.variable, m.excluded, group[m.target], m.condition) for m in state.moves
        )
        kept.setdefault(group[number], State(tuple(moves), state.accepts, state.accepts_at_end))
    states = tuple(kept[number] for number in range(len(kept)))
    return _reachable(Automaton(states, group[made.first], group[made.start]))
