"""What selectors cost: SELECT NXT, LAST, MAX and STRICT of Q1, Q4 and Q6 in windows of events.

    python benchmarks/selection.py [--events N] [--record]

The stream has ten equally likely event types, of which a query names two or three. The plain
query's figure is its update alone; a selector's is everything: symbols, update, the choice, and
each chosen match written out in full (positions and labels, into the kernel's buffers; not made
into Arrow arrays). `positions` is how many positions a chosen match has on average: LAST and MAX of
`A+` hold all of the window's, so a longer window means longer outputs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from celc_runtime.run.run_of import run_of
from common import best_of, calibrate, environment
from streams import QUERIES, declaration

import celc

TYPES = "ABCDEFGHIJ"
CHOSEN = ("Q1", "Q4", "Q6")
WINDOWS = (100, 1_000, 10_000)
STRATEGIES = ("STRICT", "LAST", "NXT", "MAX")
WIDEST_OF_MAX = {"Q1": 1_000, "Q4": 10_000, "Q6": 100}
"""The widest window for MAX. Every match of Q1 is maximal, and at W = 10,000 there are 44,000 for
each event. Q6 has two maximal supports for each pair of neighbouring B's, so their number grows
exponentially with the window."""
SECONDS = 1.5
MOST_POSITIONS = 100_000_000
"""Positions to write out in one run, and seconds that it may take: longer ones are run on a shorter
stream."""


def compiled(strategy: str, formula: str, window: int) -> Any:
    """A compiled query over ten event types without attributes."""
    text = f"{declaration(TYPES)} SELECT {strategy} * FROM S WHERE {formula} WITHIN {window} EVENTS"
    return next(iter(celc.compile(text).queries.values()))


def stream(events: int) -> pa.RecordBatch:
    """Ten equally likely types."""
    codes = np.random.default_rng(5).integers(0, len(TYPES), events).astype(np.int32)
    column = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(TYPES)))
    return pa.RecordBatch.from_arrays([column], ["type"])


def run_once(query: Any, batch: pa.RecordBatch, *, listed: bool) -> tuple[int, int]:
    """Read the batch; returns how many matches and positions were written."""
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
    for _ in run.push(batch):
        pass
    return found[0], found[1]


def seconds_of(query: Any, batch: pa.RecordBatch, runs: int, *, listed: bool) -> float:
    """The least CPU time of several runs over a batch."""
    return best_of(lambda: run_once(query, batch, listed=listed), runs)


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(events)
    figures: dict[str, Any] = {}
    batch = stream(events)
    for name in CHOSEN:
        formula, _ = QUERIES[name]
        for window in WINDOWS:
            plain = compiled("ALL", formula, window)
            run_once(plain, batch, listed=False)
            reference = calibrated()
            alone = events / seconds_of(plain, batch, 3, listed=False)
            figures[f"{name} W={window} update alone"] = _figure(alone, alone, reference, (0, 0))
            for strategy in STRATEGIES:
                if strategy == "MAX" and window > WIDEST_OF_MAX[name]:
                    continue
                query = compiled(strategy, formula, window)
                part = batch.slice(0, _length(query, window, events))
                found = run_once(query, part, listed=True)
                rate = len(part) / seconds_of(query, part, 3, listed=True)
                key = f"{name} W={window} {strategy}"
                figures[key] = _figure(rate, alone, reference, found) | {"events": len(part)}
                print(f"{key:24} {_line(figures[key])}", flush=True)
    return {"calibration": calibrated(), "figures": figures}


def _length(query: Any, window: int, events: int) -> int:
    """How many events can be run in a few seconds, with all that is to be written for them."""
    short = stream(max(3 * window, 20_000))
    _, positions = run_once(query, short, listed=True)
    seconds = seconds_of(query, short, 1, listed=True)
    most = min(
        len(short) * MOST_POSITIONS // max(positions, 1),
        int(len(short) * SECONDS / max(seconds, 1e-6)),
    )
    return min(events, max(len(short), most))


def _figure(
    rate: float, alone: float, reference: float, found: tuple[int, int]
) -> dict[str, float]:
    return {
        "events_per_second": round(rate),
        "ratio": round(rate / reference, 4),
        "share_of_update_alone": round(rate / alone, 4),
        "matches": found[0],
        "positions_per_match": round(found[1] / found[0], 1) if found[0] else 0,
    }


def _line(figure: dict[str, float]) -> str:
    return (
        f"{figure['events_per_second'] / 1e6:8.2f} M events/s "
        f"{figure['share_of_update_alone']:6.3f} of the update alone, "
        f"{figure['matches'] / figure['events']:.3f} matches an event, "
        f"{figure['positions_per_match']:,.1f} positions each"
    )


def main() -> None:
    """Run, show, and record if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=4_000_000)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    record = environment("benchmarks/selection.py", arguments.events) | measure(arguments.events)
    for key, figure in record["figures"].items():
        if key.endswith("alone"):
            print(f"{key:24} {figure['events_per_second'] / 1e6:8.2f} M events/s")
    if arguments.record:
        folder = Path(__file__).parent / "records"
        path = folder / f"selection-{record['date']}.jsonl"
        with path.open("a") as out:
            out.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
