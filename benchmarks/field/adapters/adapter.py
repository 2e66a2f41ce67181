"""The interface of an engine in the benchmark: one subclass for each engine."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from data_sets import DataSet
from tasks import Task

CORES = len(os.sched_getaffinity(0))


class Adapter(ABC):
    """An engine in a process of its own, which holds the events of one data set at a time."""

    name: ClassVar[str]
    """Its key in the files of tasks."""
    title: ClassVar[str]
    """Its name on the page."""
    languages: ClassVar[tuple[str, ...]]
    """The keys of its texts in a task, the preferred one first."""
    how: ClassVar[str]
    """How it is asked, for the page."""
    package: ClassVar[str]
    """The distribution that pip installs."""

    def __init__(self, folder: Path) -> None:
        """Start the engine; `folder` is for its files."""
        self.folder = folder

    @classmethod
    def lacking(cls) -> str | None:
        """What the engine needs and this machine lacks, in words; None where all is there."""
        return without(cls.package)

    @classmethod
    def release(cls) -> str:
        """Its version."""
        return version(cls.package)

    @classmethod
    def text(cls, task: Task) -> str | None:
        """The text of a task in its language; None where it has none."""
        return task.text(*cls.languages)

    @abstractmethod
    def load(self, data: DataSet, table: pa.Table) -> None:
        """Take the events into the engine's own form, in place of those before."""

    @abstractmethod
    def run(self, task: Task, text: str) -> int:
        """Answer a task; returns the number of rows. The answer stays for `answer`."""

    @abstractmethod
    def answer(self, task: Task) -> pa.Table:
        """The last answer, with the columns of the task in its order."""

    def seconds(self) -> float:
        """The CPU seconds of the engine so far, with all its threads and processes."""
        return time.process_time()

    def close(self) -> None:  # noqa: B027 (most have started nothing)
        """End what it has started."""


def without(*packages: str) -> str | None:
    """Which of these packages are not installed, in words; None where all are."""
    absent = [each for each in packages if not _there(each)]
    return f"not installed: pip install {' '.join(absent)}" if absent else None


def _there(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True
