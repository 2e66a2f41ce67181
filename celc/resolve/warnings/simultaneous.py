"""Queries without meaning where events of one instant have no order (`ties="simultaneous"`).

Selectors, STRICT, ANY, LIMIT, CONSUME BY and windows of EVENTS count events, or choose by their
order. So their answer would depend on the order of simultaneous events. Where events last, their
positions have an order that is part of the meaning, so that matches can be chosen by it.
"""

from collections.abc import Iterator
from dataclasses import fields

from celc.core import formula as core
from celc.core.traversal import formulas_in
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import instants
from celc.diagnostics.source import Span
from celc.parse import syntax


def check_simultaneous(
    node: syntax.Query,
    formula: core.Formula,
    window: core.Window | None,
    order_by: tuple[core.AttributeDeclaration, ...] | None,
    found: Diagnostics,
    *,
    lasts: bool,
) -> None:
    """Report all parts of a query that need an order of simultaneous events.

    With `lasts`, events are simultaneous only because they last. `order_by` are
    the order columns, None where one was refused. `formula` and `window` are those of the query,
    resolved.
    """
    if order_by is not None and not order_by and not lasts:
        found.add(instants.no_order_columns(node.formula.span))
    if not lasts:
        _check_choices(node, formula, found)
    for part in formulas_in(formula):
        if isinstance(part, core.Within):
            _check_window(part.window, order_by, found, lasts=lasts)
        elif isinstance(part, core.AbsenceBefore | core.AbsenceAfter):
            _check_window(part.length, order_by, found, lasts=lasts)
    for span in _other_events(node.formula):
        found.add(instants.other_event(span))
    if window is not None:
        _check_window(window, order_by, found, lasts=lasts)
    if node.consume is not None and node.consume.policy != "NONE":
        consuming, span = f"CONSUME BY {node.consume.policy}", node.consume.span
        found.add(instants.needs_order(consuming, span, consumes=True, lasts=lasts))


def _check_choices(node: syntax.Query, formula: core.Formula, found: Diagnostics) -> None:
    """Report the choices by the order of events. Events that last have one: that of their ends, and
    of one time that of their numbers."""
    if node.select is not None and node.select.strategy not in (None, "ALL"):
        assert node.select.strategy is not None
        span = node.select.strategy_span or node.select.span
        found.add(instants.needs_order(f"SELECT {node.select.strategy}", span))
    for part in formulas_in(formula):
        if isinstance(part, core.Selector):
            found.add(instants.needs_order(f"{part.strategy}(…)", part.span))
    if node.limit is not None:
        found.add(instants.needs_order("LIMIT", node.limit.span))


def _check_window(
    window: core.Window,
    order_by: tuple[core.AttributeDeclaration, ...] | None,
    found: Diagnostics,
    *,
    lasts: bool,
) -> None:
    if window.unit is core.WindowUnit.EVENTS:
        found.add(instants.window_of_events(window.span, lasts=lasts))
    elif window.attribute is not None and order_by is not None:
        names = [attribute.name for attribute in order_by]
        if names and window.attribute.name not in names:
            found.add(
                instants.window_off_order(window.attribute.name, names, window.span, lasts=lasts)
            )


def _other_events(node: object) -> Iterator[Span]:
    """The places of NOT(…) around more than an event type. It is an UNLESS, which looks at all
    events of an instant; NOT means a single one."""
    if isinstance(node, syntax.OtherEvent) and not isinstance(node.operand, syntax.EventAtom):
        yield node.span
    if isinstance(node, tuple):
        for item in node:
            yield from _other_events(item)
    elif isinstance(node, _FORMULAS):
        for part in fields(node):
            yield from _other_events(getattr(node, part.name))


_FORMULAS = (*syntax.Formula.__args__, syntax.Link, syntax.Joint)
