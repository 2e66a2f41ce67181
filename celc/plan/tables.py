"""I/O-deterministic CEA → transition tables over symbol classes.

Symbols that no state distinguishes become one. So an event that changes nothing has symbol 0,
whatever its type. Label sets become *kinds*, small numbers that a node of the arena can hold. Moves
are sorted: first those that begin a match, then those that continue one, then unmarked moves.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from celc_runtime.plan.frozen import frozen

from celc.automata.automaton import State
from celc.automata.determinize import START, DeterministicAutomaton, DetState, Move
from celc.automata.letters import ContextMachine
from celc.automata.predicates import Alphabet
from celc.diagnostics.deadline import look
from celc.normal.normal_form import Event


@frozen
class Kind:
    """How an event of a match is marked: its labels, and whether a match may begin with it."""

    marks: tuple[str, ...]
    starts: bool


@frozen
class Step:
    """The moves of one symbol and one label set that have the same outcome."""

    kind: int
    sources: tuple[DetState, ...]  # with START, a match may begin here
    target: DetState | None  # the state in which the match goes on; None: the event ends a match


@frozen
class Contexts:
    """A machine over all events of the stream. It makes letters of symbols where the past
    matters."""

    following: tuple[tuple[int, ...], ...]  # `[context][symbol]`: the context after an event
    letters: tuple[tuple[int, ...], ...]
    """`[context][symbol]`: the letter of the event in the tables."""


@frozen
class Tables:
    """Transition tables, indexed by symbols, or by letters where there are `contexts`."""

    symbol_of: tuple[int, ...]
    """The symbol of each symbol class of the alphabet. With `instants`, the *class* of the
    event."""
    symbols: int
    states: int
    kinds: tuple[Kind, ...]
    skip: tuple[tuple[DetState | None, ...], ...]
    """`[state][symbol]`: the state after an unmarked event; None: the match is lost. The row of
    START is unused."""
    steps: tuple[tuple[Step, ...], ...]
    """`[symbol]`: the other moves; those that end a match come last."""
    members: tuple[tuple[State, ...], ...]
    contexts: Contexts | None = None
    instants: tuple[tuple[int, ...], ...] | None = None
    """For simultaneous events: `[place][class]` is the symbol of an event at a place of its
    instant."""
    as_met: bool = False
    """Whether a run makes sets of these states as it meets them, because there are too many sets to
    make them beforehand. Then a state can pass an event in several ways: one is in `skip`, the
    others are steps without marks."""

    @property
    def unmarked(self) -> int | None:
        """With `as_met` the kind of steps without marks, −1 where there are none; else None."""
        kinds = (n for n, kind in enumerate(self.kinds) if not kind.marks and not kind.starts)
        return next(kinds, -1) if self.as_met else None

    @property
    def classes(self) -> int:
        """The number of different classes that `symbol_of` finds."""
        return max(self.symbol_of) + 1

    @property
    def skips_are_identities(self) -> bool:
        """Whether an unmarked event leaves every match in its state."""
        return all(
            target == state for state in range(1, self.states) for target in self.skip[state]
        )

    def is_idle(self, symbol: int) -> bool:
        """Whether an event of this symbol changes nothing, so that the update can skip it."""
        return not self.steps[symbol] and all(
            self.skip[state][symbol] == state for state in range(1, self.states)
        )


def symbols_of(events: Iterable[Event], alphabet: Alphabet, tables: Tables) -> tuple[int, ...]:
    """The symbols that some events of a form can have, ascending."""
    found = {
        tables.symbol_of[one]
        for event in events
        for one in alphabet.matching(event.type, event.clauses)
    }
    return tuple(sorted(found))


@frozen
class SelectionTables:
    """The automaton of a selector under WITHIN, which runs over a window once for each end in
    it."""

    following: tuple[tuple[int, ...], ...]  # `[state][letter]`: the next state of the tracker
    symbols: tuple[tuple[int, ...], ...]
    """`[state][letter]`: the symbol in `tables` of a letter that the tracker reads in that
    state."""
    tables: Tables  # a step out of the start never shares its cell with other sources

    def is_quiet(self, letter: int) -> bool:
        """Whether an event with this letter changes nothing, unless a match ends with it."""
        return all(
            self.following[state][letter] == state
            and all(step.target is None for step in self.tables.steps[symbols[letter]])
            and all(self.tables.skip[s][symbols[letter]] == s for s in range(1, self.tables.states))
            for state, symbols in enumerate(self.symbols)
        )


def tabulate(
    automaton: DeterministicAutomaton,
    machine: ContextMachine,
    selection: tuple[DeterministicAutomaton, ContextMachine] | None = None,
    *,
    keep_symbols: bool = False,
) -> tuple[Tables, SelectionTables | None]:
    """The transition tables of an automaton over the letters of a context machine.

    `selection` is the automaton of a selector that runs over windows, with its tracker, a machine
    over those letters. Letters that neither automaton distinguishes become one, and so do symbols
    that no context distinguishes. With `keep_symbols` every symbol of the alphabet stays a symbol.
    """
    column_of, columns = _merge_symbols(automaton)
    symbols = len(machine.following[0])
    letter_count = machine.contexts * symbols
    chosen, selected = _selection_columns(selection, letter_count)
    numbers: dict[Hashable, int] = {}
    letters = [
        numbers.setdefault(
            (
                column_of[automaton.class_of[letter]],
                chosen[letter],
                letter % symbols * keep_symbols,
            ),
            len(numbers),
        )
        for letter in range(letter_count)
    ]
    sample = [letters.index(letter) for letter in range(len(numbers))]
    tables = _tables_of(
        automaton, [columns[column_of[automaton.class_of[letter]]] for letter in sample]
    )
    kernel: dict[Hashable, int] = {}
    symbol_of = []
    for symbol in range(symbols):
        places = range(symbol, letter_count, symbols)
        behaviour = tuple((letters[at], machine.following[at // symbols][symbol]) for at in places)
        symbol_of.append(kernel.setdefault(behaviour, len(kernel)))
    first = [symbol_of.index(symbol) for symbol in range(len(kernel))]
    tables = replace(tables, symbol_of=tuple(symbol_of))
    if machine.contexts > 1:
        contexts = Contexts(
            tuple(tuple(row[symbol] for symbol in first) for row in machine.following),
            tuple(
                tuple(letters[context * symbols + symbol] for symbol in first)
                for context in range(machine.contexts)
            ),
        )
        tables = replace(tables, contexts=contexts)
    if selected is None:
        return tables, None
    rows = [chosen[letter] for letter in sample]
    return tables, SelectionTables(
        tuple(zip(*(tuple(following for following, _ in row) for row in rows), strict=True)),
        tuple(zip(*(tuple(symbol for _, symbol in row) for row in rows), strict=True)),
        with_starts_apart(selected),
    )


def with_instants(tables: Tables, classes: int) -> Tables:
    """The tables of an automaton whose letters tell the places of events in their instants.
    `classes` is the number of classes of the alphabet."""
    places = range(0, len(tables.symbol_of), classes)
    numbers: dict[tuple[int, ...], int] = {}
    class_of = [
        numbers.setdefault(tuple(tables.symbol_of[place + one] for place in places), len(numbers))
        for one in range(classes)
    ]
    return replace(tables, symbol_of=tuple(class_of), instants=tuple(zip(*numbers, strict=True)))


def _selection_columns(
    selection: tuple[DeterministicAutomaton, ContextMachine] | None, letters: int
) -> tuple[list[tuple[tuple[int, int], ...]], Tables | None]:
    """For each letter the pair (next state, symbol) of a selection, in each state of its
    tracker."""
    if selection is None:
        return [()] * letters, None
    automaton, tracker = selection
    column_of, columns = _merge_symbols(automaton)
    rows = [
        tuple(
            (
                tracker.following[state][letter],
                column_of[automaton.class_of[state * letters + letter]],
            )
            for state in range(tracker.contexts)
        )
        for letter in range(letters)
    ]
    return rows, _tables_of(automaton, columns)


def _tables_of(automaton: DeterministicAutomaton, columns: Sequence[_Column]) -> Tables:
    kinds: dict[Kind, int] = {}
    steps: list[tuple[Step, ...]] = []
    skip = tuple(
        _skip_targets(state, rows) for state, rows in enumerate(zip(*columns, strict=True))
    )
    for symbol, column in enumerate(columns):
        look()
        grouped: dict[tuple[tuple[str, ...], DetState | None], list[DetState]] = {}
        for state, row in enumerate(column):
            for move in row:
                if move.accepts:
                    grouped.setdefault((move.marks, None), []).append(DetState(state))
                passes = not move.marks and state != START
                if move.target is not None and not (passes and move.target == skip[state][symbol]):
                    grouped.setdefault((move.marks, move.target), []).append(DetState(state))
        order = sorted(grouped, key=lambda key: (key[1] is None, key[1] or 0, key[0]))
        steps.append(
            tuple(
                Step(_number(kinds, marks, grouped[key]), tuple(grouped[key]), target)
                for key in order
                for marks, target in [key]
            )
        )
    return Tables(
        tuple(range(len(columns))),
        len(columns),
        automaton.states,
        tuple(kinds),
        skip,
        tuple(steps),
        automaton.members,
        as_met=automaton.as_met,
    )


def with_starts_apart(tables: Tables) -> Tables:
    """The same tables, where a step out of the start never shares its cell with other sources. The
    general engine makes a cell for each source. Only a cell without a past is a first event."""
    kinds: dict[Kind, int] = {}
    steps = []
    for row in tables.steps:
        look()
        split = []
        for step in row:
            marks = tables.kinds[step.kind].marks
            for sources in ([START], [source for source in step.sources if source != START]):
                if set(sources) <= set(step.sources) and sources:
                    number = _number(kinds, marks, sources)
                    split.append(Step(number, tuple(sources), step.target))
        steps.append(tuple(split))
    return replace(tables, kinds=tuple(kinds), steps=tuple(steps))


def _number(kinds: dict[Kind, int], marks: tuple[str, ...], sources: Sequence[DetState]) -> int:
    return kinds.setdefault(Kind(marks, START in sources), len(kinds))


_Column = tuple[tuple[Move, ...], ...]


def _merge_symbols(automaton: DeterministicAutomaton) -> tuple[tuple[int, ...], list[_Column]]:
    numbers: dict[tuple[int, ...], int] = {}
    symbol_of = []
    columns: list[_Column] = []
    # Rows are compared once, and columns by the numbers of their rows.
    row_numbers: dict[tuple[Move, ...], int] = {}
    coded = []
    for rows in automaton.moves:
        look()
        known = {id(row): row for row in rows}
        code = {key: row_numbers.setdefault(row, len(row_numbers)) for key, row in known.items()}
        coded.append([code[id(row)] for row in rows])
    for column, code_of in zip(
        zip(*automaton.moves, strict=True), zip(*coded, strict=True), strict=True
    ):
        symbol_of.append(numbers.setdefault(code_of, len(numbers)))
        if len(columns) < len(numbers):
            columns.append(column)
    return tuple(symbol_of), columns


def _skip_targets(state: int, rows: Sequence[tuple[Move, ...]]) -> tuple[DetState | None, ...]:
    look()
    if state == START:
        return (None,) * len(rows)
    found: dict[int, DetState | None] = {}
    for row in rows:
        if id(row) not in found:
            passed = [move.target for move in row if not move.marks and move.target is not None]
            found[id(row)] = DetState(state) if state in passed else next(iter(passed), None)
    return tuple([found[id(row)] for row in rows])


def kinds_of_symbols(tables: Tables) -> tuple[int, ...] | None:
    """The kind of the events of each symbol, −1 for symbol 0. None where some symbol has several
    kinds or none, or where the past matters."""
    if tables.contexts is not None or tables.instants is not None:
        return None
    found = []
    for steps in tables.steps:
        kinds = {tables.kinds[step.kind].marks: step.kind for step in steps}
        if len(kinds) > 1:
            return None
        found.append(next(iter(kinds.values()), -1))
    return None if -1 in found[1:] else tuple(found)
