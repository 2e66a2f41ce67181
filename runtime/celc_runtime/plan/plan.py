"""`Plan`: one query as its generated module writes it.

Long: all that a module says of a query, and what follows from it.
"""

from dataclasses import KW_ONLY, replace

from celc_runtime.plan.conditions import TextComparison, TextCondition
from celc_runtime.plan.expressions import Computed, Derived, attributes_of
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.parameters import Parameters
from celc_runtime.plan.relevance import Relevant
from celc_runtime.plan.totals import Totals
from celc_runtime.plan.uncertain import CONFIDENCE, Uncertain
from celc_runtime.values.types import ddl_of

DECIDED_TIME = "decided_time"
"""The column with the time when a match with a last absence is decided."""

MATCHES = "matches"  # the column of COLLAPSED: the number of matches of a row

MATCH_ID = "match_id"  # the column that identifies a match, the same on every route

COUNTS = "DECIMAL(38, 0)"  # the type of counts of matches


@frozen
class Attribute:
    """A column that the query reads, with its type as the language names it."""

    name: str
    type: str


@frozen
class Label:
    """A label column of the output: structs of `pos` and the attributes."""

    name: str
    attributes: tuple[str, ...]
    single: bool = False  # whether it holds exactly one event of every match
    first: bool = False  # whether this event begins the match
    last: bool = False  # whether this event ends the match


@frozen
class Kind:
    """How an event of a match is marked."""

    columns: tuple[int, ...]  # the label columns that it goes to
    starts: bool  # whether it can be the first event of a match


@frozen
class Window:
    """A window, of the clause WITHIN or of a part of the formula."""

    unit: str  # EVENTS, MICROSECONDS or VALUE
    size: int | float
    attribute: str | None  # the measured attribute, None: the first order column
    _: KW_ONLY
    begin: str | None = None  # for events with a duration, the column of their starts
    to_start: bool = False  # for these: it ends at a start, and begins at an end before it


@frozen
class Deadline:
    """When matches with an absence at their end are decided: after a length from end or start."""

    window: int  # the number of this length among the plan's `local_windows`
    from_start: bool


@frozen
class PerStart:
    """The choice among matches with the same start, as far as the run makes it."""

    end: str  # FIRST or LONGEST
    disjoint: bool  # then keep each match that starts after the end of the last one kept
    limit: int | None = None  # the most chosen matches for each end
    late: bool = False  # whether matches are decided after their ends, by absences there

    @property
    def known_at_end(self) -> bool:
        """Whether the choice of a match depends on earlier events only."""
        return self.end == "FIRST" and not (self.disjoint or self.late)

    @property
    def counts_ends(self) -> bool:
        """Whether `limit` counts matches of one end that are chosen at different times."""
        return self.limit is not None and not (self.known_at_end or self.disjoint)

    def __str__(self) -> str:
        return f"{self.end} DISJOINT" if self.disjoint else self.end


@frozen
class Rate:
    """LIMIT n PER d: how many rows of a partition stay, by the times at which they are known."""

    count: int
    length: Window | None  # measured on the first order column; None: PER PARTITION
    support: str | None = None
    """The label among `hidden` that all events of a match have. Rows that look alike without it are
    one. None: each of them has another label, too."""
    known_after: Window | None = None
    """For LONGEST: how long after its start a row is known; None: the window of the matching."""


@frozen
class ChosenKey:
    """A key of PARTITION BY that is another attribute for each event type."""

    place: int  # its place in PARTITION BY
    type: str
    ways: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    """(attribute, its event types as (stream, type)); each event type is in exactly one."""

    def __str__(self) -> str:
        return f"[{', '.join(name for name, _ in self.ways)}]"


