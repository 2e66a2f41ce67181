"""Transition tables → the literals of the general engine and of selections in a module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from celc.automata.determinize import START
from celc.codegen.escape import tuple_text
from celc.codegen.imports import Imports
from celc.codegen.templates import TemplateView
from celc.codegen.update import UpdateInput
from celc.plan.earliest import EarliestTables
from celc.plan.tables import Contexts, SelectionTables, Tables

_MOST_WRITTEN_OUT = 2000
"""The most entries of a table (states × symbols) that are written as Python. A larger table is
text, a line for each move: black takes seconds for thousands of tuples, and nobody reads them."""


@dataclass(frozen=True, slots=True)
class ContextRows:
    """The machine over all events: tuples by context."""

    following: tuple[str, ...]
    letters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TablesUpdate(TemplateView):
    """The `update` of the general engine, made from tables.

    `header` says how the update runs, and why. `starts` are tuples of moves by symbol. `as_text`:
    `moves` and `skip` are lines of numbers; otherwise `moves` are the items of a dict for each
    state, and `skip` a tuple for each state. `instants` are tuples of symbols by class, one for
    each place in an instant; none where events of one instant are not simultaneous.
    """

    template: ClassVar[str] = "tables_update"

    number: int
    header: str
    starts: tuple[str, ...]
    as_text: bool
    moves: tuple[str, ...]
    skip: tuple[str, ...]
    idle: str
    window: str
    size: int
    consumes: bool
    interleaved: bool
    contexts: ContextRows | None
    instants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SelectionLiteral(TemplateView):
    """The tables of a selector that is run over the events of a window.

    `following` and `symbols` are tuples by state of the tracker; `starts`, `moves` and `skip` as in
    `TablesUpdate`.
    """

    template: ClassVar[str] = "selection"

    number: int
    strategy: str
    following: tuple[str, ...]
    symbols: tuple[str, ...]
    quiet: str
    starts: tuple[str, ...]
    moves: tuple[str, ...]
    skip: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EarliestLiteral(TemplateView):
    """The tables of a selector that marks an event whenever the end can still be reached.

    `marks` and `end_kinds` are items of a dict by state, the others tuples.
    """

    template: ClassVar[str] = "earliest"

    number: int
    strategy: str
    marks: tuple[str, ...]
    skip: tuple[str, ...]
    end_kinds: tuple[str, ...]
    sets: tuple[str, ...]
    ends: str
    back: tuple[str, ...]


def tables_update(given: UpdateInput, tables: Tables, *, interleaved: bool) -> TablesUpdate:
    """The update of a query by tables."""
    window = given.window
    given.imports.use("update_by_tables", "tables", window.mode)
    as_text = tables.states * tables.symbols > _MOST_WRITTEN_OUT
    return TablesUpdate(
        given.number,
        given.header,
        _starts(tables),
        as_text,
        _move_lines(tables) if as_text else _moves(tables),
        _skip_lines(tables) if as_text else _skip(tables),
        tuple_text(str(tables.is_idle(symbol)) for symbol in range(tables.symbols)),
        window.mode,
        window.size,
        given.consumes,
        interleaved,
        None if tables.contexts is None else _contexts(tables.contexts),
        () if tables.instants is None else _rows(tables.instants),
    )


def selection_literal(
    number: int, strategy: str, selection: SelectionTables, imports: Imports
) -> SelectionLiteral:
    """The tables of a selector that runs over the events of a window, for each end."""
    imports.use("selection")
    letters = range(len(selection.following[0]))
    return SelectionLiteral(
        number,
        strategy,
        _rows(selection.following),
        _rows(selection.symbols),
        tuple_text(str(selection.is_quiet(letter)) for letter in letters),
        _starts(selection.tables),
        _moves(selection.tables),
        _skip(selection.tables),
    )


def earliest_literal(
    number: int, strategy: str, tables: EarliestTables, imports: Imports
) -> EarliestLiteral:
    """The tables that mark the events of a match within a window, for each end."""
    imports.use("earliest")
    return EarliestLiteral(
        number,
        strategy,
        marks=tuple(
            ", ".join(f"{n}: ({way[0]}, {way[1]})" for n, way in enumerate(row) if way is not None)
            for row in tables.marks
        ),
        skip=tuple(
            tuple_text("-1" if target is None else str(target) for target in row)
            for row in tables.skip
        ),
        end_kinds=tuple(
            ", ".join(f"{n}: {kind}" for n, kind in enumerate(row) if kind is not None)
            for row in tables.end_kinds
        ),
        sets=tuple(tuple_text(map(str, sorted(states))) for states in tables.sets),
        ends=tuple_text(map(str, tables.ends)),
        back=_rows(tables.back),
    )


def _rows(rows: Iterable[Sequence[int]]) -> tuple[str, ...]:
    return tuple(tuple_text(map(str, row)) for row in rows)


def _contexts(contexts: Contexts) -> ContextRows:
    return ContextRows(_rows(contexts.following), _rows(contexts.letters))


# --- tables, with states numbered from 0: the start has no number ---------------------------------


def _starts(tables: Tables) -> tuple[str, ...]:
    """The moves from the start, a tuple for each symbol."""
    return tuple(
        tuple_text(
            f"({step.kind}, {int(step.target is None)}, {(step.target or 0) - 1})"
            for step in steps
            for source in step.sources
            if source == START
        )
        for steps in tables.steps
    )


def _moves(tables: Tables) -> tuple[str, ...]:
    """The other moves, for each state the items of a dict from symbols to moves."""
    moves: list[dict[int, list[str]]] = [{} for _ in range(tables.states - 1)]
    for source, symbol, kind, ends, target in _numbers(tables):
        moves[source].setdefault(symbol, []).append(f"({kind}, {ends}, {target})")
    return tuple(
        ", ".join(f"{symbol}: {tuple_text(found)}" for symbol, found in of_state.items())
        for of_state in moves
    )


def _move_lines(tables: Tables) -> tuple[str, ...]:
    return tuple(" ".join(map(str, move)) for move in _numbers(tables))


def _numbers(tables: Tables) -> list[tuple[int, int, int, int, int]]:
    """(state, symbol, kind, whether a match ends, next state) of each move that begins no match,
    by state and symbol."""
    moves = [
        (source - 1, symbol, step.kind, int(step.target is None), (step.target or 0) - 1)
        for symbol, steps in enumerate(tables.steps)
        for step in steps
        for source in step.sources
        if source != START
    ]
    return sorted(moves, key=lambda move: move[:2])


def _skip(tables: Tables) -> tuple[str, ...]:
    return tuple(
        tuple_text("-1" if target is None else str(target - 1) for target in row)
        for row in tables.skip[1:]
    )


def _skip_lines(tables: Tables) -> tuple[str, ...]:
    return tuple(
        " ".join("-1" if target is None else str(target - 1) for target in row)
        for row in tables.skip[1:]
    )
