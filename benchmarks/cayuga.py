"""What a thousand rules cost that ask for three events: the technical benchmark of Cayuga.

    python benchmarks/cayuga.py [--events N] [--record]

Source: A. Demers, J. Gehrke, M. Hong, M. Riedewald, W. White, *A General Algebra and Implementation
for Monitoring Event Streams* (Cornell University, 2005), section 5.1 and Table 2. Events have four
discrete attributes of 100 values and four continuous ones, all uniform. A rule has three steps.
Each step asks for two discrete values and two ranges that 0.7 of all values lie in; attributes,
values and ranges are drawn by Zipf distributions (1, 1 and 0.8 for the values of the three steps).
One discrete attribute, the primary one, is asked for in all three steps, with one value. The
templates of the paper are

- `LinearStat`: three consecutive events (`:`);
- `LinearDyn`: besides, the second and the third are compared with the first;
- `Filter`: each step is the next event with the primary value (`; FIRST`), all within 20 ticks;
- `NonDeterministic`: any three events within 20 ticks (`;`);
- `NonDeterministicAgg`: the same, with the sums of the continuous attributes.

There is one query FOR EACH rule, and rules are rows: NULL where a step asks for no value of a
discrete attribute, and the whole range where it asks for no range of a continuous one. The paper
does not say how far apart its 25 ranges are; here they begin at equal distances.

`events_per_second` are of a run over prepared rules. `set_up_seconds` is the time of a call with
one event: reading the rules and making their index. `of_100_rules` is the rate as a share of that
with 100 rules.
`index_bytes` and `table_bytes` are what a rule takes in memory. Every figure is CPU time of one
thread, the best of several runs.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from celc_runtime.program import Rows
from celc_runtime.rules.courses import Follower
from celc_runtime.rules.index import index_of
from celc_runtime.rules.rows import rows_of
from celc_runtime.rules.run import ForEachRun
from celc_runtime.run.feeding import read_all
from common import best_of, calibrate
from rates import run_alone

import celc

RULES = (100, 10_000, 100_000, 200_000, 400_000)
GOALS = {100_000: 0.1, 400_000: 0.05}
"""The least share of the speed with 100 rules."""

STEPS = "abc"
ATTRIBUTES = range(1, 5)
VALUES = 100
RANGES, SELECTIVITY = 25, 0.7
OF_STEPS = (1.0, 1.0, 0.8)
"""The parameters of the Zipf distributions of values and ranges."""

TICKS, OF_A_TICK = 20, 100
"""The duration, and the events of a tick. The paper does not say the latter. Its counts of active
nodes (6,000 and more) and of matches of `Filter` need thousands of events in 20 ticks."""

PAPER = {
    "events_per_second": "well above 1,000 with 400,000 queries, on a 3 GHz Pentium 4 (5.1.1)",
    "Filter, matches": "41 with 100,000 queries, 171 with 400,000, of 100,000 events (5.1.1)",
}


# --- queries --------------------------------------------------------------------------------------


def _declaration() -> str:
    discrete = ", ".join(f"d{n}: INT" for n in ATTRIBUTES)
    continuous = ", ".join(f"c{n}: DOUBLE" for n in ATTRIBUTES)
    asked = [f"p{n}: INT" for n in ATTRIBUTES]
    for step in STEPS:
        asked += [f"{step}d{n}: INT" for n in ATTRIBUTES]
        asked += [f"{step}low{n}: DOUBLE, {step}high{n}: DOUBLE" for n in ATTRIBUTES]
    return (
        f"CREATE STREAM S {{ EVENT E {{ tick: LONG, number: LONG, {discrete}, {continuous} }} }}\n"
        f"PARAMETERS rule {{ id: LONG, {', '.join(asked)} }}\n"
    )


def _static(step: str) -> str:
    """θ of a step."""
    discrete = [f"(rule.{step}d{n} IS NULL OR {step}.d{n} = rule.{step}d{n})" for n in ATTRIBUTES]
    ranges = [f"{step}.c{n} BETWEEN rule.{step}low{n} AND rule.{step}high{n}" for n in ATTRIBUTES]
    return " AND ".join(discrete + ranges)


def _primary(step: str) -> str:
    """The primary predicate, of an event of a step."""
    return " AND ".join(f"(rule.p{n} IS NULL OR {step}.d{n} = rule.p{n})" for n in ATTRIBUTES)


def queries() -> dict[str, str]:
    """The text of each template's query."""
    statics = " AND ".join(map(_static, STEPS))
    dynamic = "b.c1 >= 1.01 * a.c1 AND c.c1 >= 1.01 * a.c1"
    first = f"((E AS a ; FIRST (E AS b FILTER {_primary('b')})) ; "
    first += f"FIRST (E AS c FILTER {_primary('c')}))"
    sums = ", ".join(f"a.c{n} + b.c{n} + c.c{n} AS sum_{n}" for n in ATTRIBUTES)
    within = f"WITHIN {TICKS} [tick]"
    head = "FROM S FOR EACH rule WHERE"
    texts = {
        "LinearStat": f"SELECT a, b, c, rule[id] {head} (E AS a : E AS b : E AS c)",
        "LinearDyn": f"SELECT a, b, c, rule[id] {head} (E AS a : E AS b : E AS c)",
        "Filter": f"SELECT a, b, c, rule[id] {head} {first}",
        "NonDeterministic": f"SELECT a, b, c, rule[id] {head} (E AS a ; E AS b ; E AS c)",
        "NonDeterministicAgg": f"SELECT a, b, c, {sums}, rule[id] {head} "
        "(E AS a ; E AS b ; E AS c)",
    }
    more = {"LinearStat": "", "LinearDyn": f" AND {dynamic}"}
    return {
        name: f"{_declaration()}{text} FILTER {statics}{more.get(name, ' ' + within)}"
        for name, text in texts.items()
    }


