"""FOR EACH: parameter sets, and their values as attributes of events.

A query with a parameter set is compiled once, for a stream with a copy of every event for each row
of the table that the event can concern. The number of the row is a partition key of that stream, so
all events of a match have the same row. A value of the row is an attribute of each event. So
`rule.a` in a condition becomes an attribute of an event that the condition names. Where it names
none, the condition moves to the events themselves, or gets a label that every match binds.

Rejected: a run for each row, whose cost grows with rows that an event does not concern; a kernel
with values of rows beside those of events, which every update and listing would have to know.

Long: a set from its declaration to the query, and each form of condition that reads it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Literal, TypeVar, assert_never

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.names import unused_name

from celc.core import formula as core
from celc.core.formula import AttributeDeclaration, DataType, EventType
from celc.core.terms import labels_chosen_from, nodes_written_in
from celc.core.traversal import (
    formulas_in,
    nodes_of,
    operands_of,
    windows_in,
    with_terms,
    with_types_and_windows,
)
from celc.core.valid import looks_out, valid_only
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import parameters as messages
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.extents import Labels
from celc.resolve.readers import ORDERED
from celc.resolve.types.written import type_of_written

# --- declarations ---------------------------------------------------------------------------------


@frozen
class ParameterSet:
    """A declared parameter set."""

    name: str
    attributes: Mapping[str, DataType]
    flawed: frozenset[str]  # attributes with a wrong type, which has been reported
    place: Span
    valid: core.Validity | None = None
    valid_place: Span | None = None  # of VALID, also where it is wrong, which has been reported


def declare_parameters(
    nodes: Iterable[syntax.ParametersDeclaration],
    event_types: Mapping[str, Span],
    found: Diagnostics,
) -> Mapping[str, ParameterSet]:
    """The parameter sets of a file; of two with one name the first counts. `event_types` are the
    places of the file's event types."""
    declared: dict[str, ParameterSet] = {}
    for node in nodes:
        name, place = node.name.text, node.name.span
        if name in declared:
            found.add(messages.duplicate_set(name, place, declared[name].place))
            continue
        if name in event_types:
            found.add(messages.event_type_and_set(name, place, event_types[name]))
        places: dict[str, Span] = {}
        attributes: dict[str, DataType] = {}
        for one in node.attributes:
            text, span = one.name.text, one.name.span
            if text in places:
                found.add(messages.duplicate_parameter(text, name, span, places[text]))
                continue
            places[text] = span
            data_type = type_of_written(one.type, found)
            if data_type is not None:
                attributes[text] = data_type
        flawed = frozenset(places.keys() - attributes.keys())
        clause = node.valid
        valid = None if clause is None else _validity(clause, name, attributes, flawed, found)
        place_of_valid = None if clause is None else clause.span
        declared[name] = ParameterSet(name, attributes, flawed, place, valid, place_of_valid)
    return declared


def _validity(
    clause: syntax.ValidClause,
    owner: str,
    attributes: Mapping[str, DataType],
    flawed: frozenset[str],
    found: Diagnostics,
) -> core.Validity | None:
    """From when to when a row counts; None where that is declared wrongly."""
    names = [name.text for name in clause.names]
    if len(names) != 2 or names[0] == names[1]:
        found.add(messages.two_times(clause.span))
        return None
    for one in clause.names:
        if one.text not in attributes:
            if one.text not in flawed:
                found.add(messages.unknown_parameter(one.text, owner, list(attributes), one.span))
            return None
    types = [attributes[name] for name in names]
    if types[0] is not types[1] or types[0] not in ORDERED:
        span = clause.names[0].span.to(clause.names[1].span)
        found.add(messages.types_of_times(types[0].value, types[1].value, span))
        return None
    first, last = (unused_name(f"{name}#", attributes) for name in names)
    return core.Validity(names[0], names[1], first, last, types[0])


# --- the set of a query ---------------------------------------------------------------------------


