"""How fast this machine is beside the one that was measured: a short run of the same work on both.

It sorts, hands over and matches a table on one core, as the tasks of a job do. What it cannot tell:
the JVM's share, and what a disk or a network takes.
"""

from __future__ import annotations

import time
from typing import Any

from celc.diagnostics.source import Source
from celc.driver.matcher import Matcher
from celc.driver.pipeline import compile_files
from celc.options import Options

_ROWS = 400_000
_TURNS = 5
_QUERY = """CREATE STREAM S {
  EVENT A { key: INT, v: DOUBLE, ts: TIMESTAMP }, EVENT B { key: INT, v: DOUBLE, ts: TIMESTAMP }
}
SELECT * FROM S WHERE (A AS a ; B AS b) FILTER a.v > 0.2 PARTITION BY key WITHIN 10 MINUTES [ts]
"""


def seconds() -> float:
    """CPU seconds of the run on this machine, the least of five. The query's machine code is made
    before."""
    table = _events()
    compilation = compile_files([Source("query.cel", _QUERY)], Options(order_by=("ts",)))
    query = Matcher(compilation.module_parts("celc size")).query
    query.match_table(table, threads=1)
    taken = []
    for _ in range(_TURNS):
        begun = time.process_time()
        query.match_table(table, threads=1)
        taken.append(time.process_time() - begun)
    return round(min(taken), 4)


def _events() -> Any:
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(1)
    times = rng.permutation(_ROWS).astype(np.int64) * 10_000
    return pa.table(
        {
            "type": pa.array(["A", "B"]).take(pa.array(rng.integers(0, 2, _ROWS))),
            "key": pa.array(rng.integers(0, _ROWS // 50, _ROWS).astype(np.int32)),
            "v": pa.array(rng.random(_ROWS)),
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )
