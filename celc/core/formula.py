"""Core CEL: formulas whose names are resolved and whose expressions are typed.

Differences from the syntax tree: every name is resolved, every expression has a type and its
casts are explicit, conditions are in conjunctive normal form with NOT pushed to the comparisons,
CEQL's `x[p]` and BETWEEN are gone. Each node keeps the span it came from.

Long: the nodes are one closed union, and a reader of a pass looks for all of them in one place.
"""

# Longer than other files: the classes are one representation, and refer to each other.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeAlias

from celc.diagnostics.source import Span
from celc.parse import syntax


def _span() -> Span:
    return field(compare=False, repr=False)  # type: ignore[no-any-return]


# --- types and declarations -----------------------------------------------------------------------


class DataType(Enum):
    """The types of the language, named as Spark SQL names them; attributes have all but DECIMAL,
    which is that of totals of whole numbers."""

    BOOLEAN = "BOOLEAN"
    INT = "INT"
    LONG = "LONG"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    TIMESTAMP = "TIMESTAMP"
    DATE = "DATE"
    INTERVAL = "INTERVAL"
    DECIMAL = "DECIMAL(38, 0)"

    @property
    def is_numeric(self) -> bool:
        """Whether it is a type of numbers."""
        return self in (*NUMBERS, DataType.DECIMAL)

    @property
    def is_checked(self) -> bool:
        """Whether arithmetic with a result of this type is NULL where 64 bits do not hold it.

        Its values are microseconds. Arithmetic on numbers wraps.
        """
        return self in (DataType.TIMESTAMP, DataType.INTERVAL)


ATTRIBUTE_TYPES = tuple(one for one in DataType if one is not DataType.DECIMAL)

NUMBERS = (DataType.INT, DataType.LONG, DataType.FLOAT, DataType.DOUBLE)
"""The numeric types of attributes, narrow ones first: of two the later one holds the values of
both."""

TIMES = (DataType.TIMESTAMP, DataType.DATE)


@dataclass(frozen=True, slots=True)
class AttributeDeclaration:
    """An attribute of an event type: one column of the table that carries the stream."""

    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class EventType:
    """An event type of one stream; two streams may each have a type of the same name."""

    stream: str
    name: str
    attributes: tuple[AttributeDeclaration, ...]

    def type_of(self, attribute: str) -> DataType | None:
        """The declared type of an attribute, None where this event type lacks it."""
        for declaration in self.attributes:
            if declaration.name == attribute:
                return declaration.type
        return None


def text_of_type(event_type: EventType) -> str:
    """An event type as a value that conditions compare."""
    return f"{event_type.stream}>{event_type.name}"


@dataclass(frozen=True, slots=True)
class Stream:
    """A declared stream."""

    name: str
    event_types: tuple[EventType, ...]


# --- expressions ----------------------------------------------------------------------------------


Value: TypeAlias = int | float | str | bool
"""The value of a constant, NULL aside."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal. Values: int for INT, LONG, DECIMAL, TIMESTAMP (microseconds since 1970-01-01 UTC),
    DATE (days since 1970-01-01) and INTERVAL (microseconds), float for FLOAT and DOUBLE, str, bool;
    None for NULL of any type."""

    value: Value | None
    type: DataType
    span: Span = _span()


