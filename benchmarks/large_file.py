"""A Parquet file that is larger than memory should be: time and peak memory, beside DuckDB.

    python benchmarks/large_file.py [--rows N] [--memory GIB] [--tasks PART,…] [--keep FOLDER]

The events are those of `events` and `alarms` of `field`, in the order of time. The file
is made piece by piece, and kept in FOLDER for the next time. Each way is a process of its own that
writes its matches to a Parquet file. `match_arrow` reads batches as they come, where the query has
no PARTITION BY; with one, `celc run` reads a range of keys after another, and `--memory` is its
limit; `match_table` reads the whole file, and sorts it by key; DuckDB runs the SQL of `field` over
the file with the same limit. CPU seconds are those of all threads of the
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from celc_runtime.jit.kernels import compiling

from celc.driver.matcher import matches_of

sys.path.append(str(Path(__file__).resolve().parent / "field"))

from adapters.in_celc import compiled
from data_sets import PACE, SETS, TYPES, DataSet, keys
from tasks import Task, task_of, tasks

PIECE = 1 << 20  # rows
ASKED = "two-events,three-without-a-key"


def make(path: Path, data: DataSet, rows: int) -> None:
    """Write the events of a set, a row group at a time."""
    rng = np.random.default_rng(29)
    names = pa.array(list(TYPES))
    shares = 1 / np.arange(1, len(TYPES) + 1) if data.name == "alarms" else np.ones(len(TYPES))
    writer = None
    for begin in range(0, rows, PIECE):
        count = min(PIECE, rows - begin)
        ids = np.arange(begin, begin + count)
        codes = rng.choice(len(TYPES), count, p=shares / shares.sum()).astype(np.int32)
        columns = {
            "id": ids,
            "ts": ids * PACE // keys(rows) if data.key else ids,
            "type": pa.DictionaryArray.from_arrays(pa.array(codes), names),
            "k": rng.integers(0, keys(rows), count).astype(np.int32),
            "v": rng.integers(0, 1000, count).astype(np.int32),
        }
        piece = pa.table({name: columns[name] for name in data.fields()})
        writer = writer or pq.ParquetWriter(path, piece.schema)
        writer.write_table(piece)
    if writer is not None:
        writer.close()


def by_batches(task: Task, path: Path, out: Path, memory: float) -> int:
    """The matches, batch by batch; returns their number."""
    query = compiled(task).with_options(positions=False)
    found = 0
    with pq.ParquetFile(path, read_dictionary=["type"]) as file:
        names = query.input_schema.names
        with pq.ParquetWriter(out, query.output_schema) as writer:
            for batch in query.match_arrow(file.iter_batches(PIECE, columns=names)):
                writer.write_batch(batch)
                found += len(batch)
    return found


def by_table(task: Task, path: Path, out: Path, memory: float) -> int:
    """The matches of the whole file; returns their number."""
    found = compiled(task).with_options(positions=False).match_table(path)
    pq.write_table(found, out)
    return len(found)


def by_keys(task: Task, path: Path, out: Path, memory: float) -> int:
    """The matches, a range of keys at a time, as `celc run --memory` reads them; returns their
    number."""
    query = compiled(task).with_options(positions=False)
    found = 0
    with pq.ParquetFile(path, read_dictionary=["type"]) as file:
        names = query.input_schema.names

        def read() -> Iterator[pa.RecordBatch]:
            yield from file.iter_batches(PIECE, columns=names)

        with pq.ParquetWriter(out, query.output_schema) as writer:
            for batch in matches_of(query, read, memory=int(memory * 2**30)):
                writer.write_batch(batch)
                found += len(batch)
    return found


def by_duckdb(task: Task, path: Path, out: Path, memory: float) -> int:
    """The rows of the SQL; returns their number."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{memory}GiB'; SET temp_directory = '{out.parent}'")
        connection.execute(f"CREATE VIEW {task.data.name} AS SELECT * FROM read_parquet('{path}')")
        connection.execute(f"COPY ({task.texts['sql']}) TO '{out}' (FORMAT parquet)")
    return int(pq.read_metadata(out).num_rows)


WAYS = {
    "match_arrow": by_batches,
    "celc run": by_keys,
    "match_table": by_table,
    "DuckDB": by_duckdb,
}


def measured(way: str, name: str, path: Path, memory: float) -> None:
    """Run one way in this process, and print what it took as JSON."""
    task = task_of(name)
    if way != "DuckDB":
        with pq.ParquetFile(path, read_dictionary=["type"]) as file, compiling():
            few = pa.Table.from_batches([next(file.iter_batches(1 << 16))])
            compiled(task).with_options(positions=False).match_table(few, threads=1)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        begun = time.perf_counter(), time.process_time()
        found = WAYS[way](task, path, Path(folder) / "found.parquet", memory)
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
        folder = asked.keep or Path(dropped)
        folder.mkdir(parents=True, exist_ok=True)
        paths = {name: folder / f"{name}-{asked.rows}.parquet" for name in ("events", "alarms")}
        if asked.way:
            way, name = asked.way
            measured(way, name, paths[task_of(name).data.name], asked.memory)
            return
        for task in tasks():
            named = any(part in task.name for part in asked.tasks.split(","))
            if "cel" not in task.texts or task.data.name not in paths or not named:
                continue
            path = paths[task.data.name]
            if not path.exists():
                make(path, SETS[task.data.name], asked.rows)
            print(f"{asked.rows:,} rows, {path.stat().st_size / 2**20:,.0f} MiB", flush=True)
            counts = set()
            for way in WAYS:
                # With a key partitions come back, and without one `celc run` calls match_arrow.
                if way == ("match_arrow" if task.data.key else "celc run"):
                    continue
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