@frozen(kw_only=True)
class Source:
    """Whose rows are read, and in what order."""

    streams: tuple[str, ...] = ()  # the streams that the query reads
    types: tuple[tuple[str, str], ...] = ()
    """(stream, type) of the event types in its formula, numbered from 1 for `classify`."""
    other_types: tuple[tuple[str, str], ...] = ()  # the other types of its streams
    rest: tuple[tuple[str, str], ...] = ()
    """Those of all types that stand for any type of the table that their stream does not declare:
    where events enter, such rows get their name."""
    type_column: bool = False  # whether it reads the column of event types
    stream_column: bool = False  # whether it reads the column of streams
    type_name: str = "type"  # the name of the column of event types
    attributes: tuple[Attribute, ...] = ()  # the other columns that it reads, as declared
    derived: tuple[Derived, ...] = ()
    """Those of `attributes` that the input has not: they are made before the query reads it."""
    order_candidates: tuple[Attribute, ...] = ()
    """The attributes that all its event types have, as order columns must."""
    partition_by: tuple[str, ...] = ()  # the keys, by their names in the output
    chosen_keys: tuple[ChosenKey, ...] = ()  # the keys that are not columns of the input
    order_by: tuple[str, ...] = ()  # the order columns; empty: the order in which events come
    tiebreak: tuple[str, ...] = ()  # further order columns, for events equal in `order_by`
    ties: str | None = None
    """"simultaneous" if events equal in all order columns form one instant."""
    uncertain: Uncertain | None = None  # for uncertain times; the answer has confidences
    reads: tuple[str, ...] = ()
    """The queries whose rows are its events. These have a duration, and `chain` makes the input."""
    begin: str | None = None  # where events have a duration: the column of their starts
    declared: tuple[str, ...] = ()  # for `reads`: the attributes of the declared streams
    parameters: Parameters | None = None
    """For FOR EACH, which `rules/run` runs; the other fields are then as in the text."""
    relevant: tuple[Relevant, ...] | None = None
    """The events that can change the answer. Without positions in the output, all others may be
    left out of the stream. None: the query must see all events."""
    told_apart: tuple[Relevant, ...] | None = None
    """If it must see all events only because they count, or because they separate others: the
    events whose values matter."""

    @property
    def start_of_rows(self) -> str | None:
        """For `reads`: the column of the input with the starts of rows; `begin` may be made of
        it."""
        return "start_time" if self.begin in self.made else self.begin

    @property
    def takes_ties(self) -> bool:
        """Whether events may be equal in all order columns without a tiebreak."""
        return self.ties is not None or self.uncertain is not None

    def type_of(self, attribute: str) -> str:
        """The declared type of a column that the query reads, or of one of `key_columns`."""
        for a in self.attributes:
            if a.name == attribute:
                return a.type
        return self.chosen_columns[attribute].type

    @property
    def is_as_given(self) -> bool:
        """Whether events are rows as the table has them, without a column that is made."""
        return not (self.derived or self.rest)

    @property
    def made(self) -> frozenset[str]:
        """The names of the derived columns."""
        return frozenset(one.name for one in self.derived)

    @property
    def input_attributes(self) -> tuple[Attribute, ...]:
        """The columns of the input, besides those of types and streams."""
        made = self.made
        found = {one.name: one for one in self.attributes if one.name not in made}
        for one in self.derived:
            for name, type in one.reads:
                found.setdefault(name, Attribute(name, type))
        return tuple(found.values())

    def input_type(self, column: str) -> str:
        """The type of an input column: as declared; STRING for those of types and streams."""
        known = (*self.input_attributes, *self.attributes)
        return next((a.type for a in known if a.name == column), "STRING")

    @property
    def input_names(self) -> tuple[str, ...]:
        """The columns read, without tiebreak columns."""
        return (*self.text_columns, *(one.name for one in self.attributes))

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns with the types and the streams of events, if the query reads them."""
        named = (self.type_name,) if self.type_column else ()
        return (*named, "stream") if self.stream_column else named

    @property
    def declared_types(self) -> tuple[tuple[str, str], ...]:
        """(stream, type) of all event types that the query's streams declare."""
        return (*self.types, *self.other_types)

    @property
    def chosen_columns(self) -> dict[str, ChosenKey]:
        """The columns that the runtime makes for `chosen_keys`, each with its key.

        No column that the query reads has such a name.
        """
        if not self.chosen_keys:
            return {}
        taken = [self.type_name, *self.input_names, *self.tiebreak]
        found: dict[str, ChosenKey] = {}
        for key in self.chosen_keys:
            found[unused_name(str(key), [*taken, *found])] = key
        return found

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that split the stream into partitions: attributes and `chosen_columns`."""
        if not self.chosen_keys:
            return self.partition_by
        made = {key.place: name for name, key in self.chosen_columns.items()}
        return tuple(made.get(place, name) for place, name in enumerate(self.partition_by))

    @property
    def key_attributes(self) -> tuple[str, ...]:
        """The attributes that keys are read from, for all event types."""
        found = dict.fromkeys(self.partition_by)
        for key in self.chosen_keys:
            found |= dict.fromkeys(attribute for attribute, _ in key.ways)
        return tuple(found)

    @property
    def key_sql(self) -> tuple[str, ...]:
        """The keys of PARTITION BY as expressions of Spark SQL over the columns of the input."""
        made = {key.place: self._chosen_sql(key) for key in self.chosen_keys}
        return tuple(made.get(place, name) for place, name in enumerate(self.partition_by))

    def _chosen_sql(self, key: ChosenKey) -> str:
        cases = [
            f"WHEN {self._types_sql(types)} THEN {quoted(attribute)}"
            for attribute, types in key.ways
        ]
        return f"CASE {' '.join(cases)} END"

    def _types_sql(self, types: tuple[tuple[str, str], ...]) -> str:
        column = quoted(self.type_name)
        if not self.stream_column:
            return f"{column} IN ({', '.join(sql_text(name) for _, name in types)})"
        return " OR ".join(
            f"(`stream` = {sql_text(stream)} AND {column} = {sql_text(name)})"
            for stream, name in types
        )

    @property
    def events_read(self) -> tuple[Relevant, ...] | None:
        """The events whose values the query reads; None: all events."""
        return self.told_apart if self.relevant is None else self.relevant


@frozen(kw_only=True)
class Matching:
    """How an event changes the partial matches."""

    columns: tuple[str, ...] = ()  # the arguments of `classify`: columns
    texts: tuple[TextCondition | TextComparison, ...] = ()  # then the truth of these
    symbol_dtype: str = "uint8"  # the NumPy type of a symbol
    kinds: tuple[Kind, ...] = ()  # how an event can be marked, by the number in a node of the arena
    kind_bits: int = 1  # the number of bits of this number
    window: Window | None = None  # WITHIN
    local_windows: tuple[Window, ...] = ()
    """The windows of parts of the formula and the lengths of absences, each once."""
    reaches: tuple[tuple[int, ...], ...] = ()
    """How far before the start of a match events can decide about it. Each tuple is a sequence of
    local windows, one before the other."""
    one_event: bool = False  # whether every match has one event, so that no window is needed
    nested_selectors: bool = False  # whether there are selectors inside, which ignore the window
    consume_by: str = "NONE"

    @property
    def windows(self) -> tuple[Window, ...]:
        return self.local_windows if self.window is None else (self.window, *self.local_windows)


@frozen(kw_only=True)
class Choice:
    """Which matches stay, and when that is known."""

    limit: int | None = None  # the most matches with one end; None: all
    per_start: PerStart | None = None
    """The choice among the matches with one start; `limit` is then None."""
    deadlines: tuple[Deadline, ...] = ()  # those of absences at the end of a match, each once
    ruled_out: tuple[Deadline, ...] = ()
    """The deadlines of absences in branches without matches. No match waits for them."""
    at_end: str = "open"
    """"closed" if the input is over, so that all deadlines have passed."""
    clock: int | float | None = None
    """The time that the input is known to reach (TIMESTAMP: microseconds, DATE: days since 1970);
    None: the events show it."""
    max_work: int = 100_000_000  # steps: the most at one event until a match is found
    rate: Rate | None = None  # after `limit`: how many of the rows stay

    @property
    def waits(self) -> bool:
        """Whether matches wait until no later match can replace them."""
        return self.per_start is not None and not self.per_start.known_at_end


@frozen(kw_only=True)
class Answer:
    """What becomes of the matches that stay."""

    labels: tuple[Label, ...] = ()  # the label columns; with `totals`, the labels it reads
    expressions: tuple[Computed, ...] = ()  # the computed columns, among those of the labels
    hidden: tuple[str, ...] = ()  # labels without a column; kinds number them after the others
    positions: bool = True
    """Whether the output shows positions. It does in the plan of a module; for Spark
    `Program.on_spark` decides."""
    match_id: tuple[str, ...] | None = None
    """The columns by which `match_id` identifies events; None: there is no such column."""
    collapsed: bool = False  # whether the answer has one row for each end of matches
    totals: Totals | None = None  # for rows about groups of matches

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels of the output, then `hidden`. Kinds number labels in this order."""
        return (*(label.name for label in self.labels), *self.hidden)

    @property
    def items(self) -> tuple[Label | Computed, ...]:
        """The label columns and the computed ones, in the order of SELECT.

        Without positions, a label that shows no attributes is left out. Its events would be structs
        without a field, which neither Spark's DDL nor Parquet files allow. COUNT gives their
        number.
        """
        computed = {item.place: item for item in self.expressions}
        labels = iter(self.labels)
        count = len(self.labels) + len(computed)
        items = (computed.get(place) or next(labels) for place in range(count))
        return tuple(
            item
            for item in items
            if self.positions or isinstance(item, Computed) or item.attributes
        )


