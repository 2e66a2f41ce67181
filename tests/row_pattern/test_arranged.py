"""The rows of a table in the order of a query of MATCH_RECOGNIZE, as tables of any size are put."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.arrow.events import digits, partition_keys
from celc_runtime.row_pattern import arranged
from celc_runtime.run.threads import workers_of
from engines import interpreted
from row_cases import compiled

_ROWS = 700
_KEYS = {
    "one partition": "",
    "whole numbers": "PARTITION BY k",
    "numbers that are far apart": "PARTITION BY far",
    "texts with NULL": "PARTITION BY t",
    "two keys": "PARTITION BY t, k",
}
_ORDERS = {"in order": "id", "out of order": "v, id", "backwards": "id DESC"}


def _table() -> pa.Table:
    rng = np.random.default_rng(7)
    keys = rng.integers(-3, 4, _ROWS)
    texts = rng.choice(np.array(["b", "a", None, "c"], object), _ROWS)
    return pa.table(
        {
            "k": pa.array(keys, pa.int32()),
            "far": keys * 10**6,
            "t": pa.array(texts, pa.string()),
            "id": np.arange(_ROWS),
            "v": rng.integers(0, 9, _ROWS),
            "s": pa.array(rng.choice(np.array(["x", None], object), _ROWS), pa.string()),
        }
    )


def _wanted(rows: list[dict[str, Any]], keys: list[str], orders: list[str]) -> list[list[Any]]:
    """The rows of each partition by their definition: partitions as their keys come, column by
    column, and rows in order."""
    first = {name: [*dict.fromkeys(row[name] for row in rows)] for name in keys}
    parts: dict[tuple[int, ...], list[Any]] = {}
    for row in rows:
        parts.setdefault(tuple(first[name].index(row[name]) for name in keys), []).append(row)
    for part in parts.values():
        for order in reversed(orders):
            name, *descending = order.split()
            part.sort(key=lambda row: row[name], reverse=bool(descending))
    return [parts[key] for key in sorted(parts)]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("order", _ORDERS)
@pytest.mark.parametrize("key", _KEYS)
def test_rows_of_large_tables_are_in_order(
    key: str, order: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (arranged, partition_keys):
        monkeypatch.setattr(module, "is_worth_it", lambda rows: rows > 0)
    monkeypatch.setattr(digits, "_ROWS_OF_A_SLICE", 50)
    monkeypatch.setattr(digits, "_ROWS_OF_A_DIGIT", 1)
    with interpreted():
        query = compiled(
            "CREATE TABLE q (k INT, far BIGINT, t STRING, id BIGINT, v BIGINT, s STRING);\n"
            f"SELECT * FROM q MATCH_RECOGNIZE ({_KEYS[key]} ORDER BY {_ORDERS[order]}\n"
            "  ALL ROWS PER MATCH PATTERN (A) DEFINE A AS TRUE)"
        )
    plan, table = query.q.plan, _table()
    found = arranged.arranged(plan, table, workers_of(threads))
    names = [plan.columns[number].name for number in found.columns]
    keys = _KEYS[key].removeprefix("PARTITION BY").replace(",", " ").split()
    wanted = _wanted(table.to_pylist(), keys, _ORDERS[order].split(", "))
    ends = np.cumsum([0, *map(len, wanted)])
    assert found.offsets.tolist() == ends.tolist()
    assert len(wanted) > 1 or not keys
    for first, end in ((0, _ROWS), (13, 400)):
        rows = pa.table([*found.rows(first, end).values()], names=names).to_pylist()
        assert rows == [row for part in wanted for row in part][first:end]
