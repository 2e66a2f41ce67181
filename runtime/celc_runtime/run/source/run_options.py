"""The options of a run, the same for every kind of run."""

from __future__ import annotations

from dataclasses import replace

from celc_runtime.arrow.events.event_order import Arrangement
from celc_runtime.engine.arena.nodes import FIRES
from celc_runtime.plan.frozen import frozen


@frozen
class RunOptions:
    """What a run is told besides its program."""

    ties_are_errors: bool = False
    """Whether it is an error if the order leaves two events equal."""

    first_position: int = 0
    """The position of the first event."""

    rows_before: int | None = None
    """How many rows of a table stand before the first event, where this run reads a part of the
    table, and other runs the other parts; None: it reads all that there is."""

    continues: bool = False
    """Whether the partition of the first event was entered before."""

    numbered: str | None = None
    """The column with the numbers of the rows, for messages; None: the rows are in their original
    order."""

    parts_checked: bool = False
    """Whether it is known of all rows of this run that no partition comes back."""

    arranged: Arrangement | None = None
    """What is known of all rows of this run; None: its batches show it."""

    rows: int | None = None
    """How many rows come in all, so that nothing is kept after the last of them; None: it is not
    known."""

    is_small: bool = False
    """Whether few rows come, all in one batch that has been checked (`LateRows.taken`)."""

    clock: int | None = None
    """The key of the greatest time of the first order column in the whole input, for matches that
    are decided after their end (`Deadlines`); None: the events show it."""

    since: int | None = None
    """Matches that were decided at this clock are not returned again; None: all are returned."""

    is_over: bool = False
    """Whether no more events come, so that every match of stretches is decided."""

    first_node: int = 1
    """The first node of the arena. Tests begin near the limits of smaller numbers."""

    @property
    def nodes(self) -> int:
        """The nodes that the arena begins with: few for few rows, as new memory is in no cache."""
        is_small = self.is_small or (self.arranged is not None and self.arranged.rows <= 1 << 8)
        return 1 << 10 if is_small else FIRES

    def of_rows(
        self, numbered: str | None, arranged: Arrangement | None, rows: int | None
    ) -> RunOptions:
        """The same options for rows of which this is known."""
        if self is PLAIN:  # a tenth of the time
            return RunOptions(numbered=numbered, arranged=arranged, rows=rows)
        return replace(self, numbered=numbered, arranged=arranged, rows=rows)


PLAIN = RunOptions()
"""For a run that starts at the first event of a stream, in its order."""
