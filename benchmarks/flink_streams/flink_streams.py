"""A statement with MATCH_RECOGNIZE in Flink SQL, over a stream of rows; `row_streams.py` asks it.

Flink's planner is among the jars of `pip install ".[flink]"`, as FlinkCEP is
(`field/adapters/in_flink.py`), and the clause runs on FlinkCEP's operator. `RowStreams.java` counts
the rows of the answer and drops them. It reads the time at the source, from the first row of a file
to the first row of the next file. So the time has no part of the start of the JVM and of the job.

There are three sources: rows in memory (`sql`), so that Flink reads no file; lines of a file
(`lines`); and lines of a file with checkpoints (`kept`), so that the job can go on after a kill.
Without checkpoints Flink writes no state, which makes it faster than a job that can go on.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

sys.path.append(str(Path(__file__).resolve().parent.parent / "field"))

from adapters.in_flink import OPENED, jars, jdk
from child import Child

_SOURCE = Path(__file__).parent / "RowStreams.java"
_JARS = (
    "flink-dist-*.jar",
    "flink-cep-*.jar",
    "flink-connector-files-*.jar",
    "flink-table-api-java-uber-*.jar",
    "flink-table-planner-loader-*.jar",
    "flink-table-runtime-*.jar",
)
_OPTIONS = ("-Xmx6g", "-XX:+UseParallelGC")


def missing() -> str | None:
    """What Flink SQL needs and this machine lacks, in words; None where all is there."""
    if not jars(_JARS):
        return 'Flink SQL is not installed: pip install ".[flink]"'
    if jdk() is None:
        return "no javac in JAVA_HOME or on PATH: Flink SQL needs a JDK of Java 17 or newer"
    return None


class Counted(NamedTuple):
    """The size and the cost of an answer."""

    rows: int
    seconds: tuple[float, ...]  # of CPU, for each file but the last one
    clock: tuple[float, ...]  # seconds of wall time, for the same files


class FlinkRows:
    """A Flink process with one slot, which holds the rows of some files; `close` ends it.

    tables: the files, with the columns `type`, `key`, `v` and `ts`; all have the same number of
    rows. A microsecond becomes a millisecond of Flink, because Flink knows no shorter time.

    Raises RuntimeError if this machine lacks something, and if a job fails.
    """

    def __init__(self, folder: Path, tables: Sequence[pa.Table]) -> None:
        lacking = missing()
        if lacking is not None:
            raise RuntimeError(lacking)
        _write(folder, tables)
        found = os.pathsep.join(map(str, jars(_JARS)))
        java = jdk() or Path()
        compiling: list[str | Path] = [java / "javac", "-proc:none", "-d", folder, "-cp", found]
        subprocess.run([*compiling, _SOURCE], check=True)
        opened = [f"--add-opens={package}=ALL-UNNAMED" for package in OPENED]
        path = os.pathsep.join([found, str(folder)])
        started = [str(java / "java"), *_OPTIONS, *opened, "-cp", path, "RowStreams"]
        self._child = Child([*started, str(folder), str(len(tables[0]))])
        self.version = self._child.greeting.removeprefix("ready ")

    def sql(self, text: str) -> Counted:
        """Run a statement over the table `t`; its rows are counted."""
        return _counted(self._child.ask("sql " + " ".join(text.split())))

    def lines(self, text: str) -> Counted:
        """Run a statement over the table `t`, whose rows are read from a file of lines."""
        return _counted(self._child.ask("lines " + " ".join(text.split())))

    def kept(self, text: str, interval: float, state: str = "hashmap") -> Counted:
        """Run it as `lines` does, with a checkpoint every `interval` seconds of wall time.

        state: `hashmap`, on the heap, or `rocksdb`, which takes a hundred times the CPU here.
        """
        milliseconds = max(10, round(1000 * interval))
        text = " ".join(text.split())
        return _counted(self._child.ask(f"kept {state} {milliseconds} {text}"))

    def read(self) -> Counted:
        """Read the rows and hand them over by key, without a pattern."""
        return _counted(self._child.ask("read"))

    def close(self) -> None:
        """End the process."""
        self._child.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _counted(answer: str) -> Counted:
    rows, seconds, clock = answer.split(" ")
    return Counted(int(rows), *(tuple(map(float, one.split(","))) for one in (seconds, clock)))


def write_lines(table: pa.Table, to: Path | BinaryIO) -> None:
    """Write rows as lines of comma-separated values without a header; times are microseconds."""
    rows = table.select(["type", "key", "v", "ts"])
    rows = rows.set_column(3, "ts", rows["ts"].cast(pa.int64()))
    csv.write_csv(rows, to, csv.WriteOptions(include_header=False, quoting_style="none"))


def _write(folder: Path, tables: Sequence[pa.Table]) -> None:
    """Write the rows of all tables in the order of time: a file for each column, and `rows.csv`."""
    letters = pa.array([chr(code) for code in range(128)])
    columns: dict[str, list[np.ndarray]] = {"type": [], "key": [], "v": [], "ts": []}
    (folder / "rows.csv").unlink(missing_ok=True)
    for table in tables:
        ordered = table.sort_by("ts")
        with (folder / "rows.csv").open("ab") as lines:
            write_lines(ordered, lines)
        columns["type"].append(pc.index_in(ordered["type"], letters).to_numpy().astype(np.uint8))
        columns["key"].append(ordered["key"].to_numpy().astype("<i4"))
        columns["v"].append(ordered["v"].to_numpy().astype("<f8"))
        columns["ts"].append(ordered["ts"].cast(pa.int64()).to_numpy().astype("<i8"))
    for name, values in columns.items():
        (folder / name).write_bytes(np.concatenate(values).tobytes())
