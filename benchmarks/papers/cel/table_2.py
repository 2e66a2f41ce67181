"""Table 2, consumption: after each event that ends matches, all partial matches are dropped.

Q1 to Q6 over equally likely types. The paper gives seconds, and the matches for each time that
something was consumed. Counted here are the tests of SASE's runs and the nodes of celc's graph.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from baselines.runs import found_by_runs
from common import matches_of
from streams import QUERIES, feeding

from papers.cel.queries import (
    SEQUENCES,
    batch_of,
    compiled,
    events_of,
    nodes_of,
    pattern,
    types_drawn,
)
from papers.figures import Made, Panel, Sentence, least_seconds

CONSUMES = "CONSUME BY ANY"


def make(small: bool) -> Made:
    """The table; small: of 400 events."""
    events, counted = (400, 400) if small else (200_000, 5_000)
    tests: dict[str, float] = {}
    nodes: dict[str, float] = {}
    outputs: dict[str, float] = {}
    queries: dict[str, Any] = {}
    for name, (_, types) in QUERIES.items():
        queries[name] = query = compiled(name, clauses=CONSUMES)
        stream = types_drawn(types, counted)
        nodes[name] = nodes_of(query, stream)[0] / counted
        matches = matches_of(query, batch_of(stream))
        ends = len(query.match_table({"type": stream}).column("end_pos").unique())
        outputs[name] = matches / ends
        if name in SEQUENCES:
            by_runs = found_by_runs(
                pattern(name, consumes=True), events_of(stream), by_numba=not small
            ).counts
            if by_runs.matches != matches:
                raise RuntimeError(f"{name}: runs find {by_runs.matches} matches, celc {matches}")
            tests[name] = by_runs.tests / counted
    order = sorted(tests, key=tests.__getitem__)
    sentences = [
        Sentence(
            "SASE's tests for an event: Q1 least, and Q5 more than five times any other",
            order[0] == "Q1" and tests["Q5"] > 5 * max(tests[one] for one in order[:-1]),
            ", ".join(f"{name} {tests[name]:.1f}" for name in order),
        ),
        Sentence(
            "celc makes at most two nodes for an event, whatever the query",
            max(nodes.values()) <= 2,
            ", ".join(f"{name} {count:.2f}" for name, count in nodes.items()),
        ),
    ]
    numbers = {name: float(name[1]) for name in QUERIES}
    panel = Panel(
        "tests of runs, and nodes of the graph, for each event",
        "query",
        "a count for each event",
        {
            "SASE's runs: tests": tuple((numbers[n], tests[n]) for n in tests),
            "celc: nodes": tuple((numbers[n], nodes[n]) for n in nodes),
        },
        "y",
    )
    if small:
        return Made((panel,), tuple(sentences))
    ways: dict[str, Any] = {}
    for name, (_, types) in QUERIES.items():
        batch = batch_of(types_drawn(types, events))
        ways[name] = partial(feeding, queries[name], [batch], listed=False)
    seconds = least_seconds(ways, 3)
    spread = max(seconds.values()) / min(seconds.values())
    sentences.append(
        Sentence(
            "celc's slowest query takes at most three times as long as its fastest one",
            spread <= 3,
            f"{spread:.2f} times",
            timed=True,
        )
    )
    listed = ", ".join(f"{name} {one:.3f}" for name, one in seconds.items())
    ours = {
        "CEL, seconds": f"{listed} (200,000 events, not listed)",
        "SASE, seconds": "tests an event: "
        + ", ".join(f"{name} {one:.1f}" for name, one in tests.items()),
        "EsperTech, seconds": "not run",
        "matches for each time of consumption": ", ".join(
            f"{name} {one:.1f}" for name, one in outputs.items()
        ),
    }
    timed = Panel(
        "celc, 200,000 events, matches not listed",
        "query",
        "CPU s",
        {"celc": tuple((numbers[name], one) for name, one in seconds.items())},
    )
    return Made((panel, timed), tuple(sentences), ours)
