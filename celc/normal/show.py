"""Core expressions and conditions as text, for dumps and for comments in generated code."""

import datetime
from decimal import Decimal
from typing import assert_never

from celc.core import formula as core
from celc.core.terms import type_tested
from celc.core.traversal import IN_ROW_PATTERNS
from celc.normal.normal_form import EVENT, ROLE, SUPPORT, EventClause

_LONGEST_LIST = 8


def show_expression(expression: core.Expression) -> str:
    """An expression in the language's notation, without implicit casts."""
    match expression:
        case core.Constant():
            return show_constant(expression.value, expression.type)
        case core.AttributeValue():
            return _attribute(expression.label, expression.attribute)
        case core.Arithmetic():
            left, right = show_expression(expression.left), show_expression(expression.right)
            return f"({left} {expression.operator} {right})"
        case core.Negation():
            return f"-{show_expression(expression.operand)}"
        case core.Absolute():
            return f"ABS({show_expression(expression.operand)})"
        case core.Cast():
            return show_expression(expression.operand)
        case core.Aggregate():
            names = expression.attributes
            taken = ", ".join(_attribute(expression.label, name) for name in names)
            return call_text(expression, taken or expression.label)
        case core.Previous():
            before = "" if expression.distance == 1 else f", {expression.distance}"
            return f"PREV({_attribute(expression.label, expression.attribute)}{before})"
        case core.TotalOf():
            label = "*" if expression.label is None else expression.label
            taken = (
                label if expression.attribute is None else _attribute(label, expression.attribute)
            )
            return f"{expression.function}({taken})"
        case core.Variable():
            return expression.name
        case core.Choice():
            return f"{expression.function}({', '.join(map(show_expression, expression.operands))})"
        case core.Call():
            return _call(expression)
        case core.OwnCall(operands=lists):
            taken = ", ".join(_attribute(one.label, str(one.attribute)) for one in lists)
            prior = "PRIOR " if lists[0].prior else ""
            return f"{expression.function.name}({prior}{taken})"
        case core.Conditional():
            otherwise = show_expression(expression.otherwise)
            if len(expression.branches) == 1:
                ((asked, then),) = expression.branches
                return f"IF({show_truth(asked)}, {show_expression(then)}, {otherwise})"
            ways = " ".join(
                f"WHEN {show_truth(asked)} THEN {show_expression(then)}"
                for asked, then in expression.branches
            )
            return f"CASE {ways} ELSE {otherwise} END"
        case core.TimeDifference() | core.InRowPatterns():
            raise AssertionError(IN_ROW_PATTERNS)
        case _:
            assert_never(expression)


def _call(call: core.Call) -> str:
    operands = [show_expression(one) for one in call.operands]
    if call.zone not in (None, "UTC"):
        operands[-1] += f" AT TIME ZONE '{call.zone}'"
    return f"{call.function}({', '.join(operands)})"


def call_text(node: core.Aggregate, arguments: str) -> str:
    prior = "PRIOR " if node.prior else ""
    arguments += f", {node.place}" if node.place else ""
    if node.function == "DISTINCT":
        return f"COUNT(DISTINCT {prior}{arguments})"
    return f"{node.function if node.own is None else node.own.name}({prior}{arguments})"


def show_truth(truth: core.Truth) -> str:
    match truth:
        case core.Every():
            return " AND ".join(map(_part, truth.parts))
        case core.Some():
            return " OR ".join(map(_part, truth.parts))
        case _:
            return show_predicate(truth)


def _part(truth: core.Truth) -> str:
    text = show_truth(truth)
    return f"({text})" if isinstance(truth, core.Every | core.Some) else text


def _attribute(label: str, attribute: str) -> str:
    return attribute if label == EVENT else f"{label}.{attribute}"


def show_constant(value: object, type: core.DataType) -> str:
    match value, type:
        case None, _:
            return "NULL"
        case bool(), _:
            return "TRUE" if value else "FALSE"
        case int(), core.DataType.TIMESTAMP:
            return f"TIMESTAMP '{_timestamp(value)}'"
        case int(), core.DataType.TIMESTAMP_NTZ:
            return f"CAST(TIMESTAMP '{_timestamp(value)}' AS TIMESTAMP_NTZ)"
        case int(), core.DataType.DATE:
            return f"DATE '{_date(value)}'"
        case int(), core.DataType.INTERVAL:
            return show_interval(value)
        case int(), core.DecimalType(scale=scale) if scale:
            return format(Decimal(f"{value}e-{scale}"), "f")
        case str(), _:
            return "'" + value.replace("'", "''") + "'"
        case _:
            return repr(value)


_UNITS = (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000))


