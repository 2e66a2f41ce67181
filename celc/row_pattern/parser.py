"""Text of MATCH_RECOGNIZE → syntax tree.

The machine is that of CEL, with tables of its own; it gives the words that could follow where a
text ends too early or goes wrong. sqlglot was rejected: it keeps PATTERN as a text, refuses SUBSET,
WITHIN and SKIP TO a variable, and knows few places.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import row_patterns as messages
from celc.diagnostics.source import Source, Span
from celc.parse import syntax as cel
from celc.parse.tables import END
from celc.parse.tokens import BAD, Token
from celc.row_pattern import syntax
from celc.row_pattern.expression_builder import ExpressionBuilder
from celc.row_pattern.machine import Node, RowMachine, grammar, plain_text

MAX_BOUND = 10_000
"""The largest bound of a quantifier."""

MAX_DEPTH = 150
"""How deep expressions and patterns nest: later passes call themselves for each level."""

MAX_PERMUTED = 6
"""The most parts of PERMUTE: their orders are written out."""


def parse(source: Source, found: Diagnostics | None = None) -> syntax.Query:
    """The syntax tree of a text. Raises `CelError` where it is none.

    found: gets the errors of a text that is a tree all the same, such as bounds that cannot be, so
    that later passes find theirs as well; None: these are raised, too.
    """
    diagnostics = Diagnostics(source) if found is None else found
    machine = RowMachine(source.text)
    wrong = machine.run()
    if wrong is not None and wrong.type == BAD:
        diagnostics.add(messages.odd_character(wrong.text, wrong.span))
    elif wrong is not None:
        diagnostics.add(_unexpected(wrong, machine, source))
    diagnostics.raise_errors()
    deep = _too_deep(machine.result)
    if deep is not None:
        diagnostics.add(messages.too_deep(MAX_DEPTH, deep))
        diagnostics.raise_errors()
    query: syntax.Query = _built(machine.nodes, _Builder(diagnostics))
    if found is None:
        diagnostics.raise_errors()
    return query


def tokens_of(source: Source) -> list[Token]:
    """The tokens of a text that `parse` accepts; `type` is the terminal."""
    machine = RowMachine(source.text)
    machine.run()
    return machine.tokens


def first_wrong(text: str) -> int | None:
    """Where a text stops to be one of MATCH_RECOGNIZE alone; None: it is one."""
    wrong = RowMachine(text).run()
    return None if wrong is None else wrong.span.start


def accepted_after(text: str) -> frozenset[str] | None:
    """The terminals that can follow a text; None where it is already wrong."""
    machine = RowMachine(text)
    return machine.accepted() if machine.read() is None else None


@cache
def keywords() -> frozenset[str]:
    """The words that have a meaning of their own in the grammar, in capitals."""
    return frozenset(grammar().keywords)


def _unexpected(token: Token, machine: RowMachine, source: Source) -> Any:
    accepted = machine.accepted()
    if token.type == END:
        end = len(source.text.rstrip())
        return messages.unexpected(None, accepted, Span(end, end))
    before = source.text[: token.span.start].split()[-1:]
    clauses = [one.type for one in machine.tokens if one.type in messages.CLAUSES]
    return messages.unexpected(
        token.text,
        accepted,
        token.span,
        "".join(before).upper().lstrip("("),
        clauses[-1] if clauses else "",
    )


def _too_deep(tree: Node) -> Span | None:
    """The place of a node below `MAX_DEPTH` levels that later passes see; None: there is none."""
    waiting = [(tree, 0)]
    while waiting:
        node, level = waiting.pop()
        if level > MAX_DEPTH:
            return node.span
        is_level = len(node.parts) > 1 or node.name in ("minus", "negated", "call", "cast")
        waiting += [(c, level + is_level) for c in node.parts if isinstance(c, Node)]
    return None


def _built(nodes: list[Node], builder: Any) -> Any:
    """What a builder makes of nodes, of which the lower ones come first; the value of the last."""
    for node in nodes:
        parts = [part.value if isinstance(part, Node) else part for part in node.parts]
        node.value = getattr(builder, node.name)(node.span, parts)
    return nodes[-1].value


_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class _Builder(ExpressionBuilder):
    """Makes the syntax of the nodes: a method for each rule or alias, with its place and parts."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__(diagnostics)
        self._found = diagnostics

    # --- clauses ----------------------------------------------------------------------------------

    def query(self, span: Span, parts: list[Any]) -> syntax.Query:
        table, _, selected, _, name, match, *rest = parts
        nodes = [part for part in rest if not isinstance(part, Token)]
        pattern_at = next(
            part for part in rest if isinstance(part, Token) and part.type == "PATTERN"
        )
        partition, order, measures, rows, skip, pattern = nodes[:6]
        within, subsets, definitions, alias = nodes[6:10]
        shown: syntax.RowsShown = "ONE ROW"
        rows_span = pattern_at.span
        if rows is not None:
            shown, rows_span = rows
        past = syntax.Skip("PAST LAST ROW", None, pattern_at.span)
        return syntax.Query(
            table=table,
            selected=None if isinstance(selected, Span) else selected,
            star_span=selected if isinstance(selected, Span) else None,
            source=name,
            partition_by=partition or (),
            order_by=order or (),
            measures=measures or (),
            rows=shown,
            rows_span=rows_span,
            skip=skip or past,
            pattern=pattern,
            within=within,
            subsets=subsets or (),
            definitions=definitions or (),
            alias=alias,
            match_span=match.span,
            span=span,
        )

    def optional(self, span: Span, parts: list[Any]) -> Any:
        return parts[0]

    def table(self, span: Span, parts: list[Any]) -> syntax.Table:
        _, _, name, *columns = parts
        declared = tuple(part for part in columns if isinstance(part, syntax.ColumnDeclaration))
        return syntax.Table(name, declared, span)

    def declaration(self, span: Span, parts: list[Any]) -> syntax.ColumnDeclaration:
        return syntax.ColumnDeclaration(*parts)

    def type(self, span: Span, parts: list[Any]) -> cel.WrittenType:
        return cel.WrittenType(parts[0], (), (), span)

    def sized_type(self, span: Span, parts: list[Any]) -> cel.WrittenType:
        return cel.WrittenType(parts[0], tuple(int(one.text) for one in parts[1:]), (), span)

    def type_of_parts(self, span: Span, parts: list[Any]) -> cel.WrittenType:
        name, _, *inner, _ = parts
        return cel.WrittenType(name, (), tuple(inner), span)

    def type_name(self, span: Span, parts: list[Any]) -> cel.Name:
        name, *words = parts
        return cel.Name(" ".join([name.text, *(word.text.upper() for word in words)]), span)

    def type_field(self, span: Span, parts: list[Any]) -> cel.TypeField:
        name, _, type = parts
        return cel.TypeField(cel.Name(name.text, name.span), type, span)

    def every(self, span: Span, parts: list[Any]) -> Span:
        return span

    def chosen(self, span: Span, parts: list[Any]) -> tuple[syntax.Selected, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Selected))

    def selected(self, span: Span, parts: list[Any]) -> syntax.Selected:
        table, column, _, alias = parts
        return syntax.Selected(table, column, alias)

    def alias(self, span: Span, parts: list[Any]) -> syntax.Name:
        name: syntax.Name = parts[1]
        return name

    def partition(self, span: Span, parts: list[Any]) -> tuple[syntax.Key, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Key))

    def key(self, span: Span, parts: list[Any]) -> syntax.Key:
        expression, _, name = parts
        called = name
        if name is None:
            is_bare = isinstance(expression, syntax.Column) and expression.variable is None
            text = self._plain_text(expression.span)
            called = expression.name if is_bare else syntax.Name(text, expression.span)
        return syntax.Key(expression, name, called)

    def _plain_text(self, span: Span) -> str:
        """A part of the text without comments, each run of white space one space."""
        return plain_text(self._found.source.slice(span))

    def order(self, span: Span, parts: list[Any]) -> tuple[syntax.Ordered, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Ordered))

    def ordered(self, span: Span, parts: list[Any]) -> syntax.Ordered:
        key, direction, nulls, where = parts
        descending = direction is not None and direction.type == "DESC"
        return syntax.Ordered(key, descending, None if nulls is None else where.type == "FIRST")

    def measures(self, span: Span, parts: list[Any]) -> tuple[syntax.Measure, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Measure))

    def measure(self, span: Span, parts: list[Any]) -> syntax.Measure:
        expression, _, name = parts
        return syntax.Measure(expression, name)

    def one_row(self, span: Span, parts: list[Any]) -> tuple[syntax.RowsShown, Span]:
        return "ONE ROW", span

    def all_rows(self, span: Span, parts: list[Any]) -> tuple[syntax.RowsShown, Span]:
        return parts[-1] or "SHOW EMPTY", span

    def show(self, span: Span, parts: list[Any]) -> syntax.RowsShown:
        return "SHOW EMPTY"

    def omit(self, span: Span, parts: list[Any]) -> syntax.RowsShown:
        return "OMIT EMPTY"

    def unmatched(self, span: Span, parts: list[Any]) -> syntax.RowsShown:
        return "WITH UNMATCHED"

    def skip_past(self, span: Span, parts: list[Any]) -> syntax.Skip:
        return syntax.Skip("PAST LAST ROW", None, span)

    def skip_next(self, span: Span, parts: list[Any]) -> syntax.Skip:
        return syntax.Skip("TO NEXT ROW", None, span)

    def skip_first(self, span: Span, parts: list[Any]) -> syntax.Skip:
        return syntax.Skip("TO FIRST", parts[-1], span)

    def skip_last(self, span: Span, parts: list[Any]) -> syntax.Skip:
        return syntax.Skip("TO LAST", parts[-1], span)

    skip_to = skip_last

    def within(self, span: Span, parts: list[Any]) -> syntax.Interval:
        interval: syntax.Interval = parts[1]
        return interval

    def subsets(self, span: Span, parts: list[Any]) -> tuple[syntax.Subset, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Subset))

    def subset(self, span: Span, parts: list[Any]) -> syntax.Subset:
        name, *members = (part for part in parts if isinstance(part, syntax.Name))
        return syntax.Subset(name, tuple(members))

    def definitions(self, span: Span, parts: list[Any]) -> tuple[syntax.Definition, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Definition))

    def definition(self, span: Span, parts: list[Any]) -> syntax.Definition:
        name, _, condition = parts
        return syntax.Definition(name, condition)

    # --- patterns ---------------------------------------------------------------------------------

    def alternation(self, span: Span, parts: list[Any]) -> syntax.Pattern:
        return parts[0] if len(parts) == 1 else syntax.Alternation(tuple(parts), span)

    def concatenation(self, span: Span, parts: list[Any]) -> syntax.Pattern:
        return parts[0] if len(parts) == 1 else syntax.Concatenation(tuple(parts), span)

    def variable(self, span: Span, parts: list[Any]) -> syntax.Variable:
        return syntax.Variable(parts[0], span)

    def nothing(self, span: Span, parts: list[Any]) -> syntax.Nothing:
        return syntax.Nothing(span)

    def group(self, span: Span, parts: list[Any]) -> syntax.Pattern:
        inner: syntax.Pattern = parts[0]
        return inner

    def anchor(self, span: Span, parts: list[Any]) -> syntax.Anchor:
        sign: Literal["^", "$"] = "^" if parts[0].text == "^" else "$"
        return syntax.Anchor(sign, span)

    def permutation(self, span: Span, parts: list[Any]) -> syntax.Permutation:
        permuted = tuple(part for part in parts if not isinstance(part, Token))
        if len(permuted) > MAX_PERMUTED:
            self._found.add(messages.too_many_permuted(len(permuted), MAX_PERMUTED, span))
        return syntax.Permutation(permuted, span)

    def exclusion(self, span: Span, parts: list[Any]) -> syntax.Exclusion:
        return syntax.Exclusion(parts[1], span)

    def repetition(self, span: Span, parts: list[Any]) -> syntax.Repetition:
        part, (least, most, reluctant, bounds) = parts
        return syntax.Repetition(part, least, most, reluctant, bounds, span)

    def sign(self, span: Span, parts: list[Any]) -> tuple[int, int | None, bool, Span]:
        sign, reluctant = parts
        return *_SIGNS[sign.text], reluctant is not None, span

    def exactly(self, span: Span, parts: list[Any]) -> tuple[int, int | None, bool, Span]:
        _, bound, reluctant = parts
        size = int(bound.text)
        return self._bounds(size, size, reluctant is not None, span)

    def bounds(self, span: Span, parts: list[Any]) -> tuple[int, int | None, bool, Span]:
        _, low, _, high, reluctant = parts
        least, most = 0 if low is None else int(low.text), None if high is None else int(high.text)
        return self._bounds(least, most, reluctant is not None, span)

    def _bounds(
        self, least: int, most: int | None, reluctant: bool, span: Span
    ) -> tuple[int, int | None, bool, Span]:
        if max(least, most or 0) > MAX_BOUND:
            self._found.add(messages.large_bound(MAX_BOUND, span))
        elif most == 0:
            self._found.add(messages.no_round(span))
        elif most is not None and most < least:
            self._found.add(messages.bounds_exchanged(least, most, span))
        return least, most, reluctant, span
