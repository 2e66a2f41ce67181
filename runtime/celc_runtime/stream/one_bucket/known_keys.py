"""What a bucket knows of partitions besides their events: which values it needs, and those of the
partitions of some rows."""

import numpy as np

from celc_runtime.plan.plan import Deadline, Plan
from celc_runtime.program import Program
from celc_runtime.stream.one_bucket.segments import Segments
from celc_runtime.stream.stored.key_table import found_in, hashes_of, numbered
from celc_runtime.stream.stored.rows import Keys, RowLayout, Rows
from celc_runtime.stream.stored.state import KEYS, BucketState
from celc_runtime.stream.stored.state_rows import (
    KEPT_ROWS,
    KeyRecords,
    joined_records,
    taken_records,
    unknown_keys,
)


def window_length(program: Program) -> int | None:
    """How long (microseconds) an event stays in the window, or matters to matches until these are
    decided; None: only later events show it."""
    plan = program.plan
    window = plan.whole_window
    if window is None or window.unit == "EVENTS" or has_own_clock(plan) or program.sees_all:
        return None
    if any(map(plan.counts, plan.choice.deadlines)):
        return None
    length = int(window.size)
    if waits_for_ends(plan):
        length += int(window_size(plan))
    if not plan.choice.deadlines:
        return length
    if plan.answer.totals is not None and isinstance(plan.answer.totals.per, int):
        length += plan.answer.totals.per  # matches wait for the last moment of their span
    # An event is undecided as long as the clock equals its deadline.
    return 1 + max(length + deadline_length(plan, one) for one in plan.choice.deadlines)


def window_size(plan: Plan) -> float:
    """The length of the window alone, without what absences before a match look back."""
    assert plan.matching.window is not None
    return plan.matching.window.size


def start_length(program: Program) -> int | None:
    """How long (microseconds) after an event a later match can start there, or with
    `waits_for_ends` contain a start of a match that ends there; None: only later events show it."""
    length = window_length(program)
    if length is None or program.plan.matching.window is None:
        return length
    size = int(window_size(program.plan))
    deadlines = program.plan.choice.deadlines
    # By then, all matches of the start are decided.
    return size + max((1 + deadline_length(program.plan, one) for one in deadlines), default=0)


def waits_for_ends(plan: Plan) -> bool:
    """Whether matches are returned when all matches with their end are known, since LIMIT counts
    these: with LONGEST. Otherwise they are returned when those with their start are."""
    choice = plan.choice.per_start
    return choice is not None and choice.counts_ends


def deadline_length(plan: Plan, deadline: Deadline) -> int:
    """The most microseconds from the end of a match to its deadline, a time on the first order
    column."""
    return int(plan.matching.local_windows[deadline.window].size)


def has_own_clock(plan: Plan) -> bool:
    """Whether the window is measured on another attribute than the first order column."""
    return plan.window_attribute not in (None, plan.source.order_by[0])


def relevant_types(plan: Plan) -> np.ndarray | None:
    """bool[types]: which declared types can matter.

    None: every event is looked at, because rows in between matter, or for the window's attribute.
    """
    if plan.source.relevant is None or has_own_clock(plan):
        return None
    if plan.source.ties is not None and plan.answer.positions:
        return None  # a match starts at the first event of an instant, and ends at the last
    relevant = {(r.stream, r.type) for r in plan.source.relevant}
    return np.array([pair in relevant for pair in plan.source.declared_types], np.bool_)


def kept_length(plan: Plan) -> int | None:
    """How long (microseconds) a row that stayed counts for LIMIT … PER, or a match for the totals
    of its partition; None: for ever."""
    if adds_up(plan):
        return None
    rate = plan.choice.rate
    if rate is None:
        return 0
    return None if rate.length is None else int(rate.length.size)


def adds_up(plan: Plan) -> bool:
    """Whether the totals of a partition go on for ever."""
    return plan.answer.totals is not None and plan.answer.totals.of_partitions