@frozen
class ForEach:
    """The parameter set of a query, with what the query reads of it. `read` and `patterns` grow
    while it is resolved."""

    set: ParameterSet
    clause: Span
    prefix: str
    """The beginning of all columns that the set adds; no attribute of the events begins so."""
    read: dict[str, None] = field(default_factory=dict)
    """The attributes of the set that conditions and expressions read."""
    patterns: dict[str, core.ParameterPattern] = field(default_factory=dict)
    """The columns of LIKE and RLIKE."""

    def column(self, attribute: str) -> str:
        """The column of events that holds an attribute of the set."""
        return f"{self.prefix}.{attribute}"

    def value(self, attribute: syntax.Name, span: Span, found: Diagnostics) -> core.Variable | None:
        if not self.knows(attribute, found):
            return None
        self.read[attribute.text] = None
        return core.Variable(attribute.text, self.set.attributes[attribute.text], span)

    def value_of_row(
        self, attribute: syntax.Name, span: Span, found: Diagnostics
    ) -> core.Expression | None:
        """`rule.a` beside totals. No event has it there; a partition key holds it."""
        value = self.value(attribute, span, found)
        if value is None:
            return None
        return core.AttributeValue(self.set.name, self.column(value.name), value.type, span)

    def pattern(self, operator: Literal["LIKE", "RLIKE"], attribute: str, parameter: str) -> str:
        """The column with the answer to `x.attribute LIKE rule.parameter`."""
        column = f"{self.prefix}#{operator} {parameter}.{attribute}"
        self.patterns[column] = core.ParameterPattern(column, operator, attribute, parameter)
        return column

    def knows(self, attribute: syntax.Name, found: Diagnostics) -> bool:
        """Whether the set has an attribute. Reports it where not."""
        name, offered = attribute.text, list(self.set.attributes)
        if name in offered or name in self.set.flawed:
            return name in offered
        found.add(messages.unknown_parameter(name, self.set.name, offered, attribute.span))
        return False


def for_each_of(
    node: syntax.Query,
    declared: Mapping[str, ParameterSet],
    attributes: Iterable[str],
    found: Diagnostics,
) -> ForEach | None:
    """The parameter set that a query names; None where it names none.

    `attributes` are those of the query's event types.
    """
    if node.for_each is None:
        return None
    name, span = node.for_each.text, node.for_each.span
    if name not in declared:
        found.add(messages.unknown_set(name, list(declared), span))
        empty = ParameterSet(name, {}, _everything_named(node, name), span)
        return ForEach(empty, span, name)
    for label in _labels_made(node.formula):
        if label.text == name:
            found.add(messages.label_and_set(name, label.span, span))
    prefix, taken = name, tuple(attributes)
    while any(one.startswith((f"{prefix}.", f"{prefix}#")) for one in taken):
        prefix = f".{prefix}"
    return ForEach(declared[name], span, prefix)


def check_valid(
    each: ForEach,
    order_by: tuple[AttributeDeclaration, ...],
    uncertain: bool,
    found: Diagnostics,
) -> None:
    """Report a query whose order column VALID cannot be compared with."""
    valid, place = each.set.valid, each.set.valid_place
    if valid is None or place is None:
        return
    if uncertain:
        found.add(messages.valid_of_uncertain(each.clause, place))
    elif not order_by:
        found.add(messages.valid_without_order(valid.type.value, each.clause, place))
    elif order_by[0].type is not valid.type:
        order = order_by[0]
        found.add(
            messages.type_of_valid(
                (valid.since, valid.type.value), (order.name, order.type.value), each.clause, place
            )
        )


def _nodes_below(node: Any) -> Iterator[Any]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple):
            waiting.extend(reversed(one))
        elif hasattr(one, "__slots__") and not isinstance(one, Span):
            yield one
            waiting.extend(getattr(one, name) for name in reversed(one.__slots__))


def _labels_made(formula: syntax.Formula) -> Iterator[syntax.Name]:
    for node in _nodes_below(formula):
        match node:
            case syntax.As():
                yield node.label
            case syntax.Rename():
                yield node.new
            case _:
                pass


def _everything_named(node: syntax.Query, name: str) -> frozenset[str]:
    """The attributes that a query reads of an unknown set; no errors are reported for them."""
    return frozenset(
        one.attribute.text
        for one in _nodes_below((node.formula, node.select))
        if isinstance(one, syntax.Attribute) and one.label is not None and one.label.text == name
    )


# --- conditions -----------------------------------------------------------------------------------


def reads_parameters(clause: core.Clause) -> bool:
    """Whether a clause names a value of the set."""
    return any(
        isinstance(node, core.Variable)
        for predicate in clause.predicates
        for node in nodes_written_in(predicate)
    )


def filtered(
    operand: core.Formula,
    clauses: tuple[core.Clause, ...],
    labels: Labels,
    each: ForEach,
    span: Span,
    found: Diagnostics,
) -> core.Formula:
    """`operand FILTER clauses`, with each value of the set as an attribute of an event. `labels`
    are those that the operand can bind."""
    kept: list[core.Clause] = []
    for clause in clauses:
        clause = replace(
            clause,
            predicates=tuple(
                _of_chosen(one, each) if isinstance(one, core.Quantified) else one
                for one in clause.predicates
            ),
        )
        if not reads_parameters(clause):
            kept.append(clause)
        elif clause.labels:
            kept.append(_on_labels(clause, clause.labels, each))
        elif not any(_labels_in(predicate) for predicate in clause.predicates):
            operand = _moved(operand, clause, each)
        else:
            kept += _on_each_match(clause, operand, labels, each, found)
    return core.Filter(operand, tuple(kept), span) if kept else operand


