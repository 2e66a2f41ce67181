"""Conditions: typed comparisons without NOT, `x[p]` and BETWEEN.

The result is a tree of AND and OR over predicates; `celc.core.cnf` makes it an AND of ORs.
NOT moves down to the comparisons with the negations of three-valued logic: `NOT (a < b)` is
`a >= b`, because both are NULL for the same values.
"""

from dataclasses import replace
from typing import Literal, assert_never

from celc.core import formula as core
from celc.core.answers import is_like
from celc.core.like import looks_like_regex, regex_to_like
from celc.core.terms import labels_chosen_from, labels_looked_back_at, labels_named
from celc.core.traversal import nodes_of, predicates_of
from celc.diagnostics.deadline import look
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import aggregates, functions, names, parameters, types, warnings
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.parse.durations import spelled
from celc.resolve.event_types import types_called
from celc.resolve.extents import Binding
from celc.resolve.types import functions as calls
from celc.resolve.types import meant
from celc.resolve.types.conversions import Misfit, convert, is_null, meeting_type
from celc.resolve.types.derived import of_event
from celc.resolve.types.expressions import Site, binding_of, expression, named_set
from celc.resolve.types.regexes import refusal_of_regex


def condition(node: syntax.Condition, site: Site, *, negated: bool = False) -> core.Truth | None:
    """The condition, or its negation, as AND and OR over predicates; None after an error."""
    look(node.span)
    match node:
        case syntax.NotCondition():
            return condition(node.operand, site, negated=not negated)
        case syntax.AndCondition():
            return _junction(node, site, negated, core.Some if negated else core.Every)
        case syntax.OrCondition():
            return _junction(node, site, negated, core.Every if negated else core.Some)
        case syntax.Comparison():
            return _comparison(node, site, negated)
        case syntax.Between():
            return _between(node, site, negated != node.negated)
        case syntax.InList():
            return _in_list(node, site, negated != node.negated)
        case syntax.PatternMatch():
            return _pattern(node, site, negated != node.negated)
        case syntax.NullTest():
            operand = expression(node.operand, site)
            if operand is None:
                return None
            return core.NullTest(operand, negated != node.negated, node.span)
        case syntax.Holds():
            return _holds(node, site, negated)
        case syntax.DistinctTest():
            return _distinct_test(node, site, negated != node.negated)
        case syntax.TypeTest():
            return _type_test(node, site, negated != node.negated)
        case syntax.EventCondition():
            return _event_condition(node, site, negated)
        case syntax.Quantified():
            return _quantified(node, site, negated)
        case _:
            assert_never(node)


def _junction(
    node: syntax.AndCondition | syntax.OrCondition,
    site: Site,
    negated: bool,
    kind: type[core.Every] | type[core.Some],
) -> core.Truth | None:
    parts: list[core.Truth] = []
    for operand in node.operands:
        part = condition(operand, site, negated=negated)
        if part is not None:
            parts.append(part)
    return kind(tuple(parts), node.span) if len(parts) == len(node.operands) else None


def _event_condition(node: syntax.EventCondition, site: Site, negated: bool) -> core.Truth | None:
    label = node.label
    assert site.inside is None, "the parser refuses brackets inside x[…]"
    if binding_of(label.text, label.span, site) is None:
        return None
    return condition(node.condition, replace(site, inside=label.text), negated=negated)


def _quantified(node: syntax.Quantified, site: Site, negated: bool) -> core.Truth | None:
    word = "EVERY" if node.every else "SOME"
    bindings = [binding_of(label.text, label.span, site) for label in node.labels]
    labels = tuple(label.text for label in node.labels)
    for place, label in enumerate(node.labels):
        if label.text in labels[:place]:
            site.found.add(names.quantified_twice(word, label.text, label.span))
            return None
    asked = condition(node.condition, site)
    if asked is None or None in bindings:
        return None
    chosen = {one for part in predicates_of(asked) for one in labels_chosen_from(part)}
    unnamed = [label for label in node.labels if label.text not in chosen]
    for label in unnamed:
        inside = any(label.text in labels_named(part) for part in predicates_of(asked))
        site.found.add(names.quantified_unnamed(word, label.text, inside, label.span))
    if unnamed:
        return None
    single = all(
        one is not None and (one.extent.least, one.extent.most) == (1, 1) for one in bindings
    )
    looks = any(map(labels_looked_back_at, predicates_of(asked)))
    # Of one position SOME and EVERY ask the same, but where nothing is before a position. What is
    # asked of every position is a condition like others.
    every = not negated if single and not looks else node.every
    return core.Quantified(labels, asked, every, negated, node.span)


