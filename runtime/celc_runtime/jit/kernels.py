"""Kernels: functions that run for each event, first in Python, then in machine code.

It takes seconds to make the machine code of a query, and half a second to load it. Python reads a
few thousand events in less. So a kernel is interpreted until its inputs are large (`MOST_ROWS`), or
until Python has run it for as long as it may take to load machine code (`PATIENCE`). Then Numba
compiles it (`machine_code`), and Python never runs it again. Both forms read and write the same
arrays, so they may change places between two calls, in the middle of a run.

Numba is imported when the first kernel is compiled: the import alone takes longer than a run over a
few events.

Rejected: a second engine for small inputs, over the tables of the automaton, since every feature
would have to be in it. To decide once for each run: nobody knows before what a query does to a
small input, and a run that has begun in Python could not be hurried.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from time import thread_time
from typing import Any

import numpy as np

from celc_runtime.jit.bootstrap import stored_kernels
from celc_runtime.jit.contents import HasContent, code_of, content_of, is_of_runtime, kept_as

PATIENCE = 0.2
"""Seconds of CPU for which Python may run one kernel, over all its calls in this process."""

PATIENCE_TO_LOAD = 0.02
"""Seconds of CPU for which Python may run one kernel whose machine code an earlier process has
made: loading it takes milliseconds."""


def _most_rows(told: str | None) -> int:
    """What CELC_INTERPRETED_ROWS says. Raises ValueError where it is no number of rows."""
    if told is None:
        return 1 << 13
    if not (told.isascii() and told.isdigit()):
        raise ValueError(
            f"CELC_INTERPRETED_ROWS must be a whole number of rows, 0 or more, not {told!r}"
        )
    return int(told)


MOST_ROWS = _most_rows(os.environ.get("CELC_INTERPRETED_ROWS"))
"""Inputs with fewer rows are read by Python at first; larger ones by machine code at once."""

STEPS_IN_PYTHON = 20_000
"""Steps of a search, some 0.2 s: a search may take many more for a few rows, so that whoever calls
it stops it there, and lets machine code go on (`compiling`)."""

_SHARED = "__celc_shared__"


class _Now(threading.local):
    """What this thread does."""

    interprets = False
    """Whether it runs a kernel by Python: kernels that this one calls are interpreted as well."""

    only_interprets = False
    """Whether it never runs machine code."""

    compiles = False
    """Whether all inputs of its kernels count as large."""

    takes_what_is_made = False
    """Whether it waits for no machine code but what an earlier process has made."""


_now = _Now()

_making = threading.RLock()
"""Held while a dispatcher is made, not while it compiles."""


class Kernel(HasContent):
    """A function and, once it is worth that, its machine code.

    `py_func` is the function, `targetoptions` are Numba's options for it. Numba looks for these two
    names and for `_numba_type_` in a kernel that another one calls.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        *,
        kept: bool,
        plain: Callable[..., Any] | None = None,
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.plain = plain or function
        """What Python runs."""
        self._is_plain = plain is not None
        """Whether Python always runs `plain`, whose numbers may have no type in machine code."""
        self.targetoptions = options
        self.kept = kept
        """Whether its machine code is kept for the next process."""
        self.code = code_of(function)
        self._compiled: Any = None
        self._seconds = 0.0

    def __call__(self, *arguments: Any) -> Any:
        if _now.interprets or self._is_plain:
            return self.plain(*arguments)
        compiled = self._compiled
        if compiled is None or _now.only_interprets:
            return self._call(arguments)
        return compiled(*arguments)

    @property
    def is_compiled(self) -> bool:
        """Whether a call runs machine code."""
        return not (self._compiled is None or _now.interprets or self._is_plain)

    def code_for(self, arguments: tuple[Any, ...]) -> Any:
        """The machine code that has been made for arguments of these types, which looks at no
        types: for a caller who knows that all further arguments have them."""
        types = tuple(map(self.compiled.typeof_pyval, arguments))
        return self.compiled.overloads[types].entry_point

    def is_due(self, seconds: float) -> bool:
        """Whether a caller that has another way runs this kernel, as machine code, from now on; if
        not, the other way takes so many seconds longer, which count as if Python ran it."""
        if self._is_plain or _now.interprets or _now.only_interprets:
            return False
        if self._compiled is not None or _now.compiles:
            return True
        if _now.takes_what_is_made and not self.is_made:
            return False
        self._seconds += seconds
        return self._is_worth_it()

    @cached_property
    def content(self) -> str | None:
        """A digest of all that decides its machine code; None where that cannot be known."""
        return content_of(self.py_func, self.targetoptions, self.code) if self.kept else None

    @cached_property
    def is_made(self) -> bool:
        """Whether an earlier process has kept machine code of it, for arguments of some types."""
        content = self.content
        return content is not None and kept_as(self.py_func.__name__, content) in stored_kernels()

    @property
    def compiled(self) -> Any:
        """Numba's dispatcher of the function."""
        if self._compiled is None:
            from celc_runtime.jit.machine_code import compiled

            with _making:
                # Two threads may ask at once, and a function has one dispatcher.
                if self._compiled is None:
                    self._compiled = compiled(self.py_func, self.targetoptions, self.content)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        return self.compiled._numba_type_

    def _call(self, arguments: tuple[Any, ...]) -> Any:
        if _now.only_interprets or (_now.takes_what_is_made and not self.is_made):
            return self.interpreted(*arguments)
        if _now.compiles or self._is_worth_it() or _rows(arguments) >= MOST_ROWS:
            return self.compiled(*arguments)
        return self.interpreted(*arguments)

    def _is_worth_it(self) -> bool:
        seconds = self._seconds
        return seconds > PATIENCE or (seconds > PATIENCE_TO_LOAD and self.is_made)

    def interpreted(self, *arguments: Any) -> Any:
        """What Python makes of these arguments, and of all kernels that are called on the way."""
        _now.interprets = True
        begun = thread_time()
        try:
            # Machine code wraps around in silence.
            with np.errstate(all="ignore"):
                return _plain(self.plain(*arguments))
        finally:
            _now.interprets = False
            self._seconds += thread_time() - begun


