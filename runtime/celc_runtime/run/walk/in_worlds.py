"""The walk of a query over events of uncertain time.

Events come by their earliest times. They are kept in each partition until no match can need them.
The matches that end at an event are asked for when no later event can be before its last point.
Events whose points overlap can end the same match in different orders. The confidence of the match
is the sum over these orders, and its row is at the greatest event that can be its last one. A
*cluster* is a set of events each of which overlaps another one of the set.

There are five ways, by the query and the events:

- `possible_walk` lists matches one by one, and gives up a chain that is not likely enough. If
  events of a match could change places, it adds up the orders of this match.
- If many events overlap, `possible_sets` adds up the orders of all matches of a cluster at once.
- Conditions between events are checked while chains are listed. If they go by the order of events,
  each order of a match is listed, and its orders are added up behind (`_added_up`).
- If the order of its events does not tell whether they are a match, the definition decides in each
  world (`judged_worlds`).
- If the definition alone decides about orders, the chains that the relaxed formula admits are
  listed, and it decides about the events of each, in that order (`judged_chains`).

A stream also reads events by their earliest times, once the watermark has passed these. A match is
then found when the last of its events in that order is read (`_with_new`). Nothing that comes later
changes its confidence, which depends only on the times of its own events. So nothing waits for the
watermark to pass the latest times. These limit what is kept: an event can be the first of a match
until the window from its last point is over.

For a table, the window and the longest time between low and high limit what waits. If conditions
compare events that can come in several orders, the longest cluster is the limit. Without a window,
events wait until their partition is over.

Long: the ways share what waits, and say alike when a match is known.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.arrow.events.possible_times import WrongTime, possible_times, step_of
from celc_runtime.arrow.matches.possible_rows import (
    NO_ROWS,
    Rows,
    in_order,
    joined,
    joined_rows,
    possible_batch,
)
from celc_runtime.engine.arena.batch import relevant_rows
from celc_runtime.engine.arena.nodes import DONE as ALL_READ
from celc_runtime.engine.arena.nodes import ENTRY, OUTPUT_FULL, Memory
from celc_runtime.engine.walk.listing import Kinds, Output, new_output
from celc_runtime.engine.worlds.possible_matches import added_up
from celc_runtime.engine.worlds.possible_moves import follows, possible_moves
from celc_runtime.engine.worlds.possible_orders import Question, clusters_of
from celc_runtime.engine.worlds.possible_reach import (
    FAR,
    NO_WINDOW,
    PossibleEvents,
    Reached,
    reach,
)
from celc_runtime.engine.worlds.possible_sets import sets_of_ends
from celc_runtime.engine.worlds.possible_walk import (
    DONE,
    END,
    OUT_OF_WORK,
    ROWS_FULL,
    Past,
    new_rows,
    new_walk,
    walker,
    with_room,
)
from celc_runtime.jit.kernels import compiling
from celc_runtime.plan.errors import EventError, WorkLimitError
from celc_runtime.plan.strategy import InWorlds, UnionLists
from celc_runtime.program import Program
from celc_runtime.run.past.history import History
from celc_runtime.run.source.positions import Positions
from celc_runtime.run.source.waiting_events import WaitingEvents
from celc_runtime.run.walk.judged_chains import JudgedChains
from celc_runtime.run.walk.judged_worlds import JudgedWorlds, TooManyWorldsError
from celc_runtime.run.walk.walks import Floors, WalkOfRun

_MATCHES = 1 << 14
_EVENTS_OF_MATCHES = 1 << 17
_CROWDED = 5  # overlapping events: from here on, orders are added up set by set, not one by one

_TOGETHER = 256  # events of a cluster whose matches are listed together

_KEPT = 1 << 16  # events of an open partition that wait before their matches are searched


class WorldsWalk(WalkOfRun):
    """Finds the matches of events of uncertain time, as rows with their confidences.

    In the buffers a batch of rows counts as one match. row_name: the name of a row in messages.
    """

    reads_alone = True

    buffers_grow = False

    def __init__(self, program: Program, row_name: Callable[[pa.RecordBatch, int], str]) -> None:
        plan, listing, update = program.plan, program.listing, program.update
        assert plan.source.uncertain is not None
        assert isinstance(listing, InWorlds)
        assert isinstance(update, UnionLists)
        self._plan = plan
        self._schema = program.match_schema
        self._row_name = row_name
        self._times = plan.source.uncertain
        self._window = int(NO_WINDOW if plan.matching.window is None else plan.matching.window.size)
        self._several_orders = listing.by_world or not listing.one_order
        self._states = len(update.tables.skip)
        self._moves = possible_moves(update.tables)
        columns = [kind.columns for kind in plan.matching.kinds]
        numbers = {look: number for number, look in enumerate(dict.fromkeys(columns))}
        looks = np.array([numbers[look] for look in columns], np.int64)
        can_follow, commutes = follows(update.tables, looks)
        self._asked = Question(
            step_of(plan),
            self._window,
            plan.matching.kind_bits,
            self._times.bound,
            self._several_orders,
            listing.definition is None and not listing.ordered,
            commutes,
            plan.choice.max_work,
            looks,
            can_follow,
        )
        self._ordered = listing.ordered
        self._alike = len(numbers) < len(columns)  # whether chains of one order can look alike
        self._checks, self._history = listing.checks, None
        conditions = listing.definition or listing.checks
        if conditions is not None:
            self._history = History(conditions.remembers, plan)
        self._judged, self._worlds = self._judges(listing)
        names = {
            *plan.stored_attributes,
            *plan.source.key_columns,
            self._times.low,
            self._times.high,
            *filter(None, [self._times.weights]),
        }
        read = (*(one.name for one in plan.source.attributes), *plan.source.tiebreak)
        self._shown = [name for name in dict.fromkeys(read) if name in names]
        self._shown += [name for name in plan.source.key_columns if name not in self._shown]
        self._waiting = WaitingEvents(self._times.weights)
        self._wanted = _KEPT
        self._part = 0
        self._late: pa.RecordBatch | None = None
        self._silent: np.ndarray | None = None
        self._behind = 0
        self._coming: Iterator[pa.RecordBatch] = iter(())
        self._rows: pa.RecordBatch | None = None

    def _judges(self, listing: InWorlds) -> tuple[JudgedChains | None, JudgedWorlds | None]:
        """What decides about candidates by the definition of the formula, if anything does."""
        definition, plan, history = listing.definition, self._plan, self._history
        if definition is None or history is None:
            return None, None
        if not listing.by_world:
            return JudgedChains(definition, plan, history), None
        return None, JudgedWorlds(
            definition,
            plan,
            history,
            self._moves,
            self._window,
            self._asked.step,
            alone=listing.alone,
        )

    @property
    def nbytes(self) -> int:
        remembered = 0 if self._history is None else self._history.nbytes
        return self._waiting.nbytes + remembered

    @property
    def rows(self) -> pa.RecordBatch:
        assert self._rows is not None
        return self._rows

    @property
    def events_kept(self) -> int:
        return len(self._waiting)

    def buffers(self, limit: int | None) -> Output:
        return new_output(matches=1, room=1, limit=None)

    def of_stretches(self, silent: np.ndarray | None) -> None:
        self._silent = silent

    def enter(self, prepared: Prepared, positions: Positions, memory: Memory) -> Prepared:
        low, rows = self._take_in(prepared, positions)
        self._behind = int(memory.counters[ENTRY]) + len(rows)
        if self._silent is None:
            self._coming = self._known(int(low[-1]))
        else:
            self._coming = self._with_new(~self._silent[rows])
        return prepared

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        self._rows = next(self._coming, None)
        if self._rows is None:
            return ALL_READ
        output.rows[0], output.used[0] = 0, 1
        return OUTPUT_FULL

    def oldest(self) -> int:
        """After all events: the walk itself keeps those that its rows show."""
        return self._behind

    def leave(self, floors: Floors, oldest: Callable[[], int]) -> None:
        if self._history is not None:
            left = self._waiting.entries
            self._history.drop(int(left[0]) if len(left) else self._history.next)

    def rest(self) -> Iterator[pa.RecordBatch]:
        waiting = self._waiting
        yield from self._listed_between(waiting.listed, len(waiting))
        yield from self._in_order(None)
        self._waiting, self._wanted = WaitingEvents(self._times.weights), _KEPT

    def _with_new(self, is_new: np.ndarray) -> Iterator[pa.RecordBatch]:
        """The matches with a new event (bool[events]). All their events have been read by now."""
        if not is_new.any():
            return
        waiting = self._waiting
        events = waiting.events
        parts = np.flatnonzero(np.diff(waiting.parts, prepend=-1))
        first_new = np.minimum.reduceat(np.where(is_new, waiting.low, FAR), parts)
        sizes = np.diff(parts, append=len(waiting))
        reached = reach(events, self._moves, self._states, self._asked.step, self._window)
        # A match with a new event ends with one, or with an event that can be later than one.
        can_end = reached.can_end & (is_new | (waiting.last > np.repeat(first_new, sizes)))
        reached = reached._replace(can_end=can_end)
        bits, count = self._plan.matching.kind_bits, len(waiting)
        for found in in_order(self._found(events, reached, 0, count), bits, count):
            # The last event by position must be new, or else all have been read before.
            chosen = np.flatnonzero(is_new[found.tags[found.ends - 1] >> bits])
            if len(chosen):
                found = found.taken(chosen)
                yield possible_batch(
                    self._plan, self._schema, waiting.table, waiting.positions, found
                )

    def _take_in(self, prepared: Prepared, of_rows: Positions) -> tuple[np.ndarray, np.ndarray]:
        """Let relevant events wait; (first times of all events, relevant rows), both int64."""
        batch = prepared.batch
        low, last, points = self._measured(prepared)
        rows = relevant_rows(batch.symbols)
        count = len(rows)
        entries = np.zeros(count, np.int64)
        if self._history is not None and count:
            entries = np.arange(self._history.next, self._history.next + count)
            symbols = batch.symbols[rows]
            self._history.append(prepared.events, rows, symbols, of_rows, prepared.parts)
        if count:
            self._waiting.add(
                prepared.events.select(self._shown).take(pa.array(rows)),
                symbols=batch.symbols[rows].astype(np.int64),
                low=low[rows],
                last=last[rows],
                points=points[rows],
                parts=self._part + np.searchsorted(prepared.parts, rows, side="right"),
                positions=of_rows.of(rows).astype(np.int64),
                entries=entries,
            )
        self._part += len(prepared.parts)
        return low, rows

    def _known(self, now: int) -> Iterator[pa.RecordBatch]:
        """The matches that no future event, from the time `now` on, can change."""
        waiting = self._waiting
        over = int(np.searchsorted(waiting.parts, self._part))
        stop = over
        if len(waiting) - over >= self._wanted and self._window >= 0:
            begin = max(over, waiting.listed)
            judged = self._judged is not None or self._worlds is not None
            if judged and self._several_orders:
                stop = _closed(waiting.low, waiting.last, begin, now)
            else:
                stop = begin + int(np.argmax(np.append(waiting.last[begin:] > now, True)))
        if stop > waiting.listed:
            if over > waiting.listed:
                yield from self._listed_between(waiting.listed, over)
                yield from self._in_order(None)
                waiting.listed = over
            if stop > over:
                yield from self._listed_between(waiting.listed, stop)
                waiting.listed = stop
        if over or stop > over:
            kept = waiting.parts == self._part
            if stop > over:
                left = waiting.low[stop:]
                since = (int(left[0]) if len(left) else now) - self._window
                kept &= waiting.last >= since
            waiting.keep(kept)
            self._wanted = max(_KEPT, 2 * len(waiting)) if len(waiting) else _KEPT

    def _measured(self, prepared: Prepared) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """int64[rows]: first point, last point, number of points; EventError if there are none."""
        return possible_times(prepared.events, self._plan, partial(self._wrong, prepared.events))

    def _wrong(self, events: pa.RecordBatch, row: int, told: WrongTime) -> EventError:
        place = self._row_name(events, row)
        return EventError(f"query {self._plan.name!r}: {told.what} in {place}: {told.mend}")

    # --- matches ----------------------------------------------------------------------------------

    def _listed_between(self, first: int, stop: int) -> Iterator[pa.RecordBatch]:
        """The matches that end at some of the waiting events."""
        if first == stop:
            return
        waiting = self._waiting
        events = waiting.events
        reached = reach(events, self._moves, self._states, self._asked.step, self._window)
        if self._worlds is None and not reached.can_end[first:stop].any():
            return
        for rows in in_order(
            self._found(events, reached, first, stop), self._plan.matching.kind_bits, stop
        ):
            batch = possible_batch(self._plan, self._schema, waiting.table, waiting.positions, rows)
            behind = stop < len(waiting) and waiting.parts[stop] == waiting.parts[stop - 1]
            if behind or self._late is not None:
                self._late = batch if self._late is None else joined(self._late, batch)
                if behind:
                    yield from self._in_order(int(waiting.positions[stop]))
                    continue
                yield from self._in_order(None)
            else:
                yield batch

    def _in_order(self, limit: int | None) -> Iterator[pa.RecordBatch]:
        """The waiting rows with a last position below `limit`, that of later rows; None: all."""
        if self._late is None:
            return
        late, self._late = self._late, None
        if not self._plan.answer.positions:  # the order is not visible
            yield late
            return
        ends = np.asarray(late.column("end_pos"))
        order = np.argsort(ends, kind="stable")
        known = len(ends) if limit is None else int(np.searchsorted(ends[order], limit))
        if known:
            yield late.take(pa.array(order[:known]))
        if known < len(ends):
            self._late = late.take(pa.array(order[known:]))

    def _found(
        self, events: PossibleEvents, reached: Reached, first: int, stop: int
    ) -> Iterator[tuple[int, Rows]]:
        """Rows, each with an event: all matches that end before this event have come."""
        overlap = self._several_orders and int(events.points.max()) > 1
        is_judged = self._judged is not None or self._worlds is not None
        if not is_judged and (self._checks is not None or not overlap):
            chains = self._walked(events, reached, first, stop)
            if self._ordered and (overlap or self._alike):
                chains = self._added_up(chains, events, first, stop)
            yield from chains
            return
        begins, crowded = clusters_of(events, first, stop, self._window, _CROWDED)
        starts = np.flatnonzero(begins[first:stop]) + first
        starts = starts if begins[first] else np.append(first, starts)
        if self._worlds is not None:
            clusters = np.append(starts, stop)
            try:
                yield from self._worlds.rows(events, self._waiting, clusters, self._asked.bound)
            except TooManyWorldsError as problem:
                raise self._too_much(problem.event) from None
            return
        if self._judged is not None:
            # All orders of a match must be judged before it becomes a row.
            for begin, end in pairwise([*starts.tolist(), stop]):
                if reached.can_end[begin:end].any():
                    chains = self._walked(events, reached, begin, end)
                    rows = (found for _, found in chains)
                    yield end, self._judged.rows(rows, self._waiting, self._asked.bound)
            return
        changes = np.flatnonzero(np.diff(crowded[first:stop])) + first + 1
        for begin, end in pairwise([first, *changes.tolist(), stop]):
            if not crowded[begin]:
                yield from self._walked(events, reached, begin, end)
                continue
            inside = starts[np.searchsorted(starts, begin) : np.searchsorted(starts, end)]
            for start, behind in pairwise([*inside.tolist(), end]):
                yield from self._sets(events, reached, begins, start, behind)

    def _walked(
        self,
        events: PossibleEvents,
        reached: Reached,
        first: int,
        stop: int,
    ) -> Iterator[tuple[int, Rows]]:
        """Chains in batches of bounded size, each with the event up to which all have come."""
        asked = self._asked
        states = 0 if self._checks is None else self._checks.states
        walk = new_walk(events, first, stop, self._moves, states)
        past, walk_on = self._past(), walker(self._checks)
        rows = new_rows(_MATCHES, _EVENTS_OF_MATCHES)
        while True:
            # Few events can come in many orders. Hashes wrap around; plain Python would warn.
            with compiling(), np.errstate(over="ignore"):
                status = walk_on(walk, events, self._moves, reached, asked, rows, past)
            matches, used = map(int, rows.used)
            if status == OUT_OF_WORK:
                raise self._too_much(int(walk.numbers[END]))
            if status in (DONE, ROWS_FULL):
                if matches:
                    found = rows.ends[:matches], rows.tags[:used], rows.confidences[:matches]
                    yield int(walk.numbers[END]), Rows(*(array.copy() for array in found))
                    rows.used[:] = 0
                elif status == ROWS_FULL:
                    rows = new_rows(_MATCHES, 2 * len(rows.tags))
                if status == DONE:
                    return
            else:
                walk = with_room(walk, status)

    def _past(self) -> Past:
        """What the conditions read that are checked while chains are listed."""
        if self._checks is None or self._history is None:
            return Past((), 0, self._waiting.entries)
        return Past(self._history.past, self._history.first, self._waiting.entries)

    def _sets(
        self,
        events: PossibleEvents,
        reached: Reached,
        begins: np.ndarray,
        first: int,
        stop: int,
    ) -> Iterator[tuple[int, Rows]]:
        """The matches of a crowded cluster: together, or end by end if it is long or still open."""
        whole = begins[first] and stop - first <= _TOGETHER
        whole = whole and (stop == len(begins) or bool(begins[stop]))
        for begin in [first] if whole else range(first, stop):
            end = stop if whole else begin + 1
            if not reached.can_end[begin:end].any():
                continue
            with compiling(), np.errstate(over="ignore"):
                status, *found = sets_of_ends(
                    begin, end, events, self._moves, reached, self._asked, whole
                )
            if status == OUT_OF_WORK:
                raise self._too_much(begin)
            yield end, Rows(*found)

    def _added_up(
        self, chains: Iterable[tuple[int, Rows]], events: PossibleEvents, first: int, stop: int
    ) -> Iterator[tuple[int, Rows]]:
        """The matches of chains, each of which is one order of a match; in the order of ends."""
        begins, _ = clusters_of(events, first, stop, self._window, _CROWDED)
        starts = np.append(np.flatnonzero(begins[:stop]), stop)
        bits, waiting = self._plan.matching.kind_bits, NO_ROWS
        for end, rows in chain(chains, [(stop, NO_ROWS)]):
            waiting = joined_rows(waiting, rows)
            if not len(waiting.ends):
                continue
            # All orders of a match end in one cluster.
            known = int(starts[np.searchsorted(starts, end, side="right") - 1])
            last = waiting.tags[np.append(0, waiting.ends[:-1])] >> bits
            complete, waiting = waiting.cut(int(np.searchsorted(last, known)))
            if len(complete.ends):
                with compiling(), np.errstate(over="ignore"):
                    added = added_up(*complete, bits, self._asked.looks, self._asked.bound)
                yield known, Rows(*added)

    def _too_much(self, event: int) -> WorkLimitError:
        plan = self._plan
        return WorkLimitError(
            f"query {plan.name!r}: looking for the matches that end at position "
            f"{int(self._waiting.positions[event]):,} takes more than "
            f"{plan.choice.max_work:,} steps, because their events can come in many orders; give "
            "the query a (smaller) window with WITHIN, conditions that fewer events satisfy, a "
            "longer step with BY, or raise the limit: --max-work, with_options(max_work=…)"
        )


def _closed(low: np.ndarray, last: np.ndarray, first: int, now: int) -> int:
    """The event before which all clusters from `first` on are complete; later events: from `now`
    on. Events of clusters have no time in common: UNLESS sees those of the time of an end too."""
    ends = np.maximum.accumulate(last[first:])
    if not len(ends):
        return first
    if ends[-1] < now:
        return len(low)
    begins = np.flatnonzero(low[first + 1 :] > ends[:-1])
    return first if not len(begins) else int(begins[-1]) + first + 1
