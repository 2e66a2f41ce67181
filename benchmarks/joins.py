"""`match(df, plan="joins")` beside the kernel: twelve shapes of query, and twelve others.

    python benchmarks/joins.py [--events N] [--record]

The rule of `plan="auto"` is made from the first twelve, and tried on the others. Events of three
types come one at a time. Windows are in events' time: wide ones have a tenth of all events, narrow
ones fifty events. Both ways must find the same matches.
Times are CPU time of all processes in the second run, with the structs of labels built and
without positions.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from common import calibrate
from processes import tree_seconds
from rates import run_alone
from spark_jobs import answer, run, session, write

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RUNS = 1
_ATTRIBUTES = "id: INT, few: INT, v: DOUBLE, u: DOUBLE, ts: LONG"
_HEAD = f"CREATE STREAM S {{ {', '.join(f'EVENT {t} {{ {_ATTRIBUTES} }}' for t in 'ABC')} }}\n"

_BAND = "ABS(x.v - y.v) < 1e-4"
MADE_FROM = {
    "band, wide": f"(A AS x ; B AS y) FILTER {_BAND} WITHIN wide [ts]",
    "band, narrow": f"(A AS x ; B AS y) FILTER {_BAND} WITHIN 50 [ts]",
    "band and key, wide": f"(A AS x ; B AS y) FILTER {_BAND} AND x.few = y.few WITHIN wide [ts]",
    "two bands, wide": f"(A AS x ; B AS y ; C AS z) FILTER {_BAND} AND ABS(y.v - z.v) < 1e-4 "
    "WITHIN wide [ts]",
    "band, then any, narrow": f"(A AS x ; B AS y ; C AS z) FILTER {_BAND} WITHIN 50 [ts]",
    "band with ALL, wide": f"(A AS x ALL B AS y) FILTER {_BAND} WITHIN wide [ts]",
    "key of many, wide": "(A AS x ; B AS y) FILTER x.id = y.id WITHIN wide [ts]",
    "key of many, narrow": "(A AS x ; B AS y) FILTER x.id = y.id WITHIN 50 [ts]",
    "keys in a chain, wide": "(A AS x ; B AS y ; C AS z) FILTER x.id = y.id AND y.id = z.id "
    "WITHIN wide [ts]",
    "greater, narrow": "(A AS x ; B AS y) FILTER x.v > y.v WITHIN 50 [ts]",
    "rare events, wide": "(A AS x ; B AS y) FILTER x.v > 0.999 AND y.v > 0.999 WITHIN wide [ts]",
    "absence with keys, wide": "(A AS x ; !(C AS z FILTER z.id = x.id) ; B AS y) "
    "FILTER x.id = y.id WITHIN wide [ts]",
}
TRIED_ON = {
    "wider band, wide": "(A AS x ; B AS y) FILTER ABS(x.v - y.v) < 1e-3 WITHIN wide [ts]",
    "band of sums, wide": "(A AS x ; B AS y) FILTER ABS(x.v + x.u - y.v) < 1e-4 WITHIN wide [ts]",
    "band of two events later, wide": "(A AS x ; B AS y ; C AS z) FILTER x.id = y.id "
    "AND ABS(x.v - z.v) < 1e-4 WITHIN wide [ts]",
    "band, one type twice, wide": f"(A AS x ; A AS y) FILTER {_BAND} WITHIN wide [ts]",
    "band without C between, wide": f"(A AS x ; !(C AS z FILTER ABS(z.v - x.v) < 1e-5) ; B AS y) "
    f"FILTER {_BAND} WITHIN wide [ts]",
    "band of parts, wide": f"(A AS x ; B AS y) FILTER {_BAND} PARTITION BY few WITHIN wide [ts]",
    "band or key, narrow": f"(A AS x ; B AS y) FILTER {_BAND} OR x.id = y.id WITHIN 50 [ts]",
    "key of few, narrow": "(A AS x ; B AS y) FILTER x.few = y.few WITHIN 50 [ts]",
    "parts, wide": "(A AS x ; B AS y) PARTITION BY id WITHIN wide [ts]",
    "sequence, narrow": "(A ; B ; C) WITHIN 20 [ts]",
    "ALL with key, wide": "(A AS x ALL B AS y) FILTER x.id = y.id WITHIN wide [ts]",
    "a chain of four with keys, wide": "(A AS x ; B AS y ; C AS z ; A AS w) FILTER x.id = y.id "
    "AND y.id = z.id AND z.id = w.id WITHIN wide [ts]",
}


def events(rows: int) -> pa.Table:
    """The events, in the order of time."""
    rng = np.random.default_rng(27)
    return pa.table(
        {
            "type": pa.array(np.array([*"ABC"])[rng.integers(0, 3, rows)]),
            "id": pa.array(rng.integers(0, max(1, rows // 200), rows), pa.int32()),
            "few": pa.array(rng.integers(0, 20, rows), pa.int32()),
            "v": pa.array(rng.random(rows)),
            "u": pa.array(rng.random(rows)),
            "ts": pa.array(np.arange(rows)),
        }
    )


def seconds(frame: DataFrame) -> float:
    """CPU seconds of a job, the least of some runs."""
    found = []
    for _ in range(_RUNS):
        before = tree_seconds()
        run(frame)
        found.append(tree_seconds() - before)
    return min(found)


def measure(rows: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(1_000_000)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as folder, session() as spark:
        frame = spark.read.parquet(str(write(Path(folder) / "events", events(rows))))
        # The first jobs of a session cost more than later ones.
        _figures_of("warm-up", f"{_HEAD}SELECT * FROM S WHERE {MADE_FROM['band, narrow']}", frame)
        for shapes in (MADE_FROM, TRIED_ON):
            for name, body in shapes.items():
                text = f"{_HEAD}SELECT * FROM S WHERE {body.replace('wide', str(rows // 10))}"
                figures |= _figures_of(name, text, frame)
    return {"calibration": calibrated(), "figures": figures}


def _figures_of(name: str, text: str, frame: DataFrame) -> dict[str, Any]:
    query = celc.compile(text, order_by="ts").with_options(positions=False)
    ways = {how: partial(query.match, frame, plan=how) for how in ("kernel", "joins")}
    answers = {how: answer(make()) for how, make in ways.items()}
    if len({*answers.values()}) > 1:
        raise RuntimeError(f"{name}: joins find other matches (rows, checksum): {answers}")
    found = {f"{name}, {how}": round(seconds(make()), 2) for how, make in ways.items()}
    kernel, joins = found.values()
    found[f"{name}, joins to kernel"] = round(joins / kernel, 2)
    found[f"{name}, matches"] = answers["joins"][0]
    plan = query.explain_plan(frame)
    found[f"{name}, auto"] = "joins" if "plan: joins of Spark" in plan else "kernel"
    print(name, *found.values(), flush=True)
    return found


if __name__ == "__main__":
    run_alone("joins", __doc__, 200_000, measure)
