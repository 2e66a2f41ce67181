"""Core CEL: formulas whose names are resolved and whose expressions are typed.

Differences from the syntax tree: every name is resolved; every expression has a type, and its casts
are explicit; conditions are in conjunctive normal form, with NOT moved to the comparisons; CEQL's
`x[p]` and BETWEEN are gone. Each node keeps its span.

Long: the nodes are one closed union, and a reader of a pass looks for all of them in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from itertools import combinations
from typing import Literal, TypeAlias

from celc_runtime.plan.frozen import frozen
from celc_runtime.values.types import COUNTS as COUNTS
from celc_runtime.values.types import MOST_DIGITS as MOST_DIGITS
from celc_runtime.values.types import MOST_NARROW as MOST_NARROW
from celc_runtime.values.types import NUMBERS as NUMBERS
from celc_runtime.values.types import SIMPLE_TYPES
from celc_runtime.values.types import WHOLE_NUMBERS as WHOLE_NUMBERS
from celc_runtime.values.types import DataType as DataType
from celc_runtime.values.types import DecimalType as DecimalType
from celc_runtime.values.types import StructType as StructType
from celc_runtime.values.types import decimal_of as decimal_of

from celc.diagnostics.source import Span
from celc.parse import syntax


def _span() -> Span:
    return field(compare=False, repr=False)  # type: ignore[no-any-return]


# --- types and declarations -----------------------------------------------------------------------


ATTRIBUTE_TYPES = SIMPLE_TYPES

TIMES = (DataType.TIMESTAMP, DataType.DATE)


@frozen
class AttributeDeclaration:
    """An attribute of an event type: one column of the table that carries the stream."""

    name: str
    type: DataType


@frozen
class EventType:
    """An event type of one stream; two streams may each have a type of the same name."""

    stream: str
    name: str
    attributes: tuple[AttributeDeclaration, ...]
    is_rest: bool = False
    """Whether it is OTHER: any type of the table that is not declared. Its attributes are those
    that all other types of the stream have, and no label can name them."""

    def type_of(self, attribute: str) -> DataType | None:
        """The declared type of an attribute, None where this event type lacks it."""
        for declaration in self.attributes:
            if declaration.name == attribute:
                return declaration.type
        return None


def text_of_type(event_type: EventType) -> str:
    """An event type as a value that conditions compare."""
    return f"{event_type.stream}>{event_type.name}"


@frozen
class Stream:
    """A declared stream."""

    name: str
    event_types: tuple[EventType, ...]


# --- expressions ----------------------------------------------------------------------------------


Value: TypeAlias = int | float | str | bool
"""The value of a constant, NULL aside."""


@frozen
class Constant:
    """A literal; `value` None is NULL of any type.

    - int for INT, LONG, DECIMAL (of its smallest unit), TIMESTAMP (microseconds since 1970-01-01
      UTC), DATE (days since 1970-01-01) and INTERVAL (microseconds)
    - float for FLOAT and DOUBLE; str; bool
    """

    value: Value | None
    type: DataType
    span: Span = _span()
    digits: str | None = field(default=None, compare=False, repr=False)
    """The text of a number with a point and no exponent, which is a DECIMAL beside DECIMALs."""


TYPE = "type"
"""Stands for an attribute: the event type, a STRING, as `text_of_type` spells it. No attribute has
this name. `x IS R` is a `Membership` of it."""


ROLE = "\0\ud800"
"""The beginning of all marks that are roles in conditions across events (`flat_form`). No label
begins so, because half of a character (a surrogate) is an error everywhere in a query."""


@frozen
class AttributeValue:
    """`x.a`: the attribute of the position chosen for label x."""

    label: str
    attribute: str
    type: DataType
    span: Span = _span()


@frozen
class Arithmetic:
    """`left op right`.

    Both operands and the result of arithmetic on numbers have `type`, except that the operands of
    `/` are DOUBLE already. DECIMALs each have their own type, and a result outside its type is
    NULL. A result of type TIMESTAMP or INTERVAL comes from operands of the types
    `TIME_OPERANDS`. It is NULL where 64 bits do not hold it or an operand that is a DATE's
    midnight. In TOTAL and its HAVING a result outside its type is an error instead, also for whole
    numbers, which wrap elsewhere.
    """

    operator: Literal["+", "-", "*", "/", "%"]
    left: Expression
    right: Expression
    type: DataType
    span: Span = _span()


@frozen
class Negation:
    """`-e`, wrapping for whole numbers; NULL for the smallest INTERVAL."""

    operand: Expression
    type: DataType
    span: Span = _span()


@frozen
class Absolute:
    """`ABS(e)`. For the smallest whole number it is that number (ANSI mode off), for the smallest
    INTERVAL NULL."""

    operand: Expression
    type: DataType
    span: Span = _span()


@frozen
class Cast:
    """An implicit widening as Spark SQL inserts it (ANSI mode off), such as INT to DOUBLE. A DATE
    as a TIMESTAMP is its midnight in UTC, as a LONG the days since 1970-01-01."""

    operand: Expression
    type: DataType
    span: Span = _span()


EXACT_CASTS = frozenset(
    {
        *((one, other) for one, other in combinations(WHOLE_NUMBERS, 2)),
        *((one, DataType.DOUBLE) for one in WHOLE_NUMBERS[:-1]),
        (DataType.FLOAT, DataType.DOUBLE),
    }
)
"""Casts that keep every value, and so their order."""


@frozen
class Variable:
    """A name in one of these places:

    - in the declaration of an aggregate: a parameter or a variable of STATE
    - in HAVING of TOTAL: the value of an item
    - in an expression of SELECT: an attribute of the parameter set
    """

    name: str
    type: DataType
    span: Span = _span()


ROUNDINGS = ("ROUND", "FLOOR", "CEIL")
"""The functions whose values are DECIMALs where their operands are."""


@frozen
class Call:
    """A function of the table `celc_runtime.values.functions`. Where its operands are constants and
    attributes of one event, and it stands in a condition, a derived column takes its place.

    `zone`: the time zone of calendar parts; None: the function has none.
    """

    function: str
    operands: tuple[Expression, ...]
    type: DataType
    zone: str | None
    span: Span = _span()


def digits_of(call: Call) -> int:
    """How many digits behind the point ROUND, FLOOR or CEIL leaves."""
    _, *more = call.operands
    digits = more[0].value if more and isinstance(more[0], Constant) else 0
    assert isinstance(digits, int)
    return digits


@frozen
class Choice:
    """`LEAST(e, …)`, `GREATEST(e, …)` or `COALESCE(e, …)`. Operands that are NULL are ignored."""

    function: Literal["LEAST", "GREATEST", "COALESCE"]
    operands: tuple[Expression, ...]
    type: DataType
    span: Span = _span()


@frozen
class Conditional:
    """The value of the first branch whose condition is TRUE: CASE, and, of one branch, `IF(p, then,
    otherwise)`."""

    branches: tuple[tuple[Truth, Expression], ...]
    otherwise: Expression
    type: DataType
    span: Span = _span()


@frozen
class StateVariable:
    """A variable of an aggregate's STATE: its first value, and its value after a position. Where
    STEP does not name it, it keeps its value."""

    name: str
    type: DataType
    first: Value | None
    step: Expression


@frozen
class OwnAggregate:
    """An aggregate that the file declares.

    The variables in steps are parameters and STATE, those in `result` only STATE.
    """

    name: str
    parameters: tuple[AttributeDeclaration, ...]
    state: tuple[StateVariable, ...]
    result: Expression
    makes_texts: bool = False  # whether its texts are made, and not only chosen among those given

    @property
    def type(self) -> DataType:
        """The type of its values."""
        return self.result.type


AggregateFunction = Literal[
    "FIRST",
    "LAST",
    "NTH",
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
    "LIST",
]
"""DISTINCT is `COUNT(DISTINCT x.a)`, OWN an aggregate that the file declares, LIST an argument of
an `OwnCall` and nothing else."""


# the largest number that COUNT can be compared with; each number up to it is a state
MAX_COUNT = 1000


@frozen
class Aggregate:
    """A function of all positions of a label; with `prior`, of those before the chosen one."""

    function: AggregateFunction
    label: str
    attribute: str | None  # None for COUNT and only for it
    prior: bool
    type: DataType
    span: Span = _span()
    own: OwnAggregate | None = None
    more: tuple[str, ...] = ()
    read: tuple[DataType, ...] = ()
    place: int = 0  # of NTH, from 1, or −1 for the last

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that it is taken of; none of COUNT."""
        return () if self.attribute is None else (self.attribute, *self.more)


