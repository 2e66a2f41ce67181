"""Bounds of piles: no match is lost by them, and what no condition admits is not added.

Random conditions between events, on streams much longer than their windows, against the general
engine, which keeps no bounds.

python tests/test_pile_bounds.py 0 500     # seeds 0 to 499
"""

from __future__ import annotations

import math
import random
import sys

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.engine.arena.nodes import NEXT_NODE
from celc_runtime.engine.update.pile_bounds import NO_BOUND
from celc_runtime.engine.values.spark_arithmetic import key_of_real, less_real
from engines import engines, interpreted, only_query

import celc
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options
from celc.plan.strategy import Checked, StraightLine

_DECLARATION = "CREATE STREAM S {{ {} }}\n".format(
    ", ".join(
        f"EVENT {name} {{ ts: LONG, key: INT, v: DOUBLE, n: LONG, f: FLOAT, day: DATE }}"
        for name in "ABC"
    )
)
_PATTERNS = {
    "A AS x ; B AS y": ("x", "y"),
    "A AS x ; B AS y ; C AS z": ("x", "y", "z"),
    "(A AS x)+": ("x",),
    "(A AS x)+ ; B AS y": ("x", "y"),
    "A AS y ; (B AS x)+": ("x", "y"),
    "(A AS x ; B AS y) OR (B AS y ; A AS x)": ("x", "y"),
    "(A AS x OR B AS x)+ ; C AS z": ("x", "z"),
    "(A AS x)+ ; (B AS y)+ ; C AS z": ("x", "y", "z"),
    "A AS x ; (B AS y OR (B AS y ; C AS z))": ("x", "y"),
    "(A AS x ; B AS y)+": ("x", "y"),
    "A AS x ; !B ; C AS z": ("x", "z"),
    "A AS x : B AS y": ("x", "y"),
    "(A AS x)+ ; A AS z": ("x", "z"),
}
_ATTRIBUTES = {"v": "+ 0.5", "n": "* 2", "f": "- 1", "day": ""}
_CLAUSES = (
    " WITHIN 12 EVENTS",
    " WITHIN 9 [ts]",
    " PARTITION BY key WITHIN 8 EVENTS",
    " PARTITION BY key WITHIN 10 [ts]",
    " PARTITION BY key WITHIN 9 [ts] CONSUME BY PARTITION",
    " WITHIN 10 EVENTS CONSUME BY ANY",
)


def query(rng: random.Random) -> str:
    """A query with one to three conditions that have an order."""
    pattern = rng.choice(list(_PATTERNS))
    labels = _PATTERNS[pattern]
    conditions = [_condition(rng, labels) for _ in range(rng.choice((1, 1, 2, 3)))]
    selected = rng.choice(("*", "*", "*", "MAX *", "LAST *", "NXT *", "FIRST *", "LONGEST *"))
    clause = rng.choice(_CLAUSES)
    if selected != "*":
        clause = clause.partition(" CONSUME")[0]
    return (
        f"{_DECLARATION}SELECT {selected} FROM S WHERE ({pattern})\n"
        f"FILTER {' AND '.join(conditions)}{clause}"
    )


def _condition(rng: random.Random, labels: tuple[str, ...]) -> str:
    attribute = rng.choice(list(_ATTRIBUTES))
    sides = rng.sample(labels, 2) if len(labels) > 1 and rng.random() < 0.7 else None
    if sides is None:
        label = rng.choice(labels)
        sides = [f"{label}.{attribute}", f"PREV({label}.{attribute})"]
        rng.shuffle(sides)
    else:
        sides = [f"{label}.{attribute}" for label in sides]
    left, right = sides
    if rng.random() < 0.4 and _ATTRIBUTES[attribute]:
        right = f"{right} {_ATTRIBUTES[attribute]}"
    return f"{left} {rng.choice(('<', '<=', '>', '>='))} {right}"


def _events(rng: random.Random, count: int, *, by_key: bool) -> pa.Table:
    random = np.random.default_rng(rng.randrange(10**6))
    # Values that rise and fall slowly: a bound that is never forgotten would admit everything.
    drift = np.cumsum(random.normal(0, 0.4, count))
    reals = np.round(drift + random.normal(0, 1, count), 1)
    reals[random.random(count) < 0.03] = math.nan
    reals[random.random(count) < 0.03] = random.choice([0.0, -0.0, math.inf, -math.inf])
    known = random.random(count) > rng.choice((0, 0.1))
    keys = np.zeros(count, np.int32)
    if by_key:
        sizes = random.integers(1, 60, count)
        keys = np.repeat(np.arange(count, dtype=np.int32), sizes)[:count]
    return pa.table(
        {
            "type": np.array(list("ABC"))[random.integers(0, 3, count)],
            "ts": np.cumsum(random.integers(0, 3, count)),
            "key": keys,
            "v": pa.array(reals, mask=~known),
            "n": pa.array(np.round(drift).astype(np.int64), mask=~known),
            "f": pa.array(reals.astype(np.float32), mask=~known),
            "day": pa.array(np.round(drift).astype(np.int32), pa.date32(), mask=~known),
        }
    )


