"""A query → its `Plan`: all data that the runtime has of it, apart from code and strategy."""

from collections.abc import Iterable, Sequence, Set

from celc_runtime.plan import parameters as rows
from celc_runtime.plan import plan
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.relevance import Relevant
from celc_runtime.plan.uncertain import Uncertain

from celc.codegen.expressions.conditions import ConditionCode
from celc.codegen.expressions.own_aggregates import OwnAggregateCode
from celc.codegen.expressions.total_trees import attributes_in_totals, totals_of
from celc.codegen.expressions.trees import (
    attributes_in,
    computed_columns,
    derived_columns,
)
from celc.core import formula as core
from celc.core.limits import DEFAULT_MAX_WORK, SIMULTANEOUS
from celc.core.traversal import is_one_event, windows_in
from celc.normal.normalize import output_labels
from celc.plan.concerns import concerns_of
from celc.plan.courses import course_of
from celc.plan.deadlines import Deadline, deadlines_of, written_deadlines
from celc.plan.program import Program
from celc.plan.reaches import reaches_of
from celc.plan.relevance import events_told_apart, has_selectors, relevant_events
from celc.plan.single_labels import labels_at_end, labels_at_start, single_labels
from celc.plan.strategy import ByDefinition, Checked, InWorlds, Listing
from celc.plan.tables import Kind, Tables


@frozen
class Asked:
    """What a plan depends on besides its program.

    - `own` writes the functions of aggregates that the file declares; `code` has written the
      conditions.
    - `tiebreak` and `at_end` are those of the options.
    - `read` are the attributes that conditions and keys of states read.
    - `sees_all_events`: a selection also reads events that the query does not ask about.
    """

    code: ConditionCode
    own: OwnAggregateCode
    read: Set[str]
    tiebreak: tuple[str, ...]
    at_end: str
    sees_all_events: bool


def plan_of(program: Program, asked: Asked) -> plan.Plan:
    """The plan of a query."""
    answer = _answer(program, asked)
    return plan.Plan(
        name=program.query.name,
        source=_source(program, asked),
        matching=_matching(program, asked),
        choice=_choice(program, asked),
        answer=answer,
        functions=asked.own.calls.digests(),
    )


def _source(program: Program, asked: Asked) -> plan.Source:
    query = program.query
    read = attributes_read(query, asked.read)
    relevant, told_apart = _relevant(program, sees_all=asked.sees_all_events)
    return plan.Source(
        streams=tuple(stream.name for stream in query.streams),
        types=_types_asked(program),
        other_types=_other_types(program),
        rest=_rest(query),
        type_column=query.needs_type_column,
        stream_column=query.needs_stream_column,
        attributes=_attributes(query, read),
        derived=derived_columns(query, {one.name for one in read}),
        order_candidates=_attributes(query, common_attributes(query)),
        partition_by=tuple(key.name for key in _written_keys(query)),
        chosen_keys=_chosen_keys(query),
        order_by=tuple(attribute.name for attribute in query.order_by),
        tiebreak=asked.tiebreak,
        ties=SIMULTANEOUS if query.simultaneous else None,
        uncertain=None if query.uncertain is None else _uncertain(query.uncertain),
        reads=query.reads,
        begin=None if query.begin is None else query.begin.name,
        declared=_declared_attributes(query) if query.reads else (),
        parameters=_parameters(program, sees_all=asked.sees_all_events),
        relevant=relevant,
        told_apart=told_apart,
    )


def _matching(program: Program, asked: Asked) -> plan.Matching:
    query = program.query
    windows = windows_in(query.formula)
    return plan.Matching(
        columns=tuple(asked.code.attributes),
        texts=tuple(asked.code.texts),
        symbol_dtype="uint8" if _symbols(program.tables) < 256 else "uint16",
        kinds=_kinds(query, program.output_kinds),
        kind_bits=program.kind_bits,
        window=None if query.window is None else _window(query.window),
        local_windows=tuple(map(_window, windows)),
        # The window of events that last reaches as far back as their absences.
        reaches=(
            ()
            if query.lasting
            else tuple(tuple(map(windows.index, hops)) for hops in reaches_of(query.formula))
        ),
        # Inside an event that lasts there can be others, which rule it out.
        one_event=query.window is None and is_one_event(query.formula) and not query.lasting,
        nested_selectors=has_selectors(query.formula),
        consume_by=_consume_by(query),
    )


