"""Transition tables → what the templates of the general engine and of selections are given."""

from __future__ import annotations

from typing import Any

from celc.determinize import START
from celc.earliest import EarliestTables
from celc.escape import tuple_text
from celc.tables import Contexts, SelectionTables, Tables

View = dict[str, Any]

_MOST_WRITTEN_OUT = 2000
"""Entries of a table (states × symbols) that are written as Python; more are text, a line each:
black takes seconds for thousands of tuples, and nobody reads them."""


def tables_view(tables: Tables) -> View:
    starts: list[list[str]] = []
    moves: dict[tuple[int, int], list[str]] = {}
    for symbol, steps in enumerate(tables.steps):
        starts.append([])
        for step in steps:
            target = -1 if step.target is None else step.target - 1
            move = f"({step.kind}, {int(step.target is None)}, {target})"
            for source in step.sources:
                if source == START:
                    starts[symbol].append(move)
                else:
                    moves.setdefault((source - 1, symbol), []).append(move)
    large = tables.states * tables.symbols > _MOST_WRITTEN_OUT
    return {
        "move_lines": _move_lines(tables) if large else None,
        "skip_lines": [
            " ".join("-1" if target is None else str(target - 1) for target in row)
            for row in tables.skip[1:]
        ],
        "state_count": tables.states - 1,
        "symbol_count": tables.symbols,
        "start_rows": [tuple_text(row) for row in starts],
        "move_rows": [
            {
                "state": state,
                "rows": [
                    f"{symbol}: {tuple_text(moves[state, symbol])}"
                    for symbol in range(tables.symbols)
                    if (state, symbol) in moves
                ],
            }
            for state in range(tables.states - 1)
        ],
        "skip_rows": [
            tuple_text("-1" if target is None else str(target - 1) for target in tables.skip[state])
            for state in range(1, tables.states)
        ],
        "idle": tuple_text(str(tables.is_idle(symbol)) for symbol in range(tables.symbols)),
    }


def _move_lines(tables: Tables) -> list[str]:
    moves = [
        (source - 1, symbol, step.kind, int(step.target is None), (step.target or 0) - 1)
        for symbol, steps in enumerate(tables.steps)
        for step in steps
        for source in step.sources
        if source != START
    ]
    return [" ".join(map(str, move)) for move in sorted(moves, key=lambda move: move[:2])]


def contexts_view(contexts: Contexts) -> View:
    return {
        "following": [tuple_text(map(str, row)) for row in contexts.following],
        "letters": [tuple_text(map(str, row)) for row in contexts.letters],
    }


def earliest_view(tables: EarliestTables) -> View:
    return {
        "marks": [
            ", ".join(f"{n}: ({way[0]}, {way[1]})" for n, way in enumerate(row) if way is not None)
            for row in tables.marks
        ],
        "end_kinds": [
            ", ".join(f"{n}: {kind}" for n, kind in enumerate(row) if kind is not None)
            for row in tables.end_kinds
        ],
        "skip": [
            tuple_text("-1" if target is None else str(target) for target in row)
            for row in tables.skip
        ],
        "sets": [tuple_text(map(str, sorted(states))) for states in tables.sets],
        "ends": tuple_text(map(str, tables.ends)),
        "back": [tuple_text(map(str, row)) for row in tables.back],
    }


def selection_view(selection: SelectionTables) -> View:
    letters = range(len(selection.following[0]))
    return {
        "following": [tuple_text(map(str, row)) for row in selection.following],
        "symbols": [tuple_text(map(str, row)) for row in selection.symbols],
        "quiet": tuple_text(str(selection.is_quiet(letter)) for letter in letters),
        **tables_view(selection.tables),
    }
