"""The rows of a streaming table of parameters from one micro-batch to the next: what a bucket
stores of them, and what a worker keeps at hand.

A state has a *base*, all rows at a time, and a *log* of the rows that came since. So a micro-batch
in which few of many rows change writes what came. A worker keeps the rows of the last states by a
sum of their history (`chain`). All buckets that are told of the same rows find them there, and a
bucket that another worker has run meanwhile needs only what is new in its log. Rows are forgotten
only in a micro-batch in which others come, because then all of these buckets do the same.

Events meet rows by an index, and an index costs as much as its rows. So rows are in *parts* of
growing size, each with an index of its own that is made once, as in a log-structured merge tree
(O'Neil et al., 1996). A row that is cut or forgotten stays in the index of its part, which then
finds it for too many events.

Rejected: all rows as one value of the state, and one index, made anew in each micro-batch in which
a row comes; an index that can be changed, whose groups are sorted arrays for what they cost to
search.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from celc_runtime.plan.errors import StateError
from celc_runtime.plan.parameters import Parameters
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.program import Rows
from celc_runtime.stream.held_rules import ALWAYS, Arrived, HeldRules, Told, valid_of
from celc_runtime.stream.stored.compression import compressed, decompressed

_ENTRY = struct.Struct("<q")  # the watermark, ALWAYS: there was none; then the rows, compressed

_LEAST_LOG = 1 << 16  # bytes, up to which a log grows whatever the base is
_MOST_ENTRIES = 256  # of a log: a worker that has no rows at hand reads them one by one
_MOST_SEGMENTS = 16  # of a log; more are merged

_MOST_ROWS = 1 << 20  # rows of all versions that a worker keeps
_LEAST_VERSIONS = 4  # which it keeps in any case

Segment: TypeAlias = tuple[int, int, int]
"""A piece of the state: its place, the sum of its bytes, and how many they are."""


class RulesNote(NamedTuple):
    """What the header of a state says of the rows."""

    base: Segment | None = None
    log: tuple[Segment, ...] = ()
    entries: int = 0  # in the log
    chain: int = 0  # a sum of base and log

    @property
    def size(self) -> int:
        """The bytes of the segments."""
        return sum(size for _, _, size in (*self.log, *([] if self.base is None else [self.base])))

    @classmethod
    def of(cls, found: Sequence[Any]) -> RulesNote:
        """The note of what JSON has of it."""
        base, log, entries, chain = found
        segments = tuple((place, known, size) for place, known, size in log)
        return cls(None if base is None else tuple(base), segments, entries, chain)


class Part(NamedTuple):
    """Rows with an index of their own."""

    numbers: np.ndarray  # int64, ascending
    rows: Rows


@dataclass(frozen=True, eq=False)
class Version:
    """The rows that a bucket holds at a time, and those among them that it pairs, in parts."""

    held: HeldRules
    parts: tuple[Part, ...]
    last: str  # the column of the last time of a row

    @cached_property
    def paired(self) -> tuple[tuple[Part, np.ndarray], ...]:
        """Each part with its rows as they are now, and bool[rows], which of them are still held.

        They keep the index that has been made of the part.
        """
        return tuple(map(self._now, self.parts))

    def _now(self, part: Part) -> tuple[Part, np.ndarray]:
        places, is_held = self.held.find(part.numbers)
        times = np.full(len(places), ALWAYS)
        times[is_held] = self.held.lasts[places[is_held]]
        column = pa.array(times).cast(part.rows.columns[self.last].type)
        return Part(part.numbers, part.rows.with_column(self.last, column)), is_held


def with_parts(parts: Sequence[Part], held: HeldRules, parameters: Parameters) -> Version:
    """The version of rows of which parts have been made before."""
    valid = valid_of(parameters)
    own = np.flatnonzero(held.own)
    numbers, found = held.numbers[own], [*parts]
    known = int(found[-1].numbers[-1]) if found else -1
    if sum(len(part.numbers) for part in found) > 2 * len(numbers) + _MOST_SEGMENTS:
        found, known = [], -1  # most of them have been forgotten
    begin = int(np.searchsorted(numbers, known, side="right"))
    if begin == len(numbers):
        return Version(held, tuple(found), valid.last)
    while found and len(found[-1].numbers) <= 2 * (len(numbers) - begin):
        begin = int(np.searchsorted(numbers, found.pop().numbers[0]))
    places, type = own[begin:], arrow_type(valid.type)
    rows = held.rows_at(places)
    times = {valid.first: held.firsts, valid.last: held.lasts}
    columns = {name: pa.array(of_all[places]).cast(type) for name, of_all in times.items()}
    part = Part(numbers[begin:], Rows(rows.count, {**rows.columns, **columns}))
    return Version(held, (*found, part), valid.last)


# --- what a worker keeps --------------------------------------------------------------------------

_cache: dict[tuple[int, int], tuple[Version, Arrived | None]] = {}
"""Versions by the query and the chain, the last one behind."""


def _remember(key: tuple[int, int], version: Version, arrived: Arrived | None = None) -> Version:
    _cache[key] = version, arrived
    rows = sum(one.held.count for one, _ in _cache.values())
    while len(_cache) > _LEAST_VERSIONS and rows > _MOST_ROWS:
        rows -= _cache.pop(next(iter(_cache)))[0].held.count
    return version


def _known(key: tuple[int, int]) -> tuple[Version, Arrived | None] | None:
    found = _cache.pop(key, None)
    if found is not None:
        _cache[key] = found
    return found


def sum_of(data: bytes) -> int:
    """A number that tells bytes from others."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


