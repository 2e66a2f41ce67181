"""What conditions that look back in an iteration cost: SASE++'s SEQ(A a, B+ b[], C c), by window.

    python benchmarks/lookback.py [NAME ...] [--events N] [--record]

The conditions are those of the three classes in which Zhang, Diao and Immerman sort them (On
Complexity and Optimization of Expensive Queries in Complex Event Processing, SIGMOD 2014, section
5.2): every value before can refute it (MAX), one suffices (MIN), only all together decide (AVG);
besides one that compares neighbours (PREV). Beside them stands the query without a condition.

A window holds about seven B's, one A and one C on average, however long it is, and otherwise events
of a type that the query does not name. So the uncorrelated query has on average about as many
matches per window everywhere, and what grows is the number of events to pass. Each query is read
twice: with matches, which are written out in full (positions and labels, into the kernel's buffers;
not made into Arrow arrays), and once more with nothing listed. The difference is the *cost of
listing*, and by the number of matches the *cost per match*: reading columns, passing events and
the update are in neither. The uncorrelated query's own cost of listing is what a cost is compared
with. (All of its matches are listed; a condition admits a share of them, so the same walk counts
for fewer matches. `work` is the cost of listing compared with that of the uncorrelated query.)

Every figure is CPU time of one thread, the best of several runs; ratios to the calibration kernel
of `common.py`, timed in the same run, are what to compare between machines.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from celc_runtime.run.run_of import run_of
from common import calibrate, environment

import celc

TYPES = "ABCX"
CONDITIONS = {
    "uncorrelated": "",
    "every value can refute": " FILTER b.v > MAX(PRIOR b.v)",
    "one value suffices": " FILTER b.v > MIN(PRIOR b.v)",
    "all decide together": " FILTER b.v > AVG(PRIOR b.v)",
    "neighbours": " FILTER b.v > PREV(b.v)",
}
WINDOWS = (25, 50, 100, 250, 500, 1_000)
PER_WINDOW = {"A": 1.0, "B": 7.0, "C": 1.0}
RUNS = 5


def compiled(name: str, window: int) -> Any:
    """A compiled query."""
    types = ", ".join(f"EVENT {letter} {{ v: DOUBLE }}" for letter in TYPES)
    formula = f"(A AS a ; (B AS b)+ ; C AS c){CONDITIONS[name]} WITHIN {window} EVENTS"
    matcher = celc.compile(f"CREATE STREAM S {{{types}}} SELECT * FROM S WHERE {formula}")
    return next(iter(matcher.queries.values()))


def stream(events: int, window: int) -> pa.RecordBatch:
    """Types as rare as the window asks for, and values of one range."""
    rng = np.random.default_rng(8)
    shares = [number / window for number in PER_WINDOW.values()]
    types = rng.choice(len(TYPES), events, p=[*shares, 1 - sum(shares)]).astype(np.int8)
    column = pa.DictionaryArray.from_arrays(pa.array(types), pa.array(list(TYPES)))
    return pa.RecordBatch.from_arrays([column, pa.array(rng.random(events))], ["type", "v"])


@dataclass
class Timed:
    """One reading of a stream: CPU time, matches, and the positions in them."""

    seconds: float
    matches: int
    positions: int


def timed(query: Any, batch: pa.RecordBatch, *, listed: bool) -> Timed:
    """Read the stream once; matches are written and dropped."""
    run = run_of(query.program)
    if not listed:
        run._output.limit[0] = 0
    found = [0, 0]

    def take(*_: object) -> tuple[()]:
        found[0] += int(run._output.used[0])
        found[1] += int(run._output.used[1])
        run._output.used[:] = 0
        return ()

    run._take = take  # type: ignore[method-assign, assignment]
    start = time.thread_time()
    for _ in run.push(batch):
        pass
    return Timed(time.thread_time() - start, found[0], found[1])


def best(query: Any, batch: pa.RecordBatch, *, listed: bool) -> Timed:
    """The best of several readings."""
    timed(query, batch.slice(0, 10_000), listed=listed)
    runs = [timed(query, batch, listed=listed) for _ in range(RUNS)]
    return min(runs, key=lambda run: run.seconds)


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """All figures of a run; shows each as soon as it is there."""
    calibrated = calibrate(asked.events)
    names = [name for name in CONDITIONS if name in asked.names or not asked.names]
    figures: dict[str, Any] = {}
    print(_HEAD)
    for window in WINDOWS:
        batch = stream(asked.events, window)
        listing: tuple[float, float] | None = None
        for name in dict.fromkeys(["uncorrelated", *names]):
            query = compiled(name, window)
            reference = calibrated()
            alone = best(query, batch, listed=False)
            found = best(query, batch, listed=True)
            seconds = max(found.seconds - alone.seconds, 1e-9)
            each = seconds / max(found.matches, 1)
            listing = listing or (seconds, each)
            figure = {
                "events_per_second": round(asked.events / found.seconds),
                "ratio": round(asked.events / found.seconds / reference, 5),
                "unlisted_events_per_second": round(asked.events / alone.seconds),
                "matches": found.matches,
                "matches_per_second": round(found.matches / found.seconds),
                "positions_per_match": round(found.positions / max(found.matches, 1), 2),
                "nanoseconds_per_match": round(each * 1e9, 1),
                "calibrated_per_match": round(each * reference, 1),
                "of_uncorrelated": round(each / listing[1], 2),
                "work": round(seconds / listing[0], 2),
            }
            figures[f"{name} W={window}"] = figure
            print(_line(f"{name} W={window}", figure), flush=True)
    return {"calibration": calibrated(), "figures": figures}


_HEAD = (
    f"{'':30} {'M events/s':>12} {'(ratio)':>9} {'matches':>12} {'M matches/s':>12} "
    f"{'long':>6} {'ns each':>8} {'× plain':>8} {'work':>6}"
)


def _line(name: str, figure: dict[str, float]) -> str:
    return (
        f"{name:30} {figure['events_per_second'] / 1e6:12.3f} ({figure['ratio']:.5f}) "
        f"{figure['matches']:12,} {figure['matches_per_second'] / 1e6:12.3f} "
        f"{figure['positions_per_match']:6.2f} {figure['nanoseconds_per_match']:8.1f} "
        f"{figure['of_uncorrelated']:8.2f} {figure['work']:6.2f}"
    )


def main() -> None:
    """Run, show, and record if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(CONDITIONS)}")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    record = environment("benchmarks/lookback.py", asked.events) | measure(asked)
    if asked.record:
        folder = Path(__file__).parent / "records"
        with (folder / f"lookback-{record['date']}.jsonl").open("a") as out:
            out.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
