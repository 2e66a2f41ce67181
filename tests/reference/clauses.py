"""The clauses around a formula, and whole queries.

They apply in this order: PARTITION BY splits the stream; CONSUME BY says where each part begins
anew; ⟦φ⟧ is taken; WITHIN keeps the matches that fit; the selector picks among those; SELECT
projects; expressions are computed. LIMIT and ANY leave a choice open, so `evaluate` leaves them
out: `check_answer` checks the answers of such queries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import own_aggregates as expressions
from .conditions import Row
from .ends import alternatives, decided_time, has_absence, is_decided, is_on, known_clock
from .instants import check_simultaneous, instants_of
from .lasting import (
    BEGIN,
    attributes_of_rows,
    axis_of,
    check_event,
    check_lasting,
    check_reader,
    end_of,
    lasting_streams,
    order_among_rows,
    read_by,
)
from .names import Schema, check, kept_labels, projected_labels
from .nodes import (
    EventType,
    ExpressionItem,
    File,
    NotAfter,
    NotBefore,
    Query,
    Uncertain,
    Variable,
    parts,
    parts_of,
    windows_in,
)
from .parameters import check_parameters, rows_of, shown_values, with_row
from .parser import parse
from .rates import check_rate, kept, known_times, preference
from .semantics import ComplexEvent, Evaluator, positions_of, projected, select, select_per_start
from .uncertain import between, check_uncertain, possible_matches
from .values import CelError, Datum, Kind, datum_of
from .windows import check_order, measured_on


@dataclass(frozen=True)
class Match:
    """One row of an answer, positions counting within the part.

    `labels` are in the order of the columns, each with its ascending positions; `values` are those
    of SELECT's expressions. `decided_time` is None where the answer has no such column. `matches`
    is how many complex events a row of COLLAPSED stands for. `parameters` is the name of the
    parameter set with what its column shows. `times`: when the match starts and ends, where that is
    asked for. `confidence`: where time is uncertain. `place`: where it stands among the rows that
    `LIMIT … PER` counts.
    """

    partition: tuple[tuple[str, Any], ...]
    start: int
    end: int
    labels: tuple[tuple[str, tuple[int, ...]], ...]
    values: tuple[tuple[str, Any], ...] = ()
    decided_time: Any = None
    matches: int | None = None
    parameters: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()
    times: tuple[Any, Any] | None = None
    confidence: float | None = None
    data: tuple[Datum, ...] = field(default=(), compare=False)
    place: tuple[Any, ...] = field(default=(), compare=False)


def evaluate(
    text: str,
    events: Sequence[Mapping[str, Any]],
    *,
    query: str | None = None,
    order_by: str | Sequence[str] | None = None,
    ties: str | None = None,
    work_limit: int | None = None,
    at_end: str = "open",
    clock: Any = None,
    parameters: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    times: bool = False,
) -> list[Match]:
    """Every match of a query of the file `text` over the events, as if it had no LIMIT and no ANY.

    `query` names the one that is meant where the file has several. With `order_by`, events are put
    in the order of these attributes first (equal ones stay as they are), and WITHIN is measured on
    the first where the query names no attribute. With `ties` "simultaneous" events that are equal
    in all of them are one instant. Events of types that the query's streams do not have get no
    position. With `at_end` "closed" the events are all there will ever be, and those up to `clock`
    are in any case. Rows can look alike only where SELECT computes expressions. Beyond `work_limit`
    steps WorkLimitError is raised. `evaluate_totals` answers the queries with TOTAL. `parameters`
    are the tables of parameter sets; rows of FOR EACH can look alike as well. With `times` matches
    have their start and end times. A query that reads queries is given the events of the streams
    below them.
    """
    file = parse(text)
    asked = pick_query(file, query)
    check_parameters(asked, file)
    name = asked.for_each
    if name is not None and name not in (parameters or {}):
        raise CelError(f"no table is given for the parameter set {name}")
    kinds = {} if name is None else file.parameters[name]
    rows = [{}] if name is None else rows_of(file, name, (parameters or {})[name])
    found: list[Match] = []
    for row in rows or [dict.fromkeys(kinds)]:
        stream = open_stream(
            text,
            events,
            query=query,
            order_by=order_by,
            ties=ties,
            work_limit=work_limit,
            at_end=at_end,
            clock=clock,
            row=row,
        )
        if stream.query.per is not None:
            raise CelError("TOTAL has rows of another form")
        values = () if name is None else ((name, shown_values(asked, kinds, row)),)
        if rows:
            answer = [replace(match, parameters=values) for _, match in stream.answer()]
            found += answer if times else [replace(match, times=None) for match in answer]
    return found


def open_stream(
    text: str,
    events: Sequence[Mapping[str, Any]],
    *,
    query: str | None = None,
    order_by: str | Sequence[str] | None = None,
    ties: str | None = None,
    work_limit: int | None = None,
    at_end: str = "open",
    clock: Any = None,
    row: Mapping[str, Any] | None = None,
) -> Stream:
    """The query and its stream, checked; the arguments are those of `evaluate`. `row` is that of
    the parameter table."""
    file = parse(text)
    asked = pick_query(file, query)
    if asked.for_each is not None:
        asked = with_row(asked, file.parameters[asked.for_each], row or {})
    columns = (order_by,) if isinstance(order_by, str) else tuple(order_by or ())
    reads = read_by(asked, file)
    starts = lasting_streams(asked, file, columns, reads)
    if starts:
        columns = (end_of(file, starts),)
    if columns:
        events = sorted(
            events, key=lambda event: tuple(_sort_key(event.get(name)) for name in columns)
        )
    is_closed = at_end == "closed"
    if not reads:
        if starts:
            check_lasting(columns)
            ties = "simultaneous"
        schema = Schema(file, asked.streams)
        check(asked, schema)
        uncertain = check_uncertain(asked, file, columns, ties)
        if uncertain is not None:
            columns = (uncertain.low,)
            if not order_by:
                return open_stream(
                    text, events, query=query, order_by=columns, work_limit=work_limit, row=row
                )
        return Stream(
            asked,
            schema,
            events,
            columns,
            ties,
            work_limit,
            is_closed=is_closed,
            clock=clock,
            lasting=bool(starts),
            starts=starts,
            times=uncertain,
        )
    order_of = {one.name: _order_where_events_last(one, file) for one in reads}
    below = next((one for one in order_of.values() if one), ())
    columns = columns or below or tuple(filter(None, [measure_of(asked)]))
    check_reader(asked, file, columns)
    levels = [
        open_stream(
            text,
            events,
            query=one.name,
            order_by=() if order_of[one.name] else columns,
            ties=ties,
            work_limit=work_limit,
            at_end=at_end,
            clock=clock,
        )
        for one in reads
    ]
    if any(level.order_by != columns[0] for level in levels):
        raise CelError("a query with another order is read")
    if any(level.is_off_clock for level in levels) and has_absence(asked.formula):
        raise CelError("an absence among rows that no clock knows")
    # No event of the input comes before its greatest time, and no row of a query that waits for
    # an absence before what it knows.
    inputs = [level.input_clock for level in levels]
    own = Schema(file, tuple(name for name in asked.streams or () if name in file.streams))
    inputs += [event.get(columns[0]) for event in events if own.type_of(event) is not None]
    input_clock = max((one for one in inputs if one is not None), default=None)
    input_clock = input_clock if clock is None else clock
    waiting = [one for one in (input_clock, *(level.known for level in levels)) if one is not None]
    schema, events = _with_rows(file, asked, levels, events, columns[0])
    check(asked, schema)
    return Stream(
        asked,
        schema,
        events,
        columns,
        "simultaneous",
        work_limit,
        is_closed=is_closed,
        clock=min(waiting, default=None),
        input_clock=input_clock,
        is_off_clock=any(level.is_off_clock for level in levels),
        waits=any(level.known is not None for level in levels),
        lasting=True,
        starts=starts,
    )


def stream_of(
    query: Query,
    file: File,
    events: Sequence[Mapping[str, Any]],
    columns: tuple[str, ...],
    *,
    work_limit: int | None = None,
    at_end: str = "open",
) -> Stream:
    """The stream of a query of the file that reads no queries, whose time is certain and whose
    events do not last; the query is not checked."""
    if columns:
        events = sorted(
            events, key=lambda event: tuple(_sort_key(event.get(name)) for name in columns)
        )
    schema = Schema(file, query.streams)
    is_closed = at_end == "closed"
    return Stream(query, schema, events, columns, None, work_limit, is_closed=is_closed)


def _order_where_events_last(query: Query, file: File) -> tuple[str, ...]:
    """The order column that LASTING gives to a query, or to one that it reads."""
    reads = read_by(query, file)
    starts = lasting_streams(query, file, (), reads)
    if starts:
        return (end_of(file, starts),)
    found = (_order_where_events_last(one, file) for one in reads)
    return next(filter(None, found), ())


def _with_rows(
    file: File,
    query: Query,
    levels: Sequence[Stream],
    events: Sequence[Mapping[str, Any]],
    order: str,
) -> tuple[Schema, Sequence[Mapping[str, Any]]]:
    """The schema of a query that reads queries, and its events: those of declared streams, and the
    rows of the queries, by their ends."""
    read = {str(level.query.name) for level in levels}
    streams = tuple(name for name in query.streams or () if name not in read)
    plain = Schema(file, streams)
    keyed = []
    for event in events:
        event_type = plain.type_of(event)
        if event_type is not None:
            # An event whose type went without saying stands among rows now, which have types.
            told = {"type": event_type.name, "stream": event_type.stream}
            # The table of all streams below may hold attributes that this type does not declare.
            keyed.append(((event.get(order), 0), {**event, **told}))
    types = list(plain.types)
    for number, level in enumerate(levels):
        names = attributes_of_rows(level.query, order)
        shown = [one for one in names if one not in (order, "start_time")]
        kinds: dict[str, Kind] = dict.fromkeys(names, Kind.NULL)
        kinds[order] = kinds["start_time"] = level.schema.kinds[order]
        for key in level.query.partition_by:
            kinds[key[0]] = level.schema.kinds[key[0]]
        rows = []
        for _, match in level.answer():
            assert match.times is not None
            values = dict(match.partition)
            for (name, value), datum in zip(match.values, match.data, strict=True):
                if name not in shown:
                    continue
                if datum.kind is not Kind.NULL:
                    kinds[name] = datum.kind
                values[name] = value
            values[order], values["start_time"] = match.times[1], match.times[0]
            rows.append(values)
        name = str(level.query.name)
        types.append(EventType(name, name, kinds))
        for values in rows:
            data = [Datum(kinds[one], values[one]) for one in ("start_time", *shown)]
            place = (values[order], 1 + number, order_among_rows(data))
            event = {**values, "type": name, "stream": name, BEGIN: values["start_time"]}
            keyed.append((place, event))
    # An expression without a value has any kind.
    known = {n: kind for one in types for n, kind in one.attributes.items() if kind != Kind.NULL}
    for one in types[len(plain.types) :]:
        one.attributes.update({n: known.get(n, kind) for n, kind in one.attributes.items()})
    schema = Schema(replace(file, types=tuple(types), streams=(*streams, *read)), None)
    schema.kinds[BEGIN] = schema.kinds[order]
    keyed.sort(key=lambda one: one[0])
    return schema, [event for _, event in keyed]


def pick_query(file: File, name: str | None) -> Query:
    """The query of that name; the only one where no name is given."""
    if name is None:
        if len(file.queries) > 1:
            raise CelError("the file has several queries: say which")
        return file.queries[0]
    for query in file.queries:
        if query.name == name:
            return query
    raise CelError(f"no query is called {name}")


def values_of(event_type: EventType, event: Mapping[str, Any]) -> dict[str, Datum]:
    """The attributes of an event: those that its table has, and what is made of them."""
    kinds, derived = event_type.attributes, event_type.derived
    found = {
        name: datum_of(kind, event.get(name)) for name, kind in kinds.items() if name not in derived
    }
    left = dict(derived)
    while left:
        # Those that name no other one that is not known yet.
        ready = [
            name
            for name, one in left.items()
            if not left.keys() & {part.name for part in parts(one) if isinstance(part, Variable)}
        ]
        if not ready:
            raise CelError("an attribute is made of itself")
        found |= {
            name: expressions.in_kind(expressions.value(left.pop(name), found), kinds[name])
            for name in ready
        }
    return found


def _sort_key(value: Any) -> tuple[bool, Any]:
    # NULL first, as Spark sorts.
    return (value is not None, 0 if value is None else value)


def _part_value(datum: Datum) -> Any:
    """The value that equal ones share: NaN equals NaN, and -0.0 is 0.0."""
    if isinstance(datum.value, float):
        return "NaN" if datum.value != datum.value else datum.value + 0.0
    return datum.value


class Part:
    """One part of the stream; `indexes` are its events' places in the whole stream."""

    def __init__(self, partition: tuple[tuple[str, Any], ...]) -> None:
        self.partition = partition
        self.rows: list[Row] = []
        self.indexes: list[int] = []

    def position_from(self, index: int) -> int:
        """The position of the part's first event at or after that place in the whole stream."""
        return sum(1 for one in self.indexes if one < index)


