"""Streams whose events have uncertain times: their declaration, and what a query may ask of them.

A world gives each event one of its times. A match of a formula of `;`, `+` and OR is a chain of
events in each world, so its confidence is the sum over the orders of its events. Absences between,
UNLESS, AND and ALL ask about other events or positions of a world, and whole worlds decide them.
Selectors, LIMIT and CONSUME BY compare matches of one world, and are refused.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace

from celc_runtime.plan.frozen import frozen
from celc_runtime.values.types import array_of

from celc.core import formula as core
from celc.core.formula import DataType, EventType, Uncertainty
from celc.core.traversal import nodes_of
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import uncertain as messages
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.extents import Labels
from celc.resolve.types import literals

_TIMES = (DataType.LONG, DataType.INT, DataType.TIMESTAMP, DataType.DATE)
_WEIGHTS = array_of(DataType.DOUBLE)
_MICROSECONDS_OF_A_DAY = 86_400_000_000


def uncertainty_of(
    stream: syntax.StreamDeclaration,
    clause: syntax.UncertainClause,
    event_types: Iterable[EventType],
    found: Diagnostics,
) -> Uncertainty | None:
    """How the times of a stream's events are uncertain; None where that is declared wrongly."""
    if len({name.text for name in clause.names}) != 2 or len(clause.names) != 2:
        found.add(messages.two_times(clause.span))
        return None
    types: list[DataType] = []
    for name in clause.names:
        for one in event_types:
            found_type = one.type_of(name.text)
            if found_type is None:
                offered = [attribute.name for attribute in one.attributes]
                found.add(messages.lacking_time(name.text, one.name, offered, name.span))
                return None
            types.append(found_type)
    if not types:
        return None
    if len(set(types)) > 1 or types[0] not in _TIMES:
        span = clause.names[0].span.to(clause.names[1].span)
        found.add(messages.time_types(types[0].value, types[-1].value, span))
        return None
    step = _step(clause.step, types[0], found)
    if step is None:
        return None
    weights = None
    if clause.weights is not None:
        weights = core.AttributeDeclaration(clause.weights.text, _WEIGHTS)
        if not _are_weights(clause.weights, event_types, found):
            return None
        declared = (one.value for event in stream.events for one in event.attributes)
        for span in _named(tuple(declared), clause.weights.text):
            found.add(messages.weights_elsewhere(clause.weights.text, span))
    low, high = (core.AttributeDeclaration(name.text, types[0]) for name in clause.names)
    return Uncertainty(low, high, step, weights)


def _are_weights(name: syntax.Name, event_types: Iterable[EventType], found: Diagnostics) -> bool:
    """Whether each event type has the attribute, as an ARRAY<DOUBLE> of its own; reports if not."""
    for one in event_types:
        type = one.type_of(name.text)
        if type is None:
            offered = [attribute.name for attribute in one.attributes]
            found.add(messages.lacking_time(name.text, one.name, offered, name.span))
            return False
        if type != _WEIGHTS:
            found.add(messages.no_weights(name.text, type.value, one.name, name.span))
            return False
    return True


def _step(
    node: syntax.IntegerLiteral | syntax.DoubleLiteral | syntax.DurationWindow,
    type: DataType,
    found: Diagnostics,
) -> int | None:
    """The step between two times, in the units of their type; None where it is none."""
    if isinstance(node, syntax.DurationWindow):
        size = literals.duration(node.parts, found)
        if size is None:
            return None
        unit = {DataType.TIMESTAMP: 1, DataType.DATE: _MICROSECONDS_OF_A_DAY}.get(type, 0)
        step = size // unit if unit and size % unit == 0 else 0
    else:
        is_whole = isinstance(node, syntax.IntegerLiteral) and type not in core.TIMES
        step = int(node.value) if is_whole and node.value <= literals.LARGEST_SIZE else 0
    if step <= 0:
        found.add(messages.wrong_step(type.value, node.span))
        return None
    return step


# --- queries --------------------------------------------------------------------------------------


@frozen
class UncertainStreams:
    """The declared streams of a file with uncertain time, None for a wrong declaration; the places
    of all streams' names."""

    times: Mapping[str, Uncertainty | None]
    places: Mapping[str, Span]


