"""A text whose queries read many streams at once: one more key says of which stream an event is.

A run of a query takes milliseconds before it reads an event. Thousands of small streams in one
table, each a part of its own, take little longer than one.
"""

from __future__ import annotations

from celc.diagnostics.source import Source, Span
from celc.near.edits import Edit, quoted, spliced
from celc.parse import syntax

STREAM_NUMBER = "stream number"
"""The key. No declared attribute is likely to be called so, and one that is makes an error."""


def over_streams(source: Source, file: syntax.File) -> Source:
    """The text with the key declared, and in PARTITION BY of every query."""
    edits: list[Edit] = []
    for stream in file.streams:
        for event in stream.events:
            if event.is_rest:
                continue
            comma = "," if event.attributes else ""
            at = Span(event.span.end - 1, event.span.end - 1)
            edits.append(Edit(at, f"\n{comma} {quoted(STREAM_NUMBER)}: LONG "))
    for query in file.queries:
        start, end = query.formula.span.start, query.formula.span.end
        if query.select is None:
            edits.append(Edit(Span(start, start), "SELECT * WHERE "))
        if query.partition_by:
            last = query.partition_by[-1].span.end
            edits.append(Edit(Span(last, last), f", {quoted(STREAM_NUMBER)}"))
        else:
            edits.append(Edit(Span(end, end), f" PARTITION BY {quoted(STREAM_NUMBER)}"))
        if query.consume is not None and query.consume.policy == "ANY":
            # A stream ends with its part, and begins anew with the match of no other stream.
            edits.append(Edit(query.consume.span, "CONSUME BY PARTITION"))
    whole = Span(0, len(source.text))
    return Source(f"streams of {source.name}", spliced(source.text, whole, edits))
