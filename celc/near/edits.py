"""Changes of a text at places that its syntax tree knows."""

from collections.abc import Iterable

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import Span


@frozen
class Edit:
    """A text in the place of a span; of an empty span, before what stands there."""

    span: Span
    text: str


def spliced(text: str, span: Span, edits: Iterable[Edit]) -> str:
    """The text under a span with the edits inside it carried out. They do not overlap."""
    parts: list[str] = []
    at = span.start
    inside = [one for one in edits if span.start <= one.span.start and one.span.end <= span.end]
    for edit in sorted(inside, key=lambda one: (one.span.start, one.span.end)):
        assert edit.span.start >= at, "edits overlap"
        parts += [text[at : edit.span.start], edit.text]
        at = edit.span.end
    return "".join((*parts, text[at : span.end]))


def quoted(name: str) -> str:
    """A name as it can stand anywhere in a query."""
    return f"`{name}`"