@frozen
class OwnFunction:
    """A function that the file declares and the call gives; `parameters` are the types of the
    elements of its arrays."""

    name: str
    parameters: tuple[DataType, ...]
    type: DataType


@frozen
class OwnCall:
    """A call of a function that the file declares. Each operand is a LIST: all values of an
    attribute at the positions of a label, but where an operand of this label is NULL."""

    function: OwnFunction
    operands: tuple[Aggregate, ...]
    span: Span = _span()

    @property
    def type(self) -> DataType:
        """The type of its values, none of which is NULL."""
        return self.function.type

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its operands, each once."""
        return tuple(dict.fromkeys(one.label for one in self.operands))


@frozen
class Previous:
    """`PREV(x.a, distance)`: the value of x.a that many positions of x before the chosen one."""

    label: str
    attribute: str
    type: DataType
    span: Span = _span()
    distance: int = 1


TotalFunction = Literal["COUNT", "APPROX_COUNT", "SUM", "AVG", "MIN", "MAX"]


@frozen
class TotalOf:
    """`COUNT(*)`, `SUM(x.a)` and others: a function of all matches of a group, only in an item of
    TOTAL.

    COUNT of a label counts its positions in each match. The other functions of a label are over the
    values of `attribute` there, without NULLs.
    """

    function: TotalFunction
    label: str | None  # None for `*`: COUNT and APPROX_COUNT of the matches
    attribute: str | None  # None for counts
    type: DataType
    span: Span = _span()
    read: DataType | None = None  # the type of the attribute; None for counts


def _of_times(time: DataType) -> dict[tuple[str, DataType, DataType], DataType]:
    return {
        ("-", time, time): DataType.INTERVAL,
        ("+", time, DataType.INTERVAL): time,
        ("+", DataType.INTERVAL, time): time,
        ("-", time, DataType.INTERVAL): time,
    }


TIME_OPERANDS: Mapping[tuple[str, DataType, DataType], DataType] = {
    **_of_times(DataType.TIMESTAMP),
    **_of_times(DataType.TIMESTAMP_NTZ),
    ("+", DataType.INTERVAL, DataType.INTERVAL): DataType.INTERVAL,
    ("-", DataType.INTERVAL, DataType.INTERVAL): DataType.INTERVAL,
    ("*", DataType.INTERVAL, DataType.LONG): DataType.INTERVAL,
    ("*", DataType.LONG, DataType.INTERVAL): DataType.INTERVAL,
    ("*", DataType.INTERVAL, COUNTS): DataType.INTERVAL,
    ("*", COUNTS, DataType.INTERVAL): DataType.INTERVAL,
}
"""The type of arithmetic with times, by the operator and the types of both sides."""


@frozen
class Derived:
    """A column that is made of others of the same event before the query reads it. The attributes
    in `value` are those of the event, and their label is empty."""

    name: str
    value: Expression

    @property
    def type(self) -> DataType:
        """The type of its values."""
        return self.value.type


# --- rows, which MATCH_RECOGNIZE reads ------------------------------------------------------------

Variables: TypeAlias = frozenset[int]
"""The numbers of variables, in the order in which PATTERN first writes them."""


@frozen
class Navigation:
    """`PREV(FIRST(v.x, offset), k)`: `shift` rows after (before: negative) the row that is `offset`
    rows from the first or last of the visible rows of `variables`; None: of all variables. `final`:
    all rows of the match are visible, else those up to the current one."""

    variables: Variables | None
    first: bool
    offset: int
    shift: int
    final: bool


@frozen
class Argument:
    """Each row that an aggregate is taken over."""


@frozen
class Here:
    """`shift` rows after the row at hand, in the partition."""

    shift: int


Row: TypeAlias = Navigation | Argument | Here


class InRowPatterns:
    """An expression that MATCH_RECOGNIZE alone has."""

    __slots__ = ()


@frozen
class ColumnAt(InRowPatterns):
    """The value of a column, given by its number in the table, at a row; NULL where there is no
    such row."""

    column: int
    row: Row
    type: DataType
    span: Span = _span()


@frozen
class LabelAt(InRowPatterns):
    """CLASSIFIER: the variable that a row is mapped to; NULL where there is no such row, and where
    the row is not mapped."""

    row: Row
    span: Span = _span()
    type: DataType = DataType.STRING


@frozen
class MatchNumber(InRowPatterns):
    """`MATCH_NUMBER()`."""

    span: Span = _span()
    type: DataType = DataType.LONG


@frozen
class AggregateOfRows(InRowPatterns):
    """A function of the visible rows of `variables` (None: of all). `argument` reads the row
    `Argument`; None: COUNT of rows. `type` of ARRAY_AGG is that of its elements. Of its rows it
    keeps those for which `kept` is TRUE, and `order` is theirs. `distinct`: of equal values one."""

    function: Literal["COUNT", "SUM", "AVG", "MIN", "MAX", "ARRAY_AGG"]
    variables: Variables | None
    argument: Expression | None
    final: bool
    type: DataType
    span: Span = _span()
    distinct: bool = False
    kept: Expression | None = None
    order: tuple[SortedBy, ...] = ()


@frozen
class SortedBy:
    """An order of the rows that an aggregate takes; `nulls_first` None: NULL is an error."""

    value: Expression
    descending: bool
    nulls_first: bool | None


@frozen
class Existing(InRowPatterns):
    """An expression over one row; NULL where there is no such row, whatever the expression is."""

    row: Row
    operand: Expression
    type: DataType
    span: Span = _span()


@frozen
class TimeDifference:
    """`TIMESTAMPDIFF(unit, start, end)` of two TIMESTAMPs; `unit` in microseconds. CEL has none."""

    unit: int
    start: Expression
    end: Expression
    span: Span = _span()
    type: DataType = DataType.LONG


@frozen
class Asked(InRowPatterns):
    """A condition as a value: TRUE, FALSE, or NULL where the condition is neither."""

    condition: Truth
    span: Span = _span()
    type: DataType = DataType.BOOLEAN


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
    | Call
    | OwnCall
    | Choice
    | Conditional
    | TotalOf
    | ColumnAt
    | LabelAt
    | MatchNumber
    | AggregateOfRows
    | Existing
    | TimeDifference
    | Asked
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
"""The operator with the same meaning when its sides are exchanged."""

NEGATED: Mapping[ComparisonOperator, ComparisonOperator] = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}
"""The operator of the negation, which is NULL for the same values."""


@frozen
class Comparison:
    """`left op right`, operands of one type; not TRUE where an operand is NULL."""

    operator: ComparisonOperator
    left: Expression
    right: Expression
    span: Span = _span()
    beside: tuple[Expression, ...] = ()
    """The other operands of a BETWEEN or an IN from which this was written out. The text has one
    comparison, which names all their labels and looks back where they do."""


@frozen
class Membership:
    """`operand IN values`, or NOT IN where `negated`."""

    operand: Expression
    values: tuple[Value, ...]
    """Distinct non-NULL constants of the operand's type, in order of first appearance."""
    has_null: bool  # the list held a NULL, so `NOT IN` is never TRUE
    negated: bool
    span: Span = _span()
    beside: tuple[Expression, ...] = ()  # as in `Comparison`


