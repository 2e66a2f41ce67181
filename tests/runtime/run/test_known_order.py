"""What a sort has seen of all rows is not looked at again by the runs that read them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.arrow.events import sorting
from celc_runtime.arrow.events.event_order import EventOrder
from celc_runtime.plan.errors import EventError
from celc_runtime.rules import any_query
from celc_runtime.run import parts
from engines import interpreted, only_query

import celc

ROWS = 2_000


def told(query: CompiledQuery, table: pa.Table, threads: int) -> tuple[pa.Table, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = query.match_table(table, threads=threads)
    return found, [str(one.message) for one in caught]


@pytest.mark.parametrize("threads", [1, 2])
def test_further_order_columns_are_looked_at(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """A NULL there is refused, though the first order column decides the order."""
    monkeypatch.setattr(any_query, "MOST_ROWS_READ", 0)
    monkeypatch.setattr(sorting, "_FEW", 10)
    monkeypatch.setattr(sorting, "is_worth_it", lambda _rows: True)
    monkeypatch.setattr(parts, "LEAST_ROWS", 50)
    event = "{ k: STRING, ts: LONG, n: LONG }"
    text = (
        f"CREATE STREAM S {{ EVENT A {event}, EVENT B {event} }}\n"
        "SELECT * WHERE A AS a ; B AS b PARTITION BY k WITHIN 20 [ts]"
    )
    with interpreted():
        query = only_query(celc.compile(text, order_by=["ts", "n"]))
    table = pa.table(
        {
            "type": ["A", "B"] * (ROWS // 2),
            "k": ["x", "x", "y", "y"] * (ROWS // 4),
            "ts": np.arange(ROWS),
            "n": pa.array([*range(ROWS - 1), None], pa.int64()),
        }
    )
    assert len(query.match_table(table[: ROWS - 1], threads=threads)) > 10
    with pytest.raises(EventError, match=f"'n' is NULL in row {ROWS - 1:,} "):
        query.match_table(table, threads=threads)


def noting(calls: list[str], method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, which notes its calls."""

    def noted(*given: Any, **more: Any) -> Any:
        calls.append(method.__name__)
        return method(*given, **more)

    return noted


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("rows", ["plain", "of other types", "with NULL", "in pieces"])
def test_rows_are_looked_at_once(
    monkeypatch: pytest.MonkeyPatch, rows: str, *, keyed: bool
) -> None:
    monkeypatch.setattr(any_query, "MOST_ROWS_READ", 0)
    monkeypatch.setattr(sorting, "_FEW", 10)
    monkeypatch.setattr(sorting, "is_worth_it", lambda _rows: True)
    monkeypatch.setattr(parts, "LEAST_ROWS", 50)
    monkeypatch.setattr(parts, "_ROWS_OF_A_PART", 50)
    text = (
        "CREATE STREAM S { EVENT A { k: STRING, ts: LONG }, EVENT B { k: STRING, ts: LONG } }\n"
        "SELECT * WHERE A AS a ; B AS b" + " PARTITION BY k" * keyed + " WITHIN 20 [ts]"
    )
    with interpreted():
        query = only_query(celc.compile(text, order_by="ts"))
    rng = np.random.default_rng(3)
    keys = rng.choice([f"key {n}" for n in range(9)], ROWS).tolist()
    types = ["A", "B", "C"] if rows == "of other types" else ["A", "B"]
    table = pa.table(
        {
            "type": rng.choice(types, ROWS),
            "k": [None, *keys[1:]] if rows == "with NULL" else keys,
            "ts": np.cumsum(rng.integers(1, 4, ROWS)),
        }
    )
    if rows == "in pieces":
        table = pa.concat_tables([table[:700], table[700:]])
    with monkeypatch.context() as patch:
        patch.setattr(sorting, "rising", lambda *_: None)
        expected = told(query, table, threads=1)
    assert len(expected[0]) > 10
    looked: list[str] = []
    for name in ("part_starts", "_is_in_order"):
        monkeypatch.setattr(EventOrder, name, noting(looked, getattr(EventOrder, name)))
    for threads in (1, 2, 3):
        assert told(query, table, threads) == expected
    # Rows of other types are taken out of partitions. To count NULL, somebody has to look.
    assert bool(looked) == (keyed and rows in ("of other types", "with NULL"))
