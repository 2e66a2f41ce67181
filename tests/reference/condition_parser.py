"""The parser of conditions and of the expressions in them and in SELECT."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .decimals import DecimalKind, WrittenFraction, WrittenInteger, written
from .functions import names
from .nodes import (
    Aggregate,
    Attribute,
    Binary,
    Both,
    Call,
    Case,
    Choice,
    Comparison,
    Condition,
    Either,
    Expression,
    HasType,
    Literal,
    Not,
    OwnAggregate,
    OwnCall,
    OwnFunction,
    Previous,
    Quantified,
    Total,
    Unary,
    Variable,
    named,
)
from .tokens import Cursor
from .values import NULL, CelError, Datum, Kind, datum_of, negate

_COMPARISONS = ("=", "==", "!=", "<>", "<", "<=", ">", ">=")
_AGGREGATES = (
    *("FIRST", "LAST", "MIN", "MAX", "SUM", "AVG", "COUNT", "COLLECT"),
    *("VARIANCE", "STDDEV", "MEDIAN", "NTH"),
)
_CHOICES = ("LEAST", "GREATEST", "COALESCE")
_OF_VALUES = {"ABS", "IF", "CASE", "CAST", "TRY_CAST", *_CHOICES, *names()}
FUNCTIONS = ("PREV", *_AGGREGATES, *_OF_VALUES)
# Words that stay what they are inside x[…], where every other word is an attribute.
_KEPT_IN_BRACKETS = ("NOT", "TRUE", "FALSE", "NULL")


class ConditionParser:
    """Reads conditions and expressions from a cursor that it shares with the formula parser."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        # The label x while x[…] is being read: bare attributes are its.
        self.owner: str | None = None
        # Aggregates of one's own by their names, and whether one is being declared.
        self.own: dict[str, OwnAggregate] = {}
        self.functions: dict[str, OwnFunction] = {}
        self.in_declaration = False
        # The names of parameter sets, whose attributes can be named in brackets as well.
        self.sets: set[str] = set()
        # Whether items of TOTAL are being read, or the condition over their names.
        self.in_total = False
        self.in_having = False
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
        cursor = self.cursor
        is_before_label = cursor.at(":", ahead=2) or cursor.at(",", ahead=2)
        if cursor.at_word("SOME", "EVERY") and cursor.peek(1).kind == "word" and is_before_label:
            return self._quantified()
        return self._predicate()

    def _quantified(self) -> Quantified:
        cursor = self.cursor
        every = cursor.take().keyword == "EVERY"
        labels = [cursor.name()]
        while cursor.accept(","):
            labels.append(cursor.name())
        cursor.expect(":")
        body = self._not()
        if not {*labels} <= named(body) or len({*labels}) < len(labels):
            raise CelError("SOME and EVERY choose positions of labels that their condition names")
        return Quantified(tuple(labels), every, body)

    def _predicate(self) -> Condition:
        cursor = self.cursor
        if self.owner is None and not self.in_having and cursor.at("[", ahead=1):
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
        begin = self.cursor.index
        found = self._compared()
        return replace(found, place=self.cursor.since(begin))

    def _compared(self) -> Comparison:
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
            if cursor.accept_word("DISTINCT"):
                cursor.expect_word("FROM")
                return Comparison("DISTINCT", (left, self.expression()), negated)
            cursor.expect_word("NULL")
            return Comparison("ISNULL", (left,), negated)
        negated = cursor.accept_word("NOT") is not None
        word = cursor.accept_word("BETWEEN", "IN", "LIKE", "RLIKE")
        # A value of type BOOLEAN is a condition. Of an attribute the type is not known here.
        is_truth = isinstance(
            left, Attribute | Previous | Aggregate | Variable | Call | Case | Choice | OwnCall
        ) or (isinstance(left, Literal) and left.datum.kind is Kind.BOOLEAN)
        if word is None and is_truth and not negated:
            return Comparison("=", (left, Literal(Datum(Kind.BOOLEAN, True))))
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
        while operator := self.cursor.accept("+", "-", "||"):
            right = self._product()
            is_join = operator == "||"
            left = Call("CONCAT", (left, right)) if is_join else Binary(operator, left, right)
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
        if isinstance(value, WrittenFraction) and negative:
            return Datum(Kind.DOUBLE, written(f"-{value.text}"))
        if isinstance(value, float):
            return negate(Datum(Kind.DOUBLE, value)) if negative else Datum(Kind.DOUBLE, value)
        value = WrittenInteger(-value if negative else value)
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
        if cursor.at_word("TIMESTAMP", "TIMESTAMP_NTZ", "DATE") and cursor.peek(1).kind == "string":
            kind = Kind[cursor.take().keyword]
            return Literal(datum_of(kind, cursor.take().text))
        if cursor.at_word("CASE") and not cursor.at(".", ahead=1):
            return self._case()
        if token.kind == "word" and cursor.at("(", ahead=1):
            return self._function()
        of_set = token.text in self.sets and cursor.at(".", ahead=1)
        if of_set and (self.in_total or self.in_having):
            return Attribute(*self._label_attribute())
        if self.in_declaration or self.in_having:
            return Variable(cursor.name())
        if self.in_total:
            raise cursor.error("a function over all matches")
        if self.owner is None and cursor.at_word("IS", ahead=1):
            return self._type_test()
        if self.owner is not None and not of_set and token.keyword not in _KEPT_IN_BRACKETS:
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
        if word in _OF_VALUES:
            return self._of_values()
        if self.in_total:
            return self._total()
        if self.owner is None and cursor.peek().text in self.own:
            return self._own()
        if self.owner is None and cursor.peek().text in self.functions:
            return self._own_call()
        alone = self.owner is not None or self.in_having or self.in_declaration
        if alone or word not in ("PREV", *_AGGREGATES):
            raise cursor.error("a function that may stand here")
        cursor.take()
        cursor.expect("(")
        result: Expression
        if word == "PREV":
            label, name = self._label_attribute()
            distance = cursor.number() if cursor.accept(",") else 1
            if not isinstance(distance, int) or distance < 1:
                raise cursor.error("a number of positions")
            result = Previous(label, name, distance)
        else:
            prior = not cursor.at(".", ")", ahead=1) and cursor.accept_word("PRIOR") is not None
            is_distinct = cursor.at_word("DISTINCT") and not cursor.at(")", ahead=1)
            if word == "COUNT" and is_distinct and not prior:
                cursor.take()
                prior = not cursor.at(".", ahead=1) and cursor.accept_word("PRIOR") is not None
                label, name = self._label_attribute()
                result = Aggregate("DISTINCT", label, name, prior)
            elif word == "COUNT":
                result = Aggregate(word, cursor.name(), None, prior)
            else:
                label, name = self._label_attribute()
                place = 0
                if word == "NTH":
                    cursor.expect(",")
                    sign = -1 if cursor.accept("-") else 1
                    place = sign * int(cursor.number())
                result = Aggregate(word, label, name, prior, place=place)
        cursor.expect(")")
        return result

    def _total(self) -> Total:
        """A function over all matches: `COUNT(*)`, `COUNT(x)`, `SUM(x.a)`."""
        cursor = self.cursor
        function = cursor.expect_word("COUNT", "APPROX_COUNT", "SUM", "AVG", "MIN", "MAX")
        cursor.expect("(")
        label: str | None = None
        name: str | None = None
        if function == "APPROX_COUNT" or (function == "COUNT" and cursor.at("*")):
            cursor.expect("*")
        elif function == "COUNT":
            label = cursor.name()
        else:
            label, name = self._label_attribute()
        cursor.expect(")")
        return Total(function, label, name)

    def _of_values(self) -> Expression:
        """A function of values, after which a zone can stand."""
        cursor = self.cursor
        word = cursor.take().keyword
        cursor.expect("(")
        result: Expression
        if word == "IF":
            condition = self.condition()
            cursor.expect(",")
            then = self.expression()
            cursor.expect(",")
            result = Case(((condition, then),), self.expression())
        elif word == "ABS":
            result = Unary("ABS", self.expression())
        elif word in ("CAST", "TRY_CAST"):
            operand, zone = self.expression(), self._zone()
            cursor.expect_word("AS")
            result = Call(word, (operand,), zone, self._kind())
        else:
            operands, zone = [self.expression()], self._zone()
            while cursor.accept(","):
                operands.append(self.expression())
                zone = self._zone() if zone == "UTC" else zone
            is_choice = word in _CHOICES
            of = tuple(operands)
            result = Choice(word, of) if is_choice else Call(word, of, zone)
        cursor.expect(")")
        return result

    def _zone(self) -> str:
        if not self.cursor.accept_word("AT"):
            return "UTC"
        self.cursor.expect_word("TIME")
        self.cursor.expect_word("ZONE")
        return self.cursor.take().text

    def _case(self) -> Expression:
        """`CASE WHEN p THEN e … END`, and `CASE e WHEN e THEN e … END`."""
        cursor = self.cursor
        cursor.expect_word("CASE")
        subject = None if cursor.at_word("WHEN") else self.expression()
        branches: list[tuple[Condition, Expression]] = []
        while cursor.accept_word("WHEN"):
            asked: Condition
            if subject is None:
                asked = self.condition()
            else:
                asked = Comparison("=", (subject, self.expression()))
            cursor.expect_word("THEN")
            branches.append((asked, self.expression()))
        otherwise = self.expression() if cursor.accept_word("ELSE") else Literal(NULL)
        cursor.expect_word("END")
        return Case(tuple(branches), otherwise)

    def of_event(self) -> Expression:
        """An expression over the attributes of one event, by their names alone."""
        self.in_declaration = True
        found = self.expression()
        self.in_declaration = False
        return found

    def _own(self) -> Expression:
        """`spread(x.value)` and `slope(PRIOR x.ts, x.value)`."""
        cursor = self.cursor
        own = self.own[cursor.take().text]
        cursor.expect("(")
        prior = not cursor.at(".", ahead=1) and cursor.accept_word("PRIOR") is not None
        attributes = [self._label_attribute()]
        while cursor.accept(","):
            if prior and not cursor.at(".", ahead=1):
                cursor.accept_word("PRIOR")
            attributes.append(self._label_attribute())
        cursor.expect(")")
        (label, name), *others = attributes
        if any(other != label for other, _ in others) or len(attributes) != len(own.parameters):
            raise CelError(f"{own.name} takes {len(own.parameters)} attributes of one label")
        return Aggregate("OWN", label, name, prior, own, tuple(one for _, one in others))

    def _own_call(self) -> Expression:
        """`close(x.value, y.value)` and `last_two(PRIOR x.value)`."""
        cursor = self.cursor
        function = self.functions[cursor.take().text]
        cursor.expect("(")
        prior = not cursor.at(".", ahead=1) and cursor.accept_word("PRIOR") is not None
        attributes = [self._label_attribute()]
        while cursor.accept(","):
            attributes.append(self._label_attribute())
        cursor.expect(")")
        if len(attributes) != len(function.parameters):
            raise CelError(f"{function.name} takes {len(function.parameters)} arguments")
        if prior and len({label for label, _ in attributes}) > 1:
            raise CelError("PRIOR is of one label")
        arguments = tuple(Aggregate("LIST", label, name, prior) for label, name in attributes)
        return OwnCall(function, arguments)

    # --- declarations ---

    def function(self) -> OwnFunction:
        """`FUNCTION name(kind[], …): kind`, after its first word."""
        cursor = self.cursor
        name = cursor.name()
        if name in self.own or name in self.functions or name.upper() in FUNCTIONS:
            raise CelError(f"{name} is a function")
        cursor.expect("(")
        parameters = [self._array()]
        while cursor.accept(","):
            parameters.append(self._array())
        cursor.expect(")")
        cursor.expect(":")
        return OwnFunction(name, tuple(parameters), self._kind())

    def _array(self) -> Kind:
        kind = self._kind()
        self.cursor.expect("[")
        self.cursor.expect("]")
        return kind

    def declaration(self) -> OwnAggregate:
        """`AGGREGATE name(…): kind STATE … STEP … RESULT …`, after its first word."""
        cursor = self.cursor
        self.in_declaration = True
        name = cursor.name()
        if name in self.own or name.upper() in FUNCTIONS:
            raise CelError(f"{name} is a function")
        cursor.expect("(")
        parameters = [self._typed()]
        while cursor.accept(","):
            parameters.append(self._typed())
        cursor.expect(")")
        cursor.expect(":")
        kind = self._kind()
        cursor.expect_word("STATE")
        state = [self._state()]
        while cursor.accept(","):
            state.append(self._state())
        cursor.expect_word("STEP")
        steps = [self._step()]
        while cursor.accept(","):
            steps.append(self._step())
        cursor.expect_word("RESULT")
        result = self.expression()
        self.in_declaration = False
        names = [one for one, _ in parameters] + [one for one, _, _ in state]
        changed = [one for one, _ in steps]
        if len({*names}) < len(names) or len({*changed}) < len(changed):
            raise CelError(f"AGGREGATE {name}: a name comes twice")
        if not {*changed} <= {one for one, _, _ in state}:
            raise CelError(f"AGGREGATE {name}: STEP changes what is not in STATE")
        return OwnAggregate(name, tuple(parameters), kind, tuple(state), tuple(steps), result)

    def _kind(self) -> Any:
        word = self.cursor.take().keyword
        if word == "DECIMAL" and self.cursor.accept("("):
            precision = int(self.cursor.number())
            scale = int(self.cursor.number()) if self.cursor.accept(",") else 0
            self.cursor.expect(")")
            return DecimalKind(precision, scale)
        word = {"BIGINT": "LONG", "INTEGER": "INT"}.get(word, word)
        if word in ("NULL", "DECIMAL") or word not in Kind.__members__:
            raise CelError(f"{word or 'that'} is not a type")
        return Kind[word]

    def _typed(self) -> tuple[str, Kind]:
        name = self.cursor.attribute()
        self.cursor.expect(":")
        return name, self._kind()

    def _state(self) -> tuple[str, Kind, Expression]:
        name, kind = self._typed()
        self.cursor.expect("=")
        return name, kind, self.expression()

    def _step(self) -> tuple[str, Expression]:
        name = self.cursor.name()
        self.cursor.expect("=")
        return name, self.expression()