@frozen
class PatternMatch:
    """`operand [NOT] LIKE pattern` (SQL's % and _, escape `\\`) or RLIKE (RE2, found anywhere)."""

    operator: Literal["LIKE", "RLIKE"]
    operand: Expression
    pattern: str
    negated: bool
    span: Span = _span()


@frozen
class NullTest:
    """`operand IS [NOT] NULL`."""

    operand: Expression
    negated: bool
    span: Span = _span()
    beside: tuple[Expression, ...] = ()  # as in `Comparison`


@frozen
class Quantified:
    """`SOME x, y: p`, or `EVERY x, y: p`: p is TRUE for some choice (every choice) of a position
    for each of `labels`. TRUE or FALSE, never NULL; where `negated`, the other one.

    Where nothing is before a position, a comparison in p that looks back is not TRUE in SOME, and
    counts as TRUE in EVERY.
    """

    labels: tuple[str, ...]
    condition: Truth
    every: bool
    negated: bool
    span: Span = _span()


Predicate: TypeAlias = Comparison | Membership | PatternMatch | NullTest | Quantified


@frozen
class Every:
    """An AND, as it stands in the text."""

    parts: tuple[Truth, ...]
    span: Span = _span()


@frozen
class Some:
    """An OR, as it stands in the text."""

    parts: tuple[Truth, ...]
    span: Span = _span()


