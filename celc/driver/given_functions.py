"""Functions of Python that a call gives → their source, with all that it uses.

What is copied is read off the function itself: the names that its code takes from its file. Each is
an import of numpy or math, a constant, or a function of the same file, which is copied likewise.
Everything else is named in an error, because a worker without the file would not have it.

Rejected: the text of the whole file, which may open connections or import what workers lack;
pickles, which nobody can read or review, and which belong to one version of Python.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from celc.core.given_functions import GivenFunction

_FUTURE = "from __future__ import annotations"
_ALLOWED = ("numpy", "math")
_COPIED = (
    "what is copied: functions of the same file, imports of numpy and math, and constants that are "
    "numbers, texts, truths or tuples of these"
)
_COMPILERS = ("njit", "numba.njit", "jit", "numba.jit", "nb.njit", "nb.jit")


class NotGivenError(ValueError):
    """A file of functions cannot be read or run, or a value is no function. It says why."""


def given_functions(functions: Mapping[str, Callable[..., Any]]) -> tuple[GivenFunction, ...]:
    """Functions by the names that a text declares. Raises NotGivenError for other values."""
    found = []
    for name, function in functions.items():
        written = getattr(function, "py_func", function)  # of one that Numba has compiled
        if not isinstance(name, str) or not isinstance(written, FunctionType):
            raise NotGivenError(
                f"functions must give functions of Python by their names, not {name!r}: "
                f"{type(function).__name__}"
            )
        found.append(_given(name, written))
    return tuple(found)


def functions_of_file(path: Path) -> tuple[GivenFunction, ...]:
    """The functions that a file of Python defines, which is run. Raises NotGivenError where it
    cannot be read or run."""
    module = ModuleType(f"celc_functions_{path.stem}")
    module.__file__ = str(path)
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    except OSError as problem:
        raise NotGivenError(f"{path} cannot be read: {problem.strerror or problem}") from None
    except Exception as problem:  # of any kind: it is somebody's program
        said = f"{type(problem).__name__}: {problem}"
        raise NotGivenError(f"{path} cannot be run: {said}") from problem
    defined = {name: getattr(one, "py_func", one) for name, one in vars(module).items()}
    return given_functions(
        {
            name: one
            for name, one in defined.items()
            if isinstance(one, FunctionType) and one.__globals__ is module.__dict__
        }
    )


class _NotCopied(Exception):
    """What cannot be copied, and what to do instead."""

    def __init__(self, problem: str, hint: str = _COPIED) -> None:
        super().__init__(problem)
        self.problem, self.hint = problem, hint


def _given(name: str, function: FunctionType) -> GivenFunction:
    code = function.__code__
    most = code.co_argcount
    least = most - len(function.__defaults__ or ())
    takes_all = bool(code.co_flags & inspect.CO_VARARGS)
    copy = _Copy(function.__globals__)
    try:
        copy.add(function)
    except _NotCopied as problem:
        return GivenFunction(name, "", "", problem=problem.problem, hint=problem.hint)
    return GivenFunction(name, function.__name__, copy.text(), least, None if takes_all else most)


@dataclass(slots=True)
class _Copy:
    """What has been copied of a file; `names` are its globals."""

    names: Mapping[str, Any]
    imports: set[str] = field(default_factory=set)
    constants: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    """Functions whose helpers are being copied."""

    def text(self) -> str:
        """The text of a module of Python."""
        head = [_FUTURE, *sorted(self.imports)]
        values = [f"{name} = {value}" for name, value in sorted(self.constants.items())]
        parts = ["\n".join(head), "\n".join(values), *self.functions.values()]
        return "\n\n".join(part for part in parts if part) + "\n"

    def add(self, function: FunctionType) -> None:
        """Copy a function after all that it uses. Raises _NotCopied."""
        name = function.__name__
        if name in self.functions:
            return
        if name in self.waiting:
            what = "itself" if name == self.waiting[-1] else f"{name!r} in a circle"
            raise _NotCopied(
                f"{self.waiting[-1]!r} calls {what}", "Numba compiles loops: write one instead"
            )
        node, text = _source(function)
        cells = function.__code__.co_freevars
        if cells:
            raise _NotCopied(
                f"{name!r} uses {cells[0]!r} of the function around it",
                f"make {cells[0]!r} an argument, or a constant of the file",
            )
        self.waiting.append(name)
        for used in dict.fromkeys((*_names_in(function.__code__), *_names_in_defaults(node))):
            self._use(used, name)
        self.waiting.pop()
        self.functions[name] = text

    def _use(self, name: str, by: str) -> None:
        """Copy what a name means in the file; names of Python itself stay."""
        if name not in self.names:
            if not hasattr(builtins, name):
                raise _NotCopied(f"{by!r} uses {name!r}, which its file does not have")
            return
        value = self.names[name]
        written = getattr(value, "py_func", value)
        line = _import_of(name, value)
        if line is not None:
            self.imports.add(line)
        elif isinstance(written, FunctionType):
            if written.__globals__ is not self.names:
                where = written.__module__
                raise _NotCopied(f"{by!r} uses {name!r}, a function of another file ({where})")
            if written.__name__ != name:
                raise _NotCopied(
                    f"{by!r} uses {name!r}, another name of {written.__name__!r}",
                    f"call {written.__name__!r} by its own name",
                )
            self.add(written)
        elif _is_constant(value):
            self.constants[name] = _literal(value)
        else:
            raise _NotCopied(f"{by!r} uses {name!r}, which is {_kind(value)}")


def _source(function: FunctionType) -> tuple[ast.FunctionDef, str]:
    """The tree of a function's definition, and its text without decorators. Raises _NotCopied."""
    name = function.__name__
    write = f"write {name!r} in a file" if name != "<lambda>" else "write a function with def"
    try:
        lines = textwrap.dedent(inspect.getsource(function)).splitlines()
        node = ast.parse("\n".join(lines)).body[0]
    except (OSError, TypeError):
        raise _NotCopied(f"the source of {name!r} cannot be found", write) from None
    except SyntaxError:
        raise _NotCopied(f"the source of {name!r} is not a definition of its own", write) from None
    if not isinstance(node, ast.FunctionDef) or node.name != name:
        what = "a lambda" if name == "<lambda>" else "no plain function"
        raise _NotCopied(f"it is {what}", "write a function with def")
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(called) not in _COMPILERS:
            raise _NotCopied(
                f"{name!r} has the decorator @{ast.unparse(decorator)}",
                "leave it out: Numba compiles the function as it is written",
            )
    return node, "\n".join(lines[node.lineno - 1 : node.end_lineno])


