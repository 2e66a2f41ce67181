"""One partition of a stream: what happens to its events in a micro-batch, without Spark.

Events wait until the watermark has passed them, because until then an earlier event may come. The
events that it has passed are put in order and run behind the *kept* events. Kept events are read
once more, so that the matches they began are there (`Run.push_stretch`). In the end the events in
the window that matter to the query are kept, with their positions.

*Exact*: a match is made of events inside the window and depends on events between its first and its
last only. So a run that begins with the first event that any later window reaches finds the same
matches. Three things depend on events before the window: nested selectors, by the number of a
context, which is kept; CONSUME BY, which makes everything before its last match the past of another
stream; and positions, which are kept. Rows that matter to no match are not kept. Where it matters
that such rows were there (`:`, STRICT, `;!;`), one row stands for all of them between two kept
events, because a second one changes nothing; in a window of EVENTS there are as many as there were.

An event is *late* if events of its partition up to its time have been run: then it cannot be put in
its place any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import sortable
from celc_runtime.engine.arena import ALWAYS
from celc_runtime.engine.batch import window_floor
from celc_runtime.plan.errors import EventError, StateError
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.run.run import PartitionStretch, Run
from celc_runtime.stream.rows import RowField, RowLayout, Rows
from celc_runtime.stream.state import PartitionState, StateFormat

END_OF_TIME = 2**63 - 1
"""The watermark of a stream that has ended."""

_LAST_TIMER = END_OF_TIME - 1000
_ROWS_AT_ONCE = 1 << 18


@dataclass(slots=True)
class Step:
    """The outcome of a micro-batch for a partition.

    state: the new state; None: nothing is left to keep. late: the events that came too late.
    set_timers, unset_timers: in milliseconds. events, waiting, kept: how many events were run, wait
    for the watermark, and are kept.
    """

    state: bytes | None
    late: Rows
    set_timers: list[int] = field(default_factory=list)
    unset_timers: list[int] = field(default_factory=list)
    matches: list[pa.RecordBatch] = field(default_factory=list)
    events: int = 0
    waiting: int = 0
    kept: int = 0

    @property
    def match_count(self) -> int:
        """How many matches were found."""
        return sum(len(batch) for batch in self.matches)


def row_layout(plan: Plan, tiebreak_types: dict[str, str]) -> RowLayout:
    """The rows of a query's events: all columns that it reads except `key_columns`."""
    types = {a.name: a.type for a in plan.attributes}
    names = dict.fromkeys([*plan.order_by, *(a.name for a in plan.attributes)])
    fields = [RowField(name, types[name]) for name in names if name not in plan.key_columns]
    fields += [
        RowField(name, tiebreak_types[name])
        for name in plan.tiebreak
        if name not in types and name in tiebreak_types
    ]
    return RowLayout(fields, max(1, len(plan.declared_types)))


def key_layout(plan: Plan) -> RowLayout:
    """The rows of partitions: the columns of PARTITION BY."""
    return RowLayout([RowField(name, plan.type_of(name)) for name in plan.key_columns], 1)