Truth: TypeAlias = Predicate | Every | Some
"""A condition with NOT pushed to its predicates. It is TRUE, FALSE or NULL by SQL's logic of three
values; all but `Asked` ask only whether it is TRUE."""


@frozen
class Clause:
    """An OR of predicates that must be TRUE for every choice of a position for each of `labels`.
    Empty: FALSE."""

    predicates: tuple[Predicate, ...]
    labels: tuple[str, ...]
    """Those named outside aggregates, in order of first appearance; then labels of an EVERY that it
    was a part of."""
    span: Span = _span()


# --- formulas -------------------------------------------------------------------------------------


@frozen
class Atom:
    """`R` or `S>R`: one event of any of `types` (one type, or one of the same name per stream)."""

    label: str
    types: tuple[EventType, ...]
    span: Span = _span()


@frozen
class As:
    """`φ AS x`."""

    operand: Formula
    label: str
    span: Span = _span()


@frozen
class Rename:
    """`φ[x -> y]`, a scope."""

    operand: Formula
    old: str
    new: str
    span: Span = _span()


@frozen
class Project:
    """`PROJECT[L](φ)`, a scope; `labels` in the order of the text."""

    operand: Formula
    labels: tuple[str, ...]
    span: Span = _span()


@frozen
class Sequence:
    """`φ ; φ`, or `φ : φ` where the gap between two operands is `contiguous`. It is flat, because
    both operators are associative, also mixed."""

    operands: tuple[Formula, ...]
    contiguous: tuple[bool, ...]  # `[k]`: the gap between operands k and k+1
    span: Span = _span()


