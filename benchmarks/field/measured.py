"""What a process and all its descendants take of the processor and of memory (Linux)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

_PROCESSES = Path("/proc")


def process_seconds(pid: int) -> float:
    """CPU seconds of a process with all its threads, ended ones included."""
    return time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3)


def tree_seconds() -> float:
    """CPU seconds of this process and its descendants, in steps of a clock tick.

    What an ended process took is added to its parent when that waits for it.
    """
    stats = dict(_stats())
    return sum(stats[pid][1] for pid in _tree(os.getpid(), stats)) / os.sysconf("SC_CLK_TCK")


def forget_peak() -> None:
    """Begin a new peak of memory for this process and its descendants."""
    for pid in _tree(os.getpid(), dict(_stats())):
        try:
            (_PROCESSES / str(pid) / "clear_refs").write_text("5")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended


def peak_megabytes() -> float:
    """The most memory that this process and its descendants have held since, each by itself."""
    return _megabytes("VmHWM")


def megabytes() -> float:
    """The memory that they hold now."""
    return _megabytes("VmRSS")


def _megabytes(name: str) -> float:
    found = 0
    for pid in _tree(os.getpid(), dict(_stats())):
        try:
            lines = (_PROCESSES / str(pid) / "status").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        found += sum(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
    return found / 1024


def _stats() -> Iterator[tuple[int, tuple[int, int]]]:
    """Each process's parent, and the ticks of its own and of its waited-for children."""
    for folder in _PROCESSES.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            text = (folder / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        # The name stands in parentheses and may hold spaces and parentheses itself.
        fields = text[text.rindex(")") + 2 :].split()
        yield int(folder.name), (int(fields[1]), sum(map(int, fields[11:15])))


def _tree(root: int, stats: dict[int, tuple[int, int]]) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in stats.items():
        children.setdefault(parent, []).append(pid)
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        if pid in stats:
            yield pid
        waiting += children.get(pid, ())
