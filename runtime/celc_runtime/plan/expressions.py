"""Expressions of SELECT and of MEASURES as trees, as a generated module writes them.

Data only: the schemas follow from their types and attributes. They are evaluated in
`arrow/vectors`; `arrow/matches/values` and `row_pattern/measured` say what leaves stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from celc_runtime.plan.conditions import TextComparison, TextCondition
from celc_runtime.plan.frozen import frozen


@frozen
class Constant:
    """A literal of a type of the language."""

    value: int | float | str | bool | None
    """TIMESTAMP, INTERVAL: microseconds; DATE: days since 1970; DECIMAL: smallest units."""
    type: str


@frozen
class Aggregate:
    """A function of a label's events. COLLECT is only at the top of an expression."""

    function: str
    """FIRST, LAST, NTH, MIN, MAX, SUM, AVG, COUNT, VARIANCE, STDDEV, MEDIAN, COLLECT, or DISTINCT,
    which is COUNT(DISTINCT …)."""
    label: str
    attribute: str | None = None  # None only for COUNT
    place: int = 0  # of NTH, from 1, or −1 for the last


@frozen
class OwnAggregate:
    """An aggregate that the query's file declares, of a label's events."""

    function: Callable[..., Any]
    """Its arguments: for each of `columns` the values for all matches and bool (not NULL); the
    truth of `texts`; the numbers of the texts `spelled` and `spellings`, and if there are any,
    their letters; where the events of each match begin and end; two arrays to write: the value for
    each match (of a text its number), and whether it is not NULL."""
    label: str
    columns: tuple[str, ...]  # attributes of the events
    texts: tuple[TextCondition | TextComparison, ...]
    type: str
    spelled: tuple[str, ...] = ()  # the text attributes that it computes with
    spellings: tuple[str, ...] = ()  # its own texts
    is_made: bool = False
    """Whether its texts are made: then the function returns the bytes of all, and writes where the
    text of each match ends."""


@frozen
class OwnCall:
    """A call of a function of one's own, of the events of one or several labels. It is never
    NULL."""

    function: Callable[..., None]
    """Its arguments: for each of `columns` the values for all matches and bool (not NULL); for each
    of `labels` where the events of each match begin and end; an array to write, the value for each
    match."""
    columns: tuple[tuple[str, str], ...]  # labels and attributes
    labels: tuple[str, ...]
    type: str


@frozen
class ParameterValue:
    """An attribute of the parameter set: the value of `column` at the last event of a match."""

    column: str
    type: str


@frozen
class Cast:
    """A conversion to another type of numbers; of a DATE, to LONG (days since 1970) or to TIMESTAMP
    (midnight in UTC, NULL if that does not fit)."""

    operand: Tree
    type: str
    scale: int | None = None  # the decimals of the operand, where one of both is a DECIMAL


@frozen
class Negation:
    """`-e`. It wraps for whole numbers, unless `checked`: then it is NULL for the least number."""

    operand: Tree
    checked: bool = False


@frozen
class Absolute:
    """`ABS(e)`. The least whole number stays itself, or is NULL if `checked`."""

    operand: Tree
    checked: bool = False


@frozen
class Arithmetic:
    """`left operator right` for + - * / %; both sides have the same type, DOUBLE for `/`.

    checked: both sides are 64-bit numbers (also microseconds); a result with more bits is NULL.
    """

    operator: str
    left: Tree
    right: Tree
    checked: bool = False


@frozen
class Column:
    """An attribute of the event that an expression is of."""

    name: str
    type: str


@frozen
class DecimalArithmetic:
    """`left operator right` of DECIMALs; a result that its type does not hold is NULL."""

    operator: str
    left: Tree
    right: Tree
    types: tuple[str, str, str]  # of the left side, the right side and the result


@frozen
class Call:
    """A function of the table in `values/functions`. Operands have the types `types`; `zone` is the
    time zone of calendar parts, None where a function has none."""

    function: str
    operands: tuple[Tree, ...]
    types: tuple[str, ...]
    type: str
    zone: str | None = None


@frozen
class Chosen:
    """LEAST, GREATEST or COALESCE; operands that are NULL are ignored."""

    function: str
    operands: tuple[Tree, ...]
    type: str


@frozen
class Conditional:
    """The value of the first branch whose condition is TRUE."""

    branches: tuple[tuple[Truth, Tree], ...]
    otherwise: Tree
    type: str


@frozen
class TimesBetween:
    """The whole units from one TIMESTAMP to another, cut towards 0; `unit` in microseconds."""

    unit: int
    start: Tree
    end: Tree


