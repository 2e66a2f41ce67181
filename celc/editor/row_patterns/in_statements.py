"""What a word in a clause of a whole statement is. Of the text around it, the host knows more."""

from dataclasses import replace

from celc.diagnostics.source import Source, Span
from celc.editor.hover import Hover
from celc.editor.row_patterns.row_hover import hover_rows
from celc.statements.checked import BEFORE, clauses_in


def hover_in_clause(source: Source, offset: int) -> Hover | None:
    """What the word at an offset is; None where there is no word of a clause, or nothing is known
    of it."""
    before = BEFORE.format("t")
    for clause in clauses_in(source):
        begin = clause.span.start - len(before)
        if clause.span.start <= offset <= clause.span.end:
            found = hover_rows(before + source.slice(clause.span), offset - begin)
            if found is None:
                return None
            return replace(found, span=Span(found.span.start + begin, found.span.end + begin))
    return None
