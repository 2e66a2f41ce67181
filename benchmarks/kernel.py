"""How fast the kernel is: the update alone, sparse streams from their columns, and the stress case.

    python benchmarks/kernel.py [--events N] [--record]

Every figure is CPU time of one thread, the best of several runs, and stands beside its ratio to a
calibration kernel that is timed in the same run: one Numba loop over an int32 type code, a float64
and an int32 column that counts the rows passing one comparison on each. Machines differ and are
shared; the ratio is what to compare. `--record` appends the run to benchmarks/records/.

Queries are those of the CEL paper's experiments (Foundations of Complex Event Processing, table 1).
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from celc_runtime import arena
from celc_runtime.batch import END_OF_PARTS, NO_INTEGERS, Batch
from celc_runtime.run import Run
from numba import njit

import celc

QUERIES = {
    "Q1": ("A ; B ; C", "ABC"),
    "Q2": ("A ; B ; C ; D", "ABCD"),
    "Q3": ("(A OR B OR C) ; D", "ABCD"),
    "Q4": ("A+ ; B", "AB"),
    "Q5": ("A+ ; B+ ; C", "ABC"),
    "Q6": ("(A+ ; B)+ ; C", "ABC"),
}
WINDOWS = (100, 100_000)
RUNS = 5


@njit(nogil=True)
def calibration(types: Any, reals: Any, numbers: Any) -> int:
    """The reference: one comparison on each of three columns."""
    count = 0
    for row in range(types.shape[0]):
        count += (types[row] == 1) & (reals[row] > 0.5) & (numbers[row] < 50)
    return count


def best_of(run: Callable[[], object], runs: int = RUNS) -> float:
    """The least CPU time of this thread over several runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.thread_time()
        run()
        times.append(time.thread_time() - start)
    return min(times)


def calibrate(events: int) -> Callable[[], float]:
    """A function that times the calibration kernel, in events per second."""
    rng = np.random.default_rng(1)
    columns = (
        rng.integers(0, 4, events).astype(np.int32),
        rng.random(events),
        rng.integers(0, 100, events).astype(np.int32),
    )
    calibration(*(column[:8] for column in columns))
    return lambda: events / best_of(lambda: calibration(*columns))


def declaration(types: str) -> str:
    """A stream of event types without attributes, so that labels are positions only."""
    return "CREATE STREAM S {" + ", ".join(f"EVENT {name} {{}}" for name in types) + "}"


def compiled(formula: str, types: str, window: int | None) -> Any:
    """A compiled query over event types without attributes."""
    within = "" if window is None else f" WITHIN {window} EVENTS"
    matcher = celc.compile(f"{declaration(types)} SELECT * FROM S WHERE {formula}{within}")
    return next(iter(matcher.queries.values()))


def update_alone(query: Any, types: int, events: int) -> float:
    """Events per second of the update, from symbols that are there, without listing matches."""
    symbols_of_types = _symbols(query)
    words = np.zeros((events + 7) // 8, np.uint64)
    symbols = words.view(np.uint8)[:events]
    chosen = np.random.default_rng(2).integers(0, types, events)
    symbols[:] = symbols_of_types[chosen]
    parts = np.array([END_OF_PARTS, END_OF_PARTS])
    batch = Batch(symbols, words, NO_INTEGERS, NO_INTEGERS, parts, NO_INTEGERS, NO_INTEGERS)

    def once() -> None:
        run = Run(query)
        run._output.limit[0] = 0
        memory = run._memory
        while query.update(batch, memory, run._output, run._kinds) == arena.ARENA_FULL:
            memory = arena.grown(memory)

    once()
    return events / best_of(once)


def _symbols(query: Any) -> np.ndarray:
    """The symbol of each event type, by asking the query's own classification."""
    count = len(query.plan.types)
    symbols = np.empty(count, np.uint8)
    query.classify(np.arange(count, dtype=np.int32), np.arange(count), symbols)
    return symbols


def sparse(query: Any, events: int, *, listed: bool) -> float:
    """Events per second from Arrow columns, 1 % of the events relevant.

    With `listed`, matches are listed and handed over as Arrow batches as well.
    """
    types = [*(name for _, name in query.plan.types), "X"]
    rng = np.random.default_rng(3)
    codes = np.where(
        rng.random(events) < 0.01, rng.integers(0, len(types) - 1, events), len(types) - 1
    ).astype(np.int32)
    column = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(types))
    batch = pa.RecordBatch.from_arrays([column], ["type"])

    def once() -> None:
        run = Run(query)
        if not listed:
            run._output.limit[0] = 0
        for _ in run.push(batch):
            pass

    once()
    return events / best_of(once)


