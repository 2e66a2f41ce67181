"""The progress of `celc run` on a terminal: what is compiled, and bytes, rows and matches.

The thread that reads draws the line between two batches, and removes it before anything else is
written. So it never mixes with matches on the same terminal. While Numba compiles, nothing else is
written.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from celc_runtime.jit.watching import watched_by

from celc.diagnostics.source import visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

WAIT = 2.0  # seconds before bytes and rows are shown
WAIT_TO_COMPILE = 0.5  # seconds of compiling before it is shown

_BETWEEN = 0.1  # seconds between two drawings

clock: Callable[[], float] = time.monotonic


class Bar:
    """A line with the progress of reading."""

    def __init__(self, stream: TextIO, total: int | None) -> None:
        self._stream = stream
        self._total = total
        self._matches = 0
        self._next = clock() + WAIT
        self._drawn: tuple[Progress, TaskID] | None = None

    def read(self, done: int, rows: int) -> None:
        """Show the bytes and rows that were read since the beginning."""
        now = clock()
        if now < self._next:
            return
        self._next = now + _BETWEEN
        progress, task = self._drawn or self._begun()
        progress.update(task, completed=done, text=self._text(done, rows))
        progress.refresh()

    def found(self, matches: int) -> None:
        """Count more matches, and remove the line so that they can be written."""
        self._matches += matches
        self.clear()

    def clear(self) -> None:
        if self._drawn is not None:
            self._drawn[0].stop()
            self._drawn = None

    def _begun(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        progress = Progress(
            BarColumn(),
            TextColumn("{task.fields[text]}", markup=False),
            console=Console(file=self._stream),
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        progress.start()
        self._drawn = progress, progress.add_task("", total=self._total, text="")
        return self._drawn

    def _text(self, done: int, rows: int) -> str:
        from rich.filesize import decimal

        read = decimal(done)
        if self._total is not None:
            read = f"{read} of {decimal(self._total)}"
        matches = f"{self._matches:,} match{'es' if self._matches != 1 else ''}"
        return f"{read}, {rows:,} row{'s' if rows != 1 else ''}, {matches}"


class Compiling:
    """A line while Numba compiles kernels of a query; it tells what is compiled."""

    def __init__(self, stream: TextIO, query: str) -> None:
        self._stream = stream
        self._query = query
        self._kernels: list[str] = []
        self._timer: threading.Timer | None = None
        self._is_late = False
        self._is_drawn = False
        self._lock = threading.Lock()

    def watch(self, kernel: str, begins: bool) -> None:
        """A kernel is compiled from now on, perhaps for one that is compiled already."""
        with self._lock:
            if begins:
                self._kernels.append(kernel)
                if self._timer is None:
                    self._timer = threading.Timer(WAIT_TO_COMPILE, self._begin)
                    self._timer.daemon = True
                    self._timer.start()
            else:
                self._kernels.pop()
            self._draw()

    def stop(self) -> None:
        """Show nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._kernels.clear()
            self._draw()

    def _begin(self) -> None:
        with self._lock:
            self._is_late = True
            self._draw()

    def _draw(self) -> None:
        if not self._is_late or not (self._kernels or self._is_drawn):
            return
        text = ""
        if self._kernels:
            doing = f"compiling (once for this query) {self._query}: {self._kernels[-1]}"
            text = visible(doing)[: shutil.get_terminal_size().columns - 1]
        self._stream.write(f"\r\x1b[K{text}")
        self._stream.flush()
        self._is_drawn = bool(self._kernels)


@contextmanager
def compiling_shown(query: str) -> Iterator[None]:
    """What Numba compiles for a query is shown within it, where standard error is a terminal."""
    if not _is_terminal():
        yield
        return
    line = Compiling(sys.stderr, query)
    try:
        with watched_by(line.watch):
            yield
    finally:
        line.stop()


@contextmanager
def shown(total: int | None, query: str) -> Iterator[Bar | None]:
    """A bar, where standard error is a terminal; and what is compiled for the query."""
    if not _is_terminal():
        yield None
        return
    bar = Bar(sys.stderr, total)
    try:
        with compiling_shown(query):
            yield bar
    finally:
        bar.clear()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
