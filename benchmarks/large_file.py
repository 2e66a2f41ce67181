"""A Parquet file that is larger than memory should be: time and peak memory, beside DuckDB.

    python benchmarks/large_file.py [--rows N] [--memory GIB] [--tasks PART,…] [--keep FOLDER]

The events are those of `peers`: ten types, in the order of time, a key for each thousand. The file
is made piece by piece, and kept in FOLDER for the next time. Each way is a process of its own that
writes its matches to a Parquet file. `match_arrow` reads batches as they come, where the query has
no PARTITION BY; `match_table` reads the whole file, and sorts it by key; DuckDB runs the SQL of
`peers` over the file with `--memory` as its limit. CPU seconds are those of all threads of the
process once the machine code is there, and the peak is that of its resident memory. A file of 10⁸
rows takes a gigabyte:

    python benchmarks/large_file.py --rows 100000000 --memory 4 --keep /tmp/large
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from celc_runtime.jit.kernels import compiling

sys.path.append(str(Path(__file__).resolve().parent / "peers"))

from tasks import TASKS, TYPES, Task, keys

PIECE = 1 << 20  # rows
ASKED = "two events,three events without a key"


def make(path: Path, rows: int) -> None:
    """Write the events, a row group at a time."""
    rng = np.random.default_rng(29)
    names = pa.array(list(TYPES))
    writer = None
    for begin in range(0, rows, PIECE):
        count = min(PIECE, rows - begin)
        codes = pa.array(rng.integers(0, len(TYPES), count).astype(np.int32))
        piece = pa.table(
            {
                "k": rng.integers(0, keys(rows), count).astype(np.int32),
                "ts": np.arange(begin, begin + count),
                "v": rng.integers(0, 1000, count).astype(np.int32),
                "type": pa.DictionaryArray.from_arrays(codes, names),
            }
        )
        writer = writer or pq.ParquetWriter(path, piece.schema)
        writer.write_table(piece)
    if writer is not None:
        writer.close()


def by_batches(task: Task, rows: int, path: Path, out: Path, memory: float) -> int:
    """The matches, batch by batch; returns their number."""
    query = task.compiled(rows).with_options(positions=False)
    found = 0
    with pq.ParquetFile(path, read_dictionary=["type"]) as file:
        names = query.input_schema.names
        with pq.ParquetWriter(out, query.output_schema) as writer:
            for batch in query.match_arrow(file.iter_batches(PIECE, columns=names)):
                writer.write_batch(batch)
                found += len(batch)
    return found


def by_table(task: Task, rows: int, path: Path, out: Path, memory: float) -> int:
    """The matches of the whole file; returns their number."""
    found = task.compiled(rows).with_options(positions=False).match_table(path)
    pq.write_table(found, out)
    return len(found)


def by_duckdb(task: Task, rows: int, path: Path, out: Path, memory: float) -> int:
    """The rows of the SQL; returns their number."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{memory}GiB'; SET temp_directory = '{out.parent}'")
        connection.execute(f"CREATE VIEW {task.table} AS SELECT * FROM read_parquet('{path}')")
        connection.execute(f"COPY ({task.sql_text(rows)}) TO '{out}' (FORMAT parquet)")
    return int(pq.read_metadata(out).num_rows)


WAYS = {"match_arrow": by_batches, "match_table": by_table, "DuckDB": by_duckdb}


def measured(way: str, name: str, rows: int, path: Path, memory: float) -> None:
    """Run one way in this process, and print what it took as JSON."""
    (task,) = [one for one in TASKS if one.name == name]
    if way != "DuckDB":
        with pq.ParquetFile(path, read_dictionary=["type"]) as file, compiling():
            few = pa.Table.from_batches([next(file.iter_batches(1 << 16))])
            task.compiled(rows).with_options(positions=False).match_table(few, threads=1)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        begun = time.perf_counter(), time.process_time()
        found = WAYS[way](task, rows, path, Path(folder) / "found.parquet", memory)
        clock, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"found": found, "cpu": cpu, "clock": clock, "peak": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory", type=float, default=4, help="GiB, the limit of DuckDB")
    parser.add_argument("--tasks", default=ASKED, help="parts of their names")
    parser.add_argument("--keep", type=Path, help="the folder of the file; default: it is dropped")
    parser.add_argument("--way", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as dropped:
        path = (asked.keep or Path(dropped)) / f"events-{asked.rows}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        if asked.way:
            measured(*asked.way, asked.rows, path, asked.memory)
            return
        if not path.exists():
            make(path, asked.rows)
        print(f"{asked.rows:,} rows, {path.stat().st_size / 2**20:,.0f} MiB", flush=True)
        for task in TASKS:
            named = any(part in task.name for part in asked.tasks.split(","))
            if task.dialect != "cel" or task.table != "events" or not named:
                continue
            counts = set()
            for way in WAYS:
                if way == "match_arrow" and "k" in task.columns:
                    continue  # partitions come back: a table has to be sorted
                told = _in_a_process(way, task, path, asked)
                counts.add(told["found"])
                took = f"CPU {told['cpu']:7.1f} s   clock {told['clock']:7.1f} s"
                print(
                    f"{task.name:52} {way:12} {told['found']:>12,} matches   {took}"
                    f"   peak {told['peak']:7,.0f} MiB",
                    flush=True,
                )
            if len(counts) > 1:
                raise RuntimeError(f"{task.name}: {counts}")


def _in_a_process(way: str, task: Task, path: Path, asked: argparse.Namespace) -> dict[str, Any]:
    given = [f"--rows={asked.rows}", f"--memory={asked.memory}", f"--keep={path.parent}"]
    command = [sys.executable, __file__, *given, "--way", way, task.name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


if __name__ == "__main__":
    main()
