"""Transition tables → the numbers that a module gives its general engine and its selections. They
are nested tuples and dicts of numbers, which templates print as they are."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.automata.determinize import START
from celc.codegen.text.imports import Imports
from celc.codegen.text.templates import TemplateView
from celc.codegen.updates.update import UpdateInput
from celc.plan.earliest import EarliestTables
from celc.plan.tables import Contexts, SelectionTables, Tables

_MOST_WRITTEN_OUT = 2000
"""Entries of a table (states × symbols) that are written as Python. A larger table is text, a line
for each move: black takes seconds for thousands of tuples, and nobody reads them."""


Rows: TypeAlias = tuple[tuple[int, ...], ...]


@frozen
class ContextRows:
    """The machine over all events: rows by context."""

    following: Rows
    letters: Rows


@frozen
class TablesUpdate(TemplateView):
    """The `update` of the general engine, made from tables.

    - `header` says how the update runs, and why.
    - `starts` are moves by symbol, `moves` by state and symbol, `skip` states by state and symbol;
      `as_text`: the last two are lines of numbers.
    - `as_met`: a run makes sets of the states as it meets them.
    - `instants` are symbols by class, a row for each place in an instant; empty where events are
      not simultaneous.
    """

    template: ClassVar[str] = "tables_update"

    number: int
    header: str
    starts: tuple[Rows, ...]
    as_text: bool
    moves: tuple[dict[int, Rows], ...] | tuple[str, ...]
    skip: Rows | tuple[str, ...]
    idle: tuple[bool, ...]
    window: str
    size: int
    consumes: bool
    interleaved: bool
    contexts: ContextRows | None
    instants: Rows
    as_met: bool


@frozen
class SelectionLiteral(TemplateView):
    """The tables of a selector that runs over the events of a window. `following` and `symbols` are
    rows by state of the tracker. `starts`, `moves` and `skip`: see `TablesUpdate`."""

    template: ClassVar[str] = "selection"

    number: int
    strategy: str
    following: Rows
    symbols: Rows
    quiet: tuple[bool, ...]
    starts: tuple[Rows, ...]
    moves: tuple[dict[int, Rows], ...]
    skip: Rows


@frozen
class EarliestLiteral(TemplateView):
    """The tables of a selector that marks an event whenever the end can still be reached.

    `marks` and `end_kinds` are by state and symbol; see `EarliestTables`.
    """

    template: ClassVar[str] = "earliest"

    number: int
    strategy: str
    marks: tuple[dict[int, tuple[int, int]], ...]
    skip: Rows
    end_kinds: tuple[dict[int, int], ...]
    sets: Rows
    ends: tuple[int, ...]
    back: Rows


def tables_update(given: UpdateInput, tables: Tables, *, interleaved: bool) -> TablesUpdate:
    """The update of a query by tables."""
    window = given.window
    given.imports.use("update_by_tables", "tables", window.mode)
    as_text = tables.states * tables.symbols > _MOST_WRITTEN_OUT
    return TablesUpdate(
        number=given.number,
        header=given.header,
        starts=_starts(tables),
        as_text=as_text,
        moves=_lines(_numbers(tables)) if as_text else _moves(tables),
        skip=_lines(_skip(tables)) if as_text else _skip(tables),
        idle=tuple(map(tables.is_idle, range(tables.symbols))),
        window=window.mode,
        size=window.size,
        consumes=given.consumes,
        interleaved=interleaved,
        contexts=None if tables.contexts is None else _contexts(tables.contexts),
        instants=() if tables.instants is None else _rows(tables.instants),
        as_met=tables.as_met,
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
        tuple(map(selection.is_quiet, letters)),
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
            {n: way for n, way in enumerate(row) if way is not None} for row in tables.marks
        ),
        skip=tuple(
            tuple(-1 if target is None else target for target in row) for row in tables.skip
        ),
        end_kinds=tuple(
            {n: kind for n, kind in enumerate(row) if kind is not None} for row in tables.end_kinds
        ),
        sets=_rows(map(sorted, tables.sets)),
        ends=tuple(tables.ends),
        back=_rows(tables.back),
    )


def _rows(rows: Iterable[Sequence[int]]) -> Rows:
    return tuple(map(tuple, rows))


def _contexts(contexts: Contexts) -> ContextRows:
    return ContextRows(_rows(contexts.following), _rows(contexts.letters))


# --- tables, with states numbered from 0: the start has no number ---------------------------------


def _starts(tables: Tables) -> tuple[Rows, ...]:
    """The moves from the start, by symbol."""
    return tuple(
        tuple(
            (step.kind, int(step.target is None), (step.target or 0) - 1)
            for step in steps
            for source in step.sources
            if source == START
        )
        for steps in tables.steps
    )


def _moves(tables: Tables) -> tuple[dict[int, Rows], ...]:
    """The other moves, by state and symbol."""
    found: tuple[dict[int, Rows], ...] = tuple({} for _ in range(tables.states - 1))
    for source, symbol, *move in _numbers(tables):
        found[source][symbol] = (*found[source].get(symbol, ()), tuple(move))
    return found


def _numbers(tables: Tables) -> list[tuple[int, int, int, int, int]]:
    """(state, symbol, kind, whether a match ends, next state) of each move that continues a
    match."""
    moves = [
        (source - 1, symbol, step.kind, int(step.target is None), (step.target or 0) - 1)
        for symbol, steps in enumerate(tables.steps)
        for step in steps
        for source in step.sources
        if source != START
    ]
    return sorted(moves, key=lambda move: move[:2])


def _skip(tables: Tables) -> Rows:
    return tuple(
        tuple(-1 if target is None else target - 1 for target in row) for row in tables.skip[1:]
    )


def _lines(rows: Iterable[Sequence[int]]) -> tuple[str, ...]:
    return tuple(" ".join(map(str, row)) for row in rows)
