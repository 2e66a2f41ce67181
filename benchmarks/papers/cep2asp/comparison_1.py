"""The comparison: a sequence by joins of windows, by a join of intervals, by runs, and by celc.

The proof that we have maps patterns to joins within sliding windows, one for each unit of time, so
that a match is found in W − (eₙ − e₁) of them (section 1). Two ways to run such a join are set
beside SASE's runs and celc: window by window, where each window tests all its pairs, and as a join
of intervals, where each pair is tested once. Counted are pairs tested, and how often a match is
found. A match lasts less than W there, so WITHIN is W − 1 here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from functools import partial
from itertools import pairwise

import numpy as np
from baselines.runs import ANY, Events, Part, Pattern, found_by_runs
from common import matches_of
from streams import feeding, nodes_made

from papers.figures import Made, Panel, Points, Sentence, grows, least_seconds
from papers.sase.template import batch_of, compiled

WINDOWS = (10, 20, 40, 80)
LENGTHS = (2, 3, 4)


def stream(count: int) -> Events:
    """Equally likely types A to D, a unit of time apart; the types are those of the sequences."""
    types = np.array(list("ABCD"))[np.random.default_rng(6).integers(0, 4, count)]
    return Events(types, np.zeros(count), np.arange(count), np.zeros(count, np.int64))


def sequence(length: int, window: int) -> Pattern:
    """`SEQ(A, B, …)` of so many events in less than the window."""
    return Pattern(tuple(Part(kind) for kind in "ABCD"[:length]), window - 1, ANY)


def by_windows(events: Events, window: int) -> tuple[int, Counter[tuple[int, int]]]:
    """The pairs that are tested, and how often each match of SEQ(A, B) is found."""
    times = events.times.tolist()
    firsts, lasts = (np.flatnonzero(events.types == kind).tolist() for kind in "AB")
    tested, found = 0, Counter[tuple[int, int]]()
    for begin in range(times[0] - window + 1, times[-1] + 1):
        inside = [
            rows[bisect_right(rows, begin - 1) : bisect_right(rows, begin + window - 1)]
            for rows in (firsts, lasts)
        ]
        tested += len(inside[0]) * len(inside[1])
        found.update((a, b) for a in inside[0] for b in inside[1] if a < b)
    return tested, found


def by_intervals(events: Events, window: int) -> int:
    """The pairs that a join of intervals tests: those in which B comes less than W after A."""
    firsts, lasts = (np.flatnonzero(events.types == kind) for kind in "AB")
    upper = np.searchsorted(lasts, firsts + window)
    return int((upper - np.searchsorted(lasts, firsts, "right")).sum())


def make(small: bool) -> Made:
    """The comparison; small: 200 events."""
    events = stream(200 if small else 4_000)
    windows = WINDOWS[:3] if small else WINDOWS
    pairs: dict[str, list[tuple[float, float]]] = {}
    as_told, mean_times = True, []
    for window in windows:
        tested, found = by_windows(events, window)
        once = by_intervals(events, window)
        runs = found_by_runs(sequence(2, window), events, by_numba=not small, keep=True)
        if {(a, b) for ((a,), (b,)) in runs.matches} != set(found):
            raise RuntimeError("the join finds other matches than the runs")
        as_told &= all(times == window - (b - a) for (a, b), times in found.items())
        mean_times.append(sum(found.values()) / len(found))
        for name, count in (("windows", tested), ("intervals", once)):
            pairs.setdefault(name, []).append((window, count / len(events.types)))
        pairs.setdefault("runs", []).append((window, runs.counts.tests / len(events.types)))
    made, nodes = _by_length(events, windows[-1], small)
    sentences = (
        Sentence(
            "By sliding windows a match is found W − (eₙ − e₁) times, as theorem 1.1 has it",
            as_told,
            ", ".join(f"{times:.1f} times on average" for times in mean_times),
        ),
        grows("The pairs that windows test grow with W", pairs["windows"], 2),
        grows("The pairs that a join of intervals tests grow with W", pairs["intervals"], 1),
        Sentence(
            "One more event in the sequence doubles the runs; celc has a node for an event at most",
            all(later > 2 * one for (_, one), (_, later) in pairwise(made))
            and all(count <= len(events.types) for _, count in nodes),
            ", ".join(f"{n} events: {count:,.0f} runs" for n, count in made)
            + f"; at most {max(count for _, count in nodes):,} nodes",
        ),
    )
    lines = {name: tuple(points) for name, points in pairs.items()}
    of_length = {"runs": made, "celc's nodes": nodes}
    panels = [
        Panel("pairs tested, SEQ(A, B)", "W", "pairs for each event", lines, "xy"),
        Panel("length of the sequence", "events in it", "runs or nodes", of_length, "y"),
    ]
    if small:
        return Made(tuple(panels), sentences)
    batch, rates = batch_of(events), {}
    for length in LENGTHS:
        pattern = sequence(length, windows[-1])
        ways = {
            "runs": partial(found_by_runs, pattern, events),
            "celc": partial(matches_of, compiled(pattern), batch),
        }
        for name, one in least_seconds(ways, 3).items():
            rates.setdefault(name, []).append((length, len(events.types) / one))
    drawn = {name: tuple(points) for name, points in rates.items()}
    timed = Panel("throughput", "events in it", "events a CPU second", drawn, "y")
    return Made((*panels, timed), sentences)


def _by_length(events: Events, window: int, small: bool) -> tuple[Points, Points]:
    made, nodes = [], []
    for length in LENGTHS:
        pattern = sequence(length, window)
        counts = found_by_runs(pattern, events, by_numba=not small).counts
        run, _ = feeding(compiled(pattern), [batch_of(events)], listed=False)
        made.append((length, counts.runs))
        nodes.append((length, nodes_made(run)))
    return tuple(made), tuple(nodes)
