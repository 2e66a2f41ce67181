"""Text of MATCH_RECOGNIZE → syntax tree.

The grammar is lark's, which gives the words that could follow where a text ends too early or goes
wrong. sqlglot was rejected: it keeps PATTERN as a text, refuses SUBSET, WITHIN and SKIP TO a
variable, and knows few places.
"""

import re
from functools import cache
from importlib import resources
from typing import Any, Literal

import lark

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import row_patterns as messages
from celc.diagnostics.source import Source, Span
from celc.row_pattern import syntax

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
    try:
        tree = _grammar().parse(source.text)
    except lark.exceptions.UnexpectedCharacters as problem:
        at = problem.pos_in_stream or 0
        diagnostics.add(messages.odd_character(source.text[at : at + 1], _place(source, at)))
    except lark.exceptions.UnexpectedToken as problem:
        diagnostics.add(_unexpected(problem, source))
    diagnostics.raise_errors()
    deep = _too_deep(tree)
    if deep is not None:
        diagnostics.add(messages.too_deep(MAX_DEPTH, deep))
        diagnostics.raise_errors()
    query: syntax.Query = _Builder(diagnostics).transform(tree)
    if found is None:
        diagnostics.raise_errors()
    return query


def tokens_of(source: Source) -> list[lark.Token]:
    """The tokens of a text that `parse` accepts; `type` is the terminal."""
    return list(_grammar().parse_interactive(source.text).iter_parse())


def accepted_after(text: str) -> frozenset[str] | None:
    """The terminals that can follow a text; None where it is already wrong."""
    parser = _grammar().parse_interactive(text)
    try:
        parser.exhaust_lexer()
    except lark.exceptions.UnexpectedInput:
        return None
    return frozenset(parser.accepts())  # type: ignore[no-untyped-call]


@cache
def keywords() -> frozenset[str]:
    """The words that have a meaning of their own in the grammar, in capitals."""
    patterns = {item.name: item.pattern.value for item in _grammar().terminals}
    return frozenset(
        name for name, value in patterns.items() if re.match(rf"{name}(\\b|\(\?=)", value, re.I)
    )


@cache
def _grammar() -> lark.Lark:
    text = resources.files("celc.row_pattern").joinpath("grammar.lark").read_text("utf-8")
    return lark.Lark(
        text, start="query", parser="lalr", maybe_placeholders=True, propagate_positions=True
    )


def _place(source: Source, at: int) -> Span:
    return Span(min(at, len(source.text)), min(at + 1, len(source.text)))


def _unexpected(problem: lark.exceptions.UnexpectedToken, source: Source) -> Any:
    accepted = frozenset(problem.accepts or problem.expected)
    token = problem.token
    if token.type == "$END":
        end = len(source.text.rstrip())
        return messages.unexpected(None, accepted, Span(end, end))
    return messages.unexpected(str(token), accepted, Span(token.start_pos, token.end_pos))


def _too_deep(tree: lark.Tree[Any]) -> Span | None:
    """The place of a node below `MAX_DEPTH` levels that later passes see; None: there is none."""
    waiting = [(tree, 0)]
    while waiting:
        node, level = waiting.pop()
        if level > MAX_DEPTH:
            return Span(node.meta.start_pos, node.meta.end_pos)
        is_level = len(node.children) > 1 or node.data in ("minus", "negated", "call")
        waiting += [(c, level + is_level) for c in node.children if isinstance(c, lark.Tree)]
    return None


def _span(meta: lark.tree.Meta) -> Span:
    return Span(meta.start_pos, meta.end_pos)


def _of(token: lark.Token) -> Span:
    assert token.start_pos is not None
    assert token.end_pos is not None
    return Span(token.start_pos, token.end_pos)


