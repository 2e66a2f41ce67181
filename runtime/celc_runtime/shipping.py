"""Queries travel as text: their module's, the runtime's, and that of the few lines that load both.

A Spark worker may have nothing of celc installed, another version of it, or no file of the job's
own on its path. So a pickled query refers to nothing but Python's own `eval` and text.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

from celc_runtime import bootstrap

_LOAD = "(exec(text, scope := {'__name__': 'celc_bootstrap'}), scope['restore'](*arguments))[1]"

_loaded: dict[str, ModuleType] = {}


def module_of(text: str, name: str = "celc_generated") -> ModuleType:
    """A generated module made from its text in this process; the same text, the same module."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest not in _loaded:
        module = ModuleType(f"{name}_{digest[:12]}")
        module.__dict__["__celc_text__"] = text
        exec(compile(text, f"<{module.__name__}>", "exec"), module.__dict__)
        _loaded[digest] = module
    return _loaded[digest]


def text_of(module: dict[str, Any]) -> str:
    """The text of a generated module, given its globals.

    Raises RuntimeError where there is none to be found, as in a frozen application.
    """
    if "__celc_text__" in module:
        return str(module["__celc_text__"])
    loader: Any = module.get("__loader__")
    text = loader.get_source(module["__name__"]) if hasattr(loader, "get_source") else None
    if text is None:
        raise RuntimeError(
            f"the text of {module['__name__']} cannot be found, so it cannot be sent to Spark's "
            "workers: import it from a .py file"
        )
    return str(text)


def pickled(module: dict[str, Any], options: Mapping[str, object], query: str) -> tuple[Any, ...]:
    """What `__reduce__` of a compiled query returns: how to make it again anywhere."""
    text, runtime = text_of(module), _runtime_sources()
    # Files on disk can cache what is compiled; a module whose runtime is somewhere else must not,
    # because Numba looks for changes in a function's own file only. Together they are one content.
    text = text.replace('@njit(nogil=True, error_model="numpy")', _CACHED)
    return eval, (
        _LOAD,
        {
            "text": _bootstrap_text(),
            "arguments": ({"celc_query.py": text, **runtime}, options, query),
        },
    )


_CACHED = '@njit(nogil=True, cache=True, error_model="numpy")'


@cache
def _bootstrap_text() -> str:
    return inspect.getsource(bootstrap)


@cache
def _runtime_sources() -> dict[str, str]:
    return bootstrap.installed_sources()
