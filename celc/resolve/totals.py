"""SELECT TOTAL and SELECT COLLAPSED: their items, and what cannot be used with them.

Items of TOTAL are expressions like those of SELECT, with other names and calls. Items of HAVING are
conditions whose names are items. So `expressions` and `conditions` resolve them, and ask the
functions here about names and calls, as they do for declarations of aggregates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never, cast

from celc.core import formula as core
from celc.core.traversal import nodes_of
from celc.diagnostics.errors import Diagnostics, Fix
from celc.diagnostics.messages import aggregates, names, types, uncertain
from celc.diagnostics.messages import totals as messages
from celc.diagnostics.messages.functions import FUNCTIONS
from celc.diagnostics.messages.wording import written
from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.resolve.output import OWN_COLUMNS, Column, Items, check_names, is_of_set, without_item
from celc.resolve.schema import Schema
from celc.resolve.scopes import Frame
from celc.resolve.types import literals
from celc.resolve.types.conditions import condition
from celc.resolve.types.expressions import (
    Site,
    attribute_type,
    binding_of,
    expression,
    named_set,
    refuse_star,
)
from celc.resolve.types.of_values import is_of_values, of_values
from celc.resolve.types.parts import part

# --- beside TOTAL and COLLAPSED -------------------------------------------------------------------


def check_choices(node: syntax.Query, source: Source, found: Diagnostics) -> None:
    """Report what chooses among matches, because TOTAL and COLLAPSED are about all matches."""
    select = node.select
    if select is None or select.together is None:
        return
    kind, word = select.together.kind, select.together.span
    choices: list[tuple[str, Span]] = []
    if select.strategy is not None and select.strategy_span is not None:
        choices.append((select.strategy, select.strategy_span))
    if select.per_start is not None:
        written = source.slice(select.per_start.span).upper()
        choices.append((" ".join(written.split()), select.per_start.span))
    for choice, span in choices:
        # With the space on its side, so that one stays between the other words.
        before = span.start < word.start
        gap = Span(span.start, word.start) if before else Span(word.end, span.end)
        found.add(messages.choice_among_all(kind, choice, span, Fix(gap, "")))
    if node.limit is not None:
        span = node.limit.span
        found.add(messages.choice_among_all(kind, "LIMIT", span, Fix(span, "")))


def check_collapsed(items: Items, source: Source, found: Diagnostics) -> None:
    """Report expressions among the items of COLLAPSED."""
    for item in items if isinstance(items, tuple) else ():
        if isinstance(item, syntax.ExpressionItem):
            text = source.slice(item.expression.span)
            found.add(messages.expression_in_collapsed(text, item.span))


# --- TOTAL ----------------------------------------------------------------------------------------


def total_of(
    node: syntax.Query,
    order_by: tuple[core.AttributeDeclaration, ...],
    order_is_known: bool,
    partition_by: Mapping[str, Span],
    site: Site,
    *,
    decided: bool,
    uncertain: bool,
) -> core.Total | None:
    """The totals that a query asks for, as far as they have a meaning; None without TOTAL.

    `order_is_known`: no order column was refused. `partition_by` are the attributes of its keys,
    with their places. `decided`: matches can wait for an absence at their end. `uncertain`: the
    times of events are, and COUNT(*) is the expected number of matches.
    """
    select = node.select
    if select is None or select.together is None or select.together.kind != "TOTAL":
        return None
    items = _items(select.items, partition_by, site, uncertain=uncertain)
    per = _per(node.per, order_by, order_is_known, site.schema, site.found)
    own = OWN_COLUMNS + (("decided_time",) if decided else ())
    own += ("span_start", "span_end") if isinstance(per, core.PerSpan) else ()
    each = site.schema.for_each
    own += () if each is None else (each.set.name,)
    columns = [Column("partition attribute", name, span) for name, span in partition_by.items()]
    columns += [Column("item", item.name, item.span) for item in items]
    check_names(own, columns, site.found)
    named = _names_of(select.items)
    having = None if node.having is None else _having(node.having, items, named, site)
    return core.Total(items, per, having, select.span)


def _names_of(items: Items) -> frozenset[str]:
    """The names of all items, also of wrong ones."""
    written = items if isinstance(items, tuple) else ()
    expressions = [item for item in written if isinstance(item, syntax.ExpressionItem)]
    return frozenset(item.name.text for item in expressions if item.name is not None)


def _items(
    written: Items, partition_by: Mapping[str, Span], site: Site, *, uncertain: bool
) -> tuple[core.TotalItem, ...]:
    found = site.found
    if not isinstance(written, tuple):
        is_star = isinstance(written, syntax.AllItems)
        found.add(messages.all_in_total(written.span, is_star=is_star))
        return ()
    items: list[core.TotalItem] = []
    for item in written:
        if isinstance(item, syntax.LabelItem):
            if not is_of_set(item, site):
                _label(item, written, partition_by, site)
            continue
        node, text = item.expression, found.source.slice(item.expression.span)
        value = expression(node, replace(site, declared=_Totals(site, uncertain)))
        if item.name is None:
            if not isinstance(node, syntax.Attribute):
                found.add(types.unnamed_expression(text, _name_for(node), node.span))
            continue
        if value is None:
            continue
        if not any(isinstance(part, core.TotalOf) for part in nodes_of(value)):
            found.add(messages.constant_in_total(text, node.span))
            continue
        items.append(core.TotalItem(item.name.text, text, value, item.name.span))
    return tuple(items)


def _name_for(node: syntax.Expression) -> str:
    match node:
        case syntax.CallOfAll():
            return "n"
        case syntax.Call(argument=syntax.Attribute() as argument):
            name = f"{node.function.text.lower()}_{argument.attribute.text}"
            return name if name.isidentifier() else "n"
        case _:
            return "value"


def _label(
    item: syntax.LabelItem,
    items: Sequence[syntax.SelectItem],
    partition_by: Mapping[str, Span],
    site: Site,
) -> None:
    """Report an item that is a label, or the attribute of a part."""
    label, span = item.label.text, item.label.span
    if label in partition_by and label not in site.frame.labels:
        whose = f"PARTITION BY {written(label)}"
        site.found.add(
            names.partition_in_select(whose, span, without_item(item, items, "COUNT(*) AS n"))
        )
    elif binding_of(label, span, site) is not None:
        name = label.lower() if label.lower() != label else f"{label}_count"
        site.found.add(messages.label_in_total(label, name, item.span))


@dataclass(slots=True)
class _Totals:
    """The names and calls in an item; `plain` is where labels are looked up."""

    plain: Site
    uncertain: bool

    def value(
        self,
        node: syntax.OfSite,
        site: Site,
    ) -> core.Expression | None:
        """The meaning of a name or a call in an item of TOTAL."""
        match node:
            case syntax.CallOfAll():
                return self._of_all(node, site)
            case syntax.Call() | syntax.Conditional() | syntax.Cast() if is_of_values(node, site):
                return of_values(node, site)
            case syntax.Call():
                return self._call(node, site)
            case syntax.Attribute():
                return self._attribute(node, site)
            case _:
                text = site.found.source.slice(node.span)
                site.found.add(messages.attribute_in_total(text, (), node.span))
                return None

    def no_label(self, label: str, span: Span, site: Site) -> None:
        """Labels are looked up in the plain site."""
        raise AssertionError("an item has no condition")

    def pattern(self, asked: core.PatternMatch) -> core.Truth:
        return asked

    def _attribute(self, node: syntax.Attribute, site: Site) -> core.Expression | None:
        assert node.label is not None, "the parser refuses bare attributes"
        each = named_set(node, self.plain)
        if each is not None:
            return each.value_of_row(node.attribute, node.span, site.found)
        data_type = attribute_type(node.label.text, node.label.span, node.attribute, self.plain)
        if data_type is None:
            return None
        text = site.found.source.slice(node.span)
        functions = ["SUM", "AVG"] if data_type.is_numeric else []
        functions += [] if data_type is core.DataType.STRING else ["MIN", "MAX"]
        choices = [f"{function}({text})" for function in functions]
        site.found.add(messages.attribute_in_total(text, choices, node.span))
        return None

    def _of_all(self, node: syntax.CallOfAll, site: Site) -> core.Expression | None:
        name = node.function.text.upper()
        if self.uncertain and name == "COUNT":
            return core.TotalOf("APPROX_COUNT", None, None, core.DataType.DOUBLE, node.span)
        if self.uncertain and name in messages.TOTALS:
            site.found.add(uncertain.not_expected(f"{name}(*)", node.span))
            return None
        if name == "COUNT":
            return core.TotalOf("COUNT", None, None, core.COUNTS, node.span)
        if name == "APPROX_COUNT":
            return core.TotalOf("APPROX_COUNT", None, None, core.DataType.DOUBLE, node.span)
        if name in messages.TOTALS:
            refuse_star(node, self.plain)
            return None
        self._no_total(node.function, ["*"], node.span, site)
        return None

    def _no_total(
        self, function: syntax.Name, arguments: list[str], span: Span, site: Site
    ) -> None:
        own = site.schema.declarations.called
        if function.text.upper() in FUNCTIONS or function.text in own:
            # ABS of one value is arithmetic.
            what = (
                "ABS of other than one value" if function.text.upper() == "ABS" else function.text
            )
            site.found.add(messages.function_in_total(what, span))
            return
        site.found.add(
            aggregates.unknown_function(
                function.text, messages.TOTALS, function.span, arguments, span
            )
        )

    def _call(self, node: syntax.Call, site: Site) -> core.Expression | None:
        name = node.function.text.upper()
        if name == "APPROX_COUNT":
            site.found.add(messages.labels_in_approximation(name, node.span))
            return None
        if name not in messages.TOTALS:
            slice_of = site.found.source.slice
            arguments = [slice_of(one.span) for one in (node.argument, *node.more)]
            self._no_total(node.function, arguments, node.span, site)
            return None
        if self.uncertain:
            text = site.found.source.slice(node.span)
            site.found.add(uncertain.not_expected(text, node.span))
            return None
        if node.distinct or node.prior:
            word = "DISTINCT" if node.distinct else "PRIOR"
            site.found.add(messages.function_in_total(f"{name}({word} …)", node.span))
            return None
        found = expression(node, self.plain)
        if found is None:
            return None
        assert isinstance(found, core.Aggregate)
        function = cast("core.TotalFunction", found.function)
        if found.attribute is None:
            return core.TotalOf(function, found.label, None, core.COUNTS, node.span)
        read = self.plain.known[found.label, found.attribute]
        assert isinstance(read, core.DataType), "the call has a type"
        data_type = found.type
        if isinstance(read, core.DecimalType):
            data_type = _of_decimals(function, read)
        elif function == "SUM" and data_type is core.DataType.LONG:
            data_type = core.COUNTS  # SUM of whole numbers has no end.
        return core.TotalOf(function, found.label, found.attribute, data_type, node.span, read)


def _of_decimals(function: core.TotalFunction, read: core.DecimalType) -> core.DataType:
    if function == "SUM":
        return core.decimal_of(core.MOST_DIGITS, read.scale)
    if function == "AVG":
        return core.decimal_of(core.MOST_DIGITS, min(read.scale + 4, core.MOST_DIGITS))
    return read


# --- PER ------------------------------------------------------------------------------------------


def _per(
    node: syntax.PerClause | None,
    order_by: tuple[core.AttributeDeclaration, ...],
    order_is_known: bool,
    schema: Schema,
    found: Diagnostics,
) -> core.Per:
    """The groups of matches; one for each end where PER is wrong, which has been reported."""
    if node is None:
        return core.PerEnd(Span(0, 0))
    match node.group:
        case "END":
            return core.PerEnd(node.span)
        case "PARTITION":
            return core.PerPartition(node.span)
        case syntax.EventsWindow() | syntax.ValueWindow() as window:
            text = found.source.slice(window.span)
            found.add(messages.unknown_group(text, window.span))
        case syntax.DurationWindow() as window:
            size = literals.duration(window.parts, found)
            _check_order(order_by, order_is_known, schema, node.span, found)
            if window.attribute is not None:
                last = window.parts[-1].span
                text = found.source.slice(window.parts[0].span.to(last))
                found.add(messages.span_attribute(window.attribute.text, text, window.span))
            if size == 0:
                found.add(messages.empty_span(window.span))
            elif size is not None:
                return core.PerSpan(size, node.span)
        case _:
            assert_never(node.group)
    return core.PerEnd(node.span)


def _check_order(
    order_by: tuple[core.AttributeDeclaration, ...],
    order_is_known: bool,
    schema: Schema,
    span: Span,
    found: Diagnostics,
) -> None:
    """Report spans that the first order column cannot measure."""
    times = schema.shared(of=core.TIMES)
    if order_by and order_by[0].type not in core.TIMES:
        first = order_by[0]
        found.add(messages.unmeasured_span(first.name, first.type.value, times, span))
    elif not order_by and order_is_known:
        found.add(messages.unmeasured_span(None, None, times, span))


# --- HAVING ---------------------------------------------------------------------------------------


def _having(
    node: syntax.HavingClause,
    items: tuple[core.TotalItem, ...],
    named: frozenset[str],
    site: Site,
) -> core.Truth | None:
    known = {item.name: item.value.type for item in items}
    texts = {"".join(item.text.upper().split()): item.name for item in items}
    declared = _Names(known, named, texts)
    # Without labels, which may have the names of items.
    alone = replace(site, frame=Frame({}, None, None), hidden={}, known={}, declared=declared)
    return condition(node.condition, alone)


@dataclass(slots=True)
class _Names:
    """The names that HAVING can use: the items with their types."""

    items: Mapping[str, core.DataType]
    named: frozenset[str]  # the names of all items, also of wrong ones
    texts: Mapping[str, str]  # the name of an item by its text in capitals and without spaces

    def value(
        self,
        node: syntax.OfSite,
        site: Site,
    ) -> core.Expression | None:
        """The meaning of a name or a call in HAVING."""
        match node:
            case syntax.Attribute(label=None):
                name = node.attribute.text
                if name in self.items:
                    return core.Variable(name, self.items[name], node.span)
                if name not in self.named:
                    site.found.add(messages.unknown_item(name, self.items, node.span))
                return None
            case syntax.Attribute() if (each := named_set(node, site)) is not None:
                return each.value_of_row(node.attribute, node.span, site.found)
            case syntax.Attribute():
                assert node.label is not None
                self.no_label(node.label.text, node.span, site)
                return None
            case syntax.Call() | syntax.CallOfAll() if same := self.texts.get(
                "".join(site.found.source.slice(node.span).upper().split())
            ):
                text = site.found.source.slice(node.span)
                site.found.add(messages.function_in_having(text, same, node.span))
                return None
            case syntax.Call() | syntax.Conditional() | syntax.Cast() if is_of_values(node, site):
                return of_values(node, site)
            case syntax.Call() | syntax.CallOfAll():
                text = site.found.source.slice(node.span)
                site.found.add(messages.function_in_having(text, None, node.span))
                return None
            case syntax.Field() | syntax.Element() | syntax.JsonValue():
                return part(node, site, expression)
            case _:
                raise AssertionError("CASE and CAST are of values")

    def no_label(self, label: str, span: Span, site: Site) -> None:
        site.found.add(messages.label_in_having(label, self.items, span))

    def pattern(self, asked: core.PatternMatch) -> core.Truth:
        return asked
