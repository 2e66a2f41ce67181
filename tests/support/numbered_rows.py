"""The rows that Spark would hand to a task, with numbers and marks, made by hand."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pyarrow as pa
import pytest
from celc_runtime.plan.plan import Plan
from celc_runtime.run.ranges import TimeRange
from celc_runtime.spark import choose, facts
from celc_runtime.spark.worker.task_columns import COUNTED, MATTERS, TaskColumns

COLUMNS = TaskColumns("", "number", "mark")


def tasks_sort_at_most(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks sort no more rows than these; 0: Spark sorts all. Fewer are never so few that one task
    reads all keys: no plan does that and has Spark sort."""
    monkeypatch.setattr(choose, "MOST_ROWS", rows)
    monkeypatch.setattr(facts, "_FEW_ROWS", min(rows, facts._FEW_ROWS))


def numbered_rows(plan: Plan, table: pa.Table, part: TimeRange | None = None) -> pa.Table:
    """The rows of one task that it gets of a table with a column `row`, for queries of which types
    alone decide what can matter. `part`: the range whose rows these are.

    Rows of undeclared types come behind the others of their partition, to the range whose own they
    are.
    """
    keys = [(name, "ascending") for name in plan.source.key_columns]
    table = table.sort_by([*keys, ("row", "ascending")])
    columns = [table.column(name).to_pylist() for name in plan.source.key_columns]
    partitions = [repr(key) for key in zip(*columns, strict=True)] or [""] * len(table)
    streams = table["stream"].to_pylist() if plan.source.stream_column else [None] * len(table)
    types = table["type"].to_pylist() if "type" in table.column_names else [None] * len(table)
    times = table[plan.source.order_by[0]].to_pylist()
    seen: dict[str, int] = {}
    rows: list[tuple[str, bool, int, int, int]] = []
    for row, partition in enumerate(partitions):
        is_declared, can_matter = what_is_known(plan, streams[row], types[row])
        if not is_declared:
            if part is None or _is_own(part, times[row]):
                rows.append((partition, True, row, 0, MATTERS))
            continue
        seen[partition] = seen.get(partition, 0) + 1
        if can_matter:
            rows.append((partition, False, row, seen[partition], MATTERS))
        elif part is not None and seen[partition] >= part.rows:
            rows.append((partition, False, row, seen[partition], COUNTED))
    order = {partition: place for place, partition in enumerate(dict.fromkeys(partitions))}
    rows.sort(key=lambda found: (order[found[0]], *found[1:3]))
    handed = table.take(pa.array([found[2] for found in rows], pa.int64()))
    handed = handed.append_column("number", pa.array([found[3] for found in rows], pa.int64()))
    return handed.append_column("mark", pa.array([found[4] for found in rows], pa.int8()))


def what_is_known(plan: Plan, stream: str | None, type: str | None) -> tuple[bool, bool]:
    """Whether a row is of a declared type, and whether it can matter by its type alone; None: it
    has none, so that it may be of any."""
    source = plan.source
    pairs = {
        (of, name)
        for of, name in source.declared_types
        if type in (None, name) and stream in (None, of)
    }
    return bool(pairs), any((one.stream, one.type) in pairs for one in source.events_read or ())


def cut(table: pa.Table, rng: random.Random, most: int = 4) -> list[pa.RecordBatch]:
    """A table in batches of up to so many rows."""
    batches, start = [], 0
    while start < len(table):
        length = rng.randint(1, most)
        batches += table.slice(start, length).combine_chunks().to_batches()
        start += length
    return batches


def texts_of(batches: Iterable[pa.RecordBatch]) -> list[str]:
    """The rows of batches as texts, in an order that does not depend on theirs."""
    return sorted(repr(row) for batch in batches for row in batch.to_pylist())


def _is_own(part: TimeRange, time: int) -> bool:
    starts = part.start is None or time >= part.start
    return starts and (part.later is None or time < part.later)
