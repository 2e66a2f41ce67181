"""Typed expressions and conditions → expressions of SQL.

The values are those of Spark with ANSI mode off, whatever mode a session has: whole numbers wrap, a
division by zero is NULL. Times are compared directly. In calculations they are microseconds, and a
result beyond 64 bits is NULL.

Long: a case for each kind of expression and condition, and they call one another.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, TypeAlias, assert_never

from celc_runtime.values import decimals
from sqlglot import exp

from celc.core import formula as core
from celc.core.formula import DataType, Expression, Predicate
from celc.core.show import show_constant, show_interval
from celc.core.traversal import OF_SEVERAL_EVENTS
from celc.relational import functions
from celc.relational.casts import instant, local, zero
from celc.relational.relations import Condition, NotRelational

Dialect: TypeAlias = Literal["spark", "duckdb"]

TYPES: Mapping[DataType, str] = {
    DataType.BOOLEAN: "BOOLEAN",
    DataType.BYTE: "TINYINT",
    DataType.SHORT: "SMALLINT",
    DataType.INT: "INT",
    DataType.LONG: "BIGINT",
    DataType.FLOAT: "FLOAT",
    DataType.DOUBLE: "DOUBLE",
    DataType.STRING: "TEXT",
    DataType.TIMESTAMP: "TIMESTAMPTZ",
    DataType.DATE: "DATE",
}


def _name_of(type: DataType) -> str:
    """A type as SQL spells it; an INTERVAL is calculated with as a number."""
    if isinstance(type, core.DecimalType) or type in (DataType.BINARY, DataType.TIMESTAMP_NTZ):
        return type.value
    return TYPES.get(type, "BIGINT")


_DAY = 86_400_000_000
_EPOCH = dt.datetime(1970, 1, 1)
_DEEPEST = 8
"""Operations on whole numbers in each other. Each doubles the text of what is in it."""
_BITS = {DataType.BYTE: 8, DataType.SHORT: 16, DataType.INT: 32, DataType.LONG: 64}
_DIGITS_OF_JAVA = 34
"""Digits with which Spark calculates -x and ABS(x) of a DECIMAL."""
_COMPARISONS: Mapping[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}
_OPERATORS: Mapping[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}


def column(table: str | None, name: str) -> exp.Column:
    """A column of a table; None: of the only table that is read."""
    of = None if table is None else identifier(table)
    return exp.column(identifier(name), of, copy=False)


def identifier(name: str) -> exp.Identifier:
    """A name as SQL spells it: quoted where it has to be."""
    return exp.to_identifier(name, quoted=not _is_plain(name))


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isidentifier() and name.lower() not in _words()


def named(value: exp.Expr, name: str | exp.Identifier) -> exp.Expr:
    """A value with a name. It is not copied, as sqlglot would do."""
    return exp.alias_(value, name, copy=False)


def number(value: int) -> exp.Expr:
    return exp.Neg(this=exp.Literal.number(-value)) if value < 0 else exp.Literal.number(value)


def duration(microseconds: int) -> exp.Expr:
    """A length of time in microseconds, with a comment that says it in words."""
    found = number(microseconds)
    found.add_comments([show_interval(microseconds)])
    return found


def cast(value: exp.Expr, type: str, dialect: Dialect) -> exp.Expr:
    return exp.Cast(this=value, to=exp.DataType.build(type, dialect=dialect))


class Writer:
    """Writes expressions for a dialect. `by_stream`: types are distinguished by their stream as
    well. `alone`: the scan whose columns need no table name. `binds`: long values get names, so
    that arithmetic may be as deep as it likes."""

    binds = False

    def __init__(
        self, dialect: Dialect, *, by_stream: bool = False, alone: str | None = None
    ) -> None:
        self.dialect: Dialect = dialect
        self._by_stream = by_stream
        self._alone = alone

    def condition(self, condition: Condition) -> exp.Expr:
        """An OR of predicates; of none, FALSE."""
        parts = [self.predicate(one) for one in condition]
        if not parts:
            return exp.false()
        return parts[0] if len(parts) == 1 else exp.paren(exp.or_(*parts, copy=False), copy=False)

    def predicate(self, predicate: Predicate) -> exp.Expr:
        """A condition that is TRUE where the predicate is."""
        match predicate:
            case core.Comparison(operator=operator, left=left, right=right):
                one, other = self._comparable(left, right)
                return _COMPARISONS[operator](this=one, expression=other)
            case core.Membership():
                return self._membership(predicate)
            case core.PatternMatch():
                return self._pattern(predicate)
            case core.NullTest(operand=operand, negated=negated):
                test = exp.Is(this=enclosed(self.value(operand)), expression=exp.null())
                return exp.Not(this=test) if negated else test
            case core.Quantified():
                raise AssertionError(OF_SEVERAL_EVENTS)
            case _:
                assert_never(predicate)

    def value(self, node: Expression) -> exp.Expr:
        """An expression. One that calculates with times is in microseconds."""
        match node:
            case core.Constant():
                return self._constant(node)
            case core.AttributeValue():
                return self._attribute(node)
            case core.Arithmetic():
                return self._arithmetic(node)
            case core.Negation(operand=operand):
                return self._negation(operand, node.type)
            case core.Absolute(operand=operand):
                return self._absolute(operand, node.type)
            case core.Cast(operand=operand):
                return self._cast(operand, node.type)
            case core.Call():
                return functions.call(node, self)
            case core.Choice():
                return functions.chosen(node, self)
            case core.Conditional():
                return functions.conditional(node, self)
            case core.TimeDifference() if self.dialect == "spark":
                return functions.units_between(node, self)
            case _:
                raise NotRelational("an aggregate stands in an expression", node.span)

    def truth(self, truth: core.Truth) -> exp.Expr:
        """A condition of ANDs and ORs, in parentheses."""
        match truth:
            case core.Every():
                return exp.paren(exp.and_(*map(self.truth, truth.parts), copy=False), copy=False)
            case core.Some():
                return exp.paren(exp.or_(*map(self.truth, truth.parts), copy=False), copy=False)
            case _:
                return exp.paren(self.predicate(truth), copy=False)

    # --- predicates -------------------------------------------------------------------------------

    def _comparable(self, left: Expression, right: Expression) -> tuple[exp.Expr, exp.Expr]:
        """Both sides of a comparison. Calculated times are in microseconds."""
        if left.type is DataType.INTERVAL or (
            left.type.is_checked and not (_is_leaf(left) and _is_leaf(right))
        ):
            return self.micros(left), self.micros(right)
        return self.value(left), self.value(right)

    def _membership(self, node: core.Membership) -> exp.Expr:
        operand = node.operand
        if isinstance(operand, core.AttributeValue) and operand.attribute == core.TYPE:
            return self._is_type(node, operand)
        if node.negated and node.has_null:
            return exp.false()
        in_micros = operand.type is DataType.INTERVAL or (
            operand.type.is_checked and not _is_leaf(operand)
        )
        value = self.micros(operand) if in_micros else self.value(operand)
        if not node.values:
            empty = exp.Not(this=exp.Is(this=enclosed(value), expression=exp.null()))
            return empty if node.negated else exp.false()
        type = DataType.LONG if in_micros else operand.type
        values = [self._constant(core.Constant(one, type, node.span)) for one in node.values]
        found = exp.In(this=enclosed(value), expressions=values)
        return exp.Not(this=found) if node.negated else found

    def _is_type(self, node: core.Membership, operand: core.AttributeValue) -> exp.Expr:
        """`x IS R`, by the columns that tell the types of events."""
        pairs = [str(value).split(">", 1) for value in node.values]
        table = None if operand.label == self._alone else operand.label
        found = is_of_types(table, [(one[0], one[1]) for one in pairs], by_stream=self._by_stream)
        return exp.Not(this=exp.paren(found)) if node.negated else found

    def _pattern(self, node: core.PatternMatch) -> exp.Expr:
        if node.operator == "RLIKE":
            raise NotRelational(
                "RLIKE takes regular expressions of RE2, and SQL has others", node.span
            )
        pattern = exp.Literal.string(node.pattern)
        found: exp.Expr = exp.Like(this=enclosed(self.value(node.operand)), expression=pattern)
        if "\\" in node.pattern and self.dialect == "duckdb":
            found = exp.Escape(this=found, expression=exp.Literal.string("\\"))
        return exp.Not(this=found) if node.negated else found

    # --- values -----------------------------------------------------------------------------------

    def _attribute(self, node: core.AttributeValue) -> exp.Expr:
        return column(None if node.label == self._alone else node.label, node.attribute)

    def _constant(self, node: core.Constant) -> exp.Expr:
        value, type = node.value, node.type
        if value is None and not type.is_compared:
            return exp.null()
        if value is None:
            return cast(exp.null(), _name_of(type), self.dialect)
        match type:
            case core.DecimalType():
                digits = exp.Literal.string(show_constant(value, type))
                return cast(digits, type.value, self.dialect)
            case DataType.BOOLEAN:
                return exp.true() if value else exp.false()
            case DataType.STRING:
                return exp.Literal.string(str(value))
            case DataType.INT | DataType.LONG | DataType.INTERVAL:
                assert isinstance(value, int)
                return number(value)
            case DataType.BYTE | DataType.SHORT:
                assert isinstance(value, int)
                return cast(number(value), TYPES[type], self.dialect)
            case DataType.FLOAT | DataType.DOUBLE:
                return self._floating(float(value), type)
            case DataType.TIMESTAMP:
                assert isinstance(value, int)
                return self._timestamp(value)
            case DataType.TIMESTAMP_NTZ if self.dialect == "spark":
                assert isinstance(value, int)
                return exp.Var(this=local(str(value), "UTC"))
            case DataType.DATE:
                assert isinstance(value, int)
                return self._date(value)
            case _:
                raise NotRelational(f"a constant is of type {type.value}", node.span)

    def _floating(self, value: float, type: DataType) -> exp.Expr:
        """A floating number. Without its mark it would be a decimal number."""
        if not math.isfinite(value):
            return cast(exp.Literal.string(str(value)), TYPES[type], self.dialect)
        mark = "" if "e" in repr(value) else ("D" if self.dialect == "spark" else "e0")
        literal: exp.Expr = exp.Literal(this=f"{abs(value)!r}{mark}", is_string=False)
        if math.copysign(1, value) < 0:
            literal = exp.Neg(this=literal)
        return literal if type is DataType.DOUBLE else cast(literal, "FLOAT", self.dialect)

    def _timestamp(self, value: int) -> exp.Expr:
        """A time. As a text it has its zone, and ends with the year 9999."""
        try:
            text = (_EPOCH + dt.timedelta(microseconds=value)).isoformat(" ")
        except OverflowError:
            name = "TIMESTAMP_MICROS" if self.dialect == "spark" else "MAKE_TIMESTAMPTZ"
            return exp.Anonymous(this=name, expressions=[number(value)])
        return cast(exp.Literal.string(f"{text}+00:00"), "TIMESTAMPTZ", self.dialect)

    def _date(self, value: int) -> exp.Expr:
        try:
            text = (_EPOCH + dt.timedelta(days=value)).date().isoformat()
        except OverflowError:
            if self.dialect == "spark":
                return exp.Anonymous(this="DATE_FROM_UNIX_DATE", expressions=[number(value)])
            epoch = cast(exp.Literal.string("1970-01-01"), "DATE", self.dialect)
            return exp.Add(this=epoch, expression=number(value))
        return cast(exp.Literal.string(text), "DATE", self.dialect)

    def _arithmetic(self, node: core.Arithmetic) -> exp.Expr:
        if node.type.is_checked:
            return self.micros(node)
        if not self.binds and _depth_of_wholes(node) > _DEEPEST:
            raise NotRelational("arithmetic of whole numbers is long", node.span)
        left, right = enclosed(self.value(node.left)), enclosed(self.value(node.right))
        if isinstance(node.type, core.DecimalType):
            return self._of_decimals(node, left, right)
        if node.operator in "/%":
            divisor = exp.Nullif(this=right, expression=exp.Literal.number(0))
            if node.operator == "/":
                return exp.Div(this=left, expression=divisor, typed=False, safe=True)
            return exp.Mod(this=left, expression=divisor)
        if node.type in _BITS:
            return self._whole(node.operator, left, right, node.type)
        return _OPERATORS[node.operator](this=left, expression=right)

    def _of_decimals(self, node: core.Arithmetic, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        """Arithmetic on DECIMALs, whose types are Spark's."""
        if self.dialect != "spark":
            raise NotRelational("it calculates with DECIMALs", node.span)
        if node.operator == "%":
            type = node.right.type
            assert isinstance(type, core.DecimalType)
            divisor = exp.Nullif(this=right, expression=exp.Var(this=zero(type)))
            return exp.Mod(this=left, expression=divisor)
        if node.operator == "/":
            return exp.Anonymous(this="TRY_DIVIDE", expressions=[left, right])
        return self._tried(node.operator, left, right)

    def _whole(self, operator: str, left: exp.Expr, right: exp.Expr, type: DataType) -> exp.Expr:
        """Arithmetic on whole numbers. Results outside the type wrap, by way of wider numbers."""
        wide = "DECIMAL(38, 0)" if self.dialect == "spark" else "HUGEINT"
        narrow = "DECIMAL(20, 0)" if self.dialect == "spark" else "HUGEINT"
        half, whole = 2 ** (_BITS[type] - 1), 2 ** _BITS[type]
        # No product here needs more than 38 digits.
        one, other = (cast(side.copy(), narrow, self.dialect) for side in (left, right))
        exact = _OPERATORS[operator](this=one, expression=other)
        shifted = exp.Add(this=cast(exact, wide, self.dialect), expression=number(half))
        if self.dialect == "spark":
            rest: exp.Expr = exp.Anonymous(this="PMOD", expressions=[shifted, number(whole)])
        else:
            once = exp.Mod(this=exp.paren(shifted), expression=number(whole))
            again = exp.paren(exp.Add(this=once, expression=number(whole)))
            rest = exp.Mod(this=again, expression=number(whole))
        wrapped = cast(exp.Sub(this=rest, expression=number(half)), TYPES[type], self.dialect)
        fast = self._tried(operator, left, right)
        return exp.Coalesce(this=fast, expressions=[wrapped])

    def _tried(self, operator: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        """Arithmetic on whole numbers that is NULL where the result is outside the type."""
        if self.dialect == "spark":
            name = {"+": "TRY_ADD", "-": "TRY_SUBTRACT", "*": "TRY_MULTIPLY"}[operator]
            return exp.Anonymous(this=name, expressions=[left, right])
        plain = _OPERATORS[operator](this=left, expression=right)
        return exp.Anonymous(this="TRY", expressions=[plain])

    def _negation(self, operand: Expression, type: DataType) -> exp.Expr:
        if type is DataType.INTERVAL:
            return self._tried("-", number(0), self.micros(operand))
        value = enclosed(self.value(operand))
        if type in _BITS:
            zero = cast(number(0), TYPES[type], self.dialect)
            return self._whole("-", zero, value, type)
        if self._loses_digits(type):
            # Spark calculates -x with 34 digits.
            return exp.Case(
                ifs=[exp.If(this=_is_negative(value, type), true=_without_sign(value, type))],
                default=exp.Var(
                    this=f"TRY_CAST(CONCAT('-', {value.sql('spark')}) AS {type.value})"
                ),
            )
        return exp.Neg(this=value)

    def _loses_digits(self, type: DataType) -> bool:
        is_long = isinstance(type, core.DecimalType) and type.precision > _DIGITS_OF_JAVA
        return is_long and self.dialect == "spark"

    def _absolute(self, operand: Expression, type: DataType) -> exp.Expr:
        if type is DataType.INTERVAL:
            value = self.micros(operand)
            negative = self._tried("-", number(0), value.copy())
        else:
            value = self.value(operand)
            if self._loses_digits(type):
                return _without_sign(enclosed(value), type)
            if type not in _BITS:
                return exp.Abs(this=value)
            negative = self._negation(operand, type)
        is_negative = exp.LT(this=enclosed(value.copy()), expression=number(0))
        return exp.Case(ifs=[exp.If(this=is_negative, true=negative)], default=value)

    def _cast(self, operand: Expression, type: DataType) -> exp.Expr:
        if type is DataType.TIMESTAMP:
            return self.micros(operand)
        if operand.type is DataType.DATE:
            return self._days(operand)
        is_real = isinstance(operand.type, core.DecimalType) and type is DataType.DOUBLE
        if is_real and self.dialect != "spark":
            raise NotRelational("it compares a DECIMAL as a DOUBLE", operand.span)
        return self._tried_cast(operand, type)

    def _tried_cast(self, operand: Expression, type: DataType) -> exp.Expr:
        """A CAST. Where a DECIMAL does not hold all values, it is NULL for them."""
        value, name = self.value(operand), _name_of(type)
        source = decimals.as_decimal(operand.type)
        if not isinstance(type, core.DecimalType) or source is None:
            return cast(value, name, self.dialect)
        spare = type.precision - type.scale - (source.precision - source.scale)
        if spare >= (type.scale < source.scale):
            return cast(value, name, self.dialect)
        if self.dialect != "spark":
            raise NotRelational("it is cast to a DECIMAL that may not hold it", operand.span)
        return exp.TryCast(this=value, to=exp.DataType.build(name, dialect=self.dialect))

    # --- times as numbers -------------------------------------------------------------------------

    def micros(self, node: Expression) -> exp.Expr:
        """A time in microseconds since 1970, or a duration in microseconds."""
        match node:
            case core.Constant(value=None):
                return exp.null()
            case core.Constant(value=value, type=type):
                assert isinstance(value, int)
                return duration(value) if type is DataType.INTERVAL else number(value)
            case core.AttributeValue(type=DataType.TIMESTAMP):
                name = "UNIX_MICROS" if self.dialect == "spark" else "EPOCH_US"
                return exp.Anonymous(this=name, expressions=[self._attribute(node)])
            case core.AttributeValue(type=DataType.TIMESTAMP_NTZ) if self.dialect == "spark":
                clock = self._attribute(node).sql("spark")
                return exp.Var(this=f"UNIX_MICROS({instant(clock, 'UTC')})")
            case core.AttributeValue(type=DataType.INTERVAL | DataType.TIMESTAMP_NTZ):
                raise NotRelational(
                    f"it reads an attribute of the type {node.type.value}", node.span
                )
            case core.Arithmetic(operator=operator, left=left, right=right):
                sides = [
                    self.value(side) if side.type is DataType.LONG else self.micros(side)
                    for side in (left, right)
                ]
                return self._tried(operator, *map(enclosed, sides))
            case core.Negation(operand=operand):
                return self._negation(operand, DataType.INTERVAL)
            case core.Absolute(operand=operand):
                return self._absolute(operand, DataType.INTERVAL)
            case core.Cast(operand=operand) if operand.type is DataType.DATE:
                return self._tried("*", self._days(operand), number(_DAY))
            case core.Cast(operand=operand):
                return self.micros(operand)
            case core.Choice(function=function, operands=operands):
                name_ = exp.Least if function == "LEAST" else exp.Greatest
                first, *rest = map(self.micros, operands)
                return name_(this=first, expressions=rest, ignore_nulls=True)
            case core.Call() | core.Conditional() if node.type is DataType.TIMESTAMP_NTZ:
                clock = self.value(node).sql("spark")
                return exp.Var(this=f"UNIX_MICROS({instant(clock, 'UTC')})")
            case core.Call() | core.Conditional():
                return exp.Anonymous(this="UNIX_MICROS", expressions=[self.value(node)])
            case _:
                raise NotRelational("an aggregate stands in an expression", node.span)

    def _days(self, operand: Expression) -> exp.Expr:
        """A DATE as the days since 1970, a BIGINT."""
        value = self.value(operand)
        if self.dialect == "spark":
            days: exp.Expr = exp.Anonymous(this="UNIX_DATE", expressions=[value])
        else:
            epoch = cast(exp.Literal.string("1970-01-01"), "DATE", self.dialect)
            days = exp.paren(exp.Sub(this=enclosed(value), expression=epoch))
        return cast(days, "BIGINT", self.dialect)


def _depth_of_wholes(node: core.Arithmetic) -> int:
    """How many operations on whole numbers stand in each other, this one counted."""
    if node.type not in _BITS or node.operator not in "+-*":
        return 0
    sides = (node.left, node.right)
    return 1 + max(_depth_of_wholes(s) if isinstance(s, core.Arithmetic) else 0 for s in sides)


def _without_sign(value: exp.Expr, type: DataType) -> exp.Expr:
    """ABS of a DECIMAL, by its text."""
    plain = f"TRY_CAST({value.sql('spark')} AS STRING)"
    return exp.Var(this=f"TRY_CAST(LTRIM('-', {plain}) AS {type.value})")


def _is_negative(value: exp.Expr, type: DataType) -> exp.Expr:
    assert isinstance(type, core.DecimalType)
    return exp.LT(this=value.copy(), expression=exp.Var(this=zero(type)))


def is_of_types(
    table: str | None, types: Sequence[tuple[str, str]], *, by_stream: bool
) -> exp.Expr:
    """Whether a row is an event of one of some types, each a stream and a name. `by_stream`: two
    streams have types with one name."""
    if not types:
        return exp.false()
    kind = column(table, "type")
    if not by_stream:
        names = [exp.Literal.string(name) for _, name in types]
        if len(names) == 1:
            return exp.EQ(this=kind, expression=names[0])
        return exp.In(this=kind, expressions=names)
    ways = [
        exp.And(
            this=exp.EQ(this=column(table, "stream"), expression=exp.Literal.string(stream)),
            expression=exp.EQ(this=kind.copy(), expression=exp.Literal.string(name)),
        )
        for stream, name in types
    ]
    return ways[0] if len(ways) == 1 else exp.paren(exp.or_(*ways, copy=False), copy=False)


def _is_leaf(node: Expression) -> bool:
    """Whether an expression of times is not a calculation."""
    match node:
        case core.Cast(operand=operand):
            return False if operand.type is DataType.DATE else _is_leaf(operand)
        case core.Choice(operands=operands):
            return all(map(_is_leaf, operands))
        case _:
            return isinstance(node, core.AttributeValue | core.Constant)


def enclosed(value: exp.Expr) -> exp.Expr:
    """A value in parentheses where it is an operation."""
    return exp.paren(value, copy=False) if isinstance(value, exp.Binary) else value


@cache
def _words() -> frozenset[str]:
    return frozenset(_WORDS.split())


_WORDS = """
    all and any anti as asc at between both by case cast check collate column constraint
    create cross current_date current_time current_timestamp current_user desc describe
    distinct else end escape except exists false fetch filter for foreign from full grant
    group having in inner intersect interval into is join laterals lateral leading left like
    limit minus natural not null offset on only or order outer overlaps pivot placing
    primary qualify references returning right select semi session_user show some summarize
    table tablesample then time to trailing true union unique unknown unpivot user using
    variadic values when where window with within
"""
"""Words with another meaning in Spark's SQL, in ANSI mode or not, or in DuckDB's."""