@frozen
class Absence:
    """`left ; !middle ; right`: the middle, a scope, has no match strictly between the two."""

    left: Formula
    middle: Formula
    right: Formula
    span: Span = _span()


@frozen
class ThenFirst:
    """`left ; FIRST operand`, and in rounds `left ; (!absent ; FIRST operand){least,most}`.

    In each round it takes, of the matches of the operand behind what was taken before, those that
    end first. Most None: there is no limit. The operand and `absent` are scopes; conditions in them
    see the labels of the scope around as they are to the left. `gap`: in `left ; !gap ; FIRST …`
    what has no match between the left side and the first round.
    """

    left: Formula
    operand: Formula
    span: Span = _span()
    least: int = 1
    most: int | None = 1
    absent: Formula | None = None
    gap: Formula | None = None
    looks_back: tuple[str, ...] = ()
    """Labels of the operand of which PREV and PRIOR look back over positions to the left too."""
    both_sides: tuple[str, ...] = ()
    """Labels that conditions in the operand name, and that the scope binds on both sides."""


@frozen
class Iteration:
    """`φ+`, or `φ:+` where `contiguous`; `φ{least,most}`, most None: no limit. A scope."""

    operand: Formula
    contiguous: bool
    span: Span = _span()
    least: int = 1
    most: int | None = None


