"""Flink: patterns of FlinkCEP in Java, and statements of Flink SQL with MATCH_RECOGNIZE.

Flink is a library of Java. Its jars come by `pip install apache-flink-libraries`, which needs no
other package. (apache-flink, the API in Python, has no FlinkCEP, and asks for versions of pyarrow
and py4j that PySpark does not take.) `flink/Field.java` runs as a child process, which holds the
events and answers each line by one; its comment has the protocol. The texts of the tasks are put
into a class for each data set, and compiled at each start.

Keys of a task beside its text: `flink_key` is what its events are partitioned by, an expression of
Java or nothing, where that is not the key of the set; `flink_rows` chooses its events.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from data_sets import SETS, DataSet
from tasks import Task, tasks

from adapters.adapter import CORES, without
from adapters.in_child import InChild

_SOURCES = Path(__file__).resolve().parent.parent / "flink"
# The collector that takes the least CPU time here.
_OPTIONS = ("-Xmx4g", "-XX:+UseParallelGC")
# Kryo and the serializers of state look into these packages of Java itself.
OPENED = ("java.base/java.lang", "java.base/java.util", "java.base/java.time")

_JAVA = {"INT": "int", "LONG": "long", "DOUBLE": "double", "STRING": "String"}
_READ = {
    "INT": "Integer.parseInt({})",
    "LONG": "Long.parseLong({})",
    "DOUBLE": "Double.parseDouble({})",
    "STRING": "{}.intern()",
}
_SQL = {"INT": "INT", "LONG": "BIGINT", "DOUBLE": "DOUBLE", "STRING": "STRING"}
_BOXES = {"INT": "Integer", "LONG": "Long", "DOUBLE": "Double", "STRING": "String"}


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


class InFlinkCep(InChild):
    name, title, languages = "flink_cep", "FlinkCEP", ("flink_cep",)
    package = "apache-flink-libraries"
    how = (
        "a pattern of its Java API in event time, on a cluster in one process with a slot for "
        "each core; one reader hands the events over in their order"
    )
    jars: ClassVar[tuple[str, ...]] = (
        "flink-dist-*.jar",
        "flink-cep-*.jar",
        "flink-table-api-java-uber-*.jar",
        "flink-table-planner-loader-*.jar",
        "flink-table-runtime-*.jar",
    )

    def command(self) -> list[str]:
        java, folder = jdk(), self.folder
        assert java is not None
        path = os.pathsep.join(map(str, jars(self.jars)))
        sources = [*_SOURCES.glob("*.java"), *(_written(folder, data) for data in SETS.values())]
        compiler = [java / "javac", "-proc:none", "-nowarn", "-d", folder, "-cp", path, *sources]
        made = subprocess.run(compiler, capture_output=True, text=True, check=False)
        if made.returncode:
            raise RuntimeError(f"the patterns in Java: {made.stderr}")
        opened = [f"--add-opens={package}=ALL-UNNAMED" for package in OPENED]
        path = os.pathsep.join([path, str(folder)])
        return [str(java / "java"), *_OPTIONS, *opened, "-cp", path, "Field", str(CORES)]

    @classmethod
    def lacking(cls) -> str | None:
        absent = without(cls.package)
        if absent is None and not jars(cls.jars):
            absent = "its package has no jars of tables"
        if absent is None and jdk() is None:
            absent = "no javac in JAVA_HOME or on PATH: it needs a JDK of Java 17 or newer"
        return absent

    def load(self, data: DataSet, table: pa.Table) -> None:
        self._child.ask(f"load {data.name} {self.write(data, table)}")

    def run(self, task: Task, text: str) -> int:
        return int(self._child.ask(f"match {task.name}"))


class InFlinkSql(InFlinkCep):
    name, title, languages = "flink_sql", "Flink SQL", ("flink_sql",)
    how = "a statement over a stream with a watermark, on such a cluster in a process of its own"

    def run(self, task: Task, text: str) -> int:
        return int(self._child.ask("sql " + " ".join(text.split())))


# --- the class of a data set ----------------------------------------------------------------------

_CLASS = """\
import java.util.*;
import org.apache.flink.api.common.functions.FilterFunction;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.*;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.streaming.api.datastream.DataStream;

