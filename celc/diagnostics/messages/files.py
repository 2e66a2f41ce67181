"""Messages about files that are compiled together and are right by themselves. A place in the first
file cannot be shown beside one in the second, so words describe it."""

from celc.diagnostics.errors import Diagnostic, error
from celc.diagnostics.messages.wording import quote
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