@frozen
class Disjunction:
    """`φ OR φ OR …`."""

    operands: tuple[Formula, ...]
    span: Span = _span()


@frozen
class Conjunction:
    """`φ AND φ`: the same triple on both sides."""

    left: Formula
    right: Formula
    span: Span = _span()


@frozen
class All:
    """`φ ALL φ`: the union of two matches placed anyhow."""

    left: Formula
    right: Formula
    span: Span = _span()


@frozen
class Unless:
    """`φ UNLESS φ`; the right side is a scope."""

    left: Formula
    right: Formula
    span: Span = _span()


@frozen
class Filter:
    """`φ FILTER p`, p in conjunctive normal form."""

    operand: Formula
    clauses: tuple[Clause, ...]
    span: Span = _span()


@frozen
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


@frozen
class Window:
    """WITHIN, or the length of an absence: it fits if value(end) − value(start) ≤ size. The value
    is the position for EVENTS, else `attribute`."""

    unit: WindowUnit
    size: int | float  # whole for EVENTS and MICROSECONDS
    attribute: AttributeDeclaration | None  # None: the first order column
    span: Span = _span()
    begin: AttributeDeclaration | None = None
    """Where events last, the attribute for the value of a start; `attribute` is then for the
    end."""
    to_start: bool = False
    """Where events last: value(start) − value(end) ≤ size, from the end of what an absence looks
    for to the start of the match behind it."""


@frozen
class Within:
    """`WITHIN[w](φ)`, not a scope: the matches of φ that fit the window."""

    operand: Formula
    window: Window
    span: Span = _span()


@frozen
class AbsenceBefore:
    """`!absent FOR length ; operand`: the matches of the operand with nothing before them.

    `absent`, a scope, has no match that ends before the first event of the operand's match and
    begins where value(first event) − value(start) ≤ the size of `length`.
    """

    operand: Formula
    absent: Formula
    length: Window
    span: Span = _span()


@frozen
class AbsenceAfter:
    """`operand ; !absent FOR length`: the matches of the operand with nothing after them.

    `absent`, a scope, has no match that begins after the last event of the operand's match and ends
    where value(end) − value(last event) ≤ the size of `length`. With `from_start` the length is
    counted from the first event. It stands only at the end of the whole formula, or of an operand
    of OR there.
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
    | ThenFirst
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

MAX_FORMULA_DEPTH = 250  # nesting of formulas, so that passes over them can be recursive

# --- queries --------------------------------------------------------------------------------------


@frozen
class OutputLabel:
    """A label column: the attributes that its structs hold after `pos`, in output order."""

    label: str
    attributes: tuple[AttributeDeclaration, ...]
    span: Span = _span()


@frozen
class Collection:
    """`COLLECT(x.a)`: the values at all positions of x in stream order, as an array of `type`. Only
    SELECT has it, as an item of its own."""

    label: str
    attribute: str
    type: DataType
    span: Span = _span()


@frozen
class OutputExpression:
    """`expression AS name` in SELECT. An AttributeValue in `value` is that of its label's only
    position."""

    name: str
    text: str  # the expression as written
    value: Expression | Collection
    labels: tuple[str, ...]  # the labels in it, in order of first appearance
    span: Span = _span()


@frozen
class PartitionKey:
    """One key of PARTITION BY, with the name of the first attribute that is written."""

    name: str
    type: DataType
    alternatives: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """For `[a, b]`: each attribute, with the (stream, type) of the event types that have it, each
    type once. Empty: the key is one attribute, which all event types have."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the key is read from."""
        return tuple(name for name, _ in self.alternatives) or (self.name,)

    def __str__(self) -> str:
        return f"[{', '.join(self.attributes)}]" if self.alternatives else self.name


