"""The conditions of EQL → conditions of CEL on one event.

A field that an event does not have is NULL: a comparison with it is not TRUE, nor is its NOT. Texts
are compared as they are by `==`, and without regard to case by `:` and by what ends with `~`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from lark import Token, Tree

from celc.diagnostics.errors import Diagnostics, error
from celc.diagnostics.messages.types import invalid_regex
from celc.diagnostics.source import Span
from celc.interfaces.importing.eql import functions
from celc.interfaces.importing.eql.texts import constant_text, lucene_problem, pattern_of
from celc.interfaces.importing.eql.values import Value
from celc.interfaces.importing.fields import Fields, Kind
from celc.interfaces.importing.grammars import Node, span_of
from celc.interfaces.importing.words import (
    Level,
    Words,
    attribute,
    call,
    is_one_of,
    joined,
    literal,
    negated,
    operation,
)
from celc.resolve.types.regexes import refusal_of_regex

_COMPARATORS = {"==": "=", "!=": "<>"}
_LEVELS = {
    "+": Level.SUM,
    "-": Level.SUM,
    "*": Level.PRODUCT,
    "/": Level.PRODUCT,
    "%": Level.PRODUCT,
}


@dataclass
class Conditions:
    """Translates the conditions of one query; `used` are the fields that were named since it was
    emptied, in the order of their first use."""

    fields: Fields
    diagnostics: Diagnostics
    used: dict[str, None] = field(default_factory=dict)

    def condition(self, node: Node) -> Words | None:
        """A condition; None for `true` alone, which every event satisfies."""
        words = self._condition(node)
        return None if words.text == "TRUE" else words

    def key(self, node: Node) -> tuple[str, bool]:
        """The field of a key, and whether events without it may match too (`?field`)."""
        value = self._value(node)
        assert value.name is not None
        return value.name, node.data == "optional_field"

    def _condition(self, node: Node) -> Words:
        value = self._value(node)
        if value.name is not None:
            self.fields.expect(value.name, "BOOLEAN", value.span)
        elif value.kind not in ("BOOLEAN", None) or value.is_null:
            self.wrong(value.span, "a condition is TRUE or FALSE, and this is a value")
        return value.words

    def _value(self, node: Node) -> Value:
        method: Callable[[Node], Value] = getattr(self, f"_{node.data}")
        return method(node)

    def _wrong(
        self, span: Span, message: str, *help: str, code: str = "import-unsupported"
    ) -> None:
        self.diagnostics.add(error(code, span, message, *help))

    # --- what is TRUE or FALSE --------------------------------------------------------------------

    def _logical(self, node: Node, level: Level) -> Value:
        if len(node.children) == 1:
            return self._value(_tree(node.children[0]))
        parts = [self._condition(_tree(one)) for one in node.children]
        return Value(joined(parts, level), "BOOLEAN", span_of(node))

    def _disjunction(self, node: Node) -> Value:
        return self._logical(node, Level.OR)

    def _conjunction(self, node: Node) -> Value:
        return self._logical(node, Level.AND)

    def _negated(self, node: Node) -> Value:
        return Value(negated(self._condition(_tree(node.children[0]))), "BOOLEAN", span_of(node))

    def _grouped(self, node: Node) -> Value:
        return self._value(_tree(node.children[0]))

    def _compared(self, node: Node) -> Value:
        left, right = self._value(_tree(node.children[0])), self._value(_tree(node.children[2]))
        operator = str(node.children[1])
        span = span_of(node)
        if left.is_null or right.is_null:
            return self._with_null(left, right, operator, span)
        if operator in _COMPARATORS and (_is_truth(left) or _is_truth(right)):
            return self._with_truth(left, right, operator, span)
        self._alike(left, right)
        written = _COMPARATORS.get(operator, operator)
        return Value(operation(left.words, written, right.words, Level.COMPARISON), "BOOLEAN", span)

    def _with_null(self, left: Value, right: Value, operator: str, span: Span) -> Value:
        value = left if right.is_null else right
        if operator not in _COMPARATORS or value.is_null:
            self.wrong(span, f"'{operator}' cannot compare null", "write == null, or != null")
        is_null = "IS NULL" if operator == "==" else "IS NOT NULL"
        words = Words(f"{value.words.at(Level.SUM)} {is_null}", Level.COMPARISON)
        return Value(words, "BOOLEAN", span)

    def _with_truth(self, left: Value, right: Value, operator: str, span: Span) -> Value:
        value, truth = (left, right) if _is_truth(right) else (right, left)
        if value.name is not None:
            self.fields.expect(value.name, "BOOLEAN", value.span)
        same = (operator == "==") == truth.constant
        return Value(value.words if same else negated(value.words), "BOOLEAN", span)

    def _alike(self, *values: Value) -> None:
        """Operands have one type: a field without one takes that of the others."""
        known = [one.kind for one in values if one.name is None and one.kind is not None]
        known += [one.kind for one in values if one.name is not None and one.kind is not None]
        if not known:
            return
        kind: Kind = "DOUBLE" if set(known) == {"LONG", "DOUBLE"} else known[0]
        for one in values:
            if one.name is not None:
                self.fields.expect(one.name, kind, one.span)
            elif one.kind is not None and (one.kind == "STRING") != (kind == "STRING"):
                self.wrong(one.span, "a text and a number cannot be compared")

    def _among(self, node: Node) -> Value:
        return self._in(node, is_in=True)

    def _not_among(self, node: Node) -> Value:
        return self._in(node, is_in=False)

    def _in(self, node: Node, *, is_in: bool) -> Value:
        value = self._value(_tree(node.children[0]))
        word = next(
            str(one) for one in node.children if isinstance(one, Token) and one.type == "IN"
        )
        listed = [self._value(one) for one in node.children[1:] if isinstance(one, Tree)]
        self._alike(value, *listed)
        words, items = value.words, [one.words.text for one in listed]
        if word == "in~":
            self.text(value)
            for one in listed:
                if not one.is_text:
                    self.wrong(one.span, "behind 'in~' stand texts that are written out")
            words = call("LOWER", words)
            items = [literal(str(one.constant).lower()) for one in listed]
        if any(one.constant is None for one in listed):
            equal = [operation(words, "=", one.words, Level.COMPARISON) for one in listed]
            found = joined(equal, Level.OR)
            return Value(found if is_in else negated(found), "BOOLEAN", span_of(node))
        operator = "IN" if is_in else "NOT IN"
        text = f"{words.at(Level.SUM)} {operator} ({', '.join(items)})"
        return Value(Words(text, Level.COMPARISON), "BOOLEAN", span_of(node))

    def _seen_as(self, node: Node) -> Value:
        value, operator = self._value(_tree(node.children[0])), str(node.children[1])
        listed = [
            self._value(one) for one in _tree(node.children[2]).children if isinstance(one, Tree)
        ]
        if operator == ":" and listed and not listed[0].is_text:
            self._alike(value, *listed)
            equal = [operation(value.words, "=", one.words, Level.COMPARISON) for one in listed]
            return Value(joined(equal, Level.OR), "BOOLEAN", span_of(node))
        for one in listed:
            if not one.is_text:
                self.wrong(one.span, f"behind '{operator}' stands a text that is written out")
        if value.name is not None:
            self.fields.expect(value.name, "STRING", value.span)
        texts = [(str(one.constant), one.span) for one in listed if one.is_text]
        any_case = operator == ":" or operator.endswith("~")
        if operator.startswith("regex"):
            return self._regex(value, texts, any_case=any_case, span=span_of(node))
        words = call("LOWER", value.words) if any_case else value.words
        patterns = [pattern_of(text.lower() if any_case else text) for text, _ in texts]
        return Value(is_one_of(words, patterns), "BOOLEAN", span_of(node))

    def _regex(
        self, value: Value, texts: list[tuple[str, Span]], *, any_case: bool, span: Span
    ) -> Value:
        for text, place in texts:
            problem = lucene_problem(text)
            reason = refusal_of_regex(text)
            if problem:
                self.wrong(place, problem)
            elif reason is not None:
                self.diagnostics.add(invalid_regex(reason, place))
        flags = "(?is)" if any_case else "(?s)"
        whole = "|".join(text for text, _ in texts)
        pattern = literal(f"{flags}^(?:{whole})$")
        return Value(
            Words(f"{value.words.at(Level.SUM)} RLIKE {pattern}", Level.COMPARISON), "BOOLEAN", span
        )

    # --- values -----------------------------------------------------------------------------------

    def _field(self, node: Node) -> Value:
        span = span_of(node)
        tokens = [one for one in node.children if isinstance(one, Token)]
        if tokens[-1].type == "INDEX":
            self.wrong(
                span_of(tokens[-1]),
                "a field with an index cannot be translated: its values are one text here",
            )
            tokens.pop()
        name = ".".join(_unquoted(one) for one in tokens)
        self.used.setdefault(name)
        self.fields.name(name, span)
        return Value(Words(attribute(name)), self.fields.kind(name), span, name=name)

    def _optional_field(self, node: Node) -> Value:
        return self._field(_tree(node.children[0]))

    def _computed(self, node: Node) -> Value:
        left, right = self._value(_tree(node.children[0])), self._value(_tree(node.children[2]))
        return self.computed(left, str(node.children[1]), right, span_of(node))

    def computed(self, left: Value, operator: str, right: Value, span: Span) -> Value:
        """Arithmetic of two values; two whole numbers are divided without a rest, as in EQL."""
        kinds = {self.number(left), self.number(right)}
        kind: Kind = "DOUBLE" if "DOUBLE" in kinds else "LONG"
        words = operation(left.words, operator, right.words, _LEVELS[operator])
        if operator == "/" and kind == "LONG":
            words = Words(f"FLOOR({words.text})")
        return Value(words, kind, span)

    def number(self, value: Value) -> Kind:
        """The type of a value that is used as a number."""
        if value.name is not None and value.kind is None:
            self.fields.expect(value.name, "LONG", value.span)
            return "LONG"
        if value.kind not in ("LONG", "DOUBLE"):
            self.wrong(value.span, "a number is needed here")
            return "LONG"
        return value.kind

    def _minus(self, node: Node) -> Value:
        value = self._value(_tree(node.children[1]))
        constant = value.constant
        return Value(
            Words(f"-{value.words.at(Level.SIGN)}", Level.SIGN),
            self.number(value),
            span_of(node),
            -constant if isinstance(constant, int | float) else None,
        )

    def _plus(self, node: Node) -> Value:
        value = self._value(_tree(node.children[1]))
        self.number(value)
        return value

    def _call(self, node: Node) -> Value:
        name = str(node.children[0])
        any_case = len(node.children) > 1 and isinstance(node.children[1], Token)
        given = [self._value(one) for one in node.children if isinstance(one, Tree)]
        return functions.called(self, name, given, span_of(node), any_case=any_case)

    def text(self, value: Value) -> None:
        """A value is used as a text."""
        if value.name is not None:
            self.fields.expect(value.name, "STRING", value.span)
        elif value.kind not in ("STRING", None):
            self.wrong(value.span, "a text is needed here")

    def wrong(self, span: Span, message: str, *help: str) -> None:
        """What cannot be translated, with its place."""
        self.diagnostics.add(error("import-unsupported", span, message, *help))

    # --- constants --------------------------------------------------------------------------------

    def _text(self, node: Node) -> Value:
        text = constant_text(str(node.children[0]))
        return Value(Words(literal(text)), "STRING", span_of(node), text)

    _raw_text = _text

    def _integer(self, node: Node) -> Value:
        number, span = int(str(node.children[0])), span_of(node)
        if number >= 2**63:
            self.wrong(span, "a whole number has at most 64 bits")
        return Value(Words(str(number)), "LONG", span, number)

    def _decimal(self, node: Node) -> Value:
        text = str(node.children[0])
        if math.isinf(float(text)):
            self.wrong(span_of(node), "this number is too large")
        return Value(Words(text), "DOUBLE", span_of(node), float(text))

    def _true(self, node: Node) -> Value:
        return Value(Words("TRUE"), "BOOLEAN", span_of(node), True)

    def _false(self, node: Node) -> Value:
        return Value(Words("FALSE"), "BOOLEAN", span_of(node), False)

    def _null(self, node: Node) -> Value:
        return Value(Words("NULL"), None, span_of(node), is_null=True)


def _unquoted(token: Token) -> str:
    return str(token)[1:-1].replace("``", "`") if token.type == "QUOTED" else str(token)


def _is_truth(value: Value) -> bool:
    return isinstance(value.constant, bool)


def _tree(node: Node | Token) -> Node:
    assert isinstance(node, Tree), node
    return node
