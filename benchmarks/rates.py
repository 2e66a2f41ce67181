"""What benchmarks of single topics share: events a second of queries over one batch, and records.

`matches` is everything up to the kernel's buffers: symbols, update and listing. `rows` is
`match_arrow`. Every figure is CPU time of one thread, the best of several runs; ratios to the
calibration kernel of `common.py`, timed in the same run, are what to compare between machines.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from celc_runtime.jit.kernels import compiling
from common import best_of, environment, matches_of, rows_of


def rates(name: str, query: Any, batch: pa.RecordBatch, reference: float) -> dict[str, Any]:
    """The figures of a query, which are also printed; `reference`: rows a second of the calibration
    kernel."""
    events = len(batch)
    rows_of(query, batch.slice(0, 10_000))
    to_matches = events / best_of(lambda: matches_of(query, batch), 3)
    to_rows = events / best_of(lambda: rows_of(query, batch), 3)
    rows = rows_of(query, batch)
    print(
        f"{name:34} {to_matches / 1e6:8.2f} M events/s to matches, {to_rows / 1e6:6.2f} to rows; "
        f"{rows / events:.3f} rows an event",
        flush=True,
    )
    return {
        "update": type(query.program.update).__name__,
        "listing": type(query.program.listing).__name__,
        "matches_per_second": round(to_matches),
        "rows_per_second": round(to_rows),
        "ratio": round(to_matches / reference, 4),
        "ratio_of_rows": round(to_rows / reference, 4),
        "rows": rows,
    }


def run_alone(
    script: str, text: str | None, events: int, measure: Callable[[int], dict[str, Any]]
) -> None:
    """The command line of a benchmark: run, show, and record if asked to.

    `script`: its name; `text`: its docstring; `events`: how many it reads unless asked otherwise.
    """
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--events", type=int, default=events)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    with compiling():  # also where Python would read so few events
        found = measure(arguments.events)
    record = environment(f"benchmarks/{script}.py", arguments.events) | found
    if arguments.record:
        name = f"{script.replace('_', '-')}-{record['date']}.jsonl"
        with (Path(__file__).parent / "records" / name).open("a") as out:
            out.write(json.dumps(record) + "\n")
