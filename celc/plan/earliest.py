"""SELECT NXT under WITHIN: which states can still reach the end, read backwards from the end.

NXT takes the earliest events that it can. Where an automaton can mark an event in at most one way,
the marked events decide its run. So the choice of NXT is the run that marks an event whenever the
end can still be reached afterwards. To know this, the window is read backwards from the end. Before
each event stands the set of the states from which some run accepts at the end. These sets are the
states of a deterministic machine, the reverse of the automaton. It is usually small.
"""

from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.automata.determinize import START, DeterministicAutomaton, DetState
from celc.automata.letters import ContextMachine
from celc.diagnostics.deadline import look
from celc.plan.tables import Kind, Tables

MAX_SETS = 128
# sets, or steps (sets × states × letters); beyond it the selection automaton runs forwards, because
# its tables grow with the number of moves only
MAX_STEPS_IN_TABLE = 500_000


@frozen
class EarliestTables:
    """The automaton and its reverse."""

    marks: tuple[tuple[tuple[int, DetState] | None, ...], ...]
    """`[state][letter]`: kind and target of the one way to mark an event and go on; None: there is
    none."""
    skip: tuple[tuple[DetState | None, ...], ...]
    """`[state][letter]`: the state after an unmarked event, None: the match is lost; START stays
    START."""
    end_kinds: tuple[tuple[int | None, ...], ...]
    """`[state][letter]`: the kind of the event that ends a match here."""
    sets: tuple[frozenset[DetState], ...]  # the states of each set
    ends: tuple[int, ...]  # `[letter]`: the set of the states that accept with this letter
    back: tuple[tuple[int, ...], ...]
    """`[set][letter]`: the set before an event, by the set after it."""
    kinds: tuple[Kind, ...]  # what the numbers of kinds mean


def earliest_tables(tables: Tables) -> EarliestTables | None:
    """The tables of NXT. None where an event can be marked in two ways or has no label, and where
    the tables would be too large."""
    letters = range(tables.symbols)
    marks: list[list[tuple[int, DetState] | None]] = [
        [None] * tables.symbols for _ in range(tables.states)
    ]
    end_kinds: list[list[int | None]] = [[None] * tables.symbols for _ in range(tables.states)]
    for letter in letters:
        ways: dict[DetState, tuple[str, ...]] = {}
        for step in tables.steps[letter]:
            labels = tables.kinds[step.kind].marks
            for source in step.sources:
                if not labels or ways.setdefault(source, labels) != labels:
                    return None
                if step.target is None:
                    end_kinds[source][letter] = step.kind
                else:
                    marks[source][letter] = step.kind, step.target
    skip = [tuple(START for _ in letters), *tables.skip[1:]]
    numbers: dict[frozenset[DetState], int] = {frozenset(): 0}
    order = [frozenset[DetState]()]

    def number(states: frozenset[DetState]) -> int:
        if states not in numbers:
            numbers[states] = len(order)
            order.append(states)
        return numbers[states]

    def before(behind: frozenset[DetState], letter: int) -> frozenset[DetState]:
        found = set()
        for state in range(tables.states):
            marked = marks[state][letter]
            if skip[state][letter] in behind or (marked is not None and marked[1] in behind):
                found.add(DetState(state))
        return frozenset(found)

    ends = tuple(
        number(
            frozenset(DetState(s) for s in range(tables.states) if end_kinds[s][letter] is not None)
        )
        for letter in letters
    )
    back: list[tuple[int, ...]] = []
    for states in order:
        look()
        if (
            len(order) > MAX_SETS
            or len(order) * tables.states * tables.symbols > MAX_STEPS_IN_TABLE
        ):
            return None
        back.append(tuple(number(before(states, letter)) for letter in letters))
    return EarliestTables(
        tuple(map(tuple, marks)),
        tuple(skip),
        tuple(map(tuple, end_kinds)),
        tuple(order),
        ends,
        tuple(back),
        tables.kinds,
    )


Chosen: TypeAlias = tuple[DeterministicAutomaton, ContextMachine]


def choose_the_same(one: Chosen, other: Chosen) -> bool:
    """Whether two selections on the same letters choose the same matches of every stream.

    MAX chooses every match that NXT chooses, because NXT would prefer a proper superset. So if the
    two choose the same, MAX has one support for each end, and the tables of NXT find it.
    """
    letters = len(one[1].following[0])
    seen: set[tuple[bool, int, int]] = {(True, 0, 0)}
    waiting = list(seen)
    while waiting:
        look()
        before, left, right = waiting.pop()
        for letter in range(letters):
            rows = []
            for (automaton, _), state in ((one, left), (other, right)):
                at, from_ = (state * letters, START) if before else (0, state)
                rows.append(automaton.moves[from_][automaton.class_of[at + letter]])
            if [(m.marks, m.accepts, m.target is None) for m in rows[0]] != [
                (m.marks, m.accepts, m.target is None) for m in rows[1]
            ]:
                return False
            following = [
                (False, int(mine.target), int(theirs.target))
                for mine, theirs in zip(*rows, strict=True)
                if mine.target is not None and theirs.target is not None
            ]
            if before:
                after = one[1].following[left][letter], other[1].following[right][letter]
                following.append((True, *after))
            for pair in following:
                if pair not in seen:
                    seen.add(pair)
                    waiting.append(pair)
    return True


def is_quiet(tables: EarliestTables, letter: int) -> bool:
    """Whether an event with this letter changes nothing, unless a match ends with it."""
    return all(
        tables.marks[state][letter] is None and tables.skip[state][letter] == state
        for state in range(len(tables.skip))
    )
