"""celc compiles CEL, a logic of complex events, to specialised PySpark UDF modules.

The compiler and the runtime are imported where they are first used: `celc --version` needs neither,
and `celc check` needs no runtime (Numba and pyarrow alone take half a second).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from celc.core.limits import DEFAULT_MAX_STATES, DEFAULT_MAX_WORK
from celc.version import VERSION as __version__

if TYPE_CHECKING:
    from celc.diagnostics.errors import CelError, Diagnostic
    from celc.loader import Matcher

__all__ = ["CelError", "Diagnostic", "Matcher", "__version__", "check", "compile"]

_IMPORTED_ON_FIRST_USE = {
    "CelError": "celc.diagnostics.errors",
    "Diagnostic": "celc.diagnostics.errors",
    "Matcher": "celc.loader",
}


def __getattr__(name: str) -> Any:
    module = _IMPORTED_ON_FIRST_USE.get(name)
    if module is None:
        raise AttributeError(f"module 'celc' has no attribute {name!r}")
    import importlib

    globals()[name] = getattr(importlib.import_module(module), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def compile(
    text: str,
    *,
    name: str = "query.cel",
    order_by: str | Sequence[str] | None = None,
    tiebreak: str | Sequence[str] = (),
    ties: str | None = None,
    at_end: str = "open",
    max_states: int = DEFAULT_MAX_STATES,
    max_work: int = DEFAULT_MAX_WORK,
    first_order: bool = False,
    max_compile_seconds: float | None = None,
) -> Matcher:
    """Compile the text of a `.cel` file and load the result.

    name: stands for the file in messages, and its stem is the name of a query without one.
    order_by, tiebreak: column names, as `celc compile --order-by --tiebreak`.
    ties: "simultaneous": events that are equal in all order columns are one instant, as with
    `celc compile --ties simultaneous`.
    at_end: "closed": no more events come after the input, so that all matches with an absence at
    their end are decided, as with `celc compile --at-end closed`.
    max_work: the most steps that conditions across events may take at one event without finding a
    match; after these the run ends with an error.
    first_order: read labels as `celc compile --first-order` does.
    max_compile_seconds: the most seconds that the compilation may take; after these it ends with an
    error.
    Raises CelError with all errors of the text, and ValueError for a max_work that is no number
    of steps, a max_compile_seconds that is no time, or another value of ties or at_end.
    """
    from celc.diagnostics.source import Source
    from celc.loader import Matcher
    from celc.options import Options
    from celc.pipeline import compile_source

    options = Options(
        None if order_by is None else _names(order_by),
        _names(tiebreak),
        ties=ties,
        at_end=at_end,
        max_states=max_states,
        max_work=max_work,
        first_order=first_order,
        max_compile_seconds=max_compile_seconds,
    )
    compilation = compile_source(Source(name, text), options)
    flag = ", first_order=True" if first_order else ""
    flag += f", ties={ties!r}" if ties is not None else ""
    flag += f", at_end={at_end!r}" if at_end != "open" else ""
    again = partial(
        compile,
        text,
        name=name,
        tiebreak=options.tiebreak,
        at_end=at_end,
        max_states=max_states,
        max_work=max_work,
        first_order=first_order,
        max_compile_seconds=max_compile_seconds,
    )
    module = compilation.module_text(f"celc.compile(..., name={name!r}{flag})")
    return Matcher(module, compilation.warnings, again)


def check(
    text: str,
    *,
    name: str = "query.cel",
    order_by: str | Sequence[str] | None = None,
    ties: str | None = None,
    first_order: bool = False,
    max_compile_seconds: float | None = None,
) -> tuple[Diagnostic, ...]:
    """All errors and warnings of the text of a `.cel` file, in the order of their places.

    max_compile_seconds: the most seconds that it may take to find them; too little time is one of
    the errors.
    """
    from celc.diagnostics.errors import CelError
    from celc.diagnostics.source import Source
    from celc.options import Options
    from celc.pipeline import compile_source

    options = Options(
        None if order_by is None else _names(order_by),
        ties=ties,
        first_order=first_order,
        max_compile_seconds=max_compile_seconds,
    )
    try:
        return compile_source(Source(name, text), options).warnings
    except CelError as problem:
        return problem.diagnostics


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
