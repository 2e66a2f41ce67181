"""What a query costs as a batch job and as a stream, out of the model, with what is assumed.

Executors follow from CPU: a task keeps a core busy for `busy` of the time that it has it, as was
measured. Tasks are so many that each sorts its own rows, a quarter of the most that it would take.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from celc_runtime.plan.frozen import frozen
from celc_runtime.spark.worker.task_sort import MOST_ROWS

from celc.interfaces.cli.sizing.amounts import Rows
from celc.interfaces.cli.sizing.model import (
    Batch,
    Model,
    Predicted,
    Stream,
    of_one_task,
    steps,
    terms,
)
from celc.interfaces.cli.sizing.shape import KEYS, ONE, RANGES, NotKnown, Shape


@frozen
class Asked:
    """What the command line says. machine: how many times as long as the measured machine this one
    takes."""

    rows: Rows
    keys: float | None
    match_rate: float
    relevant: float
    text: float
    executors: float | None
    hours: float | None
    cores: float
    trigger: float
    machine: float = 1.0


class Part(NamedTuple):
    """CPU seconds of some terms of the model together, by what they are for."""

    name: str
    seconds: float
    each: float
    """Seconds for one of these things."""


@frozen
class BatchJob:
    """A batch job. shuffled, answer, memory: bytes; memory is that of one Python worker."""

    rows: float
    events: float
    matches: float
    cpu: Predicted
    parts: tuple[Part, ...]
    shuffled: Predicted
    answer: Predicted
    memory: Predicted
    tasks: int
    executors: int | None
    hours: Predicted | None


@frozen
class StreamJob:
    """A stream in its steady state. batch: CPU seconds of a micro-batch. checkpoint: bytes that a
    micro-batch writes; state: bytes that are kept. load: cores that are busy."""

    rows: float
    events_kept: float
    batch: Predicted
    load: Predicted
    executors: int
    checkpoint: Predicted
    state: Predicted


_OF = {
    "job": "job",
    "column of the answer": "job",
    "task": "task",
    "match": "match",
    "value of a match": "match",
    "real number or text of an end": "match",
    "other value of an end": "match",
    "key": "key",
    "step of a search": "step of a search",
    "event of the state": "event of the state",
    "byte of the state": "event of the state",
}
"""Which thing each term is for; the others are for rows: read, filtered, moved and run."""


def in_window(shape: Shape, asked: Asked) -> float:
    """The events of one key in a window. Raises NotKnown where it must be known and is not."""
    window = shape.window
    if window is not None and window.unit == "EVENTS":
        return float(window.size)
    keys = asked.keys or 1.0
    if window is not None and window.unit == "MICROSECONDS" and asked.rows.seconds is not None:
        rate = asked.rows.number / asked.rows.seconds * asked.relevant
        return float(rate / keys * window.size / 1e6)
    if not shape.search:
        return 0.0
    if window is None:
        raise NotKnown(
            "it searches all events so far of a key, because it has no window: give it one (WITHIN)"
        )
    if window.unit == "VALUE":
        raise NotKnown(
            f"it searches the events in a window of {window.attribute}, and how many these are is "
            "not known: run it on a sample with `celc run`"
        )
    raise NotKnown(
        "it searches the events of its window, and how many these are goes by the time in which "
        f"the rows come: say --rows {asked.rows.number:g}/day, or another unit"
    )


def batch_job(shape: Shape, asked: Asked, model: Model) -> BatchJob:
    """The query as a batch job over all rows."""
    rows = asked.rows.number
    kept = rows * asked.relevant
    tasks = max(1, math.ceil(kept / (MOST_ROWS / 4))) if shape.parts != ONE else 1
    if asked.executors is not None and shape.parts != ONE:
        tasks = max(tasks, int(asked.executors * asked.cores))
    found = terms(
        shape,
        Batch(
            rows=rows,
            keys=asked.keys or 1.0,
            relevant=asked.relevant,
            matches=rows * asked.match_rate,
            in_window=in_window(shape, asked),
            tasks=tasks,
            text=asked.text,
        ),
    )
    cpu = model.cost("batch cpu", found).times(asked.machine)
    executors, hours = _executors(shape, asked, cpu, model)
    return BatchJob(
        rows,
        kept,
        rows * asked.match_rate,
        cpu,
        tuple(_parts(model.parts("batch cpu", found), found, asked)),
        model.cost("batch shuffle", found) if shape.parts == KEYS else _NOTHING,
        model.cost("batch answer", found),
        model.cost("batch memory", of_one_task(found, tasks)),
        tasks,
        executors,
        hours,
    )


_NOTHING = Predicted(0.0, 0.0, 0.0)


def _executors(
    shape: Shape, asked: Asked, cpu: Predicted, model: Model
) -> tuple[int | None, Predicted | None]:
    busy = float(model.measured["busy"])
    if asked.hours is not None and shape.parts != ONE:
        cores = cpu.value / busy / (asked.hours * 3600)
        executors = max(1, math.ceil(cores / asked.cores))
    elif asked.executors is not None and shape.parts != ONE:
        executors = int(asked.executors)
    else:
        executors = 1
    cores = 1.0 if shape.parts == ONE else executors * asked.cores
    return executors, cpu.times(1 / cores / busy / 3600)


def _parts(seconds: dict[str, float], found: dict[str, float], asked: Asked) -> Iterator[Part]:
    sums: dict[str, float] = {}
    for term, value in seconds.items():
        name = _OF.get(term, "row")
        sums[name] = sums.get(name, 0.0) + value * asked.machine
    for name, value in sums.items():
        count = found[name if name != "row" else "row"]
        if value and count:
            yield Part(name, value, value / count)


def stream_job(shape: Shape, asked: Asked, model: Model) -> StreamJob:
    """The query as a stream. Raises NotKnown where rows have no time in which they come, and for a
    state that has no bound."""
    if not model.has("stream cpu"):
        raise NotKnown("what streams cost was not measured yet, on any machine")
    if asked.rows.seconds is None:
        raise NotKnown("rows come in no time: say how many come each day, as in --rows 5e9/day")
    if shape.window is None:
        raise NotKnown("its state grows with the stream, because it has no window: add WITHIN")
    rate = asked.rows.number / asked.rows.seconds
    rows = rate * asked.trigger
    keys = asked.keys or 1.0
    kept = in_window(shape, asked) * keys
    if shape.window.unit == "VALUE":
        raise NotKnown("how many events are in a window of values is not known")
    tasks = max(1.0, asked.cores * (asked.executors or 1)) if shape.parts == KEYS else 1.0
    found = terms(
        shape,
        Stream(
            rows=rows,
            keys=keys,
            relevant=asked.relevant,
            matches=rows * asked.match_rate,
            in_window=in_window(shape, asked),
            tasks=tasks,
            text=asked.text,
            state=kept + rows * asked.relevant,
        ),
    )
    batch = model.cost("stream cpu", found).times(asked.machine)
    load = batch.times(1 / asked.trigger)
    busy = float(model.measured["busy"])
    executors = max(1, math.ceil(load.high / busy / asked.cores))
    return StreamJob(
        rows,
        kept,
        batch,
        load,
        executors,
        model.cost("stream checkpoint", found),
        model.cost("stream state", found),
    )


def doubts(shape: Shape, asked: Asked, model: Model) -> Iterator[str]:
    """What the prediction does not know, in words."""
    if shape.parts == ONE:
        yield f"one task reads all rows, so that more cores do not help: {shape.why_one}"
    if shape.parts == RANGES:
        yield (
            "there is no PARTITION BY: a batch job is cut into ranges of time, as many as there "
            "are rows for; a stream is one task"
        )
    if shape.parts == KEYS:
        yield (
            "rows are taken to be spread evenly over the keys: a stream runs one key in one task, "
            "and a batch job cuts a hot key into ranges of time only where the query has a window"
        )
    if asked.relevant == 1.0:
        yield "all rows are taken to matter: --relevant says which part has the types and values"
    looked, known = steps(shape, in_window(shape, asked)), float(model.measured["most steps"])
    if looked > known:
        yield (
            f"the search for matches looks at about {looked:,.0f} events for each event, and at "
            f"{known:,.0f} at most in queries that were measured: time it on a sample"
        )
    most = model.most("batch cpu")
    if asked.rows.number > most:
        yield f"the largest job that was fitted has {most:,.0f} rows: beyond it costs go on in line"
    yield (
        "tables are read from a local disk: what an object store or a network adds, and what the "
        "start of a cluster takes, is not known"
    )
    if asked.machine == 1.0:
        yield (
            f"CPU is that of {model.measured['machine']}: --calibrate, on a machine like those of "
            "the cluster, times a short run and predicts for it"
        )
