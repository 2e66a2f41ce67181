"""CEA → I/O-deterministic CEA (Proposition 1 of the CEL paper, appendix C.1).

This is the subset construction with letters (symbol, label set): the symbol of an event and its
marks together decide the next state. So every complex event has exactly one run, and no match is
listed twice.

Deviations from the paper. Predicates are replaced beforehand by letters, which are disjoint, so the
paper's types of predicate sets are not needed. Letters that no transition distinguishes become one.
Moves accept, not states: the final state has no way out, so a subset never has to remember it.
Subset states are made on demand. States from which no match can be completed are left out.
"""

from collections.abc import Iterator, Sequence
from typing import NewType

from celc_runtime.plan.frozen import frozen

from celc.automata.automaton import Automaton, State
from celc.automata.letters import Mask, partition
from celc.automata.select import Selection
from celc.core.bits import bits_of
from celc.diagnostics.deadline import look
from celc.diagnostics.errors import CelError, Diagnostic, error
from celc.diagnostics.source import Source, Span
from celc.normal.normal_form import SUPPORT, shown

DetState = NewType("DetState", int)


@frozen
class Move:
    """A move on an event that is marked with `marks`. It accepts, or has a target, or both."""

    marks: tuple[str, ...]
    accepts: bool  # a match ends with this event
    target: DetState | None  # the state in which the match goes on; None: it cannot go on


@frozen
class DeterministicAutomaton:
    """An I/O-deterministic CEA over the letter classes 0 … `symbols`−1.

    State 0 is the start: no event has been read, and every move out of it begins a match, also a
    move without marks. No move enters it.
    """

    symbols: int
    moves: tuple[tuple[tuple[Move, ...], ...], ...]
    """`[state][class]`: the moves of a match, at most one per label set, ordered by label set.
    Marks `()`: an unmarked event."""
    members: tuple[tuple[State, ...], ...]
    """`[state]`: the nondeterministic states that it stands for; after minimisation those of all
    merged states."""
    class_of: tuple[int, ...]
    """`[letter]`: the class of a letter; without contexts each symbol is a class."""
    as_met: bool = False
    """Whether the states are those of the nondeterministic automaton, and a run makes sets of them
    as it meets them. Then a row can have several moves with one label set."""

    @property
    def states(self) -> int:
        """The number of states, including the start."""
        return len(self.moves)

    def skip(self, state: DetState, symbol: int) -> Move | None:
        """The move of a match in `state` when the event passes unmarked."""
        return next((move for move in self.moves[state][symbol] if not move.marks), None)


START = DetState(0)

MAX_CELLS = 4_000_000  # pairs of a state and a class of letters: 2,000 of each


_Edge = tuple[Mask, tuple[str, ...], int]
"""Letters, marks, target of a transition."""


def determinize(
    automaton: Automaton,
    source: Source,
    span: Span,
    *,
    max_states: int = 2000,
    max_cells: int = MAX_CELLS,
) -> DeterministicAutomaton:
    """The I/O-deterministic automaton with the same matches.

    Raises CelError at `span` where it would have more than `max_states` states, or more than
    `max_cells` pairs of a state and a class of letters. Tables have an entry for each pair.
    """
    edges: list[list[_Edge]] = [[] for _ in range(automaton.states)]
    for transition in automaton.transitions:
        edges[transition.source].append(
            (automaton.mask(transition), transition.marks, transition.target)
        )
    letters = automaton.letters
    if letters.machine.contexts == 1:
        classes = [1 << symbol for symbol in range(letters.symbols)]
    else:
        classes = partition((mask for row in edges for mask, _, _ in row), letters.all)
    limits = max_states, max_cells
    return _subsets(edges, classes, letters.count, source, span, limits)


def left_nondeterministic(automaton: Automaton) -> DeterministicAutomaton:
    """The automaton itself, for runs that make sets of its states as they meet them (Theorem 5 of
    the paper). Events have no contexts."""
    letters = automaton.letters
    assert letters.machine.contexts == 1
    before: dict[int, list[int]] = {}
    for transition in automaton.transitions:
        before.setdefault(transition.target, []).append(transition.source)
    useful, waiting = {0}, [int(automaton.final)]
    while waiting:
        for state in before.get(waiting.pop(), ()):
            if state not in useful or state == automaton.initial:
                useful.add(state)
                waiting += [state] if state != automaton.initial else []
    number = {state: DetState(index) for index, state in enumerate(sorted(useful))}
    table: list[list[set[tuple[tuple[str, ...], int]]]] = [
        [set() for _ in range(letters.symbols)] for _ in number
    ]
    for transition in automaton.transitions:
        look()
        if transition.source in number:
            row = table[number[transition.source]]
            for symbol in bits_of(automaton.mask(transition)):
                row[symbol].add((transition.marks, transition.target))
    moves = []
    for rows in table:
        made = []
        for found in rows:
            ends = {marks for marks, target in found if target == automaton.final}
            on = sorted((marks, number[State(to)]) for marks, to in found if to in number)
            made.append(
                (
                    *(Move(marks, True, None) for marks in sorted(ends)),
                    *(Move(marks, False, target) for marks, target in on),
                )
            )
        moves.append(tuple(made))
    members = tuple((State(state),) for state in sorted(useful))
    classes = tuple(range(letters.symbols))
    return DeterministicAutomaton(letters.symbols, tuple(moves), members, classes, as_met=True)


