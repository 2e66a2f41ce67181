"""How often events take the transitions of an automaton.

The generated module finds the symbols of the events, and the automaton runs over them here. A
transition counts once for each event at which some partial match takes it. It does not count once
for each partial match, because their number grows exponentially. If any partial match in a state
fits a window, the one that began last does. So one start for each state is enough.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
from celc_runtime.arrow.events.columns import Columns
from celc_runtime.arrow.events.sorting import sorted_for
from celc_runtime.arrow.tables.event_tables import table_of
from celc_runtime.program import Program
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import check

from celc.automata.determinize import START
from celc.driver.pipeline import Stages
from celc.plan.strategy import ByDefinition, Checked, Keyed


class _Transition(Protocol):
    @property
    def source(self) -> int: ...

    @property
    def target(self) -> int: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def classes(self) -> frozenset[int]: ...


@dataclass(frozen=True)
class Taken:
    """How many events took each transition, by (source, target or −1, marks), and how many ended a
    match."""

    events: int
    ends: int
    counts: dict[tuple[int, int, tuple[str, ...]], int]
    notes: tuple[str, ...] = field(default=())

    def of(self, transition: _Transition) -> int:
        return self.counts.get((transition.source, transition.target, transition.labels), 0)


@dataclass(frozen=True)
class _Symbols:
    """The letters of events before contexts are known, and the window's measure of each event."""

    symbols: np.ndarray
    keys: np.ndarray
    floors: np.ndarray
    parts: np.ndarray


def taken_by(stages: Stages, program: Program, events: pa.Table) -> Taken:
    """The counts of a query's transitions. `program` is the compiled query.

    Raises EventError where the events do not fit the query. Raises ValueError for a query that
    reads events in another way.
    """
    check(program, Route.COUNTS)
    read = _symbols(stages, program, events)
    ends, counts = _counted(stages, program, read)
    return Taken(len(read.symbols), ends, counts, _notes(stages, program))


def _notes(stages: Stages, program: Program) -> tuple[str, ...]:
    found = []
    update, listing = stages.program.update, stages.program.listing
    if isinstance(update, Keyed) or isinstance(listing, Checked | ByDefinition):
        found.append(
            "The query has conditions that the automaton does not decide, such as those that "
            "compare events: counts are of the partial matches before these conditions."
        )
    if stages.query.total is not None and stages.query.total.having is not None:
        found.append("HAVING leaves out rows of totals, and no transitions.")
    if program.plan.matching.consume_by != "NONE":
        found.append("After an event that ends a match, all partial matches are gone (CONSUME BY).")
    return tuple(found)


def _symbols(stages: Stages, program: Program, events: pa.Table) -> _Symbols:
    """The symbol of each event in the order of the query, as the alphabet numbers them."""
    plan = program.plan
    table, numbered = sorted_for(plan, table_of(program, events))
    columns = Columns(plan, ties_are_errors=False, numbered=numbered)
    table = table.combine_chunks()
    batches = table.to_batches()
    if len(batches) > 1:
        raise ValueError("the texts of these events are too long for one batch: give fewer events")
    empty = np.zeros(0, np.int64)
    if not batches:
        return _Symbols(empty, empty, empty, empty)
    prepared = columns.prepare(batches[0])
    batch = prepared.batch
    program.classify(*columns.arguments(prepared.events), batch.symbols)
    tables = stages.program.tables
    first = {kernel: symbol for symbol, kernel in reversed(list(enumerate(tables.symbol_of)))}
    symbols = np.array([first[n] for n in range(len(first))], np.int64)[batch.symbols]
    rows = len(symbols)
    parts = np.zeros(rows, np.int64)
    if plan.interleaves:
        parts = batch.slots.astype(np.int64)
    elif len(prepared.parts):
        parts = np.searchsorted(prepared.parts, np.arange(rows), side="right")
    keys, floors = _window(program, batch.keys, batch.floors, parts)
    return _Symbols(symbols, keys, floors, parts)


def _window(
    program: Program, keys: np.ndarray, floors: np.ndarray, parts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the window measures of each event, and the least such number that a match may start
    with."""
    from celc.interfaces.pages.marks import positions_in

    window, rows = program.plan.matching.window, len(parts)
    if window is None:
        return np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    if window.unit == "EVENTS":
        keys = positions_in(parts)
    if not len(floors):
        floors = keys - int(window.size)
    return keys, floors


def _counted(
    stages: Stages, program: Program, read: _Symbols
) -> tuple[int, dict[tuple[int, int, tuple[str, ...]], int]]:
    """Run the automaton over the events of each partition.

    Returns the number of events at which matches end, and how often each transition is taken.
    """
    automaton, machine = stages.minimal, stages.automaton.letters.machine
    following = machine.following
    width = len(following[0])
    counts: dict[tuple[int, int, tuple[str, ...]], int] = {}
    ends = 0
    active: dict[int, dict[int, int]] = {}
    contexts: dict[int, int] = {}
    consumes, everywhere = program.plan.matching.consume_by != "NONE", program.plan.interleaves
    rows = zip(
        read.symbols.tolist(),
        read.keys.tolist(),
        read.floors.tolist(),
        read.parts.tolist(),
        strict=True,
    )
    for symbol, key, floor, part in rows:
        before = active.get(part, {})
        context = contexts.get(part, 0)
        letter = automaton.class_of[context * width + symbol]
        if len(following) > 1:
            contexts[part] = following[context][symbol]
        after: dict[int, int] = {}
        ended = False
        for state, start in (*before.items(), (int(START), key)):
            if start < floor:
                continue
            for move in automaton.moves[state][letter]:
                if move.accepts:
                    ended = True
                    taken = (state, -1, move.marks)
                    counts[taken] = counts.get(taken, 0) + 1
                if move.target is not None:
                    target = int(move.target)
                    taken = (state, target, move.marks)
                    counts[taken] = counts.get(taken, 0) + 1
                    after[target] = max(after.get(target, start), start)
        ends += ended
        if ended and consumes:
            after = {}
            if everywhere:
                active.clear()
        active[part] = after
    return ends, counts
