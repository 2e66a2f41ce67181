"""Streams of several queries without Spark, with a restart after every micro-batch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from celc_runtime.arrow.tables.derived import with_derived
from celc_runtime.chain.all_on_spark import read_plan
from celc_runtime.chain.streams.operators import Group
from celc_runtime.chain.streams.packers import packed, packers_of
from celc_runtime.chain.streams.tasks import OperatorTask, finished, unpacked
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.processor import HEADER
from celc_runtime.stream.stored.texts import text_of
from engines import batches_of
from streams_by_hand import (
    AFTER_ALL,
    STATES,
    micro_batches,
    microseconds,
    noted_timers,
    perhaps_in_sections,
)


class ModuleOperator:
    """The operator of a stream of several queries: what it is given, and what it answers.

    Its task is made anew for every micro-batch. more: further groups that it serves.
    """

    def __init__(
        self,
        group: Group,
        options: StreamOptions,
        rng: random.Random,
        more: Sequence[tuple[Group, StreamOptions]] = (),
    ) -> None:
        self.group = group
        self.options = options
        self.more = [*more]
        self.headers: dict[int, bytes] = {}
        self.segments: dict[int, dict[int, bytes]] = {}
        self.timers: dict[int, set[int]] = {}
        self.watermark = 0
        self.counts = dict.fromkeys(("events", "matches", "late", "ahead"), 0)
        self.kept: dict[int, dict[str, int]] = {}
        self._rng = rng

    @property
    def served(self) -> list[tuple[Group, StreamOptions]]:
        return [(self.group, self.options), *self.more]

    def advance(self, events: pa.Table | None, watermark: int) -> list[dict[str, Any]]:
        """One micro-batch; as `streams_by_hand.Operator.advance`."""
        self.watermark = max(self.watermark, watermark)
        blocks: dict[int, list[bytes]] = {}
        if events is not None:
            for batch in packed(packers_of(self.served), batches_of(events, self._rng)):
                for row in batch.to_pylist():
                    blocks.setdefault(row["bucket"], []).append(row["events"])
        self._task = OperatorTask(self.served)
        told = [row for label, of_label in blocks.items() for row in self._step(label, of_label)]
        border = self.watermark + self._rng.randint(0, 1)
        due = [(label, t) for label, timers in self.timers.items() for t in timers if t < border]
        for label, timer in due:
            told += self._step(label, [], expired=timer)
        return self._unpacked(told)

    def sum(self, name: str) -> int:
        """A count of all buckets, as of the last step of each."""
        return sum(row[name] for row in self.kept.values())

    @property
    def stored(self) -> int:
        """The bytes of all states."""
        pieces = (len(d) for of_label in self.segments.values() for d in of_label.values())
        return sum(map(len, self.headers.values())) + sum(pieces)

    def finish(self) -> list[dict[str, Any]]:
        """What is left when no more events come."""
        if self._rng.random() < 0.5:
            states = [
                {
                    "bucket": label,
                    "state": [
                        {"place": place, "data": text_of(data)}
                        for place, data in {HEADER: header, **self.segments[label]}.items()
                    ],
                }
                for label, header in self.headers.items()
            ]
            batch = pa.RecordBatch.from_pylist(states, schema=STATES)
            found = finished(self.served, [batch])
            return [row for rows in found for row in rows.to_pylist()]
        self.watermark = AFTER_ALL
        self._task = OperatorTask(self.served)
        return self._unpacked([row for label in [*self.headers] for row in self._step(label, [])])

    def _step(
        self, label: int, blocks: Sequence[bytes], *, expired: int | None = None
    ) -> list[dict[str, Any]]:
        stored = self.segments.setdefault(label, {})
        step, rows = self._task.step(
            label, self.headers.get(label), stored.get, blocks, self.watermark
        )
        self.timers = noted_timers(self.timers, label, step, expired, self.watermark)
        if step.is_changed:
            self.headers[label] = step.header
        for place in step.removed:
            if place == HEADER:
                del self.headers[label]
                continue
            del stored[place]
        for place, data in step.written.items():
            assert place not in stored, "a segment is never changed"
            stored[place] = data
        for name in self.counts:
            self.counts[name] += sum(row[name] for row in rows)
        self.kept[label] = rows[0]
        return rows

    def _unpacked(self, told: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        if not told:
            return []
        columns = {"query": pa.int32(), "found": pa.binary(), "refused": pa.binary()}
        batch = pa.RecordBatch.from_pydict(
            {name: pa.array([row[name] for row in told], type) for name, type in columns.items()}
        )
        found = unpacked(self.served, [batch])
        return [row for rows in found for row in rows.to_pylist()]


def module_streamed(
    group: Group,
    table: pa.Table,
    rng: random.Random,
    *,
    time: str = "ts",
    options: StreamOptions | None = None,
    largest: int = 3,
    more: Sequence[tuple[Group, StreamOptions]] = (),
) -> list[dict[str, Any]]:
    """The rows that come out of a table in micro-batches of up to `largest` rows, in an order that
    the watermark's delay allows, which is drawn too."""
    # As Spark makes them, before Python.
    programs = {n: p for one in (group, *(g for g, _ in more)) for n, p in one.programs.items()}
    plain = {n: one for n, one in programs.items() if not one.plan.source.reads}
    table = with_derived(read_plan(plain, programs), table)
    with perhaps_in_sections(rng):
        run = ModuleOperator(group, options or StreamOptions({}), rng, more)
        times = [microseconds(one) for one in table.column(time).to_pylist()]
        rows: list[dict[str, Any]] = []
        for chosen, watermark in micro_batches(times, rng.choice((1, 2, 5, 1000)), rng, largest):
            rows += run.advance(table.take(chosen) if chosen else None, watermark)
        rows += run.finish()
        assert not run.counts["late"], "no event was late"
        return rows