class PartitionReader:
    """Advances a query's partitions from one micro-batch to the next."""

    def __init__(
        self,
        program: Program,
        layout: RowLayout,
        states: StateFormat,
        *,
        key_ttl: int | None = None,
    ) -> None:
        """`key_ttl`: microseconds after its last event after which a partition is forgotten."""
        self._program = program
        self._plan = plan = program.plan
        self._layout = layout
        self._keys = key_layout(plan)
        self._states = states
        self._key_ttl = key_ttl
        names = [f.name for f in layout.fields]
        self._time = names.index(plan.order_by[0])
        self._order = [names.index(n) for n in (*plan.order_by, *plan.tiebreak) if n in names]
        window = plan.window
        self._sees_all = program.sees_all
        self._in_events = window is not None and window.unit == "EVENTS" and not program.sees_all
        self._own_clock = plan.window_attribute not in (None, plan.order_by[0])

    def advance(
        self, key: bytes, data: bytes | None, arrived: Sequence[Rows], watermark: int | None
    ) -> Step:
        """Take in the events that arrived, and run the events up to the watermark (microseconds;
        None: there is none yet).

        `data`: the state before, None if there is none. Raises EventError where events are equal in
        all order columns or cannot be measured, StateError where the state is not in order.
        """
        state = self._opened(data, watermark)
        fresh, late = self._admitted(state, arrived)
        ready = self._passed(state, fresh, watermark)
        step = Step(None, late, events=len(ready.records))
        for part in self._in_order(ready):
            step.matches += self._run(key, state, part)
        self._keep(key, state, fresh, watermark)
        step.waiting, step.kept = len(state.waiting.records), len(state.kept.records)
        if self._expired(state, watermark):
            step.unset_timers = [t for t in (state.run_timer, state.expiry_timer) if t is not None]
        else:
            self._set_timers(step, state, watermark)
            step.state = self._states.written(state)
        return step

    # --- the steps of a micro-batch ---------------------------------------------------------------

    def _opened(self, data: bytes | None, watermark: int | None) -> PartitionState:
        """The state before the micro-batch."""
        if data is not None:
            return self._states.read(data)
        state = self._states.fresh()
        if not self._plan.positions or self._key_ttl is not None:
            # The partition may have been forgotten, and events up to the watermark may have been
            # run before that.
            state.frontier = watermark
        return state

    def _admitted(self, state: PartitionState, arrived: Sequence[Rows]) -> tuple[Rows, Rows]:
        """The events that arrived in time, and the late ones."""
        fresh = self._layout.joined([rows for rows in arrived if len(rows.records)])
        if state.frontier is None or not len(fresh.records):
            return fresh, self._layout.nothing
        return self._parted(fresh, self._times(fresh) > state.frontier)

    def _passed(self, state: PartitionState, fresh: Rows, watermark: int | None) -> Rows:
        """The events that the watermark has passed; all others wait."""
        waiting = self._layout.joined([r for r in (state.waiting, fresh) if len(r.records)])
        if watermark is None or not len(waiting.records):
            state.waiting = waiting
            return self._layout.nothing
        ready, state.waiting = self._parted(waiting, self._times(waiting) <= watermark)
        return ready

    def _parted(self, rows: Rows, where: np.ndarray) -> tuple[Rows, Rows]:
        """The rows at which a condition (bool[rows]) is true, and the others."""
        if where.all():
            return rows, self._layout.nothing
        if not where.any():
            return self._layout.nothing, rows
        return (
            self._layout.taken(rows, np.flatnonzero(where)),
            self._layout.taken(rows, np.flatnonzero(~where)),
        )

    def _keep(self, key: bytes, state: PartitionState, fresh: Rows, watermark: int | None) -> None:
        """Bring up to date what the state says besides the events that wait."""
        if watermark is not None:
            state.frontier = max(watermark, ALWAYS if state.frontier is None else state.frontier)
            self._evict(key, state)
        if self._key_ttl is None:
            return
        if len(fresh.records):
            latest = int(self._times(fresh).max())
            state.last_time = latest if state.last_time is None else max(state.last_time, latest)
        elif state.last_time is None:  # the state was written without key_ttl
            state.last_time = watermark

    def _set_timers(self, step: Step, state: PartitionState, watermark: int | None) -> None:
        """Set the timers of a partition, which are two at most: one for events that wait, and one
        for the expiry of its window or key.

        The expiry timer stays where it is while events come and go. Where it goes off too early, it
        is set again: Spark takes its time for each timer that is moved. A timer that the watermark
        has reached is unset here, because Spark would report it within this micro-batch, after the
        partition's step.
        """
        if watermark is not None:
            if state.run_timer is not None and 1000 * state.run_timer <= watermark:
                step.unset_timers.append(state.run_timer)
                state.run_timer = None
            if state.expiry_timer is not None and 1000 * state.expiry_timer <= watermark:
                step.unset_timers.append(state.expiry_timer)
                state.expiry_timer = None
        run, expiry = self._next_timers(state)
        if run is not None:
            known = [t for t in (state.run_timer, state.expiry_timer) if t is not None]
            if not known or run < min(known):
                if state.run_timer is not None:
                    step.unset_timers.append(state.run_timer)
                state.run_timer = run
                step.set_timers.append(run)
        elif expiry is not None and state.run_timer is None:
            if state.expiry_timer is not None and expiry < state.expiry_timer:
                step.unset_timers.append(state.expiry_timer)
                state.expiry_timer = None
            if state.expiry_timer is None:
                state.expiry_timer = expiry
                step.set_timers.append(expiry)

    def _times(self, rows: Rows) -> np.ndarray:
        return self._layout.values(rows, self._time)

    def _columns(self, rows: Rows) -> list[pa.Array]:
        try:
            return self._layout.columns(rows)
        except StateError as error:
            raise StateError(f"query {self._plan.name!r}: {error}") from None

    # --- order ------------------------------------------------------------------------------------

    def _in_order(self, ready: Rows) -> Iterator[Rows]:
        """The events in their order, in pieces of bounded size."""
        count = len(ready.records)
        if not count:
            return
        if count > 1:
            ready = self._layout.taken(ready, self._sorted(ready))
        for start in range(0, count, _ROWS_AT_ONCE):
            piece = np.array([start, min(count, start + _ROWS_AT_ONCE)])
            yield from self._layout.cut(ready, piece)

    def _sorted(self, rows: Rows) -> np.ndarray:
        keys: list[np.ndarray] = []
        texts: list[pa.Array] | None = None
        for place in self._order:
            row_field = self._layout.fields[place]
            if row_field.is_text:
                texts = texts or self._columns(rows)
                values = _ranks(texts[place])
            elif row_field.type in ("FLOAT", "DOUBLE"):
                values = np.asarray(sortable(pa.array(self._layout.values(rows, place))))
            else:
                values = self._layout.values(rows, place)
            missing = self._layout.missing(rows, place)
            if missing.any():
                keys.append(~missing)  # NULL comes first, as in Spark
            keys.append(values)
        order: np.ndarray = np.lexsort(keys[::-1])
        equal = np.ones(len(order) - 1, np.bool_)
        for key in keys:
            in_order = key[order]
            equal &= in_order[1:] == in_order[:-1]
        if equal.any():
            self._refuse_tie(rows, order[int(equal.argmax())])
        return order

    def _refuse_tie(self, rows: Rows, row: int) -> None:
        names = ", ".join((*self._plan.order_by, *self._plan.tiebreak))
        one = self._layout.taken(rows, np.array([row]))
        time = self._columns(one)[self._time]
        raise EventError(
            f"query {self._plan.name!r}: two events of a partition are equal in {names} "
            f"({self._plan.order_by[0]} is {time[0]}), and a stream has no order of its own: name "
            "a column that tells them apart, as in match_stream(df, tiebreak='id')"
        )

    # --- running ----------------------------------------------------------------------------------

    def _run(
        self, key: bytes, state: PartitionState, part: Rows, floor: int = ALWAYS
    ) -> list[pa.RecordBatch]:
        """Run the next events of a partition behind those that were kept."""
        layout = self._layout
        known, count = len(state.kept.records), len(part.records)
        rows = layout.joined([state.kept, part]) if known else part
        own = np.concatenate(
            [state.positions, np.arange(state.position, state.position + count, dtype=np.int64)]
        )
        index = np.arange(known + count)
        absent = np.zeros(known + count, np.bool_)
        silent = known
        gaps = self._gaps(own, known)
        if gaps is not None:
            repeats = 1 + gaps
            index = np.repeat(index, repeats)
            # A row that stands for the rows before an event is a copy of it, so that times do not
            # fall.
            absent = np.ones(len(index), np.bool_)
            absent[np.cumsum(repeats) - 1] = False
            silent = int(repeats[:known].sum())
        if not count and own[-1] < state.position - 1:
            # The last events do not matter, and behind the last kept event no gap tells of them.
            index, absent = np.append(index, index[-1]), np.append(absent, True)
            silent += 1
        if len(index) > known + count:
            rows = layout.taken(rows, index)
        positions = own[index]
        if gaps is not None and self._in_events:
            positions = own[0] + np.arange(len(index))
        stretch = PartitionStretch(
            self._events(key, rows), layout.codes(rows), positions, silent, absent, state.context
        )
        run = Run(self._program)
        matches = list(run.push_stretch(stretch))
        kept = run.after_stretch(stretch, floor)
        if self._own_clock:
            self._check_clock(kept.keys[silent:], state)
        state.kept = layout.taken(rows, kept.rows)
        state.positions = positions[kept.rows]
        state.context = kept.context
        state.position += count
        return matches

    def _gaps(self, positions: np.ndarray, known: int) -> np.ndarray | None:
        """int64: how many rows to read before each event that stand for rows left out; None: no
        such rows."""
        if not known or self._plan.relevant is not None:
            return None
        gaps = np.diff(positions, prepend=positions[0] - 1) - 1
        if not self._in_events:
            gaps = np.minimum(gaps, 1)
        return gaps if gaps.any() else None

    def _events(self, key: bytes, rows: Rows) -> pa.RecordBatch:
        columns = self._columns(rows)
        names = [f.name for f in self._layout.fields]
        if self._plan.partition_by:
            one, _ = self._keys.read(key, 0, 1)
            for f, column in zip(self._keys.fields, self._keys.columns(one), strict=True):
                names.append(f.name)
                columns.append(pa.repeat(column[0], len(rows.records)))
        return pa.RecordBatch.from_arrays(columns, names)

    def _check_clock(self, keys: np.ndarray, state: PartitionState) -> None:
        """Raises EventError where the attribute that the window is measured on has fallen."""
        if state.window_value is not None and len(keys) and int(keys[0]) < state.window_value:
            raise EventError(
                f"query {self._plan.name!r}: WITHIN is measured on "
                f"{self._plan.window_attribute!r}, which falls from one event of a partition to "
                "the next: order the events by it, or measure on another attribute"
            )
        if len(keys):
            state.window_value = int(keys[-1])

    # --- what stays -------------------------------------------------------------------------------

    @property
    def _window_length(self) -> int | None:
        """How long (microseconds) an event stays in the window; None: only later events tell."""
        window = self._plan.window
        if window is None or window.unit == "EVENTS" or self._own_clock or self._sees_all:
            return None
        return int(window.size)

    def _evict(self, key: bytes, state: PartitionState) -> None:
        """Drop the kept events that the window of no event behind the frontier reaches."""
        if self._window_length is None or not len(state.kept.records) or state.frontier is None:
            return
        # The next event is later than the frontier.
        after = min(state.frontier, END_OF_TIME - 1) + 1
        floor = int(window_floor(after, self._window_length))
        keeps = self._times(state.kept) >= floor
        if keeps.all():
            return
        if len(self._program.contexts):  # only a run knows the context of what is left
            self._run(key, state, self._layout.nothing, floor)
            return
        rows = np.flatnonzero(keeps)
        state.kept = self._layout.taken(state.kept, rows)
        state.positions = state.positions[rows]

    def _next_timers(self, state: PartitionState) -> tuple[int | None, int | None]:
        """The times (milliseconds) at which the watermark makes work although no event comes: to
        run an event that waits, and to evict events or forget the partition. None: never."""
        run = None
        if len(state.waiting.records):
            run = _timer(int(self._times(state.waiting).min()))
        moments = []
        if len(state.kept.records) and self._window_length is not None:
            moments.append(int(self._times(state.kept)[-1]) + self._window_length)
        if self._key_ttl is not None and state.last_time is not None:
            moments.append(state.last_time + self._key_ttl)
        return run, None if not moments else _timer(min(moments))

    def _expired(self, state: PartitionState, watermark: int | None) -> bool:
        """Whether nothing of a partition has to be kept: its key has expired, or its state says no
        more than a fresh one."""
        if len(state.waiting.records):
            return False
        if (
            self._key_ttl is not None
            and state.last_time is not None
            and watermark is not None
            and watermark >= state.last_time + self._key_ttl
        ):
            return True
        if len(state.kept.records) or state.context or state.window_value is not None:
            return False
        return not self._plan.positions or not state.position


def _timer(moment: int) -> int:
    """The timer (milliseconds) of a time in microseconds."""
    # Events before 1970 wait as well: for the first watermark, since Spark begins with 0.
    return max(1, -(-min(moment, _LAST_TIMER) // 1000))


def _ranks(column: pa.Array) -> np.ndarray:
    """int64: the places of texts in their order, by bytes; equal texts have one place."""
    coded = column.dictionary_encode(null_encoding="encode")
    places = pc.rank(coded.dictionary, tiebreaker="dense")
    ranks: np.ndarray = np.asarray(places, np.int64)[
        np.asarray(coded.indices.to_numpy(zero_copy_only=False))
    ]
    return ranks
