"""Errors of functions of one's own, in words: which function, which error, which line; and of texts
that grow too long."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeAlias

import pyarrow as pa

from celc_runtime.engine.values.made_texts import MOST_BYTES, TOO_LONG
from celc_runtime.jit.own_functions import told_line
from celc_runtime.plan.errors import EventError, FunctionError
from celc_runtime.plan.plan import Plan

_Rows: TypeAlias = Callable[..., Iterator[pa.RecordBatch]]


def naming_functions(method: _Rows) -> _Rows:
    """A method of a run, whose errors of functions of one's own are FunctionErrors.

    Machine code does not say which function an error comes from, but kernels raise none of their
    own, except that of a text that is too long. So an error in a query that calls functions is one
    of theirs.
    """

    @wraps(method)
    def named(self: Any, *given: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        try:
            yield from method(self, *given, **options)
        except EventError:
            raise
        except MemoryError as problem:
            if str(problem) != TOO_LONG:
                raise
            raise _too_long(self._plan) from None
        except Exception as problem:
            if not self._plan.functions:
                raise
            raise _function_error(self._plan, problem) from problem

    return named


def _too_long(plan: Plan) -> EventError:
    return EventError(
        f"query {plan.name!r}: a text that an aggregate makes has more than {MOST_BYTES:,} bytes: "
        "let STEP join less, as SUBSTR(acc || a, -1000), or give the query a smaller window"
    )


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
