"""The rows of a streaming table of parameters that a bucket holds, and from when to when each
counts.

Rows come at any time (VALID [since, until]). A row that comes before the watermark has passed its
`since` counts as in a table of all rows, because no event from `since` on has been paired yet. One
that comes later is *late*: it counts for events after the watermark. Whatever a row changes of the
others of its key lies after the watermark, too. So the last time of a row only falls, and what was
paired stays right.

A row is forgotten when nothing of it can come any more. One that was cut by a later version could
be read again, and would then count until its own end. So the later version stays as long as that
(`guards`).

Rejected: all versions for ever, which grows with each change; a table in Spark's state with a key
for each version, which every bucket would have to read as a whole.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import numbers
from celc_runtime.plan.errors import StateError
from celc_runtime.plan.parameters import Parameters, Validity
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.program import Rows
from celc_runtime.rules.rows import first_of_equal
from celc_runtime.rules.versions import check_times, coded_keys
from celc_runtime.stream.rules import in_one_order

ALWAYS, FOR_EVER = -(1 << 63), (1 << 63) - 1
"""The first and the last time (microseconds) of rows without bounds."""

_HEAD = struct.Struct("<qq")
_OWN = ("#number", "#first", "#last", "#guards")


class Arrived(NamedTuple):
    """What became of rows that arrived."""

    added: int  # rows that are held from now on
    late: int  # rows that came late, or that another row of their key and `since` forbids


@dataclass(frozen=True)
class HeldRules:
    """The rows that a bucket holds, in the order of their numbers.

    rows: the attributes of the set. numbers: int64, those by which pairs and states name them,
    ascending. firsts, lasts: int64, the times between which labelled events lie. guards: int64,
    up to when a forgotten version would count if it came again. next_number: of the next row.
    """

    rows: Rows
    numbers: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray
    guards: np.ndarray
    next_number: int

    @classmethod
    def none(cls, parameters: Parameters) -> HeldRules:
        """No rows."""
        columns = {one.name: pa.array([], arrow_type(one.type)) for one in parameters.attributes}
        nothing = np.zeros(0, np.int64)
        return cls(Rows(0, columns), nothing, nothing, nothing, nothing, 0)

    def paired(self, valid: Validity) -> Rows:
        """The rows as events are paired with them."""
        type = arrow_type(valid.type)
        made = {valid.first: self.firsts, valid.last: self.lasts}
        columns = {name: pa.array(times).cast(type) for name, times in made.items()}
        return Rows(self.rows.count, {**self.rows.columns, **columns})

    def places_of(self, found: np.ndarray) -> np.ndarray:
        """int64: the places of rows by their numbers; raises StateError for a number of no row."""
        places = np.searchsorted(self.numbers, found)
        known = np.append(self.numbers, -1)[places] == found
        if not known.all():
            raise StateError(f"the state has no row of number {int(found[~known][0])}")
        return places

    # --- rows that arrive -------------------------------------------------------------------------

    def with_arrived(
        self, parameters: Parameters, arrived: Rows, watermark: int | None
    ) -> tuple[HeldRules, Arrived]:
        """The rows with those that arrived; watermark: microseconds, None: there is none yet.

        Raises EventError for a row that ends before it begins. Rows that are held do not change,
        but for their last times.
        """
        valid = _valid(parameters)
        arrived = in_one_order(arrived)
        check_times(parameters, arrived)
        held = self.rows.count
        together = joined([self.rows, arrived])
        begins, untils = bounds_of(valid, together)
        is_new = np.zeros(together.count, np.bool_)
        is_new[first_of_equal(together)] = True
        is_new[:held] = False
        late = np.zeros(together.count, np.bool_)
        if watermark is not None:
            late = is_new & (begins <= watermark)
        firsts = np.concatenate([self.firsts, begins[held:]])
        firsts[late] = (watermark or 0) + 1
        lasts = np.concatenate([self.lasts, _before(untils[held:])])
        kept, refused = self._cut(together, is_new, begins, firsts, lasts, parameters)
        if watermark is not None:
            kept &= ~late | (lasts > watermark)
        chosen = np.flatnonzero(kept)
        added = len(chosen) - held
        new = np.arange(self.next_number, self.next_number + added)
        guards = np.concatenate([self.guards, np.full(arrived.count, ALWAYS)])
        found = HeldRules(
            together.take(chosen),
            np.concatenate([self.numbers, new]),
            firsts[chosen],
            lasts[chosen],
            guards[chosen],
            self.next_number + added,
        )
        return found, Arrived(added, int(np.count_nonzero(late | refused)))

    def _cut(
        self,
        together: Rows,
        is_new: np.ndarray,
        begins: np.ndarray,
        firsts: np.ndarray,
        lasts: np.ndarray,
        parameters: Parameters,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cut rows where later versions begin, in `lasts`.

        Returns (bool[rows], which are held from now on; bool[rows], which have one key and one
        beginning with another that was there before).
        """
        key = together.columns[parameters.attributes[0].name]
        keys = np.asarray(coded_keys(key).indices)
        kept = is_new.copy()
        kept[: self.rows.count] = True
        refused = np.zeros(len(kept), np.bool_)
        changed = np.isin(keys, keys[is_new])
        versions: dict[int, list[int]] = defaultdict(list)
        for place in np.flatnonzero(changed & kept).tolist():
            others = versions[int(keys[place])]
            if is_new[place]:
                if any(begins[other] == begins[place] for other in others):
                    kept[place], refused[place] = False, True
                    continue
                for other in others:
                    one, later = sorted((other, place), key=begins.__getitem__)
                    lasts[one] = min(lasts[one], _before(firsts[later]))
            others.append(place)
        return kept, refused

    # --- rows that are over -----------------------------------------------------------------------

    def ended(self, before: int | None, watermark: int | None) -> int:
        """How many rows the watermark has passed since it was at `before`."""
        if watermark is None:
            return 0
        since = ALWAYS if before is None else before
        return int(np.count_nonzero((self.lasts <= watermark) & (self.lasts > since)))

    def without_forgotten(
        self, parameters: Parameters, watermark: int | None, stays: int | None
    ) -> HeldRules:
        """The rows without those that are over.

        stays: how long after its last time something of a row can come (microseconds); None: for
        ever.
        """
        if watermark is None or stays is None or not self.rows.count:
            return self
        over = np.flatnonzero(self.lasts <= watermark - stays)
        if not len(over):
            return self
        begins, untils = bounds_of(_valid(parameters), self.rows)
        key = self.rows.columns[parameters.attributes[0].name]
        keys = np.asarray(coded_keys(key).indices)
        versions: dict[int, list[int]] = defaultdict(list)
        for place in np.flatnonzero(np.isin(keys, keys[over])).tolist():
            versions[int(keys[place])].append(place)
        guards, kept = self.guards.copy(), np.ones(self.rows.count, np.bool_)
        is_over = self.lasts <= watermark - stays
        for places in versions.values():
            places.sort(key=begins.__getitem__)
            for number, place in enumerate(places):
                until = max(int(untils[place]), int(guards[place]))
                if not is_over[place]:
                    continue
                if until > watermark:
                    if number + 1 == len(places):
                        continue
                    after = places[number + 1]
                    guards[after] = max(int(guards[after]), until)
                kept[place] = False
        if kept.all():
            return self
        chosen = np.flatnonzero(kept)
        return replace(
            self,
            rows=self.rows.take(chosen),
            numbers=self.numbers[chosen],
            firsts=self.firsts[chosen],
            lasts=self.lasts[chosen],
            guards=guards[chosen],
        )

    # --- bytes ------------------------------------------------------------------------------------

    def written(self) -> bytes:
        """The bytes of a state."""
        own = (self.numbers, self.firsts, self.lasts, self.guards)
        columns = [*self.rows.columns.values(), *map(pa.array, own)]
        batch = pa.RecordBatch.from_arrays(columns, [*self.rows.columns, *_OWN])
        return _HEAD.pack(self.next_number, self.rows.count) + bytes(batch.serialize())

    @classmethod
    def read(cls, parameters: Parameters, data: bytes) -> HeldRules:
        """The rows of bytes whose sum has been checked."""
        fields = [pa.field(one.name, arrow_type(one.type)) for one in parameters.attributes]
        schema = pa.schema([*fields, *(pa.field(name, pa.int64()) for name in _OWN)])
        next_number, count = _HEAD.unpack_from(data)
        message = pa.py_buffer(data[_HEAD.size :])
        batch = pa.ipc.read_record_batch(message, schema)
        columns = dict(zip(schema.names[: len(fields)], batch.columns[: len(fields)], strict=True))
        own = map(np.asarray, batch.columns[len(fields) :])
        of_rows, firsts, lasts, guards = own
        return cls(Rows(count, columns), of_rows, firsts, lasts, guards, next_number)


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows one after another."""
    first = parts[0]
    columns = {
        name: pa.concat_arrays([part.columns[name].cast(column.type) for part in parts])
        for name, column in first.columns.items()
    }
    return Rows(sum(part.count for part in parts), columns)


def bounds_of(valid: Validity, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """(int64, since; int64, until) of rows, in microseconds, as they are written."""
    since, begins = numbers(rows.columns[valid.since])
    until, ends = numbers(rows.columns[valid.until])
    return np.where(begins, since, ALWAYS), np.where(ends, until, FOR_EVER)


def _before(times: np.ndarray | int) -> np.ndarray:
    """The last moments before times; of FOR_EVER, that itself."""
    times = np.asarray(times)
    found: np.ndarray = np.where((times == FOR_EVER) | (times == ALWAYS), times, times - 1)
    return found


def _valid(parameters: Parameters) -> Validity:
    assert parameters.valid is not None, "the rows of a stream have times"
    return parameters.valid
