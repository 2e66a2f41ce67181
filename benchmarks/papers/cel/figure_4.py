"""Figure 4, the stress experiment: a stream whose last event ends all matches at once.

Q1 and Q2 over 200 to 2,000 events. The paper draws the processing time of both queries, the time to
enumerate the matches of Q2, and the memory. What it explains them with is counted here: the partial
matches that SASE keeps (runs alive before the last event), beside the nodes of celc's graph.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from statistics import mean
from typing import Any

import numpy as np
from baselines.runs import found_by_runs
from common import matches_of

from papers.cel.queries import batch_of, compiled, events_of, nodes_of, pattern
from papers.figures import Made, Panel, Points, Sentence, grows, least_seconds, ratios

LENGTHS = (200, 400, 600, 1_000, 1_400, 2_000)
SHORT = {"Q1": (60, 90, 120), "Q2": (24, 36, 48)}
LONGEST = {"Q1": 1_000, "Q2": 600}
"""The longest streams that are read by runs: of Q2 there are twenty million at 2,000 events."""


def stream(name: str, length: int, seed: int = 0) -> np.ndarray:
    """As many of each type in random order, and one that ends all matches. X: it comes before."""
    names = {"Q1": "ABX", "Q2": "ABCX"}[name]
    types = np.resize(list(names), length - 1)
    last = {"Q1": "C", "Q2": "D"}[name]
    return np.append(np.random.default_rng(seed).permutation(types), last)


def make(small: bool) -> Made:
    """The figure; small: up to 180 events."""
    seeds = range(3 if small else 1)
    runs: dict[str, Points] = {}
    nodes: dict[str, Points] = {}
    for name in ("Q1", "Q2"):
        query = compiled(name)
        alive, made = [], []
        for length in SHORT[name] if small else LENGTHS:
            streams = [stream(name, length, seed) for seed in seeds]
            made.append((length, mean(nodes_of(query, types)[0] for types in streams)))
            if length <= LONGEST[name]:
                counted = [_runs_of(name, query, types, small) for types in streams]
                alive.append((length, mean(counted)))
        runs[name], nodes[name] = tuple(alive), tuple(made)
    times = ratios(runs["Q2"], nodes["Q2"][: len(runs["Q2"])])
    sentences = [
        grows("SASE's partial matches of Q1 grow", runs["Q1"], 2),
        grows("celc's nodes of Q1 grow", nodes["Q1"], 1),
        grows("celc's nodes of Q2 grow", nodes["Q2"], 1),
        Sentence(
            "For Q2 SASE keeps more than celc makes, and the more times the longer the stream",
            times[0] > 1 and all(more > one for one, more in pairwise(times)),
            ", ".join(f"{one:,.0f}" for one in times),
        ),
    ]
    if not small:  # of few events all shorter partial matches count as much
        sentences.insert(1, grows("SASE's partial matches of Q2 grow", runs["Q2"], 3))
    panels = [
        Panel(
            "what is kept before the last event",
            "events",
            "runs or nodes",
            {f"{n}, SASE's runs": runs[n] for n in runs}
            | {f"{n}, celc's nodes": nodes[n] for n in nodes},
            "xy",
        )
    ]
    if small:
        return Made(tuple(panels), tuple(sentences))
    timed, ours = _timed()
    return Made((*panels, timed), tuple(sentences), ours)


def _runs_of(name: str, query: Any, types: np.ndarray, small: bool) -> int:
    """The most runs that SASE has at one time."""
    found = found_by_runs(pattern(name), events_of(types), by_numba=not small).counts
    matches = matches_of(query, batch_of(types))
    if found.matches != matches:
        raise RuntimeError(f"runs find {found.matches} matches, celc {matches}")
    return found.alive


def _timed() -> tuple[Panel, dict[str, str]]:
    lines: dict[str, Points] = {}
    matches: dict[str, int] = {}
    for name in ("Q1", "Q2"):
        query, points = compiled(name), []
        for length in LENGTHS:
            batch = batch_of(stream(name, length))
            matches[name] = matches_of(query, batch)
            points.append((length, least_seconds({name: partial(matches_of, query, batch)})[name]))
        lines[name] = tuple(points)
    seconds = lines["Q2"][-1][1]
    run = nodes_of(compiled("Q2"), stream("Q2", LENGTHS[-1]))[1]
    ours = {
        "Q1, matches of 2,000 events": f"{matches['Q1']:,}",
        "Q2, matches of 2,000 events": f"{matches['Q2']:,}",
        "Q2, CEL's throughput": f"{LENGTHS[-1] / seconds:,.0f} events a second, matches included",
        "Q2, SASE's time": "not measured: the runs are counted, up to 600 events",
        "Q2, time to enumerate": f"{seconds:.3f} s, reading included",
        "Q2, CEL's memory": f"{run.arena_bytes / 2**20:.1f} MiB of nodes",
        "Q2, SASE's memory": "not measured",
    }
    named = {f"{name}, all matches": points for name, points in lines.items()}
    return Panel("celc: reading, and writing all matches", "events", "CPU s", named, "xy"), ours
