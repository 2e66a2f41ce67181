"""The names of several files that become one module: what clashes.

Each file is compiled alone, so that its messages do not depend on the others. This file looks at
what the compiler of one file cannot see. Several files may have the same declaration; it must be
equal but for its place in the text. Two queries must not have the same name.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import files as messages
from celc.diagnostics.source import Source, Span
from celc.parse import syntax

_Declared: TypeAlias = (
    syntax.StreamDeclaration
    | syntax.ParametersDeclaration
    | syntax.AggregateDeclaration
    | syntax.FunctionDeclaration
)


class NamedQuery(Protocol):
    """What is asked of a query: its name and place."""

    @property
    def name(self) -> str: ...

    @property
    def span(self) -> Span: ...


class DeclaredInFiles:
    """What the files so far have declared, and where."""

    def __init__(self) -> None:
        self._queries: dict[str, str] = {}
        self._declared: dict[str, tuple[_Declared, str]] = {}

    def add(self, source: Source, file: syntax.File, queries: Iterable[NamedQuery]) -> None:
        """Add the queries and the declarations of one more file.

        Raises CelError for a query whose name a file before it has, and for a declaration that
        differs from one before it.
        """
        found = Diagnostics(source)
        # Two queries of one file have different names: the resolver has seen to it.
        known = self._queries.copy()
        for query in queries:
            if query.name.casefold() in known:
                first = known[query.name.casefold()]
                found.add(messages.query_of_two_files(query.name, first, query.span))
            self._queries.setdefault(query.name.casefold(), _place(source, query.span))
        declared: Sequence[tuple[str, Sequence[_Declared]]] = (
            ("stream", file.streams),
            ("parameter set", file.parameters),
            ("aggregate", file.aggregates),
            ("function", file.functions),
        )
        for kind, one in ((kind, one) for kind, all in declared for one in all):
            name, place = one.name.text, _place(source, one.name.span)
            before, where = self._declared.setdefault(f"{kind} {name}", (one, place))
            if before != one:
                found.add(messages.declared_otherwise(kind, name, where, one.name.span))
        found.raise_errors()


def _place(source: Source, span: Span) -> str:
    line, _ = source.line_and_column(span.start)
    return f"{source.name}:{line}"