TYPE = "type"
"""In place of an attribute: the event type, of the type STRING, as `text_of_type` spells it. No
attribute is called so. `x IS R` is a `Membership` of it."""


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """`x.a`: the attribute of the position chosen for label x."""

    label: str
    attribute: str
    type: DataType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left op right`.

    Of numbers, both operands and the result have `type`, except `/`, whose operands are DOUBLE
    already. A result of type TIMESTAMP or INTERVAL comes from operands of the types
    `TIME_OPERANDS`; it is NULL where 64 bits do not hold it, and so is an operand that is a DATE's
    midnight. In TOTAL and in its HAVING what leaves its type is an error instead, also of whole
    numbers, which wrap elsewhere.
    """

    operator: Literal["+", "-", "*", "/", "%"]
    left: Expression
    right: Expression
    type: DataType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Negation:
    """`-e`, wrapping for whole numbers; NULL for the smallest INTERVAL."""

    operand: Expression
    type: DataType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Absolute:
    """`ABS(e)`; of the smallest whole number it is that number itself (ANSI mode off), of the
    smallest INTERVAL NULL."""

    operand: Expression
    type: DataType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Cast:
    """An implicit widening as Spark SQL inserts it (ANSI mode off), such as INT to DOUBLE.

    A DATE as a TIMESTAMP is its midnight in UTC, as a LONG the days since 1970-01-01.
    """

    operand: Expression
    type: DataType
    span: Span = _span()


EXACT_CASTS = frozenset(
    {
        (DataType.INT, DataType.LONG),
        (DataType.INT, DataType.DOUBLE),
        (DataType.FLOAT, DataType.DOUBLE),
    }
)
"""Casts that keep every value, and so their order."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A parameter or a variable of STATE, in the declaration of an aggregate; the value of an item,
    in the HAVING of TOTAL; an attribute of the parameter set, in an expression of SELECT."""

    name: str
    type: DataType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Choice:
    """`LEAST(e, …)`, `GREATEST(e, …)` or `COALESCE(e, …)`, in the declaration of an aggregate
    alone; operands that are NULL are passed over. No operand is a STRING."""

    function: Literal["LEAST", "GREATEST", "COALESCE"]
    operands: tuple[Expression, ...]
    type: DataType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Conditional:
    """`IF(p, then, otherwise)`, in the declaration of an aggregate alone; p is TRUE or not. No
    operand is a STRING."""

    condition: Truth
    then: Expression
    otherwise: Expression
    type: DataType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class StateVariable:
    """A variable of an aggregate's STATE: its first value, and its value after a position, which is
    itself where STEP does not name it."""

    name: str
    type: DataType
    first: Value | None
    step: Expression


@dataclass(frozen=True, slots=True)
class OwnAggregate:
    """An aggregate that the file declares.

    The variables in steps are parameters and STATE, those in `result` STATE alone. A parameter of
    the type STRING stands in conditions of IF alone, compared with constants and other parameters.
    """

    name: str
    parameters: tuple[AttributeDeclaration, ...]
    state: tuple[StateVariable, ...]
    result: Expression

    @property
    def type(self) -> DataType:
        """The type of its values."""
        return self.result.type


AggregateFunction = Literal[
    "FIRST",
    "LAST",
    "MIN",
    "MAX",
    "SUM",
    "AVG",
    "COUNT",
    "VARIANCE",
    "STDDEV",
    "MEDIAN",
    "DISTINCT",
    "OWN",
]
"""DISTINCT is `COUNT(DISTINCT x.a)`, OWN an aggregate that the file declares."""


MAX_COUNT = 1000
"""The largest number that COUNT can be compared with: each number up to it is a state."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of all positions of a label, or with `prior` of those before the chosen one.

    `attribute` is None for COUNT and only for it. OWN has an `own` declaration, and it alone has
    `more` attributes than one. `read` are the types of the attributes of DISTINCT and OWN, empty
    for others.
    """

    function: AggregateFunction
    label: str
    attribute: str | None
    prior: bool
    type: DataType
    span: Span = _span()
    own: OwnAggregate | None = None
    more: tuple[str, ...] = ()
    read: tuple[DataType, ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that it is taken of; none of COUNT."""
        return () if self.attribute is None else (self.attribute, *self.more)


@dataclass(frozen=True, slots=True)
class Previous:
    """`PREV(x.a, distance)`: the value at that position of x before the chosen one."""

    label: str
    attribute: str
    type: DataType
    span: Span = _span()
    distance: int = 1


TotalFunction = Literal["COUNT", "APPROX_COUNT", "SUM", "AVG", "MIN", "MAX"]


@dataclass(frozen=True, slots=True)
class TotalOf:
    """`COUNT(*)`, `SUM(x.a)` and others: a function of all matches of a group, in an item of TOTAL
    alone.

    `label` is None for `*`: COUNT and APPROX_COUNT of the matches. Of the others, COUNT counts the
    positions of `label` in each match, and the rest are over the values of `attribute` at them,
    NULLs left out. `attribute` and its type `read` are None for counts.
    """

    function: TotalFunction
    label: str | None
    attribute: str | None
    type: DataType
    span: Span = _span()
    read: DataType | None = None


TIME_OPERANDS: Mapping[tuple[str, DataType, DataType], DataType] = {
    ("-", DataType.TIMESTAMP, DataType.TIMESTAMP): DataType.INTERVAL,
    ("+", DataType.TIMESTAMP, DataType.INTERVAL): DataType.TIMESTAMP,
    ("+", DataType.INTERVAL, DataType.TIMESTAMP): DataType.TIMESTAMP,
    ("-", DataType.TIMESTAMP, DataType.INTERVAL): DataType.TIMESTAMP,
    ("+", DataType.INTERVAL, DataType.INTERVAL): DataType.INTERVAL,
    ("-", DataType.INTERVAL, DataType.INTERVAL): DataType.INTERVAL,
    ("*", DataType.INTERVAL, DataType.LONG): DataType.INTERVAL,
    ("*", DataType.LONG, DataType.INTERVAL): DataType.INTERVAL,
    ("*", DataType.INTERVAL, DataType.DECIMAL): DataType.INTERVAL,
    ("*", DataType.DECIMAL, DataType.INTERVAL): DataType.INTERVAL,
}
"""The type of arithmetic with times, by the operator and the types of both sides."""


Expression: TypeAlias = (
    Constant
    | AttributeValue
    | Arithmetic
    | Negation
    | Absolute
    | Cast
    | Aggregate
    | Previous
    | Variable
    | Choice
    | Conditional
    | TotalOf
)

# --- conditions in conjunctive normal form --------------------------------------------------------


ComparisonOperator: TypeAlias = syntax.ComparisonOperator

MIRRORED: Mapping[ComparisonOperator, ComparisonOperator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
"""The operator that says the same with its sides exchanged."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`, operands of one type; not TRUE where an operand is NULL.

    `beside`: the other operands of a BETWEEN or an IN that it was written out from. That is one
    comparison in the text, which names their labels and looks back where they do.
    """

    operator: ComparisonOperator
    left: Expression
    right: Expression
    span: Span = _span()
    beside: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Membership:
    """`operand IN values`, or NOT IN where `negated`.

    `values` are distinct non-NULL constants of the operand's type, in order of first appearance;
    `has_null` says whether the list held a NULL, which makes `NOT IN` never TRUE. `beside`: as for
    a comparison.
    """

    operand: Expression
    values: tuple[Value, ...]
    has_null: bool
    negated: bool
    span: Span = _span()
    beside: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """`operand [NOT] LIKE pattern` (SQL's % and _, escape `\\`) or RLIKE (RE2, found anywhere)."""

    operator: Literal["LIKE", "RLIKE"]
    operand: Expression
    pattern: str
    negated: bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class NullTest:
    """`operand IS [NOT] NULL`."""

    operand: Expression
    negated: bool
    span: Span = _span()


Predicate: TypeAlias = Comparison | Membership | PatternMatch | NullTest


@dataclass(frozen=True, slots=True)
class Every:
    """An AND, as it stands in the text."""

    parts: tuple[Truth, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Some:
    """An OR, as it stands in the text."""

    parts: tuple[Truth, ...]
    span: Span = _span()


Truth: TypeAlias = Predicate | Every | Some
"""A condition with NOT pushed to its predicates."""


@dataclass(frozen=True, slots=True)
class Clause:
    """An OR of predicates that must be TRUE for every choice of a position for each of `labels`.

    `labels` are those named outside aggregates, in order of first appearance. No predicates at
    all is FALSE.
    """

    predicates: tuple[Predicate, ...]
    labels: tuple[str, ...]
    span: Span = _span()


# --- formulas -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Atom:
    """`R` or `S>R`: one event of any of `types` (one type, or one of the same name per stream)."""

    label: str
    types: tuple[EventType, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class As:
    """`φ AS x`."""

    operand: Formula
    label: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Rename:
    """`φ[x -> y]`, a scope."""

    operand: Formula
    old: str
    new: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Project:
    """`PROJECT[L](φ)`, a scope; `labels` in the order of the text."""

    operand: Formula
    labels: tuple[str, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Sequence:
    """`φ ; φ`, or `φ : φ` where the gap between two operands is `contiguous`.

    `contiguous[k]` belongs to the gap between operands k and k+1. Flat, because both operators
    are associative, also mixed.
    """

    operands: tuple[Formula, ...]
    contiguous: tuple[bool, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Absence:
    """`left ; !middle ; right`: the middle, a scope, has no match strictly between the two."""

    left: Formula
    middle: Formula
    right: Formula
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Iteration:
    """`φ+`, or `φ:+` where `contiguous`; `φ{least,most}`, most None: no limit. A scope."""

    operand: Formula
    contiguous: bool
    span: Span = _span()
    least: int = 1
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Disjunction:
    """`φ OR φ OR …`."""

    operands: tuple[Formula, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Conjunction:
    """`φ AND φ`: the same triple on both sides."""

    left: Formula
    right: Formula
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class All:
    """`φ ALL φ`: the union of two matches placed anyhow."""

    left: Formula
    right: Formula
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Unless:
    """`φ UNLESS φ`; the right side is a scope."""

    left: Formula
    right: Formula
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Filter:
    """`φ FILTER p`, p in conjunctive normal form."""

    operand: Formula
    clauses: tuple[Clause, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Selector:
    """`STRICT(φ)`, `NXT(φ)`, `LAST(φ)` or `MAX(φ)`, a scope."""

    strategy: Literal["STRICT", "NXT", "LAST", "MAX"]
    operand: Formula
    span: Span = _span()


class WindowUnit(Enum):
    """The things that the size of a window counts."""

    EVENTS = "EVENTS"
    MICROSECONDS = "MICROSECONDS"
    VALUE = "VALUE"


@dataclass(frozen=True, slots=True)
class Window:
    """WITHIN, and the length of an absence: it fits if value(end) − value(start) ≤ size.

    The value is the position for EVENTS, else `attribute`; where `attribute` is None, it is the
    first order column. `size` is whole for EVENTS and MICROSECONDS. `begin`: where events last, the
    attribute that is the value of a start; `attribute` is then that of an end.
    """

    unit: WindowUnit
    size: int | float
    attribute: AttributeDeclaration | None
    span: Span = _span()
    begin: AttributeDeclaration | None = None


@dataclass(frozen=True, slots=True)
class Within:
    """`WITHIN[w](φ)`, no scope: the matches of φ that fit the window."""

    operand: Formula
    window: Window
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AbsenceBefore:
    """`!absent FOR length ; operand`, an ordinary formula: the matches of the operand with nothing
    before them.

    `absent`, a scope, has no match that ends before the first event of the operand's match, and
    begins where value(first event) − value(start) ≤ the size of `length`.
    """

    operand: Formula
    absent: Formula
    length: Window
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AbsenceAfter:
    """`operand ; !absent FOR length`: the matches of the operand with nothing after them.

    `absent`, a scope, has no match that begins after the last event of the operand's match, and
    ends where value(end) − value(last event) ≤ the size of `length`; with `from_start` it is
    counted from the first event. Stands only where it is the end of the whole formula, or of an
    operand of OR in one.
    """

    operand: Formula
    absent: Formula
    length: Window
    from_start: bool
    span: Span = _span()


Formula: TypeAlias = (
    Atom
    | As
    | Rename
    | Project
    | Sequence
    | Absence
    | Iteration
    | Disjunction
    | Conjunction
    | All
    | Unless
    | Filter
    | Selector
    | Within
    | AbsenceBefore
    | AbsenceAfter
)

MAX_FORMULA_DEPTH = 250
"""How deep formulas may nest, so that passes over them can be recursive."""

# --- queries --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OutputLabel:
    """A label column: the attributes that its structs hold after `pos`, in output order."""

    label: str
    attributes: tuple[AttributeDeclaration, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Collection:
    """`COLLECT(x.a)`: the values at all positions of x in stream order, as an array of `type`.

    Only SELECT has it, as an item of its own.
    """

    label: str
    attribute: str
    type: DataType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class OutputExpression:
    """`expression AS name` in SELECT; `text` is the expression as written.

    An AttributeValue in `value` is that of its label's only position. `labels` are those that it
    mentions, in order of first appearance.
    """

    name: str
    text: str
    value: Expression | Collection
    labels: tuple[str, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """One key of PARTITION BY, called like the first attribute that is written.

    `alternatives` of `[a, b]`: (attribute, (stream, type) of the event types that have it), each
    event type once; empty where one attribute of all event types is the key.
    """

    name: str
    type: DataType
    alternatives: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the key is read from."""
        return tuple(name for name, _ in self.alternatives) or (self.name,)

    def __str__(self) -> str:
        return f"[{', '.join(self.attributes)}]" if self.alternatives else self.name


@dataclass(frozen=True, slots=True)
class PerStart:
    """The choice among the matches with one start, inside the window: those with the least end
    (FIRST) or the greatest, and of these the support that NXT prefers. `disjoint`: of these, in the
    order of starts, each that starts after the end of the last one kept."""

    end: Literal["FIRST", "LONGEST"]
    disjoint: bool
    span: Span = _span()

    def __str__(self) -> str:
        return f"{self.end} DISJOINT" if self.disjoint else self.end


@dataclass(frozen=True, slots=True)
class TotalItem:
    """`expression AS name` after TOTAL; `text` is the expression as written.

    `value` is made of constants, functions of all matches (`TotalOf`), arithmetic, and casts.
    """

    name: str
    text: str
    value: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class PerEnd:
    """PER END: one row for each position at which matches end."""

    span: Span = _span()

    def __str__(self) -> str:
        return "END"


@dataclass(frozen=True, slots=True)
class PerPartition:
    """PER PARTITION: one row for each part with a match."""

    span: Span = _span()

    def __str__(self) -> str:
        return "PARTITION"


@dataclass(frozen=True, slots=True)
class PerSpan:
    """PER a duration: one row for the matches of a part that end in one span of `size`
    microseconds, with its beginning and without its end. Spans begin at multiples of `size` from
    1970-01-01 00:00 UTC; they are of the first order column, a TIMESTAMP or DATE."""

    size: int
    span: Span = _span()

    def __str__(self) -> str:
        return f"{self.size} microseconds"


Per: TypeAlias = PerEnd | PerPartition | PerSpan


@dataclass(frozen=True, slots=True)
class Total:
    """SELECT TOTAL: one row for each group of matches, of what `items` say of all of them.

    `per` says which matches a group has; it has all of them, with all labels that the formula
    binds. `having` keeps the rows of which it is TRUE; the variables in it are items.
    """

    items: tuple[TotalItem, ...]
    per: Per
    having: Truth | None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ParameterPattern:
    """`x.attribute LIKE rule.parameter`: the column of events that holds the answer, a BOOLEAN."""

    column: str
    operator: Literal["LIKE", "RLIKE"]
    attribute: str
    parameter: str


@dataclass(frozen=True, slots=True)
class Parameters:
    """FOR EACH: the answer is the union of the answers for each row of a table.

    The query reads events that come once for each row which they concern. `name` and `attributes`
    are those of the set as declared, `shown` its attributes in the output. `columns` are columns
    of events with the attributes of the set that they hold, `patterns` those of patterns. `number`
    is the column of the row's number, a key of the partitions; `position` that of the position of
    an event, on which windows of EVENTS are measured, None: there are none. `sees_all`: every event
    concerns every row. `row_by_row`: parts of one row are read together, so that rows come one
    after another, and the number is no key. `consume_by` is that of the text.
    """

    name: str
    attributes: tuple[AttributeDeclaration, ...]
    shown: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    patterns: tuple[ParameterPattern, ...]
    number: str
    position: str | None
    sees_all: bool
    row_by_row: bool
    consume_by: str

    @property
    def columns_added(self) -> frozenset[str]:
        """The columns of events that come from the table of the set, and not from the input."""
        values = {column for column, _ in self.columns}
        patterns = {one.column for one in self.patterns}
        return frozenset(values | patterns | {self.number, f"{self.number}pos"})


@dataclass(frozen=True, slots=True)
class Threshold:
    """WITH CONFIDENCE: at least so much, or more than it where `strict`; a number from 0 to 1."""

    least: float
    strict: bool


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """The time of an event is one of low, low + step, low + 2 step, … up to high, each as likely.

    `step` is in the units of their type: whole numbers, microseconds (TIMESTAMP) or days (DATE).
    `threshold`: only matches with such a confidence are rows; None: all that are possible.
    """

    low: AttributeDeclaration
    high: AttributeDeclaration
    step: int
    threshold: Threshold | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a file, resolved.

    `streams` are those of FROM (all declared ones without it), `order_by` the order columns with
    their types. `needs_stream_column` says that two of the streams share a type name, so that a
    row's event type is told by the columns `stream` and `type` together; `needs_type_column` that
    the streams have more than one event type in all. `simultaneous`: events that are equal in all
    order columns are one instant. Where there is `per_start`, `strategy` is ALL.

    `total`: the answer are totals of matches; then `output` is empty. `collapsed`: the answer has
    one row for each end of matches, with the union of their positions for each label in `output`.
    With either `strategy` is ALL, `strategy_span` is its place, and there is no `limit` and no
    `per_start`.

    `parameters` of FOR EACH: the streams have the columns of its rows as well, and so has
    `partition_by`. Variables in `output` are attributes of the set.

    `reads` are the queries that it reads, in the order of the file, each one of `streams`.
    Then it is `simultaneous`, and every event type has the attribute `begin`: the time at which an
    event starts, as the order column is the time at which it ends. All windows in `formula` are
    measured from there.

    `uncertain`: the times of events are uncertain. Then `order_by` is the least time alone, and the
    formula is made of event types, `;`, `+`, OR, labels and conditions.
    """

    name: str
    streams: tuple[Stream, ...]
    needs_type_column: bool
    needs_stream_column: bool
    formula: Formula
    strategy: Literal["ALL", "ANY", "STRICT", "NXT", "LAST", "MAX"]
    strategy_span: Span | None
    output: tuple[OutputLabel | OutputExpression, ...]
    partition_by: tuple[PartitionKey, ...]
    window: Window | None
    consume_by: Literal["NONE", "ANY", "PARTITION"]
    limit: int | None
    order_by: tuple[AttributeDeclaration, ...]
    simultaneous: bool
    span: Span = _span()
    per_start: PerStart | None = None
    total: Total | None = None
    collapsed: bool = False
    parameters: Parameters | None = None
    reads: tuple[str, ...] = ()
    begin: AttributeDeclaration | None = None
    uncertain: Uncertainty | None = None

    @property
    def lasting(self) -> bool:
        """Whether events have a start of their own."""
        return self.begin is not None
