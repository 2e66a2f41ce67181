"""The parser of conditions and of the expressions in them and in SELECT."""

from __future__ import annotations

from .nodes import (
    Aggregate,
    Attribute,
    Binary,
    Both,
    Comparison,
    Condition,
    Either,
    Expression,
    HasType,
    Literal,
    Not,
    Previous,
    Unary,
)
from .tokens import Cursor
from .values import NULL, CelError, Datum, Kind, datum_of, negate

_COMPARISONS = ("=", "==", "!=", "<>", "<", "<=", ">", ">=")
_AGGREGATES = ("FIRST", "LAST", "MIN", "MAX", "SUM", "AVG", "COUNT", "COLLECT")
# Words that stay what they are inside x[…], where every other word is an attribute.
_KEPT_IN_BRACKETS = ("NOT", "TRUE", "FALSE", "NULL")


class ConditionParser:
    """Reads conditions and expressions from a cursor that it shares with the formula parser."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        # The label x while x[…] is being read: bare attributes are its.
        self.owner: str | None = None
        # Whether the last `x IS R` was an `x IS NOT R`.
        self._negated = False

    # --- conditions ---

    def condition(self) -> Condition:
        """A condition: OR binds loosest, then AND, then NOT."""
        left = self._both()
        while self.cursor.accept_word("OR"):
            left = Either(left, self._both())
        return left

    def _both(self) -> Condition:
        left = self._not()
        while self.cursor.accept_word("AND"):
            left = Both(left, self._not())
        return left

    def _not(self) -> Condition:
        if self.cursor.accept_word("NOT"):
            return Not(self._not())
        return self._predicate()

    def _predicate(self) -> Condition:
        cursor = self.cursor
        if self.owner is None and cursor.at("[", ahead=1):
            self.owner = cursor.name()
            cursor.expect("[")
            inside = self.condition()
            cursor.expect("]")
            self.owner = None
            return inside
        if cursor.at("("):
            # A parenthesis opens arithmetic or a condition; only what follows tells which.
            start = cursor.index
            try:
                return self._comparison()
            except CelError:
                after_arithmetic = cursor.index
                cursor.index = start
                cursor.expect("(")
                try:
                    inside = self.condition()
                    cursor.expect(")")
                except CelError:
                    # Report the reading that got further.
                    cursor.index = max(cursor.index, after_arithmetic)
                    raise
                return inside
        return self._comparison()

    def _comparison(self) -> Comparison:
        cursor = self.cursor
        left = self.expression()
        symbol = cursor.accept(*_COMPARISONS)
        if symbol is not None:
            operator = {"==": "=", "!=": "<>"}.get(symbol, symbol)
            return Comparison(operator, (left, self.expression()))
        if isinstance(left, HasType):
            return Comparison("=", (left, Literal(Datum(Kind.BOOLEAN, True))), self._negated)
        if cursor.accept_word("IS"):
            negated = cursor.accept_word("NOT") is not None
            cursor.expect_word("NULL")
            return Comparison("ISNULL", (left,), negated)
        negated = cursor.accept_word("NOT") is not None
        word = cursor.accept_word("BETWEEN", "IN", "LIKE", "RLIKE")
        if word is None:
            raise cursor.error("a comparison")
        if word == "BETWEEN":
            low = self.expression()
            cursor.expect_word("AND")
            return Comparison(word, (left, low, self.expression()), negated)
        if word == "IN":
            closing = {"(": ")", "{": "}"}[cursor.expect("(", "{")]
            if closing == "}" and (found := self._range(left, negated)) is not None:
                return found
            items = [self.expression()]
            while cursor.accept(","):
                items.append(self.expression())
            cursor.expect(closing)
            return Comparison(word, (left, *items), negated)
        return Comparison(word, (left, self.expression()), negated)

    def _range(self, left: Expression, negated: bool) -> Comparison | None:
        """`{3..9}`, `{3..}` and `{..9}`, after the brace; None where a list stands there."""
        cursor, start = self.cursor, self.cursor.index
        low = None if cursor.at("..") else self.expression()
        if not cursor.accept(".."):
            cursor.index = start
            return None
        high = None if cursor.at("}") else self.expression()
        cursor.expect("}")
        if low is not None and high is not None:
            return Comparison("BETWEEN", (left, low, high), negated)
        bound = low or high
        assert bound is not None, "a range has a limit"
        return Comparison(">=" if high is None else "<=", (left, bound), negated)

    # --- expressions ---

    def expression(self) -> Expression:
        """An arithmetic expression."""
        left = self._product()
        while operator := self.cursor.accept("+", "-"):
            left = Binary(operator, left, self._product())
        return left

    def _product(self) -> Expression:
        left = self._signed()
        while operator := self.cursor.accept("*", "/", "%"):
            left = Binary(operator, left, self._signed())
        return left

    def _signed(self) -> Expression:
        if not self.cursor.accept("-"):
            return self._operand()
        if self.cursor.peek().kind == "number" and not self.cursor.at_duration():
            return Literal(self._number(negative=True))
        return Unary("-", self._signed())

    def _number(self, negative: bool) -> Datum:
        """A number; with its sign, so that the smallest INT is an INT."""
        value = self.cursor.number()
        if isinstance(value, float):
            return negate(Datum(Kind.DOUBLE, value)) if negative else Datum(Kind.DOUBLE, value)
        value = -value if negative else value
        for kind, bits in ((Kind.INT, 31), (Kind.LONG, 63)):
            if -(1 << bits) <= value < 1 << bits:
                return Datum(kind, value)
        raise CelError(f"{value} does not fit into 64 bits")

    def _operand(self) -> Expression:
        cursor = self.cursor
        token = cursor.peek()
        if cursor.at_duration():
            size = cursor.duration()
            if size.denominator != 1 or size >= 1 << 63:
                raise CelError(f"{size} microseconds are no INTERVAL")
            return Literal(Datum(Kind.INTERVAL, int(size)))
        if token.kind == "number":
            return Literal(self._number(negative=False))
        if token.kind == "string":
            return Literal(Datum(Kind.STRING, cursor.take().text))
        if cursor.accept("("):
            inside = self.expression()
            cursor.expect(")")
            return inside
        if cursor.at_word("TRUE", "FALSE", "NULL"):
            word = cursor.take().keyword
            return Literal(NULL if word == "NULL" else Datum(Kind.BOOLEAN, word == "TRUE"))
        if cursor.at_word("TIMESTAMP", "DATE") and cursor.peek(1).kind == "string":
            kind = Kind[cursor.take().keyword]
            return Literal(datum_of(kind, cursor.take().text))
        if token.kind == "word" and cursor.at("(", ahead=1):
            return self._function()
        if self.owner is None and cursor.at_word("IS", ahead=1):
            return self._type_test()
        if self.owner is not None and token.keyword not in _KEPT_IN_BRACKETS:
            return Attribute(self.owner, cursor.attribute())
        return Attribute(*self._label_attribute())

    def _type_test(self) -> HasType:
        cursor = self.cursor
        label = cursor.name()
        cursor.expect_word("IS")
        self._negated = cursor.accept_word("NOT") is not None
        name = cursor.name()
        if cursor.accept(">"):
            return HasType(label, name, cursor.name())
        return HasType(label, None, name)

    def _label_attribute(self) -> tuple[str, str]:
        label = self.cursor.name()
        self.cursor.expect(".")
        return label, self.cursor.attribute()

    def _function(self) -> Expression:
        cursor = self.cursor
        word = cursor.peek().keyword
        allowed = ("ABS",) if self.owner is not None else ("ABS", "PREV", *_AGGREGATES)
        if word not in allowed:
            raise cursor.error("a function that may stand here")
        cursor.take()
        cursor.expect("(")
        result: Expression
        if word == "ABS":
            result = Unary("ABS", self.expression())
        elif word == "PREV":
            label, name = self._label_attribute()
            distance = cursor.number() if cursor.accept(",") else 1
            if not isinstance(distance, int) or distance < 1:
                raise cursor.error("a number of positions")
            result = Previous(label, name, distance)
        else:
            prior = not cursor.at(".", ")", ahead=1) and cursor.accept_word("PRIOR") is not None
            if word == "COUNT":
                result = Aggregate(word, cursor.name(), None, prior)
            else:
                label, name = self._label_attribute()
                result = Aggregate(word, label, name, prior)
        cursor.expect(")")
        return result
