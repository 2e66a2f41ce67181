"""A query as relations: tables of single events, and conditions between their rows.

The mapping of operators to joins and anti-joins is that of CEP2ASP. Each event of a match is a row
of a `Scan`. A match is a choice of one row for each scan that satisfies all of `Relations`.
"""

from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.traversal import formulas_in, windows_in
from celc.diagnostics.source import Span

Condition: TypeAlias = tuple[core.Predicate, ...]
"""An OR of predicates whose labels are names of scans."""


class NotRelational(Exception):
    """Why a query cannot be written as joins: `what` in words, and the place."""

    def __init__(self, what: str, span: Span) -> None:
        super().__init__(what)
        self.what = what
        self.span = span


@frozen
class Scan:
    """The events that can be one event of a match: those of `types` that satisfy all `conditions`.
    The conditions name no other scan."""

    name: str
    types: tuple[core.EventType, ...]
    conditions: tuple[Condition, ...] = ()


@frozen
class Before:
    """The event of one scan comes before that of another; `adjacent`: directly before."""

    first: str
    second: str
    adjacent: bool = False


@frozen
class Within:
    """From the event of one scan to that of another it is at most `size`, in positions or in the
    measure of the query."""

    first: str
    last: str
    size: int
    of_positions: bool = False


@frozen
class Reach:
    """How far from a match an event can lie that must be absent, as in `Within`: before its first
    event where the event lies before it, behind its last one where it lies behind; with
    `from_start` behind its first one."""

    size: int
    of_positions: bool = False
    from_start: bool = False


@frozen
class Missing:
    """No event of a scan lies after all of `after` and before all of `before` and satisfies all
    `conditions`. With `inclusive`, the bounds themselves count too. With `reach`, only events count
    that lie so near. There is one where `after` or `before` is empty."""

    scan: Scan
    after: tuple[str, ...]
    before: tuple[str, ...]
    inclusive: bool
    conditions: tuple[Condition, ...]
    reach: Reach | None = None

    @property
    def is_behind(self) -> bool:
        """Whether the absence stands behind the match."""
        return not self.before


@frozen
class Relations:
    """Everything that a match must satisfy."""

    query: core.Query
    scans: tuple[Scan, ...]
    before: tuple[Before, ...]
    within: tuple[Within, ...]
    conditions: tuple[Condition, ...]
    missing: tuple[Missing, ...]
    firsts: tuple[str, ...]  # one of these scans has the first event
    lasts: tuple[str, ...]  # one of these scans has the last event
    labels: dict[str, tuple[str, ...]]  # the scans of each label
    in_order: bool  # each two scans are in a known order, that of `scans`
    deadline: Reach | None = None
    """How far behind the match an event must be that shows that nothing can undo it; None: nothing
    can."""

    def follows(self, one: str, other: str) -> bool:
        """Whether the event of a scan always comes after that of another."""
        earlier = {before.first for before in self.before if before.second == one}
        return other in earlier or any(self.follows(scan, other) for scan in earlier)

    @property
    def numbered(self) -> bool:
        """Whether some condition asks for positions."""
        counted = [one.adjacent for one in self.before]
        counted += [one.of_positions for one in self.within]
        reaches = [*(one.reach for one in self.missing), self.deadline]
        return any(counted) or any(one is not None and one.of_positions for one in reaches)

    @property
    def late(self) -> tuple[core.AbsenceAfter, ...]:
        """The absences behind the pattern, of all branches."""
        parts = formulas_in(self.query.formula)
        return tuple(one for one in parts if isinstance(one, core.AbsenceAfter))

    @property
    def shows_decided_time(self) -> bool:
        """Whether the matches of the query, in all branches, say when they are decided."""
        units = [one.length.unit for one in self.late]
        return bool(units) and core.WindowUnit.EVENTS not in units

    @property
    def unit(self) -> core.WindowUnit | None:
        """The unit of the windows that are measured on the first order column. They have one
        unit."""
        windows = [*windows_in(self.query.formula), *filter(None, [self.query.window])]
        units = (window.unit for window in windows if window.unit is not core.WindowUnit.EVENTS)
        return next(units, None)

    @property
    def kept(self) -> tuple[str, ...]:
        """The labels on which the matches are projected."""
        found: dict[str, None] = {}
        for item in self.query.output:
            match item:
                case core.OutputLabel(label=label):
                    found[label] = None
                case core.OutputExpression(labels=labels):
                    found |= dict.fromkeys(labels)
        return tuple(found)

    @property
    def tells_matches_apart(self) -> bool:
        """Whether two choices of rows are always two matches.

        Where the scans are in order, the labelled events and both ends determine the choice.
        Otherwise each event needs its own label.
        """
        known = {*self.firsts} if len(self.firsts) == 1 else set()
        known |= {*self.lasts} if len(self.lasts) == 1 else set()
        for label in self.kept:
            scans = self.labels.get(label, ())
            if self.in_order or len(scans) == 1:
                known.update(scans)
        return known == {scan.name for scan in self.scans}


@frozen
class Columns:
    """The columns of `events` besides those that the query reads.

    - `place`: the place of an event in the order of its partition, as a comparable value; where
      events are numbered it is their position
    - `time`: the first order column; `measure`: a whole number on which windows are measured
    - `keys`: those of PARTITION BY
    - `latest`: a column of the tables that decide matches with an absence at their end
    """

    place: str
    time: str
    measure: str
    keys: tuple[str, ...]
    latest: str
