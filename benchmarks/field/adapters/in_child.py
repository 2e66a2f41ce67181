"""An engine in a child process, to which events go as a file, and which writes its rows to one."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

import pyarrow as pa
from child import Child
from data_sets import DataSet
from processes import process_seconds
from pyarrow import csv
from tasks import Task

from adapters.adapter import Adapter


class InChild(Adapter):
    """Such an engine. `command` starts its process."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._child = Child(self.command())

    @abstractmethod
    def command(self) -> list[str]:
        """The command of the process, after whatever has to be made for it."""

    def write(self, data: DataSet, table: pa.Table) -> Path:
        """The events as lines of CSV without a head."""
        path = self.folder / f"{data.name}.csv"
        csv.write_csv(table, path, csv.WriteOptions(include_header=False, quoting_style="none"))
        return path

    def answer(self, task: Task) -> pa.Table:
        path = self.folder / "rows.csv"
        self._child.ask(f"write {path}")
        if not path.stat().st_size:
            return pa.table({name: pa.array([], pa.int64()) for name in task.answer})
        return csv.read_csv(path, csv.ReadOptions(column_names=list(task.answer)))

    def seconds(self) -> float:
        return process_seconds(self._child.pid)

    def close(self) -> None:
        self._child.close()
