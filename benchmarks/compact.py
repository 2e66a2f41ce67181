"""What compact answers and unions cost: time for each end, and bytes beside those of all matches.

    python benchmarks/compact.py [--events N] [--record]

Two parts. `sizes`: Q1 to Q6 in a window of 100 events, of the types of the query alone. Bytes of
compact answers are counted; those of rows as well where there are up to 10^7 matches, and always
computed from what TOTAL says of all matches: 16 bytes for the positions of a match, 4 for each of
its label columns, and 8 for each event under a label, as `match_table` holds them. `growth`: two
formulas in windows of 100 to 100,000 events, ten ends in a window: the time for each end, and for
each event that takes part there, of `match_compact_arrow` and of SELECT COLLAPSED (of A+ ; B only
in the narrow window, since it counts matches, and an end has up to 10^27000 in the widest).

Every time is CPU time of one thread, the best of several runs; ratios to the calibration kernel of
`common.py`, timed in the same run, are what to compare between machines.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from common import best_of, calibrate, rows_of
from rates import run_alone
from streams import QUERIES, declaration, random_types

import celc

WINDOW = 100
GROWING = (100, 1_000, 10_000, 100_000)
_COUNTED = 10_000_000


def compiled(select: str, formula: str, types: str, within: int) -> Any:
    """A compiled query."""
    text = f"{declaration(types)} SELECT {select} FROM S WHERE {formula} WITHIN {within} EVENTS"
    return next(iter(celc.compile(text).queries.values()))


def compact_of(query: Any, batch: pa.RecordBatch) -> pa.Table:
    """The compact answers of a batch."""
    return pa.Table.from_batches(query.match_compact_arrow([batch]))


def bytes_of_rows(formula: str, types: str, batch: pa.RecordBatch) -> tuple[int, int]:
    """How many matches there are, and how many bytes their rows have."""
    counts = ", ".join(f"COUNT({name}) AS n_{name}" for name in types)
    query = compiled(f"TOTAL COUNT(*) AS n, {counts}", formula, types, WINDOW)
    rows = [row for part in query.match_arrow([batch]) for row in part.to_pylist()]
    matches = sum(int(row["n"]) for row in rows)
    events = sum(int(row[f"n_{name}"]) for row in rows for name in types)
    return matches, matches * (16 + 4 * len(types)) + 8 * events


def sizes(events: int) -> dict[str, Any]:
    """The bytes of compact answers and of rows."""
    figures: dict[str, Any] = {}
    for name, (formula, types) in QUERIES.items():
        batch = pa.RecordBatch.from_pydict({"type": random_types(types, events)})
        query = compiled("*", formula, types, WINDOW)
        compact = compact_of(query, batch)
        ends = len(compact)
        matches, row_bytes = bytes_of_rows(formula, types, batch)
        found = {
            "ends": ends,
            "matches": matches,
            "events_for_each_end": pc.sum(pc.list_value_length(compact["events"])).as_py() / ends,
            "nodes_for_each_end": pc.sum(pc.list_value_length(compact["nodes"])).as_py() / ends,
            "compact_bytes_for_each_end": compact.nbytes / ends,
            "row_bytes_for_each_end": row_bytes / ends,
        }
        if matches <= _COUNTED:
            counted = sum(part.nbytes for part in query.match_arrow([batch]))
            found["counted_row_bytes_for_each_end"] = counted / ends
        figures[f"{name}, W = {WINDOW}"] = found
        print(name, {k: f"{v:.4g}" for k, v in found.items()}, flush=True)
    return figures


def growth() -> dict[str, Any]:
    """Times for each end, in windows of more and more events."""
    figures: dict[str, Any] = {}
    for formula in ("A ; A ; B", "A+ ; B"):
        for within in GROWING:
            stretches = max(30, 200_000 // within)
            types = (["A"] * (within // 10 - 1) + ["B"]) * stretches
            batch = pa.RecordBatch.from_pydict({"type": pa.array(types).dictionary_encode()})
            plain = compiled("*", formula, "AB", within)
            compact = compact_of(plain, batch)
            ends = len(compact)
            events = pc.sum(pc.list_value_length(compact["events"])).as_py()
            found: dict[str, Any] = {"ends": ends, "events_for_each_end": events / ends}
            found["compact_bytes_for_each_event"] = compact.nbytes / events
            ways = {"compact": partial(compact_of, plain, batch)}
            if formula != "A+ ; B" or within <= WINDOW:
                # A number of matches of more than 38 digits is an error.
                united = compiled("COLLAPSED *", formula, "AB", within)
                ways["collapsed"] = partial(rows_of, united, batch)
            for way, run in ways.items():
                run()
                seconds = best_of(run, 3)
                found[f"{way}_microseconds_for_each_end"] = 1e6 * seconds / ends
                found[f"{way}_nanoseconds_for_each_event"] = 1e9 * seconds / events
            figures[f"{formula}, W = {within:,}"] = found
            print(formula, within, {k: round(v, 3) for k, v in found.items()}, flush=True)
    return figures


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(events)
    found = {"sizes": sizes(events), "growth": growth()}
    return {"calibration": calibrated(), "figures": found}


if __name__ == "__main__":
    run_alone("compact", __doc__, 3_000, measure)