def _names_in(code: CodeType) -> Iterator[str]:
    """The names that a function and the functions in it take from its file, or from Python."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _names_in_defaults(node: ast.FunctionDef) -> Iterator[str]:
    """The names in the defaults of arguments, which are computed where a function is defined."""
    for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
        yield from (one.id for one in ast.walk(default) if isinstance(one, ast.Name))


def _import_of(name: str, value: Any) -> str | None:
    """The statement that imports a module, or something of one, under a name; None for others."""
    if isinstance(value, ModuleType):
        if value.__name__.partition(".")[0] not in _ALLOWED:
            return None
        return f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}")
    own = getattr(value, "__name__", None)
    if not isinstance(own, str) or not callable(value):
        return None
    home = sys.modules.get(str(getattr(value, "__module__", "")))
    for module in (math, np, home):
        known = module is not None and module.__name__.partition(".")[0] in _ALLOWED
        if module is not None and known and getattr(module, own, None) is value:
            return f"from {module.__name__} import {own}" + ("" if own == name else f" as {name}")
    return None


def _is_constant(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_constant, value))
    return value is None or type(value) in (bool, int, float, str)


def _literal(value: Any) -> str:
    if type(value) is tuple:
        inside = ", ".join(map(_literal, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if type(value) is float and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)


def _kind(value: Any) -> str:
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    kind = type(value)
    return f"a {kind.__name__}" if kind.__module__ == "builtins" else f"of {kind.__module__}"
