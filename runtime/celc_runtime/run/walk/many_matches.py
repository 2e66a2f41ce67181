"""A warning if one event ends more matches than anybody reads, before they are all listed.

The matches of an event can be counted without listing them (`match_count`), in a pass over its
graph. They are counted only for an event with many listed matches. Then the pass costs little in
comparison.

If conditions are checked while matches are listed, not all paths are matches. Then only the matches
that have been listed count.
"""

from collections.abc import Callable

import numpy as np

from celc_runtime.engine.arena.nodes import LISTED, RUN_LEFT, STACK_SIZE, Memory
from celc_runtime.engine.graph.match_count import count_matches
from celc_runtime.engine.walk.listing import Kinds, Output
from celc_runtime.plan.errors import EventWarning
from celc_runtime.plan.plan import Plan
from celc_runtime.run.walk.walks import WalkOfRun
from celc_runtime.values.warned import warn

MOST_MATCHES = 1_000_000  # matches at one event; more of them cause a warning

_LISTED_MATCHES = 1 << 16
_LISTED_EVENTS = 1 << 21
"""The matches of an event are counted after this many matches, or events of matches, were
listed."""


class ManyMatches:
    """Looks at the matches that a run lists, and warns once if too many end at one event."""

    _row = -1
    _matches = _events = 0
    _is_counted = False

    def __init__(self, plan: Plan, walk: WalkOfRun) -> None:
        self._plan = plan
        self._walk = walk
        self._watches = plan.choice.limit is None or plan.choice.limit > MOST_MATCHES

    def enter(self) -> None:
        """Begin a batch: rows count from 0 again, and all earlier fires are listed."""
        self._row = -1

    def look(
        self,
        memory: Memory,
        output: Output,
        kinds: Kinds,
        position_of: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        """Look at the matches in the buffers before they are removed."""
        if not self._watches:
            return
        if self._row < 0 and not self._walk.lists_runs and not self._is_interrupted(memory):
            return  # all matches of each end are in the buffers, which hold fewer
        rows = output.rows[: output.used[0]]
        row = int(rows[-1])
        first = int(np.searchsorted(rows, row))
        if row != self._row:
            self._row, self._matches, self._events = row, 0, 0
            self._is_counted = False
        self._matches += self._walk.matches_in(output, first)
        self._events += self._walk.events_in(output, first)
        found: float = self._matches
        if self._is_interrupted(memory) and not self._is_counted and self._are_many:
            self._is_counted = True
            found = max(found, self._counted(memory, kinds))
        if found > MOST_MATCHES:
            self._watches = False
            self._warn(found, int(position_of(rows[-1:])[0]))

    @property
    def _are_many(self) -> bool:
        return self._matches >= _LISTED_MATCHES or self._events >= _LISTED_EVENTS

    def _is_interrupted(self, memory: Memory) -> bool:
        """Whether more matches of the last event in the buffers will come."""
        return bool(memory.counters[STACK_SIZE] or memory.counters[RUN_LEFT])

    def _counted(self, memory: Memory, kinds: Kinds) -> float:
        if not self._walk.are_paths:
            return 0
        fire = memory.fires[memory.counters[LISTED] - 1]
        return count_matches(memory, kinds, fire)

    def _warn(self, found: float, position: int) -> None:
        if found == self._matches:
            number = f"more than {MOST_MATCHES:,}"
        elif found < 1e15:
            number = f"{int(found):,}"
        else:
            number = f"about 10^{np.log10(found):.0f}" if found < np.inf else "more than 10^308"
        warn(
            f"query {self._plan.name!r}: {number} matches end at position {position:,}; for fewer, "
            "use SELECT NXT, LAST or MAX, SELECT LONGEST DISJOINT, LIMIT, a smaller WITHIN, or "
            "leave labels out of SELECT; for one row about all of them, SELECT TOTAL COUNT(*) AS "
            "matches or SELECT COLLAPSED *; to stop after some, celc run --max-matches or "
            "match_table(…, max_matches=…)",
            EventWarning,
        )
