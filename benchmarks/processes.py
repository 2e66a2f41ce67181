"""CPU time, memory and cores of a process and all its descendants, exited ones included (Linux).

A Spark job runs in a JVM, a daemon that forks, and the workers that it forked; what a worker used
is added to its parent when that waits for it. So the sum over the tree of a process's own time and
that of its waited-for children loses nothing, whenever it is read.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PROCESSES = Path("/proc")


def tree_seconds(root: int | None = None) -> float:
    """CPU seconds of a process (this one) and its descendants, in steps of a clock tick."""
    stats = dict(_stats())
    ticks = sum(sum(stats[pid][1:]) for pid in _tree(root or os.getpid(), stats))
    return ticks / os.sysconf("SC_CLK_TCK")


def seconds_of(job: Callable[[], object]) -> float:
    """CPU seconds that this process and its descendants use while a job runs.

    Processes that end meanwhile count as well; what they used before does not, whether their
    parent has waited for them or not.
    """
    before = _tree_stats()
    job()
    after = _tree_stats()
    ended: dict[int, int] = {}
    for pid, (parent, own, waited) in before.items():
        if pid not in after:
            while parent not in after:
                parent = before[parent][0]
            ended[parent] = ended.get(parent, 0) + own + waited
    ticks = 0
    for pid, (_, own, waited) in after.items():
        _, own_before, waited_before = before.get(pid, (0, 0, 0))
        ticks += own - own_before + max(0, waited - waited_before - ended.get(pid, 0))
    return ticks / os.sysconf("SC_CLK_TCK")


def worker_seconds(root: int | None = None) -> float:
    """CPU seconds of what descends from the JVMs of a tree: Spark's Python workers."""
    stats = dict(_stats())
    return sum(sum(stats[pid][1:]) for pid in _workers(stats, root)) / os.sysconf("SC_CLK_TCK")


def process_seconds(pid: int) -> float:
    """CPU seconds of a process with all its threads, ended ones included."""
    return time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3)


def forget_peaks() -> None:
    """Begin a new peak of memory for this process and its descendants."""
    _forget_peaks(_tree(os.getpid(), dict(_stats())))


def peak_bytes() -> int:
    """The most memory that this process and its descendants have held since, each by itself."""
    return sum(_bytes_of(pid, "VmHWM") for pid in _tree(os.getpid(), dict(_stats())))


def held_bytes() -> int:
    """The memory that they hold now."""
    return sum(_bytes_of(pid, "VmRSS") for pid in _tree(os.getpid(), dict(_stats())))


class Peak:
    """The most memory that a process had, in bytes; 0 until it is known."""

    bytes = 0


@contextmanager
def worker_peak() -> Iterator[Peak]:
    """The most memory of one of Spark's Python workers while a block runs, known at its end.

    Workers are used again, so that their own peaks are forgotten first.
    """
    _forget_peaks(_workers(dict(_stats())))
    peak = Peak()
    yield peak
    peak.bytes = max((_bytes_of(pid, "VmHWM") for pid in _workers(dict(_stats()))), default=0)


def end_workers() -> None:
    """End Spark's Python workers, which keep memory of earlier jobs. Spark forks new ones when it
    needs them."""
    stats = dict(_stats())
    found = _workers(stats)
    for pid in found:
        if stats[pid][0] in found:  # the parent of the others is the daemon that forks them
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it has just ended


def _forget_peaks(pids: Iterable[int]) -> None:
    for pid in pids:
        try:
            (_PROCESSES / str(pid) / "clear_refs").write_text("5")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended


def _bytes_of(pid: int, name: str) -> int:
    """A figure of the memory of a process; 0 where it has just ended."""
    try:
        lines = (_PROCESSES / str(pid) / "status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


def _workers(stats: dict[int, tuple[int, int, int]], root: int | None = None) -> set[int]:
    jvms = [pid for pid in _tree(root or os.getpid(), stats) if _is_jvm(pid)]
    return {pid for jvm in jvms for pid in _tree(jvm, stats)} - set(jvms)


def _is_jvm(pid: int) -> bool:
    try:
        return (_PROCESSES / str(pid) / "comm").read_text().strip() == "java"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pin_tree(cores: Iterable[int], root: int | None = None) -> None:
    """Let all threads of a process (this one) and its descendants run on these cores only.

    Threads and processes that they start later inherit it.
    """
    wanted = set(cores)
    stats = dict(_stats())
    for pid in _tree(root or os.getpid(), stats):
        for thread in _threads(pid):
            try:
                os.sched_setaffinity(thread, wanted)
            except ProcessLookupError:
                continue  # it has just ended


_SORTS = """
import os, sys, time
import numpy as np
os.sched_setaffinity(0, [int(sys.argv[1])])
values = np.random.default_rng(1).random(2_000_000)
np.sort(values)
print("ready", flush=True)
sys.stdin.readline()
begun = time.perf_counter()
for _ in range(10):
    np.sort(values)
print(time.perf_counter() - begun)
"""


def sorting_seconds(cores: Iterable[int]) -> float:
    """Seconds on the clock of the slowest of some processes, one on each core, that sort an array
    of their own and share nothing: what the machine gives to two tasks at once at best."""
    command = [sys.executable, "-c", _SORTS]
    processes = [
        subprocess.Popen(
            [*command, str(core)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for core in cores
    ]
    for one in processes:
        assert one.stdout is not None
        one.stdout.readline()
    for one in processes:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    return max(float(one.communicate()[0]) for one in processes)


def end_tree(root: int) -> None:
    """End a process and its descendants at once."""
    for pid in [*_tree(root, dict(_stats()))]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # it has just ended


def _tree_stats() -> dict[int, tuple[int, int, int]]:
    stats = dict(_stats())
    return {pid: stats[pid] for pid in _tree(os.getpid(), stats)}


def _stats() -> Iterator[tuple[int, tuple[int, int, int]]]:
    """Each process's parent, and the ticks of its own and of its waited-for children."""
    if not (_PROCESSES / "self" / "stat").exists():
        raise RuntimeError("the Spark benchmarks read /proc, which only Linux has")
    for folder in _PROCESSES.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            text = (folder / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        # The name stands in parentheses and may hold spaces and parentheses itself.
        fields = text[text.rindex(")") + 2 :].split()
        user, system, of_users, of_systems = map(int, fields[11:15])
        yield int(folder.name), (int(fields[1]), user + system, of_users + of_systems)


def _tree(root: int, stats: dict[int, tuple[int, int, int]]) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for pid, (parent, _, _) in stats.items():
        children.setdefault(parent, []).append(pid)
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        if pid in stats:
            yield pid
        waiting += children.get(pid, ())


def _threads(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(_PROCESSES / str(pid) / "task")]
    except (FileNotFoundError, ProcessLookupError):
        return []


def commands(root: int | None = None) -> dict[int, list[str]]:
    """The command lines of a process (this one) and its descendants."""
    found = {}
    for pid in _tree(root or os.getpid(), dict(_stats())):
        try:
            words = (_PROCESSES / str(pid) / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        found[pid] = words.decode(errors="replace").split("\0")
    return found
