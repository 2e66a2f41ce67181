"""Choices that a caller makes besides the query. It imports almost nothing: the command line reads
the defaults before it knows whether it compiles anything."""

import math
import os

from celc_runtime.plan.frozen import frozen

from celc.core.given_functions import GivenFunction
from celc.core.limits import DEFAULT_MAX_STATES, DEFAULT_MAX_WORK, MOST_MAX_WORK, SIMULTANEOUS

# each representation is checked before the next pass takes it
VERIFYING = os.environ.get("CELC_VERIFY") == "1"

AT_END = ("open", "closed")
"""Whether more events may come after the input."""


@frozen
class Options:
    """The choices, with their defaults."""

    order_by: tuple[str, ...] | None = None
    """None: the attribute of WITHIN or of an absence, if there is one."""
    tiebreak: tuple[str, ...] = ()
    """Columns that distinguish events which are equal in the order columns; they need not be
    declared."""
    ties: str | None = None
    """SIMULTANEOUS: events that are equal in all order columns are one instant; None: they have an
    order."""
    at_end: str = "open"
    """"closed": no more events come, so all matches with an absence at their end are decided."""
    positions: bool = False  # answers have positions on Spark as well
    match_id: bool = False  # answers whose rows are matches have the column `match_id`
    type_column: str | None = None
    """The column of the event types, which must be there then; None: `type`."""
    max_states: int = DEFAULT_MAX_STATES
    first_order: bool = False  # labels made with AS are read as in the first paper
    max_work: int = DEFAULT_MAX_WORK
    """Steps that conditions across events may take at one event without finding a match."""
    max_compile_seconds: float | None = None
    """Seconds that the compilation may take; None: no limit."""
    functions: tuple[GivenFunction, ...] | None = None
    """The functions that are given for what a text declares; None: nobody has been asked."""
    joins: bool = True  # modules hold their queries as joins, which Spark alone runs

    def __post_init__(self) -> None:
        if self.ties not in (None, SIMULTANEOUS):
            raise ValueError(f"ties must be {SIMULTANEOUS!r} or None, not {self.ties!r}")
        if self.at_end not in AT_END:
            raise ValueError(f"at_end must be 'open' or 'closed', not {self.at_end!r}")
        if not is_work(self.max_work):
            raise ValueError(
                f"max_work must be a whole number from 1 to {MOST_MAX_WORK}, not {self.max_work!r}"
            )
        if self.max_compile_seconds is not None and not is_seconds(self.max_compile_seconds):
            raise ValueError(
                "max_compile_seconds must be a positive number of seconds, not "
                f"{self.max_compile_seconds!r}"
            )


def is_work(value: object) -> bool:
    """Whether a value can be `max_work`."""
    return type(value) is int and 1 <= value <= MOST_MAX_WORK


def is_seconds(value: object) -> bool:
    """Whether a value can be `max_compile_seconds`."""
    return type(value) in (int, float) and 0 < value < math.inf  # type: ignore[operator]