def deadline_lengths(plan: Plan) -> list[int]:
    """The lengths (microseconds) after which matches are decided, ascending; those in EVENTS
    apart.

    With LIMIT … PER, a match that waits for no absence waits until the clock has passed its end.
    """
    if plan.choice.waits:
        return []  # a match waits for all of its start
    timed = [one for one in plan.choice.deadlines if not plan.counts(one)]
    found = {deadline_length(plan, one) for one in timed}
    return sorted(found | {0} if found and plan.choice.rate is not None else found)


def key_values(program: Program, key_ttl: int | None) -> tuple[str, ...]:
    """The names of the `key_values` that must be known of partitions; empty: none."""
    plan, length = program.plan, window_length(program)
    in_events = plan.matching.window is not None and plan.matching.window.unit == "EVENTS"
    in_hops = bool(plan.matching.reaches) and plan.whole_window is None
    counts = in_events or in_hops or has_own_clock(plan)
    counts = counts or any(map(plan.counts, plan.choice.deadlines))
    has_first = plan.matching.consume_by != "NONE" or counts or plan.choice.waits
    # A window shorter than key_ttl has dropped all events by then, unless they can be later than
    # their place in the order says.
    forgets_events = key_ttl is not None and (
        length is None or length >= key_ttl or plan.source.uncertain is not None
    )
    needed = {
        "first": has_first,
        "context": len(program.contexts) > 0,
        "value": has_own_clock(plan),
        "last": key_ttl is not None,
        "since": forgets_events,
        "after": plan.choice.per_start is not None and plan.choice.per_start.disjoint,
        KEPT_ROWS: plan.choice.rate is not None or adds_up(plan),
    }
    counts = plan.answer.positions or plan.source.relevant is None
    if not counts and not any(needs for name, needs in needed.items() if name != "last"):
        return ()
    return ("position", "frontier", *(name for name, needs in needed.items() if needs))


class KnownKeys:
    """The partitions of some rows, by their keys, numbered, and what a bucket knows of them.

    codes: int64[rows], the number of each row's partition. values: `key_values`[partitions].
    is_known: bool[partitions], whether the bucket has a record of it.
    """

    def __init__(
        self,
        layout: RowLayout,
        state: BucketState,
        segments: Segments,
        keys: Keys,
    ) -> None:
        self._layout = layout
        self.codes, self._table = numbered(keys, hashes_of(keys))
        count = len(self._table.first)
        self.values = unknown_keys(count, layout)
        self.is_known = np.zeros(count, np.bool_)
        for segment in reversed(state.of_kind(KEYS)):
            records = segments.keys(segment, self._table.hashes)
            found = self.numbers_of(records.rows, layout.of_keys)
            places = np.flatnonzero(found >= 0)
            places = places[~self.is_known[found[places]]]  # a newer record counts
            self.values[found[places]] = records.values.take(places)
            self.is_known[found[places]] = True

    def numbers_of(self, rows: Rows, layout: RowLayout) -> np.ndarray:
        """int64[rows]: the numbers of other rows' partitions; −1: not one of these."""
        keys = layout.keys_of(rows)
        return found_in(self._table, keys, hashes_of(keys))

    @property
    def hashes(self) -> np.ndarray:
        """uint64: of the partitions, by their numbers."""
        return self._table.hashes

    def rows(self) -> Rows:
        """The partitions as rows of `RowLayout.of_keys`, by their numbers."""
        return self._layout.rows_of_keys(self._table.keys, self._table.first)


def merged_keys(layout: RowLayout, parts: list[KeyRecords]) -> KeyRecords:
    """The records of several segments, the oldest segment first: the last record of each
    partition."""
    records = joined_records(layout, parts[::-1])
    keys = layout.of_keys.keys_of(records.rows)
    _, table = numbered(keys, hashes_of(keys))
    return taken_records(layout, records, table.first)
