"""From Arrow table to Arrow table: `match_table` beside the kernel alone, 1 % of events relevant.

The kernel's own rate is that of both its passes over columns that are prepared: symbols from type
codes, and the update. What `match_table` does besides is reading the Arrow columns, coding plain
texts, listing the matches and making them a table.

Texts of one letter each are compared 32 at a time. So the same events also come with names of
different lengths, which need a look-up for each row; that way has no goal.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from common import Figure, Settings, Task, quotient, rate
from streams import Reading, compiled, one_batch, rare_types

EVENTS = 10_000_000
WINDOW = 1_000
GOALS = {
    "dictionary-coded types": 0.6,
    "types as plain texts": 0.3,
    "types as plain texts of 1 to 7 letters": None,
}


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part."""
    query = compiled("A ; B ; C", "ABCX", WINDOW)
    types = rare_types("ABC", EVENTS, 0.01)
    reading = Reading(query, one_batch(type=types), listed=False)
    named = compiled("Bid ; Offer ; Expired", ["Bid", "Offer", "Expired", "X"], WINDOW)
    names = pa.array(["Bid", "Offer", "Expired", "X"])
    of_lengths = pa.DictionaryArray.from_arrays(types.indices, names).dictionary_decode()
    inputs = (
        (query, pa.table({"type": types})),
        (query, pa.table({"type": types.dictionary_decode()})),
        (named, pa.table({"type": of_lengths})),
    )
    tasks = [Task("kernel", reading.classify_and_update, reading.rewind)]
    for way, (asked, table) in zip(GOALS, inputs, strict=True):
        tasks.append(Task(way, partial(asked.match_table, table)))
    timings = settings.repeated(tasks, clock=time.process_time)
    matches = len(query.match_table(inputs[0][1]))
    context: dict[str, Any] = {"events": EVENTS, "matches": matches}
    yield rate("the kernel alone", "events/s", EVENTS, timings["kernel"], **context)
    for way, goal in GOALS.items():
        yield rate(f"match_table, {way}", "events/s", EVENTS, timings[way], **context)
        yield quotient(
            f"match_table, {way}: speed beside the kernel alone",
            timings["kernel"].rows,
            timings[way].rows,
            goal,
            higher_is_better=True,
            **context,
        )
