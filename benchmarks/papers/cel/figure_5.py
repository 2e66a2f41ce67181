"""Figure 5, selection strategies: at most one match for each event, over two streams.

The selectors are NXT and LAST; SASE has skip till next match. S₁ has equally likely types. The
shares of S₂ are lost in the text that we have, so here each type is half as likely as the one
before: many matches begin and few end.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
from baselines.runs import NEXT, found_by_runs
from common import matches_of
from streams import QUERIES

from papers.cel.queries import SEQUENCES, batch_of, compiled, events_of, pattern, types_drawn
from papers.figures import Made, Panel, Sentence, least_seconds

STREAMS = ("uniform", "skewed")
SELECTORS = ("NXT", "LAST")


def stream(name: str, kind: str, count: int) -> np.ndarray:
    """Types of a query, equally likely ones or each half as likely as the one before."""
    _, types = QUERIES[name]
    if kind == "uniform":
        return types_drawn(types, count)
    weights = [2.0**-place for place in range(len(types))]
    return types_drawn(types, count, tuple(weight / sum(weights) for weight in weights))


def ends_of(query: Any, types: np.ndarray) -> Counter[int]:
    """How many matches end at each position."""
    return Counter(query.match_table({"type": types}).column("end_pos").to_pylist())


def make(small: bool) -> Made:
    """The figure; small: two queries."""
    counted = 20
    most = 0
    ends_are_same, taken_by_runs, missed = True, 0, 0
    for kind in STREAMS[-1:] if small else STREAMS:
        for name in ("Q1", "Q4") if small else ("Q1", "Q2", "Q3", "Q4"):
            types = stream(name, kind, counted)
            ends = {select: ends_of(compiled(name, f"{select} *"), types) for select in SELECTORS}
            every = set(ends_of(compiled(name), types))
            most = max(most, *(max(one.values(), default=0) for one in ends.values()))
            ends_are_same &= all(set(one) == every for one in ends.values())
            if name in SEQUENCES:
                found = found_by_runs(
                    pattern(name, NEXT), events_of(types), by_numba=False, keep=True
                )
                of_runs = {max(rows[-1]) for rows in found.matches}
                taken_by_runs += len(of_runs)
                missed += len(every - of_runs)
    sentences = [
        Sentence(
            "NXT and LAST have at most one match for each event",
            most == 1,
            f"at most {most}",
        ),
        Sentence(
            "They have one at every event that ends a match at all",
            ends_are_same,
            "the same ends" if ends_are_same else "other ends",
        ),
        Sentence(
            "Skip till next match of SASE misses ends: it is greedy, as the paper says",
            missed > 0,
            f"{missed} missed, {taken_by_runs} found",
        ),
    ]
    if small:
        return Made((), tuple(sentences))
    panels = []
    events = 50_000
    for kind in STREAMS:
        ways: dict[tuple[str, str], Any] = {}
        for name in ("Q1", "Q2", "Q4"):
            batch = batch_of(stream(name, kind, events))
            for select in SELECTORS:
                query = compiled(name, f"{select} *", "WITHIN 100 EVENTS")
                ways[name, select] = partial(matches_of, query, batch)
        seconds = least_seconds({f"{n} {s}": way for (n, s), way in ways.items()}, 3)
        rates = {pair: events / seconds[" ".join(pair)] for pair in ways}
        panels.append(
            Panel(
                f"S: {kind} types, W = 100 events",
                "query",
                "events a second",
                {
                    select: tuple((float(n[1]), r) for (n, s), r in rates.items() if s == select)
                    for select in SELECTORS
                },
                "y",
            )
        )
    return Made(tuple(panels), tuple(sentences))
