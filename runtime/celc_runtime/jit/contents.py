"""Digests of functions. Functions that do the same have one digest, and share machine code."""

import re
from collections.abc import Callable
from hashlib import sha256
from types import CodeType, ModuleType
from typing import Any

import numpy as np

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
