"""The rows of a streaming table of parameters that a bucket holds, and from when to when each
counts.

Rows come at any time (VALID [since, until]). A row that comes before the watermark has passed its
`since` counts as in a table of all rows, because no event from `since` on has been paired yet. One
that comes later is *late*: it counts for events after the watermark. Whatever a row changes of the
others of its key lies after the watermark, too. So the last time of a row only falls, and what was
paired stays right.

A row is forgotten when nothing of it can come any more. One that was cut by a later version could
be read again, and would then count until its own end. So a later version that has begun stays as
long as that (`guards`).

A row whose partition is known (`rule_places`) is paired in one bucket. Of such a row other buckets
hold no more than its key and its times, as far as they need them to know where versions begin and
end. A hash of all attributes tells rows of one key and one `since` apart.

Rejected: all versions for ever, which grows with each change; a table in Spark's state with a key
for each version, which every bucket would have to read as a whole.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import in_one_piece, numbers
from celc_runtime.arrow.matches.match_ids import hashes
from celc_runtime.arrow.nested import to_bytes
from celc_runtime.plan.errors import StateError
from celc_runtime.plan.parameters import Parameters, Validity
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.program import Rows
from celc_runtime.rules.versions import check_times, coded_keys

ALWAYS, FOR_EVER = -(1 << 63), (1 << 63) - 1
"""The first and the last time (microseconds) of rows without bounds."""

_SHARE_OVER = 8
"""Rows that are over go when they are this part of all, because the others are copied then."""

_MOST_CHUNKS = 64  # of the rows that are held

_HEAD = struct.Struct("<q")
_DIGEST, _OWN = "#digest", "#own"
_KEPT = ("#number", "#first", "#last", "#guards")


class Arrived(NamedTuple):
    """What became of rows that arrived."""

    added: int  # rows that are held from now on
    late: int  # rows that came late, or that another row of their key and `since` forbids


class Told(NamedTuple):
    """Rows as a bucket is told of them."""

    rows: Rows  # the attributes of the set
    digests: np.ndarray  # int64, hashes of all attributes
    own: np.ndarray  # bool, the rows that the bucket pairs with events; of others much is NULL

    @classmethod
    def of(cls, parameters: Parameters, rows: Rows) -> Told:
        """Rows for a bucket that pairs events with them."""
        declared = {one.name: rows.columns[one.name] for one in parameters.attributes}
        digests = hashes(declared, rows.count)[0].view(np.int64)
        return cls(Rows(rows.count, declared), digests, np.ones(rows.count, np.bool_))

    @classmethod
    def none(cls, parameters: Parameters) -> Told:
        columns = {one.name: pa.array([], arrow_type(one.type)) for one in parameters.attributes}
        return cls(Rows(0, columns), np.zeros(0, np.int64), np.zeros(0, np.bool_))

    def for_others(self, parameters: Parameters) -> Told:
        """The same rows for buckets that do not pair events with them."""
        valid = valid_of(parameters)
        needed = {parameters.attributes[0].name, valid.since, valid.until}
        columns = {
            name: column if name in needed else pa.nulls(self.rows.count, column.type)
            for name, column in self.rows.columns.items()
        }
        return Told(Rows(self.rows.count, columns), self.digests, np.zeros_like(self.own))

    def take(self, places: np.ndarray) -> Told:
        """The rows at places (int64)."""
        return Told(self.rows.take(places), self.digests[places], self.own[places])

    @classmethod
    def joined(cls, parts: Sequence[Told]) -> Told:
        """Rows one after another."""
        return cls(
            joined([part.rows for part in parts]),
            np.concatenate([part.digests for part in parts]),
            np.concatenate([part.own for part in parts]),
        )

    def in_one_order(self) -> Told:
        """Each row once, in an order that depends only on their values. It is the same in all
        buckets, so that of two rows that exclude each other all take the same one."""
        return self.take(np.unique(self.digests, return_index=True)[1])

    @property
    def table(self) -> pa.Table:
        """The attributes."""
        return pa.table(dict(self.rows.columns))

    @property
    def batch(self) -> pa.RecordBatch:
        """In a form that can be written."""
        columns = [*self.rows.columns.values(), pa.array(self.digests), pa.array(self.own)]
        return pa.RecordBatch.from_arrays(columns, [*self.rows.columns, _DIGEST, _OWN])

    @classmethod
    def of_batch(cls, parameters: Parameters, batch: pa.RecordBatch) -> Told:
        """The rows of such a batch, which may have more columns."""
        columns = {one.name: batch.column(one.name) for one in parameters.attributes}
        own = batch.column(_OWN).to_numpy(zero_copy_only=False)
        return cls(Rows(len(batch), columns), np.asarray(batch.column(_DIGEST)), own)

    @classmethod
    def read(cls, parameters: Parameters, data: bytes) -> Told:
        """The rows of the Arrow message of a batch."""
        message = pa.py_buffer(data)
        return cls.of_batch(parameters, pa.ipc.read_record_batch(message, _schema(parameters)))


def _schema(parameters: Parameters, more: Sequence[str] = ()) -> pa.Schema:
    fields = [pa.field(one.name, arrow_type(one.type)) for one in parameters.attributes]
    fields += [pa.field(_DIGEST, pa.int64()), pa.field(_OWN, pa.bool_())]
    return pa.schema([*fields, *(pa.field(name, pa.int64()) for name in more)])


@dataclass(frozen=True)
class HeldRules:
    """The rows that a bucket holds, in the order of their numbers.

    table: the attributes of the set, in chunks, so that rows are added without a copy of others.
    digests, own: as of `Told`. numbers: int64, those by which pairs and states name them,
    ascending. firsts, lasts: int64, the times between which labelled events lie. guards: int64, up
    to when a forgotten version would count if it came again. next_number: of the next row.
    """

    table: pa.Table
    digests: np.ndarray
    own: np.ndarray
    numbers: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray
    guards: np.ndarray
    next_number: int

    @classmethod
    def none(cls, parameters: Parameters) -> HeldRules:
        """No rows."""
        told, nothing = Told.none(parameters), np.zeros(0, np.int64)
        return cls(told.table, told.digests, told.own, *4 * (nothing,), 0)

    @property
    def count(self) -> int:
        """How many rows are held, those of other buckets among them."""
        return len(self.numbers)

    def rows_at(self, places: np.ndarray) -> Rows:
        """The rows at places (int64)."""
        taken = self.table.take(pa.array(places))
        columns = map(in_one_piece, taken.columns)
        return Rows(len(taken), dict(zip(taken.column_names, columns, strict=True)))

    def places_of(self, found: np.ndarray) -> np.ndarray:
        """int64: the places of rows by their numbers; raises StateError for a number of no row."""
        places, known = self.find(found)
        if not known.all():
            raise StateError(f"the state has no row of number {int(found[~known][0])}")
        return places

    def find(self, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(int64, the places of rows by their numbers; bool, whether there is such a row)."""
        places = np.searchsorted(self.numbers, found)
        return places, np.append(self.numbers, -1)[places] == found

    # --- rows that arrive -------------------------------------------------------------------------

    def with_arrived(
        self, parameters: Parameters, arrived: Told, watermark: int | None
    ) -> tuple[HeldRules, Arrived]:
        """The rows with those that arrived; watermark: microseconds, None: there is none yet.

        Raises EventError for a row that ends before it begins. Rows that are held do not change,
        but for their last times. Only the keys of rows that arrived are looked at one by one.
        """
        arrived = arrived.in_one_order()
        check_times(parameters, arrived.rows.take(np.flatnonzero(arrived.own)))
        same = self._places_of_keys(parameters, arrived.rows)
        fresh = np.flatnonzero(~np.isin(arrived.digests, self.digests[same]))
        arrived, held = arrived.take(fresh), len(same)
        together = joined([self.rows_at(same), arrived.rows])
        begins, untils = bounds_of(valid_of(parameters), together)
        late = np.zeros(together.count, np.bool_)
        if watermark is not None:
            late[held:] = begins[held:] <= watermark
        firsts = np.concatenate([self.firsts[same], begins[held:]])
        firsts[late] = (watermark or 0) + 1
        lasts = np.concatenate([self.lasts[same], _before(untils[held:])])
        refused = _cut(_keys_of(parameters, together), held, begins, firsts, lasts)
        kept = ~refused
        if watermark is not None:
            kept &= ~late | (lasts > watermark)
        chosen = np.flatnonzero(kept[held:])
        all_lasts = self.lasts.copy()
        all_lasts[same] = lasts[:held]
        new = arrived.take(chosen)
        found = HeldRules(
            _in_few_chunks(pa.concat_tables([self.table, new.table])),
            np.append(self.digests, new.digests),
            np.append(self.own, new.own),
            np.append(self.numbers, self.next_number + np.arange(len(chosen))),
            np.append(self.firsts, firsts[held:][chosen]),
            np.append(all_lasts, lasts[held:][chosen]),
            np.append(self.guards, np.full(len(chosen), ALWAYS)),
            self.next_number + len(chosen),
        )
        return found, Arrived(len(chosen), int(np.count_nonzero(late | refused)))

    def _places_of_keys(self, parameters: Parameters, rows: Rows) -> np.ndarray:
        """int64: the places of the rows that are held of the keys of others."""
        name = parameters.attributes[0].name
        wanted = _comparable(rows.columns[name])
        chunks = [pc.is_in(_comparable(one), wanted) for one in self.table.column(name).chunks]
        return np.flatnonzero(np.concatenate([np.zeros(0, np.bool_), *map(_bools, chunks)]))

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
        """The rows without those that are over, if these are many.

        stays: how long after its last time something of a row can come (microseconds); None: for
        ever.
        """
        if watermark is None or stays is None or not self.count:
            return self
        is_over = self.lasts <= watermark - stays
        over = np.flatnonzero(is_over)
        if _SHARE_OVER * len(over) < self.count + 1:
            return self
        same = self._places_of_keys(parameters, self.rows_at(over))
        rows = self.rows_at(same)
        begins, untils = bounds_of(valid_of(parameters), rows)
        guards, kept = self.guards.copy(), np.ones(self.count, np.bool_)
        for group in _groups(_keys_of(parameters, rows)):
            group.sort(key=begins.__getitem__)
            for number, one in enumerate(group):
                place = same[one]
                until = max(int(untils[one]), int(guards[place]))
                if not is_over[place]:
                    continue
                if until > watermark:
                    after = same[group[number + 1]] if number + 1 < len(group) else None
                    if after is None or self.firsts[after] > watermark + 1:
                        continue  # nothing that stays would cut this row before it counts again
                    guards[after] = max(int(guards[after]), until)
                kept[place] = False
        if kept.all():
            return self
        chosen = np.flatnonzero(kept)
        return HeldRules(
            self.table.take(pa.array(chosen)).combine_chunks(),
            self.digests[chosen],
            self.own[chosen],
            self.numbers[chosen],
            self.firsts[chosen],
            self.lasts[chosen],
            guards[chosen],
            self.next_number,
        )

    # --- bytes ------------------------------------------------------------------------------------

    def written(self) -> bytes:
        """The bytes of a state."""
        every = self.rows_at(np.arange(self.count))
        of_rows = Told(every, self.digests, self.own).batch
        own = (self.numbers, self.firsts, self.lasts, self.guards)
        columns = [*of_rows.columns, *map(pa.array, own)]
        batch = pa.RecordBatch.from_arrays(columns, [*of_rows.schema.names, *_KEPT])
        return _HEAD.pack(self.next_number) + bytes(batch.serialize())

    @classmethod
    def read(cls, parameters: Parameters, data: bytes) -> HeldRules:
        """The rows of bytes whose sum has been checked."""
        (next_number,) = _HEAD.unpack_from(data)
        message = pa.py_buffer(data[_HEAD.size :])
        batch = pa.ipc.read_record_batch(message, _schema(parameters, _KEPT))
        of_rows, firsts, lasts, guards = (np.asarray(batch.column(name)) for name in _KEPT)
        told = Told.of_batch(parameters, batch)
        every = told.table, told.digests, told.own
        return cls(*every, of_rows, firsts, lasts, guards, next_number)


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


