"""What a function of an event costs on Spark, beside the same value as a column of the files.

    python benchmarks/functions_on_spark.py [--events N] [--record]

The conditions of `functions.py`, each over Parquet files that have the value as a column, and over
files that have not: `match` of all rows, counted. A figure is the CPU time of all processes of the
one by that of the other, the least of five in turns. The goal is 1.3.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from common import calibrate
from functions import PAIRS, both, compared, shown, table
from processes import tree_seconds
from rates import run_alone
from spark_jobs import session, write


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(events)
    stream = table(events)
    figures: dict[str, Any] = {}
    with session() as spark, tempfile.TemporaryDirectory() as folder:
        for number, pair in enumerate(PAIRS):
            tasks = []
            for place, (query, rows) in enumerate(both(pair, stream)):
                path = write(Path(folder) / f"{number}-{place}", rows)
                frame = spark.read.parquet(str(path))
                tasks.append(lambda query=query, frame=frame: query.match(frame).count())
            figures[pair.name] = shown(pair.name, *compared(tasks, tree_seconds))
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("functions_on_spark", __doc__, 1_000_000, measure)
