"""What a run is told beside its program, the same for every kind of run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run is told beside its program."""

    ties_are_errors: bool = False
    """Two events that the order leaves equal are an error."""

    first_position: int = 0
    """The position of the first event."""

    continues: bool = False
    """The partition of the first event was entered before."""

    numbered: str | None = None
    """The column with the numbers of the rows, for messages, where rows are not in their original
    order."""

    clock: int | None = None
    """The key of the greatest time of the first order column in the whole input, for matches that
    are decided later than they end (`Deadlines`); None: it is learned from the events."""

    since: int | None = None
    """Matches that had been decided by this clock are not handed out; None: all are."""

    first_node: int = 1
    """The first node of the arena: tests begin near the limits of smaller numbers."""


PLAIN = RunOptions()
"""A run from the first event of a stream on, in its order."""
