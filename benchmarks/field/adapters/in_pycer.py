"""pycer, the bindings of CORE, in a Python of its own version.

Its wheels are for one version of Python each, which need not be the one that runs the benchmark:
`pycer_side.py` runs in that one, as a child process. FIELD_PYCER names it; without that it is
`python3.13` on PATH. A server of pycer answers one query over the events that are sent to it, and
prints its rows: so each run starts a server, sends the events, which are made before, and reads the
rows.

What it is asked has been written after its grammar (CEQLQueryParser.g4) and its stubs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
from data_sets import DataSet
from tasks import Task

from adapters.in_child import InChild

SIDE = Path(__file__).parent / "pycer_side.py"
_TYPES = {"INT": "int", "LONG": "int", "DOUBLE": "double", "STRING": "string"}


def python() -> str | None:
    """The Python that has pycer; None where there is none."""
    found = os.environ.get("FIELD_PYCER") or shutil.which("python3.13")
    if found is None or shutil.which(found) is None:
        return None
    asked = [found, "-c", "import pycer"]
    return found if not subprocess.run(asked, capture_output=True, check=False).returncode else None


class InPycer(InChild):
    name, title, languages = "pycer", "CORE (pycer)", ("pycer",)
    package = "pycer"
    how = "its offline server, over events made before; the rows are read off what it prints"

    def command(self) -> list[str]:
        found = python()
        assert found is not None
        return [found, str(SIDE)]

    @classmethod
    def lacking(cls) -> str | None:
        if python() is None:
            return (
                "no Python here has pycer: its wheels (0.1.6) are for CPython 3.13 alone. Name "
                "such a Python by FIELD_PYCER. The adapter is written after its sources, and has "
                "never run"
            )
        return None

    @classmethod
    def release(cls) -> str:
        asked = [python() or "", "-c", "import importlib.metadata as m; print(m.version('pycer'))"]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()

    def load(self, data: DataSet, table: pa.Table) -> None:
        rows = table.select(["type", *(name for name in data.fields() if name != "type")])
        self._child.ask(f"load {self.write(data, rows)} {declared(data)}")

    def run(self, task: Task, text: str) -> int:
        return int(self._child.ask("query " + " ".join(text.split())))


def declared(data: DataSet) -> str:
    """The stream of a data set, whose first attribute is the id."""
    fields = [(name, kind) for name, kind in data.fields().items() if name != "type"]
    columns = ", ".join(f"{name}:{_TYPES[kind]}" for name, kind in fields)
    events = ", ".join(f"EVENT {letter} {{ {columns} }}" for letter in data.types)
    return f"CREATE STREAM {data.name} {{ {events} }}"
