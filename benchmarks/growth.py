"""What grows with what: cost against window, length of the stream and states; memory; delay.

Costs are those of the update (`window`, `states`), or of whole runs over record batches, each a
fresh one (`length`). Memory is what a run holds after a stream many windows long, beside what the
window needs: the nodes and stored events that were made inside it. *Delay* is what listing the next
1,000 matches takes when 0, 1,000 or 16,000 events with partial matches have left the window and
still lie in the arena. Merging lists lazily would walk over them, and take hundreds of times as
long; 1.5 times as long counts as flat, because a larger arena is further away from the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from common import Figure, Settings, Task, Timing, quotient, rate, size
from streams import (
    Reading,
    batches_of,
    compiled,
    engine,
    feeding,
    nodes_made,
    one_batch,
    random_types,
)

WINDOWS = (100, 1_000, 10_000, 100_000)
WINDOWED = ("A ; B ; C", "(A+ ; B)+ ; C", "(A ; B)+ : C")
"""The last one runs on tables and union lists; it is read for the shortest and longest window only,
over fewer events."""
TYPES = "ABC"
EVENTS_FOR_TABLES = 200_000
BATCH = 100_000
LENGTHS = (100_000, 1_000_000, 10_000_000)
LONGEST = 100_000_000
STATES = (2, 4, 6, 8, 12, 16, 24)
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWX"
DEAD = (0, 1_000, 16_000)
DELAYED = {
    "A ; B ; C": ("A" * 10 + "B" * 10, "C" * 10),
    "(A+ ; B)+ ; C": ("A" * 9 + "B", "C" * 2),
}
"""Events in the window before the matches, and the events that end 1,000 of them, or 1,022."""


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part."""
    yield from windows(settings)
    yield from lengths(settings)
    yield from states(settings)
    yield from rounds(settings)
    yield from memory(settings)
    yield from delays(settings)


# --- cost -----------------------------------------------------------------------------------------


def windows(settings: Settings) -> Iterator[Figure]:
    """The update against the window."""
    tasks = {}
    length = {}
    for formula in WINDOWED:
        for window in WINDOWS:
            query = compiled(formula, TYPES, window)
            which = engine(query)
            if which == "tables" and window not in (WINDOWS[0], WINDOWS[-1]):
                continue
            length[formula] = EVENTS_FOR_TABLES if which == "tables" else settings.events
            batch = one_batch(type=random_types(TYPES, length[formula]))
            reading = Reading(query, batch, listed=False)
            key = f"{formula}, {which}, W={window}"
            tasks[key] = (formula, window, Task(key, reading.update, reading.rewind))
    timings = settings.repeated([task for _, _, task in tasks.values()])
    first: dict[str, Timing] = {}
    for key, (formula, window, _) in tasks.items():
        events = length[formula]
        context: dict[str, Any] = {"events": events, "window": window, "line": formula}
        yield rate(f"window: {key}", "events/s", events, timings[key], **context)
        shortest = first.setdefault(formula, timings[key])
        if window != WINDOWS[0]:
            yield quotient(
                f"window: cost of an event at W={window} beside W={WINDOWS[0]}, {formula}",
                timings[key].rows,
                shortest.rows,
                1.1,
                events=events,
            )