@contextmanager
def compiling() -> Iterator[None]:
    """Kernels that this thread calls are machine code, however small their inputs are."""
    before, _now.compiles = _now.compiles, True
    try:
        yield
    finally:
        _now.compiles = before


@contextmanager
def taking_what_is_made() -> Iterator[None]:
    """Kernels that this thread calls are read by Python, unless an earlier process has made their
    machine code: for queries of which each is run over so few events that to compile it takes
    longer."""
    before, _now.takes_what_is_made = _now.takes_what_is_made, True
    try:
        yield
    finally:
        _now.takes_what_is_made = before


@contextmanager
def interpreting() -> Iterator[None]:
    """Kernels that this thread calls are read by Python, also where there is machine code: for
    proofs, which are about the code as it is written."""
    before, _now.only_interprets = _now.only_interprets, True
    try:
        yield
    finally:
        _now.only_interprets = before


def njit(
    function: Callable[..., Any] | None = None,
    plain: Callable[..., Any] | None = None,
    **options: Any,
) -> Any:
    """A kernel, compiled with these options of `numba.njit` when it is. `plain` has the same
    results, and takes its place in Python.

    Its machine code is kept for the next process unless `cache=False` is given. Queries of a
    generated module that differ in constants alone share their kernels. Where NUMBA_DISABLE_JIT is
    set the function stays as it is.
    """
    if function is None:
        return lambda given: njit(given, plain, **options)
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return plain or function
    kernel = Kernel(function, options, kept=options.pop("cache", True), plain=plain)
    if kernel.code is None or not kernel.kept or is_of_runtime(function.__globals__):
        return kernel
    shared: dict[str, Kernel] = function.__globals__.setdefault(_SHARED, {})
    return shared.setdefault(f"{kernel.code} {sorted(options.items())}", kernel)


def is_due(kernel: Any, seconds: float) -> bool:
    """`Kernel.is_due`; False for a function of Python, which takes longer than the other way."""
    told = getattr(kernel, "is_due", None)
    return told is not None and told(seconds)


def _rows(arguments: tuple[Any, ...]) -> int:
    """The rows of the input of a call: those of its arrays, and of its batch of events. The arena
    and the buffers for matches are no input."""
    most = 0
    for argument in arguments:
        rows = getattr(argument, "symbols", argument)
        if isinstance(rows, np.ndarray) and len(rows) > most:
            most = len(rows)
    return most


def _plain(result: Any) -> Any:
    """A result as machine code returns it: numbers of Python, not of NumPy."""
    if isinstance(result, np.generic):
        return result.item()
    return tuple(map(_plain, result)) if type(result) is tuple else result
