"""Messages about what is given with a file that is right by itself: other files, and functions of
Python. A place in another file cannot be shown beside one in this one, so words describe it."""

from collections.abc import Collection

from celc.diagnostics.errors import Diagnostic, error
from celc.diagnostics.messages.wording import available, counted, guess, quote
from celc.diagnostics.source import Span


def query_of_two_files(name: str, first: str, span: Span) -> Diagnostic:
    """`QUERY hot: …` in two files; `first`: file and line of the first one."""
    message = f"a query called {quote(name)} stands in {first} as well, and both become one module"
    hint = "give each query its own name: QUERY another_name: SELECT …"
    return error("query-of-two-files", span, message, hint)


def declared_otherwise(kind: str, name: str, first: str, span: Span) -> Diagnostic:
    """`CREATE STREAM S { … }` in two files, and not the same; `kind`: of what is declared."""
    return error(
        "declared-otherwise",
        span,
        f"{kind} {quote(name)} is declared otherwise in {first}, and both become one module",
        f"write the same declaration in both files, or give one of the two {kind}s another " "name",
    )


# --- functions that are given for what a file declares --------------------------------------------


def not_given(name: str, given: Collection[str], span: Span) -> Diagnostic:
    """`FUNCTION close(…)` where no function `close` is given; `given`: the names of those that
    are."""
    return error(
        "function-not-given",
        span,
        f"no function {quote(name)} is given",
        *guess(name, given),
        *available("given", given),
        f"a text declares a function, and has no code: give it with --functions FILE.py, or in "
        f"Python with functions={{{name!r}: {name}}}",
    )


def not_copied(name: str, problem: str, hint: str, span: Span) -> Diagnostic:
    """A function whose source cannot be copied into the module; `problem` says what cannot."""
    return error("function-not-copied", span, f"{quote(name)} cannot be copied: {problem}", hint)


def arity(name: str, wanted: int, least: int, most: int | None, span: Span) -> Diagnostic:
    """`FUNCTION close(DOUBLE[]): …` of a function of two arguments."""
    takes = f"{least} to {most}" if least != most else f"{least}"
    takes = f"{least} or more" if most is None else takes
    return error(
        "function-arrays",
        span,
        f"{quote(name)} is declared with {counted(wanted, 'array')}, but the function that is "
        f"given takes {takes}",
        "declare an array for each argument of the function, in its order",
    )


def result_type(name: str, declared: str, found: str, span: Span) -> Diagnostic:
    """`FUNCTION close(…): BOOLEAN` of a function that returns a number; `found` is Numba's type."""
    wanted = {
        "BOOLEAN": "a truth (True, a < b)",
        "DOUBLE": "a number",
        "FLOAT": "a number",
        "TIMESTAMP": "a whole number (microseconds since 1970)",
    }.get(declared, "a whole number")
    return error(
        "function-result",
        span,
        f"{quote(name)} is declared as {declared}, but the function that is given returns {found}",
        f"return {wanted} on every way through it, or declare another type",
    )


def not_compiled(name: str, problem: str, line: str | None, span: Span) -> Diagnostic:
    """A function that Numba cannot compile for the declared types; `line` is that of its source
    where the problem is."""
    at = () if line is None else (f"in the line: {line}",)
    return error(
        "function-not-compiled",
        span,
        f"Numba cannot compile {quote(name)} for the declared types: {problem}",
        *at,
        "it compiles numbers, tuples, arrays of NumPy, loops and most of numpy and math: see "
        "Numba's list of supported features",
    )
