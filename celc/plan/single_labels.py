"""Which labels have exactly one event in every match, and which of these its first or last
event."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from celc.automata.determinize import START, DetState
from celc.plan.tables import Step, Tables


class _Marked(NamedTuple):
    """The labels with which runs have marked events before a state, as bits. Three sets: by all
    runs, by at least one run, and by at least one run more than once."""

    always: int
    ever: int
    again: int

    def after(self, marks: int) -> _Marked:
        """The labels after a move that marks with these."""
        return _Marked(self.always | marks, self.ever | marks, self.again | (self.ever & marks))

    def joined(self, other: _Marked) -> _Marked:
        """The labels where two paths meet."""
        return _Marked(self.always & other.always, self.ever | other.ever, self.again | other.again)


def single_labels(tables: Tables) -> frozenset[str]:
    """The labels that every run of the tables from start to end marks exactly once. They have one
    event in each match, also in each match that conditions or a selector leave."""
    bits = _bits(tables)
    moves = _moves(tables, bits)
    before: dict[DetState, _Marked] = {START: _Marked(0, 0, 0)}
    at_end: _Marked | None = None
    work = [START]
    while work:
        state = work.pop()
        for target, marks in moves.get(state, ()):
            found = before[state].after(marks)
            if target is None:
                at_end = found if at_end is None else at_end.joined(found)
                continue
            known = before.get(target)
            joined = found if known is None else known.joined(found)
            if joined != known:
                before[target] = joined
                work.append(target)
    if at_end is None:
        return frozenset()
    return frozenset(name for name, bit in bits.items() if at_end.always & ~at_end.again & bit)


def _bits(tables: Tables) -> dict[str, int]:
    labels = dict.fromkeys(mark for kind in tables.kinds for mark in kind.marks)
    return {label: 1 << number for number, label in enumerate(labels)}


def _moves(
    tables: Tables, bits: dict[str, int]
) -> dict[DetState, set[tuple[DetState | None, int]]]:
    """The moves out of each state: their targets (None: a match ends), and their marks."""
    marks = [sum(bits[mark] for mark in kind.marks) for kind in tables.kinds]
    moves: dict[DetState, set[tuple[DetState | None, int]]] = {}
    for steps in tables.steps:
        for step in steps:
            for source in step.sources:
                moves.setdefault(source, set()).add((step.target, marks[step.kind]))
    for number, row in enumerate(tables.skip):
        if number != START:
            # A move that keeps a match in its state marks nothing.
            others = {(target, 0) for target in row if target is not None and target != number}
            moves.setdefault(DetState(number), set()).update(others)
    return moves


def labels_at_start(tables: Tables) -> frozenset[str]:
    """The labels of the first event of every match."""
    return _common(tables, lambda step: START in step.sources)


def labels_at_end(tables: Tables) -> frozenset[str]:
    """The labels of the last event of every match."""
    return _common(tables, lambda step: step.target is None)


def _common(tables: Tables, wanted: Callable[[Step], bool]) -> frozenset[str]:
    kinds = {step.kind for steps in tables.steps for step in steps if wanted(step)}
    marks = [frozenset(tables.kinds[kind].marks) for kind in kinds]
    return frozenset.intersection(*marks) if marks else frozenset()
