"""Errors of functions of one's own, in words: which function, which error, which line."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeAlias

import pyarrow as pa

from celc_runtime.jit.own_functions import told_line
from celc_runtime.plan.errors import EventError, FunctionError
from celc_runtime.plan.plan import Plan

_Rows: TypeAlias = Callable[..., Iterator[pa.RecordBatch]]


def naming_functions(method: _Rows) -> _Rows:
    """A method of a run, whose errors of functions of one's own are FunctionErrors.

    Machine code does not say which function an error comes from, but kernels raise none of their
    own. So an error in a query that calls functions is one of theirs.
    """

    @wraps(method)
    def named(self: Any, *given: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        try:
            yield from method(self, *given, **options)
        except (EventError, MemoryError):
            raise
        except Exception as problem:
            if not self._plan.functions:
                raise
            raise _function_error(self._plan, problem) from problem

    return named


def _function_error(plan: Plan, problem: Exception) -> FunctionError:
    names = " or ".join(name for name, _ in plan.functions)
    said = f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
    line = told_line(problem)
    at = "" if line is None else f", in the line {line!r}"
    return FunctionError(
        f"query {plan.name!r}: a call of {names} ended with {said}{at}. A function is called with "
        "the arrays of every match that is looked at, also with empty and short ones: let it "
        "return a value for all of them"
    )