def _choice(program: Program, asked: Asked) -> plan.Choice:
    query, listing = program.query, program.listing
    windows = windows_in(query.formula)
    written, found = written_deadlines(query.formula), deadlines_of(listing)
    return plan.Choice(
        limit=_limit(program),
        per_start=_per_start(program, late=bool(found)),
        deadlines=_deadlines(found, windows),
        ruled_out=_deadlines((one for one in written if one not in found), windows),
        # A query that reads others passes its options to them, and runs with the options of the
        # file.
        at_end=asked.at_end if written or query.reads else "open",
        max_work=_max_work(listing),
        rate=_rate(query.rate),
    )


def _answer(program: Program, asked: Asked) -> plan.Answer:
    query = program.query
    expressions = computed_columns(query, asked.own)
    return plan.Answer(
        labels=_labels(program),
        expressions=expressions,
        hidden=_hidden(query, len(expressions)),
        collapsed=query.collapsed,
        totals=None if query.total is None else totals_of(query.total),
    )


# --- the columns that are read --------------------------------------------------------------------


def attributes_read(query: core.Query, read: Set[str]) -> list[core.AttributeDeclaration]:
    """The columns that a query reads besides `type` and `stream`, in order of declaration.

    They are the attributes of conditions and of keys of states (`read`), of SELECT, PARTITION BY,
    WITHIN and the order.
    """
    needed = {a.name for a in query.order_by} | read
    if query.parameters is not None:
        needed |= {one.attribute for one in query.parameters.patterns}
    needed |= set() if query.begin is None else {query.begin.name}
    if query.uncertain is not None:
        weights = query.uncertain.weights
        needed |= {query.uncertain.high.name} | (set() if weights is None else {weights.name})
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


def common_attributes(query: core.Query) -> list[core.AttributeDeclaration]:
    """The attributes that every event type of the query has: events can be ordered by them."""
    types = [event_type for stream in query.streams for event_type in stream.event_types]
    others = types[1:]
    return [
        a
        for a in types[0].attributes
        if a != query.begin and all(t.type_of(a.name) is not None for t in others)
    ]


def _attributes(
    query: core.Query, attributes: Iterable[core.AttributeDeclaration]
) -> tuple[plan.Attribute, ...]:
    """Attributes, without those that come from the parameter table."""
    added = _added(query)
    return tuple(plan.Attribute(a.name, a.type.value) for a in attributes if a.name not in added)


def _added(query: core.Query) -> frozenset[str]:
    return frozenset() if query.parameters is None else query.parameters.columns_added


def _declared_attributes(query: core.Query) -> tuple[str, ...]:
    """The attributes of the declared streams of a query that reads others."""
    types = (
        t for stream in query.streams if stream.name not in query.reads for t in stream.event_types
    )
    found = dict.fromkeys(one.name for each in types for one in each.attributes)
    return tuple(name for name in found if query.begin is None or name != query.begin.name)


def _written_keys(query: core.Query) -> list[core.PartitionKey]:
    """The keys of PARTITION BY, without those that come from the parameter table."""
    added = _added(query)
    return [key for key in query.partition_by if key.name not in added]


def _chosen_keys(query: core.Query) -> tuple[plan.ChosenKey, ...]:
    """The keys of PARTITION BY that are different attributes for different event types."""
    return tuple(
        plan.ChosenKey(place, key.type.value, key.alternatives)
        for place, key in enumerate(_written_keys(query))
        if key.alternatives
    )


# --- the types of events --------------------------------------------------------------------------


def _types_asked(program: Program) -> tuple[tuple[str, str], ...]:
    return tuple((t.type.stream, t.type.name) for t in program.alphabet.types)


def _other_types(program: Program) -> tuple[tuple[str, str], ...]:
    known = {*_types_asked(program)}
    types = (one for stream in program.query.streams for one in stream.event_types)
    return tuple(names for one in types if (names := (one.stream, one.name)) not in known)


def _rest(query: core.Query) -> tuple[tuple[str, str], ...]:
    types = (one for stream in query.streams for one in stream.event_types)
    return tuple((one.stream, one.name) for one in types if one.is_rest)


def _relevant(
    program: Program, *, sees_all: bool
) -> tuple[tuple[Relevant, ...] | None, tuple[Relevant, ...] | None]:
    """The events that can change an answer, and those of which more than the number is read."""
    if program.query.parameters is not None:
        return None, None
    return (
        relevant_events(program, sees_all_events=sees_all),
        events_told_apart(program, sees_all_events=sees_all),
    )


def _symbols(tables: Tables) -> int:
    """The number of symbols that a batch can hold."""
    return tables.classes if tables.instants is None else tables.symbols


# --- matches, and the answer ----------------------------------------------------------------------


