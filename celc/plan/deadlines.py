"""When a match with an absence at its end is decided: the deadlines of a query."""

from __future__ import annotations

from dataclasses import dataclass

from celc.core import formula as core
from celc.core.traversal import formulas_in


@dataclass(frozen=True, slots=True)
class Deadline:
    """A match is decided when `length` has passed since its end, or with `from_start` since its
    start."""

    length: core.Window
    from_start: bool


def deadlines_of(formula: core.Formula) -> tuple[Deadline, ...]:
    """The deadlines of a formula, each once, in the order of the text."""
    found = (
        Deadline(part.length, part.from_start)
        for part in formulas_in(formula)
        if isinstance(part, core.AbsenceAfter)
    )
    return tuple(dict.fromkeys(found))
