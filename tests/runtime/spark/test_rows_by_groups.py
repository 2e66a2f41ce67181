"""Batches of Spark are put together for the queries of a group, and never across groups."""

from __future__ import annotations

import pyarrow as pa
import pytest
from celc_runtime.arrow.events import gathering
from celc_runtime.chain import all_on_spark as on_spark


def _read(groups: list[list[int]], number: str) -> list[tuple[int, list[int]]]:
    seen, batches = 0, []
    for places in groups:
        values = pa.array(range(seen, seen + len(places)), pa.int64())
        seen += len(places)
        columns = {"value": values} | ({number: pa.array(places, pa.int32())} if number else {})
        batches.append(pa.RecordBatch.from_pydict(columns))
    found = on_spark._by_parts(batches, number)
    return [(place, rows.column("value").to_pylist()) for place, rows in found]


def test_rows_of_one_group_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "ROWS_AT_ONCE", 4)
    groups = [[0, 0], [0, 1], [1, 1], [], [1, 1, 1], [1], [3]]
    assert _read(groups, "group") == [(0, [0, 1, 2]), (1, [3, 4, 5, 6, 7, 8]), (1, [9]), (3, [10])]


def test_without_groups_all_rows_are_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "ROWS_AT_ONCE", 2)
    assert _read([[0], [0], [0], []], "") == [(0, [0, 1]), (0, [2])]
    assert _read([], "") == _read([[]], "") == []
