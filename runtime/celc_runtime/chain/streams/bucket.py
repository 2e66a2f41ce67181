"""A bucket of several units: what happens in a micro-batch, without Spark.

The units run in their order. The rows of a query are events of its readers in the same micro-batch.
They are never late: a reader has read no event behind the time up to which the rows of those
queries are known. Whether an event of the input is late is decided before any unit runs, and it is
late for all units if it is late for one. So all queries of an operator read the same events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.chain.streams import header as headers
from celc_runtime.chain.streams.checkpoint import (
    BEGINS_ANEW,
    GOES_ON,
    Fitting,
    fitting,
    other_queries,
    record_of,
)
from celc_runtime.chain.streams.header import (
    MOST_UNITS,
    ModuleState,
    UnitState,
    named,
    place_of,
)
from celc_runtime.chain.streams.near.bucket import NearReader
from celc_runtime.chain.streams.near.reading import NearUnit
from celc_runtime.chain.streams.unit_rows import UnitRows
from celc_runtime.chain.streams.units import Unit
from celc_runtime.engine.arena.nodes import NEVER
from celc_runtime.many.relevant_rows import RelevantRows
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Answer
from celc_runtime.program import Program
from celc_runtime.stream.formats import StreamFormats, StreamOptions
from celc_runtime.stream.one_bucket.bucket import BucketReader, OpenBucket, set_timer
from celc_runtime.stream.one_bucket.members import Members
from celc_runtime.stream.one_bucket.step import Step
from celc_runtime.stream.stored.blocks import Block
from celc_runtime.stream.stored.rows import Keys, RowLayout, Rows
from celc_runtime.stream.stored.state import places_in


class UnitReader:
    """What runs a unit in its buckets."""

    def __init__(self, unit: Unit, options: StreamOptions) -> None:
        self.unit = unit
        program, members = unit.program, None
        earlier: tuple[int, ...] = (0,)
        if unit.members:
            most = 0 if unit.shared is None else unit.shared.groups
            members = Members(unit.members, program, RelevantRows, most)
            earlier = members.leaves_earlier
        self.record = record_of(unit, len(earlier))
        if isinstance(unit, NearUnit):
            formats = unit.formats(options)
            self.reader: BucketReader = NearReader(unit, formats)
        else:
            stored = _as_stored(program) if unit.members else program
            formats = StreamFormats(stored, unit.options(options), earlier)
            self.reader = BucketReader(program, formats.events, formats.states, members=members)
        self.layout, self.states = formats.events, formats.states
        self.rows = UnitRows(unit, self.layout, options)
        source = unit.program.plan.source
        names = [field.name for field in self.layout.fields]
        self._time = names.index(source.order_by[0])

    def times(self, rows: Rows) -> np.ndarray:
        """int64: microseconds."""
        return self.layout.values(rows, self._time)


@dataclass(slots=True)
class ModuleStep:
    """The outcome of a micro-batch for a bucket of several units."""

    header: bytes = b""  # of the new state
    is_changed: bool = True  # whether it differs from the header before
    written: dict[int, bytes] = field(default_factory=dict)  # bytes to store under numbers
    removed: list[int] = field(default_factory=list)
    set_timers: list[int] = field(default_factory=list)  # milliseconds
    unset_timers: list[int] = field(default_factory=list)  # milliseconds
    matches: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)  # by query
    units: list[Step] = field(default_factory=list)
    late: list[Rows] = field(default_factory=list)  # by unit, each event in one of them
    late_input: Rows | None = None  # those of `Asked`


class Asked(NamedTuple):
    """Events behind the watermark in another form, for which it is asked whether they are late."""

    layout: RowLayout
    rows: Rows
    times: np.ndarray  # int64, microseconds


class ModuleReader:
    """Advances the buckets of several queries from one micro-batch to the next."""

    def __init__(
        self,
        units: Sequence[Unit],
        options: StreamOptions,
        *,
        changes: bool = False,
        remedy: str = BEGINS_ANEW,
        one_key: bool = True,
    ) -> None:
        """changes: whether buckets may have other queries; remedy: if not, what to do. one_key:
        whether all queries have the same PARTITION BY; if not, a bucket has run its partitions up
        to one time for all that is known of late events."""
        self._next_unit = 1 + max(unit.number for unit in units)
        if self._next_unit > MOST_UNITS:
            raise EventError(
                f"{self._next_unit:,} queries, with those that were run before from this "
                f"checkpoint, are more than one operator of a stream runs: {MOST_UNITS:,}; make "
                "two modules of them, or begin a new checkpoint"
            )
        self.units = [UnitReader(unit, options) for unit in units]
        self._records = {one.unit.number: one.record for one in self.units}
        self._changes, self._remedy, self._one_key = changes, remedy, one_key
        self._programs = {one.name: one for unit in units for one in unit.programs}
        self._counted = _counted_types(units)

    def check(self, number: int, header: bytes) -> None:
        """Raises StateError if the header of a bucket does not fit these queries."""
        fits = self._fitting(headers.read(named(self._programs), header))
        for one in self.units:
            if (data := fits.headers.get(one.unit.number)) is not None:
                one.states.read(data, number)

    def _fitting(self, state: ModuleState) -> Fitting:
        return fitting(state, self._records, changes=self._changes, remedy=self._remedy)

    def advance(
        self,
        number: int,
        header: bytes | None,
        load: Callable[[int], bytes | None],
        arrived: Sequence[Sequence[Block]],
        watermark: int | None,
        asked: Asked | None = None,
    ) -> ModuleStep:
        """Take in the events that arrived, by unit, and run the events up to the watermark.

        The other arguments are those of `BucketReader.advance`, and so are the errors.
        """
        state = ModuleState()
        if header is not None:
            state = headers.read(named(self._programs), header)
        fits = self._fitting(state)
        step = ModuleStep(removed=_pieces(fits.dropped))
        buckets = []
        for place, one in enumerate(self.units):
            unit = one.unit.number
            own = fits.headers.get(unit)
            bucket = one.reader.opened(number, own, partial(_loaded, load, unit))
            if unit in fits.left:
                one.reader.count_again(bucket)
            one.reader.receive(bucket, arrived[place], watermark)
            buckets.append(bucket)
        late = self._late(buckets)
        if asked is not None:
            keys, times = asked.layout.keys_of(asked.rows), asked.times
            are_late = self._late_for(zip(self.units, buckets, strict=True), keys, times)
            step.late_input = asked.layout.taken(asked.rows, np.flatnonzero(are_late))
        answers: dict[str, list[pa.RecordBatch]] = {}
        due: list[int] = []
        for place, (one, bucket) in enumerate(zip(self.units, buckets, strict=True)):
            if place:
                bucket.begun = time.perf_counter_ns()  # until then, the others were at work
            clock = one.unit.watermark(watermark)
            rows = self._rows_read(one, answers)
            one.reader.run(bucket, clock, never_late=rows, late=late[place])
            if one.unit.members:
                found = bucket.step.of_members
                answers |= {p.name: found.get(n, []) for n, p in enumerate(one.unit.members)}
            else:
                answers[one.unit.name] = bucket.step.matches
            moment = one.reader.store(bucket, clock)
            if moment is not None:
                due.append(moment + -(-one.unit.lag // 1000))
            own_step = one.reader.closed(bucket)
            step.units.append(own_step)
            step.late.append(self.counted(place, own_step.late))
            unit = one.unit.number
            step.written |= {place_of(unit, n): data for n, data in own_step.written.items()}
            step.removed += [place_of(unit, n) for n in own_step.removed]
        set_timer(step, state, min(due, default=None), watermark)
        state.next_unit = max(state.next_unit, self._next_unit)
        state.units = {
            one.unit.number: UnitState(one.record, own_step.header)
            for one, own_step in zip(self.units, step.units, strict=True)
        }
        step.header = headers.written(state)
        step.is_changed = step.header != header
        step.matches = answers
        return step

    def _late(self, buckets: Sequence[OpenBucket]) -> list[np.ndarray | None]:
        """bool[rows] by unit: which of its events behind the watermark are late for others."""
        found: list[np.ndarray | None] = []
        for one, bucket in zip(self.units, buckets, strict=True):
            rows = bucket.behind
            if not len(rows.records) or len(self.units) == 1:
                found.append(None)
                continue
            others = [*zip(self.units, buckets, strict=True)]
            if self._one_key:
                others = [pair for pair in others if pair[0] is not one]
            found.append(self._late_for(others, one.layout.keys_of(rows), one.times(rows)))
        return found

    def _late_for(
        self, asked: Iterable[tuple[UnitReader, OpenBucket]], keys: Keys, times: np.ndarray
    ) -> np.ndarray:
        """bool[rows]: which events are late for one of some units."""
        late = np.zeros(len(times), np.bool_)
        for one, bucket in asked:
            if not self._one_key:
                frontier = bucket.state.frontier
                late |= times <= (NEVER if frontier is None else frontier)
            elif len(times):
                late |= one.reader.late(bucket, keys, times)
        return late

    def _rows_read(
        self, one: UnitReader, answers: Mapping[str, Sequence[pa.RecordBatch]]
    ) -> Rows | None:
        """The rows of all queries that a unit reads, as its events; None: it reads none."""
        if not one.unit.reads:
            return None
        found = []
        for number, level in enumerate(one.unit.query.levels, 1):
            if answers[level.name]:
                program = self._programs[level.name]
                found.append(one.rows.of_answer(program, number, answers[level.name]))
        return one.layout.joined([rows for rows in found if len(rows.records)])

    def counted(self, place: int, rows: Rows) -> Rows:
        """Those of a unit's rows that no unit before it reads, so that each is counted once."""
        layout = self.units[place].layout
        counts = self._counted[place][layout.codes(rows)]
        return rows if counts.all() else layout.taken(rows, np.flatnonzero(counts))


