"""What `celc size` prints: the predicted costs of a query in words, and as JSON.

Each cost is shown with its interval. A user has to see that the prediction is no measurement, so
the text ends with what it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

from celc.interfaces.cli.sizing.amounts import bytes_shown, seconds_shown, shown
from celc.interfaces.cli.sizing.model import Model, Predicted
from celc.interfaces.cli.sizing.prediction import Asked, BatchJob, StreamJob
from celc.interfaces.cli.sizing.shape import ONE, Shape

SMALLEST_SHARE = 0.005  # of the CPU of a job: what costs less has no line of its own


class Sized(NamedTuple):
    """A query with its predicted costs."""

    shape: Shape
    batch: BatchJob
    stream: StreamJob | None  # None: the query has no stream, or its costs are not known
    why_no_stream: str  # the reason, if `stream` is None
    doubts: tuple[str, ...]  # sentences: what the prediction does not know

    def as_json(self) -> dict[str, Any]:
        """The prediction as a dictionary for JSON: seconds, bytes and hours with intervals."""
        batch = asdict(self.batch) | {"parts": [one._asdict() for one in self.batch.parts]}
        return {
            "query": self.shape.name,
            "batch": batch,
            "stream": None if self.stream is None else asdict(self.stream),
            "why no stream": self.why_no_stream,
            "not known": list(self.doubts),
        }


def in_words(sized: Sized, asked: Asked, known: Model) -> str:
    """The prediction as lines of text. known: the model that it was made with."""
    lines = [*_head(sized, asked), "", *_batch(sized, asked), "", *_stream(sized, asked)]
    lines += ["", "What this does not know:"]
    lines += [f"- {doubt}" for doubt in sized.doubts]
    of = known.measured
    lines.append(
        f"Measured on {of['date']}, {of['machine']}; nine of ten queries that were not measured "
        "lie in the intervals."
    )
    return "\n".join(lines) + "\n"


def _head(sized: Sized, asked: Asked) -> Iterator[str]:
    per = f" each {asked.rows.unit}" if asked.rows.unit else ""
    keys = "" if asked.keys is None else f", {shown(asked.keys)} keys"
    yield (
        f"{sized.shape.name}: {shown(sized.batch.rows)} rows{per}, of which "
        f"{shown(sized.batch.events)} can matter{keys}, {shown(sized.batch.matches)} matches"
    )


def _batch(sized: Sized, asked: Asked) -> Iterator[str]:
    batch, shape = sized.batch, sized.shape
    yield "As a batch job over all of them:"
    yield _line("CPU", batch.cpu, seconds_shown)
    for part in sorted(batch.parts, key=lambda one: -one.seconds):
        if part.seconds >= SMALLEST_SHARE * batch.cpu.value:
            yield (
                f"    {seconds_shown(part.seconds)} are for the {_many(part.name)}, "
                f"{_micros(part.each)} for one"
            )
    assert batch.hours is not None
    if shape.parts == ONE:
        yield _line("time, on one core", batch.hours, _hours)
    else:
        executors = f"{batch.executors:,} executor{'' if batch.executors == 1 else 's'}"
        yield _line(f"time, on {executors} of {shown(asked.cores)} cores", batch.hours, _hours)
        yield (
            f"  tasks                       {batch.tasks:,} (spark.sql.shuffle.partitions), "
            f"{shown(batch.events / batch.tasks)} events each"
        )
    yield _line("memory of a Python worker", batch.memory, bytes_shown)
    total = batch.memory.times(1.0 if shape.parts == ONE else asked.cores)
    yield _line("the same, of an executor", total, bytes_shown)
    yield _line("shuffle", batch.shuffled, bytes_shown)
    yield _line("the answer, as Parquet", batch.answer, bytes_shown)


def _stream(sized: Sized, asked: Asked) -> Iterator[str]:
    stream = sized.stream
    if stream is None:
        yield f"As a stream: not known, because {sized.why_no_stream}"
        return
    yield f"As a stream, a micro-batch of {shown(stream.rows)} rows each {asked.trigger:g} s:"
    yield _line("CPU of a micro-batch", stream.batch, seconds_shown)
    yield _line("cores that are busy", stream.load, shown)
    yield (
        f"  executors                   {stream.executors:,} of {shown(asked.cores)} cores, "
        "at the upper end of the interval"
    )
    yield _line("state", stream.state, bytes_shown)
    if stream.events_kept:
        each = stream.state.value / stream.events_kept
        yield f"    of {shown(stream.events_kept)} events in the window, {each:.3g} bytes each"
    yield _line("checkpoint, a micro-batch", stream.checkpoint, bytes_shown)


def _line(name: str, of: Predicted, words: Callable[[float], str]) -> str:
    if not of.value:
        return f"  {name:27} none"
    return f"  {name:27} {words(of.value)} ({words(of.low)} to {words(of.high)})"


def _hours(number: float) -> str:
    return seconds_shown(number * 3600)


def _many(name: str) -> str:
    """The plural of what a part of the costs is for."""
    return {
        "row": "rows",
        "match": "matches",
        "key": "keys",
        "step of a search": "steps of the search for matches",
        "event of the state": "events of the state",
    }.get(name, name)


def _micros(seconds: float) -> str:
    """A time in the unit that gives it few digits."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
