"""Declared functions and those that are given → what is wrong with them.

Numba finds the types of results. So what it cannot compile is an error here, and not on a worker.
Its machine code is kept for the run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from celc.core.formula import DataType, OwnFunction
from celc.core.given_functions import GivenFunction
from celc.diagnostics.deadline import look
from celc.diagnostics.errors import Diagnostic, Diagnostics
from celc.diagnostics.messages import files as messages
from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.resolve.types.own_functions import declare_functions

_ELEMENTS = {
    DataType.BOOLEAN: "boolean",
    DataType.BYTE: "int8",
    DataType.SHORT: "int16",
    DataType.INT: "int32",
    DataType.LONG: "int64",
    DataType.FLOAT: "float32",
    DataType.DOUBLE: "float64",
    DataType.TIMESTAMP: "int64",
}
"""Numba's types of the elements of arrays."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""What colours a message on a terminal."""


def refuse_wrong(
    file: syntax.File,
    source: Source,
    given: Sequence[GivenFunction] | None,
    warnings: Sequence[Diagnostic],
) -> None:
    """Raises CelError with the errors in the functions that are given for a resolved file, and its
    warnings. None: nobody has been asked for functions."""
    if given is None:
        return
    found = Diagnostics(source)
    found.extend(warnings)
    known = {one.name: one for one in given}
    declared = declare_functions(file.functions, (), Diagnostics(source))
    for node in file.functions:
        function, span = declared[node.name.text], node.span
        assert function is not None, "the resolver has seen to it"
        look(span, f"compiling the function {function.name!r}")
        found.extend(_problems(function, known, span))
    found.raise_errors()


def refuse_missing(file: syntax.File, source: Source, given: Sequence[GivenFunction]) -> None:
    """Raises CelError where a function that a file declares is not given."""
    found, names = Diagnostics(source), [one.name for one in given]
    for node in file.functions:
        if node.name.text not in names:
            found.add(messages.not_given(node.name.text, names, node.span))
    found.raise_errors()


def _problems(
    function: OwnFunction, known: Mapping[str, GivenFunction], span: Span
) -> Iterator[Diagnostic]:
    name, count = function.name, len(function.parameters)
    if name not in known:
        yield messages.not_given(name, [*known], span)
        return
    given = known[name]
    if given.problem:
        yield messages.not_copied(name, given.problem, given.hint, span)
    elif count < given.least or (given.most is not None and count > given.most):
        yield messages.arity(name, count, given.least, given.most, span)
    elif os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0"):
        yield from _compiled(function, given, span)


def _compiled(function: OwnFunction, given: GivenFunction, span: Span) -> Iterator[Diagnostic]:
    """What Numba says of a function."""
    # Imported here: few files declare functions.
    from celc_runtime.jit.own_functions import own_function
    from numba import types
    from numba.core.errors import NumbaError

    arrays = tuple(
        types.Array(getattr(types, _ELEMENTS[one]), 1, "C") for one in function.parameters
    )
    dispatcher = own_function(given.name, given.entry, given.source).compiled
    defaults = dispatcher.py_func.__defaults__ or ()
    left = max(0, (given.most or 0) - len(arrays))
    taken = (*arrays, *(types.Omitted(one) for one in defaults[len(defaults) - left :]))
    try:
        dispatcher.compile(taken)
    except NumbaError as problem:
        yield messages.not_compiled(function.name, *_said(problem, given.source), span)
        return
    found = dispatcher.overloads[taken].signature.return_type
    if not _fits(found, function.type, types):
        yield messages.result_type(function.name, function.type.value, _named(found, types), span)


def _fits(found: Any, declared: DataType, types: Any) -> bool:
    """Whether Numba's type of a result goes with the declared type."""
    if declared is DataType.BOOLEAN:
        return isinstance(found, types.Boolean)
    whole = isinstance(found, types.Integer) and (found.signed or found.bitwidth < 64)
    return whole or (
        declared in (DataType.FLOAT, DataType.DOUBLE) and isinstance(found, types.Float)
    )


def _named(found: Any, types: Any) -> str:
    if isinstance(found, types.NoneType):
        return "nothing (None)"
    if isinstance(found, types.Optional):
        return f"None on some ways through it, on others {_named(found.type, types)}"
    kinds = {types.Boolean: "truths", types.Integer: "whole numbers", types.Float: "real numbers"}
    kind = next((what for one, what in kinds.items() if isinstance(found, one)), None)
    return f"{kind} ({found})" if kind else f"values of Numba's type {found}"


def _said(problem: Any, source: str) -> tuple[str, str | None]:
    """What an error of Numba says, in one line, and the line of the source that it is about."""
    plain = _COLOURS.sub("", str(problem))
    lines = [line.strip() for line in plain.splitlines()]
    told = [line for line in lines if line and not line.startswith(("Failed in", "File", "During"))]
    place, written = getattr(problem, "loc", None), source.splitlines()
    number = getattr(place, "line", None)
    at = written[number - 1].strip() if number and number <= len(written) else None
    return " ".join(told[:2]) or type(problem).__name__, at
