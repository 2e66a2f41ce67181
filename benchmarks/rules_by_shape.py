"""What ten thousand files of one rule cost, of forty shapes (`rule_shapes.txt`), by shape.

    python benchmarks/rules_by_shape.py [--events N] [--rules N] [--record]

Each step is a process of its own; figures are CPU seconds of it and its children, `clock` the time
that passed, and `megabytes` the most memory of one of them. `compile`: `celc compile --by-shape`
with two processes. `cold`: the module is imported and run over 1,000 events, with no machine code
kept from before, which one process makes; `made`: `celc warm` makes it, by all cores; `warm`: the
module is run with the code that was kept. `one_pass` is `match_all_table` over
all events, the least of three; `slowest_rule` the most that one rule of a shape takes alone for
them, by `match_table` of one thread, and `alone` the sum of one of each shape.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import environment
from rule_shapes import write

_HERE = Path(__file__).parent

_SMALL = """
import sys
sys.path.insert(0, {here!r})
from log_rules import log
import rules_udf
rules_udf.match_all_table(log(1000))
"""
_PASSES = """
import sys, time, warnings
sys.path.insert(0, {here!r})
warnings.simplefilter("ignore")
from log_rules import log
from rule_shapes import texts
import celc, rules_udf
table = log({events})
def least(run):
    found, taken = run(), []
    for _ in range(3):
        start = time.process_time()
        found = run()
        taken.append(time.process_time() - start)
    return min(taken), found
one, found = least(lambda: rules_udf.match_all_table(table))
alone = []
for name, text in texts(40).items():
    query = celc.compile(text, order_by="ts").queries[name]
    taken, rows = least(lambda: query.match_table(table, threads=1))
    assert rows.num_rows == found[name].num_rows
    alone.append(taken)
print(one, max(alone), sum(alone), sum(rows.num_rows for rows in found.values()))
"""


def measure(rules: int, events: int) -> dict[str, Any]:
    """All figures of a run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "rules", rules)
        paths = [os.environ.get("PYTHONPATH", ""), str(folder)]
        env = os.environ | {
            "CELC_INTERPRETED_ROWS": "0",
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        figures: dict[str, Any] = {"rules": rules}

        def run(step: str, *arguments: str, cache: str = "cache") -> str:
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            done = subprocess.run(
                [sys.executable, *arguments],
                cwd=folder,
                env=env | {"CELC_CACHE_DIR": str(folder / cache)},
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            figures[step] = {
                "cpu": round(cpu, 2),
                "clock": round(time.perf_counter() - start, 2),
                "megabytes": after.ru_maxrss >> 10,
            }
            print(step, figures[step], file=sys.stderr, flush=True)
            return done.stdout

        options = ["--by-shape", "--processes", "2", "--order-by", "ts"]
        run("compile", "-m", "celc", "compile", "rules", "-o", "rules_udf.py", *options)
        figures["module_bytes"] = (folder / "rules_udf.py").stat().st_size
        small = _SMALL.format(here=str(_HERE))
        run("cold", "-c", small, cache="cold")
        run("made", "-m", "celc", "warm", "rules_udf.py")
        run("warm", "-c", small)
        found = run("passes", "-c", _PASSES.format(here=str(_HERE), events=events))
    one, slowest, alone, rows = map(float, found.split())
    return figures | {
        "one_pass": round(one, 2),
        "slowest_rule": round(slowest, 2),
        "alone": round(alone, 2),
        "ratio": round(one / slowest, 1),
        "rows": int(rows),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rules", type=int, default=10_000)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    record = environment("benchmarks/rules_by_shape.py", given.events)
    record |= measure(given.rules, given.events)
    print(json.dumps(record, indent=2))
    if given.record:
        path = _HERE / "records" / f"rules-by-shape-{record['date']}.jsonl"
        with path.open("a") as out:
            out.write(json.dumps(record) + "\n")
