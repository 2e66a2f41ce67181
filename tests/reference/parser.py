"""The parser of `.cel` files: declarations, queries and formulas.

It is lenient where leniency cannot change a meaning, and rejects what has none.
"""

from __future__ import annotations

from collections.abc import Sequence as ListOf
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from .condition_parser import ConditionParser
from .conditions import conjunctive_normal_form
from .decimals import DecimalKind
from .nodes import (
    All,
    And,
    As,
    Atom,
    Confidence,
    EventType,
    Expression,
    ExpressionItem,
    File,
    Filter,
    First,
    Formula,
    LabelItem,
    Next,
    NotAfter,
    NotBefore,
    NotBetween,
    Or,
    OtherEvent,
    Place,
    Project,
    Query,
    Rate,
    Rename,
    Repeat,
    Selector,
    Then,
    Total,
    Uncertain,
    Unless,
    Variable,
    Window,
    Within,
    parts,
)
from .tokens import UNITS, Cursor
from .uncertain import step_of
from .values import CelError, Kind

_SELECTORS = {"STRICT": "STRICT", "NXT": "NXT", "NEXT": "NXT", "LAST": "LAST", "MAX": "MAX"}


@lru_cache(maxsize=64)
def parse(text: str) -> File:
    """The file that the text spells; CelError where it spells none.

    A query is asked for again for each stream and each answer: nothing changes what is read.
    """
    return _FileParser(text).file()


MOST_ROUNDS = 10_000

_AFTER_AN_OPERAND = {
    *("AS", "IN", "OR", "AND", "ALL", "UNLESS", "FILTER", "FOR", "PARTITION", "WITHIN", "CONSUME"),
    *("LIMIT", "PER", "HAVING", "WITH", "QUERY", "SELECT", "END"),
}
"""Words before which FIRST is a name."""


class Step(NamedTuple):
    """An operand of a sequence, with the sign before it, and what must be absent before it. Each
    with where it stands; the operand with its FIRST."""

    joint: str
    absent: Formula | None
    operand: Formula
    optional: bool
    first: Chosen | None = None
    sign: Place | None = None
    absent_place: Place | None = None
    place: Place = (0, 0)


class Absent(NamedTuple):
    """What must be absent before or after a sequence; `place` is that of `!ψ FOR d`."""

    formula: Formula
    window: Window | None
    place: Place


class Sequence(NamedTuple):
    """The operands of a sequence, and what must be absent before the first and after the last."""

    steps: tuple[Step, ...]
    before: Absent | None
    after: Absent | None

    def formula(self) -> Formula:
        """`A ; B? ; C` is `(A ; B ; C) OR (A ; C)`: every way to leave operands out."""
        whether = [(True, False) if step.optional else (True,) for step in self.steps]
        ways = [
            _chain([step for step, is_there in zip(self.steps, there, strict=True) if is_there])
            for there in product(*whether)
        ]
        whole = ways[0]
        for way in ways[1:]:
            whole = Or(whole, way)
        if self.before is not None:
            assert self.before.window is not None
            absent, window, place = self.before
            whole = NotBefore(absent, whole, window, place)
        if self.after is not None:
            absent, length, place = self.after
            whole = NotAfter(whole, absent, length, place)
        return whole


class Chosen(NamedTuple):
    """An operand `FIRST ψ`, or `(FIRST ψ){least,most}`, with what must be absent before a round."""

    least: int
    most: int | None
    absent: Formula | None


def _chain(steps: ListOf[Step]) -> Formula:
    left = steps[0].operand
    if steps[0].first is not None:
        raise CelError("FIRST at the start of a sequence")
    for step in steps[1:]:
        if step.first is not None:
            left = First(left, step.operand, *step.first, gap=step.absent, place=step.absent_place)
        elif step.joint == ":":
            left = Next(left, step.operand, step.sign)
        elif step.absent is not None:
            left = NotBetween(left, step.absent, step.operand, step.absent_place)
        else:
            left = Then(left, step.operand)
    return left


