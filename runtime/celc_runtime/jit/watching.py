"""Who is told of what Numba compiles."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Watcher = Callable[[str, bool], None]
"""Takes the name of a kernel, and whether its compilation begins (else it has ended)."""

watchers: list[Watcher] = []


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Within it, the watcher is told of all threads."""
    watchers.append(watcher)
    try:
        yield
    finally:
        watchers.remove(watcher)