def stress() -> dict[str, float]:
    """2,000 events of which the last fires all matches of A;B;C;D at once."""
    query = compiled("A ; B ; C ; D", "ABCDX", None)
    names = np.array(list("ABCX"))[np.random.default_rng(4).integers(0, 4, 2000)]
    names[-1] = "D"
    batch = pa.RecordBatch.from_arrays([pa.array(names)], ["type"])
    figures: dict[str, float] = {}

    def visit() -> None:
        run = Run(query)
        run._take = lambda *_: run._output.used.fill(0)  # type: ignore[method-assign]
        for _ in run.push(batch):
            pass

    def arrow() -> None:
        figures["matches"] = sum(len(found) for found in Run(query).push(batch))

    arrow()
    figures["visit_seconds"] = best_of(visit, 3)
    figures["arrow_seconds"] = best_of(arrow, 3)
    figures["peak_mebibytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


def measure(events: int) -> dict[str, Any]:
    """All figures of a run. The stress case comes first, so that its peak memory is its own."""
    record: dict[str, Any] = {
        "stress": stress(),
        "update": {},
        "sparse": {},
        "sparse with matches": {},
    }
    calibrated = calibrate(events)
    for name, (formula, types) in QUERIES.items():
        for window in WINDOWS:
            reference = calibrated()
            rate = update_alone(compiled(formula, types, window), len(types), events)
            record["update"][f"{name} W={window}"] = _figure(rate, reference)
        query = compiled(formula, types + "X", WINDOWS[0])
        for group, listed in (("sparse", False), ("sparse with matches", True)):
            reference = calibrated()
            rate = sparse(query, events, listed=listed)
            record[group][name] = _figure(rate, reference)
    record["calibration"] = calibrated()
    return record


def _figure(rate: float, reference: float) -> dict[str, float]:
    return {"events_per_second": round(rate), "ratio": round(rate / reference, 4)}


def environment(script: str, events: int) -> dict[str, Any]:
    """What a record must say besides its figures."""
    return {
        "date": datetime.date.today().isoformat(),
        "command": f"python {script} " + " ".join(sys.argv[1:]),
        "events": events,
        "commit": _commit(),
        "machine": _processor(),
        "python": platform.python_version(),
        "numba": numba.__version__,
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
    }


def _commit() -> str:
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    return found.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def show(record: dict[str, Any]) -> None:
    """The figures for people."""
    print(f"calibration kernel: {record['calibration'] / 1e6:,.0f} M events/s")
    for title, group in (
        ("update alone", "update"),
        ("1 % relevant, from Arrow columns, no match listed", "sparse"),
        ("1 % relevant, from Arrow columns to Arrow matches", "sparse with matches"),
    ):
        print(f"{title}: M events/s (ratio to the calibration kernel)")
        for name, figure in record[group].items():
            rate = figure["events_per_second"] / 1e6
            print(f"  {name:14} {rate:8,.0f}  ({figure['ratio']:.3f})")
    figures = record["stress"]
    print(
        f"stress: {figures['matches']:,} matches, visited in {figures['visit_seconds']:.2f} s, "
        f"as Arrow batches in {figures['arrow_seconds']:.2f} s, "
        f"peak memory {figures['peak_mebibytes']:,.0f} MiB"
    )


def main() -> None:
    """Run, show, and record if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    record = environment("benchmarks/kernel.py", arguments.events) | measure(arguments.events)
    show(record)
    if arguments.record:
        folder = Path(__file__).parent / "records"
        folder.mkdir(exist_ok=True)
        path = folder / f"kernel-{record['date']}.jsonl"
        with path.open("a") as stream:
            stream.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
