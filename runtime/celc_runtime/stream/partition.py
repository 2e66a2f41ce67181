"""One partition of a stream: what happens to its events in a micro-batch, without Spark.

Events wait until the watermark has passed them, because until then an earlier one may come. Those
that it has passed are put in order and run behind the events that were kept, which are read once
more so that the matches they began are there (`Run.push_stretch`). Then it is seen what is to be
kept: the events in the window that matter to the query, with their positions.

*Exact*: a match is made of events inside the window and depends on events between its first and its
last only; so reading from the first event on that any later window reaches finds the same matches.
What depends on events before the window: nested selectors, by the number of a context, which is
kept; CONSUME BY, which makes everything before its last match the past of another stream; and
positions, which are kept. Rows that matter to no match are not kept. Where it matters that they
were there (`:`, STRICT, `;!;`) one row stands for all between two kept ones, because more than one
change nothing that one did not; in a window of EVENTS as many as there were.

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
    """What a micro-batch did to a partition. `state` None: nothing is left to keep. `late`: the
    events that came too late; timers (milliseconds) to set and to unset."""

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
        """How many matches there are."""
        return sum(len(batch) for batch in self.matches)


def row_layout(plan: Plan, tiebreak_types: dict[str, str]) -> RowLayout:
    """The rows of a query's events: all columns that it reads but those of `key_columns`."""
    types = {a.name: a.type for a in plan.attributes}
    names = dict.fromkeys([*plan.order_by, *(a.name for a in plan.attributes)])
    fields = [RowField(name, types[name]) for name in names if name not in plan.key_columns]
    fields += [
        RowField(name, tiebreak_types[name])
        for name in plan.tiebreak
        if name not in types and name in tiebreak_types
    ]
    return RowLayout(fields, max(1, len(plan.types) + len(plan.other_types)))


def key_layout(plan: Plan) -> RowLayout:
    """The rows of partitions: the columns of PARTITION BY."""
    return RowLayout([RowField(name, plan.type_of(name)) for name in plan.key_columns], 1)


