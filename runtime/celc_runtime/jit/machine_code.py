"""Machine code of kernels: Numba's compiler, with a cache of our own that the next process reads.

Numba's cache (`cache=True`) has five problems. It looks for changes only in a function's own file,
but machine code contains functions of other files: functions of an older runtime would live on in a
query's update. It needs a real file, which modules made from text do not have. It raises an error
if it finds no folder to write to. Two processes that compile one function for different types at
the same time may exchange its files. And before it loads a function, it prepares everything for
compiling, which takes 0.1 s.

Here a file is named after everything that machine code depends on: the texts of the module and of
the runtime, this process's name for the runtime (types name its classes), the function, its types
and options, the values in its closure, the versions of Python, Numba and LLVM, and the processor.
So files never become outdated, and need no index. If a file cannot be loaded, the function is
compiled.
"""

import hashlib
import io
import pickle
import platform
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite
import numba
from numba.core import config, event, sigutils
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, lookup_environment
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from celc_runtime.jit.bootstrap import cache_root, store, stored, warn_not_kept
from celc_runtime.jit.contents import UNNUMBERED, is_of_runtime, kept_as
from celc_runtime.jit.machine_instructions import teach_numba
from celc_runtime.jit.turns import turn
from celc_runtime.jit.watching import watchers


class _Teller(event.Listener):  # type: ignore[misc]  # Numba has no types
    """Tells watchers what Numba compiles."""

    def on_start(self, event: event.Event) -> None:
        self._tell(event, begins=True)

    def on_end(self, event: event.Event) -> None:
        self._tell(event, begins=False)

    def _tell(self, event: event.Event, *, begins: bool) -> None:
        dispatcher = event.data["dispatcher"]
        # Numba compiles functions of its own as well.
        if isinstance(dispatcher._cache, KernelCache):
            for tell in watchers:
                tell(UNNUMBERED.sub("", dispatcher.__name__), begins)


teach_numba()
event.register("numba:compile", _Teller())

_SWITCHES = (
    *("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE"),
    *("ENABLE_AVX", "NRT_STATS", "FULL_TRACEBACKS"),
)
"""The settings of Numba (environment variables NUMBA_…) that change machine code."""


def compiled(function: Callable[..., Any], options: dict[str, Any], content: str | None) -> Any:
    """Numba's dispatcher of a function, which asks the cache before it compiles.

    `content`: the digest that its machine code is kept by; None: it is not kept.
    """
    if content is not None and (function.__closure__ or not is_of_runtime(function.__globals__)):
        # Machine code and its constants are found by names made of the function's name, its types,
        # and a number that another process may have given to another query's function.
        function.__qualname__ += f"_{content[:16]}"
    dispatcher = numba.njit(**options)(function)
    if content is not None:
        kept = dispatcher._cache = KernelCache(function.__name__, content)
        compile_alone = dispatcher.compile

        def compile_or_load(sig: Any) -> Any:
            with turn(kept.file_of(sig, dispatcher.targetctx.codegen())):
                return compile_alone(sig)

        dispatcher.compile = compile_or_load
    return dispatcher


class KernelCache:
    """The cache of one Numba dispatcher: it is asked before compiling, and gets the code
    afterwards.

    It has the methods of `numba.core.caching.Cache`.
    """

    def __init__(self, name: str, content: str) -> None:
        self.content = content
        self._name = name
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """The folder; empty: there is none."""
        return str(cache_root() or "")

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        """Neither read nor write."""
        self._enabled = False

    def flush(self) -> None:
        """Does nothing: files never become outdated."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The function compiled for these types; None: it is not there."""
        if not self._enabled:
            return None
        name = self.file_of(sig, target_context.codegen())
        data = stored(name)
        if data is None:
            return None
        # For the functions that machine code calls. Numba's own cache refreshes the context here,
        # which loads the definitions of everything that can be compiled. The compiler does so when
        # needed.
        rtsys.initialize(target_context)
        try:
            return _rebuilt(data, sig, target_context)
        except Exception as problem:  # of any kind: a pickle calls whatever it names
            warn_not_kept(f"{name} cannot be loaded: {type(problem).__name__}: {problem}")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a function that has been compiled for these types."""
        # Code with large global arrays contains addresses of this process.
        if self._enabled and not data.library.has_dynamic_globals:
            store(self.file_of(sig, data.codegen), dumps(data._reduce()))

    def file_of(self, sig: Any, codegen: Any) -> str:
        """The name of the file for these types."""
        types, _ = sigutils.normalize_signature(sig)
        settings = [getattr(config, name, None) for name in _SWITCHES]
        state = hashlib.sha256(self.content.encode())
        state.update(repr((types, codegen.magic_tuple(), settings, _versions())).encode())
        return f"{kept_as(self._name, self.content)}-{state.hexdigest()[:40]}.kernel"


def _rebuilt(data: bytes, sig: Any, target_context: Any) -> CompileResult:
    """The compiled function that `save_overload` stored; raises any error on the way."""
    parts = _Unpickler(io.BytesIO(data)).load()
    signature = parts[3]
    types, _ = sigutils.normalize_signature(sig)
    if tuple(signature.args) != tuple(types):
        raise TypeError(f"it is compiled for {signature.args}, not {types}")
    return CompileResult._rebuild(target_context, *parts)


class _Unpickler(pickle.Unpickler):
    """Reads the pickles of `save_overload` without unnecessary imports.

    A function comes with the environments of all functions of Numba's library that it calls, and
    Numba imports the modules of those.
    """

    def find_class(self, module: str, name: str) -> Any:
        """The class or function of this name; for environments, one that imports nothing."""
        if (module, name) == ("numba.core.environment", "_rebuild_env"):
            return _environment
        return super().find_class(module, name)


def _environment(module: str, constants: list[Any], name: str) -> Environment:
    """The environment in which a compiled function finds its constants.

    The globals are for code that Numba cannot type, which is refused here. From the name among
    them, Numba knows that the environment can be stored again with another function.
    """
    known = lookup_environment(name)
    if known is not None:
        return known
    found = sys.modules.get(module)
    environment = Environment({"__name__": module} if found is None else found.__dict__)
    environment.consts[:] = constants
    environment.env_name = name
    Environment._memo[name] = environment
    return environment


@cache
def _versions() -> tuple[str, ...]:
    return (
        *(sys.implementation.cache_tag or "", platform.python_version()),
        *(numba.__version__, llvmlite.__version__),
    )
