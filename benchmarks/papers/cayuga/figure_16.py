"""Figure 16: throughput (a) against the number of rules, (b) the Zipf parameter, (c) selectivity.

Counted are the states of merged automata, and what an event asks of them by the indexes; (a) is
timed too, by celc with rules as rows. The rules of (b) and (c) are of the template Filter.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import cayuga
import numpy as np
from celc_runtime.rules.rows import rows_of

import celc
from papers.cayuga.rules import KINDS, counts_of, merged_rules
from papers.figures import Made, Panel, Points, Sentence, grows, least_seconds, ratios

RULES = (10_000, 40_000)
COUNTED = (2_500, 5_000, 10_000)
ZIPF = (0.8, 1.0, 1.2, 1.4)
SELECTIVITIES = (0.3, 0.5, 0.7, 0.9)


def make(small: bool) -> Made:
    """The figure; small: hundreds of rules."""
    numbers, events = ((500, 1_000, 2_000), 400) if small else (COUNTED, 2_000)
    tables = {n: cayuga.rules_of(np.random.default_rng(n), n) for n in numbers}
    asked: dict[str, Points] = {}
    found: dict[str, Points] = {}
    shares = []
    for name, kind in KINDS.items():
        counted = {n: counts_of(merged_rules(t, kind), events) for n, t in tables.items()}
        asked[name] = tuple((n, one.asked / events) for n, one in counted.items())
        found[name] = tuple((n, one.found / events) for n, one in counted.items())
        if name == "Filter":
            shares = [one.asked / max(1, one.active) for one in counted.values()]
    step = 3 if small else 1  # the first and the last one, or all
    levels = {z: _states(numbers[-1], zipf_1=z) for z in ZIPF[::step]}
    of_first = [one[0] for one in levels.values()]
    satisfied = tuple(
        (s, _satisfied(numbers[-1 if small else 0], events, s)) for s in SELECTIVITIES[::step]
    )
    sentences = [
        grows("(a) The edges that an event satisfies, and its cost, grow", found["Filter"], 1),
        Sentence(
            "(a) Filter asks less than a tenth of the active states, by the index AN",
            max(shares) < 0.1,
            ", ".join(f"{one:.3f}" for one in shares),
        ),
        Sentence(
            "(a) NonDeterministic asks more than Filter, whatever the number of rules",
            min(ratios(asked["NonDeterministic"], asked["Filter"])) > 1,
            ", ".join(f"{x:.2f}" for x in ratios(asked["NonDeterministic"], asked["Filter"])),
        ),
        Sentence(
            "(b) The higher the Zipf parameter, the fewer states are at level 1",
            of_first == sorted(of_first, reverse=True) and of_first[0] > of_first[-1],
            ", ".join(f"{z}: {one:,}" for z, one in zip(levels, of_first, strict=True)),
        ),
        grows("(c) The edges that an event satisfies grow with selectivity", satisfied, 2),
    ]
    panels = [
        Panel("(a) active states that an event asks", "rules", "states", asked, "xy"),
        Panel(
            "(b) states at level 1",
            "Zipf parameter",
            "states",
            {"Filter": _pairs(levels, of_first)},
        ),
        Panel("(c) edges satisfied", "selectivity", "edges an event", {"Filter": satisfied}),
    ]
    if small:
        return Made(tuple(panels), tuple(sentences))
    timed, said, least = _timed()
    states = _states(100_000)
    ours = {
        "400,000 rules, events a second": f"85,000; with 40,000 rules {least:,.0f}",
        "states of 100,000 rules at levels 1, 2, 3": ", ".join(f"{one:,}" for one in states),
        "states at level 1, Zipf 0.8 and 1.4": f"{of_first[0]:,}, {of_first[-1]:,} (10,000 rules)",
        "active states asked by an event": f"a share of {max(shares):.3f} at most (10,000 rules)",
    }
    return Made((*timed, *panels), (*sentences, said), ours)


def _pairs(xs: Any, ys: Any) -> Points:
    return tuple(zip(xs, ys, strict=True))


def _states(count: int, **parameters: float) -> list[int]:
    table = cayuga.rules_of(np.random.default_rng(5), count, **parameters)
    return counts_of(merged_rules(table, KINDS["LinearStat"]), 0).nodes


def _satisfied(count: int, events: int, selectivity: float) -> float:
    table = cayuga.rules_of(np.random.default_rng(5), count, selectivity=selectivity)
    return counts_of(merged_rules(table, KINDS["LinearStat"]), events).found / events


def _timed() -> tuple[list[Panel], Sentence, float]:
    """Events a CPU second of celc: of each template."""
    events = cayuga.events_of(np.random.default_rng(7), 5_000)
    lines: dict[str, Points] = {}
    for name in KINDS:
        text = cayuga.queries()[name]
        query = celc.compile(text, order_by="tick", tiebreak="number").query
        lines[name] = tuple((n, _rate(query, events, _rules(n))) for n in RULES)
    least = min(points[-1][1] for points in lines.values())
    said = Sentence(
        "(a) celc reads more than 1,000 events a second with 40,000 rules of each template",
        least > 1_000,
        f"{least:,.0f}",
        timed=True,
    )
    panel = Panel("(a) celc", "rules", "events a CPU second", lines, "xy")
    return [panel], said, least


def _rules(count: int) -> Any:
    return cayuga.rules_of(np.random.default_rng(count), count)


def _rate(query: Any, events: Any, rules: Any) -> float:
    rows = rows_of(query.name, query.plan.source.parameters, rules)
    run = partial(cayuga.matches_of_rows, query, rows, events)
    return len(events) / least_seconds({"": run}, 2)[""]
