"""What a user would write by hand instead of `A ; B ; C` in a window, beside celc.

All read the same table of times and types and return the same matches, which is checked before
anything is timed. The loops are written as one would write them who knows what is slow: a deque of
recent events in Python; in Numba two lists of positions and a search that stops at the window's
border. Each figure is from an Arrow table to the positions and times of each match's events: celc's
are an Arrow table with a column of lists for each label, those by hand two arrays. *The kernel into
buffers* is celc without Arrow, from columns that are prepared to positions.

The self-join in Spark is measured by `self_joins.py`: events in buckets of the window's size, each
joined with its own bucket and the one before.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from common import Figure, Settings, Task, quotient, rate
from numba import njit
from streams import Reading, compiled, random_types

EVENTS = 1_000_000
WINDOW = 50
TYPES = "ABCDEFGHIJ"
QUERY = "A AS a ; B AS b ; C AS c"


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part."""
    table = stream(EVENTS)
    query = query_of(WINDOW)
    ways = {
        "celc, match_table": partial(query.match_table, table),
        "Numba by hand": partial(by_numba, table, WINDOW),
        "Python by hand, a deque": partial(by_python, table, WINDOW),
    }
    expected = positions_of(ways["celc, match_table"]())
    for way in list(ways)[1:]:
        check(way, expected, ways[way]()[0])
    reading = Reading(query, table.combine_chunks().to_batches()[0], listed=True)
    tasks = [Task(way, run) for way, run in ways.items()]
    tasks.append(Task("celc, the kernel into buffers", reading.update, reading.rewind))
    timings = settings.repeated(tasks, repetitions=settings.fewer, clock=time.process_time)
    celc, *others = ways
    context: dict[str, Any] = {"events": EVENTS, "matches": len(expected), "window": WINDOW}
    for way in timings:
        figure = rate(f"A;B;C, {way}", "events/s", EVENTS, timings[way], **context)
        yield replace(figure, compared="by hand" not in way)
    for way in others:
        name = f"A;B;C, celc's speed beside {way}"
        rows = timings[way].rows, timings[celc].rows
        figure = quotient(name, *rows, higher_is_better=True, **context)
        yield replace(figure, compared=False)


def stream(events: int) -> pa.Table:
    """Equally likely types, one event a second on average, several at one time now and then."""
    steps = np.random.default_rng(10).integers(0, 3, events)
    types = random_types(TYPES, events).dictionary_decode()
    return pa.table({"type": types, "ts": pa.array(np.cumsum(steps))})


def query_of(window: int) -> Any:
    """The query in celc."""
    return compiled(QUERY, TYPES, f"{window} [ts]", "ts: LONG")


def check(way: str, expected: np.ndarray, found: np.ndarray) -> None:
    """Raises RuntimeError unless two ways found the same matches."""
    if not np.array_equal(in_order(expected), in_order(found)):
        raise RuntimeError(
            f"{way} found {len(found):,} matches, celc {len(expected):,}: not the same ones"
        )


def in_order(matches: np.ndarray) -> np.ndarray:
    """Rows of positions, sorted."""
    found: np.ndarray = matches[np.lexsort(matches.T[::-1])]
    return found


def positions_of(matches: pa.Table) -> np.ndarray:
    """int64[matches, 3]: the positions of a, b and c in celc's answer."""
    columns = [
        np.asarray(pc.struct_field(pc.list_flatten(matches[label].combine_chunks()), "pos"))
        for label in ("a", "b", "c")
    ]
    return np.stack(columns, axis=1)


# --- Python ---------------------------------------------------------------------------------------


def by_python(table: pa.Table, window: int) -> tuple[np.ndarray, np.ndarray]:
    """A deque of the events in the window, as (position, time)."""
    firsts: deque[tuple[int, int]] = deque()
    seconds: deque[tuple[int, int]] = deque()
    found: list[tuple[int, int, int]] = []
    times = table["ts"].to_pylist()
    for position, kind in enumerate(table["type"].to_pylist()):
        if kind == "A":
            firsts.append((position, times[position]))
        elif kind == "B":
            seconds.append((position, times[position]))
        elif kind == "C":
            oldest = times[position] - window
            while firsts and firsts[0][1] < oldest:
                firsts.popleft()
            while seconds and seconds[0][1] < oldest:
                seconds.popleft()
            for second, _ in seconds:
                for first, _ in firsts:
                    if first > second:
                        break
                    found.append((first, second, position))
    positions = np.array(found, np.int64).reshape(-1, 3)
    return positions, np.array(times)[positions]


# --- Numba ----------------------------------------------------------------------------------------


def by_numba(table: pa.Table, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Loops over the positions of A and of B, which are kept in two growing arrays."""
    types = table["type"].combine_chunks().dictionary_encode()
    names = types.dictionary.to_pylist()
    wanted = np.array([names.index(name) if name in names else -1 for name in "ABC"])
    codes, times = np.asarray(types.indices), np.asarray(table["ts"].combine_chunks())
    matches = np.empty((1 << 16, 3), np.int64)
    firsts, seconds = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
    state = np.zeros(6, np.int64)
    while _loops(codes, times, wanted, window, firsts, seconds, state, matches):
        matches = np.concatenate([matches, np.empty_like(matches)])
    positions = matches[: state[_FOUND]]
    return positions, times[positions]


_ROW, _FIRSTS, _SECONDS, _OLDEST_FIRST, _OLDEST_SECOND, _FOUND = range(6)


@njit(nogil=True)
def _loops(codes, times, wanted, window, firsts, seconds, state, matches):  # type: ignore[no-untyped-def]
    """Read on from `state`; true where there may be no room for the matches of the next event."""
    row, n_firsts, n_seconds = state[_ROW], state[_FIRSTS], state[_SECONDS]
    first, second, found = state[_OLDEST_FIRST], state[_OLDEST_SECOND], state[_FOUND]
    full = False
    while row < codes.shape[0]:
        code = codes[row]
        if code == wanted[0]:
            firsts[n_firsts] = row
            n_firsts += 1
        elif code == wanted[1]:
            seconds[n_seconds] = row
            n_seconds += 1
        elif code == wanted[2]:
            oldest = times[row] - window
            while first < n_firsts and times[firsts[first]] < oldest:
                first += 1
            while second < n_seconds and times[seconds[second]] < oldest:
                second += 1
            if found + (n_firsts - first) * (n_seconds - second) > matches.shape[0]:
                full = True
                break
            for b in range(second, n_seconds):
                for a in range(first, n_firsts):
                    if firsts[a] > seconds[b]:
                        break
                    matches[found, 0] = firsts[a]
                    matches[found, 1] = seconds[b]
                    matches[found, 2] = row
                    found += 1
        row += 1
    state[_ROW], state[_FIRSTS], state[_SECONDS] = row, n_firsts, n_seconds
    state[_OLDEST_FIRST], state[_OLDEST_SECOND], state[_FOUND] = first, second, found
    return full
