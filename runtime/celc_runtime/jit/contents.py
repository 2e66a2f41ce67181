"""Digests of functions. Functions that do the same have one digest, and share machine code."""

import re
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from celc_runtime.jit.bootstrap import digest_of, warn_not_kept
from celc_runtime.jit.shipping import runtime_sources, text_of

_DIGEST = "__celc_digest__"
UNNUMBERED = re.compile(r"_\d+$")
"""The number of a query at the end of a name."""


class HasContent:
    """A kernel, as something that has a digest."""

    code: str | None
    """The text of what it does (`code_of`)."""

    @property
    def content(self) -> str | None:
        """A digest of all that decides its machine code; None where that cannot be known."""
        raise NotImplementedError


def is_of_runtime(module: dict[str, Any]) -> bool:
    """Whether these are the globals of a module of this runtime."""
    return str(module["__name__"]).partition(".")[0] == __name__.partition(".")[0]


def code_of(function: Callable[..., Any]) -> str | None:
    """A text of what a function does, without its name and those of its constants. For a function
    of the runtime: its place. None if it has a closure, or uses a value that has no text."""
    code, module = function.__code__, function.__globals__
    if function.__closure__:
        return None
    if is_of_runtime(module):
        return f"{module['__name__']} {function.__qualname__} {code.co_firstlineno}"
    names: list[object] = []
    for name in code.co_names:
        if name not in module:
            names.append(name)
            continue
        # It may be an attribute of the same name as well, so its own name is kept.
        known = _value_content(module[name])
        if known is None:
            return None
        names.append((UNNUMBERED.sub("", name), known))
    if any(isinstance(constant, CodeType) for constant in code.co_consts):
        return None
    arguments = code.co_argcount, code.co_varnames
    return repr((code.co_code, names, code.co_consts, arguments))


def _value_content(value: Any) -> str | None:
    """A text that identifies the value of a global of a generated module; None: there is none."""
    if isinstance(value, HasContent):
        return value.code and f"kernel {sha256(value.code.encode()).hexdigest()}"
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"array {value.dtype} {value.shape} {sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, ModuleType | type):
        return f"{type(value).__name__} {value.__name__}"
    return constant_content(value)


def constant_content(value: Any) -> str | None:
    """A text that identifies a number, a text (of Python or NumPy), or a tuple of these; None for
    other values."""
    values = value if type(value) is tuple else (value,)
    if not all(type(o) in (int, bool, float, str) or isinstance(o, np.number) for o in values):
        return None
    # Numbers of different types can have the same text.
    return f"{type(value).__name__} {[(type(one).__name__, repr(one)) for one in values]}"


# --- what machine code is kept by -------------------------------------------------------------


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


def kept_as(name: str, content: str) -> str:
    """What the names of the files begin with that keep the machine code of a function."""
    return f"{UNNUMBERED.sub('', name)}-{content[:24]}"
