"""What near misses cost beside the matches: `near_misses` over `match_table`, in turns.

    python benchmarks/near.py [--days N] [--runs N] [--profile QUERY]

The events are days of a farm: ten places, each with a temperature and a humidity every minute
(28,800 events a day). The query is README's, with PARTITION BY id (`keyed`) and with equal ids in
its place (`unkeyed`); `three` has three operands, an absence and more parts that can bend. Every
figure is CPU time of the process, the best of several runs of which each has both calls, of
`match_table` with one thread, which costs the least; the goal is a ratio of at most 3.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import time
import warnings

import numpy as np
import pyarrow as pa
from celc_runtime.jit.kernels import compiling
from common import environment

import celc

_DECLARED = """CREATE STREAM Farm {
  EVENT T { id: LONG, value: DOUBLE, ts: TIMESTAMP },
  EVENT H { id: LONG, value: DOUBLE, ts: TIMESTAMP }
}
QUERY fire:
"""
_FIRE = "SELECT hot[value], dry[value] FROM Farm WHERE (T AS hot ; H AS dry) FILTER "
_HOT = "hot.value > 40 AND dry.value <= 25"
QUERIES = {
    "keyed": f"{_FIRE}{_HOT} PARTITION BY id WITHIN 10 MINUTES [ts]",
    "unkeyed": f"{_FIRE}{_HOT} AND hot.id = dry.id WITHIN 10 MINUTES [ts]",
    "three": "SELECT hot[value], dry[value] FROM Farm WHERE "
    "(T AS hot ; H AS dry ; !(H AS wet FILTER wet.value > 60) ; T AS hotter) "
    "FILTER hot.value > 38 AND dry.value <= 27 AND hotter.value > 40 "
    "PARTITION BY id WITHIN 4 MINUTES [ts]",
}
GOAL = 3.0


def farm(days: int, places: int = 10) -> pa.Table:
    """The readings in the order of time."""
    rng = np.random.default_rng(1)
    minutes = 1440 * days
    temperature, humidity = np.full(places, 25.0), np.full(places, 50.0)
    values = np.empty((minutes, places, 2))
    for minute in range(minutes):
        temperature = temperature + rng.normal(size=places) - 0.02 * (temperature - 31.0)
        humidity = humidity + 2.0 * rng.normal(size=places) - 0.02 * (humidity - 40.0)
        values[minute, :, 0], values[minute, :, 1] = temperature, humidity
    begin = 60_000_000 * np.arange(minutes)[:, None, None] + 30_000_000 * np.arange(2)
    at = (begin + (30_000_000 * rng.random((minutes, places, 2)))).astype(np.int64).ravel()
    order = np.argsort(at, kind="stable")
    ids = np.broadcast_to(np.arange(1, places + 1)[None, :, None], values.shape).ravel()
    kinds = np.broadcast_to(np.array(["T", "H"]), values.shape).ravel()
    at = at[order]
    at += np.arange(len(at))  # no two at one time
    return pa.table(
        {
            "type": pa.array(kinds[order]).dictionary_encode(),
            "id": pa.array(ids[order], pa.int64()),
            "value": np.round(values.ravel()[order], 1),
            "ts": pa.array(at, pa.timestamp("us", "UTC")),
        }
    )


def measure(name: str, table: pa.Table, runs: int) -> dict[str, float]:
    """The CPU seconds of both calls, and their ratio."""
    query = celc.compile(_DECLARED + QUERIES[name])
    with compiling():  # as kernels are after some calls
        matches, near = query.match_table(table, threads=1), query.near_misses(table)
    calls = {
        "match_table": lambda: query.match_table(table, threads=1),
        "near_misses": lambda: query.near_misses(table),
    }
    best = dict.fromkeys(calls, np.inf)
    for _ in range(runs):
        for name_of_call, call in calls.items():
            begun = time.process_time()
            call()
            best[name_of_call] = min(best[name_of_call], time.process_time() - begun)
    return {
        "matches": len(matches),
        "near misses": len(near),
        **{call: round(seconds, 4) for call, seconds in best.items()},
        "ratio": round(best["near_misses"] / best["match_table"], 2),
        "goal": GOAL,
    }


def profile(name: str, table: pa.Table) -> None:
    """Where the time of `near_misses` goes."""
    query = celc.compile(_DECLARED + QUERIES[name])
    with compiling():
        query.near_misses(table)
    profiler = cProfile.Profile()
    profiler.runcall(query.near_misses, table)
    pstats.Stats(profiler).sort_stats("cumtime").print_stats(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=35)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--profile", choices=[*QUERIES])
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    table = farm(asked.days)
    if asked.profile:
        profile(asked.profile, table)
        return
    record = environment("benchmarks/near.py", len(table))
    record["figures"] = {name: measure(name, table, asked.runs) for name in QUERIES}
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
