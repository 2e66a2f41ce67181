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


def parse_with_tokens(source: Source) -> tuple[syntax.File, list[Token]]:
    """The syntax tree of a file, and its tokens with the terminal that each word turned out to be.

    Raises `CelError` as `parse` does.
    """
    diagnostics = Diagnostics(source)
    tokens = tokenize(source, diagnostics)
    if not tokens or tokens[-1].type != END:
        diagnostics.raise_errors()
    file = _parse_statements(tokens, diagnostics)
    if file is not None:
        _check_queries(file, tokens[-1].span, diagnostics)
    diagnostics.raise_errors()
    assert file is not None
    return file, tokens


def _parse_statements(tokens: Sequence[Token], diagnostics: Diagnostics) -> syntax.File | None:
    """The whole file, or None after syntax errors, of which every statement's first is reported."""
    builder = QueryBuilder(diagnostics)
    start: int | None = 0
    while start is not None and len(diagnostics.items) < MAX_ERRORS:
        machine = Machine(builder)
        failed = machine.run(tokens, start)
        if failed is None:
            return machine.result if start == 0 else None
        # In an incomplete declaration, names without a label are not judged.
        whole = Span(0, len(diagnostics.source.text)) if machine.in_aggregate else None
        if tokens[failed].flawed or (failed > start and tokens[failed - 1].flawed):
            builder.end_of_query(error=whole)
        else:
            diagnostic = unexpected(_place(diagnostics.source, tokens, start, failed))
            builder.end_of_query(error=whole or diagnostic.span)
            report(diagnostics, diagnostic)
        after = range(max(failed, start + 1), len(tokens))
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
