"""What conditions across labels cost: equal keys, chains of keys, orders; and what a run holds.

    python benchmarks/correlation.py [NAME ...] [--events N] [--memory N] [--record]

Streams have three equally likely event types; every event matters to every query. A run reads a
window of events first, which is not timed, and then as many more as a few seconds allow: figures
are those of full windows. *Update alone* reads Arrow columns, computes symbols and keys, and
updates; *with matches* also writes each match out in full (positions and labels, into the kernel's
buffers; not made into Arrow arrays). Where conditions are checked while matches are listed, update
alone leaves all of that out, and says so: *unchecked*. A figure stands beside its ratio to the
calibration kernel of `common.py`, timed in the same run, and beside the matches that one event ends
on average: with 100 ids and a window of 100,000 events there are tens of thousands, and writing
them is all the work.

*Kernel alone* is what the suite calls the update alone: symbols and keys are there already, and
no match is listed. Beside each stands `A ; B ; C` without conditions on the same symbols in the
same minute, the most that this stream allows.

*Memory* feeds ids that never repeat, so that nothing ever matches and whatever is kept for an id is
kept in vain: what the run holds must be bounded by the window, however long the stream.

A name runs the queries that contain it. `--uncorrelated` asks for attributes that are not NULL in
place of comparisons across labels: the least that the same formula costs. Its matches are not
written out; there are far too many.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from celc_runtime.plan.strategy import Checked
from celc_runtime.run.run_of import run_of
from celc_runtime.run.source.event_source import Reading
from celc_runtime.run.update.updates import KeyedUpdate
from common import best_of, calibrate, environment

import celc

TYPES = "ABC"
_ATTRIBUTES = "id: INT, x: INT, y: INT, value: DOUBLE, name: STRING, ts: LONG"
DECLARATION = (
    "CREATE STREAM S {"
    + ", ".join(f"EVENT {name} {{ {_ATTRIBUTES} }}" for name in TYPES)
    + "} SELECT * FROM S WHERE "
)
THREE = "(A AS a ; B AS b ; C AS c) FILTER "
QUERIES = {
    "one key": THREE + "a.id = b.id AND b.id = c.id",
    "text key": THREE + "a.name = b.name AND b.name = c.name",
    "chain": THREE + "b.x = a.x AND c.y = b.y",
    "key and order": THREE + "a.id = b.id AND b.id = c.id AND a.value < c.value",
    "order": "(A AS a ; B AS b) FILTER a.value < b.value",
    "plain rounds": "(A AS a ; B AS b)+ ; C AS c",
    "window of rounds": "WITHIN[6 [ts]](A AS a ; B AS b)+ ; C AS c",
    "absent in a window": "A AS a ; !(WITHIN[6 [ts]](B ; B)) ; C AS c",
    "iteration": "(A AS a ; (B AS b FILTER b.id = a.id)+ ; C AS c) FILTER a.id = c.id",
}
IDS = (100, 100_000)
WINDOWS = (1_000, 100_000)
MATCHES_OF_ORDER = 10  # A's of a window that are below a B; with equal ranges it would be a sixth
FEWER = {
    "iteration": ((100, 1_000), (100_000, 1_000), (100_000, 100_000)),
    "plain rounds": ((100, 20),),
    "window of rounds": ((100, 20),),
    "absent in a window": ((100, 1_000),),
}
"""With 100 ids in a window of 100,000 events an iteration has 2³³⁰ matches. Rounds without keys
have some 36 at each event, in 20 events."""
UNTIED = ("plain rounds", "window of rounds", "absent in a window")
"""The queries without comparisons: they match whatever the ids are."""
KERNELS = ("one key", "text key", "chain")
RUNS = 3
KERNEL_RUNS = 7
SECONDS = 1.0
BATCH = 100_000
MEMORY_WINDOW = 1_000


# --- streams --------------------------------------------------------------------------------------


def stream(events: int, ids: int, window: int) -> pa.RecordBatch:
    """Equally likely types and keys; orders that hold for about as many pairs in any window."""
    rng = np.random.default_rng(6)
    types = rng.integers(0, len(TYPES), events).astype(np.int8)
    keys = {name: rng.integers(0, ids, events).astype(np.int32) for name in ("id", "x", "y")}
    values = rng.random(events)
    values[types == 1] *= 2 * MATCHES_OF_ORDER * len(TYPES) / window
    names = pa.array([f"sensor {number}" for number in range(ids)]).take(pa.array(keys["id"]))
    return _batch(types, keys, values, names, np.arange(events))


def without_repetition(events: int) -> Iterator[pa.RecordBatch]:
    """Batches of events of which no two have a key in common; time goes on by one with each."""
    rng = np.random.default_rng(7)
    for first in range(0, events, BATCH):
        numbers = np.arange(first, min(first + BATCH, events))
        types = rng.integers(0, len(TYPES), len(numbers)).astype(np.int8)
        keys = {name: numbers.astype(np.int32) for name in ("id", "x", "y")}
        names = pa.array(numbers).cast(pa.string())
        # Falling, so that no A is below a later B.
        yield _batch(types, keys, -numbers.astype(np.float64), names, numbers)


def _batch(
    types: np.ndarray,
    keys: dict[str, np.ndarray],
    values: np.ndarray,
    names: pa.Array,
    times: np.ndarray,
) -> pa.RecordBatch:
    columns = {
        "type": pa.DictionaryArray.from_arrays(pa.array(types), pa.array(list(TYPES))),
        **{name: pa.array(key) for name, key in keys.items()},
        "value": pa.array(values),
        "name": names,
        "ts": pa.array(times.astype(np.int64)),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


# --- timing ---------------------------------------------------------------------------------------


@dataclass
class Timed:
    """A run over full windows."""

    events: int
    seconds: float
    matches: int


def compiled(formula: str, within: str) -> Any:
    """A compiled query."""
    matcher = celc.compile(f"{DECLARATION}{formula} WITHIN {within}")
    return next(iter(matcher.queries.values()))


def timed(query: Any, whole: pa.RecordBatch, window: int, length: int, *, listed: bool) -> Timed:
    """CPU time of `length` events behind a window of others; matches are written and dropped."""
    run = run_of(query.program)
    unlimited = int(run._output.limit[0])
    found = 0

    def take(*_: object) -> tuple[()]:
        nonlocal found
        found += int(run._output.used[0])
        run._output.used[:] = 0
        return ()

    run._take = take  # type: ignore[method-assign, assignment]
    run._output.limit[0] = 0
    for _ in run.push(whole.slice(0, window)):
        pass
    run._output.limit[0] = unlimited if listed else 0
    rest = whole.slice(window, length)
    start = time.thread_time()
    for _ in run.push(rest):
        pass
    return Timed(len(rest), time.thread_time() - start, found)


def best(query: Any, whole: pa.RecordBatch, window: int, *, listed: bool) -> Timed:
    """The best of several runs, of a length that takes about a second."""
    longest = len(whole) - window
    length = min(300, longest)
    timed(query, whole, window, length, listed=listed)
    found = timed(query, whole, window, length, listed=listed)
    while length < longest and found.seconds < SECONDS / 4:
        length = min(4 * length, longest)
        found = timed(query, whole, window, length, listed=listed)
    length = min(longest, max(length, int(length * SECONDS / max(found.seconds, 1e-6))))
    runs = [timed(query, whole, window, length, listed=listed) for _ in range(RUNS)]
    return min(runs, key=lambda run: run.seconds)


def figures_of(
    name: str, formula: str, asked: argparse.Namespace, calibrated: Callable[[], float]
) -> Iterator[tuple[str, dict[str, float]]]:
    """Update alone and with matches, for each number of ids and each window."""
    sizes = FEWER.get(name, tuple((ids, window) for ids in IDS for window in WINDOWS))
    for ids, window in sizes:
        if name == "order" and ids != IDS[0]:
            continue
        whole = stream(asked.events + window, ids, window)
        query = compiled(formula, f"{window} EVENTS")
        for listed in (False,) if asked.uncorrelated else (False, True):
            reference = calibrated()
            found = best(query, whole, window, listed=listed)
            rate = found.events / found.seconds
            figure = {
                "events_per_second": round(rate),
                "ratio": round(rate / reference, 5),
                "events": found.events,
                "matches_per_event": round(found.matches / found.events, 3),
            }
            of_ids = "" if name == "order" else f" ids={ids}"
            unchecked = ", unchecked" if isinstance(query.program.listing, Checked) else ""
            way = "with matches" if listed else f"update alone{unchecked}"
            yield f"{name}{of_ids} W={window} {way}", figure


# --- the kernel alone -----------------------------------------------------------------------------


def kernel_alone(query: Any, whole: pa.RecordBatch) -> float:
    """Events per second of the update, from symbols and keys that are there, listing nothing."""
    reader = run_of(query.program)
    prepared = reader._source._columns.prepare(whole)
    query.program.classify(
        *reader._source._columns.arguments(prepared.events), prepared.batch.symbols
    )
    positions: Any = None  # only messages need them
    brought: tuple[np.ndarray, np.ndarray] | None = None
    if isinstance(reader._update, KeyedUpdate):
        reader._update._keys.enter(prepared.events, 0, 0)
        joins = reader._update._keys.memory
        brought = joins.values, joins.known

    def once() -> None:
        run = run_of(query.program)
        run._output.limit[0] = 0
        if isinstance(run._update, KeyedUpdate) and brought is not None:
            keys, (values, known) = run._update._keys, brought
            keys.memory = keys.memory._replace(values=values, known=known)
        for _ in run._advance(Reading(prepared, positions)):
            pass

    once()
    return len(whole) / best_of(once, KERNEL_RUNS)


def kernel_figures(
    name: str, events: int, calibrated: Callable[[], float]
) -> Iterator[tuple[str, dict[str, float]]]:
    """The kernel alone, beside that of the formula without conditions, for each stream."""
    for ids in IDS:
        for window in WINDOWS:
            whole = stream(events, ids, window)
            reference = calibrated()
            rate = kernel_alone(compiled(QUERIES[name], f"{window} EVENTS"), whole)
            most = kernel_alone(compiled("A ; B ; C", f"{window} EVENTS"), whole)
            reference = max(reference, calibrated())
            yield f"{name} ids={ids} W={window} kernel alone", {
                "events_per_second": round(rate),
                "ratio": round(rate / reference, 5),
                "without_conditions_per_second": round(most),
                "without_conditions_ratio": round(most / reference, 5),
            }


# --- memory ---------------------------------------------------------------------------------------


def held_bytes(root: object) -> int:
    """The size of every array, table and container that can be reached from a run.

    Not what a query's module holds, which is there once for all runs.
    """
    total = 0
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        found = waiting.pop()
        while isinstance(found, np.ndarray) and isinstance(found.base, np.ndarray):
            found = found.base
        if id(found) in seen or isinstance(found, type) or callable(found):
            continue
        seen.add(id(found))
        if isinstance(found, np.ndarray | pa.Array | pa.RecordBatch | pa.Table):
            total += int(found.nbytes)
        elif isinstance(found, dict):
            total += sys.getsizeof(found)
            waiting += [*found.keys(), *found.values()]
        elif isinstance(found, list | tuple | set | frozenset):
            total += sys.getsizeof(found)
            waiting += found
        elif isinstance(found, str | bytes | int | float):
            total += sys.getsizeof(found)
        elif not type(found).__module__.startswith(("numba", "celc_generated")):
            waiting += [part for name, part in vars_of(found) if name not in ("_query", "_plan")]
    return total


def vars_of(found: object) -> Iterator[tuple[str, object]]:
    """The attributes of an object, also those in slots."""
    slots = [name for kind in type(found).__mro__ for name in getattr(kind, "__slots__", ())]
    for name in [*getattr(found, "__dict__", {}), *slots]:
        if hasattr(found, name):
            yield name, getattr(found, name)


def memory_of(formula: str, within: str, events: int, *, listed: bool) -> dict[str, int]:
    """The most that a run held after any of its batches, a tenth of the way and at the end."""
    run = run_of(compiled(formula, within).program)
    if not listed:
        run._output.limit[0] = 0
    peak = matches = 0
    figure: dict[str, int] = {}
    read = 0
    for batch in without_repetition(events):
        for found in run.push(batch):
            matches += len(found)
        read += len(batch)
        peak = max(peak, held_bytes(run))
        if read in (events // 10, events):
            figure |= {f"peak_bytes_after_{read}": peak}
    return figure | {
        "arena_bytes": run.arena_bytes,
        "stored_events": run.stored_events,
        "matches": matches,
    }


# --- all of it ------------------------------------------------------------------------------------


def uncorrelated(formula: str) -> str:
    """The formula with no comparison across labels: each attribute compared is not NULL."""
    comparison = re.compile(r"([a-z]+\.[a-z]+) [<=] ([a-z]+\.[a-z]+)")
    # The comparison inside a `+` may look at b alone: a there is what makes it one across labels.
    inner = formula.replace("b.id = a.id)+", "b.id IS NOT NULL)+")
    return comparison.sub(
        lambda sides: " AND ".join(f"{side} IS NOT NULL" for side in sides.groups()), inner
    )


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """All figures of a run; shows each as soon as it is there."""
    calibrated = calibrate(asked.events)
    queries = {
        name: uncorrelated(formula) if asked.uncorrelated else formula
        for name, formula in QUERIES.items()
        if not asked.names or any(part in name for part in asked.names)
    }
    kernels: dict[str, Any] = {}
    speed: dict[str, Any] = {}
    memory: dict[str, Any] = {}
    for name in () if asked.uncorrelated else filter(queries.__contains__, KERNELS):
        for key, figure in kernel_figures(name, asked.events, calibrated):
            kernels[key] = figure
            print(f"{key:44} {_kernel_line(figure)}", flush=True)
    for name, formula in queries.items():
        for key, figure in () if asked.kernels else figures_of(name, formula, asked, calibrated):
            speed[key] = figure
            print(f"{key:44} {_line(figure)}", flush=True)
    tied = {name: formula for name, formula in queries.items() if name not in UNTIED}
    for name, formula in tied.items() if asked.memory and not asked.kernels else ():
        for within in (f"{MEMORY_WINDOW} EVENTS", f"{MEMORY_WINDOW} [ts]"):
            key = f"{name} WITHIN {within}"
            memory[key] = memory_of(formula, within, asked.memory, listed=not asked.uncorrelated)
            print(f"{key:34} {memory[key]}", flush=True)
    return {
        "calibration": calibrated(),
        "kernels": kernels,
        "figures": speed,
        "memory": memory,
    }


def _kernel_line(figure: dict[str, float]) -> str:
    return (
        f"{figure['events_per_second'] / 1e6:9.3f} M events/s ({figure['ratio']:.5f}), "
        f"without conditions {figure['without_conditions_per_second'] / 1e6:.3f} "
        f"({figure['without_conditions_ratio']:.5f})"
    )


def _line(figure: dict[str, float]) -> str:
    return (
        f"{figure['events_per_second'] / 1e6:9.3f} M events/s ({figure['ratio']:.5f}), "
        f"{figure['matches_per_event']:,.2f} matches an event, {figure['events']:,} events"
    )


def main() -> None:
    """Run, show, and record if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--memory", type=int, default=10_000_000, help="events; 0 for none")
    parser.add_argument("--uncorrelated", action="store_true")
    parser.add_argument("--kernels", action="store_true", help="the kernel alone and nothing else")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    record = environment("benchmarks/correlation.py", asked.events) | measure(asked)
    if asked.record:
        folder = Path(__file__).parent / "records"
        with (folder / f"correlation-{record['date']}.jsonl").open("a") as out:
            out.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
