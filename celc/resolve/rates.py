"""`LIMIT n PER d`: its length, and the label that tells which of a row's matches NXT prefers."""

import math
from collections.abc import Collection
from dataclasses import replace

from celc_runtime.plan.names import unused_name

from celc.core import formula as core
from celc.core.formula import NUMBERS, TIMES, Window, WindowUnit
from celc.core.traversal import labels_bound, matched_parts_of
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import totals as messages
from celc.parse import syntax
from celc.resolve.query_clauses import QueryClauses
from celc.resolve.schema import Schema
from celc.resolve.types import literals


def rate_of(
    node: syntax.Query, around: QueryClauses, schema: Schema, found: Diagnostics
) -> core.Rate | None:
    """`LIMIT n PER …` of a query; None: it has none, or an error in it."""
    if node.limit is None or node.limit.per is None or around.limit is None:
        return None
    per, length = node.limit.per, None
    _check_known(node, around, found)
    if not (isinstance(per, syntax.PerClause) and per.group == "PARTITION"):
        length = _length_of(node.limit, around, schema, found)
        if length is None:
            return None
    return core.Rate(around.limit, length, None, node.limit.span)


def _length_of(
    node: syntax.LimitClause, around: QueryClauses, schema: Schema, found: Diagnostics
) -> Window | None:
    """The length of time, measured on the first order column; None after an error."""
    per = node.per
    size: float | int | None
    if isinstance(per, syntax.PerClause):
        if not isinstance(per.group, syntax.DurationWindow) or per.group.attribute is not None:
            _refuse(node, per, found)
            return None
        span, size = per.group.span, literals.duration(per.group.parts, found)
        unit, types = WindowUnit.MICROSECONDS, frozenset(TIMES)
    else:
        assert per is not None
        span, size = per.span, per.value
        unit, types = WindowUnit.VALUE, frozenset(NUMBERS)
        if math.isinf(per.value) or per.value > literals.LARGEST_SIZE:
            found.add(messages.length_too_large(span))
            return None
    if not around.order_by:
        if around.order_is_known:
            offered = schema.shared(of=types)
            found.add(messages.without_order(unit is WindowUnit.VALUE, offered, span))
        return None
    first = around.order_by[0]
    if first.type not in types:
        found.add(messages.other_order(first.name, first.type.value, first.type in TIMES, span))
        return None
    return None if size is None else Window(unit, size, None, span)


def _refuse(node: syntax.LimitClause, per: syntax.PerClause, found: Diagnostics) -> None:
    text = found.source.slice
    if per.group == "END":
        found.add(messages.per_end(text(node.count.span), node.span))
        return
    assert not isinstance(per.group, str)
    if isinstance(per.group, syntax.EventsWindow):
        found.add(messages.per_events(text(per.group.span), per.group.span))
        return
    named = per.group.attribute
    assert named is not None
    size = per.group.parts if isinstance(per.group, syntax.DurationWindow) else (per.group.size,)
    length = text(size[0].span.to(size[-1].span))
    found.add(messages.per_attribute(named.text, length, per.group.span))


def _check_known(node: syntax.Query, around: QueryClauses, found: Diagnostics) -> None:
    """Report SELECT LONGEST without a time at which its matches are known."""
    per_start = None if node.select is None else node.select.per_start
    if per_start is None or per_start.end != "LONGEST" or node.limit is None:
        return
    window = around.window
    if window is None or window.unit is WindowUnit.EVENTS or not around.order_by:
        found.add(messages.never_known(node.window is not None, per_start.span))
    elif window.attribute not in (None, around.order_by[0]):
        found.add(messages.never_known(True, per_start.span))


def with_support(
    formula: core.Formula, rate: core.Rate | None, kept: Collection[str]
) -> tuple[core.Formula, core.Rate | None]:
    """The formula with a label for all events of a match, where the labels that SELECT keeps leave
    some out.

    Rows that look alike behind SELECT are one, and the match that NXT prefers decides its place.
    """
    if rate is None or not _can_lack(formula, frozenset(kept)):
        return formula, rate
    name = unused_name("support", labels_bound(formula))
    return core.As(formula, name, formula.span), replace(rate, support=name)


def _can_lack(formula: core.Formula, kept: frozenset[str]) -> bool:
    """Whether an event of a match can have labels, but none of `kept`; True also where that is not
    known."""
    match formula:
        case core.Atom():
            return formula.label not in kept
        case core.As():
            return formula.label not in kept and _can_lack(formula.operand, kept)
        case core.Rename():
            renamed = {formula.old} if formula.new in kept else set()
            return _can_lack(formula.operand, (kept - {formula.old}) | renamed)
        case core.Project():
            shown = frozenset(formula.labels)
            return not shown <= kept and _can_lack(formula.operand, kept & shown)
        case _:
            return any(_can_lack(part, kept) for part in matched_parts_of(formula))