def measure_of(query: Query) -> str | None:
    """The attribute of WITHIN, else the one that the lengths of absences name."""
    if query.window is not None and query.window.attribute is not None:
        return query.window.attribute
    absences = [one for one in parts_of(query.formula) if isinstance(one, NotBefore | NotAfter)]
    named = {one.window.attribute for one in absences if one.window is not None} - {None}
    return named.pop() if len(named) == 1 else None


class Stream:
    """A query and its stream, split into parts."""

    def __init__(
        self,
        query: Query,
        schema: Schema,
        events: Sequence[Mapping[str, Any]],
        order_by: tuple[str, ...],
        ties: str | None,
        work_limit: int | None,
        *,
        is_closed: bool,
        clock: Any = None,
        input_clock: Any = None,
        is_off_clock: bool = False,
        waits: bool = False,
        lasting: bool = False,
        starts: Mapping[str, str] | None = None,
        times: Uncertain | None = None,
    ) -> None:
        """`clock`: up to which the input is known; for a query over queries also the rows that it
        reads. Of those `is_off_clock` says whether no clock tells when they are known, and `waits`
        whether they are known later than the events of the input; `input_clock` is that of the
        input."""
        self.lasting = lasting
        self.times = times
        self.query = query
        self.schema = schema
        self.work_limit = work_limit
        self.is_closed = is_closed
        # Without order columns, the attribute that time is measured on is the first one.
        order_by = order_by or tuple(filter(None, [measure_of(query)]))
        self.order_by = next(iter(order_by), None)
        self.ways = alternatives(query.formula, query.window)
        lengths = [one.length for one in self.ways if one.length is not None]
        if lengths and query.consume_by != "NONE":
            raise CelError("CONSUME BY with an absence at the end")
        self.shows_time = bool(lengths) and all(is_on(self.order_by, length) for length in lengths)
        self.instant_columns: tuple[str, ...] | None = None
        if ties is not None:
            check_simultaneous(query, ties, order_by, lasting=lasting)
            self.instant_columns = order_by
        kind = None if self.order_by is None else schema.kinds.get(self.order_by)
        check_rate(query, self.order_by, kind)
        windows = [*([] if query.window is None else [query.window]), *windows_in(query.formula)]
        measured = [measured_on(window, self.order_by) for window in windows]
        self.parts: dict[tuple[Any, ...], Part] = {}
        index = 0
        for event in events:
            event_type = schema.type_of(event)
            if event_type is not None:
                values = values_of(event_type, event)
                values |= {name: expressions.value(one, values) for name, one in query.key_values}
                if lasting and self.order_by is not None:
                    end = values[self.order_by]
                    values[BEGIN] = values[(starts or {}).get(event_type.stream, self.order_by)]
                    if BEGIN in event:
                        values[BEGIN] = datum_of(end.kind, event[BEGIN])
                    check_event(values[BEGIN].value, end.value)
                self._add(Row(event_type.stream, event_type.name, values), index)
                index += 1
        rows = [row for part in self.parts.values() for row in part.rows]
        times = [] if self.order_by is None else [row.values[self.order_by].value for row in rows]
        self.clock = max((time for time in times if time is not None), default=None)
        self.clock = self.clock if clock is None else clock
        self.input_clock = self.clock if input_clock is None else input_clock
        self.is_off_clock = is_off_clock or not all(is_on(self.order_by, one) for one in lengths)
        # None: the rows are known as soon as their events.
        self.known = None
        if (lengths or waits) and self.clock is not None and not self.is_off_clock:
            self.known = known_clock(self.clock, self.ways)
        for part in self.parts.values():
            for attribute in dict.fromkeys(filter(None, measured)):
                check_order(part.rows, attribute)

    def _add(self, row: Row, index: int) -> None:
        keys = self.query.partition_by
        # A row has the values of the attributes that its type declares, and of no others.
        own = [next(name for name in key if name in row.values) for key in keys]
        key = tuple(_part_value(row.values[name]) for name in own)
        if key not in self.parts:
            partition = tuple(
                (columns[0], row.values[name].value if value == "NaN" else value)
                for columns, name, value in zip(keys, own, key, strict=True)
            )
            self.parts[key] = Part(partition)
        self.parts[key].rows.append(row)
        self.parts[key].indexes.append(index)

    def answer(self) -> list[tuple[Part, Match]]:
        """All matches with their parts, part by part, each by end position."""
        found = self._all_matches()
        rate = self.query.rate
        if rate is None:
            return found
        left = [
            (part, kept(rate, [(m.place, m) for one, m in found if one is part]))
            for part in self.parts.values()
        ]
        return [(part, match) for part, rows in left for match in sorted(rows, key=_by_end)]

    # --- CONSUME BY ---

    def _all_matches(self) -> list[tuple[Part, Match]]:
        everything = list(self.parts.values())
        if self.query.consume_by == "ANY":
            return self._consuming(everything)
        if self.query.consume_by == "PARTITION":
            return [found for part in everything for found in self._consuming([part])]
        return [
            (part, match)
            for part in everything
            for _, matches in sorted(self._by_end(part, 0).items())
            for match in matches
        ]

    def _consuming(self, parts: list[Part]) -> list[tuple[Part, Match]]:
        """What these parts give if all of them begin anew after each event with output."""
        output: list[tuple[Part, Match]] = []
        origin = 0
        while True:
            found = [
                (part.indexes[end], [(part, match) for match in matches])
                for part in parts
                for end, matches in self._by_end(part, origin).items()
            ]
            if not found:
                return output
            # Later output was found as if the earliest had not been: it is looked for again.
            index, matches = min(found, key=lambda one: one[0])
            output += matches
            origin = index + 1

    # --- the other clauses, on a stream that begins somewhere ---

    def _by_end(self, part: Part, origin: int) -> dict[int, list[Match]]:
        """The part's matches by end position, as if the whole stream began at index `origin`."""
        if self.times is not None:
            return self._possible(part, self.times)
        evaluator = self._evaluator(part, part.position_from(origin))
        times = decided = self._decided(evaluator, part.rows)
        if self.query.selector not in ("ALL", "ANY"):
            chosen = select(self.query.selector, times)
            # What could still be undone leaves the choice at its end open.
            waiting = {match[1] for match, found in times.items() if not found}
            times = {match: times[match] for match in chosen if match[1] not in waiting}
        if self.query.per_start:
            times = self._chosen_by_start(times)
        shown_labels = projected_labels(self.query)
        all_rows: dict[ComplexEvent, list[Any]] = defaultdict(list)
        for (start, end, mu), found in times.items():
            all_rows[start, end, projected(mu, shown_labels)] += found
        places = self._places(decided, times, self._time_at(evaluator, part.rows))
        waiting = {row[1] for row, found in all_rows.items() if not found}
        limited = self.query.selector == "ANY" or self.query.limit is not None
        limited = limited or self.query.collapsed or self.query.per == "END"
        rows = {
            row: found
            for row, found in all_rows.items()
            if found and not (limited and row[1] in waiting)
        }
        by_end: dict[int, list[Match]] = defaultdict(list)
        for match in sorted(rows, key=lambda match: (*match[:2], sorted(match[2]))):
            start, end, mu = match
            positions = positions_of(mu, shown_labels)
            labels = tuple((label, positions[label]) for label in kept_labels(self.query))
            values = self._values(evaluator, positions)
            time = min(rows[match]) if self.shows_time else None
            between = self._times(evaluator, part.rows, start, end)
            if self.lasting and between is not None:
                start, end = evaluator.axis.first_position(start), self._last(part.rows, between[1])
            shown = tuple((name, datum.value) for name, datum in values)
            by_end[end].append(
                Match(
                    part.partition,
                    start,
                    end,
                    labels,
                    shown,
                    time,
                    times=between,
                    data=tuple(datum for _, datum in values),
                    place=(*places[match], labels) if match in places else (),
                )
            )
        if self.query.collapsed:
            return {end: [_collapsed(matches)] for end, matches in by_end.items()}
        return by_end

    def complex_events(self, part: Part) -> tuple[Evaluator, list[ComplexEvent]]:
        """The decided matches of a part before anything chooses among them, and what found them."""
        evaluator = self._evaluator(part, 0)
        found = self._decided(evaluator, part.rows)
        return evaluator, [match for match, times in found.items() if times]

    def _evaluator(self, part: Part, first: int) -> Evaluator:
        instants = None
        if self.instant_columns is not None:
            instants = instants_of(part.rows, self.instant_columns)
        axis = None
        if self.lasting and self.order_by is not None:
            axis = axis_of(part.rows, self.order_by)
        return Evaluator(
            part.rows,
            self.schema.kinds,
            first,
            self.work_limit,
            self.order_by,
            instants,
            window=self.query.window,
            axis=axis,
        )

    def _chosen_by_start(
        self, times: dict[ComplexEvent, list[Any]]
    ) -> dict[ComplexEvent, list[Any]]:
        """What FIRST or LONGEST chooses, each match with the times after which it is decided;
        without any where its start waits.

        A start waits while one of its matches could still be undone. With DISJOINT so do all later
        ones, because where the chosen match ends is open.
        """
        disjoint = self.query.disjoint
        longest = self.query.per_start == "LONGEST"
        # Simultaneous events have an order only where they last.
        together = self.instant_columns is not None and not self.lasting
        chosen = select_per_start(longest, disjoint, set(times), together=together)
        waiting = {match[0] for match, found in times.items() if not found}
        waiting &= {start for start, _, _ in chosen}
        if disjoint and waiting:
            waiting = {start for start, _, _ in chosen if start >= min(waiting)}
        return {match: [] if match[0] in waiting else times[match] for match in chosen}

    def _places(
        self,
        decided: dict[ComplexEvent, list[Any]],
        chosen: dict[ComplexEvent, list[Any]],
        time_at: Callable[[int], Any] | None,
    ) -> dict[ComplexEvent, tuple[Any, ...]]:
        """Where each row of SELECT stands among those that LIMIT … PER counts, but for its
        labels."""
        if self.query.rate is None:
            return {}
        known = known_times(self.query, decided, chosen, time_at, shows_time=self.shows_time)
        found: dict[ComplexEvent, tuple[Any, ...]] = {}
        for match, time in known.items():
            start, end, mu = match
            row = start, end, projected(mu, projected_labels(self.query))
            here = time, end, start, preference(mu)
            before = found.get(row, here)
            # Of a row that stands for several matches, each decides about its own part of this.
            found[row] = min(time, before[0]), end, start, min(here[3], before[3])
        return found

    def _possible(self, part: Part, times: Uncertain) -> dict[int, list[Match]]:
        """The matches of a part in all worlds, by the greatest of their positions."""
        rows, query, kinds = part.rows, self.query, self.schema.kinds
        by_end: dict[int, list[Match]] = defaultdict(list)
        evaluator = Evaluator(rows, kinds)
        for mu, share in possible_matches(rows, query, times, kinds, self.work_limit).items():
            positions = positions_of(mu, projected_labels(query))
            places = sorted({place for label in positions.values() for place in label})
            values = self._values(evaluator, positions)
            by_end[places[-1]].append(
                Match(
                    part.partition,
                    places[0],
                    places[-1],
                    tuple((label, positions[label]) for label in kept_labels(query)),
                    tuple((name, datum.value) for name, datum in values),
                    times=between(rows, mu, times),
                    confidence=float(share),
                    data=tuple(datum for _, datum in values),
                )
            )
        return by_end

    def _decided(self, evaluator: Evaluator, rows: Sequence[Row]) -> dict[ComplexEvent, list[Any]]:
        """The matches in the window, each with the times after which it is decided (True where
        there is no such column); without any where it is undecided."""
        found: dict[ComplexEvent, list[Any]] = {}
        axis = evaluator.axis if self.lasting else None
        for one in self.ways:
            for match in evaluator.answer(one.formula):
                window = self.query.bent_window or self.query.window
                if window is not None and not evaluator.fits(window, match):
                    continue
                times = found.setdefault(match, [])
                start, end, _ = match
                of_match = one, start, end, rows
                if self.is_closed or is_decided(*of_match, self.order_by, self.clock, axis):
                    shown = self.shows_time and self.order_by is not None
                    times.append(
                        decided_time(*of_match, self.order_by or "", axis) if shown else True
                    )
        return found

    def _times(
        self, evaluator: Evaluator, rows: Sequence[Row], start: int, end: int
    ) -> tuple[Any, Any] | None:
        """When a match starts and ends; None without order columns."""
        time_at = self._time_at(evaluator, rows)
        return None if time_at is None else (time_at(start), time_at(end))

    def _time_at(self, evaluator: Evaluator, rows: Sequence[Row]) -> Callable[[int], Any] | None:
        """The time of a start or an end; None without order columns."""
        order = self.order_by
        if order is None:
            return None
        if self.lasting:
            return evaluator.axis.time
        return lambda place: rows[place].values[order].value

    def _last(self, rows: Sequence[Row], time: Any) -> int:
        """The last position of the instant of that time."""
        assert self.order_by is not None
        return max(i for i, row in enumerate(rows) if row.values[self.order_by].value == time)

    def _values(
        self, evaluator: Evaluator, positions: Mapping[str, tuple[int, ...]]
    ) -> tuple[tuple[str, Datum], ...]:
        """The values of SELECT's expressions; a bare x.a takes the one position of x."""
        chosen = {label: places[0] for label, places in positions.items() if len(places) == 1}
        return tuple(
            (item.name, evaluator.checker.value(item.expression, positions, chosen))
            for item in self.query.items or ()
            if isinstance(item, ExpressionItem) and self.query.per is None
        )


def _by_end(match: Match) -> int:
    return match.end


def _collapsed(matches: Sequence[Match]) -> Match:
    """The one row for matches with one end."""
    first = matches[0]
    union: dict[str, set[int]] = defaultdict(set)
    for match in matches:
        for label, places in match.labels:
            union[label] |= {*places}
    return Match(
        first.partition,
        min(match.start for match in matches),
        first.end,
        tuple((label, tuple(sorted(places))) for label, places in union.items()),
        matches=len(matches),
        times=_least_times(matches),
    )


def _least_times(matches: Sequence[Match]) -> tuple[Any, Any] | None:
    """When the earliest of matches with one end starts, and when they end."""
    times = [match.times for match in matches if match.times is not None]
    return (min(start for start, _ in times), times[0][1]) if times else None