def uncertainty_of_query(
    node: syntax.Query, read: Iterable[str], known: UncertainStreams, found: Diagnostics
) -> Uncertainty | None:
    """How the times of the events of a query are uncertain. None where they are certain, or where
    it cannot be said, which has been reported. `read` are the streams of FROM."""
    names = list(read)
    times = [known.times.get(name) for name in names]
    wrong = any(name in known.times and known.times[name] is None for name in names)
    if wrong:
        return None
    span = _place(node)
    if not any(times):
        if node.confidence is not None and names:
            first = known.places.get(names[0])
            found.add(messages.certain_time(names, node.confidence.span, first))
        return None
    if len(set(times)) > 1:
        found.add(messages.other_streams(names, span))
        return None
    uncertain = times[0]
    assert uncertain is not None
    threshold = _threshold(node.confidence, found)
    return replace(uncertain, threshold=threshold)


def _place(node: syntax.Query) -> Span:
    if node.streams:
        return node.streams[0].span.to(node.streams[-1].span)
    return node.formula.span


def _threshold(clause: syntax.ConfidenceClause | None, found: Diagnostics) -> core.Threshold | None:
    if clause is None:
        return None
    if clause.operator not in (">=", ">"):
        found.add(messages.confidence_operator(clause.operator, clause.span))
        return None
    if not 0 <= clause.bound.value <= 1:
        found.add(messages.confidence_range(clause.bound.span))
        return None
    return core.Threshold(float(clause.bound.value), clause.operator == ">")


def check_uncertain(
    node: syntax.Query,
    uncertain: Uncertainty,
    order_by: tuple[str, ...] | None,
    ties: str | None,
    found: Diagnostics,
) -> None:
    """Report all parts of a query that have no meaning where time is uncertain. `order_by` and
    `ties` are those of the call."""
    if order_by not in (None, (uncertain.low.name,)) or ties is not None:
        found.add(messages.other_order(uncertain.low.name, _place(node)))
    for part, span in (*_clauses(node), *_parts(node.formula)):
        found.add(messages.not_possible(part, span))
    together = None if node.select is None else node.select.together
    if together is not None and together.kind == "TOTAL":
        if node.confidence is not None:
            found.add(messages.threshold_of_total(node.confidence.span))
        if node.per is not None and isinstance(node.per.group, syntax.DurationWindow):
            found.add(messages.uncertain_spans(node.per.span))
    if uncertain.weights is not None:
        for span in _named(node, uncertain.weights.name):
            found.add(messages.weights_elsewhere(uncertain.weights.name, span))
    low = uncertain.low
    for window in (node.window, *_windows(node.formula)):
        match window:
            case syntax.EventsWindow():
                is_other = True
            case syntax.DurationWindow(attribute=syntax.Name(text=name)) | syntax.ValueWindow(
                attribute=syntax.Name(text=name)
            ):
                is_other = name != low.name
            case _:
                is_other = False
        if is_other and window is not None:
            found.add(messages.other_window(low.name, low.type in core.TIMES, window.span))


def _windows(node: object) -> Iterator[syntax.Window]:
    """The windows of parts of a formula."""
    if isinstance(node, tuple):
        for item in node:
            yield from _windows(item)
    elif isinstance(node, _FORMULAS):
        if isinstance(node, syntax.Within):
            yield node.window
        for part in fields(node):
            yield from _windows(getattr(node, part.name))


def _named(node: object, attribute: str) -> Iterator[Span]:
    """The places in a query where an attribute is named, outside texts."""
    match node:
        case tuple():
            for one in node:
                yield from _named(one, attribute)
        case syntax.Query(partition_by=keys):
            for key in keys or ():
                names = key.names if isinstance(key, syntax.Alternatives) else (key,)
                yield from (
                    one.span
                    for one in names
                    if isinstance(one, syntax.Name) and one.text == attribute
                )
        case syntax.LabelItem(attributes=names):
            yield from (one.span for one in names or () if one.text == attribute)
        case syntax.Attribute(attribute=syntax.Name(text=name)) if name == attribute:
            yield node.span
    if is_dataclass(node) and not isinstance(node, syntax.LabelItem):
        for part in fields(node):
            yield from _named(getattr(node, part.name), attribute)


