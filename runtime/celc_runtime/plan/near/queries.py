"""Near misses as data: the queries with one part bent, and how far each bends it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from celc_runtime.plan.frozen import frozen

Sign: TypeAlias = Literal["<", "<=", ">", ">="]

SHARE = 0.1
"""How far a value moves where nobody says otherwise, over its absolute value."""


@frozen
class Whole:
    """A part of which there is no more and less: the amount is 1. `found` is known beforehand."""

    asked: str
    found: str | None = None


@frozen
class Took:
    """A window: the time that it took over its length, less 1. `size` in microseconds, events, or
    the units of the attribute. `column` is the list of rows that are inside it, `attribute` what is
    measured; None: the start and the end of the match, by positions where `in_events`. `in_time`:
    it is a duration."""

    asked: str
    size: float
    in_events: bool
    in_time: bool
    column: str | None = None
    attribute: str | None = None


@frozen
class Bound:
    """One side of a comparison: it moves by at most `room`, or by `share` of its absolute value, or
    if `by_one` by one. `operator` compares what moves with what stays."""

    operator: Sign
    moving: str
    staying: str
    share: float
    room: float | None
    by_one: bool = False


@frozen
class BentComparison:
    """A comparison: the amount is that of the choice of positions that bends furthest.

    `query` is the query whose expressions are the two sides of each bound, their texts, and
    whether a choice needs no bending. `chosen` are the labels with one position in a choice;
    `gathered` those with all positions; `before` those with the position so many before the chosen
    one; `prior` those with all before it.
    """

    query: str
    bounds: tuple[Bound, ...]
    chosen: tuple[str, ...]
    gathered: tuple[str, ...]
    before: tuple[tuple[str, int], ...]
    prior: tuple[str, ...]
    needed: tuple[str, ...]


Measure: TypeAlias = Whole | Took | BentComparison


ROW, TOUCHED = "near row", "near touched"
"""Attributes of each event: the number of its row, and whether a match of the query has it."""

MATCHES, UNDECIDED = "matches", "undecided"
"""The queries whose rows are the events of all matches, and of those that have no event of them."""


TOLD = {
    "part": "STRING",
    "line": "LONG",
    "column": "LONG",
    "asked": "STRING",
    "found": "STRING",
    "amount": "DOUBLE",
}
"""The columns of a near miss beside those of a match, with their types."""

FOUND = "near found"
"""The label of what stands where it must be absent."""


@frozen
class Evidence:
    """The query that finds what stands where something must be absent. Before a match it counts no
    longer than `size` before its start (None: there is no such limit), in events, or on
    `attribute`."""

    query: str
    size: float | None = None
    attribute: str | None = None


@frozen
class BentQuery:
    """A query with one part bent: its name, the text of the part with its place (from 1), and how
    far it was bent. `evidence`: of an absence. `taken`: a comparison is taken away as a whole."""

    name: str
    part: str
    line: int
    column: int
    measure: Measure
    evidence: Evidence | None = None
    taken: bool = False


@frozen
class NearPlan:
    """The queries that find near misses, all of one module.

    - `query` is the query as it is written, whose rows a stream has beside its near misses.
    - `answer` is the same without what chooses among its matches: it has the columns of a near
      miss, and nothing runs it.
    - `bent` are those with one part bent, in the order of their parts.
    - `columns` are the labels of the formula, each with the column that lists its rows.
    - `shown` are the labels that the answer has, in their order.
    - `waits`: an absence stands at the end, and more events may come.
    - `positions`: positions are output on Spark as well.
    - `needs`: for a query groups of event types as (stream, type), of each of which every match has
      an event; not for each query.
    - `tied`: for a query an attribute with one value in all events of a match, and in all that can
      keep them from being one; not for each query.
    - `place`, `window_place`: of the query and its WITHIN, for errors: file, line and column, then
      the line of the text, and carets.
    """

    query: str
    answer: str
    bent: tuple[BentQuery, ...]
    columns: tuple[tuple[str, str], ...]
    shown: tuple[str, ...]
    waits: bool
    positions: bool
    needs: tuple[tuple[str, tuple[tuple[tuple[str, str], ...], ...]], ...] = ()
    tied: tuple[tuple[str, str], ...] = ()
    place: str = ""
    window_place: str = ""

    @property
    def lists(self) -> tuple[str, ...]:
        """The columns of rows."""
        return tuple(name for _, name in self.columns)
