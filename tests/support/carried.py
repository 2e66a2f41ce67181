"""Events with values of every type that is carried to the answer, with NULL and empty ones."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
from celc_runtime import CompiledQuery
from celc_runtime.plan.schemas import arrow_type
from engines import interpreted, only_query

import celc

CARRIED = {
    "price": "DECIMAL(10, 2)",
    "tags": "ARRAY<STRING>",
    "scores": "MAP<STRING, DOUBLE>",
    "place": "STRUCT<x: INT, path: ARRAY<ARRAY<SHORT>>, at: TIMESTAMP_NTZ>",
    "raw": "BINARY",
    "small": "SHORT",
    "tiny": "BYTE",
    "local": "TIMESTAMP_NTZ",
}
_ATTRIBUTES = ", ".join(f"{name}: {type}" for name, type in CARRIED.items())
_EVENT = f"{{ k: LONG, n: INT, ts: TIMESTAMP, {_ATTRIBUTES} }}"
DECLARED = f"CREATE STREAM S {{ EVENT A {_EVENT}, EVENT B {_EVENT} }}\n"
CLAUSES = "PARTITION BY k WITHIN 1 MINUTE [ts]"
LABELS = f"QUERY labels: SELECT * FROM S WHERE A AS x ; B AS y {CLAUSES}"
VALUES = (
    f"QUERY computed: SELECT {', '.join(f'FIRST(x.{one}) AS first_{one}' for one in CARRIED)}, "
    f"{', '.join(f'COLLECT(x.{one}) AS all_{one}' for one in CARRIED)}, "
    f"{', '.join(f'y.{one} AS {one}' for one in CARRIED)} "
    f"FROM S WHERE A+ AS x ; B AS y {CLAUSES}"
)
MISSING = (
    "QUERY missing: SELECT x[n], y[n] FROM S WHERE (A AS x ; B AS y) FILTER "
    + " AND ".join(f"(x.{one} IS NULL OR y.{one} IS NOT NULL OR x.n > y.n)" for one in CARRIED)
    + f" {CLAUSES}"
)

_NOON = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
_LOCAL = dt.datetime(2026, 3, 29, 2, 30)  # an hour that Berlin does not have
_VALUES: list[dict[str, Any]] = [
    {
        "price": Decimal("12345678.90"),
        "tags": ["a", None, "ß"],
        "scores": [("one", 1.5), ("none", None)],
        "place": {"x": 1, "path": [[1, 2], [], None], "at": _LOCAL},
        "raw": b"\x00\xff",
        "small": -(2**15),
        "tiny": 127,
        "local": _LOCAL,
    },
    dict.fromkeys(CARRIED),
    {
        "price": Decimal("-0.01"),
        "tags": [],
        "scores": [],
        "place": {"x": None, "path": [], "at": None},
        "raw": b"",
        "small": 0,
        "tiny": -128,
        "local": dt.datetime(1, 1, 1),
    },
]


def table_of_carried(rows: int = 40) -> pa.Table:
    """Events, some a second apart, of which each value is NULL now and then."""
    types = {"type": pa.string(), "k": pa.int64(), "n": pa.int32()}
    types |= {"ts": pa.timestamp("us", "UTC")}
    types |= {name: arrow_type(type) for name, type in CARRIED.items()}
    events = []
    for n in range(rows):
        event = {"type": "AB"[n % 3 == 2], "k": n % 2, "n": n}
        event["ts"] = _NOON + dt.timedelta(seconds=9 * n)
        for number, name in enumerate(CARRIED):
            event[name] = _VALUES[(n + n // 3 * number) % len(_VALUES)][name]
        events.append(event)
    return pa.Table.from_pylist(events, pa.schema(list(types.items())))


def carried_query(text: str, **options: Any) -> CompiledQuery:
    """A query over these events."""
    with interpreted():
        return only_query(celc.compile(DECLARED + text, order_by="ts", **options))


def rows_of(table: pa.Table) -> list[str]:
    """The rows of an answer in an order that does not depend on the route."""
    return sorted(map(repr, table.to_pylist()))