@frozen
class PerStart:
    """The choice among the matches with one start, inside the window.

    FIRST keeps those with the least end, LONGEST those with the greatest; of these, the support
    that NXT prefers. With `disjoint`, in the order of starts, each stays that starts after the end
    of the last one kept.
    """

    end: Literal["FIRST", "LONGEST"]
    disjoint: bool
    span: Span = _span()

    def __str__(self) -> str:
        return f"{self.end} DISJOINT" if self.disjoint else self.end


@frozen
class Rate:
    """`LIMIT n PER d`: of the rows of a part at most `count` stay whose known times lie in one
    `length`; without a length PER PARTITION."""

    count: int
    length: Window | None
    support: str | None
    """The label that no column shows and all events of a match have, for the order that NXT gives;
    None: each of them has a label of the output."""
    span: Span = _span()
    known_after: Window | None = None
    """For LONGEST: how long after its start a row is known, if that is not the query's window."""


@frozen
class TotalItem:
    """`expression AS name` after TOTAL."""

    name: str
    text: str  # the expression as written
    value: Expression
    """Made of constants, functions of all matches (`TotalOf`), arithmetic, casts, and functions of
    values."""
    span: Span = _span()


@frozen
class PerEnd:
    """PER END: one row for each position at which matches end."""

    span: Span = _span()

    def __str__(self) -> str:
        return "END"


@frozen
class PerPartition:
    """PER PARTITION: one row for each part with a match."""

    span: Span = _span()

    def __str__(self) -> str:
        return "PARTITION"


@frozen
class PerSpan:
    """PER a duration: one row for the matches of a partition that end in one span of `size`
    microseconds.

    A span includes its beginning, not its end. Spans begin at multiples of `size` from 1970-01-01
    00:00 UTC, on the first order column, a TIMESTAMP or DATE.
    """

    size: int
    span: Span = _span()

    def __str__(self) -> str:
        return f"{self.size} microseconds"


Per: TypeAlias = PerEnd | PerPartition | PerSpan


@frozen
class Total:
    """SELECT TOTAL: one row for each group of matches. All matches count, with all labels of the
    formula."""

    items: tuple[TotalItem, ...]  # the values of a row
    per: Per  # which matches are one group
    having: Truth | None  # keeps the rows of which it is TRUE; variables in it are items
    span: Span = _span()


@frozen
class ParameterPattern:
    """`x.attribute LIKE rule.parameter`: the column of events that holds the answer, a BOOLEAN."""

    column: str
    operator: Literal["LIKE", "RLIKE"]
    attribute: str
    parameter: str


@frozen
class Validity:
    """VALID [since, until]: attributes of the set, of the type of the first order column.

    `first` and `last` are what is made of them for each row: the least and the greatest time that
    a labelled event of a match can have. They are neither NULL nor attributes of the set.
    """

    since: str
    until: str
    first: str
    last: str
    type: DataType
    looks_out: bool = False
    """Whether a match of the query depends on events before its first labelled one, or takes events
    without a label."""


@frozen
class Parameters:
    """FOR EACH: the answer is the union of the answers for each row of a table. The stream has a
    copy of each event for each row that the event concerns."""

    name: str  # as declared, like `attributes`
    attributes: tuple[AttributeDeclaration, ...]
    shown: tuple[str, ...]  # attributes in the output
    columns: tuple[tuple[str, str], ...]
    """Columns of events, with the attributes of the set that they hold."""
    patterns: tuple[ParameterPattern, ...]  # columns of events that hold answers to patterns
    number: str  # the column of the row's number, a partition key
    position: str | None
    """The column of an event's position, for windows of EVENTS; None: there are none."""
    sees_all: bool  # every event concerns every row
    row_by_row: bool
    """The parts of one row are read together, so rows come one after another, and the number is no
    key."""
    consume_by: str  # as in the text
    valid: Validity | None = None

    @property
    def columns_added(self) -> frozenset[str]:
        """The columns of events that come from the table of the set, and not from the input."""
        values = {column for column, _ in self.columns}
        patterns = {one.column for one in self.patterns}
        return frozenset(values | patterns | {self.number, f"{self.number}pos"})


