"""Numba's compiler with a cache of our own, so that the second process starts fast.

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
import re
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config, sigutils
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, lookup_environment
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from celc_runtime.jit.bootstrap import cache_root, digest_of, store, stored, warn_not_kept
from celc_runtime.jit.shipping import runtime_sources, text_of

_DIGEST = "__celc_digest__"
_SHARED = "__celc_shared__"
_UNNUMBERED = re.compile(r"_\d+$")
"""The number of a query at the end of a name."""
_SWITCHES = (
    *("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE"),
    *("ENABLE_AVX", "NRT_STATS", "FULL_TRACEBACKS"),
)
"""The settings of Numba (environment variables NUMBA_…) that change machine code."""


def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`numba.njit`, with machine code kept for the next process unless `cache=False` is given."""
    if function is None:
        return lambda given: njit(given, **options)
    caches = options.pop("cache", True)
    content = _content(function, options) if caches and not config.DISABLE_JIT else None
    shared = _shared_in(function) if content is not None else {}
    if content in shared:
        return shared[content]
    if content is not None and (function.__closure__ or not _is_of_runtime(function.__globals__)):
        # Machine code and its constants are found by names. These consist of the function's name,
        # its types, and a number that another process may have used for a function of another
        # query.
        function.__qualname__ += f"_{content[:16]}"
    dispatcher = numba.njit(**options)(function)
    if content is not None:
        dispatcher._cache = KernelCache(_UNNUMBERED.sub("", function.__name__), content)
        shared[content] = dispatcher
    return dispatcher


def _shared_in(function: Callable[..., Any]) -> dict[str | None, Any]:
    """The kernels of a generated module by content. Queries that differ only in constants share
    them.

    Kernels of the runtime exist only once anyway.
    """
    if function.__closure__ or _is_of_runtime(function.__globals__):
        return {}
    kept: dict[str | None, Any] = function.__globals__.setdefault(_SHARED, {})
    return kept


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


def _content(function: Callable[..., Any], options: dict[str, Any]) -> str | None:
    """A digest of everything that decides a function's machine code; None: it cannot be known."""
    cells = _cell_contents(function)
    if cells is None:
        return None
    module = _module_content(function.__globals__)
    if module is None:
        return None
    if not cells and not _is_of_runtime(function.__globals__):
        code = _code_content(function.__code__, function.__globals__)
        if code is not None:
            parts = [_runtime_digest(), __name__, code, repr(sorted(options.items()))]
            return digest_of({str(number): part for number, part in enumerate(parts)})
    place = f"{function.__qualname__} {function.__code__.co_firstlineno}"
    parts = [module, place, repr(sorted(options.items())), *cells]
    return digest_of({str(number): part for number, part in enumerate(parts)})


def _cell_contents(function: Callable[..., Any]) -> list[str] | None:
    """The contents of a function's closure; None: some of it cannot be known.

    A function of the runtime that is not a kernel can be one for `numba.extending.overload`.
    """
    found = []
    for cell in function.__closure__ or ():
        value = cell.cell_contents
        content = getattr(getattr(value, "_cache", None), "content", None)
        if (
            content is None
            and isinstance(value, FunctionType)
            and _is_of_runtime(value.__globals__)
        ):
            cells = _cell_contents(value)
            if cells is not None:
                place = value.__module__, value.__qualname__, value.__code__.co_firstlineno
                content = repr((*place, cells))
        content = content or _constant_content(value)
        if content is None:
            return None
        found.append(content)
    return found


def _code_content(code: CodeType, module: dict[str, Any]) -> str | None:
    """What a function of a generated module does, without its name and those of its constants.

    None if it uses something whose content cannot be known.
    """
    names: list[object] = []
    for name in code.co_names:
        if name not in module:
            names.append(name)
            continue
        # It may also be an attribute of the same name, so its own name is kept.
        known = _value_content(module[name])
        if known is None:
            return None
        names.append((_UNNUMBERED.sub("", name), known))
    if any(isinstance(constant, CodeType) for constant in code.co_consts):
        return None
    arguments = code.co_argcount, code.co_varnames
    return repr((code.co_code, names, code.co_consts, arguments))


def _value_content(value: Any) -> str | None:
    """The content of a global of a generated module; None: it cannot be known."""
    known = getattr(getattr(value, "_cache", None), "content", None)
    if known is not None:
        return f"kernel {known}"
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"array {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, ModuleType | type):
        return f"{type(value).__name__} {value.__name__}"
    return _constant_content(value)


def _constant_content(value: Any) -> str | None:
    """The content of a number or text (Python's or NumPy's), or of a tuple of these; else None."""
    values = value if type(value) is tuple else (value,)
    if not all(type(o) in (int, bool, float, str) or isinstance(o, np.number) for o in values):
        return None
    # Numbers of different types can have the same text.
    return f"{type(value).__name__} {[(type(one).__name__, repr(one)) for one in values]}"


def _module_content(module: dict[str, Any]) -> str | None:
    """A digest of a module's text and the runtime's; None: they cannot be found."""
    try:
        if _is_of_runtime(module):
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


def _is_of_runtime(module: dict[str, Any]) -> bool:
    return str(module["__name__"]).partition(".")[0] == __name__.partition(".")[0]


@cache
def _runtime_digest() -> str:
    return digest_of(runtime_sources())
