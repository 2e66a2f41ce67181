"""Functions of one's own: Python that a module brings along as text, and Numba compiles.

Python never runs one: its numbers do not wrap around, and its arrays know more than Numba compiles,
so that an answer would depend on the size of the input. Indices are checked, because a function
that reads beyond its array would otherwise read what happens to lie there.
"""

import linecache
import os
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from types import FunctionType, TracebackType
from typing import Any

from celc_runtime.jit.kernels import Kernel

_FILE = "<function "
_OPTIONS = {"nogil": True, "boundscheck": True, "error_model": "python", "_nrt": True}
"""Numba's options. What is not said here, a function would take from the kernel that calls it: the
division by zero that is no error, and no memory for arrays."""


class _Given(Kernel):
    """A function that is always machine code."""

    def __init__(self, function: Callable[..., Any], digest: str) -> None:
        super().__init__(function, dict(_OPTIONS), kept=True)
        # Its text has all that it uses.
        self.code = f"own {digest} {function.__name__}"

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)


@cache
def own_function(name: str, entry: str, source: str) -> Any:
    """The function `entry` of a text, which the query calls `name`; the same text gives the same
    function."""
    digest = sha256(source.encode()).hexdigest()
    file = f"{_FILE}{name} {digest[:12]}>"
    # Where Python looks for the lines that a traceback shows.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space: dict[str, Any] = {"__name__": f"celc_function_{digest[:12]}", "__celc_text__": source}
    exec(compile(source, file, "exec", dont_inherit=True), space)
    if os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0"):
        own = [one for one in space.values() if isinstance(one, FunctionType)]
        space |= {one.__name__: _Given(one, digest) for one in own if one.__globals__ is space}
    return space[entry]


def told_line(problem: BaseException) -> str | None:
    """The line of a function of one's own that raised an error; None where machine code does not
    say it."""
    found: str | None = None
    trace: TracebackType | None = problem.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(_FILE):
            found = linecache.getline(file, trace.tb_lineno).strip() or None
        trace = trace.tb_next
    return found
