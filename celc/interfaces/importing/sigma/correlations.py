"""A correlation of Sigma → clauses of CEL.

A count or a value is taken over the events of the time span that ends with an event. Where Sigma
asks for *few* events (`lt`, `lte`, `eq`, `neq` of a count), time is cut into spans, because a span
has few events only when it is over.
"""

from __future__ import annotations

from sigma.correlations import (
    CorrelationConditionAND,
    SigmaCorrelationCondition,
    SigmaCorrelationConditionOperator,
    SigmaCorrelationRule,
    SigmaCorrelationType,
    SigmaRuleReference,
)

from celc.interfaces.importing.sigma.rules_of_file import MANY, Operands, RulesOfFile
from celc.interfaces.importing.words import attribute, spelled

_OPERATORS = {
    SigmaCorrelationConditionOperator.LT: "<",
    SigmaCorrelationConditionOperator.LTE: "<=",
    SigmaCorrelationConditionOperator.GT: ">",
    SigmaCorrelationConditionOperator.GTE: ">=",
    SigmaCorrelationConditionOperator.EQ: "=",
    SigmaCorrelationConditionOperator.NEQ: "<>",
}

_FUNCTIONS = {
    SigmaCorrelationType.VALUE_COUNT: "COUNT(DISTINCT hit.{})",
    SigmaCorrelationType.VALUE_SUM: "SUM(hit.{})",
    SigmaCorrelationType.VALUE_AVG: "AVG(hit.{})",
    SigmaCorrelationType.VALUE_MEDIAN: "MEDIAN(hit.{})",
}

_LONGEST = 2**62 // 1_000_000  # seconds

_MOST_ROUNDS = 1000  # of a repetition that an automaton of CEL counts by itself

_UNITS = {
    "s": ("SECOND", 1),
    "m": ("MINUTE", 1),
    "h": ("HOUR", 1),
    "d": ("DAY", 1),
    "w": ("DAY", 7),
}


def clauses_of(file: RulesOfFile, rule: SigmaCorrelationRule, name: str) -> list[str]:
    """The clauses of the query for a correlation. A query that it reads is added to the file."""
    operands = file.operands(rule)
    kind = rule.type
    if rule.timespan.seconds > _LONGEST:
        file.places.wrong(rule.timespan.spec, f"'{rule.timespan.spec}' is longer than time goes")
        return []
    if kind is SigmaCorrelationType.TEMPORAL or kind is SigmaCorrelationType.TEMPORAL_ORDERED:
        return _in_time(file, rule, operands)
    assert isinstance(rule.condition, SigmaCorrelationCondition)
    if kind is SigmaCorrelationType.EVENT_COUNT:
        return _counted(file, rule, operands, rule.condition)
    if kind in _FUNCTIONS:
        return _of_values(file, rule, operands, rule.condition, name)
    file.places.wrong(
        kind.name.lower(), f"a correlation by {kind.name.lower()} cannot be translated"
    )
    return []


def _in_time(file: RulesOfFile, rule: SigmaCorrelationRule, operands: Operands) -> list[str]:
    condition = rule.condition
    if not isinstance(condition, SigmaCorrelationCondition):
        found = condition.parsed
        alternatives = found.args if isinstance(found, CorrelationConditionAND) else [found]
        if not all(isinstance(one, SigmaRuleReference) for one in alternatives):
            file.places.wrong(
                condition.expression,
                "of the conditions over rules, 'a and b' alone can be translated",
                "write a correlation for each alternative",
            )
    elif not _asks_for_all(condition, len(operands.rules)):
        file.places.wrong(
            condition.op.name.lower(),
            "some of the rules alone cannot be asked for; without a condition, all of them are",
            "write a correlation for each choice",
        )
    names = [one.reference for one in operands.rules]
    for one in {one for one in names if names.count(one) > 1}:
        if rule.type is SigmaCorrelationType.TEMPORAL:
            file.places.wrong(one, f"'{one}' is named twice, and in any order that is once")
    labels = file.labels(operands.rules)
    parts = [
        file.operand(one, label, operands.keys if number == 0 else ())
        for number, (one, label) in enumerate(zip(operands.rules, labels, strict=True))
    ]
    if rule.type is SigmaCorrelationType.TEMPORAL:
        formula = " ALL ".join(parts)
    else:
        formula = " ; FIRST ".join(parts)
    return _query("*", operands, formula, _span(file, rule), alarm=_span_text(rule))


def _asks_for_all(condition: SigmaCorrelationCondition, rules: int) -> bool:
    operator = condition.op
    if operator is SigmaCorrelationConditionOperator.GT:
        return condition.count == rules - 1
    is_same = operator in (
        SigmaCorrelationConditionOperator.GTE,
        SigmaCorrelationConditionOperator.EQ,
    )
    return is_same and condition.count == rules


