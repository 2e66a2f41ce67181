"""The rules and events of the technical benchmark (`benchmarks/cayuga.py`), for merged automata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cayuga
import numpy as np
import pyarrow as pa
from baselines.merged import ANY, FILTER, LINEAR, Counts, Merged, Rule, Step

KINDS = {"LinearStat": LINEAR, "Filter": FILTER, "NonDeterministic": ANY}


def merged_rules(table: pa.Table, kind: int) -> list[Rule]:
    """Rules of a table as `cayuga.rules_of` makes it."""
    columns = {name: table[name].to_pylist() for name in table.column_names}
    return [_rule(columns, number, kind) for number in range(len(table))]


def _rule(columns: dict[str, list[Any]], number: int, kind: int) -> Rule:
    primary = next(
        (f"d{n}", columns[f"p{n}"][number])
        for n in cayuga.ATTRIBUTES
        if columns[f"p{n}"][number] is not None
    )
    steps = []
    for step in cayuga.STEPS:
        equals = tuple(
            (f"d{n}", value)
            for n in cayuga.ATTRIBUTES
            if (value := columns[f"{step}d{n}"][number]) is not None
        )
        ranges = tuple(
            (f"c{n}", low, columns[f"{step}high{n}"][number])
            for n in cayuga.ATTRIBUTES
            if (low := columns[f"{step}low{n}"][number]) > -np.inf
        )
        steps.append(Step(equals, ranges))
    return Rule(number, tuple(steps), kind, cayuga.TICKS, primary)


def counts_of(rules: Iterable[Rule], events: int, **switches: bool) -> Counts:
    """The work of merged automata over random events; `switches` are those of `Merged`."""
    run = Merged(rules, **switches)
    for event in events_of(events):
        run.push(event["tick"], event)
    return run.counts


def events_of(count: int) -> list[dict[str, Any]]:
    """The events as dictionaries."""
    found: list[dict[str, Any]] = cayuga.events_of(np.random.default_rng(7), count).to_pylist()
    return found
