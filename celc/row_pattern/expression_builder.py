"""Expressions of MATCH_RECOGNIZE, made bottom-up of the nodes of the parser (`parser`)."""

from dataclasses import replace
from typing import Any, Literal

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import row_patterns as messages
from celc.diagnostics.source import Span
from celc.parse import syntax as cel
from celc.parse.mistakes.trees import json_step
from celc.parse.tokens import Token
from celc.row_pattern import syntax


@frozen
class _Zoned:
    """`e AT TIME ZONE '…'`, an argument."""

    value: syntax.Expression
    zone: cel.TextLiteral


@frozen
class _PartOfTime:
    """`HOUR FROM e [AT TIME ZONE '…']`, an argument."""

    part: syntax.Name
    value: syntax.Expression
    zone: cel.TextLiteral | None
    span: Span


class ExpressionBuilder:
    """Makes the syntax of the nodes: a method for each rule or alias, with its place and parts."""

    def __init__(self, found: Diagnostics) -> None:
        self.report, self.slice = found.add, found.source.slice

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

    def truth_test(self, span: Span, parts: list[Any]) -> syntax.DistinctTest:
        operand, _, negated, word = parts
        value = syntax.Constant(word.type == "TRUE", word.span)
        return syntax.DistinctTest(operand, value, negated is None, span)

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

    def interval_of_text(self, span: Span, parts: list[Any]) -> syntax.Interval:
        amount, _, unit = _text(parts[1]).strip().partition(" ")
        return syntax.Interval(amount, syntax.Name(unit.strip(), parts[1].span), span)

    def column(self, span: Span, parts: list[Any]) -> syntax.Column:
        return syntax.Column(None, parts[0], span)

    def star(self, span: Span, parts: list[Any]) -> syntax.Star:
        match parts[0]:
            case syntax.Column(variable=None, name=name):
                return syntax.Star(name, span)
            case Token():
                return syntax.Star(None, span)
            case _:
                self.report(messages.wrong_arguments("COUNT", "COUNT(v.*)", span))
                return syntax.Star(None, span)

    def call(self, span: Span, parts: list[Any]) -> syntax.Call | syntax.Binary:
        semantics, function, given, condition = parts
        distinct, arguments, order = given or (None, (), ())
        if any(isinstance(one, _PartOfTime) for one in arguments):
            return self._extracted(span, function, arguments)
        kept = None if semantics is None else syntax.Name(semantics.type, semantics.span)
        zone = next((one.zone for one in arguments if isinstance(one, _Zoned)), None)
        plain = tuple(one.value if isinstance(one, _Zoned) else one for one in arguments)
        if (
            function.key == "mod"
            and len(plain) == 2
            and not (distinct or order or condition)
            and not any(isinstance(one, syntax.Star) for one in plain)
        ):
            return syntax.Binary("%", plain[0], plain[1], span)
        named = _ALSO_CALLED.get(function.key, function.text)
        if function.key == "match_sequence_number" and not plain:
            named, plain = "COUNT", (syntax.Star(None, span),)
        name = syntax.Name(named, function.span)
        return syntax.Call(name, plain, kept, distinct, zone, span, condition, order)

    def _extracted(
        self, span: Span, function: syntax.Name, arguments: tuple[Any, ...]
    ) -> syntax.Call:
        """`EXTRACT(HOUR FROM e)`, which is `HOUR(e)`."""
        asked, *more = (one for one in arguments if isinstance(one, _PartOfTime))
        if function.key != "extract" or more or len(arguments) > 1:
            self.report(messages.from_in_call(function.text, asked.span))
        elif asked.part.text.upper() not in _PARTS_OF_TIMES:
            self.report(messages.part_of_time(asked.part.text, _PARTS_OF_TIMES, asked.part.span))
        name = syntax.Name(asked.part.text.upper(), asked.part.span)
        return syntax.Call(name, (asked.value,), None, None, asked.zone, span)

    def part_of_time(self, span: Span, parts: list[Any]) -> _PartOfTime:
        part, _, value, *_, zone = parts
        literal = None if zone is None else cel.TextLiteral(_text(zone), zone.span)
        return _PartOfTime(part, value, literal, span)

    def filter(self, span: Span, parts: list[Any]) -> syntax.Expression:
        condition: syntax.Expression = parts[-1]
        return condition

    def sorting(self, span: Span, parts: list[Any]) -> tuple[syntax.Sorted, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.Sorted))

    def sorted(self, span: Span, parts: list[Any]) -> syntax.Sorted:
        expression, direction, nulls, where = parts
        descending = direction is not None and direction.type == "DESC"
        nulls_first = None if nulls is None else where.type == "FIRST"
        return syntax.Sorted(expression, descending, nulls_first, span)

    def lambda_of(self, span: Span, parts: list[Any]) -> syntax.Lambda:
        *before, body = parts
        names = tuple(part for part in before if isinstance(part, syntax.Name))
        return syntax.Lambda(names, body, span)

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

    def short_cast(self, span: Span, parts: list[Any]) -> syntax.Cast:
        operand, _, type = parts
        return syntax.Cast(operand, type, None, False, span)

    def field(
        self, span: Span, parts: list[Any]
    ) -> syntax.Column | syntax.Field | syntax.JsonValue:
        whole, name = parts[0], parts[-1]
        match whole:
            case syntax.Column(variable=None, name=variable):
                return syntax.Column(variable, name, span)
            case syntax.JsonValue():
                return replace(whole, path=(*whole.path, name.text), span=span)
            case _:
                return syntax.Field(whole, name, span)

    def element(self, span: Span, parts: list[Any]) -> syntax.Element | syntax.JsonValue:
        whole, _, index, *_ = parts
        if isinstance(whole, syntax.JsonValue):
            return replace(whole, path=(*whole.path, self._step(index)), span=span)
        return syntax.Element(whole, index, span)

    def json_field(self, span: Span, parts: list[Any]) -> syntax.JsonValue:
        return syntax.JsonValue(parts[0], (parts[-1].text,), span)

    def json_element(self, span: Span, parts: list[Any]) -> syntax.JsonValue:
        return syntax.JsonValue(parts[0], (self._step(parts[3]),), span)

    def json_text(self, span: Span, parts: list[Any]) -> syntax.JsonValue:
        operand, _, step = parts
        if step.type == "INTEGER":
            return syntax.JsonValue(operand, (int(step.text),), span)
        text = _text(step)
        if text[:1] in ("$", "/"):
            self.report(messages.path_of_json(text, step.span))
        return syntax.JsonValue(operand, (text,), span)

    def _step(self, index: syntax.Expression) -> str | int:
        """A step in brackets: a text, or a whole number."""
        match index:
            case syntax.Constant(value=str() | int() as value) if not isinstance(value, bool):
                return value
            case _:
                self.report(json_step(index.span, self.slice(index.span)))
                return 0

    def arguments(
        self, span: Span, parts: list[Any]
    ) -> tuple[Span | None, tuple[Any, ...], tuple[syntax.Sorted, ...]]:
        distinct, *values, order = parts
        kept = tuple(value for value in values if not isinstance(value, Token))
        return None if distinct is None else distinct.span, kept, order or ()

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


_ALSO_CALLED = {
    "lag": "PREV",
    "lead": "NEXT",
    "list": "ARRAY_AGG",
    "nvl": "COALESCE",
    "ifnull": "COALESCE",
}
"""What other engines call functions."""

_PARTS_OF_TIMES = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE")
"""What EXTRACT gives alike everywhere. With SECOND some engines give a fraction, and others not."""


def _text(token: Token) -> str:
    return token.text[1:-1].replace("''", "'")
