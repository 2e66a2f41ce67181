"""`match_table` by one core: where its time goes, what threads gain, and what a small table costs.

    python benchmarks/threads.py [--events N] [--pieces N] [--tasks PART,…] [--cores 2,8,32]

CPU milliseconds of one thread, the least of five in turns, for the tasks of `field` in CEL.

*shares*: the way in is finding the order (*order*), moving the rows into it (*rows*), and columns
that are checked and coded (*columns*); then what is left of one run, which is kernels and listing
(*match*). *predicted*: each step of a thread is taken alone, one after another, and counts for the
first core that is free; the longest path through all steps and all that one thread does between
them stands beside the CPU of one thread. So the figures are those of an idle machine with so many
cores whose memory is as fast for all of them, where threads start at once. *half in one key*: the
same where one key has half of the rows. *clock*: what two threads, and a call that names no number,
take on the clock beside one thread, and what two threads of DuckDB take beside its one, for the
same task in SQL on a table of its own, also for tasks in MATCH_RECOGNIZE; two cores must be free
for it. *floor*: the same for steps
that a call is made of, and for none: no call gains more than its steps. *small*: a call on a
hundred rows when all machine code is there, in microseconds, the least of 3,000, with the mean,
which has what garbage costs; what the kernels take; a call on a hundred rows of eight keys, which
have more matches to make rows of; and a call on 8,000 rows, the least of 300. *left-out*: for the
tasks in which rows that cannot matter leave before the sort, their share, and milliseconds on the
clock by one thread and by two with all rows and without them.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from celc_runtime.arrow.events.ascending import rise
from celc_runtime.arrow.events.columns import Columns
from celc_runtime.arrow.events.moving import Moves
from celc_runtime.arrow.events.sorting import order_for
from celc_runtime.arrow.tables.event_tables import table_of
from celc_runtime.jit.kernels import compiling, njit
from celc_runtime.rules import any_query
from celc_runtime.run import parts, threads
from celc_runtime.run.prefilter import LEAST_ROWS
from celc_runtime.run.run_of import run_of

sys.path.append(str(Path(__file__).resolve().parent / "field"))

from adapters.in_celc import compiled
from adapters.in_duckdb import InDuckDB
from streams import Reading
from tasks import Task, tasks


def least(run: Callable[[], object], times: int = 5) -> float:
    """The least CPU milliseconds of this thread."""
    found = []
    for _ in range(times):
        start = time.thread_time()
        run()
        found.append(time.thread_time() - start)
    return 1000 * min(found)


def shares(task: Task, query: Any, table: pa.Table) -> None:
    """Print where the time of one task goes."""
    plan = query.plan
    read = table_of(query.program, table)
    found = order_for(plan, read)
    rows = found.rows(0, len(read))
    batch, *_ = rows.combine_chunks().to_batches()

    def columns() -> None:
        made = Columns(plan, ties_are_errors=False, numbered=found.numbered)
        made.arguments(made.prepare(batch).events)

    with patch.object(any_query, "LEAST_ROWS", math.inf):  # whose order is found is the whole table
        whole = least(lambda: query.match_table(table, threads=1))
    steps = {
        "order": least(lambda: order_for(plan, read)),
        "rows": least(lambda: found.rows(0, len(read))),
        "columns": least(columns),
    }
    steps["match"] = whole - sum(steps.values())
    told = "   ".join(f"{name} {taken / whole:4.0%}" for name, taken in steps.items())
    print(f"shares     {task.name:52} {whole:7.1f} ms   {told}", flush=True)


def predicted(name: str, query: Any, table: pa.Table, cores: Sequence[int]) -> None:
    """Print what threads should take, from steps that are measured alone."""
    waited = 0.0  # what steps take beside the longest of those that are taken side by side
    serial = 0.0

    def one_by_one(calls: Sequence[Callable[[], Any]], count: int) -> list[Any]:
        nonlocal waited, serial
        free, found = [0.0] * min(count, len(calls)), []
        for call in calls:
            start = time.thread_time()
            found.append(call())
            free[free.index(min(free))] += time.thread_time() - start
        waited += sum(free) - max(free)
        serial -= sum(free)
        return found

    ways: dict[int, list[tuple[float, float, float]]] = {count: [] for count in (1, *cores)}
    with (
        patch.object(threads, "side_by_side", one_by_one),
        patch.object(parts, "side_by_side", one_by_one),
    ):
        for _ in range(7):
            for count, taken in ways.items():
                waited = serial = 0.0
                start = time.thread_time()
                query.match_table(table, threads=count)
                whole = time.thread_time() - start
                taken.append((whole - waited, whole, whole + serial))
    one = min(whole for _, whole, _ in ways.pop(1))
    told = []
    for count, taken in ways.items():
        path, _, serial = min(taken)
        work = min(whole for _, whole, _ in taken)
        told.append(
            f"{count}: {path / one:4.2f} (CPU {work / one:4.2f}, serial {serial / one:4.2f})"
        )
    print(f"predicted  {name:52} {1000 * one:7.1f} ms   {'   '.join(told)}", flush=True)


def skewed(table: pa.Table) -> pa.Table:
    """The same events, half of which have one key."""
    rng = np.random.default_rng(5)
    keys = table.column("k").to_numpy().copy()
    keys[rng.random(len(keys)) < 0.5] = 0
    return table.set_column(table.column_names.index("k"), "k", pa.array(keys))


def clock(task: Task, query: Any, table: pa.Table) -> None:
    """Print what threads take on the clock, and in CPU, beside one."""
    ways = {"one": 1, "two": 2, "default": None}
    taken = least_of_both(
        {way: partial(query.match_table, table, threads=given) for way, given in ways.items()}
    )
    by_clock, by_cpu = taken.pop("one")
    told = "   ".join(
        f"{way}: {on_clock / by_clock:4.2f} (CPU {cpu / by_cpu:4.2f})"
        for way, (on_clock, cpu) in taken.items()
    )
    print(f"clock      {task.name:52} {1000 * by_clock:7.1f} ms   {told}", end="", flush=True)
    text = InDuckDB.text(task)
    print("" if text is None else in_duckdb(task, text, table), flush=True)


def in_duckdb(task: Task, text: str, table: pa.Table) -> str:
    """What two threads of DuckDB take on the clock, and in CPU, beside its one."""
    engine = InDuckDB(Path())
    engine.load(task.data, table)

    def by(threads: int) -> None:
        engine.use_threads(threads)
        engine.run(task, text)

    (on_clock, cpu), (of_two, cpu_of_two) = least_of_both(
        {threads: partial(by, threads) for threads in (1, 2)}
    ).values()
    return f"   DuckDB, two: {of_two / on_clock:4.2f} (CPU {cpu_of_two / cpu:4.2f})"


def least_of_both(ways: Mapping[Any, Callable[[], object]]) -> dict[Any, tuple[float, float]]:
    """The least seconds on the clock and of CPU that each way takes, of six calls in turns."""
    taken = dict.fromkeys(ways, (math.inf, math.inf))
    for _ in range(6):
        for way, run in ways.items():
            begun = time.perf_counter(), time.process_time()
            run()
            on_clock, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
            taken[way] = min(taken[way][0], on_clock), min(taken[way][1], cpu)
    return taken


def left_out(task: Task, query: Any, table: pa.Table) -> None:
    """Print what leaving out the rows that cannot matter gains."""
    taken = {}
    for rows, least in (("all rows", math.inf), ("left out", LEAST_ROWS)):
        with patch.object(any_query, "LEAST_ROWS", least):
            ways = {
                threads: partial(query.match_table, table, threads=threads) for threads in (1, 2)
            }
            taken[rows] = [1000 * on_clock for on_clock, _ in least_of_both(ways).values()]
    share = query.program.kept.get("share")
    if share is not None:
        told = "   ".join(f"{rows} {one:6.1f} {two:6.1f} ms" for rows, (one, two) in taken.items())
        print(f"left-out   {task.name:52} {share:5.1%} matter   {told}", flush=True)


_SOME_THOUSAND = 8_000  # rows


def small(task: Task, query: Any, table: pa.Table) -> None:
    """Print what a call on a hundred rows costs, and what the kernels take of that."""
    few = table.slice(0, 100).combine_chunks()
    rows = order_for(query.plan, table_of(query.program, few)).rows(0, 100)
    ways = {"call": partial(query.match_table, few)}
    if len(table) >= _SOME_THOUSAND:
        some = table.slice(0, _SOME_THOUSAND).combine_chunks()
        ways["8,000 rows"] = partial(query.match_table, some, threads=1)
    if query.plan.source.key_columns:
        key = table.column(query.plan.source.key_columns[0])
        of_keys = table.filter(pc.is_in(key, pc.unique(key.slice(0, 1000))[:8]))
        ways["eight keys"] = partial(query.match_table, of_keys.slice(0, 100).combine_chunks())
    with compiling():
        matches = {way: f", {len(run())} matches" for way, run in ways.items()}
    walk = run_of(query.program)._walk
    if walk.history is None and not walk.reads_alone:  # nothing else need remember the events
        with compiling():
            alone = Reading(query, rows.combine_chunks().to_batches()[0], listed=False)
            alone.classify_and_update()
        ways["kernels"] = alone.classify_and_update
    told = ""
    for way, run in ways.items():
        taken = []
        for _ in range(300 if way == "8,000 rows" else 3000):
            start = time.thread_time_ns()
            run()
            taken.append((time.thread_time_ns() - start) / 1000)
        mean = sum(taken) / len(taken)
        told += f"{way} {min(taken):4.0f} µs (mean {mean:4.0f}{matches.get(way, '')})   "
    print(f"small      {task.name:52} {told}", flush=True)


@njit(nogil=True)
def _computed(steps):  # type: ignore[no-untyped-def]
    found = np.uint64(1)
    for _ in range(steps):
        found = found * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return found


def floor(rows: int) -> None:
    """Print what two threads take on the clock beside one for the steps that a call is made of:
    reading a column, moving rows to the places of their keys, and computing without memory. No call
    gains more than they do."""
    rng = np.random.default_rng(5)
    times = np.arange(rows)
    places = np.empty(rows, np.int64)
    places[np.argsort(rng.integers(0, 2_000, rows), kind="stable")] = times
    columns = [pa.chunked_array([rng.random(rows)]) for _ in range(4)]
    moves, read = Moves(columns), pa.record_batch({"ts": times})
    calls = {
        "reading": lambda first, end: rise([read.slice(first, end - first)]),
        "moving": lambda first, end: moves.of_slice(places, first, end),
        "computing": lambda first, end: _computed(20 * (end - first)),
        "nothing": lambda *_: None,
    }
    for name, call in calls.items():
        ways = {
            count: partial(
                threads.side_by_side,
                [
                    partial(call, rows * part // count, rows * (part + 1) // count)
                    for part in range(count)
                ],
                count,
            )
            for count in (1, 2)
        }
        with compiling():
            ways[2]()
        (of_one, _), (of_two, _) = least_of_both(ways).values()
        print(
            f"floor      {name:52} {1000 * of_one:7.3f} ms   two: {of_two / of_one:4.2f}",
            flush=True,
        )


def in_pieces(table: pa.Table, count: int) -> pa.Table:
    """The table in this number of pieces of about the same size."""
    cuts = np.linspace(0, len(table), count + 1, dtype=int).tolist()
    return pa.concat_tables([table[first:end] for first, end in pairwise(cuts)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--pieces", type=int, default=1, help="of a table; most files are read so")
    parser.add_argument("--tasks", default="", help="parts of their names: two-events,absence")
    parser.add_argument("--cores", default="2,8,32")
    parser.add_argument("--only", default="shares,predicted,floor,clock,left-out,small")
    asked = parser.parse_args()
    cores = [int(one) for one in asked.cores.split(",")]
    if "floor" in asked.only:
        floor(asked.events)
    for task in tasks():
        named = any(name in task.name for name in asked.tasks.split(","))
        is_cel = "cel" in task.texts
        in_rows = "match_recognize" in task.texts and "clock" in asked.only
        if not (is_cel or in_rows) or task.data.lacking() is not None or not named:
            continue
        query, table = compiled(task), in_pieces(task.data.table(asked.events), asked.pieces)
        with compiling():  # what a process has after some hundred calls
            query.match_table(table)
            query.match_table(table, threads=2)
        if "clock" in asked.only:
            clock(task, query, table)
        if not is_cel:
            continue
        if "shares" in asked.only:
            shares(task, query, table)
        if "predicted" in asked.only:
            predicted(task.name, query, table, cores)
            if task.name == "two-events":
                predicted(f"{task.name}, half in one key", query, skewed(table), cores)
        if "left-out" in asked.only:
            left_out(task, query, table)
        if "small" in asked.only:
            small(task, query, table)


if __name__ == "__main__":
    main()