def _type_test(node: syntax.TypeTest, site: Site, negated: bool) -> core.Truth | None:
    label = node.label
    bound = binding_of(label.text, label.span, site)
    if bound is None and site.declared is not None:
        return None
    mask = types_called(node.stream, node.type, site.schema, site.found)
    if bound is None or not mask:
        return None
    texts = tuple(map(core.text_of_type, site.schema.types_of(mask)))
    operand = core.AttributeValue(label.text, core.TYPE, core.DataType.STRING, label.span)
    asked = core.Membership(operand, texts, False, negated, node.span)
    return _answer(asked, bound, site) if site.use == "select" else asked


def _answer(asked: core.Membership, bound: Binding, site: Site) -> core.Truth | None:
    """What SELECT knows of `x IS R`: a column of the event that says it."""
    assert isinstance(asked.operand, core.AttributeValue)
    if (bound.extent.least, bound.extent.most) != (1, 1):
        text, label = site.found.source.slice(asked.span), asked.operand.label
        site.found.add(types.type_of_many(text, label, not bound.extent.least, asked.span))
        return None
    truths = (core.Constant(one, core.DataType.BOOLEAN, asked.span) for one in (True, False))
    yes, no = truths
    value = core.Conditional(((asked, yes),), no, core.DataType.BOOLEAN, asked.span)
    return core.Comparison("=", of_event(value, site), yes, asked.span)


def _holds(node: syntax.Holds, site: Site, negated: bool) -> core.Truth | None:
    """A value as a condition. It is compared with TRUE, so later stages need no case for it."""
    if meant.joins_conditions(node, site):
        return None
    value = expression(node.value, site)
    if value is None:
        return None
    if value.type is not core.DataType.BOOLEAN:
        text = site.found.source.slice(node.span)
        site.found.add(types.not_a_condition(text, value.type.value, node.span))
        return None
    operator: syntax.ComparisonOperator = "!=" if negated else "="
    return core.Comparison(
        operator, value, core.Constant(True, core.DataType.BOOLEAN, node.span), node.span
    )


def _comparison(node: syntax.Comparison, site: Site, negated: bool) -> core.Truth | None:
    if meant.asks_for_type(node, site) or meant.joins_conditions(node, site):
        return None
    left, right = expression(node.left, site), expression(node.right, site)
    operator = core.NEGATED[node.operator] if negated else node.operator
    return _compared(operator, left, right, node.span, site)


def _distinct_test(node: syntax.DistinctTest, site: Site, negated: bool) -> core.Truth | None:
    """Whether two values differ, where NULL is a value like others."""
    left, right = expression(node.left, site), expression(node.right, site)
    compared = _compared("=" if negated else "!=", left, right, node.span, site)
    if compared is None:
        return None
    one, other = compared.left, compared.right

    def null(value: core.Expression, *, known: bool) -> core.NullTest:
        return core.NullTest(value, known, node.span)

    def both(first: bool, second: bool) -> core.Every:
        return core.Every((null(one, known=first), null(other, known=second)), node.span)

    if negated:
        return core.Some((compared, both(False, False)), node.span)
    return core.Some((compared, both(True, False), both(False, True)), node.span)


def _compared(
    operator: syntax.ComparisonOperator,
    left: core.Expression | None,
    right: core.Expression | None,
    span: Span,
    site: Site,
) -> core.Comparison | None:
    if left is None or right is None:
        return None
    of_bytes = all(side.type is core.DataType.BINARY or is_null(side) for side in (left, right))
    if operator in ("=", "!=") and of_bytes and not (is_null(left) and is_null(right)):
        one, other = (calls.of_bytes(side, site) for side in (left, right))
        return None if one is None or other is None else _met(operator, one, other, span, site)
    return _met(operator, left, right, span, site)


