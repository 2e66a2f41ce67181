"""The walk of SELECT LONGEST if matches are runs of neighbouring events that adjoin.

It reads the relevant events itself, as `LongestRunsWalk` does, and keeps those from the first start
on whose matches may go on. The longest match of such a start is listed up to the end of the batch.
If a longer one comes, that is listed too, and the choice by starts (`per_start`) takes it.
"""

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.engine.arena.batch import NO_INTEGERS
from celc_runtime.engine.arena.nodes import Memory
from celc_runtime.engine.walk.adjoining_runs import (
    GIVEN,
    MATCH,
    ROWS,
    Linked,
    Ways,
    find_ends,
    links_between,
    list_ways,
    starts_allowed,
)
from celc_runtime.engine.walk.listing import Kinds, Output
from celc_runtime.plan.plan import Kind, Plan
from celc_runtime.plan.strategy import AdjoiningRuns, Checked
from celc_runtime.run.past.history import History
from celc_runtime.run.source.positions import Positions
from celc_runtime.run.walk.longest_runs import RelevantEvents
from celc_runtime.run.walk.walks import Floors


class AdjoiningRunsWalk(RelevantEvents):
    """Lists the longest match from each event."""

    def __init__(self, listing: AdjoiningRuns, plan: Plan) -> None:
        super().__init__(plan, contiguous=True)
        self._listing = listing
        checks = listing.checks
        self._history = None if checks is None else History(checks.remembers, plan)
        self._ways, self._by_symbol = _ways_of(listing, plan.matching.kinds)
        self._events = Linked(NO_INTEGERS, NO_INTEGERS, NO_INTEGERS, NO_INTEGERS)
        self._first = 0  # the entry of the first of these events
        self._open = 0
        self._starts = self._ends = NO_INTEGERS
        self._cursor = np.zeros(2, np.int64)

    @property
    def nbytes(self) -> int:
        kept = sum(column.nbytes for column in self._events)
        return kept if self._history is None else kept + self._history.nbytes

    def oldest(self) -> int:
        """The entry of the first event whose matches may go on; all later ones are after it."""
        return self._first + self._open

    def enter(self, prepared: Prepared, positions: Positions, memory: Memory) -> Prepared:
        """Find the longest matches from the events of open matches and those of a batch."""
        rows, symbols, of_rows, linked = self._relevant(prepared, positions, memory)
        old = self._events
        if not len(old.rows):
            self._first = self._entry
        held = self._by_symbol[symbols]
        held[~linked] &= (1 << self._ways.begins) - 1
        if self._history is not None:
            self._history.append(prepared.events, rows, symbols, positions, prepared.parts)
            if self._listing.links is not None and len(rows):
                place = self._entry - self._history.first
                with np.errstate(all="ignore"):
                    find = links_between(self._listing.links)
                    find(held, linked, self._history.past, place)
        window = (NO_INTEGERS, NO_INTEGERS)
        if self._plan.matching.window is not None:
            window = self._window(prepared, rows, of_rows)
        new = Linked(rows, *window, held)
        if len(old.rows):
            old.rows[:] = -1
            new = Linked(*(np.concatenate(pair) for pair in zip(old, new, strict=True)))
        self._events = new
        self._find(len(old.rows))
        return prepared

    def _find(self, known: int) -> None:
        """Find the ends of the longest matches, and sort them by these."""
        ends = np.empty(len(self._events.rows), np.int64)
        best = np.empty((2, len(self._ways.kinds)), np.int64)
        self._open = int(find_ends(self._ways, self._events, known, best, ends))
        if self._listing.looks_before:
            assert self._listing.checks is not None
            self._leave_out(ends, self._listing.checks)
        starts = np.flatnonzero(ends >= 0)
        order = np.argsort(ends[starts], kind="stable")
        self._starts = starts[order]
        self._ends = ends[self._starts]
        self._cursor[MATCH] = self._cursor[GIVEN] = 0
        longest = int(np.max(self._ends - self._starts, initial=-1)) + 1
        self._room = np.empty((ROWS, longest), np.int64)

    def _leave_out(self, ends: np.ndarray, checks: Checked) -> None:
        """Leave out the starts before which something is that must not be there."""
        assert self._history is not None
        bits = self._plan.matching.kind_bits
        kind = int(self._ways.kinds[self._ways.targets[0]])  # all matches begin with this kind
        with np.errstate(all="ignore"):
            starts_allowed(checks)(
                ends,
                self._first << bits | kind,
                1 << bits,
                self._history.past,
                self._history.first,
                np.zeros(1, np.int64),
                np.zeros((checks.states, 2), np.int64),
            )

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        """List the matches of the batch, in the order of their ends."""
        return int(
            list_ways(
                self._ways,
                self._events,
                self._starts,
                self._ends,
                self._first,
                self._plan.matching.kind_bits,
                self._cursor,
                self._room,
                output,
            )
        )

    def leave(self, floors: Floors, oldest: Callable[[], int]) -> None:
        """End a batch: keep the events from the first start on whose matches may go on."""
        if self._history is not None:
            self._history.drop(self._history.reached(self.oldest()))
        self._events = Linked(
            *(column[self._open :].copy() if len(column) else column for column in self._events)
        )
        self._first += self._open
        self._open = 0


def _bits(of_spots: Iterable[object]) -> int:
    """A number with a bit for each spot from 1 on."""
    return sum(2 << spot for spot, is_one in enumerate(of_spots) if is_one)


@cache
def _ways_of(listing: AdjoiningRuns, kinds: tuple[Kind, ...]) -> tuple[Ways, np.ndarray]:
    """The spots and steps, numbered as kernels want them, and `AdjoiningRuns.by_symbol`; made
    once for each query."""
    sources = np.array([source + 1 for source, _ in listing.steps], np.int64)
    targets = np.array([target + 1 for _, target in listing.steps], np.int64)
    shown = [kinds[kind].columns if kind >= 0 else () for kind in listing.kinds]
    checks, supports = listing.checks, 0
    if checks is not None and checks.selector:
        supports = _bits(kind >= 0 and checks.supports[kind] for kind in listing.kinds)
    return (
        Ways(
            np.array([-1, *listing.kinds], np.int64),
            sources,
            targets,
            int(np.count_nonzero(sources == 0)),
            listing.ends << 1,
            _bits(spot in sources for spot in range(1, len(listing.kinds) + 1)),
            supports,
            np.array([1, *(_bits(one == other for other in shown) for one in shown)], np.int64),
        ),
        np.array(listing.by_symbol, np.int64),
    )