def _clauses(node: syntax.Query) -> Iterator[tuple[str, Span]]:
    select = node.select
    if select is not None:
        if select.strategy not in (None, "ALL"):
            yield f"SELECT {select.strategy}", select.strategy_span or select.span
        if select.per_start is not None:
            yield f"SELECT {select.per_start.end}", select.per_start.span
        if select.together is not None and select.together.kind != "TOTAL":
            yield f"SELECT {select.together.kind}", select.together.span
    if node.consume is not None and node.consume.policy != "NONE":
        yield f"CONSUME BY {node.consume.policy}", node.consume.span
    if node.limit is not None:
        yield "LIMIT", node.limit.span


def _parts(node: object) -> Iterator[tuple[str, Span]]:
    """The parts of a formula that have no meaning, with their places."""
    if isinstance(node, tuple):
        for item in node:
            yield from _parts(item)
        return
    if not isinstance(node, _FORMULAS):
        return
    match node:
        case syntax.Link(contiguous=True):
            yield "`:`", node.operator_span
        case syntax.First():
            yield "FIRST", node.span
        case syntax.Iteration(contiguous=True):
            yield "`:+`", node.span
        case syntax.Selector():
            yield f"{node.strategy}(…)", node.span
        case syntax.OtherEvent():
            yield "NOT(…)", node.span
        case syntax.AbsenceAfter():
            yield "an absence (`!`) at the end", node.bang
        case syntax.AbsenceBefore():
            yield "an absence (`!`) at the start", node.span
        case _:
            pass
    for part in fields(node):
        yield from _parts(getattr(node, part.name))


_FORMULAS = (*syntax.Formula.__args__, syntax.Link, syntax.Joint)


_BY_ORDER = ("FIRST", "LAST", "NTH", "LIST")


def check_values(
    output: Iterable[core.OutputLabel | core.OutputExpression],
    labels: Labels,
    found: Diagnostics,
) -> None:
    """Report expressions of SELECT whose values differ between the worlds of a row; `labels` are
    those of the formula."""
    for item in output:
        if not isinstance(item, core.OutputExpression):
            continue
        whole = item.value
        if isinstance(whole, core.Collection):
            ordered = [(whole.label, whole.span)]
        else:
            ordered = [
                (part.label, part.span)
                for part in nodes_of(whole)
                if isinstance(part, core.Aggregate) and (part.own or part.function in _BY_ORDER)
            ]
        for label, span in ordered:
            if labels[label].extent.most > 1:
                found.add(messages.goes_by_order(item.text, label, span))
                break


def check_labels(formula: core.Formula, kept: frozenset[str], found: Diagnostics) -> None:
    """Report events of a formula that have none of the labels `kept`."""
    for atom, labels in _labelled(formula):
        if not labels & kept:
            found.add(messages.unlabelled(atom.types[0].name if atom.types else "", atom.span))


def _labelled(formula: core.Formula) -> list[tuple[core.Atom, frozenset[str]]]:
    """The event types of a formula, each with the labels of its events."""
    match formula:
        case core.Atom():
            return [(formula, frozenset({formula.label}))]
        case core.As():
            inside = _labelled(formula.operand)
            return [(atom, ls | {formula.label} if ls else ls) for atom, ls in inside]
        case core.Rename():
            return [
                (atom, frozenset(formula.new if x == formula.old else x for x in labels))
                for atom, labels in _labelled(formula.operand)
            ]
        case core.Project():
            kept = frozenset(formula.labels)
            return [(atom, labels & kept) for atom, labels in _labelled(formula.operand)]
        case core.Filter() | core.Iteration() | core.Within():
            return _labelled(formula.operand)
        case core.Sequence() | core.Disjunction():
            return [one for operand in formula.operands for one in _labelled(operand)]
        case core.Conjunction() | core.All() | core.Absence():
            return _labelled(formula.left) + _labelled(formula.right)
        case core.Unless():
            return _labelled(formula.left)
        case _:
            return []  # that has been reported
