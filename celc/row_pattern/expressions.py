"""Expressions of MEASURES and DEFINE: rows found, types found, casts made explicit.

What operators ask of types, and what they give, is said for both languages in
`celc.resolve.types.conversions`; here are the rows that an expression reads, and the words of
refusals.
Every function gives None for an expression without a meaning, after saying why once.

Long: a function for each kind of expression, and they call one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Literal, cast

from celc_runtime.plan.frozen import frozen
from celc_runtime.values.functions import FUNCTIONS as TABLE
from celc_runtime.values.functions import Function
from celc_runtime.values.types import StructType

from celc.core import formula as core
from celc.core.formula import NEGATED, TIMES, ComparisonOperator, Constant, DataType
from celc.core.traversal import nodes_of, terms_of
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import row_patterns as messages
from celc.diagnostics.messages import types
from celc.diagnostics.source import Span
from celc.parse import syntax as cel
from celc.resolve.types import functions as calls
from celc.resolve.types import literals
from celc.resolve.types.between import folded
from celc.resolve.types.conditions import is_sound
from celc.resolve.types.conversions import (
    Misfit,
    Operator,
    aggregated_type,
    arithmetic,
    calculates_with_times,
    convert,
    is_null,
    meeting_type,
    negation,
)
from celc.resolve.types.parts import element_of, field_of, json_path
from celc.row_pattern import core as rows
from celc.row_pattern import syntax
from celc.row_pattern.machine import plain_text

NAVIGATION = ("FIRST", "LAST", "PREV", "NEXT")
AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "ARRAY_AGG")
OF_MATCHES = (*NAVIGATION, *AGGREGATES, "CLASSIFIER", "MATCH_NUMBER")
FUNCTIONS = (*OF_MATCHES, "ABS", "IF", "TIMESTAMPDIFF", *TABLE)
MOST_OFFSET = 2**31
"""No partition has as many rows, so a greater offset finds none either."""


@frozen
class Scope:
    """What an expression can name, and where it stands.

    `others`: the types of columns that the language cannot read, by their names casefolded.
    `table`: its name, casefolded. `row`: the row that columns and CLASSIFIER read inside navigation
    and aggregates; None: outside. `inside`: the function around, for messages. `measures`: those
    before, by their names casefolded.
    """

    found: Diagnostics
    columns: tuple[rows.Column, ...]
    numbers: Mapping[str, int]
    variables: Mapping[str, core.Variables]
    has_schema: bool
    others: Mapping[str, str]
    table: str
    defines: bool = False
    row: core.Row | None = None
    inside: str = ""
    measures: Mapping[str, core.Expression] = field(default_factory=dict)

    def of_measures(self, before: Iterable[rows.Measure]) -> Scope:
        """The scope of a measure behind others."""
        known = {one.name.casefold(): one.expression for one in before if not one.is_list}
        return replace(self, defines=False, measures=known)

    def of_definition(self) -> Scope:
        """The scope of DEFINE."""
        return replace(self, defines=True)


def value(node: syntax.Expression, scope: Scope) -> core.Expression | None:
    """The expression of a measure. Only there can ARRAY_AGG stand."""
    if _is_array(node):
        assert isinstance(node, syntax.Call)
        return _aggregate("ARRAY_AGG", node, scope)
    return expression(node, scope)


def key(clause: str, node: syntax.Expression, scope: Scope) -> core.Expression | None:
    """An expression of PARTITION BY or ORDER BY, over a row alone."""
    named = [_variable(one, scope) for one in _nodes(node) if isinstance(one, syntax.Column)]
    for one in named:
        if one is not None and one.key == scope.table:
            scope.found.add(messages.table_as_variable(one.text, one.span))
        elif one is not None:
            scope.found.add(messages.variable_in_key(clause, one.text, one.span))
    if any(named):
        return None
    found = expression(node, replace(scope, row=core.Argument(), inside=clause))
    if found is None:
        return None
    if any(isinstance(one, core.LabelAt | core.MatchNumber) for one in nodes_of(found)):
        scope.found.add(messages.match_in_key(clause, node.span))
        return None
    type = found.type
    if not (type.is_compared if clause == "PARTITION BY" else type.is_ordered):
        told = "are equal or not" if clause == "PARTITION BY" else "have an order"
        message = f"{clause} takes values that {told}, and this is of type {type.value}"
        help = "name another column, or an expression of it"
        scope.found.add(messages.type_mismatch(message, node.span, help))
        return None
    return found


def is_clock(value: core.Expression, columns: tuple[rows.Column, ...]) -> bool:
    """Whether a TIMESTAMP is a TIMESTAMP_NTZ outside the query: it comes from such a column."""
    if value.type is not DataType.TIMESTAMP:
        return False
    match value:
        case core.ColumnAt():
            return columns[value.column].clock
        case core.Call(function="DATE_TRUNC") | core.Arithmetic() | core.Existing():
            made = terms_of(value)
        case core.AggregateOfRows() | core.Choice():
            made = terms_of(value)
        case core.Conditional():
            made = (*(then for _, then in value.branches), value.otherwise)
        case _:
            made = ()
    return any(is_clock(one, columns) for one in made)


def _cast(node: syntax.Cast, scope: Scope) -> core.Expression | None:
    """CAST and TRY_CAST."""
    operand = expression(node.operand, scope)
    if operand is not None and is_clock(operand, scope.columns):
        # As it is outside: a cast to TIMESTAMP reads it as a time of UTC.
        operand = core.Call("CAST", (operand,), DataType.TIMESTAMP_NTZ, "UTC", node.span)
    found = calls.cast_to(operand, node, scope.found)
    return None if found is None else folded(found)


def _is_array(node: syntax.Expression) -> bool:
    return isinstance(node, syntax.Call) and node.function.key == "array_agg"


# --- expressions ----------------------------------------------------------------------------------


def expression(node: syntax.Expression, scope: Scope) -> core.Expression | None:
    """An expression with its type."""
    match node:
        case syntax.Constant():
            return _constant(node, scope)
        case syntax.Time():
            text = cel.TextLiteral(str(node.text.value), node.text.span)
            return literals.time(cel.TimeLiteral(node.kind, text, node.span), scope.found)
        case syntax.Interval():
            length = interval(node, scope.found)
            return None if length is None else Constant(length, DataType.INTERVAL, node.span)
        case syntax.Column():
            return _column(node, scope)
        case syntax.Call():
            return _call(node, scope)
        case syntax.Cast():
            return _cast(node, scope)
        case syntax.Lambda():
            message = "a lambda is an argument of a function that the host has, and celc has not"
            scope.found.add(messages.unsupported(message, node.span, "leave it out"))
            return None
        case syntax.Field():
            whole = expression(node.operand, scope)
            return None if whole is None else _field(whole, node.name, node.span, scope)
        case syntax.Element():
            whole, index = expression(node.operand, scope), expression(node.index, scope)
            if whole is None or index is None:
                return None
            return element_of(whole, index, node.span, scope.found)
        case syntax.JsonValue():
            return _json(node, scope)
        case syntax.Case():
            return _case(node, scope)
        case syntax.Unary(operator="-"):
            return _minus(node, scope)
        case syntax.Binary(operator="+" | "-" | "*" | "/" | "%"):
            return _arithmetic(node, scope)
        case _:
            asked = condition(node, scope)
            return None if asked is None else core.Asked(asked, node.span)


def condition(node: syntax.Expression, scope: Scope, *, negated: bool = False) -> core.Truth | None:
    """A condition, or its negation."""
    match node:
        case syntax.Unary(operator="NOT"):
            return condition(node.operand, scope, negated=not negated)
        case syntax.Binary(operator="AND" | "OR"):
            return _junction(node, scope, negated)
        case syntax.Binary(operator="=" | "!=" | "<" | "<=" | ">" | ">=" as operator):
            left, right = expression(node.left, scope), expression(node.right, scope)
            return _compared(_asked(operator, negated), left, right, node.span, scope)
        case syntax.NullTest():
            operand = expression(node.operand, scope)
            if operand is None:
                return None
            return core.NullTest(operand, negated != node.negated, node.span)
        case syntax.DistinctTest():
            return _distinct_test(node, scope, negated != node.negated)
        case syntax.Between():
            return _between(node, scope, negated != node.negated)
        case syntax.In():
            return _in(node, scope, negated != node.negated)
        case syntax.Like():
            return _like(node, scope, negated != node.negated)
        case _:
            return _truth(node, scope, negated)


def _truth(node: syntax.Expression, scope: Scope, negated: bool) -> core.Truth | None:
    """A value that is a condition."""
    found = expression(node, scope)
    if found is None:
        return None
    if found.type is DataType.BOOLEAN:
        true = Constant(True, DataType.BOOLEAN, node.span)
        return core.Comparison(_asked("=", negated), found, true, node.span)
    scope.found.add(
        messages.type_mismatch(
            f"a condition is TRUE or FALSE, and this is of type {found.type.value}",
            node.span,
            "compare it with something",
        )
    )
    return None


def _asked(operator: ComparisonOperator, negated: bool) -> ComparisonOperator:
    return NEGATED[operator] if negated else operator


def _junction(node: syntax.Binary, scope: Scope, negated: bool) -> core.Truth | None:
    kind = core.Every if (node.operator == "AND") != negated else core.Some
    sides = [condition(side, scope, negated=negated) for side in (node.left, node.right)]
    return _joined(kind, sides, node.span)


def _joined(
    kind: type[core.Every] | type[core.Some], sides: list[core.Truth | None], span: Span
) -> core.Truth | None:
    """An AND or OR; parts of the same kind are joined into it. None if a part had an error."""
    parts: list[core.Truth] = []
    for side in sides:
        if side is None:
            return None
        parts += side.parts if isinstance(side, kind) else (side,)
    return parts[0] if len(parts) == 1 else kind(tuple(parts), span)


def _constant(node: syntax.Constant, scope: Scope) -> Constant | None:
    match node.value:
        case None:
            return Constant(None, DataType.BOOLEAN, node.span)
        case bool():
            return Constant(node.value, DataType.BOOLEAN, node.span)
        case int():
            return _integer(node.value, node.span, scope)
        case float():
            return literals.double(cel.DoubleLiteral(node.value, node.span), scope.found)
        case str():
            return Constant(node.value, DataType.STRING, node.span)


def _integer(number: int, span: Span, scope: Scope) -> Constant | None:
    constant = literals.integer(cel.IntegerLiteral(abs(number), span), number)
    if constant is None:
        scope.found.add(types.integer_range(span))
    return constant


def _meeting(
    operands: list[core.Expression], what: str, span: Span, scope: Scope
) -> tuple[core.Expression, ...] | None:
    """Operands in their common type; NULL takes that of the others."""
    found = meeting_type(operands)
    if isinstance(found, Misfit):
        before, other = found.before, operands[found.number].type
        scope.found.add(
            messages.type_mismatch(
                f"{what} has values of the types {before.value} and {other.value}",
                span,
                *_advice(before, other),
            )
        )
        return None
    return tuple(convert(operand, found or DataType.BOOLEAN) for operand in operands)


def _advice(left: DataType, right: DataType) -> tuple[str, ...]:
    if {left, right} & {*TIMES} and DataType.STRING in (left, right):
        return ("write TIMESTAMP '2026-01-31 12:00:00' or DATE '2026-01-31'",)
    if DataType.INTERVAL in (left, right):
        return ("write INTERVAL '90' SECOND",)
    return ()


def _compared(
    operator: ComparisonOperator,
    left: core.Expression | None,
    right: core.Expression | None,
    span: Span,
    scope: Scope,
) -> core.Comparison | None:
    if left is None or right is None:
        return None
    if operator in ("=", "!=") and left.type is right.type is DataType.BINARY:
        # Texts that are equal where the bytes are, as in CEL.
        left, right = (
            core.Call("HEX", (side,), DataType.STRING, None, side.span) for side in (left, right)
        )
    met = _meeting([left, right], "a comparison", span, scope)
    return None if met is None else core.Comparison(operator, met[0], met[1], span)


def _distinct_test(node: syntax.DistinctTest, scope: Scope, negated: bool) -> core.Truth | None:
    """Whether two values differ, where NULL is a value like others: TRUE or FALSE, never NULL."""
    left, right = expression(node.left, scope), expression(node.right, scope)
    compared = _compared(_asked("!=", negated), left, right, node.span, scope)
    if compared is None:
        return None

    def which(one: bool, other: bool) -> tuple[core.Truth, core.Truth]:
        return (
            core.NullTest(compared.left, one, node.span),
            core.NullTest(compared.right, other, node.span),
        )

    both = core.Every((*which(True, True), compared), node.span)
    if negated:
        return core.Some((both, core.Every(which(False, False), node.span)), node.span)
    one_is = (core.Every(which(*known), node.span) for known in ((True, False), (False, True)))
    return core.Some((both, *one_is), node.span)


def _between(node: syntax.Between, scope: Scope, negated: bool) -> core.Truth | None:
    operand, low, high = (expression(one, scope) for one in (node.operand, node.low, node.high))
    if low is None or high is None:
        return None
    above = _compared(_asked(">=", negated), operand, low, node.span, scope)
    below = _compared(_asked("<=", negated), operand, high, node.span, scope)
    return _joined(core.Some if negated else core.Every, [above, below], node.span)


def _in(node: syntax.In, scope: Scope, negated: bool) -> core.Truth | None:
    operand = expression(node.operand, scope)
    values = [expression(one, scope) for one in node.values]
    if any(value is None for value in values):
        return None
    equal = _asked("=", negated)
    tests: list[core.Truth | None] = []
    for value in values:
        tests.append(_compared(equal, operand, value, node.span, scope))
        if tests[-1] is None:
            return None
    return _joined(core.Every if negated else core.Some, tests, node.span)


def _like(node: syntax.Like, scope: Scope, negated: bool) -> core.Truth | None:
    operand = expression(node.operand, scope)
    pattern, operator = node.pattern, node.operator
    if not isinstance(pattern, syntax.Constant) or not isinstance(pattern.value, str):
        scope.found.add(
            messages.type_mismatch(f"the pattern of {operator} is a text in quotes", pattern.span)
        )
        return None
    if operand is None:
        return None
    if operand.type is not DataType.STRING and not is_null(operand):
        scope.found.add(
            messages.type_mismatch(
                f"{operator} is about texts, and this is of type {operand.type.value}",
                node.operand.span,
            )
        )
        return None
    if not is_sound(operator, pattern.value, pattern.span, scope.found):
        return None
    text = convert(operand, DataType.STRING)
    return core.PatternMatch(operator, text, pattern.value, negated, node.span)


def _case(node: syntax.Case, scope: Scope) -> core.Expression | None:
    operand = None if node.operand is None else expression(node.operand, scope)
    if node.operand is not None and operand is None:
        return None
    tests: list[core.Truth | None] = []
    values: list[core.Expression | None] = []
    for when, then in node.branches:
        if node.operand is None:
            tests.append(condition(when, scope))
        else:
            tests.append(_compared("=", operand, expression(when, scope), when.span, scope))
        values.append(expression(then, scope))
    if node.otherwise is None:
        values.append(Constant(None, DataType.BOOLEAN, node.span))
    else:
        values.append(expression(node.otherwise, scope))
    asked = [test for test in tests if test is not None]
    known = [value for value in values if value is not None]
    if len(asked) < len(tests) or len(known) < len(values):
        return None
    met = _meeting(known, "CASE", node.span, scope)
    if met is None:
        return None
    *ways, otherwise = met
    branches = tuple(zip(asked, ways, strict=True))
    return core.Conditional(branches, otherwise, otherwise.type, node.span)


def _minus(node: syntax.Unary, scope: Scope) -> core.Expression | None:
    inner = node.operand
    if isinstance(inner, syntax.Constant) and type(inner.value) is int:
        # The smallest LONG has no positive counterpart, so the sign belongs to the literal.
        return _integer(-inner.value, node.span, scope)
    operand = _number("-", inner, scope)
    return None if operand is None else negation(operand, node.span)


def _number(what: str, node: syntax.Expression, scope: Scope) -> core.Expression | None:
    operand = expression(node, scope)
    if operand is None:
        return None
    if is_null(operand):
        return Constant(None, DataType.INT, node.span)
    if not operand.type.is_numeric and operand.type is not DataType.INTERVAL:
        _refuse_number(what, operand.type, node.span, scope)
        return None
    return operand


def _refuse_number(what: str, type: DataType, span: Span, scope: Scope) -> None:
    message = f"{what} takes a number, and this is of type {type.value}"
    scope.found.add(messages.type_mismatch(message, span))


def _arithmetic(node: syntax.Binary, scope: Scope) -> core.Expression | None:
    left, right = expression(node.left, scope), expression(node.right, scope)
    if left is None or right is None:
        return None
    operator = cast("Operator", node.operator)
    if is_null(left) and is_null(right):
        type = DataType.DOUBLE if operator == "/" else DataType.INT
        return Constant(None, type, node.span)
    found = arithmetic(operator, left, right, node.span)
    if found is not None:
        return found
    if calculates_with_times(left, right):
        hint = "times take + and - with INTERVAL '90' SECOND"
        if operator in "/%" and DataType.INTERVAL in (left.type, right.type):
            hint = "a duration is not divided, but a number is: TIMESTAMPDIFF(SECOND, a, b) / 60"
        message = f"{operator} does not go with {left.type.value} and {right.type.value}"
        scope.found.add(messages.type_mismatch(message, node.span, hint))
        return None
    wrong = next(side for side in (left, right) if not is_null(side) and not side.type.is_numeric)
    _refuse_number(operator, wrong.type, wrong.span, scope)
    return None


def interval(node: syntax.Interval, found: Diagnostics) -> int | None:
    """An interval in microseconds."""
    unit = node.unit.text.upper().removesuffix("S")
    if unit not in literals.MICROSECONDS:
        found.add(messages.bad_interval(f"there is no unit {node.unit.text!r}", node.unit.span))
        return None
    if not node.amount.isascii() or not node.amount.isdigit():
        message = f"{node.amount!r} is no whole number of {unit.lower()}s from 0 on"
        found.add(messages.bad_interval(message, node.span))
        return None
    length = int(node.amount) * literals.MICROSECONDS[unit]
    if length > literals.LARGEST_SIZE:
        found.add(messages.bad_interval("the interval is too long for 64 bits", node.span))
        return None
    return length


# --- rows -----------------------------------------------------------------------------------------


def _variables(name: syntax.Name, scope: Scope) -> core.Variables | None:
    found = scope.variables.get(name.key)
    if found is None and name.key == scope.table:
        scope.found.add(messages.table_as_variable(name.text, name.span))
    elif found is None:
        scope.found.add(messages.unknown_variable(name.text, list(scope.variables), name.span))
    return found


def _last(variables: core.Variables | None) -> core.Row:
    return core.Navigation(variables, first=False, offset=0, shift=0, final=False)


def _variable(node: syntax.Column, scope: Scope) -> syntax.Name | None:
    """The variable of a column. Of `c.f` there is none, if c is a STRUCT column and no variable."""
    if node.variable is None or node.variable.key in scope.variables:
        return node.variable
    number = scope.numbers.get(node.variable.key)
    is_struct = number is not None and isinstance(scope.columns[number].type, StructType)
    return None if is_struct else node.variable


def _field(
    whole: core.Expression, name: syntax.Name, span: Span, scope: Scope
) -> core.Expression | None:
    """A field, whose name is compared without regard to case, as those of columns are."""
    if isinstance(whole.type, StructType):
        spelled = {one.casefold(): one for one, _ in reversed(whole.type.fields)}
        if name.text not in dict(whole.type.fields):
            name = syntax.Name(spelled.get(name.key, name.text), name.span)
    return field_of(whole, name, span, scope.found)


def _json(node: syntax.JsonValue, scope: Scope) -> core.Expression | None:
    path = json_path(node.path, node.span, scope.found)
    if path is None:
        return None
    name = syntax.Name("GET_JSON_OBJECT", node.span)
    arguments = (node.operand, syntax.Constant(path, node.span))
    call = syntax.Call(name, arguments, None, None, None, node.span)
    return _of_table(TABLE[name.text], call, scope)


def _column(node: syntax.Column, scope: Scope) -> core.Expression | None:
    variables = None
    if node.variable is not None and _variable(node, scope) is None:
        whole = _column(syntax.Column(None, node.variable, node.variable.span), scope)
        return None if whole is None else _field(whole, node.name, node.span, scope)
    if node.variable is not None:
        variables = _variables(node.variable, scope)
        if variables is None:
            return None
    number = scope.numbers.get(node.name.key)
    if number is None and variables is None and scope.row is None:
        measure = scope.measures.get(node.name.key)
        if measure is not None:
            return measure
    if number is None:
        if scope.has_schema:
            text, span = node.name.text, node.name.span
            known = [column.name for column in scope.columns]
            scope.found.add(messages.no_column(text, known, scope.others.get(node.name.key), span))
        return None
    row = scope.row or _last(variables)
    return core.ColumnAt(number, row, scope.columns[number].type, node.span)


def _call(node: syntax.Call, scope: Scope) -> core.Expression | None:
    name = node.function.text.upper()
    if name not in FUNCTIONS:
        names = list(FUNCTIONS)
        text, span = node.function.text, node.function.span
        scope.found.add(messages.unknown_function(text, names, span))
        return None
    if name not in AGGREGATES and not _is_plain(name, node, scope):
        return None
    if not _semantics_fit(name, node, scope):
        return None
    if scope.row is not None and name in (*NAVIGATION, *AGGREGATES):
        scope.found.add(messages.bad_nesting(scope.inside, name, node.span))
        return None
    match name:
        case "FIRST" | "LAST" | "PREV" | "NEXT":
            return _navigation(node, scope)
        case "COUNT" | "SUM" | "AVG" | "MIN" | "MAX":
            return _aggregate(name, node, scope)
        case "ARRAY_AGG":
            if scope.defines:
                scope.found.add(
                    messages.unsupported(
                        "ARRAY_AGG has no meaning in a condition",
                        node.span,
                        "write it as a whole measure",
                    )
                )
            else:
                scope.found.add(
                    messages.type_mismatch(
                        "an array has no operators: ARRAY_AGG is a whole measure", node.span
                    )
                )
            return None
        case "CLASSIFIER":
            return _classifier(node, scope)
        case "MATCH_NUMBER":
            if node.arguments:
                scope.found.add(messages.wrong_arguments(name, "MATCH_NUMBER()", node.span))
                return None
            return core.MatchNumber(node.span)
        case "ABS":
            if len(node.arguments) != 1 or isinstance(node.arguments[0], syntax.Star):
                scope.found.add(messages.wrong_arguments(name, "ABS(e)", node.span))
                return None
            operand = _number("ABS", node.arguments[0], scope)
            return None if operand is None else core.Absolute(operand, operand.type, node.span)
        case "IF":
            return _if(node, scope)
        case "TIMESTAMPDIFF":
            return _difference(node, scope)
        case _:
            return _of_table(TABLE[name], node, scope)


def _of_table(function: Function, node: syntax.Call, scope: Scope) -> core.Expression | None:
    """A function of the table that CEL has, too."""
    if not calls.has_number(function, len(node.arguments), node.span, scope.found):
        return None
    operands = []
    for argument in node.arguments:
        if isinstance(argument, syntax.Star):
            scope.found.add(messages.wrong_arguments(function.name, function.example[0], node.span))
            return None
        operands.append(expression(argument, scope))
    known = [one for one in operands if one is not None]
    if len(known) < len(operands):
        return None
    found = calls.called(function, known, node.zone, node.span, scope.found)
    return None if found is None else folded(found)


def _semantics_fit(name: str, node: syntax.Call, scope: Scope) -> bool:
    if node.semantics is None:
        return True
    span = node.semantics.span.to(node.span)
    if name not in ("FIRST", "LAST", *AGGREGATES):
        word = node.semantics.text
        help = f"write it inside: {name}({word} LAST(x))" if name in NAVIGATION else "leave it out"
        message = f"{word} stands before FIRST, LAST and aggregates, not before {name}"
        scope.found.add(messages.bad_navigation(message, span, help))
        return False
    if scope.defines and node.semantics.text == "FINAL":
        scope.found.add(messages.final_in_define(span))
        return False
    return True


def _is_final(node: syntax.Call) -> bool:
    return node.semantics is not None and node.semantics.text == "FINAL"


def _offset(node: syntax.Call, default: int, scope: Scope) -> int | None:
    if len(node.arguments) < 2:
        return default
    given = node.arguments[1]
    if not isinstance(given, syntax.Constant) or type(given.value) is not int:
        text = scope.found.source.slice(given.span)
        scope.found.add(messages.bad_offset(text, given.span))
        return None
    return min(given.value, MOST_OFFSET)


def _navigation(node: syntax.Call, scope: Scope) -> core.Expression | None:
    name = node.function.text.upper()
    if len(node.arguments) not in (1, 2) or isinstance(node.arguments[0], syntax.Star):
        scope.found.add(messages.wrong_arguments(name, f"{name}(v.x, 1)", node.span))
        return None
    argument = node.arguments[0]
    if name in ("PREV", "NEXT"):
        distance = _offset(node, 1, scope)
        shift = 0 if distance is None else distance
        shift = -shift if name == "PREV" else shift
        inner = argument
        if isinstance(inner, syntax.Call) and inner.function.key in ("first", "last"):
            if not _semantics_fit(inner.function.text.upper(), inner, scope):
                return None
            if len(inner.arguments) not in (1, 2) or isinstance(inner.arguments[0], syntax.Star):
                text = inner.function.text.upper()
                scope.found.add(messages.wrong_arguments(text, f"{text}(v.x, 1)", inner.span))
                return None
            offset = _offset(inner, 0, scope)
            if offset is None or distance is None:
                return None
            first, final = inner.function.key == "first", _is_final(inner)
            return _at(name, inner.arguments[0], (first, offset, shift, final), scope)
        if distance is None:
            return None
        return _at(name, argument, (False, 0, shift, False), scope)
    offset = _offset(node, 0, scope)
    if offset is None:
        return None
    return _at(name, argument, (name == "FIRST", offset, 0, _is_final(node)), scope)


def _at(
    name: str,
    argument: syntax.Expression | syntax.Star,
    place: tuple[bool, int, int, bool],
    scope: Scope,
) -> core.Expression | None:
    """An expression over the row that navigation finds."""
    assert not isinstance(argument, syntax.Star)
    read = _read(name, (argument,), argument.span, scope)
    if read is None:
        return None
    variables, reads = read
    if not reads:
        message = f"{name} finds a row, and its argument reads none"
        scope.found.add(
            messages.bad_navigation(message, argument.span, "name a column, or CLASSIFIER()")
        )
        return None
    first, offset, shift, final = place
    row = core.Navigation(variables, first, offset, shift, final)
    inner = replace(scope, row=row, inside=name)
    operand = expression(argument, inner)
    if operand is None:
        return None
    if isinstance(operand, core.ColumnAt | core.LabelAt):
        return operand
    return core.Existing(row, operand, operand.type, argument.span)


def _read(
    name: str, read: tuple[syntax.Expression | syntax.Star, ...], span: Span, scope: Scope
) -> tuple[core.Variables | None, bool] | None:
    """The variables whose rows an argument is about, and whether it reads any row at all."""
    qualifiers: dict[str | None, syntax.Name | None] = {}
    for node in (node for one in read for node in _nodes(one)):
        match node:
            case syntax.Star():
                named = node.variable
                qualifiers.setdefault(None if named is None else named.key, named)
            case syntax.Column():
                variable = _variable(node, scope)
                qualifiers.setdefault(None if variable is None else variable.key, variable)
            case syntax.Call() if node.function.key == "classifier":
                named = _named_in_classifier(node)
                qualifiers.setdefault(None if named is None else named.key, named)
    if len(qualifiers) > 1:
        told = ["all variables" if one is None else one.text for one in qualifiers.values()]
        scope.found.add(messages.mixed_variables(name, told, span))
        return None
    for named in qualifiers.values():
        if named is not None:
            variables = _variables(named, scope)
            return None if variables is None else (variables, True)
    return None, bool(qualifiers)


def _named_in_classifier(node: syntax.Call) -> syntax.Name | None:
    if len(node.arguments) == 1:
        argument = node.arguments[0]
        if isinstance(argument, syntax.Column) and argument.variable is None:
            return argument.name
    return None


def _nodes(
    node: syntax.Expression | syntax.Star,
) -> Iterator[syntax.Expression | syntax.Star]:
    waiting: list[syntax.Expression | syntax.Star] = [node]
    while waiting:
        one = waiting.pop(0)
        yield one
        match one:
            case syntax.Call() if one.function.key == "timestampdiff":
                waiting += one.arguments[1:]
            case syntax.Call() if one.function.key != "classifier":
                waiting += one.arguments
            case syntax.Unary() | syntax.NullTest() | syntax.Cast():
                waiting.append(one.operand)
            case syntax.Field() | syntax.JsonValue():
                waiting.append(one.operand)
            case syntax.Element():
                waiting += (one.operand, one.index)
            case syntax.Binary() | syntax.DistinctTest():
                waiting += (one.left, one.right)
            case syntax.Between():
                waiting += (one.operand, one.low, one.high)
            case syntax.In():
                waiting += (one.operand, *one.values)
            case syntax.Like():
                waiting += (one.operand, one.pattern)
            case syntax.Case():
                waiting += [] if one.operand is None else [one.operand]
                waiting += [part for branch in one.branches for part in branch]
                waiting += [] if one.otherwise is None else [one.otherwise]


def _classifier(node: syntax.Call, scope: Scope) -> core.Expression | None:
    named = _named_in_classifier(node)
    if node.arguments and named is None:
        scope.found.add(
            messages.wrong_arguments("CLASSIFIER", "CLASSIFIER() or CLASSIFIER(v)", node.span)
        )
        return None
    variables = None
    if named is not None:
        variables = _variables(named, scope)
        if variables is None:
            return None
    return core.LabelAt(scope.row or _last(variables), node.span)


_Function = Literal["COUNT", "SUM", "AVG", "MIN", "MAX", "ARRAY_AGG"]


def _aggregate(name: _Function, node: syntax.Call, scope: Scope) -> core.Expression | None:
    if len(node.arguments) != 1:
        scope.found.add(messages.wrong_arguments(name, f"{name}(v.x)", node.span))
        return None
    (argument,) = node.arguments
    if isinstance(argument, syntax.Star) and (name != "COUNT" or node.distinct is not None):
        scope.found.add(messages.wrong_arguments(name, f"{name}(v.x)", node.span))
        return None
    of = (argument, *(one.expression for one in node.order), node.kept)
    read = _read(name, tuple(one for one in of if one is not None), node.span, scope)
    if read is None:
        return None
    inner = replace(scope, row=core.Argument(), inside=name)
    kept = None if node.kept is None else condition(node.kept, inner)
    if node.kept is not None and kept is None:
        return None
    if isinstance(argument, syntax.Star):
        operand = None if kept is None else _where(kept, _ONE)
        return core.AggregateOfRows(
            "COUNT", read[0], operand, _is_final(node), DataType.LONG, node.span
        )
    operand = expression(argument, inner)
    order = _sorted_by(name, node, inner)
    if operand is None or order is None or not _can_be_distinct(name, node, operand, scope):
        return None
    made = _of_values(name, operand, argument.span, scope)
    if made is None:
        return None
    operand, type = made
    is_list = name == "ARRAY_AGG"
    return core.AggregateOfRows(
        name,
        read[0],
        operand if is_list or kept is None else _where(kept, operand),
        _is_final(node),
        type,
        node.span,
        # Of equal values, the least is the least.
        distinct=node.distinct is not None and name not in ("MIN", "MAX"),
        kept=None if kept is None or not is_list else core.Asked(kept, kept.span),
        order=order,
    )


def _of_values(
    name: _Function, operand: core.Expression, span: Span, scope: Scope
) -> tuple[core.Expression, DataType] | None:
    """What an aggregate is taken of, and its type; None after an error."""
    if is_null(operand) and name in ("SUM", "AVG"):
        operand = Constant(None, DataType.INT, span)
    type = operand.type
    if name in ("SUM", "AVG") and not (type.is_numeric or type is DataType.INTERVAL):
        message = f"{name} takes numbers and INTERVALs, and this is of type {type.value}"
        scope.found.add(messages.type_mismatch(message, span))
        return None
    if name in ("MIN", "MAX") and not type.is_ordered:
        message = f"{name} takes values with an order, and this is of type {type.value}"
        scope.found.add(messages.type_mismatch(message, span))
        return None
    return operand, aggregated_type(name, type)


_ONE = Constant(1, DataType.INT, Span(0, 0))


def _where(kept: core.Truth, operand: core.Expression) -> core.Expression:
    """A value of the rows for which a condition is TRUE; NULL, which aggregates skip, of others."""
    missing = Constant(None, operand.type, kept.span)
    return core.Conditional(((kept, operand),), missing, operand.type, kept.span)


def _is_plain(name: str, node: syntax.Call, scope: Scope) -> bool:
    """Whether a call has no words that only aggregates have."""
    words = {"DISTINCT": node.distinct, "FILTER": None, "ORDER BY": None}
    words["FILTER"] = None if node.kept is None else node.kept.span
    words["ORDER BY"] = node.order[0].span if node.order else None
    for word, span in words.items():
        if span is not None:
            message = f"{word} stands in aggregates, and {name} is none"
            scope.found.add(messages.unsupported(message, span, "leave it out"))
            return False
    return True


def _can_be_distinct(name: str, node: syntax.Call, operand: core.Expression, scope: Scope) -> bool:
    """Whether the words in an aggregate fit together and its values."""
    if node.distinct is None:
        return True
    if not operand.type.is_compared:
        message = f"DISTINCT compares values, and these are of type {operand.type.value}"
        scope.found.add(messages.type_mismatch(message, node.distinct))
        return False
    if scope.defines and name not in ("MIN", "MAX"):
        message = f"{name}(DISTINCT …) cannot be kept up row by row, as a condition asks for it"
        help = "write it as a measure, and compare it in WHERE around the clause"
        scope.found.add(messages.unsupported(message, node.distinct, help))
        return False
    (argument,) = node.arguments
    for one in node.order:
        if not _same(one.expression, argument, scope):
            message = "with DISTINCT, values come in their own order"
            scope.found.add(messages.unsupported(message, one.span, "order by the argument"))
            return False
    return True


def _same(one: syntax.Expression, other: syntax.Expression | syntax.Star, scope: Scope) -> bool:
    slice = scope.found.source.slice
    return plain_text(slice(one.span)).casefold() == plain_text(slice(other.span)).casefold()


def _sorted_by(name: str, node: syntax.Call, scope: Scope) -> tuple[core.SortedBy, ...] | None:
    """The order in an aggregate; None after an error."""
    if node.order and name != "ARRAY_AGG":
        message = f"{name} of some values is the same in every order"
        span = node.order[0].span.to(node.order[-1].span)
        scope.found.add(messages.unsupported(message, span, "leave ORDER BY out"))
        return None
    made = []
    for one in node.order:
        value = expression(one.expression, scope)
        if value is None:
            return None
        if not value.type.is_ordered:
            message = f"ORDER BY takes values that have an order, and this is {value.type.value}"
            scope.found.add(messages.type_mismatch(message, one.span))
            return None
        made.append(core.SortedBy(value, one.descending, one.nulls_first))
    return tuple(made)


def _if(node: syntax.Call, scope: Scope) -> core.Expression | None:
    """`IF(p, a, b)` is CASE WHEN p THEN a ELSE b END."""
    match node.arguments:
        case (asked, then, otherwise) if not any(
            isinstance(one, syntax.Star) for one in node.arguments
        ):
            assert not isinstance(asked, syntax.Star)
            assert not isinstance(then, syntax.Star)
            assert not isinstance(otherwise, syntax.Star)
            case = syntax.Case(None, ((asked, then),), otherwise, node.span)
            return _case(case, scope)
        case _:
            scope.found.add(messages.wrong_arguments("IF", "IF(p, a, b)", node.span))
            return None


def _difference(node: syntax.Call, scope: Scope) -> core.Expression | None:
    wanted = "TIMESTAMPDIFF(SECOND, a, b)"
    if len(node.arguments) != 3:
        scope.found.add(messages.wrong_arguments("TIMESTAMPDIFF", wanted, node.span))
        return None
    unit, *ends = node.arguments
    name = unit.name.text.upper() if isinstance(unit, syntax.Column) else ""
    length = literals.MICROSECONDS.get(name.removesuffix("S") if name else "")
    if length is None:
        message = f"{scope.found.source.slice(unit.span)!r} is no unit of time"
        scope.found.add(messages.bad_interval(message, unit.span))
        return None
    times = []
    for end in ends:
        if isinstance(end, syntax.Star):
            scope.found.add(messages.wrong_arguments("TIMESTAMPDIFF", wanted, node.span))
            return None
        time = expression(end, scope)
        if time is None:
            return None
        if time.type not in TIMES and not is_null(time):
            scope.found.add(
                messages.type_mismatch(
                    f"TIMESTAMPDIFF takes times, and this is of type {time.type.value}", end.span
                )
            )
            return None
        times.append(convert(time, DataType.TIMESTAMP))
    return core.TimeDifference(length, times[0], times[1], node.span)
