"""Expressions of MATCH_RECOGNIZE, made bottom-up of the nodes of the parser (`parser`)."""

from typing import Any, Literal

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import Span
from celc.parse import syntax as cel
from celc.parse.tokens import Token
from celc.row_pattern import syntax


@frozen
class _Zoned:
    """`e AT TIME ZONE '…'`, an argument."""

    value: syntax.Expression
    zone: cel.TextLiteral


class ExpressionBuilder:
    """Makes the syntax of the nodes: a method for each rule or alias, with its place and parts."""

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

    def distinct_test(self, span: Span, parts: list[Any]) -> syntax.DistinctTest:
        left, _, negated, _, _, right = parts
        return syntax.DistinctTest(left, right, negated is not None, span)

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
        zone = next((one.zone for one in arguments if isinstance(one, _Zoned)), None)
        plain = tuple(one.value if isinstance(one, _Zoned) else one for one in arguments)
        # What other engines call PREV and NEXT.
        named = {"lag": "PREV", "lead": "NEXT"}.get(function.key, function.text)
        return syntax.Call(syntax.Name(named, function.span), plain, kept, distinct, zone, span)

    def zoned(self, span: Span, parts: list[Any]) -> _Zoned:
        value, *_, zone = parts
        return _Zoned(value, cel.TextLiteral(_text(zone), zone.span))

    def joined(self, span: Span, parts: list[Any]) -> syntax.Call:
        left, sign, right = parts
        concat = syntax.Name("CONCAT", sign.span)
        return syntax.Call(concat, (left, right), None, None, None, span)

    def cast(self, span: Span, parts: list[Any]) -> syntax.Cast:
        word, operand, *_, zone, _, type = parts
        named = None if zone is None else cel.TextLiteral(_text(zone), zone.span)
        return syntax.Cast(operand, type, named, word.type == "TRY_CAST", span)

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
        quote = parts[0].text[0]
        return syntax.Name(parts[0].text[1:-1].replace(2 * quote, quote), span)


def _text(token: Token) -> str:
    return token.text[1:-1].replace("''", "'")
