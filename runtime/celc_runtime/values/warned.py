"""Warnings that name the line of the user's code.

A method is called directly, through another one, by `df.transform(fire_udf.match)`, or by a wrapper
of pandas: the number of frames between the warning and the user differs, so it is counted.
"""

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_INSIDE = frozenset(
    {__name__.partition(".")[0], "celc", "pyspark", "pandas", "polars", "functools", "contextlib"}
)
"""The packages whose frames are no code of the user."""


class _Now(threading.local):
    """Whom this thread tells its warnings."""

    texts: list[str] | None = None


_now = _Now()


@contextmanager
def told_to(texts: list[str]) -> Iterator[None]:
    """Within it the warnings of this thread, of a run, become texts: there is no line of the user
    on its stack, and filters of warnings are the process's."""
    _now.texts = texts
    try:
        yield
    finally:
        _now.texts = None


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the innermost line outside celc, its runtime and what calls it for the user."""
    if _now.texts is not None:
        _now.texts.append(text)
        return
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and _package(frame.f_globals) in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
