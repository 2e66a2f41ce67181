"""From Arrow table to Arrow table: `match_table` beside the kernel alone, 1 % of events relevant.

The kernel's own rate is that of both its passes over columns that are prepared: symbols from type
codes, and the update. What `match_table` does besides is reading the Arrow columns, coding plain
texts, listing the matches and making them a table.
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
SHARE = 0.6


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part."""
    query = compiled("A ; B ; C", "ABCX", WINDOW)
    types = rare_types("ABC", EVENTS, 0.01)
    reading = Reading(query, one_batch(type=types), listed=False)
    tables = {
        "dictionary-coded types": pa.table({"type": types}),
        "types as plain texts": pa.table({"type": types.dictionary_decode()}),
    }
    tasks = [Task("kernel", reading.classify_and_update, reading.rewind)]
    tasks += [Task(way, partial(query.match_table, table)) for way, table in tables.items()]
    timings = settings.repeated(tasks, clock=time.process_time)
    matches = len(query.match_table(tables["dictionary-coded types"]))
    context: dict[str, Any] = {"events": EVENTS, "matches": matches}
    yield rate("the kernel alone", "events/s", EVENTS, timings["kernel"], **context)
    for way in tables:
        yield rate(f"match_table, {way}", "events/s", EVENTS, timings[way], **context)
        yield quotient(
            f"match_table, {way}: speed beside the kernel alone",
            timings["kernel"].rows,
            timings[way].rows,
            SHARE,
            higher_is_better=True,
            **context,
        )