_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@lark.v_args(meta=True)
class _Builder(lark.visitors.Transformer_NonRecursive):  # type: ignore[type-arg]
    """Makes nodes of the syntax out of lark's tree, the lower ones first."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__()
        self._found = diagnostics

    # --- clauses ----------------------------------------------------------------------------------

    def query(self, meta: Any, parts: list[Any]) -> syntax.Query:
        table, _, selected, _, name, match, *rest = parts
        nodes = [part for part in rest if not isinstance(part, lark.Token)]
        pattern_at = next(
            part for part in rest if isinstance(part, lark.Token) and part.type == "PATTERN"
        )
        partition, order, measures, rows, skip, pattern = nodes[:6]
        within, subsets, definitions, alias = nodes[6:10]
        shown: syntax.RowsShown = "ONE ROW"
        rows_span = _of(pattern_at)
        if rows is not None:
            shown, rows_span = rows
        past = syntax.Skip("PAST LAST ROW", None, _of(pattern_at))
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
            match_span=_of(match),
            span=_span(meta),
        )

    def optional(self, meta: Any, parts: list[Any]) -> Any:
        return parts[0]

    def table(self, meta: Any, parts: list[Any]) -> syntax.Table:
        _, _, name, *columns = parts
        declared = tuple(part for part in columns if isinstance(part, syntax.ColumnDeclaration))
        return syntax.Table(name, declared, _span(meta))

    def declaration(self, meta: Any, parts: list[Any]) -> syntax.ColumnDeclaration:
        return syntax.ColumnDeclaration(*parts)

    def every(self, meta: Any, parts: list[Any]) -> Span:
        return _span(meta)

    def chosen(self, meta: Any, parts: list[Any]) -> tuple[syntax.Selected, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Selected))

    def selected(self, meta: Any, parts: list[Any]) -> syntax.Selected:
        table, column, _, alias = parts
        return syntax.Selected(table, column, alias)

    def alias(self, meta: Any, parts: list[Any]) -> syntax.Name:
        name: syntax.Name = parts[1]
        return name

    def partition(self, meta: Any, parts: list[Any]) -> tuple[syntax.Name, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Name))

    def order(self, meta: Any, parts: list[Any]) -> tuple[syntax.Ordered, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Ordered))

    def ordered(self, meta: Any, parts: list[Any]) -> syntax.Ordered:
        column, direction, nulls, where = parts
        descending = direction is not None and direction.type == "DESC"
        return syntax.Ordered(column, descending, None if nulls is None else where.type == "FIRST")

    def measures(self, meta: Any, parts: list[Any]) -> tuple[syntax.Measure, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Measure))

    def measure(self, meta: Any, parts: list[Any]) -> syntax.Measure:
        expression, _, name = parts
        return syntax.Measure(expression, name)

    def one_row(self, meta: Any, parts: list[Any]) -> tuple[syntax.RowsShown, Span]:
        return "ONE ROW", _span(meta)

    def all_rows(self, meta: Any, parts: list[Any]) -> tuple[syntax.RowsShown, Span]:
        return parts[-1] or "SHOW EMPTY", _span(meta)

    def show(self, meta: Any, parts: list[Any]) -> syntax.RowsShown:
        return "SHOW EMPTY"

    def omit(self, meta: Any, parts: list[Any]) -> syntax.RowsShown:
        return "OMIT EMPTY"

    def unmatched(self, meta: Any, parts: list[Any]) -> syntax.RowsShown:
        return "WITH UNMATCHED"

    def skip_past(self, meta: Any, parts: list[Any]) -> syntax.Skip:
        return syntax.Skip("PAST LAST ROW", None, _span(meta))

    def skip_next(self, meta: Any, parts: list[Any]) -> syntax.Skip:
        return syntax.Skip("TO NEXT ROW", None, _span(meta))

    def skip_first(self, meta: Any, parts: list[Any]) -> syntax.Skip:
        return syntax.Skip("TO FIRST", parts[-1], _span(meta))

    def skip_last(self, meta: Any, parts: list[Any]) -> syntax.Skip:
        return syntax.Skip("TO LAST", parts[-1], _span(meta))

    skip_to = skip_last

    def within(self, meta: Any, parts: list[Any]) -> syntax.Interval:
        interval: syntax.Interval = parts[1]
        return interval

    def subsets(self, meta: Any, parts: list[Any]) -> tuple[syntax.Subset, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Subset))

    def subset(self, meta: Any, parts: list[Any]) -> syntax.Subset:
        name, *members = (part for part in parts if isinstance(part, syntax.Name))
        return syntax.Subset(name, tuple(members))

    def definitions(self, meta: Any, parts: list[Any]) -> tuple[syntax.Definition, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Definition))

    def definition(self, meta: Any, parts: list[Any]) -> syntax.Definition:
        name, _, condition = parts
        return syntax.Definition(name, condition)

    # --- patterns ---------------------------------------------------------------------------------

    def alternation(self, meta: Any, parts: list[Any]) -> syntax.Pattern:
        return parts[0] if len(parts) == 1 else syntax.Alternation(tuple(parts), _span(meta))

    def concatenation(self, meta: Any, parts: list[Any]) -> syntax.Pattern:
        return parts[0] if len(parts) == 1 else syntax.Concatenation(tuple(parts), _span(meta))

    def variable(self, meta: Any, parts: list[Any]) -> syntax.Variable:
        return syntax.Variable(parts[0], _span(meta))

    def nothing(self, meta: Any, parts: list[Any]) -> syntax.Nothing:
        return syntax.Nothing(_span(meta))

    def group(self, meta: Any, parts: list[Any]) -> syntax.Pattern:
        inner: syntax.Pattern = parts[0]
        return inner

    def anchor(self, meta: Any, parts: list[Any]) -> syntax.Anchor:
        sign: Literal["^", "$"] = "^" if parts[0] == "^" else "$"
        return syntax.Anchor(sign, _span(meta))

    def permutation(self, meta: Any, parts: list[Any]) -> syntax.Permutation:
        permuted = tuple(part for part in parts if not isinstance(part, lark.Token))
        if len(permuted) > MAX_PERMUTED:
            self._found.add(messages.too_many_permuted(len(permuted), MAX_PERMUTED, _span(meta)))
        return syntax.Permutation(permuted, _span(meta))

    def exclusion(self, meta: Any, parts: list[Any]) -> syntax.Exclusion:
        return syntax.Exclusion(parts[1], _span(meta))

    def repetition(self, meta: Any, parts: list[Any]) -> syntax.Repetition:
        part, (least, most, reluctant, bounds) = parts
        return syntax.Repetition(part, least, most, reluctant, bounds, _span(meta))

    def sign(self, meta: Any, parts: list[Any]) -> tuple[int, int | None, bool, Span]:
        sign, reluctant = parts
        return *_SIGNS[str(sign)], reluctant is not None, _span(meta)

    def exactly(self, meta: Any, parts: list[Any]) -> tuple[int, int | None, bool, Span]:
        _, bound, reluctant = parts
        size = int(bound)
        return self._bounds(size, size, reluctant is not None, _span(meta))

    def bounds(self, meta: Any, parts: list[Any]) -> tuple[int, int | None, bool, Span]:
        _, low, _, high, reluctant = parts
        least, most = int(low or 0), None if high is None else int(high)
        return self._bounds(least, most, reluctant is not None, _span(meta))

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

    def binary(self, meta: Any, parts: list[Any]) -> syntax.Binary:
        left, operator, right = parts
        text = {"==": "=", "<>": "!="}.get(str(operator), str(operator).upper())
        return syntax.Binary(text, left, right, _span(meta))

    def negated(self, meta: Any, parts: list[Any]) -> syntax.Unary:
        return syntax.Unary("NOT", parts[1], _span(meta))

    def minus(self, meta: Any, parts: list[Any]) -> syntax.Expression:
        return syntax.Unary("-", parts[1], _span(meta))

    def null_test(self, meta: Any, parts: list[Any]) -> syntax.NullTest:
        operand, _, negated, _ = parts
        return syntax.NullTest(operand, negated is not None, _span(meta))

    def between(self, meta: Any, parts: list[Any]) -> syntax.Between:
        operand, negated, _, low, _, high = parts
        return syntax.Between(operand, low, high, negated is not None, _span(meta))

    def within_list(self, meta: Any, parts: list[Any]) -> syntax.In:
        operand, negated, _, *values = parts
        kept = tuple(value for value in values if not isinstance(value, lark.Token))
        return syntax.In(operand, kept, negated is not None, _span(meta))

    def like(self, meta: Any, parts: list[Any]) -> syntax.Like:
        operand, negated, operator, pattern = parts
        kind: Literal["LIKE", "RLIKE"] = "LIKE" if operator.type == "LIKE" else "RLIKE"
        return syntax.Like(kind, operand, pattern, negated is not None, _span(meta))

    def integer(self, meta: Any, parts: list[Any]) -> syntax.Constant:
        return syntax.Constant(int(parts[0]), _span(meta))

    def real(self, meta: Any, parts: list[Any]) -> syntax.Constant:
        return syntax.Constant(float(parts[0]), _span(meta))

    def text(self, meta: Any, parts: list[Any]) -> syntax.Constant:
        return syntax.Constant(_text(parts[0]), _span(meta))

    def word(self, meta: Any, parts: list[Any]) -> syntax.Constant:
        value = {"TRUE": True, "FALSE": False, "NULL": None}[parts[0].type]
        return syntax.Constant(value, _span(meta))

    def time(self, meta: Any, parts: list[Any]) -> syntax.Time:
        kind, text = parts
        constant = syntax.Constant(_text(text), _of(text))
        return syntax.Time("DATE" if kind.type == "DATE" else "TIMESTAMP", constant, _span(meta))

    def interval(self, meta: Any, parts: list[Any]) -> syntax.Interval:
        _, amount, unit = parts
        return syntax.Interval(str(amount).strip("'").strip(), unit, _span(meta))

    def column(self, meta: Any, parts: list[Any]) -> syntax.Column:
        names = [part for part in parts if isinstance(part, syntax.Name)]
        return syntax.Column(names[0] if len(names) == 2 else None, names[-1], _span(meta))

    def star(self, meta: Any, parts: list[Any]) -> syntax.Star:
        named = parts[0] if isinstance(parts[0], syntax.Name) else None
        return syntax.Star(named, _span(meta))

    def call(self, meta: Any, parts: list[Any]) -> syntax.Call:
        semantics, function, given = parts
        distinct, arguments = given or (None, ())
        kept = None if semantics is None else syntax.Name(semantics.type, _of(semantics))
        return syntax.Call(function, arguments, kept, distinct, _span(meta))

    def arguments(self, meta: Any, parts: list[Any]) -> tuple[Span | None, tuple[Any, ...]]:
        distinct, *values = parts
        kept = tuple(value for value in values if not isinstance(value, lark.Token))
        return None if distinct is None else _of(distinct), kept

    def case(self, meta: Any, parts: list[Any]) -> syntax.Case:
        _, operand, *rest = parts
        branches = tuple(part for part in rest if isinstance(part, tuple))
        _, otherwise, _ = rest[len(branches) :]
        return syntax.Case(operand, branches, otherwise, _span(meta))

    def branch(self, meta: Any, parts: list[Any]) -> tuple[Any, Any]:
        _, condition, _, value = parts
        return condition, value

    def in_parentheses(self, meta: Any, parts: list[Any]) -> syntax.Expression:
        inner: syntax.Expression = parts[0]
        return inner

    # --- names ------------------------------------------------------------------------------------

    def plain(self, meta: Any, parts: list[Any]) -> syntax.Name:
        return syntax.Name(str(parts[0]), _span(meta))

    def quoted(self, meta: Any, parts: list[Any]) -> syntax.Name:
        return syntax.Name(str(parts[0])[1:-1].replace("``", "`"), _span(meta))


def _text(token: lark.Token) -> str:
    return str(token)[1:-1].replace("''", "'")
