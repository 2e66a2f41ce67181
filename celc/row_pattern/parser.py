"""Text of MATCH_RECOGNIZE → syntax tree.

The machine is that of CEL, with tables of its own; it gives the words that could follow where a
text ends too early or goes wrong. sqlglot was rejected: it keeps PATTERN as a text, refuses SUBSET,
WITHIN and SKIP TO a variable, and knows few places.
"""

from functools import cache
from typing import Any, Literal

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import row_patterns as messages
from celc.diagnostics.source import Source, Span
from celc.parse.tables import END
from celc.parse.tokens import BAD, Token
from celc.row_pattern import syntax
from celc.row_pattern.machine import Node, RowMachine, grammar

MAX_BOUND = 1000
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
        diagnostics.add(_unexpected(wrong, machine.accepted(), source))
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


def accepted_after(text: str) -> frozenset[str] | None:
    """The terminals that can follow a text; None where it is already wrong."""
    machine = RowMachine(text)
    return machine.accepted() if machine.read() is None else None


@cache
def keywords() -> frozenset[str]:
    """The words that have a meaning of their own in the grammar, in capitals."""
    return frozenset(grammar().keywords)


def _unexpected(token: Token, accepted: frozenset[str], source: Source) -> Any:
    if token.type == END:
        end = len(source.text.rstrip())
        return messages.unexpected(None, accepted, Span(end, end))
    return messages.unexpected(token.text, accepted, token.span)


def _too_deep(tree: Node) -> Span | None:
    """The place of a node below `MAX_DEPTH` levels that later passes see; None: there is none."""
    waiting = [(tree, 0)]
    while waiting:
        node, level = waiting.pop()
        if level > MAX_DEPTH:
            return node.span
        is_level = len(node.parts) > 1 or node.name in ("minus", "negated", "call")
        waiting += [(c, level + is_level) for c in node.parts if isinstance(c, Node)]
    return None


def _built(nodes: list[Node], builder: Any) -> Any:
    """What a builder makes of nodes, of which the lower ones come first; the value of the last."""
    for node in nodes:
        parts = [part.value if isinstance(part, Node) else part for part in node.parts]
        node.value = getattr(builder, node.name)(node.span, parts)
    return nodes[-1].value


_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class _Builder:
    """Makes the syntax of the nodes: a method for each rule or alias, with its place and parts."""

    def __init__(self, diagnostics: Diagnostics) -> None:
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

    def partition(self, span: Span, parts: list[Any]) -> tuple[syntax.Name, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Name))

    def order(self, span: Span, parts: list[Any]) -> tuple[syntax.Ordered, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Ordered))

    def ordered(self, span: Span, parts: list[Any]) -> syntax.Ordered:
        column, direction, nulls, where = parts
        descending = direction is not None and direction.type == "DESC"
        return syntax.Ordered(column, descending, None if nulls is None else where.type == "FIRST")

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

    # --- expressions ------------------------------------------------------------------------------

    def binary(self, span: Span, parts: list[Any]) -> syntax.Binary:
        left, operator, right = parts
        text = {"==": "=", "<>": "!="}.get(operator.text, operator.text.upper())
        return syntax.Binary(text, left, right, span)

    def negated(self, span: Span, parts: list[Any]) -> syntax.Unary:
        return syntax.Unary("NOT", parts[1], span)

    def minus(self, span: Span, parts: list[Any]) -> syntax.Expression:
        return syntax.Unary("-", parts[1], span)

    def null_test(self, span: Span, parts: list[Any]) -> syntax.NullTest:
        operand, _, negated, _ = parts
        return syntax.NullTest(operand, negated is not None, span)

    def between(self, span: Span, parts: list[Any]) -> syntax.Between:
        operand, negated, _, low, _, high = parts
        return syntax.Between(operand, low, high, negated is not None, span)

    def within_list(self, span: Span, parts: list[Any]) -> syntax.In:
        operand, negated, _, *values = parts
        kept = tuple(value for value in values if not isinstance(value, Token))
        return syntax.In(operand, kept, negated is not None, span)

    def like(self, span: Span, parts: list[Any]) -> syntax.Like:
        operand, negated, operator, pattern = parts
        kind: Literal["LIKE", "RLIKE"] = "LIKE" if operator.type == "LIKE" else "RLIKE"
        return syntax.Like(kind, operand, pattern, negated is not None, span)

    def integer(self, span: Span, parts: list[Any]) -> syntax.Constant:
        return syntax.Constant(int(parts[0].text), span)

    def real(self, span: Span, parts: list[Any]) -> syntax.Constant:
        return syntax.Constant(float(parts[0].text), span)

    def text(self, span: Span, parts: list[Any]) -> syntax.Constant:
        return syntax.Constant(_text(parts[0]), span)

    def word(self, span: Span, parts: list[Any]) -> syntax.Constant:
        value = {"TRUE": True, "FALSE": False, "NULL": None}[parts[0].type]
        return syntax.Constant(value, span)

    def time(self, span: Span, parts: list[Any]) -> syntax.Time:
        kind, text = parts
        constant = syntax.Constant(_text(text), text.span)
        return syntax.Time("DATE" if kind.type == "DATE" else "TIMESTAMP", constant, span)

    def interval(self, span: Span, parts: list[Any]) -> syntax.Interval:
        _, amount, unit = parts
        return syntax.Interval(amount.text.strip("'").strip(), unit, span)

    def column(self, span: Span, parts: list[Any]) -> syntax.Column:
        names = [part for part in parts if isinstance(part, syntax.Name)]
        return syntax.Column(names[0] if len(names) == 2 else None, names[-1], span)

    def star(self, span: Span, parts: list[Any]) -> syntax.Star:
        named = parts[0] if isinstance(parts[0], syntax.Name) else None
        return syntax.Star(named, span)

    def call(self, span: Span, parts: list[Any]) -> syntax.Call:
        semantics, function, given = parts
        distinct, arguments = given or (None, ())
        kept = None if semantics is None else syntax.Name(semantics.type, semantics.span)
        return syntax.Call(function, arguments, kept, distinct, span)

    def arguments(self, span: Span, parts: list[Any]) -> tuple[Span | None, tuple[Any, ...]]:
        distinct, *values = parts
        kept = tuple(value for value in values if not isinstance(value, Token))
        return None if distinct is None else distinct.span, kept

    def case(self, span: Span, parts: list[Any]) -> syntax.Case:
        _, operand, *rest = parts
        branches = tuple(part for part in rest if isinstance(part, tuple))
        _, otherwise, _ = rest[len(branches) :]
        return syntax.Case(operand, branches, otherwise, span)

    def branch(self, span: Span, parts: list[Any]) -> tuple[Any, Any]:
        _, condition, _, value = parts
        return condition, value

    def in_parentheses(self, span: Span, parts: list[Any]) -> syntax.Expression:
        inner: syntax.Expression = parts[0]
        return inner

    # --- names ------------------------------------------------------------------------------------

    def plain(self, span: Span, parts: list[Any]) -> syntax.Name:
        return syntax.Name(parts[0].text, span)

    def quoted(self, span: Span, parts: list[Any]) -> syntax.Name:
        return syntax.Name(parts[0].text[1:-1].replace("``", "`"), span)


def _text(token: Token) -> str:
    return token.text[1:-1].replace("''", "'")
