"""Packing for several queries: the rows of a task become values of bytes for the buckets and units
of all groups, as in `stream.packing`."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from celc_runtime.arrow.events.paths import received
from celc_runtime.chain.streams.operators import Group, Served
from celc_runtime.chain.streams.unit_rows import UnitRows
from celc_runtime.stream.buckets import labels_of_group
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.packing import PACKED_SCHEMA, ROWS_AT_ONCE, Packer, Part, encoded

UNIT = struct.Struct("<H")  # before each block: the number of the unit whose events it has
INPUT = 0xFFFF  # or this: events as they are in the input, for late='side'


class GroupPacker:
    """Packs the rows of the tasks of an operator for a group."""

    def __init__(self, group: Group, options: StreamOptions, *, is_first: bool = True) -> None:
        """is_first: of the groups; rows of undeclared types are counted once."""
        self._group = group
        self._options = options
        self._is_first = is_first
        self._packers: dict[int, Packer] = {}
        self._rows: dict[int, UnitRows] = {}
        labels = labels_of_group(group.number, options.buckets)
        spread = None if group.has_one_key else group.keys
        for place, unit in enumerate(group.units):
            packer = Packer(unit.program.plan, unit.options(options), labels, spread)
            self._packers[place] = packer
            self._rows[place] = UnitRows(unit, packer.layout, options)
        if options.late == "side":
            self._packers[INPUT] = Packer(group.input, options, labels, spread)
        self._parts: dict[int, list[Part]] = {}

    def take(self, batch: pa.RecordBatch) -> None:
        """Take in the rows of a batch."""
        for place, of_unit in self._parts_of(batch):
            self._parts.setdefault(place, []).extend(of_unit)

    def _parts_of(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Iterable[Part]]]:
        options = self._options
        table = pa.Table.from_batches([batch])
        for place, packer in self._packers.items():
            if place == INPUT:
                yield place, [encoded(self._group.input, packer.layout, options, batch)]
                continue
            wanted = options.wanted[place] if options.wanted else ""
            rows = table.filter(table.column(wanted)) if wanted else table
            yield place, self._rows[place].of_input(rows)

    def packed(self) -> Iterator[pa.RecordBatch]:
        """The rows that were taken in, as values of bytes for buckets and units."""
        for place, of_unit in self._parts.items():
            if not of_unit:
                continue
            if place or not self._is_first:
                of_unit = [part._replace(undeclared=0) for part in of_unit]
            found = self._packers[place].packed(of_unit)
            events = [UNIT.pack(place) + events.as_py() for events in found.column("events")]
            arrays = [found.column("bucket"), pa.array(events, pa.binary())]
            yield pa.RecordBatch.from_arrays(arrays, schema=PACKED_SCHEMA)
        self._parts = {}


def packers_of(served: Served) -> list[GroupPacker]:
    """What packs rows for each group of an operator."""
    return [
        GroupPacker(group, options, is_first=not number)
        for number, (group, options) in enumerate(served)
    ]


def packed(
    packers: Sequence[GroupPacker], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of a task, as values of bytes for the buckets and units of all groups."""
    count = 0
    for batch in map(received, batches):
        if not len(batch):
            continue
        for packer in packers:
            packer.take(batch)
        count += len(batch)
        if count >= ROWS_AT_ONCE:
            for packer in packers:
                yield from packer.packed()
            count = 0
    for packer in packers:
        yield from packer.packed()