def _met(
    operator: syntax.ComparisonOperator,
    left: core.Expression,
    right: core.Expression,
    span: Span,
    site: Site,
) -> core.Comparison | None:
    """A comparison in the type in which both sides meet."""
    data_type = meeting_type([left, right])
    if data_type is None:
        site.found.add(types.two_nulls(span))
        return None
    if isinstance(data_type, Misfit):
        text = _literal_text(left, right, site)
        is_text = text is not None and core.DataType.STRING in (left.type, right.type)
        duration = spelled(text[0].strip("'")) if text is not None and is_text else None
        site.found.add(
            types.compared_types(left.type.value, right.type.value, span, text, duration)
        )
        return None
    return core.Comparison(operator, convert(left, data_type), convert(right, data_type), span)


def _literal_text(
    left: core.Expression, right: core.Expression, site: Site
) -> tuple[str, Span] | None:
    """The text of the side of a comparison that names no label; None where both sides name one."""
    for side, other in ((right, left), (left, right)):
        if not _naming([side]) and _naming([other]):
            return site.found.source.slice(side.span), side.span
    return None


def _between(node: syntax.Between, site: Site, negated: bool) -> core.Truth | None:
    operand = expression(node.operand, site)
    low, high = expression(node.low, site), expression(node.high, site)
    above = _compared("<" if negated else ">=", operand, low, node.span, site)
    below = _compared(">" if negated else "<=", operand, high, node.span, site)
    if above is None or below is None:
        return None
    assert low is not None
    assert high is not None
    above, below = replace(above, beside=_naming([high])), replace(below, beside=_naming([low]))
    return (core.Some if negated else core.Every)((above, below), node.span)


def _in_list(node: syntax.InList, site: Site, negated: bool) -> core.Truth | None:
    if meant.asks_for_type(node, site):
        return None
    operand = expression(node.operand, site)
    items = [expression(item, site) for item in node.items]
    known = [item for item in items if item is not None]
    if operand is None or len(known) < len(items):
        return None
    data_type = _list_type(operand, known, node.span, site)
    if data_type is None:
        return None
    operand = convert(operand, data_type)
    values: dict[int | float | str | bool, None] = {}
    has_null = False
    others: list[core.Truth] = []
    beside = _naming(known)
    for item in known:
        item = convert(item, data_type)
        if not isinstance(item, core.Constant):
            operator: syntax.ComparisonOperator = "!=" if negated else "="
            others.append(core.Comparison(operator, operand, item, item.span, beside))
        elif item.value is None:
            has_null = True
        else:
            values[item.value] = None
    if len(others) < len(known):
        others.insert(
            0, core.Membership(operand, tuple(values), has_null, negated, node.span, beside)
        )
    if len(others) == 1:
        return others[0]
    return (core.Every if negated else core.Some)(tuple(others), node.span)


def _naming(operands: list[core.Expression]) -> tuple[core.Expression, ...]:
    """Operands that name, or look back at, a label that no operand before them does. They are kept
    with each comparison that is written out, so there must be few."""
    kept: dict[tuple[str, str, int], core.Expression] = {}
    for operand in operands:
        for node in nodes_of(operand):
            match node:
                case core.AttributeValue():
                    kept.setdefault((node.label, "AttributeValue", 0), operand)
                case core.Previous():
                    kept.setdefault((node.label, "Previous", node.distance), operand)
                case core.Aggregate():
                    kept.setdefault((node.label, "Aggregate", node.prior), operand)
                case _:
                    pass
    return tuple(dict.fromkeys(kept.values()))


def _list_type(
    operand: core.Expression, items: list[core.Expression], span: Span, site: Site
) -> core.DataType | None:
    """The common type of the operand and all items of IN."""
    data_type = meeting_type([operand, *items])
    if isinstance(data_type, Misfit):
        item, before = items[data_type.number - 1], data_type.before.value
        site.found.add(types.list_types(before, item.type.value, data_type.number, item.span))
        return None
    if data_type is None:
        site.found.add(types.two_nulls(span))
    return data_type


