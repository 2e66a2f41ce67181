"""What goes wrong in a query: one class of diagnostics, how it is rendered, how it is raised.

`celc.diagnostics.messages` has the words of each message. A mistake of celc itself is an assertion,
never one of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import Source, Span, visible

Severity = Literal["error", "warning"]

# A line of a generated query can have a megabyte; a person needs the part around the caret.
_MAX_LINE = 160


@frozen
class Related:
    """A second place that explains a diagnostic, such as where a name was first bound."""

    span: Span
    text: str


@frozen
class Fix:
    """A text to write in the place of a span, after which the diagnostic does not apply."""

    span: Span
    text: str


@frozen
class Diagnostic:
    """One error or warning: a stable code, a place, the mistake, and the remedy."""

    severity: Severity
    code: str  # stable across versions, because tools may filter by it
    span: Span
    message: str  # names the mistake
    help: tuple[str, ...] = ()  # lines that name what is available and what to do
    related: tuple[Related, ...] = ()
    fixes: tuple[Fix, ...] = ()
    """The changes of the text that the help offers; each is another remedy, the likeliest first."""

    def render(self, source: Source) -> str:
        """The diagnostic as shown to a person: place, code, message, source line, caret, help."""
        line, column = source.line_and_column(self.span.start)
        parts = [
            f"{visible(source.name)}:{line}:{column}: {self.severity}[{self.code}]: "
            f"{visible(self.message)}",
            *excerpt(source, self.span),
        ]
        for related in self.related:
            related_line, related_column = source.line_and_column(related.span.start)
            parts.append(
                f"note: {visible(source.name)}:{related_line}:{related_column}: "
                f"{visible(related.text)}"
            )
            parts.extend(excerpt(source, related.span))
        parts.extend(f"help: {visible(text)}" for text in self.help)
        return "\n".join(parts)


def excerpt(source: Source, span: Span) -> list[str]:
    """The line of the text in which a span begins, and carets under the span."""
    line, column = source.line_and_column(span.start)
    text = source.line_text(line)
    begin = min(column - 1, len(text))
    width = max(1, min(span.end - span.start, len(text) - begin))
    first = 0
    if len(text) > _MAX_LINE:
        first = max(0, begin - _MAX_LINE // 2)
    last = first + _MAX_LINE
    width = max(1, min(width, last - begin))
    before = ("…" if first else "") + visible(text[first:begin])
    marked = visible(text[begin : begin + width])
    after = visible(text[begin + width : last]) + ("…" if last < len(text) else "")
    gutter = f"{line:>4} | "
    return [
        (gutter + before + marked + after).rstrip(),
        " " * (len(gutter) + len(before)) + "^" * max(1, len(marked)),
    ]


class CelWarning(UserWarning):
    """A warning of `celc.compile` about a compiled query; `celc` prints the same."""


@dataclass
class CelError(Exception):
    """A query that cannot be compiled: every problem found in its file, with places.

    `diagnostics` holds all errors and warnings in the order of their places; at least one is an
    error. `str()` of it is the full rendered text.
    """

    source: Source
    diagnostics: tuple[Diagnostic, ...]

    @property
    def problems(self) -> tuple[CelError, ...]:
        """One error for each file that has any; here this one."""
        return (self,)

    def __str__(self) -> str:
        return render_all(self.source, self.diagnostics)

    def __reduce__(self) -> tuple[type[CelError], tuple[Any, ...]]:
        return CelError, (self.source, self.diagnostics)


class FilesError(CelError):
    """The errors of several files; `source` and `diagnostics` are those of the first."""

    def __init__(self, problems: Sequence[CelError]) -> None:
        super().__init__(problems[0].source, problems[0].diagnostics)
        self._problems = tuple(problems)

    @property
    def problems(self) -> tuple[CelError, ...]:
        return self._problems

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._problems))

    def __reduce__(self) -> tuple[type[CelError], tuple[Any, ...]]:
        return FilesError, (self._problems,)


def raise_all(problems: Sequence[CelError]) -> None:
    """Raise one error for all: the only one itself, several as `FilesError`; nothing if empty."""
    if problems:
        raise problems[0] if len(problems) == 1 else FilesError(problems)


@dataclass(slots=True)
class Diagnostics:
    """The diagnostics of one file so far: passes add to it, and go on after a problem."""

    source: Source
    items: list[Diagnostic] = field(default_factory=list)
    _known: set[Diagnostic] = field(default_factory=set)

    def add(self, diagnostic: Diagnostic) -> None:
        """Keep a diagnostic; the same one at the same place is kept once."""
        if diagnostic not in self._known:
            self._known.add(diagnostic)
            self.items.append(diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Keep several diagnostics."""
        for diagnostic in diagnostics:
            self.add(diagnostic)

    @property
    def errors(self) -> int:
        """How many errors have been collected so far."""
        return sum(item.severity == "error" for item in self.items)

    @property
    def has_errors(self) -> bool:
        """Whether anything collected so far is an error."""
        return any(item.severity == "error" for item in self.items)

    def in_order(self) -> tuple[Diagnostic, ...]:
        """All of them, ordered by place, errors before warnings at one place."""
        return tuple(
            sorted(self.items, key=lambda item: (item.span.start, item.severity, item.code))
        )

    def raise_errors(self) -> None:
        """Raise `CelError` with everything collected if any of it is an error."""
        if self.has_errors:
            raise CelError(self.source, self.in_order())


class Findings(tuple[Diagnostic, ...]):
    """All errors and warnings of a text; shown as a person reads them, in a notebook as well."""

    source: Source

    def __repr__(self) -> str:
        return render_all(self.source, self) or "fine: no errors and no warnings"


def findings(source: Source, diagnostics: Iterable[Diagnostic]) -> Findings:
    """The errors and warnings of a text."""
    found = Findings(diagnostics)
    found.source = source
    return found


def render_all(source: Source, diagnostics: Sequence[Diagnostic]) -> str:
    """Several diagnostics as one text, an empty line between them."""
    return "\n\n".join(diagnostic.render(source) for diagnostic in diagnostics)


def error(
    code: str,
    span: Span,
    message: str,
    *help: str,
    related: Sequence[Related] = (),
    fixes: Sequence[Fix] = (),
) -> Diagnostic:
    """A diagnostic that stops the compilation."""
    return Diagnostic("error", code, span, message, help, tuple(related), tuple(fixes))


def warning(
    code: str,
    span: Span,
    message: str,
    *help: str,
    related: Sequence[Related] = (),
    fixes: Sequence[Fix] = (),
) -> Diagnostic:
    """A diagnostic that does not stop the compilation."""
    return Diagnostic("warning", code, span, message, help, tuple(related), tuple(fixes))
