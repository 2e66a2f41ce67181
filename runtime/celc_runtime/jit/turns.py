"""Processes that need one kernel at once take turns: the first compiles it, the others load it.

A turn is a lock of the system on one byte of a file in the cache, at a place that is the kernel's.
The system gives it back when its process ends, however that happens. A kernel is locked while those
that it calls are compiled, so a process waits only for kernels below those that it has: no circle
of processes can wait for each other. Where there are no such locks, each process compiles.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

from celc_runtime.jit.bootstrap import cache_root

MOST_SECONDS = 60.0
"""That a process waits for a turn, once: kernels take a few seconds, and the process that compiles
one may have been stopped."""

_PAUSE = 0.02  # seconds between two questions whether it is this one's turn
_waits = True


@contextmanager
def turn(name: str) -> Iterator[None]:
    """Within it, no other process compiles what the cache keeps under a name, if that can be."""
    root = cache_root()
    if root is None or fcntl is None or (root / name).exists():
        yield
        return
    file, place = _file(root), int.from_bytes(sha256(name.encode()).digest()[:7], "big")
    has = file is not None and _has_waited(file, place)
    try:
        yield
    finally:
        if has and file is not None:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


@cache
def _file(root: Path) -> int | None:
    """The file of locks. It stays open: a process that closes it gives all its locks back."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(root / "turns.lock", flags, 0o600)
    except OSError:  # as in a folder that can only be read: nothing is kept there either
        return None


def _has_waited(file: int, place: int) -> bool:
    """Waits for a turn; False where there are no locks, or where it takes too long."""
    global _waits
    until = time.monotonic() + MOST_SECONDS
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            return True
        except (BlockingIOError, PermissionError):  # another process has it
            _waits = _waits and time.monotonic() < until
            if not _waits:
                return False
            time.sleep(_PAUSE)
        except OSError:  # as on some network file systems
            return False
