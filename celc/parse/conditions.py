"""Conditions and expressions, made bottom-up from the rules of the grammar.

See `celc.parse.formulas` for how the parser calls these methods.
"""

from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from celc.diagnostics.errors import Diagnostic, Diagnostics
from celc.diagnostics.messages.functions import NOW, OF_POSITIONS
from celc.diagnostics.messages.wording import names_with_signs_around
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.parse.mistakes import trees as tree_errors
from celc.parse.mistakes.tokens import is_full, report
from celc.parse.syntax import Name
from celc.parse.tokens import Token, name_text

Values = list[Any]

COMPARISONS: dict[str, syntax.ComparisonOperator] = {"==": "=", "<>": "!="}
MOST_DISTANCE = 2**31 - 1


def name_of(token: Token) -> Name:
    return Name(name_text(token), token.span)


@dataclass(slots=True)
class _Range:
    """`{3..9}`, where either limit may be missing."""

    low: syntax.Expression | None
    high: syntax.Expression | None


@dataclass(slots=True)
class _Argument:
    """An argument of a function, and the place of the PRIOR before it."""

    value: syntax.Expression
    prior: Span | None
    zone: syntax.TextLiteral | None = None


class ConditionBuilder:
    """The methods for conditions and expressions, and for lists and parentheses of all kinds."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.leaves = {
            "INTEGER": self._integer,
            "DOUBLE": self._double,
            "TEXT": self._text,
            "HAVING": self._begin_having,
        }
        # Names without a label, by place, that nothing has taken as a label so far.
        self._bare: dict[int, syntax.Attribute] = {}
        # Where such names are compared with numbers.
        self._numbers: set[int] = set()
        self._compared: dict[int, tree_errors.Compared] = {}
        # Where HAVING begins. Names after it are those of items.
        self._having: int | None = None
        # The event types of the file, and those that each label of the query may stand for.
        self._attributes: dict[str, frozenset[str]] = {}
        # The attributes of each event type that are times.
        self._times: dict[str, tuple[str, ...]] = {}
        self._labels: dict[str, str | None] = {}
        # The event types of each stream, and the streams in FROM.
        self._streams: dict[str, tuple[str, ...]] = {}
        self._read: tuple[str, ...] = ()
        # The parameter sets of the file, in order.
        self._sets: dict[str, None] = {}
        # Labels that SELECT gives another name.
        self._renamed: list[tuple[Name, Name]] = []

    def report(self, diagnostic: Diagnostic) -> None:
        """Keep a mistake in the tree."""
        report(self.diagnostics, diagnostic)

    def end_of_query(self, error: Span | None = None) -> None:
        """Report the attributes without a label, except under an error that was reported."""
        for attribute in self._bare.values():
            span = attribute.span
            if is_full(self.diagnostics):
                break
            if self._having is not None and span.start > self._having:
                continue
            if error is None or not error.start <= span.start < error.end:
                self.report(self._bare_attribute(attribute.attribute))
        self._bare.clear()
        self._numbers.clear()
        self._compared.clear()
        self._having = None
        self._labels.clear()
        self._renamed.clear()
        self._read = ()

    def _bare_attribute(self, name: Name) -> Diagnostic:
        if name.text.upper() in NOW:
            return tree_errors.present_time(name)
        for attributes in self._attributes.values():
            if whole := names_with_signs_around(
                self.diagnostics.source.text, name.span, attributes
            ):
                return whole
        known = [label for label in self._labels if self._may_have(label, name.text)]
        is_text = bool(self._attributes) and not any(
            name.text in attributes for attributes in self._attributes.values()
        )
        if name.text.upper() == "TYPE":
            every = [one for one in self._labels if one not in self._attributes] or [*self._labels]
            known = every if len(every) == 1 else []
        made = [label for label in known if label not in self._attributes] or known
        return tree_errors.bare_attribute(
            name,
            made[-1] if made else None,
            is_text=is_text,
            is_number=name.span.start in self._numbers,
            types=self._attributes.keys(),
            compared=self._compared.get(name.span.start),
        )

    def _may_have(self, label: str, attribute: str) -> bool:
        event_type = self._labels[label]
        return event_type not in self._attributes or attribute in self._attributes[event_type]

    # --- rules that only collect ---

    def empty_list(self, c: Values) -> Values:
        return []

    def new_list(self, c: Values) -> Values:
        return c

    def append(self, c: Values) -> Values:
        c[0].append(c[-1])
        return c[0]  # type: ignore[no-any-return]

    def new_chain(self, c: Values) -> Values:
        return [c[0], c[2]]

    longer_chain = append

    def parenthesised(self, c: Values) -> Any:
        return replace(c[1], span=c[0].span.to(c[2].span))

    def _written(self, node: syntax.Formula | syntax.Expression) -> str:
        return self.diagnostics.source.slice(node.span)

    # --- conditions ---

    def or_condition(self, c: Values) -> syntax.OrCondition:
        return syntax.OrCondition(tuple(c[0]), c[0][0].span.to(c[0][-1].span))

    def and_condition(self, c: Values) -> syntax.AndCondition:
        return syntax.AndCondition(tuple(c[0]), c[0][0].span.to(c[0][-1].span))

    def not_condition(self, c: Values) -> syntax.NotCondition:
        return syntax.NotCondition(c[1], c[0].span.to(c[1].span))

    def comparison(self, c: Values) -> syntax.Comparison:
        left, operator, right = c
        for one, other in ((left, right), (right, left)):
            if isinstance(other, syntax.IntegerLiteral | syntax.DoubleLiteral):
                self._numbers.add(one.span.start)
        written = COMPARISONS.get(operator.text, operator.text)
        span = left.span.to(right.span)
        if isinstance(left, syntax.Attribute) and left.label and written in ("=", "!="):
            value = f"{left.label.text}.{left.attribute.text}"
            self._compared[right.span.start] = tree_errors.Compared(value, written == "!=", span)
        elif isinstance(right, syntax.TextLiteral) and written in ("=", "!="):
            compared = tree_errors.Compared("", written == "!=", span, right.value)
            self._compared[left.span.start] = compared
        return syntax.Comparison(written, left, right, left.span.to(right.span))

    def truth(self, c: Values) -> syntax.Holds:
        return syntax.Holds(c[0], c[0].span)

    def between(self, c: Values) -> syntax.Between:
        return syntax.Between(c[0], c[-3], c[-1], len(c) == 6, c[0].span.to(c[-1].span))

    def in_list(self, c: Values) -> syntax.InList | syntax.Between | syntax.Comparison:
        items, end = c[-1]
        negated, span = len(c) == 4, c[0].span.to(end)
        if not isinstance(items, _Range):
            return syntax.InList(c[0], items, negated, span)
        if items.low is not None and items.high is not None:
            return syntax.Between(c[0], items.low, items.high, negated, span)
        if items.low is not None:
            return syntax.Comparison("<" if negated else ">=", c[0], items.low, span)
        assert items.high is not None, "the grammar asks for one of the two"
        return syntax.Comparison(">" if negated else "<=", c[0], items.high, span)

    def range_of_values(self, c: Values) -> tuple[_Range, Span]:
        return _Range(c[1], c[3]), c[4].span

    def range_from(self, c: Values) -> tuple[_Range, Span]:
        return _Range(c[1], None), c[3].span

    def range_up_to(self, c: Values) -> tuple[_Range, Span]:
        return _Range(None, c[2]), c[3].span

    def value_list(self, c: Values) -> tuple[tuple[syntax.Expression, ...], Span]:
        return tuple(c[1]), c[2].span

    def pattern_match(self, c: Values) -> syntax.PatternMatch:
        negated = len(c) == 4
        return syntax.PatternMatch(c[-2].type, c[0], c[-1], negated, c[0].span.to(c[-1].span))

    def distinct_test(self, c: Values) -> syntax.DistinctTest:
        return syntax.DistinctTest(c[0], c[-1], len(c) == 6, c[0].span.to(c[-1].span))

    def null_test(self, c: Values) -> syntax.NullTest:
        return syntax.NullTest(c[0], len(c) == 4, c[0].span.to(c[-1].span))

    def event_type(self, c: Values) -> tuple[Name | None, Name, Span]:
        stream = name_of(c[0]) if len(c) == 3 else None
        return stream, name_of(c[-1]), c[0].span.to(c[-1].span)

    def type_test(self, c: Values) -> syntax.TypeTest:
        left, (stream, event_type, end) = c[0], c[-1]
        is_own = syntax.is_bare_name(left) and left.span.start not in self._bare
        label = self.taken_as_label(left)
        if label is None:
            label = Name("", left.span)
            of = left.label if isinstance(left, syntax.Attribute) else None
            written = self.diagnostics.source.slice(c[1].span.to(end))
            span = left.span.to(end)
            if is_own:
                source = self.diagnostics.source
                self.report(tree_errors.type_test_in_brackets(source, span, written))
            else:
                self.report(tree_errors.type_test_of_value(span, written, of))
        return syntax.TypeTest(label, stream, event_type, len(c) == 4, left.span.to(end))

    def quantified(self, c: Values) -> syntax.Quantified:
        labels = tuple(map(name_of, c[1]))
        return syntax.Quantified(labels, c[0].type == "EVERY", c[3], c[0].span.to(c[3].span))

    def event_condition(self, c: Values) -> syntax.EventCondition:
        return syntax.EventCondition(name_of(c[0]), c[2], c[0].span.to(c[3].span))

    def nested_condition(self, c: Values) -> syntax.EventCondition:
        written, span = self._written(c[0]), c[0].span.to(c[3].span)
        self.report(tree_errors.nested_brackets(written, span))
        return syntax.EventCondition(Name(written, c[0].span), c[2], span)

    # --- expressions ---

    def arithmetic(self, c: Values) -> syntax.Arithmetic:
        return syntax.Arithmetic(c[1].text, c[0], c[2], c[0].span.to(c[2].span))

    def negation(self, c: Values) -> syntax.Negation:
        return syntax.Negation(c[1], c[0].span.to(c[1].span))

    def plus(self, c: Values) -> syntax.Expression:
        return replace(c[1], span=c[0].span.to(c[1].span))  # type: ignore[no-any-return]

    def bare_value(self, c: Values) -> syntax.Attribute:
        attribute = syntax.Attribute(None, name_of(c[0]), c[0].span)
        self._bare[c[0].start] = attribute
        return attribute

    def taken_as_label(self, value: syntax.Expression) -> Name | None:
        """The label that a bare name stands for, where a bare name may stand; None for other
        values."""
        bare = self._bare.pop(value.span.start, None) if syntax.is_bare_name(value) else None
        return bare.attribute if bare else None

    def attribute(self, c: Values) -> syntax.Attribute:
        return syntax.Attribute(name_of(c[0]), name_of(c[2]), c[0].span.to(c[2].span))

    def argument(self, c: Values) -> _Argument:
        return _Argument(c[-1], c[0].span if len(c) == 2 else None)

    def call(self, c: Values) -> syntax.Call:
        first, *others = c[2]
        # PRIOR before the first argument applies to all of them.
        for other in others:
            if other.prior is not None and first.prior is None:
                self.report(tree_errors.late_prior(other.prior, first.value.span.start))
                break
        return self._call(c, first, others)

    def call_of_one(self, c: Values) -> syntax.Call:
        return self._call(c, c[2], [])

    def distinct_call(self, c: Values) -> syntax.Call:
        return replace(self._call(c, c[3], []), distinct=True)

    def _call(self, c: Values, first: _Argument, others: list[_Argument]) -> syntax.Call:
        for one in (first, *others):
            self.taken_as_label(one.value)
        return syntax.Call(
            name_of(c[0]),
            first.value,
            first.prior is not None,
            c[0].span.to(c[-1].span),
            more=tuple(one.value for one in others),
            zone=next((one.zone for one in (first, *others) if one.zone), None),
        )

    def call_of_all(self, c: Values) -> syntax.CallOfAll:
        return syntax.CallOfAll(name_of(c[0]), c[0].span.to(c[3].span))

    def zoned_argument(self, c: Values) -> _Argument:
        return _Argument(c[0], None, c[4])

    def conditional(self, c: Values) -> syntax.Conditional:
        return syntax.Conditional(((c[2], c[4]),), c[6], c[0].span.to(c[7].span))

    def way(self, c: Values) -> tuple[Any, syntax.Expression]:
        return c[1], c[3]

    def case(self, c: Values) -> syntax.Conditional:
        otherwise = c[3] if len(c) == 5 else None
        return syntax.Conditional(tuple(c[1]), otherwise, c[0].span.to(c[-1].span))

    def case_of_value(self, c: Values) -> syntax.Conditional:
        otherwise = c[4] if len(c) == 6 else None
        branches = tuple(
            (syntax.Comparison("=", c[1], value, value.span), then) for value, then in c[2]
        )
        return syntax.Conditional(branches, otherwise, c[0].span.to(c[-1].span))

    def cast(self, c: Values) -> syntax.Cast:
        zone = c[6] if len(c) > 6 else None
        tried = c[0].text.upper() == "TRY_CAST"
        return syntax.Cast(c[2], c[-2], zone, tried, c[0].span.to(c[-1].span))

    def short_cast(self, c: Values) -> syntax.Cast:
        return syntax.Cast(c[0], c[2], None, False, c[0].span.to(c[2].span))

    def field(self, c: Values) -> syntax.Expression:
        whole, name, span = c[0], name_of(c[2]), c[0].span.to(c[2].span)
        if isinstance(whole, syntax.JsonValue):
            return replace(whole, path=(*whole.path, name.text), span=span)
        if isinstance(whole, syntax.Call) and syntax.is_bare_name(whole.argument):
            function, label = whole.function.text, whole.argument.attribute
            if function.upper() in OF_POSITIONS:
                args = (function, label.text, name.text, span)
                self.report(tree_errors.attribute_after_function(*args))
                return replace(whole, argument=syntax.Attribute(label, name, span), span=span)
        if self._is_own(whole) and whole.attribute.text in self._sets:
            return syntax.Attribute(whole.attribute, name, span)
        return syntax.Field(whole, name, span)

    def _is_own(self, value: syntax.Expression) -> TypeGuard[syntax.Attribute]:
        """Whether a value is the name of an attribute, as it stands in brackets."""
        return syntax.is_bare_name(value) and value.span.start not in self._bare

    def element(self, c: Values) -> syntax.Expression:
        whole, index, span = c[0], c[2], c[0].span.to(c[3].span)
        if isinstance(whole, syntax.JsonValue):
            return replace(whole, path=(*whole.path, self._json_step(index)), span=span)
        return syntax.Element(whole, index, span)

    def json_field(self, c: Values) -> syntax.JsonValue:
        return syntax.JsonValue(c[0], (name_text(c[2]),), c[0].span.to(c[2].span))

    def json_element(self, c: Values) -> syntax.JsonValue:
        return syntax.JsonValue(c[0], (self._json_step(c[3]),), c[0].span.to(c[4].span))

    def _json_step(self, index: syntax.Expression) -> str | int:
        if isinstance(index, syntax.TextLiteral | syntax.IntegerLiteral):
            return index.value
        self.report(tree_errors.json_step(index.span, self._written(index)))
        return 0

    def joined(self, c: Values) -> syntax.Call:
        """`a || b` is CONCAT(a, b)."""
        name = Name("CONCAT", c[1].span)
        return syntax.Call(name, c[0], False, c[0].span.to(c[2].span), more=(c[2],))

    def call_at_distance(self, c: Values) -> syntax.Call:
        function, _, argument, _, distance, closer = c
        self.taken_as_label(argument)
        self.taken_as_label(distance)
        span = function.span.to(closer.span)
        is_literal = isinstance(distance, syntax.IntegerLiteral)
        if not is_literal or not distance.value:
            written = (self._written(argument), self._written(distance))
            self.report(tree_errors.distance(distance.span, span, *written))
        value = distance.value if is_literal else 1
        # No label has so many positions, so a larger number means the same.
        return syntax.Call(name_of(function), argument, False, span, min(value, MOST_DISTANCE))

    def own_attribute(self, c: Values) -> syntax.Attribute:
        return syntax.Attribute(None, name_of(c[0]), c[0].span)

    def own_call(self, c: Values) -> syntax.Call:
        if name_text(c[0]).upper() in OF_POSITIONS:
            self.report(tree_errors.function_in_brackets(c[0].text, c[0].span))
        first, *others = c[2]
        return self._call(c, first, others)

    def boolean(self, c: Values) -> syntax.BooleanLiteral:
        return syntax.BooleanLiteral(c[0].type == "TRUE", c[0].span)

    def null(self, c: Values) -> syntax.NullLiteral:
        return syntax.NullLiteral(c[0].span)

    def time(self, c: Values) -> syntax.TimeLiteral:
        return syntax.TimeLiteral(c[0].type, c[1], c[0].span.to(c[1].span))

    def duration_literal(self, c: Values) -> syntax.DurationLiteral:
        parts = tuple(c[0])
        return syntax.DurationLiteral(parts, parts[0].span.to(parts[-1].span))

    def _integer(self, token: Token) -> syntax.IntegerLiteral:
        return syntax.IntegerLiteral(int(token.text), token.span)

    def _double(self, token: Token) -> syntax.DoubleLiteral:
        return syntax.DoubleLiteral(float(token.text), token.span)

    def _begin_having(self, token: Token) -> Token:
        self._having = token.start
        return token

    def _text(self, token: Token) -> syntax.TextLiteral:
        return syntax.TextLiteral(token.text[1:-1].replace("''", "'"), token.span)