def _labels_in(predicate: core.Predicate) -> bool:
    nodes = (node for operand in operands_of(predicate) for node in nodes_of(operand))
    return any(
        isinstance(node, core.AttributeValue | core.Aggregate | core.Previous) for node in nodes
    )


def _on_labels(clause: core.Clause, labels: tuple[str, ...], each: ForEach) -> core.Clause:
    """The clause with each value of the set read from an event of one of `labels`.

    A label that the same side of the comparison names is preferred: `x.a + rule.d = y.a` then
    compares a number of one event with a number of another.
    """
    predicates = tuple(_of_events(predicate, labels, each) for predicate in clause.predicates)
    named = (label for one in predicates for label in labels_chosen_from(one))
    labels = tuple(dict.fromkeys((*named, *clause.labels)))
    return core.Clause(predicates, labels, clause.span)


def _of_events(predicate: core.Predicate, labels: tuple[str, ...], each: ForEach) -> core.Predicate:
    chosen = labels_chosen_from(predicate)
    default = next((label for label in chosen if label in labels), labels[0])

    def changed(operand: core.Expression) -> core.Expression:
        own = [
            node.label
            for node in nodes_of(operand)
            if isinstance(node, core.AttributeValue | core.Previous) and node.label in labels
        ]
        return _with_label(operand, next(iter(own), default), each)

    match predicate:
        case core.Comparison():
            beside = tuple(map(changed, predicate.beside))
            left, right = changed(predicate.left), changed(predicate.right)
            return replace(predicate, left=left, right=right, beside=beside)
        case core.Membership():
            beside = tuple(map(changed, predicate.beside))
            return replace(predicate, operand=changed(predicate.operand), beside=beside)
        case core.NullTest():
            beside = tuple(map(changed, predicate.beside))
            return replace(predicate, operand=changed(predicate.operand), beside=beside)
        case core.PatternMatch():
            return replace(predicate, operand=changed(predicate.operand))
        case core.Quantified():
            return _of_chosen(predicate, each)
        case _:
            assert_never(predicate)


def _of_chosen(predicate: core.Quantified, each: ForEach) -> core.Quantified:
    """SOME or EVERY with each value of the set read from an event that it chooses: there is one
    where the value is asked for."""

    def changed(truth: core.Truth) -> core.Truth:
        if isinstance(truth, core.Every | core.Some):
            return replace(truth, parts=tuple(map(changed, truth.parts)))
        return _of_events(truth, predicate.labels, each)

    return replace(predicate, condition=changed(predicate.condition))


def _with_label(node: core.Expression, label: str, each: ForEach) -> core.Expression:
    if isinstance(node, core.Variable):
        return core.AttributeValue(label, each.column(node.name), node.type, node.span)
    return with_terms(node, lambda one: _with_label(one, label, each))


def _moved(formula: core.Formula, clause: core.Clause, each: ForEach) -> core.Formula:
    """The formula with a condition on the row alone, `rule.a > 1`, at each event of a match. Such a
    condition has one truth for all events of a match, so each may be asked."""

    def moved(one: core.Formula) -> core.Formula:
        return _moved(one, clause, each)

    match formula:
        case core.Atom():
            return core.Filter(formula, (_on_labels(clause, (formula.label,), each),), clause.span)
        case core.Sequence() | core.Disjunction():
            return replace(formula, operands=tuple(map(moved, formula.operands)))
        case core.Conjunction() | core.All() | core.Absence():
            return replace(formula, left=moved(formula.left), right=moved(formula.right))
        case core.Unless() | core.ThenFirst():
            return replace(formula, left=moved(formula.left))
        case core.As() | core.Rename() | core.Project() | core.Iteration() | core.Filter():
            return replace(formula, operand=moved(formula.operand))
        case core.Selector() | core.Within() | core.AbsenceBefore() | core.AbsenceAfter():
            return replace(formula, operand=moved(formula.operand))
        case _:
            assert_never(formula)


def _on_each_match(
    clause: core.Clause, operand: core.Formula, labels: Labels, each: ForEach, found: Diagnostics
) -> Iterator[core.Clause]:
    """A clause whose labels stand in functions only, such as `COUNT(x) > rule.n`. The row is that
    of an event of a label that every match binds, else that of the events of all labels."""
    sure = [label for label, binding in labels.items() if binding.extent.least]
    single = [label for label in sure if labels[label].extent.most == 1]
    if sure:
        yield _on_labels(clause, ((*single, *sure)[0],), each)
        return
    if not labels or any(isinstance(part, core.Project) for part in formulas_in(operand)):
        found.add(messages.no_event_to_judge(found.source.slice(clause.span), clause.span))
        return
    for label in labels:
        yield _on_labels(clause, (label,), each)


