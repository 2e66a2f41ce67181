"""Expressions: names resolved, types found, casts made explicit as Spark SQL inserts them.

A function returns None for an expression without meaning, after reporting why. No further errors
are reported for the parts around such an expression.

Long: a function for each kind of expression, and they call one another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import assert_never, cast

from celc_runtime.values.functions import FUNCTIONS as TABLE

from celc.core import formula as core
from celc.diagnostics.errors import Diagnostic
from celc.diagnostics.messages import aggregates, names, parameters, totals, types, warnings
from celc.diagnostics.messages.functions import FUNCTIONS
from celc.diagnostics.messages.wording import counted, names_with_signs_around, quote, written
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.parse.conditions import MOST_DISTANCE
from celc.resolve.extents import Binding
from celc.resolve.parameters import ForEach
from celc.resolve.scopes import look_up, visible_labels
from celc.resolve.types import functions as calls
from celc.resolve.types import literals
from celc.resolve.types.conversions import (
    aggregated_type,
    arithmetic,
    calculates_with_times,
    common_type,
    is_null,
    is_taken_as,
    negation,
)
from celc.resolve.types.derived import of_event
from celc.resolve.types.own_functions import own_call
from celc.resolve.types.parts import part
from celc.resolve.types.site import Site as Site

_ORDERED = (
    *(*core.NUMBERS, *core.TIMES, core.DataType.TIMESTAMP_NTZ),
    *(core.DataType.INTERVAL, core.DataType.BOOLEAN),
)
_AGGREGATED_TYPES: Mapping[str, tuple[core.DataType, ...]] = {
    "MIN": _ORDERED,
    "MAX": _ORDERED,
    "SUM": (*core.NUMBERS, core.DataType.INTERVAL),
    "AVG": (*core.NUMBERS, core.DataType.INTERVAL),
    "VARIANCE": core.NUMBERS,
    "STDDEV": core.NUMBERS,
    "MEDIAN": (*core.NUMBERS, core.DataType.INTERVAL),
}
AGGREGATES = ("FIRST", "LAST", "NTH", *_AGGREGATED_TYPES, "COUNT")
_OF_POSITIONS = (*AGGREGATES, "PREV", "COLLECT")
_FUNCTIONS = {
    "filter": (*AGGREGATES, "PREV", "ABS"),
    "select": (*AGGREGATES, "COLLECT", "ABS"),
}


# --- names ----------------------------------------------------------------------------------------


def binding_of(label: str, span: Span, site: Site) -> Binding | None:
    """The binding of a label that an expression names."""
    key = (label, None)
    if key not in site.known:
        seen = look_up(site.frame, label)
        site.known[key] = None if seen is None else seen[0]
        if seen is None:
            _report_unbound(label, span, site)
    return cast("Binding | None", site.known[key])


def _report_unbound(label: str, span: Span, site: Site) -> None:
    if site.declared is not None:
        site.declared.no_label(label, span, site)
        return
    if label in site.schema.declarations.parameters:
        site.found.add(_misplaced_set(label, span, site))
        return
    visible = visible_labels(site.frame)
    hidden = site.hidden.get(label)
    if hidden is not None:
        site.found.add(names.hidden_label(label, hidden.why, visible, span, hidden.place))
    elif site.use == "select":
        site.found.add(names.unbound_in_select(label, visible, _values_of(label, site), span))
    else:
        site.found.add(names.unbound_label(label, visible, label in site.schema.masks, span))


def named_set(node: syntax.Attribute, site: Site) -> ForEach | None:
    """The parameter set that `rule.a` names; None where `rule` is something else."""
    each = site.schema.for_each
    if each is None or node.label is None or node.label.text != each.set.name:
        return None
    return each


def _misplaced_set(name: str, span: Span, site: Site) -> Diagnostic:
    each = site.schema.for_each
    if each is None:
        return parameters.not_for_each(name, span)
    if each.set.name != name:
        return parameters.other_set(name, each.set.name, span, each.clause)
    return parameters.set_as_label(name, span)


def _values_of(attribute: str, site: Site) -> list[str]:
    """Expressions of SELECT for an attribute: its only value, or one or two values of each label
    that has it."""
    found = []
    for label in labels_having(attribute, site):
        extent = site.frame.labels[label].extent
        value = f"{written(label)}.{written(attribute)}"
        found.append(value if (extent.least, extent.most) == (1, 1) else f"FIRST({value})")
    return found


def attribute_type(
    label: str, label_span: Span, attribute: syntax.Name, site: Site
) -> core.DataType | None:
    """The type of `label.attribute`; warns where some event types of the label lack it."""
    key = (label, attribute.text)
    if key not in site.known:
        binding = binding_of(label, label_span, site)
        site.known[key] = None if binding is None else _type_in(binding, label, attribute, site)
    return cast("core.DataType | None", site.known[key])


def _type_in(
    binding: Binding, label: str, attribute: syntax.Name, site: Site
) -> core.DataType | None:
    schema, mask = site.schema, binding.extent.types
    if attribute.text in schema.flawed:
        return None
    if not mask and (attribute.text in schema.types or not site.found.has_errors):
        # AND leaves the label without positions; conditions on it still have a meaning. (After an
        # error, the label's atom may just be an unknown type.)
        mask = (1 << len(schema.event_types)) - 1
        if attribute.text in schema.types:
            return schema.types[attribute.text]
    lacking = mask & schema.lacking(attribute.text)
    if lacking == mask:
        # No event types at all: the atom was unknown, which has been reported.
        if mask:
            offered = [declared.name for declared in schema.attributes_of(mask)]
            of_types = schema.names_of(mask)
            text, span = site.found.source.text, attribute.span
            site.found.add(
                names_with_signs_around(text, span, offered)
                or names.unknown_attribute(
                    attribute.text, label, of_types, offered, span, end=_end_of_row(mask, site)
                )
            )
        return None
    if lacking:
        site.found.add(
            warnings.missing_attribute(
                attribute.text, label, schema.names_of(lacking), attribute.span
            )
        )
    return schema.types[attribute.text]


def _end_of_row(mask: int, site: Site) -> str:
    """The attribute that is the end of rows, where all these events are rows of queries; else
    empty."""
    ends = {rows.stream.event_types[0]: rows.order_by for _, rows in site.schema.read}
    found = {one.name for kind in site.schema.types_of(mask) for one in ends.get(kind, ())[:1]}
    is_row = all(ends.get(kind) for kind in site.schema.types_of(mask))
    return min(found) if found and is_row else ""


# --- expressions ----------------------------------------------------------------------------------


def expression(node: syntax.Expression, site: Site) -> core.Expression | None:
    """An expression with its type."""
    match node:
        case syntax.IntegerLiteral():
            return _integer(node, node.value, site)
        case syntax.DoubleLiteral():
            return literals.double(node, site.found)
        case syntax.TextLiteral():
            return core.Constant(node.value, core.DataType.STRING, node.span)
        case syntax.BooleanLiteral():
            return core.Constant(node.value, core.DataType.BOOLEAN, node.span)
        case syntax.NullLiteral():
            return core.Constant(None, core.DataType.BOOLEAN, node.span)
        case syntax.TimeLiteral():
            return literals.time(node, site.found)
        case syntax.DurationLiteral():
            return literals.interval(node, site.found)
        case (
            syntax.Attribute()
            | syntax.Call()
            | syntax.CallOfAll()
            | syntax.Conditional()
            | syntax.Cast()
            | syntax.Field()
            | syntax.Element()
            | syntax.JsonValue()
        ) if (site.declared is not None):
            return site.declared.value(node, site)
        case syntax.CallOfAll():
            refuse_star(node, site)
            return None
        case syntax.Attribute() if (each := named_set(node, site)) is not None:
            return each.value(node.attribute, node.span, site.found)
        case syntax.Attribute():
            return _attribute(node, site)
        case syntax.Conditional():
            return calls.conditional(node, site, expression)
        case syntax.Cast():
            return calls.cast(node, site, expression)
        case syntax.Field() | syntax.Element() | syntax.JsonValue():
            return part(node, site, expression)
        case syntax.Arithmetic():
            return _arithmetic(node, site)
        case syntax.Negation():
            return _negation(node, site)
        case syntax.Call():
            return _call(node, site)
        case _:
            assert_never(node)


def _integer(
    node: syntax.IntegerLiteral | syntax.Negation, value: int, site: Site
) -> core.Constant | None:
    constant = literals.integer(node, value)
    if constant is None:
        site.found.add(types.integer_range(node.span))
    return constant


def _attribute(node: syntax.Attribute, site: Site) -> core.Expression | None:
    if node.label is None:
        assert site.inside is not None, "the parser refuses bare attributes outside x[…]"
        label = syntax.Name(site.inside, node.span)
    else:
        # A parameter set is not a label, and can be named inside x[…] as well.
        label = node.label
    data_type = attribute_type(label.text, label.span, node.attribute, site)
    if data_type is None:
        return None
    if site.use == "select":
        seen = look_up(site.frame, label.text)
        assert seen is not None
        extent = seen[0].extent
        if (extent.least, extent.most) != (1, 1):
            unbound = extent.least == 0
            site.found.add(
                types.many_positions(label.text, node.attribute.text, unbound, node.span)
            )
            return None
    return core.AttributeValue(label.text, node.attribute.text, data_type, node.span)


def _arithmetic(node: syntax.Arithmetic, site: Site) -> core.Expression | None:
    left, right = expression(node.left, site), expression(node.right, site)
    if left is None or right is None:
        return None
    if is_null(left) and is_null(right):
        site.found.add(types.two_nulls(node.span))
        return None
    found = arithmetic(node.operator, left, right, node.span)
    if found is not None:
        return found
    if calculates_with_times(left, right):
        slice_of = site.found.source.slice
        texts = (slice_of(node.left.span), slice_of(node.right.span))
        operand_types = (left.type.value, right.type.value)
        times = _subtracted(left, slice_of) or _subtracted(right, slice_of)
        site.found.add(types.time_arithmetic(node.operator, operand_types, texts, times, node.span))
        return None
    if node.operator == "+" and left.type is right.type is core.DataType.STRING:
        plus = site.found.source.text.index("+", node.left.span.end)
        place = Span(plus, plus + 1)
        site.found.add(types.arithmetic_type("+", left.type.value, node.span, place))
        return None
    for side in (left, right):
        if not is_null(side) and not side.type.is_numeric:
            site.found.add(types.arithmetic_type(node.operator, side.type.value, side.span))
    return None


def _negation(node: syntax.Negation, site: Site) -> core.Expression | None:
    if isinstance(node.operand, syntax.IntegerLiteral) and not _in_parentheses(node.operand):
        # The smallest LONG has no positive counterpart, so the sign belongs to the literal.
        return _integer(node, -node.operand.value, site)
    operand = numeric("-", node.operand, site)
    return None if operand is None else negation(operand, node.span)


def _in_parentheses(literal: syntax.IntegerLiteral) -> bool:
    """Whether a literal stands in parentheses: in Spark SQL `-(2147483648)` is LONG, without them
    INT."""
    return literal.span.end - literal.span.start > len(str(literal.value))


def numeric(operator: str, node: syntax.Expression, site: Site) -> core.Expression | None:
    """An operand that must be a number or a duration."""
    operand = expression(node, site)
    if operand is None or is_null(operand):
        return operand
    if not operand.type.is_numeric and operand.type is not core.DataType.INTERVAL:
        site.found.add(types.arithmetic_type(operator, operand.type.value, operand.span))
        return None
    return operand


# --- functions ------------------------------------------------------------------------------------


def _call(node: syntax.Call, site: Site) -> core.Expression | None:
    name = node.function.text.upper()
    assert site.inside is None or name not in _OF_POSITIONS, "the parser refuses them inside x[…]"
    own = site.schema.declarations.aggregates
    if site.inside is None and node.function.text in own:
        return _own_aggregate(node, own[node.function.text], site)
    functions = site.schema.declarations.functions
    if site.inside is None and node.function.text in functions:
        given = _attribute_arguments(node, site)
        return own_call(node, functions[node.function.text], given, site.use, site.found)
    known = name in FUNCTIONS or name in TABLE
    if node.distinct and known and name != "COUNT":
        text = site.found.source.slice(node.argument.span)
        site.found.add(aggregates.misplaced_distinct(name, text, node.span))
        return None
    if node.more and name in FUNCTIONS and name != "NTH":
        slice_of = site.found.source.slice
        arguments = [slice_of(one.span) for one in (node.argument, *node.more)]
        second = _comma_before(node.more[0], site)
        site.found.add(aggregates.one_argument(node.function.text, arguments, second, node.span))
        return None
    if node.prior and name not in AGGREGATES and known:
        site.found.add(types.misplaced_prior(name, AGGREGATES, node.span))
        return None
    if site.use == "select" and (name == "PREV" or node.prior):
        what = "PRIOR" if node.prior else "PREV"
        site.found.add(types.previous_in_select(what, node.span))
        return None
    if name == "COLLECT":
        wrong = types.collect_in_filter if site.use == "filter" else types.collect_in_expression
        site.found.add(wrong(node.span))
        return None
    match name:
        case "ABS":
            argument = node.argument
            if site.inside is None and syntax.is_bare_name(argument):
                site.found.add(types.needs_number("ABS", argument.attribute.text, argument.span))
                return None
            return absolute(node, site)
        case "COUNT" if node.distinct:
            return _aggregate("DISTINCT", node, site)
        case "COUNT":
            return _count(node, site)
        case "PREV":
            return _previous(node, site)
        case "NTH":
            return _nth(node, site)
        case "FIRST" | "LAST" | "MIN" | "MAX" | "SUM" | "AVG" | "VARIANCE" | "STDDEV" | "MEDIAN":
            return _aggregate(name, node, site)
        case _ if name in TABLE:
            return calls.function_call(TABLE[name], node, site, expression)
        case _:
            _refuse_unknown(node, site)
            return None


def _subtracted(value: core.Expression, slice_of: Callable[[Span], str]) -> tuple[str, str] | None:
    """The texts of two TIMESTAMP attributes whose difference a value is; None: it is another."""
    match value:
        case core.Arithmetic("-", core.AttributeValue() as end, core.AttributeValue() as start) if (
            end.type is start.type is core.DataType.TIMESTAMP
        ):
            return slice_of(end.span), slice_of(start.span)
        case _:
            return None


def absolute(node: syntax.Call, site: Site) -> core.Expression | None:
    """`ABS(e)`."""
    operand = numeric("ABS", node.argument, site)
    if operand is None or is_null(operand):
        return operand
    return core.Absolute(operand, operand.type, node.span)


def _refuse_unknown(node: syntax.Call, site: Site) -> None:
    slice_of = site.found.source.slice
    arguments = [slice_of(one.span) for one in (node.argument, *node.more)]
    declared = {**site.schema.declarations.aggregates, **site.schema.declarations.functions}
    own = [
        name
        for name, one in declared.items()
        if site.inside is None and one is not None and len(one.parameters) == len(arguments)
    ]
    known = (*_FUNCTIONS[site.use], *TABLE, *own)
    name, declaration = node.function, _declaration_for(node, site)
    site.found.add(
        aggregates.unknown_function(name.text, known, name.span, arguments, node.span, declaration)
    )


def _declaration_for(node: syntax.Call, site: Site) -> str | None:
    """The declaration of a function that a call with attributes of several labels could mean."""
    named = [one for one in (node.argument, *node.more) if isinstance(one, syntax.Attribute)]
    labels = {one.label.text for one in named if one.label is not None}
    if len(labels) < 2 or len(named) <= len(node.more):
        return None
    found = [site.schema.types.get(one.attribute.text) for one in named]
    arrays = ", ".join(f"{'DOUBLE' if one is None else one.value}[]" for one in found)
    result = "BOOLEAN" if site.use == "filter" else "DOUBLE"
    return f"FUNCTION {written(node.function.text)}({arrays}): {result}"


def refuse_star(node: syntax.CallOfAll, site: Site) -> None:
    """Report a * as the argument of a function that takes none there."""
    name = node.function.text
    known = (*FUNCTIONS, *TABLE, *totals.TOTALS)
    if name.upper() not in known:
        functions = (*_FUNCTIONS[site.use], *site.schema.declarations.called)
        span = node.function.span
        site.found.add(aggregates.unknown_function(name, functions, span, [], node.span))
        return
    labels = visible_labels(site.frame)
    made = [label for label in labels if label not in site.schema.masks] or labels
    star = site.found.source.text.index("*", node.function.span.end)
    place = Span(star, star + 1)
    site.found.add(totals.star_argument(name, next(iter(made), None), place, node.span))


def _comma_before(argument: syntax.Expression, site: Site) -> Span:
    """The place of the comma before an argument."""
    comma = site.found.source.text.rindex(",", 0, argument.span.start)
    return Span(comma, comma + 1)


def _count(node: syntax.Call, site: Site) -> core.Expression | None:
    argument = node.argument
    if not syntax.is_bare_name(argument):
        label = argument.label if isinstance(argument, syntax.Attribute) else None
        site.found.add(
            types.needs_label("COUNT", argument.span, written(label.text) if label else None)
        )
        return None
    label = argument.attribute
    if binding_of(label.text, label.span, site) is None:
        return None
    return core.Aggregate("COUNT", label.text, None, node.prior, core.DataType.LONG, node.span)


def attribute_argument(node: syntax.Call, site: Site) -> tuple[str, str, core.DataType] | None:
    """The label, attribute and type of the argument `x.a` of a function of a label's set. What is
    computed from one event, as in `SUM(x.a * x.b)` and `PREV(x.a[0])`, is an attribute made before.
    """
    argument, name = node.argument, node.function.text
    if isinstance(argument, _MADE) and site.declared is None:
        value = expression(argument, replace(site, use="filter"))
        if value is None:
            return None
        value = of_event(value, site)
        if isinstance(value, core.AttributeValue):
            site.known[value.label, value.attribute] = value.type
            return value.label, value.attribute, value.type
    if name.upper() in FUNCTIONS:
        name = name.upper()
    if not isinstance(argument, syntax.Attribute) or argument.label is None:
        choices = _calls_offered(node, site)
        example = f"{name}(DISTINCT x.a)" if node.distinct else f"{name}(x.a)"
        site.found.add(types.needs_attribute(name, argument.span, choices, node.span, example))
        return None
    label = argument.label
    data_type = attribute_type(label.text, label.span, argument.attribute, site)
    return None if data_type is None else (label.text, argument.attribute.text, data_type)


_MADE = (
    syntax.Arithmetic,
    syntax.Negation,
    syntax.Call,
    syntax.Cast,
    syntax.Conditional,
    syntax.Field,
    syntax.Element,
    syntax.JsonValue,
)


def _attribute_arguments(
    node: syntax.Call, site: Site
) -> list[tuple[str, str, core.DataType] | None]:
    """`attribute_argument` of each argument; None for one that is wrong, which is reported."""
    return [
        attribute_argument(replace(node, argument=one), site) for one in (node.argument, *node.more)
    ]


def _calls_offered(node: syntax.Call, site: Site) -> list[str]:
    """The calls that `SUM(a)` and `SUM(x)` could mean."""
    argument, name = node.argument, node.function.text
    slice_of, prior = site.found.source.slice, "PRIOR " if node.prior else ""
    if node.distinct:
        prior = f"DISTINCT {prior}"
    if not syntax.is_bare_name(argument):
        return []
    label = look_up(site.frame, argument.attribute.text)
    if label is not None:
        attributes = site.schema.attributes_of(label[0].extent.types)
        named = [one.name for one in attributes if _takes(name, one.type, site)][:3]
        own = slice_of(argument.span)
        return [f"{name}({prior}{own}.{written(attribute)})" for attribute in named]
    return [
        f"{name}({prior}{written(one)}.{slice_of(argument.span)})"
        for one in labels_having(argument.attribute.text, site)
    ]


def _takes(name: str, data_type: core.DataType, site: Site) -> bool:
    """Whether a function of one argument takes attributes of a type."""
    function = site.schema.declarations.functions.get(name)
    if function is not None:
        return len(function.parameters) == 1 and is_taken_as(data_type, function.parameters[0])
    own = site.schema.declarations.aggregates.get(name)
    if own is None:
        if isinstance(data_type, core.DecimalType):
            return not (data_type.is_wide and name.upper() in ("VARIANCE", "STDDEV", "MEDIAN"))
        taken = _AGGREGATED_TYPES.get(name.upper())
        return taken is None or data_type in taken
    if len(own.parameters) > 1:
        return False
    (parameter,) = own.parameters
    return is_taken_as(data_type, parameter.type)


def labels_having(attribute: str, site: Site) -> list[str]:
    """The visible labels whose events all have an attribute; those made with AS, if there are
    any."""
    visible = visible_labels(site.frame)
    found = []
    for label in visible:
        seen = look_up(site.frame, label)
        assert seen is not None
        mask = seen[0].extent.types
        if mask and attribute in site.schema.types and not mask & site.schema.lacking(attribute):
            found.append(label)
    made = [label for label in found if label not in site.schema.masks]
    return (made or found)[:3]


def _previous(node: syntax.Call, site: Site) -> core.Expression | None:
    argument = attribute_argument(node, site)
    if argument is None:
        return None
    label, attribute, data_type = argument
    return core.Previous(label, attribute, data_type, node.span, node.distance)


def _nth(node: syntax.Call, site: Site) -> core.Expression | None:
    """`NTH(x.a, k)`; the first and the last have functions of their own."""
    argument, place = attribute_argument(node, site), _literal_place(node.more)
    if place is None:
        text = site.found.source.slice(node.argument.span)
        site.found.add(types.nth_place(text, node.span))
    if argument is None or place is None:
        return None
    label, attribute, data_type = argument
    if place in (1, -1):
        end: core.AggregateFunction = "FIRST" if place == 1 else "LAST"
        return core.Aggregate(end, label, attribute, node.prior, data_type, node.span)
    return core.Aggregate("NTH", label, attribute, node.prior, data_type, node.span, place=place)


def _literal_place(arguments: tuple[syntax.Expression, ...]) -> int | None:
    """The number that stands as the only further argument, not 0; None for all else."""
    match arguments:
        case (syntax.IntegerLiteral(value=value),):
            return min(value, MOST_DISTANCE) or None
        case (syntax.Negation(operand=syntax.IntegerLiteral(value=value)),):
            return -min(value, MOST_DISTANCE) or None
        case _:
            return None


def _aggregate(
    name: core.AggregateFunction, node: syntax.Call, site: Site
) -> core.Expression | None:
    argument = attribute_argument(node, site)
    if argument is None:
        return None
    label, attribute, data_type = argument
    if name == "DISTINCT" and common_type(data_type, data_type) is None:
        argument_text = site.found.source.slice(node.argument.span)
        site.found.add(types.distinct_type(data_type.value, argument_text, node.argument.span))
        return None
    if name == "DISTINCT":
        long, read = core.DataType.LONG, (data_type,)
        return core.Aggregate(name, label, attribute, node.prior, long, node.span, read=read)
    if not _takes(name, data_type, site):
        allowed = [one.value for one in _AGGREGATED_TYPES[name]]
        if isinstance(data_type, core.DecimalType):
            allowed.append(f"DECIMAL of up to {core.MOST_NARROW} digits")
        span = node.argument.span
        argument_text = site.found.source.slice(span)
        site.found.add(types.aggregate_type(name, data_type.value, allowed, argument_text, span))
        return None
    # What is compiled for DECIMALs depends on their scale.
    scaled = (data_type,) if isinstance(data_type, core.DecimalType) else ()
    data_type = aggregated_type(name, data_type)
    return core.Aggregate(name, label, attribute, node.prior, data_type, node.span, read=scaled)


def _own_aggregate(
    node: syntax.Call, own: core.OwnAggregate | None, site: Site
) -> core.Expression | None:
    """A call of an aggregate that the file declares; None where its declaration is wrong."""
    name = node.function.text
    if site.use == "select" and node.prior:
        site.found.add(types.previous_in_select("PRIOR", node.span))
        return None
    if node.distinct:
        argument = site.found.source.slice(node.argument.span)
        site.found.add(aggregates.misplaced_distinct(name, argument, node.span))
        return None
    arguments = _attribute_arguments(node, site)
    taken = [one for one in arguments if one is not None]
    if own is None or len(taken) < len(arguments):
        return None
    if len(taken) != len(own.parameters):
        wanted = ", ".join(f"{one.name}: {one.type.value}" for one in own.parameters)
        count = counted(len(own.parameters), "argument")
        site.found.add(
            aggregates.number_of_arguments(quote(name), count, f"{name}({wanted})", node.span)
        )
        return None
    label = taken[0][0]
    other = next((one for one, _, _ in taken if one != label), None)
    if other is not None:
        site.found.add(aggregates.several_labels(name, (label, other), node.span))
        return None
    fits = True
    for written_one, (_, _, data_type), parameter in zip(
        (node.argument, *node.more), taken, own.parameters, strict=True
    ):
        if not is_taken_as(data_type, parameter.type):
            fits = False
            site.found.add(
                aggregates.argument_type(
                    name,
                    parameter.name,
                    parameter.type.value,
                    data_type.value,
                    written_one.span,
                )
            )
    if not fits:
        return None
    first, *others = (attribute for _, attribute, _ in taken)
    return core.Aggregate(
        "OWN",
        label,
        first,
        node.prior,
        own.type,
        node.span,
        own,
        tuple(others),
        tuple(data_type for _, _, data_type in taken),
    )
