"""What queries over queries cost: a chain beside its queries alone, and beside one formula.

    python benchmarks/chains.py [--events N] [--record]

`chain`: three queries over quotes of one symbol, each reading the one before, beside the sum of
each query alone on the table of its own events; the goal is 1.5. `double top`: quotes of 100
symbols, a rise, a fall and a rise to about the same height, written as one formula and as queries
over queries, which give the same matches.

Every time is CPU time of one thread, the best of several runs; ratios to the calibration kernel of
`common.py`, timed in the same run, are what to compare between machines.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.chain.columns import as_run, levels_of, types_of_chain
from celc_runtime.chain.rows import declared_rows, event_table, rows_for
from celc_runtime.rules.any_query import matches_of_table
from common import best_of, calibrate
from rates import run_alone

import celc

STREAM = "CREATE STREAM Quotes { EVENT Q { sym: LONG, price: DOUBLE, ts: LONG } }"
CHAIN = f"""{STREAM}
QUERY rises: SELECT x.price AS low, y.price AS high FROM Quotes
WHERE (Q AS x : Q AS y) FILTER y.price > x.price + 4
QUERY pairs: SELECT r.low AS low, s.high AS high FROM rises
WHERE (rises AS r ; rises AS s) FILTER s.low > r.low WITHIN 20 [ts]
QUERY tops: SELECT p.low AS low, q.high AS high FROM pairs
WHERE (pairs AS p ; pairs AS q) FILTER q.low > p.low WITHIN 30 [ts]
"""
LEVELS = f"""{STREAM}
QUERY ups: SELECT x.price AS low, y.price AS top FROM Quotes
WHERE (Q AS x : Q AS y) FILTER y.price > x.price + 3 PARTITION BY sym
QUERY downs: SELECT x.price AS top, y.price AS low FROM Quotes
WHERE (Q AS x : Q AS y) FILTER y.price < x.price - 3 PARTITION BY sym
QUERY doubletop: SELECT a.top AS one, b.top AS two FROM ups, downs
WHERE (ups AS a ; downs AS d ; ups AS b) FILTER b.top = a.top PARTITION BY sym WITHIN 3000 [ts]
"""
FORMULA = f"""{STREAM}
QUERY doubletop: SELECT t.price AS one, u.price AS two FROM Quotes
WHERE ((Q AS s : Q AS t) ; (Q AS v : Q AS w) ; (Q AS r : Q AS u))
FILTER t.price > s.price + 3 AND w.price < v.price - 3 AND u.price > r.price + 3
AND u.price = t.price PARTITION BY sym WITHIN 3000 [ts]
"""


def quotes(events: int, symbols: int) -> pa.Table:
    """Quotes at rising times, of symbols drawn at random, with prices from 0 to 9."""
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "type": pa.array(["Q"] * events).dictionary_encode(),
            "sym": rng.integers(0, symbols, events),
            "price": rng.integers(0, 10, events).astype(np.float64),
            "ts": np.arange(events),
        }
    )


def alone(query: Any, table: pa.Table) -> dict[str, tuple[Any, pa.Table]]:
    """Each query of a chain with the table of its own events."""
    program = query.program
    answers: dict[str, pa.Table] = {}
    found: dict[str, tuple[Any, pa.Table]] = {}
    for name, level in levels_of(program).items():
        if level.plan.source.reads:
            run, rows = as_run(level), event_table(level, declared_rows(level, table), answers)
        else:
            run, rows = level, rows_for(level, table, types_of_chain(program))
        answers[name] = matches_of_table(run, rows, FirstMatches(None))
        found[name] = run, rows
    return found


def chain_and_sum(events: int) -> dict[str, Any]:
    """A chain of three, and the sum of its queries."""
    query = celc.compile(CHAIN, order_by="ts").queries["tops"]
    table = quotes(events, 1)
    matches = len(query.match_table(table))
    whole = best_of(partial(query.match_table, table))
    parts = 0.0
    sizes = {}
    for name, (run, rows) in alone(query, table).items():
        sizes[f"events of {name}"] = len(rows)
        parts += best_of(partial(matches_of_table, run, rows, FirstMatches(None)))
    return {"matches": matches, **sizes, "to the sum": whole / parts, "seconds": whole}


def double_top(events: int) -> dict[str, Any]:
    """Both ways to write a double top."""
    table = quotes(events, 100)
    figures: dict[str, Any] = {}
    for name, text in (("levels", LEVELS), ("formula", FORMULA)):
        query = celc.compile(text, order_by="ts").queries["doubletop"]
        figures[f"matches by {name}"] = len(query.match_table(table))
        figures[f"seconds by {name}"] = best_of(partial(query.match_table, table))
    figures["levels to formula"] = figures["seconds by levels"] / figures["seconds by formula"]
    return figures


def measure(events: int) -> dict[str, Any]:
    """All figures of a run, with ratios to the calibration kernel."""
    calibrated = calibrate(events)
    figures = {"chain": chain_and_sum(events), "double top": double_top(events)}
    for name, found in figures.items():
        print(name, {key: round(value, 3) for key, value in found.items()}, flush=True)
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("chains", __doc__, 1_000_000, measure)
