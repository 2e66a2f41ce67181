"""Text to syntax tree: the statements of a file. Parsing goes on after errors.

The parser is an LALR machine without recursion (`celc.parse.machine`), so it accepts ten thousand
parentheses or five thousand operators. `celc.parse.mistakes` words the errors. After an error the
next statement is parsed, so one run reports the first error of each.
"""

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.parse.machine import Machine
from celc.parse.mistakes import trees as tree_errors
from celc.parse.mistakes.place import Place
from celc.parse.mistakes.tokens import MAX_ERRORS, report
from celc.parse.mistakes.unexpected import unexpected
from celc.parse.queries import QueryBuilder
from celc.parse.tables import END
from celc.parse.tokens import Token, begins_statement, keyword_of, tokenize

# Later passes are recursive over the tree, and Python stops at 1,000 frames. With 200 levels,
# passes may use several frames for a level. Parentheses and flat chains add no level.
MAX_DEPTH = 200


def parse(source: Source) -> syntax.File:
    """The syntax tree of a file.

    Raises `CelError` with everything that is wrong with single tokens and the first syntax error
    of each statement.
    """
    return parse_with_tokens(source)[0]


class KnownStreams:
    """The streams that files declare before anything else, for files that declare them in the same
    words and at the same place: they are parsed once, and stand in all their trees."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[syntax.StreamDeclaration, ...]] = {}

    def of(
        self, source: Source, tokens: Sequence[Token]
    ) -> tuple[int, tuple[syntax.StreamDeclaration, ...]]:
        """(How many tokens declare the known streams that a text begins with; these streams)."""
        end = self._end(tokens)
        streams = self._known.get(self._text(source, tokens, end), ()) if end else ()
        return (end, streams) if streams else (0, ())

    def add(self, source: Source, tokens: Sequence[Token], file: syntax.File) -> None:
        """Keep the streams of a file without mistakes that declares them alone."""
        end = self._end(tokens)
        if end and file.streams and file.streams[-1].span.end == tokens[end - 1].end:
            others = [one.span for one in file.aggregates]
            others += [one.span for one in file.functions]
            others += [one.span for one in file.parameters]
            if all(span.start > tokens[end - 1].start for span in others):
                self._known.setdefault(self._text(source, tokens, end), file.streams)

    @staticmethod
    def _end(tokens: Sequence[Token]) -> int:
        """The index of the token that begins the first statement after CREATE STREAM."""
        after = range(1, len(tokens) - 1)
        begins = (one for one in after if begins_statement(tokens, one))
        return next((one for one in begins if keyword_of(tokens[one]) != "CREATE"), 0)

    @staticmethod
    def _text(source: Source, tokens: Sequence[Token], end: int) -> tuple[int, str]:
        span = tokens[0].span.to(tokens[end - 1].span)
        return span.start, source.slice(span)


def parse_with_tokens(
    source: Source, known: KnownStreams | None = None
) -> tuple[syntax.File, list[Token]]:
    """The syntax tree of a file, and its tokens with the terminal that each word turned out to be.

    known: the streams of other files, to which those of this file are added. Words that declare
    known streams stay NAMEs. Raises `CelError` as `parse` does.
    """
    diagnostics = Diagnostics(source)
    tokens = tokenize(source, diagnostics)
    if not tokens or tokens[-1].type != END:
        diagnostics.raise_errors()
    count, streams = known.of(source, tokens) if known else (0, ())
    file = _parse_statements(tokens, diagnostics, count, streams)
    if count and diagnostics.items:
        return parse_with_tokens(source)  # messages know the text from its beginning
    if known and not count and file is not None and not diagnostics.items:
        known.add(source, tokens, file)
    if file is not None:
        _check_queries(file, tokens[-1].span, diagnostics)
    diagnostics.raise_errors()
    assert file is not None
    return file, tokens


def _parse_statements(
    tokens: Sequence[Token],
    diagnostics: Diagnostics,
    known: int,
    streams: Sequence[syntax.StreamDeclaration],
) -> syntax.File | None:
    """The whole file, or None after syntax errors, of which every statement's first is reported.

    known: how many tokens declare `streams`; these are not parsed again.
    """
    builder = QueryBuilder(diagnostics)
    builder.note_streams(streams)
    start: int | None = known
    while start is not None and len(diagnostics.items) < MAX_ERRORS:
        machine = Machine(builder)
        if streams and start == known:
            machine.begin_after("streams", [*streams])
        failed = machine.run(tokens, start)
        if failed is None:
            return machine.result if start == known else None
        # In an incomplete declaration, names without a label are not judged.
        whole = Span(0, len(diagnostics.source.text)) if machine.in_aggregate else None
        goes_on = failed
        if tokens[failed].flawed or (failed > start and tokens[failed - 1].flawed):
            builder.end_of_query(error=whole)
        else:
            place = _place(diagnostics.source, tokens, start, failed)
            diagnostic = unexpected(place)
            opener = failed if place.found.type == "LPAR" else place.opener
            if opener is not None and begins_statement(tokens, opener + 1):
                goes_on = place.closer(opener) or failed  # a statement in another one
            builder.end_of_query(error=whole or diagnostic.span)
            report(diagnostics, diagnostic)
        after = range(max(goes_on, start + 1), len(tokens))
        start = next((index for index in after if begins_statement(tokens, index)), None)
    return None


def _place(source: Source, tokens: Sequence[Token], start: int, index: int) -> Place:
    # Another machine that stops before the error still knows all that could follow.
    machine = Machine(QueryBuilder(Diagnostics(source)))
    machine.run(tokens, start, index)
    found = tokens[index]
    kinds = {found.type}
    if found.type == "NAME":
        kinds |= {"ATTRIBUTE", keyword_of(found) or "NAME"}
    return Place(
        source=source,
        tokens=tokens,
        start=start,
        index=index,
        accepted=machine.accepted(),
        fits_after=lambda before: any(machine.accepts(before, kind) for kind in kinds),
    )


# --- what the grammar does not say ----------------------------------------------------------------


def _check_queries(file: syntax.File, end: Span, diagnostics: Diagnostics) -> None:
    if not file.queries:
        declared = "aggregates" if file.aggregates else "functions" if file.functions else ""
        report(diagnostics, tree_errors.no_query(file.streams, end, declared=declared))
    for query in file.queries:
        if query.name is None and len(file.queries) > 1:
            report(diagnostics, tree_errors.unnamed_query(query.span))
        deep = _first_too_deep(query)
        if deep is not None:
            report(diagnostics, tree_errors.too_deep(deep, MAX_DEPTH))


_BRANCHES = frozenset(
    set(get_args(syntax.Formula))
    | set(get_args(syntax.Condition))
    | set(get_args(syntax.Expression))
) - {
    syntax.EventAtom,
    syntax.IntegerLiteral,
    syntax.DoubleLiteral,
    syntax.TextLiteral,
    syntax.BooleanLiteral,
    syntax.NullLiteral,
    syntax.TimeLiteral,
    syntax.DurationLiteral,
    syntax.Attribute,
    syntax.CallOfAll,
}
# Parts of a chain, which add no level of their own.
_CHAIN_PARTS = (syntax.Link, syntax.Joint)


def _first_too_deep(query: syntax.Query) -> Span | None:
    """The place of the first node below `MAX_DEPTH` levels; None where there is none."""
    found: list[Span] = []
    items = query.select.items if query.select and isinstance(query.select.items, tuple) else ()
    parts = [item.expression for item in items if isinstance(item, syntax.ExpressionItem)]
    conditions = [] if query.having is None else [query.having.condition]
    waiting: list[tuple[Any, int]] = [(node, 1) for node in (query.formula, *parts, *conditions)]
    while waiting:
        node, level = waiting.pop()
        if level > MAX_DEPTH:
            found.append(node.span)
        else:
            waiting += [(child, level + 1) for child in _branches_below(node)]
    return min(found, default=None)


def _branches_below(node: Any) -> Iterator[Any]:
    for name in node.__slots__:
        value = getattr(node, name)
        for part in value if isinstance(value, tuple) else (value,):
            child = part.operand if isinstance(part, _CHAIN_PARTS) else part
            if type(child) in _BRANCHES:
                yield child