# --- events and rules -----------------------------------------------------------------------------


def events_of(random: np.random.Generator, count: int) -> pa.Table:
    """Uniform events."""
    columns: dict[str, Any] = {"tick": np.arange(count) // OF_A_TICK, "number": np.arange(count)}
    columns |= {f"d{n}": random.integers(0, VALUES, count, np.int32) for n in ATTRIBUTES}
    columns |= {f"c{n}": random.random(count) for n in ATTRIBUTES}
    return pa.table(columns)


def _zipf(random: np.random.Generator, size: int, parameter: float, count: int) -> np.ndarray:
    """Numbers from 0 on, k with a weight of 1 / (k + 1) ** parameter."""
    weights = 1 / np.arange(1, size + 1) ** parameter
    return random.choice(size, count, p=weights / weights.sum())


def _two(random: np.random.Generator, parameter: float, count: int) -> np.ndarray:
    """int[count, 2], two different attributes each."""
    first = _zipf(random, 4, parameter, count)
    return np.stack([first, _another(random, parameter, first)], axis=1)


def _another(random: np.random.Generator, parameter: float, first: np.ndarray) -> np.ndarray:
    """int[count], for each attribute another one."""
    found = _zipf(random, 4, parameter, len(first))
    while (same := found == first).any():
        found[same] = _zipf(random, 4, parameter, int(same.sum()))
    return found


def rules_of(
    random: np.random.Generator,
    count: int,
    *,
    zipf_1: float = OF_STEPS[0],
    selectivity: float = SELECTIVITY,
) -> pa.Table:
    """Rules of three steps with the paper's parameters; two of them vary in its figure 16."""
    primary, value = _zipf(random, 4, zipf_1, count), _zipf(random, VALUES, zipf_1, count)
    columns: dict[str, Any] = {"id": np.arange(count)}
    columns |= {f"p{n}": _asked(value, primary == n - 1) for n in ATTRIBUTES}
    for step, parameter in zip(STEPS, (zipf_1, *OF_STEPS[1:]), strict=True):
        other, of_other = _another(random, zipf_1, primary), _zipf(random, VALUES, parameter, count)
        ranged = _two(random, zipf_1, count)
        begins = [_zipf(random, RANGES, parameter, count) for _ in range(2)]
        for n in ATTRIBUTES:
            is_primary, is_other = primary == n - 1, other == n - 1
            columns[f"{step}d{n}"] = _asked(
                np.where(is_primary, value, of_other), is_primary | is_other
            )
            low, high = np.full(count, -np.inf), np.full(count, np.inf)
            for place, begin in enumerate(begins):
                here = ranged[:, place] == n - 1
                low[here] = begin[here] * (1 - selectivity) / (RANGES - 1)
                high[here] = low[here] + selectivity
            columns[f"{step}low{n}"], columns[f"{step}high{n}"] = low, high
    return pa.table(columns)


def _asked(values: np.ndarray, where: np.ndarray) -> pa.Array:
    return pa.array(values.astype(np.int32), mask=~where)


# --- measuring ------------------------------------------------------------------------------------


def _bytes(query: Any, rules: pa.Table) -> float:
    """The bytes of the index for each rule."""
    parameters = query.plan.source.parameters
    rows = rows_of(query.name, parameters, rules)
    tracemalloc.start()
    if parameters.course is None:
        kept: Any = index_of(rows, parameters.concerns)
    else:
        follower = Follower(
            rows, parameters.course, query.plan.source.declared_types, follows_all=False
        )
        kept = follower, index_of(rows, parameters.course.begins)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept is not None
    return taken / len(rules)


def matches_of_rows(query: Any, rows: Rows, events: pa.Table) -> int:
    """The number of matches of rules whose index is there."""
    found = read_all(ForEachRun(replace(query.program, rows=rows)), events.to_batches())
    return sum(map(len, found))


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(events)
    table = events_of(np.random.default_rng(7), events)
    figures: dict[str, Any] = {}
    for name, text in queries().items():
        query = next(iter(celc.compile(text, order_by="tick", tiebreak="number").queries.values()))
        warm = rules_of(np.random.default_rng(1), 10_000)
        query.match_table(table.slice(0, 20_000), rule=warm)
        base = 0.0
        for count in RULES:
            rules = rules_of(np.random.default_rng(count), count)
            set_up = best_of(partial(query.match_table, table.slice(0, 1), rule=rules), 2)
            prepared = rows_of(query.name, query.plan.source.parameters, rules)
            matches = matches_of_rows(query, prepared, table)  # makes the index
            rate = events / best_of(partial(matches_of_rows, query, prepared, table), 3)
            base = base or rate
            found = {
                "events_per_second": rate,
                "of_100_rules": rate / base,
                "set_up_seconds": set_up,
                "index_bytes": _bytes(query, rules),
                "table_bytes": rules.nbytes / count,
                "matches": matches,
                "ratio": rate / calibrated(),
            }
            figures[f"{name}, {count:,} rules"] = found
            goal = f"goal {GOALS[count]}" if count in GOALS else ""
            print(name, count, {k: round(v, 3) for k, v in found.items()}, goal, flush=True)
    for what, told in PAPER.items():
        print(f"the paper: {what}: {told}")
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("cayuga", __doc__, 200_000, measure)
