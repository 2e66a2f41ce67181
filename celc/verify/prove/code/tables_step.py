"""automaton → tables: the tables move from state to state as the automaton does.

States have the same numbers in both. So the two are compared move by move, and nothing is left
open. The automaton reads letters (a symbol in a context), of which it has classes; the tables have
a column for each symbol, or for each class of symbols where there are contexts or instants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from celc.automata.determinize import START, DeterministicAutomaton
from celc.automata.letters import ContextMachine
from celc.plan.tables import Tables
from celc.verify.prove.code.machines import marks_text
from celc.verify.prove.code.module_text import ModuleText
from celc.verify.prove.verdict import NotUnderstoodError

Entry = tuple[tuple[str, ...], int | None]
"""A move of a state at a symbol: its marks, and the next state; None: a match ends."""


def differences_of_tables(
    automaton: DeterministicAutomaton, machine: ContextMachine, tables: Tables
) -> Iterator[str]:
    """Where tables differ from the automaton of which they were made, in words."""
    if automaton.states != tables.states:
        yield f"{automaton.states} states become {tables.states}"
        return
    yield from _kinds(tables)
    compared: set[tuple[int, int]] = set()
    symbols = len(machine.following[0])
    for context, following in enumerate(machine.following):
        for symbol in range(symbols):
            at = f"symbol {symbol}" + (f" in context {context}" if context else "")
            try:
                column, after = _column(tables, context, symbol)
            except IndexError:
                yield f"{at} has no column"
                continue
            if after is not None and after != following[symbol]:
                yield f"{at} is followed by context {after}, not {following[symbol]}"
            letter = automaton.class_of[context * symbols + symbol]
            if (letter, column) in compared:
                continue
            compared.add((letter, column))
            found = entries_of(tables, column)
            for state in range(automaton.states):
                wanted = wanted_entries(automaton, state, letter)
                if sorted(found[state], key=repr) != sorted(wanted, key=repr):
                    yield (
                        f"{at}, state {state}: the automaton has {_shown(wanted)}, "
                        f"the tables {_shown(found[state])}"
                    )


def _column(tables: Tables, context: int, symbol: int) -> tuple[int, int | None]:
    """The column of the tables for a symbol, and the context after it (None: there are none).

    Raises IndexError where the tables have no such column.
    """
    if tables.instants is not None:
        classes = len(tables.symbol_of)
        return tables.instants[symbol // classes][tables.symbol_of[symbol % classes]], None
    one = tables.symbol_of[symbol]
    if tables.contexts is None:
        if context:
            raise IndexError
        return one, None
    return tables.contexts.letters[context][one], tables.contexts.following[context][one]


def wanted_entries(automaton: DeterministicAutomaton, state: int, letter: int) -> list[Entry]:
    """The moves of a state of the automaton at a class of letters."""
    found: list[Entry] = []
    for move in automaton.moves[state][letter]:
        if move.accepts:
            found.append((move.marks, None))
        if move.target is not None:
            found.append((move.marks, int(move.target)))
    return found


def entries_of(tables: Tables, column: int) -> list[list[Entry]]:
    """For each state its moves at a symbol of the tables."""
    found: list[list[Entry]] = [[] for _ in range(tables.states)]
    for step in tables.steps[column]:
        target = None if step.target is None else int(step.target)
        for source in step.sources:
            found[source].append((tables.kinds[step.kind].marks, target))
    for state, row in enumerate(tables.skip):
        passed = row[column]
        if state != START and passed is not None:
            found[state].append(((), int(passed)))
    return found


def _kinds(tables: Tables) -> Iterator[str]:
    """Where a kind says otherwise than its step whether it begins a match, in words."""
    for symbol, steps in enumerate(tables.steps):
        for step in steps:
            if tables.kinds[step.kind].starts != (START in step.sources):
                yield f"symbol {symbol}: kind {step.kind} begins a match or does not"


def _shown(entries: Sequence[Entry]) -> str:
    if not entries:
        return "no move"
    return ", ".join(
        f"{marks_text(marks)} to {'a match' if target is None else f'state {target}'}"
        for marks, target in sorted(entries, key=repr)
    )


# --- tables in the text ---------------------------------------------------------------------------


def tables_in(module: ModuleText, name: str) -> dict[str, Any]:
    """The arguments with which a module calls `tables`, by name, as the runtime gets them.

    Texts of numbers (`moves`, `skip`) are read. Raises NotUnderstoodError where there are none.
    """

    def tables(**given: Any) -> dict[str, Any]:
        return given

    names: dict[str, Any] = {one: one for one in ("NO_WINDOW", "EVENTS", "KEYS", "FLOORS")}
    if name not in module.values:
        raise NotUnderstoodError(f"the module has no {name}")
    found: dict[str, Any] = module.value(name, {**names, "tables": tables})
    for key in ("moves", "skip"):
        if isinstance(found[key], str):
            lines = [line.split() for line in found[key].split("\n") if line.strip()]
            found[key] = [tuple(map(int, line)) for line in lines]
            if key == "moves":
                states = max((row[0] for row in found[key]), default=-1) + 1
                rows: list[dict[int, tuple[tuple[int, ...], ...]]] = [{} for _ in range(states)]
                for state, symbol, *move in found[key]:
                    rows[state][symbol] = (*rows[state].get(symbol, ()), tuple(move))
                found[key] = rows
    return found


def differences_of_text(given: dict[str, Any], tables: Tables) -> Iterator[str]:
    """Where the tables in a module differ from the tables of the plan, in words."""
    moves, skip = given["moves"], given["skip"]
    for symbol in range(tables.symbols):
        wanted = entries_of(tables, symbol)
        found: list[list[Entry]] = [[] for _ in range(tables.states)]
        of_state = [given["starts"][symbol]] + [row.get(symbol, ()) for row in moves]
        for state, row in enumerate(of_state):
            for kind, ends, target in row:
                entry = tables.kinds[kind].marks, None if ends else target + 1
                if ends and target >= 0:
                    found[state].append((tables.kinds[kind].marks, target + 1))
                found[state].append(entry)
                if tables.kinds[kind].starts != (state == START):
                    yield f"symbol {symbol}: kind {kind} begins a match or does not"
        for state, row in enumerate(skip, 1):
            if row[symbol] >= 0:
                found[state].append(((), row[symbol] + 1))
        for state in range(tables.states):
            if sorted(found[state], key=repr) != sorted(wanted[state], key=repr):
                yield (
                    f"symbol {symbol}, state {state}: the tables have {_shown(wanted[state])}, "
                    f"the module {_shown(found[state])}"
                )
        idle = given["idle"][symbol]
        moves_nothing = not any(of_state) and all(
            row[symbol] == state for state, row in enumerate(skip)
        )
        if idle and not moves_nothing:
            yield f"symbol {symbol} is passed over, and has moves"
    contexts = tables.contexts
    following = () if contexts is None else contexts.following
    letters = () if contexts is None else contexts.letters
    for name, wanted_rows in (
        ("following", following),
        ("letters", letters),
        ("instants", tables.instants or ()),
    ):
        found_rows = tuple(map(tuple, given.get(name, ())))
        if found_rows != tuple(map(tuple, wanted_rows)):
            yield f"the {name} of the module are {found_rows}"
