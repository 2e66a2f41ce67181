"""What many queries of one module cost: a thousand queries of twenty shapes.

    python benchmarks/many_files.py [--events N] [--queries N] [--record]

Events are trades and quotes of 5,000 symbols, with texts as they come from files. Queries of one
shape differ in symbols, bounds and texts. Each step is a process of its own, in CPU seconds.
`first`: the file is compiled to a module, and all queries are run once over 1,000 events, which
Python reads; `cold`: the same by machine code, with none kept from before; `warm`: the module is
imported, and all queries are run once over 1,000 events, by the machine code that was kept.
`one_pass_seconds` is `match_all_table` over all events, `alone_seconds` the sum of `match_table` of
the queries, of which one in twenty is run and counts for twenty; both in one process, one after the
other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import environment

DECLARATION = """CREATE STREAM Market {
  EVENT Trade { symbol: STRING, venue: STRING, price: DOUBLE, size: LONG, ts: TIMESTAMP },
  EVENT Quote { symbol: STRING, venue: STRING, price: DOUBLE, size: LONG, ts: TIMESTAMP }
}
"""
_OF_SYMBOL = "a.symbol = '{s}' AND b.symbol = '{s}'"
_SHAPES = (
    # Patterns, and their conditions besides those on the symbol.
    ("Trade AS a ; Trade AS b", "b.price > {high}"),
    ("Trade AS a ; Quote AS b", "a.price < {low} AND b.price > {high}"),
    ("Quote AS a ; Trade AS b", "a.size > {size} AND b.size > {size}"),
    ("Trade AS a : Trade AS b", "a.price > {low}"),
    ("(Trade AS a)+ ; Quote AS b", "a.price > {high}"),
    ("Trade AS a ; !Quote ; Trade AS b", "a.size < {size}"),
    ("Quote AS a ; Quote AS b", "a.venue = '{venue}'"),
    ("Quote AS a ; Quote AS b", "b.price < a.price"),
    ("Trade AS a ; Trade AS b", "b.price > 1.01 * a.price"),
    ("(Trade AS a ; Quote AS b) UNLESS (Trade AS c FILTER c.price > {high})", "a.price > {low}"),
)
_ITEMS = ("*", "a[price], b[price]")


def text_of(queries: int) -> str:
    """The file: shape after shape, each with its items."""
    parts = [DECLARATION]
    for number in range(queries):
        pattern, more = _SHAPES[number % len(_SHAPES)]
        items = _ITEMS[number // len(_SHAPES) % len(_ITEMS)]
        values = {
            "s": f"S{number % 5000:04d}",
            "low": 20 + number / 100,
            "high": 80 - number / 100,
            "size": number % 90,
            "venue": f"V{number % 7}",
        }
        condition = f"{_OF_SYMBOL} AND {more}".format(**values)
        parts.append(
            f"QUERY q{number}: SELECT {items} FROM Market\n"
            f"WHERE ({pattern.format(**values)}) FILTER {condition} WITHIN 10 MINUTES [ts]\n"
        )
    return "\n".join(parts)


_EVENTS = """
import time
import numpy as np, pyarrow as pa
def events(count):
    random = np.random.default_rng(7)
    def chosen(names):
        codes = random.integers(0, len(names), count).astype(np.int32)
        return pa.array(np.array(names)[codes])
    return pa.table({
        "type": chosen(["Trade", "Quote"]),
        "symbol": chosen([f"S{number:04d}" for number in range(5000)]),
        "venue": chosen([f"V{number}" for number in range(7)]),
        "price": random.uniform(0, 100, count),
        "size": random.integers(0, 100, count),
        "ts": pa.array(np.arange(count) * 100_000, pa.timestamp("us", "UTC")),
    })
"""
_TEXT = """
from pathlib import Path
start = time.process_time()
import celc
module = celc.compile(Path("many.cel").read_text())
module.match_all_table(events(1000))
print(time.process_time() - start)
"""
_MODULE = """
start = time.process_time()
import many_udf
many_udf.match_all_table(events(1000))
print(time.process_time() - start)
"""
_PASSES = """
import sys
import many_udf
table = events(int(sys.argv[1]))
def timed(run):
    run()
    start = time.process_time()
    found = run()
    return time.process_time() - start, found
one, found = timed(lambda: many_udf.match_all_table(table))
print(one)
print(sum(rows.num_rows for rows in found.values()))
chosen = list(many_udf.QUERIES.values())[::20]
print(20 * sum(timed(lambda: query.match_table(table))[0] for query in chosen))
"""


def measure(queries: int, events: int) -> dict[str, Any]:
    """All figures of a run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "many.cel").write_text(text_of(queries))
        paths = os.environ.get("PYTHONPATH", "")
        env = os.environ | {
            "CELC_CACHE_DIR": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join([*filter(None, [paths]), str(folder)]),
            "PYTHONDONTWRITEBYTECODE": "",
        }

        def run(*arguments: str, **more: str) -> list[float]:
            done = subprocess.run(
                [sys.executable, *arguments],
                cwd=folder,
                env=env | more,
                check=True,
                capture_output=True,
                text=True,
            )
            return list(map(float, done.stdout.split()))

        by_machine_code = {"CELC_INTERPRETED_ROWS": "0"}
        (first,) = run("-c", _EVENTS + _TEXT)
        (cold,) = run("-c", _EVENTS + _TEXT, **by_machine_code)
        run("-m", "celc", "compile", "many.cel", "-o", "many_udf.py")
        run("-c", _EVENTS + _MODULE, **by_machine_code)
        (warm,) = run("-c", _EVENTS + _MODULE, **by_machine_code)
        one_pass, rows, alone = run("-c", _EVENTS + _PASSES, str(events))
    return {
        "queries": queries,
        "shapes": len(_SHAPES) * len(_ITEMS),
        "first_seconds": round(first, 2),
        "cold_seconds": round(cold, 2),
        "warm_seconds": round(warm, 2),
        "one_pass_seconds": round(one_pass, 2),
        "alone_seconds": round(alone, 2),
        "ratio": round(alone / one_pass, 1),
        "rows": int(rows),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    record = environment("benchmarks/many_files.py", given.events)
    record |= measure(given.queries, given.events)
    print(json.dumps(record, indent=2))
    if given.record:
        path = Path(__file__).parent / "records" / f"many-files-{record['date']}.jsonl"
        with path.open("a") as out:
            out.write(json.dumps(record) + "\n")