# --- what a bucket stores -------------------------------------------------------------------------


class RulesStore:
    """The rows of a query in the states of its buckets. stays: as of `HeldRules.without_forgotten`;
    query: what tells it from others."""

    def __init__(self, query: str, parameters: Parameters, stays: int | None) -> None:
        self._query = hash(query)
        self._parameters = parameters
        self._stays = stays

    def opened(self, note: RulesNote, data: Callable[[Segment], bytes]) -> Version:
        """The rows of a state; data: the bytes of a segment."""
        found = _known((self._query, note.chain))
        if found is not None:
            return found[0]
        if note == RulesNote():
            return with_parts((), HeldRules.none(self._parameters), self._parameters)
        entries = [*_entries(b"".join(map(data, note.log)))]
        chains = [0 if note.base is None else note.base[1]]
        for entry in entries:
            chains.append(_chained(chains[-1], entry))
        if chains[-1] != note.chain:
            raise StateError("the checkpoint is damaged: the log of the rules has another sum")
        known = (n for n, one in reversed([*enumerate(chains)]) if (self._query, one) in _cache)
        begin = next(known, -1)
        if begin >= 0:
            version = _cache[self._query, chains[begin]][0]
            held, parts = version.held, version.parts
        else:
            begin, parts = 0, ()
            held = HeldRules.none(self._parameters)
            if note.base is not None:
                held = HeldRules.read(self._parameters, decompressed(data(note.base))[0])
        for entry in entries[begin:]:
            watermark, arrived = self._read(entry)
            held, _ = held.with_arrived(self._parameters, arrived, watermark)
            held = self._forgetting(held, watermark)
        version = with_parts(parts, held, self._parameters)
        return _remember((self._query, note.chain), version)

    def taken(
        self, note: RulesNote, version: Version, arrived: Told, watermark: int | None
    ) -> tuple[Version, Arrived, bytes]:
        """The rows with those that arrived, what became of these, and the entry of the log."""
        arrived = arrived.in_one_order()
        entry = self._entry(arrived, watermark)
        key = self._query, sum_of(b"taken" + note.chain.to_bytes(8, "little") + entry)
        known = _known(key)
        if known is not None and known[1] is not None:
            return known[0], known[1], entry
        held, found = version.held.with_arrived(self._parameters, arrived, watermark)
        version = with_parts(version.parts, held, self._parameters)
        return _remember(key, version, found), found, entry

    def left(
        self,
        note: RulesNote,
        before: Version,
        version: Version,
        entry: bytes,
        watermark: int | None,
        segments: Segments,
    ) -> RulesNote:
        """What is stored behind a micro-batch in which rows arrived. before: the rows of the state
        before it; version: `taken`; entry: of the log."""
        held = self._forgetting(version.held, watermark)
        is_same = held.count == before.held.count and held.next_number == before.held.next_number
        if is_same and np.array_equal(held.lasts, before.held.lasts):
            return note
        chain = _chained(note.chain, entry)
        known = _known((self._query, chain))
        if known is None:
            after = with_parts(version.parts, held, self._parameters)
        else:
            after = known[0]
        of_log = sum(size for _, _, size in note.log) + len(entry)
        of_base = 0 if note.base is None else note.base[2]
        if of_log > max(_LEAST_LOG, of_base // 2) or note.entries >= _MOST_ENTRIES:
            for segment in (*note.log, *([] if note.base is None else [note.base])):
                segments.remove(segment[0])
            base = segments.store(compressed(after.held.written()))
            note = RulesNote(base, (), 0, base[1])
        else:
            log = _appended(note.log, entry, segments)
            note = RulesNote(note.base, log, note.entries + 1, chain)
        _remember((self._query, note.chain), after)
        return note

    def counted(self, held: HeldRules, watermark: int | None) -> int:
        """How many rows are held of which something can come."""
        if watermark is None or self._stays is None:
            return held.count
        return int(np.count_nonzero(held.lasts > watermark - self._stays))

    def _forgetting(self, held: HeldRules, watermark: int | None) -> HeldRules:
        return held.without_forgotten(self._parameters, watermark, self._stays)

    @staticmethod
    def _entry(arrived: Told, watermark: int | None) -> bytes:
        head = _ENTRY.pack(ALWAYS if watermark is None else watermark)
        return head + compressed(bytes(arrived.batch.serialize()))

    def _read(self, entry: bytes) -> tuple[int | None, Told]:
        (watermark,) = _ENTRY.unpack_from(entry)
        told = Told.read(self._parameters, decompressed(entry, _ENTRY.size)[0])
        return None if watermark == ALWAYS else watermark, told


class Segments(Protocol):
    """The pieces of a state within a micro-batch, as this module asks for them."""

    def store(self, data: bytes) -> Segment:
        """A new piece."""

    def remove(self, place: int) -> None:
        """Remove a piece."""

    def data(self, segment: Segment) -> bytes:
        """The bytes of a piece."""


def _appended(log: Sequence[Segment], entry: bytes, segments: Segments) -> tuple[Segment, ...]:
    """The segments of a log with one more entry. If they are too many, the last ones become one, so
    that a byte is seldom written again."""
    found = [*log, segments.store(entry)]
    if len(found) > _MOST_SEGMENTS:
        merged, size = [found.pop()], 0
        while found and found[-1][2] <= 2 * size + merged[0][2]:
            size += found[-1][2]
            merged.insert(0, found.pop())
        data = b"".join(map(segments.data, merged))
        for place, _, _ in merged:
            segments.remove(place)
        found.append(segments.store(data))
    return tuple(found)


def _chained(chain: int, entry: bytes) -> int:
    return sum_of(chain.to_bytes(8, "little") + entry)


def _entries(data: bytes) -> Iterator[bytes]:
    """The entries of a log."""
    begin = 0
    while begin < len(data):
        if len(data) < begin + _ENTRY.size:
            raise StateError("the checkpoint is damaged: the log of the rules is cut off")
        _, end = decompressed(data, begin + _ENTRY.size)
        yield data[begin:end]
        begin = end
