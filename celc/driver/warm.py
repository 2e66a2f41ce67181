"""Machine code for the queries of a module, made by several processes at once.

Each process loads the module, and is given one query after another. It leaves the machine code in
the cache, where all processes look for it (`celc_runtime.jit.machine_code`).
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from celc_runtime.jit.bootstrap import cache_root
from celc_runtime.jit.shipping import module_of
from celc_runtime.plan.frozen import frozen

from celc.driver.matcher import Matcher, loaded_text

# Ctrl-C comes to all processes of a terminal. The first one says so, and the others just end.
_PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "import sys; sys.path[:] = {path!r}; from celc.driver.warm import main; main()"
)


class NotWarmed(Exception):
    """Machine code cannot be made, or not be kept; with the reason in words."""


@frozen
class Warmed:
    """A query whose machine code is there: what was compiled for it, and how long that took."""

    query: str
    kernels: tuple[str, ...]
    seconds: float


def warm(queries: Sequence[tuple[str, str]], processes: int) -> Iterator[Warmed]:
    """Make the machine code of queries, in this number of processes.

    queries: the text of a generated module, and a query's name in it. Yields what was made, in
    their order. Raises NotWarmed.
    """
    _check_cache()
    workers = [_Worker() for _ in range(min(processes, len(queries)))]
    idle: SimpleQueue[_Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def made(query: tuple[str, str]) -> Warmed:
        worker = idle.get()
        try:
            return worker.warm(*query)
        finally:
            idle.put(worker)

    threads = ThreadPoolExecutor(len(workers))
    try:
        yield from threads.map(made, queries)
    finally:
        for worker in workers:
            worker.end()
        threads.shutdown(cancel_futures=True)


def warm_all(matcher: Matcher, processes: int) -> None:
    """Make the machine code of all queries of a matcher, in several processes; see `warm`."""
    text = loaded_text(matcher)
    for _ in warm([(text, name) for name in matcher.queries], processes):
        pass


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_cache() -> None:
    with warnings.catch_warnings(record=True) as problems:
        warnings.simplefilter("always")
        root = cache_root()
    if root is None:
        why = ": ".join(str(problem.message) for problem in problems[:1])
        raise NotWarmed(why or "there is no folder for machine code: CELC_CACHE_DIR names one")
    if not os.access(root, os.W_OK):
        raise NotWarmed(f"machine code cannot be kept: {root} cannot be written to")


class _Worker:
    """A process that makes machine code."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", _PROGRAM.format(path=sys.path)]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self._text: str | None = None

    def warm(self, text: str, query: str) -> Warmed:
        """Let it make the machine code of a query, and wait for that."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            # The text is long, and all queries of a module have the same.
            given = {"query": query, "text": None if text == self._text else text}
            self._text = text
            print(json.dumps(given), file=process.stdin, flush=True)
        except BrokenPipeError:
            pass  # it has ended, and there is no answer
        answer = process.stdout.readline()
        if not answer:
            code = process.wait()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise NotWarmed(f"query {query!r}: the process that made its code ended with {how}")
        told = json.loads(answer)
        if told["problem"]:
            raise NotWarmed(told["problem"])
        return Warmed(query, tuple(told["kernels"]), told["seconds"])

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def main() -> None:
    """Make the machine code of the queries that standard input names, and answer each."""
    module: Any = None
    for line in sys.stdin:
        given = json.loads(line)
        if given["text"] is not None:
            module = module_of(given["text"])
        query = module.QUERIES[given["query"]]
        # A standalone module brings a runtime of its own.
        package = type(query).__module__.partition(".")[0]
        warming = importlib.import_module(f"{package}.chain.warming")
        begun = time.perf_counter()
        with warnings.catch_warnings(record=True) as problems:
            warnings.simplefilter("always", RuntimeWarning)
            kernels = warming.make_machine_code(query)
        told = {
            "kernels": kernels,
            "seconds": time.perf_counter() - begun,
            "problem": next((str(one.message) for one in problems), ""),
        }
        print(json.dumps(told), flush=True)