def check(seed: int) -> tuple[bool, int]:
    """Compare one query on one stream; whether it has bounds, and its matches."""
    rng = random.Random(seed)
    text = query(rng)
    with interpreted():
        found = engines(text, Options())
    chosen, general = only_query(found["chosen"]), only_query(found["general"])
    update = chosen.program.update
    has_bounds = bool(getattr(update, "bounds", 0))
    table = _events(rng, 240, by_key="PARTITION" in text)
    expected = sorted(map(repr, general.match_table(table).to_pylist()))
    batches = []
    start = 0
    while start < len(table):
        size = rng.choice((1, 30, 400))
        batches += table.slice(start, size).combine_chunks().to_batches()
        start += size
    answer = pa.Table.from_batches(chosen.match_arrow(batches), chosen.output_schema)
    assert sorted(map(repr, answer.to_pylist())) == expected, f"seed {seed}:\n{text}"
    return has_bounds, len(expected)


@pytest.mark.parametrize("seeds", [12, pytest.param(60, marks=pytest.mark.long)])
def test_random_conditions_lose_no_match(seeds: int) -> None:
    found = [check(seed) for seed in range(seeds)]
    with_bounds = [matches for has_bounds, matches in found if has_bounds]
    assert len(with_bounds) >= 25 * seeds // 60
    assert sum(matches > 0 for matches in with_bounds) >= 15 * seeds // 60


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 4000, 500))
def test_many_random_conditions_lose_no_match(first: int) -> None:
    for seed in range(first, first + 500):
        check(seed)


_FALLING = "SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.v < y.v WITHIN 10 EVENTS"


def test_what_no_condition_admits_is_not_added() -> None:
    """No node is made for an event that is not beyond the bound; and a bound is forgotten."""
    matcher = celc.compile(_DECLARATION + _FALLING)
    (found,) = matcher.queries.values()
    run = found.run()

    def nodes_of(types: str, values: list[float]) -> int:
        before = int(run._memory.counters[NEXT_NODE])
        count = len(types)
        zeros = np.zeros(count, np.int32)
        table = pa.table(
            {
                "type": list(types),
                "v": values,
                "ts": zeros.astype(np.int64),
                "key": zeros,
                "n": zeros.astype(np.int64),
                "f": zeros.astype(np.float32),
                "day": pa.array(zeros, pa.date32()),
            }
        )
        for batch in table.to_batches():
            list(run.push(batch))
        return int(run._memory.counters[NEXT_NODE]) - before

    assert nodes_of("A" * 50, [5.0] * 50) == 50
    assert nodes_of("B" * 50, [5.0] * 50) == 0, "equal values satisfy no `<`"
    assert nodes_of("AB", [5.0, 6.0]) == 2
    assert nodes_of("A", [1.0]) == 1
    assert nodes_of("B" * 5, [2.0] * 5) == 5, "the low value is inside the window"
    # Two windows later the low value is forgotten, while events go on.
    nodes_of("AB" * 15, [9.0] * 30)
    assert nodes_of("B" * 5, [2.0] * 5) == 0


def _bounds_of(formula: str) -> int:
    compilation = compile_source(Source("q.cel", _DECLARATION + formula), Options())
    (stages,) = compilation.queries
    program = stages.program
    if not isinstance(program.update, StraightLine) or program.update.bounds is None:
        return 0
    assert isinstance(program.listing, Checked)
    return len(program.update.bounds.kept)


@pytest.mark.parametrize(
    ("where", "count"),
    {
        "(A AS x ; B AS y) FILTER x.v < y.v": 1,
        "(A AS x ; B AS y) FILTER x.v < y.v AND x.n > y.n": 2,
        "(A AS x ; B AS y ; C AS z) FILTER x.v < z.v": 2,
        "(A AS x ; B AS y ; C AS z) FILTER x.v < y.v AND y.v < z.v": 2,
        "(A AS x)+ FILTER x.v > PREV(x.v)": 1,
        "(A AS y ; (B AS x)+) FILTER x.v > PREV(x.v)": 1,
        "((A AS x OR B AS w) ; C AS z) FILTER x.v < z.v": 0,
        "(A AS x ; B AS y) FILTER x.v = y.v + 1": 0,
        "(A AS x ; B AS y) FILTER x.v != y.v": 0,
        "(A AS x ; B AS y ; C AS z) FILTER x.v + y.v < z.v": 0,
        "(A AS x ; B AS y) FILTER x.v < y.v OR x.n < y.n": 0,
        "((A AS x ; B AS y) FILTER x.v < y.v)+": 0,
        "(A AS x : B AS y) FILTER x.v < y.v": 0,
        # Not more than code that people read.
        "(A AS x ; B AS y) FILTER " + " AND ".join(f"x.v + {n} < y.v" for n in range(30)): 24,
    }.items(),
)
def test_conditions_that_give_bounds(where: str, count: int) -> None:
    assert _bounds_of(f"SELECT * FROM S WHERE {where} WITHIN 10 EVENTS") == count


def test_keys_of_real_numbers_are_in_the_order_of_spark() -> None:
    numbers = [-math.inf, -1.5, -1e-320, -0.0, 0.0, 5e-324, 2.0, 1e300, math.inf, math.nan]
    for left in numbers:
        for right in numbers:
            assert (key_of_real(left) < key_of_real(right)) == bool(less_real(left, right))
    assert key_of_real(-0.0) == key_of_real(0.0)
    assert key_of_real(math.nan) < NO_BOUND


if __name__ == "__main__":
    first, end = map(int, sys.argv[1:])
    answers = [check(seed) for seed in range(first, end)]
    print(sum(bounds for bounds, _ in answers), sum(matches > 0 for _, matches in answers))
