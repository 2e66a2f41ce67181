"""`Plan`: one query as its generated module writes it.

Long: all that a module says of a query, and what follows from it.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from celc_runtime.plan.conditions import TextComparison, TextCondition
from celc_runtime.plan.expressions import Computed, attributes_of
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.parameters import Parameters
from celc_runtime.plan.relevance import Relevant
from celc_runtime.plan.totals import Totals
from celc_runtime.plan.uncertain import CONFIDENCE, Uncertain

DECIDED_TIME = "decided_time"
"""The column that says when a match with an absence at its end is decided."""

MATCHES = "matches"
"""The column of COLLAPSED that says for how many matches a row stands."""

MATCH_ID = "match_id"
"""The column that tells a match from all others, the same on every route."""

COUNTS = "DECIMAL(38, 0)"
"""The type of counts of matches."""

DDL_TYPES = {"LONG": "BIGINT", "INTERVAL": "INTERVAL DAY TO SECOND"}
"""The types that Spark's DDL calls otherwise than the language."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column that the query reads, with its type as the language names it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Label:
    """A label column of the output: its structs hold `pos` and then these attributes. `single`: it
    holds exactly one event of every match. `first`, `last`: and that begins or ends the match."""

    name: str
    attributes: tuple[str, ...]
    single: bool = False
    first: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """How an event of a match is marked: the label columns that it goes to, and whether it can be
    the first event of a match."""

    columns: tuple[int, ...]
    starts: bool


@dataclass(frozen=True, slots=True)
class Window:
    """A window, of the clause WITHIN or of a part of the formula.

    `unit` is EVENTS, MICROSECONDS or VALUE; `attribute` is the measured attribute, None: the first
    order column. `begin`: where events last, the column of their starts.
    """

    unit: str
    size: int | float
    attribute: str | None
    _: KW_ONLY
    begin: str | None = None


@dataclass(frozen=True, slots=True)
class Deadline:
    """When matches with an absence at their end are decided: when so much has passed since the end,
    or since the start. `window` is the number of that length among the plan's `local_windows`."""

    window: int
    from_start: bool


@dataclass(frozen=True, slots=True)
class PerStart:
    """The choice among the matches with one start that is left to the run: `end` is FIRST or
    LONGEST. `disjoint`: of these, each that starts after the end of the last one kept. `limit`: at
    most so many of the chosen matches for each end."""

    end: str
    disjoint: bool
    limit: int | None = None

    @property
    def known_at_end(self) -> bool:
        """Whether the choice of a match depends on earlier events only."""
        return self.end == "FIRST" and not self.disjoint

    def __str__(self) -> str:
        return f"{self.end} DISJOINT" if self.disjoint else self.end


