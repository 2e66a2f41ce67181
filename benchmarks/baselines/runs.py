"""SASE's way: an automaton with a buffer (NFAᵇ), and one run for each partial match.

Source: J. Agrawal, Y. Diao, D. Gyllstrom, N. Immerman, *Efficient Pattern Matching over Event
Streams* (SIGMOD 2008), as sections 2.2 and 4 of H. Zhang, Y. Diao, N. Immerman, *On Complexity and
Optimization of Expensive Queries in Complex Event Processing* (SIGMOD 2014) tell it. A part of a
pattern is one event or some (Kleene+). A run begins at each event that fits the first part. At a
later event it may *take* one more event into its present part, *go on* to the next part, or
*ignore* the event, which the strategy allows or not:

- `ANY` (skip till any match): a run ignores each event, and a clone of it does what can be done;
- `NEXT` (skip till next match): a run ignores the events with which it can do nothing;
- `STRICT` (contiguity): a run that can do nothing with an event ends. With a key this is partition
  contiguity, because events of other keys do not count.

A buffer is shared: an event of a run points to the one before it, which the clones have as well.

`counts` are what the paper speaks of. Nothing is indexed, and every run tests every event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

STRICT, NEXT, ANY = range(3)
"""Which events a run may ignore."""

NOTHING, FIRST, BEFORE, MOST, MEAN = range(5)
"""What the value of an event is compared with: the first event of the run; the last one so far;
the greatest or the mean value of the events so far of a part with several events, or of the last
such part. The first event of a part with several events is compared with `FIRST` only."""


@dataclass(frozen=True)
class Part:
    """A part of a pattern: events of a type whose value is in [low, high).

    `above`: whether it must be greater than or equal to what it is compared with, else less.
    """

    type: str
    several: bool = False
    low: float = -math.inf
    high: float = math.inf
    against: int = NOTHING
    above: bool = True


@dataclass(frozen=True)
class Pattern:
    """A sequence of parts within a time. `keyed`: all events have one key.

    `consumes`: after an event that ended a match, all runs are dropped. Raises ValueError where a
    part is compared with events that are not there.
    """

    parts: tuple[Part, ...]
    window: int
    strategy: int = ANY
    keyed: bool = False
    consumes: bool = False

    def __post_init__(self) -> None:
        first, *later = self.parts
        if first.against in (FIRST, BEFORE, MOST, MEAN) and not first.several:
            raise ValueError("no event is before the first one")
        seen = first.several
        for part in later:
            seen = seen or part.several
            if part.against in (MOST, MEAN) and not seen:
                raise ValueError("MOST and MEAN are those of a part with several events")


class Events(NamedTuple):
    """A stream: columns of one length."""

    types: np.ndarray  # str
    values: np.ndarray  # float64
    times: np.ndarray  # int64, never falling
    keys: np.ndarray  # int64


class Counts(NamedTuple):
    """The work of a pass.

    `begun`: runs that began with an event. `cloned`: runs that were made of another one, those that
    ended in a match included. `tests`: events that were tested against a part. `nodes`: events
    written into buffers. `alive`: the most runs at one time. `matches`, and `shown`, the events of
    all matches. `ends`: events that ended matches.
    """

    begun: int
    cloned: int
    tests: int
    nodes: int
    alive: int
    matches: int
    shown: int
    ends: int

    @property
    def runs(self) -> int:
        """All runs that were made."""
        return self.begun + self.cloned


Match = tuple[tuple[int, ...], ...]
"""For each part the rows of its events."""


@dataclass(frozen=True)
class Found:
    """What a pass has found: the matches, where they were kept."""

    counts: Counts
    matches: list[Match]


def found_by_runs(
    pattern: Pattern, events: Events, *, by_numba: bool = True, keep: bool = False
) -> Found:
    """All matches of a pattern, by runs.

    `by_numba`: whether the loop is compiled; Python reads short streams sooner. `keep`: whether the
    matches are returned, or counted only.
    """
    read = _kernel(by_numba)
    parts = np.array(
        [(-1, part.several, part.against, part.above) for part in pattern.parts], np.int64
    )
    names = {name: code for code, name in enumerate(sorted({p.type for p in pattern.parts}))}
    parts[:, 0] = [names[part.type] for part in pattern.parts]
    bounds = np.array([(part.low, part.high) for part in pattern.parts])
    types = np.array([names.get(name, -1) for name in events.types.tolist()], np.int64)
    asked = np.array([pattern.strategy, pattern.window, pattern.keyed, pattern.consumes, keep])
    state = np.zeros(_STATE, np.int64)
    state[_NODE] = 1  # 0 is no node
    arrays = [np.empty((64, 4), np.int64), np.empty((64, 5)), np.empty((64, 4), np.int64)]
    ended = np.empty(64, np.int64)
    columns = types, events.values, events.times, events.keys
    while full := read(*columns, parts, bounds, asked.astype(np.int64), state, *arrays, ended):
        if full == 1:
            arrays[0], arrays[1] = _doubled(arrays[0]), _doubled(arrays[1])
        elif full == 2:
            arrays[2] = _doubled(arrays[2])
        else:
            ended = _doubled(ended)
    state[_NODE] -= 1
    places = _BEGUN, _CLONED, _TESTS, _NODE, _MOST_ALIVE, _MATCHES, _SHOWN, _ENDS
    counts = Counts(*map(int, state[list(places)].tolist()))
    kept = ended[: counts.matches].tolist() if keep else []
    return Found(counts, [_match(arrays[2], node, len(pattern.parts)) for node in kept])


def _doubled(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, np.empty_like(array)])


def _match(nodes: np.ndarray, node: int, parts: int) -> Match:
    rows: list[list[int]] = [[] for _ in range(parts)]
    while node:
        row, node, part, _ = nodes[node].tolist()
        rows[part].append(row)
    return tuple(tuple(reversed(part)) for part in rows)


# --- the loop -------------------------------------------------------------------------------------

# Places in `state`: the next row, the runs alive, the next node, then the counts.
_NODE, _BEGUN, _CLONED, _TESTS, _MOST_ALIVE, _MATCHES, _SHOWN, _ENDS, _STATE = range(2, 11)
# A run: its part, its last node, when it began, its key; and numbers: the first value, the last
# one, then the greatest one, the sum and the count of the last part with several events.


@cache
def _kernel(by_numba: bool) -> Callable[..., int]:
    jit: Any = njit(nogil=True) if by_numba else (lambda function: function)

    @jit
    def fits(code, value, part, parts, bounds, numbers, run, takes):  # type: ignore[no-untyped-def]
        """Whether an event fits a part of a run. `takes`: the run has events of that part."""
        if code != parts[part, 0] or not bounds[part, 0] <= value < bounds[part, 1]:
            return False
        against = parts[part, 2]
        if against == 0 or (parts[part, 1] == 1 and not takes and against != 1):
            return True
        if against == 1:
            other = numbers[run, 0]
        elif against == 2:
            other = numbers[run, 1]
        elif against == 3:
            other = numbers[run, 2]
        else:
            other = numbers[run, 3] / numbers[run, 4]
        return value >= other if parts[part, 3] else value < other

    @jit
    def advance(run, new, part, takes, node, value, several, runs, numbers):  # type: ignore[no-untyped-def]
        """Write the run with one more event as a new one."""
        runs[new, 0], runs[new, 1] = part, node
        runs[new, 2], runs[new, 3] = runs[run, 2], runs[run, 3]
        numbers[new, 0], numbers[new, 1] = numbers[run, 0], value
        for place in range(2, 5):
            numbers[new, place] = numbers[run, place]
        if takes:
            numbers[new, 2] = max(numbers[new, 2], value)
            numbers[new, 3] += value
            numbers[new, 4] += 1
        elif several:
            numbers[new, 2], numbers[new, 3], numbers[new, 4] = value, value, 1

    @jit
    def read(types, values, times, keys, parts, bounds, asked, state, runs, numbers, nodes, ended):  # type: ignore[no-untyped-def]
        """Read on from `state`. Returns 0 at the end, else which array is too small for the next
        event: 1 the runs, 2 the nodes, 3 the matches."""
        strategy, window, keyed, consumes, keeps = asked
        last = parts.shape[0] - 1
        for row in range(state[0], types.shape[0]):
            state[0] = row
            alive = state[1]
            if 3 * alive + 1 > runs.shape[0]:
                return 1
            if state[2] + 2 * alive + 1 > nodes.shape[0]:
                return 2
            if keeps and state[7] + 2 * alive + 1 > ended.shape[0]:
                return 3
            code, value, kept, new, matches = types[row], values[row], 0, alive, state[7]
            for run in range(alive):
                if times[row] - runs[run, 2] > window:
                    continue
                acts, ignores = 0, strategy == 2
                if not keyed or keys[row] == runs[run, 3]:
                    for part in range(runs[run, 0], min(runs[run, 0] + 1, last) + 1):
                        takes = part == runs[run, 0]
                        if takes and parts[part, 1] == 0:
                            continue
                        state[5] += 1
                        if not fits(code, value, part, parts, bounds, numbers, run, takes):
                            continue
                        acts += 1
                        node = state[2]
                        state[2] += 1
                        nodes[node, 0], nodes[node, 1] = row, runs[run, 1]
                        nodes[node, 2], nodes[node, 3] = part, nodes[runs[run, 1], 3] + 1
                        if part == last:
                            if keeps:
                                ended[state[7]] = node
                            state[7] += 1
                            state[8] += nodes[node, 3]
                        if part < last or parts[part, 1] == 1:
                            several = parts[part, 1] == 1
                            advance(run, new, part, takes, node, value, several, runs, numbers)
                            new += 1
                    ignores = ignores or (strategy == 1 and acts == 0)
                else:
                    ignores = True
                state[4] += acts if strategy == 2 else max(0, acts - 1)
                if ignores:
                    if kept < run:
                        runs[kept] = runs[run]
                        numbers[kept] = numbers[run]
                    kept += 1
            state[5] += 1
            if fits(code, value, 0, parts, bounds, numbers, 0, False):
                state[3] += 1
                node = state[2]
                state[2] += 1
                nodes[node, 0], nodes[node, 1], nodes[node, 2], nodes[node, 3] = row, 0, 0, 1
                if last == 0:
                    if keeps:
                        ended[state[7]] = node
                    state[7] += 1
                    state[8] += 1
                if last > 0 or parts[0, 1] == 1:
                    runs[new, 0], runs[new, 1], runs[new, 2] = 0, node, times[row]
                    runs[new, 3] = keys[row]
                    numbers[new, 0], numbers[new, 1], numbers[new, 2] = value, value, value
                    numbers[new, 3], numbers[new, 4] = value, 1
                    new += 1
            for born in range(alive, new):
                if kept < born:
                    runs[kept] = runs[born]
                    numbers[kept] = numbers[born]
                kept += 1
            if state[7] > matches:
                state[9] += 1
                if consumes:
                    kept = 0
            state[1] = kept
            state[6] = max(state[6], kept)
        state[0] = types.shape[0]
        return 0

    return read  # type: ignore[no-any-return]


# --- the same query in CEL ------------------------------------------------------------------------


def stream_of(types: Sequence[str]) -> str:
    """The declaration of a stream of `Events`."""
    declared = ", ".join(f"EVENT {name} {{ id: LONG, v: DOUBLE, ts: LONG }}" for name in types)
    return f"CREATE STREAM S {{ {declared} }}\n"


def query_of(pattern: Pattern) -> str:
    """The query in CEL, whose labels p0, p1, … are the parts.

    Under NEXT a loop of FIRST in the middle may end after each round. So the whole one is chosen by
    MAX, and nothing that fits the next part is in between. Raises ValueError where that does not
    say it: types that come twice, and a next part that depends on the loop.
    """
    steps = [_step(pattern, number) for number in range(len(pattern.parts))]
    text = steps[0]
    for step in steps[1:]:
        text = f"{text} {':' if pattern.strategy == STRICT else ';'} {step}"
    chooses = pattern.strategy == NEXT and any(part.several for part in pattern.parts[:-1])
    if chooses and len({part.type for part in pattern.parts}) < len(pattern.parts):
        raise ValueError("MAX would compare the matches of several runs")
    shown = ", ".join(f"p{number}" for number in range(len(pattern.parts)))
    inside = () if pattern.strategy == NEXT else tuple(_conditions(pattern))
    where = f"({text})" + (f" FILTER {' AND '.join(inside)}" if inside else "")
    clauses = ("PARTITION BY id " if pattern.keyed else "") + f"WITHIN {pattern.window} [ts]"
    clauses += " CONSUME BY ANY" if pattern.consumes else ""
    return f"SELECT {'MAX ' if chooses else ''}{shown} FROM S WHERE {where} {clauses}"


def _step(pattern: Pattern, number: int) -> str:
    part = pattern.parts[number]
    event = f"{part.type} AS p{number}"
    if pattern.strategy != NEXT:
        plus = ":+" if pattern.strategy == STRICT else "+"
        return f"({event}){plus}" if part.several else event
    conditions = " AND ".join(_of_part(pattern, number))
    chosen = f"({event} FILTER {conditions})" if conditions else event
    if not number:
        if part.several:
            raise ValueError("a first part with several events takes no FIRST")
        return chosen
    if not part.several:
        return f"FIRST {chosen}"
    if number + 1 == len(pattern.parts):
        return f"(FIRST {chosen})+"
    after = pattern.parts[number + 1]
    if after.several or after.against not in (NOTHING, FIRST):
        raise ValueError("what ends a loop of FIRST is one event that does not depend on the loop")
    ends = " AND ".join(_of_part(pattern, number + 1, "z"))
    absent = f"({after.type} AS z FILTER {ends})" if ends else after.type
    return f"FIRST {chosen} ; ((!{absent} ; FIRST {chosen})+)?"


def _conditions(pattern: Pattern) -> Iterator[str]:
    for number in range(len(pattern.parts)):
        yield from _of_part(pattern, number)


def _of_part(pattern: Pattern, number: int, name: str = "") -> Iterator[str]:
    part, name = pattern.parts[number], name or f"p{number}"
    if part.low > -math.inf:
        yield f"{name}.v >= {part.low}"
    if part.high < math.inf:
        yield f"{name}.v < {part.high}"
    if part.against == NOTHING:
        return
    sign = ">=" if part.above else "<"
    yield f"{name}.v {sign} {_compared(pattern, number, name)}"


def _compared(pattern: Pattern, number: int, name: str) -> str:
    part = pattern.parts[number]
    if part.against == FIRST:
        return "FIRST(p0.v)" if pattern.parts[0].several else "p0.v"
    if part.several:
        called = {BEFORE: "PREV({})", MOST: "MAX(PRIOR {})", MEAN: "AVG(PRIOR {})"}[part.against]
        return called.format(f"{name}.v")
    if part.against == BEFORE:
        before = f"p{number - 1}.v"
        return f"LAST({before})" if pattern.parts[number - 1].several else before
    last = max(n for n in range(number) if pattern.parts[n].several)
    return f"{'MAX' if part.against == MOST else 'AVG'}(p{last}.v)"