def determinize_selection(
    selection: Selection, letters: int, source: Source, span: Span, *, max_states: int = 2000
) -> DeterministicAutomaton:
    """The I/O-deterministic automaton of a selection, over pairs of tracker state and letter.

    Letter `tracker state · letters + letter` is a letter that the tracker reads in that state.
    Raises CelError as `determinize` does.
    """
    states = len(selection.tracker)
    everywhere = sum(1 << state * letters for state in range(states))
    edges: list[list[_Edge]] = [
        [(edge.mask * everywhere, edge.marks, edge.target) for edge in row]
        for row in selection.graph.edges
    ]
    edges[0] = [
        (edge.mask << state * letters, edge.marks, edge.target)
        for state, row in enumerate(selection.starts)
        for edge in row
    ]
    everything = (1 << states * letters) - 1
    classes = partition((mask for row in edges for mask, _, _ in row), everything)
    limits = max_states, MAX_CELLS
    return _subsets(edges, classes, states * letters, source, span, limits)


def _subsets(
    edges: Sequence[Sequence[_Edge]],
    classes: Sequence[Mask],
    letters: int,
    source: Source,
    span: Span,
    limits: tuple[int, int],
) -> DeterministicAutomaton:
    """The subset construction over classes of letters; state 0 is initial, state 1 final."""
    class_of = [0] * letters
    for index, mask in enumerate(classes):
        for letter in bits_of(mask):
            class_of[letter] = index
    samples = sum(mask & -mask for mask in classes)
    subsets: dict[frozenset[int], int] = {frozenset({0}): 0}
    order = list(subsets)
    raw: list[list[_Row]] = []
    for subset in order:
        look()
        rows: list[_Row] = []
        for block, moves in _moves_out(subset, edges, samples):
            row: _Targets = []
            for marks in sorted(moves):
                accepts = 1 in moves[marks]
                rest = frozenset(moves[marks] - {1})
                target: int | None = None
                if rest:
                    target = subsets.setdefault(rest, len(subsets))
                    if target == len(order):
                        order.append(rest)
                row.append((marks, accepts, target))
            rows.append(([class_of[letter] for letter in bits_of(block)], row))
        raw.append(rows)
        max_states, max_cells = limits
        if len(order) > max_states:
            raise CelError(source, (_too_many_states(span, max_states),))
        if len(order) * len(classes) > max_cells:
            sizes = len(order), len(classes)
            raise CelError(source, (_too_many_cells(span, sizes, max_cells),))
    return _without_dead_ends(raw, order, len(classes), tuple(class_of))


def _too_many_states(span: Span, max_states: int) -> Diagnostic:
    return error(
        "too-many-states",
        span,
        f"the deterministic automaton of this formula has more than {max_states:,} states",
        "iterations and OR branches that begin with the same events multiply states: give "
        "them conditions that exclude each other, split the formula into several queries, or "
        "raise the limit with --max-states",
    )


def _too_many_cells(span: Span, sizes: tuple[int, int], max_cells: int) -> Diagnostic:
    states, classes = sizes
    return error(
        "tables-too-large",
        span,
        f"the automaton of this formula has {states:,} states and tells {classes:,} classes of "
        f"events apart, and its tables would have more than {max_cells:,} entries",
        "give long sequences fewer event types and conditions, or split the formula into "
        "several queries",
    )


_Targets = list[tuple[tuple[str, ...], bool, int | None]]
_Row = tuple[list[int], _Targets]
"""Classes that a state does not distinguish, with its moves on them."""


def _moves_out(
    subset: frozenset[int], edges: Sequence[Sequence[_Edge]], everything: Mask
) -> Iterator[tuple[Mask, dict[tuple[str, ...], set[int]]]]:
    """Disjoint sets of letters, each with the states that it reaches from the subset, by marks.

    The work depends on the number of transitions, not of letters: a state that waits reads nearly
    all letters in the same way.
    """
    out = [edge for state in sorted(subset) for edge in edges[state]]
    for block in partition((mask for mask, _, _ in out), everything):
        reached: dict[tuple[str, ...], set[int]] = {}
        for mask, marks, target in out:
            if mask & block:
                reached.setdefault(marks, set()).add(target)
        if reached:
            yield block, reached


def _without_dead_ends(
    raw: list[list[_Row]], order: list[frozenset[int]], symbols: int, class_of: tuple[int, ...]
) -> DeterministicAutomaton:
    """Drop the states that lead to no match, and number the others in order of discovery."""
    before: dict[int, list[int]] = {}
    useful: set[int] = set()
    for state, rows in enumerate(raw):
        for _, row in rows:
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
    moves = []
    for state in sorted(useful):
        look()
        table: list[tuple[Move, ...]] = [()] * symbols
        for classes, row in raw[state]:
            kept = tuple(
                Move(marks, accepts, DetState(number[target]) if target in number else None)
                for marks, accepts, target in row
                if accepts or target in number
            )
            for symbol in classes:
                table[symbol] = kept
        moves.append(tuple(table))
    members = tuple(tuple(map(State, sorted(order[state]))) for state in sorted(useful))
    return DeterministicAutomaton(symbols, tuple(moves), members, class_of)


def looks_alike(automaton: DeterministicAutomaton) -> bool:
    """Whether two runs may differ only in marks that are not shown: roles and the support.

    Each move can be checked by itself: where the shown marks decide the next state, they decide the
    whole run.
    """
    for rows in automaton.moves:
        for row in rows:
            looks = [shown(frozenset(move.marks)) - {SUPPORT} for move in row]
            if len(set(looks)) < len(looks):
                return True
    return False
