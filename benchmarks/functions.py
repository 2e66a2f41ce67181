"""What a function of an event costs, beside the same value as a column of the table.

    python benchmarks/functions.py [--events N] [--record]

`match_table` as a whole, of a table in order: a condition on `HOUR(x.ts)`, on `UPPER(x.s)` with
texts plain and coded by a dictionary, on a DECIMAL times 2, and STARTSWITH as a condition. Each
stands beside the same query over a table in which the value was computed before. A figure is the
process's CPU time of the one by that of the other, the least of five in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rates import run_alone

import celc

_ROUNDS = 5


class Pair(NamedTuple):
    """A condition with a function, and the same on a column that was computed before."""

    name: str
    condition: str
    before: str  # the condition on the column `made`
    type: str  # of this column
    made: Callable[[pa.Table], pa.Array]
    coded: bool = False  # texts by a dictionary


PAIRS = (
    Pair(
        "HOUR(x.ts) = 3",
        "HOUR(x.ts) = 3",
        "x.made = 3",
        "INT",
        lambda table: pc.hour(table["ts"]).cast(pa.int32()),
    ),
    Pair(
        "UPPER(x.s) = 'A'",
        "UPPER(x.s) = 'A'",
        "x.made = 'A'",
        "STRING",
        lambda table: pc.utf8_upper(table["s"]),
    ),
    Pair(
        "UPPER(x.s) = 'A', coded",
        "UPPER(x.s) = 'A'",
        "x.made = 'A'",
        "STRING",
        lambda table: pc.utf8_upper(table["s"]),
        coded=True,
    ),
    Pair(
        "x.px * 2 > 10.0",
        "x.px * 2 > 10.0",
        "x.made > 10.0",
        "DECIMAL(21, 2)",
        lambda table: pc.add(table["px"], table["px"]).cast(pa.decimal128(21, 2)),
    ),
    Pair(
        "STARTSWITH(x.s, 'a')",
        "STARTSWITH(x.s, 'a')",
        "x.made",
        "BOOLEAN",
        lambda table: pc.starts_with(table["s"], "a"),
    ),
)


def table(events: int) -> pa.Table:
    """A year of events of five types; texts of which there are a thousand."""
    rng = np.random.default_rng(1)
    micros = np.sort(rng.integers(0, 365 * 86_400, events)) * 1_000_000 + np.arange(events)
    words = [f"{chr(97 + n % 26)}{n // 26 or ''}" for n in range(1000)]
    prices = pa.array(rng.integers(0, 2_000, events) / 100).cast(pa.decimal128(10, 2))
    return pa.table(
        {
            "type": pa.array([*"ABCDE"]).take(pa.array(rng.integers(0, 5, events))),
            "ts": pa.array(micros, pa.timestamp("us", "UTC")),
            "s": pa.array(words).take(pa.array(rng.integers(0, 1000, events))),
            "px": prices,
        }
    )


def both(pair: Pair, events: pa.Table) -> Iterator[tuple[Any, pa.Table]]:
    """The query with the function and that over the computed column, each with its table."""
    made = pair.made(events)
    if pair.coded:
        coded = events["s"].combine_chunks().dictionary_encode()
        events = events.set_column(events.schema.get_field_index("s"), "s", coded)
        made = made.combine_chunks().dictionary_encode()
    for condition, attribute in ((pair.condition, ""), (pair.before, f", made: {pair.type}")):
        types = ",\n".join(
            f"  EVENT {name} {{ ts: TIMESTAMP, s: STRING, px: DECIMAL(10, 2){attribute} }}"
            for name in "ABCDE"
        )
        query = celc.compile(
            f"CREATE STREAM S {{\n{types}\n}}\n"
            f"SELECT * FROM S WHERE (A AS x ; B AS y) FILTER {condition} AND y.s = 'z5'\n"
            "WITHIN 1 MINUTE\n",
            order_by="ts",
        )
        read = ["type", "ts", "s", "px"]
        yield query, events.select(read).append_column("made", made) if attribute else events


def compared(tasks: list[Callable[[], int]], seconds: Callable[[], float]) -> list[float]:
    """The least time of each of these tasks, which find as many rows."""
    assert len({task() for task in tasks}) == 1, "both have the same answer"
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(_ROUNDS):
        for task, found in zip(tasks, times, strict=True):
            begin = seconds()
            task()
            found.append(seconds() - begin)
    return [min(found) for found in times]


def measure(events: int) -> dict[str, Any]:
    """All figures of a run on one machine."""
    stream = table(events)
    figures: dict[str, Any] = {}
    for pair in PAIRS:
        tasks = [
            lambda query=query, rows=rows: query.match_table(rows).num_rows
            for query, rows in both(pair, stream)
        ]
        figures[pair.name] = shown(pair.name, *compared(tasks, time.process_time))
    return {"figures": figures}


def shown(name: str, own: float, other: float) -> dict[str, float]:
    print(f"{name:28} {own:6.3f} s, computed before {other:6.3f} s: {own / other:5.2f}", flush=True)
    return {"seconds": round(own, 3), "before": round(other, 3), "ratio": round(own / other, 2)}


if __name__ == "__main__":
    run_alone("functions", __doc__, 1_000_000, measure)
