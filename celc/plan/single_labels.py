"""Which labels hold exactly one event of every match, and which of these its first or last."""

from __future__ import annotations

from collections.abc import Callable

from celc.automata.determinize import START, DetState
from celc.plan.tables import Step, Tables

_MANY = 2


def single_labels(tables: Tables) -> frozenset[str]:
    """The labels that every run of the tables from a start to an end marks exactly once.

    So they hold one event of each match, and of each match that conditions or a selector leave.
    """
    labels = {mark for kind in tables.kinds for mark in kind.marks}
    return frozenset(label for label in labels if _counts_at_end(tables, label) == {1})


def labels_at_start(tables: Tables) -> frozenset[str]:
    """The labels of the first event of every match."""
    return _common(tables, lambda step: START in step.sources)


def labels_at_end(tables: Tables) -> frozenset[str]:
    """The labels of the last event of every match."""
    return _common(tables, lambda step: step.target is None)


def _common(tables: Tables, wanted: Callable[[Step], bool]) -> frozenset[str]:
    marks = [
        frozenset(tables.kinds[step.kind].marks)
        for steps in tables.steps
        for step in steps
        if wanted(step)
    ]
    return frozenset.intersection(*marks) if marks else frozenset()


def _counts_at_end(tables: Tables, label: str) -> set[int]:
    """How often runs mark with a label: 0, 1 or more often."""
    counts: dict[DetState, set[int]] = {START: {0}}
    moves = _moves(tables, label)
    at_end: set[int] = set()
    work = [START]
    while work:
        state = work.pop()
        for target, marks in moves.get(state, ()):
            found = {min(_MANY, count + marks) for count in counts[state]}
            if target is None:
                at_end |= found
            elif not found <= counts.setdefault(target, set()):
                counts[target] |= found
                work.append(target)
    return at_end


def _moves(tables: Tables, label: str) -> dict[DetState, set[tuple[DetState | None, int]]]:
    """The moves out of each state: where they lead (None: a match ends), and whether they mark."""
    moves: dict[DetState, set[tuple[DetState | None, int]]] = {}
    for steps in tables.steps:
        for step in steps:
            marks = int(label in tables.kinds[step.kind].marks)
            for source in step.sources:
                moves.setdefault(source, set()).add((step.target, marks))
    for number, row in enumerate(tables.skip):
        if number != START:
            state = DetState(number)
            skips = {(target, 0) for target in row if target is not None}
            moves.setdefault(state, set()).update(skips)
    return moves