def valid_of(parameters: Parameters) -> Validity:
    """The times of the rows of a stream."""
    assert parameters.valid is not None, "the rows of a stream have times"
    return parameters.valid


def _cut(
    keys: np.ndarray, held: int, begins: np.ndarray, firsts: np.ndarray, lasts: np.ndarray
) -> np.ndarray:
    """Cut rows where later versions begin, in `lasts`; those from `held` on are new.

    Returns bool[rows]: the new rows that have one key and one beginning with another that was there
    before.
    """
    refused = np.zeros(len(keys), np.bool_)
    versions: dict[int, list[int]] = defaultdict(list)
    for place, key in enumerate(keys.tolist()):
        others = versions[key]
        if place >= held:
            if any(begins[other] == begins[place] for other in others):
                refused[place] = True
                continue
            for other in others:
                one, later = sorted((other, place), key=begins.__getitem__)
                lasts[one] = min(lasts[one], _before(firsts[later]))
        others.append(place)
    return refused


def _groups(keys: np.ndarray) -> list[list[int]]:
    """The places of each key."""
    found: dict[int, list[int]] = defaultdict(list)
    for place, key in enumerate(keys.tolist()):
        found[key].append(place)
    return [*found.values()]


def _keys_of(parameters: Parameters, rows: Rows) -> np.ndarray:
    """int64: a number for the key of each row."""
    found: np.ndarray = np.asarray(coded_keys(rows.columns[parameters.attributes[0].name]).indices)
    return found


def _in_few_chunks(table: pa.Table) -> pa.Table:
    chunks = max((column.num_chunks for column in table.columns), default=0)
    return table.combine_chunks() if chunks > _MOST_CHUNKS else table


def _bools(column: pa.Array) -> np.ndarray:
    found: np.ndarray = column.to_numpy(zero_copy_only=False)
    return found


def _comparable(keys: pa.Array) -> pa.Array:
    return to_bytes(keys) if pa.types.is_nested(keys.type) else keys


def _before(times: np.ndarray | int) -> np.ndarray:
    """The last moments before times; of FOR_EVER, that itself."""
    times = np.asarray(times)
    found: np.ndarray = np.where((times == FOR_EVER) | (times == ALWAYS), times, times - 1)
    return found
