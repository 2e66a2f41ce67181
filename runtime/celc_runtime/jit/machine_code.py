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
from types import FunctionType
from typing import Any

import llvmlite
import numba
from numba.core import config, event, sigutils
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, lookup_environment
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from celc_runtime.jit.bootstrap import cache_root, digest_of, store, stored, warn_not_kept
from celc_runtime.jit.contents import UNNUMBERED, HasContent, constant_content, is_of_runtime
from celc_runtime.jit.machine_instructions import teach_numba
from celc_runtime.jit.shipping import runtime_sources, text_of
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

_DIGEST = "__celc_digest__"
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
        dispatcher._cache = KernelCache(UNNUMBERED.sub("", function.__name__), content)
    return dispatcher


def content_of(
    function: Callable[..., Any], options: dict[str, Any], code: str | None
) -> str | None:
    """A digest of all that decides the machine code of a function; None where that cannot be known.

    `code`: what `code_of` says of it.
    """
    cells = _cell_contents(function)
    module = _module_content(function.__globals__)
    if cells is None or module is None:
        return None
    chosen = repr(sorted(options.items()))
    if code is not None and not is_of_runtime(function.__globals__):
        parts = [_runtime_digest(), __name__, code, chosen]
    else:
        place = f"{function.__qualname__} {function.__code__.co_firstlineno}"
        parts = [module, place, chosen, *cells]
    return digest_of({str(number): part for number, part in enumerate(parts)})


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
        name = self._file(sig, target_context.codegen())
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
            store(self._file(sig, data.codegen), dumps(data._reduce()))

    def _file(self, sig: Any, codegen: Any) -> str:
        types, _ = sigutils.normalize_signature(sig)
        settings = [getattr(config, name, None) for name in _SWITCHES]
        state = hashlib.sha256(self.content.encode())
        state.update(repr((types, codegen.magic_tuple(), settings, _versions())).encode())
        return f"{self._name}-{state.hexdigest()[:40]}.kernel"


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


def _cell_contents(function: Callable[..., Any]) -> list[str] | None:
    """What stands in the closure of a function; None where something there cannot be known.

    A function of the runtime that is no kernel there can be one that `numba.extending.overload`
    knows.
    """
    found = []
    for cell in function.__closure__ or ():
        value = cell.cell_contents
        content = value.content if isinstance(value, HasContent) else constant_content(value)
        if isinstance(value, FunctionType) and is_of_runtime(value.__globals__):
            cells = _cell_contents(value)
            if cells is not None:
                place = value.__module__, value.__qualname__, value.__code__.co_firstlineno
                content = repr((*place, cells))
        if content is None:
            return None
        found.append(content)
    return found


def _module_content(module: dict[str, Any]) -> str | None:
    """A digest of a module's text and the runtime's; None: they cannot be found."""
    try:
        if is_of_runtime(module):
            return f"{module['__name__']} {_runtime_digest()}"
        # Cached, because a standalone module is a long text, and each of its functions needs it.
        if _DIGEST not in module:
            module[_DIGEST] = digest_of({"module": text_of(module)})
        # `__name__`: by this name the process finds the classes of the runtime.
        return digest_of(
            {"module": module[_DIGEST], "runtime": _runtime_digest(), "name": __name__}
        )
    except (RuntimeError, OSError) as problem:  # for example if there are only .pyc files
        warn_not_kept(str(problem))
        return None


@cache
def _runtime_digest() -> str:
    return digest_of(runtime_sources())
