"""How long a compilation may take (`--max-compile-seconds`).

The stages look at the clock in their long loops, and note their work and its place in the query,
for the error to repeat. The deadline is a context variable: stages stay functions of what they
compile, and most of the loops are deep inside them. Rejected: signals and threads, which work only
in some threads or on some systems, and stop a stage anywhere. Calls into other libraries cannot be
interrupted, so the clock is read before and after.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from celc.diagnostics.errors import CelError, Diagnostic, error
from celc.diagnostics.source import Source, Span

clock = time.monotonic


@dataclass(slots=True)
class Deadline:
    """The time that a compilation may take; `seconds` None: any time.

    Only the time inside `running` counts. `source` is the present file.
    """

    source: Source
    seconds: float | None
    _used: float = 0.0
    _began: float = 0.0
    _doing: str = "reading the text"
    _place: Span = field(default=Span(0, 0))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of the stages that run inside."""
        token = _running.set(None if self.seconds is None else self)
        self._began = clock()
        try:
            yield
        finally:
            self._used += clock() - self._began
            _running.reset(token)

    def turn_to(self, source: Source) -> None:
        """Go on with another file."""
        self.source, self._place = source, Span(0, 0)

    def look(self, doing: str | None, place: Span | None) -> None:
        """Note the present work and its place. Raises CelError when the time is over."""
        self._doing = doing or self._doing
        self._place = place or self._place
        if self.is_over():
            raise CelError(self.source, (self._too_slow(),))

    def is_over(self) -> bool:
        """Whether all of the time has passed."""
        return self.seconds is not None and self._used + clock() - self._began >= self.seconds

    def _too_slow(self) -> Diagnostic:
        assert self.seconds is not None
        return error(
            "too-slow-to-compile",
            self._place,
            f"the compilation takes more than {seconds_text(self.seconds)}: celc was "
            f"{self._doing} when that time was over",
            "make this part of the query smaller, put queries into files of their own, or "
            "allow more time: --max-compile-seconds, compile(…, max_compile_seconds=…)",
        )


_running: ContextVar[Deadline | None] = ContextVar("celc_deadline", default=None)


def look(place: Span | None = None, doing: str | None = None) -> None:
    """Look at the clock of the running compilation, if it has a deadline.

    `place` is the present part of the query. `doing` is the work in words for the user, given where
    a stage begins. Both hold until others are given. Raises CelError when the time is over.
    """
    running = _running.get()
    if running is not None:
        running.look(doing, place)


def turn_to(source: Source) -> None:
    """Tell the running compilation with which file it goes on: places are places in it."""
    running = _running.get()
    if running is not None:
        running.turn_to(source)


def seconds_text(seconds: float) -> str:
    """`1 second`, `2.5 seconds`."""
    return f"{seconds:g} second{'' if seconds == 1 else 's'}"
