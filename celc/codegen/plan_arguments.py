"""A query → the arguments of its `Plan`: all data that the runtime has of it besides code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from celc.codegen.conditions import ConditionCode
from celc.codegen.escape import literal, string_literal, string_tuple, tuple_text
from celc.codegen.imports import Imports
from celc.codegen.output import attributes_in, expression_fields
from celc.codegen.own_aggregates import OwnAggregateCode
from celc.codegen.parameters import columns_added, parameters_call
from celc.codegen.totals import attributes_in_totals, totals_field
from celc.core import formula as core
from celc.core.limits import SIMULTANEOUS
from celc.core.traversal import is_one_event, windows_in
from celc.normal.normalize import output_labels
from celc.plan.concerns import concerns_of
from celc.plan.deadlines import deadlines_of, written_deadlines
from celc.plan.program import Program
from celc.plan.reaches import reaches_of
from celc.plan.relevance import (
    AttributeTest,
    RelevantEvents,
    events_told_apart,
    has_selectors,
    relevant_events,
)
from celc.plan.single_labels import labels_at_end, labels_at_start, single_labels
from celc.plan.strategy import ByDefinition, Checked, InWorlds
from celc.plan.tables import Kind, Tables


@dataclass(frozen=True, slots=True)
class PlanArgument:
    """A field of the plan, and an expression for it."""

    name: str
    value: str


# Long: a list of the fields of the plan.
def plan_arguments(
    program: Program,
    code: ConditionCode,
    read: Set[str],
    tiebreak: tuple[str, ...],
    at_end: str,
    *,
    own: OwnAggregateCode,
    sees_all_events: bool,
) -> tuple[PlanArgument, ...]:
    """The arguments of the plan.

    `own` writes the functions of aggregates that the file declares. `at_end` is that of the
    options, `code` has written the conditions, `read` are the attributes that conditions and keys
    of states read. `sees_all_events`: a selection also has to read the events that the query does
    not ask about.
    """
    query, tables = program.query, program.tables
    imports = code.imports
    parameters, added = query.parameters, columns_added(query.parameters)
    relevant = told_apart = None
    if parameters is not None:
        read = {*read, *(one.attribute for one in parameters.patterns)}
    else:
        relevant = relevant_events(program, sees_all_events=sees_all_events)
        told_apart = events_told_apart(program, sees_all_events=sees_all_events)
    fields = {
        "name": string_literal(query.name),
        "streams": string_tuple(stream.name for stream in query.streams),
        **_types(program),
        "type_column": str(query.needs_type_column),
        "stream_column": str(query.needs_stream_column),
        "attributes": _attributes(
            (one for one in attributes_read(query, read) if one.name not in added), imports
        ),
        "order_candidates": _attributes(
            (one for one in common_attributes(query) if one.name not in added), imports
        ),
        "columns": string_tuple(code.attributes),
        "texts": tuple_text(code.texts),
        "labels": _labels(program, imports),
        **expression_fields(query, imports, own),
        **_hidden(query),
        "kinds": _kinds(query, program.output_kinds, imports),
        "kind_bits": str(program.kind_bits),
        "partition_by": string_tuple(
            key.name for key in query.partition_by if key.name not in added
        ),
        "order_by": string_tuple(attribute.name for attribute in query.order_by),
        "tiebreak": string_tuple(tiebreak),
        "window": "None" if query.window is None else _window(query.window, imports),
        "consume_by": string_literal(query.consume_by),
        "limit": repr(_limit(program)),
        "symbol_dtype": string_literal("uint8" if _symbols(tables) < 256 else "uint16"),
        **_keys_by_type(query, imports),
    }
    local_windows = windows_in(query.formula)
    if local_windows:
        fields["local_windows"] = tuple_text(_window(one, imports) for one in local_windows)
    reaches = reaches_of(query.formula)
    if reaches:
        numbers = {window: str(number) for number, window in enumerate(local_windows)}
        hops = (tuple_text(numbers[window] for window in one) for one in reaches)
        fields["reaches"] = tuple_text(hops)
    fields |= _deadlines(program, local_windows, at_end, imports)
    # An event that lasts can have others inside of it, which rule it out.
    if query.window is None and is_one_event(query.formula) and not query.lasting:
        fields["one_event"] = "True"
    if query.simultaneous:
        fields["ties"] = string_literal(SIMULTANEOUS)
    if program.per_start is not None:
        fields["per_start"] = _per_start(program.per_start, query.limit, imports)
    fields |= totals_field(query, imports)
    if query.collapsed:
        fields["collapsed"] = "True"
    if has_selectors(query.formula):
        fields["nested_selectors"] = "True"
    if relevant is not None:
        fields["relevant"] = _relevant(relevant, imports)
    if told_apart is not None:
        fields["told_apart"] = _relevant(told_apart, imports)
    if parameters is not None:
        fields["consume_by"] = string_literal(parameters.consume_by)
        concerns = concerns_of(program, sees_all_events=sees_all_events)
        fields["parameters"] = parameters_call(parameters, concerns, imports)
    if query.begin is not None:
        fields["reads"] = string_tuple(query.reads)
        fields["begin"] = string_literal(query.begin.name)
        fields["declared"] = string_tuple(_declared_attributes(query))
    if query.uncertain is not None:
        fields["uncertain"] = _uncertain(query.uncertain, imports)
    if isinstance(program.listing, Checked | ByDefinition | InWorlds):
        fields["max_work"] = f"{program.listing.max_work:_}"
    imports.use("Plan")
    return tuple(PlanArgument(name, value) for name, value in fields.items())


def _deadlines(
    program: Program, windows: Sequence[core.Window], at_end: str, imports: Imports
) -> dict[str, str]:
    """The fields about absences at the ends of matches; none where there is none."""
    written, found = written_deadlines(program.query.formula), deadlines_of(program.listing)
    fields = {}
    for name, listed in (
        ("deadlines", found),
        ("ruled_out", tuple(one for one in written if one not in found)),
    ):
        if listed:
            fields[name] = tuple_text(
                imports.call("Deadline", str(windows.index(one.length)), repr(one.from_start))
                for one in listed
            )
    # A query that reads others gives its options to them, and to run it needs those of the file.
    if at_end != "open" and (written or program.query.begin is not None):
        fields["at_end"] = string_literal(at_end)
    return fields


def _limit(program: Program) -> int | None:
    """How many matches with one end are listed; a choice by starts comes before LIMIT."""
    if program.per_start is not None:
        return None
    return 1 if program.query.strategy == "ANY" else program.query.limit


def _per_start(choice: core.PerStart, limit: int | None, imports: Imports) -> str:
    limits = [] if limit is None else [f"limit={limit}"]
    return imports.call("PerStart", string_literal(choice.end), repr(choice.disjoint), *limits)


def _symbols(tables: Tables) -> int:
    """The number of symbols that a batch can hold."""
    return tables.classes if tables.instants is None else tables.symbols


def attributes_read(query: core.Query, read: Set[str]) -> list[core.AttributeDeclaration]:
    """The columns that a query reads besides `type` and `stream`, in order of declaration.

    They are the attributes of conditions and of keys of states (`read`), of SELECT, of PARTITION
    BY, of WITHIN and of the order.
    """
    needed = {a.name for a in query.order_by} | read
    needed |= set() if query.begin is None else {query.begin.name}
    needed |= set() if query.uncertain is None else {query.uncertain.high.name}
    needed |= {name for key in query.partition_by for name in key.attributes}
    for window in (query.window, *windows_in(query.formula)):
        if window is not None and window.attribute is not None:
            needed.add(window.attribute.name)
    for item in query.output:
        if isinstance(item, core.OutputLabel):
            needed |= {a.name for a in item.attributes}
        else:
            needed |= attributes_in(item.value)
    for attributes in attributes_in_totals(query).values():
        needed |= {*attributes}
    found: dict[str, core.AttributeDeclaration] = {}
    for stream in query.streams:
        for event_type in stream.event_types:
            for attribute in event_type.attributes:
                if attribute.name in needed:
                    found.setdefault(attribute.name, attribute)
    return list(found.values())


def _declared_attributes(query: core.Query) -> list[str]:
    """The attributes of the declared streams of a query that reads others."""
    types = (
        t for stream in query.streams if stream.name not in query.reads for t in stream.event_types
    )
    found = dict.fromkeys(one.name for each in types for one in each.attributes)
    return [name for name in found if query.begin is None or name != query.begin.name]


def common_attributes(query: core.Query) -> list[core.AttributeDeclaration]:
    """The attributes that every event type of the query has: events can be ordered by them."""
    types = [event_type for stream in query.streams for event_type in stream.event_types]
    others = types[1:]
    return [
        a
        for a in types[0].attributes
        if a != query.begin and all(t.type_of(a.name) is not None for t in others)
    ]


# --- literals -------------------------------------------------------------------------------------


def _types(program: Program) -> dict[str, str]:
    asked = [(t.type.stream, t.type.name) for t in program.alphabet.types]
    declared = [
        (event_type.stream, event_type.name)
        for stream in program.query.streams
        for event_type in stream.event_types
    ]
    known = set(asked)
    others = [names for names in declared if names not in known]
    return {
        "types": tuple_text(map(string_tuple, asked)),
        "other_types": tuple_text(map(string_tuple, others)),
    }


def _attributes(attributes: Iterable[core.AttributeDeclaration], imports: Imports) -> str:
    return tuple_text(
        imports.call("Attribute", string_literal(a.name), string_literal(a.type.value))
        for a in attributes
    )


def _labels(program: Program, imports: Imports) -> str:
    single = at_start = at_end = frozenset[str]()
    # By definition matches are found without tables, and a union has more events than a match.
    if not (isinstance(program.listing, ByDefinition) or program.query.collapsed):
        single = single_labels(program.tables)
        # A match of simultaneous events begins and ends with whole instants, not with its events;
        # of uncertain time each event can be the first.
        if not (program.query.simultaneous or program.query.uncertain):
            at_start, at_end = labels_at_start(program.tables), labels_at_end(program.tables)
    labels = [
        imports.call("Label", string_literal(label), string_tuple(attributes))
        for label, attributes in attributes_in_totals(program.query).items()
    ]
    for item in program.query.output:
        if isinstance(item, core.OutputLabel):
            fields = [string_literal(item.label), string_tuple(a.name for a in item.attributes)]
            if item.label in single:
                fields.append("single=True")
                fields += ["first=True"] if item.label in at_start else []
                fields += ["last=True"] if item.label in at_end else []
            labels.append(imports.call("Label", *fields))
    return tuple_text(labels)


def _hidden(query: core.Query) -> dict[str, str]:
    """The labels that no total names, which tell matches apart all the same; none: no field."""
    if query.total is None:
        return {}
    hidden = output_labels(query)[len(attributes_in_totals(query)) :]
    return {"hidden": string_tuple(hidden)} if hidden else {}


def _kinds(query: core.Query, kinds: Iterable[Kind], imports: Imports) -> str:
    """For each kind the columns of the output that hold its events."""
    column_of = {label: column for column, label in enumerate(output_labels(query))}
    columns = [
        (sorted(column_of[mark] for mark in kind.marks if mark in column_of), kind.starts)
        for kind in kinds
    ]
    return tuple_text(
        imports.call("Kind", tuple_text(map(str, places)), f"starts={starts}")
        for places, starts in columns
    )


def _window(window: core.Window, imports: Imports) -> str:
    attribute = "None" if window.attribute is None else string_literal(window.attribute.name)
    unit = string_literal(window.unit.value)
    begin = () if window.begin is None else (f"begin={string_literal(window.begin.name)}",)
    return imports.call("Window", unit, repr(window.size), attribute, *begin)


def _uncertain(uncertain: core.Uncertainty, imports: Imports) -> str:
    names = (string_literal(one.name) for one in (uncertain.low, uncertain.high))
    threshold = uncertain.threshold
    bound = [] if threshold is None else [f"least={threshold.least!r}"]
    bound += [] if threshold is None else [f"strict={threshold.strict}"]
    return imports.call("Uncertain", *names, str(uncertain.step), *bound)


def _keys_by_type(query: core.Query, imports: Imports) -> dict[str, str]:
    """The keys of PARTITION BY that are another attribute for each event type; none: no field."""
    keys = []
    added = columns_added(query.parameters)
    written = (key for key in query.partition_by if key.name not in added)
    for place, key in enumerate(written):
        if key.alternatives:
            ways = tuple_text(
                f"({string_literal(name)}, {tuple_text(map(string_tuple, types))})"
                for name, types in key.alternatives
            )
            type = string_literal(key.type.value)
            keys.append(imports.call("ChosenKey", str(place), type, ways))
    return {"chosen_keys": tuple_text(keys)} if keys else {}


def _relevant(events: Iterable[RelevantEvents], imports: Imports) -> str:
    """The events that can change an answer, or of which a query reads more than their number."""
    return tuple_text(_relevant_of_type(of_type, imports) for of_type in events)


def _relevant_of_type(events: RelevantEvents, imports: Imports) -> str:
    arguments = [*map(string_literal, (events.type.stream, events.type.name))]
    if events.ways:
        arguments.append(_ways(events.ways, imports))
    if events.idempotent:
        arguments.append(f"idempotent={_ways(events.idempotent, imports)}")
    return imports.call("Relevant", *arguments)


def _ways(ways: Iterable[Iterable[Iterable[AttributeTest]]], imports: Imports) -> str:
    return tuple_text(
        tuple_text(tuple_text(_test(test, imports) for test in clause) for clause in way)
        for way in ways
    )


def _test(test: AttributeTest, imports: Imports) -> str:
    names = map(string_literal, (test.operator, test.attribute, test.type.value))
    values = [tuple_text(map(literal, test.values))] if test.values else []
    return imports.call("AttributeTest", *names, *values)