def dropped(names: Sequence[str], header: bytes, *, changes: bool) -> ModuleStep:
    """The step of a bucket of which no query is left: its state goes, without its header.

    names: the queries of the module, of which none is there. changes: whether buckets may have
    other queries; if not, raises StateError.
    """
    state = headers.read(named(names), header)
    if not changes:
        raise other_queries(names, state, GOES_ON)
    unset = [] if state.timer is None else [state.timer]
    pieces = _pieces({number: unit.header for number, unit in state.units.items()})
    return ModuleStep(is_changed=False, removed=pieces, unset_timers=unset)


def _as_stored(reading: Program) -> Program:
    """A program that reads for several queries, without what is of one of them: their texts are in
    the record of the unit, and any of them may go."""
    plan = reading.plan
    plan = replace(
        plan,
        functions=(),
        matching=replace(plan.matching, consume_by="NONE"),
        choice=replace(plan.choice, deadlines=(), ruled_out=()),
        answer=Answer(positions=plan.answer.positions),
    )
    return replace(reading, plan=plan, module=reading.module | {"QUERY": ""})


def _pieces(dropped: Mapping[int, bytes]) -> list[int]:
    """The numbers under which units that are gone have stored something; by number, their
    headers."""
    return [place_of(unit, n) for unit, header in dropped.items() for n in places_in(header)]


def _loaded(load: Callable[[int], bytes | None], unit: int, place: int) -> bytes | None:
    return load(place_of(unit, place))


def _counted_types(units: Sequence[Unit]) -> list[np.ndarray]:
    """bool[types] by unit: the event types that no unit before it reads."""
    known: set[tuple[str, str]] = set()
    found = []
    for unit in units:
        types = unit.program.plan.source.declared_types
        found.append(np.array([one in unit.declared and one not in known for one in types]))
        known |= unit.declared
    return found