@frozen
class Threshold:
    """WITH CONFIDENCE: at least this number from 0 to 1, or more than it where `strict`."""

    least: float
    strict: bool


@frozen
class Uncertainty:
    """The time of an event is one of low, low + step, low + 2 step, … up to high."""

    low: AttributeDeclaration
    high: AttributeDeclaration
    step: int  # in the units of the type: whole numbers, microseconds (TIMESTAMP) or days (DATE)
    weights: AttributeDeclaration | None = None  # one for each time; None: all are equally likely
    threshold: Threshold | None = None
    """Only matches with such a confidence are rows; None: all that are possible."""


@frozen
class Query:
    """One query of a file, resolved.

    A query over events that last is `simultaneous`: one that reads queries, or LASTING streams.
    Then every event type has the attribute `begin`, the time at which an event starts; the order
    column is the time at which it ends. All windows in `formula` are measured from the start.
    """

    name: str
    streams: tuple[Stream, ...]  # those of FROM, without it all declared ones
    needs_type_column: bool  # the streams have more than one event type
    needs_stream_column: bool
    """Two streams share a type name, so the columns `stream` and `type` tell a row's event type."""
    formula: Formula
    strategy: Literal["ALL", "ANY", "STRICT", "NXT", "LAST", "MAX"]
    """ALL with `per_start`, `total` and `collapsed`."""
    strategy_span: Span | None
    output: tuple[OutputLabel | OutputExpression, ...]  # empty with `total`
    partition_by: tuple[PartitionKey, ...]
    window: Window | None
    consume_by: Literal["NONE", "ANY", "PARTITION"]
    limit: int | None  # None with `total` and `collapsed`
    order_by: tuple[AttributeDeclaration, ...]
    """The order columns with their types; with `uncertain` only the least time."""
    simultaneous: bool  # events that are equal in all order columns are one instant
    span: Span = _span()
    per_start: PerStart | None = None
    total: Total | None = None  # the answer is totals of matches
    collapsed: bool = False
    """One row for each end of matches, with the union of their positions for each label in
    `output`."""
    parameters: Parameters | None = None
    """The parameter table of FOR EACH. The streams and `partition_by` have its columns too, and
    variables in `output` are its attributes."""
    reads: tuple[str, ...] = ()
    """The queries that it reads, in the order of the file, each one of `streams`."""
    begin: AttributeDeclaration | None = None
    uncertain: Uncertainty | None = None
    """The times of events are uncertain; the formula has only event types, `;`, `+`, OR, labels,
    conditions."""
    derived: tuple[Derived, ...] = ()
    """The derived columns that its streams have."""
    rate: Rate | None = None  # how many rows of a part stay

    @property
    def lasting(self) -> bool:
        """Whether events have a start of their own."""
        return self.begin is not None

    @property
    def compares_ends(self) -> bool:
        """Whether a choice by starts also compares the matches with one start and one end, by their
        events. Simultaneous events have an order only where they last."""
        return self.lasting or not self.simultaneous

    @property
    def selects(self) -> bool:
        """Whether SELECT has a selector, or FIRST or LONGEST, which compares matches by their
        events."""
        by_start = self.per_start is not None and self.compares_ends
        return by_start or self.strategy not in ("ALL", "ANY")

    @property
    def compares(self) -> bool:
        """Whether matches are compared with others: with those of one end, of one start, or of a
        time."""
        by_end = self.strategy != "ALL" or self.limit is not None
        return by_end or self.per_start is not None or self.rate is not None
