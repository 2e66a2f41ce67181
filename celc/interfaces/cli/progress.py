"""The progress of `celc run` on a terminal, after two seconds: bytes, rows and matches.

The thread that reads draws the line between two batches, and removes it before anything else is
written. So it never mixes with matches on the same terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

WAIT = 2.0  # seconds before anything is shown

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


@contextmanager
def shown(total: int | None) -> Iterator[Bar | None]:
    """A bar, where standard error is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    bar = Bar(sys.stderr, total)
    try:
        yield bar
    finally:
        bar.clear()
