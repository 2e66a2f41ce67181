"""What many rules cost: FOR EACH with tables of 100 to 400,000 rows.

    python benchmarks/many.py [--events N] [--record]

Events are quotes of 10,000 symbols. Three shapes: `pair`, an event with a low and a later one with
a high price of the rule's symbol; `rise`, three or more of the rule's symbol, each higher than the
one before by the rule's factor; `range`, one event whose price lies between two bounds, as the
price of one event in ten does, however many rules there are. In `pair` and `rise` an event concerns
as many rules as there are for its symbol: 10 of 100,000, and 40 of 400,000. `set_up_seconds` is
the time of a call with one event, which is what reading the table and its index cost;
`events_per_second` are of a call with all events, from an Arrow table to matches.

`ten of a symbol` says whether the cost grows with the rules that an event concerns, or with all:
there are as many symbols as ten rules for each make, so that an event concerns ten rules, however
many there are; of a hundred rules, whose symbols are ten, most of the time would go into matches.
`nanoseconds_per_event` is without setting up.

Every figure is CPU time of one thread, the best of several runs; ratios to the calibration kernel
of `common.py`, timed in the same run, are what to compare between machines.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from common import best_of, calibrate
from rates import run_alone

import celc

RULES = (100, 10_000, 100_000, 400_000)
SYMBOLS = 10_000

DECLARATION = """CREATE STREAM Quotes { EVENT Q { ts: LONG, symbol: STRING, price: DOUBLE } }
PARAMETERS rule { id: LONG, symbol: STRING, low: DOUBLE, high: DOUBLE, factor: DOUBLE }
"""
SHAPES = {
    "pair": "SELECT a, b FROM Quotes FOR EACH rule WHERE (Q AS a ; Q AS b) "
    "FILTER a.symbol = rule.symbol AND b.symbol = rule.symbol "
    "AND a.price < rule.low AND b.price > rule.high WITHIN 100000 [ts]",
    "rise": "SELECT x FROM Quotes FOR EACH rule WHERE (Q AS x)+ "
    "FILTER x.symbol = rule.symbol AND x.price > PREV(x.price) * rule.factor AND COUNT(x) >= 3 "
    "WITHIN 100000 [ts]",
    "range": "SELECT a FROM Quotes FOR EACH rule WHERE Q AS a "
    "FILTER a.price >= rule.low AND a.price <= rule.high",
}


def names_of(symbols: int) -> np.ndarray:
    """This number of names of symbols."""
    return np.array([f"S{number:05d}" for number in range(symbols)])


def quotes(random: np.random.Generator, count: int, symbols: int = SYMBOLS) -> pa.Table:
    """Events of random symbols, with prices around 100."""
    return pa.table(
        {
            "ts": np.arange(count),
            "symbol": pa.array(names_of(symbols)[random.integers(0, symbols, count)]),
            "price": 100 * np.exp(random.normal(0, 0.02, count)),
        }
    )


def rules(
    random: np.random.Generator, shape: str, count: int, symbols: int | None = None
) -> pa.Table:
    """Rules of which few have matches, so that these do not count for much; of random symbols, or
    as many of each of some."""
    numbers = np.arange(count) % symbols if symbols else random.integers(0, SYMBOLS, count)
    low = 96 + random.uniform(-0.1, 0.1, count)
    high = 104 + random.uniform(-0.1, 0.1, count)
    if shape == "range":
        low = random.uniform(90, 110, count)
        high = low + 2 / count
    return pa.table(
        {
            "id": np.arange(count),
            "symbol": pa.array(names_of(symbols or SYMBOLS)[numbers]),
            "low": low,
            "high": high,
            "factor": random.uniform(1.05, 1.06, count),
        }
    )


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(events)
    random = np.random.default_rng(7)
    table = quotes(random, events)
    figures: dict[str, Any] = {}
    for shape, text in SHAPES.items():
        query = next(iter(celc.compile(DECLARATION + text, order_by="ts").queries.values()))
        query.match_table(table.slice(0, 10_000), rule=rules(random, shape, 100))
        for count in RULES:
            given = rules(random, shape, count)
            set_up = best_of(partial(query.match_table, table.slice(0, 1), rule=given), 2)
            whole = best_of(partial(query.match_table, table, rule=given), 2)
            found = {
                "set_up_seconds": set_up,
                "events_per_second": events / whole,
                "matches": query.match_table(table, rule=given).num_rows,
                "ratio": events / whole / calibrated(),
            }
            figures[f"{shape}, {count:,} rules"] = found
            print(shape, count, {k: round(v, 3) for k, v in found.items()}, flush=True)
        if shape != "range":
            figures |= {
                f"{shape}, {count:,} rules, ten of a symbol": _of_ten(query, shape, count, events)
                for count in RULES[1:]
            }
    return {"calibration": calibrated(), "figures": figures}


def _of_ten(query: Any, shape: str, count: int, events: int) -> dict[str, float]:
    """The figures where an event concerns ten rules of `count`."""
    random, symbols = np.random.default_rng(8), count // 10
    table, given = quotes(random, events, symbols), rules(random, shape, count, symbols)
    set_up = best_of(partial(query.match_table, table.slice(0, 1), rule=given), 2)
    whole = best_of(partial(query.match_table, table, rule=given), 2)
    found = {
        "set_up_seconds": set_up,
        "nanoseconds_per_event": (whole - set_up) / events * 1e9,
        "matches": query.match_table(table, rule=given).num_rows,
    }
    print(shape, count, "ten of a symbol", {k: round(v, 3) for k, v in found.items()}, flush=True)
    return found


if __name__ == "__main__":
    run_alone("many", __doc__, 1_000_000, measure)