@frozen
class Asked:
    """A condition as a value."""

    condition: Truth


# --- rows, which MATCH_RECOGNIZE reads ------------------------------------------------------------


@frozen
class ValueOfRow:
    """The value of a column, by its number in the plan, at a row that a navigation of the plan
    finds; `row` None: at each row that an aggregate is taken of."""

    column: int
    row: int | None


@frozen
class LabelOfRow:
    """The variable of such a row."""

    row: int | None


@frozen
class RowIsThere:
    """Whether a navigation finds a row: TRUE or FALSE."""

    row: int


@frozen
class NumberOfMatch:
    """The number of the match."""


@frozen
class ValueOfAggregate:
    """The value of an aggregate of the plan, by its number."""

    aggregate: int


LeafOfRows: TypeAlias = ValueOfRow | LabelOfRow | RowIsThere | NumberOfMatch | ValueOfAggregate

Leaf: TypeAlias = Aggregate | OwnAggregate | OwnCall | ParameterValue | Column | LeafOfRows

Tree: TypeAlias = (
    Constant
    | Leaf
    | Cast
    | Negation
    | Absolute
    | Arithmetic
    | DecimalArithmetic
    | TimesBetween
    | Call
    | Chosen
    | Conditional
    | Asked
)


# --- conditions in expressions --------------------------------------------------------------------


@frozen
class Compared:
    """`left operator right`; both sides have the same type."""

    operator: str
    left: Tree
    right: Tree


@frozen
class OneOf:
    """`operand [NOT] IN values`, constants of a type."""

    operand: Tree
    type: str
    values: tuple[int | float | str | bool, ...]
    has_null: bool = False  # whether the list contains NULL too
    negated: bool = False


@frozen
class IsNull:
    """`operand IS [NOT] NULL`."""

    operand: Tree
    negated: bool = False


@frozen
class Matches:
    """`operand [NOT] RLIKE pattern`, of RE2; LIKE too."""

    operand: Tree
    pattern: str
    negated: bool = False


@frozen
class OfTypes:
    """Whether an event is of one of these types, each as (stream, type)."""

    types: tuple[tuple[str, str], ...]
    negated: bool = False


@frozen
class Every:
    """An AND."""

    parts: tuple[Truth, ...]


@frozen
class Some:
    """An OR."""

    parts: tuple[Truth, ...]


Truth: TypeAlias = Compared | OneOf | IsNull | Matches | OfTypes | Every | Some
"""A condition that is TRUE, FALSE or NULL."""


@frozen
class Derived:
    """A column that is made of others of the same event, before the query reads it.

    Spark makes it by its expression of SQL, one machine by the tree.
    """

    name: str
    type: str
    value: Tree
    sql: str
    reads: tuple[tuple[str, str], ...]  # the columns of the input that it is made of, with types


@frozen
class Computed:
    """An expression's column in the output."""

    place: int  # its number among the items of SELECT
    name: str
    type: str  # as the language names it
    value: Tree


def attributes_of(expressions: Iterable[Computed]) -> Iterator[str]:
    """The attributes that expressions read; some may come more than once."""
    for item in expressions:
        for node in nodes_in(item.value):
            match node:
                case Aggregate(attribute=str() as attribute):
                    yield attribute
                case OwnAggregate():
                    yield from (*node.columns, *node.spelled)
                    for text in node.texts:
                        yield from text.attributes
                case OwnCall():
                    yield from (attribute for _, attribute in node.columns)


def nodes_in(tree: Tree) -> Iterator[Tree]:
    """A tree and the trees in it, from the left."""
    yield tree
    for term in terms_of(tree):
        yield from nodes_in(term)


def terms_of(tree: Tree) -> tuple[Tree, ...]:
    """The trees directly in a tree, from the left."""
    match tree:
        case Arithmetic() | DecimalArithmetic():
            return (tree.left, tree.right)
        case Cast() | Negation() | Absolute():
            return (tree.operand,)
        case TimesBetween():
            return (tree.start, tree.end)
        case Call() | Chosen():
            return tree.operands
        case Conditional():
            ways = (one for asked, then in tree.branches for one in (*terms_asked(asked), then))
            return (*ways, tree.otherwise)
        case Asked():
            return terms_asked(tree.condition)
        case _:
            return ()


def terms_asked(asked: Truth) -> tuple[Tree, ...]:
    """The trees that a condition compares, from the left."""
    match asked:
        case Every() | Some():
            return tuple(one for part in asked.parts for one in terms_asked(part))
        case Compared():
            return (asked.left, asked.right)
        case OfTypes():
            return ()
        case _:
            return (asked.operand,)