@dataclass(frozen=True, slots=True)
class ChosenKey:
    """A key of PARTITION BY that is another attribute for each event type.

    place: the key's place in PARTITION BY. ways: pairs of an attribute and the (stream, type) of
    the event types that have it; each event type of the query is in one pair.
    """

    place: int
    type: str
    ways: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]

    def __str__(self) -> str:
        return f"[{', '.join(name for name, _ in self.ways)}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Whose rows are read, and in what order."""

    streams: tuple[str, ...] = ()
    """The streams that the query reads."""
    types: tuple[tuple[str, str], ...] = ()
    """(stream, type) of the event types that its formula names, numbered from 1 for `classify`."""
    other_types: tuple[tuple[str, str], ...] = ()
    """Those that its streams declare besides."""
    type_column: bool = False
    """Whether it reads the column of event types."""
    stream_column: bool = False
    """Whether it reads the column of streams."""
    type_name: str = "type"
    """The name of the column of event types."""
    attributes: tuple[Attribute, ...] = ()
    """The columns that it reads besides these, in the order of declaration."""
    order_candidates: tuple[Attribute, ...] = ()
    """The attributes that all its event types have, as order columns must."""
    partition_by: tuple[str, ...] = ()
    """The keys, as the output calls them."""
    chosen_keys: tuple[ChosenKey, ...] = ()
    """The keys among them for which the input has no column."""
    order_by: tuple[str, ...] = ()
    """The order columns; empty: events are read in the order in which they come."""
    tiebreak: tuple[str, ...] = ()
    """More columns of the order, which tell apart events that are equal in `order_by`."""
    ties: str | None = None
    """"simultaneous" where events that are equal in all order columns are one instant."""
    uncertain: Uncertain | None = None
    """The times of events are uncertain, and the answer says how likely each match is."""
    reads: tuple[str, ...] = ()
    """The queries whose rows are events; then events last, and `chain` makes the input."""
    begin: str | None = None
    """Of such a query, the column of the starts of events."""
    declared: tuple[str, ...] = ()
    """Of such a query, the attributes of the streams that are declared."""
    parameters: Parameters | None = None
    """Of a query FOR EACH, which `rules/run` runs; other fields are then as in the text."""
    relevant: tuple[Relevant, ...] | None = None
    """The events that can change the answer; all others may be left out of the stream where
    positions are not shown. None: the query must see all events."""
    told_apart: tuple[Relevant, ...] | None = None
    """Where it must see them only because they count, or keep others from being neighbours, the
    events of which it reads more than that they are there."""

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

    def input_type(self, column: str) -> str:
        """The type of a column of the input: as declared, and STRING for the columns that tell
        types and streams."""
        return next((a.type for a in self.attributes if a.name == column), "STRING")

    @property
    def input_names(self) -> tuple[str, ...]:
        """The columns read, tiebreak columns aside."""
        return (*self.text_columns, *(one.name for one in self.attributes))

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that tell the types and the streams of events, where the query reads any."""
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
        """The attributes that keys are read from, also those of event types with another one."""
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
        """The events of which the query reads more than that they are there; None: all events."""
        return self.told_apart if self.relevant is None else self.relevant


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """How an event changes the partial matches."""

    columns: tuple[str, ...] = ()
    """The columns that `classify` takes."""
    texts: tuple[TextCondition | TextComparison, ...] = ()
    """The conditions on texts whose truth it takes, behind the columns."""
    symbol_dtype: str = "uint8"
    """The type of numpy that holds the number of a symbol."""
    kinds: tuple[Kind, ...] = ()
    """How an event of a match can be marked, by the number that a node of the arena has."""
    kind_bits: int = 1
    """How many bits of a node have that number."""
    window: Window | None = None
    """WITHIN; None: there is none."""
    local_windows: tuple[Window, ...] = ()
    """The windows of parts of the formula and the lengths of absences, each once."""
    reaches: tuple[tuple[int, ...], ...] = ()
    """The events before a match that can decide whether it is one, as hops from its start: each
    tuple has the numbers of the local windows that are hopped one after another."""
    one_event: bool = False
    """Every match is of one event, so that a query without a window needs none."""
    nested_selectors: bool = False
    """The formula has selectors, which know nothing of the window."""
    consume_by: str = "NONE"
    """CONSUME BY, or NONE."""

    @property
    def windows(self) -> tuple[Window, ...]:
        """WITHIN, and the local windows."""
        return self.local_windows if self.window is None else (self.window, *self.local_windows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which matches stay, and when that is known."""

    limit: int | None = None
    """How many matches with one end are listed; None: all."""
    per_start: PerStart | None = None
    """What is still to choose among the matches with one start; `limit` is then None."""
    deadlines: tuple[Deadline, ...] = ()
    """Those of the absences at the end of a match, each once."""
    ruled_out: tuple[Deadline, ...] = ()
    """Those of absences in branches without matches, for which no match waits."""
    at_end: str = "open"
    """"closed" where the input is over, so that all deadlines are passed."""
    clock: int | float | None = None
    """The time up to which the input is known to reach, a TIMESTAMP in microseconds and a DATE in
    days since 1970; None: the events tell."""
    max_work: int = 100_000_000
    """How many steps conditions across events may take at one event before a match is found."""

    @property
    def waits(self) -> bool:
        """Whether matches wait until no later match can take their place."""
        return self.per_start is not None and not self.per_start.known_at_end


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What becomes of the matches that stay."""

    labels: tuple[Label, ...] = ()
    """The label columns of the output; with `totals`, the labels that its functions read."""
    expressions: tuple[Computed, ...] = ()
    """The computed columns, which stand among those of the labels."""
    hidden: tuple[str, ...] = ()
    """The labels that are no columns; kinds number them after the label columns."""
    positions: bool = True
    """Whether the output shows positions; a plan as written does, and `Program.on_spark` decides it
    for Spark."""
    match_id: tuple[str, ...] | None = None
    """The columns by which the column `match_id` tells events apart; None: there is no such
    column."""
    collapsed: bool = False
    """The answer has one row for each end of matches."""
    totals: Totals | None = None
    """The answer are rows about groups of matches."""

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels of the output, then the labels that only expressions mention. Kinds number
        labels in this order."""
        return (*(label.name for label in self.labels), *self.hidden)

    @property
    def items(self) -> tuple[Label | Computed, ...]:
        """The label columns and the computed ones, in the order of SELECT.

        Without positions a label that shows no attributes is left out: its events would be structs
        without a field, which Arrow can hold, but neither Spark's DDL nor a Parquet file. COUNT
        says how many they are.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A compiled query without its code: parts that answer one question each, and what follows from
    several of them."""

    name: str
    source: Source = Source()
    matching: Matching = Matching()
    choice: Choice = Choice()
    answer: Answer = Answer()

    @property
    def is_of_matches(self) -> bool:
        """Whether each row of the answer is one match."""
        return self.answer.totals is None and not self.answer.collapsed

    @property
    def counts_events(self) -> bool:
        """Whether a window or an absence is measured in EVENTS."""
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
        """The window with all that lies before it and still matters, as one window.

        None without a window (a match of one event needs none), and where its parts are measured in
        different ways, or on floating numbers, whose sums are rounded.
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
        """The longest time from the end of a match in which events decide it; None where there is
        no deadline, or one that is no time on the first order column, or on floating numbers."""
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
        """Whether the output says when matches are decided: all absences at the end are times on
        the first order column, also where conditions leave no match of a branch."""
        written = (*self.choice.deadlines, *self.choice.ruled_out)
        return bool(written) and all(map(self.is_on_clock, written))

    def is_on_clock(self, deadline: Deadline) -> bool:
        """Whether a deadline is a time on the first order column, so that the events of all
        partitions move the clock that passes it."""
        measured = self.measured_on(self.matching.local_windows[deadline.window])
        return bool(self.source.order_by) and measured == self.source.order_by[0]

    @property
    def asks_for_clock(self) -> bool:
        """Whether the greatest time in the whole input decides some matches."""
        return self.choice.at_end == "open" and any(map(self.is_on_clock, self.choice.deadlines))

    @property
    def stored_attributes(self) -> tuple[str, ...]:
        """The columns of past events that output reads: the attributes of labels and expressions,
        the start time, and what `match_id` tells events by."""
        names = dict.fromkeys(name for label in self.answer.labels for name in label.attributes)
        names |= dict.fromkeys(attributes_of(self.answer.expressions))
        if self.source.order_by:
            names[self.source.begin or self.source.order_by[0]] = None
        names |= dict.fromkeys(self.answer.match_id or ())
        return tuple(names)

    @property
    def first_place(self) -> int:
        """The place of the first column of the output that says where a match is."""
        return (self.answer.match_id is not None) + len(self.source.partition_by)

    def place_columns(self, totals: Totals) -> list[tuple[str, str]]:
        """The columns that tell a group, besides the partition, with their types."""
        if totals.per == "PARTITION":
            return []
        if totals.per != "END":
            return [("span_start", "TIMESTAMP"), ("span_end", "TIMESTAMP")]
        shown = [("end_pos", "LONG")] if self.answer.positions else []
        if self.source.order_by:
            shown.append(("end_time", self.source.type_of(self.source.order_by[0])))
        return shown

    def output_ddl(self) -> str:
        """The output schema as Spark SQL spells it."""
        return ", ".join(f"{quoted(name)} {type}" for name, type in self.ddl_columns())

    def ddl_columns(self) -> list[tuple[str, str]]:
        """The names of the output's columns, and their types as Spark SQL spells them."""
        columns = [] if self.answer.match_id is None else [(MATCH_ID, "BINARY")]
        columns += [(name, self._ddl_type(name)) for name in self.source.partition_by]
        if self.source.parameters is not None:
            columns.append((self.source.parameters.name, self._row_ddl(self.source.parameters)))
        if self.answer.totals is not None:
            places = self.place_columns(self.answer.totals)
            items = [(item.name, item.type) for item in self.answer.totals.items]
            typed = [(name, DDL_TYPES.get(type, type)) for name, type in (*places, *items)]
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
                columns.append((item.name, computed_ddl(item)))
                continue
            inner = ", ".join(f"{quoted(name)}: {type}" for name, type in self.ddl_fields(item))
            columns.append((item.name, f"ARRAY<STRUCT<{inner}>>"))
        return columns

    def ddl_fields(self, label: Label) -> list[tuple[str, str]]:
        """The names and types of the fields of one event under a label."""
        fields = [(name, self._ddl_type(name)) for name in label.attributes]
        return [("pos", "BIGINT"), *fields] if self.answer.positions else fields

    def _row_ddl(self, parameters: Parameters) -> str:
        types = (
            (one.name, DDL_TYPES.get(one.type, one.type)) for one in parameters.shown_attributes
        )
        return f"STRUCT<{', '.join(f'{quoted(name)}: {type}' for name, type in types)}>"

    def _ddl_type(self, attribute: str) -> str:
        type = self.source.type_of(attribute)
        return DDL_TYPES.get(type, type)


def computed_ddl(item: Computed) -> str:
    """The type of a computed column as Spark SQL spells it."""
    element = DDL_TYPES.get(item.element_type, item.element_type)
    return f"ARRAY<{element}>" if item.is_array else element


def sql_text(text: str) -> str:
    """A text as Spark SQL quotes it.

    Spark puts the values of variables (`${…}`) into a statement before it reads its quotes.
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"


def quoted(name: str) -> str:
    """A column's name as Spark SQL quotes it."""
    return "`" + name.replace("`", "``") + "`"