public final class Of_$NAME extends Field.Of<Of_$NAME.Event> {
  public static final class Event {
$FIELDS
  }

  static boolean is(Event e, String type) { return e.type.equals(type); }
  static IterativeCondition<Event> is(String type) {
    return SimpleCondition.of(e -> e.type.equals(type));
  }

  Class<Event> type() { return Event.class; }
  String[][] columns() { return new String[][] {$COLUMNS}; }
  Event event(String[] fields) {
    Event e = new Event();
$READS
    return e;
  }
  Event end(Event of, long id, long ts) {
    Event e = new Event();
    e.id = id; e.ts = ts; e.type = "END";
$ENDS
    return e;
  }
  long id(Event e) { return e.id; }
  long ts(Event e) { return e.ts; }
  Object own(Event e) { return $OWN; }
  DataStream<Event> keyed(DataStream<Event> events, String task) {
    switch (task) {
$KEYS
      default: return $KEY;
    }
  }
  FilterFunction<Event> rows(String task) {
    switch (task) {
$ROWS
      default: return null;
    }
  }
  String[] answer(String task) {
    switch (task) {
$ANSWERS
      default: throw new IllegalArgumentException("no such task: " + task);
    }
  }
  Pattern<Event, ?> pattern(String task) {
    switch (task) {
$PATTERNS
      default: throw new IllegalArgumentException("no such task: " + task);
    }
  }
}
"""


def _written(folder: Path, data: DataSet) -> Path:
    """The file of the class of a data set, with the patterns of its tasks."""
    path = folder / f"Of_{data.name}.java"
    path.write_text(class_of(data), "utf-8")
    return path


def class_of(data: DataSet) -> str:
    """The class of a data set in Java."""
    fields, mine = data.fields(), [task for task in tasks() if task.data == data]
    kept = [data.key] if data.key else []
    texts = [
        name for name, kind in fields.items() if kind == "STRING" and name not in ["type", *kept]
    ]
    parts = {
        "NAME": data.name,
        "FIELDS": "\n".join(f"    public {_JAVA[kind]} {name};" for name, kind in fields.items()),
        "COLUMNS": ", ".join(f'{{"{name}", "{_SQL[kind]}"}}' for name, kind in fields.items()),
        "READS": "\n".join(
            f"    e.{name} = {_READ[kind].format(f'fields[{place}]')};"
            for place, (name, kind) in enumerate(fields.items())
        ),
        "ENDS": "\n".join(
            [f"    e.{name} = of.{name};" for name in kept]
            + [f'    e.{name} = "";' for name in texts]
        ),
        "OWN": f"e.{data.key}" if data.key else '""',
        "KEYS": _cases((task, _keyed(data, task.text("flink_key"))) for task in mine),
        "KEY": _keyed(data, f"e.{data.key}") or "events",
        "ROWS": _cases((task, task.text("flink_rows")) for task in mine),
        "ANSWERS": _cases(
            (task, "new String[] {" + ", ".join(f'"{each}"' for each in task.answer) + "}")
            for task in mine
        ),
        "PATTERNS": _cases((task, task.text("flink_cep")) for task in mine),
    }
    text = _CLASS
    for name in sorted(parts, key=len, reverse=True):
        text = text.replace(f"${name}", parts[name])
    return text


def _cases(of: object) -> str:
    return "\n".join(
        f'      case "{task.name}": return {text};'
        for task, text in of  # type: ignore[attr-defined]
        if text is not None
    )


def _keyed(data: DataSet, key: str | None) -> str | None:
    """The events by a key; None for that of the set."""
    if key is None or key == "e.":
        return None
    if not key:
        return "events"
    box = _BOXES[data.fields().get(key.removeprefix("e."), "STRING")]
    return f"events.keyBy((KeySelector<Event, {box}>) e -> {key})"