def _counted(
    file: RulesOfFile,
    rule: SigmaCorrelationRule,
    operands: Operands,
    condition: SigmaCorrelationCondition,
) -> list[str]:
    count = condition.count
    if condition.fieldref:
        file.places.wrong("field", "events are counted without a field: value_count has one")
    if not isinstance(count, int):
        file.places.wrong(str(count), "a count is compared with a whole number")
        return []
    if condition.op not in MANY:
        found = [
            "SELECT TOTAL COUNT(*) AS events",
            f"FROM {', '.join(operands.streams)}",
            f"WHERE {_any_of(file, operands, 'hit')}",
        ]
        file.has_span = True
        return [
            *found,
            *_partition(operands),
            f"PER {_span_text(rule)}",
            f"HAVING events {_OPERATORS[condition.op]} {count}",
        ]
    least = count + (condition.op is SigmaCorrelationConditionOperator.GT)
    if least > _MOST_ROUNDS:
        file.places.wrong(str(count), f"at most {_MOST_ROUNDS} events can be counted here")
        return []
    if least < 1:
        file.places.wrong(str(count), "each span has so many events")
    formula = _any_of(file, operands, "hit" if least == 1 else "first")
    if least > 1:
        more = _any_of(file, Operands(operands.rules, operands.streams, ()), "more")
        more = more if more.startswith("(") else f"({more})"
        formula += f" ; (FIRST {more})" + (f"{{{least - 1}}}" if least > 2 else "")
        formula = (
            formula if least > 2 else formula.replace(f" ; (FIRST {more})", f" ; FIRST {more}")
        )
    return _query("*", operands, formula, _span(file, rule), alarm=_span_text(rule))


def _of_values(
    file: RulesOfFile,
    rule: SigmaCorrelationRule,
    operands: Operands,
    condition: SigmaCorrelationCondition,
    name: str,
) -> list[str]:
    """A value over the events of a span: one query computes it, another one compares it."""
    fields = [condition.fieldref] if isinstance(condition.fieldref, str) else condition.fieldref
    if not fields or len(fields) > 1:
        file.places.wrong("field", "the values of one field are counted here")
        return []
    if rule.type is SigmaCorrelationType.VALUE_COUNT and condition.op not in MANY:
        file.places.wrong(
            condition.op.name.lower(),
            "few different values cannot be asked for: it is known only when the span is over",
        )
    if rule.type is not SigmaCorrelationType.VALUE_COUNT:
        file.fields.expect(
            fields[0], file.fields.kind(fields[0]) or "LONG", file.places.of(fields[0])
        )
    file.use(operands.rules, fields[0])
    value = _FUNCTIONS[rule.type].format(attribute(fields[0]))
    inner = f"{name}_values"
    repeated = _any_of(file, operands, "hit")
    repeated = repeated if repeated.startswith("(") else f"({repeated})"
    file.add_query(
        inner,
        [],
        _query(f"{value} AS value", operands, f"{repeated}+", _span(file, rule), selector="MAX "),
    )
    compared = f"{spelled(inner)}.value {_OPERATORS[condition.op]} {condition.count}"
    return _query(
        "*",
        Operands(operands.rules, [spelled(inner)], operands.keys),
        f"{spelled(inner)} FILTER {compared}",
        None,
        alarm=_span_text(rule),
    )


def _any_of(file: RulesOfFile, operands: Operands, label: str) -> str:
    """An event of one of the rules."""
    parts = [file.operand(one, label, operands.keys) for one in operands.rules]
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def _query(
    columns: str,
    operands: Operands,
    formula: str,
    window: str | None,
    *,
    selector: str = "",
    alarm: str | None = None,
) -> list[str]:
    return [
        f"SELECT {selector}{columns}",
        f"FROM {', '.join(operands.streams)}",
        f"WHERE {formula}",
        *_partition(operands),
        *([f"WITHIN {window}"] if window else []),
        *([f"LIMIT 1 PER {alarm}"] if alarm else []),
    ]


def _partition(operands: Operands) -> list[str]:
    keys = ", ".join(attribute(key) for key in operands.keys)
    return [f"PARTITION BY {keys}"] if keys else []


def _span(file: RulesOfFile, rule: SigmaCorrelationRule) -> str:
    return f"{_span_text(rule)} [{attribute(file.columns.time)}]"


def _span_text(rule: SigmaCorrelationRule) -> str:
    span = rule.timespan
    unit, times = _UNITS.get(span.unit, ("SECOND", 0))
    number = span.count * times if times else span.seconds
    return f"{number} {unit}{'' if number == 1 else 'S'}"
