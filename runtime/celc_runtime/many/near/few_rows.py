"""The events that can matter to a query or to its bent forms, which these read in place of all.

Most events are far from every bound. Of the others most are far in time from what a match needs
besides them: where no dry reading is within the window, no hot one matters. Where all events of a
match have one id, only dry readings with this id count. These events are left out once for all
queries, before any of these reads, and then by each for its own bounds and window. So a bent query
costs what its candidates cost.

Not taken: one run that keeps for each partial match the part that it has used up. Which events
matches have is known only when all have been read, so it lists the matches that share an event with
one as well: 65,352 in place of 35,873 for `keyed` of `benchmarks/near.py`. Measured as one query,
OR over the bent forms and the straight one, on the few events: 12.9 ms, where the four runs take
11.1 ms. What a `:`, an absence or a count asks for is another automaton, and in `+` some event has
to bend and not each, so most queries would need the bent forms beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import numbers
from celc_runtime.arrow.events.columns import Columns
from celc_runtime.arrow.events.conforming import names_read
from celc_runtime.jit.kernels import njit
from celc_runtime.many.relevant_rows import RelevantRows
from celc_runtime.many.runs import can_do_without_rows, with_coded_texts
from celc_runtime.plan.near.queries import ROW, TOUCHED
from celc_runtime.program import Program
from celc_runtime.run.run_of import run_of

Group: TypeAlias = tuple[tuple[str, str], ...]
"""Event types as (stream, type)."""

Needs: TypeAlias = tuple[Group, ...]
"""Groups of event types, of each of which every match has an event."""

_NO_PARTS = np.zeros(0, np.int64)
_TIMES = ("TIMESTAMP", "LONG", "INT")
_LONGEST = 1 << 62
_GROUPS, _BITS = 8, 64  # of which a row, and queries to which it, is told: bits of uint8, uint64
_FEWEST = 10

_MIXING = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: Knuth, vol. 3, 6.4
_ONE = np.uint64(1)


class FewRows:
    """Events of a table that can matter to one of some queries, with their positions."""

    def __init__(
        self,
        reading: Program,
        programs: Mapping[str, Program],
        needs: Mapping[str, Needs],
        tied: Mapping[str, str],
        batch: pa.RecordBatch,
    ) -> None:
        """reading: reads all columns that the queries, `programs` by name, read, but for whether a
        match has an event: that is not known yet. needs, tied: as in `NearPlan`. batch: all events,
        sorted."""
        self._plan, self._programs = reading.plan, programs
        prepared = Columns(reading.plan, ties_are_errors=False).prepare(batch)
        events = with_coded_texts(prepared.events)
        relevant = RelevantRows(reading.plan, events, prepared.parts)
        plans = [one.plan for one in programs.values()]
        rows = np.flatnonzero(relevant.marks(plans, TOUCHED))
        has_numbers = ROW in events.schema.names  # a query without labels reads none
        columns = [name for name in events.schema.names if name != ROW]
        bare = pc.take(events.select(columns), pa.array(rows), boundscheck=False)
        kept, self._fits = self._near_to_all(bare, rows, prepared.parts, needs, tied)
        rows = rows[kept]
        parts = np.searchsorted(prepared.parts, rows, side="right")
        self._positions = rows - np.concatenate([[0], prepared.parts])[parts]
        bare = pc.take(bare, pa.array(kept), boundscheck=False)
        self._bare = bare.append_column(ROW, pa.array(rows)) if has_numbers else bare
        self.touch(np.zeros(len(batch), np.bool_))

    def touch(self, touched: np.ndarray) -> None:
        """Say which rows of the table are events of matches (bool[rows])."""
        of_rows = np.zeros(len(self._bare), np.bool_)
        if ROW in self._bare.schema.names:
            of_rows = touched[self._bare.column(ROW).to_numpy()]
        self._events = self._bare.append_column(TOUCHED, pa.array(of_rows))
        self._relevant = RelevantRows(self._plan, self._events, _NO_PARTS)

    def matches(self, name: str) -> pa.Table | None:
        """The matches of one of the queries; None: it is not one of these."""
        if name not in self._programs:
            return None
        program = self._programs[name]
        read = set(names_read(program.plan))
        columns = [one for one in self._events.schema.names if one in read]
        bit = np.uint64(1 << [*self._programs].index(name) % _BITS)
        rows = np.flatnonzero(self._relevant.marks([program.plan]) & (self._fits & bit != 0))
        run = run_of(program)
        events = self._events.select(columns or self._events.schema.names[:1])
        events = pc.take(events, pa.array(rows), boundscheck=False)
        found = [*run.push(events, self._positions[rows]), *run.rest()]
        return pa.Table.from_batches(found, program.output_schema)

    def _near_to_all(
        self,
        events: pa.RecordBatch,
        rows: np.ndarray,
        parts: np.ndarray,
        needs: Mapping[str, Needs],
        tied: Mapping[str, str],
    ) -> tuple[np.ndarray, np.ndarray]:
        """(int64: the rows that can matter to one of the queries; uint64: a bit for each of these
        queries). Left out are rows far from all events of a group that each match needs.

        What makes a match, and what can keep it from being one, is within its window. rows: those
        of the table that the events are; parts: those with which parts begin, without the first.
        """
        relevant = RelevantRows(self._plan, events, _NO_PARTS)
        source = self._plan.source
        order = source.order_by[0] if source.order_by else None
        sizes = [1]
        masks: dict[tuple[Any, ...], int] = {}
        asked = [0] * len(self._programs)
        for number, (name, program) in enumerate(self._programs.items()):
            window = program.plan.whole_window
            if window is None or program.plan.measured_on(window) != order:
                continue
            sizes.append(math.floor(window.size))
            for types in needs.get(name, ()):
                ways = tuple(relevant.ways_in_matches(program.plan, types, TOUCHED))
                if ways in masks or len(masks) < _GROUPS:
                    asked[number] |= 1 << masks.setdefault(ways, len(masks))
        if not any(asked) or source.type_of(order or "") not in _TIMES:
            return np.arange(len(events)), np.full(len(events), ~np.uint64(0))
        has = np.zeros(len(events), np.uint8)
        for ways, bit in masks.items():
            has |= relevant.on_ways(ways).view(np.uint8) << bit
        fits = np.zeros(1 << _GROUPS, np.uint64)
        for number, bits in enumerate(asked):
            holds = (np.arange(len(fits)) & bits) == bits
            fits |= holds.astype(np.uint64) << np.uint64(number % _BITS)
        ties = {tied.get(name) for name in self._programs}
        tie = ties.pop() if len(ties) == 1 else None
        keys = np.zeros(0, np.uint64) if tie is None else _codes(events.column(tie))
        times = numbers(events.column(order))[0].astype(np.int64, copy=False)
        slots = (times // min(max(sizes), _LONGEST)).view(np.uint64)
        asked_for = keys, has, fits, max(len(events).bit_length(), _FEWEST)
        with np.errstate(over="ignore"):
            found: tuple[np.ndarray, np.ndarray] = near_to_all(rows, parts, slots, *asked_for)
        return found


def _codes(column: pa.Array) -> np.ndarray:
    """uint64: numbers that are equal where the values of a column are; anything where NULL."""
    if pa.types.is_dictionary(column.type):
        column = column.indices
    codes: np.ndarray = numbers(column)[0].astype(np.int64, copy=False).view(np.uint64)
    return codes


@njit(nogil=True, cache=True)
def near_to_all(rows, parts, slots, keys, has, fits, bits):  # type: ignore[no-untyped-def]
    """(int64: places in `rows`; uint64: of each what `fits`, uint64[256], says of the groups, bits
    of uint8, that rows near it have). Near are rows in the same part with the same key, in the same
    slot of time, the next or the one before. Rows of which it says nothing are left out.

    parts: the rows with which parts begin, without the first. slots: uint64, are overwritten. keys:
    uint64, or nothing. has: the groups of each row. What rows have is kept in 2**bits places, so
    some have more than there is.
    """
    shift, part = np.uint64(64 - bits), 0
    near = np.zeros(1 << bits, np.uint8)
    for row in range(len(rows)):
        while part < len(parts) and parts[part] <= rows[row]:
            part += 1
        key = np.uint64(part) if len(keys) == 0 else keys[row] + np.uint64(part)
        slots[row] += key * _MIXING
        near[slots[row] * _MIXING >> shift] |= has[row]
    found, told, count = np.empty(len(rows), np.int64), np.empty(len(rows), np.uint64), 0
    for row in range(len(rows)):
        groups = near[slots[row] * _MIXING >> shift]
        groups |= near[(slots[row] + _ONE) * _MIXING >> shift]
        groups |= near[(slots[row] - _ONE) * _MIXING >> shift]
        found[count], told[count] = row, fits[groups]
        count += fits[groups] != 0
    return found[:count], told[:count]


def takes_few(program: Program) -> bool:
    """Whether a query can read some of the events, with their positions."""
    return can_do_without_rows(program.plan) and not program.plan.interleaves
