"""Ctrl-C and `kill`: they end a command in order, so that it can remove its unfinished file.

A second signal does not wait for that. Its handler removes all unfinished files, and ends the
process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Stopped(BaseException):
    """A signal has asked the command to end; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _State:
    """The state of the handler: the signal that has come (0: none), and whether signals wait."""

    def __init__(self) -> None:
        self.came = 0
        self.waits = False


_state = _State()
unfinished: dict[str, Callable[[], None]] = {}
"""The removal of each file that was begun and does not have its name yet."""


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Makes signals that end a process raise `Stopped`. Ignored signals stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    before = {}
    _state.came, _state.waits = 0, False
    hook, sys.unraisablehook = sys.unraisablehook, _ask_again
    try:
        for name in _NAMES:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, _stop)
        yield
    except Exception:
        # A library that was writing may have turned the signal into its own error.
        if _state.came:
            raise Stopped(_state.came) from None
        raise
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Signals are ignored while a file gets its name. They come too late to remove it."""
    _state.waits = True
    try:
        yield
    finally:
        _state.waits = False


def _ask_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Send the signal again, if a handler raised in one of Python's callbacks, where nothing can be
    raised."""
    stopped = unraisable.exc_value
    if not isinstance(stopped, Stopped):
        sys.__unraisablehook__(unraisable)
        return
    _state.came = 0
    threading.Timer(0.01, os.kill, (os.getpid(), stopped.number)).start()


def _stop(number: int, frame: FrameType | None) -> None:
    if _state.waits:
        return
    if _state.came:
        for remove in list(unfinished.values()):
            remove()
        os._exit(128 + number)
    _state.came = number
    raise Stopped(number)