class _FormulaParser:
    """Formulas, by precedence: each method reads one level, the loosest first."""

    def __init__(self, text: str) -> None:
        self.cursor = Cursor(text)
        self.conditions = ConditionParser(self.cursor)
        self.sequences: dict[Formula, Sequence] = {}

    def formula(self) -> Formula:
        """A whole formula, with the UNLESS or FILTER that may end it."""
        left = self._or()
        begin = self.cursor.index
        if self.cursor.accept_word("UNLESS"):
            absent = self._postfix()
            return Unless(left, absent, self.cursor.since(begin))
        if self.cursor.accept_word("FILTER"):
            condition = self.conditions.condition()
            return Filter(left, condition, conjunctive_normal_form(condition))
        return left

    def _or(self) -> Formula:
        left = self._and()
        while self.cursor.accept_word("OR"):
            left = Or(left, self._and())
        return left

    def _and(self) -> Formula:
        left = self._sequence()
        while word := self.cursor.accept_word("AND", "ALL"):
            right = self._sequence()
            left = And(left, right) if word == "AND" else All(left, right)
        return left

    def _sequence(self) -> Formula:
        """`!A FOR d ; B ; C ; !D FOR d`: nothing before and after the rest of the sequence."""
        cursor = self.cursor
        before = None
        begin = cursor.index
        if cursor.accept("!"):
            absent = self._postfix()
            cursor.expect_word("FOR")
            before = Absent(absent, self._window(), cursor.since(begin))
            cursor.expect(";")
        steps, after = self._steps()
        self._check_optional(steps)
        sequence = Sequence(tuple(steps), before, after)
        formula = sequence.formula()
        if len(steps) > 1:
            self.sequences[formula] = sequence
        return formula

    def _steps(self) -> tuple[list[Step], Absent | None]:
        """The operands of a sequence, and what is absent after it."""
        cursor = self.cursor
        steps = [self._step("", None)]
        while symbol := cursor.accept(";", ":"):
            sign = cursor.since(cursor.index - 1)
            absent, place = None, None
            begin = cursor.index
            if symbol == ";" and cursor.accept("!"):
                absent = self._postfix()
                window = self._window() if cursor.accept_word("FOR") else None
                place = cursor.since(begin)
                if window is not None or not cursor.accept(";"):
                    return steps, Absent(absent, window, place)
            steps.append(self._step(symbol, absent)._replace(sign=sign, absent_place=place))
        return steps, None

    def _step(self, joint: str, absent: Formula | None) -> Step:
        begin = self.cursor.index
        step = self._operand(joint, absent)
        return step._replace(place=self.cursor.since(begin))

    def _operand(self, joint: str, absent: Formula | None) -> Step:
        cursor = self.cursor
        if self._at_first():
            cursor.take()
            return Step(joint, absent, self._postfix(), False, Chosen(1, 1, None))
        found = self._rounds_of_first()
        if found is None:
            operand = self._postfix()
            return Step(joint, absent, operand, cursor.accept("?") is not None)
        operand, chosen = found
        if joint == ":":
            raise cursor.error("; before FIRST")
        return Step(joint, absent, operand, cursor.accept("?") is not None, chosen)

    def _at_first(self) -> bool:
        """Whether FIRST stands here as the prefix, with an operand behind it."""
        cursor = self.cursor
        if cursor.peek().kind != "word" or not cursor.at_word("FIRST"):
            return False
        after = cursor.peek(1)
        if after.keyword == "WITHIN":
            return cursor.at("[", ahead=2)
        is_operand = after.kind == "quoted" or after.keyword in ("NOT", "PROJECT", *_SELECTORS)
        is_name = after.kind == "word" and after.keyword not in _AFTER_AN_OPERAND
        return is_operand or is_name or cursor.at("(", ahead=1)

    def _rounds_of_first(self) -> tuple[Formula, Chosen] | None:
        """`(FIRST ψ)` or `(!χ ; FIRST ψ)`, with how often it stands there, in any parentheses."""
        cursor = self.cursor
        begin = cursor.index
        if not cursor.accept("("):
            return None
        absent = None
        inner = None
        if cursor.accept("!"):
            absent = self._postfix()
            if not cursor.accept(";") or not self._at_first():
                cursor.index = begin
                return None
        if self._at_first():
            cursor.take()
            inner = self._postfix(), Chosen(1, 1, absent)
        elif absent is None:
            inner = self._rounds_of_first()
        if inner is None or not cursor.accept(")"):
            cursor.index = begin
            return None
        body, chosen = inner
        if cursor.at("+", "{"):
            if chosen[:2] != (1, 1):
                raise cursor.error("rounds of FIRST once")
            rounds = Repeat(body, False)
            if not cursor.accept("+"):
                cursor.take()
                rounds = self._rounds(body, contiguous=False)
            return body, Chosen(rounds.least, rounds.most, chosen.absent)
        if cursor.at(":+", ":{", "[") or cursor.at_word("AS", "IN"):
            raise cursor.error("nothing but + and {} after (FIRST …)")
        return body, chosen

    def _check_optional(self, steps: list[Step]) -> None:
        if all(step.optional for step in steps):
            raise self.cursor.error("an operand without ?")
        for k, step in enumerate(steps):
            after = steps[k + 1] if k + 1 < len(steps) else None
            if step.optional and (step.absent or (after and after.absent)):
                raise self.cursor.error("no ? beside a !")
            if step.optional and k and after and step.joint != after.joint:
                raise self.cursor.error("one sign on both sides of ?")

    def _postfix(self) -> Formula:
        cursor = self.cursor
        formula = self._primary()
        while True:
            if symbol := cursor.accept("+", ":+"):
                formula = Repeat(formula, contiguous=symbol == ":+")
            elif symbol := cursor.accept("{", ":{"):
                begin = cursor.index - 1
                rounds = self._rounds(formula, contiguous=symbol == ":{")
                formula = replace(rounds, place=cursor.since(begin))
            elif cursor.accept_word("AS", "IN"):
                place = cursor.peek().place
                formula = As(formula, cursor.name(), place)
            elif cursor.accept("["):
                old = cursor.name()
                cursor.expect("->")
                place = cursor.peek().place
                formula = Rename(formula, old, cursor.name(), place)
                cursor.expect("]")
            else:
                return formula

    def _rounds(self, formula: Formula, contiguous: bool) -> Repeat:
        cursor = self.cursor
        least = 1 if cursor.at(",") else cursor.number()
        most: int | float | None = least
        if cursor.accept(","):
            most = None if cursor.at("}") else cursor.number()
        cursor.expect("}")
        upper = MOST_ROUNDS if most is None else most
        whole = isinstance(least, int) and (most is None or isinstance(most, int))
        if not whole or not 1 <= least <= upper <= MOST_ROUNDS:
            raise CelError(f"no number of rounds: {least} to {most}")
        return Repeat(formula, contiguous, int(least), None if most is None else int(most))

    def _primary(self) -> Formula:
        cursor = self.cursor
        if cursor.at("("):
            return self._parenthesized()
        if cursor.accept_word("NOT"):
            return OtherEvent(self._parenthesized())
        if cursor.accept_word("PROJECT"):
            cursor.expect("[")
            kept = [self._placed_name()]
            while cursor.accept(","):
                kept.append(self._placed_name())
            cursor.expect("]")
            return Project(self._parenthesized(), tuple(kept))
        begin = cursor.index
        if cursor.accept_word("WITHIN"):
            cursor.expect("[")
            window = self._window()
            cursor.expect("]")
            window = replace(window, place=cursor.since(begin))
            return Within(self._parenthesized(), window)
        if cursor.peek().keyword in _SELECTORS and cursor.at("(", ahead=1):
            kind = _SELECTORS[cursor.take().keyword]
            return Selector(self._parenthesized(), kind)
        place = cursor.peek().place
        name = cursor.name()
        if cursor.accept(">"):
            return Atom(name, cursor.name(), place)
        return Atom(None, name, place)

    def _parenthesized(self) -> Formula:
        self.cursor.expect("(")
        inside = self.formula()
        self.cursor.expect(")")
        return inside

    def _window(self) -> Window:
        cursor = self.cursor
        size = cursor.number()
        if cursor.accept_word("EVENT", "EVENTS"):
            return Window(size, "EVENTS", None)
        unit = "VALUE"
        if word := cursor.accept_word(*UNITS):
            unit, size = "TIME", size * UNITS[word]
            while cursor.peek().kind == "number":
                more = cursor.number()
                size += more * UNITS[cursor.expect_word(*UNITS)]
        attribute: str | None = None
        if cursor.accept("["):
            attribute = cursor.attribute()
            cursor.expect("]")
        return Window(size, unit, attribute)

    def _placed_name(self) -> tuple[str, int]:
        place = self.cursor.peek().place
        return self.cursor.name(), place


