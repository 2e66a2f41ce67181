"""FOR EACH as data: the parameter set of a query, and the rows that an event can concern."""

from typing import TypeAlias

from celc_runtime.plan.frozen import frozen


@frozen
class Parameter:
    """An attribute of the parameter set."""

    name: str
    type: str  # as the language names it


@frozen
class Pattern:
    """`x.attribute LIKE rule.parameter`."""

    column: str  # the column of events with the answer
    operator: str  # LIKE or RLIKE
    attribute: str
    parameter: str


@frozen
class OfEvent:
    """A condition on an attribute of an event and constants."""

    operator: str
    """`=`, `!=`, `<`, `<=`, `>`, `>=`, in, not_in, is_null or is_not_null; no order of STRINGs."""
    attribute: str
    type: str  # the type in which values are compared
    operands: tuple[int | float | str | bool, ...] = ()


@frozen
class OfRow:
    """A condition on an attribute of the parameter set and constants."""

    operator: str
    parameter: str
    type: str
    operands: tuple[int | float | str | bool, ...] = ()


@frozen
class OfBoth:
    """`event.attribute operator rule.parameter`, compared in the type `type`."""

    operator: str
    attribute: str
    parameter: str
    type: str


Test: TypeAlias = OfEvent | OfRow | OfBoth


@frozen
class Concern:
    """The parameter rows that an event of one type can concern."""

    stream: str
    type: str
    ways: tuple[tuple[tuple[Test, ...], ...], ...] = ()
    """The rows for which one of the ways is true; empty: all rows. A way is an AND of ORs. It may
    be true of more rows than matter, but never of fewer."""


@frozen
class Move:
    """What events of one type can do to a partial match of a row."""

    stream: str
    type: str
    source: int  # the state of the partial match; 0: none is needed, a match can begin
    target: int | None
    """The state after it. 0: the event has to be read, because a match can end or can go on in a
    state that is not followed. None: the partial match is lost."""
    way: tuple[tuple[Test, ...], ...]
    """The events, as in `Concern`. It may be true of more events, but never of fewer."""
    ends: bool = False
    """Whether each event for which the way is true ends all partial matches in the state. Other
    moves of the event may go on with copies of them."""


@frozen
class Course:
    """How the partial matches of a row go on, from the event that begins them to the last one.

    An event is read for a row only if it begins a match, or if the row is *alive*: it has a partial
    match that the event can move, or that only the next event can move. What leads to no match is
    not read at all.
    """

    begins: tuple[Concern, ...]  # the rows for which an event can begin a match
    moves: tuple[Move, ...]
    passes: tuple[int | None, ...]
    """For each state from 1 on the state after an event that satisfies no condition, as
    `Move.target`. A state that stays itself *waits*. In all others the very next event counts."""

    def waits(self, state: int) -> bool:
        return self.passes[state - 1] == state

    @property
    def jumps(self) -> bool:
        """Whether some states wait: then the next event that matters is looked up by its values."""
        return any(map(self.waits, range(1, len(self.passes) + 1)))


@frozen
class Validity:
    """VALID [since, until]: the times of labelled events of a row's matches.

    Rows with one key, the first attribute of the set, are versions of one another. `first` and
    `last` are columns of rows that the runtime makes: the least and the greatest time of a labelled
    event, never NULL. In a row that is never valid, `last` is less than `first`.
    """

    since: str  # an attribute of the set; NULL: from the beginning
    until: str  # an attribute of the set; NULL: for ever
    first: str
    last: str
    type: str  # of all four, and of the first order column
    looks_out: bool = False
    """Whether a match depends on events before its first labelled one, or takes events without a
    label."""


@frozen(kw_only=True)
class Parameters:
    """The parameter set of a query FOR EACH, and how its values come to the events."""

    name: str
    attributes: tuple[Parameter, ...]
    shown: tuple[str, ...]  # its attributes in the output
    columns: tuple[tuple[str, str], ...]  # columns of events: (column, the attribute that it holds)
    number: str
    """The column of the row's number. Events are partitioned by it first, unless `row_by_row`."""
    patterns: tuple[Pattern, ...] = ()
    position: str | None = None  # the column of positions for windows in EVENTS; None: none needed
    row_by_row: bool = False  # whether the rows are run one by one
    consume_by: str = "NONE"  # CONSUME BY among the events of one row
    concerns: tuple[Concern, ...] | None = None
    """The rows that an event concerns, by its type; None: every event concerns every row."""
    why: str = ""  # the reason for None
    course: Course | None = None
    """How rows are followed where all events of a partition are at hand; None: they are not."""
    valid: Validity | None = None  # None: rows are valid at any time
    named_by: str = ""
    """The attribute that has the names of rules: each row is a query of its own, and the program
    runs all of them (`celc_runtime.many.rules`). Empty: the rows are those of one query."""

    hidden: bool = False  # whether the output has no column of the set

    def type_of(self, attribute: str) -> str:
        if self.valid is not None and attribute in (self.valid.first, self.valid.last):
            return self.valid.type
        return next(one.type for one in self.attributes if one.name == attribute)

    @property
    def shown_attributes(self) -> tuple[Parameter, ...]:
        types = {one.name: one for one in self.attributes}
        return tuple(types[name] for name in self.shown)