def lengths(settings: Settings) -> Iterator[Figure]:
    """Fresh runs over streams of different lengths; short ones over other events each time."""
    window = 500
    query = compiled("A ; B ; C", "ABC", window)
    whole = one_batch(type=random_types("ABC", LENGTHS[-1]))
    longest = (LONGEST,) if settings.full else ()
    tasks, read = {}, {}
    for length in (*LENGTHS, *longest):
        # As many events for each length, where one run would be too short to be timed.
        runs = max(1, LENGTHS[1] // length)
        repeats = max(1, length // LENGTHS[-1])
        read[length] = runs * length
        tasks[length] = Task(f"{length}", _runs_over(query, whole, runs, length, repeats))
    timings = settings.repeated(list(tasks.values()))
    for length in tasks:
        timing = timings[f"{length}"]
        context: dict[str, Any] = {"events": length, "line": f"A ; B ; C, W={window}"}
        yield rate(f"length: {length:,} events", "events/s", read[length], timing, **context)
        if length != LENGTHS[0]:
            each = [rows / read[length] for rows in timing.rows]
            of = [rows / read[LENGTHS[0]] for rows in timings[f"{LENGTHS[0]}"].rows]
            name = f"length: cost of an event of {length:,} beside {LENGTHS[0]:,}"
            yield quotient(name, each, of, 1.1)


def _runs_over(
    query: object, whole: pa.RecordBatch, runs: int, length: int, repeats: int
) -> Callable[[], None]:
    """Several fresh runs over slices of a stream, or one run that reads all of it several times."""
    turn = 0

    def once() -> None:
        nonlocal turn
        for _ in range(runs):
            start = turn * length % len(whole)
            turn += 1
            part = whole.slice(start, min(length, len(whole)))
            batches = [*batches_of(part, BATCH)] * repeats
            feeding(query, batches, listed=False)

    return once


def states(settings: Settings) -> Iterator[Figure]:
    """The update against the number of states: sequences of as many types."""
    tasks = {}
    for count in STATES:
        types = LETTERS[:count]
        query = compiled(" ; ".join(types), types, 500)
        batch = one_batch(type=random_types(types, settings.events))
        reading = Reading(query, batch, listed=False)
        tasks[count] = (engine(query), Task(f"{count}", reading.update, reading.rewind))
    timings = settings.repeated([task for _, task in tasks.values()])
    for count, (which, _) in tasks.items():
        context: dict[str, Any] = {
            "events": settings.events,
            "states": count,
            "line": "a sequence of types",
        }
        name = f"states: a sequence of {count}, {which}"
        yield rate(name, "events/s", settings.events, timings[f"{count}"], **context)


ROUNDS = ("A{5} ; B", "A ; A ; A ; A ; A ; B", "A{20} ; B")
"""Rounds in braces, the same written out, which is the measure, and more rounds."""


def rounds(settings: Settings) -> Iterator[Figure]:
    """The update of rounds in braces, beside the same rounds written out."""
    batch = one_batch(type=random_types("AB", settings.events))
    queries = {formula: compiled(formula, "AB", 500) for formula in ROUNDS}
    readings = {formula: Reading(query, batch, listed=False) for formula, query in queries.items()}
    tasks = [Task(formula, one.update, one.rewind) for formula, one in readings.items()]
    timings = settings.repeated(tasks)
    context: dict[str, Any] = {"events": settings.events, "line": "rounds"}
    for formula, query in queries.items():
        name = f"rounds: {formula}, {engine(query)}"
        yield rate(name, "events/s", settings.events, timings[formula], **context)
    braces, written_out, _ = ROUNDS
    name = f"rounds: cost of {braces} beside {written_out}"
    yield quotient(name, timings[braces].rows, timings[written_out].rows, 1.1, **context)


# --- memory ---------------------------------------------------------------------------------------


def memory(settings: Settings) -> Iterator[Figure]:
    """What runs hold at the end, beside what their windows need."""
    buffers: dict[str, dict[int, int]] = {}
    for formula in WINDOWED:
        buffers[formula] = {}
        for window in (100, 30_000, 100_000):
            query = compiled(formula, TYPES, window)
            longer = 0 if engine(query) == "tables" else settings.events
            events = max(longer, 10 * window)
            batch = one_batch(type=random_types(TYPES, events))
            run, _ = feeding(query, batches_of(batch, BATCH), listed=False)
            made = nodes_made(run) / events
            context: dict[str, Any] = {"events": events, "window": window}
            name = f"W={window}, {formula}"
            buffers[formula][window] = run.buffer_bytes
            if window > 100:
                # Below, the smallest arena and the events of one batch are more than the window.
                needed = made * (window + 1) * 32
                yield size(
                    f"memory: arena beside what {name} needs",
                    "times",
                    run.arena_bytes / needed,
                    2.0,
                    **context,
                )
                stored = run.stored_events / (window + 1)
                yield size(
                    f"memory: stored events beside those of {name}", "times", stored, 2.0, **context
                )
            yield size(f"memory: arena, {name}", "bytes", run.arena_bytes, **context)
        short, *_, long = buffers[formula].values()
        yield size(f"memory: buffers, {formula}", "bytes", long)
        yield size(
            f"memory: buffers at W=100000 beside W=100, {formula}", "times", long / short, 2.0
        )


# --- delay ----------------------------------------------------------------------------------------


def delays(settings: Settings) -> Iterator[Figure]:
    """Listing 1,000 matches behind events that have left the window."""
    for formula, (live, ending) in DELAYED.items():
        readings: dict[int, Reading] = {}
        query = compiled(formula, "ABC", "1000 [ts]", "ts: LONG")
        tasks = [
            Task(
                f"{dead}",
                partial(_end, readings, dead),
                partial(_prepare, readings, dead, query, live, ending),
            )
            for dead in DEAD
        ]
        timings = settings.repeated(tasks, repetitions=4 * settings.repetitions)
        for dead in DEAD:
            context: dict[str, Any] = {
                "matches": readings[dead].matches,
                "dead": dead,
                "line": formula,
            }
            yield rate(
                f"delay: matches behind {dead:,} dead events, {formula}",
                "matches/s",
                readings[dead].matches,
                timings[f"{dead}"],
                **context,
            )
        yield quotient(
            f"delay: behind {DEAD[-1]:,} dead events beside none, {formula}",
            timings[f"{DEAD[-1]}"].seconds,
            timings["0"].seconds,
            1.5,
        )


def _prepare(
    readings: dict[int, Reading], dead: int, query: object, live: str, ending: str
) -> None:
    """A run that has read the dead events and those in the window, just before the matches."""
    before = ("AB" * dead)[:dead]
    times = [*range(dead), *[dead + 10_000] * len(live)]
    reading = Reading(
        query, one_batch(type=pa.array([*before, *live]), ts=pa.array(times)), listed=False
    )
    last = one_batch(type=pa.array([*ending]), ts=pa.array([dead + 10_000] * len(ending)))
    readings[dead] = reading.followed_by(last)


def _end(readings: dict[int, Reading], dead: int) -> None:
    readings[dead].update()
