"""The queries of a file resolved one by one: declarations, labels, formula, clauses and output."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from celc.core.formula import MAX_FORMULA_DEPTH, PerStart, Query, Total
from celc.diagnostics.errors import Diagnostic, Diagnostics
from celc.diagnostics.messages import clauses, names
from celc.diagnostics.messages import queries as messages
from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.resolve.derived import with_derived
from celc.resolve.ends import absences_at_ends, check_ends
from celc.resolve.formulas import Builder
from celc.resolve.labels import Annotator
from celc.resolve.local_windows import is_bounded, lift_windows
from celc.resolve.output import Selection, check_columns, select, shown_of_set
from celc.resolve.parameters import check_valid, declare_parameters, on_rows
from celc.resolve.query_clauses import (
    QueryClauses,
    check_window_length,
    clauses_of_query,
    window_of,
)
from celc.resolve.rates import rate_of, with_support
from celc.resolve.readers import (
    ORDERED,
    check_lasting,
    check_reader,
    lasting_of_query,
    over_queries,
    rows_of,
    with_starts,
)
from celc.resolve.schema import Declarations, declare, schema_of, with_table
from celc.resolve.scopes import Frame
from celc.resolve.totals import check_choices, check_collapsed, total_of
from celc.resolve.types.conditions import condition
from celc.resolve.types.expressions import Site
from celc.resolve.types.own_aggregates import declare_aggregates
from celc.resolve.types.own_event import derived_attributes, enter_derived, start_of
from celc.resolve.types.own_functions import declare_functions
from celc.resolve.types.tables import KnownTable
from celc.resolve.uncertain import (
    check_labels,
    check_uncertain,
    check_values,
    uncertainty_of_query,
)
from celc.resolve.warnings.first_instead import check_absences
from celc.resolve.warnings.idle_limits import check_limit
from celc.resolve.warnings.multitude import check_counts
from celc.resolve.warnings.simultaneous import check_simultaneous
from celc.resolve.warnings.suspicions import check_growth, growing_labels, has_choices


def resolve(
    file: syntax.File,
    source: Source,
    *,
    order_by: tuple[str, ...] | None = None,
    ties: str | None = None,
    table: KnownTable | None = None,
    max_clauses: int = 1000,
) -> tuple[tuple[Query, ...], tuple[Diagnostic, ...]]:
    """The queries of a file in core CEL, and warnings.

    Raises CelError with every error and warning of the file. With `order_by` None, the attribute of
    WITHIN or of an absence orders the stream, if there is one. With `ties`, events equal in all
    order columns are one instant. `table` is read where FROM names no stream. `max_clauses` bounds
    the conjunctive normal form of each condition.
    """
    found = Diagnostics(source)
    own = declare_aggregates(file.aggregates, found)
    functions = declare_functions(file.functions, own, found)
    declarations = declare(file.streams, found)
    derived = derived_attributes(file.streams, declarations, found)
    declarations = replace(declarations, derived=derived)
    event_types = {key[1]: place for key, place in declarations.places.items() if len(key) == 2}
    sets = declare_parameters(file.parameters, event_types, found)
    named = {one.name.text: one.name.span for one in file.queries if one.name is not None}
    declarations = replace(declarations, aggregates=own, functions=functions)
    declarations = replace(declarations, parameters=sets, queries=named)
    _check_query_names(file, event_types, declarations, found)
    read = {name.text for one in file.queries for name in one.streams or ()}
    queries: list[Query] = []
    wrong: set[str] = set()
    for node in file.queries:
        # The rows of a wrong query are not known, so its readers cannot be judged.
        known = all(name.text not in wrong for name in node.streams or ())
        errors = found.errors
        query = None
        if known:
            seen = with_table(node, declarations, table, found)
            query = _query(node, seen, source, order_by, ties, max_clauses, found)
        if query is not None and found.errors == errors:
            queries.append(query)
            if query.name in read:
                declarations = declarations.with_rows(rows_of(query, node, declarations.rows))
        elif node.name is not None:
            wrong.add(node.name.text)
    found.raise_errors()
    return tuple(queries), found.in_order()


def _check_query_names(
    file: syntax.File,
    event_types: Mapping[str, Span],
    declarations: Declarations,
    found: Diagnostics,
) -> None:
    first: dict[str, syntax.Name] = {}
    for query in file.queries:
        if query.name is None:
            assert len(file.queries) == 1, "the parser asks each of several queries for its name"
            continue
        name, span = query.name.text, query.name.span
        if name in event_types:
            found.add(messages.called_like(name, "an event type", span, event_types[name]))
        elif name in declarations.streams:
            found.add(messages.called_like(name, "a stream", span, declarations.places[name,]))
        before = first.setdefault(query.name.text.casefold(), query.name)
        if before is not query.name:
            found.add(
                names.duplicate_query(query.name.text, before.text, query.name.span, before.span)
            )


# Long: a list of the clauses, which are resolved in this order.
def _query(
    node: syntax.Query,
    declarations: Declarations,
    source: Source,
    order_by: tuple[str, ...] | None,
    ties: str | None,
    max_clauses: int,
    found: Diagnostics,
) -> Query | None:
    """One query; None where an error leaves nothing to go on with. `found` gets all problems."""
    schema = schema_of(node, declarations, found)
    enter_derived(schema)
    if any(map(declarations.stands_later, node.streams or ())):
        return None  # reported already; without the rows of the later query, nothing can be judged
    streams = [stream.name for stream in schema.streams]
    uncertain = uncertainty_of_query(node, streams, declarations.uncertain, found)
    if uncertain is not None:
        check_uncertain(node, uncertain, order_by, ties, found)
        order_by, ties = (uncertain.low.name,), None
    reads = tuple(name.text for name, _ in schema.read)
    declared = [stream for stream in schema.streams if stream.name not in reads]
    lasting = lasting_of_query(node, declared, declarations.lasting, order_by, found)
    if lasting is None:
        return None
    if lasting:
        order_by = (next(iter(lasting.values())).end.name,)  # all have the same end
    around = clauses_of_query(node, order_by, schema, found)
    check_ends(node, [event_type.name for event_type in schema.event_types], source, found)
    lasts = bool(reads or lasting)
    annotator = Annotator(schema, found, lasts=lasts)
    scoped = annotator.annotate(node.formula)
    if scoped.depth > MAX_FORMULA_DEPTH:
        found.add(clauses.formula_too_deep(scoped.depth, MAX_FORMULA_DEPTH, node.formula.span))
        return None
    if annotator.too_large:
        return None
    check_window_length(around.window, scoped.length, node.formula.span, found)
    strategy, strategy_span = _strategy(node)
    bounded = node.window is not None or strategy == "STRICT" or is_bounded(node.formula)
    parts = bool(node.partition_by)
    simultaneous = ties is not None or lasts
    builder = Builder(
        schema,
        lambda window: window_of(window, around.order_by, around.order_is_known, schema, found),
        annotator.hidden,
        found,
        max_clauses,
        bounded or not has_choices(scoped),
        parts,
        simultaneous=simultaneous,
        lasts=lasts,
        window=around.window,
    )
    frame = Frame(scoped.labels, None, None)
    window, formula = lift_windows(around.window, builder.build(scoped, frame))
    known = around.order_by if around.order_is_known else None
    if reads:
        usable = schema.shared(of=ORDERED)
        check_reader(schema.read, known, usable, found)
        if any(one.is_rest for one in schema.event_types):
            found.add(messages.rest_in_reader(schema.read[0][0].text, schema.read[0][0].span))
    if lasts:
        check_lasting(formula, schema.read if reads else (), found)
    if simultaneous:
        check_simultaneous(node, formula, window, known, found, lasts=lasts)
    if not reads and uncertain is None:
        check_absences(formula, found)
    site = Site(schema, frame, annotator.hidden, found, "select", condition)
    check_choices(node, source, found)
    together = None if node.select is None else node.select.together
    selection, total = _selection(node, site, source, around, uncertain=uncertain is not None)
    if uncertain is not None:
        kept = selection.labels if total is None else frozenset(scoped.labels)
        check_labels(formula, kept, found)
        check_values(selection.items, scoped.labels, found)
    if schema.for_each is not None and around.order_is_known:
        check_valid(schema.for_each, around.order_by, uncertain is not None, found)
    rate = rate_of(node, around, schema, found)
    formula, rate = with_support(formula, rate, selection.labels)
    limited = around.limit is not None and rate is None
    per_start = None if together is not None else _per_start(node, found)
    if per_start is not None or together is not None:
        pass  # there is one match for each start, or none is listed: their number cannot explode
    elif strategy == "ALL" and not bounded and not limited:
        check_growth(scoped, selection.labels, found)
    elif strategy == "ALL" and not limited:
        growing = growing_labels(scoped, selection.labels)
        check_counts(formula, growing, window, found)
    if limited and together is None and not simultaneous and not found.has_errors:
        assert node.limit is not None
        check_limit(node.limit, formula, strategy, per_start, found)
    query = Query(
        name=node.name.text if node.name else PurePath(source.name).name.removesuffix(".cel"),
        streams=schema.streams,
        needs_type_column=len(schema.event_types) > 1,
        needs_stream_column=len(schema.masks) < len(schema.event_types),
        formula=formula,
        strategy=strategy,
        strategy_span=together.span if together is not None else strategy_span,
        output=selection.items,
        partition_by=around.partition_by,
        window=window,
        consume_by=around.consume_by,
        limit=around.limit if node.limit is not None and node.limit.per is None else None,
        order_by=around.order_by,
        simultaneous=simultaneous,
        span=node.span,
        per_start=per_start,
        total=total,
        collapsed=together is not None and together.kind == "COLLAPSED",
        uncertain=uncertain,
        rate=rate,
    )
    begin = start_of(schema, lasting, reads) if lasting else None
    query = with_derived(query, schema.made)
    if begin is not None:
        query = with_starts(replace(query, reads=reads), begin)
    elif reads:
        if len(query.order_by) != 1:
            return None  # which has been reported
        query = over_queries(query, reads)
    if schema.for_each is None or found.has_errors:
        return query
    return on_rows(query, schema.for_each, selection.parameters)


def _per_start(node: syntax.Query, found: Diagnostics) -> PerStart | None:
    """The choice of one match for each start: SELECT FIRST, LONGEST and their like."""
    written = None if node.select is None else node.select.per_start
    if written is None:
        return None
    per_start = PerStart(written.end, written.disjoint, written.span)
    consume = node.consume
    if consume is not None and consume.policy != "NONE" and str(per_start) != "FIRST":
        found.add(clauses.consume_before_known(consume.policy, str(per_start), consume.span))
    return per_start


def _strategy(node: syntax.Query) -> tuple[syntax.Strategy, Span | None]:
    if node.select is None:
        return "ALL", None
    return node.select.strategy or "ALL", node.select.strategy_span


def _attributes_of(key: syntax.Key) -> tuple[syntax.Name, ...]:
    """The attributes that a key of PARTITION BY can be; none of an expression."""
    match key:
        case syntax.Name():
            return (key,)
        case syntax.Alternatives():
            return key.names
        case _:
            return ()


def _selection(
    node: syntax.Query,
    site: Site,
    source: Source,
    around: QueryClauses,
    *,
    uncertain: bool,
) -> tuple[Selection, Total | None]:
    """The columns of a query (none with totals), and its totals."""
    items = None if node.select is None else node.select.items
    span = items.span if isinstance(items, syntax.AllItems) else node.formula.span
    places = {
        name.text: key.span
        for key in node.partition_by or ()
        for name in _attributes_of(key)[:1]
        if name.text in {one.name for one in around.partition_by}
    }
    decided = bool(absences_at_ends(node.formula))
    order_by, order_is_known = around.order_by, around.order_is_known
    total = total_of(
        node, order_by, order_is_known, places, site, decided=decided, uncertain=uncertain
    )
    if total is not None:
        return Selection((), frozenset(), shown_of_set(items, site)), total
    together = None if node.select is None else node.select.together
    if together is not None and items is not None:
        check_collapsed(items, source, site.found)
        if isinstance(items, tuple):
            items = tuple(item for item in items if isinstance(item, syntax.LabelItem))
    flat = node.select is not None and node.select.flat
    selection = select(items, site, source, span, places, flat=flat)
    collapsed = together is not None
    keys = tuple(places.items())
    check_columns(
        selection, keys, span, site, decided=decided, collapsed=collapsed, uncertain=uncertain
    )
    return selection, None
