"""The progress of a stream, shown while it runs: `monitor`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from celc_runtime.plan.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

METRICS = "celc_"
"""The beginning of the name of a stream's observed metrics; then comes the query's name."""

_OLD_STATES = (
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
)
"""Spark's errors for checkpoints with states for partitions instead of buckets, or bytes instead of
texts."""

_COLUMNS = (
    ("batch", 6),
    ("seconds", 8),
    ("rows", 10),
    ("undeclared", 11),
    ("events", 10),
    ("matches", 10),
    ("late", 8),
    ("ahead", 8),
    ("waiting", 9),
    ("kept", 9),
    ("pending", 9),
    ("keys", 10),
    ("known", 10),
    ("bytes", 14),
    ("sort", 8),
    ("kernel", 8),
    ("state", 8),
    ("watermark", 21),
)


_OF_RULES = (("rules", 9), ("added", 8), ("ended", 8), ("late rules", 11))
"""Columns of a stream whose table of parameters is a stream, before the watermark."""


def monitor(query: StreamingQuery, *, stream: TextIO | None = None, every: float = 1.0) -> None:
    """Write a line for each micro-batch of a stream, until the stream ends.

    The columns are:

    - batch: the number of the micro-batch; seconds: how long it took; watermark: of the micro-batch
    - rows: how many were read; undeclared: how many of them are of undeclared types
    - events: how many were run; keys: of how many partitions; matches: how many were found
    - late, ahead: events that were not run
    - waiting, kept, pending, known, bytes: in the states of the buckets that had work (events that
      wait for the watermark, events in the window, those with a deadline to come, records of
      partitions, size)
    - rules, added, ended, late rules, where the table of parameters is a stream too: its rows that
      are held, that came, that the watermark passed, and that came late
    - sort, kernel, state: the seconds that workers took to sort events, to run them, and for the
      rest, all buckets together

    stream: where lines are written, None: standard error. every: seconds between two looks. Raises
    the error that ended the stream, if there was one; StateError if an earlier version wrote the
    checkpoint.
    """
    out = sys.stderr if stream is None else stream
    shown = -1
    while True:
        active = query.isActive
        for progress in query.recentProgress:
            if progress["batchId"] > shown:
                figures = micro_batch(progress)
                columns = _columns(figures)
                if shown < 0:
                    out.write("".join(name.rjust(width) for name, width in columns) + "\n")
                shown = progress["batchId"]
                out.write(_line(figures, columns) + "\n")
                out.flush()
        if not active:
            break
        time.sleep(every)
    problem = query.exception()
    if problem is None:
        return
    if any(name in str(problem) for name in _OLD_STATES) and "bucket" in str(problem):
        raise StateError(
            "the checkpoint is of an earlier version of celc, whose states this one does not "
            "read: end the stream with that version (availableNow, then finish), and begin a "
            "new checkpoint"
        ) from problem
    raise problem


def micro_batch(progress: Any) -> dict[str, Any]:
    """The values of `monitor` for one micro-batch, from Spark's progress of it."""
    steps = _sums(observed(progress))
    took = progress["durationMs"].get("triggerExecution", 0)
    return {
        "batch": progress["batchId"],
        "seconds": took / 1000,
        **{name: steps.get(name, 0) for name in ("rows", "undeclared", "events", "matches")},
        **{name: steps.get(name, 0) for name in ("late", "ahead", "waiting", "kept", "pending")},
        **{name: steps.get(name, 0) for name in ("keys", "known", "bytes")},
        **{name: steps.get(f"{name}_us", 0) / 1e6 for name in ("sort", "kernel", "state")},
        **_figures_of_rules(steps),
        "watermark": progress["eventTime"].get("watermark", ""),
    }


def _figures_of_rules(steps: Mapping[str, int]) -> dict[str, int]:
    if "rules" not in steps:
        return {}
    names = [name for name, _ in _OF_RULES]
    counted = ("rules", "rules_added", "rules_ended", "rules_late")
    return {name: steps[key] for name, key in zip(names, counted, strict=True)}


def _columns(figures: Mapping[str, Any]) -> Sequence[tuple[str, int]]:
    """The columns of a line."""
    return (*_COLUMNS[:-1], *(_OF_RULES if "rules" in figures else ()), _COLUMNS[-1])


def observed(progress: Any) -> dict[str, dict[str, Any]]:
    """The observed metrics of a micro-batch by their names.

    Over Connect, PySpark 4.3 gives each metric as JSON: a list of values, and a schema beside it.
    """
    found = {}
    for name, row in progress["observedMetrics"].items():
        values = dict(row) if isinstance(row, Mapping) else row.asDict()
        if values.keys() == {"values", "schema"} and isinstance(values["schema"], Mapping):
            names = [field["name"] for field in values["schema"]["fields"]]
            values = dict(zip(names, values["values"], strict=True))
        found[name] = values
    return found


def _sums(metrics: Mapping[str, dict[str, Any]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for name, values in metrics.items():
        if name.startswith(METRICS):
            for key, value in values.items():
                sums[key] = sums.get(key, 0) + (value or 0)
    return sums


def _line(figures: Mapping[str, Any], columns: Sequence[tuple[str, int]]) -> str:
    parts = []
    for name, width in columns:
        value = figures[name]
        text = f"{value:.2f}" if isinstance(value, float) else value
        text = str(text).removesuffix(".000Z") if name == "watermark" else text
        parts.append((f"{text:,}" if isinstance(text, int) else str(text)).rjust(width))
    return "".join(parts)
