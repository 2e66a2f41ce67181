"""CEA → I/O-deterministic CEA (Proposition 1 of the CEL paper, appendix C.1).

The subset construction, with (symbol, label set) as the letters: what an event is and how it is
marked together decide the next state. Every complex event then has exactly one run, which is what
lets the evaluation enumerate matches without ever producing one twice.

Deviations from the paper. Predicates are replaced beforehand by symbol classes, which are disjoint
by construction, so the paper's types of predicate sets are not needed. Acceptance sits on moves
instead of states: the final state has no way out, so a subset never has to remember it. Subset
states are made on demand, and states from which no match can be completed are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NewType

from celc.automaton import Automaton, State, Transition
from celc.errors import CelError, Diagnostic, error
from celc.predicates import Alphabet
from celc.source import Source, Span

DetState = NewType("DetState", int)


@dataclass(frozen=True, slots=True)
class Move:
    """What happens when an event is read and marked with `marks`.

    `accepts`: a match ends with this event. `target`: the state in which the match goes on, None
    where it cannot. At least one of them says something.
    """

    marks: tuple[str, ...]
    accepts: bool
    target: DetState | None


@dataclass(frozen=True, slots=True)
class DeterministicAutomaton:
    """An I/O-deterministic CEA over the symbols 0 … `symbols`−1.

    `moves[state][symbol]` lists the moves of a match that is in `state`, at most one per label set,
    ordered by label set; marks `()` is the event passing unmarked. State 0 is the start: nothing
    has been read yet, and every move out of it begins a match, also one without marks. No move
    enters it. `members[state]` are the states of the nondeterministic automaton that a state
    stands for (those of all states that minimisation has merged into it).
    """

    symbols: int
    moves: tuple[tuple[tuple[Move, ...], ...], ...]
    members: tuple[tuple[State, ...], ...]

    @property
    def states(self) -> int:
        """The number of states, the start included."""
        return len(self.moves)

    def skip(self, state: DetState, symbol: int) -> Move | None:
        """The move of a match in `state` when the event passes unmarked."""
        return next((move for move in self.moves[state][symbol] if not move.marks), None)


START = DetState(0)


def determinize(
    automaton: Automaton,
    alphabet: Alphabet,
    source: Source,
    span: Span,
    *,
    max_states: int = 2000,
) -> DeterministicAutomaton:
    """The I/O-deterministic automaton with the same matches.

    Raises CelError at `span` where it would have more than `max_states` states.
    """
    letters = _letters(automaton, alphabet)
    subsets: dict[frozenset[State], int] = {frozenset({automaton.initial}): 0}
    order = list(subsets)
    raw: list[list[list[tuple[tuple[str, ...], bool, int | None]]]] = []
    for subset in order:
        rows: list[list[tuple[tuple[str, ...], bool, int | None]]] = []
        for symbol in range(len(alphabet.symbols)):
            row = []
            for marks, reached in _step(subset, letters, symbol):
                accepts = automaton.final in reached
                rest = reached - {automaton.final}
                target: int | None = None
                if rest:
                    target = subsets.setdefault(rest, len(subsets))
                    if target == len(order):
                        order.append(rest)
                row.append((marks, accepts, target))
            rows.append(row)
        raw.append(rows)
        if len(order) > max_states:
            raise CelError(source, (_too_many_states(span, max_states),))
    return _without_dead_ends(raw, order, len(alphabet.symbols))


def _too_many_states(span: Span, max_states: int) -> Diagnostic:
    return error(
        "too-many-states",
        span,
        f"the deterministic automaton of this formula has more than {max_states:,} states",
        help=(
            "iterations and OR branches that begin with the same events multiply states: give "
            "them conditions that exclude each other, split the formula into several queries, or "
            "raise the limit with --max-states",
        ),
    )


_Letters = Mapping[State, tuple[tuple[frozenset[int] | None, Transition], ...]]


def _letters(automaton: Automaton, alphabet: Alphabet) -> _Letters:
    """The transitions out of each state with the symbols they read (None: all)."""
    known: dict[object, frozenset[int]] = {}
    out: dict[State, list[tuple[frozenset[int] | None, Transition]]] = {}
    for transition in automaton.transitions:
        symbols: frozenset[int] | None = None
        if transition.predicate is not None:
            if transition.predicate not in known:
                known[transition.predicate] = frozenset(
                    alphabet.matching(transition.predicate.type, transition.predicate.clauses)
                )
            symbols = known[transition.predicate]
        out.setdefault(transition.source, []).append((symbols, transition))
    return {state: tuple(found) for state, found in out.items()}


def _step(
    subset: frozenset[State], letters: _Letters, symbol: int
) -> list[tuple[tuple[str, ...], frozenset[State]]]:
    reached: dict[tuple[str, ...], set[State]] = {}
    for state in sorted(subset):
        for symbols, transition in letters.get(state, ()):
            if symbols is None or symbol in symbols:
                reached.setdefault(transition.marks, set()).add(transition.target)
    return [(marks, frozenset(reached[marks])) for marks in sorted(reached)]


_Raw = list[list[list[tuple[tuple[str, ...], bool, int | None]]]]


def _without_dead_ends(
    raw: _Raw, order: list[frozenset[State]], symbols: int
) -> DeterministicAutomaton:
    """Drop the states that lead to no match, and number the others in order of discovery."""
    before: dict[int, list[int]] = {}
    useful: set[int] = set()
    for state, rows in enumerate(raw):
        for row in rows:
            for _, accepts, target in row:
                if accepts:
                    useful.add(state)
                if target is not None:
                    before.setdefault(target, []).append(state)
    waiting = sorted(useful)
    while waiting:
        for state in before.get(waiting.pop(), ()):
            if state not in useful:
                useful.add(state)
                waiting.append(state)
    useful.add(0)
    number = {state: index for index, state in enumerate(sorted(useful))}
    moves = tuple(
        tuple(
            tuple(
                Move(marks, accepts, DetState(number[target]) if target in number else None)
                for marks, accepts, target in rows[symbol]
                if accepts or target in number
            )
            for symbol in range(symbols)
        )
        for state, rows in enumerate(raw)
        if state in number
    )
    members = tuple(tuple(sorted(order[state])) for state in sorted(useful))
    return DeterministicAutomaton(symbols, moves, members)


def is_io_deterministic(automaton: DeterministicAutomaton) -> bool:
    """Whether no state has two moves for one symbol and label set, and none enters the start."""
    return all(
        len({move.marks for move in row}) == len(row)
        and all(move.target != START for move in row)
        and all(move.accepts or move.target is not None for move in row)
        for rows in automaton.moves
        for row in rows
    )