class _Clauses(NamedTuple):
    """The clauses that every query can have."""

    streams: tuple[str, ...] | None
    for_each: str | None
    formula: Formula
    partition_by: tuple[tuple[str, ...], ...]
    window: Window | None
    consume_by: str
    confidence: Confidence | None
    key_values: tuple[tuple[str, Expression], ...]


class _FileParser(_FormulaParser):
    """Declarations and queries around formulas."""

    def file(self) -> File:
        cursor = self.cursor
        streams: list[str] = []
        types: list[EventType] = []
        parameters: dict[str, dict[str, Kind]] = {}
        valid: dict[str, tuple[str, str]] = {}
        uncertain: dict[str, Uncertain] = {}
        lasting: dict[str, tuple[str, str]] = {}
        while True:
            if cursor.at_word("AGGREGATE") and cursor.at("(", ahead=2):
                cursor.take()
                own = self.conditions.declaration()
                self.conditions.own[own.name] = own
                continue
            if cursor.at_word("FUNCTION") and cursor.at("(", ahead=2):
                cursor.take()
                function = self.conditions.function()
                self.conditions.functions[function.name] = function
                continue
            if cursor.at_word("PARAMETERS") and cursor.at("{", ahead=2):
                cursor.take()
                name = cursor.name()
                if name in parameters:
                    raise CelError(f"parameter set {name} is declared twice")
                parameters[name], _ = self._attributes()
                self.conditions.sets.add(name)
                if cursor.accept_word("VALID"):
                    valid[name] = self._two_attributes("VALID")
                continue
            if not cursor.accept_word("CREATE"):
                break
            cursor.expect_word("STREAM")
            stream = cursor.name()
            if stream in streams:
                raise CelError(f"stream {stream} is declared twice")
            streams.append(stream)
            times = self._times() if cursor.accept_word("UNCERTAIN") else None
            if cursor.accept_word("LASTING"):
                lasting[stream] = self._two_attributes("LASTING")
            types += self._event_types(stream)
            if times is not None:
                low, high, by, weights = times
                mine = [t for t in types if t.stream == stream]
                step = step_of(by.size, by.unit, mine[0].attributes.get(low))
                if weights and any(t.attributes.get(weights) is not Kind.ARRAY for t in mine):
                    raise CelError(f"WEIGHTED {weights} is no ARRAY<DOUBLE>")
                uncertain[stream] = Uncertain(low, high, step, weights)
        queries: list[Query] = []
        if cursor.at_word("QUERY", "SELECT"):
            while cursor.peek().kind != "end":
                queries.append(self._query())
        else:
            queries.append(Query(None, "ALL", None, None, self.formula()))
        if cursor.peek().kind != "end":
            raise cursor.error("the end of the file")
        if len(queries) > 1 and None in [query.name for query in queries]:
            raise CelError("a file with several queries names each of them")
        return File(
            tuple(streams),
            tuple(types),
            tuple(queries),
            parameters,
            uncertain,
            lasting,
            self.sequences,
            valid,
        )

    def _times(self) -> tuple[str, str, Window, str | None]:
        """`[low, high] BY step WEIGHTED w`, after UNCERTAIN."""
        low, high = self._two_attributes("UNCERTAIN")
        self.cursor.expect_word("BY")
        by = self._window()
        weighted = self.cursor.accept_word("WEIGHTED")
        return low, high, by, self.cursor.attribute() if weighted else None

    def _two_attributes(self, word: str) -> tuple[str, str]:
        cursor = self.cursor
        cursor.expect("[")
        names = self._attribute_names()
        cursor.expect("]")
        if len(names) != 2:
            raise CelError(f"{word} takes two attributes")
        return names[0], names[1]

    def _confidence(self) -> Confidence | None:
        cursor = self.cursor
        if not cursor.accept_word("WITH"):
            return None
        cursor.expect_word("CONFIDENCE")
        strict = cursor.accept(">=", ">")
        if strict is None:
            raise cursor.error(">= or >")
        return Confidence(Fraction(str(cursor.number())), strict == ">")

    def _event_types(self, stream: str) -> list[EventType]:
        cursor = self.cursor
        types: list[EventType] = []
        cursor.expect("{")
        while True:
            cursor.expect_word("EVENT")
            types.append(EventType(stream, cursor.name(), *self._attributes()))
            if not cursor.accept(","):
                break
        cursor.expect("}")
        return types

    def _attributes(self) -> tuple[dict[str, Kind], dict[str, Expression]]:
        """Attributes with their types, and what derived ones are made of."""
        cursor = self.cursor
        attributes: dict[str, Kind] = {}
        derived: dict[str, Expression] = {}
        cursor.expect("{")
        while not cursor.at("}"):
            name = cursor.attribute()
            cursor.expect(":")
            word = cursor.take().keyword
            word = {"BIGINT": "LONG", "PRIMARY_TIME": "TIMESTAMP"}.get(word, word)
            if word == "DECIMAL":
                attributes[name] = self._decimal()  # type: ignore[assignment]
            elif word == "ARRAY":
                cursor.expect("<")
                cursor.expect_word("DOUBLE")
                cursor.expect(">")
                attributes[name] = Kind.ARRAY
            elif word == "NULL" or word not in Kind.__members__:
                raise CelError(f"{word or 'that'} is not the type of an attribute")
            else:
                attributes[name] = Kind[word]
            if cursor.accept("="):
                derived[name] = self.conditions.of_event()
            if not cursor.accept(","):
                break
        cursor.expect("}")
        return attributes, derived

    def _decimal(self) -> DecimalKind:
        self.cursor.expect("(")
        precision = int(self.cursor.number())
        scale = int(self.cursor.number()) if self.cursor.accept(",") else 0
        self.cursor.expect(")")
        return DecimalKind(precision, scale)

    def _query(self) -> Query:
        cursor = self.cursor
        name: str | None = None
        if cursor.accept_word("QUERY"):
            name = cursor.name()
            cursor.expect(":")
        cursor.expect_word("SELECT")
        if self._at_choice("TOTAL"):
            cursor.take()
            return self._total(name)
        selector, per_start, disjoint, collapsed = "ALL", "", False, False
        if cursor.at_word("ALL", "ANY", *_SELECTORS) and not (
            cursor.at_word("LAST", "MAX") and cursor.at("(", ahead=1)
        ):
            word = cursor.take().keyword
            selector = _SELECTORS.get(word, word)
        elif self._at_choice("FIRST", "LONGEST"):
            per_start = cursor.take().keyword
            if self._at_choice("DISJOINT"):
                cursor.take()
                disjoint = True
        elif self._at_choice("COLLAPSED"):
            cursor.take()
            collapsed = True
        items = self._items()
        if collapsed and any(isinstance(item, ExpressionItem) for item in items or ()):
            raise CelError("COLLAPSED with an expression")
        clauses = self._clauses()
        limit, rate = (None, None) if collapsed else self._limit()
        return Query(
            name,
            selector,
            items,
            clauses.streams,
            clauses.formula,
            clauses.partition_by,
            clauses.window,
            clauses.consume_by,
            limit,
            per_start,
            disjoint,
            collapsed,
            for_each=clauses.for_each,
            confidence=clauses.confidence,
            rate=rate,
            key_values=clauses.key_values,
        )

    def _limit(self) -> tuple[int | None, Rate | None]:
        """LIMIT n, or LIMIT n PER something."""
        cursor = self.cursor
        if not cursor.accept_word("LIMIT"):
            return None, None
        count = cursor.number()
        if isinstance(count, float) or count < 1:
            raise CelError("LIMIT takes a whole number from 1")
        if not cursor.accept_word("PER"):
            return int(count), None
        if cursor.accept_word("PARTITION"):
            return None, Rate(int(count), None)
        length = self._window()
        if length.unit == "EVENTS" or length.attribute is not None:
            raise CelError("LIMIT … PER takes a time, or a number")
        return None, Rate(int(count), length)

    def _clauses(self) -> _Clauses:
        """The clauses from FROM to CONSUME BY."""
        cursor = self.cursor
        streams: tuple[str, ...] | None = None
        if cursor.accept_word("FROM"):
            streams = self._names()
        for_each: str | None = None
        if cursor.accept_word("FOR"):
            cursor.expect_word("EACH")
            for_each = cursor.name()
        cursor.expect_word("WHERE")
        formula = self.formula()
        partition_by: tuple[tuple[str, ...], ...] = ()
        made: dict[str, Expression] = {}
        if cursor.accept_word("PARTITION"):
            cursor.expect_word("BY")
            partition_by = (self._key(made),)
            while cursor.accept(","):
                partition_by += (self._key(made),)
        window, begin = None, cursor.index
        if cursor.accept_word("WITHIN"):
            window = replace(self._window(), place=cursor.since(begin))
        confidence = self._confidence()
        consume_by = "NONE"
        if cursor.accept_word("CONSUME"):
            cursor.expect_word("BY")
            consume_by = cursor.expect_word("NONE", "ANY", "PARTITION")
        keys = tuple(made.items())
        return _Clauses(
            streams, for_each, formula, partition_by, window, consume_by, confidence, keys
        )

    def _total(self, name: str | None) -> Query:
        """A query SELECT TOTAL, after that word."""
        cursor = self.cursor
        self.conditions.in_total = True
        items = [self._total_item()]
        while cursor.accept(","):
            items.append(self._total_item())
        self.conditions.in_total = False
        clauses = self._clauses()
        per: str | int = "END"
        if cursor.accept_word("PER"):
            per = cursor.expect_word("END", "PARTITION") if not cursor.at_duration() else 0
            if per == 0:
                size = cursor.duration()
                if size.denominator != 1 or not 0 < size < 1 << 63:
                    raise CelError(f"spans of {size} microseconds")
                per = int(size)
        having = None
        if cursor.accept_word("HAVING"):
            self.conditions.in_having = True
            having = self.conditions.condition()
            self.conditions.in_having = False
        return Query(
            name,
            "ALL",
            tuple(items),
            clauses.streams,
            clauses.formula,
            clauses.partition_by,
            clauses.window,
            clauses.consume_by,
            per=per,
            having=having,
            for_each=clauses.for_each,
            confidence=clauses.confidence,
            key_values=clauses.key_values,
        )

    def _total_item(self) -> ExpressionItem:
        expression = self.conditions.expression()
        if not any(isinstance(part, Total) for part in parts(expression)):
            raise self.cursor.error("a function over all matches")
        self.cursor.expect_word("AS")
        return ExpressionItem(expression, self.cursor.name())

    def _at_choice(self, *words: str) -> bool:
        """Whether one of the words stands here, with something to select behind it."""
        cursor = self.cursor
        if not cursor.at_word(*words) or cursor.peek(1).keyword in ("AS", "FROM", "WHERE"):
            return False
        is_function = cursor.at_word("FIRST") and cursor.at("(", ahead=1)
        return not is_function and not cursor.at(",", "[", ".", ahead=1)

    def _items(self) -> tuple[LabelItem | ExpressionItem, ...] | None:
        cursor = self.cursor
        if cursor.accept("*"):
            return None
        if cursor.accept_word("NONE"):
            return ()
        items = [self._item()]
        while cursor.accept(","):
            items.append(self._item())
        return tuple(items)

    def _item(self) -> LabelItem | ExpressionItem:
        cursor = self.cursor
        is_label = cursor.peek().kind in ("word", "quoted") and not cursor.at(".", "(", ahead=1)
        is_label = is_label and not cursor.at_word("TRUE", "FALSE", "NULL")
        is_label = is_label and cursor.peek(1).kind != "string"
        ends = cursor.at(",", "[", ahead=1) or cursor.at_word("FROM", "WHERE", ahead=1)
        is_label = is_label and (ends or not cursor.at_word("CASE"))
        if is_label:
            label = cursor.name()
            if not cursor.accept("["):
                return LabelItem(label, None)
            attributes = self._attribute_names()
            cursor.expect("]")
            return LabelItem(label, attributes)
        expression = self.conditions.expression()
        cursor.expect_word("AS")
        return ExpressionItem(expression, cursor.name())

    def _names(self) -> tuple[str, ...]:
        names = [self.cursor.name()]
        while self.cursor.accept(","):
            names.append(self.cursor.name())
        return tuple(names)

    def _attribute_names(self) -> tuple[str, ...]:
        names = [self.cursor.attribute()]
        while self.cursor.accept(","):
            names.append(self.cursor.attribute())
        return tuple(names)

    def _key(self, made: dict[str, Expression]) -> tuple[str, ...]:
        if not self.cursor.accept("["):
            begin = self.cursor.peek().place
            value = self.conditions.of_event()
            if isinstance(value, Variable):
                return (value.name,)
            # It is called by its text.
            end = self.cursor.tokens[self.cursor.index - 1]
            length = len(end.text) + 2 * (end.kind == "string")
            name = " ".join(self.cursor.text[begin : end.place + length].split())
            made[name] = value
            return (name,)
        alternatives = self._attribute_names()
        self.cursor.expect("]")
        return alternatives