def _labels(program: Program) -> tuple[plan.Label, ...]:
    single = at_start = at_end = frozenset[str]()
    # By definition matches are found without tables, and a union has more events than a match.
    if not (isinstance(program.listing, ByDefinition) or program.query.collapsed):
        single = single_labels(program.tables)
        # A match of simultaneous events begins and ends with whole instants, not with its events.
        # Where time is uncertain, each event can be the first.
        if not (program.query.simultaneous or program.query.uncertain):
            at_start, at_end = labels_at_start(program.tables), labels_at_end(program.tables)
    named = (plan.Label(*one) for one in attributes_in_totals(program.query).items())
    shown = (
        plan.Label(
            item.label,
            tuple(a.name for a in item.attributes),
            single=item.label in single,
            first=item.label in single & at_start,
            last=item.label in single & at_end,
        )
        for item in program.query.output
        if isinstance(item, core.OutputLabel)
    )
    return (*named, *shown)


def _hidden(query: core.Query, expressions: int) -> tuple[str, ...]:
    """The labels that are not columns. They are those of expressions and of LIMIT … PER, and in a
    query with TOTAL those that no total names: they still distinguish matches."""
    if query.total is not None:
        return output_labels(query)[len(attributes_in_totals(query)) :]
    return output_labels(query)[len(query.output) - expressions :]


def _kinds(query: core.Query, kinds: Iterable[Kind]) -> tuple[plan.Kind, ...]:
    """For each kind the columns of the output that hold its events."""
    column_of = {label: column for column, label in enumerate(output_labels(query))}
    return tuple(
        plan.Kind(
            tuple(sorted(column_of[mark] for mark in kind.marks if mark in column_of)),
            starts=kind.starts,
        )
        for kind in kinds
    )


def _limit(program: Program) -> int | None:
    """How many matches with one end are listed. A choice by starts comes before LIMIT."""
    if program.per_start is not None:
        return None
    return 1 if program.query.strategy == "ANY" else program.query.limit


def _rate(rate: core.Rate | None) -> plan.Rate | None:
    if rate is None:
        return None
    length = None if rate.length is None else _window(rate.length)
    known_after = None if rate.known_after is None else _window(rate.known_after)
    return plan.Rate(rate.count, length, rate.support, known_after)


def _max_work(listing: Listing) -> int:
    match listing:
        case Checked(max_work=most) | ByDefinition(max_work=most) | InWorlds(max_work=most):
            return most
        case _:
            return DEFAULT_MAX_WORK


def _per_start(program: Program, *, late: bool) -> plan.PerStart | None:
    choice = program.per_start
    if choice is None:
        return None
    return plan.PerStart(choice.end, disjoint=choice.disjoint, limit=program.query.limit, late=late)


# --- windows, and time ----------------------------------------------------------------------------


def _window(window: core.Window) -> plan.Window:
    attribute = None if window.attribute is None else window.attribute.name
    begin = None if window.begin is None else window.begin.name
    unit, to_start = window.unit.value, window.to_start
    return plan.Window(unit, window.size, attribute, begin=begin, to_start=to_start)


def _deadlines(
    found: Iterable[Deadline], windows: Sequence[core.Window]
) -> tuple[plan.Deadline, ...]:
    return tuple(
        plan.Deadline(windows.index(one.length), from_start=one.from_start) for one in found
    )


def _uncertain(uncertain: core.Uncertainty) -> Uncertain:
    threshold = uncertain.threshold
    return Uncertain(
        uncertain.low.name,
        uncertain.high.name,
        uncertain.step,
        weights=None if uncertain.weights is None else uncertain.weights.name,
        least=None if threshold is None else threshold.least,
        strict=threshold is not None and threshold.strict,
    )


# --- FOR EACH -------------------------------------------------------------------------------------


def _consume_by(query: core.Query) -> str:
    return query.consume_by if query.parameters is None else query.parameters.consume_by


def _parameters(program: Program, *, sees_all: bool) -> rows.Parameters | None:
    """The parameter set, and the rows that an event concerns."""
    found = program.query.parameters
    if found is None:
        return None
    concerns = concerns_of(program, sees_all_events=sees_all)
    return rows.Parameters(
        name=found.name,
        attributes=tuple(rows.Parameter(one.name, one.type.value) for one in found.attributes),
        shown=found.shown,
        columns=found.columns,
        number=found.number,
        patterns=tuple(
            rows.Pattern(one.column, one.operator, one.attribute, one.parameter)
            for one in found.patterns
        ),
        position=found.position,
        row_by_row=found.row_by_row,
        consume_by=found.consume_by,
        concerns=concerns.of_types,
        why=concerns.why,
        course=course_of(program),
        valid=_validity(found.valid),
    )


def _validity(valid: core.Validity | None) -> rows.Validity | None:
    if valid is None:
        return None
    return rows.Validity(
        valid.since,
        valid.until,
        valid.first,
        valid.last,
        valid.type.value,
        looks_out=valid.looks_out,
    )
