"""Bytes that can be read only once, kept so that they can be read again.

Standard input and named pipes are copied into a file without a name while they are read, because a
query may need its events twice. The system removes such a file with the process, however the
process ends.
"""

from __future__ import annotations

import io
import os
import select
import signal
import tempfile
import threading
from typing import Any, BinaryIO

_PIPE_BLOCK = 1 << 16


class Spool:
    """A stream that can be read once, for readers who start again as often as they like."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._kept = tempfile.TemporaryFile(prefix="celc-")  # noqa: SIM115
        self._length = 0
        self._ended = False
        self._lock = threading.Lock()
        self._stop = _SignalPipe.of_this_thread()

    def close(self) -> None:
        self._kept.close()
        if self._stop is not None:
            self._stop.close()

    def reader(self) -> BinaryIO:
        """A reader from the beginning."""
        return _SpoolReader(self)  # type: ignore[return-value]

    def fill_all(self) -> int:
        """Keep all bytes to the end of the stream; returns their number."""
        while not self._ended:
            self._fill(self._length + _PIPE_BLOCK)
        return self._length

    def starts_with(self, size: int) -> bytes:
        """The first bytes."""
        while self._length < size and not self._ended:
            self._fill(size)
        return os.pread(self._kept.fileno(), size, 0)

    def read_at(self, place: int, size: int) -> bytes:
        """Bytes from a place on: `size` of them, or whole lines where no more have come yet. Empty:
        the end."""
        with self._lock:
            self._fill(place + size, place)
            return os.pread(self._kept.fileno(), min(size, self._length - place), place)

    def _fill(self, end: int, place: int | None = None) -> None:
        """Keep bytes up to an end. Whole lines after a place are enough where no more have come."""
        last = b""
        if place is not None and place < self._length:
            last = os.pread(self._kept.fileno(), 1, self._length - 1)
        while not self._ended and self._length < end:
            if last.endswith(b"\n") and not select.select([self.descriptor], [], [], 0)[0]:
                return
            self._wait()
            last = os.read(self.descriptor, _PIPE_BLOCK)
            self._ended = not last
            written = 0
            while written < len(last):
                written += os.pwrite(self._kept.fileno(), last[written:], self._length + written)
            self._length += len(last)

    def _wait(self) -> None:
        """Wait for bytes. A signal ends the wait, in any thread."""
        if self._stop is not None:
            ready, _, _ = select.select([self.descriptor, self._stop.end], [], [])
            if self._stop.end in ready:
                raise InterruptedError


class _SpoolReader(io.RawIOBase):
    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place}.get(whence)
        self._place = offset + (self._spool.fill_all() if start is None else start)
        return self._place

    def readinto(self, buffer: Any) -> int:
        data = self._spool.read_at(self._place, len(buffer))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)


class _SignalPipe:
    """A pipe that has bytes from the moment when a signal asks the process to end.

    The main thread cannot see the signal while it waits for a thread of Arrow, and that thread
    waits for bytes of the spool.
    """

    def __init__(self) -> None:
        self.end, self._other = os.pipe()
        os.set_blocking(self._other, False)
        self._before = signal.set_wakeup_fd(self._other, warn_on_full_buffer=False)

    @classmethod
    def of_this_thread(cls) -> _SignalPipe | None:
        """A pipe; None in a thread that gets no signals."""
        main = threading.current_thread() is threading.main_thread()
        return cls() if main else None

    def close(self) -> None:
        signal.set_wakeup_fd(self._before)
        os.close(self.end)
        os.close(self._other)