@frozen(kw_only=True)
class Plan:
    """A compiled query without its code: four parts, and what follows from several of them."""

    name: str
    source: Source = Source()
    matching: Matching = Matching()
    choice: Choice = Choice()
    answer: Answer = Answer()
    functions: tuple[tuple[str, str], ...] = ()
    """The functions of one's own that it calls, each with a digest of what it computes."""

    @property
    def of_inputs(self) -> "Plan":
        """A plan that reads the same columns of the input, before any are derived from them."""
        source = self.source
        if source.is_as_given:
            return self
        inputs = replace(source, attributes=source.input_attributes, derived=(), rest=())
        return replace(self, source=inputs)

    @property
    def is_of_matches(self) -> bool:
        return self.answer.totals is None and not self.answer.collapsed

    @property
    def counts_events(self) -> bool:
        parameters = self.source.parameters
        of_rows = parameters is not None and parameters.position is not None
        return of_rows or any(one.unit == "EVENTS" for one in self.matching.windows)

    @property
    def interleaves(self) -> bool:
        """Whether partitions must be read in one common order instead of one after another."""
        return self.matching.consume_by == "ANY" and bool(self.source.partition_by)

    @property
    def window_attribute(self) -> str | None:
        """The column that the window is measured on; None for EVENTS or without a window."""
        return None if self.matching.window is None else self.measured_on(self.matching.window)

    @property
    def local_attributes(self) -> tuple[str, ...]:
        """The columns that windows inside the formula are measured on, and the clause is not."""
        found = dict.fromkeys(map(self.measured_on, self.matching.local_windows))
        return tuple(name for name in found if name not in (None, self.window_attribute))

    @property
    def whole_window(self) -> Window | None:
        """The window together with all that lies before it and still matters, as one window.

        None without a window (a match of one event needs none), if its parts have different units,
        or for floating numbers, whose sums are rounded.
        """
        window, reaches = self.matching.window, self.matching.reaches
        if window is None and self.matching.one_event and self.source.order_by:
            window = Window("VALUE", 0, self.source.order_by[0])
        if window is None or not reaches:
            return window
        hops = [[self.matching.local_windows[number] for number in one] for one in reaches]
        measures = {
            (one.unit == "EVENTS", self.measured_on(one)) for row in hops for one in (window, *row)
        }
        attribute = self.measured_on(window)
        real = attribute and self.source.type_of(attribute) in ("FLOAT", "DOUBLE")
        if len(measures) > 1 or real:
            return None
        farthest = max(sum(one.size for one in row) for row in hops)
        return Window(window.unit, window.size + farthest, window.attribute)

    @property
    def farthest_deadline(self) -> Window | None:
        """The longest time after the end of a match in which events decide about it.

        None without a deadline, or if one is not a time on the first order column, or is a floating
        number.
        """
        found = [self.matching.local_windows[one.window] for one in self.choice.deadlines]
        if not found or not all(map(self.is_on_clock, self.choice.deadlines)):
            return None
        if self.source.type_of(self.source.order_by[0]) in ("FLOAT", "DOUBLE"):
            return None
        return max(found, key=lambda window: window.size)

    def measured_on(self, window: Window) -> str | None:
        """The column that a window is measured on; None for EVENTS."""
        if window.unit == "EVENTS":
            return None
        return window.attribute or self.source.order_by[0]

    @property
    def shows_decided_time(self) -> bool:
        """Whether the output says when matches are decided.

        It does if all absences at the end are times on the first order column, even those of
        branches that conditions leave without matches.
        """
        written = (*self.choice.deadlines, *self.choice.ruled_out)
        return bool(written) and all(map(self.is_on_clock, written))

    def is_on_clock(self, deadline: Deadline) -> bool:
        """Whether a deadline is a time on the first order column, so that all partitions pass
        it."""
        measured = self.measured_on(self.matching.local_windows[deadline.window])
        return bool(self.source.order_by) and measured == self.source.order_by[0]

    def counts(self, deadline: Deadline) -> bool:
        """Whether a deadline is in EVENTS."""
        return self.matching.local_windows[deadline.window].unit == "EVENTS"

    @property
    def asks_for_clock(self) -> bool:
        """Whether the greatest time in the whole input decides about some matches."""
        return self.choice.at_end == "open" and any(map(self.is_on_clock, self.choice.deadlines))

    @property
    def stored_attributes(self) -> tuple[str, ...]:
        """The columns of past events that the output reads: for labels, expressions, the start
        time, and `match_id`."""
        names = dict.fromkeys(name for label in self.answer.labels for name in label.attributes)
        names |= dict.fromkeys(attributes_of(self.answer.expressions))
        if self.source.order_by:
            names[self.source.begin or self.source.order_by[0]] = None
        names |= dict.fromkeys(self.answer.match_id or ())
        return tuple(names)

    @property
    def first_place(self) -> int:
        """The index of the first output column that says where a match is."""
        return (self.answer.match_id is not None) + len(self.source.partition_by)

    def place_columns(self, totals: Totals) -> list[tuple[str, str]]:
        """The columns that identify a group, besides the partition, with their types."""
        if totals.per == "PARTITION":
            return []
        if isinstance(totals.per, int):
            return [("span_start", "TIMESTAMP"), ("span_end", "TIMESTAMP")]
        shown = [("end_pos", "LONG")] if self.answer.positions else []
        if self.source.order_by:
            shown.append(("end_time", self.source.type_of(self.source.order_by[0])))
        return shown

    def output_ddl(self) -> str:
        """The output schema as Spark SQL spells it."""
        return ", ".join(f"{quoted(name)} {type}" for name, type in self.ddl_columns())

    def ddl_columns(self) -> list[tuple[str, str]]:
        """The names of the output's columns, and their types in Spark SQL."""
        columns = [] if self.answer.match_id is None else [(MATCH_ID, "BINARY")]
        columns += [(name, self._ddl_type(name)) for name in self.source.partition_by]
        if (rows := self.source.parameters) is not None and not rows.hidden:
            columns.append((rows.name, self.row_ddl(rows.shown)))
        if self.answer.totals is not None:
            places = self.place_columns(self.answer.totals)
            items = [(item.name, item.type) for item in self.answer.totals.items]
            typed = [(name, ddl_of(type)) for name, type in (*places, *items)]
            return columns + typed
        if self.answer.positions:
            columns += [("start_pos", "BIGINT"), ("end_pos", "BIGINT")]
        if self.source.order_by:
            time = self._ddl_type(self.source.order_by[0])
            columns += [("start_time", time), ("end_time", time)]
            if self.shows_decided_time and not self.answer.collapsed:
                columns.append((DECIDED_TIME, time))
        if self.source.uncertain is not None:
            columns.append((CONFIDENCE, "DOUBLE"))
        if self.answer.collapsed:
            columns.append((MATCHES, COUNTS))
        for item in self.answer.items:
            if isinstance(item, Computed):
                columns.append((item.name, ddl_of(item.type)))
                continue
            inner = ", ".join(f"{quoted(name)}: {type}" for name, type in self.ddl_fields(item))
            columns.append((item.name, f"ARRAY<STRUCT<{inner}>>"))
        return columns

    def ddl_fields(self, label: Label) -> list[tuple[str, str]]:
        """The names and types of the fields of one event under a label."""
        fields = [(name, self._ddl_type(name)) for name in label.attributes]
        return [("pos", "BIGINT"), *fields] if self.answer.positions else fields

    def row_ddl(self, names: tuple[str, ...]) -> str:
        """The type of a column with these attributes of the parameter set, in Spark SQL."""
        assert self.source.parameters is not None
        types = ((name, ddl_of(self.source.parameters.type_of(name))) for name in names)
        return f"STRUCT<{', '.join(f'{quoted(name)}: {type}' for name, type in types)}>"

    def _ddl_type(self, attribute: str) -> str:
        type = self.source.type_of(attribute)
        return ddl_of(type)


def sql_text(text: str) -> str:
    """A text as Spark SQL quotes it.

    Spark puts the values of variables (`${…}`) into a statement before it reads its quotes.
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"


def quoted(name: str) -> str:
    """A column's name as Spark SQL quotes it."""
    return "`" + name.replace("`", "``") + "`"
