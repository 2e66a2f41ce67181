"""Queries are sent as text: the generated module, the runtime, and the bootstrap that loads both.

A Spark worker may have no celc, another version of it, or no file of the job on its path. So a
pickled query refers only to Python's own `eval` and texts.
"""

import hashlib
import json
import lzma
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

from celc_runtime.jit import bootstrap

_LOAD = (
    "(module := __import__('sys').modules.setdefault(name, __import__('types').ModuleType(name)), "
    "hasattr(module, 'restore') or exec(text, module.__dict__), module.restore(*arguments))[2]"
)

BROUGHT = "__celc_runtime__"  # the variable of a standalone module with the texts of its runtime

TOLD = bootstrap.TOLD
"""The variable of a module whose user was warned of the cost of its queries where it was made."""

_loaded: dict[str, ModuleType] = {}


def module_of(text: str, name: str = "celc_generated") -> ModuleType:
    """A generated module made from its text in this process; the same text gives the same
    module."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest not in _loaded:
        module = ModuleType(f"{name}_{digest[:12]}")
        module.__dict__["__celc_text__"] = text
        exec(compile(text, f"<{module.__name__}>", "exec"), module.__dict__)
        _loaded[digest] = module
    return _loaded[digest]


def text_of(module: dict[str, Any]) -> str:
    """The text of a generated module, given its globals.

    Raises RuntimeError if it cannot be found, as in a frozen application.
    """
    if "__celc_text__" in module:
        return str(module["__celc_text__"])
    loader: Any = module.get("__loader__")
    text = loader.get_source(module["__name__"]) if hasattr(loader, "get_source") else None
    if text is None:
        raise RuntimeError(_no_text(module["__name__"]))
    return str(text)


def _no_text(module: str) -> str:
    return (
        f"the text of {module} cannot be found, so it cannot be sent to Spark's workers, nor "
        "machine code be kept: import it from a .py file"
    )


def pickled(module: dict[str, Any], options: Mapping[str, object], query: str) -> tuple[Any, ...]:
    """What `__reduce__` of a compiled query returns: how to make it again anywhere."""
    runtime = b"" if BROUGHT in module else _packed_runtime()
    text = _bootstrap_text()
    arguments = _packed(text_of(module)), runtime, options, query
    return eval, (_LOAD, {"name": bootstrap_name(text), "text": text, "arguments": arguments})


_LARGE = 1 << 16  # characters: a shorter text is sent as it is


def _packed(text: str) -> str | bytes:
    """The text of a module; packed if it is large, because of the same limit as `_packed_runtime`.

    The texts of queries are much alike: those of fifty shrink from half a megabyte to 23 KB.
    """
    return text if len(text) < _LARGE else _compressed(text)


@lru_cache(maxsize=2)
def _compressed(text: str) -> bytes:
    return lzma.compress(text.encode(), preset=2)


@cache
def _packed_runtime() -> bytes:
    """The digest of the runtime, and its texts, packed. Spark sends more than 2²⁰ bytes as a
    broadcast, and the workers of `transformWithState` read none. To pack them takes two fifths of
    a second, so it is done once for all processes."""
    sources = runtime_sources()
    digest = bootstrap.digest_of(sources)
    packed = bootstrap.stored(f"{digest}.texts")
    if packed is None:
        packed = _compressed(json.dumps(sources))
        bootstrap.store(f"{digest}.texts", packed)
    return digest.encode() + packed


@cache
def _bootstrap_text() -> str:
    sources = runtime_sources()
    return sources[bootstrap_file(sources)]


def bootstrap_file(sources: Iterable[str]) -> str:
    """The path of the bootstrap among the paths of the runtime's files."""
    (file,) = (file for file in sources if file.rpartition("/")[2] == "bootstrap.py")
    return file


def bootstrap_name(text: str) -> str:
    """The name of the module that a process makes of the bootstrap's text."""
    return f"celc_bootstrap_{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@cache
def runtime_sources() -> dict[str, str]:
    """The texts of the runtime in this process, by their paths in its package.

    Raises RuntimeError if they cannot be found.
    """
    package = __name__.partition(".")[0]
    sources = bootstrap.installed_sources(package)
    if not sources:
        raise RuntimeError(_no_text(package))
    return sources
