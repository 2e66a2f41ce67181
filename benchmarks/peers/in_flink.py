"""Each task in FlinkCEP, beside `match_table` on a table of Arrow.

FlinkCEP is a library of Java. Its jars come by `pip install ".[flink]"`: the wheel
apache-flink-libraries holds them and needs no other package. (apache-flink, the API in Python, has
no FlinkCEP, and asks for versions of pyarrow and py4j that celc and PySpark do not take.)
`flink/Patterns.java` is compiled against the jars at each start. It runs as a child process, which
holds the events and answers each line by one; its comment has the protocol.

Why Java and not Flink's SQL: MATCH_RECOGNIZE runs on the same operator, but it never gives two
matches that begin with one event. Most tasks ask for all matches. `in_flink_sql` has a
stream of it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
from processes import tree_seconds
from pyarrow import csv
from tasks import TYPES, Task

_SOURCE = Path(__file__).parent / "flink" / "Patterns.java"
_JARS = ("flink-dist-*.jar", "flink-cep-*.jar")
# The collector that takes the least CPU time here. It has two threads on two cores.
_OPTIONS = ("-Xmx3g", "-XX:+UseParallelGC")
# Kryo and the serializers of state look into these packages of Java itself.
OPENED = ("java.base/java.lang", "java.base/java.util", "java.base/java.time")


def missing() -> str | None:
    """What FlinkCEP needs and this machine lacks, in words; None where all is there."""
    if not jars(_JARS):
        return 'FlinkCEP is not installed: pip install ".[flink]"'
    if jdk() is None:
        return "no javac in JAVA_HOME or on PATH: FlinkCEP needs a JDK of Java 17 or newer"
    return None


class InFlink:
    """A process with a cluster of one slot, which holds the tables; `close` ends it.

    `folder` is for the compiled program, the events and the rows. Raises RuntimeError where
    something is missing, and where a job fails.
    """

    def __init__(self, folder: Path, tables: dict[str, pa.Table]) -> None:
        lacking = missing()
        if lacking is not None:
            raise RuntimeError(lacking)
        self._rows = folder / "rows.csv"
        for name, table in tables.items():
            _write(folder / f"{name}.csv", table)
        found = os.pathsep.join(map(str, jars(_JARS)))
        java = jdk() or Path()
        compiling: list[str | Path] = [
            java / "javac",
            "-proc:none",
            "-d",
            folder,
            "-cp",
            found,
            _SOURCE,
        ]
        subprocess.run(compiling, check=True)
        opened = [f"--add-opens={package}=ALL-UNNAMED" for package in OPENED]
        path = os.pathsep.join([found, str(folder)])
        self._child = Child(
            [str(java / "java"), *_OPTIONS, *opened, "-cp", path, "Patterns", str(folder)]
        )
        self.version = self._child.greeting.removeprefix("ready ")

    def match(self, task: Task, rows: int) -> int:
        """Run the pattern of a task; returns how many rows there are. They stay in the process."""
        return int(self._child.ask(f"match {task.flink_text(rows)}"))

    def read(self, task: Task) -> int:
        """Read the events of a task as `match` does, without a pattern; returns their number."""
        return int(self._child.ask(f"read {task.table}"))

    def answer(self, task: Task) -> pa.Table:
        """The rows of the last `match`, as a table of Arrow."""
        self._child.ask(f"write {self._rows}")
        if not self._rows.stat().st_size:
            return pa.table({name: pa.array([], pa.int64()) for name in task.columns})
        names = csv.ReadOptions(column_names=list(task.columns))
        return csv.read_csv(self._rows, read_options=names)

    def seconds(self) -> float:
        """The CPU seconds of the process so far, with all its threads."""
        return tree_seconds(self._child.pid)

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


class Child:
    """A process that greets with a line, and answers each line by one; it ends with its input.

    Raises RuntimeError for an answer that begins with "error", and where the process has ended.
    """

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        self.pid = self._process.pid
        self.greeting = self._line(command[0])

    def ask(self, line: str) -> str:
        """The answer to a line."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # `_line` says that the process has ended
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        return self._line(line)

    def _line(self, asked: str) -> str:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().rstrip("\n")
        if not answer:
            raise RuntimeError(f"{asked}: the process ended with code {self._process.wait()}")
        if answer.startswith("error"):
            raise RuntimeError(f"{asked}: {answer}")
        return answer

    def close(self) -> None:
        """End the process; one that does not end by itself in ten seconds is stopped."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def _write(path: Path, table: pa.Table) -> None:
    """Write the events as numbers, without a header."""
    if "type" in table.column_names:
        codes = pc.index_in(table["type"], pa.array(list(TYPES)))
        table = table.set_column(table.column_names.index("type"), "type", codes)
    csv.write_csv(table, path, csv.WriteOptions(include_header=False))


def jars(names: Sequence[str]) -> list[Path]:
    """The jars of a program of Flink, by their names with `*`; none where one is missing."""
    found = importlib.util.find_spec("pyflink")
    folders = [] if found is None else found.submodule_search_locations or []
    there = [jar for folder in folders for each in names for jar in Path(folder, "lib").glob(each)]
    return there if len(there) >= len(names) else []


def jdk() -> Path | None:
    """The folder of `java` and `javac`: that of JAVA_HOME before that of PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("javac", path=str(Path(home, "bin"))) if home else None
    found = found or shutil.which("javac")
    return Path(found).resolve().parent if found else None
