"""Both examples from data to matches, in Spark and on one machine: what `make demo` runs.

For each query: `celc compile` writes a module, Spark applies it to the whole stream, `celc run`
does the same without Spark, and the two answers are compared event by event. Exits with 1 where
they differ or a query finds nothing. What Spark's JVM has to say goes to build/demo/spark.log. With
`--more` it runs the queries of `more.py` instead, without Spark.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from data import make_data
from more import more
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("build", "data")
BUILD = Path("build", "demo")
SHOWN = 8

CONSOLE = Console(highlight=False)

Events = list[dict[str, Any]]


class Example(NamedTuple):
    name: str
    partition: str
    order: tuple[str, ...]
    labels: dict[str, str]
    show: Callable[[Events], str]
    remark: str

    @property
    def query(self) -> Path:
        return Path("examples", f"{self.name}.cel")

    @property
    def events(self) -> Path:
        return DATA / f"{self.name}.parquet"

    @property
    def module(self) -> Path:
        return BUILD / f"{self.name}_udf.py"


EXAMPLES = (
    Example(
        name="weather",
        partition="airport",
        order=("--order-by", "ts", "--tiebreak", "seq"),
        labels={"hot": "hot, °F", "warm": "warm, °F", "dry": "dry, %"},
        show=lambda events: "  ".join(f"{event['value']:.1f}" for event in events),
        remark="times are UTC",
    ),
    Example(
        name="flights",
        partition="tailnum",
        order=("--order-by", "sched_dep", "--tiebreak", "carrier,flight,file_row"),
        labels={"f1": "f1", "f2": "f2", "f3": "f3"},
        show=lambda events: "  ".join(
            f"{event['flight']} {event['dest']} +{event['dep_delay']:.0f}" for event in events
        ),
        remark="flight, destination, minutes late; times are New York's",
    ),
)


def main() -> None:
    if unknown := [one for one in sys.argv[1:] if one != "--more"]:
        sys.exit(f"{unknown[0]}: there is --more, and nothing else")
    # Paths are then printed as a reader in the project's folder can use them.
    os.chdir(ROOT)
    BUILD.mkdir(parents=True, exist_ok=True)
    if "--more" in sys.argv[1:]:
        heading("three million flights, a shop, and sensors")
        more(celc, DATA, BUILD, lambda line: CONSOLE.print(line, markup=False, soft_wrap=True))
        return
    heading("what left New York in 2013, and its weather")
    with step("data") as say:
        say(", ".join(map(str, make_data(DATA))))
    with step("Spark") as say:
        spark = start_spark(BUILD / "spark.log")
        say(f"{spark.version} as local[2], no cluster")
    try:
        agreed = [demonstrate(example, spark) for example in EXAMPLES]
    finally:
        spark.stop()
    sys.exit(not all(agreed))


def demonstrate(example: Example, spark: SparkSession) -> bool:
    """Runs and prints one example; whether it found something and both ways the same."""
    heading(str(example.query))
    text = example.query.read_text(encoding="utf-8")
    query = text[text.index("SELECT") :].strip()
    CONSOLE.print(query, style="cyan", markup=False, soft_wrap=True)
    CONSOLE.print()
    with step("compile") as say:
        # Both answers are compared by positions, which Spark's has where they are asked for.
        celc("compile", example.query, "-o", example.module, *example.order, "--positions")
        lines = example.module.read_text(encoding="utf-8").count("\n")
        say(f"{example.module}, {lines} lines")
    with step("Spark") as say:
        events = spark.read.parquet(str(example.events))
        matches = events.transform(load(example.module).match).toArrow().to_pylist()
        say(f"{events.count():,} events, {len(matches)} matches")
    with step("celc run") as say:
        output = celc("run", example.query, example.events, *example.order, "--format", "json")
        alone = [json.loads(line) for line in output.splitlines()]
        same = Counter(places_in_json(alone)) == Counter(places_in_rows(example, matches))
        say(f"{len(alone)} matches, " + ("the same ones" if same else "NOT THE SAME ONES"))
    CONSOLE.print()
    show(example, matches)
    return same and bool(matches)


def places_in_rows(example: Example, rows: Events) -> Iterator[str]:
    for row in rows:
        labels = {label: [event["pos"] for event in row[label]] for label in example.labels}
        yield place({example.partition: row[example.partition]}, row, "_pos", labels)


def places_in_json(rows: Events) -> Iterator[str]:
    for row in rows:
        yield place(row["partition"], row, "", row["labels"])


def place(partition: dict[str, Any], row: dict[str, Any], suffix: str, labels: Any) -> str:
    """Where a match is, as one text: its partition, its ends, and each label's positions."""
    return json.dumps([partition, row[f"start{suffix}"], row[f"end{suffix}"], labels])


def show(example: Example, matches: Events) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in (example.partition, "from", "to", *example.labels.values()):
        table.add_column(column, no_wrap=True)
    ordered = sorted(matches, key=lambda row: (row["start_time"], *map(str, row.values())))
    for row in ordered[:SHOWN]:
        start, end = row["start_time"], row["end_time"]
        cells = (example.show(row[label]) for label in example.labels)
        table.add_row(row[example.partition], moment(start), moment(end, start), *cells)
    CONSOLE.print(table)
    more = len(matches) - SHOWN
    CONSOLE.print((f"… and {more} more; " if more > 0 else "") + example.remark, style="dim")


def moment(at: datetime, after: datetime | None = None) -> str:
    """Day and time; only the time where the day is that of `after`."""
    return f"{at:%H:%M}" if after and after.date() == at.date() else f"{at:%d %b %H:%M}"


def start_spark(log: Path) -> SparkSession:
    """A local session whose JVM writes what it would say on stderr into `log`."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("celc demo")
    for name, value in {
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
    }.items():
        builder = builder.config(name, value)
    # The JVM inherits file descriptor 2 when it starts; Python gets its own back.
    terminal = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        return builder.getOrCreate()
    except Exception as error:
        hint = "`make demo` finds a Java, or run with JAVA_HOME=$(python tools/java.py)"
        sys.exit(f"Spark did not start ({error}); see {log}; {hint}")
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


def celc(*arguments: str | Path) -> str:
    """What the command line prints; diagnostics go to the terminal, and end the demo if fatal."""
    command = [sys.executable, "-m", "celc", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(f"celc {arguments[0]} ended with exit code {done.returncode}")
    return done.stdout


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def heading(text: str) -> None:
    CONSOLE.print()
    CONSOLE.rule(f"[bold]{text}", align="left")


@contextmanager
def step(name: str) -> Iterator[Callable[[str], None]]:
    """Prints a line for what runs inside: its name, what it says in the end, its wall time."""
    said: list[str] = []
    start = time.perf_counter()
    yield said.append
    seconds = time.perf_counter() - start
    line = f"{name:<9} {'; '.join(said):<61} {seconds:5.1f} s"
    CONSOLE.print(line, markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
