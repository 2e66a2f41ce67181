"""A file with the queries that near misses are made of: one for the events of matches, one for each
part that can bend, and one for each comparison that measures it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.near.queries import (
    FOUND,
    MATCHES,
    ROW,
    TOLD,
    TOUCHED,
    UNDECIDED,
    BentQuery,
    Evidence,
    NearPlan,
)

from celc.core import formula as core
from celc.core.traversal import labels_bound
from celc.diagnostics.errors import CelError, Diagnostic, excerpt
from celc.diagnostics.source import Source, Span
from celc.near import messages
from celc.near.conditions import Names
from celc.near.edits import Edit, quoted, spliced
from celc.near.labels import atoms_of, types_of
from celc.near.parts import Part, parts_of
from celc.parse import syntax
from celc.parse.trees import nodes_of


@frozen
class NearTexts:
    """The text of the file with the queries, what they are for, and what they leave out."""

    text: str
    plan: NearPlan
    warnings: tuple[Diagnostic, ...]


def near_texts(
    file: syntax.File,
    query: syntax.Query,
    resolved: core.Query,
    source: Source,
    near: float | Mapping[str, float],
    *,
    all_parts: bool,
    at_end: str,
    positions: bool,
) -> NearTexts:
    """The queries that find the near misses of a query.

    Raises CelError where the query has none by its meaning, or how far a part was bent cannot be
    told.
    """
    _refuse(query, resolved, source)
    _check_names(query, resolved, source, {} if isinstance(near, float) else near)
    names = Names.of(file, source)
    parts = parts_of(query, resolved, source, names, near, all_parts)
    writer = _Writer(query, resolved, source)
    left_out = tuple(_left_out(query))
    answer = f"near {resolved.name}" if left_out else resolved.name
    queries = [*([writer.whole()] if left_out else []), writer.answer(answer)]
    queries += [
        writer.query(MATCHES, (), touched=False),
        writer.query(UNDECIDED, ()),
    ]
    bent: list[BentQuery] = []
    for number, part in enumerate(parts, start=1):
        name = f"bent {number}"
        queries.append(writer.query(name, part.edits, gone=part.gone, marked=part.marked))
        line, column = source.line_and_column(part.place.start)
        text = source.slice(part.place)
        evidence = None
        if part.found:
            size, attribute = part.before or (None, None)
            evidence = Evidence(f"evidence {number}", size, attribute)
            queries.append(writer.query(evidence.query, part.found, marked=FOUND))
        bent.append(BentQuery(name, text, line, column, part.measure, evidence, part.taken))
        if part.sides is not None:
            queries.append(writer.sides(part))
    waits = any(isinstance(one, syntax.AbsenceAfter) for one in nodes_of(query.formula))
    text = _declared(file, source) + "\n".join(queries) + "\n"
    plan = NearPlan(
        resolved.name,
        answer,
        tuple(bent),
        tuple(writer.columns.items()),
        tuple(one.label for one in resolved.output if isinstance(one, core.OutputLabel)),
        waits and at_end == "open",
        positions,
        place=_shown(source, place_of(query)),
        window_place=_shown(source, (query.window or query).span),
    )
    return NearTexts(text, plan, left_out)


def _left_out(query: syntax.Query) -> Iterator[Diagnostic]:
    """Warnings of what chooses among the matches of a query."""
    select = query.select
    if query.consume is not None and query.consume.policy != "NONE":
        yield messages.left_out("CONSUME BY", query.consume.span)
    if query.limit is not None:
        yield messages.left_out("LIMIT", query.limit.span)
    if select is not None and select.strategy not in (None, "ALL"):
        span = select.span if select.strategy_span is None else select.strategy_span
        yield messages.left_out(f"SELECT {select.strategy}", span)
    if select is not None and select.per_start is not None:
        end = select.per_start.end
        disjoint = " DISJOINT" if select.per_start.disjoint else ""
        yield messages.left_out(f"SELECT {end}{disjoint}", select.per_start.span)


def _refuse(query: syntax.Query, resolved: core.Query, source: Source) -> None:
    refused = {
        "a query over queries": bool(resolved.reads),
        "a query of events that last": resolved.lasting and not resolved.reads,
        "a query of uncertain time": resolved.uncertain is not None,
        "a query of simultaneous events": resolved.simultaneous and not resolved.lasting,
        "SELECT TOTAL": resolved.total is not None,
        "SELECT COLLAPSED": resolved.collapsed,
    }
    for what, is_so in refused.items():
        if is_so:
            instead = "near misses are of single matches of events that have one time and an order"
            raise CelError(source, (messages.refused(what, place_of(query), instead),))


def _check_names(
    query: syntax.Query, resolved: core.Query, source: Source, near: Mapping[str, float]
) -> None:
    """Raises CelError for a column that near misses have themselves, and for an amount of an
    attribute that no event has."""
    columns = [key.name for key in resolved.partition_by]
    columns += [
        one.label if isinstance(one, core.OutputLabel) else one.name for one in resolved.output
    ]
    for name in columns:
        if name.casefold() in TOLD:
            raise CelError(source, (messages.taken(name, place_of(query)),))
    known = {
        one.name: None
        for stream in resolved.streams
        for event in stream.event_types
        for one in event.attributes
    }
    for name in [one for one in near if one not in known]:
        problem = messages.unknown_attribute(name, ", ".join(known), place_of(query))
        raise CelError(source, (problem,))


def place_of(query: syntax.Query) -> Span:
    """Where a message about a whole query points: its SELECT."""
    return query.span if query.select is None else query.select.span


def _shown(source: Source, span: Span) -> str:
    """A place in the text as errors show it. A module is the same in each folder."""
    line, column = source.line_and_column(span.start)
    return "\n".join((f"{Path(source.name).name}:{line}:{column}", *excerpt(source, span)))


def _declared(file: syntax.File, source: Source) -> str:
    """The declarations, with the two attributes."""
    edits = []
    for stream in file.streams:
        for event in stream.events:
            if event.is_rest:
                continue
            comma = "," if event.attributes else ""
            text = f"\n{comma} {quoted(ROW)}: LONG, {quoted(TOUCHED)}: BOOLEAN "
            at = event.span.end - 1
            edits.append(Edit(Span(at, at), text))
    first = file.queries[0].span.start
    return spliced(source.text, Span(0, first), edits)


def _column(number: int) -> str:
    # Names of columns differ in more than case, which labels need not.
    return f"near rows {number}"


class _Writer:
    """Writes the queries."""

    def __init__(self, query: syntax.Query, resolved: core.Query, source: Source) -> None:
        self.query_node, self.resolved, self.source = query, resolved, source
        self.labels = sorted(labels_bound(resolved.formula))
        # Labels of the same atoms have the same rows: T and x of `T AS x`, if it is the only T.
        atoms = {label: frozenset(of) for label, of in atoms_of(resolved.formula).items()}
        numbers = {of: number for number, of in enumerate(dict.fromkeys(atoms.values()))}
        self.columns = {label: _column(numbers[atoms[label]]) for label in self.labels}
        self.types = types_of(resolved.formula)

    def query(
        self,
        name: str,
        edits: Iterable[Edit],
        *,
        touched: bool = True,
        gone: frozenset[str] = frozenset(),
        marked: str | None = None,
    ) -> str:
        """A query with edits that shows what the query shows, and the rows of its labels; if
        `touched`, without matches that have an event of a match of the query."""
        labels = [one for one in self.labels if one not in gone]
        items = self._items(gone) if touched else []
        items += self._rows(labels)
        if marked is not None:
            items.append(f"{quoted(marked)}[{quoted(ROW)}]")
        around = list(edits)
        if touched:
            untouched = " AND ".join(f"{quoted(one)}.{quoted(TOUCHED)} = FALSE" for one in labels)
            formula = self.query_node.formula.span
            start, end = Span(formula.start, formula.start), Span(formula.end, formula.end)
            around += [Edit(start, "("), Edit(end, f") FILTER {untouched}")]
        return f"QUERY {quoted(name)}: SELECT {', '.join(items)} {self._rest(around)}"

    def whole(self) -> str:
        """The query as it is written."""
        query = self.query_node
        assert query.select is not None  # a formula alone chooses nothing
        words: list[str] = [query.select.strategy or "ALL"]
        if query.select.per_start is not None:
            disjoint = ["DISJOINT"] if query.select.per_start.disjoint else []
            words = [query.select.per_start.end, *disjoint]
        rest = self.source.slice(Span(query.select.span.end, query.span.end))
        name = quoted(self.resolved.name)
        return f"QUERY {name}: SELECT {' '.join(words)} {self._shown()} {rest}"

    def answer(self, name: str) -> str:
        """The query itself, without what chooses among its matches."""
        return f"QUERY {quoted(name)}: SELECT {self._shown()} {self._rest([])}"

    def _shown(self) -> str:
        return ", ".join(self._items(frozenset())) or "NONE"

    def _rows(self, labels: Iterable[str]) -> Iterator[str]:
        """Lists of the rows of labels, each list once."""
        for column, label in {self.columns[one]: one for one in labels}.items():
            yield f"COLLECT({quoted(label)}.{quoted(ROW)}) AS {quoted(column)}"

    def _rest(self, edits: list[Edit]) -> str:
        """The text from FROM on, without what chooses among matches."""
        query = self.query_node
        if query.select is None:
            return f"WHERE {spliced(self.source.text, query.formula.span, edits)}"
        for clause in (query.consume, query.limit):
            if clause is not None:
                edits.append(Edit(clause.span, ""))
        whole = Span(query.select.span.end, query.span.end)
        return spliced(self.source.text, whole, edits)

    def _items(self, gone: frozenset[str]) -> list[str]:
        """What the query shows, without what names labels that are gone."""
        found = []
        parameters = self.resolved.parameters
        select = self.query_node.select
        if select is not None and isinstance(select.items, tuple) and parameters is not None:
            for item in select.items:
                if isinstance(item, syntax.LabelItem) and item.label.text == parameters.name:
                    found.append(self.source.slice(item.span))
        for one in self.resolved.output:
            if isinstance(one, core.OutputExpression):
                if not gone & {*one.labels}:
                    found.append(f"{one.text} AS {quoted(one.name)}")
            elif one.label not in gone:
                shown = ", ".join(quoted(attribute.name) for attribute in one.attributes)
                found.append(f"{quoted(one.label)}[{shown}]" if shown else quoted(one.label))
        return found

    def _type(self, one: core.EventType) -> str:
        several = len(self.resolved.streams) > 1
        return f"{quoted(one.stream)}>{quoted(one.name)}" if several else quoted(one.name)

    def sides(self, part: Part) -> str:
        """The query whose expressions measure a comparison. Nothing runs it."""
        assert part.sides is not None
        gathered = {f"{one} all" for one in part.sides.measure.gathered}
        gathered |= {f"{one} prior" for one in part.sides.measure.prior}
        operands = []
        for name, label in part.sides.labels.items():
            types = " OR ".join(self._type(one) for one in self.types[label])
            operand = f"({types}) AS {quoted(name)}"
            operands.append(f"({operand})+" if name in gathered else operand)
        query = self.query_node
        streams = query.streams
        read = "" if streams is None else f" FROM {', '.join(quoted(one.text) for one in streams)}"
        each = "" if query.for_each is None else f" FOR EACH {quoted(query.for_each.text)}"
        items = ", ".join(part.sides.items)
        name = quoted(part.sides.measure.query)
        window = " WITHIN 1 EVENTS"
        return f"QUERY {name}: SELECT {items}{read}{each} WHERE {' ; '.join(operands)}{window}"