class PartitionReader:
    """Takes a query's partitions from one micro-batch to the next."""

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
        """Take in the events that arrived, and run those up to the watermark (microseconds).

        `data`: the state before, None if there is none. Raises EventError where events are equal in
        all order columns or cannot be measured, StateError where the state is not in order.
        """
        layout = self._layout
        state = self._states.fresh() if data is None else self._states.read(data)
        fresh = layout.joined([rows for rows in arrived if len(rows.records)])
        late = layout.nothing
        frontier = state.frontier
        if frontier is None and data is None and self._forgets:
            # Nobody knows whether this partition had events before; what is behind the watermark
            # may be behind what was run of it.
            frontier = watermark
        if frontier is not None and len(fresh.records):
            behind = self._times(fresh) <= frontier
            if behind.any():
                late = layout.taken(fresh, np.flatnonzero(behind))
                fresh = layout.taken(fresh, np.flatnonzero(~behind))
        waiting = layout.joined([r for r in (state.waiting, fresh) if len(r.records)])
        ready = layout.nothing
        if watermark is not None and len(waiting.records):
            passed = self._times(waiting) <= watermark
            if passed.all():
                ready, waiting = waiting, layout.nothing
            elif passed.any():
                ready = layout.taken(waiting, np.flatnonzero(passed))
                waiting = layout.taken(waiting, np.flatnonzero(~passed))
        step = Step(None, late, events=len(ready.records))
        for part in self._in_order(ready):
            step.matches += self._run(key, state, part)
        state.waiting = waiting
        if watermark is not None:
            state.frontier = max(watermark, ALWAYS if frontier is None else frontier)
            self._let_go(key, state)
        if self._key_ttl is not None:
            self._note_last(state, fresh, watermark)
        step.waiting, step.kept = len(waiting.records), len(state.kept.records)
        timers = [timer for timer in (state.timer, state.later) if timer is not None]
        if self._is_over(state, watermark):
            step.unset_timers = timers
        else:
            self._set_timers(step, state, watermark)
            step.state = self._states.written(state)
        return step

    def _set_timers(self, step: Step, state: PartitionState, watermark: int | None) -> None:
        """Two timers at most are set for a partition: one for events that wait, and behind it one
        for the time after. The latter stays where it is while events come and go, and when it goes
        off is set again if it was too early, because Spark takes its time for each that is moved.

        One that the watermark has reached would be told of in this micro-batch still, after the
        partition has been seen to.
        """
        if watermark is not None:
            if state.timer is not None and 1000 * state.timer <= watermark:
                step.unset_timers.append(state.timer)
                state.timer = None
            if state.later is not None and 1000 * state.later <= watermark:
                step.unset_timers.append(state.later)
                state.later = None
        due, later = self._due(state)
        if due is not None:
            known = [timer for timer in (state.timer, state.later) if timer is not None]
            if not known or due < min(known):
                if state.timer is not None:
                    step.unset_timers.append(state.timer)
                state.timer = due
                step.set_timers.append(due)
        elif later is not None and state.timer is None:
            if state.later is not None and later < state.later:
                step.unset_timers.append(state.later)
                state.later = None
            if state.later is None:
                state.later = later
                step.set_timers.append(later)

    def _note_last(self, state: PartitionState, fresh: Rows, watermark: int | None) -> None:
        if len(fresh.records):
            latest = int(self._times(fresh).max())
            state.last = latest if state.last is None else max(state.last, latest)
        elif state.last is None:  # written when nothing was to be forgotten
            state.last = watermark

    @property
    def _forgets(self) -> bool:
        return not self._plan.positions or self._key_ttl is not None

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
            # What stands for the rows before an event looks like it, so that times do not fall.
            absent = np.ones(len(index), np.bool_)
            absent[np.cumsum(repeats) - 1] = False
            silent = int(repeats[:known].sum())
        if not count and own[-1] < state.position - 1:
            # What came last does not matter; when nothing is kept, no gap tells of it any more.
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
        """int64: how many rows to read before each that stand for what was left out; None: none."""
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
        """Where the window is measured on an attribute of its own: it must not have fallen."""
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
    def _passes(self) -> int | None:
        """How long after its last event a partition's window has passed; None: only events tell."""
        window = self._plan.window
        if window is None or window.unit == "EVENTS" or self._own_clock or self._sees_all:
            return None
        return int(window.size)

    def _let_go(self, key: bytes, state: PartitionState) -> None:
        """Drop what no event behind the frontier can reach."""
        if self._passes is None or not len(state.kept.records) or state.frontier is None:
            return
        # The next event is later than the frontier.
        after = min(state.frontier, END_OF_TIME - 1) + 1
        floor = int(window_floor(after, self._passes))
        keeps = self._times(state.kept) >= floor
        if keeps.all():
            return
        if len(self._program.contexts):  # only a run knows the context of what is left
            self._run(key, state, self._layout.nothing, floor)
            return
        rows = np.flatnonzero(keeps)
        state.kept = self._layout.taken(state.kept, rows)
        state.positions = state.positions[rows]

    def _due(self, state: PartitionState) -> tuple[int | None, int | None]:
        """When (in milliseconds) the watermark lets something happen here although no event comes:
        one that waits can be run; the window has passed, or the partition can be forgotten."""
        due = None
        if len(state.waiting.records):
            due = _timer(int(self._times(state.waiting).min()))
        moments = []
        if len(state.kept.records) and self._passes is not None:
            moments.append(int(self._times(state.kept)[-1]) + self._passes)
        if self._key_ttl is not None and state.last is not None:
            moments.append(state.last + self._key_ttl)
        return due, None if not moments else _timer(min(moments))

    def _is_over(self, state: PartitionState, watermark: int | None) -> bool:
        """Whether a partition may be forgotten altogether."""
        if len(state.waiting.records):
            return False
        if self._key_ttl is not None and state.last is not None and watermark is not None:
            forgotten = watermark >= state.last + self._key_ttl
        else:
            forgotten = False
        if forgotten:
            return True
        if len(state.kept.records) or state.context or state.window_value is not None:
            return False
        return not self._plan.positions or not state.position


def _timer(moment: int) -> int:
    """A time in microseconds as a timer's."""
    # Events before 1970 wait as well: for the first watermark, as Spark begins with 0.
    return max(1, -(-min(moment, _LAST_TIMER) // 1000))


def _ranks(column: pa.Array) -> np.ndarray:
    """int64: the places of texts in their order, by bytes; equal texts have one place."""
    coded = column.dictionary_encode(null_encoding="encode")
    places = pc.rank(coded.dictionary, tiebreaker="dense")
    ranks: np.ndarray = np.asarray(places, np.int64)[
        np.asarray(coded.indices.to_numpy(zero_copy_only=False))
    ]
    return ranks