def show_interval(microseconds: int) -> str:
    if microseconds < 0:
        return f"-({show_interval(-microseconds)})"
    parts, rest = [], microseconds
    for unit, size in (*_UNITS, ("SECOND", 1_000_000), ("MILLISECOND", 1_000)):
        count, rest = divmod(rest, size)
        if unit == "MILLISECOND" and rest:
            parts.append(f"{count}.{rest:03} {unit}S")
        elif count:
            parts.append(f"{count} {unit}{'' if count == 1 else 'S'}")
    return " ".join(parts) or "0 SECONDS"


def _timestamp(microseconds: int) -> str:
    epoch = datetime.datetime(1970, 1, 1)
    return str(epoch + datetime.timedelta(microseconds=microseconds))


def _date(days: int) -> str:
    return str(datetime.date(1970, 1, 1) + datetime.timedelta(days=days))


def show_predicate(predicate: core.Predicate) -> str:
    """A predicate in the language's notation. Long lists are cut; their length is shown."""
    match predicate:
        case core.Comparison():
            left, right = show_expression(predicate.left), show_expression(predicate.right)
            return f"{left} {predicate.operator} {right}"
        case core.Membership() if type_tested(predicate) is not None:
            names = dict.fromkeys(str(value).partition(">")[2] for value in predicate.values)
            word = "IS NOT" if predicate.negated else "IS"
            return f"{type_tested(predicate)} {word} {' or '.join(names)}"
        case core.Membership():
            type = predicate.operand.type
            values = [show_constant(value, type) for value in predicate.values[:_LONGEST_LIST]]
            if len(predicate.values) > _LONGEST_LIST:
                values.append(f"… {len(predicate.values):,} in all")
            if predicate.has_null:
                values.append("NULL")
            word = "NOT IN" if predicate.negated else "IN"
            return f"{show_expression(predicate.operand)} {word} ({', '.join(values)})"
        case core.PatternMatch():
            word = f"{'NOT ' if predicate.negated else ''}{predicate.operator}"
            pattern = show_constant(predicate.pattern, core.DataType.STRING)
            return f"{show_expression(predicate.operand)} {word} {pattern}"
        case core.NullTest():
            word = "IS NOT NULL" if predicate.negated else "IS NULL"
            return f"{show_expression(predicate.operand)} {word}"
        case core.Quantified():
            word = f"{'NOT ' if predicate.negated else ''}{'EVERY' if predicate.every else 'SOME'}"
            labels = (label.removeprefix(ROLE) for label in predicate.labels)
            return f"({word} {', '.join(labels)}: {show_truth(predicate.condition)})"
        case _:
            assert_never(predicate)


def show_window(window: core.Window) -> str:
    """A window as `WITHIN[3 EVENTS]`; a duration in microseconds."""
    return f"WITHIN[{_size(window)}]"


def show_length(length: core.Window) -> str:
    """The length of an absence as `FOR 3 EVENTS`; a duration in microseconds."""
    return f"FOR {_size(length)}"


def _size(window: core.Window) -> str:
    unit = "" if window.unit is core.WindowUnit.VALUE else f" {window.unit.value}"
    attribute = "" if window.attribute is None else f" [{window.attribute.name}]"
    return f"{window.size}{unit}{attribute}"


def show_clause(clause: EventClause | core.Clause) -> str:
    return " OR ".join(map(show_predicate, clause.predicates)) or "FALSE"


def show_clauses(clauses: tuple[EventClause, ...]) -> str:
    parts = [show_clause(clause) for clause in clauses]
    if len(parts) > 1:
        parts = [
            f"({part})" if len(clause.predicates) > 1 else part
            for part, clause in zip(parts, clauses, strict=True)
        ]
    return " AND ".join(parts)


def show_event(event_type: core.EventType, clauses: tuple[EventClause, ...]) -> str:
    """Events of a type that satisfy conditions, as in `T[value > 40.0]`."""
    if not clauses:
        return event_type.name
    parts = [show_clause(clause) for clause in clauses]
    if len(parts) > 1:
        parts = [f"({part})" if " OR " in part else part for part in parts]
    return f"{event_type.name}[{' AND '.join(parts)}]"


def show_labels(labels: tuple[str, ...]) -> str:
    """A label set, `{x, y}`. `•` is an event that counts for a selector but shows no label. Roles
    follow: `{x} role 0`."""
    names = [label for label in labels if label != SUPPORT and not label.startswith(ROLE)]
    text = "•" if SUPPORT in labels and not names else "{" + ", ".join(names) + "}"
    roles = (label.removeprefix(ROLE) for label in labels if label.startswith(ROLE))
    return " ".join([text, *roles])