# --- the query ------------------------------------------------------------------------------------


def _with_columns(types: tuple[EventType, ...], each: ForEach) -> tuple[EventType, ...]:
    """The event types with the columns that the query reads of its set."""
    added = (*_columns_of(each), *_fixed_columns(each))
    return tuple(replace(one, attributes=(*one.attributes, *added)) for one in types)


def _columns_of(each: ForEach) -> tuple[AttributeDeclaration, ...]:
    """The columns that hold values of the set, or of a pattern of it."""
    values = [
        AttributeDeclaration(each.column(name), data_type)
        for name, data_type in each.set.attributes.items()
        if name in each.read
    ]
    if each.set.valid is not None:
        valid = each.set.valid
        values += [
            AttributeDeclaration(each.column(name), valid.type)
            for name in (valid.first, valid.last)
        ]
    return (*values, *(AttributeDeclaration(name, DataType.BOOLEAN) for name in each.patterns))


def _fixed_columns(each: ForEach) -> tuple[AttributeDeclaration, AttributeDeclaration]:
    """The columns of the row's number, and of the position of an event."""
    return (
        AttributeDeclaration(f"{each.prefix}#", DataType.LONG),
        AttributeDeclaration(f"{each.prefix}#pos", DataType.LONG),
    )


def on_rows(query: core.Query, each: ForEach, shown: tuple[str, ...] | None) -> core.Query:
    """The query over a stream with a copy of each event for each row that it concerns. `shown` are
    the attributes of the set in its column, None: all."""
    number, position = _fixed_columns(each)
    valid = each.set.valid
    if valid is not None:
        time, first, last = query.order_by[0], each.column(valid.first), each.column(valid.last)
        valid = replace(valid, looks_out=looks_out(query.formula))
        query = replace(query, formula=valid_only(query.formula, time, first, last))
    made = () if valid is None else (valid.first, valid.last)
    waits = any(_waits_for_events(part, query) for part in formulas_in(query.formula))
    windows = (*([] if query.window is None else [query.window]), *windows_in(query.formula))
    counts = any(window.unit is core.WindowUnit.EVENTS for window in windows) and not waits
    on_position = position if counts else None
    query = replace(
        query,
        window=_on_position(query.window, on_position),
        formula=_of_rows(query.formula, each, on_position),
    )
    row_by_row = query.consume_by == "ANY" and bool(query.partition_by)
    parameters = core.Parameters(
        name=each.set.name,
        attributes=tuple(AttributeDeclaration(*one) for one in each.set.attributes.items()),
        shown=tuple(each.set.attributes) if shown is None else shown,
        columns=tuple(
            (each.column(name), name)
            for name in (*(one for one in each.set.attributes if one in each.read), *made)
        ),
        patterns=tuple(each.patterns.values()),
        number=number.name,
        position=position.name if counts else None,
        sees_all=waits,
        row_by_row=row_by_row,
        consume_by=query.consume_by,
        valid=valid,
    )
    streams = tuple(
        replace(stream, event_types=_with_columns(stream.event_types, each))
        for stream in query.streams
    )
    query = replace(query, streams=streams, parameters=parameters)
    if row_by_row:
        return query
    key = core.PartitionKey(number.name, number.type)
    consume_by = "PARTITION" if query.consume_by == "ANY" else query.consume_by
    return replace(query, partition_by=(key, *query.partition_by), consume_by=consume_by)


def _waits_for_events(formula: core.Formula, query: core.Query) -> bool:
    """Whether any event can decide a match, whatever row the event concerns.

    So it is for an absence at the end that is measured on positions, or on another column than the
    first of the order.
    """
    if not isinstance(formula, core.AbsenceAfter):
        return False
    length = formula.length
    if length.unit is core.WindowUnit.EVENTS:
        return True
    attribute = length.attribute
    return attribute is not None and attribute not in query.order_by[:1]


_Window = TypeVar("_Window", core.Window, core.Window | None)


def _on_position(window: _Window, position: AttributeDeclaration | None) -> _Window:
    """A window of EVENTS, measured on the column of positions, because the stream lacks events."""
    if window is None or position is None or window.unit is not core.WindowUnit.EVENTS:
        return window
    return replace(window, unit=core.WindowUnit.VALUE, attribute=position)


def _of_rows(
    formula: core.Formula, each: ForEach, position: AttributeDeclaration | None
) -> core.Formula:
    """The formula over events with the columns of the set, and with windows on `position`."""
    return with_types_and_windows(
        formula,
        lambda types: _with_columns(types, each),
        lambda window: _on_position(window, position),
    )