def _pattern(node: syntax.PatternMatch, site: Site, negated: bool) -> core.Truth | None:
    operand = expression(node.operand, site)
    if isinstance(node.pattern, syntax.Attribute):
        return _pattern_of_set(node, node.pattern, operand, site, negated)
    sound = is_sound(node.operator, node.pattern.value, node.pattern.span, site.found)
    if operand is None:
        return None
    if is_null(operand):
        operand = convert(operand, core.DataType.STRING)
    if operand.type is not core.DataType.STRING:
        site.found.add(types.not_a_string(node.operator, operand.type.value, operand.span))
        return None
    if not sound:
        return None
    is_between = site.use == "filter" and site.declared is None
    if isinstance(operand, core.Call) and is_between:
        site.found.add(functions.between_events(node.operator, operand.span))
        return None
    if node.operator == "LIKE" and looks_like_regex(node.pattern.value):
        site.found.add(warnings.like_regex(_meant_by(node, site), node.span))
    asked = core.PatternMatch(node.operator, operand, node.pattern.value, negated, node.span)
    if site.declared is not None:
        return site.declared.pattern(asked)
    if is_between and isinstance(operand, core.Aggregate) and operand.own is not None:
        if operand.own.makes_texts and node.operator == "RLIKE":
            site.found.add(aggregates.regex_of_made(operand.own.name, node.span))
            return None
        return is_like(operand, asked)
    return asked


def _pattern_of_set(
    node: syntax.PatternMatch,
    pattern: syntax.Attribute,
    operand: core.Expression | None,
    site: Site,
    negated: bool,
) -> core.Truth | None:
    """`x.a LIKE rule.p`: a column holds the answer, which the runtime finds for each event and
    row."""
    each, operator = named_set(pattern, site), node.operator
    if each is None:
        text = site.found.source.slice(pattern.span)
        site.found.add(parameters.pattern_of_label(operator, text, pattern.span))
        return None
    value = each.value(pattern.attribute, pattern.span, site.found)
    if value is None or operand is None:
        return None
    if value.type is not core.DataType.STRING:
        site.found.add(parameters.pattern_type(operator, value.type.value, pattern.span))
        return None
    if operand.type is not core.DataType.STRING:
        site.found.add(types.not_a_string(operator, operand.type.value, operand.span))
        return None
    is_taken = isinstance(operand, core.AttributeValue | core.Previous)
    is_taken |= isinstance(operand, core.Aggregate) and operand.function in ("FIRST", "LAST", "NTH")
    if not is_taken:
        site.found.add(parameters.pattern_of_computed(operator, operand.span))
        return None
    assert isinstance(operand, core.AttributeValue | core.Previous | core.Aggregate)
    assert operand.attribute is not None
    column = each.pattern(operator, operand.attribute, value.name)
    answer = replace(operand, attribute=column, type=core.DataType.BOOLEAN)
    return core.Comparison(
        "=", answer, core.Constant(not negated, core.DataType.BOOLEAN, node.span), node.span
    )


def _meant_by(node: syntax.PatternMatch, site: Site) -> list[str]:
    """The conditions that LIKE with a regular expression could mean."""
    assert isinstance(node.pattern, syntax.TextLiteral)
    source = site.found.source
    before = source.slice(Span(node.span.start, node.operand.span.end))
    negation = "NOT " if node.negated else ""
    choices = []
    pattern = regex_to_like(node.pattern.value)
    if pattern is not None:
        text = pattern.replace("'", "''")
        choices.append(f"{before} {negation}LIKE '{text}'")
    if refusal_of_regex(node.pattern.value) is None:
        choices.append(f"{before} {negation}RLIKE {source.slice(node.pattern.span)}")
    return choices


def is_sound(
    operator: Literal["LIKE", "RLIKE"], pattern: str, span: Span, found: Diagnostics
) -> bool:
    """Whether a pattern is one; if not, that is reported."""
    if operator == "RLIKE":
        reason = refusal_of_regex(pattern)
        if reason is not None:
            found.add(types.invalid_regex(reason, span))
        return reason is None
    # Like Spark, which refuses an escape before a character that needs none.
    at = pattern.find("\\")
    while at >= 0:
        following = pattern[at + 1 : at + 2]
        if following not in ("%", "_", "\\"):
            found.add(types.like_escape(following or None, span))
            return False
        at = pattern.find("\\", at + 2)
    return True
